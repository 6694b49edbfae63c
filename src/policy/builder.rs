//! The state in which entries are built: the names that expressions can use, and the findings so far.
//!
//! Contains: types of expressions and templates, missing keys, unknown names, lists of entries.
//! Does not contain: the meaning of any file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::layers::LayerEntry;
use super::{Choice, Expression, SourceLocation, builtin};
use policyd_fact_table::check::{self, TypedExpression};
use policyd_fact_table::clock_facts::{self, ZoneRules};
use policyd_fact_table::pattern::check_regex;
use policyd_fact_table::project_facts::{self, ProjectQuestion};
use policyd_fact_table::source::{self, EvaluationPhase, FactSource, FactSources};
use policyd_fact_table::template::{self, TemplatePart};
use policyd_fact_table::types::{Evidence, Names, Type};
use policyd_fact_table::work_facts;
use policyd_facts::event::EventKind;
use policyd_state::memory::MemorySettings;
use policyd_yaml::memo::Memo;
use policyd_yaml::node::Node;
use policyd_yaml::{Diagnostic, Span, Suggestion, suggest};

/// Help for a guard that reads `program` without `commands`.
const OF_PROGRAMS: &str = "name programs under `commands`: the guard looks at each of them";
/// Help for `action` and `program` outside guards.
const OF_GUARDS: &str = "it is available only in guards.yaml and other files of guards";
/// Help for a fact that is not yet known when its expression is evaluated.
const KNOWN_LATER: &str = "session types come first, then preferences and probes, then checks, \
     then messages; each sees what came before it";

/// What the expressions of a pack read.
#[derive(Debug, Default)]
pub(super) struct ReadFacts {
    /// Sources of the facts.
    pub(super) sources: FactSources,
    /// Rules of the time zones.
    pub(super) zones: ZoneRules,
    /// Files of the project that expressions of checks and messages name.
    pub(super) questions: BTreeSet<ProjectQuestion>,
    /// Tools of which the newest call is kept.
    pub(super) kept_calls: BTreeSet<String>,
}

/// State of the construction of a policy.
pub struct Builder<'a> {
    pub(super) names: Arc<Names>,
    /// Kept results, and the hash of `names`, if results of expressions that see these names are kept.
    pub(super) kept: Option<(&'a Memo, u64)>,
    pub(super) reads: ReadFacts,
    /// Facts that expressions read since the set was last cleared.
    pub(super) uses: BTreeSet<String>,
    /// Whether only entries of packs above the built-in one are built.
    pub(super) own_only: bool,
    /// When the expressions that are typed now are evaluated. `None` for decision tables, which have facts of their own.
    pub(super) phase: Option<EvaluationPhase>,
    /// What rules remember.
    pub(super) memory: BTreeMap<String, MemorySettings>,
    /// Events of the guard whose expressions are typed now.
    pub(super) guarded_events: Vec<EventKind>,
    /// Events at which guards may ask a probe, by its id.
    pub(super) probe_events: BTreeMap<String, Vec<EventKind>>,
    /// Deadline of all probes of one event, if a pack above the built-in one sets it.
    pub(super) deadline: Option<Duration>,
    pub(super) diagnostics: &'a mut Vec<Diagnostic>,
}

impl<'a> Builder<'a> {
    /// Returns a builder of checks. It knows no names yet.
    pub(super) fn new(own_only: bool, diagnostics: &'a mut Vec<Diagnostic>) -> Self {
        Self {
            names: Arc::default(),
            kept: None,
            own_only,
            uses: BTreeSet::new(),
            reads: ReadFacts::default(),
            memory: BTreeMap::new(),
            guarded_events: Vec::new(),
            probe_events: BTreeMap::new(),
            phase: Some(EvaluationPhase::Check),
            deadline: None,
            diagnostics,
        }
    }
}

