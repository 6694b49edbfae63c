//! What lint says of conditions that contradict each other, and of guards that stand in each other's way.

use policyd::lint::Profile;
use policyd::report::diagnostics::render_compact;

use crate::subjects::{check, check_made, consideration, look};

const GUARDS: &str = "guards.yaml";

/// A guard about pushes with these lines.
fn push(lines: &str) -> String {
    format!("- id: own\n  commands: [git push]\n{lines}\n  decision: deny\n  message: Not so.\n")
}

#[test]
fn conditions_of_one_guard_leave_something_to_each_other() {
    check_made(
        (GUARDS, push),
        "PD616",
        &[
            (
                "  when: program.has([\"-f\"])\n  unless: program.has([\"-f\"])",
                "`unless` is true whenever `when` is",
            ),
            (
                "  when: program.has([\"-f\"])\n  unless: program.has([\"--force\", \"-f\"])",
                "`unless` is true whenever `when` is",
            ),
            ("  when: program.has([\"-f\", \"-n\"])\n  unless: program.has([\"-n\"])", ""),
            (
                "  when: program.has([\"-f\"]) && files.count > 3\n  unless: files.count > 2",
                "`unless` is true whenever `when` is",
            ),
            (
                "  when: files.count > 3\n  unless: files.count < 2",
                "`unless` is never true together with `when`",
            ),
            ("  when: files.count > 3\n  unless: files.count > 8", ""),
            ("  when: program.has([\"-f\"])\n  unless: program.has([\"-n\"])", ""),
        ],
    );
}

#[test]
fn conditions_of_one_consideration_leave_something_to_each_other() {
    let own = |lines: &str| consideration("own", lines);
    check_made(
        ("considerations.yaml", own),
        "PD616",
        &[
            (
                "  satisfied: todos.open == 0\n  blocking: todos.open == 0",
                "`blocking` is true only if `satisfied` is",
            ),
            ("  satisfied: todos.open == 0\n  blocking: todos.open > 3", ""),
            ("  satisfied: todos.open == 0\n  blocking: \"false\"", ""),
            (
                "  applicable_session_types: [INFORMATIONAL]\n  \
                 when: session.type == \"DEVELOPMENT\"\n  satisfied: todos.open == 0",
                "this matches no session to which the rule applies",
            ),
            (
                "  when: session.type == \"INFORMATIONAL\"\n  satisfied: todos.open == 0",
                "this matches no session to which the rule applies",
            ),
            (
                "  applicable_session_types: [\"*\"]\n  \
                 when: session.type == \"INFORMATIONAL\"\n  satisfied: todos.open == 0",
                "",
            ),
            (
                "  applicable_session_types: [INFORMATIONAL, DEVELOPMENT]\n  \
                 when: session.type != \"INFORMATIONAL\"\n  satisfied: todos.open == 0",
                "",
            ),
        ],
    );
}

#[test]
fn a_guard_that_a_stricter_one_takes_everything_from_is_told() {
    let beside = |lines: &str| {
        let deny = "- id: stern\n  commands: [git push, git merge]\n  \
                    when: program.has([\"-f\"])\n  decision: deny\n  message: Not so.\n";
        format!("{deny}- id: own\n{lines}\n  message: Look.\n")
    };
    check_made(
        (GUARDS, beside),
        "PD615",
        &[
            (
                "  commands: [git push]\n  when: program.has([\"-f\"])\n  decision: allow",
                "`own` never decides: `stern` does",
            ),
            (
                "  commands: [git push]\n  \
                 when: program.has([\"-f\"]) && files.count > 3\n  decision: ask",
                "`own` never decides: `stern` does",
            ),
            ("  commands: [git push]\n  decision: ask", ""),
            ("  commands: [git pull]\n  when: program.has([\"-f\"])\n  decision: allow", ""),
            ("  commands: [git push]\n  when: program.has([\"-f\"])\n  decision: halt", ""),
            ("  commands: [git push]\n  when: program.has([\"-f\"])\n  decision: context", ""),
            (
                "  on: [permission_request]\n  commands: [git push]\n  \
                 when: program.has([\"-f\"])\n  decision: allow",
                "",
            ),
            (
                "  commands: [git push]\n  when: program.has([\"-f\"])\n  decision: allow\n  \
                 mode: shadow",
                "",
            ),
            (
                "  commands: [git push]\n  when: program.has([\"-f\"])\n  decision: ask\n  \
                 on_error: ask",
                "",
            ),
            (
                "  commands: [git push]\n  when: program.has([\"-f\"])\n  decision: allow\n  \
                 updated_input: {command: ls}",
                "",
            ),
        ],
    );
    // What follows from a condition holds where that does.
    let both = |ask: &str, deny: &str| {
        format!(
            "- {{id: own, tools: [Bash], when: {ask}, decision: ask, message: Look.}}\n\
             - {{id: stern, tools: [Bash], when: {deny}, decision: deny, message: No.}}\n"
        )
    };
    check(
        GUARDS,
        "PD615",
        &[
            (&both("files.count > 10", "files.count > 3"), "`own` never decides: `stern` does"),
            (&both("files.count > 3", "files.count > 10"), ""),
            (&both("files.count > 3", "todos.open > 2"), ""),
        ],
    );
    // A condition of the stricter one that may not hold leaves something over.
    check(
        GUARDS,
        "PD615",
        &[(
            "- id: stern\n  tools: [Bash]\n  when: files.count > 0\n  unless: todos.open == 0\n  \
             decision: deny\n  message: Not so.\n- id: own\n  tools: [Bash]\n  \
             when: files.count > 0\n  decision: ask\n  message: Look.\n",
            "",
        )],
    );
}

