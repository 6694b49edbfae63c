//! Writes cases from recorded tool calls and stops. A case is written only if the pack decides on the simulated
//! machine what it decides for the recording.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::suite::Suite;
use super::{CaseRequest, run_suite};
use crate::workspace::project;
use policyd_base::limits;
use policyd_cases::draft::{self, CaseDraft};
use policyd_cases::expect::Mismatch;
use policyd_cases::result::CaseOutcome;
use policyd_cases::shape::FOLDER;
use policyd_cases::transcript::PROJECT;
use policyd_policy::Policy;
use policyd_policy::load::Pack;
use policyd_record::mask::{mask, mask_json};
use policyd_replay::observed::{ObservedDecision, ObservedEvent};
use policyd_replay::tally::Tally;
use policyd_replay::{PolicyPair, Recording, TranscriptInfo, subject};
use policyd_store::transcript;
use policyd_world::overlay::OverlayWorld;
use policyd_world::{World, WorldError};
use policyd_yaml::Source;
use policyd_yaml::time::Timestamp;

/// The home directory in a case, in place of the user's.
const HOME: &str = "/home/user";

/// Why no case was written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The transcript does not contain the call or the stop.
    #[error("{transcript} contains no such tool call (calls: {calls})")]
    NoCall { transcript: PathBuf, calls: u64 },
    /// The transcript cannot be read.
    #[error("{path}: {source}")]
    Unreadable { path: PathBuf, source: WorldError },
    /// The file exists.
    #[error("{0} exists already")]
    Exists(PathBuf),
    /// The file cannot be written.
    #[error("{path}: {source}")]
    NotWritten { path: PathBuf, source: WorldError },
    /// The case does not pass on the simulated machine.
    #[error("a case cannot repeat this decision: {0}")]
    NotRepeated(String),
}

/// Which event of a transcript is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventSelector<'a> {
    /// The tool call with this id, or with this number in the transcript, from 1.
    Call(&'a str),
    /// The first tool call of this line for which a guard fired.
    GuardAt { line: u64, rule: &'a str },
    /// The stop after the action of this line, at which a check fired.
    CheckAt { line: u64, rule: &'a str },
}

impl<'a> EventSelector<'a> {
    /// Returns the rule that the case is about; `None` for all rules.
    const fn rule(self) -> Option<&'a str> {
        match self {
            Self::Call(_) => None,
            Self::GuardAt { rule, .. } | Self::CheckAt { rule, .. } => Some(rule),
        }
    }

    fn selects(self, observed: &ObservedEvent<'_>) -> bool {
        match (self, observed.result) {
            (Self::Call(call), ObservedDecision::Call(_)) => {
                observed.call == call || call.parse() == Ok(observed.number)
            }
            (Self::GuardAt { line, rule }, ObservedDecision::Call(outcome)) => {
                line == observed.line && outcome.verdicts.iter().any(|it| it.id == rule)
            }
            (Self::CheckAt { line, .. }, ObservedDecision::Stop(_)) => line == observed.line,
            (Self::Call(_) | Self::GuardAt { .. }, ObservedDecision::Stop(_))
            | (Self::CheckAt { .. }, ObservedDecision::Call(_)) => false,
        }
    }

    /// Returns what the case expects: everything for a call that the user named, else the one rule.
    fn expected(self, observed: &ObservedEvent<'_>) -> Map<String, Value> {
        let mut expect = Map::new();
        match (self, observed.result) {
            (Self::Call(_), ObservedDecision::Call(outcome)) => {
                expect.insert("decision".to_owned(), outcome.decision.as_str().into());
                let fired = outcome.verdicts.iter();
                let fired: Map<_, _> =
                    fired.map(|it| (it.id.clone(), it.status().into())).collect();
                if !fired.is_empty() {
                    expect.insert("guards".to_owned(), fired.into());
                }
            }
            (Self::GuardAt { rule, .. }, ObservedDecision::Call(outcome)) => {
                let verdict = outcome.verdicts.iter().find(|it| it.id == rule);
                let status = verdict.map_or("silent", |it| it.status());
                expect.insert("guards".to_owned(), json!({ rule: status }));
            }
            (Self::CheckAt { rule, .. }, ObservedDecision::Stop(outcome)) => {
                let verdict = outcome.verdicts.iter().find(|it| it.id == rule);
                let status = verdict.map_or("skipped", |it| it.status.as_str());
                expect.insert("considerations".to_owned(), json!({ rule: status }));
            }
            (Self::Call(_) | Self::GuardAt { .. }, ObservedDecision::Stop(_))
            | (Self::CheckAt { .. }, ObservedDecision::Call(_)) => {}
        }
        expect
    }
}

/// What a case contains besides the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CaseNeeds {
    Nothing,
    Time,
    Transcript,
    Both,
}

