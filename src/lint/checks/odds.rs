//! Checks of the conditions of one rule: where they leave nothing to each other, or to what the rule is for.

use std::sync::Arc;

use super::terms::{compared, each_part_asking};
use super::tools::odd_tool;
use crate::logic::{Satisfiability, one_by_one, possible};
use crate::site::Site;
use crate::subject::PackEntry;
use crate::{Findings, Subject};
use policyd_fact_table::ast::Expr;
use policyd_facts::glob::word_matches;
use policyd_policy::guards;
use policyd_policy::review::{DEFAULT_SESSION_TYPE, applicable_types};
use policyd_yaml::node::Node;

/// The condition under a key of an entry, where the loader has nothing against it, and where it may hold and
/// may not.
fn open<'s, 'a>(
    subject: &'s Subject<'a>,
    entry: &PackEntry<'a>,
    key: &str,
) -> Option<(&'s Site<'a>, &'s Expr)> {
    let site = subject.site(entry, key)?;
    let open = site.truth(subject.names()).is_none() && !subject.has_error(site);
    Some((site, site.term.as_deref().filter(|_| open)?))
}

pub(crate) fn never_fires(subject: &Subject<'_>, out: &mut Findings) {
    for entry in &subject.entries {
        let part = |key: &str| open(subject, entry, key);
        let (Some((_, when)), Some((site, satisfied))) = (part("when"), part("satisfied")) else {
            continue;
        };
        let said = [(when, true), (satisfied, false)];
        if possible(&said, subject.names()) == Satisfiability::Never {
            let message = format!("`{}` always passes where it applies", entry.name());
            out.add(site.whole(), message, |it| {
                it.with_note("the rule never fires").with_help("narrow `when` or `satisfied`")
            });
        }
    }
}

/// Two conditions of an entry: where the first is as said, the second is never as said.
struct ConditionPair {
    files: &'static [&'static str],
    first: (&'static str, bool),
    second: (&'static str, bool),
    message: &'static str,
    note: &'static str,
}

const ODDS: &[ConditionPair] = &[
    ConditionPair {
        files: &guards::FILES,
        first: ("when", true),
        second: ("unless", false),
        message: "`unless` is true whenever `when` is",
        note: "the guard never fires",
    },
    ConditionPair {
        files: &guards::FILES,
        first: ("when", true),
        second: ("unless", true),
        message: "`unless` is never true together with `when`",
        note: "it has no effect",
    },
    ConditionPair {
        files: &["considerations.yaml", "checkers.yaml"],
        first: ("when", true),
        second: ("satisfied", true),
        message: "`satisfied` is never true together with `when`",
        note: "the check always fires where it applies",
    },
    ConditionPair {
        files: &["considerations.yaml", "checkers.yaml"],
        first: ("satisfied", false),
        second: ("blocking", true),
        message: "`blocking` is true only if `satisfied` is",
        note: "the rule never blocks",
    },
];

pub(crate) fn contradictory_conditions(subject: &Subject<'_>, out: &mut Findings) {
    for entry in &subject.entries {
        let part = |key: &str| open(subject, entry, key);
        for odds in ODDS.iter().filter(|it| it.files.contains(&entry.file)) {
            let (Some((site, first)), Some((other, second))) =
                (part(odds.first.0), part(odds.second.0))
            else {
                continue;
            };
            let never = |first: &Expr, second: &Expr| {
                let said = [(first, odds.first.1), (second, odds.second.1)];
                possible(&said, subject.names()) == Satisfiability::Never
            };
            let wanted = (odds.first.1, odds.second.1);
            let both = format!("{wanted:?}\0{}\0{}", first.canonical(), second.canonical());
            let contradict = subject.of_names("contradictory", &both, || {
                never(first, second) || never(&one_by_one(first), &one_by_one(second))
            });
            if *contradict {
                out.add(other.whole(), odds.message, |it| {
                    it.with_related(site.whole(), format!("`{}`", odds.first.0))
                        .with_note(odds.note)
                        .with_help("correct one of the conditions")
                });
            }
        }
        never_applies(subject, entry, out);
    }
}

fn never_applies<'a>(subject: &Subject<'a>, entry: &PackEntry<'a>, out: &mut Findings) {
    if let Some((site, types)) = for_no_session(subject, entry) {
        out.add(site.whole(), "this matches no session to which the rule applies", |it| {
            it.with_note(format!("`applicable_session_types` has {}", types.join(", ")))
                .with_help("use the same types in both")
        });
    } else if let Some((site, other)) = of_another_type(subject, entry) {
        let types = session_types_of(subject, entry).unwrap_or_default().join(", ");
        out.add(
            site.whole(),
            format!("if this is true, no session is {types}"),
            |it| match other {
                Some(other) => it
                    .with_note(format!(
                        "all of these sessions are `{other}`, which is matched first"
                    ))
                    .with_help(format!("apply the rule to `{other}`, or change the condition")),
                None => it
                    .with_note("`session_types.yaml` defines these types")
                    .with_help("match the same sessions in both"),
            },
        );
    }
}

