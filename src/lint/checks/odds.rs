//! Checks of the conditions of one rule: where they leave nothing to each other.

use crate::lint::logic::{Answer, one_by_one, possible};
use crate::lint::site::Site;
use crate::lint::subject::Entry;
use crate::lint::{Findings, Subject};
use crate::policy::guards;
use crate::script::tree::Term;
use crate::source::node::Node;

/// The condition under a key of an entry, where the loader has nothing against it, and where it may hold and
/// may not.
fn open<'s, 'a>(
    subject: &'s Subject<'a>,
    entry: &Entry<'a>,
    key: &str,
) -> Option<(&'s Site<'a>, &'s Term)> {
    let site = subject.site(entry, key)?;
    let open = site.truth(subject.names()).is_none() && !subject.has_error(site);
    Some((site, site.term.as_deref().filter(|_| open)?))
}

pub(in crate::lint) fn never_fires(subject: &Subject<'_>, out: &mut Findings) {
    for entry in &subject.entries {
        let part = |key: &str| open(subject, entry, key);
        let (Some((_, when)), Some((site, satisfied))) = (part("when"), part("satisfied")) else {
            continue;
        };
        let said = [(when, true), (satisfied, false)];
        if possible(&said, subject.names()) == Answer::Never {
            let message = format!("where `{}` applies it is always satisfied", entry.name());
            out.add(site.whole(), message, |it| {
                it.with_note("the rule never finds anything")
                    .with_help("one of `when` and `satisfied` says too much")
            });
        }
    }
}

/// Two conditions of an entry: where the first is as said, the second is never as said.
struct Odds {
    files: &'static [&'static str],
    first: (&'static str, bool),
    second: (&'static str, bool),
    message: &'static str,
    note: &'static str,
}

const ODDS: &[Odds] = &[
    Odds {
        files: &guards::FILES,
        first: ("when", true),
        second: ("unless", false),
        message: "`unless` holds wherever `when` does",
        note: "the guard never fires",
    },
    Odds {
        files: &guards::FILES,
        first: ("when", true),
        second: ("unless", true),
        message: "`unless` never holds where `when` does",
        note: "it makes no difference where both are known",
    },
    Odds {
        files: &["considerations.yaml", "checkers.yaml"],
        first: ("satisfied", false),
        second: ("blocking", true),
        message: "`blocking` never holds where `satisfied` does not",
        note: "the rule never blocks",
    },
];

pub(in crate::lint) fn conditions_at_odds(subject: &Subject<'_>, out: &mut Findings) {
    for entry in &subject.entries {
        let part = |key: &str| open(subject, entry, key);
        for odds in ODDS.iter().filter(|it| it.files.contains(&entry.file)) {
            let (Some((site, first)), Some((other, second))) =
                (part(odds.first.0), part(odds.second.0))
            else {
                continue;
            };
            let never = |first: &Term, second: &Term| {
                let said = [(first, odds.first.1), (second, odds.second.1)];
                possible(&said, subject.names()) == Answer::Never
            };
            if never(first, second) || never(&one_by_one(first), &one_by_one(second)) {
                out.add(other.whole(), odds.message, |it| {
                    it.with_related(site.whole(), format!("`{}`", odds.first.0))
                        .with_note(odds.note)
                        .with_help("say what is meant in one of them")
                });
            }
        }
        never_applies(subject, entry, out);
    }
}

/// A `when` that holds for no session of the types that a consideration is for.
fn never_applies<'a>(subject: &Subject<'a>, entry: &Entry<'a>, out: &mut Findings) {
    if entry.file != "considerations.yaml" {
        return;
    }
    let types = subject.said(entry, "applicable_session_types").and_then(Node::items);
    let types: Vec<&str> = types.unwrap_or_default().iter().filter_map(Node::text).collect();
    let when = open(subject, entry, "when").filter(|(site, _)| site.may_name(&["type"]));
    let Some((site, term)) = when else { return };
    // amplihack's default is DEVELOPMENT only.
    let types = if types.is_empty() { vec!["DEVELOPMENT"] } else { types };
    let of_types = Term::parse(&format!("session.type in {types:?}"));
    if let (Some(of_types), false) = (of_types, types.contains(&"*"))
        && possible(&[(&of_types, true), (term, true)], subject.names()) == Answer::Never
    {
        out.add(site.whole(), "this holds for no session that the rule is for", |it| {
            it.with_note(format!("`applicable_session_types` has {}", types.join(", ")))
                .with_help("let the two speak of the same types")
        });
    }
}