impl CaseNeeds {
    const fn time(self) -> bool {
        matches!(self, Self::Time | Self::Both)
    }

    const fn transcript(self) -> bool {
        matches!(self, Self::Transcript | Self::Both)
    }
}

/// A recorded event, as a case needs it.
struct CaseSituation {
    /// Map under `on`.
    on: Map<String, Value>,
    expect: Map<String, Value>,
    /// Name of the case: the rule, and the command, the file, or the finding.
    name: String,
    lines_before: u64,
    project: PathBuf,
    now: Timestamp,
    /// Whether it is a stop, which means nothing without its transcript.
    is_stop: bool,
}

/// Writes cases into a directory.
pub struct CaseRecorder<'a> {
    world: &'a dyn World,
    pack: Pack,
    /// The policy of the pack, without the mode of the pack: cases show what rules do once they are enforced.
    policy: Policy,
    /// Directory of the case files.
    directory: PathBuf,
    home: String,
    scratch: Vec<PathBuf>,
    temporary: Vec<String>,
}

impl<'a> CaseRecorder<'a> {
    /// Creates a recorder of cases for a pack; the cases belong into `directory`.
    pub fn new(world: &'a dyn World, pack: Pack, policy: &Policy, directory: PathBuf) -> Self {
        let mut policy = policy.clone();
        policy.settings.mode = None;
        Self {
            world,
            pack,
            policy,
            directory,
            home: world.env("HOME").unwrap_or_default(),
            scratch: project::scratch_folders(world),
            temporary: project::temporary_folders(world),
        }
    }

    /// Returns the directory of the case files.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes the case of one event of a transcript. Returns the path of the case file.
    ///
    /// # Errors
    /// [`RecordError`] if no case was written.
    pub fn record(
        &self,
        transcript: &Path,
        selector: EventSelector<'_>,
        name: &str,
    ) -> Result<PathBuf, RecordError> {
        let event = self.find(transcript, selector)?;
        let path = self.directory.join(format!("{name}.yaml"));
        if self.world.stat(&path).is_ok() {
            return Err(RecordError::Exists(path));
        }
        let mut missed = String::new();
        // What a case does not need makes it harder to read: the time and the transcript come last.
        for needs in [CaseNeeds::Nothing, CaseNeeds::Time, CaseNeeds::Transcript, CaseNeeds::Both] {
            if event.is_stop && !needs.transcript() {
                continue;
            }
            let files = self.files(transcript, &event, needs, &path)?;
            match self.failure(&files) {
                None => {
                    files.write(self.world)?;
                    return Ok(path);
                }
                Some(why) => missed = why,
            }
        }
        Err(RecordError::NotRepeated(missed))
    }

    /// Returns the files of a case.
    fn files(
        &self,
        transcript: &Path,
        event: &CaseSituation,
        needs: CaseNeeds,
        path: &Path,
    ) -> Result<CaseFiles, RecordError> {
        let beside = path.with_extension("jsonl");
        let lines = match needs.transcript() {
            true => Some((beside.clone(), self.lines(transcript, event)?)),
            false => None,
        };
        let folder = self.case_folder();
        let relative = beside.strip_prefix(&folder).unwrap_or(&beside).display().to_string();
        let mut draft = CaseDraft {
            name: event.name.clone(),
            transcript: lines.is_some().then_some(relative),
            on: event.on.clone(),
            expect: event.expect.clone(),
            ..CaseDraft::default()
        };
        if needs.time() {
            draft.given.insert("now".to_owned(), event.now.to_string().into());
        }
        Ok(CaseFiles { path: path.to_owned(), case: draft.to_text(), transcript: lines })
    }

