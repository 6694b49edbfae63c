//! Checks of expressions that are well typed and yet likely not meant.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::terms::{
    Constant, compared, constant, each_part, each_part_asking, each_part_with, last_argument, path,
};
use crate::lint::logic::type_of;
use crate::lint::site::Site;
use crate::lint::{Findings, Subject, with_edit, with_edits};
use crate::script::paths::number;
use crate::script::tree::{Form, Relation, Term};
use crate::script::types::Type;

pub(in crate::lint) fn division_by_zero(subject: &Subject<'_>, out: &mut Findings) {
    each_part(subject, |site, term| {
        if let Form::Arithmetic('/' | '%', _, divisor) = &term.form
            && divisor.form == Form::Int(0)
        {
            let message = "this divides by zero, which is an error at each evaluation";
            out.help(site.span(&divisor.range), message, "divide by another number");
        }
    });
}

pub(in crate::lint) fn mixed_operators(subject: &Subject<'_>, out: &mut Findings) {
    each_part(subject, |site, term| {
        let Form::Or(items) = &term.form else { return };
        for item in items {
            if matches!(item.form, Form::And(_)) && item.outer == item.range {
                let message = "`&&` and `||` stand side by side without parentheses";
                let before = site.edit(&(item.range.start..item.range.start), "(");
                let after = site.edit(&(item.range.end..item.range.end), ")");
                out.add(site.span(&item.range), message, |it| {
                    let it = it.with_help("`&&` binds stronger; say so with parentheses");
                    with_edits(it, true, [before, after])
                });
            }
        }
    });
}

pub(in crate::lint) fn boolean_comparison(subject: &Subject<'_>, out: &mut Findings) {
    each_part(subject, |site, term| {
        let Form::Compare(relation @ (Relation::Equal | Relation::NotEqual), one, other) =
            &term.form
        else {
            return;
        };
        let (value, fact) = match (&one.form, &other.form) {
            (_, Form::Bool(value)) => (*value, one),
            (Form::Bool(value), _) => (*value, other),
            _ => return,
        };
        let holds = (*relation == Relation::Equal) == value;
        let simple = matches!(fact.form, Form::Fact(..) | Form::Not(_)) || fact.outer != fact.range;
        let fact = site.part(&fact.outer);
        let fact = if simple { fact.to_owned() } else { format!("({fact})") };
        let text = if holds { fact } else { format!("!{fact}") };
        out.add(site.span(&term.range), "a truth value is compared with a constant", |it| {
            let it = it.with_help(format!("write `{text}`"));
            with_edit(it, true, site.edit(&term.range, &text))
        });
    });
}

pub(in crate::lint) fn double_negation(subject: &Subject<'_>, out: &mut Findings) {
    each_part(subject, |site, term| {
        if let Form::Not(inner) = &term.form
            && let Form::Not(innermost) = &inner.form
        {
            let text = site.part(&innermost.outer);
            out.add(site.span(&term.range), "this is negated twice", |it| {
                let it = it.with_help(format!("write `{text}`"));
                with_edit(it, true, site.edit(&term.range, text))
            });
        }
    });
}

pub(in crate::lint) fn negated_comparison(subject: &Subject<'_>, out: &mut Findings) {
    each_part(subject, |site, term| {
        if let Form::Not(inner) = &term.form
            && let Form::Compare(relation, one, other) = &inner.form
        {
            let (one, other) = (site.part(&one.outer), site.part(&other.outer));
            let text = format!("{one} {} {other}", relation.negated().as_str());
            // Within something else it must stay one value.
            let whole = term.outer == (0..site.text.trim_end().len());
            let text = if whole { text } else { format!("({text})") };
            out.add(site.span(&term.range), "a comparison is negated", |it| {
                let it = it.with_help(format!("write `{text}`"));
                with_edit(it, true, site.edit(&term.range, &text))
            });
        }
    });
}

const fn is_constant(form: &Form) -> bool {
    matches!(form, Form::Int(_) | Form::Decimal(_) | Form::Text(_) | Form::Bool(_))
}

