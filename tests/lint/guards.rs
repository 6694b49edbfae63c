//! What lint says of guards: what they look at, and what a pack changes of those it inherits.

use policyd::lint::Profile;
use policyd::report::diagnostics::{Style, render_compact, render_text};

use crate::subjects::{check, check_made, consideration, look};

const FILE: &str = "guards.yaml";

/// A guard with these lines, which refuses.
fn guard(lines: &str) -> String {
    format!("- id: own\n{lines}\n  decision: deny\n  message: Not so.\n")
}

fn each(code: &str, situations: &[(&str, &str)]) {
    check_made((FILE, guard), code, situations);
}

#[test]
fn a_list_of_nothing_is_no_filter() {
    each(
        "PD139",
        &[
            ("  commands: [deploy]", ""),
            ("  commands: []", "`commands` is an empty list of programs"),
            ("  tools: []", "`tools` is an empty list of tools"),
            ("  commands: [deploy, \"\"]", "`commands` contains an empty name"),
            ("  tools: [Bash]", ""),
        ],
    );
}

#[test]
fn what_starts_other_programs_is_looked_through() {
    each(
        "PD140",
        &[
            ("  commands: [git push]", ""),
            ("  commands: [sudo]", "`sudo` is unwrapped"),
            ("  commands: [sudo git]", "`sudo` is unwrapped"),
            ("  commands: [docker exec]", "`docker exec` is unwrapped"),
            ("  commands: [docker]", ""),
            ("  commands: [ssh]", ""),
            ("  commands: [FOO=1 make]", "are not part of a command pattern"),
            ("  commands: [env]", ""),
            ("  commands: [sudo]\n  when: program.operands.len() == 0", ""),
            ("  commands: [sudo git]\n  when: program.operands.len() == 0", "`sudo` is unwrapped"),
            ("  when: action.runs(\"npx prettier\")", "`npx` is unwrapped"),
        ],
    );
}

#[test]
fn folders_are_no_programs() {
    each(
        "PD140",
        &[
            ("  commands: [scripts/*]", "`scripts/*` matches every program"),
            ("  commands: [\"./**\"]", "`./**` matches every program"),
            ("  commands: [bin/]", "`bin/` matches no program"),
            ("  commands: [/usr/bin/git push]", ""),
            ("  commands: [\"scripts/*.sh\"]", ""),
            ("  commands: [\"*\"]", ""),
            ("  commands: [git add src/*]", ""),
            ("  when: action.runs(\"bin/*\")", "`bin/*` matches every program"),
        ],
    );
}

#[test]
fn options_begin_with_a_dash() {
    each(
        "PD313",
        &[
            ("  commands: [git push]\n  when: program.has([\"-f\", \"--force\"])", ""),
            ("  commands: [git push]\n  when: program.has([\"force\"])", "write `--force`"),
            ("  commands: [git push]\n  when: program.has([\"\u{2014}force\"])", "write `--force`"),
            ("  commands: [git push]\n  when: program.has([\"o\"])", "write `-o`"),
            ("  commands: [chmod]\n  when: program.has([\"+x\"])", ""),
        ],
    );
}

#[test]
fn a_text_that_a_comment_cuts_is_told() {
    let said = |message: &str| {
        format!("- id: own\n  commands: [x]\n  decision: deny\n  message: {message}\n")
    };
    for (message, found) in [
        ("Ask in #releases first.", "is a comment"),
        ("See issue #12", "is a comment"),
        ("\"Ask in #releases first.\"", ""),
        ("Not now. # until the release", ""),
        ("C# is fine", ""),
    ] {
        check(FILE, "PD031", &[(&said(message), found)]);
    }
    let pattern = |it: &str| format!("texts:\n  own:\n    regexes:\n      - {it}\n");
    check_made(
        ("vocabulary.yaml", pattern),
        "PD031",
        &[
            ("fixes #12", "is a comment"),
            (r"(closes|fixes) #\d+", "is a comment"),
            (r"'(closes|fixes) #\d+'", ""),
            (r"fixes#\d+", ""),
            ("fixes # issues", ""),
            ("fixes #-----", ""),
        ],
    );
}

