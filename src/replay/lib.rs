//! Replay: evaluates recorded sessions again at each stop and tool call. Lines are the input,
//! counts the output, and nothing is stored.
//!
//! Contains: the loop over one recording. Does not contain: the detection of stops (`turn`), their
//! evaluation (`evaluation`), the counts (`tally`), the comparison of two packs (`compare`).
//!
//! Checks are evaluated at stops, guards at tool calls, before the record of the call is ingested.
//!
//! ```
//! use policyd_policy::{builtin, load};
//! use policyd_replay::PolicyPair;
//!
//! let pack = builtin::pack();
//! let policy = load::load(&pack, &pack).policy.unwrap();
//! let _alone = PolicyPair::new(&policy, None); // without a second pack to compare with
//! ```

pub mod answers;
mod calls;
pub mod compare;
pub mod judge;
pub mod observed;
pub mod shown_turn;
pub mod tally;
pub mod turn;

use std::path::{Path, PathBuf};
use std::rc::Rc;

use calls::RecordedCall;
use judge::{Judge, RecordedEvent};
use observed::{ObservedDecision, ObservedEvent, Observer};
use policyd_base::id::SessionId;
use policyd_facts::Facts;
use policyd_facts::call::CallEnvironment;
pub use policyd_facts::call_subject::subject;
use policyd_facts::event::{Event, EventKind};
use policyd_facts::lines::LineChunk;
use policyd_facts::record::{Record, RecordEntry};
use policyd_policy::Policy;
use policyd_state::SessionState;
use policyd_yaml::time::Timestamp;
use tally::{Example, Tally, increase};
use turn::{Turn, TurnEnd};

/// The evaluated pack, and the pack that it is compared with.
pub struct PolicyPair<'p> {
    own: Judge<'p>,
    other: Option<Judge<'p>>,
}

impl<'p> PolicyPair<'p> {
    /// Creates the evaluators of the packs for one thread.
    #[must_use]
    pub fn new(policy: &'p Policy, other: Option<&'p Policy>) -> Self {
        Self { own: Judge::new(policy), other: other.map(Judge::new) }
    }

    /// Returns whether a guard of either pack applies to this kind of event.
    fn guards(&self, kind: EventKind) -> bool {
        self.own.guards(kind) || self.other.as_ref().is_some_and(|it| it.guards(kind))
    }

    /// Returns whether both packs have the same lens, so that one fold serves both.
    fn shares_facts(&self) -> bool {
        let own = self.own.policy().lens_key;
        self.other.as_ref().is_none_or(|it| it.policy().lens_key == own)
    }
}

/// The kind of event at which guards of tool calls are evaluated.
const TOOL_CALL: EventKind = EventKind::PreToolUse;

/// Data about a transcript from outside of its content.
#[derive(Debug, Clone)]
pub struct TranscriptInfo<'a> {
    /// Path, as displayed in examples.
    pub path: &'a Path,
    /// Session id, if no record contains one.
    pub session: String,
    /// Subagent id, if no record contains one.
    pub agent: Option<String>,
    /// Type of the subagent, if known. Empty for the client's internal agents.
    pub agent_type: Option<String>,
    /// Home directory of the user on this machine.
    pub home: String,
    /// Directories for temporary files on this machine, which tool calls can change.
    pub temporary: &'a [String],
    /// Additional directories of temporary files on this machine.
    pub scratch: &'a [PathBuf],
    /// Stops before this time are skipped.
    pub oldest: Timestamp,
    /// Modification time of the file, for records without a time.
    pub modified: Timestamp,
}

/// Replay of one transcript.
pub struct Recording<'r, 'p> {
    panel: &'r mut PolicyPair<'p>,
    facts: Facts,
    /// Facts for the other pack, if its lens differs.
    other_facts: Option<Facts>,
    context: TranscriptContext<'r>,
    tally: &'r mut Tally,
}

