//! Checks of the names of tools, and of what tools are given.

use std::ops::Range;

use super::entries::{guards, kept_condition, kinds};
use super::slips::{slip, slip_of};
use super::terms::{asked, each_part_asking, each_part_with_text, named_ids};
use crate::site::Site;
use crate::subject::PackEntry;
use crate::{Findings, Subject};
use policyd_fact_table::paths::Fact;
use policyd_fact_table::types::PackName;
use policyd_facts::event::EventKind;
use policyd_facts::glob::word_matches;
use policyd_harness::claude_code::TOOLS;
use policyd_policy::guards::FILES;
use policyd_yaml::node::Node;
use policyd_yaml::{Suggestion, suggest};

/// Tools that clients have by all that is known.
pub(super) fn known_tools() -> &'static [&'static str] {
    &TOOLS
}

/// The tool that a name means up to case. Rules see the `shell` of other clients as `Bash`.
fn real_tool(name: &str) -> Option<&'static str> {
    if name != "shell" && name.eq_ignore_ascii_case("shell") {
        return Some("Bash");
    }
    TOOLS.iter().find(|it| it.eq_ignore_ascii_case(name)).copied()
}

pub(crate) fn unknown_tool(subject: &Subject<'_>, out: &mut Findings) {
    let own = || subject.reviewed.meant.tools();
    each_part_with_text(subject, |site, term| {
        for (name, range) in named_ids(term, PackName::Tool, site.names(subject.names())) {
            // Another client's tool may differ in case alone: it is meant where both are named.
            let real = real_tool(name);
            let other =
                real.is_some_and(|it| it != name && !site.text.contains(&format!("{it:?}")));
            let fine = name.is_empty()
                || name.starts_with("mcp__")
                || (!other && own().chain(TOOLS).any(|it| it == name));
            if fine {
                continue;
            }
            let message = format!("no client has a tool `{name}`");
            let known: Vec<&str> = TOOLS.into_iter().chain(own()).collect();
            let near = real.or_else(|| suggest::nearest(name, &known));
            out.add(site.span(range), message, |it| {
                let it = it.with_note("the condition never matches");
                match near {
                    Some(near) => it.suggest(site.word(range, near)),
                    None => it.with_help(
                        "names of MCP tools start with `mcp__`; add other tools that run commands or edit \
                         files to `shell_tools` or `edit_tools` of vocabulary.yaml",
                    ),
                }
            });
        }
    });
}

/// What is wrong with a name, and the similar name or other help.
pub(super) struct NameProblem {
    pub(super) message: String,
    near: Option<&'static str>,
    /// The help if no name is similar.
    help: String,
}

impl NameProblem {
    /// The suggestion for a name that is a scalar.
    pub(super) fn of(self, node: &Node) -> Suggestion {
        self.near.map_or_else(|| self.help.into(), |near| node.renamed(near))
    }
}

/// What is wrong with the name of a tool that a case lets an agent call, and the similar one.
pub(super) fn odd_tool(subject: &Subject<'_>, name: &str) -> Option<(String, String)> {
    let known: Vec<&str> = subject.reviewed.meant.tools().chain(TOOLS).collect();
    if name.starts_with("mcp__") || known.contains(&name) {
        return None;
    }
    let near = slip(name, &known)?;
    Some((format!("no client has a tool `{name}`"), near.to_owned()))
}

/// Whether a name can be that of a tool of an MCP server: `mcp__server__tool`, up to `*`.
fn is_mcp(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("mcp__") else { return false };
    // `.*` is how the regular expressions of some clients say `*`.
    (rest.contains("__") || rest.contains('*')) && !rest.contains(".*")
}

/// The tools of the server that a name begins with.
fn mcp_glob(name: &str) -> String {
    let name = name.replace(".*", "*");
    if name.ends_with('*') { name } else { format!("{}__*", name.trim_end_matches('_')) }
}

