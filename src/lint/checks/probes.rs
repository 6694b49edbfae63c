//! Checks of probes: what they run, and what is asked of their answers.

use std::collections::BTreeSet;

use super::identity::INHERITED;
use super::terms::{constant, each_part_with, path, sound};
use crate::lint::subject::Entry;
use crate::lint::{Findings, Subject};
use crate::script::tree::Form;
use crate::source::node::Node;
use crate::source::suggest;

/// The words of a probe's command.
pub(super) fn command<'s>(entry: &'s Entry<'_>) -> Vec<(&'s str, &'s Node)> {
    let words = entry.node.get("command").and_then(Node::items).unwrap_or_default();
    words.iter().filter_map(|it| Some((it.text()?, it))).collect()
}

/// The name of a program without its folder, and without what Windows ends it with.
pub(super) fn base_name(program: &str) -> &str {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    name.strip_suffix(".exe").unwrap_or(name)
}

pub(super) const SHELLS: [&str; 9] =
    ["sh", "bash", "zsh", "dash", "fish", "ksh", "cmd", "powershell", "pwsh"];

pub(in crate::lint) fn shell_probe(subject: &Subject<'_>, out: &mut Findings) {
    for entry in subject.of("probes.yaml") {
        if let Some((program, node)) =
            command(entry).first().filter(|(it, _)| SHELLS.contains(&base_name(it)))
        {
            out.add(node.span.clone(), format!("this probe runs the shell `{program}`"), |it| {
                it.with_note("what a shell makes of a text depends on that text")
                    .with_help("name the program and its arguments")
            });
        }
    }
}

/// Beginnings of commands that change something.
const WRITING: [&[&str]; 18] = [
    &["rm"],
    &["mv"],
    &["cp"],
    &["tee"],
    &["dd"],
    &["chmod"],
    &["kill"],
    &["git", "push"],
    &["git", "commit"],
    &["git", "checkout"],
    &["git", "reset"],
    &["git", "merge"],
    &["git", "clean"],
    &["gh", "pr", "merge"],
    &["gh", "pr", "close"],
    &["gh", "pr", "create"],
    &["glab", "mr", "merge"],
    &["sed", "-i"],
];

pub(in crate::lint) fn writing_probe(subject: &Subject<'_>, out: &mut Findings) {
    for entry in subject.of("probes.yaml") {
        let words = command(entry);
        let begins = |row: &&&[&str]| {
            row.len() <= words.len()
                && row.iter().zip(&words).all(|(wanted, (word, _))| base_name(word) == *wanted)
        };
        if let (Some(row), Some((_, node))) = (WRITING.iter().find(begins), words.first()) {
            out.add(node.span.clone(), format!("`{}` changes something", row.join(" ")), |it| {
                it.with_note("a probe is run at stops, and again whenever its answer is too old")
                    .with_help("ask only: `gh pr view`, `git status`")
            });
        }
    }
}

pub(in crate::lint) fn relative_program(subject: &Subject<'_>, out: &mut Findings) {
    for entry in subject.of("probes.yaml") {
        let first = command(entry).into_iter().next();
        let lies_here =
            |it: &str| it.contains('/') && !it.starts_with(['/', '~']) && !is_expanded(it);
        if let Some((program, node)) = first.filter(|(it, _)| lies_here(it)) {
            let message = format!("`{program}` lies in the project");
            out.add(node.span.clone(), message, |it| {
                it.with_note("the agent that is judged can change it")
                    .with_help("name a program that is installed, or ignore this with a reason")
            });
        }
    }
}

pub(in crate::lint) fn probe_without_cure(subject: &Subject<'_>, out: &mut Findings) {
    for entry in subject.of("probes.yaml") {
        let told = subject.inherited(entry).is_some() || entry.node.get("missing").is_some();
        if !told && entry.node.get("command").is_some() && !entry.is("enabled", false) {
            let message =
                format!("`{}` does not say what to do where its program is missing", entry.name());
            out.help(entry.id.span.clone(), message, "write `missing: …`");
        }
    }
}

/// What only a shell makes something of, where it is a word of its own.
const OF_SHELLS: [&str; 7] = ["|", "||", "&&", ">", ">>", "2>&1", "2>/dev/null"];

/// Programs that look for the word behind them: `git grep "|"`.
const SEARCHING: [&str; 7] = ["grep", "egrep", "fgrep", "rg", "ag", "ack", "tr"];

/// Programs that hand their words to a shell, or read a language of their own.
const INTERPRETERS: [&str; 23] = [
    "test",
    "[",
    "ssh",
    "node",
    "deno",
    "bun",
    "python",
    "python3",
    "perl",
    "ruby",
    "awk",
    "gawk",
    "jq",
    "expr",
    "envsubst",
    "su",
    "watch",
    "script",
    "tmux",
    "screen",
    "parallel",
    "adb",
    "nix-shell",
];