#[test]
fn a_guard_says_why() {
    let own = |lines: &str| format!("- id: own\n  commands: [deploy]\n{lines}\n");
    check_made(
        (GUARDS, own),
        "PD623",
        &[
            ("  decision: deny", "`own` has no message"),
            ("  decision: context\n  message: \" \"", "`own` has no message"),
            ("  decision: deny\n  description: Deploys are for humans.", ""),
            ("  decision: allow", ""),
            ("  updated_input:\n    command: ls", ""),
        ],
    );
}

#[test]
fn a_guard_allows_something_that_it_names() {
    let own = |lines: &str| format!("- id: own\n{lines}\n  decision: allow\n");
    check_made(
        (GUARDS, own),
        "PD621",
        &[
            ("  mode: enforce", "`own` allows every call of every tool"),
            ("  tools: [Read, Bash]", "`own` allows every call of `Bash`"),
            ("  tools: [Read]", ""),
            ("  tools: [Bash]\n  commands: [ls]", ""),
            ("  tools: [Bash]\n  when: action.command == \"make\"", ""),
            ("  when: action.runs(\"npm test\")", "`own` allows every other program on the line"),
            (
                "  tools: [Bash]\n  when: action.command.starts_with(\"npm \")",
                "every other program",
            ),
            ("  when: action.programs.all_in([\"ls\"]) && action.runs(\"ls\")", ""),
            ("  tools: [Read]\n  when: action.runs(\"npm test\")", ""),
            ("  tools: [Bash]\n  mode: shadow", ""),
        ],
    );
}

#[test]
fn fields_of_tools_are_written_as_tools_take_them() {
    let own = |lines: &str| format!("- id: own\n{lines}\n");
    check_made(
        (GUARDS, own),
        "PD232",
        &[
            ("  tools: [Bash]\n  updated_input: {comand: ls}", "no such tool accepts `comand`"),
            ("  tools: [Bash]\n  updated_input: {command: ls}", ""),
            (
                "  tools: [Bash]\n  updated_input: {file_path: ls}",
                "none of these tools accepts `file_path`",
            ),
            ("  tools: [Bash, Read]\n  updated_input: {file_path: ls}", ""),
            ("  tools: [Bash]\n  updated_input: {something_new: ls}", ""),
            ("  tools: [mcp__a__b]\n  updated_input: {query_text: ls}", ""),
            ("  tools: [mcp__a__b]\n  updated_input: {paths: ls}", ""),
            ("  tools: [Grep]\n  updated_input: {offset: \"5\"}", ""),
            (
                "  tools: [Edit]\n  when: event.input(\"file_paths\") != \"\"\n  decision: warn\n  \
                 message: Look.",
                "",
            ),
            (
                "  when: event.input(\"file_pth\") != \"\"\n  decision: warn\n  message: Look.",
                "no known tool accepts `file_pth`",
            ),
            ("  when: event.input(\"url\") != \"\"\n  decision: warn\n  message: Look.", ""),
            (
                "  when: event.input(\"edits.0.old_string\") != \"\"\n  decision: warn\n  message: Look.",
                "not a path",
            ),
            (
                "  tools: [mcp__a__b]\n  when: event.input(\"rows[].id\") != \"\"\n  decision: warn\n  message: Look.",
                "not a path",
            ),
            (
                "  when: event.inputs(\"edits[].old_string\").len() > 3\n  decision: warn\n  message: Look.",
                "",
            ),
            (
                "  when: event.inputs(\"file_pth.x\").len() > 3\n  decision: warn\n  message: Look.",
                "no known tool accepts `file_pth`",
            ),
        ],
    );
}

