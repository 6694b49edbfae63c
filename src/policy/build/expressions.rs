//! Types expressions and templates at the place where they are written.

use std::sync::Arc;

use super::{Builder, place};
use crate::policy::{Choice, Expression, builtin, guards};
use crate::script::check::{self, Typed};
use crate::script::template::{self, Piece};
use crate::script::types::{Evidence, Names, Type};
use crate::source::Diagnostic;
use crate::source::node::Node;

/// What makes a program known to a guard.
const OF_PROGRAMS: &str = "name programs under `commands`: the guard looks at each of them";
/// What makes a tool call known.
const OF_GUARDS: &str = "it is available only in guards.yaml and other files of guards";
/// What is known where.
const KNOWN_LATER: &str = "session types come first, then preferences and probes, then checks, \
     then messages; each sees what came before it";

/// Whether a node is in a file of guards.
fn is_of_guards(node: &Node) -> bool {
    let name = node.span.source.name.as_str();
    guards::FILES.contains(&name.rsplit(['/', '\\']).next().unwrap_or(name))
}

impl Builder<'_> {
    /// Types what `work` meets by the names of a record, where there are some.
    pub(super) fn speaking_of<T>(
        &mut self,
        names: Option<&'static Arc<Names>>,
        work: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let Some(names) = names else { return work(self) };
        self.speaking(Arc::clone(names), work)
    }

    /// Types what `work` meets by names of its own.
    pub(super) fn speaking<T>(
        &mut self,
        names: Arc<Names>,
        work: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let facts = std::mem::replace(&mut self.names, names);
        let unknown_here = std::mem::take(&mut self.unknown_here);
        let made = work(self);
        self.names = facts;
        self.unknown_here = unknown_here;
        made
    }

    /// What is known of an expression of a node; tests have checked those of the built-in pack.
    fn typed(&self, text: &str, node: &Node) -> Typed {
        match builtin::wrote(&node.span.source) {
            true => check::check_again(text, &self.names),
            false => check::check(text, &self.names),
        }
    }

    /// A typed expression of `wanted` type; anything wrong is complained about.
    pub(super) fn expression(&mut self, node: Option<&Node>, wanted: Type) -> Option<Expression> {
        let node = node?;
        let text = node.text()?;
        let typed = self.typed(text, node);
        self.uses.extend(typed.uses.iter().cloned());
        if !text.trim().is_empty() {
            // That it is empty is said where its shape is checked.
            self.complain(&typed, node, 0);
        }
        if typed.result != wanted && typed.result != Type::Any {
            let message = format!("this must be {wanted}, and is a {}", typed.result);
            let found = Diagnostic::error("not-a-condition", node.sub_span(0..text.len()), message);
            let example = [(Type::Int, "files.count > 0"), (Type::Text, "tools.last == \"Bash\"")];
            let example = example.iter().find(|(it, _)| *it == typed.result);
            self.diagnostics.push(match example {
                Some((_, text)) => found.with_help(format!("compare it, as in `{text}`")),
                None => found,
            });
        }
        Some(Expression {
            text: text.to_owned(),
            place: place(&node.sub_span(0..text.len())).into(),
            uses: typed.uses.iter().cloned().collect::<Vec<_>>().into(),
            words_only: typed.evidence == Evidence::Words,
            compiled: typed.tree.into(),
        })
    }

    pub(super) fn complain(&mut self, typed: &Typed, node: &Node, offset: usize) {
        for used in &typed.uses {
            let (global, member) = used.split_once('.').unwrap_or((used, ""));
            match global {
                "signals" => self.reads_signals |= !member.is_empty(),
                "context" => self.reads_context |= !member.is_empty(),
                "dead_letter" | "escalations" => self.reads_waiting |= !member.is_empty(),
                _ => self.reads_breakers |= global.starts_with("breakers"),
            }
            let unknown = |name: &str| self.unknown_here.contains(&name);
            // `probes.pr.ok` reads `probes.pr`, too: one finding is enough.
            let reads = |other: &String| {
                used.strip_prefix(other.as_str()).is_some_and(|rest| rest.starts_with('.'))
            };
            if (unknown(global) || unknown(used)) && !typed.uses.iter().any(reads) {
                let text = node.text().unwrap_or_default();
                let start = text.find(used.as_str()).unwrap_or(0);
                let span = node.sub_span(start..start.saturating_add(used.len()));
                let what = if unknown(global) { global } else { used };
                let message = format!("`{what}` is not known here");
                let found = Diagnostic::error("unknown-here", span, message);
                let help = match global {
                    "action" | "program" if !is_of_guards(node) => OF_GUARDS,
                    "program" => OF_PROGRAMS,
                    _ => KNOWN_LATER,
                };
                self.diagnostics.push(found.with_help(help));
            }
        }
        for finding in &typed.findings {
            let range = finding.start.saturating_add(offset)..finding.end.saturating_add(offset);
            self.diagnostics.push(finding.at(node.sub_span(range)));
        }
    }

    /// A template whose holes are typed.
    pub(super) fn template(&mut self, node: &Node) -> Option<String> {
        let text = node.text()?;
        match template::pieces(text) {
            Err(at) => {
                let span = node.sub_span(at..at.saturating_add(2));
                let message = "this `${` has no closing brace".to_owned();
                let found = Diagnostic::error("open-hole", span, message);
                self.diagnostics
                    .push(found.with_help("write `$${` for the two characters as text"));
            }
            Ok(pieces) => {
                for piece in pieces {
                    if let Piece::Hole { expression, start } = piece {
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
        self.complain(&typed, node, start);
        if !typed.result.is_shown() && typed.result != Type::Any {
            let span = node.sub_span(start..start.saturating_add(expression.len()));
            let message = format!("a {} cannot be shown as text", typed.result);
            let found = Diagnostic::error("type-mismatch", span, message);
            self.diagnostics.push(found.with_help("name one of its fields"));
        }
    }

    /// A template, or a list of texts with conditions.
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
}