impl<'r, 'p> Recording<'r, 'p> {
    /// Starts at the beginning of a transcript.
    #[must_use]
    pub fn new(
        panel: &'r mut PolicyPair<'p>,
        about: TranscriptInfo<'r>,
        tally: &'r mut Tally,
    ) -> Self {
        let other_facts = (!panel.shares_facts()).then(Facts::default);
        Self {
            panel,
            facts: Facts::default(),
            other_facts,
            context: TranscriptContext::new(about),
            tally,
        }
    }

    /// Lets an observer receive each tool call and each evaluated stop.
    #[must_use]
    pub fn observed_by(mut self, observer: Observer<'r>) -> Self {
        self.context.observer = Some(observer);
        self
    }

    /// Processes one line.
    pub fn take(&mut self, piece: LineChunk<'_>) {
        let Self { panel, facts, other_facts, context, tally } = self;
        context.lines_before = context.line;
        increase(&mut context.line);
        let LineChunk::Line(line) = piece else {
            facts.skip_line();
            other_facts.iter_mut().for_each(Facts::skip_line);
            return;
        };
        let lens = panel.own.lens();
        facts.ingest_parsed(line, &lens, |facts, record| {
            let both = PackFacts { own: facts, other: other_facts.as_mut() };
            context.see(line, record, both, panel, tally);
        });
        if let (Some(facts), Some(other)) = (other_facts, &panel.other) {
            facts.ingest_record(line, &other.lens());
        }
    }

    /// Ends the transcript.
    pub fn finish(mut self) {
        let Self { panel, facts, other_facts, context, tally } = &mut self;
        let ending = context.turn.finish();
        context.lines_before = context.line;
        context.end(ending, PackFacts { own: facts, other: other_facts.as_mut() }, panel, tally);
        let reading = &mut tally.reading;
        reading.broken_lines = reading.broken_lines.saturating_add(facts.lines_skipped);
        increase(match context.begun {
            true => &mut reading.transcripts,
            false => &mut reading.no_transcripts,
        });
    }
}

/// State of a transcript beyond its facts, needed to rebuild the events that hooks received.
struct TranscriptContext<'a> {
    about: TranscriptInfo<'a>,
    turn: Turn,
    /// Whether any record was processed.
    begun: bool,
    /// Number of the current line.
    line: u64,
    /// Number of the lines that were ingested.
    lines_before: u64,
    /// Number of tool calls so far.
    calls: u64,
    observer: Option<Observer<'a>>,
    /// Line of the agent's last action.
    done_line: u64,
    /// Whether that line was copied from another session.
    copied: bool,
    time: String,
    session: String,
    agent: String,
    /// Directory of the first record.
    project: String,
    /// Environment of calls, for one pair of directory and project.
    stands: Option<([String; 2], Rc<CallEnvironment>)>,
    headless: bool,
    prompt_id: String,
    /// Whether a hook sent the agent back to work since the last prompt.
    sent_back: bool,
    states: Option<(SessionState, SessionState)>,
}

/// Facts for both packs.
struct PackFacts<'f> {
    own: &'f mut Facts,
    /// Facts for the other pack, if its lens differs.
    other: Option<&'f mut Facts>,
}

impl PackFacts<'_> {
    fn reborrow(&mut self) -> PackFacts<'_> {
        PackFacts { own: self.own, other: self.other.as_deref_mut() }
    }
}

impl<'a> TranscriptContext<'a> {
    fn new(about: TranscriptInfo<'a>) -> Self {
        Self {
            about,
            turn: Turn::default(),
            begun: false,
            line: 0,
            lines_before: 0,
            calls: 0,
            observer: None,
            done_line: 0,
            copied: false,
            time: String::new(),
            session: String::new(),
            agent: String::new(),
            project: String::new(),
            stands: None,
            headless: false,
            prompt_id: String::new(),
            sent_back: false,
            states: None,
        }
    }

    /// Processes a record before it is ingested.
    fn see(
        &mut self,
        line: &[u8],
        record: &Record<'_>,
        mut facts: PackFacts<'_>,
        panel: &mut PolicyPair<'_>,
        tally: &mut Tally,
    ) {
        if !self.begun && !record.entries.is_empty() {
            // The first entry identifies the agent of the transcript.
            self.begun = true;
            facts.own.sidechain = record.sidechain;
            facts.other.iter_mut().for_each(|it| it.sidechain = record.sidechain);
        }
        if record.sidechain != facts.own.sidechain {
            return;
        }
        let ending = self.turn.take(record);
        self.end(ending, facts.reborrow(), panel, tally);
        self.note(record, tally);
        if !record.origin.copied && (self.observer.is_some() || panel.guards(TOOL_CALL)) {
            for call in calls::calls(line, record, facts.own) {
                self.guard(call, facts.reborrow(), panel, tally);
            }
        }
    }