pub(in crate::lint) fn constant_first(subject: &Subject<'_>, out: &mut Findings) {
    each_part(subject, |site, term| {
        let Form::Compare(relation, one, other) = &term.form else { return };
        if is_constant(&one.form) && !is_constant(&other.form) {
            let (one, other) = (site.part(&one.outer), site.part(&other.outer));
            let text = format!("{other} {} {one}", relation.mirrored().as_str());
            out.add(site.span(&term.range), "a constant stands on the left", |it| {
                let it = it.with_help(format!("write `{text}`"));
                with_edit(it, true, site.edit(&term.range, &text))
            });
        }
    });
}

/// Parts above which an expression is hard to read.
const PARTS_MAX: usize = 80;

pub(in crate::lint) fn complex_expression(subject: &Subject<'_>, out: &mut Findings) {
    for site in &subject.sites {
        let mut parts = 0_usize;
        site.visit(|_| parts += 1);
        if parts > PARTS_MAX {
            let message = format!("this expression has {parts} parts");
            let help = "split the rule in two, or move patterns into vocabulary.yaml";
            out.help(site.whole(), message, help);
        }
    }
}

/// Bytes from which a repeated condition is worth a name of its own.
const REPEATED_BYTES_MIN: usize = 60;
/// Entries that must repeat it.
const REPEATED_MIN: usize = 3;

pub(in crate::lint) fn repeated_expression(subject: &Subject<'_>, out: &mut Findings) {
    let mut seen: BTreeMap<Cow<'_, str>, Vec<&Site<'_>>> = BTreeMap::new();
    for site in subject.sites.iter().filter(|it| it.condition) {
        if let Some(term) = &site.term {
            seen.entry(term.canonical()).or_default().push(site);
        }
    }
    for (text, sites) in &seen {
        let entries: BTreeSet<Option<usize>> = sites.iter().map(|it| it.entry).collect();
        if let [first, ..] = sites.as_slice()
            && text.len() >= REPEATED_BYTES_MIN
            && entries.len() >= REPEATED_MIN
        {
            let message = format!("{} rules repeat this condition", entries.len());
            let help = "move it into a named checker, or into a session type";
            out.help(first.whole(), message, help);
        }
    }
}

/// Whether evaluating it tries regular expressions on texts.
fn is_costly(site: &Site<'_>, term: &Term) -> bool {
    let text = site.part(&term.range);
    text.contains(".matches(") || text.contains("patterns.")
}

pub(in crate::lint) fn costly_first(subject: &Subject<'_>, out: &mut Findings) {
    each_part(subject, |site, term| {
        let (Form::And(items) | Form::Or(items)) = &term.form else { return };
        let costly = items.iter().position(|it| is_costly(site, it));
        let cheap = items.iter().rposition(|it| !is_costly(site, it));
        if let (Some(first), Some(last)) = (costly, cheap)
            && first < last
            && let (Some(item), Some(other)) = (items.get(first), items.get(last))
        {
            out.add(site.span(&item.range), "this is tried before something cheaper", |it| {
                it.with_related(site.span(&other.range), "this costs less")
                    .with_help("put what costs least first")
            });
        }
    });
}

/// Facts that somebody else words.
const FOREIGN: [&str; 6] =
    ["event.", "transcript.", "commands.", "session.branch", "files.", "probes."];

pub(in crate::lint) fn pattern_from_text(subject: &Subject<'_>, out: &mut Findings) {
    each_part(subject, |site, term| {
        let Some(argument) = last_argument(term, "matches") else { return };
        argument.visit(&mut |part| {
            let text = site.part(&part.range);
            if path(part).is_some() && FOREIGN.iter().any(|it| text.starts_with(it)) {
                out.add(
                    site.span(&part.range),
                    "somebody's text becomes a part of a pattern",
                    |it| {
                        it.with_note("a dot or a bracket in it changes what is matched")
                            .with_help("use `contains`, `starts_with` or `==`")
                    },
                );
            }
        });
    });
}

