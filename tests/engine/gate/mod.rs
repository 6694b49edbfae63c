//! The whole program on simulated machines: cases, decisions, effects, hostile input.

mod allow;
mod audit_log;
mod breakers;
mod cases;
mod copilot;
mod decisions;
mod explain;
mod forge;
mod init;
mod judge;
mod machine_settings;
mod masking;
mod observe;
mod organization;
mod pause;
mod pins;
mod remote;
mod remote_attacks;
mod replay;
mod scene;
mod sessions;
mod status;
mod told;
mod trust;
mod try_out;
mod views;
