//! What lint says of lists in `vocabulary.yaml`, of what excuses a pattern, of voices and of signals' times.

use policyd::lint::Profile;
use policyd::report::diagnostics::render_compact;

use crate::subjects::{check, check_made, consideration, look};

#[test]
fn branches_hosts_and_tools_are_named_as_they_are_called() {
    check(
        "vocabulary.yaml",
        "PD313",
        &[
            ("main_branches: [develop, release/1.2, integration]\n", ""),
            ("main_branches: [release/*]\n", "`release/*` is not the name of a branch"),
            ("main_branches: [origin/main]\n", "(write `main`)"),
            ("main_branches: [refs/heads/main]\n", "(write `main`)"),
            ("main_branches: [^main$]\n", "`^main$` is not the name of a branch"),
            ("forges: {gitlab: [git.example.com, gitlab]}\n", ""),
            (
                "forges: {gitlab: [\"https://me@git.example.com:8443/a\"]}\n",
                "(write `git.example.com`)",
            ),
            ("forges: {gitlab: [\"git@git.example.com:a/b\"]}\n", "(write `git.example.com`)"),
            ("forges: {gitlab: [\"*.example.com\"]}\n", "(write the host or a part of it"),
            ("forges: {gitlab: [GitLab]}\n", "(write `gitlab`)"),
            ("shell_tools: [Bash, bash, run_it]\n", ""),
            ("edit_tools: [\"mcp__fs__*\"]\n", "is not the name of a tool"),
            ("read_tools: [mcp__fs__read_file]\n", ""),
        ],
    );
    let near = "(did you mean `PowerShell`?)";
    check("vocabulary.yaml", "PD232", &[("shell_tools: [PowrShell]\n", near)]);
}

#[test]
fn a_variable_is_named_without_its_dollar() {
    let manifest = |it: &str| format!("version: 1\nsession_type_env: [{it}]\n");
    check_made(
        ("policyd.yaml", manifest),
        "PD313",
        &[
            ("MY_SESSION_TYPE", ""),
            ("$MY_SESSION_TYPE", "`$MY_SESSION_TYPE` is not the name of a variable"),
            ("\"${MY_SESSION_TYPE}\"", "write `MY_SESSION_TYPE`"),
            ("MY_SESSION_TYPE=REVIEW", "write `MY_SESSION_TYPE`"),
            ("\"$env:MY_SESSION_TYPE\"", "write `MY_SESSION_TYPE`"),
            ("MY-TYPE", "write `MY_TYPE`"),
        ],
    );
}

#[test]
fn what_is_excused_wherever_it_is_found_is_never_found() {
    let made = |it: &str| format!("texts:\n  own:\n    {it}\n");
    check_made(
        ("vocabulary.yaml", made),
        "PD616",
        &[
            ("{phrases: [later on], unless: [now]}", ""),
            (
                "{phrases: [later on], unless: [LATER]}",
                "the exception covers every match of `later on`",
            ),
            (
                "{phrases: [later on], unless: ['\\blater\\b']}",
                "the exception covers every match of `later on`",
            ),
            ("{phrases: ['next steps:'], unless: ['steps:']}", ""),
            ("{phrases: [as is], unless: ['as is']}", ""),
            // A sentence may begin otherwise.
            ("{phrases: [later on], unless: [^later]}", ""),
            ("{regexes: [wip], unless: [wip]}", "the exception covers every match of `wip`"),
            ("{regexes: ['w.p'], unless: ['w.p']}", "the exception covers every match of `w.p`"),
            ("{regexes: ['w.p'], unless: [wip]}", ""),
            ("{regexes: [wip], unless: ['\\bwip\\b']}", ""),
        ],
    );
    let content = |it: &str| format!("contents:\n  own:\n    {it}\n");
    check_made(
        ("vocabulary.yaml", content),
        "PD616",
        &[
            ("{regexes: [TODO], unless: [TODO]}", "the exception covers every match of `TODO`"),
            // Case counts in files.
            ("{regexes: [TODO], unless: [todo]}", ""),
        ],
    );
    let class = "classes:\n  - {id: own, regexes: [no quota], unless: [quota]}\n";
    check("failures.yaml", "PD616", &[(class, "the exception covers every match of `no quota`")]);
    let excuse = "entries:\n  - {id: own, phrases: [it is flaky], unless: [flaky], wrong: x}\n";
    check(
        "rationalizations.yaml",
        "PD616",
        &[(excuse, "the exception covers every match of `it is flaky`")],
    );
}

