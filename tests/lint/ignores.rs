//! Comments that silence findings: what they reach, and what is wrong with them.

use policyd::lint::{Profile, code_of};

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
        for code in ["PD601", "constant-condition"] {
            let comment = format!("# policyd: ignore[{code}] reason=\"not yet\"");
            assert_eq!(told(&comment, place), one, "{place} {code}");
        }
    }
    let whole = told("# policyd: ignore-file[PD601] reason=\"not yet\"", "above the rule");
    assert_eq!(whole, (vec![], vec!["PD601", "PD601"]));
}

#[test]
fn what_is_wrong_with_a_comment_is_a_finding() {
    let both = ["PD601", "PD601"];
    for (comment, expected) in [
        ("# policyd: ignore[PD601]", vec!["PD601", "PD710"]),
        ("# policyd: ignore[PD601] reason=\" \"", vec!["PD601", "PD710"]),
        ("# policyd: ignore[PD234] reason=\"x\"", [&both[..], &["PD710"]].concat()),
        ("# policyd: ignore[PD601, PD234] reason=\"x\"", vec!["PD601", "PD710"]),
        (
            "# policyd: ignore[PD601] until=2026-11-20 reason=\"x\"",
            [&both[..], &["PD710"]].concat(),
        ),
        ("# policyd: ignore[PD601] until=soon reason=\"x\"", [&both[..], &["PD710"]].concat()),
        ("# policyd: ignore[PD6002] reason=\"x\"", [&both[..], &["PD710"]].concat()),
        ("# policyd: ignore PD601", [&both[..], &["PD710"]].concat()),
        ("# policyd: ignore[PD601] because=\"x\"", [&both[..], &["PD710"]].concat()),
        // The last day counts.
        ("# policyd: ignore[PD601] until=2026-11-21 reason=\"x\"", vec!["PD601"]),
        // Comments that merely speak of the program are no ignores.
        ("# see policyd: ignore[PD601]", both.to_vec()),
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
    let text = "# policyd: ignore-file[PD601] reason=\"x\"\n- id: a\n  category: Own\n  question: Q?\n  severity: warning\n  satisfied: files.count >= 0\n";
    let pack = pack(&[("considerations.yaml", text)]);
    let (with, without) =
        (look_at(&pack, Profile::Default, true), look_at(&pack, Profile::Default, false));
    assert_eq!((with.findings.len(), with.ignored.len()), (0, 1));
    assert_eq!((without.findings.len(), without.ignored.len()), (1, 0));
}