#[test]
fn names_of_tools_are_those_of_a_client() {
    each(
        "PD231",
        &[
            ("  tools: [Bash]", ""),
            ("  tools: [bash]", "did you mean `Bash`?"),
            ("  tools: [Bash, bash]", ""),
            ("  tools: [mcp__github__create]", ""),
            ("  tools: [mcp__github]", "write `mcp__github__*`"),
            ("  tools: [\"mcp__github__.*\"]", "write `mcp__github__*`"),
            ("  tools: [\"mcp__*\"]", ""),
        ],
    );
    each(
        "PD231",
        &[
            ("  when: action.tool == \"Bash\"", ""),
            ("  when: action.tool == \"Bsh\"", "no client has a tool `Bsh`"),
            ("  when: action.tool in [\"Write\", \"Edti\"]", "no client has a tool `Edti`"),
            ("  when: '[\"Write\", \"Edti\"].contains(event.tool)'", "no client has a tool `Edti`"),
        ],
    );
}

#[test]
fn globs_over_the_paths_of_a_call_are_looked_at() {
    let asked = |glob: &str| format!("  when: action.changes([{glob:?}])");
    for (code, glob, said) in [
        ("PD307", "src/{a,b/**", "has an unmatched brace"),
        ("PD307", "src/generated/", "do not end with `/`"),
        ("PD307", "a.rs,b.rs", "a comma does not separate"),
        ("PD307", "**/*,v", ""),
        ("PD307", "*.{a,b}", ""),
        ("PD307", "*.{ts|tsx}", "`|` does not separate"),
        ("PD307", "./.env", ""),
        ("PD307", "!./src/**/", "do not end with `/`"),
        ("PD307", "./", "do not start with `./`"),
        ("PD307", "$HOME/.ssh/*", "variables are not expanded"),
        ("PD307", "*.rs, *.toml", "a comma does not separate"),
        ("PD307", "!src/../x", "paths do not contain `..`"),
        ("PD307", "~/.ssh/**", ""),
        ("PD307", "!src/**", "all of these globs are exclusions"),
    ] {
        each(code, &[(&asked(glob), said)]);
    }
    each("PD307", &[("  when: action.changed.any([\"a/\"])", "do not end with `/`")]);
}

#[test]
fn an_inherited_guard_is_not_made_weaker_without_a_reason() {
    let changed = |lines: &str| format!("- id: rm_recursive\n  override: true\n{lines}\n");
    for (lines, said) in [
        ("  commands: [rmx]", "this override weakens"),
        ("  enabled: false", "this override weakens"),
        ("  mode: shadow", "this override weakens"),
        ("  decision: warn", "this override weakens"),
        ("  decision: allow", "this override weakens"),
        ("  decision: allow\n  reason: a sandbox", ""),
        ("  message: Ask first.", ""),
        ("  decision: halt", ""),
    ] {
        check("destructive-commands.yaml", "PD116", &[(&changed(lines), said)]);
    }
    let expired = guard("  commands: [deploy]\n  expires: 2020-01-31");
    check(FILE, "PD117", &[(&expired, "`own` has expired")]);
    let types = "- id: local_testing\n  override: true\n  applicable_session_types: [SIMPLE]\n";
    check("considerations.yaml", "PD116", &[(types, "this override weakens")]);
}

#[test]
fn dates_are_compared_in_one_form() {
    let rule = |condition: &str| consideration("a", &format!("  satisfied: {condition}"));
    for (condition, said) in [
        ("now.date < \"2027-01-31\"", ""),
        ("now.date < \"2027\"", ""),
        ("now.date < \"01/31/2027\"", "is compared as a text"),
        ("now.date > \"2026-9-30\"", "is compared as a text"),
        ("now.date == \"31.12.2026\"", "is compared as a text"),
        ("now.date == \"2026-02-30\"", "is never \"2026-02-30\""),
        // What is compared as a text may end a month.
        ("now.date <= \"2026-02-31\"", ""),
        ("now.date == \"2028-02-29\"", ""),
        ("now.date in [\"2026-02-30\"]", "is never \"2026-02-30\""),
        ("'[\"2026-02-30\"].contains(now.date)'", "is never \"2026-02-30\""),
        ("session.type in [\"DEVELOPMENT\", \"MAINTENENCE\"]", "is never \"MAINTENENCE\""),
        ("'[\"DEVELOPMENT\", \"MAINTENENCE\"].contains(session.type)'", "is never \"MAINTENENCE\""),
    ] {
        check("considerations.yaml", "PD209", &[(&rule(condition), said)]);
    }
}

