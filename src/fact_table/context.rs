//! The context of one evaluation: every value an expression can see, gathered before it runs.
//! Lives here: values and the handles (`Object`) under which Rhai sees them. `handle` reads their members in the table.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use rhai::Dynamic;
use serde_json::Value;

use super::FactError;
use super::pattern::TextPatterns;
use super::prose::Prose;
use super::rationalization_matcher::RationalizationMatcher;
use super::snapshots::{
    BreakersSnapshot, CallFacts, ContextUsage, CostSnapshot, DiskFacts, MatchedProgram,
    MemorySnapshot, ProjectView, QueueSnapshot, ReadText, SignalSnapshot,
};
use super::time_zones::ZoneRules;
use super::types::Subject;
use policyd_facts::call::ResolvedPath;
use policyd_facts::compiled::CompiledMatchers;
use policyd_facts::event::Event;
use policyd_facts::{Facts, KindFacts, LatestCall, ShellCommand};
use policyd_state::context::Overrides;
use policyd_yaml::time::Timestamp;

/// One event with the facts of its session. It is built once per evaluation of a pack, and does not change.
#[derive(Debug)]
pub struct Context {
    /// What just happened.
    pub event: Event,
    /// What the transcript says.
    pub facts: Facts,
    /// How commands are recognized.
    pub lens: Rc<CompiledMatchers>,
    /// Why the transcript could not be read, if it could not.
    pub transcript_problem: Option<String>,
    /// The agent's last text: from the payload, else from the transcript.
    pub last_message: String,
    /// Whether a human watches (false for headless runs).
    pub interactive: bool,
    /// Whether a supervised run started the session, and another turn follows.
    pub supervised: bool,
    /// Whether this happened before and is judged again: what was not asked then is not known.
    pub recorded: bool,
    /// The project's folder.
    pub project: PathBuf,
    /// What the disk shows of the project. `None` if the rules do not read it.
    pub project_view: Option<ProjectView>,
    /// Shared branches, such as `main`.
    pub main_branches: Vec<String>,
    /// The forge that the project's remote is on, empty where none of the known ones is.
    pub forge: String,
    /// Host of the project's remote, in small letters, empty without one.
    pub remote_host: String,
    /// Named text patterns of the pack.
    pub patterns: Rc<TextPatterns>,
    /// What the pack's table of excuses looks for, once a text may hold one.
    pub sought: Rc<OnceCell<RationalizationMatcher>>,
    /// What the environment says of the context's window.
    pub overrides: Overrides,
    /// The wall clock.
    pub now: Timestamp,
    /// Rules of the time zones that expressions name.
    pub zones: ZoneRules,
    /// What was said, prepared when it is first looked at.
    pub spoken: ConversationProse,
    /// Places of the edited files of each kind that was asked for.
    pub files_by_kind: RefCell<BTreeMap<String, Rc<[usize]>>>,
}

/// What the agent and the humans said, as prose.
#[derive(Debug, Default)]
pub struct ConversationProse {
    messages: ProseCache,
    prompts: ProseCache,
}

impl ConversationProse {
    /// For the next context of the same pack: what is said there again is not cut again.
    #[must_use]
    pub fn again(self) -> Self {
        Self { messages: self.messages.again(), prompts: self.prompts.again() }
    }
}

/// Texts as prose, cut when they are first looked at.
#[derive(Debug, Default)]
struct ProseCache {
    now: OnceCell<Vec<Prose>>,
    /// Of the context before, as far as it was looked at there.
    earlier: RefCell<Vec<Prose>>,
}

impl ProseCache {
    fn of<'t>(&self, texts: impl Iterator<Item = &'t str>) -> &[Prose] {
        self.now.get_or_init(|| {
            let mut earlier = self.earlier.take();
            let prose = |text: &str| match earlier.iter().position(|it| it.text() == text) {
                Some(at) => earlier.swap_remove(at),
                None => Prose::new(text),
            };
            texts.map(prose).collect()
        })
    }

    fn again(self) -> Self {
        let earlier = self.now.into_inner().map_or(self.earlier, RefCell::new);
        Self { now: OnceCell::new(), earlier }
    }
}

impl Context {
    /// What is wrong with looking at something that is not in a recording.
    pub fn miss(&self, what: &str) -> FactError {
        FactError::NotRecorded(format!("a recording does not tell {what}"))
    }

    /// The agent's last texts, the one of the payload at the end.
    pub fn messages(&self) -> &[Prose] {
        let earlier = self.facts.messages.last.iter().map(|it| it.text.as_str());
        self.spoken.messages.of(earlier.chain([self.last_message.as_str()]))
    }

