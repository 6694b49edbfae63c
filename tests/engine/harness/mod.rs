//! The clients: what each sends at each event, what is understood, and what it is answered.

mod answers;
mod codex_schemas;
mod detection;
mod lists;
mod table;