#[test]
fn rules_of_other_groups_and_those_switched_off_are_in_nobodys_way() {
    let rules = |first: &str, second: &str| {
        format!(
            "review:\n  - {{id: a, when: task.attempts >= 3, {first}}}\n  \
             - {{id: b, when: task.attempts >= 5, {second}}}\n"
        )
    };
    for (first, second, said) in [
        ("do: wait", "do: wait", "`b` never decides"),
        ("do: abandon", "do: retry", ""),
        ("do: abandon, group: human", "do: retry, group: human", "`b` never decides"),
        ("do: wait, enabled: false", "do: wait", ""),
    ] {
        check("dead_letter.yaml", "PD615", &[(&rules(first, second), said)]);
    }
}

#[test]
fn a_key_is_no_secret_because_of_the_key_below_it() {
    let contents = "contents:\n  token:\n    regexes: ['x[0-9]']\n";
    check("vocabulary.yaml", "PD708", &[(contents, "")]);
    let text = consideration("a", "  satisfied: todos.seen\n  guidance: use password=hunter2");
    check("considerations.yaml", "PD708", &[(&text, "possible secret")]);
    // What is shown of it may be kept for everybody to see.
    let found = look(&[("considerations.yaml", &text)], Profile::Default).findings;
    let shown = render_text(&found, Style { color: false });
    assert!(shown.contains("password=***") && !shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("possible secret (named value)"), "the message is not masked: {shown}");
}

#[test]
fn the_public_key_of_a_remote_pack_is_no_secret() {
    let extends = |key: &str| {
        let source = "https://example.org/pack.tar.zst";
        format!("version: 1\nextends:\n  - {{source: \"{source}\", key: {key}}}\n")
    };
    let public = ["RWSprjCsxvxmDrqqSnpU", "vXJiJgnCRyL5z4UEAvxrYFZ2lV4AbCdEfGhI"].concat();
    let longer = format!("{public}{public}");
    check(
        "policyd.yaml",
        "PD708",
        &[(&extends(&public), ""), (&extends(&longer), "possible secret")],
    );
}

#[test]
fn a_row_of_a_table_says_when_it_answers() {
    let table = "- id: t\n  inputs: {n: {type: number}}\n  rows:\n    - {when: given.n > 5, answer: a}\n    \
                 - {answer: b}\n  otherwise: c\n";
    let found = look(&[("tables.yaml", table)], Profile::Default).findings;
    assert_eq!(found.iter().map(|it| it.code).collect::<Vec<_>>(), ["missing-key"], "{found:?}");
}

#[test]
fn what_no_tool_of_a_guard_does_is_not_asked() {
    let made = |it: &str| format!("- id: own\n  {it}\n  decision: deny\n  message: No.\n");
    check_made(
        ("guards.yaml", made),
        "PD241",
        &[
            ("tools: [Write]\n  when: action.address != \"\"", "fetches an address"),
            ("tools: [WebFetch]\n  when: action.address != \"\"", ""),
            ("tools: [Write, WebFetch]\n  when: action.address != \"\"", ""),
            ("tools: [Write]\n  when: action.runs(\"git push\")", "runs commands"),
            ("tools: [Write, Bash]\n  when: action.runs(\"git push\")", ""),
            ("tools: [Read]\n  when: action.writes([\"*.pem\"])", "changes a file"),
            ("tools: [Read]\n  when: action.changed.outside", "changes a file"),
            ("tools: [Read]\n  when: action.reads([\"*.pem\"])", ""),
            ("tools: [Glob, Bash]\n  when: action.reads([\"*.pem\"])", ""),
            ("tools: [Write, Edit]\n  when: action.reads([\"*.pem\"])", "reads a file"),
            ("tools: [Write, Edit]\n  when: action.touches([\"*.pem\"])", ""),
            ("tools: [WebFetch]\n  when: action.touches([\"*.pem\"])", "touches a file"),
            ("tools: [Bash]\n  when: action.writes([\"*.pem\"])", ""),
            ("tools: [\"mcp__*\"]\n  when: action.runs(\"git push\")", ""),
            ("tools: [\"*\"]\n  when: action.runs(\"git push\")", ""),
            ("when: action.runs(\"git push\")", ""),
            (
                "tools: [Write]\n  when: action.runs(\"a\") || action.command == \"b\"",
                "runs commands",
            ),
        ],
    );
}

