//! Replay: recorded sessions, judged again at each of their stops and tool calls. Pure: lines come in, counts come
//! out, and nothing is remembered beyond them.
//! Lives here: one recording after the other; `turn` finds the stops, `judge` judges them, `tally`
//! counts, `compare` holds two packs against each other.
//!
//! Considerations are asked at stops, guards at tool calls: before the record of the call is taken in.

mod calls;
pub mod compare;
pub mod judge;
pub mod tally;
pub mod turn;

use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::facts::Facts;
use crate::facts::call::CallEnvironment;
use crate::facts::event::{Event, EventKind};
use crate::facts::lines::Piece;
use crate::facts::record::{Entry, Record};
use crate::id::SessionId;
use crate::policy::Policy;
use crate::state::SessionState;
use crate::time::Timestamp;
use calls::Call;
use judge::{Judge, Stop};
use tally::{Example, Tally, increase};
use turn::{Ending, Turn};

/// The pack that judges, and the one it is compared with.
pub struct Panel<'p> {
    own: Judge<'p>,
    other: Option<Judge<'p>>,
}

impl<'p> Panel<'p> {
    /// Makes the packs ready to judge; what they prepare is of one thread.
    #[must_use]
    pub fn new(policy: &'p Policy, other: Option<&'p Policy>) -> Self {
        Self { own: Judge::new(policy), other: other.map(Judge::new) }
    }

    /// Whether a guard of either pack looks at this event.
    fn guards(&self, kind: EventKind) -> bool {
        self.own.guards(kind) || self.other.as_ref().is_some_and(|it| it.guards(kind))
    }

    /// Whether both packs notice the same in a transcript, so that one fold serves both.
    fn shares_facts(&self) -> bool {
        let own = self.own.policy().lens_key;
        self.other.as_ref().is_none_or(|it| it.policy().lens_key == own)
    }
}

/// The event that guards of tool calls are asked at.
const TOOL_CALL: EventKind = EventKind::PreToolUse;

/// What is known of a transcript before it is read.
#[derive(Debug, Clone)]
pub struct About<'a> {
    /// The transcript, as it is named in examples.
    pub path: &'a Path,
    /// The session, where no record names one.
    pub session: String,
    /// The subagent, where no record names one.
    pub agent: Option<String>,
    /// Type of the subagent, where known; empty for the client's internal agents.
    pub agent_type: Option<String>,
    /// The user's home on this machine.
    pub home: String,
    /// Folders of this machine for temporary files, which tool calls may change.
    pub temporary: &'a [String],
    /// Temporary folders of this machine besides the usual ones.
    pub scratch: &'a [PathBuf],
    /// Stops before this time are left out.
    pub oldest: Timestamp,
    /// Time of the file, for records that name none.
    pub modified: Timestamp,
}

/// One transcript that is being judged again.
pub struct Recording<'r, 'p> {
    panel: &'r mut Panel<'p>,
    facts: Facts,
    /// The facts of the other pack, where its lens is another one.
    other_facts: Option<Facts>,
    watch: Watch<'r>,
    tally: &'r mut Tally,
}

impl<'r, 'p> Recording<'r, 'p> {
    /// At the beginning of a transcript.
    #[must_use]
    pub fn new(panel: &'r mut Panel<'p>, about: About<'r>, tally: &'r mut Tally) -> Self {
        let other_facts = (!panel.shares_facts()).then(Facts::default);
        Self { panel, facts: Facts::default(), other_facts, watch: Watch::new(about), tally }
    }

    /// Goes on by one line.
    pub fn take(&mut self, piece: Piece<'_>) {
        let Self { panel, facts, other_facts, watch, tally } = self;
        increase(&mut watch.line);
        let Piece::Line(line) = piece else {
            facts.skip_line();
            other_facts.iter_mut().for_each(Facts::skip_line);
            return;
        };
        let lens = panel.own.lens();
        facts.absorb_seen(line, &lens, |facts, record| {
            let both = (facts, other_facts.as_mut());
            watch.see((line, record), both, (&mut **panel, &mut **tally));
        });
        if let (Some(facts), Some(other)) = (other_facts, &panel.other) {
            facts.absorb(line, &other.lens());
        }
    }

    /// Ends with the file.
    pub fn finish(mut self) {
        let Self { panel, facts, other_facts, watch, tally } = &mut self;
        let ending = watch.turn.finish();
        watch.end(ending, (facts, other_facts.as_mut()), (&mut **panel, &mut **tally));
        let reading = &mut tally.reading;
        reading.broken_lines = reading.broken_lines.saturating_add(facts.lines_skipped);
        increase(match watch.begun {
            true => &mut reading.transcripts,
            false => &mut reading.no_transcripts,
        });
    }
}

/// What of a transcript is no fact, and is needed to tell what a hook would have been told.
struct Watch<'a> {
    about: About<'a>,
    turn: Turn,
    /// Whether anything happened so far.
    begun: bool,
    /// Lines so far.
    line: u64,
    /// Line of the last thing the agent did.
    done_line: u64,
    /// Whether that was copied from another session.
    copied: bool,
    time: String,
    session: String,
    agent: String,
    /// Folder of the first record.
    project: String,
    /// Where calls happen in a folder and a project.
    stands: Option<([String; 2], Rc<CallEnvironment>)>,
    headless: bool,
    prompt_id: String,
    /// Whether a hook sent the agent back since the last prompt.
    sent_back: bool,
    states: Option<(SessionState, SessionState)>,
}

/// The facts of the pack that judges, and of the other one where they differ.
type BothFacts<'f> = (&'f mut Facts, Option<&'f mut Facts>);

