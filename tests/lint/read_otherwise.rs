//! Slips of authors that are read as something else: globs written as regular expressions, comments that take
//! parts of expressions with them, allows for a part of what they look at.

use policyd::lint::Profile;
use policyd::report::diagnostics::render_compact;

use crate::subjects::{check, check_made, consideration, look};

const GUARDS: &str = "guards.yaml";

fn guards(code: &str, situations: &[(&str, &str)]) {
    let guard =
        |lines: &str| format!("- id: own\n{lines}\n  decision: deny\n  message: Not this.\n");
    check_made((GUARDS, guard), code, situations);
}

fn allows(situations: &[(&str, &str)]) {
    let guard = |lines: &str| {
        format!("- id: own\n  tools: [{lines}\n  decision: allow\n  message: Go on.\n")
    };
    check_made((GUARDS, guard), "PD621", situations);
}

#[test]
fn a_glob_is_no_regular_expression() {
    let glob = |it: &str| format!("  when: action.writes([`{it}`])");
    for (text, said) in [
        ("*.(pem|key)", "is a regular expression"),
        ("*.@(pem|key)", "is a regular expression"),
        (r".*\.md", "is a regular expression"),
        (r".*\.pem$", "is a regular expression"),
        ("^docs/", "is a regular expression"),
        (".*/migrations/.*", "is a regular expression"),
        ("docs/**|README.md", "`|` does not separate"),
        ("docs/** README.md", "a space does not separate"),
        ("*.{.sql,.psql}", "two dots in a row"),
        ("*.{pem,key}", ""),
        ("docs/.*", ""),
        ("**/.*", ""),
        ("src/(group)/page.tsx", ""),
        ("My Documents/*.md", ""),
        ("**/* copy.*", ""),
        ("src/** tests/**", "a space does not separate"),
        ("$types.d.ts", ""),
        ("$HOME/x", "variables are not expanded"),
        ("{*.{js,ts},.eslintrc}", ""),
        ("*.tar.{gz,xz}", ""),
        (".config/*", ""),
    ] {
        guards("PD307", &[(&glob(text), said)]);
    }
}

#[test]
fn names_of_operands_are_no_options_and_no_patterns_of_other_languages() {
    guards(
        "PD313",
        &[
            ("  commands: [git push]\n  when: program.names([\"--force\"])", "is an option"),
            ("  commands: [git push]\n  when: program.names([\"-f\", \"main\"])", "is an option"),
            (
                "  commands: [git push]\n  when: program.names([\"(main|master)\"])",
                "is a regular expression",
            ),
            ("  commands: [git push]\n  when: program.names([\"{main,master}\"])", ""),
            ("  commands: [git push]\n  when: program.names([\"-\"])", ""),
        ],
    );
}

