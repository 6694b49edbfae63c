//! Secrets in a text: where they are and what they are. Lives here: one table of patterns, each with
//! its source. What follows (a mark in what is shown, a finding in a pack) is for others to say.
//! A pattern is compiled when a cheap look says that it may match, so that text without secrets
//! costs a few searches, and a short one hardly any.

use std::ops::Range;
use std::sync::OnceLock;

use memchr::memchr2_iter;
use regex::Regex;

use crate::pairs::Searched;

/// One kind of secret.
struct Row {
    name: &'static str,
    /// Whether a text may hold one: what is false here is never matched.
    may: fn(&Searched<'_>) -> bool,
    /// The secret is its first group, or all of it where it has none.
    pattern: &'static str,
    /// Whether plain words look alike, so that a secret must hold a digit.
    needs_digit: bool,
    regex: OnceLock<Option<Regex>>,
}

const fn row(name: &'static str, may: fn(&Searched<'_>) -> bool, pattern: &'static str) -> Row {
    Row { name, may, pattern, needs_digit: false, regex: OnceLock::new() }
}

const fn row_with_digit(
    name: &'static str,
    may: fn(&Searched<'_>) -> bool,
    pattern: &'static str,
) -> Row {
    Row { name, may, pattern, needs_digit: true, regex: OnceLock::new() }
}

/// Ends of names whose value is a secret, in small letters.
const NAMES: [&str; 6] = ["password", "passwd", "pwd", "secret", "token", "key"];

static ROWS: [Row; 15] = [
    // RFC 7468: textual encodings; OpenSSH and PGP write the same lines.
    row(
        "private key",
        |text| text.holds("-----BEGIN"),
        r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----|\z)",
    ),
    // AWS IAM guide, "Understanding unique ID prefixes".
    row("AWS access key", |text| any(text, &["AKIA", "ASIA"]), r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    // GitHub documentation, "About authentication to GitHub", token formats.
    row(
        "GitHub token",
        |text| any(text, &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"]),
        r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})",
    ),
    // GitLab documentation, "Token overview", prefixes.
    row(
        "GitLab token",
        |text| any(text, &["glpat-", "gldt-", "glrt-", "glptt-", "glcbt-"]),
        r"\bgl(?:pat|dt|rt|ptt|cbt)-[A-Za-z0-9_.-]{16,}",
    ),
    // Slack documentation, "Tokens".
    row(
        "Slack token",
        |text| any(text, &["xox", "xapp-"]),
        r"\b(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}",
    ),
    // Slack documentation, "Sending messages using incoming webhooks".
    row(
        "Slack webhook",
        |text| text.holds("hooks.slack.com/services/"),
        r"hooks\.slack\.com/services/([A-Za-z0-9/]{20,})",
    ),
    // As OpenAI (`sk-…`, `sk-proj-…`) and Anthropic (`sk-ant-…`) issue them.
    row_with_digit("model API key", |text| text.holds("sk-"), r"\bsk-[A-Za-z0-9_-]{20,}"),
    // Stripe documentation, "API keys".
    row(
        "Stripe key",
        |text| any(text, &["sk_live_", "rk_live_"]),
        r"\b[sr]k_live_[A-Za-z0-9]{16,}",
    ),
    // As Google Cloud issues API keys: 39 characters.
    row("Google API key", |text| text.holds("AIza"), r"\bAIza[0-9A-Za-z_-]{35}"),
    // npm documentation, "About access tokens"; the prefix is GitHub's scheme of 2021.
    row("npm token", |text| text.holds("npm_"), r"\bnpm_[A-Za-z0-9]{36}"),
    // RFC 7519: `{"` in base64url begins with `eyJ`.
    row(
        "JSON web token",
        |text| text.holds("eyJ"),
        r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]*)?",
    ),
    // RFC 6750 and RFC 7617: the `Authorization` header.
    row_with_digit(
        "authorization",
        |text| any(text, &["earer ", "EARER ", "asic ", "BASIC "]),
        r"(?i)\b(?:bearer|authorization: *basic) +([A-Za-z0-9._~+/=-]{8,})",
    ),
    // RFC 3986, section 3.2.1: `user:password@host`.
    row(
        "password in an address",
        |text| text.holds("://"),
        r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@]*:([^\s/@«]+)@",
    ),
    // By convention: a name that says so, and its value.
    row(
        "named value",
        names_a_value,
        concat!(
            r#"(?i)(?:passw(?:or)?d|\bpwd|secret|token|(?:api|access|private|secret)[_-]?key)"#,
            r#"(?:\\?["'])?\s*[:=]\s*(?:\\?["'])?([^\s"'\\,;&|(){}\[\]<>$«=:]{3}[^\s"'\\,;&|(){}<>«]*)"#,
        ),
    ),
    // By convention: an option that says so, and its argument.
    row(
        "named argument",
        |text| text.holds("--") && any(text, &["passw", "secret", "token", "key"]),
        concat!(
            r#"(?i)--[a-z-]*(?:passw(?:or)?d|secret|token|(?:api|access|private)-?key)"#,
            r#" +["']?([^\s"'\\$<«-][^\s"'\\«]{2,})"#,
        ),
    ),
];

fn any(text: &Searched<'_>, literals: &[&str]) -> bool {
    literals.iter().any(|it| text.holds(it))
}