    /// Counts and evaluates the end of a turn.
    fn end(
        &mut self,
        ending: Option<TurnEnd>,
        facts: PackFacts<'_>,
        panel: &mut PolicyPair<'_>,
        tally: &mut Tally,
    ) {
        match ending {
            None => {}
            Some(_) if self.now() < self.about.oldest => {}
            Some(TurnEnd::CutOff) => increase(&mut tally.cut_off),
            Some(TurnEnd::Stop { .. }) if self.copied => increase(&mut tally.copied),
            Some(TurnEnd::Stop { blocked }) => {
                tally.blocked_then = tally.blocked_then.saturating_add(u64::from(blocked));
                self.judge(self.now(), facts, panel, tally);
            }
        }
    }

    fn judge(
        &mut self,
        now: Timestamp,
        PackFacts { own: facts, other: other_facts }: PackFacts<'_>,
        panel: &mut PolicyPair<'_>,
        tally: &mut Tally,
    ) {
        let kind = Some(if facts.sidechain { EventKind::SubagentStop } else { EventKind::Stop });
        let Some(event) = kind.map(|it| self.event(it, facts)) else { return };
        increase(&mut tally.stops);
        if facts.sidechain {
            increase(&mut tally.subagent_stops);
        }
        let fresh = || SessionState::new(event.session_id.clone());
        let (state, other_state) = self.states.get_or_insert_with(|| (fresh(), fresh()));
        let stop = RecordedEvent {
            event,
            interactive: !self.headless,
            project: Path::new(&self.project),
            scratch: self.about.scratch,
            now,
        };
        let judged = panel.own.judge(&stop, facts, state);
        let other = panel.other.as_mut().map(|pack| {
            let facts = other_facts.unwrap_or(facts);
            pack.judge(&stop, facts, other_state)
        });
        if let (Some(observer), Ok(outcome)) = (&mut self.observer, &judged) {
            observer(&ObservedEvent {
                event: &stop.event,
                call: "",
                number: self.calls,
                line: self.done_line,
                lines_before: self.lines_before,
                project: stop.project,
                now,
                result: ObservedDecision::Stop(outcome),
            });
        }
        let (path, line, session) = (self.about.path, self.done_line, &stop.event.session_id);
        tally.add(&judged, other.as_ref(), |details| Example {
            file: path.display().to_string(),
            line,
            at: now,
            session: session.to_string(),
            subject: String::new(),
            details,
            interrupts: false,
        });
    }

    /// Evaluates a tool call, as a hook before it would have done.
    fn guard(
        &mut self,
        call: RecordedCall,
        PackFacts { own: facts, other: other_facts }: PackFacts<'_>,
        panel: &mut PolicyPair<'_>,
        tally: &mut Tally,
    ) {
        increase(&mut self.calls);
        let now = self.now();
        let kind = Some(TOOL_CALL).filter(|_| now >= self.about.oldest);
        let Some(kind) = kind else { return };
        let (around, id) = (self.around(&facts.folder), call.id);
        let event =
            Event { tool_name: Some(call.tool), tool_input: call.input, ..self.event(kind, facts) };
        let call = RecordedEvent {
            event,
            interactive: !self.headless,
            project: Path::new(&self.project),
            scratch: self.about.scratch,
            now,
        };
        let (guarded, prompt) = panel.own.guard_and_approve(&call, &around, facts);
        if prompt.is_approved {
            increase(&mut tally.approvable);
        }
        let other = panel.other.as_mut().map(|pack| {
            let facts = other_facts.unwrap_or(facts);
            pack.guard(&call, &around, facts)
        });
        if let Some(observer) = &mut self.observer {
            observer(&ObservedEvent {
                event: &call.event,
                call: &id,
                number: self.calls,
                line: self.line,
                lines_before: self.lines_before,
                project: call.project,
                now,
                result: ObservedDecision::Call(&guarded),
            });
        }
        let (path, line, session) = (self.about.path, self.line, &call.event.session_id);
        tally.add_call(&guarded, other.as_ref(), |details| Example {
            file: path.display().to_string(),
            line,
            at: now,
            session: session.to_string(),
            subject: subject(
                call.event.tool_name.as_deref().unwrap_or_default(),
                &call.event.tool_input,
            ),
            details,
            interrupts: false,
        });
    }

