//! Faulty policy files and what a person is told about them.

use std::sync::Arc;

use policyd::limits::{EXPRESSION_BYTES_MAX, REGEX_SOURCE_MAX};
use policyd::record::paint::for_terminal;
use policyd::report::diagnostics::{Style, render_compact, render_json, render_text};
use policyd::source::check::check;
use policyd::source::schema::json_schema;
use policyd::source::shape::{Field, Kind};
use policyd::source::{Diagnostic, Source, yaml};

use crate::support;

const PLAIN: Style = Style { color: false };

/// A pack file in small, with every kind of value.
const CONSIDERATION: &[Field] = &[
    Field::required("id", Kind::Text, "Name of the rule, unique in the pack."),
    Field::required("question", Kind::Text, "What it asks, for people."),
    Field::required("severity", Kind::Choice(&["blocker", "warning"]), "What it may do.")
        .also_known_as(&["level", "priority"]),
    Field::optional("enabled", Kind::Bool, "Whether it runs."),
    Field::optional("satisfied", Kind::Expression, "True where all is well."),
    Field::optional("message", Kind::Template, "What the agent is told."),
    Field::optional("pattern", Kind::Regex, "What to look for."),
    Field::optional("session_types", Kind::OneOrList(&Kind::Text), "Where it applies."),
    Field::optional("timeout", Kind::Duration, "How long it may take."),
    Field::optional("expires", Kind::Date, "When it ends."),
    Field::optional("weight", Kind::Number { min: 0.0, max: 1.0 }, "How much it counts."),
    Field::optional("limits", Kind::Record(LIMITS), "Bounds of the loop guard."),
    Field::optional("env", Kind::Map(&Kind::Text), "Variables."),
    Field::optional("run", Kind::Either(&[Kind::Bool, Kind::List(&Kind::Text)]), "A program."),
    Field::optional("input", Kind::Any, "Anything."),
];
const LIMITS: &[Field] = &[
    Field::required("max_blocks", Kind::Int { min: 1, max: 20 }, "Blocks in a row."),
    Field::optional("window", Kind::Duration, "How long they are counted."),
];
const FILE: Kind = Kind::List(&Kind::Record(CONSIDERATION));

fn findings(text: &str) -> Vec<Diagnostic> {
    let name = "policies/considerations.yaml".to_owned();
    let source = Arc::new(Source { name, text: text.to_owned() });
    let (root, mut findings) = yaml::parse(&source);
    if let Some(root) = root {
        check(&root, &FILE, &mut findings);
    }
    findings
}

fn reported(situation: &str, text: &str) {
    let rendered = render_text(&findings(text), PLAIN);
    support::snapshot("diagnostics", &format!("yaml__{situation}"), rendered);
}

#[test]
fn a_good_file_has_no_findings() {
    let text = "\u{feff}# rules\n- id: tests\n  question: 'Did tests pass?'\n  severity: blocker\n  enabled: false\n  \
                satisfied: >-\n    commands.kind(\"test\").passed\n    && true\n  session_types: '*'\n  timeout: 1h30m\n  \
                expires: 2026-01-31\n  weight: 1\n  limits: {max_blocks: 5, window: }\n  env: {A: b, 1: c}\n  run: [gh, pr]\n  \
                input: {any: [thing, ~]}\n- id: other\n  question: q\n  severity: warning\n  satisfied: true\n  run: false\n  timeout:\n";
    assert_eq!(render_text(&findings(text), PLAIN), "");
}

#[test]
fn an_empty_file_has_no_tree_and_no_findings() {
    for text in ["", "\n\n", "# only a comment\n", "\u{feff}", "---\n", "~"] {
        assert_eq!(findings(text), [], "{text:?}");
    }
}

#[test]
fn keys() {
    reported(
        "keys_mistyped_unknown_renamed_misplaced",
        "- id: ci_status\n  question: Is CI green?\n  severty: blocker\n  colour: red\n- id: tests\n  question: Did they run?\n  \
         level: blocker\n  max_blocks: 3\n",
    );
    reported(
        "keys_missing",
        "# our rules\n- id: ci_status\n  severity: blocker\n- question:\n  severity: warning\n  id: ''\n- {}\n",
    );
    reported(
        "key_twice",
        "- id: ci_status\n  question: Is CI green?\n  severity: blocker\n  satisfied: probes.ci.green\n  # later\n  severity: warning\n",
    );
}

