//! `guards.yaml` and the built-in sets of guards: rules on events other than stops. A guard decides about an event
//! before it happens, or reports something at the event.

use std::borrow::Cow;
use std::collections::BTreeSet;

use policyd_yaml::rows::{RowNames, Rows};
use serde::{Deserialize, Serialize};

use super::approval::ApprovalLevel;
use super::builder::{Builder, place};
use super::field_value::{FieldValue, Word, words};
use super::fields::{CHOICES, DESCRIPTION, ENABLED, FORMERLY, ID, OVERRIDE, TEXTS};
use super::layers::{GUARD_FILES, LayerEntry, Layers, wanted};
use super::probes::AskedNames;
use super::record::{Conversion, EXPIRES, TEMPLATES, record};
use super::{Choice, Expression, Mode, SourceLocation};
use policyd_expr::lazy::LazyRegex;
use policyd_expr::paths::Fact;
use policyd_fact_table::ast::{Expr, ExprKind};
use policyd_fact_table::paths;
use policyd_fact_table::source::{EvaluationPhase, FactSource, FactSources};
use policyd_facts::call::CallEffects;
use policyd_facts::call::ProgramDatabase;
use policyd_facts::event::{EVENT_NAMES, EventKind};
use policyd_facts::pattern::{CommandPattern, NameFilter};
use policyd_harness::{Capability, HARNESSES, plain};
use policyd_state::memory::MemoryScope;
use policyd_yaml::Diagnostic;
use policyd_yaml::deferred::Lazy;
use policyd_yaml::node::Node;
use policyd_yaml::shape::Kind;

/// All guards of a pack, and facts about programs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Guards {
    /// The guards, in the order of the files. Their names are in [`Guard::names`](RowNames::names).
    pub rules: Rows<Guard>,
    /// Ids of the guards that the pack disables. Their cases are skipped.
    pub disabled: Lazy<Vec<String>>,
    /// Facts about programs.
    pub knowledge: Lazy<ProgramDatabase>,
}

/// A guard. The fields outside `body` decide whether the guard applies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Guard {
    /// Id, unique in all files of guards.
    pub id: String,
    /// Earlier ids.
    pub formerly: Vec<String>,
    /// Set of the guard: the name of its file without extension.
    pub set: String,
    /// Events at which the guard is evaluated.
    pub on: Vec<EventKind>,
    /// Globs over tools. Empty: all tools.
    pub tools: Vec<String>,
    /// Whether the guard is evaluated for each program of a command line.
    pub of_programs: bool,
    /// Command patterns of these programs.
    pub commands: Lazy<Rows<CommandPattern>>,
    /// Patterns of programs for which the guard is not evaluated.
    pub except_commands: Lazy<Rows<CommandPattern>>,
    /// Names of the programs in `commands`.
    pub names: NameFilter,
    /// Mode of the guard.
    pub mode: Mode,
    /// Whether the guard is only logged, because policyd observes.
    #[serde(skip)]
    pub observed: bool,
    /// Time from which the guard is not evaluated, in milliseconds since 1970.
    pub expires_millis: Option<i64>,
    /// Sources of the facts that its expressions use.
    pub sources: FactSources,
    /// Probes and preferences that its expressions read.
    pub asks: AskedNames,
    /// The guard passes if a call has none of these effects. `None`: it can fire without any.
    pub effects: Option<CallEffects>,
    /// Texts in lower case. The guard passes if the command line contains none of them. Empty: it can fire without.
    pub line_texts: Vec<String>,
    /// The files whose commands the guard looks at, if a call runs a file.
    pub in_scripts: GuardedScripts,
    /// The guard applies only if the user approves calls up to this level.
    pub level: ApprovalLevel,
    /// Whether the programs that the guard approves load code of the project.
    pub runs_code: bool,
    /// Whether the guard replaces secrets, so that it does not apply to a result without secrets.
    pub masks: bool,
    /// Conditions, effect, and texts.
    pub body: Lazy<GuardBody>,
}

/// What is behind the event in the name of guards without programs. No program has this name.
const NO_PROGRAMS: &str = "/";

/// What is behind the event in the names of guards that need one of these effects: `/0` for the first kind.
fn effect_names(effects: CallEffects) -> impl Iterator<Item = String> {
    effects.numbers().map(|it| format!("{NO_PROGRAMS}{it}"))
}

