//! What linters and compilers print about a file, whatever the tool: a line that names the file, and the message
//! above or below it if the line has none.

use policyd_base::limits::REPORTS_SHOWN_MAX;

/// Returns the reports about a file in the output of a tool, errors first. `is_named` returns whether a line names
/// the file.
pub(super) fn reports(output: &str, is_named: impl Fn(&str) -> bool) -> Vec<String> {
    let lines: Vec<&str> = output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let named = lines.iter().enumerate().filter(|(_, line)| is_named(line));
    let mut reports: Vec<String> = Vec::new();
    for (at, line) in named {
        let above = at.checked_sub(1).and_then(|at| lines.get(at));
        let below = lines.get(at.saturating_add(1));
        let report = match location(line) {
            None => (*line).to_owned(),
            Some(BareLocation::Position) => joined([above, Some(line)]),
            Some(BareLocation::Heading) => joined([Some(line), below]),
        };
        if !reports.contains(&report) {
            reports.push(report);
        }
    }
    reports.sort_by_key(|report| !is_error(report));
    reports.truncate(REPORTS_SHOWN_MAX);
    reports
}

/// A line that names a file and contains no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BareLocation {
    /// The place of the message above it: `--> src/main.rs:2:5`.
    Position,
    /// The heading of the messages below it: `/work/src/a.js`.
    Heading,
}

/// Returns the kind of a line that is a location. `None` if the line contains a message.
fn location(line: &str) -> Option<BareLocation> {
    let mut words = line.split_whitespace().filter(|word| word.contains(char::is_alphanumeric));
    let path = words.next()?;
    if words.next().is_some() {
        return None;
    }
    let ends_in_digit =
        path.trim_end_matches([':', ')', ',']).ends_with(|c: char| c.is_ascii_digit());
    let has_position = ends_in_digit && path.contains([':', '(']);
    Some(if has_position { BareLocation::Position } else { BareLocation::Heading })
}

fn is_error(report: &str) -> bool {
    report.to_ascii_lowercase().contains("error")
}

fn joined(lines: [Option<&&str>; 2]) -> String {
    lines.into_iter().flatten().copied().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_the_file_and_the_rule() {
        for (output, expected) in [
            (
                "calc.py:1:8: F401 `os` imported but unused\nFound 1 error.\n",
                "calc.py:1:8: F401 `os` imported but unused",
            ),
            (
                "F401 [*] `os` imported but unused\n --> calc.py:1:8\n  |\n1 | import os\n\nFound 1 error.\n",
                "F401 [*] `os` imported but unused --> calc.py:1:8",
            ),
            (
                "/work/calc.py\n  1:7  error  'x' is never used  no-unused-vars\n\n1 problem\n",
                "/work/calc.py 1:7  error  'x' is never used  no-unused-vars",
            ),
            ("src/calc.py(3,5): error TS2322: Type\n", "src/calc.py(3,5): error TS2322: Type"),
            (
                "warning: unused\n --> calc.py:9:1\nerror[E0308]: mismatched types\n  --> calc.py:2:5\n",
                "error[E0308]: mismatched types --> calc.py:2:5|warning: unused --> calc.py:9:1",
            ),
            ("calc.py\n", "calc.py"),
            ("other.py:1: E1\nFound 1 error.\n", ""),
        ] {
            let found = reports(output, |line| line.contains("calc.py"));
            assert_eq!(found.join("|"), expected, "{output}");
        }
    }

    #[test]
    fn reports_are_few() {
        let output: String = (0..9).map(|at| format!("calc.py:{at}: E1\n")).collect();
        assert_eq!(reports(&output, |_| true).len(), REPORTS_SHOWN_MAX);
    }
}
