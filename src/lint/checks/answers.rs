//! Checks of expressions that read results of probes: the fields that a result has, and whether there is a result.

use std::collections::BTreeSet;

use super::identity::INHERITED;
use super::probes::{base_name, command};
use super::terms::{Constant, constant, each_part_with, sound};
use crate::subject::PackEntry;
use crate::{Findings, Subject};
use policyd_fact_table::paths::{Fact, FactStep};
use policyd_yaml::{Suggestion, suggest};

/// What asks for a place in an answer.
const AT_A_PLACE: [&str; 4] = ["text", "flag", "number", "list"];

pub(crate) fn field_of_string(subject: &Subject<'_>, out: &mut Findings) {
    let plain: BTreeSet<&str> = subject.reviewed.meant.text_probes().collect();
    if plain.is_empty() {
        return;
    }
    each_part_with(subject, &["probes"], |site, term| {
        let asked = term.fact().and_then(probe).filter(|(id, _)| plain.contains(id));
        let Some((id, (place, range))) = asked.and_then(|(id, it)| Some((id, place(it)?))) else {
            return;
        };
        if !place.is_empty() {
            let message =
                format!("the result of `probes.{id}` is plain text and has no field `{place}`");
            out.add(site.span(range), message, |it| {
                it.with_note("a missing field is empty, 0 or false")
                    .with_help("write `parse: json` in the probe, or read `text(\"\")`")
            });
        }
    });
}

/// Programs that answer with the fields that an option lists, and that option.
const LISTING: [(&str, &str); 2] = [("gh", "--json"), ("tea", "--fields")];
/// Options by which they answer with something else.
const FORMING: [&str; 4] = ["--jq", "-q", "--template", "-t"];

/// The fields that a command asks for, where it lists them.
fn fields_of<'w>(words: &[&'w str]) -> Option<Vec<&'w str>> {
    // Behind what only starts it, as in `timeout 5 gh …`.
    let (at, option) = words.iter().enumerate().find_map(|(at, word)| {
        let (_, option) = LISTING.iter().find(|(it, _)| *it == base_name(word))?;
        Some((at, *option))
    })?;
    let rest = words.get(at..)?;
    let is_formed = |it: &&str| FORMING.contains(&it.split('=').next().unwrap_or(it));
    if rest.iter().any(is_formed) {
        return None;
    }
    let behind = rest.windows(2).filter(|it| it.first() == Some(&option)).filter_map(<[_]>::last);
    let joined = rest.iter().filter_map(|it| it.strip_prefix(option)?.strip_prefix('='));
    let lists = behind.copied().chain(joined);
    let fields: Vec<&str> = lists.flat_map(|it| it.split(',').map(str::trim)).collect();
    let is_name =
        |it: &&str| !it.is_empty() && it.chars().all(|c| c.is_alphanumeric() || "_-".contains(c));
    (!fields.is_empty() && fields.iter().all(is_name)).then_some(fields)
}

/// The field that a place begins with: `labels` of `labels[].name`, and of `[0].labels`.
fn field_at(place: &str) -> &str {
    let place = match place.strip_prefix('[').and_then(|it| it.split_once(']')) {
        Some((_, rest)) => rest.trim_start_matches('.'),
        None => place,
    };
    place.split(['.', '[']).next().unwrap_or(place)
}

/// Returns the text in the first brackets of a field path that are not valid: `labels[*]`, `labels[name==bug]`.
fn odd_brackets(place: &str) -> Option<&str> {
    let mut inside = place.split('[').skip(1).map(|it| it.split(']').next().unwrap_or(it));
    // `[state=open]` are those whose field says so.
    let is_choice = |it: &str| {
        it.split_once('=').is_some_and(|(key, value)| !key.is_empty() && !value.starts_with('='))
    };
    inside.find(|it| !it.chars().all(|c| c.is_ascii_digit()) && !is_choice(it))
}

/// Fields that the inherited rules read of an inherited probe whose command no longer asks for them.
fn fields_left_out(subject: &Subject<'_>, out: &mut Findings) {
    // Who switches inherited rules off may have done so to these.
    if subject.of("considerations.yaml").any(|it| it.is("enabled", false)) {
        return;
    }
    for entry in subject.of("probes.yaml").filter(|it| subject.inherited(it).is_some()) {
        let Some(written) = entry.node.get("command") else { continue };
        let words: Vec<&str> = command(entry).into_iter().map(|(word, _)| word).collect();
        let Some(fields) = fields_of(&words) else { continue };
        let mut left_out = BTreeSet::new();
        for member in AT_A_PLACE {
            let asked = format!("probes.{}.{member}(\"", entry.name());
            let places = INHERITED.split(&asked).skip(1).filter_map(|it| it.split('"').next());
            left_out
                .extend(places.map(field_at).filter(|it| !it.is_empty() && !fields.contains(it)));
        }
        if !left_out.is_empty() {
            let names: Vec<String> = left_out.iter().map(|it| format!("`{it}`")).collect();
            let message = format!(
                "inherited rules read {}, which this command no longer requests",
                names.join(", ")
            );
            out.add(written.span.clone(), message, |it| {
                it.with_note("a missing field is empty, 0 or false")
                    .with_help("request these fields, too, or choose another id for the probe")
            });
        }
    }
}

