//! Comments that silence findings: `# policyd: ignore[PD601] until=2027-01-31 reason="…"`.
//!
//! A comment on its own line applies to the next line, after a value to that line, and on or above the line of an
//! id to the whole entry; `ignore-file[…]` applies to the file. Errors of the loader cannot be suppressed.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::catalogue::{self, find};
use super::profile::Profile;
use super::subject::Subject;
use policyd_policy::builtin;
use policyd_yaml::time::Timestamp;
use policyd_yaml::{Diagnostic, Level, Source, Span, quoted, suggest, yaml};

/// A finding that a comment suppresses.
#[derive(Debug, Clone)]
pub struct SuppressedFinding {
    /// The finding.
    pub finding: Diagnostic,
    /// Reason in the comment.
    pub reason: String,
}

/// Result of the review of a pack.
#[derive(Debug, Default)]
pub struct SuppressionReview {
    /// Findings that count, rule by rule.
    pub findings: Vec<Diagnostic>,
    /// Findings that comments of the pack suppress, with the reason.
    pub ignored: Vec<SuppressedFinding>,
}

/// One comment.
#[derive(Debug)]
struct Ignore {
    /// Codes of rules with their places.
    codes: Vec<(String, Span)>,
    /// Bytes of the file to which it applies.
    covers: Range<usize>,
    /// Last day on which it applies.
    until: Option<(Option<Timestamp>, Span)>,
    reason: Option<String>,
    span: Span,
    /// The error in the comment and its fix.
    malformed: Option<(Span, String, String)>,
}

/// Milliseconds of a day: `until` includes its day.
const DAY: i64 = 86_400_000;

/// Removes findings that comments suppress, and adds findings about the comments.
pub(super) fn apply(
    subject: &Subject<'_>,
    findings: Vec<Diagnostic>,
    profile: Profile,
    wanted: bool,
) -> SuppressionReview {
    let sources = subject.pack.files.iter().map(|(_, source)| source);
    let ignores: Vec<Ignore> =
        sources.filter(|_| wanted).flat_map(|it| in_file(subject, it)).collect();
    let mut used: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut reviewed = SuppressionReview::default();
    for finding in findings {
        let silencing = ignores.iter().enumerate().find_map(|(at, ignore)| {
            let code = ignore.silences(&finding, subject.now)?;
            Some((at, code, ignore.reason.clone().unwrap_or_default()))
        });
        match silencing {
            Some((at, code, reason)) => {
                used.insert((at, code));
                reviewed.ignored.push(SuppressedFinding { finding, reason });
            }
            None => reviewed.findings.push(finding),
        }
    }
    for (at, ignore) in ignores.iter().enumerate() {
        ignore.faults(at, &used, subject.now, profile, &mut reviewed.findings);
    }
    reviewed
}

impl Ignore {
    /// Returns the position of the code that suppresses a finding.
    fn silences(&self, finding: &Diagnostic, now: Timestamp) -> Option<usize> {
        let rule = find(finding.code).filter(|it| it.can_be_silenced())?;
        let here = finding.span.source == self.span.source
            && self.covers.contains(&finding.span.start)
            && self.malformed.is_none()
            && !self.is_over(now);
        let named = |(code, _): &(String, Span)| find(code).is_some_and(|it| it.code == rule.code);
        self.codes.iter().position(named).filter(|_| here)
    }

    fn is_over(&self, now: Timestamp) -> bool {
        let until = self.until.as_ref().and_then(|(until, _)| *until);
        until.is_some_and(|it| now.millis() >= it.millis().saturating_add(DAY))
    }