/// Facts that are asked for one of several things, or for a program.
const OF_LISTS: [&str; 17] = [
    "program.has",
    "program.names",
    "program.fed_by",
    "program.wrapped_by",
    "program.expands",
    "program.targets.any",
    "program.changed.any",
    "program.read.any",
    "program.written.any",
    "action.sets",
    "action.reads",
    "action.writes",
    "action.deletes",
    "action.changes",
    "action.touches",
    "action.changed.any",
    "action.runs",
];

/// Lists of nothing, and patterns of no program.
fn of_nothing(subject: &Subject<'_>, out: &mut Findings) {
    let empty = |it: &&Site<'_>| it.text.contains("[]") || it.text.contains("\"\"");
    for site in subject.sites.iter().filter(empty).filter(|it| !subject.has_error(it)) {
        site.visit(|term| {
            let Form::Fact(path, arguments) = &term.form else { return };
            let Some((name, _)) = path.split_once('(') else { return };
            let [argument] = arguments.as_slice() else { return };
            let nothing = argument.form == Form::List(Vec::new())
                || (name == "action.runs" && constant(argument).is_some_and(|it| it.0.is_empty()));
            if nothing && OF_LISTS.contains(&name) {
                let message = format!("`{name}` is asked for nothing, and never holds");
                out.help(site.span(&argument.range), message, "name what is looked for");
            }
        });
    }
}

pub(in crate::lint) fn empty_argument(subject: &Subject<'_>, out: &mut Findings) {
    of_nothing(subject, out);
    let names = ["contains", "starts_with", "ends_with", "matches"];
    each_part_asking(subject, &names, |site, term| {
        for name in names {
            let argument = last_argument(term, name)
                .filter(|it| constant(it).is_some_and(|it| it.0.is_empty()));
            let Some(argument) = argument else { continue };
            // A list may well contain an empty text.
            let receiver = site.part(&term.range).rsplit_once(&format!(".{name}"));
            let on_text =
                receiver.and_then(|(receiver, _)| Term::parse(receiver)).is_some_and(|it| {
                    let names = site.names(subject.names());
                    type_of(&it, receiver.map_or("", |(r, _)| r), names) == Type::Text
                });
            if on_text {
                let message = format!("`{name}(\"\")` holds of every text");
                out.help(site.span(&argument.range), message, "name what is looked for");
            }
        }
    });
}

/// An address that is recognised by less than its host where something is let through by it, or by a host alone.
fn address_by_prefix(
    site: &Site<'_>,
    (text, range): (&str, &Range<usize>),
    lets_through: bool,
    out: &mut Findings,
) {
    match text.split_once("://") {
        None if text.contains('.') && !text.contains(':') && !text.starts_with("www.") => {
            let message = format!("most addresses begin with their scheme, and not with `{text}`");
            let help = format!("write its scheme: `https://{text}`");
            out.help(site.span(range), message, help);
        }
        Some((_, host))
            if lets_through
                && host.contains('.')
                && !host.contains(['/', ':'])
                && host.ends_with(|c: char| c.is_alphabetic()) =>
        {
            let message = format!("`{text}` also begins the addresses of other hosts");
            out.add(site.span(range), message, |it| {
                let it = it
                    .with_note(format!("`{text}.example.net` starts with it, too"))
                    .with_help("end the host with `/`");
                with_edit(it, false, site.edit(range, &format!("{:?}", format!("{text}/"))))
            });
        }
        None | Some(_) => {}
    }
}

pub(in crate::lint) fn path_by_prefix(subject: &Subject<'_>, out: &mut Findings) {
    each_part_asking(subject, &["starts_with"], |site, term| {
        let Some((text, range)) = last_argument(term, "starts_with").and_then(constant) else {
            return;
        };
        let of_path = site.part(&term.range);
        if of_path.starts_with("action.address.") {
            let allows =
                subject.entry_of(site).is_some_and(|it| it.text("decision") == Some("allow"));
            return address_by_prefix(site, (text, range), allows || site.key == "unless", out);
        }
        let of_path = ["path\")", "_path.", "paths."].iter().any(|it| of_path.contains(it));
        // Whoever ends it so means the beginning of a name.
        let begins_a_name = text.ends_with(|c: char| c.is_ascii_digit() || "-_.".contains(c));
        if of_path && text.contains('/') && !text.ends_with('/') && !begins_a_name {
            let message = format!("`{text}` also begins the names of other folders and files");
            out.add(site.span(range), message, |it| {
                let it = it
                    .with_note(format!("`{text}-old` starts with it, too"))
                    .with_help("end the folder with `/`, or compare with `==`");
                with_edit(it, false, site.edit(range, &format!("{:?}", format!("{text}/"))))
            });
        }
    });
}