#[test]
fn what_no_sentence_holds_is_looked_for_in_vain() {
    let text = |it: &str| format!("texts:\n  own:\n    {it}\n");
    let excuse = |it: &str| format!("entries:\n  - {{id: own, {it}, wrong: x, action: y}}\n");
    check_made(
        ("vocabulary.yaml", text),
        "PD313",
        &[
            ("phrases: [\"?!\"]", "`?!` contains no word"),
            ("phrases: [\"run `make` now\"]", ""),
            ("phrases: [\"Done. Shipping\"]", "`Done. Shipping` spans two sentences"),
            ("phrases: [\"Done.\", v1.2 is out, \"may I?\", \"we\u{2019}ll see\"]", ""),
            (r"regexes: ['done\nshipped']", "spans two lines"),
            (r"regexes: ['done(\n|\.)shipped']", ""),
            ("regexes: ['run `make`']", "matches code"),
            ("regexes: ['run `?make']", ""),
            ("unless: ['`make`']\n    phrases: [later]", "matches code"),
            (r"regexes: ['may i\?']", ""),
        ],
    );
    check_made(
        ("rationalizations.yaml", excuse),
        "PD313",
        &[
            ("phrases: [\"is that needed?\"]", "never a rationalization"),
            ("phrases: [\"we\u{2019}ll see\"]", "has a typographic apostrophe"),
            ("phrases: [\"we'll see\"]", ""),
            (r"regexes: ['needed\?$']", "never a rationalization"),
            (r"regexes: ['(needed|wanted)\??']", ""),
            (r"regexes: ['needed\?!', 'needed\?']", ""),
            (r"regexes: ['needed'], unless: ['\?$']", ""),
            ("regexes: ['we[\u{2019}'']ll']", ""),
        ],
    );
    let others = "unless: ['he said\u{2019}']\n";
    check("rationalizations.yaml", "PD313", &[(others, "has a typographic apostrophe")]);
    // In files and in output stand code and quotes.
    let content = "contents:\n  own:\n    regexes: ['`make`']\n";
    check("vocabulary.yaml", "PD313", &[(content, "")]);
}

#[test]
fn the_commonest_words_are_no_phrases() {
    let made = |it: &str| format!("texts:\n  own:\n    phrases: {it}\n");
    check_made(
        ("vocabulary.yaml", made),
        "PD304",
        &[
            ("[not sure, but, should work]", "`but` occurs in almost every text"),
            ("[\"not sure, but\", should work]", ""),
            ("[The]", "`The` occurs in almost every text"),
            ("[later]", ""),
        ],
    );
}

#[test]
fn a_voice_is_written_as_it_is_chosen() {
    let made = |it: &str| {
        format!(
            "release:\n  - {{voice: pirate, text: Own.}}\n  - text: Other.\nsummary:\n  - {{voice: {it}, text: Own.}}\n  - text: Other.\n"
        )
    };
    check_made(
        ("messages.yaml", made),
        "PD232",
        &[
            ("pirate", ""),
            ("formal", ""),
            ("pirat", "similar to `pirate`"),
            ("Pirate", "similar to `pirate`"),
        ],
    );
    // What the manifest chooses is no slip of another one, and its own slip is told there.
    let found = |chosen: &str, [one, other]: [&str; 2]| {
        let manifest = format!("version: 1\nextends: [builtin]\nvoice: {chosen}\n");
        let texts = format!(
            "summary: [{{voice: {one}, text: A.}}]\nrelease: [{{voice: {other}, text: B.}}]\n"
        );
        let files = [("policyd.yaml", manifest.as_str()), ("messages.yaml", texts.as_str())];
        let found = look(&files, Profile::Default).findings.into_iter();
        found.filter(|it| it.code == "misspelled-name").map(|it| it.message).collect::<Vec<_>>()
    };
    assert_eq!(found("formla", ["formal", "formal"]), ["no message has the voice `formla`"]);
    assert_eq!(found("pirates", ["pirates", "pirates"]), Vec::<String>::new());
    assert_eq!(
        found("formal", ["formal", "formla"]),
        ["the voice `formla` is similar to `formal`"]
    );
}