/// Returns the effects without which a condition is never true: those of one operand of `&&`, or of all operands of
/// `||`. `None` if it can be true without any.
fn needed_effects(condition: &Expr) -> Option<CallEffects> {
    if let ExprKind::And(items) = &condition.kind {
        items.iter().find_map(needed_effects)
    } else if let ExprKind::Or(items) = &condition.kind {
        let of_each: Option<Vec<_>> = items.iter().map(needed_effects).collect();
        Some(of_each?.into_iter().fold(CallEffects::default(), CallEffects::union))
    } else {
        condition.fact().and_then(paths::effects)
    }
}

/// Returns texts in lower case, of which the command line must contain one for a condition to be true. Empty if it can
/// be true without. Only the first operand of `&&` counts, because another one can be unknown before it is false.
fn needed_texts(condition: &Expr) -> Vec<String> {
    if let ExprKind::And(items) = &condition.kind {
        return items.first().map(needed_texts).unwrap_or_default();
    }
    if let ExprKind::Or(items) = &condition.kind {
        let of_each: Vec<_> = items.iter().map(needed_texts).collect();
        let is_open = of_each.iter().any(Vec::is_empty);
        return if is_open { Vec::new() } else { of_each.concat() };
    }
    let pattern = condition.fact().and_then(searched_pattern).map(LazyRegex::new);
    let literals = pattern.iter().flat_map(LazyRegex::literals);
    literals.map(|it| it.to_lowercase()).collect()
}

/// Returns the regex with which a fact searches the command line.
fn searched_pattern(fact: Fact<'_>) -> Option<&str> {
    let step = fact.last().filter(|_| fact.is("action.command.matches"))?;
    match step.arguments {
        [Expr { kind: ExprKind::Text(pattern), .. }] => Some(pattern.as_str()),
        _ => None,
    }
}

/// A guard is found by each of its events, and by each with one of its programs: `pre_tool_use git`.
impl RowNames for Guard {
    fn names(&self) -> Vec<Cow<'_, str>> {
        let programs: BTreeSet<&str> = match self.of_programs {
            true => self.commands.iter().map(CommandPattern::program).collect(),
            false => BTreeSet::new(),
        };
        let others: Vec<String> = match (self.of_programs, self.effects) {
            (true, _) => Vec::new(),
            (false, None) => vec![NO_PROGRAMS.to_owned()],
            (false, Some(effects)) => effect_names(effects).collect(),
        };
        let names = |event: &EventKind| {
            let behind = programs.iter().copied().chain(others.iter().map(String::as_str));
            let with_programs = behind.map(|it| format!("{} {it}", event.name()).into());
            std::iter::once(event.name().into()).chain(with_programs).collect::<Vec<_>>()
        };
        self.on.iter().flat_map(names).collect()
    }
}

impl Guards {
    /// Returns the guards of an event.
    pub fn at(&self, event: EventKind) -> impl Iterator<Item = &Guard> {
        self.rules.named(event.name()).filter(move |it| it.on.contains(&event))
    }

    /// Returns the guards of an event that a call with these programs and effects can match. Those that need another
    /// program or effect are not decoded: each takes 2,500 instructions (callgrind, x86-64, 2026-11-27).
    pub fn of_programs<'n>(
        &self,
        event: EventKind,
        programs: impl Iterator<Item = &'n str>,
        effects: CallEffects,
    ) -> impl Iterator<Item = &Guard> {
        let programs: BTreeSet<&str> = programs.chain([NO_PROGRAMS]).collect();
        let programs = programs.into_iter().map(str::to_owned);
        let labels = effects.labels().map(str::to_owned).chain(effect_names(effects));
        let names: Vec<String> =
            programs.chain(labels).map(|it| format!("{} {it}", event.name())).collect();
        let found = self.rules.named_any(names.iter().map(String::as_str));
        found.filter(move |it| it.on.contains(&event)).collect::<Vec<_>>().into_iter()
    }
}

/// Conditions, effect, and texts of a guard.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GuardBody {
    /// Condition under which the guard fires. `None`: always.
    pub when: Option<Expression>,
    /// Exception: the guard does not fire if this condition is true.
    pub unless: Option<Expression>,
    /// Effect of the guard.
    pub verb: GuardAction,
    /// Effect of the guard instead, if no user is present.
    pub unattended: Option<GuardAction>,
    /// Texts of the message, of which the first whose condition is true is said.
    pub message: Vec<Choice>,
    /// Fields of the tool's input that are replaced; templates.
    pub updated_input: Vec<(String, String)>,
    /// Texts that entries of the memory remember if it fires; templates.
    pub remember: Vec<(String, String)>,
    /// Entries of the memory that forget everything if it fires.
    pub forget: Vec<String>,
    /// Effect if the guard cannot be evaluated.
    pub on_error: OnUnknown,
    /// Location of the guard.
    pub place: SourceLocation,
}

