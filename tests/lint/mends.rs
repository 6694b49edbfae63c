//! Fixes: each cures what it says, changes no decision where it is called safe, and never breaks YAML.

use policyd::expr::ast::Expr;
use policyd::lint::fix::changes;
use policyd::lint::{Profile, code_of};
use policyd::source::Level;

use crate::subjects::{consideration, look};

/// The rule with its condition in each scalar style.
fn styles(condition: &str) -> Vec<String> {
    let double = condition.replace('\\', "\\\\").replace('"', "\\\"");
    let single = condition.replace('\'', "''");
    [
        format!("  satisfied: {condition}"),
        format!("  satisfied: \"{double}\""),
        format!("  satisfied: '{single}'"),
        format!("  satisfied: |-\n    {condition}"),
        format!("  satisfied: >-\n    {condition}"),
    ]
    .into_iter()
    .map(|it| consideration("a", &it))
    .collect()
}

/// Conditions with a finding that has a fix, and what the fix makes of them.
const MENDED: [(&str, &str, &str); 47] = [
    ("PD202", "files.cuont > 1", "files.count > 1"),
    ("PD202", "todo.open > 1", "todos.open > 1"),
    ("PD106", "commands.kind(\"tset\").passed", "commands.kind(\"test\").passed"),
    ("PD232", "commands.ran(\"crago test\")", "commands.ran(\"cargo test\")"),
    ("PD209", "event.kind == \"stopp\"", "event.kind == \"stop\""),
    (
        "PD214",
        "todos.seen || files.count == 0 && tools.total > 1",
        "todos.seen || (files.count == 0 && tools.total > 1)",
    ),
    ("PD309", "session.branch in [\"a\", \"b\", \"a\"]", "session.branch in [\"a\", \"b\"]"),
    ("PD231", "tools.count(\"read\") > 1", "tools.count(\"Read\") > 1"),
    ("PD225", "files.last_path.starts_with(\"/etc\")", "files.last_path.starts_with(\"/etc/\")"),
    ("PD201", "todos.seen and files.count > 1", "todos.seen && files.count > 1"),
    ("PD201", "not todos.seen || files.count > 1", "!todos.seen || files.count > 1"),
    ("PD201", "files.count => 1", "files.count >= 1"),
    ("PD201", "todos.open = 0", "todos.open == 0"),
    ("PD201", "todos.open <> 0", "todos.open != 0"),
    ("PD201", "todos.open == 0;", "todos.open == 0"),
    ("PD201", "session.branch != 'next'", "session.branch != \"next\""),
    ("PD201", "session.branch not in [\"a\"]", "!(session.branch in [\"a\"])"),
    ("PD201", "session.branch == \"a\" || \"b\"", "session.branch in [\"a\", \"b\"]"),
    ("PD201", "session.branch =~ \"^a\"", "session.branch.matches(\"^a\")"),
    ("PD201", "session.branch.matches(\"\\d\")", "session.branch.matches(\"\\\\d\")"),
    ("PD201", "${todos.open} == 0", "todos.open == 0"),
    ("PD202", "todos.seen == True", "todos.seen == true"),
    ("PD202", "len(files.paths) > 1", "files.paths.len() > 1"),
    ("PD202", "files.paths.length > 1", "files.paths.len() > 1"),
    ("PD204", "files.count() > 1", "files.count > 1"),
    ("PD204", "files.paths.len > 1", "files.paths.len() > 1"),
    ("PD205", "todos.open == \"0\"", "todos.open == 0"),
    ("PD205", "files.count", "files.count > 0"),
    ("PD307", "files.matching(\"src/\").count > 1", "files.matching(\"src/**\").count > 1"),
    ("PD307", "files.matching(\"*.{a, b}\").count > 1", "files.matching(\"*.{a,b}\").count > 1"),
    (
        "PD315",
        "session.remote_host == \"https://Git.a.org/b\"",
        "session.remote_host == \"git.a.org\"",
    ),
    (
        "PD315",
        "commands.last(\"git push\").branch == \"origin/a\"",
        "commands.last(\"git push\").branch == \"a\"",
    ),
    ("PD315", "session.branch != \"a|b\"", "!(session.branch in [\"a\", \"b\"])"),
    ("PD319", "session.branch.matches(\"^a|b$\")", "session.branch.matches(\"^(a|b)$\")"),
    (
        "PD201",
        "if session.branch not in [\"a\"] { todos.seen } else { files.count > 1 }",
        "if !(session.branch in [\"a\"]) { todos.seen } else { files.count > 1 }",
    ),
    (
        "PD201",
        "if not session.branch == \"a\" { todos.seen } else { files.count > 1 }",
        "if !(session.branch == \"a\") { todos.seen } else { files.count > 1 }",
    ),
    ("PD201", "session.branch is not in [\"a\"]", "!(session.branch in [\"a\"])"),
    ("PD201", "session.branch == “it’s”", "session.branch == \"it’s\""),
    (
        "PD202",
        "todos.seen && \"^a\".test(session.branch)",
        "todos.seen && session.branch.matches(\"^a\")",
    ),
    ("PD202", "session.branch.test(\"^a\")", "session.branch.matches(\"^a\")"),
    (
        "PD315",
        "session.branch.starts_with(\"feat|fix\")",
        "session.branch.matches(\"^(feat|fix)\")",
    ),
    ("PD315", "session.branch.starts_with(\"^feat\")", "session.branch.matches(\"^feat\")"),
    (
        "PD315",
        "session.branch.ends_with(\"next|main\")",
        "session.branch.matches(\"(next|main)$\")",
    ),
    ("PD315", "session.branch.ends_with(\"next$\")", "session.branch.matches(\"next$\")"),
    ("PD315", "session.branch.contains(\"feat|fix\")", "session.branch.matches(\"feat|fix\")"),
    (
        "PD307",
        "files.matching(\"src/**, lib/**\").count > 1",
        "files.matching(\"{src/**,lib/**}\").count > 1",
    ),
    (
        "PD307",
        "files.matching(\"src\\\\main.rs\").count > 1",
        "files.matching(\"src/main.rs\").count > 1",
    ),
];

