//! What a command line does: the programs that it starts and the files that they access.
//!
//! Contains: readers of bash, PowerShell, and code of other languages. What programs do is data of a pack
//! ([`vocabulary::ShellVocabulary`]).
//! Does not contain: the decision whether a call is allowed.
//!
//! ```
//! use policyd_shell::pattern::CommandPattern;
//! use policyd_shell::program::Program;
//! use policyd_yaml::rows::Rows;
//!
//! let push = CommandPattern::parse("git push --force");
//! let args = ["push", "--force", "origin"].map(str::to_owned).to_vec();
//! assert!(push.matches(&Program { name: "git".to_owned(), args, ..Program::default() }, &Rows::default()));
//! ```

pub mod call;
pub mod covers;
pub mod glob;
pub mod limits;
pub mod patch;
pub mod path;
pub mod pattern;
pub mod program;
pub mod shell;
pub mod tool_vocabulary;
pub mod vocabulary;