    /// Finds the event in a transcript.
    fn find(
        &self,
        transcript: &Path,
        selector: EventSelector<'_>,
    ) -> Result<CaseSituation, RecordError> {
        let mut panel = PolicyPair::new(&self.policy, None);
        let mut tally = Tally::new(&self.policy, None, 0);
        let (mut found, mut calls) = (None, 0);
        let mut observe = |it: &ObservedEvent<'_>| {
            calls = it.number;
            if found.is_none() && selector.selects(it) {
                found = Some(self.event(it, selector));
            }
        };
        let about = TranscriptInfo {
            path: transcript,
            session: "session-1".to_owned(),
            agent: None,
            agent_type: None,
            home: self.home.clone(),
            temporary: &self.temporary,
            scratch: &self.scratch,
            oldest: Timestamp::default(),
            modified: self.world.now(),
        };
        let mut recording = Recording::new(&mut panel, about, &mut tally).observed_by(&mut observe);
        let read = transcript::lines(self.world, transcript, |piece| recording.take(piece));
        read.map_err(|source| RecordError::Unreadable { path: transcript.to_owned(), source })?;
        recording.finish();
        found.ok_or_else(|| RecordError::NoCall { transcript: transcript.to_owned(), calls })
    }

    fn event(&self, it: &ObservedEvent<'_>, selector: EventSelector<'_>) -> CaseSituation {
        let tool = it.event.tool_name.clone().unwrap_or_default();
        let input = &it.event.tool_input;
        let mut on = Map::new();
        let (subject, is_stop) = match it.result {
            ObservedDecision::Stop(outcome) => {
                let fired =
                    outcome.verdicts.iter().find(|it| Some(it.id.as_str()) == selector.rule());
                (fired.map(|it| it.details.clone()).unwrap_or_default(), true)
            }
            ObservedDecision::Call(_) => {
                on = draft::event(it.event.kind.name(), Some(&tool), input);
                (subject(&tool, input), false)
            }
        };
        let machine = MachinePaths { project: it.project, home: &self.home };
        let rule = selector.rule().map(|it| format!("{it}: ")).unwrap_or_default();
        let mut on = Value::Object(machine.in_map(&on));
        // Keys and lists of words tell of secrets, too.
        mask_json(&mut on);
        // Masked before it is shortened: half of a secret is not recognized.
        let name = mask(&format!("{rule}{}", machine.in_text(&subject))).0.into_owned();
        CaseSituation {
            on: on.as_object().cloned().unwrap_or_default(),
            expect: selector.expected(it),
            name: shortened(&name),
            lines_before: it.lines_before,
            project: it.project.to_owned(),
            now: it.now,
            is_stop,
        }
    }

    /// Returns the lines of a transcript up to an event, with secrets masked and the paths of the simulated machine.
    fn lines(&self, transcript: &Path, event: &CaseSituation) -> Result<String, RecordError> {
        let unreadable = |source| RecordError::Unreadable { path: transcript.to_owned(), source };
        let bytes =
            self.world.read(transcript, limits::CASE_DRAFT_BYTES_MAX).map_err(unreadable)?;
        let machine = MachinePaths { project: &event.project, home: &self.home };
        let count = usize::try_from(event.lines_before).unwrap_or(usize::MAX);
        let lines = bytes.split(|it| *it == b'\n').take(count);
        Ok(lines.map(|it| machine.in_text(&mask(&String::from_utf8_lossy(it)).0) + "\n").collect())
    }

    /// Returns the directory from which a case names its transcript: that of all cases of the pack.
    fn case_folder(&self) -> PathBuf {
        let is_named = |it: &&Path| it.file_name().is_some_and(|it| it == FOLDER);
        self.directory.ancestors().find(is_named).unwrap_or(&self.directory).to_owned()
    }

    /// Runs a case on the simulated machine. Returns why it does not pass; `None` if it passes.
    fn failure(&self, files: &CaseFiles) -> Option<String> {
        let dry = OverlayWorld::new(self.world);
        if let Err(error) = files.write(&dry) {
            return Some(error.to_string());
        }
        let folder = self.case_folder();
        let source = Source { name: files.path.display().to_string(), text: files.case.clone() };
        let suite = Suite {
            pack: self.pack.clone(),
            folder: Some(folder),
            files: vec![Arc::new(source)],
            whole: false,
        };
        let request = CaseRequest { filter: None, update: None, coverage: false, threshold: None };
        let summary = run_suite(&dry, &suite, &request);
        if let Some(finding) = summary.findings.first() {
            return Some(finding.message.to_string());
        }
        summary.cases.iter().find_map(|it| match &it.ending {
            CaseOutcome::Failed(unmet) => {
                Some(unmet.iter().map(|it| in_words(&it.mismatch)).collect::<Vec<_>>().join("; "))
            }
            CaseOutcome::Passed | CaseOutcome::Skipped(_) => None,
        })
    }
}

