//! The context of one event: the event, the facts, and the environment, before any probe runs.
//! `eval` collects it from the machine; a case or a recorded session supplies it.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use policyd_fact_table::context::{Context, ConversationProse, FactView};
use policyd_fact_table::excuse_facts::RationalizationMatcher;
use policyd_fact_table::pattern::{StoredPattern, TextPatterns};
use policyd_fact_table::project_facts::ProjectView;
use policyd_fact_table::source::{FactSource, FactSources};
use policyd_facts::compiled::CompiledMatchers;
use policyd_facts::event::Event;
use policyd_facts::{EditedFile, Facts};
use policyd_policy::Policy;
use policyd_state::context::Overrides;
use policyd_yaml::deferred::Lazy;
use policyd_yaml::time::Timestamp;

/// Inputs of the evaluation of one event, before any probe runs.
#[derive(Debug, Clone)]
pub struct EventContext {
    pub event: Event,
    /// Facts of the transcript.
    pub facts: Facts,
    /// Reason why the transcript could not be read.
    pub transcript_problem: Option<String>,
    /// Whether a user is present.
    pub interactive: bool,
    /// Whether a supervised run started the session, and another turn follows.
    pub supervised: bool,
    /// Whether this is a new evaluation of a recorded event, for which no probe can run.
    pub recorded: bool,
    /// Directory of the project.
    pub project: PathBuf,
    /// Host of the project's remote, in lower case.
    pub remote_host: Option<String>,
    /// Settings of the context window from the environment.
    pub overrides: Overrides,
    /// What the disk shows of the project. `None` if the rules do not read it.
    pub project_view: Option<ProjectView>,
    /// Whether any expression reads the context usage.
    pub gauged: bool,
    /// Wall-clock time.
    pub now: Timestamp,
}

/// Sources that read the token counters.
const GAUGED: FactSources = FactSources::of(&[FactSource::Context, FactSource::Costs]);

/// Matchers of a pack for facts and prose, compiled once for all events.
#[derive(Debug, Clone)]
pub struct Matchers {
    /// Matchers for commands and files.
    pub lens: Rc<CompiledMatchers>,
    /// Text patterns by name.
    pub patterns: Rc<TextPatterns>,
    /// Matcher of the pack's rationalizations.
    pub sought: Rc<OnceCell<RationalizationMatcher>>,
}

impl Matchers {
    /// Creates the matchers of a pack's vocabulary.
    #[must_use]
    pub fn new(lens: CompiledMatchers, texts: Lazy<BTreeMap<String, StoredPattern>>) -> Self {
        Self { lens: Rc::new(lens), patterns: Rc::new(texts.into()), sought: Rc::default() }
    }

    /// Removes the vocabulary from a policy and creates its matchers.
    #[must_use]
    pub fn out_of(policy: &mut Policy) -> Self {
        let (lens, texts) = (std::mem::take(&mut policy.lens), std::mem::take(&mut policy.texts));
        Self::new(CompiledMatchers::new(lens), texts)
    }
}

impl EventContext {
    /// Creates the context of an event without facts of a session.
    #[must_use]
    pub fn alone(event: Event, project: PathBuf, now: Timestamp) -> Self {
        Self {
            event,
            facts: Facts::default(),
            transcript_problem: None,
            interactive: true,
            supervised: false,
            recorded: false,
            project,
            remote_host: None,
            overrides: Overrides::default(),
            project_view: None,
            gauged: true,
            now,
        }
    }

    /// Creates the first view of one evaluation.
    #[must_use]
    pub fn view(self, policy: &Policy, words: &Matchers) -> FactView {
        let gauge = (policy.sources.has_some(GAUGED) && self.gauged)
            .then(|| Rc::new(super::context::gauge(&policy.context, &self.overrides, &self.facts)));
        FactView { usage: gauge, ..FactView::new(Rc::new(self.context(policy, words))) }
    }