#[test]
fn a_signal_is_void_after_it_had_to_be_answered() {
    let made = |it: &str| format!("signals:\n  - {{id: OWN, {it}}}\n");
    check_made(
        ("signals.yaml", made),
        "PD504",
        &[
            ("answer_within: 1d, on_timeout: [alert], expires: 2d", ""),
            ("answer_within: 2d, on_timeout: [alert], expires: 1d", "it expires after 1d"),
            ("on_timeout: [alert]", "`on_timeout` has no effect"),
            ("expires: 1d", ""),
        ],
    );
}

#[test]
fn options_are_listed_one_by_one() {
    check(
        "vocabulary.yaml",
        "PD313",
        &[
            ("value_options: {own: [-n, --namespace, -S*]}\n", ""),
            (
                "value_options: {own: [\"-n,--namespace\"]}\n",
                "`-n,--namespace` is not the name of an option",
            ),
            ("value_options: {own: [\"--namespace=\"]}\n", "(write `--namespace`"),
        ],
    );
}

#[test]
fn a_position_is_no_number() {
    let made = |it: &str| consideration("own", &format!("  satisfied: '{it}'"));
    check_made(
        ("considerations.yaml", made),
        "PD234",
        &[
            ("files.count < commands.kind(\"test\").last_passed_at", "`files.count` is not"),
            ("files.last_at < commands.kind(\"test\").last_passed_at", ""),
            ("commands.last(\"git push\").at > transcript.prompts", "is a position"),
            ("patterns.prompted_at(\"simple\") < files.last_at", ""),
            ("patterns.prompted_at(\"simple\") < files.edits", "`files.edits` is not"),
            ("files.last_at > 0", ""),
            ("files.count < files.edits", ""),
        ],
    );
}

#[test]
fn a_program_and_its_word_are_one_text() {
    let guard = |commands: &str| {
        format!("- id: own\n  commands: {commands}\n  decision: ask\n  message: No.\n")
    };
    check_made(
        ("guards.yaml", guard),
        "PD140",
        &[
            ("[git, push]", "`push` is matched as a separate program (write `git push`)"),
            ("[npm, git, push]", "write `git push`"),
            ("[git push]", ""),
            ("[git, docker]", ""),
            ("[git push, git]", ""),
            ("[git, frobnicate]", ""),
            ("[push, git]", ""),
            ("[make, check]", ""),
            ("[systemctl, stop]", ""),
        ],
    );
    let fed = |it: &str| {
        format!(
            "- id: own\n  commands: [sh]\n  when: program.fed_by({it})\n  decision: ask\n  message: No.\n"
        )
    };
    check_made(
        ("guards.yaml", fed),
        "PD140",
        &[("[\"git\", \"push\"]", "write `git push`"), ("[\"curl\", \"git push\"]", "")],
    );
}

#[test]
fn answers_of_a_table_are_written_alike() {
    let table = |answers: &str| {
        let answers: Vec<&str> = answers.split(' ').collect();
        let row = |(at, it): (usize, &&str)| {
            format!("    - when: given.lines > {}\n      answer: {it}\n", 900 - at)
        };
        let (last, rows) = answers.split_last().unwrap();
        let rows: String = rows.iter().enumerate().map(row).collect();
        format!("- id: own\n  inputs: {{lines: {{}}}}\n  rows:\n{rows}  otherwise: {last}\n")
    };
    check_made(
        ("tables.yaml", table),
        "PD232",
        &[
            ("HIGH HIHG", "the answer `HIHG` is similar to `HIGH`"),
            (
                "supervisr supervisor human supervisor",
                "the answer `supervisr` is similar to `supervisor`",
            ),
            ("high HIGH", "the answer `HIGH` is similar to `high`"),
            ("LOW SLOW", ""),
            ("step_1 step_2 step_12", ""),
            ("gpt-4o gpt-4", ""),
            ("v1_stable v1_stabel", "is similar to `v1_stable`"),
            ("yes Yes", "the answer `Yes` is similar to `yes`"),
            ("wait await", ""),
            ("user users approve approved", ""),
            ("S s", ""),
            ("HIGH MEDIUM LOW HIGH", ""),
        ],
    );
}

