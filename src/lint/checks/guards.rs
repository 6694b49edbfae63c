//! Checks of guards.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use super::entries::{guards, kinds};
use super::regexes::tells_all;
use super::terms::{asked_with, each_wanted, is_input, last_argument};
use crate::logic::{follows, possible};
use crate::pairs::KnownPairs;
use crate::subject::PackEntry;
use crate::{Findings, Subject};
use policyd_fact_table::ast::{Expr, ExprKind, Relation};
use policyd_fact_table::paths::Fact;
use policyd_facts::covers;
use policyd_facts::event::TOOL_CALL_EVENTS;
use policyd_facts::glob::word_matches;
use policyd_yaml::memo::hash_of;
use policyd_yaml::node::Node;

/// Tools that run arbitrary commands.
const SHELLS: [&str; 2] = ["Bash", "PowerShell"];

pub(crate) fn guard_always_fires(subject: &Subject<'_>, out: &mut Findings) {
    for entry in guards(subject) {
        let decision = subject.said(entry, "decision").and_then(Node::text).unwrap_or_default();
        let narrowed = ["commands", "unless"].iter().any(|it| subject.said(entry, it).is_some());
        let always = match subject.said(entry, "when") {
            None => true,
            Some(_) => subject.sites_of(entry).iter().filter(|it| it.key == "when").any(|it| {
                matches!(it.term.as_ref().map(|it| &it.kind), Some(ExprKind::Bool(true)))
            }),
        };
        let is_off = entry.is("enabled", false) || subject.is_broken(entry);
        if !always || narrowed || is_off || !is_asked_of_calls(subject, entry) {
            continue;
        }
        let tools = subject.said(entry, "tools").map(Node::one_or_items);
        let shell = |it: &&str| tools.is_some_and(|tools| tools.iter().any(|node| node.says(it)));
        let name = entry.name();
        let message = match (decision, tools) {
            ("deny" | "block" | "ask" | "halt" | "defer", None) => {
                format!("`{name}` fires at every call of every tool")
            }
            ("allow", _) if subject.said(entry, "mode").is_some_and(|it| !it.says("enforce")) => {
                continue;
            }
            ("allow", None) => format!("`{name}` allows every call of every tool"),
            ("allow", Some(_)) => match SHELLS.iter().find(|it| shell(it)) {
                Some(tool) => format!("`{name}` allows every call of `{tool}`"),
                None => continue,
            },
            _ => continue,
        };
        let help = "add `tools: [Bash]`, `commands: [deploy]`, or `when`";
        out.help(entry.id.span.clone(), message, help);
    }
    allowed_for_a_part(subject, out);
}

