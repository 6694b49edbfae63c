//! What single nodes of the syntax tree say: files written, shell options set, ways to give up.

use tree_sitter::Node;

use super::word;

/// Shell options that change what a status means.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ShellOptions {
    /// `set -e`
    pub(super) errexit: bool,
    /// `set -o pipefail`
    pub(super) pipefail: bool,
}

pub(in crate::facts) fn child_of_kind<'t>(node: Node<'t>, kind: &str) -> Option<Node<'t>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).find(|child| child.kind() == kind)
}

/// Words that follow the mark of a here-document on its line.
pub(super) fn heredoc_words(heredoc: Node<'_>, source: &str) -> Vec<String> {
    let mut cursor = heredoc.walk();
    heredoc
        .children_by_field_name("argument", &mut cursor)
        .map(|argument| word::text_of(argument, source))
        .collect()
}

/// The file an output redirection writes; `2>&1` writes none.
pub(super) fn written_file(redirect: Node<'_>, source: &str) -> Option<String> {
    let mut cursor = redirect.walk();
    let operator = redirect.children(&mut cursor).find(|child| !child.is_named())?;
    let file = word::text_of(redirect.child_by_field_name("destination")?, source);
    let to_descriptor = || file == "-" || file.bytes().all(|b| b.is_ascii_digit());
    match operator.kind() {
        ">" | ">>" | ">|" | "&>" | "&>>" | "<>" => Some(file),
        ">&" => (!to_descriptor()).then_some(file),
        _ => None,
    }
}

/// Whether a statement ends the shell with a failure: `exit 1`, `return 1`, `false`.
pub(super) fn gives_up(node: Node<'_>, source: &str) -> bool {
    let text = word::raw(node, source).trim_matches(|c: char| "{}; ".contains(c));
    let last = text.rsplit([';', '\n']).next().unwrap_or(text).trim();
    let mut words = last.split_whitespace();
    match (words.next(), words.next()) {
        (Some("false"), None) => true,
        (Some("exit" | "return"), Some(code)) => code.parse::<u8>().is_ok_and(|code| code != 0),
        _ => false,
    }
}

/// Whether a statement is `… || exit 1`.
pub(super) fn exits_on_failure(node: Node<'_>, source: &str) -> bool {
    let right = node.child(node.child_count().saturating_sub(1));
    node.kind() == "list"
        && child_of_kind(node, "||").is_some()
        && right.is_some_and(|right| {
            gives_up(right, source) && word::raw(right, source).contains("exit")
        })
}

/// The shell options after a statement such as `set -euo pipefail`.
pub(super) fn changed_options(
    node: Node<'_>,
    source: &str,
    mut options: ShellOptions,
) -> ShellOptions {
    let text = word::raw(node, source);
    let mut words = text.split_whitespace();
    if node.kind() != "command" || words.next() != Some("set") {
        return options;
    }
    let mut long = None;
    for word in words {
        let on = word.starts_with('-');
        match (long.take(), word) {
            (Some(on), "errexit") => options.errexit = on,
            (Some(on), "pipefail") => options.pipefail = on,
            _ if on || word.starts_with('+') => {
                if word.contains('e') {
                    options.errexit = on;
                }
                if word.contains('o') {
                    long = Some(on);
                }
            }
            _ => {}
        }
    }
    options
}
