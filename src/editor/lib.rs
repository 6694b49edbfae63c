//! What an editor shows about the files of a pack: texts and byte offsets in, plain values out. The language server
//! (`policyd-lsp`) translates the values for clients.
//! Contains: `text`, positions and changes of texts; `view`, a pack as it is being written; `fixes`, edits for findings; `format`, white space;
//! `place` and `lines`, what is at a byte of a file; `keys` and `ids`, what that means; `lenses` and `values`, results of
//! cases, of replays, and of evaluations.
//! Does not contain: files, clocks, the protocol, lint rules.
//!
//! ```
//! use policyd_editor::text::LineIndex;
//!
//! let text = "name: own\non_error: block\n";
//! assert_eq!(LineIndex::new(text).line_of(12), 1);
//! ```

pub mod completion;
pub mod fixes;
pub mod format;
pub mod hover;
pub mod ids;
pub mod keys;
pub mod lenses;
mod lines;
pub mod outline;
pub mod place;
pub mod text;
pub mod values;
pub mod view;
