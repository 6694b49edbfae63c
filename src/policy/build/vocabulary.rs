//! The vocabulary: named kinds of commands, files and texts, the layers of all packs joined.

use std::collections::BTreeMap;

use super::{Shared, patterns, text, texts};
use crate::facts::call::{
    CodeCall, FileEffect, Interpreter, OperandSelector, ProgramDatabase, ShellValue,
};
use crate::facts::lens::{CommandKind, ContentPattern, FileKindRow, Lens, ValueOptions, Wrapper};
use crate::facts::pattern::CommandPattern;
use crate::policy::builtin;
use crate::script::pattern::{KeptPattern, TextPatternSource, compile_regex};
use crate::source::Diagnostic;
use crate::source::node::Node;

/// File kinds that content patterns name must exist.
fn check_file_kinds(nodes: &[Shared<Node>], lens: &Lens, diagnostics: &mut Vec<Diagnostic>) {
    let known: Vec<&str> = lens.files.iter().map(|it| it.name.as_str()).collect();
    let entries = nodes.iter().filter_map(|it| it.get("contents")?.entries()).flatten();
    let named = entries.flat_map(|(_, entry)| {
        ["files", "except_files"].into_iter().filter_map(|key| entry.get(key)?.items())
    });
    for node in named.flatten() {
        let name = node.text().unwrap_or_default();
        if !known.contains(&name) {
            let message = format!("there is no file kind `{name}`");
            let found = Diagnostic::error("unknown-name", node.span.clone(), message);
            diagnostics.push(found.with_meant(name, &known));
        }
    }
}

/// What all vocabularies say together.
#[derive(Debug, Clone)]
pub(in crate::policy) struct Vocabulary {
    pub(in crate::policy) lens: Lens,
    pub(in crate::policy) texts: BTreeMap<String, KeptPattern>,
    pub(in crate::policy) stop_words: Vec<String>,
    pub(in crate::policy) main_branches: Vec<String>,
    /// Forges by name, with what the host of a remote there contains.
    pub(in crate::policy) forges: Vec<(String, Vec<String>)>,
    /// What is known of programs.
    pub(in crate::policy) knowledge: ProgramDatabase,
}

impl Vocabulary {
    /// Every command pattern in it.
    pub(in crate::policy) fn patterns(&self) -> impl Iterator<Item = &str> {
        let Lens { wrappers, value_options, commands, .. } = &self.lens;
        let ProgramDatabase { interpreters, effects, shell_values, .. } = &self.knowledge;
        let wrappers = wrappers.iter().map(|it| it.command.as_str());
        let options = value_options.iter().map(|it| it.program.as_str());
        let kinds = commands.iter().flat_map(|it| it.programs.iter().chain(&it.except));
        let interpreters = interpreters.iter().map(|it| it.program.as_str());
        let effects = effects.iter().flat_map(|it| it.programs.iter().chain(&it.except));
        let shell_values = shell_values.iter().flat_map(|it| &it.programs);
        let patterns = effects.chain(shell_values).map(CommandPattern::as_str);
        let texts = wrappers.chain(options).chain(kinds.map(String::as_str));
        texts.chain(interpreters).chain(patterns)
    }
}

/// Joins vocabularies, topmost first: lists are joined, also those of entries with the same name,
/// unless the upper entry says `override: true`.
pub(super) fn vocabulary(nodes: &[Shared<Node>], diagnostics: &mut Vec<Diagnostic>) -> Vocabulary {
    // A test proves those of the built-in pack: compiling them was most of what loading it cost.
    let regexes =
        nodes.iter().flat_map(|it| regexes(it)).filter(|it| !builtin::wrote(&it.span.source));
    for regex in regexes {
        if let Err(why) = regex.text().map_or(Ok(()), |it| compile_regex(it).map(|_| ())) {
            let message = format!("the regex is not valid: {why}");
            diagnostics.push(Diagnostic::error("bad-regex", regex.span.clone(), message));
        }
    }
    let joined = |key: &str| nodes.iter().flat_map(|it| texts(it.get(key))).collect::<Vec<_>>();
    let wrappers = nodes.iter().filter_map(|it| it.get("wrappers")?.items()).flatten();
    let lens = Lens {
        shell_tools: joined("shell_tools"),
        edit_tools: joined("edit_tools"),
        wrappers: wrappers.map(wrapper).collect::<Vec<_>>().into(),
        value_options: named(nodes, "value_options")
            .map(|(program, entry)| ValueOptions { program, options: entry.whole() })
            .collect::<Vec<_>>()
            .into(),
        commands: named(nodes, "commands")
            .map(|(name, entry)| CommandKind {
                name,
                programs: entry.list("programs"),
                except: entry.list("except"),
                failed: entry.list("failed"),
                failed_if_hidden: entry.list("failed_if_hidden"),
                empty: entry.list("empty"),
                passed: entry.list("passed"),
                passed_unless_empty: entry.list("passed_unless_empty"),
            })
            .collect::<Vec<_>>()
            .into(),
        files: named(nodes, "files")
            .map(|(name, entry)| FileKindRow {
                name,
                globs: entry.list("globs"),
                except: entry.list("except"),
            })
            .collect::<Vec<_>>()
            .into(),
        contents: named(nodes, "contents")
            .map(|(name, entry)| ContentPattern {
                name,
                regexes: entry.list("regexes"),
                files: entry.list("files"),
                except_files: entry.list("except_files"),
                unless: entry.list("unless"),
            })
            .collect::<Vec<_>>()
            .into(),
    };
    check_file_kinds(nodes, &lens, diagnostics);
    let patterns = named(nodes, "texts").map(|(name, entry)| {
        let source = TextPatternSource {
            phrases: entry.list("phrases"),
            regexes: entry.list("regexes"),
            unless: entry.list("unless"),
        };
        (name, source.into())
    });
    let forges = named(nodes, "forges").map(|(name, entry)| (name, entry.whole())).collect();
    let (stop_words, main_branches) = (joined("stop_words"), joined("main_branches"));
    let knowledge = knowledge(nodes);
    Vocabulary { lens, texts: patterns.collect(), stop_words, main_branches, forges, knowledge }
}

