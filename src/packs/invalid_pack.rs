//! A broken pack: what is wrong with it, and the text for the user.

use std::error::Error;

use policyd_policy::{EnforcementMode, OnError};
use policyd_yaml::{Diagnostic, Level};

/// A pack that is broken.
#[derive(Debug, Default)]
pub struct InvalidPack {
    /// What could not be read.
    pub unreadable: Vec<String>,
    /// What is wrong in what was read.
    pub diagnostics: Vec<Diagnostic>,
    /// What the manifest says about errors, where it is sound.
    pub on_error: Option<OnError>,
    /// Whether the manifest lets rules act, where it is sound.
    pub mode: Option<EnforcementMode>,
    /// Whether the manifest switches the pack on, where it is sound.
    pub enabled: Option<bool>,
    /// Built-in sets of guards that the manifest leaves out, where it is sound.
    pub sets_off: Vec<String>,
}

/// Why a pack has no policy.
#[derive(Debug)]
pub enum LoadError {
    /// The pack is broken.
    Invalid(InvalidPack),
    /// Another program had to compile the pack, and did not.
    NotCompiled(Box<dyn Error>),
}

/// What is broken and where, for the user: the first findings on one line each.
pub fn explain(broken: &InvalidPack) -> String {
    format!("the policy pack is broken: {}", list(broken))
}

/// The first findings of a broken pack in one line.
pub(super) fn list(broken: &InvalidPack) -> String {
    const SHOWN: usize = 5;
    let lines = problems(broken);
    let more = lines.len().saturating_sub(SHOWN);
    let mut text = lines.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("; ");
    if more > 0 {
        text.push_str(&format!("; and {more} more"));
    }
    text
}

/// What is broken and where, one line each.
pub(super) fn problems(broken: &InvalidPack) -> Vec<String> {
    let errors = broken.diagnostics.iter().filter(|it| it.level == Level::Error);
    let errors = errors.map(|it| format!("{}: {}", it.span.place(), it.message));
    let mut lines: Vec<String> = broken.unreadable.iter().cloned().chain(errors).collect();
    // Several readers of a file can find the same error.
    lines.dedup();
    lines
}
