//! The application below the command line: what the commands do, without reading arguments or printing.

pub(crate) mod alerts;
pub(crate) mod cases;
pub(crate) mod channel_program;
pub(crate) mod crash;
pub(crate) mod dashboard;
pub(crate) mod doctor;
pub(crate) mod error;
pub(crate) mod export;
pub(crate) mod gate;
pub(crate) mod install;
pub(crate) mod lsp;
pub(crate) mod metrics;
pub(crate) mod morning;
pub(crate) mod overview;
pub(crate) mod packs;
pub(crate) mod replay;
pub(crate) mod sessions;
pub(crate) mod sharing;
pub(crate) mod supervisor;
pub(crate) mod tasks;
pub(crate) mod webhook;
pub(crate) mod workspace;
