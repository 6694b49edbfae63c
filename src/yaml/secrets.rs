//! Secrets in a text: where they are, what they are, and a text without them. Contains: the search over three
//! tables: `formats`, `arguments`, and `listed`, which `policies/formats/secrets.yaml` generates. Does not contain: what
//! follows (a finding in a pack, a guard that fires).
//! A pattern is compiled when a cheap look says that it may match, so that text without secrets
//! costs a few searches, and a short one hardly any.

mod arguments;
mod formats;
#[rustfmt::skip]
mod listed;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

use regex::{Captures, Match, Regex};

use crate::pairs::FilteredText;
use arguments::ARGUMENTS;
use formats::{BY_CONTEXT, PUBLISHED};
use listed::{STATEMENTS, TOKENS};

/// What replaces a secret.
pub const MARK: &str = "«masked»";

/// Rounds in which a text is masked until no secret is left: what is beside a mark may look like one, and a program can
/// take several secrets.
const ROUNDS_MAX: usize = 12;
/// Shortest run of letters and digits in a secret of `TOKENS`.
const RUN_MIN: usize = 14;
/// Bytes of a possible token that are looked at before its pattern is compiled.
const TOKEN_LOOK: usize = 128;
/// Values of a name such as `db_pass` that are not passwords: types and switches.
const PLAIN_VALUES: [&str; 20] = [
    "true",
    "false",
    "yes",
    "none",
    "null",
    "nil",
    "undefined",
    "string",
    "str",
    "text",
    "number",
    "int",
    "bool",
    "boolean",
    "any",
    "required",
    "optional",
    "password",
    "pass",
    "passed",
];

/// The kind of secrets of the table `arguments`.
const ARGUMENT: &str = "argument of a program";

/// Bytes before a value that a quotation of it has too.
const CONTEXT: usize = 5;
/// The kind of values whose name says that they are secrets.
const NAMED_VALUE: &str = "named value";

/// Which texts are searched for a kind of secret.
enum Hint {
    /// Those that hold one of these.
    Any(&'static [&'static str]),
    /// Those of which this is true.
    Check(fn(&FilteredText<'_>) -> bool),
}

/// One kind of secret.
struct SecretFormat {
    name: &'static str,
    hint: Hint,
    /// The secret is its first group that took part, or all of it if it has none.
    pattern: &'static str,
    /// What tells a secret from an ordinary word that matches too.
    value: SecretValue,
    regex: OnceLock<Option<Regex>>,
}

/// What a secret looks like.
#[derive(Clone, Copy)]
enum SecretValue {
    /// Like any word.
    Any,
    /// It contains a digit.
    Digit,
    /// It contains a digit and a letter.
    Mixed,
    /// It is not a number, a path, or the name of a type.
    Text,
    /// Letters, capitals, and digits alternate, and it is not a hash or a UUID.
    Random,
}

impl SecretValue {
    fn fits(self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Digit => text.bytes().any(|it| it.is_ascii_digit()),
            Self::Mixed => {
                Self::Digit.fits(text) && text.bytes().any(|it| it.is_ascii_alphabetic())
            }
            Self::Text => {
                let is_number = text.bytes().all(|it| it.is_ascii_digit() || it == b'.');
                let is_path = text.starts_with(['/', '~', '.', '%', '*']);
                let is_plain = PLAIN_VALUES.iter().any(|it| text.eq_ignore_ascii_case(it));
                // `os.environ`, `config.smtp.password`
                let is_name = text.contains('.') && !Self::Digit.fits(text);
                !is_number && !is_path && !is_plain && !is_name
            }
            Self::Random => is_random(text),
        }
    }
}

