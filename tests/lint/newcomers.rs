//! Mistakes that a newcomer makes: what is found, and what is not.

use policyd::lint::Profile;

use crate::subjects::{check, check_made, consideration, look};

fn guard(lines: &str) -> String {
    format!("- id: own\n  decision: deny\n  message: Not here.\n{lines}\n")
}

fn satisfied(expression: &str) -> String {
    consideration("own", &format!("  satisfied: '{expression}'"))
}

#[test]
fn a_check_that_negates_its_own_condition_always_fires() {
    let made = |lines: &str| consideration("own", lines);
    check_made(
        ("considerations.yaml", made),
        "PD616",
        &[
            ("  when: files.count > 3\n  satisfied: files.count <= 3", "`satisfied` is never true"),
            ("  when: todos.seen\n  satisfied: '!todos.seen'", "`satisfied` is never true"),
            ("  when: todos.seen\n  satisfied: todos.open == 0", ""),
        ],
    );
}

#[test]
fn a_program_is_not_found_in_the_text_of_a_command_line() {
    check_made(
        ("guards.yaml", |it: &str| guard(&format!("  when: {it}"))),
        "PD244",
        &[
            ("action.command.contains(\"rm -rf\")", "write `commands: [rm]`"),
            ("action.command.contains(\"git push\")", "write `commands: [git push]`"),
            ("action.command.matches(\"git push\")", "write `commands: [git push]`"),
            ("action.command.contains(\"prod\")", ""),
            ("action.command.contains(\"make a wish\")", ""),
            ("'!action.command.contains(\"git push\")'", ""),
        ],
    );
    let filtered = guard("  commands: [ssh]\n  when: action.command.contains(\"git push\")");
    check("guards.yaml", "PD244", &[(&filtered, "")]);
}

#[test]
fn a_command_pattern_is_no_regular_expression() {
    check_made(
        ("guards.yaml", |it: &str| guard(&format!("  commands: ['{it}']"))),
        "PD315",
        &[
            ("git.*push", "is a regular expression in a command pattern"),
            (r"git\s+push", "is a regular expression in a command pattern"),
            ("git push", ""),
            ("mkfs.*", ""),
            ("python3.11", ""),
        ],
    );
}

#[test]
fn a_guard_is_written_once() {
    let second = |lines: &str| {
        let first = guard("  commands: [deploy]\n  tools: [Bash]");
        format!("{first}{}", guard(lines).replace("id: own", "id: other"))
    };
    check_made(
        ("guards.yaml", second),
        "PD615",
        &[
            ("  tools: [Bash]\n  commands: [deploy]", "`other` duplicates `own`"),
            ("  commands: [deploy]", ""),
            ("  tools: [Bash]\n  commands: [deploy]\n  when: todos.seen", ""),
        ],
    );
}

#[test]
fn a_directory_and_an_extension_are_no_globs() {
    check_made(
        ("considerations.yaml", |it: &str| {
            satisfied(&format!("files.matching(\"{it}\").count > 0"))
        }),
        "PD307",
        &[
            ("src", "write `src/**`"),
            (".py", "write `*.py`"),
            ("*.py", ""),
            ("src/**", ""),
            (".env", ""),
            ("Makefile", ""),
        ],
    );
    check("guards.yaml", "PD307", &[(&guard("  when: action.deletes([\"dist\"])"), "")]);
}

#[test]
fn a_regular_expression_stands_without_slashes() {
    check_made(
        ("considerations.yaml", |it: &str| satisfied(&format!("session.branch.matches(\"{it}\")"))),
        "PD319",
        &[("/^main$/", "write `^main$`"), ("/feat/", ""), ("^main$", "")],
    );
}

#[test]
fn a_fact_in_a_text_is_a_placeholder() {
    let made =
        |it: &str| consideration("own", &format!("  satisfied: todos.seen\n  details: '{it}'"));
    check_made(
        ("considerations.yaml", made),
        "PD406",
        &[
            ("files.last_path was edited.", "`files.last_path` is printed literally"),
            ("Edited: ${files.last_path}.", ""),
            ("See `files.last_path`.", ""),
            ("See files.txt and todos.open_lists.", ""),
            ("${if files.count > 1 { \"many\" } else { \"one\" }} files.", ""),
        ],
    );
}

#[test]
fn numbers_have_the_unit_of_their_fact() {
    check_made(
        ("considerations.yaml", satisfied),
        "PD234",
        &[
            ("context.percent < 600", "is a percentage from 0 to 100"),
            ("context.percent < 60", ""),
            ("context.cumulative_pct < 600", ""),
            ("tokens.context < 150", "counts tokens"),
            ("tokens.context < 150000", ""),
            ("tokens.context > 0", ""),
            ("context.cost_cents < 0.5", "is in cents"),
            ("context.cost_cents < 500", ""),
        ],
    );
}

#[test]
fn categories_are_spelled_alike() {
    let made =
        |it: &str| satisfied("todos.seen").replace("category: Own", &format!("category: {it}"));
    check_made(
        ("considerations.yaml", made),
        "PD232",
        &[
            ("Workflow Process Adherance", ""),
            ("Workflow Proces Adherence", "did you mean `Workflow Process Adherence`?"),
            ("workflow process adherence", "did you mean `Workflow Process Adherence`?"),
            ("Workflow Process Adherence", ""),
            ("Releases", ""),
        ],
    );
}

#[test]
fn a_tool_has_the_name_that_rules_see() {
    let made = |it: &str| satisfied(&format!("tools.count(\"{it}\") > 0"));
    check_made(
        ("considerations.yaml", made),
        "PD231",
        &[("Shell", "did you mean `Bash`?"), ("bash", "did you mean `Bash`?"), ("Bash", "")],
    );
}

#[test]
fn a_command_line_becomes_a_list_of_its_words() {
    let probe = "- id: ci\n  command: make lint\n";
    let found = look(&[("probes.yaml", probe)], Profile::Default).findings;
    let edits: Vec<_> = found.iter().filter_map(|it| it.fix.as_ref()).collect();
    assert!(edits.iter().any(|it| it.edits[0].1 == "[make, lint]"), "{found:?}");
}

#[test]
fn advice_of_the_loader_fits_the_mistake() {
    let quotes = "this value is not valid YAML (put the whole value in single quotes)";
    let text = consideration("own", "  satisfied: [\"Bash\"] in tools.last_name");
    check("considerations.yaml", "PD001", &[(&text, quotes)]);
    let text = consideration("own", "  satisfied: todos.seen ? files.count : 3");
    check("considerations.yaml", "PD001", &[(&text, "write `if … { … } else { … }`")]);
    let text = satisfied("action.tool == \"Bash\"");
    check("considerations.yaml", "PD210", &[(&text, "available only in guards.yaml")]);
}