/// Effect of a guard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum GuardAction {
    /// The call runs without a question.
    Allow,
    /// The client decides later.
    Defer,
    /// The client asks the user.
    Ask,
    /// The call is blocked.
    Block,
    /// The client ends the session.
    Halt,
    /// The agent receives the message.
    Context,
    /// Replaces the secrets in the result of a tool before the agent reads it.
    Mask,
    /// The user receives the message.
    #[default]
    Warn,
    /// Nothing is said: the guard only changes the memory.
    Remember,
}

/// `deny` is an alias of `block`, the word of clients.
impl Word for GuardAction {
    const NAMES: &'static [&'static str] =
        &["allow", "deny", "ask", "defer", "block", "context", "mask", "warn", "halt"];
    const VALUES: &'static [Self] = &[
        Self::Allow,
        Self::Block,
        Self::Ask,
        Self::Defer,
        Self::Block,
        Self::Context,
        Self::Mask,
        Self::Warn,
        Self::Halt,
    ];
}

impl GuardAction {
    /// Returns the word of the effect; `block`, not its alias.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Defer => "defer",
            Self::Ask => "ask",
            Self::Block => "block",
            Self::Halt => "halt",
            Self::Context => "context",
            Self::Mask => "mask",
            Self::Warn => "warn",
            Self::Remember => "remember",
        }
    }
}

/// The files whose commands a guard looks at, if a call runs a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum GuardedScripts {
    /// None.
    None,
    /// Files that git does not have in this form: the agent may have written them.
    #[default]
    Changed,
    /// All files, also those that the user committed.
    All,
    /// Only files that the user committed, and not the call itself.
    Committed,
    /// Files that git does not have in this form, and not the call itself.
    OnlyChanged,
}

impl Word for GuardedScripts {
    const NAMES: &'static [&'static str] = &["none", "changed", "all", "committed", "only_changed"];
    const VALUES: &'static [Self] =
        &[Self::None, Self::Changed, Self::All, Self::Committed, Self::OnlyChanged];
}

/// Effect of a guard that cannot be evaluated; the weakest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum OnUnknown {
    /// No effect.
    Allow,
    /// The user receives a warning.
    #[default]
    Warn,
    /// The client asks the user.
    Ask,
    /// The call is blocked.
    Block,
}

/// `deny` is an alias of `block`, as for [`GuardAction`].
impl Word for OnUnknown {
    const NAMES: &'static [&'static str] = &["allow", "warn", "ask", "deny", "block"];
    const VALUES: &'static [Self] = &[Self::Allow, Self::Warn, Self::Ask, Self::Block, Self::Block];
}

/// Sets of guards of the built-in pack. A manifest can disable each.
pub const SETS: [&str; 7] = [
    "destructive-commands",
    "protected-paths",
    "secrets",
    "git-discipline",
    "network-exfiltration",
    "approve-read",
    "approve-work",
];

/// Files that contain guards.
pub const FILES: [&str; 8] = GUARD_FILES;

/// Returns the set of a file: its name without directory and extension.
#[must_use]
pub fn set_of(file: &str) -> &str {
    let base = file.rsplit(['/', '\\']).next().unwrap_or(file);
    base.strip_suffix(".yaml").unwrap_or(base)
}

/// Keys of a guard that need no further checks.
#[derive(Debug, Default)]
pub(super) struct GuardKeys {
    description: String,
    tools: Vec<String>,
    commands: Vec<CommandPattern>,
    except_commands: Vec<CommandPattern>,
    when: Option<Expression>,
    unless: Option<Expression>,
    verb: Option<GuardAction>,
    unattended: Option<GuardAction>,
    message: Vec<Choice>,
    updated_input: Vec<(String, String)>,
    remember: Vec<(String, String)>,
    forget: Vec<String>,
    mode: Mode,
    on_error: OnUnknown,
    in_scripts: GuardedScripts,
    level: ApprovalLevel,
    runs_code: bool,
    expires_millis: Option<i64>,
}