    /// Returns the time of the current record.
    fn now(&self) -> Timestamp {
        Timestamp::parse(&self.time).unwrap_or(self.about.modified)
    }

    /// Returns the environment of a call. Calls in one directory share it.
    fn around(&mut self, folder: &str) -> Rc<CallEnvironment> {
        let at = Some(folder).filter(|it| !it.is_empty()).unwrap_or(&self.project);
        let folders = [at, &self.project];
        if let Some((_, around)) = self.stands.as_ref().filter(|(known, _)| *known == folders) {
            return Rc::clone(around);
        }
        let about = &self.about;
        let around = CallEnvironment::new(at, &self.project, &about.home, about.temporary)
            .with_transcript(&about.path.display().to_string());
        let around = Rc::new(around);
        self.stands = Some((folders.map(str::to_owned), Rc::clone(&around)));
        around
    }

    /// Rebuilds the event that a hook would have received now.
    fn event(&self, kind: EventKind, facts: &Facts) -> Event {
        let filled = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let session = filled(&self.session).unwrap_or_else(|| self.about.session.clone());
        let agent = filled(&self.agent).or_else(|| self.about.agent.clone());
        Event {
            agent_id: agent.filter(|_| facts.sidechain),
            agent_type: self.about.agent_type.clone().filter(|_| facts.sidechain),
            prompt_id: filled(&self.prompt_id),
            transcript: Some(self.about.path.to_path_buf()),
            subagent_transcript: facts.sidechain,
            folder: filled(&facts.folder).map(PathBuf::from),
            permission_mode: filled(&facts.permission_mode),
            stop_active: self.sent_back,
            ..Event::of(kind, SessionId::sanitize(&session))
        }
    }

    /// Updates the state for the next stop.
    fn note(&mut self, record: &Record<'_>, tally: &mut Tally) {
        let origin = &record.origin;
        let texts = [
            (&mut self.time, &origin.time),
            (&mut self.session, &origin.session),
            (&mut self.agent, &origin.agent),
        ];
        for (own, told) in texts {
            if !told.is_empty() && own.as_str() != told.as_ref() {
                told.as_ref().clone_into(own);
            }
        }
        if self.project.is_empty() {
            record.folder.as_ref().clone_into(&mut self.project);
        }
        if !origin.entrypoint.is_empty() {
            self.headless = origin.entrypoint == "sdk-cli";
        }
        for entry in &record.entries {
            match entry {
                RecordEntry::Said(_)
                | RecordEntry::Call { .. }
                | RecordEntry::Result(_)
                | RecordEntry::Done { .. } => {
                    self.done_line = self.line;
                    self.copied = origin.copied;
                    let is_call = matches!(entry, RecordEntry::Call { .. }) && !origin.copied;
                    if is_call && self.now() >= self.about.oldest {
                        increase(&mut tally.tool_calls);
                    }
                }
                RecordEntry::Prompt { id, queued: false, .. } | RecordEntry::Injected { id } => {
                    self.sent_back = false;
                    if !id.is_empty() {
                        id.as_ref().clone_into(&mut self.prompt_id);
                    }
                }
                RecordEntry::Stopped { feedback } => self.sent_back |= feedback.is_some(),
                RecordEntry::Prompt { queued: true, .. }
                | RecordEntry::CutOff
                | RecordEntry::Asked(_)
                | RecordEntry::Usage(_)
                | RecordEntry::Stopping { .. }
                | RecordEntry::Compacted => {}
            }
        }
    }
}