impl<'a> Watch<'a> {
    fn new(about: About<'a>) -> Self {
        Self {
            about,
            turn: Turn::default(),
            begun: false,
            line: 0,
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

    /// Looks at a record before it is taken in.
    fn see(
        &mut self,
        (line, record): (&[u8], &Record<'_>),
        mut facts: BothFacts<'_>,
        (panel, tally): (&mut Panel<'_>, &mut Tally),
    ) {
        if !self.begun && !record.entries.is_empty() {
            // The first thing that happens says whose transcript it is.
            self.begun = true;
            facts.0.sidechain = record.sidechain;
            facts.1.iter_mut().for_each(|it| it.sidechain = record.sidechain);
        }
        if record.sidechain != facts.0.sidechain {
            return;
        }
        let ending = self.turn.take(record);
        let (own, other) = facts;
        let mut other = other;
        self.end(ending, (&mut *own, other.as_deref_mut()), (&mut *panel, &mut *tally));
        self.note(record, tally);
        if !record.origin.copied && panel.guards(TOOL_CALL) {
            for call in calls::calls(line, record, own) {
                self.guard(call, (&mut *own, other.as_deref_mut()), (&mut *panel, &mut *tally));
            }
        }
    }

    /// Counts, and judges, the end of a turn.
    fn end(
        &mut self,
        ending: Option<Ending>,
        facts: BothFacts<'_>,
        (panel, tally): (&mut Panel<'_>, &mut Tally),
    ) {
        match ending {
            None => {}
            Some(_) if self.now() < self.about.oldest => {}
            Some(Ending::CutOff) => increase(&mut tally.cut_off),
            Some(Ending::Stop { .. }) if self.copied => increase(&mut tally.copied),
            Some(Ending::Stop { blocked }) => {
                tally.blocked_then = tally.blocked_then.saturating_add(u64::from(blocked));
                self.judge(self.now(), facts, (panel, tally));
            }
        }
    }

    fn judge(
        &mut self,
        now: Timestamp,
        (facts, other_facts): BothFacts<'_>,
        (panel, tally): (&mut Panel<'_>, &mut Tally),
    ) {
        let kind = Some(if facts.sidechain { EventKind::SubagentStop } else { EventKind::Stop });
        let Some(event) = kind.map(|it| self.event(it, facts)) else { return };
        increase(&mut tally.stops);
        if facts.sidechain {
            increase(&mut tally.subagent_stops);
        }
        let fresh = || SessionState::new(event.session_id.clone());
        let (state, other_state) = self.states.get_or_insert_with(|| (fresh(), fresh()));
        let stop = Stop {
            event,
            interactive: !self.headless,
            project: Path::new(&self.project),
            scratch: self.about.scratch,
            now,
        };
        let judged = panel.own.judge(&stop, facts, state);
        let other = panel.other.as_mut().map(|it| {
            let facts = other_facts.unwrap_or(facts);
            it.judge(&stop, facts, other_state)
        });
        let (path, line) = (self.about.path, self.done_line);
        tally.add(&judged, other.as_ref(), |details| Example {
            file: path.display().to_string(),
            line,
            details,
        });
    }

    /// Judges a tool call as a hook before it would have been asked.
    fn guard(
        &mut self,
        call: Call,
        (facts, other_facts): BothFacts<'_>,
        (panel, tally): (&mut Panel<'_>, &mut Tally),
    ) {
        let now = self.now();
        let kind = Some(TOOL_CALL).filter(|_| now >= self.about.oldest);
        let Some(kind) = kind else { return };
        let around = self.around(&facts.folder);
        let event =
            Event { tool_name: Some(call.tool), tool_input: call.input, ..self.event(kind, facts) };
        let call = Stop {
            event,
            interactive: !self.headless,
            project: Path::new(&self.project),
            scratch: self.about.scratch,
            now,
        };
        let guarded = panel.own.guard(&call, &around, facts);
        let other = panel.other.as_mut().map(|it| {
            let facts = other_facts.unwrap_or(facts);
            it.guard(&call, &around, facts)
        });
        let (path, line) = (self.about.path, self.line);
        tally.add_call(&guarded, other.as_ref(), |details| Example {
            file: path.display().to_string(),
            line,
            details,
        });
    }

    /// When the record was written that is looked at.
    fn now(&self) -> Timestamp {
        Timestamp::parse(&self.time).unwrap_or(self.about.modified)
    }

    /// Where a call happens; calls in one folder share it.
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

    /// What a hook would have been told now.
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
            ..Event::of(kind, SessionId::sanitise(&session))
        }
    }

    /// Remembers what the next stop will be told.
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
                Entry::Said(_) | Entry::Call { .. } | Entry::Result(_) | Entry::Done { .. } => {
                    self.done_line = self.line;
                    self.copied = origin.copied;
                    let is_call = matches!(entry, Entry::Call { .. }) && !origin.copied;
                    if is_call && self.now() >= self.about.oldest {
                        increase(&mut tally.tool_calls);
                    }
                }
                Entry::Prompt { id, queued: false, .. } | Entry::Injected { id } => {
                    self.sent_back = false;
                    if !id.is_empty() {
                        id.as_ref().clone_into(&mut self.prompt_id);
                    }
                }
                Entry::Stopped { blocked } => self.sent_back |= *blocked,
                Entry::Prompt { queued: true, .. }
                | Entry::CutOff
                | Entry::Asked(_)
                | Entry::Usage(_)
                | Entry::Stopping { .. }
                | Entry::Compacted => {}
            }
        }
    }
}