/// A `when` that holds for no session of the types that a consideration is for, by what makes a session one of
/// those; and the type that all sessions are where it holds, if there is one.
fn of_another_type<'s, 'a>(
    subject: &'s Subject<'a>,
    entry: &PackEntry<'a>,
) -> Option<(&'s Site<'a>, Option<&'s str>)> {
    let types = session_types_of(subject, entry)?;
    // Most rules are for this type, and no inherited type precedes it.
    if types.contains(&DEFAULT_SESSION_TYPE) {
        return None;
    }
    let (site, when) = open(subject, entry, "when")?;
    let never = |said: &[(&Expr, bool)]| possible(said, subject.names()) == Satisfiability::Never;
    let (mut before, mut taker): (Vec<Arc<Expr>>, Option<&str>) = (Vec::new(), None);
    let mut wanted = types.len();
    for (id, condition) in subject.reviewed.meant.session_types() {
        let condition = Expr::parse(condition)?;
        if types.contains(&id) {
            let earlier = before.iter().map(|it| (&**it, false));
            let said: Vec<(&Expr, bool)> =
                [(when, true), (&*condition, true)].into_iter().chain(earlier).collect();
            if !never(&said) {
                return None;
            }
            wanted = wanted.saturating_sub(1);
        } else if taker.is_none() && never(&[(when, true), (&*condition, false)]) {
            taker = Some(id);
        }
        before.push(condition);
    }
    // An undefined type is another finding.
    (wanted == 0).then_some((site, taker))
}

/// A `when` that holds for no session of the types that a consideration is for, and those.
fn for_no_session<'s, 'a>(
    subject: &'s Subject<'a>,
    entry: &PackEntry<'a>,
) -> Option<(&'s Site<'a>, Vec<&'a str>)> {
    let (site, term) = open(subject, entry, "when").filter(|(it, _)| it.may_name(&["type"]))?;
    let types = session_types_of(subject, entry)?;
    let of_types = Expr::one_of("session.type", &types);
    let said = [(&of_types, true), (term, true)];
    (possible(&said, subject.names()) == Satisfiability::Never).then_some((site, types))
}

/// The session types that a consideration is for; nothing where it is for all, or no consideration.
fn session_types_of<'a>(subject: &Subject<'a>, entry: &PackEntry<'a>) -> Option<Vec<&'a str>> {
    if entry.file != "considerations.yaml" {
        return None;
    }
    let types = applicable_types(subject.said(entry, "applicable_session_types"));
    (!types.contains(&"*")).then_some(types)
}

/// Returns the tools of a guard, by glob; none if it applies to all tools or is not a guard.
pub(super) fn tools_of<'a>(subject: &Subject<'a>, entry: &PackEntry<'a>) -> Option<Vec<&'a str>> {
    let named = subject.said(entry, "tools").filter(|_| guards::FILES.contains(&entry.file))?;
    let globs: Vec<&str> = named.one_or_items().iter().filter_map(Node::text).collect();
    (!globs.is_empty()).then_some(globs)
}

/// The programs that a guard looks at, by glob.
pub(super) fn programs_of<'a>(
    subject: &Subject<'a>,
    entry: &PackEntry<'a>,
) -> Option<Vec<&'a str>> {
    let named = subject.said(entry, "commands").filter(|_| guards::FILES.contains(&entry.file))?;
    let patterns = named.one_or_items().iter().filter_map(Node::text);
    // Programs are known by their base name.
    let first = patterns.filter_map(|it| it.split_whitespace().next()?.rsplit(['/', '\\']).next());
    // Any program can have an effect.
    Some(first.map(|it| if it.starts_with('@') { "*" } else { it }).collect())
}

/// What an entry is for.
struct RuleScope {
    fact: &'static str,
    /// The key of the filter, and the noun for messages.
    key: &'static str,
    what: &'static str,
    /// Globs over what the entry is for, where it is not for all.
    of: for<'a> fn(&Subject<'a>, &PackEntry<'a>) -> Option<Vec<&'a str>>,
}

const SCOPES: [RuleScope; 4] = [
    RuleScope { fact: "event.tool", key: "tools", what: "tool", of: tools_of },
    RuleScope { fact: "action.tool", key: "tools", what: "tool", of: tools_of },
    RuleScope { fact: "program.name", key: "commands", what: "program", of: programs_of },
    RuleScope {
        fact: "session.type",
        key: "applicable_session_types",
        what: "session type",
        of: session_types_of,
    },
];

pub(crate) fn irrelevant_for_rule(subject: &Subject<'_>, out: &mut Findings) {
    each_part_asking(subject, &["tool", "type", "name"], |site, term| {
        let Some(entry) = subject.entry_of(site) else { return };
        for scope in SCOPES {
            let asked = compared(term, |it| it.is(scope.fact));
            let globs = if asked.is_empty() { None } else { (scope.of)(subject, entry) };
            let Some(globs) = globs else { continue };
            if for_no_session(subject, entry).is_some_and(|(it, _)| std::ptr::eq(it, site)) {
                continue; // Nothing of it matters.
            }
            // Nothing is the name of what cannot be known.
            let is_for =
                |name: &str| name.is_empty() || globs.iter().any(|glob| word_matches(glob, name));
            // Other rules report unknown tools and directories of programs.
            let odd = |name: &str| match scope.key {
                "tools" => odd_tool(subject, name).is_some(),
                "commands" => name.contains('/'),
                _ => false,
            };
            for (name, range) in asked.into_iter().filter(|(it, _)| !is_for(it) && !odd(it)) {
                let message =
                    format!("`{}` does not apply to the {} `{name}`", entry.name(), scope.what);
                out.add(site.span(range), message, |it| {
                    it.with_note(format!("`{}` has {}", scope.key, globs.join(", ")))
                        .with_help(format!("add it to `{}`, or remove this comparison", scope.key))
                });
            }
        }
    });
}
