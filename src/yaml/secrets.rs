//! Secrets in a text: where they are, what they are, and a text without them. Contains: the search over two
//! tables, `formats` and `arguments`. Does not contain: what follows (a finding in a pack, a guard that fires).
//! A pattern is compiled when a cheap look says that it may match, so that text without secrets
//! costs a few searches, and a short one hardly any.

mod arguments;
mod formats;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

use regex::{Captures, Match, Regex};

use crate::pairs::FilteredText;
use arguments::ARGUMENTS;
use formats::{BY_CONTEXT, PUBLISHED};

/// The source text of the search. Masked texts that are stored depend on it.
pub const SOURCE_TEXT: &str = concat!(
    include_str!("secrets.rs"),
    include_str!("secrets/formats.rs"),
    include_str!("secrets/arguments.rs")
);

/// What replaces a secret.
pub const MARK: &str = "«masked»";

/// Rounds in which a text is masked until no secret is left: what is beside a mark may look like one.
const ROUNDS_MAX: usize = 4;

/// The kind of secrets of the table `arguments`.
const ARGUMENT: &str = "argument of a program";

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
    /// Whether ordinary words match, too, so that a secret must contain a digit.
    needs_digit: bool,
    regex: OnceLock<Option<Regex>>,
}

impl SecretFormat {
    const fn new(name: &'static str, hint: Hint, pattern: &'static str) -> Self {
        Self { name, hint, pattern, needs_digit: false, regex: OnceLock::new() }
    }

    const fn with_digit(mut self) -> Self {
        self.needs_digit = true;
        self
    }

    fn may_be_in(&self, text: &FilteredText<'_>) -> bool {
        match &self.hint {
            Hint::Any(words) => words.iter().any(|it| text.holds(it)),
            Hint::Check(check) => check(text),
        }
    }

    fn find(&'static self, text: &FilteredText<'_>, found: &mut Vec<(Range<usize>, &'static str)>) {
        if !self.may_be_in(text) {
            return;
        }
        let Some(regex) = self.regex.get_or_init(|| Regex::new(self.pattern).ok()) else { return };
        let secrets = regex.captures_iter(text.text).filter_map(|it| secret_of(&it));
        let counts = |it: &Match<'_>| {
            !self.needs_digit || it.as_str().bytes().any(|byte| byte.is_ascii_digit())
        };
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
    let mut found = Vec::new();
    let text = FilteredText::new(text);
    PUBLISHED.iter().chain(&BY_CONTEXT).for_each(|row| row.find(&text, &mut found));
    for argument in ARGUMENTS.iter().filter(|it| it.may_be_in(&text)) {
        let Some(regex) = argument.regex() else { continue };
        let secrets = regex.captures_iter(text.text).filter_map(|it| secret_of(&it));
        found.extend(secrets.map(|it| (it.range(), ARGUMENT)));
    }
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
    let mut names: Vec<&str> = PUBLISHED.iter().chain(&BY_CONTEXT).map(|it| it.name).collect();
    names.push(ARGUMENT);
    names.dedup();
    names.into_iter()
}

/// Kinds of secrets whose format alone tells them, each once.
pub fn published() -> impl Iterator<Item = &'static str> {
    let mut names: Vec<&str> = PUBLISHED.iter().map(|it| it.name).collect();
    names.dedup();
    names.into_iter()
}

/// Kinds of secrets of which the context tells, each once.
pub fn by_context() -> impl Iterator<Item = &'static str> {
    let mut names: Vec<&str> = BY_CONTEXT.iter().map(|it| it.name).collect();
    names.dedup();
    names.into_iter()
}

/// An example of each row of `arguments`.
pub fn arguments() -> impl Iterator<Item = String> {
    ARGUMENTS.iter().map(arguments::Argument::shown)
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
        for row in PUBLISHED.iter().chain(&BY_CONTEXT) {
            assert!(Regex::new(row.pattern).is_ok(), "{}", row.name);
        }
        for argument in &ARGUMENTS {
            assert!(argument.regex().is_some(), "{}", argument.shown());
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
        assert_eq!(seen, names().collect(), "every kind is tried");
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
