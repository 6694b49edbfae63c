//! Which class a failure is of: by the name a hook gives it, else by the words of a text. Lives here:
//! holding names and texts against the classes. What classes are says `state::failure`.

use std::time::Duration;

use super::Policy;
use crate::script::pattern::prose_regex;
use crate::state::failure::{Class, Effect, Failures, Label};
use crate::state::recovery::Limits;
use crate::state::retry::Retry;
use crate::time::{Timestamp, duration_text};

/// What a failure was found to be.
#[derive(Debug, Clone, PartialEq)]
pub struct Classified {
    /// Its class.
    pub class: Class,
    /// What another program calls it; the id of the class, where none was asked for.
    pub label: String,
    /// When it is tried again.
    pub retry: Retry,
    /// What decided.
    pub by: Deciding,
}

/// What decided of which class a failure is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deciding {
    /// The name that a hook or program gave it.
    Name(String),
    /// A regex, and the line it was found in.
    Words {
        /// The regex as the pack has it.
        regex: String,
        /// The line.
        line: String,
    },
    /// Nothing: no class knows the name or the text.
    Nothing,
}

impl Policy {
    /// What a failure is: by its name where a class has it, else by the words of the text.
    #[must_use]
    pub fn classify(&self, error: &str, text: &str) -> Classified {
        self.failures.classify(&[], error, text)
    }
}

impl Failures {
    /// The vocabulary of another program.
    #[must_use]
    pub fn profile(&self, name: &str) -> Option<&[Label]> {
        let found = self.profiles.iter().find(|(it, _)| it == name);
        found.map(|(_, labels)| labels.as_slice())
    }

    /// What a failure is in the words of a profile, whose first label that fits wins. Without one
    /// the first class that fits wins.
    #[must_use]
    pub fn classify(&self, profile: &[Label], error: &str, text: &str) -> Classified {
        let named = self.classes.iter().find(|it| it.errors.iter().any(|name| name == error));
        if let Some(class) = named.filter(|_| !error.is_empty()) {
            return labelled(class.clone(), profile, Deciding::Name(error.to_owned()));
        }
        let text = last_lines(text, self.lines);
        let of_label = |label: &'_ Label| {
            let classes = label.classes.iter().filter_map(|id| self.class(id));
            let mut hits = classes.filter_map(|it| Some((it, found(it, text)?)));
            let (class, by) = hits.next()?;
            Some(labelled(class.clone(), std::slice::from_ref(label), by))
        };
        let hit = if profile.is_empty() {
            let mut hits = self.classes.iter().filter_map(|it| Some((it, found(it, text)?)));
            hits.next().map(|(class, by)| labelled(class.clone(), &[], by))
        } else {
            profile.iter().find_map(of_label)
        };
        hit.unwrap_or_else(|| {
            let class = self.class(&self.unrecognized).cloned().unwrap_or_default();
            labelled(class, profile, Deciding::Nothing)
        })
    }

    /// The class with this id.
    #[must_use]
    pub fn class(&self, id: &str) -> Option<&Class> {
        self.classes.iter().find(|it| it.id == id)
    }

    /// Whether a program that ended so should not be called again at once: its output has the words
    /// of a class that the profile names, or it failed and said nearly nothing.
    #[must_use]
    pub fn is_fatal(
        &self,
        profile: &[Label],
        output: &str,
        exit_code: i64,
        limits: &Limits,
    ) -> bool {
        let told = self.classify(profile, "", output);
        let named = profile.iter().flat_map(|it| &it.classes).any(|it| *it == told.class.id);
        let lines = output.lines().filter(|it| !it.trim().is_empty()).count();
        let few = u32::try_from(lines).is_ok_and(|it| it < limits.crash_lines);
        (named && told.by != Deciding::Nothing) || (exit_code != 0 && few)
    }
}

/// What is known where a wait is told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// Now.
    pub now: Timestamp,
    /// The wait until the time of day at which a limit is reset, where the text names one.
    pub until_reset: Option<Duration>,
    /// Number of the next attempt, from 1.
    pub attempt: u32,
    /// Requests that the provider allows per minute, where known.
    pub requests_per_minute: Option<u32>,
    /// Between 0 and 1; what chance takes off a wait.
    pub chance: f64,
}

impl Failures {
    /// How long to wait before the next attempt, and why; nothing where there should be none.
    #[must_use]
    pub fn wait(&self, it: &Classified, text: &str, at: &Moment) -> Option<(Duration, String)> {
        if it.is_permanent() || at.attempt > it.retry.max {
            return None;
        }
        let waits = &self.waits;
        if let Some(wait) = waits.retry_after(text, at.now) {
            return Some((wait, "the server says so".to_owned()));
        }
        if let Some(wait) = at.until_reset {
            let margin = duration_text(waits.margin);
            return Some((wait, format!("the limit is reset then, and {margin} more")));
        }
        if let Some(requests) = at.requests_per_minute {
            let wait = waits.by_requests_per_minute(requests);
            return Some((wait, format!("{requests} requests per minute are allowed")));
        }
        let (number, most) = (at.attempt, it.retry.max);
        let why = format!("attempt {number} of {most} after `{}`", it.label);
        Some((it.retry.wait(number, at.chance), why))
    }
}

impl Classified {
    /// Its name in a history of failures. That a build failed says its exit code alone.
    #[must_use]
    pub fn signature(&self, exit_code: Option<i64>) -> &str {
        let failed = exit_code.is_some_and(|it| it != 0) && self.by == Deciding::Nothing;
        if failed { "build_failure" } else { &self.class.id }
    }

    /// Whether the same call fails again, whenever it is made.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        self.class.effect == Effect::Permanent
    }
}

/// A class under the name that a profile has for it.
fn labelled(class: Class, profile: &[Label], by: Deciding) -> Classified {
    let label = profile.iter().find(|it| it.classes.contains(&class.id));
    let name = label.map_or(&class.id, |it| &it.name).clone();
    let retry = label.and_then(|it| it.retry).unwrap_or(class.retry);
    Classified { class, label: name, retry, by }
}

/// The line in which a class recognises itself. A text without any words is one empty line.
fn found(class: &Class, text: &str) -> Option<Deciding> {
    let unless: Vec<_> = class.unless.iter().map(|it| prose_regex(it)).collect();
    let silent = text.trim().is_empty();
    class.regexes.iter().find_map(|source| {
        let regex = prose_regex(source);
        let fits =
            |line: &&str| !line.trim().is_empty() && !unless.iter().any(|it| it.is_match(line));
        let line =
            if silent { regex.is_match("").then_some("") } else { regex.lines(text).find(fits) }?;
        Some(Deciding::Words { regex: source.clone(), line: line.trim().to_owned() })
    })
}

/// The last lines of a text.
fn last_lines(text: &str, lines: usize) -> &str {
    let ends = memchr::memrchr_iter(b'\n', text.trim_end().as_bytes());
    let start = ends.map(|at| at + 1).nth(lines.saturating_sub(1)).unwrap_or(0);
    text.get(start..).unwrap_or(text)
}
