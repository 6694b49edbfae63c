//! Parameters of functions in the table of facts.

use super::types::{Domain, TextMatch, Type};

/// What a function takes.
pub(super) type Params = &'static [(Type, Domain)];

const fn text(compared: TextMatch) -> [(Type, Domain); 1] {
    [(Type::Text, Domain::Text(compared))]
}

const fn list(compared: TextMatch) -> [(Type, Domain); 1] {
    [(Type::Texts, Domain::Text(compared))]
}

/// A key, or a text that is searched.
pub(super) const KEY: Params = &text(TextMatch::Not);
/// A name.
pub(super) const NAME: Params = &text(TextMatch::Whole);
/// Names.
pub(super) const NAMES: Params = &list(TextMatch::Whole);
/// Globs over words.
pub(super) const WORDS: Params = &list(TextMatch::Word);
/// A glob over paths.
pub(super) const PATH: Params = &text(TextMatch::Path);
/// Globs over paths.
pub(super) const PATHS: Params = &list(TextMatch::Path);
/// A command pattern.
pub(super) const COMMAND: Params = &text(TextMatch::Command);
/// Command patterns.
pub(super) const COMMANDS: Params = &list(TextMatch::Command);
/// An option.
pub(super) const OPTION: Params = &text(TextMatch::Option);
/// Options.
pub(super) const OPTIONS: Params = &list(TextMatch::Option);
