//! What lint says of facts that an event does not have, and of names that nobody defines.

use policyd::lint::Profile;
use policyd::report::diagnostics::render_compact;

use crate::subjects::{check, check_made, consideration, look};

/// A guard with these lines.
fn guard(lines: &str) -> String {
    format!("- id: own\n{lines}\n  decision: warn\n  message: Look.\n")
}

fn guards(code: &str, situations: &[(&str, &str)]) {
    check_made(("guards.yaml", guard), code, situations);
}

/// Considerations that are satisfied where these hold.
fn satisfied(code: &str, situations: &[(&str, &str)]) {
    let made = |it: &str| consideration("own", &format!("  satisfied: '{it}'"));
    check_made(("considerations.yaml", made), code, situations);
}

fn reactions(code: &str, situations: &[(&str, &str)]) {
    let made = |it: &str| format!("- id: own\n{it}\n  breaker: api/own\n  result: failure\n");
    check_made(("reactions.yaml", made), code, situations);
}

#[test]
fn an_event_at_which_a_rule_is_not_judged_is_told() {
    guards(
        "PD230",
        &[
            ("  when: event.kind == \"stop\"", "`own` is not evaluated at `stop`"),
            ("  when: event.kind == \"pre_tool_use\" && event.tool == \"Bash\"", ""),
            (
                "  on: [post_tool_use]\n  when: event.kind != \"pre_tool_use\"",
                "`own` is not evaluated",
            ),
            ("  on: [pre_tool_use, post_tool_use]\n  when: event.kind == \"post_tool_use\"", ""),
            (
                "  when: event.kind in [\"pre_tool_use\", \"post_tool_use\"]",
                "`own` is not evaluated at `p",
            ),
        ],
    );
    satisfied(
        "PD230",
        &[
            (
                "event.kind == \"subagent_stop\" || todos.open == 0",
                "`own` is not evaluated at `sub",
            ),
            ("event.kind == \"stop\" || todos.open == 0", ""),
        ],
    );
    reactions(
        "PD230",
        &[
            (
                "  on: [stop_failure]\n  when: event.kind == \"stop\"",
                "`own` is not evaluated at `stop`",
            ),
            ("  on: [stop_failure, stop]\n  when: event.kind == \"stop\"", ""),
        ],
    );
}

#[test]
fn a_tool_or_a_session_type_that_a_rule_is_not_for_is_told() {
    let not = "`own` does not apply to the tool `Write`";
    guards(
        "PD241",
        &[
            ("  tools: [Edit]\n  when: event.tool == \"Write\"", not),
            ("  tools: [Edit]\n  when: event.tool in [\"Edit\", \"Write\"]", not),
            ("  tools: [Bash, Edit]\n  when: event.tool != \"Write\" || todos.open > 0", not),
            ("  tools: [\"*dit\", Write]\n  when: event.tool in [\"MultiEdit\", \"Write\"]", ""),
            ("  tools: [\"mcp__db__*\"]\n  when: event.tool != \"mcp__db__read\"", ""),
            ("  when: event.tool == \"Write\"", ""),
            // What no client has is told as such.
            ("  tools: [Edit]\n  when: event.tool == \"Edti\"", ""),
        ],
    );
    let not = "`own` does not apply to the session type `OPERATIONS`";
    satisfied(
        "PD241",
        &[
            ("session.type == \"OPERATIONS\" || todos.open == 0", not),
            ("session.type == \"DEVELOPMENT\" || todos.open == 0", ""),
        ],
    );
}