/// Whether a name of `NAMES` stands before a `=` or `:`, quotes and blanks between them left out.
fn names_a_value(Searched { text, .. }: &Searched<'_>) -> bool {
    memchr2_iter(b'=', b':', text.as_bytes()).any(|at| {
        let mut named = text.as_bytes().get(..at).unwrap_or_default().trim_ascii_end();
        while let [before @ .., b'"' | b'\'' | b'\\'] = named {
            named = before;
        }
        let last = named.last().map(u8::to_ascii_lowercase);
        // Most names end in another letter.
        NAMES.iter().filter(|it| it.as_bytes().last().copied() == last).any(|name| {
            let start = named.len().checked_sub(name.len());
            let end = start.and_then(|it| named.get(it..));
            end.is_some_and(|it| it.eq_ignore_ascii_case(name.as_bytes()))
        })
    })
}

impl Row {
    fn find(&'static self, whole: &Searched<'_>, found: &mut Vec<(Range<usize>, &'static str)>) {
        if !(self.may)(whole) {
            return;
        }
        let Some(regex) = self.regex.get_or_init(|| Regex::new(self.pattern).ok()) else { return };
        for captures in regex.captures_iter(whole.text) {
            let Some(secret) = captures.get(1).or_else(|| captures.get(0)) else { continue };
            if !self.needs_digit || secret.as_str().bytes().any(|it| it.is_ascii_digit()) {
                found.push((secret.range(), self.name));
            }
        }
    }
}

/// The secrets of a text with their kinds, in order; none overlaps another.
#[must_use]
pub fn secrets(text: &str) -> Vec<(Range<usize>, &'static str)> {
    let mut found = Vec::new();
    let text = Searched::new(text);
    ROWS.iter().for_each(|row| row.find(&text, &mut found));
    // Stable: of two that begin at the same place the row that stands first names them.
    found.sort_by_key(|(range, _)| range.start);
    let mut apart: Vec<(Range<usize>, &'static str)> = Vec::new();
    for (range, name) in found {
        match apart.last_mut().filter(|(last, _)| range.start < last.end) {
            Some((last, _)) => last.end = last.end.max(range.end),
            None => apart.push((range, name)),
        }
    }
    apart
}

/// All kinds of secrets there are.
pub fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|it| it.name)
}

/// Kinds of the secrets of a text, each once.
#[must_use]
pub fn kinds(text: &str) -> Vec<&'static str> {
    let mut kinds: Vec<&str> = secrets(text).into_iter().map(|(_, kind)| kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for row in &ROWS {
            assert!(Regex::new(row.pattern).is_ok(), "{}", row.name);
        }
    }

    /// Secrets are put together here, so that no scanner takes this file for a leak.
    fn secret(start: &str, length: usize) -> String {
        let body = "4fQz9Lk2Xw7Rb1Vn8Tc3".repeat(4);
        format!("{start}{}", body.get(..length).unwrap())
    }

    #[test]
    fn every_row_finds_its_secrets() {
        let aws = secret("AKIA", 0) + "Q7XK2M4P9R1T5V8W";
        let mut seen = std::collections::BTreeSet::new();
        let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nx\n-----END RSA PRIVATE KEY-----";
        for (before, secret, after, name) in [
            ("export AWS_KEY_ID=", aws.as_str(), "", "AWS access key"),
            ("git push https://x:", &secret("ghp_", 36), "@host/a", "GitHub token"),
            ("see ", &secret("ghp_", 36), "", "GitHub token"),
            ("", &secret("github_pat_", 60), "", "GitHub token"),
            ("", &secret("glpat-", 20), "", "GitLab token"),
            ("", &secret("xoxb-", 24), "", "Slack token"),
            ("https://hooks.slack.com/services/", &secret("T", 30), "", "Slack webhook"),
            ("", &secret("sk-ant-api03-", 40), "", "model API key"),
            ("", &secret("sk-proj-", 40), "", "model API key"),
            ("", &secret("sk_live_", 24), "", "Stripe key"),
            ("", &secret("AIza", 35), "", "Google API key"),
            ("", &secret("npm_", 36), "", "npm token"),
            ("", &format!("{}.{}", secret("eyJ", 20), secret("", 20)), "", "JSON web token"),
            ("curl -H 'Authorization: Bearer ", &secret("", 24), "'", "authorization"),
            ("postgres://me:", "hunter2", "@db/x", "password in an address"),
            ("PGPASSWORD=", "hunter2", " psql", "named value"),
            (r#"{"token": ""#, "abcdef", r#""}"#, "named value"),
            (r#"{\"api_key\":\""#, "abcdef", r#"\"}"#, "named value"),
            ("mysql --password ", "hunter2", " -u me", "named argument"),
            ("", key, "\nafter", "private key"),
            ("", "-----BEGIN OPENSSH PRIVATE KEY-----\nMIIE", "", "private key"),
        ] {
            let text = format!("{before}{secret}{after}");
            let range = before.len()..before.len() + secret.len();
            assert_eq!(secrets(&text), [(range, name)], "{text}");
            seen.insert(name);
        }
        assert_eq!(seen, ROWS.iter().map(|it| it.name).collect(), "every row is tried");
    }

    #[test]
    fn plain_text_holds_none() {
        for text in [
            "",
            "tokens.context > 100000",
            "the token that the parser expects, and its password",
            "if password == \"\" { }",
            "token=$TOKEN password=${PASSWORD} secret: <your secret>",
            "a bearer authentication scheme, a sk-something-of-plain-words-only",
            "https://example.com:8080/a@b",
            "git@github.com:a/b.git",
            "keyboard: qwerty",
            "-----BEGIN CERTIFICATE-----",
        ] {
            assert_eq!(secrets(text), [], "{text}");
        }
    }
}
