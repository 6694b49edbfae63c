//! The vocabulary: named kinds of commands, files and texts, the layers of all packs joined.

use std::collections::BTreeMap;

use super::{text, texts};
use crate::facts::lens::{CommandKind, ContentPattern, FileKindRow, Lens, ValueOptions, Wrapper};
use crate::policy::builtin;
use crate::script::pattern::{TextPatternSource, compile_regex};
use crate::source::Diagnostic;
use crate::source::node::Node;

/// What all vocabularies say together.
pub(super) struct Vocabulary {
    pub(super) lens: Lens,
    pub(super) texts: BTreeMap<String, TextPatternSource>,
    pub(super) stop_words: Vec<String>,
}

/// Joins vocabularies, topmost first: a name replaces the inherited one, lists are joined.
pub(super) fn vocabulary(nodes: &[Node], diagnostics: &mut Vec<Diagnostic>) -> Vocabulary {
    // A test proves those of the built-in pack: compiling them was most of what loading it cost.
    let regexes = nodes.iter().flat_map(regexes).filter(|it| !builtin::wrote(&it.span.source));
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
        wrappers: wrappers.map(wrapper).collect(),
        value_options: named(nodes, "value_options")
            .map(|(program, node)| ValueOptions { program, options: texts(Some(node)) })
            .collect(),
        commands: named(nodes, "commands").map(|(name, node)| command_kind(name, node)).collect(),
        files: named(nodes, "files")
            .map(|(name, node)| FileKindRow {
                name,
                globs: texts(node.get("globs")),
                except: texts(node.get("except")),
            })
            .collect(),
        contents: named(nodes, "contents").map(|(name, node)| content(name, node)).collect(),
    };
    let patterns = named(nodes, "texts").map(|(name, node)| {
        let source = TextPatternSource {
            phrases: texts(node.get("phrases")),
            regexes: texts(node.get("regexes")),
            unless: texts(node.get("unless")),
        };
        (name, source)
    });
    Vocabulary { lens, texts: patterns.collect(), stop_words: joined("stop_words") }
}

/// Entries of a map over all layers; the topmost layer that has a name wins.
fn named<'n>(nodes: &'n [Node], key: &'n str) -> impl Iterator<Item = (String, &'n Node)> {
    let mut found: BTreeMap<String, &'n Node> = BTreeMap::new();
    let entries = nodes.iter().filter_map(move |it| it.get(key)?.entries()).flatten();
    for (name, node) in entries {
        found.entry(text(Some(name))).or_insert(node);
    }
    found.into_iter()
}

fn wrapper(node: &Node) -> Wrapper {
    let skip = node.get("skip").and_then(Node::int).unwrap_or(0);
    Wrapper {
        command: text(node.get("command")),
        value_options: texts(node.get("value_options")),
        skip: usize::try_from(skip).unwrap_or(0),
        shell_option: text(node.get("shell_option")),
    }
}

fn command_kind(name: String, node: &Node) -> CommandKind {
    CommandKind {
        name,
        programs: texts(node.get("programs")),
        except: texts(node.get("except")),
        failed: texts(node.get("failed")),
        passed: texts(node.get("passed")),
    }
}

fn content(name: String, node: &Node) -> ContentPattern {
    ContentPattern {
        name,
        regexes: texts(node.get("regexes")),
        files: texts(node.get("files")),
        except_files: texts(node.get("except_files")),
        unless: texts(node.get("unless")),
    }
}

/// Every regex written in a vocabulary.
fn regexes(node: &Node) -> Vec<&Node> {
    let keys = ["failed", "passed", "regexes", "unless"];
    let sections = ["commands", "contents", "texts"];
    let entries = sections.iter().filter_map(|it| node.get(it)?.entries()).flatten();
    entries
        .flat_map(|(_, entry)| keys.iter().filter_map(|it| entry.get(it)?.items()))
        .flatten()
        .collect()
}
