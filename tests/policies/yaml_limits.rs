//! Hostile policy files: each is answered with one bounded finding, none with a tree.

use std::sync::Arc;

use policyd::limits::{FILE_FINDINGS_MAX, POLICY_FILE_BYTES_MAX, YAML_DEPTH_MAX, YAML_NODES_MAX};
use policyd::report::diagnostics::{Style, render_compact, render_text};
use policyd::source::{Diagnostic, Node, Source, yaml};

const PLAIN: Style = Style { color: false };

fn parse(text: String) -> (Option<Node>, Vec<Diagnostic>) {
    yaml::parse(&Arc::new(Source { name: "hostile.yaml".to_owned(), text }))
}

/// Reads, renders, and gives the codes.
fn codes(text: String) -> Vec<&'static str> {
    let (root, findings) = parse(text);
    assert!(root.is_none());
    assert!(render_text(&findings, PLAIN).len() < 100_000);
    assert!(render_compact(&findings).len() < 100_000);
    findings.iter().map(|it| it.code).collect()
}

#[test]
fn deep_nesting_is_refused_in_any_form() {
    for opening in ["[", "{a: ", "- ", "? ", "[{a: "] {
        assert_eq!(codes(opening.repeat(100_000)), ["limit-exceeded"], "{opening}");
    }
    let indented: String = (0..200).map(|it| format!("{}k:\n", " ".repeat(it))).collect();
    assert_eq!(codes(indented), ["limit-exceeded"]);
}

#[test]
fn nesting_up_to_the_limit_is_read() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(nested(YAML_DEPTH_MAX)).0.is_some());
    assert_eq!(codes(nested(YAML_DEPTH_MAX + 1)), ["limit-exceeded"]);
    let mixed = format!("{}{}", "- ".repeat(YAML_DEPTH_MAX / 2), nested(YAML_DEPTH_MAX / 2 + 1));
    assert_eq!(codes(mixed), ["limit-exceeded"]);
}

#[test]
fn a_mebibyte_of_dashes_is_refused() {
    assert_eq!(codes("- ".repeat(POLICY_FILE_BYTES_MAX / 2)), ["limit-exceeded"]);
}

#[test]
fn too_many_values_are_refused() {
    assert_eq!(codes("- x\n".repeat(YAML_NODES_MAX + 1)), ["limit-exceeded"]);
    assert_eq!(codes(format!("[{}]", "x,".repeat(YAML_NODES_MAX + 1))), ["limit-exceeded"]);
}

#[test]
fn a_file_over_the_limit_is_not_read() {
    assert_eq!(codes("#".repeat(POLICY_FILE_BYTES_MAX + 1)), ["limit-exceeded"]);
}

#[test]
fn aliases_are_reported_and_never_expanded() {
    let mut text = "a0: &a0 [lol, lol, lol]\n".to_owned();
    for at in 1..30 {
        let before = at - 1;
        text += &format!("a{at}: &a{at} [*a{before}, *a{before}, *a{before}]\n");
    }
    let found = codes(text);
    assert_eq!(found.len(), FILE_FINDINGS_MAX + 1);
    assert_eq!(found.last(), Some(&"limit-exceeded"));
}

#[test]
fn findings_of_one_file_are_bounded() {
    for text in ["a: 1\n", "!x\n---\n", "? [a]\n", "- *a\n", "- &a b\n"] {
        let found = parse(text.repeat(20_000)).1;
        assert!(found.len() <= FILE_FINDINGS_MAX + 1, "{text}: {}", found.len());
        assert!(!found.is_empty());
    }
}

#[test]
fn long_lines_and_odd_bytes_are_survived() {
    let long = format!("a: \"{}\n", "x".repeat(POLICY_FILE_BYTES_MAX - 100));
    assert_eq!(codes(long), ["yaml-syntax"]);
    for text in [
        "a: \0",
        "a: \u{1}",
        "\"\\ud800\"",
        "'",
        "\"",
        "[",
        "{",
        "|",
        ">",
        "&",
        "*",
        "!",
        "%",
        "@",
        "?",
        "-",
        ":",
        "\u{feff}\u{feff}a: b",
        "é: é\n\té",
        "\r\r\n\t",
    ] {
        let (_, findings) = parse(text.to_owned());
        assert_eq!(render_text(&findings, PLAIN).is_empty(), findings.is_empty());
    }
}