#[test]
fn values() {
    reported(
        "truth_values",
        "- id: a\n  question: q\n  severity: blocker\n  enabled: yes\n- id: b\n  question: q\n  severity: blocker\n  \
         enabled: \"true\"\n- id: c\n  question: q\n  severity: blocker\n  enabled: [true]\n",
    );
    reported(
        "words_outside_a_set",
        "- id: a\n  question: q\n  severity: blocking\n- id: b\n  question: q\n  severity: Warning\n- id: c\n  question: q\n  severity: fatal\n",
    );
    reported(
        "durations_and_dates",
        "- id: a\n  question: q\n  severity: blocker\n  timeout: 300\n  expires: 2026-02-30\n  limits:\n    max_blocks: 5\n    window: 5 minutes\n",
    );
    reported(
        "numbers",
        "- id: a\n  question: q\n  severity: blocker\n  weight: 1.5\n  limits:\n    max_blocks: \"5\"\n- id: b\n  question: q\n  \
         severity: blocker\n  limits: { max_blocks: 500 }\n- id: 12\n  question: true\n  severity: blocker\n",
    );
    reported(
        "lists_and_maps_confused",
        "- id: a\n  question: q\n  severity: blocker\n  limits:\n    - max_blocks: 5\n  session_types:\n    development: true\n  \
         env: [A, B]\n  run: cargo test\n- just text\n-\n",
    );
    reported("a_map_where_a_list_is_meant", "id: a\nquestion: q\nseverity: blocker\n");
}

#[test]
fn expressions_and_patterns_are_bounded() {
    let text = |key: &str, value: &str| {
        findings(&format!("- id: a\n  question: q\n  severity: blocker\n  {key}: {value}\n"))
    };
    let codes = |key: &str, value: &str| -> Vec<&str> {
        text(key, value).iter().map(|it| it.code).collect()
    };
    assert_eq!(codes("satisfied", &"a".repeat(EXPRESSION_BYTES_MAX)), [""; 0]);
    assert_eq!(codes("satisfied", &"a".repeat(EXPRESSION_BYTES_MAX + 1)), ["limit-exceeded"]);
    assert_eq!(codes("pattern", &"a".repeat(REGEX_SOURCE_MAX + 1)), ["limit-exceeded"]);
    assert_eq!(codes("satisfied", "' '"), ["missing-key"]);
}

#[test]
fn outside_the_format() {
    reported(
        "anchors_aliases_and_merge_keys",
        "- &base\n  id: a\n  question: q\n  severity: blocker\n- <<: *base\n  id: b\n",
    );
    reported(
        "expressions_and_globs_without_quotes",
        "- id: a\n  question: q\n  severity: blocker\n  satisfied: !todos.open\n  pattern: *.rs\n  message: !!str 5\n",
    );
    reported("invisible_characters", "- id: a\u{2028}b\n  question: q\n  severity: blocker\n");
    reported("several_documents", "- id: a\n  question: q\n  severity: blocker\n---\n- id: b\n");
    reported("directive", "%YAML 1.2\n---\n- id: a\n");
    reported("keys_that_are_no_text", "- {{ id }}: a\n  : empty\n  id: x\n");
}

#[test]
fn syntax() {
    let cases = [
        ("syntax_tab", "- id: a\n\tquestion: q\n"),
        ("syntax_quoted_start_of_an_expression", "- id: a\n  satisfied: \"Bash\" == event.tool\n"),
        ("syntax_colon_in_plain_text", "- id: a\n  question: Why: because\n"),
        ("syntax_quote_not_closed", "- id: a\n  question: \"Is it green?\n  severity: blocker\n"),
        ("syntax_bracket_not_closed", "- id: a\n  session_types: [a, b\n  severity: blocker\n"),
        ("syntax_item_without_dash", "- id: a\n  question: q\nseverity: blocker\n"),
        ("syntax_indented_too_far", "- id: a\n  question: q\n    severity: blocker\n"),
        ("syntax_backtick", "- id: a\n  message: `cargo test` failed\n"),
        ("syntax_backslash", "- id: a\n  pattern: \"\\d+ failed\"\n"),
        ("syntax_line_without_colon", "- id: a\n  question\n  severity: blocker\n"),
    ];
    for (situation, text) in cases {
        reported(situation, text);
    }
}