pub(crate) fn unknown_guard_tool(subject: &Subject<'_>, out: &mut Findings) {
    for entry in guards(subject) {
        let items = entry.node.get("tools").and_then(Node::items).unwrap_or_default();
        for item in items {
            let name = item.text().unwrap_or_default();
            let known: Vec<&str> = subject.reviewed.meant.tools().chain(TOOLS).collect();
            let fits = |it: &&str| word_matches(name, it);
            // Another client's tool may differ in case alone: it is meant where both are named.
            let real = real_tool(name).filter(|real| !items.iter().any(|it| it.says(real)));
            let other = real.is_some_and(|it| it != name);
            if is_mcp(name) || name == "*" || (!other && known.iter().any(fits)) {
                continue;
            }
            let near = real.or_else(|| suggest::nearest(name, &known));
            let fix = match near {
                _ if name.starts_with("mcp__") => item.rewritten(&mcp_glob(name)),
                Some(near) => item.renamed(near),
                None => "names of MCP tools start with `mcp__`".into(),
            };
            out.help(item.span.clone(), format!("no client has a tool `{name}`"), fix);
        }
    }
}

/// What the tools of Claude Code take, by its tool definitions. Other tools take what they like.
const INPUTS: [(&str, &[&str]); 13] = [
    ("Bash", &["command", "description", "timeout", "timeout_ms", "workdir", "run_in_background"]),
    ("PowerShell", &["command", "description", "timeout", "run_in_background"]),
    ("Read", &["file_path", "offset", "limit", "pages"]),
    ("Write", &["file_path", "content"]),
    ("Edit", &["file_path", "file_paths", "old_string", "new_string", "replace_all"]),
    ("MultiEdit", &["file_path", "edits"]),
    ("NotebookEdit", &["notebook_path", "cell_id", "new_source", "cell_type", "edit_mode"]),
    ("Glob", &["pattern", "path"]),
    (
        "Grep",
        &[
            "pattern",
            "path",
            "glob",
            "type",
            "output_mode",
            "head_limit",
            "offset",
            "multiline",
            "-A",
            "-B",
            "-C",
            "-i",
            "-n",
        ],
    ),
    ("WebFetch", &["url", "prompt"]),
    ("WebSearch", &["query", "allowed_domains", "blocked_domains"]),
    ("Agent", &["description", "prompt", "subagent_type", "model", "run_in_background"]),
    ("Task", &["description", "prompt", "subagent_type", "model", "run_in_background"]),
];

/// Fields of the tools that a guard looks at, where it names them and all of them are known.
pub(super) fn inputs(tools: &[Node]) -> Option<Vec<&'static str>> {
    let row = |it: &Node| INPUTS.iter().find(|(name, _)| it.says(name));
    let rows: Option<Vec<_>> = tools.iter().map(row).collect();
    let rows = rows.filter(|it| !it.is_empty())?;
    Some(rows.into_iter().flat_map(|(_, fields)| fields.iter().copied()).collect())
}

/// Facts about command lines.
const OF_COMMANDS: [&str; 6] = ["command", "understood", "endless", "programs", "runs", "sets"];
/// Facts about files that are changed.
const OF_CHANGES: [&str; 6] =
    ["written", "writes", "deletes", "changes", "changed", "changes_transcript"];

/// Tools that change a file, or read it, and leave it there.
const NEVER_DELETE: [&str; 5] = ["Edit", "MultiEdit", "NotebookEdit", "Read", "Write"];

