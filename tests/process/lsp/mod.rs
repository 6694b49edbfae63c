//! `policyd lsp` as editors use it: a client over standard input and output drives the real binary.
#![expect(clippy::string_slice, reason = "a text that is cut within a character fails the test")]

mod actions;
mod client;
mod completion;
mod edits;
mod ids;
mod lenses;
mod neovim;
mod session;