#[test]
fn what_only_regular_expressions_hold_is_looked_for_as_it_stands() {
    guards(
        "PD315",
        &[
            ("  commands: [psql]\n  when: program.line.contains(\"drop.*table\")", "literally"),
            (r#"  when: action.written.contains("\\beval\\(")"#, "literally"),
            ("  when: files.last_path.ends_with(\"*.md\")", "literally"),
            ("  when: action.command.contains(\"rm *.*\")", ""),
            ("  when: action.command.contains(\"curl|sh\")", ""),
            ("  when: action.written.contains(\"string|null\")", ""),
            (r#"  when: event.input("content").contains("\\begin{document}")"#, ""),
            (r#"  when: event.input("file_path").contains("\\bin\\")"#, ""),
            ("  when: event.input(\"content\").contains(\"obj.*ptr\")", ""),
            ("  when: action.command.contains(\"grep -r 'foo.*bar'\")", ""),
            ("  commands: [grep]\n  when: program.line.contains(\"foo.*bar\")", ""),
        ],
    );
}

#[test]
fn a_regular_expression_holds_no_sign_of_another_language() {
    let when = |it: &str| format!("  when: action.command.matches(\"{it}\")");
    for (text, said) in [
        ("/drop table/i", "the slashes and `i`"),
        ("/usr/bin/x", ""),
        ("/etc/g", ""),
        ("/debugger/gi", "the slashes and `gi`"),
        ("/proc/sys", ""),
        ("/dev/sg", ""),
        ("rm -rf $HOME", "`$` is the end"),
        ("rm -rf \\\\$HOME", ""),
        ("end$", ""),
        ("(a$|b)", ""),
        ("(?m)a$b", ""),
    ] {
        guards("PD319", &[(when(text).as_str(), said)]);
    }
    let branch = |it: &str| format!("  when: session.branch.matches(\"{it}\")");
    for (text, said) in [
        ("^main|master$", "write `^(main|master)$`"),
        ("^main|master", "only to the first"),
        ("^main|master|release$", "write `^(main|master|release)$`"),
        ("^(main|master)$", ""),
        ("main|master", ""),
        ("^main$|^master$", ""),
    ] {
        guards("PD319", &[(branch(text).as_str(), said)]);
    }
    guards("PD319", &[("  when: action.command.matches(\"^main|master$\")", "")]);
}

#[test]
fn an_allow_is_tied_to_all_that_it_looks_at() {
    allows(&[
        ("Bash]\n  when: action.command.matches(\"^npm (test|run lint)\")", "every other program"),
        ("Bash]\n  when: action.command.matches(\"npm test\")", "every other program"),
        ("Bash]\n  when: '\"npm\" in action.programs'", "every other program"),
        ("Bash]\n  when: action.command.matches(\"^npm (test|run lint)$\")", ""),
        ("Bash]\n  when: action.command.matches(\"^cargo test$|^cargo check$\")", ""),
        ("Bash]\n  when: action.command.matches(\"(?i)^pwd$\")", ""),
        ("Bash]\n  when: action.command.matches(\"^ls \\\\.+$\")", ""),
        ("Bash]\n  when: action.command.matches(\"^make .*$\")", "every other program"),
        (
            "Bash]\n  when: action.command.matches(\"^npm run [a-z:]+$\") && !action.command.contains(\"publish\")",
            "",
        ),
        ("Bash]\n  when: '\"ls\" in action.programs && action.programs.len() == 1'", ""),
        (
            "WebFetch]\n  when: action.address.starts_with(\"https://docs.rs/\") && action.address.contains(\"/latest/\")",
            "",
        ),
        (
            "WebFetch]\n  when: action.address.starts_with(\"https://docs.rs/\") && !action.address.contains(\"?\")",
            "",
        ),
        (
            "Read]\n  when: action.reads([\"docs/**\"]) && event.input(\"file_path\").matches(\"\\\\.md$\")",
            "",
        ),
        (
            "WebFetch]\n  when: action.address.contains(\"docs.rs\")",
            "other values of `action.address`",
        ),
        ("WebFetch]\n  when: action.address.matches(\"docs\")", "other values of `action.address`"),
        ("WebFetch]\n  when: action.address.starts_with(\"https://docs.rs/\")", ""),
        ("Write]\n  when: event.input(\"file_path\").contains(\"/docs/\")", "other values of"),
        ("Write]\n  when: action.writes([\"docs/**\"])", ""),
    ]);
}

#[test]
fn a_comment_takes_no_part_of_an_expression_with_it() {
    let rule =
        |when: &str| consideration("own", &format!("  when: {when}\n  satisfied: todos.open == 0"));
    let file = "considerations.yaml";
    let folded = ">-\n    files.count > 0 // only edits\n    && todos.open > 0";
    for (when, said) in [
        ("files.count > 0 #&& todos.open > 0", "not a part of the expression"),
        ("files.count > 0 # || todos.open > 0", "not a part of the expression"),
        ("files.count > 0 # edits", ""),
        ("files.count > 0 # && not more, as agreed", ""),
        (">-\n    files.count > 0 /* see https://x.org/a */\n    && todos.open > 0", ""),
        (folded, "removes the lines below"),
        (&folded.replace(">-", "|-"), ""),
        (">-\n    files.count > 0\n    && todos.open > 0 // only edits", ""),
        ("session.branch == \"a//b\"", ""),
    ] {
        check(file, "PD031", &[(&rule(when), said)]);
    }
}

#[test]
fn an_empty_list_of_session_types_is_every_type() {
    let rule = |types: &str| {
        consideration(
            "own",
            &format!("  applicable_session_types: {types}\n  satisfied: todos.open == 0"),
        )
    };
    check_made(
        ("considerations.yaml", rule),
        "PD309",
        &[("[]", "means every type"), ("[\"*\"]", ""), ("[DEVELOPMENT]", "")],
    );
}

#[test]
fn a_command_pattern_holds_no_quotes_and_no_placeholders() {
    guards(
        "PD310",
        &[
            ("  commands: [\"'npm publish'\"]", "is shell syntax"),
            ("  commands: [\"kubectl delete <name>\"]", "is matched literally"),
            ("  commands: [\"kubectl ... delete\"]", "dots are matched literally"),
            ("  commands: [kubectl delete]", ""),
            ("  commands: [\"go test ./...\"]", ""),
            ("  commands: [\"git diff main...HEAD\"]", ""),
        ],
    );
    guards("PD232", &[("  commands: [buck]", ""), ("  commands: [sqlite]", "")]);
}

#[test]
fn a_probe_starts_a_program() {
    let probe = |it: &str| format!("- id: own\n  command: {it}\n  timeout: 5s\n");
    check_made(
        ("probes.yaml", probe),
        "PD807",
        &[
            ("[cd, sub]", "`cd` is not a program"),
            ("[\"FOO=1\", ruff, check]", "`FOO=1` is not a program"),
            ("[ruff, check, --output-format json]", "write `--output-format, json`"),
            ("[ruff, check, --output-format=json]", ""),
            ("[git, log, \"--format=%h %s\"]", ""),
            ("[git, log, --grep, \"--force push\"]", ""),
        ],
    );
}

#[test]
fn a_place_in_an_answer_is_written_with_empty_brackets() {
    let rule = |place: &str| {
        consideration("own", &format!("  satisfied: probes.pr.list(\"{place}\").len() == 0"))
    };
    check_made(
        ("considerations.yaml", rule),
        "PD243",
        &[
            ("labels[*].name", "`[*]` is not valid"),
            ("labels[name==bug]", "`[name==bug]` is not valid"),
            ("labels[].name", ""),
            ("labels[name=bug].color", ""),
            ("labels[0].name", ""),
        ],
    );
}

#[test]
fn preferences_name_files() {
    let preference =
        |it: &str| format!("- id: own\n  files: [\"{it}\"]\n  regexes: [never merge]\n");
    check_made(
        ("preferences.yaml", preference),
        "PD307",
        &[("**/CLAUDE.md", "do not support globs"), ("CLAUDE.md", "")],
    );
}

#[test]
fn a_hole_is_written_in_braces() {
    let rule = |text: &str| {
        consideration(
            "own",
            &format!("  satisfied: todos.open == 0\n  details:\n    - text: \"{text}\""),
        )
    };
    check_made(
        ("considerations.yaml", rule),
        "PD406",
        &[
            ("$(todos.open) are open", "printed literally"),
            ("$todos.open are open", "printed literally"),
            ("${todos.open} are open", ""),
            ("it costs $5.00", ""),
            ("see $HOME.", ""),
        ],
    );
}

#[test]
fn what_follows_from_an_error_is_not_told_beside_it() {
    for (text, code) in [
        ("- id: git_push_forced\n  override: true\n  decision: ask\n", "PD106"),
        ("- id: own\n  command: [git push]\n  decision: deny\n", "PD003"),
    ] {
        let all = render_compact(&look(&[(GUARDS, text)], Profile::Default).findings);
        assert!(all.lines().count() == 1 && all.contains(code), "{all}");
    }
}

#[test]
fn the_help_knows_what_was_meant() {
    for (text, code, help) in [
        ("  when: session.branch == \"main\" || \"master\"", "PD201", "each side is a condition"),
        ("  when: event.tool.contains(\"a\" || \"b\")", "PD201", "each side is a condition"),
        (
            "  tools: [Bash]\n  when: program.line != \"\"",
            "PD210",
            "name programs under `commands`",
        ),
        (
            "  commands: [psql]\n  when: program.line.contains(\"drop|truncate\")",
            "PD313",
            "matches(\"drop|truncate\")",
        ),
        ("  tools: Bash", "PD006", "write `[Bash]`: a list"),
    ] {
        guards(code, &[(text, help)]);
    }
}

#[test]
fn what_is_listed_on_both_sides_is_told() {
    let kind = |both: &str| format!("commands:\n  own:\n    programs: [own-test]\n{both}");
    check_made(
        ("vocabulary.yaml", kind),
        "PD616",
        &[
            (
                "    passed: ['BUILD OK']\n    failed: ['BUILD OK']\n",
                "under both `failed` and `passed`",
            ),
            ("    passed: ['BUILD OK']\n    failed: ['BUILD FAILED']\n", ""),
        ],
    );
    let content = |files: &str| format!("contents:\n  own:\n    regexes: ['own_\\d+']\n{files}");
    check_made(
        ("vocabulary.yaml", content),
        "PD616",
        &[
            (
                "    files: [code]\n    except_files: [code]\n",
                "under both `files` and `except_files`",
            ),
            ("    files: [code]\n    except_files: [test]\n", ""),
        ],
    );
    guards(
        "PD309",
        &[
            ("  commands: [npm publish, npm publish]", "listed twice"),
            ("  commands: [docker, docker push]", "covered by `docker`"),
            ("  commands: [docker pull, docker push]", ""),
        ],
    );
}

#[test]
fn a_letter_that_is_written_twice_is_told() {
    for (text, said) in [
        ("  commands: [rufff]", "did you mean `ruff`?"),
        ("  commands: [mysqll]", "did you mean `mysql`?"),
        ("  commands: [kubectl delette]", "did you mean `delete`?"),
        ("  commands: [own-tooll]", ""),
    ] {
        guards("PD232", &[(text, said)]);
    }
}

#[test]
fn truth_is_written_in_small_letters() {
    let rule = |value: &str| {
        consideration("own", &format!("  satisfied: probes.pr.text(\"isDraft\") == \"{value}\""))
    };
    check_made(
        ("considerations.yaml", rule),
        "PD313",
        &[("False", "has an uppercase letter"), ("false", "")],
    );
}