pub(crate) fn unsupported_by_tool(subject: &Subject<'_>, out: &mut Findings) {
    let meant = &subject.reviewed.meant;
    for entry in guards(subject) {
        let tools = subject.said(entry, "tools").map(Node::one_or_items).unwrap_or_default();
        let names: Vec<&str> = tools.iter().filter_map(Node::text).collect();
        // The effects of other tools are unknown.
        let (Some(fields), [first, ..]) = (inputs(tools), tools) else { continue };
        let runs = meant.shell_tools().any(|it| names.contains(&it));
        let changes = meant.tools().any(|it| names.contains(&it));
        let reads = runs || meant.read_tools().any(|it| names.contains(&it));
        let fetches = fields.contains(&"url");
        let mut told: Vec<&str> = Vec::new();
        // What a fact asks for that none of the tools does, and its name.
        let lacking = |fact: Fact<'_>| -> Option<(&'static str, String)> {
            let fact = fact.steps().next().filter(|_| fact.begins_with("action"))?.name;
            let what = match fact {
                _ if OF_COMMANDS.contains(&fact) && !runs => "runs commands",
                _ if OF_CHANGES.contains(&fact) && !changes => "changes a file",
                "reads" if !reads => "reads a file",
                "touches" if !reads && !changes => "touches a file",
                "deletes" if !runs && names.iter().all(|it| NEVER_DELETE.contains(it)) => {
                    "deletes a file"
                }
                "address" if !fetches => "fetches an address",
                _ => return None,
            };
            Some((what, fact.to_owned()))
        };
        let message = |what: &str| format!("none of the tools of `{}` {what}", entry.name());
        for site in subject.sites_of(entry).iter().filter(|it| !subject.has_error(it)) {
            site.visit(|term| {
                let Some((what, fact)) = term.fact().and_then(lacking) else { return };
                if told.contains(&what) {
                    return;
                }
                told.push(what);
                out.add(site.span(&term.range), message(what), |it| {
                    let it = it.with_related(first.span.clone(), "the tools of the guard");
                    it.with_note(format!("they do not provide `action.{fact}`"))
                        .with_help("add another tool under `tools`, or use another fact")
                });
            });
        }
        let Some(moved) = entry.node.get("tools") else { continue };
        let kept = kept_condition(subject, entry);
        let missing = kept.as_ref().and_then(|it| it.needs(&|it| lacking(it).is_some()));
        if let Some((what, fact)) = missing.and_then(lacking) {
            out.add(moved.span.clone(), message(what), |it| {
                it.with_note(format!("the inherited condition requires `action.{fact}`"))
                    .with_help("write a condition for these tools, or a separate guard")
            });
        }
    }
}

/// Shorter fields are one letter from too many others: `page` and `pages`.
const TELLING_MIN: usize = 7;