/// Whether a text consists of short pieces: small letters after at most one capital, capitals, and digits. A hash and a UUID
/// do as well, and are not secrets by themselves.
fn is_random(text: &str) -> bool {
    let is_hash = text.bytes().all(|it| it.is_ascii_hexdigit() || matches!(it, b'-' | b':'));
    if text.len() < 8 || is_hash || text.starts_with(['/', '~', '.']) {
        return false;
    }
    let (mut pieces, mut characters, mut digits) = (0_usize, 0_usize, 0_usize);
    let mut last = 0;
    for byte in text.bytes() {
        let class = match byte {
            b'0'..=b'9' => 1,
            b'a'..=b'z' => 2,
            b'A'..=b'Z' => 3,
            _ => 0,
        };
        digits += usize::from(class == 1);
        characters += usize::from(class != 0);
        let is_word = last == 3 && class == 2;
        pieces += usize::from(class != 0 && class != last && !is_word);
        last = class;
    }
    digits > 0 && pieces >= 5 && characters * 2 <= pieces * 5
}

/// Whether a text contains a long run of letters and digits with a digit, as each secret of `TOKENS` does.
fn has_long_run(text: &str) -> bool {
    let (mut length, mut has_digit) = (0_usize, false);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() {
            length += 1;
            has_digit |= byte.is_ascii_digit();
            if length >= RUN_MIN && has_digit {
                return true;
            }
        } else if !matches!(byte, b'_' | b'-' | b'.') {
            (length, has_digit) = (0, false);
        }
    }
    false
}

impl SecretFormat {
    const fn new(name: &'static str, hint: Hint, pattern: &'static str) -> Self {
        Self { name, hint, pattern, value: SecretValue::Any, regex: OnceLock::new() }
    }

    const fn with_digit(self) -> Self {
        self.of(SecretValue::Digit)
    }

    const fn of(mut self, value: SecretValue) -> Self {
        self.value = value;
        self
    }

    fn may_be_in(&self, text: &FilteredText<'_>) -> bool {
        match &self.hint {
            Hint::Any(words) => words.iter().any(|it| text.holds(it)),
            Hint::Check(check) => check(text),
        }
    }

    /// Whether one of the words begins something as long as a token: `pat` is in `path`, too.
    fn begins_token(&self, text: &FilteredText<'_>) -> bool {
        let Hint::Any(words) = &self.hint else { return true };
        let bytes = text.text.as_bytes();
        let is_long = |at: usize| {
            let rest = bytes.iter().skip(at).take(TOKEN_LOOK);
            let ends =
                |it: &u8| it.is_ascii_whitespace() || matches!(it, b'"' | b'\'' | b'`' | b'<');
            let token = rest.take_while(|it| !ends(it));
            let (length, digits) = token.fold((0_usize, 0_usize), |(length, digits), it| {
                (length + 1, digits + usize::from(it.is_ascii_digit()))
            });
            length >= RUN_MIN && digits > 0
        };
        words.iter().any(|word| {
            text.holds(word) && memchr::memmem::find_iter(bytes, word.as_bytes()).any(is_long)
        })
    }

    fn find(&'static self, text: &FilteredText<'_>, found: &mut Vec<(Range<usize>, &'static str)>) {
        if !self.may_be_in(text) {
            return;
        }
        let Some(regex) = self.regex.get_or_init(|| Regex::new(self.pattern).ok()) else { return };
        let secrets = regex.captures_iter(text.text).filter_map(|it| secret_of(&it));
        let counts = |it: &Match<'_>| self.value.fits(it.as_str());
        found.extend(secrets.filter(counts).map(|it| (it.range(), self.name)));
    }
}

/// The first group that took part, or the whole match.
fn secret_of<'t>(captures: &Captures<'t>) -> Option<Match<'t>> {
    captures.iter().skip(1).flatten().next().or_else(|| captures.get(0))
}