#[test]
fn of_two_answers_the_pack_s_own_is_the_slip() {
    let text = "- id: context_reminder\n  override: true\n  rows:\n    - {when: given.iteration > 90, answer: noen}\n";
    check(
        "tables.yaml",
        "PD232",
        &[(
            text,
            "policies/tables.yaml:4:44: warning[PD232]: the answer `noen` is similar to `none`",
        )],
    );
}

#[test]
fn what_the_rows_leave_is_answered_otherwise() {
    let table = |when: &str| {
        let rows = format!(
            "    - when: given.lines > 10\n      answer: a\n    - when: {when}\n      answer: b\n"
        );
        format!("- id: own\n  inputs: {{lines: {{}}}}\n  rows:\n{rows}  otherwise: c\n")
    };
    check_made(
        ("tables.yaml", table),
        "PD615",
        &[("given.lines <= 10", "`otherwise` is never used"), ("given.lines < 10", "")],
    );
}

#[test]
fn what_is_never_said_or_done_is_told() {
    let signal = |it: &str| format!("signals:\n  - id: OWN\n    {it}\n");
    check_made(
        ("signals.yaml", signal),
        "PD504",
        &[
            ("text: It waits.", "this text is never used"),
            ("text: It waits.\n    shown: true", ""),
            ("approves: OWN", "a signal cannot approve itself"),
        ],
    );
    let class = |it: &str| format!("classes:\n  - id: own\n    errors: [own]\n    {it}\n");
    check_made(
        ("failures.yaml", class),
        "PD504",
        &[
            ("effect: permanent\n    retry: {max: 3}", "permanent failures are never retried"),
            ("effect: permanent\n    retry: {max: 0}", ""),
            ("effect: trip\n    retry: {max: 3}", ""),
        ],
    );
    let review = |it: &str| {
        format!(
            "review:\n  - id: own\n    when: task.attempts > 3\n    {it}\n    strategy: permanent_abandon\n"
        )
    };
    check_made(
        ("dead_letter.yaml", review),
        "PD504",
        &[
            ("do: abandon\n    fresh: true", "`fresh` has no effect"),
            ("do: retry\n    fresh: true", ""),
            ("do: abandon\n    fresh: false", ""),
        ],
    );
}

#[test]
fn a_breaker_is_told_what_an_event_reports() {
    let reaction = |it: &str| format!("- id: own\n  breaker: api/own\n{it}\n");
    check_made(
        ("reactions.yaml", reaction),
        "PD504",
        &[
            ("  on: [stop]\n  result: failure", "a failure is reported at an event without one"),
            ("  on: [stop_failure]\n  result: success", "a success is reported at an event"),
            ("  on: [stop_failure]\n  result: failure", ""),
            ("  on: [post_tool_use]\n  when: event.tool == \"Bash\"\n  result: failure", ""),
            ("  on: [stop, stop_failure]\n  result: failure", ""),
        ],
    );
    let inherited = "- {id: api_works, override: true, result: failure, reason: a try}\n";
    check("reactions.yaml", "PD504", &[(inherited, "a failure is reported")]);
}