    fn faults(
        &self,
        at: usize,
        used: &BTreeSet<(usize, usize)>,
        now: Timestamp,
        profile: Profile,
        findings: &mut Vec<Diagnostic>,
    ) {
        let Some(rule) = find("suppression-comment").filter(|it| it.profile <= profile) else {
            return;
        };
        let mut out = rule.findings(profile);
        let mut say = |level: Level, span: &Span, message: String, help: &str| {
            out.add(span.clone(), message, |it| Diagnostic { level, ..it.with_help(help) });
        };
        if let Some((span, why, help)) = &self.malformed {
            say(rule.level, span, why.clone(), help);
            return findings.append(&mut out.found);
        }
        if self.reason.as_ref().is_none_or(|it| it.trim().is_empty()) {
            let message = "this suppression comment has no reason".to_owned();
            say(rule.level, &self.span, message, "add `reason=\"…\"`");
        }
        if let Some((_, span)) = self.until.as_ref().filter(|_| self.is_over(now)) {
            let message = "this suppression comment has expired".to_owned();
            say(rule.level, span, message, "fix the suppressed finding, or set a new date");
            return findings.append(&mut out.found);
        }
        // In the built-in pack some are for readers of a copy of it in a directory.
        let own = self.codes.iter().filter(|(_, span)| !builtin::wrote(&span.source));
        for (number, (code, span)) in own.enumerate() {
            match find(code) {
                // The comment is malformed, which is reported above.
                None => {}
                // Rules of a stricter profile can be suppressed, too.
                Some(it) if it.profile > profile || used.contains(&(at, number)) => {}
                Some(it) if !it.can_be_silenced() => {
                    let message =
                        format!("`{code}` prevents the pack from loading and cannot be suppressed");
                    say(rule.level, span, message, "fix the finding");
                }
                Some(_) => {
                    let message = format!("no finding of `{code}` to suppress here");
                    say(rule.level, span, message, "delete it");
                }
            }
        }
        findings.append(&mut out.found);
    }
}

const FORM: &str = "write # policyd: ignore[PD601] until=2027-01-31 reason=\"why\"";
const MARK: &str = "policyd:";

/// Returns the bytes of the code at a byte of a suppression comment, which can be unfinished. `None` outside of the
/// brackets of a comment.
#[must_use]
pub fn code_at(text: &str, at: usize) -> Option<Range<usize>> {
    let (before, rest) = text.split_at_checked(at)?;
    let line = before.rsplit(['\n', '\r']).next()?;
    let (_, comment) = line.split_once("# policyd: ignore")?;
    let (_, codes) = comment.split_once('[').filter(|(_, codes)| !codes.contains(']'))?;
    let is_code = |c: char| c.is_alphanumeric() || c == '-';
    let start = at - (codes.len() - codes.trim_end_matches(is_code).len());
    let length = rest.find(|c: char| !is_code(c)).unwrap_or(rest.len());
    Some(start..at + length)
}

/// The comments of one file.
fn in_file(subject: &Subject<'_>, source: &Arc<Source>) -> Vec<Ignore> {
    if !source.text.contains(MARK) {
        return Vec::new();
    }
    let comments = subject.memo().of_source("comments", 0, source, || yaml::comments(source));
    comments.iter().filter_map(|it| read(subject, source, it)).collect()
}

fn read(subject: &Subject<'_>, source: &Arc<Source>, comment: &Range<usize>) -> Option<Ignore> {
    let span = |range: Range<usize>| Span {
        source: Arc::clone(source),
        start: range.start,
        end: range.end,
    };
    let text = source.text.get(comment.clone())?;
    let from = text.find(MARK)?;
    // The mark must begin the comment.
    if !text.get(..from)?.chars().all(|c| c == '#' || c.is_whitespace()) {
        return None;
    }
    let start = comment.start + from + MARK.len();
    let rest = source.text.get(start..comment.end)?;
    let (word, mut malformed) = (rest.trim_start(), None);
    let whole_file = word.starts_with("ignore-file");
    let mut codes = Vec::new();
    let list = rest.find('[').and_then(|open| Some((open + 1, rest.find(']')?)));
    let known = word.starts_with("ignore[") || word.starts_with("ignore-file[");
    let Some((open, close)) = list.filter(|(open, close)| known && open <= close) else {
        let why = format!("{} is not valid in a suppression comment", quoted(rest.trim()));
        let malformed = Some((span(comment.clone()), why, FORM.to_owned()));
        let (until, reason, covers) = (None, None, 0..0);
        return Some(Ignore {
            codes,
            covers,
            until,
            reason,
            span: span(comment.clone()),
            malformed,
        });
    };
    let mut at = start + open;
    for code in rest.get(open..close)?.split(',') {
        let blank = code.len() - code.trim_start().len();
        let place = span(at + blank..at + blank + code.trim().len());
        at += code.len() + 1;
        if find(code.trim()).is_none() {
            let known: Vec<&str> =
                catalogue::ROWS.iter().flat_map(|it| [it.code, it.name]).collect();
            let near = suggest::nearest(code.trim(), &known);
            let help = near.map_or_else(|| FORM.to_owned(), |it| format!("did you mean `{it}`?"));
            let message = format!("unknown rule {}", quoted(code.trim()));
            malformed = Some((place.clone(), message, help));
        }
        codes.push((code.trim().to_owned(), place));
    }
    let tail = start + close + 1;
    let (mut until, mut reason) = (None, None);
    for (key, value, range) in pairs(source.text.get(tail..comment.end)?) {
        let place = span(tail + range.start..tail + range.end);
        match key {
            "reason" => reason = Some(value.to_owned()),
            "until" => {
                let date = Timestamp::parse(value);
                if date.is_none() {
                    let message = format!("{} is not a date", quoted(value));
                    malformed = Some((place.clone(), message, FORM.to_owned()));
                }
                until = Some((date, place));
            }
            other => {
                let message = format!("{} is not valid in a suppression comment", quoted(other));
                malformed = Some((place, message, FORM.to_owned()));
            }
        }
    }
    let covers =
        if whole_file { 0..source.text.len() + 1 } else { scope(subject, source, comment) };
    Some(Ignore { codes, covers, until, reason, span: span(comment.clone()), malformed })
}