#[test]
fn what_an_event_does_not_have_is_told() {
    satisfied(
        "PD230",
        &[
            ("event.tool == \"Bash\"", "`event.tool` is not available at `stop`"),
            ("event.input(\"file_path\") != \"\"", "`event.input` is not available at `stop`"),
            ("event.prompt.contains(\"x\")", "`event.prompt` is not available at `stop`"),
            ("tools.last_name == \"Bash\" && event.background_running == 0", ""),
        ],
    );
    guards(
        "PD230",
        &[
            ("  when: event.tool == \"Bash\" && action.runs(\"npm publish\")", ""),
            (
                "  when: event.prompt.contains(\"x\")",
                "`event.prompt` is not available at `pre_tool_use`",
            ),
            ("  on: [user_prompt_submit]\n  when: event.prompt.contains(\"x\")", ""),
            ("  on: [user_prompt_submit]\n  when: action.secrets.len() > 0", ""),
            (
                "  on: [user_prompt_submit]\n  when: action.command == \"x\"",
                "`action` is not available at",
            ),
            (
                "  on: [user_prompt_submit]\n  tools: [Bash]",
                "tool call is not available at `user_prompt_s",
            ),
            (
                "  on: [session_start]\n  commands: [git push]",
                "tool call is not available at `session_s",
            ),
            ("  on: [user_prompt_submit, pre_tool_use]\n  tools: [Bash]", ""),
        ],
    );
    reactions(
        "PD230",
        &[
            (
                "  on: [stop]\n  when: event.class == \"overloaded\"",
                "`event.class` is not available at",
            ),
            ("  on: [stop_failure]\n  when: event.class == \"overloaded\"", ""),
            (
                "  on: [stop_failure]\n  when: event.source == \"resume\"",
                "`event.source` is not available",
            ),
        ],
    );
}

#[test]
fn a_name_that_nobody_defines_is_told() {
    satisfied(
        "PD231",
        &[
            ("signals.count(\"STPO\") == 0", "undefined signal `STPO`"),
            ("signals.count(\"STOP\") == 0", ""),
            ("!signals.pending.contains(\"STPO\")", "undefined signal `STPO`"),
            ("!(\"STPO\" in signals.pending)", "undefined signal `STPO`"),
            ("!signals.pending.any_in([\"STOP\", \"PAUS\"])", "undefined signal `PAUS`"),
            ("!breakers[\"probe/prs\"].open", "undefined breaker of a probe `probe/prs`"),
            ("!breakers[\"probe/pr\"].open && !breakers[\"api/own\"].open", ""),
            ("!breakers.open.contains(\"probe/prs\")", "undefined breaker of a probe"),
            ("!rationalizations.proven.any_in([\"edge_cas\"])", "undefined excuse `edge_cas`"),
            ("!rationalizations.names.contains(\"edge_case\")", ""),
            ("!dead_letter.alarms.contains(\"full\")", "undefined alarm `full`"),
        ],
    );
    guards(
        "PD231",
        &[
            (
                "  when: action.secrets.contains(\"AWS key\")",
                "undefined class of secrets `AWS key`",
            ),
            ("  when: action.secrets.any_in([\"AWS access key\", \"GitHub token\"])", ""),
            ("  when: \"\\\"git\\\" in action.programs\"", ""),
        ],
    );
    reactions(
        "PD231",
        &[
            (
                "  on: [stop_failure]\n  when: event.class == \"rate_limits\"",
                "undefined failure class",
            ),
            (
                "  on: [stop_failure]\n  when: event.class in [\"rate_limit\", \"unknown\", \"\"]",
                "",
            ),
        ],
    );
    check(
        "dead_letter.yaml",
        "PD231",
        &[
            (
                "enter:\n  - id: own\n    when: task.trigger == \"irreversibl\"\n",
                "undefined trigger",
            ),
            ("enter:\n  - id: own\n    when: task.trigger == \"irreversible\"\n", ""),
        ],
    );
}

#[test]
fn a_value_that_is_nearly_a_known_one_is_told() {
    satisfied(
        "PD232",
        &[
            (
                "event.permission_mode != \"plna\"",
                "no client reports `plna` as `event.permission_mode`",
            ),
            ("event.permission_mode != \"plan\"", ""),
            ("event.permission_mode != \"somethingElse\"", ""),
        ],
    );
    reactions(
        "PD232",
        &[
            (
                "  on: [session_start]\n  when: event.source == \"resumed\"",
                "no client reports `resumed`",
            ),
            ("  on: [session_start]\n  when: event.source == \"fork\"", ""),
            ("  on: [session_start]\n  when: event.source == \"autopilot\"", ""),
            ("  on: [post_tool_use_failure]\n  when: event.error == \"Timeout\"", ""),
            (
                "  on: [stop_failure]\n  when: event.error == \"rate_limt\"",
                "no client reports `rate_limt`",
            ),
        ],
    );
    let review = |it: &str| {
        format!("review:\n  - id: own\n    when: task.error_type == \"{it}\"\n    do: retry\n")
    };
    check_made(
        ("dead_letter.yaml", review),
        "PD232",
        &[
            ("tiemout", "no known failure reports `tiemout` as `task.error_type`"),
            ("timeout", ""),
            // A class of the built-in pack, and a name of somebody's own.
            ("dependency", ""),
            ("own_error", ""),
        ],
    );
}