#[test]
fn a_tool_is_asked_for_what_it_is_given() {
    let guard = |it: &str| format!("- id: own\n{it} != \"\"\n  decision: deny\n  message: No.\n");
    let none = "none of these tools accepts";
    check_made(
        ("guards.yaml", guard),
        "PD232",
        &[
            ("  tools: [Bash]\n  when: event.input(\"file_path\")", none),
            ("  tools: [Bash, WebFetch]\n  when: event.input(\"file_path\")", none),
            ("  tools: [Bash, Read]\n  when: event.input(\"file_path\")", ""),
            ("  tools: [Read]\n  when: event.input(\"command\")", none),
            ("  tools: [Write]\n  when: event.input(\"url\")", none),
            // Some clients give a patch so.
            ("  tools: [Edit]\n  when: event.input(\"command\")", ""),
            ("  tools: [Write]\n  when: event.input(\"command\")", ""),
            ("  tools: [\"*\"]\n  when: event.input(\"file_path\")", ""),
            ("  when: event.input(\"file_path\")", ""),
            // Afterwards clients tell in their own words.
            ("  on: [post_tool_use]\n  tools: [Bash]\n  when: event.input(\"file_path\")", ""),
        ],
    );
}

#[test]
fn numbers_with_a_fraction_have_an_order() {
    let table = |rows: &str| {
        format!(
            "- id: own\n  inputs: {{risk: {{type: decimal}}}}\n  rows:\n{rows}  \
             otherwise: {{answer: low}}\n"
        )
    };
    check_made(
        ("tables.yaml", table),
        "PD615",
        &[
            (
                "    - {when: given.risk >= 0.4, answer: some}\n    - {when: given.risk >= 0.7, answer: more}\n",
                "row 2 never decides",
            ),
            (
                "    - {when: given.risk >= 0.7, answer: more}\n    - {when: given.risk >= 0.4, answer: some}\n",
                "",
            ),
        ],
    );
}

#[test]
fn between_two_whole_numbers_lies_a_fraction() {
    let trigger = |it: &str| format!("triggers:\n  - id: own\n    when: {it}\n    reason: Own.\n");
    for code in ["PD601", "PD601", "PD601", "PD615"] {
        check_made(
            ("escalation.yaml", trigger),
            code,
            &[
                ("task.confidence > 0 && task.confidence < 1", ""),
                ("task.confidence <= 0 || task.confidence >= 1", ""),
                ("task.confidence > 9007199254740992.0", ""),
            ],
        );
    }
    check_made(
        ("escalation.yaml", trigger),
        "PD601",
        &[("task.confidence > 0.5 && task.confidence < 0.25", "this is never true")],
    );
}

#[test]
fn an_own_session_type_leaves_the_inherited_ones_their_sessions() {
    let own = |it: &str| format!("- id: OWN\n  when: '{it}'\n");
    check_made(
        ("session_types.yaml", own),
        "PD149",
        &[
            ("files.count > 0", "sessions of `DEVELOPMENT` become `OWN`"),
            ("true", "sessions of `DEVELOPMENT` become `OWN`"),
            ("commands.kind(\"test\").count > 0", "sessions of `DEVELOPMENT` become `OWN`"),
            ("commands.kind(\"push\").count > 0", "sessions of `MAINTENANCE` become `OWN`"),
            ("files.count > 0 && session.branch == \"x\"", ""),
            ("files.matching(\"web/**\").count > 0", ""),
            ("commands.kind(\"test\").count > 3", ""),
            // No rule is for these alone.
            ("patterns.in_prompts(\"simple\") && files.count == 0", ""),
        ],
    );
    let types = "- id: OWN\n  when: files.count > 0\n";
    let told = |rule: &str| {
        let files = [("session_types.yaml", types), ("considerations.yaml", rule)];
        render_compact(&look(&files, Profile::Default).findings).contains("PD149")
    };
    assert!(told("- {id: local_testing, override: true, severity: warning}\n"));
    assert!(!told(
        "- {id: local_testing, override: true, applicable_session_types: [DEVELOPMENT, OWN]}\n"
    ));
    // An inherited type may be said anew.
    check(
        "session_types.yaml",
        "PD149",
        &[("- id: DEVELOPMENT\n  override: true\n  when: files.count > 0\n", "")],
    );
}

