//! Guards from the outside: hook payloads in, decisions out, on a simulated machine.

mod allows;
mod around;
mod bash;
mod bypasses;
mod effects;
mod file_facts;
mod folders;
mod human_commands;
#[cfg(target_os = "linux")]
mod instructions;
mod joins;
mod limits;
mod machine;
mod own_gate;
mod peers;
mod scripts;
mod self_gate;
mod session_knowledge;
mod shapes;
mod time;
mod unknown_code;
mod work_tree;
