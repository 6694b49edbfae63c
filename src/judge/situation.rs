//! One event and what is known of it before anything is asked, as the context expressions see.
//! Lives here: what belongs to it and what does not. `eval` gathers it from the machine, a case or a
//! recorded session brings it along.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::facts::Facts;
use crate::facts::compiled::CompiledLens;
use crate::facts::event::Event;
use crate::policy::Policy;
use crate::script::context::{Context, Learned, Spoken};
use crate::script::pattern::{KeptPattern, Sought, TextPattern};
use crate::state::context::Overrides;
use crate::time::Timestamp;

/// What is known of an event before anything is asked.
#[derive(Debug, Clone)]
pub struct Situation {
    /// What just happened.
    pub event: Event,
    /// What the transcript says.
    pub facts: Facts,
    /// Why the transcript could not be read, if it could not.
    pub transcript_problem: Option<String>,
    /// Whether a human watches.
    pub interactive: bool,
    /// Whether this happened before and is judged again: nothing can be asked any more.
    pub recorded: bool,
    /// The project's folder.
    pub project: PathBuf,
    /// Host of the project's remote, in small letters.
    pub remote_host: Option<String>,
    /// What the environment says of the context's window.
    pub overrides: Overrides,
    /// Whether anybody will ask how full the context is.
    pub gauged: bool,
    /// The wall clock.
    pub now: Timestamp,
}

/// What facts and prose are recognised by; prepared once for all events of a pack.
#[derive(Debug, Clone)]
pub struct Words {
    /// How commands and files are recognised.
    pub lens: Rc<CompiledLens>,
    /// Text patterns by name.
    pub patterns: Rc<BTreeMap<String, TextPattern>>,
    /// What the pack's table of excuses looks for.
    pub sought: Rc<OnceCell<Sought>>,
}

impl Words {
    /// Takes a pack's vocabulary.
    #[must_use]
    pub fn new(lens: CompiledLens, texts: BTreeMap<String, KeptPattern>) -> Self {
        let patterns = texts.into_iter().map(|(id, it)| (id, TextPattern::new(it)));
        Self { lens: Rc::new(lens), patterns: Rc::new(patterns.collect()), sought: Rc::default() }
    }

    /// Takes the vocabulary out of a policy, which keeps everything else.
    #[must_use]
    pub fn out_of(policy: &mut Policy) -> Self {
        let (lens, texts) = (std::mem::take(&mut policy.lens), std::mem::take(&mut policy.texts));
        Self::new(CompiledLens::new(lens), texts)
    }
}

impl Situation {
    /// An event by itself: nothing is known of what the session did, and nothing outside was asked.
    #[must_use]
    pub fn alone(event: Event, project: PathBuf, now: Timestamp) -> Self {
        Self {
            event,
            facts: Facts::default(),
            transcript_problem: None,
            interactive: true,
            recorded: false,
            project,
            remote_host: None,
            overrides: Overrides::default(),
            gauged: true,
            now,
        }
    }

    /// The context of one evaluation.
    #[must_use]
    pub fn context(self, policy: &Policy, words: &Words) -> Context {
        let forge = self.remote_host.as_deref().map(|host| forge(policy, host));
        let gauge = (policy.reads_context && self.gauged)
            .then(|| Rc::new(super::context::gauge(&policy.context, &self.overrides, &self.facts)));
        let said = self.event.last_message.clone().filter(|it| !it.trim().is_empty());
        let last = || self.facts.messages.last.last().map(|it| it.text.clone());
        Context {
            last_message: said.or_else(last).unwrap_or_default(),
            event: self.event,
            transcript_problem: self.transcript_problem,
            facts: self.facts,
            lens: Rc::clone(&words.lens),
            interactive: self.interactive,
            recorded: self.recorded,
            project: self.project,
            main_branches: policy.main_branches.clone(),
            forge: forge.unwrap_or_default(),
            patterns: Rc::clone(&words.patterns),
            sought: Rc::clone(&words.sought),
            overrides: self.overrides,
            now: self.now,
            learned: RefCell::new(Learned { context: gauge, ..Learned::default() }),
            spoken: Spoken::default(),
            files_by_kind: RefCell::default(),
        }
    }
}

/// The forge that a host belongs to, empty where it is none of the known ones.
fn forge(policy: &Policy, host: &str) -> String {
    let mut forges = policy.forges.iter();
    let found = forges.find(|(_, parts)| parts.iter().any(|it| host.contains(it.as_str())));
    found.map(|(name, _)| name.clone()).unwrap_or_default()
}