/// A part that compares the path of an edited file: the constants it is compared with.
fn compared_paths(term: &Term) -> Vec<Constant<'_>> {
    if let Form::In(item, list) = &term.form
        && path(list).is_some_and(|it| it.ends_with(".paths"))
    {
        return constant(item).into_iter().collect();
    }
    let found = compared(term, |it| it.ends_with(".last_path"));
    let called = |name: &str, owner: &str| {
        let argument = last_argument(term, name)?;
        let (owned, _) = path(term)?.rsplit_once(&format!(".{name}("))?;
        constant(argument).filter(|_| owned.ends_with(owner))
    };
    let begins = called("starts_with", ".last_path");
    found.into_iter().chain(begins.or_else(|| called("contains", ".paths"))).collect()
}

pub(in crate::lint) fn relative_path(subject: &Subject<'_>, out: &mut Findings) {
    each_part_asking(subject, &["last_path", "paths"], |site, term| {
        for (text, range) in compared_paths(term) {
            let drive = text.get(1..2) == Some(":");
            if !text.is_empty() && !text.starts_with(['/', '~', '\\']) && !drive {
                let message = format!("`{text}` is no path from the root on");
                let folder = text.trim_end_matches('/');
                let begins = site.part(&term.range).contains("starts_with(");
                let glob = if begins { format!("{folder}/**") } else { text.to_owned() };
                out.add(site.span(range), message, |it| {
                    it.with_note(
                        "clients name what they edit by its whole path: this is hardly ever met",
                    )
                    .with_help(format!("write `files.matching({glob:?}).count > 0`"))
                });
            }
        }
    });
}

pub(in crate::lint) fn case_never_met(subject: &Subject<'_>, out: &mut Findings) {
    let is_lower = |it: &Term| path(it).is_some_and(|it| it.ends_with(".lower()"));
    each_part_asking(subject, &["lower"], |site, term| {
        let mut found = Vec::new();
        if let Form::Compare(_, one, other) = &term.form {
            found.extend(constant(other).filter(|_| is_lower(one)));
            found.extend(constant(one).filter(|_| is_lower(other)));
        }
        let lowered = path(term).filter(|it| it.contains(".lower()."));
        for name in ["contains", "starts_with", "ends_with"] {
            let owner = lowered.and_then(|it| it.rsplit_once(&format!(".{name}(")));
            let lower = owner.is_some_and(|(it, _)| it.ends_with(".lower()"));
            found.extend(last_argument(term, name).and_then(constant).filter(|_| lower));
        }
        for (text, range) in found {
            let small = text.to_lowercase();
            if small != text {
                out.add(site.span(range), format!("`{text}` has capital letters"), |it| {
                    let it = it
                        .with_note("a text in lower case never has them")
                        .with_help(format!("write `{small:?}`"));
                    with_edit(it, false, site.edit(range, &format!("{small:?}")))
                });
            }
        }
    });
}

pub(in crate::lint) fn duplicate_in_list(subject: &Subject<'_>, out: &mut Findings) {
    each_part(subject, |site, term| {
        let Form::List(items) = &term.form else { return };
        let mut seen: BTreeMap<&str, &Range<usize>> = BTreeMap::new();
        let mut before: Option<&Term> = None;
        for item in items {
            let previous = before.replace(item);
            let Some((text, range)) = constant(item) else { continue };
            let edit = previous.and_then(|it| site.edit(&(it.outer.end..item.outer.end), ""));
            if let Some(first) = seen.get(text) {
                out.add(site.span(range), format!("`{text}` is listed twice"), |it| {
                    let it =
                        it.with_related(site.span(first), "listed here").with_help("delete it");
                    with_edit(it, true, edit)
                });
            } else {
                seen.insert(text, range);
            }
        }
    });
}