    /// Creates the context of one evaluation.
    #[must_use]
    pub fn context(self, policy: &Policy, words: &Matchers) -> Context {
        let forge = self.remote_host.as_deref().map(|host| forge(policy, host));
        let said = self.event.last_message.clone().filter(|it| !it.trim().is_empty());
        let last = || self.facts.messages.last.last().map(|it| it.text.clone());
        Context {
            last_message: said.or_else(last).unwrap_or_default(),
            event: self.event,
            transcript_problem: self.transcript_problem,
            facts: self.facts,
            lens: Rc::clone(&words.lens),
            interactive: self.interactive,
            supervised: self.supervised,
            recorded: self.recorded,
            project: self.project,
            project_view: self.project_view,
            main_branches: policy.main_branches.clone(),
            forge: forge.unwrap_or_default(),
            remote_host: self.remote_host.unwrap_or_default(),
            patterns: Rc::clone(&words.patterns),
            sought: Rc::clone(&words.sought),
            overrides: self.overrides,
            now: self.now,
            zones: policy.zones.clone(),
            spoken: ConversationProse::default(),
            files_by_kind: RefCell::default(),
        }
    }
}

/// Returns the code host of a host name. Empty if it is unknown.
fn forge(policy: &Policy, host: &str) -> String {
    let mut forges = policy.forges.iter();
    let found = forges.find(|(_, parts)| parts.iter().any(|it| host.contains(it.as_str())));
    found.map(|(name, _)| name.clone()).unwrap_or_default()
}

/// Directories of temporary files, which do not belong to the agent's work.
const SCRATCH: [&str; 3] = ["/tmp", "/var/tmp", "/private/tmp"];

/// Facts that were excluded from the agent's work: increasing indexes into the lists of facts. A
/// new evaluation excludes the same facts, whatever the files contain then.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct ExcludedFacts {
    /// Scratch files.
    pub files: Vec<usize>,
    /// Findings in scratch files.
    pub findings: Vec<usize>,
    /// Fixed findings, as indexes into the remaining findings.
    #[serde(rename = "mended")]
    pub fixed: Vec<usize>,
    /// Files that are generated or vendored, as indexes into the remaining files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub generated: Vec<usize>,
    /// Files whose last edits changed nothing, as indexes into the remaining files, each with the
    /// position of its last edit that changed the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settled: Vec<(usize, u64)>,
    /// Files whose edits changed nothing together, as indexes into the remaining files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undone: Vec<usize>,
    /// Files that the agent wrote and that do not exist now, as indexes into the remaining files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<usize>,
}

impl ExcludedFacts {
    /// Returns whether no fact was excluded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Excludes the same facts again.
    pub fn again(&self, facts: &mut Facts, lens: &CompiledMatchers) {
        fn at<T>(places: &[usize]) -> impl FnMut(usize, &T) -> bool {
            |place, _| places.contains(&place)
        }
        forget(&mut facts.files, at(&self.files));
        forget(&mut facts.findings, at(&self.findings));
        forget(&mut facts.findings, at(&self.fixed));
        for place in &self.generated {
            facts.files.get_mut(*place).into_iter().for_each(|it| lose_generated(it, lens));
        }
        for (place, seq) in &self.settled {
            facts.files.get_mut(*place).into_iter().for_each(|it| it.last_seq = *seq);
        }
        forget_undone(facts, &self.undone);
        for place in &self.removed {
            facts.files.get_mut(*place).into_iter().for_each(|it| it.written = 0);
        }
    }
}

/// Marks written files that do not exist now as not written. Returns their indexes.
pub fn exclude_removed(facts: &mut Facts, is_gone: impl Fn(&str) -> bool) -> Vec<usize> {
    let mut removed = Vec::new();
    for (place, file) in facts.files.iter_mut().enumerate() {
        if file.written > 0 && is_gone(&file.path) {
            file.written = 0;
            removed.push(place);
        }
    }
    removed
}

/// Removes files whose edits changed nothing.
fn forget_undone(facts: &mut Facts, places: &[usize]) {
    let last = places.iter().filter_map(|place| Some(facts.files.get(*place)?.last_seq)).max();
    facts.undone_seq = last.unwrap_or(facts.undone_seq);
    forget(&mut facts.files, |place, _| places.contains(&place));
}

/// Removes the classes to which a generated file does not belong.
fn lose_generated(file: &mut EditedFile, lens: &CompiledMatchers) {
    file.kinds.retain(|kind| !lens.excepts_generated(kind));
}

