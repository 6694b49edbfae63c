//! Comments that silence findings: what they reach, and what is wrong with them.

use policyd::lint::{self, Profile, code_of};

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
    let one = (vec!["PD602"], vec!["PD602"]);
    for place in ["above the rule", "behind the id", "above the line", "behind the line"] {
        for code in ["PD602", "always-true"] {
            let comment = format!("# policyd: ignore[{code}] reason=\"not yet\"");
            assert_eq!(told(&comment, place), one, "{place} {code}");
        }
    }
    let whole = told("# policyd: ignore-file[PD602] reason=\"not yet\"", "above the rule");
    assert_eq!(whole, (vec![], vec!["PD602", "PD602"]));
}

#[test]
fn what_is_wrong_with_a_comment_is_a_finding() {
    let both = ["PD602", "PD602"];
    for (comment, expected) in [
        ("# policyd: ignore[PD602]", vec!["PD602", "PD711"]),
        ("# policyd: ignore[PD602] reason=\" \"", vec!["PD602", "PD711"]),
        ("# policyd: ignore[PD601] reason=\"x\"", [&both[..], &["PD710"]].concat()),
        ("# policyd: ignore[PD602, PD601] reason=\"x\"", vec!["PD602", "PD710"]),
        (
            "# policyd: ignore[PD602] until=2026-11-20 reason=\"x\"",
            [&both[..], &["PD712"]].concat(),
        ),
        ("# policyd: ignore[PD602] until=soon reason=\"x\"", [&both[..], &["PD713"]].concat()),
        ("# policyd: ignore[PD6002] reason=\"x\"", [&both[..], &["PD713"]].concat()),
        ("# policyd: ignore PD602", [&both[..], &["PD713"]].concat()),
        ("# policyd: ignore[PD602] because=\"x\"", [&both[..], &["PD713"]].concat()),
        // The last day counts.
        ("# policyd: ignore[PD602] until=2026-11-21 reason=\"x\"", vec!["PD602"]),
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
fn an_earlier_name_of_a_rule_finds_it() {
    assert!(lint::renamed().len() > 30);
    for (old, new) in lint::renamed() {
        let rule = lint::find(new).unwrap();
        assert_eq!((rule.name, lint::find(old).unwrap().code), (*new, rule.code), "{old}");
        assert!(!lint::rules().iter().any(|it| it.name == *old), "{old} names two rules");
        // Comments accept both names: one that is unknown is reported as PD713.
        for name in [old, new] {
            let comment = format!("# policyd: ignore[{name}] reason=\"x\"");
            assert!(!told(&comment, "above the line").0.contains(&"PD713"), "{name}");
        }
    }
}

#[test]
fn a_comment_with_an_earlier_name_silences_its_rule() {
    for name in ["misspelt-program", "misspelled-program", "PD126"] {
        let guard = "- id: own\n  decision: deny\n  message: No.\n";
        let text = format!(
            "# policyd: ignore-file[{name}] reason=\"x\"\n{guard}  commands: [terrafrom apply]\n"
        );
        let reviewed = look(&[("guards.yaml", &text)], Profile::Default);
        let ignored: Vec<_> = reviewed.ignored.iter().map(|it| it.finding.code).collect();
        assert_eq!((reviewed.findings.len(), ignored), (0, vec!["misspelled-program"]), "{name}");
    }
}
