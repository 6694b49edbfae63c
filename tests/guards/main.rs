//! Guards from the outside: hook payloads in, decisions out, on a simulated machine.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test that cannot go on stops; the shared cases are real files"
)]

mod allows;
mod around;
mod bash;
mod bypasses;
mod effects;
mod folders;
mod machine;
mod peers;
mod self_gate;
mod shapes;
mod time;
mod unknown_code;
mod work_tree;