    /// The prompts by humans that are kept, oldest first.
    pub fn prompts(&self) -> &[Prose] {
        let prompts = &self.facts.prompts;
        self.spoken.prompts.of(prompts.first.iter().chain(&prompts.last).map(|it| it.text.as_str()))
    }
}

/// Everything that expressions can read at one step of an evaluation. A step that finds more changes the view of the
/// next step ([`policyd_expr::Evaluator::change`]).
#[derive(Debug, Clone)]
pub struct FactView {
    /// The event with the facts of its session.
    pub context: Rc<Context>,
    /// What the stores of the project contain.
    pub stores: Rc<StoreSnapshots>,
    /// What the disk shows of the files of the project that checks name. At a tool call, `call` has it.
    pub disk: Rc<DiskFacts>,
    /// How full the context window is, if a rule reads it.
    pub usage: Option<Rc<ContextUsage>>,
    /// Type of the session, once classified.
    pub session_type: String,
    /// Preferences and results of probes, once the plan is carried out.
    pub readings: Rc<Readings>,
    /// What the session remembers, read under the lock.
    pub memory: Memory,
    /// The consideration that is evaluated.
    pub rule: RuleFacts,
    /// Excuses in the agent's last text; `None` until a consideration asks for them.
    pub excuses: Option<Rc<Vec<Excuse>>>,
    /// What was decided; only messages see it.
    pub outcome: OutcomeFacts,
    /// The tool call that is about to happen; only guards see it.
    pub call: Option<Rc<CallFacts>>,
    /// The program of the call that a guard recognized.
    pub program: Option<MatchedProgram>,
}

impl FactView {
    /// The view before the first step: the event and its session, and nothing else.
    pub fn new(context: Rc<Context>) -> Self {
        Self {
            context,
            stores: Rc::default(),
            disk: Rc::default(),
            usage: None,
            session_type: String::new(),
            readings: Rc::default(),
            memory: Memory::default(),
            rule: RuleFacts::default(),
            excuses: None,
            outcome: OutcomeFacts::default(),
            call: None,
            program: None,
        }
    }
}

/// What the stores of a project contain. A store that no rule reads, or that cannot be read, is `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StoreSnapshots {
    /// The circuit breakers.
    pub breakers: Option<BreakersSnapshot>,
    /// Tasks that wait, and escalations.
    pub waiting: Option<QueueSnapshot>,
    /// Signals that wait.
    pub signals: Option<SignalSnapshot>,
    /// What was spent today.
    pub costs: Option<CostSnapshot>,
    /// The memory of the pack.
    pub memory: Option<MemorySnapshot>,
}

/// Results of what a plan asks for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Readings {
    /// Whether a preference was found, by id.
    pub preferences: BTreeMap<String, bool>,
    /// Results of probes, by id.
    pub probes: BTreeMap<String, ProbeResult>,
}

/// An excuse that was found in the agent's last text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Excuse {
    /// Name of the entry of `rationalizations.yaml`.
    pub name: String,
    /// The family it belongs to.
    pub family: String,
    /// The sentence.
    pub quote: String,
    /// Why it is wrong.
    pub wrong: String,
    /// What is to be done instead.
    pub action: String,
    /// Whether what happened speaks against it.
    pub proven: bool,
}

/// The consideration that is being judged, as its checker sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleFacts {
    /// Id of the check.
    pub id: String,
    /// Significant words of its question.
    pub keywords: Vec<String>,
}

/// What the session remembers, as expressions see it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// Blocks in this episode.
    pub blocks: u32,
    /// Blocks in the whole session.
    pub total_blocks: u64,
    /// Stops that moved the state.
    pub turns: u64,
}

/// What was decided, as messages see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutcomeFacts {
    /// Blockers that are not satisfied.
    pub failed: i64,
    /// Warnings.
    pub warned: i64,
    /// Number of this block in its episode.
    pub block: i64,
    /// Number of blocks after which the agent is released.
    pub max_blocks: i64,
    /// Blocks that remain.
    pub remaining: i64,
    /// Blocks without a tool call that remain.
    pub idle_remaining: i64,
    /// The agent's last message, quoted, or empty.
    pub explanation: String,
    /// Why the agent was released, or empty.
    pub release: String,
    /// Ids of the unsatisfied blockers.
    pub failed_ids: Vec<String>,
    /// The same with what is wrong with each.
    pub failed_details: Vec<String>,
    /// Whether every blocker was satisfied.
    pub workflow_compliant: bool,
    /// Share of satisfied checks, 0 to 100.
    pub quality_score: i64,
}

/// What a probe answered.
#[derive(Debug, Clone, PartialEq)]
pub enum ProbeResult {
    /// It ran and its output was understood.
    Answer {
        /// Exit code.
        code: i32,
        /// Output as JSON, or as a JSON string where the probe parses text.
        value: Value,
    },
    /// It could not answer; the text says why and names the cure where one is known.
    Failed(String),
}

