//! Turns the layers of the files of guards into meaning.

use super::{Builder, Entry, patterns, place, text, texts};
use crate::facts::event::{EVENT_NAMES, EventKind};
use crate::facts::pattern::CommandPattern;
use crate::harness::{Ability, HARNESSES, plain};
use crate::policy::guards::{Fallback, Guard, GuardBody, Verb, set_of};
use crate::policy::layers::{Layers, wanted};
use crate::policy::{Expression, Mode};
use crate::script::ast::Expr;
use crate::script::types::Type;
use crate::source::Diagnostic;
use crate::source::node::Node;
use crate::time::Timestamp;

/// Facts that come out of the transcript.
const FROM_TRANSCRIPT: [&str; 9] = [
    "transcript.",
    "tools.",
    "commands.",
    "files.",
    "todos.",
    "tokens.",
    "patterns.",
    "session.branch",
    "context.",
];

/// Facts that are told by where paths lead.
const AT_PATHS: [&str; 12] = [
    "action.reads",
    "action.writes",
    "action.deletes",
    "action.changes",
    "action.touches",
    "action.changed",
    "action.changes_transcript",
    "action.written",
    "program.targets",
    "program.read",
    "program.changed",
    "program.fed_from",
];

/// Questions about a call whose answer is no where it has no effects, see `Call::has_effects`.
const EFFECTS: [&str; 8] = [
    "action.reads(",
    "action.writes(",
    "action.deletes(",
    "action.changes(",
    "action.touches(",
    "action.changes_transcript",
    "action.sets(",
    "action.endless",
];

/// What a verb needs its event to take.
const fn ability(verb: Verb) -> Ability {
    match verb {
        Verb::Allow => Ability::Allow,
        Verb::Defer => Ability::Defer,
        Verb::Ask => Ability::Ask,
        Verb::Block => Ability::Block,
        Verb::Halt => Ability::Halt,
        Verb::Context => Ability::Context,
        Verb::Mask => Ability::Output,
        Verb::Warn => Ability::Notice,
    }
}

fn mode(entry: &Entry) -> Mode {
    match text(entry.get("mode")).as_str() {
        "warn" => Mode::Warn,
        "shadow" => Mode::Shadow,
        _ => Mode::Enforce,
    }
}

/// Whether a fact, by its path, is an effect of a call.
fn is_effect(fact: &str) -> bool {
    EFFECTS.iter().any(|it| fact.starts_with(it))
}

/// Whether some client can be told something at an event; the plain protocol takes whatever is said.
fn takes(kind: EventKind, ability: Ability) -> bool {
    let mut clients = HARNESSES.iter().filter(|it| it.name != plain::HARNESS.name);
    clients.any(|it| it.can(kind, ability))
}

