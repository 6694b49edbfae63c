//! The message of a guard that is unknown: what it would say of the call becomes a question, and only what to do stays.

use policyd_fact_table::template::{TemplatePart, pieces};

/// A template of a guard, in two parts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MessageParts<'t> {
    /// The first sentence, without its period: what the call does.
    pub(super) claim: &'t str,
    /// The sentences behind it: what to do. Can be empty.
    pub(super) advice: &'t str,
}

impl<'t> MessageParts<'t> {
    /// Splits a template. A period in a placeholder or between backticks ends no sentence.
    pub(super) fn of(template: &'t str) -> Self {
        let template = template.trim();
        let holes: Vec<_> = pieces(template)
            .unwrap_or_default()
            .into_iter()
            .filter_map(|it| match it {
                TemplatePart::Hole { expression, start } => Some(start..start + expression.len()),
                TemplatePart::Text(_) => None,
            })
            .collect();
        let in_hole = |at: usize| holes.iter().any(|it| it.contains(&at));
        let is_code = |at: usize| {
            let marks =
                template.match_indices('`').filter(|(mark, _)| *mark < at && !in_hole(*mark));
            marks.count() % 2 == 1
        };
        let mut ends = template.match_indices(". ").map(|(at, _)| at);
        let end = ends.find(|at| !in_hole(*at) && !is_code(*at));
        match end.and_then(|at| template.split_at_checked(at)) {
            Some((claim, rest)) => {
                Self { claim, advice: rest.trim_start_matches('.').trim_start() }
            }
            None => Self { claim: template.trim_end_matches('.'), advice: "" },
        }
    }
}

/// Returns a claim as it continues "policyd cannot tell whether …": `this reads a key`. Empty if its subject is not the
/// call, because then it might be no statement.
pub(super) fn as_question(claim: &str) -> String {
    match (claim.strip_prefix("This "), claim.starts_with('`')) {
        (Some(rest), _) => format!("this {rest}"),
        (None, true) => claim.to_owned(),
        (None, false) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_a_claim_and_advice() {
        for (template, claim, advice) in [
            (
                "`${program.line}` ends it. Ask the user.",
                "`${program.line}` ends it",
                "Ask the user.",
            ),
            ("`rm -r . x` ends it. A. B.", "`rm -r . x` ends it", "A. B."),
            (
                "`${program.line}` ${if program.line.contains(\". x\") { \"a. `b\" } else { \"c\" }}. Do it.",
                "`${program.line}` ${if program.line.contains(\". x\") { \"a. `b\" } else { \"c\" }}",
                "Do it.",
            ),
            ("This reads `a.txt`.", "This reads `a.txt`", ""),
            ("Never", "Never", ""),
            ("", "", ""),
        ] {
            assert_eq!(MessageParts::of(template), MessageParts { claim, advice }, "{template}");
        }
    }

    #[test]
    fn a_claim_about_the_call_is_a_question() {
        assert_eq!(as_question("`rm x` deletes it"), "`rm x` deletes it");
        assert_eq!(as_question("This reads a key"), "this reads a key");
        assert_eq!(as_question("Hook settings belong to the user"), "");
    }
}