pub(in crate::lint) fn shell_words(subject: &Subject<'_>, out: &mut Findings) {
    let commands = subject.entries.iter().filter(|it| {
        matches!(it.file, "probes.yaml" | "escalation.yaml") && it.node.get("command").is_some()
    });
    for entry in commands {
        let words = command(entry);
        if let [(only, node)] = words.as_slice()
            && let Some((program, _)) = only.split_once(' ')
            && !program.contains(['/', '\\'])
        {
            let message = format!("there is no program `{only}`");
            let split: Vec<&str> = only.split_whitespace().collect();
            out.add(node.span.clone(), message, |it| {
                it.with_note("each word of a command is a text of its own")
                    .with_help(format!("write `command: [{}]`", split.join(", ")))
            });
        }
        if words.iter().any(|(it, _)| reads_its_words(base_name(it))) {
            continue;
        }
        if let Some((word, node)) = words.first().filter(|(it, _)| for_a_line(it)) {
            out.add(node.span.clone(), format!("`{word}` is no program"), |it| {
                it.with_note("no shell reads this: the first word is the program that is started")
                    .with_help("name the program first; `env` starts one with variables")
            });
        }
        for (at, (word, node)) in words.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|it| words.get(it)).map(|(it, _)| *it);
            // The value of an option may look like one.
            let is_value = before.is_some_and(|it| it.starts_with('-'));
            if at > 0 && is_glued(word) && !is_value && !searches(&words) {
                let split: Vec<&str> = word.splitn(2, ' ').collect();
                out.add(node.span.clone(), format!("`{word}` is one word"), |it| {
                    it.with_note("no option has a blank in its name")
                        .with_help(format!("write `{}`", split.join(", ")))
                });
            } else if for_a_shell(word, before) || (is_expanded(word) && !searches(&words)) {
                out.add(node.span.clone(), format!("no shell reads `{word}`"), |it| {
                    it.with_note("the program gets it as a word like any other")
                        .with_help("ask the program itself, or name a script of yours that does")
                });
            }
        }
    }
}

/// Whether a program makes something of its words that no shell made of them.
pub(super) fn reads_its_words(program: &str) -> bool {
    SHELLS.contains(&program) || INTERPRETERS.contains(&program)
}

/// Whether a word means something at the beginning of a line of a shell alone: `cd`, `A=b`.
fn for_a_line(word: &str) -> bool {
    let is_name = |it: &str| {
        !it.is_empty()
            && it.bytes().all(|c| c.is_ascii_uppercase() || c == b'_' || c.is_ascii_digit())
    };
    matches!(
        word,
        "cd" | "export" | "source" | "set" | "exec" | "eval" | "if" | "for" | "while" | "!"
    ) || word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// Whether an option and its value are one word: `--output-format json`.
fn is_glued(word: &str) -> bool {
    word.strip_prefix("--").and_then(|it| it.split_once(' ')).is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-')
    })
}

/// Whether a word behind another one is a sign of a shell, or a hole.
fn for_a_shell(word: &str, before: Option<&str>) -> bool {
    let hole = word.contains("${") || word.starts_with("$(") || word.starts_with('`');
    // The value of an option may be a sign: `cut -d "|"`.
    before.is_some_and(|before| {
        let sign = OF_SHELLS.contains(&word) && !SEARCHING.contains(&base_name(before));
        (sign || hole) && !before.starts_with('-')
    })
}

/// Whether a word begins with the home folder or a variable, or has such a value: `~/x`, `--file=$HOME/x`.
fn is_expanded(word: &str) -> bool {
    let value = word.rsplit('=').next().unwrap_or(word);
    // Programs have a `$` of their own, in small letters: `sed -n $p`.
    let begins = |it: &str| {
        let of_name = |c: char| c.is_ascii_uppercase() || c == '_';
        let Some(after) = it.strip_prefix('$') else { return false };
        let braced = after.strip_prefix('{').and_then(|it| it.split_once('}'));
        let end = after.find(|c| !of_name(c)).unwrap_or(after.len());
        let (name, rest) = braced.unwrap_or_else(|| after.split_at(end));
        name.len() > 1 && name.chars().all(of_name) && (rest.is_empty() || rest.starts_with('/'))
    };
    word.starts_with("~/") || begins(word) || begins(value)
}

/// Whether one of the words looks for what stands behind it.
fn searches(words: &[(&str, &Node)]) -> bool {
    words.iter().any(|(it, _)| SEARCHING.contains(&base_name(it)))
}

/// What asks for a place in an answer.
const AT_A_PLACE: [&str; 4] = ["text", "flag", "number", "list"];

