//! The application below the command line: what the commands do, without reading arguments or printing.

pub(crate) mod alerts;
pub(crate) mod cases;
pub(crate) mod dashboard;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod folders;
pub(crate) mod install;
pub(crate) mod lsp;
pub(crate) mod metrics;
pub(crate) mod morning;
pub(crate) mod overview;
pub(crate) mod packs;
pub(crate) mod replay;
pub(crate) mod sessions;
pub(crate) mod supervisor;
pub(crate) mod webhook;

pub(crate) use policyd_gate::crash;
pub(crate) use policyd_tasks::{channel_program, sharing};
pub(crate) use policyd_workspace::error;
pub(crate) use {policyd_gate as gate, policyd_tasks as tasks, policyd_workspace as workspace};