/// What is wrong with the name of a field, and what to write. Tools of which nothing is known take what they
/// like: for them only what is one letter from a known field is a slip.
pub(super) fn odd_input(name: &str, known: Option<&[&'static str]>) -> Option<NameProblem> {
    let all = || INPUTS.iter().flat_map(|(_, fields)| fields.iter().copied());
    let Some(known) = known else {
        let near = slip_of(name, all().filter(|it| it.len() >= TELLING_MIN))?;
        let message = format!("no known tool accepts `{name}`");
        return Some(NameProblem { message, near: Some(near), help: String::new() });
    };
    if known.contains(&name) {
        return None;
    }
    if let Some(near) = suggest::nearest(name, known) {
        let message = format!("no such tool accepts `{name}`");
        return Some(NameProblem { message, near: Some(near), help: String::new() });
    }
    let message = format!("none of these tools accepts `{name}`");
    let help = format!("they accept {}", known.join(", "));
    all().any(|it| it == name).then_some(NameProblem { message, near: None, help })
}

/// Fields, and the tools that no client gives them: some clients put a patch into the `command` of a tool that
/// edits, and name what they search in their own words.
const NEVER_GIVEN: [(&str, &[&str]); 6] = [
    ("command", &["Read", "Glob", "Grep", "WebFetch"]),
    ("file_path", &["Bash", "WebFetch"]),
    ("content", &["Bash", "Read", "Glob", "Grep", "WebFetch"]),
    ("old_string", &["Bash", "Read", "Glob", "Grep", "WebFetch"]),
    ("new_string", &["Bash", "Read", "Glob", "Grep", "WebFetch"]),
    ("url", &["Bash", "Read", "Write", "Edit", "Glob", "Grep"]),
];

/// Whether none of the tools that a guard names is ever given this field.
fn never_given(subject: &Subject<'_>, guard: &PackEntry<'_>, field: &str) -> bool {
    let row = NEVER_GIVEN.iter().find(|(name, _)| *name == field);
    let tools = subject.said(guard, "tools").map(Node::one_or_items).unwrap_or_default();
    row.is_some_and(|(_, without)| tools.iter().all(|it| without.iter().any(|one| it.says(one))))
}

/// Writes numbers between periods as places in a list: `edits.0.old_string` as `edits[0].old_string`.
fn as_path(text: &str) -> String {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
    let mut path = String::new();
    for part in text.split('.') {
        match is_number(part) && !path.is_empty() {
            true => path.push_str(&format!("[{part}]")),
            false if path.is_empty() => path.push_str(part),
            false => path.push_str(&format!(".{part}")),
        }
    }
    path
}

/// What to write for `event.input` of a path: the list of the values there, or the first one if there is only one.
fn input_at_path(site: &Site<'_>, range: &Range<usize>, whole: &str) -> Suggestion {
    const CALL: &str = "event.input(";
    let path = as_path(whole);
    let call = range.start.saturating_sub(CALL.len())..range.end + 1;
    let is_call = site.part(&call).starts_with(CALL) && site.part(&call).ends_with(')');
    if !is_call || path.contains("[]") || path.contains('*') {
        return format!("write `event.inputs({path:?})`, a list").into();
    }
    site.write(&call, format!("event.inputs({path:?}).first()"))
}

pub(crate) fn misspelled_input(subject: &Subject<'_>, out: &mut Findings) {
    let known = |entry: Option<&PackEntry<'_>>| {
        let entry = entry.filter(|it| FILES.contains(&it.file))?;
        inputs(subject.said(entry, "tools")?.items()?)
    };
    for entry in guards(subject) {
        let fields = entry.node.get("updated_input").and_then(Node::entries).unwrap_or_default();
        let known = if fields.is_empty() { None } else { known(Some(entry)) };
        for (key, _) in fields {
            let name = key.text().unwrap_or_default();
            if let Some(problem) = odd_input(name, known.as_deref()) {
                out.help(key.span.clone(), problem.message.clone(), problem.of(key));
            }
        }
    }
    each_part_asking(subject, &["input", "inputs"], |site, term| {
        let asked =
            asked(term).filter(|(fact, _)| fact.is_one_of(&["event.input", "event.inputs"]));
        let Some((fact, names)) = asked else { return };
        let is_path = fact.is("event.inputs");
        // After a call, some clients report the input under their own names.
        let before = subject.entry_of(site).filter(|it| {
            let kinds = kinds(subject, it);
            kinds.iter().all(|it| *it == EventKind::PreToolUse)
        });
        let known = known(before).filter(|it| !it.is_empty());
        let own = |name: &str| known.as_ref().is_some_and(|it| slip(name, it).is_some());
        for (whole, range) in names {
            let name = whole.split(['.', '[']).next().unwrap_or(whole);
            if name != whole && !is_path {
                let message = "`event.input` takes the name of a field, not a path".to_owned();
                out.help(site.span(range), message, input_at_path(site, range, whole));
                continue;
            }
            let never = || before.is_some_and(|it| never_given(subject, it, name));
            if known.is_some() && !own(name) && !never() {
                continue;
            }
            if let Some(NameProblem { message, near, help }) = odd_input(name, known.as_deref()) {
                let near = near.map(|it| site.word(range, &whole.replacen(name, it, 1)));
                out.help(site.span(range), message, near.unwrap_or_else(|| help.into()));
            }
        }
    });
}