/// A named entry over all layers, topmost first.
#[derive(Default)]
struct Named<'n>(Vec<&'n Node>);

impl Named<'_> {
    /// A list of all layers, joined.
    fn list(&self, key: &str) -> Vec<String> {
        self.0.iter().flat_map(|it| texts(it.get(key))).collect()
    }

    /// Entries that are lists themselves, joined.
    fn whole(&self) -> Vec<String> {
        self.0.iter().flat_map(|it| texts(Some(it))).collect()
    }
}

/// Entries of a map over all layers; one with `override: true` hides those below it.
fn named<'n>(nodes: &'n [Shared<Node>], key: &'n str) -> impl Iterator<Item = (String, Named<'n>)> {
    let mut found: BTreeMap<String, (Named<'n>, bool)> = BTreeMap::new();
    let entries = nodes.iter().filter_map(move |it| it.get(key)?.entries()).flatten();
    for (name, node) in entries {
        let (layers, hides) = found.entry(text(Some(name))).or_default();
        if !*hides {
            layers.0.push(node);
            *hides = node.get("override").and_then(Node::bool).unwrap_or(false);
        }
    }
    found.into_iter().map(|(name, (layers, _))| (name, layers))
}

/// What all vocabularies know of programs, topmost first.
fn knowledge(nodes: &[Shared<Node>]) -> ProgramDatabase {
    let rows =
        |key: &'static str| nodes.iter().filter_map(move |it| it.get(key)?.items()).flatten();
    let which = |node: &Node, key: &str| OperandSelector::find(&text(node.get(key)));
    let effect = |it: &Node| FileEffect {
        programs: patterns(it.get("programs")),
        except: patterns(it.get("except")),
        read: which(it, "read"),
        write: which(it, "write"),
        delete: which(it, "delete"),
        saves: which(it, "saves"),
        read_options: texts(it.get("read_options")),
        write_options: texts(it.get("write_options")),
        folder_options: texts(it.get("folder_options")),
    };
    let interpreter = |it: &Node| Interpreter {
        program: text(it.get("program")),
        code: texts(it.get("code")),
        other: texts(it.get("other")),
        first: it.get("first").and_then(Node::bool).unwrap_or(false),
    };
    let call = |it: &Node| CodeCall {
        call: text(it.get("call")),
        like: texts(it.get("like")),
        only: texts(it.get("only")),
    };
    let shell_value = |it: &Node| ShellValue {
        programs: patterns(it.get("programs")),
        options: texts(it.get("options")),
        after: texts(it.get("after")),
    };
    ProgramDatabase {
        interpreters: rows("interpreters").map(interpreter).collect(),
        effects: rows("file_effects").map(effect).collect(),
        calls: rows("code_calls").map(call).collect(),
        shell_values: rows("shell_values").map(shell_value).collect(),
        read_tools: nodes.iter().flat_map(|it| texts(it.get("read_tools"))).collect(),
    }
}

fn wrapper(node: &Node) -> Wrapper {
    let skip = node.get("skip").and_then(Node::int).unwrap_or(0);
    Wrapper {
        command: text(node.get("command")).trim().to_owned(),
        value_options: texts(node.get("value_options")),
        skip: usize::try_from(skip).unwrap_or(0),
        shell_option: text(node.get("shell_option")),
        check_option: text(node.get("check_option")),
        folder_options: texts(node.get("folder_options")),
        kept: node.get("kept").and_then(Node::bool).unwrap_or(false),
    }
}

/// Every regex written in a vocabulary.
fn regexes(node: &Node) -> Vec<&Node> {
    let keys = [
        "failed",
        "failed_if_hidden",
        "empty",
        "passed",
        "passed_unless_empty",
        "regexes",
        "unless",
    ];
    let sections = ["commands", "contents", "texts"];
    let entries = sections.iter().filter_map(|it| node.get(it)?.entries()).flatten();
    entries
        .flat_map(|(_, entry)| keys.iter().filter_map(|it| entry.get(it)?.items()))
        .flatten()
        .collect()
}