#[test]
fn what_holds_of_a_pattern_holds_of_a_wider_one() {
    let unless = |it: &str| {
        let (when, unless) = it.split_once(" / ").unwrap();
        format!(
            "- id: own\n  when: '{when}'\n  unless: '{unless}'\n  decision: ask\n  message: Ask.\n"
        )
    };
    check_made(
        (GUARDS, unless),
        "PD616",
        &[
            ("action.writes([\"src/**\"]) / action.changes([\"**\"])", "`unless` is true whenever"),
            (
                "action.writes([\"src/gen/a.rs\"]) / action.writes([\"**/*.rs\"])",
                "`unless` is true whenever",
            ),
            ("action.runs(\"git push\") / action.runs(\"git\")", "`unless` is true whenever"),
            ("action.writes([\"src/**\"]) / action.writes([\"src/gen/**\"])", ""),
            ("action.writes([\"src/**\"]) / action.reads([\"**\"])", ""),
            ("action.runs(\"npm run --silent\") / action.runs(\"npm run *\")", ""),
            ("action.writes([\"tests/test_**\"]) / action.writes([\"test_*\"])", ""),
        ],
    );
    let stricter = |it: &str| {
        let (one, other) = it.split_once(" / ").unwrap();
        format!(
            "- {{id: own, {one}, decision: deny, message: No.}}\n\
             - {{id: other, {other}, decision: ask, message: Ask.}}\n"
        )
    };
    check_made(
        (GUARDS, stricter),
        "PD615",
        &[
            (
                "when: 'action.writes([\"**/*.lock\"])' / when: 'action.writes([\"Cargo.lock\"])'",
                "`other` never decides: `own` does",
            ),
            ("commands: [git] / commands: [git push]", "`other` never decides: `own` does"),
            ("commands: [git push] / commands: [git]", ""),
            (
                "commands: [git push] / commands: [git push], when: 'program.has([\"-f\"])'",
                "never decides",
            ),
            // A program of unknown name is put before the other one alone.
            (
                "commands: [git push] / commands: [git push], when: 'program.has([\"-f\"])', on_error: ask",
                "",
            ),
            ("commands: [npm *] / commands: [npm --version]", ""),
            ("commands: [rm -r*] / commands: [rm -rf]", ""),
            (
                "commands: [git], unless: program.operands.len() > 1 / commands: [git push], unless: program.operands.len() > 1",
                "",
            ),
            (
                "commands: [git, git push], when: program.operands.len() == 1 / commands: [git push], when: program.operands.len() == 1",
                "",
            ),
            (
                "commands: [git], when: program.operands.len() == 0 / commands: [git push], when: program.operands.len() == 0",
                "",
            ),
        ],
    );
    let rule =
        |it: &str| consideration("own", &format!("  when: '{it}'\n  satisfied: todos.open == 0"));
    let both = "files.matching(\"src/gen/**\").count > 3 && files.matching(\"src/**\").count < 2";
    check("considerations.yaml", "PD601", &[(&rule(both), "never")]);
}

#[test]
fn a_rule_is_for_sessions_in_which_it_applies() {
    let rule = |it: &str| {
        let (types, when) = it.split_once(" / ").unwrap();
        consideration(
            "own",
            &format!(
                "  applicable_session_types: [{types}]\n  when: '{when}'\n  satisfied: transcript.prompts == 0"
            ),
        )
    };
    check_made(
        ("considerations.yaml", rule),
        "PD616",
        &[
            ("INVESTIGATION / files.kind(\"code\").count > 0", "no session is INVESTIGATION"),
            ("SIMPLE / files.count > 2", "no session is SIMPLE"),
            ("INVESTIGATION, MAINTENANCE / commands.kind(\"test\").count > 0", "no session is"),
            ("DEVELOPMENT / files.count == 0", ""),
            ("MAINTENANCE / files.count > 0", ""),
            ("INVESTIGATION / todos.open > 0", ""),
            ("DEVELOPMENT, SIMPLE / files.count > 2", ""),
            ("\"*\" / files.count > 2", ""),
        ],
    );
}