/// `key=value` and `key="a value"`, and anything else as a key without a value.
fn pairs(text: &str) -> Vec<(&str, &str, Range<usize>)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(rest) = text.get(at..) {
        at += rest.len() - rest.trim_start().len();
        let Some(rest) = text.get(at..).filter(|it| !it.is_empty()) else { break };
        let key = rest.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(rest.len());
        let after = rest.get(key..).unwrap_or_default();
        let (value, length) = match after.strip_prefix("=\"") {
            Some(quoted) => {
                let end = quoted.find('"').unwrap_or(quoted.len());
                (quoted.get(..end).unwrap_or_default(), end + 3)
            }
            None => {
                let end = after.find(char::is_whitespace).unwrap_or(after.len());
                (after.get(1..end).unwrap_or_default(), end)
            }
        };
        let end = (at + key + length).min(text.len());
        found.push((rest.get(..key).unwrap_or_default(), value, at..end));
        at = end;
    }
    found
}

/// Returns the range to which a comment applies: a line, or an entry if its id is on that line.
fn scope(subject: &Subject<'_>, source: &Arc<Source>, comment: &Range<usize>) -> Range<usize> {
    let text = source.text.as_str();
    let line_of = |at: usize| {
        let start = text.get(..at).and_then(|it| it.rfind('\n')).map_or(0, |it| it + 1);
        let end = text.get(at..).and_then(|it| it.find('\n')).map_or(text.len(), |it| at + it);
        start..end + 1
    };
    let mut line = line_of(comment.start);
    let alone = text.get(line.start..comment.start).is_some_and(|it| it.trim().is_empty());
    while alone && line.end < text.len() {
        line = line_of(line.end);
        let content = text.get(line.clone()).unwrap_or_default().trim();
        if !content.is_empty() && !content.starts_with('#') {
            break;
        }
    }
    let begins = subject
        .entries
        .iter()
        .find(|it| it.id.span.source == *source && line.contains(&it.id.span.start));
    begins.map_or_else(
        || line.start..end_of_value(text, &line),
        |it| line.start..it.node.span.end.max(line.end),
    )
}

/// Returns the end of the value that begins on a line; lines with a deeper indent belong to it.
fn end_of_value(text: &str, line: &Range<usize>) -> usize {
    let indent = |it: &str| it.len() - it.trim_start_matches([' ', '-']).len();
    let content = text.get(line.clone()).unwrap_or_default();
    let written = content.split(" #").next().unwrap_or_default().trim_end();
    // Only what has its value on the next lines: a block scalar, a list, a map.
    if !written.ends_with([':', '|', '>', '-', '+']) {
        return line.end;
    }
    let own = indent(content);
    let mut end = line.end.min(text.len());
    for next in text.get(end..).unwrap_or_default().split_inclusive('\n') {
        if !next.trim().is_empty() && next.len() - next.trim_start_matches(' ').len() <= own {
            break;
        }
        end += next.len();
    }
    end.max(line.end)
}