#[test]
fn words_of_a_pattern_are_no_operands() {
    let made = |it: &str| format!("- id: own\n  {it}\n  decision: deny\n  message: No.\n");
    check_made(
        ("guards.yaml", made),
        "PD313",
        &[
            (
                "commands: [git push]\n  when: program.operands.first() == \"push\"",
                "`push` is already part of the pattern `git push`",
            ),
            (
                "commands: [git push]\n  when: program.names([\"push\"])",
                "is already part of the pattern",
            ),
            (
                "commands: [git push]\n  when: '\"push\" in program.operands'",
                "is already part of the pattern",
            ),
            ("commands: [git]\n  when: program.operands.first() == \"push\"", ""),
            ("commands: [git push, git fetch]\n  when: program.names([\"push\"])", ""),
            ("commands: [git push]\n  when: program.names([\"origin\"])", ""),
            ("commands: [\"npm run *\"]\n  when: program.names([\"*\"])", ""),
        ],
    );
    check_made(
        ("guards.yaml", made),
        "PD313",
        &[
            (
                "commands: [git push]\n  when: program.has([\"--force*\"])",
                "is not the name of an option",
            ),
            ("commands: [git push]\n  when: program.has([\"--force\"])", ""),
            ("commands: [rm]\n  when: program.has([\"-*\"])", "is not the name of an option"),
            ("commands: [rm]\n  when: program.has([\"-r -f\"])", "as a single option"),
            ("commands: [rm]\n  when: program.has([\"-f|--force\"])", "as a single option"),
            ("commands: [rm]\n  when: program.has([\"-r,-f\"])", "as a single option"),
            ("commands: [gcc]\n  when: program.has([\"-Wl,-z,now\"])", ""),
        ],
    );
}

#[test]
fn patterns_are_written_where_they_are_understood() {
    let made = |it: &str| format!("- id: own\n  {it}\n  decision: deny\n  message: No.\n");
    check_made(
        ("guards.yaml", made),
        "PD315",
        &[
            ("commands: [\"^git push\"]", "is a regular expression in a command pattern"),
            ("commands: [\"git push.*\"]", "is a regular expression in a command pattern"),
            ("commands: [\"git push *\"]", ""),
            ("commands: [\"mkfs.*\"]", ""),
            ("commands: [\"{npm,yarn,pnpm} publish\"]", ""),
            ("commands: [\"rm .*\"]", ""),
            ("commands: [\"make test.*\"]", ""),
            ("commands: [git push]\n  when: program.operands.contains(\"a/*:b/*\")", ""),
            ("commands: [git]\n  when: program.name == \"g*\"", "`g*` is compared literally"),
            ("commands: [rm]\n  when: program.operands.contains(\"*\")", ""),
            ("commands: [git push]\n  when: program.names([\"release/*\"])", ""),
        ],
    );
    let branch = |it: &str| consideration("own", &format!("  satisfied: '{it}'"));
    check_made(
        ("considerations.yaml", branch),
        "PD315",
        &[
            (
                "session.branch in [\"main\", \"release/*\"]",
                "`release/*` is not the name of a branch",
            ),
            ("session.branch == \"origin/main\"", "(write `main`)"),
            ("session.branch == \"main\"", ""),
            ("files.last_path == \"/work/*.md\"", "`/work/*.md` is compared literally"),
        ],
    );
    check_made(
        ("guards.yaml", made),
        "PD313",
        &[
            (
                "commands: [make]\n  when: program.operands.first() == \"--prod\"",
                "is an option, not an operand",
            ),
            ("commands: [kubectl]\n  when: program.names([\"pvc,pv\"])", ""),
            ("commands: [a]\n  when: program.value(\"--env=prod\") != \"\"", "contains a value"),
        ],
    );
}

#[test]
fn a_comma_in_a_command_pattern_separates_nothing() {
    let made =
        |it: &str| format!("- id: own\n  commands: [\"{it}\"]\n  decision: deny\n  message: No.\n");
    check_made(
        ("guards.yaml", made),
        "PD310",
        &[
            ("git push,git commit", "a comma does not separate patterns"),
            ("{npm,yarn,pnpm} publish", ""),
            ("git commit", ""),
        ],
    );
}

