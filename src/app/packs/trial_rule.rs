//! What lint says of an expression that is tried: it has a value, and may still be none that is ever another.

use std::sync::Arc;

use policyd_lint::{self as lint, Profile, Subject};
use policyd_policy::builtin;
use policyd_policy::load::Pack;
use policyd_policy::review::{Base, ReviewedPolicy};
use policyd_yaml::time::Timestamp;
use policyd_yaml::{Diagnostic, Source, Span};

/// Indentation of each line of the expression within the rule.
const INDENT: &str = "    ";
/// Rules about the event that a rule is judged at: an expression alone is judged at none.
const OF_EVENTS: [&str; 2] = ["PD210", "PD230"];

/// The findings about an expression that is written in a rule of this pack, whose other rules do not matter.
pub fn findings(
    pack: &Pack,
    expression: &str,
    source: &Arc<Source>,
    now: Timestamp,
) -> Vec<Diagnostic> {
    let of_calls = ["action.", "program."].iter().any(|it| expression.contains(it));
    let (file, before) = if of_calls {
        (
            "guards.yaml",
            "- id: tried\n  commands: [\"*\"]\n  decision: warn\n  message: Tried.\n  when: |-\n",
        )
    } else {
        (
            "considerations.yaml",
            "- id: tried\n  category: Tried\n  question: Is it so?\n  severity: warning\n  \
             applicable_session_types: [\"*\"]\n  satisfied: |-\n",
        )
    };
    let mut text = before.to_owned();
    for line in expression.split('\n') {
        text.push_str(INDENT);
        text.push_str(line);
        text.push('\n');
    }
    let rule = Arc::new(Source { name: source.name.clone(), text });
    // What it may name is defined in the others.
    let other = |it: &str| it != file && pack.name != builtin::NAME;
    let own = pack.files.iter().filter(|(name, _)| other(name));
    let files = own.cloned().chain([(file.to_owned(), Arc::clone(&rule))]);
    let pack =
        Pack { name: source.name.clone(), files: files.collect(), remote: pack.remote.clone() };
    let base = Base::new(&builtin::pack());
    let reviewed = ReviewedPolicy::new(&pack, &base);
    let found =
        lint::review(&Subject::new(&pack, &reviewed, now), Profile::Default, false).findings;
    let here = found.into_iter().filter(|it| {
        let code = lint::code_of(it.code);
        let of_expressions = ["PD2", "PD3", "PD6"].iter().any(|kind| code.starts_with(kind));
        of_expressions && !OF_EVENTS.contains(&code) && Arc::ptr_eq(&it.span.source, &rule)
    });
    let place = |it: Diagnostic| {
        let span = within(&it.span, before.len(), source)?;
        let it = Diagnostic { span, related: Vec::new(), fix: None, ..it };
        // Notes and help of these findings are advice about the whole rule, but the user wrote only the expression.
        let of_rules = lint::code_of(it.code).starts_with("PD6");
        Some(if of_rules { Diagnostic { note: None, help: None, ..it } } else { it })
    };
    here.filter_map(place).collect()
}

/// A place of the rule as one of the expression; none where it lies outside.
fn within(span: &Span, begin: usize, source: &Arc<Source>) -> Option<Span> {
    let place = |at: usize| {
        let before = span.source.text.get(begin..at)?;
        let lines = before.matches('\n').count() + 1;
        at.checked_sub(begin + lines * INDENT.len()).filter(|it| *it <= source.text.len())
    };
    Some(Span { source: Arc::clone(source), start: place(span.start)?, end: place(span.end)? })
}
