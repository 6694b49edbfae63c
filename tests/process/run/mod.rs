//! Supervised runs: the step, whole runs on a simulated machine with a virtual clock, and real ones.

mod answers;
mod cases;
mod clients;
mod display;
mod gate;
mod incidents;
mod process;
mod seed;
mod stage;
mod steps;
mod triggers;
mod whole;