/// Questions that a part of a command line answers, whatever else stands on it.
#[rustfmt::skip]
const OF_PARTS: [&str; 5] = [
    "action.runs", "action.programs.any_in", "action.programs.contains",
    "action.command.contains", "action.command.starts_with",
];
/// A text that a guard may allow.
struct AllowedText {
    name: &'static str,
    is: fn(Fact<'_>) -> bool,
    help: &'static str,
}

/// The whole command line.
const LINE: AllowedText =
    AllowedText { name: "action.command", is: |it| it.is("action.command"), help: "" };
/// Other texts, and how they are asked for.
const HELD: [AllowedText; 2] = [
    AllowedText {
        name: "action.address",
        is: |it| it.is("action.address"),
        help: "compare the start, including the `/` after the host: `action.address.starts_with(\"https://docs.rs/\")`",
    },
    AllowedText {
        name: "event.input(\"file_path\")",
        is: |it| is_input(it, "file_path"),
        help: "use globs: `action.reads([\"docs/**\"])`, `action.writes([\"docs/**\"])`",
    },
];
/// What tells all that a call does with files.
const OF_FILES: [&str; 5] =
    ["action.reads", "action.writes", "action.changes", "action.deletes", "action.touches"];

/// Tells of guards that allow a whole command line, an address or a path for a part of it.
fn allowed_for_a_part(subject: &Subject<'_>, out: &mut Findings) {
    for entry in guards(subject) {
        let said = |key: &str| subject.said(entry, key);
        let allows = said("decision").is_some_and(|it| it.says("allow"))
            && said("mode").is_none_or(|it| it.says("enforce"));
        let of_shells = said("commands").is_none()
            && said("tools").map(Node::one_or_items).is_none_or(|tools| {
                let fits = |tool: &str| {
                    tools.iter().filter_map(Node::text).any(|glob| word_matches(glob, tool))
                };
                subject.reviewed.meant.shell_tools().any(fits)
            });
        let Some(site) = subject.site(entry, "when").filter(|_| allows) else { continue };
        let Some(term) = site.term.as_deref() else { continue };
        let mut told = false;
        each_wanted(term, &mut |part| {
            if told {
                return;
            }
            if of_shells && asks_for_a_part(part) && !is_tied(term, &LINE) {
                told = true;
                let message = format!("`{}` allows every other program on the line", entry.name());
                out.add(site.span(&part.range), message, |it| {
                    it.with_note("an allow applies to the whole command line and skips the client's prompt")
                        .with_help("list the programs under `commands`: a line is allowed if all of its programs are")
                });
            }
            let held = HELD.iter().find(|it| holds_somewhere(part, it));
            if let Some(AllowedText { name, help, .. }) = held.filter(|it| !is_tied(term, it)) {
                told = true;
                let message = format!("`{}` allows other values of `{name}`, too", entry.name());
                out.help(site.span(&part.range), message, *help);
            }
        });
    }
}

/// Whether a part of a command line answers this.
fn asks_for_a_part(term: &Expr) -> bool {
    let among = if let ExprKind::In(_, list) = &term.kind {
        list.fact().is_some_and(|it| it.is("action.programs"))
    } else {
        false
    };
    let of_parts = term.fact().is_some_and(|it| it.is_one_of(&OF_PARTS));
    let pattern = asked_with(term, "matches").filter(|(owner, _)| LINE.is_owner_of(*owner));
    of_parts || among || pattern.is_some_and(|(_, (it, _))| !tells_all(it))
}

impl AllowedText {
    /// Whether a fact is the text, or is made of it.
    fn is_owner_of(&self, fact: Fact<'_>) -> bool {
        fact.owners().any(self.is)
    }

    /// The constant with which a function is asked about the text.
    fn asked_with<'t>(&self, term: &'t Expr, function: &str) -> Option<&'t str> {
        let (_, (text, _)) = asked_with(term, function).filter(|it| self.is_owner_of(it.0))?;
        Some(text)
    }
}

/// Whether a text is asked for what stands anywhere in it.
fn holds_somewhere(term: &Expr, held: &AllowedText) -> bool {
    let of_text = term.fact().is_some_and(|it| held.is_owner_of(it));
    let is_loose =
        |text: &str| !["^", "\\A", "(?i)^", "(?i)\\A"].iter().any(|it| text.starts_with(it));
    of_text
        && (last_argument(term, "contains").is_some()
            || held.asked_with(term, "matches").is_some_and(is_loose))
}

/// Whether a condition fixes the beginning of a text, so that other conditions only narrow it.
fn is_tied(term: &Expr, held: &AllowedText) -> bool {
    let is_line = held.name == LINE.name;
    let is_text = |it: &Expr| it.fact().is_some_and(held.is);
    if let ExprKind::And(items) = &term.kind {
        return items.iter().any(|it| is_tied(it, held));
    }
    if let ExprKind::Or(items) = &term.kind {
        return items.iter().all(|it| is_tied(it, held));
    }
    if let ExprKind::Compare(Relation::Equal, one, other) = &term.kind {
        let alone = |it: &Expr| is_line && it.fact().is_some_and(|it| it.is("action.programs.len"));
        return [one, other].into_iter().any(|it| is_text(it) || alone(it));
    }
    if let ExprKind::In(item, _) = &term.kind {
        return is_text(item);
    }
    let Some(fact) = term.fact() else { return false };
    let of_files = !is_line && fact.is_one_of(&OF_FILES);
    let begins = !is_line && last_argument(term, "starts_with").is_some();
    let tells = |text: &str| match is_line {
        true => tells_all(text),
        false => !holds_somewhere(term, held),
    };
    fact.is("action.programs.all_in")
        || of_files
        || (held.is_owner_of(fact)
            && (begins || held.asked_with(term, "matches").is_some_and(tells)))
}

/// Whether a guard is asked about calls of tools, and not of prompts or compactions alone.
fn is_asked_of_calls<'s>(subject: &Subject<'s>, entry: &PackEntry<'s>) -> bool {
    kinds(subject, entry).iter().any(|it| TOOL_CALL_EVENTS.contains(it))
}

/// Decisions by strictness.
const RANKS: [&[&str]; 5] = [&["allow"], &["defer"], &["ask"], &["deny", "block"], &["halt"]];