#[test]
fn a_kind_of_files_is_not_left_out_as_a_whole() {
    let files = |it: &str| format!("files:\n  own:\n{it}\n");
    check_made(
        ("vocabulary.yaml", files),
        "PD616",
        &[
            (
                "    globs: ['**/*.sql']\n    except: ['**']",
                "`**` excludes every file of this class",
            ),
            (
                "    globs: ['db/**/*.sql']\n    except: ['**/*.sql']",
                "`db/**/*.sql` is excluded wherever it matches",
            ),
            ("    globs: ['**/*.sql']\n    except: ['db/**/*.sql']", ""),
            ("    globs: ['*.py']\n    except: ['test_*.py']", ""),
        ],
    );
}

#[test]
fn tasks_are_not_given_up_before_a_human_was_asked() {
    let review = |it: &str| {
        format!(
            "review:\n  - id: own\n    group: {it}\n    when: task.attempts >= 1\n    do: abandon\n"
        )
    };
    check_made(
        ("dead_letter.yaml", review),
        "PD504",
        &[
            ("retry", "a rule of `retry` abandons tasks"),
            ("wait", "a rule of `wait`"),
            ("abandon", ""),
        ],
    );
}

#[test]
fn a_verdict_of_a_run_is_one_of_few() {
    let prompt = |it: &str| {
        format!("prompt:\n  - id: own\n    when: run.verdict == \"{it}\"\n    text: Own.\n")
    };
    check_made(
        ("run.yaml", prompt),
        "PD209",
        &[("intervine", "did you mean `intervene`?"), ("intervene", ""), ("", "")],
    );
}

#[test]
fn texts_without_holes_are_said_as_they_stand() {
    let trigger = |it: &str| {
        format!("triggers:\n  - id: own\n    when: task.attempts > 3\n    reason: {it}\n")
    };
    check_made(
        ("escalation.yaml", trigger),
        "PD406",
        &[
            ("\"${task.id} failed\"", "this text has no placeholders"),
            ("\"{{task.id}} failed\"", "this text has no placeholders"),
            ("'${breakers[\"api/own\"].open} is open'", "this text has no placeholders"),
            ("'${own[\"api/own\"].open} is open'", ""),
            ("\"see queue/{task.json,run.json} and ${files[@]}\"", ""),
            ("\"see {session}\"", ""),
            ("\"see {probes.yaml,checkers.yaml}\"", ""),
            ("\"see src/{task.text,other}.rs\"", ""),
            ("\"see ${HOME}\"", ""),
            ("\"write {task: done}\"", ""),
            ("It failed.", ""),
        ],
    );
}

#[test]
fn a_list_is_asked_for_whole_texts() {
    let rule = |it: &str| consideration("own", &format!("  satisfied: '{it}'"));
    check_made(
        ("considerations.yaml", rule),
        "PD313",
        &[
            ("!todos.open_list.contains(\"tests\")", "no item of `todos.open_list` equals `tests`"),
            ("!(\"cargo test\" in commands.recent)", "no item of `commands.recent` equals"),
            ("!todos.open_list.contains(\"[pending] tests\")", ""),
            ("!todos.open_list.join(\";\").contains(\"tests\")", ""),
            ("files.paths.contains(\"/a/b\")", ""),
        ],
    );
}

#[test]
fn a_name_that_is_nearly_an_inherited_one() {
    let own = |it: &str| format!("{it}\n");
    check_made(
        ("vocabulary.yaml", own),
        "PD232",
        &[
            ("commands: {tests: {programs: [just verify]}}", "did you mean `test`?"),
            ("files: {cod: {globs: [\"*.zig\"]}}", "did you mean `code`?"),
            ("forges: {gitlb: [git.example.com]}", "did you mean `gitlab`?"),
            ("commands: {test: {programs: [just verify]}}", ""),
            ("commands: {deploy: {programs: [just out]}}", ""),
            ("forges: {bitbucket: [bitbucket]}", ""),
        ],
    );
    // Whoever asks for it means it.
    let rule = consideration("own", "  satisfied: commands.kind(\"tests\").passed");
    let vocabulary = "commands: {tests: {programs: [just verify]}}\n";
    let files = [("vocabulary.yaml", vocabulary), ("considerations.yaml", rule.as_str())];
    assert!(!render_compact(&look(&files, Profile::Default).findings).contains("PD232"));
}