/// Facts that are shares, 0 to 1.
const SHARES: [&str; 2] = ["task.confidence", "run.confidence"];
/// Facts that are percentages.
const PERCENTAGES: [&str; 5] = [
    "context.percent",
    "context.measured",
    "context.cumulative_pct",
    "context.threshold",
    "run.health",
];

/// The number that a part is.
fn decimal(term: &Term) -> Option<f64> {
    if let Form::Int(value) = &term.form {
        return i32::try_from(*value).ok().map(f64::from);
    }
    if let Form::Decimal(text) = &term.form { text.parse().ok() } else { None }
}

pub(in crate::lint) fn share_and_percent(subject: &Subject<'_>, out: &mut Findings) {
    let members = ["confidence", "percent", "measured", "cumulative_pct", "threshold", "health"];
    each_part_with(subject, &members, |site, term| {
        let Form::Compare(_, one, other) = &term.form else { return };
        for (fact, number) in [(one, other), (other, one)] {
            let (Some(fact), Some(value)) = (path(fact), decimal(number)) else { continue };
            let message = if SHARES.contains(&fact) && value > 1.0 {
                format!("`{fact}` is a share, from 0 to 1")
            } else if PERCENTAGES.contains(&fact) && value > 0.0 && value < 1.0 {
                format!("`{fact}` is a percentage, from 0 to 100")
            } else {
                continue;
            };
            let meant = if value > 1.0 { value / 100.0 } else { value * 100.0 };
            let help = format!("write `{meant}`, if that is meant");
            out.help(site.span(&number.range), message, help);
        }
    });
}

fn divides(text: &str) -> bool {
    memchr::memchr2(b'/', b'%', text.as_bytes()).is_some()
}

pub(in crate::lint) fn unguarded_division(subject: &Subject<'_>, out: &mut Findings) {
    let dividing = subject.sites.iter().filter(|it| it.condition && divides(it.text));
    for site in dividing.filter(|it| !subject.has_error(it)) {
        // `when` may ask for it where `satisfied` divides.
        let of_rule = subject.entry_of(site).map(|it| subject.sites_of(it));
        let mut compared = BTreeSet::new();
        of_rule.unwrap_or(std::slice::from_ref(site)).iter().for_each(|site| {
            site.visit(|term| {
                if let Form::Compare(_, one, other) = &term.form {
                    compared.extend([one.canonical(), other.canonical()]);
                }
            });
        });
        site.visit(|term| {
            let Form::Arithmetic('/' | '%', _, divisor) = &term.form else { return };
            let names = site.names(subject.names());
            let may_be_zero = path(divisor).is_some_and(|it| number(it, names).range.0 <= 0);
            if !may_be_zero || compared.contains(&divisor.canonical()) {
                return;
            }
            let fact = site.part(&divisor.range);
            out.add(site.span(&divisor.range), format!("`{fact}` may be 0"), |it| {
                it.with_note("dividing by 0 is an error: the rule cannot be judged then")
                    .with_help(format!("ask for it first: `{fact} > 0 && …`"))
            });
        });
    }
}

pub(in crate::lint) fn in_text(subject: &Subject<'_>, out: &mut Findings) {
    each_part(subject, |site, term| {
        let Form::In(item, list) = &term.form else { return };
        if let (Some(_), Some((text, range))) = (path(item), constant(list)) {
            let fact = site.part(&item.range);
            out.add(
                site.span(range),
                format!("this asks whether `{fact}` is a part of a text"),
                |it| {
                    let it = it
                        .with_note(format!(
                            "it holds of each part of `{text}`, and of the empty text"
                        ))
                        .with_help(format!("write `in [{text:?}]`"));
                    with_edit(it, false, site.edit(range, &format!("[{text:?}]")))
                },
            );
        }
    });
}