pub(crate) fn field_not_asked(subject: &Subject<'_>, out: &mut Findings) {
    fields_left_out(subject, out);
    let commands = || subject.reviewed.meant.probe_commands();
    each_part_with(subject, &["probes"], |site, term| {
        let Some((id, asked)) = term.fact().and_then(probe) else { return };
        let Some((place, range)) = place(asked) else { return };
        if let Some(root) = ["$.", "/"].into_iter().find(|it| place.starts_with(it)) {
            let message = format!("the path of a field does not begin with `{root}`");
            out.add(site.span(range), message, |it| {
                it.with_note("the path matches nothing")
                    .with_help("begin with the name of a field: `state`, `items[0].name`")
            });
            return;
        }
        if let Some(odd) = odd_brackets(place) {
            let message = format!("`[{odd}]` is not valid in the path of a field");
            out.add(site.span(range), message, |it| {
                it.with_note("the path matches nothing").with_help(
                    "write `[]` for all items, `[0]` for the first one, `[name=x]` for a filter",
                )
            });
            return;
        }
        let field = field_at(place);
        let words = commands().find(|it| it.0 == id).map(|it| it.1);
        let Some(fields) = words.as_deref().and_then(fields_of) else { return };
        if field.is_empty() || fields.contains(&field) {
            return;
        }
        let message = format!("the command of `{id}` does not request `{field}`");
        let fix = match suggest::nearest(field, &fields) {
            Some(near) => Suggestion::word(
                near,
                place
                    .strip_prefix(field)
                    .and_then(|rest| site.edit(range, &format!("{:?}", format!("{near}{rest}")))),
            ),
            None => format!("add it to the command, next to {}", fields.join(", ")).into(),
        };
        out.add(site.span(range), message, |it| {
            it.with_note("a missing field is empty, 0 or false").suggest(fix)
        });
    });
}

pub(crate) fn disabled_probe(subject: &Subject<'_>, out: &mut Findings) {
    if !subject.sites.iter().any(|it| it.may_name(&["probes"])) {
        return;
    }
    let probes = subject.reviewed.meant.all_probes();
    let off: BTreeSet<&str> = probes.filter(|(_, on)| !on).map(|(id, _)| id).collect();
    if off.is_empty() {
        return;
    }
    for site in sound(subject).filter(|it| it.may_name(&["probes"])) {
        let own = subject.entry_of(site).filter(|it| !it.is("enabled", false));
        let Some(entry) = own.filter(|it| it.file != "checkers.yaml") else { continue };
        // Who asks, among other things, whether it answered goes on without it.
        let alone = site.term.as_deref().is_some_and(|it| it.fact().is_some());
        let mut told = if alone { BTreeSet::new() } else { guarded(subject, entry) };
        site.visit(|term| {
            let Some((id, _)) = term.fact().and_then(probe) else { return };
            if off.contains(id) && told.insert(id) {
                let message = format!("the probe `{id}` is disabled");
                out.add(site.span(&term.range), message, |it| {
                    it.with_note("policyd never runs it, so it has no result")
                        .with_help("enable the probe (`enabled: true`), or disable the rule")
                });
            }
        });
    }
}

/// The probe that a fact reads, and what it reads of it.
fn probe(fact: Fact<'_>) -> Option<(&str, FactStep<'_>)> {
    let mut steps = fact.steps().filter(|_| fact.begins_with("probes"));
    Some((steps.next()?.name, steps.next()?))
}

/// The place in an answer that is asked for.
fn place(asked: FactStep<'_>) -> Option<Constant<'_>> {
    constant(asked.arguments.first().filter(|_| AT_A_PLACE.contains(&asked.name))?)
}

/// Probes of which an entry asks whether they answered.
fn guarded<'s, 'a>(subject: &'s Subject<'a>, entry: &PackEntry<'a>) -> BTreeSet<&'s str> {
    let asks = |it: FactStep<'_>| ["ok", "error", "code", "verdict"].contains(&it.name);
    let mut guarded = BTreeSet::new();
    for site in subject.sites_of(entry).iter().filter(|it| it.condition) {
        site.visit(|term| {
            let asked = term.fact().and_then(probe).filter(|(_, it)| asks(*it));
            guarded.extend(asked.map(|(id, _)| id));
        });
    }
    guarded
}

pub(crate) fn unguarded_probe(subject: &Subject<'_>, out: &mut Findings) {
    if !out.is_strict() {
        return;
    }
    for entry in &subject.entries {
        let sites = || subject.sites_of(entry).iter().filter(|it| it.condition);
        let guarded = guarded(subject, entry);
        let mut told = BTreeSet::new();
        for site in sites().filter(|it| matches!(it.key, "satisfied" | "blocking")) {
            site.visit(|term| {
                let Some((id, _)) = term.fact().and_then(probe) else { return };
                if !guarded.contains(id) && told.insert(id) {
                    let message = format!("`probes.{id}` might have no result");
                    out.add(site.span(&term.range), message, |it| {
                        // A probe without a result does not block the agent.
                        let guard = match site.key {
                            "satisfied" => format!("write `!probes.{id}.ok || …`"),
                            _ => format!("write `probes.{id}.ok && …`"),
                        };
                        it.with_note(
                            "without a result, the rule is unknown, and `on_error` decides",
                        )
                        .with_help(guard)
                    });
                }
            });
        }
    }
}