impl Builder<'_> {
    pub(super) fn unknown(&mut self, code: &'static str, what: &str, node: &Node, known: &[&str]) {
        let name = node.text().unwrap_or_default();
        let found = Diagnostic::error(code, node.span.clone(), format!("unknown {what} `{name}`"));
        self.diagnostics.push(found.with_meant(name, known));
    }

    /// Reports the regular expressions of a list that do not compile. A test proves those of the built-in pack.
    pub(super) fn report_invalid_regexes(&mut self, list: &Node) {
        let regexes = list.items().unwrap_or_default().iter();
        for node in regexes.filter(|node| !builtin::wrote(&node.span.source)) {
            if let Some(Err(why)) = node.text().map(check_regex) {
                let message = format!("the regex is not valid: {why}");
                self.diagnostics.push(Diagnostic::error("bad-regex", node.span.clone(), message));
            }
        }
    }

    /// Runs `work` while expressions see the names of a record, if there is one.
    pub(super) fn speaking_of<T>(
        &mut self,
        names: Option<&'static Arc<Names>>,
        work: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let Some(names) = names else { return work(self) };
        self.speaking(Arc::clone(names), work)
    }

    /// Runs `work` while expressions see other names.
    pub(super) fn speaking<T>(
        &mut self,
        names: Arc<Names>,
        work: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let facts = std::mem::replace(&mut self.names, names);
        let phase = self.phase.take();
        let kept = self.kept.take();
        let made = work(self);
        (self.names, self.kept) = (facts, kept);
        self.phase = phase;
        made
    }

    /// Types an expression. Expressions of the built-in pack are checked by tests only.
    fn typed(&self, text: &str, node: &Node) -> Arc<TypedExpression> {
        let is_builtin = builtin::wrote(&node.span.source);
        let check = || match is_builtin {
            true => check::check_again(text, &*self.names),
            false => check::check(text, &*self.names),
        };
        let function = if is_builtin { "check_again" } else { "check" };
        match self.kept {
            Some((memo, names)) => memo.of_text(function, names, text, check),
            None => Arc::new(check()),
        }
    }

    /// Types an expression, and reports what is invalid. `None` if the node is absent or is not a scalar.
    pub(super) fn expression(&mut self, node: Option<&Node>, wanted: Type) -> Option<Expression> {
        let node = node?;
        let text = node.text()?;
        let typed = self.typed(text, node);
        self.uses.extend(typed.uses.iter().cloned());
        if !text.trim().is_empty() {
            // That it is empty is said where its shape is checked.
            self.report_typed(&typed, node, 0);
        }
        if typed.result != wanted && typed.result != Type::Any {
            let message = format!("this must be a {wanted}, and is a {}", typed.result);
            let found = Diagnostic::error("type-mismatch", node.sub_span(0..text.len()), message);
            self.diagnostics.push(match (wanted, typed.result) {
                (Type::Bool, Type::Int) => {
                    let written = format!("{} > 0", text.trim_end());
                    found.suggest(Suggestion::write(0..text.len(), written).within(node, 0))
                }
                (_, Type::Text) => {
                    found.with_help("compare it, as in `tools.last_name == \"Bash\"`")
                }
                _ => found,
            });
        }
        Some(Expression {
            text: text.to_owned(),
            place: place(&node.sub_span(0..text.len())).into(),
            uses: typed.uses.iter().cloned().collect::<Vec<_>>().into(),
            words_only: typed.evidence == Evidence::Words,
            compiled: typed.tree.clone().into(),
        })
    }

    pub(super) fn report_typed(&mut self, typed: &TypedExpression, node: &Node, offset: usize) {
        for used in &typed.uses {
            let Some(source) = source::source(used) else { continue };
            self.reads.sources = self.reads.sources.with(source);
            self.report_unasked_probe(used, node);
            // `probes.pr.ok` reads `probes.pr`, too: one finding is enough.
            let is_within = |other: &String| {
                used.strip_prefix(other.as_str()).is_some_and(|rest| rest.starts_with('.'))
            };
            if self.is_unknown(source) && !typed.uses.iter().any(is_within) {
                self.report_unknown(used, source, node);
            }
        }
        if let Some(tree) = &typed.tree {
            self.reads.zones.extend(clock_facts::zones(tree));
            self.reads.kept_calls.extend(work_facts::kept_calls(tree));
            // What guards ask is read for the guards that a call concerns.
            if !self.is_of_guard() {
                self.reads.questions.extend(project_facts::questions(tree));
            }
        }
        for finding in &typed.findings {
            self.diagnostics.push(finding.within(node, offset));
        }
    }

    /// Returns whether the expressions that are typed now are those of a guard.
    fn is_of_guard(&self) -> bool {
        matches!(self.phase, Some(EvaluationPhase::Guard | EvaluationPhase::ProgramGuard))
    }

    /// Returns whether facts of a source are unknown to the expressions that are typed now.
    fn is_unknown(&self, source: FactSource) -> bool {
        self.phase.is_some_and(|it| !it.knows(source))
    }

    /// Reports a probe that is not asked at an event of the guard whose expressions are typed now.
    fn report_unasked_probe(&mut self, used: &str, node: &Node) {
        let Some(id) = used.strip_prefix("probes.").filter(|it| !it.contains('.')) else { return };
        let Some(asked_at) = self.probe_events.get(id) else { return };
        let unasked = self.guarded_events.iter().find(|it| !asked_at.contains(it));
        let Some(event) = unasked.map(|it| it.name()) else { return };
        let text = node.text().unwrap_or_default();
        let start = text.find(used).unwrap_or(0);
        let span = node.sub_span(start..start.saturating_add(used.len()));
        let message = format!("guards do not ask `{id}` at `{event}`");
        let found = Diagnostic::error("unavailable-fact", span, message);
        let help = format!("add `at: [{event}]` and a `cache` to the probe");
        self.diagnostics.push(found.with_help(help));
    }

    /// Reports a fact that is unknown when its expression is evaluated.
    fn report_unknown(&mut self, used: &str, source: FactSource, node: &Node) {
        let text = node.text().unwrap_or_default();
        let start = text.find(used).unwrap_or(0);
        let span = node.sub_span(start..start.saturating_add(used.len()));
        let global = used.split('.').next().unwrap_or_default();
        let is_whole = source::source(global).is_some_and(|it| self.is_unknown(it));
        let what = if is_whole { global } else { used };
        let found =
            Diagnostic::error("unavailable-fact", span, format!("`{what}` is not known here"));
        let help = match self.is_of_guard() {
            true if EvaluationPhase::ProgramGuard.knows(source) => OF_PROGRAMS,
            false
                if EvaluationPhase::ProgramGuard.knows(source)
                    && !EvaluationPhase::Check.knows(source) =>
            {
                OF_GUARDS
            }
            true | false => KNOWN_LATER,
        };
        self.diagnostics.push(found.with_help(help));
    }

    /// Returns a template after its placeholders are typed.
    pub(super) fn template(&mut self, node: &Node) -> Option<String> {
        let text = node.text()?;
        match template::pieces(text) {
            Err(at) => {
                let span = node.sub_span(at..at.saturating_add(2));
                let message = "this `${` has no closing brace".to_owned();
                let found = Diagnostic::error("expression-syntax", span, message);
                self.diagnostics
                    .push(found.with_help("write `$${` for the two characters as text"));
            }
            Ok(pieces) => {
                for piece in pieces {
                    if let TemplatePart::Hole { expression, start } = piece {
                        self.hole(expression, start, node);
                    }
                }
            }
        }
        Some(text.to_owned())
    }

    pub(super) fn hole(&mut self, expression: &str, start: usize, node: &Node) {
        let typed = self.typed(expression, node);
        self.uses.extend(typed.uses.iter().cloned());
        self.report_typed(&typed, node, start);
        if !typed.result.is_shown() && typed.result != Type::Any {
            let span = node.sub_span(start..start.saturating_add(expression.len()));
            let message = format!("a {} cannot be shown as text", typed.result);
            let found = Diagnostic::error("type-mismatch", span, message);
            self.diagnostics.push(found.with_help("name one of its fields"));
        }
    }

    /// Returns the texts of a template or of a list of texts with conditions.
    pub(super) fn choices(&mut self, node: Option<&Node>) -> Vec<Choice> {
        let Some(node) = node else { return Vec::new() };
        match node.items() {
            None => {
                self.template(node).into_iter().map(|text| Choice { when: None, text }).collect()
            }
            Some(items) => items.iter().filter_map(|it| self.choice(it)).collect(),
        }
    }

    pub(super) fn choice(&mut self, node: &Node) -> Option<Choice> {
        if node.entries().is_none() {
            return self.template(node).map(|text| Choice { when: None, text });
        }
        let when = self.expression(node.get("when"), Type::Bool);
        let text = self.template(node.get("text")?)?;
        Some(Choice { when, text })
    }

    /// Complains about a key that is not there, unless a merge key may have brought it or another key
    /// is a slip of it: those are findings of their own.
    pub(super) fn missing(&mut self, entry: &LayerEntry, key: &str, why: &str) {
        self.missing_one_of(entry, [key], why);
    }

    /// Reports the first of some keys like [`missing`](Self::missing), if one of the keys is enough.
    pub(super) fn missing_one_of<const N: usize>(
        &mut self,
        entry: &LayerEntry,
        keys: [&str; N],
        why: &str,
    ) {
        let written = entry.layers.first().and_then(|it| it.entries()).unwrap_or_default();
        let stands_for_one = |it: &Node| match it.text() {
            Some(name) => !keys.contains(&name) && suggest::nearest(name, &keys).is_some(),
            None => true,
        };
        let Some(key) = keys.first().filter(|_| !written.iter().any(|(it, _)| stands_for_one(it)))
        else {
            return;
        };
        if let Some(span) = entry.span() {
            let message = format!("`{}` has no `{key}`", entry.id);
            let found = Diagnostic::error("missing-key", span.clone(), message);
            self.diagnostics.push(found.with_help(why));
        }
    }
}

/// Returns the text of a node. Empty if the node is absent or is not a scalar.
pub(super) fn text(node: Option<&Node>) -> String {
    node.and_then(Node::text).unwrap_or_default().to_owned()
}

/// Returns the texts of a list.
pub(super) fn texts(node: Option<&Node>) -> Vec<String> {
    let items = node.and_then(Node::items).unwrap_or_default();
    items.iter().filter_map(Node::text).map(str::to_owned).collect()
}

/// Returns the location of a span.
pub(super) fn place(span: &Span) -> SourceLocation {
    let (line, column) = span.line_column();
    let small = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    SourceLocation { file: span.source.name.clone(), line: small(line), column: small(column) }
}