#[test]
fn a_breaker_that_somebody_tells_of_calls_is_there() {
    let guard = guard("  commands: [own]\n  when: breakers[\"probe/hand\"].open");
    let reaction =
        "- id: own\n  on: [post_tool_use_failure]\n  breaker: probe/hand\n  result: failure\n";
    let told = |files: &[(&str, &str)]| {
        render_compact(&look(files, Profile::Default).findings).contains("PD231")
    };
    assert!(told(&[("guards.yaml", &guard)]));
    assert!(!told(&[("guards.yaml", &guard), ("reactions.yaml", reaction)]));
}

#[test]
fn names_of_a_file_that_cannot_be_read_are_not_missed() {
    let rule = consideration("own", "  satisfied: signals.count(\"OWN\") == 0");
    let signals = |id: &str| format!("signals:\n  - {{id: {id}}}\n");
    let found = |signals: &str| {
        let files = [("considerations.yaml", rule.as_str()), ("signals.yaml", signals)];
        let found = look(&files, Profile::Default).findings;
        found.iter().any(|it| it.code == "undefined-name")
    };
    assert!(found(&signals("OTHER")));
    assert!(!found(&signals("OWN")));
    assert!(!found(&signals("[OWN")));
    assert!(!found("signals: 3\n"));
}