/// The secrets of a text with their kinds, in order; none overlaps another.
#[must_use]
pub fn secrets(text: &str) -> Vec<(Range<usize>, &'static str)> {
    let text = FilteredText::new(text);
    let mut found = issued(&text);
    BY_CONTEXT.iter().chain(&STATEMENTS).for_each(|row| row.find(&text, &mut found));
    for argument in ARGUMENTS.iter().filter(|it| it.may_be_in(&text)) {
        let Some(regex) = argument.regex() else { continue };
        let secrets = regex.captures_iter(text.text).filter_map(|it| secret_of(&it));
        found.extend(secrets.map(|it| (it.range(), ARGUMENT)));
    }
    apart(found)
}

/// The secrets whose format alone tells them.
fn issued(text: &FilteredText<'_>) -> Vec<(Range<usize>, &'static str)> {
    let mut found = Vec::new();
    PUBLISHED.iter().for_each(|row| row.find(text, &mut found));
    if has_long_run(text.text) {
        let rows = TOKENS.iter().filter(|row| row.begins_token(text));
        rows.for_each(|row| row.find(text, &mut found));
    }
    found
}

/// Secrets in order, those that overlap as one.
fn apart(mut found: Vec<(Range<usize>, &'static str)>) -> Vec<(Range<usize>, &'static str)> {
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

/// A text with marks in place of its secrets, and how many there were. A masked text holds none.
#[must_use]
pub fn mask(text: &str) -> (Cow<'_, str>, usize) {
    let (mut masked, mut count) = (Cow::Borrowed(text), 0);
    for _ in 0..ROUNDS_MAX {
        let found = secrets(&masked);
        if found.is_empty() {
            break;
        }
        count += found.len();
        masked = Cow::Owned(marked(&masked, found.into_iter().map(|(range, _)| range)));
    }
    (masked, count)
}

/// Masks advice about a `source` text. The advice contains names and values of its own: a value that is a secret only because
/// of the name before it is masked if the source text contains it with that name.
#[must_use]
pub fn mask_quoted<'t>(advice: &'t str, source: &str) -> Cow<'t, str> {
    let is_quoted = |range: &Range<usize>| {
        let start = (range.start.saturating_sub(CONTEXT)..=range.start)
            .find(|it| advice.is_char_boundary(*it));
        let part = start.and_then(|it| advice.get(it..range.end));
        part.is_some_and(|it| source.contains(it.trim_end_matches(['`', '.', '"'])))
    };
    let found = secrets(advice)
        .into_iter()
        .filter(|(range, name)| *name != NAMED_VALUE || is_quoted(range));
    let mut found = found.map(|(range, _)| range).peekable();
    if found.peek().is_none() {
        return Cow::Borrowed(advice);
    }
    Cow::Owned(marked(advice, found))
}

/// A text with marks in place of these parts.
fn marked(text: &str, parts: impl Iterator<Item = Range<usize>>) -> String {
    let (mut masked, mut done) = (String::with_capacity(text.len()), 0);
    for range in parts {
        masked.push_str(text.get(done..range.start).unwrap_or_default());
        masked.push_str(MARK);
        done = range.end;
    }
    masked.push_str(text.get(done..).unwrap_or_default());
    masked
}

/// Masks the words of one command line: what the words before say of a word counts. Returns how many secrets
/// there were.
pub fn mask_words(words: &mut [&mut String]) -> usize {
    let mut count = 0;
    for _ in 0..ROUNDS_MAX {
        // A word with blanks is a text of its own, and one word for the program.
        let found = mask_joined(words, "_") + mask_joined(words, " ");
        count += found;
        if found == 0 {
            break;
        }
    }
    count
}

/// Masks words that are searched as one line, with another character in place of blanks within a word.
fn mask_joined(words: &mut [&mut String], blank: &str) -> usize {
    let (mut line, mut places) = (String::new(), Vec::new());
    for word in words.iter() {
        let start = line.len();
        line.push_str(&word.replace(' ', blank));
        places.push(start..line.len());
        line.push(' ');
    }
    let found = secrets(&line);
    for (word, place) in words.iter_mut().zip(places) {
        let inside = |(range, _): &(Range<usize>, &str)| {
            let (start, end) = (range.start.max(place.start), range.end.min(place.end));
            (start < end).then(|| start - place.start..end - place.start)
        };
        let mut parts = found.iter().filter_map(inside).peekable();
        if parts.peek().is_some() {
            **word = marked(word, parts);
        }
    }
    found.len()
}