impl Builder<'_> {
    /// What the files of guards mean; sets that the manifest switches off are left out.
    pub(super) fn guards(&mut self, layers: &Layers) -> Vec<Guard> {
        let off = |set: &str| {
            let mut said = layers.manifests.iter().filter_map(|it| it.get("guard_sets")?.get(set));
            said.next().and_then(Node::bool) == Some(false)
        };
        let unknown_here = std::mem::replace(&mut self.unknown_here, AT_A_GUARD);
        let rules = wanted(&layers.guards, self.own_only)
            .filter_map(|entry| {
                let guard = self.guard(entry)?;
                (entry.is_used() && !off(&guard.set)).then_some(guard)
            })
            .collect();
        self.unknown_here = unknown_here;
        rules
    }

    fn guard(&mut self, entry: &Entry) -> Option<Guard> {
        let on = self.guarded_events(entry);
        let decision = entry.get("decision");
        let changes = entry.get("updated_input");
        let verb = self.verb(entry);
        for &event in &on {
            let is_taken = |verb: Verb| takes(event, ability(verb));
            if let Some(node) = decision.filter(|_| !verb.is_none_or(is_taken)) {
                self.not_taken(event, node.text().unwrap_or_default(), node);
            }
            if let Some(node) = changes.filter(|_| !takes(event, Ability::Input)) {
                self.not_taken(event, "updated_input", node);
            }
        }
        self.uses.clear();
        let commands = patterns(entry.get("commands"));
        if commands.is_empty() {
            self.unknown_here = NO_PROGRAM;
        }
        let condition = |it: &mut Self, key: &str| match entry.get(key) {
            Some(node) => it.expression(Some(node), Type::Bool).map(Some),
            None => Some(None),
        };
        let made = condition(self, "when").zip(condition(self, "unless"));
        let message = entry.get("message").and_then(|it| self.template(it)).unwrap_or_default();
        let updated = changes.and_then(Node::entries).unwrap_or_default().iter();
        let updated_input = updated
            .filter_map(|(key, value)| Some((key.text()?.to_owned(), self.template(value)?)))
            .collect();
        self.unknown_here = AT_A_GUARD;
        // Whatever else is wrong with a guard was told by now.
        let ((when, unless), verb) = made.zip(verb)?;
        let uses = std::mem::take(&mut self.uses);
        let stored = |it: &String| FROM_STORES.iter().any(|fact| it.starts_with(fact));
        let at_paths = |it: &String| AT_PATHS.contains(&it.as_str());
        let told = |it: &String| FROM_TRANSCRIPT.iter().any(|fact| it.starts_with(fact));
        let source = entry.layers.last().map(|it| it.span.source.name.as_str()).unwrap_or_default();
        let tree = when.as_ref().and_then(|it| Expr::parse(&it.text));
        let needs_effects = tree.is_some_and(|it| it.needs(&is_effect).is_some());
        let message =
            if message.trim().is_empty() { text(entry.get("description")) } else { message };
        let body = GuardBody {
            when,
            unless,
            verb,
            message: message.trim().to_owned(),
            updated_input,
            on_error: Fallback::find(&text(entry.get("on_error"))).unwrap_or_default(),
            place: entry.span().map(place).unwrap_or_default(),
        };
        Some(Guard {
            id: entry.id.clone(),
            set: set_of(source).to_owned(),
            on,
            tools: texts(entry.get("tools")),
            of_programs: !commands.is_empty(),
            initials: commands.iter().map(CommandPattern::program).collect(),
            commands: commands.into(),
            mode: mode(entry),
            expires_millis: entry.get("expires").and_then(Node::date).map(Timestamp::millis),
            reads_transcript: uses.iter().any(told),
            reads_paths: uses.iter().any(at_paths),
            reads_tree: uses.iter().any(|it| it == "program.tree_clean"),
            reads_stores: uses.iter().any(stored),
            needs_effects,
            body: body.into(),
        })
    }

    /// What a guard does; one that gives a tool another input lets it run with that.
    fn verb(&mut self, entry: &Entry) -> Option<Verb> {
        match entry.get("decision") {
            Some(node) => node.text().and_then(Verb::find),
            None if entry.get("updated_input").is_some() => Some(Verb::Allow),
            None => {
                self.missing(entry, "decision", "say what the guard does: `deny`, `ask`, `warn`");
                None
            }
        }
    }

    fn not_taken(&mut self, event: EventKind, what: &str, node: &Node) {
        let message = format!("no client can be told `{what}` at `{}`", event.name());
        let found = Diagnostic::error("decision-not-taken", node.span.clone(), message);
        let can: Vec<&str> = Verb::NAMES
            .iter()
            .copied()
            .filter(|it| Verb::find(it).is_some_and(|it| takes(event, ability(it))))
            .collect();
        let help = match can.as_slice() {
            [] => "nothing can be said there; name another event".to_owned(),
            can => format!("what can be said there: {}", can.join(", ")),
        };
        self.diagnostics.push(found.with_help(help));
    }

    fn guarded_events(&mut self, entry: &Entry) -> Vec<EventKind> {
        let Some(node) = entry.get("on") else { return vec![EventKind::PreToolUse] };
        let mut events = Vec::new();
        for item in node.items().unwrap_or_default() {
            match item.text().and_then(EventKind::find) {
                Some(kind) if kind.is_stop() => {
                    let message = format!("`{}` is judged by considerations", kind.name());
                    let found = Diagnostic::error("decision-not-taken", item.span.clone(), message);
                    let help = "write it in considerations.yaml: there the loop guard sees to it that \
                                the agent is let go";
                    self.diagnostics.push(found.with_help(help));
                }
                Some(kind) => events.push(kind),
                None => self.unknown("unknown-event", "event", item, EVENT_NAMES),
            }
        }
        if node.items().is_some_and(<[Node]>::is_empty) {
            let message = format!("`{}` is judged at no event", entry.id);
            let found = Diagnostic::error("no-event", node.span.clone(), message);
            self.diagnostics.push(found.with_help("leave `on` out, or write `enabled: false`"));
        }
        events
    }
}

/// Nothing was asked or remembered where a guard is judged.
const AT_A_GUARD: &[&str] =
    &["session.type", "prefs", "probes", "state", "rule", "outcome", "rationalizations"];

/// The same for a guard that recognises no program.
const NO_PROGRAM: &[&str] =
    &["program", "session.type", "prefs", "probes", "state", "rule", "outcome", "rationalizations"];

/// Facts that the stores of the project hold.
const FROM_STORES: [&str; 4] = ["breakers", "dead_letter.", "escalations.", "signals."];

impl GuardBody {
    /// Its conditions with the keys they are written under.
    pub fn conditions(&self) -> impl Iterator<Item = (&'static str, &Expression)> {
        [("when", &self.when), ("unless", &self.unless)]
            .into_iter()
            .filter_map(|(key, it)| Some((key, it.as_ref()?)))
    }
}