/// Returns the rank of a decision by strictness; none if the decision only adds text.
fn strictness(decision: &str) -> Option<usize> {
    RANKS.iter().position(|it| it.contains(&decision))
}

/// What depends on which words of a program are operands.
const OF_OPERANDS: [&str; 3] = ["program.operands", "program.names", "program.targets"];

/// Whether an expression asks for something that depends on them.
fn asks_for_operands(term: &Expr) -> bool {
    let mut found = false;
    term.visit(&mut |part| {
        found |= part.fact().is_some_and(|fact| OF_OPERANDS.iter().any(|it| fact.begins_with(it)));
    });
    found
}

/// A guard that is in force, as far as it can be compared with another one.
struct DecidingGuard<'s> {
    entry: &'s PackEntry<'s>,
    rank: usize,
    on: BTreeSet<&'s str>,
    tools: BTreeSet<&'s str>,
    commands: BTreeSet<&'s str>,
    /// All of these hold where it fires, each with its canonical text.
    when: Vec<(&'s Expr, Cow<'s, str>)>,
    /// Its exception as it is written.
    unless: Option<&'s str>,
    except: BTreeSet<&'s str>,
    on_error: Option<&'s str>,
    /// Hash of all that [`Self::covers`] reads.
    hash: u64,
}

impl<'s> DecidingGuard<'s> {
    fn of(subject: &'s Subject<'s>, entry: &'s PackEntry<'s>) -> Option<Self> {
        let text = |key: &str| subject.said(entry, key).and_then(Node::text);
        let soft = text("mode").is_some_and(|it| it != "enforce");
        if soft || entry.is("enabled", false) || subject.said(entry, "expires").is_some() {
            return None;
        }
        // Effects besides the decision happen whichever guard decides.
        if subject.said(entry, "updated_input").is_some() || is_off(subject, entry.file) {
            return None;
        }
        let list = |key: &str| {
            let list = subject.said(entry, key).map(Node::one_or_items).unwrap_or_default();
            list.iter().filter_map(Node::text).collect::<BTreeSet<_>>()
        };
        let on = Some(list("on")).filter(|it| !it.is_empty());
        let when = match entry.node.get("when") {
            Some(node) => conjunction(subject.site_of(Some(entry), node)?.term.as_deref()?),
            None if text("when").is_some() => return None,
            None => Vec::new(),
        };
        let mut guard = Self {
            entry,
            rank: strictness(text("decision")?)?,
            on: on.unwrap_or_else(|| BTreeSet::from(["pre_tool_use"])),
            tools: list("tools"),
            commands: list("commands"),
            except: list("except_commands"),
            when: when.into_iter().map(|it| (it, it.canonical())).collect(),
            unless: text("unless"),
            on_error: text("on_error"),
            hash: 0,
        };
        let when: Vec<&str> = guard.when.iter().map(|(_, text)| text.as_ref()).collect();
        let lists = (&guard.on, &guard.tools, &guard.commands, &guard.except);
        guard.hash = hash_of(&(lists, when, guard.unless, guard.on_error));
        Some(guard)
    }

    /// Whether it fires wherever another one does. What cannot be known must be so for both: all that this one
    /// asks, the other one asks, too.
    fn covers(&self, other: &Self, subject: &Subject<'_>) -> bool {
        let tools = self.tools.is_empty()
            || (!other.tools.is_empty() && self.tools.is_superset(&other.tools));
        let asks = |(it, wanted): &(&Expr, Cow<'_, str>)| {
            other.when.iter().any(|(part, from)| {
                let follows = || follows((it, true), (part, true), subject.names());
                from == wanted
                    || *subject.of_names("follows", &format!("{wanted}\0{from}"), follows)
            })
        };
        let covered = |it: &&str| self.commands.iter().any(|wider| covers::command(wider, it));
        // Which operands a program has depends on the pattern that it fits.
        let unless = || {
            self.unless.is_some_and(|it| Expr::parse(it).is_none_or(|it| asks_for_operands(&it)))
        };
        let of_operands = || self.when.iter().any(|(it, _)| asks_for_operands(it)) || unless();
        let commands = || {
            self.commands == other.commands
                || (other.commands.iter().all(covered) && !of_operands())
        };
        // A program whose name is not known is put before a guard that has a condition, and before no other.
        let meets_unknown =
            self.commands.is_empty() || !self.when.is_empty() || other.when.is_empty();
        self.on.is_superset(&other.on)
            && tools
            && self.commands.is_empty() == other.commands.is_empty()
            && commands()
            && (meets_unknown || other.on_error.is_none())
            && (self.unless.is_none() || self.unless == other.unless)
            && self.except.is_subset(&other.except)
            && (other.on_error.is_none() || self.on_error == other.on_error)
            && self.when.iter().all(asks)
    }
}