/// All kinds of secrets, each once.
pub fn names() -> impl Iterator<Item = &'static str> {
    published().chain(listed()).chain(by_context()).chain([ARGUMENT])
}

/// Kinds of secrets whose format alone tells them, each once.
pub fn published() -> impl Iterator<Item = &'static str> {
    each_once(PUBLISHED.iter())
}

/// The same kinds of `policies/formats/secrets.yaml`, each once.
pub fn listed() -> impl Iterator<Item = &'static str> {
    each_once(TOKENS.iter())
}

/// Kinds of secrets of which the context tells, each once.
pub fn by_context() -> impl Iterator<Item = &'static str> {
    each_once(BY_CONTEXT.iter().chain(&STATEMENTS)).filter(|it| *it != ARGUMENT)
}

fn each_once(
    rows: impl Iterator<Item = &'static SecretFormat>,
) -> impl Iterator<Item = &'static str> {
    let mut seen = std::collections::BTreeSet::new();
    rows.map(|it| it.name).filter(move |it| seen.insert(*it))
}

/// An example of each row of `arguments`.
pub fn arguments() -> impl Iterator<Item = String> {
    ARGUMENTS.iter().map(arguments::Argument::shown)
}

/// Kinds of the secrets of a text, each once.
#[must_use]
pub fn kinds(text: &str) -> Vec<&'static str> {
    sorted(secrets(text))
}

/// Kinds of the secrets of a text whose format alone tells them, each once. An ordinary text compiles no pattern.
#[must_use]
pub fn issued_kinds(text: &str) -> Vec<&'static str> {
    sorted(apart(issued(&FilteredText::new(text))))
}

/// Kinds of secrets whose format alone tells them: those that [`issued_kinds`] returns, each once.
pub fn issued_names() -> impl Iterator<Item = &'static str> {
    published().chain(listed())
}