/// The paths of the machine on which a session was recorded. A case has its own.
struct MachinePaths<'a> {
    project: &'a Path,
    home: &'a str,
}

impl MachinePaths<'_> {
    /// Replaces the paths in a text.
    fn in_text(&self, text: &str) -> String {
        let project = self.project.to_str().unwrap_or_default().trim_end_matches('/');
        replace_path(&replace_path(text, project, PROJECT), self.home.trim_end_matches('/'), HOME)
    }

    fn in_map(&self, map: &Map<String, Value>) -> Map<String, Value> {
        map.iter().map(|(key, value)| (key.clone(), self.in_value(value))).collect()
    }

    fn in_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => mask(&self.in_text(text)).0.into_owned().into(),
            Value::Array(items) => items.iter().map(|it| self.in_value(it)).collect(),
            Value::Object(map) => Value::Object(self.in_map(map)),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }
}

/// Replaces a path where no longer name continues it: `/home/ann/shop`, but not `/home/ann/shop2`.
fn replace_path(text: &str, from: &str, to: &str) -> String {
    if from.len() < 2 {
        return text.to_owned();
    }
    let (mut replaced, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once(from) {
        replaced.push_str(before);
        let continues = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        replaced.push_str(if after.starts_with(continues) { from } else { to });
        rest = after;
    }
    replaced + rest
}

/// Returns the first line of a name, at most as long as a line of a report.
fn shortened(name: &str) -> String {
    let line = name.lines().next().unwrap_or_default();
    line.chars().take(limits::CASE_DRAFT_CHARS_MAX).collect()
}

fn in_words(it: &Mismatch) -> String {
    format!("{} is `{}` in the case, not `{}`", it.what, it.got, it.wanted)
}

/// The files of a case before they are written.
struct CaseFiles {
    path: PathBuf,
    case: String,
    /// Path and text of the transcript.
    transcript: Option<(PathBuf, String)>,
}

impl CaseFiles {
    fn write(&self, world: &dyn World) -> Result<(), RecordError> {
        let transcript = self.transcript.as_ref().map(|(path, text)| (path, text));
        for (path, text) in transcript.into_iter().chain([(&self.path, &self.case)]) {
            let failed = |source| RecordError::NotWritten { path: path.clone(), source };
            let folder = path.parent().unwrap_or(path);
            world.create_folder(folder).map_err(failed)?;
            world.write(path, text.as_bytes()).map_err(failed)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paths_of_a_machine_are_replaced_where_they_end() {
        let machine = MachinePaths { project: Path::new("/home/ada/shop/"), home: "/home/ada" };
        for (text, expected) in [
            ("rm -r /home/ada/shop", "rm -r /work"),
            ("/home/ada/shop/src/a.rs:/home/ada/.ssh", "/work/src/a.rs:/home/user/.ssh"),
            ("/home/ada/shop2 /home/adam", "/home/user/shop2 /home/adam"),
            ("", ""),
        ] {
            assert_eq!(machine.in_text(text), expected, "{text}");
        }
        let root = MachinePaths { project: Path::new("/"), home: "" };
        assert_eq!(root.in_text("/etc/hosts"), "/etc/hosts");
    }
}