pub(in crate::lint) fn place_in_text(subject: &Subject<'_>, out: &mut Findings) {
    let plain: BTreeSet<&str> = subject.reviewed.meant.text_probes().collect();
    if plain.is_empty() {
        return;
    }
    each_part_with(subject, &["probes"], |site, term| {
        let Form::Fact(path, arguments) = &term.form else { return };
        let Some((id, asked)) = probe(path).filter(|(id, _)| plain.contains(id)) else { return };
        let (Some((name, _)), Some((place, range))) =
            (asked.split_once('('), arguments.first().and_then(constant))
        else {
            return;
        };
        if AT_A_PLACE.contains(&name) && !place.is_empty() {
            let message = format!("`probes.{id}` answers with a text, which has no `{place}`");
            out.add(site.span(range), message, |it| {
                it.with_note("what is not there is empty, 0 or false")
                    .with_help("write `parse: json` at the probe, or ask for `text(\"\")`")
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

/// What stands in brackets of a place and is neither nothing nor a number: `labels[*]`, `labels[name==bug]`.
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
            let message =
                format!("inherited rules read {}, which this no longer asks for", names.join(", "));
            out.add(written.span.clone(), message, |it| {
                it.with_note("what is not there is empty, 0 or false")
                    .with_help("ask for them, too, or write a probe of another id")
            });
        }
    }
}

pub(in crate::lint) fn field_not_asked(subject: &Subject<'_>, out: &mut Findings) {
    fields_left_out(subject, out);
    let commands = || subject.reviewed.meant.probe_commands();
    each_part_with(subject, &["probes"], |site, term| {
        let Form::Fact(path, arguments) = &term.form else { return };
        let Some((id, asked)) = probe(path) else { return };
        let name = asked.split_once('(').map(|it| it.0).filter(|it| AT_A_PLACE.contains(it));
        let place = arguments.first().and_then(constant).filter(|_| name.is_some());
        let Some((place, range)) = place else { return };
        if let Some(odd) = odd_brackets(place) {
            let message = format!("`[{odd}]` is no part of a place in an answer");
            out.add(site.span(range), message, |it| {
                it.with_note("nothing is found there").with_help(
                    "write `[]` for all of a list, `[0]` for the first, `[name=x]` for some",
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
        let message = format!("the command of `{id}` does not ask for `{field}`");
        let meant = suggest::did_you_mean(field, &fields);
        out.add(site.span(range), message, |it| {
            it.with_note("what is not there is empty, 0 or false").with_help(
                meant.unwrap_or_else(|| {
                    format!("name it in the command, beside {}", fields.join(", "))
                }),
            )
        });
    });
}

pub(in crate::lint) fn disabled_probe(subject: &Subject<'_>, out: &mut Findings) {
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
        let alone = site.term.as_deref().is_some_and(|it| path(it).is_some());
        let mut told = if alone { BTreeSet::new() } else { guarded(subject, entry) };
        site.visit(|term| {
            let Some((id, _)) = path(term).and_then(probe) else { return };
            if off.contains(id) && told.insert(id) {
                let message = format!("the probe `{id}` is switched off");
                out.add(site.span(&term.range), message, |it| {
                    it.with_note("it is never run, and answers nobody")
                        .with_help("switch it on (`enabled: true`), or the rule off")
                });
            }
        });
    }
}

/// The probe a path reads, and what it reads of it.
fn probe(path: &str) -> Option<(&str, &str)> {
    let (id, rest) = path.strip_prefix("probes.")?.split_once('.')?;
    Some((id, rest))
}

/// Probes of which an entry asks whether they answered.
fn guarded<'s, 'a>(subject: &'s Subject<'a>, entry: &Entry<'a>) -> BTreeSet<&'s str> {
    let asks =
        |it: &str| ["ok", "error", "code", "verdict("].iter().any(|known| it.starts_with(known));
    let mut guarded = BTreeSet::new();
    for site in subject.sites_of(entry).iter().filter(|it| it.condition) {
        site.visit(|term| {
            let asked = path(term).and_then(probe).filter(|(_, rest)| asks(rest));
            guarded.extend(asked.map(|(id, _)| id));
        });
    }
    guarded
}

pub(in crate::lint) fn unguarded_probe(subject: &Subject<'_>, out: &mut Findings) {
    for entry in &subject.entries {
        let sites = || subject.sites_of(entry).iter().filter(|it| it.condition);
        let guarded = guarded(subject, entry);
        let mut told = BTreeSet::new();
        for site in sites().filter(|it| matches!(it.key, "satisfied" | "blocking")) {
            site.visit(|term| {
                let Some((id, _)) = path(term).and_then(probe) else { return };
                if !guarded.contains(id) && told.insert(id) {
                    let message = format!("`probes.{id}` may not have answered");
                    out.add(site.span(&term.range), message, |it| {
                        // An agent is not held for what nobody answered.
                        let guard = match site.key {
                            "satisfied" => format!("write `!probes.{id}.ok || …`"),
                            _ => format!("write `probes.{id}.ok && …`"),
                        };
                        it.with_note(
                            "where it has not, the rule cannot be judged, and `on_error` decides",
                        )
                        .with_help(guard)
                    });
                }
            });
        }
    }
}
