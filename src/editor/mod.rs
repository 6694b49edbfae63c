//! What an editor shows about the files of a pack: texts and byte offsets in, plain values out. The language server
//! (`app::lsp`) translates the values for clients.
//! Contains: `text`, positions and changes of texts; `view`, a pack as it is being written; `fixes`, edits for findings.
//! Does not contain: files, clocks, the protocol, lint rules.

pub mod fixes;
pub mod text;
pub mod view;