fn sorted(secrets: Vec<(Range<usize>, &'static str)>) -> Vec<&'static str> {
    let mut kinds: Vec<&str> = secrets.into_iter().map(|(_, kind)| kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for row in PUBLISHED.iter().chain(&BY_CONTEXT).chain(&TOKENS).chain(&STATEMENTS) {
            assert!(Regex::new(row.pattern).is_ok(), "{}", row.name);
        }
        for argument in &ARGUMENTS {
            assert!(argument.regex().is_some(), "{}", argument.shown());
        }
    }

    #[test]
    fn an_ordinary_call_compiles_no_pattern() {
        for text in [
            "ls -la",
            "git commit -m 'fix: the parser reads re_exports and v1.2 of the format'",
            "cargo test --test process -- fc-match pat sl. t1. md-files",
            "patch -p1 < fixes/0001-parser.patch && gh pr view 4711 --json state",
            "export fn main() { const value = await fetch(url); return value.items; }",
            "docker run --rm -v $PWD:/work node:20 npm run build",
        ] {
            let text = FilteredText::new(text);
            let mut rows = PUBLISHED.iter().filter(|row| row.may_be_in(&text));
            assert_eq!(rows.next().map(|row| row.name), None, "{}", text.text);
            let mut rows = TOKENS.iter().filter(|row| row.begins_token(&text));
            assert_eq!(rows.next().map(|row| row.name), None, "{}", text.text);
        }
    }

    #[test]
    fn the_reason_of_a_block_compiles_no_pattern() {
        let text =
            "policyd: not done yet. Checks that did not pass: 1.\n\n- local_testing: no test ran\n";
        let text = FilteredText::new(text);
        let mut rows = BY_CONTEXT.iter().chain(&STATEMENTS).filter(|row| row.may_be_in(&text));
        assert_eq!(rows.next().map(|row| row.name), None);
        assert!(may_name_value("smtp pass: abc"), "three bytes can be a secret");
    }

    fn may_name_value(text: &str) -> bool {
        BY_CONTEXT.iter().any(|row| row.may_be_in(&FilteredText::new(text)))
    }

    #[test]
    fn what_an_issuer_chose_is_told_without_its_surroundings() {
        let listed = secret("figd_", 40);
        let published = secret("ghp_", 36);
        let text = format!(
            "curl -H 'X-Key: {listed}' -u me:hunter2 https://{published}@h PASSWORD=hunter2"
        );
        assert_eq!(issued_kinds(&text), ["Figma token", "GitHub token"]);
        assert!(kinds(&text).contains(&"named value"));
        for (name, example) in listed::EXAMPLES.iter().take(TOKENS.len()) {
            let text = example.replace(['«', '»', '+'], "");
            assert!(!issued_kinds(&text).is_empty(), "{name}: {text}");
        }
    }

    /// Secrets are put together here, so that no scanner takes this file for a leak.
    fn secret(start: &str, length: usize) -> String {
        let body = "4fQz9Lk2Xw7Rb1Vn8Tc3".repeat(4);
        format!("{start}{}", body.get(..length).unwrap())
    }

    fn hex(length: usize) -> String {
        "4f09ac21d7e83b56".repeat(10).get(..length).unwrap().to_owned()
    }

    /// A secret, what is before and after it, and its kind.
    struct Sample {
        parts: [String; 3],
        name: &'static str,
    }

    fn sample(parts: [&str; 3], name: &'static str) -> Sample {
        Sample { parts: parts.map(str::to_owned), name }
    }

    fn samples_of_formats() -> Vec<Sample> {
        let aws = secret("AKIA", 0) + "Q7XK2M4P9R1T5V8W";
        let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nx\n-----END RSA PRIVATE KEY-----";
        vec![
            sample(["export AWS_KEY_ID=", aws.as_str(), ""], "AWS access key"),
            sample(["git push https://x:", &secret("ghp_", 36), "@host/a"], "GitHub token"),
            sample(["see ", &secret("ghp_", 36), ""], "GitHub token"),
            sample(["", &secret("github_pat_", 60), ""], "GitHub token"),
            sample(["", &secret("glpat-", 20), ""], "GitLab token"),
            sample(["", &secret("xoxb-", 24), ""], "Slack token"),
            sample(["https://hooks.slack.com/services/", &secret("T", 30), ""], "Slack webhook"),
            sample(["", &secret("sk-ant-api03-", 40), ""], "model API key"),
            sample(["", &secret("sk-proj-", 40), ""], "model API key"),
            sample(["", &secret("sk_live_", 24), ""], "Stripe key"),
            sample(["", &secret("AIza", 35), ""], "Google API key"),
            sample(["", &secret("npm_", 36), ""], "npm token"),
            sample(
                ["", &format!("{}.{}", secret("eyJ", 20), secret("", 20)), ""],
                "JSON web token",
            ),
            sample(["curl -H 'Authorization: Bearer ", &secret("", 24), "'"], "authorization"),
            sample(["postgres://me:", "hunter2", "@db/x"], "password in an address"),
            sample(["PGPASSWORD=", "hunter2", " psql"], "named value"),
            sample([r#"{"token": ""#, "abcdef", r#""}"#], "named value"),
            sample([r#"{\"api_key\":\""#, "abcdef", r#"\"}"#], "named value"),
            sample(["mysql --password ", "hunter2", " -u me"], "named argument"),
            sample(["", key, "\nafter"], "private key"),
            sample(["", "-----BEGIN OPENSSH PRIVATE KEY-----\nMIIE", ""], "private key"),
            sample(["key: ", &(secret("b3BlbnNzaC1rZXktdjE", 51)), ""], "private key"),
            sample(["", &format!("AGE-SECRET-KEY-1{}", "Q7XK2M4P9R".repeat(5)), ""], "age key"),
            sample(["", &secret("pypi-AgEIcHlwaS5vcmc", 60), ""], "PyPI token"),
            sample(["", &secret("dckr_pat_", 27), ""], "Docker token"),
            sample(["", &format!("rubygems_{}", hex(48)), ""], "package registry token"),
            sample(
                ["AccountName=a;AccountKey=", &(secret("", 80) + "=="), ";E=x"],
                "Azure storage key",
            ),
            sample(["https://a.net/b?sv=1&sig=", &secret("", 40), "&se=2"], "Azure SAS signature"),
            sample(["use ", &secret("a4b8Q~", 34), " now"], "Azure client secret"),
            sample(["", &format!("{}.{}", secret("SG.", 22), secret("", 43)), ""], "SendGrid key"),
            sample(["", &format!("SK{}", hex(32)), ""], "Twilio key"),
            sample(["", &format!("key-{}", hex(32)), ""], "mail service key"),
            sample(["", &secret("hf_", 34), ""], "Hugging Face token"),
            sample(["", &format!("dop_v1_{}", hex(64)), ""], "DigitalOcean token"),
            sample(["", &secret("123456789:AA", 33), ""], "Telegram bot token"),
            sample(
                ["", &format!("{}.X7aB2c.{}", secret("M", 24), secret("", 38)), ""],
                "Discord token",
            ),
        ]
    }

    fn samples_of_more_formats() -> Vec<Sample> {
        vec![
            sample(
                ["https://discord.com/api/webhooks/123/", &secret("", 68), ""],
                "Discord webhook",
            ),
            sample(["", &secret("hvs.", 24), ""], "Vault token"),
            sample(["", &secret("dp.pt.", 43), ""], "Doppler token"),
            sample(["", &format!("shpat_{}", hex(32)), ""], "Shopify token"),
            sample(["", &secret("sq0atp-", 22), ""], "Square token"),
            sample(["", &secret("EAAA", 60), ""], "Square token"),
            sample(
                ["", &format!("{}.atlasv1.{}", secret("", 14), secret("", 64)), ""],
                "Terraform token",
            ),
            sample(["", &secret("lin_api_", 40), ""], "Linear key"),
            sample(["", &secret("ntn_", 46), ""], "Notion token"),
            sample(["", &format!("PMAK-{}-{}", hex(24), hex(34)), ""], "Postman key"),
            sample(["", &secret("NRAK-", 27), ""], "New Relic key"),
            sample(["", &secret("ATATT3", 60), ""], "Atlassian token"),
            sample(["", &secret("nfp_", 40), ""], "Netlify token"),
            sample(["", &format!("dapi{}", hex(32)), ""], "Databricks token"),
            sample(["", &secret("glsa_", 32), ""], "Grafana token"),
            sample(["", &secret("sntrys_", 60), ""], "Sentry token"),
            sample(["", &format!("sbp_{}", hex(40)), ""], "Supabase token"),
            sample(["", &secret("pscale_tkn_", 43), ""], "PlanetScale token"),
            sample(["", &format!("pul-{}", hex(40)), ""], "Pulumi token"),
            sample(["", &secret("tskey-auth-", 30), ""], "Tailscale key"),
            sample(["", &secret("HRKU-", 40), ""], "Heroku key"),
            sample(["", &secret("ops_eyJ", 60), ""], "1Password token"),
            sample(["", &format!("v1.0-{}-{}", hex(24), hex(146)), ""], "Cloudflare origin key"),
            sample(["", &secret("ya29.", 40), ""], "Google OAuth secret"),
            sample(["AWS Secret Access Key is ", &secret("", 40), ""], "AWS secret key"),
            sample(["Cookie: ", "sid=a1b2c3d4", ""], "cookie"),
            sample(["https://", &secret("", 30), "@host/a"], "token in an address"),
            sample(["deploy_key: ", &hex(40), ""], "random value"),
            sample(["our password is ", "Winter2026Strong", ""], "password in a sentence"),
            sample(["the password for root is '", "correct horse", "'"], "password in a sentence"),
            sample([r#""private_key_id": ""#, &hex(40), "\""], "Google key id"),
            sample(["the twilio auth is ", &hex(32), ""], "Twilio token"),
            sample(["export DD_API=", &hex(32), ""], "Datadog key"),
            sample(["cloudflare uses ", &secret("", 40), ""], "Cloudflare token"),
            sample(["fastly uses ", &secret("", 32), ""], "Fastly token"),
            sample(["vault login ", &secret("s.", 24), ""], "Vault token of old"),
            sample(["wget --password=", "hunter2", " x"], "named value"),
        ]
    }

    fn samples_of_arguments() -> Vec<Sample> {
        vec![
            sample(["mysql -u root -p", "hunter2", " app"], ARGUMENT),
            sample(["mysql -uroot -p'", "hun ter", "' app"], ARGUMENT),
            sample(["curl -s -u admin:", "SuperSecret99", " https://x"], ARGUMENT),
            sample(["curl --user 'admin:", "Super Secret", "' https://x"], ARGUMENT),
            sample(["curl -d 'a;b' \\\n  -u a:", "hunter2", " x"], ARGUMENT),
            sample(["sshpass -p ", "hunter2", " ssh me@x"], ARGUMENT),
            sample(["docker login -u me -p ", "hunter2", " reg"], ARGUMENT),
            sample(["openssl enc -aes-256-cbc -k ", "hunter2", " -in a"], ARGUMENT),
            sample(["openssl rsa -in a -passin pass:", "hunter2", ""], ARGUMENT),
            sample(["redis-cli -h x -a ", "hunter2", " ping"], ARGUMENT),
            sample(["http -a me:", "hunter2", " x"], ARGUMENT),
            sample(["smbclient //x/y -U me%", "hunter2", ""], ARGUMENT),
            sample(["ldapsearch -x -w ", "hunter2", " -b dc"], ARGUMENT),
            sample(["mongo -u me -p ", "hunter2", " db"], ARGUMENT),
        ]
    }

    #[test]
    fn every_row_finds_its_secrets() {
        let mut seen = std::collections::BTreeSet::new();
        let samples = [samples_of_formats(), samples_of_more_formats(), samples_of_arguments()];
        for Sample { parts: [before, secret, after], name } in samples.into_iter().flatten() {
            let text = format!("{before}{secret}{after}");
            let range = before.len()..before.len() + secret.len();
            assert_eq!(secrets(&text), [(range, name)], "{text}");
            let (masked, _) = mask(&text);
            assert_eq!(masked, format!("{before}{MARK}{after}"), "{text}");
            seen.insert(name);
        }
        for (name, example) in listed::EXAMPLES {
            let (before, rest) = example.split_once('«').unwrap();
            let (secret, after) = rest.split_once('»').unwrap();
            let secret = secret.replace('+', "");
            let text = format!("{before}{secret}{after}");
            let range = before.len()..before.len() + secret.len();
            let found: Vec<_> = secrets(&text).into_iter().map(|(range, _)| range).collect();
            assert_eq!(found, [range], "{name}: {text}");
            seen.insert(name);
        }
        assert_eq!(seen, names().collect(), "every kind is tried");
    }

    #[test]
    fn ordinary_lines_stay_as_they_are() {
        let lines: Vec<&str> = include_str!("secrets/ordinary.txt").lines().collect();
        assert!(lines.len() >= 100);
        let masked: Vec<_> = lines.iter().map(|it| (it, mask(it).0)).collect();
        let masked: Vec<_> = masked.into_iter().filter(|(line, it)| **line != it).collect();
        assert!(masked.is_empty(), "{masked:#?}");
    }

    #[test]
    fn secrets_of_names_and_statements_are_masked() {
        let mut wrong = Vec::new();
        for line in include_str!("secrets/named.txt").lines() {
            let expected: String = line
                .split(['«', '»'])
                .enumerate()
                .map(|(at, part)| if at % 2 == 1 { MARK } else { part })
                .collect();
            let plain = line.replace(['«', '»'], "");
            let masked = mask(&plain).0.into_owned();
            if masked != expected {
                wrong.push((plain, masked));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn the_run_of_a_token_is_found() {
        for (name, example) in listed::EXAMPLES.iter().take(TOKENS.len()) {
            assert!(has_long_run(&example.replace('+', "")), "{name}");
        }
        assert!(!has_long_run(
            "cargo test --test process -- a_failure_on_one_host /usr/lib/x86_64"
        ));
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
            "docker run -p 8080:80 nginx",
            "mkdir -p a/b && cp -p x y && ssh -p 2222 host",
            "curl -u \"$USER:$PASS\" https://x",
            "mysql -u root -p < dump.sql",
            "550e8400-e29b-41d4-a716-446655440000",
            "commit 4f09ac21d7e83b564f09ac21d7e83b564f09ac21",
            "integrity sha512-9Jz1dJbq7n6bG0Q6y3n8VYy5m3J3o8JXnKqV5z6yqkL0yq2c1r8w4t5u6i7o8p9a0s1d2f3g4h5j6k7l8z9x0c==",
            "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
            "uses: datadog/action@4f09ac21d7e83b564f09ac21d7e83b564f09ac21",
            "the password is required, and a passphrase is a longer one",
            "Cookie: the header that a browser sends",
        ] {
            assert_eq!(secrets(text), [], "{text}");
        }
    }

    #[test]
    fn advice_keeps_its_own_values_and_loses_those_of_the_source() {
        let advice = "add a case that expects guards: {acme_token: silent}";
        assert_eq!(mask_quoted(advice, "- id: acme_token\n  message: silent"), advice);
        let source = "token: hunter2secret\n";
        assert_eq!(mask_quoted("found `token: hunter2secret`", source), "found `token: «masked»");
        let key = secret("ghp_", 36);
        assert_eq!(mask_quoted(&format!("use {key}"), ""), "use «masked»");
    }

    #[test]
    fn words_of_a_command_line_are_masked_by_what_is_before_them() {
        for (line, expected) in [
            (&["mysql", "-pS3cr et", "db"][..], &["mysql", "-p«masked»", "db"][..]),
            (&["tool", "--password", "hunter2"], &["tool", "--password", MARK]),
            (&["docker", "run", "-p", "8080:80"], &["docker", "run", "-p", "8080:80"]),
        ] {
            let mut words: Vec<String> = line.iter().map(|it| (*it).to_owned()).collect();
            mask_words(&mut words.iter_mut().collect::<Vec<_>>());
            assert_eq!(words, expected);
        }
    }

    proptest::proptest! {
        #[test]
        fn a_masked_text_holds_no_secret(
            pieces in proptest::collection::vec(proptest::sample::select(vec![
                "password", "token", "=", ": ", " ", "-p", "mysql ", "curl ", "-u ", "a:", "hunter2", "://", "@",
                "Cookie: ", "sig=", "4f09ac21d7e83b564f09ac21d7e83b56", "'", "\"", "\n", "is ", "«masked»",
                "-----BEGIN PRIVATE KEY-----", "eyJhbGciOiJIUzI1", ".", "vault ", "key",
            ]), 0..14),
        ) {
            let text = pieces.concat();
            let (once, _) = mask(&text);
            proptest::prop_assert_eq!(mask(&once).1, 0, "{} -> {}", text, once);
        }
    }
}