/// The same wrong name in five ways to write an expression: the caret is under the name.
#[test]
fn inside_expressions() {
    let text = "- plain:  event.tool == \"Bash\" && event.cmd != ''\n- single: 'event.tool == \"Bash\" && event.cmd != '''''\n\
                - double: \"event.tool == \\\"Bash\\\"\\\n    \\ && event.\\x63md != ''\"\n- literal: |\n    event.tool == \"Bash\"\n    && event.cmd != ''\n\
                - folded: >-\n    event.tool == \"Bash\" &&\n    event.cmd\n    != ''\n";
    let source = Arc::new(Source { name: "rules.yaml".to_owned(), text: text.to_owned() });
    let (root, findings) = yaml::parse(&source);
    assert_eq!(findings, []);
    let root = root.unwrap();
    let wrong: Vec<Diagnostic> = root
        .items()
        .unwrap()
        .iter()
        .map(|item| {
            let (_, value) = item.entries().unwrap().first().unwrap();
            let decoded = value.text().unwrap();
            let (name, tool) =
                (decoded.find("event.cmd").unwrap(), decoded.find("\"Bash\"").unwrap());
            Diagnostic::error(
                "unknown-name",
                value.sub_span(name..name + 9),
                "unknown name `event.cmd`",
            )
            .with_related(value.sub_span(tool..tool + 6), "for this tool")
            .with_help("did you mean `event.command`?")
        })
        .collect();
    support::snapshot("diagnostics", "expression__five_scalar_styles", render_text(&wrong, PLAIN));
}

#[test]
fn other_formats() {
    let text = "- id: ci\n  question: Grün?\n  severity: x\n  severity: blocker\n  enabled: yes\n";
    let found = findings(text);
    support::snapshot("diagnostics", "formats__compact", render_compact(&found));
    support::snapshot("diagnostics", "formats__json", format!("{:#}", render_json(&found)));
    let colored = render_text(&found, Style { color: true });
    assert!(for_terminal(&colored).contains("\u{1b}["));
}

#[test]
fn escape_sequences_of_a_pack_do_not_reach_the_terminal() {
    let text = "- id: \"a\\e[2Kb\"\n  question: \"x\\e]0;y\"\n  \"\\e[31mkey\": 1\n";
    for color in [true, false] {
        let mut found = findings(text);
        for it in &mut found {
            it.message.push_str("\u{1b}[2K\u{202e}");
            it.help = Some("\u{1b}[1A".to_owned());
        }
        let shown = for_terminal(&render_text(&found, Style { color })).into_owned();
        assert!(shown.contains("\\u001b[2K\\u202e"), "{shown}");
        let own = shown.split('\u{1b}').skip(1);
        let foreign = own.filter(|it| ["[2K", "[1A", "]0;"].iter().any(|bad| it.starts_with(bad)));
        assert_eq!(foreign.count(), 0, "{shown:?}");
        assert_eq!(shown.contains('\u{1b}'), color);
    }
}

#[test]
fn order_and_several_files() {
    let file = |name: &str, text: &str| {
        let source = Arc::new(Source { name: name.to_owned(), text: text.to_owned() });
        let (root, _) = yaml::parse(&source);
        root.unwrap().get("id").unwrap().span.clone()
    };
    let (first, second) = (file("a.yaml", "id: ci\n"), file("b.yaml", "# b\nid: ci\n"));
    let twice = Diagnostic::error("duplicate-id", second.clone(), "id `ci` is used twice")
        .with_related(first.clone(), "first used here")
        .with_help("ids are unique in a pack");
    let warning = Diagnostic::warning("short-id", first, "the id says little");
    let found = [warning.clone(), twice.clone(), warning, twice];
    support::snapshot("diagnostics", "order__several_files", render_text(&found, PLAIN));
}

#[test]
fn the_schema_of_a_shape() {
    let schema = json_schema(&FILE, "considerations.yaml");
    support::snapshot("schema", "shape__every_kind", format!("{schema:#}"));
}