const UNATTENDED: Conversion<Option<GuardAction>> =
    Conversion::reading(|node, _| GuardAction::from_node(node).map(Some));

const LEVEL: Conversion<ApprovalLevel> =
    Conversion::reading(|node, _| ApprovalLevel::from_node(node));

record! {
    /// An entry of a file of guards.
    pub(super) const GUARD: RecordType<GuardKeys> = {
        use ID;
        use FORMERLY;
        use DESCRIPTION => description;
        on: TEXTS, "Its events; `pre_tool_use` by default.";
        tools: TEXTS => tools, "Tools it applies to; `*` matches any characters. Default: all.";
        commands: TEXTS => commands,
            "Programs it looks at, as in `vocabulary.yaml`: `rm`, `git push`. `@deletes`, `@moves`, and `@writes` are all programs \
             that do so to a file, `@queries` all that run statements of a database, and `@packages` all that a runner such as `npx` can get from a registry. Its expressions are asked for each such program of a command line, which they see as `program`.";
        except_commands: TEXTS => except_commands,
            "Programs of `commands` that it does not look at; cheaper than `unless`.";
        when: Kind::Expression => when, "Holds where it fires; always, where absent.";
        unless: Kind::Expression => unless, "Where this holds, it does not fire.";
        decision: words::<GuardAction>() => verb,
            "What it does; `deny` is `block`. `mask` replaces the secrets in the result of a \
             tool before the agent reads it; a result without secrets does not concern such a \
             guard.";
        unattended: Kind::Choice(&["block", "deny"]) => unattended by UNATTENDED,
            "What it does instead, if no user is present who could answer: for guards that ask.";
        message: CHOICES => message,
            "What it says: what the call does, and what to do instead. Of several texts it says the first whose `when` \
             holds; the last one has no `when`. Where it is unknown whether the guard fires, the first sentence becomes a \
             question.";
        updated_input: Kind::Map(&Kind::Template) => updated_input by TEMPLATES,
            "Fields of the tool's input that are put in place of its own.";
        remember: Kind::Map(&Kind::Template) => remember by TEMPLATES,
            "Texts that entries of `memory.yaml` remember if it fires, once per call. A guard that only remembers has no \
             `decision`.";
        forget: TEXTS => forget, "Entries of `memory.yaml` that forget everything if it fires.";
        mode: words::<Mode>() => mode, "How far it is in force.";
        on_error: words::<OnUnknown>() => on_error,
            "Effect if it is unknown whether it fires; `warn` by default.";
        in_scripts: words::<GuardedScripts>() => in_scripts,
            "If a call runs a file: which files it looks into. `changed`, the default, is a file that git does not \
             have in this form; `all` also looks into committed files; `committed` looks into these alone, and \
             `only_changed` into the other ones, both not at the call. What is unknown in a file passes.";
        level: Kind::Choice(&["read", "work"]) => level by LEVEL,
            "A guard that allows at `permission_request`: the level of `approvals` in the user's `config.yaml` from which \
             on it applies. Without this key, it always applies.";
        runs_code: Kind::Bool => runs_code,
            "Of a guard with `level`: its programs load code of the project. Such a call is approved only if no guard would stop \
             what the changed files of code do.";
        expires: Kind::Date => expires_millis by EXPIRES, "From this day on it is not judged.";
        reason: Kind::Text, "Why it is an exception.";
        use ENABLED;
        use OVERRIDE;
    }
}

/// Returns the capability that the client needs at an event.
const fn ability(verb: GuardAction) -> Option<Capability> {
    Some(match verb {
        GuardAction::Allow => Capability::Allow,
        GuardAction::Defer => Capability::Defer,
        GuardAction::Ask => Capability::Ask,
        GuardAction::Block => Capability::Block,
        GuardAction::Halt => Capability::Halt,
        GuardAction::Context => Capability::Context,
        GuardAction::Mask => Capability::Output,
        GuardAction::Warn => Capability::Notice,
        GuardAction::Remember => return None,
    })
}

/// Whether a client supports a capability at an event. The plain protocol supports all, so it does not count.
fn takes(kind: EventKind, ability: Option<Capability>) -> bool {
    let mut clients = HARNESSES.iter().filter(|it| it.name != plain::HARNESS.name);
    ability.is_none_or(|ability| clients.any(|it| it.can(kind, ability)))
}