#[test]
fn an_override_moves_a_guard_to_where_its_condition_knows_something() {
    let moved = |it: &str| format!("- id: fetched_address\n  override: true\n  {it}\n");
    let own = |it: &str| moved(&format!("tools: [Read]\n  when: {it}"));
    check_made(
        ("network-exfiltration.yaml", moved),
        "PD241",
        &[
            ("tools: [Read]", "none of the tools of `fetched_address` fetches an address"),
            ("tools: [Read, WebFetch]", ""),
            ("tools: [mcp__web__fetch]", ""),
            ("mode: warn", ""),
        ],
    );
    let of_its_own = [("action.reads([\"/etc/**\"])", "")];
    check_made(("network-exfiltration.yaml", own), "PD241", &of_its_own);
    check_made(
        ("network-exfiltration.yaml", moved),
        "PD230",
        &[("on: [pre_tool_use, permission_request]", "")],
    );
    let changed = |it: &str| format!("- id: {it}\n");
    check_made(
        ("protected-paths.yaml", changed),
        "PD230",
        &[
            (
                "shell_profile\n  override: true\n  on: [user_prompt_submit]",
                "`action` is not available at",
            ),
            ("shell_profile\n  override: true\n  on: [post_tool_use]\n  decision: warn", ""),
        ],
    );
    // What stands in `unless`, or beside another one, is no need.
    check_made(
        ("protected-paths.yaml", changed),
        "PD241",
        &[
            ("git_folder_written\n  override: true\n  tools: [Write, Edit]", ""),
            ("policies_switched_off\n  override: true\n  tools: [Write, Edit]", ""),
            ("shell_profile\n  override: true\n  tools: [WebFetch]", "changes a file"),
            ("shell_profile\n  override: true\n  tools: [Edit, Bash]", ""),
        ],
    );
    // Programs are looked for in calls of shells.
    let moved = |it: &str| format!("- id: git_push_force\n  override: true\n  {it}\n");
    check_made(
        ("git-discipline.yaml", moved),
        "PD230",
        &[("on: [user_prompt_submit]", "tool call is not available at `user_prompt_submit`")],
    );
    check_made(
        ("git-discipline.yaml", moved),
        "PD241",
        &[("tools: [Write]", "none of these tools runs commands"), ("tools: [Bash]", "")],
    );
    let secret = |it: &str| {
        format!(
            "- id: own\n  on: [{it}]\n  when: action.secrets.len() > 0\n  decision: warn\n  message: No.\n"
        )
    };
    check_made(
        ("guards.yaml", secret),
        "PD230",
        &[("session_start", "`action.secrets` is not available at"), ("user_prompt_submit", "")],
    );
    let away = |it: &str| {
        format!(
            "- id: own\n  {it}\n  when: 'action.deletes([\"**/*.md\"])'\n  decision: deny\n  message: No.\n"
        )
    };
    check_made(
        ("guards.yaml", away),
        "PD241",
        &[("tools: [Edit, Write]", "deletes a file"), ("tools: [Bash, Write]", "")],
    );
    let reaction = |it: &str| {
        format!("- id: own\n  on: [{it}]\n  when: event.tier == \"opus\"\n  say: It is.\n")
    };
    check_made(
        ("reactions.yaml", reaction),
        "PD230",
        &[
            ("session_start", "`event.tier` is not available at `session_start`"),
            ("stop_failure", ""),
            ("stop", ""),
        ],
    );
}

#[test]
fn one_mistake_in_a_guard_hides_no_other() {
    let guard = "- {id: own, when: filez.count > 3, decision: deni, message: \"${program.lin}\"}\n";
    let said = render_compact(&look(&[("guards.yaml", guard)], Profile::Default).findings);
    for mistake in ["unknown value `deni`", "unknown fact `filez`", "program has no `lin`"] {
        assert!(said.contains(mistake), "{mistake}: {said}");
    }
}

#[test]
fn a_guard_says_why_in_its_message() {
    let own = |it: &str| format!("- id: own\n  commands: [deploy]\n  decision: deny\n  {it}\n");
    check_made(
        ("guards.yaml", own),
        "PD623",
        &[
            ("reason: Deploys are for humans.", "the `reason` of `own` is not shown"),
            ("reason: It is late.\n  description: Deploys are for humans.", "is not shown"),
            ("tools: [Bash]", "`own` has no message"),
            ("message: Deploys are for humans.", ""),
            ("message: [{when: 'program.names([\"a\"])', text: A.}, {text: B.}]", ""),
            (
                "message: [{when: 'program.names([\"a\"])', text: A.}]",
                "`own` has no text if no `when` of its texts holds",
            ),
            ("description: Deploys are for humans.", ""),
        ],
    );
    let exception =
        |it: &str| format!("- id: hooks_skipped\n  override: true\n  decision: warn\n  {it}\n");
    check_made(("git-discipline.yaml", exception), "PD623", &[("reason: We rebase.", "")]);
}