/// Folders in which the agent may leave things that are nobody's work.
const SCRATCH: [&str; 3] = ["/tmp", "/var/tmp", "/private/tmp"];

/// What was not counted as the agent's work: rising places in lists of the facts, so that the same
/// can be forgotten again when the files are no longer what they were.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Forgotten {
    /// Files that are scratch.
    pub files: Vec<usize>,
    /// Findings in scratch files.
    pub findings: Vec<usize>,
    /// Findings that were mended, among those that were left.
    pub mended: Vec<usize>,
}

impl Forgotten {
    /// Whether everything counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Forgets the same again.
    pub fn again(&self, facts: &mut Facts) {
        fn at<T>(places: &[usize]) -> impl FnMut(usize, &T) -> bool {
            |place, _| places.contains(&place)
        }
        forget(&mut facts.files, at(&self.files));
        forget(&mut facts.findings, at(&self.findings));
        forget(&mut facts.findings, at(&self.mended));
    }
}

/// Removes items; returns their places.
fn forget<T>(all: &mut Vec<T>, mut foreign: impl FnMut(usize, &T) -> bool) -> Vec<usize> {
    let (mut place, mut gone) = (0, Vec::new());
    all.retain(|it| {
        let keep = !foreign(place, it);
        if !keep {
            gone.push(place);
        }
        place += 1;
        keep
    });
    gone
}

/// Whether a file is scratch: in a temporary folder (`more` names further ones), unless one of the
/// `own` folders of the project lies there.
#[must_use]
pub fn is_scratch(path: &str, own: &[&Path], more: &[PathBuf]) -> bool {
    let begins = first_letter(path.as_bytes());
    let lies_in = |folder: &Path| {
        // Most are turned away by the first letter behind the root.
        let letters = begins.zip(first_letter(folder.as_os_str().as_encoded_bytes()));
        letters.is_none_or(|(one, other)| one == other) && Path::new(path).starts_with(folder)
    };
    let mut scratch = SCRATCH.iter().map(Path::new).chain(more.iter().map(PathBuf::as_path));
    scratch.any(lies_in) && !own.iter().any(|it| lies_in(it))
}

/// The letter, in lower case, that the first name of a path begins with; nothing where that may be none.
fn first_letter(path: &[u8]) -> Option<u8> {
    let letter = path.iter().find(|it| **it != b'/')?;
    (*letter != b'.').then(|| letter.to_ascii_lowercase())
}

/// Forgets scratch files. Returns what it forgot.
pub fn forget_scratch(facts: &mut Facts, own: &[&Path], more: &[PathBuf]) -> Forgotten {
    Forgotten {
        files: forget(&mut facts.files, |_, it| is_scratch(&it.path, own, more)),
        findings: forget(&mut facts.findings, |_, it| is_scratch(&it.path, own, more)),
        mended: Vec::new(),
    }
}

/// What a file holds now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileNow {
    /// This text.
    Text(String),
    /// Nothing: it is gone.
    Gone,
    /// It cannot be told.
    Unknown,
}

/// Forgets findings that the file no longer has: they were mended by a command (`sed -i`, `rm`)
/// that the transcript does not tell. Returns their places.
pub fn forget_mended(facts: &mut Facts, mut look: impl FnMut(&str) -> FileNow) -> Vec<usize> {
    let mut texts: BTreeMap<String, FileNow> = BTreeMap::new();
    forget(&mut facts.findings, |_, it| {
        match texts.entry(it.path.clone()).or_insert_with_key(|path| look(path)) {
            FileNow::Text(text) => !text.contains(it.excerpt.as_str()),
            FileNow::Gone => true,
            FileNow::Unknown => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_files_are_scratch_unless_the_project_lies_there() {
        let more = [PathBuf::from("/Scratch")];
        for (path, own, expected) in [
            ("/tmp/a.py", "/w", true),
            ("//tmp/a.py", "/w", true),
            ("/./tmp/a.py", "/w", true),
            ("/tmpfs/a.py", "/w", false),
            ("/w/tmp/a.py", "/w", false),
            ("/Scratch/a.py", "/w", true),
            ("/scratch/a.py", "/w", false),
            ("/tmp/w/a.py", "/tmp/w", false),
            ("/tmp/a.py", "/", false),
            ("tmp/a.py", "/w", false),
        ] {
            assert_eq!(is_scratch(path, &[Path::new(own)], &more), expected, "{path}");
        }
    }
}