#[test]
fn an_answer_has_the_fields_that_its_probe_asks_for() {
    let said = |command: &str, asked: &str| {
        let probe = format!("- id: own\n  command: [{command}]\n  parse: json\n  missing: Own.\n");
        let rule = consideration("rule", &format!("  satisfied: '!probes.own.ok || {asked}'"));
        let files = [("probes.yaml", probe.as_str()), ("considerations.yaml", rule.as_str())];
        let found = render_compact(&look(&files, Profile::Default).findings);
        found.lines().find(|it| it.contains("PD243")).map(str::to_owned).unwrap_or_default()
    };
    let state = r#"probes.own.text("state") == "OPEN""#;
    for command in [
        r#"gh, pr, view, --json, "url,title""#,
        "gh, pr, view, --json=url",
        "/usr/bin/gh, pr, view, --json, url",
    ] {
        assert!(said(command, state).contains("does not request `state`"), "{command}");
    }
    let near = said(
        r#"gh, run, list, --json, "name,conclusion""#,
        r#"probes.own.list("[].conclusions").len() == 0"#,
    );
    assert!(near.contains("did you mean `conclusion`?"), "{near}");
    assert!(
        said("tea, pulls, list, --fields, index", r#"probes.own.number("[0].ci") > 0"#)
            .contains("`ci`")
    );
    for (command, asked) in [
        (r#"gh, pr, view, --json, "url, state""#, state),
        ("gh, pr, view, --json, url, --jq, .url", state),
        ("gh, pr, view", state),
        ("own, --json, url", state),
        (r#"gh, issue, view, --json, url, --json, "state,title""#, state),
        ("gh, pr, view, --json, labels", r#"probes.own.list("labels[].name").len() > 0"#),
        ("gh, pr, list, --json, labels", r#"probes.own.text("[0].labels[0].name") == "x""#),
        ("gh, pr, view, --json, labels", r#"probes.own.text("") == "x""#),
    ] {
        assert_eq!(said(command, asked), "", "{command} {asked}");
    }
}

#[test]
fn a_rule_creates_one_signal_that_needs_no_more_than_it_says() {
    let trigger = |it: &str| {
        format!("triggers:\n  - {{id: own, when: run.security, emit: {it}, reason: It is.}}\n")
    };
    check_made(
        ("signals.yaml", trigger),
        "PD129",
        &[
            ("FEATURE_READY_*", "write one name: `FEATURE_READY_…`"),
            ("DRIFT_DETECTED", "requires the field `detected_drift`"),
            ("FEATURE_READY_LOGIN", ""),
            ("HUMAN_REVIEW_NEEDED", ""),
            ("REVIEW_*", ""), // There is none: that is told as such.
        ],
    );
    let drift = |it: &str| {
        format!("drift:\n  - {{id: own, when: drift.in_task > 9, message: Away., emit: [{it}]}}\n")
    };
    check_made(
        ("signals.yaml", drift),
        "PD129",
        &[("CONTEXT_CLEAR_REQUESTED", ""), ("\"TESTS_PASSED_*\"", "write one name")],
    );
}

#[test]
fn an_own_class_of_failures_leaves_the_inherited_ones_theirs() {
    let class = |it: &str| format!("classes:\n  - {{id: own, {it}, attempt: false}}\n");
    check_made(
        ("failures.yaml", class),
        "PD149",
        &[
            ("errors: [rate_limit]", "leave the inherited class `rate_limit`"),
            ("regexes: ['error']", "this also matches failures of the inherited classes"),
            ("regexes: ['.']", "this also matches"),
            ("regexes: ['failed$']", "`build_failure`, `test_failure`"),
            ("regexes: ['proxy failed']", ""),
            ("regexes: ['failed$'], unless: ['^build', tests]", ""),
            ("regexes: ['rate.?limit']", ""), // One of them may be split.
            ("regexes: ['rate limit exceeded']", ""), // One of them may be split.
            ("errors: [proxy]", ""),
        ],
    );
    check(
        "failures.yaml",
        "PD149",
        &[(
            "classes:\n  - {id: rate_limit, override: true, errors: [rate_limit], regexes: ['.']}\n",
            "",
        )],
    );
}

#[test]
fn a_probe_asks_a_program_that_there_is() {
    let probe =
        |it: &str| format!("- id: own\n  command: [{it}]\n  parse: text\n  missing: Own.\n");
    check_made(
        ("probes.yaml", probe),
        "PD232",
        &[
            ("dokcer, ps", "did you mean `docker`?"),
            ("git, stauts", "did you mean `status`?"),
            ("/usr/bin/git, comit, --dry-run", "did you mean `commit`?"),
            ("git, status", ""),
            ("./tools/dokcer, ps", ""),
            ("git, blame, a.rs", ""),
            ("own-tool, stauts", ""),
        ],
    );
}

#[test]
fn an_inherited_probe_goes_on_asking_for_what_inherited_rules_read() {
    let probe = |it: &str| format!("- id: pr\n  override: true\n  command: [{it}]\n");
    check_made(
        ("probes.yaml", probe),
        "PD243",
        &[
            (
                "gh, pr, view, --json, \"number,state,isDraft,mergeable,statusCheckRollup,url\"",
                "inherited rules read `labels`, `reviewDecision`, which this command no longer requests",
            ),
            (
                "gh, pr, view, --json, \"number,state,isDraft,mergeable,statusCheckRollup,reviewDecision,labels\"",
                "",
            ),
            ("own-forge, pr", ""),
        ],
    );
}

#[test]
fn a_project_does_not_lie_at_the_root_of_the_disk() {
    let own = |it: &str| {
        format!(
            "- id: own\n  when: 'action.writes([\"{it}\"])'\n  decision: deny\n  message: No.\n"
        )
    };
    check_made(
        ("guards.yaml", own),
        "PD313",
        &[
            ("/src/**", "write `src/**`"),
            ("/package.json", "write `package.json`"),
            ("!/src/**", "write `!src/**`"),
            ("/etc/**", ""),
            ("/config/**", ""),
            ("/home/dev/src/**", ""),
            ("src/**", ""),
            ("**/src/**", ""),
        ],
    );
    let kind = "files: {generated: {globs: [/dist/**]}}\n";
    check("vocabulary.yaml", "PD313", &[(kind, "starts at the root of the file system")]);
}

#[test]
fn the_commands_of_other_tools_are_no_lines_of_a_shell() {
    let own = |it: &str| {
        format!(
            "- id: own\n  tools: [{it}]\n  when: event.input(\"command\") == \"find\"\n  decision: ask\n  message: M.\n"
        )
    };
    check_made(
        ("guards.yaml", own),
        "PD244",
        &[
            ("mcp__editor__run", ""),
            ("Bash", "can start with other text"),
            ("\"*\"", "can start with other text"),
        ],
    );
}
