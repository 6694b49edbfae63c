//! Places: the same rule written in the five scalar styles puts the caret on the same token.

use policyd::lint::{Profile, code_of};
use policyd::source::{Diagnostic, ScalarStyle};
use proptest::prelude::*;

use crate::subjects::{consideration, look};
use crate::support::rounds;

/// Conditions with exactly one finding, whose place is between the marks.
const CONDITIONS: [&str; 11] = [
    "files.count > 1 || ‹todo›.open == 0",
    "files.kind(‹\"cod\"›).count > 1",
    "event.kind == ‹\"stopp\"›",
    "files.count > 1 || ‹files.count < 0›",
    "todos.seen || ‹todos.seen›",
    "files.last_path.starts_with(‹\"/etc\"›) || tools.total > 1",
    "session.branch.matches(‹\"a*\"›) || tools.total > 1",
    "session.branch.matches(\"x\" + ‹event.prompt›)",
    "todos.seen || ‹tools.total > 1 && todos.open > 1›",
    "session.branch in [\"é\", \"b\", ‹\"é\"›]",
    "tools.count(‹\"bash\"›) > 1",
];

fn written(style: ScalarStyle, condition: &str, breaks: &[usize]) -> String {
    // Line breaks only between words outside of texts.
    let mut text = String::new();
    let (mut quoted, mut blanks) = (false, 0);
    let multi = if style == ScalarStyle::Literal { "\n    " } else { "\n      " };
    for c in condition.chars() {
        quoted ^= c == '"';
        if c == ' ' && !quoted {
            blanks += 1;
            let broken = breaks.contains(&blanks);
            let indent = if style == ScalarStyle::Folded { "\n    " } else { multi };
            text.push_str(if broken { indent } else { " " });
        } else {
            match (style, c) {
                (ScalarStyle::DoubleQuoted, '"') => text.push_str("\\\""),
                (ScalarStyle::DoubleQuoted, 'é') => text.push_str("\\u00e9"),
                (_, c) => text.push(c),
            }
        }
    }
    let value = match style {
        ScalarStyle::Plain => text,
        ScalarStyle::SingleQuoted => format!("'{text}'"),
        ScalarStyle::DoubleQuoted => format!("\"{text}\""),
        ScalarStyle::Literal => format!("|-\n    {text}"),
        ScalarStyle::Folded => format!(">-\n    {text}"),
    };
    consideration("a", &format!("  satisfied: {value}"))
}

/// The covered characters without line breaks, indents and escapes.
fn bare(finding: &Diagnostic) -> String {
    let words: Vec<&str> = finding.span.text().split_whitespace().collect();
    words.join(" ").replace("\\\"", "\"").replace("\\u00e9", "é")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: rounds(60), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_caret_stands_under_the_same_token_in_every_style(
        which in 0..CONDITIONS.len(),
        breaks in prop::collection::vec(1_usize..8, 0..4),
    ) {
        let marked = CONDITIONS.get(which).unwrap();
        let token = marked.split_once('‹').unwrap().1.split_once('›').unwrap().0;
        let condition = marked.replace(['‹', '›'], "");
        for style in [
            ScalarStyle::Plain,
            ScalarStyle::SingleQuoted,
            ScalarStyle::DoubleQuoted,
            ScalarStyle::Literal,
            ScalarStyle::Folded,
        ] {
            let text = written(style, &condition, &breaks);
            let found = look(&[("considerations.yaml", &text)], Profile::Default).findings;
            let places: Vec<String> = found.iter().map(bare).collect();
            prop_assert!(places.iter().any(|it| it == token), "{token} in {places:?}\n{text}");
        }
    }
}

#[test]
fn blanks_within_a_call_hide_nothing_of_it() {
    for call in [
        "files.matching(\"src/{a\")",
        "files.matching (\"src/{a\")",
        "files . matching( \"src/{a\" )",
    ] {
        let text = consideration("a", &format!("  satisfied: {call}.count > 0"));
        let found = look(&[("considerations.yaml", &text)], Profile::Default).findings;
        let codes: Vec<&str> = found.iter().map(|it| code_of(it.code)).collect();
        assert_eq!(codes, ["PD307"], "{call}");
    }
}