/// A handle under which Rhai sees a part of the view; cloning it copies a pointer.
#[derive(Debug, Clone)]
pub struct Object {
    /// The view it belongs to.
    pub view: Rc<FactView>,
    /// The part.
    pub part: ContextPart,
}

impl Object {
    /// The handle of another part of the same view.
    pub fn part(&self, part: ContextPart) -> Dynamic {
        Dynamic::from(Self { view: Rc::clone(&self.view), part })
    }

    /// The event with the facts of its session.
    pub fn context(&self) -> &Context {
        &self.view.context
    }
}

/// A part of the context.
#[derive(Debug, Clone)]
pub enum ContextPart {
    /// `event`
    Event,
    /// `session`
    Session,
    /// `transcript`
    Transcript,
    /// `tools`
    Tools,
    /// `agents`
    Agents,
    /// One tool call. `None` if there was none.
    ToolCall(Option<Rc<LatestCall>>),
    /// `commands`
    Commands,
    /// One command. `None` if no such command ran: its members are then empty, not errors.
    Command(Option<Rc<ShellCommand>>),
    /// All commands of one kind; `None` where none ran.
    CommandKind(Option<Rc<KindFacts>>),
    /// `files`: all of them (`None`), or some by their places, rising.
    Files(Option<Rc<[usize]>>),
    /// Content findings of one pattern, by their places among all.
    Findings(Rc<[usize]>),
    /// `todos`
    Todos,
    /// `tokens`
    Tokens,
    /// `patterns`
    Patterns,
    /// `prefs`
    Preferences,
    /// `probes`
    Probes,
    /// One probe by id.
    Probe(Rc<str>),
    /// `breakers`
    Breakers,
    /// `dead_letter`
    DeadLetters,
    /// `escalations`
    Escalations,
    /// One breaker by its name.
    Breaker(Rc<str>),
    /// `signals`
    Signals,
    /// `context`
    Context,
    /// `costs`
    Costs,
    /// `memory`
    Memory,
    /// One entry of the memory of the pack.
    MemoryEntry(Rc<str>),
    /// `state`
    State,
    /// `now`, by the seconds that its zone is ahead of UTC.
    Now(i32),
    /// `rule`
    Rule,
    /// `outcome`
    Outcome,
    /// `action`
    Call,
    /// `program`
    Program,
    /// Some of the places that the call touches.
    Places(Rc<[ResolvedPath]>),
    /// Texts of files.
    Texts(Rc<[ReadText]>),
    /// `rationalizations`
    Rationalizations,
    /// `project`
    Project,
    /// A JSON file of the project.
    JsonFile(Rc<Value>),
}

impl ContextPart {
    /// The subject whose members the part has.
    pub(super) const fn owner(&self) -> Subject {
        match self {
            Self::Event => Subject::Event,
            Self::Session => Subject::Session,
            Self::Transcript => Subject::Transcript,
            Self::Tools => Subject::Tools,
            Self::Agents => Subject::Agents,
            Self::ToolCall(_) => Subject::ToolCall,
            Self::Commands => Subject::Commands,
            Self::Command(_) => Subject::Command,
            Self::CommandKind(_) => Subject::CommandKind,
            Self::Files(_) => Subject::Files,
            Self::Findings(_) => Subject::Findings,
            Self::Todos => Subject::Todos,
            Self::Tokens => Subject::Tokens,
            Self::Patterns => Subject::Patterns,
            Self::Preferences => Subject::Preferences,
            Self::Probes => Subject::Probes,
            Self::Probe(_) => Subject::Probe,
            Self::Breakers => Subject::Breakers,
            Self::DeadLetters => Subject::DeadLetters,
            Self::Escalations => Subject::Escalations,
            Self::Signals => Subject::Signals,
            Self::Context => Subject::Context,
            Self::Breaker(_) => Subject::Breaker,
            Self::Costs => Subject::Costs,
            Self::Memory => Subject::Memory,
            Self::MemoryEntry(_) => Subject::MemoryEntry,
            Self::State => Subject::State,
            Self::Now(_) => Subject::Now,
            Self::Rule => Subject::Rule,
            Self::Outcome => Subject::Outcome,
            Self::Rationalizations => Subject::Rationalizations,
            Self::Call => Subject::Call,
            Self::Program => Subject::Invocation,
            Self::Places(_) => Subject::Places,
            Self::Texts(_) => Subject::FileTexts,
            Self::Project => Subject::Project,
            Self::JsonFile(_) => Subject::JsonFile,
        }
    }
}