#[test]
fn a_fix_makes_of_a_condition_what_it_says_in_every_style() {
    for (code, before, after) in MENDED {
        let mut mended = 0;
        for text in styles(before) {
            let found = look(&[("considerations.yaml", &text)], Profile::Pedantic).findings;
            let of_rule: Vec<_> = found.into_iter().filter(|it| code_of(it.code) == code).collect();
            assert!(!of_rule.is_empty(), "{code}: {text}");
            let changes = changes(&of_rule, |_| true);
            for change in &changes {
                let (now, mut wanted) = (&change.text, styles(after).into_iter());
                assert!(wanted.any(|it| it == *now), "{code}:\n{now}");
                let again = look(&[("considerations.yaml", now)], Profile::Pedantic).findings;
                let cured =
                    again.iter().all(|it| code_of(it.code) != code && it.level < Level::Error);
                assert!(cured, "{code}:\n{now}\n{again:?}");
                mended += 1;
            }
        }
        // Block scalars of several lines keep theirs.
        assert!(mended >= 4, "{code} is mended in {mended} styles");
    }
}

/// Conditions with a finding that only the author can cure: an edit could mean something else.
const UNCLEAR: [(&str, &str); 18] = [
    ("PD201", "session.branch == \"a\" || \"b\" && todos.seen"),
    ("PD201", "todos.seen && session.branch == \"a\" || \"b\""),
    ("PD201", r"session.branch == 'a\'b'"),
    ("PD202", "todos.seen && \"^a\".test(session.branch.lower())"),
    ("PD202", "todos.seen && \"^a\".search(session.branch)"),
    ("PD315", "session.branch.starts_with(\"feat/*\")"),
    ("PD315", "session.branch.starts_with(\"^feat|fix\")"),
    ("PD315", "session.branch.ends_with(\"feat|fix$\")"),
    ("PD307", "files.matching(\"!src/**, !lib/**\").count > 1"),
    ("PD307", "files.matching(\"!src/**, lib/**\").count > 1"),
    ("PD307", "files.matching(\"./src/**, lib/**\").count > 1"),
    ("PD307", "files.matching(\"src/**, /lib/**\").count > 1"),
    ("PD202", "todos.seen && session.branch.test(session.branch)"),
    ("PD307", "files.matching(\"src/**, !lib/**\").count > 1"),
    ("PD307", r#"files.matching("src/\\[id\\]/**").count > 1"#),
    ("PD307", r#"files.matching("src/a\\{b\\}.rs").count > 1"#),
    ("PD307", r#"files.matching("src/a\\.rs").count > 1"#),
    ("PD307", r#"files.matching("src/\\*.rs").count > 1"#),
];

#[test]
fn what_could_mean_something_else_is_left_to_the_author() {
    for (code, condition) in UNCLEAR {
        for text in styles(condition) {
            let found = look(&[("considerations.yaml", &text)], Profile::Pedantic).findings;
            let of_rule: Vec<_> = found.into_iter().filter(|it| code_of(it.code) == code).collect();
            assert!(!of_rule.is_empty(), "{code}: {text}");
            let all = changes(&of_rule, |_| true);
            assert!(all.is_empty(), "{code}:\n{}", all.first().unwrap().text);
        }
    }
}

#[test]
fn an_option_gets_the_dashes_of_its_program() {
    for (commands, before, after) in [
        ("terraform apply", "program.value(\"chdir\") == \"x\"", Some("\"-chdir\"")),
        ("terraform apply", "program.has([\"var-file\"])", Some("\"-var-file\"")),
        ("terraform apply", "program.has([\"auto-approve\"])", None),
        ("terraform apply", "program.value(\"lock\") == \"x\"", None),
        ("kubectl delete", "program.value(\"namespace\") == \"x\"", Some("\"--namespace\"")),
        ("kubectl delete", "program.value(\"n\") == \"x\"", Some("\"-n\"")),
        ("git push", "program.has([\"force\"])", Some("\"--force\"")),
        ("own", "program.has([\"force\"])", Some("\"--force\"")),
    ] {
        let guard = format!(
            "- id: own\n  commands: [{commands}]\n  when: {before}\n  decision: deny\n  message: no\n"
        );
        let found = look(&[("guards.yaml", &guard)], Profile::Default).findings;
        let of_rule: Vec<_> = found.into_iter().filter(|it| code_of(it.code) == "PD313").collect();
        assert!(!of_rule.is_empty(), "{before}");
        let all = changes(&of_rule, |_| true);
        let word = before.split('"').nth(1).unwrap();
        let wanted = after.map(|it| guard.replace(&format!("\"{word}\""), it));
        assert_eq!(all.first().map(|it| it.text.clone()), wanted, "{before}");
    }
}

#[test]
fn what_is_called_safe_means_the_same() {
    let parsed = |text: &str| Expr::parse(text).unwrap().canonical().into_owned();
    let before = "todos.seen || files.count == 0 && tools.total > 1";
    let text = consideration(
        "a",
        &format!("  satisfied: >-\n    {}", before.replace(" && ", "\n    && ")),
    );
    let found = look(&[("considerations.yaml", &text)], Profile::Default).findings;
    let changes = changes(&found, |it| it.safe);
    let now = &changes.first().unwrap().text;
    let condition = now.split(">-\n").nth(1).unwrap().replace('\n', " ");
    assert_eq!(parsed(condition.trim()), parsed(before));
    assert_eq!(
        now.lines().count(),
        text.lines().count(),
        "lines stay as they were written:\n{now}"
    );
}

#[test]
fn of_two_fixes_that_overlap_one_is_made() {
    let text = consideration("a", "  satisfied: files.last_path.lower().starts_with(\"/Etc\")");
    let found = look(&[("considerations.yaml", &text)], Profile::Pedantic).findings;
    assert!(found.iter().filter(|it| it.fix.is_some()).count() >= 2);
    let changes = changes(&found, |_| true);
    assert_eq!(changes.first().unwrap().fixes, 1);
}

#[test]
fn a_mistyped_key_or_value_is_written_as_it_was_meant() {
    let sound = consideration("a", "  satisfied: files.count > 1");
    for (right, wrong) in
        [("severity: ", "severty: "), ("warning", "wraning"), ("warning", "'Warning'")]
    {
        let text = sound.replace(right, wrong);
        let found = look(&[("considerations.yaml", &text)], Profile::Default).findings;
        assert!(changes(&found, |it| it.safe).is_empty(), "the rule changes its meaning");
        let mended = changes(&found, |_| true);
        assert_eq!(mended.first().unwrap().text.replace('\'', ""), sound, "{wrong}");
    }
}

#[test]
fn a_mistyped_voice_or_program_of_a_list_is_written_as_it_was_meant() {
    let guard = "- id: a
  commands: [\"/bin/crago test\", git push]
  when: program.fed_by([\"head\", \"dokcer\"])
  decision: deny
  message: no
";
    for (file, sound) in [("policyd.yaml", "version: 1\nvoice: plain\n"), ("guards.yaml", guard)] {
        let text = sound.replace("plain", "plian");
        let found = look(&[(file, &text)], Profile::Default).findings;
        let mended = changes(&found, |_| true);
        let wanted = sound.replace("crago", "cargo").replace("dokcer", "docker");
        assert_eq!(mended.first().unwrap().text, wanted, "{found:?}");
        assert!(changes(&found, |it| it.safe).is_empty());
    }
}

#[test]
fn a_key_is_not_written_a_second_time() {
    let sound = consideration("a", "  satisfied: files.cuont > 1");
    let there = sound.replace("  severity: warning", "  severty: warning\n  severity: warning");
    let twice = sound.replace("  severity: warning", "  severty: warning\n  serverity: warning");
    for text in [there, twice] {
        let found = look(&[("considerations.yaml", &text)], Profile::Default).findings;
        let mended = changes(&found, |_| true);
        let wanted = text.replace("cuont", "count");
        assert_eq!(mended.first().unwrap().text, wanted, "the other finding is mended");
    }
}
