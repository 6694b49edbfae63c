//! Guards from the outside: hook payloads in, decisions out, on a simulated machine.

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