/// Effect of the edits of a file on its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditEffect {
    /// The file has another content than before, or the content before is not known.
    Changed,
    /// The last edits changed nothing. The number counts them.
    LastUndone(usize),
    /// The file has the content that it had before the first edit.
    Undone,
}

/// Takes back edits that changed nothing. Returns the settled and the undone files as in
/// [`ExcludedFacts`].
pub fn exclude_undone(
    facts: &mut Facts,
    mut effect: impl FnMut(&EditedFile) -> EditEffect,
) -> (Vec<(usize, u64)>, Vec<usize>) {
    let (mut settled, mut undone) = (Vec::new(), Vec::new());
    for (place, file) in facts.files.iter_mut().enumerate() {
        match effect(file) {
            EditEffect::Changed => {}
            EditEffect::Undone => undone.push(place),
            EditEffect::LastUndone(count) => {
                let kept = file.edited_at.len().checked_sub(count.saturating_add(1));
                if let Some(seq) = kept.and_then(|at| file.edited_at.get(at)) {
                    file.last_seq = *seq;
                    settled.push((place, *seq));
                }
            }
        }
    }
    forget_undone(facts, &undone);
    (settled, undone)
}

/// Removes generated and vendored files, and those of which only comments changed, from the classes to which they do not belong. Returns their
/// indexes.
pub fn exclude_generated(
    facts: &mut Facts,
    lens: &CompiledMatchers,
    mut is_generated: impl FnMut(&EditedFile) -> bool,
) -> Vec<usize> {
    let mut found = Vec::new();
    for (place, file) in facts.files.iter_mut().enumerate() {
        let matters = file.kinds.iter().any(|kind| lens.excepts_generated(kind));
        if matters && is_generated(file) {
            lose_generated(file, lens);
            found.push(place);
        }
    }
    found
}

/// Removes items and returns their indexes.
fn forget<T>(all: &mut Vec<T>, mut foreign: impl FnMut(usize, &T) -> bool) -> Vec<usize> {
    let (mut place, mut gone) = (0, Vec::new());
    all.retain(|item| {
        let keep = !foreign(place, item);
        if !keep {
            gone.push(place);
        }
        place += 1;
        keep
    });
    gone
}

/// Returns whether a file is in a temporary directory (`more`: further ones) and not in one of the
/// project's `own` directories.
#[must_use]
pub fn is_scratch(path: &str, own: &[&Path], more: &[PathBuf]) -> bool {
    let begins = first_letter(path.as_bytes());
    let lies_in = |folder: &Path| {
        // The first letter behind the root excludes most paths.
        let letters = begins.zip(first_letter(folder.as_os_str().as_encoded_bytes()));
        letters.is_none_or(|(one, other)| one == other) && Path::new(path).starts_with(folder)
    };
    let mut scratch = SCRATCH.iter().map(Path::new).chain(more.iter().map(PathBuf::as_path));
    scratch.any(lies_in) && !own.iter().any(|it| lies_in(it))
}

/// Returns the first letter of a path in lower case. `None` if there might be none.
fn first_letter(path: &[u8]) -> Option<u8> {
    let letter = path.iter().find(|it| **it != b'/')?;
    (*letter != b'.').then(|| letter.to_ascii_lowercase())
}

/// Removes scratch files from the facts, and returns what was removed.
pub fn exclude_scratch(facts: &mut Facts, own: &[&Path], more: &[PathBuf]) -> ExcludedFacts {
    ExcludedFacts {
        files: forget(&mut facts.files, |_, it| is_scratch(&it.path, own, more)),
        findings: forget(&mut facts.findings, |_, it| is_scratch(&it.path, own, more)),
        ..ExcludedFacts::default()
    }
}

/// Current content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileNow {
    /// Text of the file.
    Text(String),
    /// The file does not exist.
    Gone,
    /// The content is unknown.
    Unknown,
}

/// Removes findings that the file no longer contains, because a command fixed them (`sed -i`, `rm`)
/// that the transcript does not show. Returns their indexes.
pub fn exclude_fixed(facts: &mut Facts, mut look: impl FnMut(&str) -> FileNow) -> Vec<usize> {
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
            // In Windows, this is a file of the machine `tmp`.
            ("//tmp/a.py", "/w", cfg!(not(windows))),
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
