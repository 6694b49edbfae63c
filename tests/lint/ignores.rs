//! Comments that silence findings: what they reach, and what is wrong with them.

use policyd::lint::{self, Profile, code_of};
use policyd::source::Level;

use crate::subjects::{look, look_at, pack};

/// Codes of what stands and of what is ignored.
fn told(comment: &str, place: &str) -> (Vec<&'static str>, Vec<&'static str>) {
    let comment_above = |wanted: &str| match place == wanted {
        true => format!("{comment}\n"),
        false => String::new(),
    };
    let text = format!(
        "{}- id: a{}\n  category: Own\n  question: Is a?\n  severity: warning\n{}  satisfied: files.count >= 0{}\n- id: b\n  category: Own\n  question: Is b?\n  severity: warning\n  satisfied: files.count >= 0\n",
        comment_above("above the rule"),
        if place == "behind the id" { format!(" {comment}") } else { String::new() },
        comment_above("above the line"),
        if place == "behind the line" { format!(" {comment}") } else { String::new() },
    );
    let reviewed = look(&[("considerations.yaml", &text)], Profile::Default);
    let stands = reviewed.findings.iter().map(|it| code_of(it.code)).collect();
    let ignored = reviewed.ignored.iter().map(|it| code_of(it.finding.code)).collect();
    (stands, ignored)
}

#[test]
fn a_comment_reaches_its_line_its_rule_or_its_file() {
    let one = (vec!["PD601"], vec!["PD601"]);
    for place in ["above the rule", "behind the id", "above the line", "behind the line"] {
        for code in ["PD601", "PD602", "always-true", "never-true"] {
            let comment = format!("# policyd: ignore[{code}] reason=\"not yet\"");
            assert_eq!(told(&comment, place), one, "{place} {code}");
        }
    }
    let whole = told("# policyd: ignore-file[PD602] reason=\"not yet\"", "above the rule");
    assert_eq!(whole, (vec![], vec!["PD601", "PD601"]));
}

#[test]
fn what_is_wrong_with_a_comment_is_a_finding() {
    let both = ["PD601", "PD601"];
    for (comment, expected) in [
        ("# policyd: ignore[PD602]", vec!["PD601", "PD710"]),
        ("# policyd: ignore[PD602] reason=\" \"", vec!["PD601", "PD710"]),
        ("# policyd: ignore[PD234] reason=\"x\"", [&both[..], &["PD710"]].concat()),
        ("# policyd: ignore[PD602, PD234] reason=\"x\"", vec!["PD601", "PD710"]),
        (
            "# policyd: ignore[PD602] until=2026-11-20 reason=\"x\"",
            [&both[..], &["PD710"]].concat(),
        ),
        ("# policyd: ignore[PD602] until=soon reason=\"x\"", [&both[..], &["PD710"]].concat()),
        ("# policyd: ignore[PD6002] reason=\"x\"", [&both[..], &["PD710"]].concat()),
        ("# policyd: ignore PD602", [&both[..], &["PD710"]].concat()),
        ("# policyd: ignore[PD602] because=\"x\"", [&both[..], &["PD710"]].concat()),
        // The last day counts.
        ("# policyd: ignore[PD602] until=2026-11-21 reason=\"x\"", vec!["PD601"]),
        // Comments that merely speak of the program are no ignores.
        ("# see policyd: ignore[PD602]", both.to_vec()),
    ] {
        let (mut stands, _) = told(comment, "above the line");
        stands.sort_unstable();
        assert_eq!(stands, expected, "{comment}");
    }
}

#[test]
fn what_keeps_a_pack_from_loading_cannot_be_silenced() {
    let text = "# policyd: ignore-file[PD003] reason=\"x\"\n- id: a\n  categry: x\n";
    let reviewed = look(&[("considerations.yaml", text)], Profile::Default);
    let codes: Vec<&str> = reviewed.findings.iter().map(|it| code_of(it.code)).collect();
    assert!(codes.contains(&"PD003") && codes.contains(&"PD710"), "{codes:?}");
}

#[test]
fn without_ignores_everything_stands() {
    let text = "# policyd: ignore-file[PD602] reason=\"x\"\n- id: a\n  category: Own\n  question: Q?\n  severity: warning\n  satisfied: files.count >= 0\n";
    let pack = pack(&[("considerations.yaml", text)]);
    let (with, without) =
        (look_at(&pack, Profile::Default, true), look_at(&pack, Profile::Default, false));
    assert_eq!((with.findings.len(), with.ignored.len()), (0, 1));
    assert_eq!((without.findings.len(), without.ignored.len()), (1, 0));
}

#[test]
fn an_earlier_name_or_code_of_a_rule_finds_it() {
    assert!(lint::renamed().len() > 30 && lint::all_merged().len() > 100);
    let merged = lint::all_merged().iter().flat_map(|(code, name, new)| [(code, new), (name, new)]);
    for (old, new) in lint::renamed().iter().map(|(old, new)| (old, new)).chain(merged) {
        assert!(!lint::rules().iter().any(|it| it.name == *old), "{old} names two rules");
        // A rule that was removed was renamed before.
        let found = lint::find(new).map(|it| it.code);
        assert_eq!(lint::find(old).map(|it| it.code), found, "{old}");
        assert!(found.is_some() || lint::history(old).is_some(), "{old}");
    }
    // Comments accept them: an unknown one makes the comment malformed.
    let names = lint::renamed().iter().map(|it| it.0);
    let names: Vec<&str> =
        names.chain(lint::all_merged().iter().flat_map(|it| [it.0, it.1])).collect();
    let text = format!("# policyd: ignore-file[{}] reason=\"x\"\n[]\n", names.join(", "));
    let found = look(&[("considerations.yaml", &text)], Profile::Strict).findings;
    assert!(!found.iter().any(|it| it.message.contains("unknown rule")), "{found:?}");
}

#[test]
fn a_removed_rule_is_known_and_suppressing_it_is_a_note() {
    let comment = "# policyd: ignore[PD217, PD602] reason=\"x\"";
    assert_eq!(told(comment, "above the line"), (vec!["PD601", "PD710"], vec!["PD601"]));
    let text = "# policyd: ignore-file[todo-comment] reason=\"x\"\n[]\n";
    let found = look(&[("considerations.yaml", text)], Profile::Default).findings;
    let levels: Vec<Level> = found.iter().map(|it| it.level).collect();
    assert_eq!(levels, [Level::Note]);
    assert!(found.iter().all(|it| it.message.contains("was removed in 0.2.0")), "{found:?}");
    assert!(lint::find("PD217").is_none());
    assert!(lint::history("PD145").unwrap().contains("was merged into PD232"));
}

#[test]
fn a_comment_with_an_earlier_name_silences_its_rule() {
    for name in ["misspelt-program", "misspelled-program", "PD126", "PD147", "PD232"] {
        let guard = "- id: own\n  decision: deny\n  message: No.\n";
        let text = format!(
            "# policyd: ignore-file[{name}] reason=\"x\"\n{guard}  commands: [terrafrom apply]\n"
        );
        let reviewed = look(&[("guards.yaml", &text)], Profile::Default);
        let ignored: Vec<_> = reviewed.ignored.iter().map(|it| it.finding.code).collect();
        assert_eq!((reviewed.findings.len(), ignored), (0, vec!["misspelled-name"]), "{name}");
    }
}