#[test]
fn the_line_of_a_program_is_one_program() {
    let own = |it: &str| {
        format!(
            "- id: own\n  commands: [rm, git push]\n  when: '{it}'\n  decision: deny\n  message: No.\n"
        )
    };
    check_made(
        ("guards.yaml", own),
        "PD313",
        &[
            ("program.line.contains(\"| sh\")", "use `program.fed_by([…])`"),
            ("program.line.contains(\"|sh\")", "`program.line` never contains `| sh`"),
            ("program.line.contains(\"&&\")", "`program.line` never contains `&&`"),
            ("program.line.contains(\"; rm -rf\")", "never contains `; rm -rf`"),
            ("program.line.contains(\" > /dev/\")", "use `program.changed`"),
            ("program.line.matches(\"rm .*\\\\|\\\\s*(ba)?sh\")", "never contains `| bash`"),
            ("program.line.matches(\"rm .* > /etc\")", "never contains `> /etc`"),
            ("program.line.starts_with(\"sudo \")", "use `program.wrapped_by([\"sudo\"])`"),
            ("program.line.contains(\"sudo rm\")", "use `program.wrapped_by([\"sudo\"])`"),
            ("program.line.starts_with(\"push\")", "start with the program: `git push`"),
            ("program.line.starts_with(\"/bin/rm\")", "without their directory"),
            ("program.line.contains(\"a->b\")", ""),
            ("program.line.contains(\"; drop\")", ""), // A text that a program is given.
            ("program.line.contains(\"> **Note\")", ""),
            ("program.line.matches(\"text/html;\")", ""),
            ("program.line.matches(\"alias\\\\..*\\\\|\")", ""),
            ("program.line.contains(\"--format=a|b\")", ""),
            ("program.line.matches(\"(main|master)$\")", ""),
            ("program.line.matches(\"[;|]\")", ""),
            ("program.line.starts_with(\"git push --force\")", ""),
            ("program.line.starts_with(\"g\")", ""),
            ("action.command.contains(\"&&\")", ""),
        ],
    );
    let shell = |it: &str| {
        format!(
            "- id: own\n  commands: [{it}]\n  when: program.line.contains(\"&& rm\")\n  decision: deny\n  message: No.\n"
        )
    };
    check_made(
        ("guards.yaml", shell),
        "PD313",
        &[("bash -c", ""), ("\"*\"", ""), ("ssh", ""), ("make", "never contains")],
    );
}

#[test]
fn a_program_is_recognised_wherever_it_stands_on_a_line() {
    let own = |it: &str| {
        format!("- id: own\n  tools: [Bash]\n  when: '{it}'\n  decision: deny\n  message: No.\n")
    };
    check_made(
        ("guards.yaml", own),
        "PD244",
        &[
            ("action.command.starts_with(\"git push\")", "write `commands: [git push]`"),
            ("event.input(\"command\").starts_with(\"rm -rf\")", "write `commands: [rm]`"),
            ("action.command == \"git push\"", "can start with other text"),
            ("action.command.matches(\"^git\\\\s+push\")", "write `commands: [git push]`"),
            ("action.command.contains(\"prod\")", ""),
            (
                "action.command.starts_with(\"kubectl --context prod\")",
                "check the rest with `program`",
            ),
            ("action.command != \"git push\"", ""), // What is left out leaves more to the guard.
            ("action.runs(\"git push\") && !action.command.starts_with(\"git push -n\")", ""),
            ("action.command.matches(\"^git push|&& *git push\")", ""),
            ("action.command.starts_with(\"sudo \")", ""), // It is looked through.
            ("action.command.starts_with(\"bash -c\")", ""),
            ("action.command.starts_with(\"# \")", ""),
            ("action.command.matches(\"(^|;) *git push\")", ""),
            ("action.written.starts_with(\"git push\")", ""),
            ("action.runs(\"git push\")", ""),
        ],
    );
    let allow =
        "- {id: own, tools: [Bash], when: 'action.command == \"git status\"', decision: allow}\n";
    check("guards.yaml", "PD244", &[(allow, "")]);
}