impl Builder<'_> {
    /// Builds the guards, and lists those that the pack disables alone or with their set.
    pub(super) fn guards(&mut self, layers: &Layers) -> (Vec<Guard>, Vec<String>) {
        let is_disabled = |set: &str| {
            let manifests = layers.top("policyd.yaml").iter();
            let mut said = manifests.filter_map(|file| file.get("guard_sets")?.get(set));
            said.next().and_then(Node::bool) == Some(false)
        };
        let phase = self.phase.replace(EvaluationPhase::ProgramGuard);
        let (mut rules, mut disabled) = (Vec::new(), Vec::new());
        for entry in wanted(layers.list("guards.yaml"), self.own_only) {
            let Some(guard) = self.guard(entry) else { continue };
            if entry.is_used() && !is_disabled(&guard.set) {
                rules.push(guard);
            } else {
                disabled.push(guard.id);
            }
        }
        self.phase = phase;
        (rules, disabled)
    }

    fn guard(&mut self, entry: &LayerEntry) -> Option<Guard> {
        let on = self.guarded_events(entry);
        self.uses.clear();
        self.guarded_events.clone_from(&on);
        if entry.get("commands").and_then(Node::items).is_none_or(<[Node]>::is_empty) {
            self.phase = Some(EvaluationPhase::Guard);
        }
        let keys = GUARD.read(&entry.map(), self);
        self.phase = Some(EvaluationPhase::ProgramGuard);
        self.guarded_events.clear();
        let uses = std::mem::take(&mut self.uses);
        self.report_unknown_memory(entry);
        self.report_unknown_effects(entry);
        let verb = self.verb(entry, &keys);
        self.report_unsupported(entry, verb, &on);
        let tree = keys.when.as_ref().and_then(|condition| Expr::parse(&condition.text));
        let effects = tree.as_ref().and_then(|it| needed_effects(it));
        let line_texts = tree.as_ref().map(|it| needed_texts(it)).unwrap_or_default();
        let described = || Choice { when: None, text: keys.description.trim().to_owned() };
        let says_nothing = keys.message.iter().all(|it| it.text.trim().is_empty());
        let message = if says_nothing { vec![described()] } else { keys.message };
        let body = GuardBody {
            when: keys.when,
            unless: keys.unless,
            verb: verb?,
            unattended: keys.unattended,
            message,
            updated_input: keys.updated_input,
            remember: keys.remember,
            forget: keys.forget,
            on_error: keys.on_error,
            place: entry.span().map(place).unwrap_or_default(),
        };
        let source = entry.layers.last().map(|it| it.span.source.name.as_str()).unwrap_or_default();
        Some(Guard {
            id: entry.id.clone(),
            formerly: entry.formerly.clone(),
            set: set_of(source).to_owned(),
            on,
            tools: keys.tools,
            of_programs: !keys.commands.is_empty(),
            names: keys.commands.iter().collect(),
            commands: keys.commands.into(),
            except_commands: keys.except_commands.into(),
            mode: keys.mode,
            observed: false,
            expires_millis: keys.expires_millis,
            sources: FactSources::of_uses(&uses).union(self.memory_sources(&uses, &body)),
            asks: AskedNames::of_uses(uses.iter().map(String::as_str)),
            effects,
            line_texts,
            in_scripts: keys.in_scripts,
            level: keys.level,
            runs_code: keys.runs_code,
            masks: body.verb == GuardAction::Mask,
            body: body.into(),
        })
    }

    /// Reports effects in `commands` that programs cannot have. `except_commands` lists programs only.
    fn report_unknown_effects(&mut self, entry: &LayerEntry) {
        let known = CallEffects::OF_PROGRAMS.map(|it| it.0);
        for (key, known) in [("commands", known.as_slice()), ("except_commands", &[])] {
            let nodes = entry.get(key).map(Node::one_or_items).unwrap_or_default();
            for node in nodes {
                let name = node.text().unwrap_or_default();
                if name.starts_with('@') && !known.contains(&name) {
                    self.unknown("unknown-name", "effect", node, known);
                }
            }
        }
    }

    /// Reports entries of the memory that a guard changes and that no pack has.
    fn report_unknown_memory(&mut self, entry: &LayerEntry) {
        let remembered = entry.get("remember").and_then(Node::entries).unwrap_or_default();
        let forgotten = entry.get("forget").and_then(Node::items).unwrap_or_default();
        let known: Vec<String> = self.names.memory.iter().cloned().collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        for node in remembered.iter().map(|it| &it.0).chain(forgotten) {
            if !known.contains(&node.text().unwrap_or_default()) && !self.names.incomplete {
                self.unknown("unknown-name", "entry of the memory", node, &known);
            }
        }
    }

    /// Returns what must be read to know which memory a guard reads or changes: that of an episode begins with a prompt.
    fn memory_sources(&self, uses: &BTreeSet<String>, body: &GuardBody) -> FactSources {
        let read = uses.iter().filter_map(|it| it.strip_prefix("memory."));
        let changed = body.remember.iter().map(|it| it.0.as_str());
        let mut ids = read.chain(changed).chain(body.forget.iter().map(String::as_str));
        let is_of_episode = |id: &str| {
            let id = id.split('.').next().unwrap_or_default();
            self.memory.get(id).is_some_and(|it| it.scope == MemoryScope::Episode)
        };
        match ids.any(is_of_episode) {
            true => FactSources::of(&[FactSource::Transcript]),
            false => FactSources::default(),
        }
    }

    /// Returns what a guard does. A guard that changes the input of a tool allows the call.
    fn verb(&mut self, entry: &LayerEntry, keys: &GuardKeys) -> Option<GuardAction> {
        if entry.get("decision").is_some() {
            return keys.verb;
        }
        if entry.get("updated_input").is_some() {
            return Some(GuardAction::Allow);
        }
        if entry.get("remember").is_some() || entry.get("forget").is_some() {
            return Some(GuardAction::Remember);
        }
        self.missing(entry, "decision", "say what the guard does: `deny`, `ask`, `warn`");
        None
    }

    /// Reports a decision or a changed input that no client supports at an event of the guard.
    fn report_unsupported(
        &mut self,
        entry: &LayerEntry,
        verb: Option<GuardAction>,
        on: &[EventKind],
    ) {
        for &event in on {
            let is_supported = verb.is_none_or(|verb| takes(event, ability(verb)));
            if let Some(node) = entry.get("decision").filter(|_| !is_supported) {
                self.not_taken(event, node.text().unwrap_or_default(), node);
            }
            let changes_input = takes(event, Some(Capability::Input));
            if let Some(node) = entry.get("updated_input").filter(|_| !changes_input) {
                self.not_taken(event, "updated_input", node);
            }
        }
    }

    fn not_taken(&mut self, event: EventKind, what: &str, node: &Node) {
        let message = format!("no client supports `{what}` at `{}`", event.name());
        let found = Diagnostic::error("event-cannot-block", node.span.clone(), message);
        let words = GuardAction::NAMES.iter().zip(GuardAction::VALUES);
        let can: Vec<&str> = words
            .filter(|(_, verb)| takes(event, ability(**verb)))
            .map(|(word, _)| *word)
            .collect();
        let help = match can.as_slice() {
            [] => "nothing can be said there; name another event".to_owned(),
            can => format!("what can be said there: {}", can.join(", ")),
        };
        self.diagnostics.push(found.with_help(help));
    }

    fn guarded_events(&mut self, entry: &LayerEntry) -> Vec<EventKind> {
        let Some(node) = entry.get("on") else { return vec![EventKind::PreToolUse] };
        let mut events = Vec::new();
        for item in node.items().unwrap_or_default() {
            match item.text().and_then(EventKind::find) {
                Some(kind) if kind.is_stop() => {
                    let message = format!("`{}` is judged by considerations", kind.name());
                    let found = Diagnostic::error("event-cannot-block", item.span.clone(), message);
                    let help = "write it in considerations.yaml: there the block limiter \
                                releases the agent";
                    self.diagnostics.push(found.with_help(help));
                }
                Some(kind) => events.push(kind),
                None => self.unknown("unknown-name", "event", item, EVENT_NAMES),
            }
        }
        if node.items().is_some_and(<[Node]>::is_empty) {
            let message = format!("`{}` is judged at no event", entry.id);
            let found = Diagnostic::error("event-cannot-block", node.span.clone(), message);
            self.diagnostics.push(found.with_help("leave `on` out, or write `enabled: false`"));
        }
        events
    }
}

impl GuardBody {
    /// Returns the texts of the message, without their conditions.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.message.iter().map(|it| it.text.trim())
    }

    /// Returns the conditions with their keys.
    pub fn conditions(&self) -> impl Iterator<Item = (&'static str, &Expression)> {
        [("when", &self.when), ("unless", &self.unless)]
            .into_iter()
            .filter_map(|(key, it)| Some((key, it.as_ref()?)))
    }
}