/// Whether the pack switches the set of a file of guards off.
fn is_off(subject: &Subject<'_>, file: &str) -> bool {
    let sets = subject.file("policyd.yaml").and_then(|it| it.get("guard_sets"));
    let set = sets.and_then(|it| it.get(file.trim_end_matches(".yaml")));
    set.and_then(Node::bool) == Some(false)
}

/// The parts that must all hold.
fn conjunction(term: &Expr) -> Vec<&Expr> {
    if let ExprKind::And(items) = &term.kind { items.iter().collect() } else { vec![term] }
}

/// Reports guards with the decision, the filters and the conditions of an earlier one.
fn duplicates(all: &[DecidingGuard<'_>], out: &mut Findings) {
    let mut seen = BTreeMap::new();
    for guard in all {
        let when: BTreeSet<&str> = guard.when.iter().map(|(_, text)| text.as_ref()).collect();
        let filters = (&guard.on, &guard.tools, &guard.commands, &guard.except);
        let key = (guard.rank, filters, when, guard.unless, guard.on_error);
        let Some(first) = seen.get(&key).copied() else {
            seen.insert(key, guard.entry);
            continue;
        };
        let message = format!("`{}` duplicates `{}`", guard.entry.name(), first.name());
        out.add(guard.entry.id.span.clone(), message, |it| {
            it.with_related(first.id.span.clone(), "the first one")
                .with_note("both have the same decision, filters and conditions")
                .with_help("delete one of them")
        });
    }
}

/// Maximum number of stricter guards that are compared with a guard.
const STRICTER_MAX: usize = 1000;

pub(crate) fn shadowed_guard(subject: &Subject<'_>, out: &mut Findings) {
    let sound = guards(subject).filter(|it| !subject.is_broken(it));
    let all: Vec<_> = sound.filter_map(|it| DecidingGuard::of(subject, it)).collect();
    duplicates(&all, out);
    for (guard, other) in shadows(&all, subject) {
        let names = subject.names();
        let (name, other) = (guard.entry.name(), other.entry);
        let fires: Vec<(&Expr, bool)> = guard.when.iter().map(|(it, _)| (*it, true)).collect();
        let example = possible(&fires, names).witness();
        let example = example.map_or_else(String::new, |it| format!("; both fire if {it}"));
        let message = format!("`{name}` never decides: `{}` does", other.name());
        out.add(guard.entry.id.span.clone(), message, |it| {
            it.with_related(other.id.span.clone(), "this one fires whenever the other does")
                .with_note(format!("the strictest decision of all guards applies{example}"))
                .with_help("add an exception to the stricter guard with `unless`")
        });
    }
}

/// Returns the guards that a stricter one covers, in their order, each with the first such guard.
fn shadows<'t, 's>(
    all: &'t [DecidingGuard<'s>],
    subject: &Subject<'_>,
) -> Vec<(&'t DecidingGuard<'s>, &'t DecidingGuard<'s>)> {
    let known =
        subject.of_names("pairs of guards", "", Mutex::<[KnownPairs; RANKS.len()]>::default);
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    let mut found = Vec::new();
    for (rank, known) in known.iter_mut().enumerate() {
        let of_rank = all.iter().enumerate().filter(|(_, it)| it.rank == rank);
        let items: Vec<_> = of_rank.map(|(at, it)| (it.hash, (at, it))).collect();
        let stricter = all.iter().filter(|it| it.rank > rank).take(STRICTER_MAX);
        let stricter: Vec<_> = stricter.map(|it| (it.hash, it)).collect();
        let covers =
            |(_, it): &(usize, &DecidingGuard<'_>), by: &&DecidingGuard<'_>| by.covers(it, subject);
        let related = known.first_related(&items, &stricter, covers);
        let pairs = items.iter().zip(related);
        found.extend(pairs.filter_map(|((_, (at, guard)), by)| Some((*at, *guard, *by?))));
    }
    found.sort_by_key(|(at, ..)| *at);
    found.into_iter().map(|(_, guard, other)| (guard, other)).collect()
}

pub(crate) fn guard_without_message(subject: &Subject<'_>, out: &mut Findings) {
    for entry in guards(subject).filter(|it| !subject.is_broken(it)) {
        let says = |key: &str| {
            subject.said(entry, key).is_some_and(|it| match it.items() {
                Some(texts) => !texts.is_empty(),
                None => it.text().is_some_and(|it| !it.trim().is_empty()),
            })
        };
        let decision = entry.node.get("decision").filter(|it| !it.says("allow"));
        let Some(decision) = decision.filter(|_| !entry.is("enabled", false)) else { continue };
        // What an exception to an inherited guard is for, a new guard has a message for.
        let mut keys = entry.node.entries().unwrap_or_default().iter().map(|(key, _)| key);
        let is_exception = subject.inherited(entry).is_some();
        let reason =
            keys.find(|it| it.says("reason")).filter(|_| !is_exception && !says("message"));
        if let Some(reason) = reason {
            let message = format!("the `reason` of `{}` is not shown", entry.name());
            out.add(reason.span.clone(), message, |it| {
                it.with_help("a guard shows its `message`; `reason` explains an exception")
                    .with_word("reason", "message")
            });
        } else if !says("message") && !says("description") {
            let message = format!("`{}` has no message", entry.name());
            out.add(decision.span.clone(), message, |it| {
                it.with_note("the agent or user sees only the id of the guard")
                    .with_help("add `message: …` with the reason and the alternative")
            });
        } else if let Some(last) = conditional_end(entry) {
            let message = format!("`{}` has no text if no `when` of its texts holds", entry.name());
            out.help(last.span.clone(), message, "add a last text without `when`");
        }
    }
}

/// Returns the condition of the last text of a guard.
fn conditional_end<'s>(entry: &'s PackEntry<'_>) -> Option<&'s Node> {
    entry.node.get("message")?.items()?.last()?.get("when")
}

/// What a guard looks at, by the key that lists it.
const FILTERS: [(&str, &str); 3] = [("tools", "tool"), ("commands", "program"), ("on", "event")];

pub(crate) fn empty_filter(subject: &Subject<'_>, out: &mut Findings) {
    for entry in guards(subject) {
        for (key, what) in FILTERS {
            let Some(list) = entry.node.get(key) else { continue };
            let names = list.one_or_items();
            let empty = names.iter().find(|it| it.text().is_none_or(|it| it.trim().is_empty()));
            if names.is_empty() {
                let message = format!("`{key}` is an empty list of {what}s");
                out.add(list.span.clone(), message, |it| {
                    it.with_note("a guard without a list applies to all of them")
                        .with_help(format!("list the {what}s, or remove `{key}`"))
                });
            } else if let Some(empty) = empty {
                let message = format!("`{key}` contains an empty name, which matches no {what}");
                out.help(empty.span.clone(), message, "delete it");
            }
        }
    }
}

pub(crate) fn no_shell_tool(subject: &Subject<'_>, out: &mut Findings) {
    for entry in guards(subject) {
        // Where an override names other tools, the inherited commands are looked for in vain.
        let own = entry.node.get("commands");
        let moved = subject.said(entry, "commands").and_then(|_| entry.node.get("tools"));
        let Some(commands) = own.or(moved) else { continue };
        let tools = subject.said(entry, "tools").map(Node::one_or_items);
        let mut shells = subject.reviewed.meant.shell_tools().peekable();
        if shells.peek().is_none() {
            out.add(commands.span.clone(), "this pack has no tool that runs commands", |it| {
                it.with_note("a guard with `commands` then never applies")
                    .with_help("extend `builtin`, or add `shell_tools` to vocabulary.yaml")
            });
        } else if let Some(tools) = tools {
            let mut names = tools.iter().filter_map(Node::text);
            let runs = |glob: &str| {
                glob.starts_with("mcp__")
                    || subject.reviewed.meant.shell_tools().any(|it| word_matches(glob, it))
            };
            if !tools.is_empty() && !names.any(runs) {
                out.add(commands.span.clone(), "none of these tools runs commands", |it| {
                    it.with_note("a guard with `commands` applies to programs of a command line")
                        .with_help(if own.is_some() {
                            "add `Bash` to `tools`, or remove `commands`"
                        } else {
                            "add `Bash` to `tools`, or write a separate guard"
                        })
                });
            }
        }
    }
}
