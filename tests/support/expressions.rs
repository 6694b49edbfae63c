//! Generated expressions: conditions over the table of facts, and rows of tokens.

use policyd::expr::members;
use policyd::expr::types::{Domain, PackName, Subject, Type};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Names that the built-in pack defines, by the kind of the argument.
fn argument(domain: Domain, wanted: Type, pick: &Index) -> String {
    let named = [
        (PackName::CommandKind, ["test", "lint", "build"]),
        (PackName::FileKind, ["code", "docs", "tests"]),
        (PackName::Content, ["stub", "interface", "stub"]),
        (PackName::Text, ["next_steps", "operations", "simple"]),
        (PackName::Tier, ["notice", "warn", "act"]),
        (PackName::TimeZone, ["Europe/Berlin", "UTC", "Asia/Tokyo"]),
        (PackName::InputField, ["skill", "url", "path"]),
    ];
    let text = match domain {
        Domain::Name(kind) => named.into_iter().find(|it| it.0.as_kind() == kind).unwrap().1,
        Domain::Regex => ["a+", "^x", "\\\\d"],
        Domain::Text(_) => ["a", "state", "git push"],
    };
    if wanted == Type::Texts {
        return "[\"a\", \"b\"]".to_owned();
    }
    format!("\"{}\"", pick.get(&text))
}

/// A path of the table of facts that ends in a value.
fn chain(picks: &[Index]) -> (String, Type) {
    let (mut text, mut owner) = (String::new(), Type::Global);
    let mut picks = picks.iter().cycle();
    for _ in 0..6 {
        let rows: Vec<_> = members::tables().filter(|it| it.owner == owner).collect();
        let (Some(pick), Some(other)) = (picks.next(), picks.next()) else { break };
        if rows.is_empty() {
            let named = [
                (Subject::Preferences.as_type(), "no_auto_merge", Type::Bool),
                (Subject::Probes.as_type(), "pr", Subject::Probe.as_type()),
                (Subject::Memory.as_type(), "deploys", Subject::MemoryEntry.as_type()),
            ];
            let Some((_, name, next)) = named.into_iter().find(|it| it.0 == owner) else { break };
            text = format!("{text}.{name}");
            owner = next;
            continue;
        }
        let row = pick.get(&rows);
        let arguments = row.params.map(|params| {
            let each = params.iter().map(|(wanted, domain)| argument(*domain, *wanted, other));
            format!("({})", each.collect::<Vec<_>>().join(", "))
        });
        let dot = if text.is_empty() { "" } else { "." };
        text = format!("{text}{dot}{}{}", row.name, arguments.unwrap_or_default());
        owner = row.result;
        if matches!(owner, Type::Bool | Type::Int) || (owner == Type::Text && pick.index(3) > 0) {
            break;
        }
    }
    (text, owner)
}

/// A path or a constant.
fn value() -> impl Strategy<Value = String> {
    let fact = prop::collection::vec(any::<Index>(), 4..12).prop_map(|it| chain(&it).0);
    let constant = select(vec!["0", "1", "-3", "\"a\"", "\"stop\"", "true", "false", "[\"a\"]"]);
    prop_oneof![4 => fact, 1 => constant.prop_map(str::to_owned)]
}

/// A well-typed condition on one fact.
fn sound() -> impl Strategy<Value = String> {
    prop::collection::vec(any::<Index>(), 4..12).prop_map(|picks| match chain(&picks) {
        (text, Type::Int) => format!("{text} > 1"),
        (text, Type::Text) => format!("{text} != \"a\""),
        (text, Type::Texts) => format!("\"a\" in {text}"),
        (text, _) => text,
    })
}

/// Conditions, well typed or not.
pub(crate) fn condition() -> impl Strategy<Value = String> {
    let operator = select(vec!["==", "!=", "<", "<=", ">", ">=", "in", "+", "-", "*", "/", "%"]);
    let compared = (value(), operator, value()).prop_map(|(a, sign, b)| format!("{a} {sign} {b}"));
    let leaf = prop_oneof![1 => value(), 2 => compared, 9 => sound()];
    leaf.prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) && ({b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) || ({b})")),
            inner.clone().prop_map(|it| format!("!({it})")),
            (inner.clone(), inner.clone(), inner)
                .prop_map(|(a, b, c)| format!("if {a} {{ {b} }} else {{ {c} }}")),
        ]
    })
}

/// Tokens of the language and around it, in any order; some rows are expressions.
pub(crate) fn tokens() -> impl Strategy<Value = String> {
    let token = select(vec![
        "files",
        ".count",
        ".paths",
        "session.branch",
        ".len()",
        ".first()",
        "(",
        ")",
        "[",
        "]",
        "(\"a\")",
        "[\"api\"]",
        ".open",
        "breakers",
        "&&",
        "||",
        "!",
        "-",
        "+",
        "*",
        "/",
        "%",
        "==",
        "!=",
        "<",
        ">=",
        " in ",
        " !in ",
        "1",
        "-2",
        "0.5",
        "\"a\"",
        "\"a\\\"b\"",
        "`q`",
        "true",
        "if true {1} else {2}",
        "if (false) {\"a\"} else if true {\"b\"} else {\"c\"}",
        "{",
        "}",
        ",",
        "?.",
        "**",
        "??",
        "|",
        "<<",
        "/* c */",
        "// d\n",
        "is",
        "0x1F",
        "'c'",
        "..",
        "<-",
        ".contains(",
        ".join(\",\")",
        "[\"a\", \"b\"]",
        "probes.pr.text(\"state\")",
        "commands",
    ]);
    let row = prop::collection::vec((token, select(vec!["", " "])), 1..9);
    row.prop_map(|all| all.into_iter().flat_map(|(token, blank)| [token, blank]).collect())
}
