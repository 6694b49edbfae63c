//! The table of formats: each kind of secret, the words that a text with one must hold, and the pattern.
//! Does not contain: arguments of programs, which are in `arguments`.

use memchr::{memchr_iter, memchr2_iter};

use super::{Hint, SecretFormat, SecretValue};
use crate::pairs::FilteredText;

/// Ends of names whose value is a secret, in small letters.
const NAMES: [&str; 9] =
    ["password", "passwd", "pwd", "secret", "token", "key", "passphrase", "credential", "sig"];

/// Ends of names whose value can be a secret, in small letters: the value must look like one.
const WEAK_NAMES: [&str; 12] = [
    "pass",
    "passes",
    "passwords",
    "passphrases",
    "tokens",
    "secrets",
    "keys",
    "credentials",
    "creds",
    "pat",
    "auth",
    "passcode",
];

/// Formats that their issuers publish: a match is a secret wherever it appears.
pub(super) static PUBLISHED: [SecretFormat; 49] = [
    // RFC 7468: textual encodings; OpenSSH and PGP write the same lines.
    SecretFormat::new(
        "private key",
        Hint::Any(&["-----BEGIN"]),
        r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----|\z)",
    ),
    // The same without its first line: `openssh-key-v1` in base64, and the DER headers of RSA, EC, and PKCS 8.
    SecretFormat::new(
        "private key",
        Hint::Any(&[
            "b3BlbnNzaC1rZXktdjE",
            "IBAAKCA",
            "IBADANBgkqhkiG9w0BAQEFAASC",
            "MHcCAQEE",
            "AgEAMBMGByqGSM49",
            "MC4CAQAwBQYDK2VwBCIEI",
        ]),
        concat!(
            r"\b(?:b3BlbnNzaC1rZXktdjE|MII[A-Za-z0-9+/]{3}IBAAKCA[A-Za-z]E|MII[A-Za-z0-9+/]{3}IBADANBgkqhkiG9w0BAQEFAASC",
            r"|MHcCAQEE|MI[A-Za-z0-9+/]{2,4}AgEAMBMGByqGSM49|MC4CAQAwBQYDK2VwBCIEI)[A-Za-z0-9+/]*",
            r"(?:(?:\\[nr]|\s)+[A-Za-z0-9+/]{32,})*(?:(?:\\[nr]|\s)+[A-Za-z0-9+/]+={1,2})?=*",
        ),
    ),
    // age(1): identities.
    SecretFormat::new(
        "age key",
        Hint::Any(&["AGE-SECRET-KEY-"]),
        r"\bAGE-SECRET-KEY-(?:PQ-)?1[0-9A-Z]{40,}",
    ),
    // AWS IAM guide, "Understanding unique ID prefixes".
    SecretFormat::new(
        "AWS access key",
        Hint::Any(&["AKIA", "ASIA"]),
        r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    ),
    // The same guide: 40 characters, beside the id or the name of the key.
    SecretFormat::new(
        "AWS secret key",
        Hint::Any(&["AKIA", "ASIA", "aws", "AWS", "Aws"]),
        concat!(
            r"(?:(?:AKIA|ASIA)[0-9A-Z]{16}[\s\x22',:;|/]{1,8}|(?i:aws[ _-]?secret(?:[ _-]?access)?[ _-]?key)(?:[\x22'\s:=]|is){1,8})",
            r"([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|\z)",
        ),
    ),
    // GitHub documentation, "About authentication to GitHub", token formats.
    SecretFormat::new(
        "GitHub token",
        Hint::Any(&["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"]),
        r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})",
    ),
    // GitLab documentation, "Token overview", prefixes.
    SecretFormat::new(
        "GitLab token",
        Hint::Any(&[
            "glpat-", "gldt-", "glrt-", "glrtr-", "glptt-", "glcbt-", "glsoat-", "glft-", "glimt-",
            "glagent-", "gloas-",
        ]),
        r"\bgl(?:pat|dt|rt|rtr|ptt|cbt|soat|ft|imt|agent|oas)-[A-Za-z0-9_.-]{16,}",
    ),
    // Slack documentation, "Tokens".
    SecretFormat::new(
        "Slack token",
        Hint::Any(&["xox", "xapp-"]),
        r"\b(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}",
    ),
    // Slack documentation, "Sending messages using incoming webhooks".
    SecretFormat::new(
        "Slack webhook",
        Hint::Any(&["hooks.slack.com/services/"]),
        r"hooks\.slack\.com/services/([A-Za-z0-9/]{20,})",
    ),
    // As OpenAI (`sk-…`, `sk-proj-…`), Anthropic (`sk-ant-…`), Groq, xAI, Perplexity, and Replicate issue them.
    SecretFormat::new(
        "model API key",
        Hint::Any(&["sk-", "gsk_", "xai-", "pplx-", "r8_"]),
        r"\b(?:sk-[A-Za-z0-9_-]{20,}|(?:gsk_|xai-|pplx-)[A-Za-z0-9]{40,}|r8_[A-Za-z0-9]{37})",
    )
    .with_digit(),
    // Stripe documentation, "API keys" and "Webhook signatures".
    SecretFormat::new(
        "Stripe key",
        Hint::Any(&["sk_live_", "rk_live_", "whsec_"]),
        r"\b(?:[sr]k_live_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/]{24,})",
    ),
    // As Google Cloud issues API keys: 39 characters.
    SecretFormat::new("Google API key", Hint::Any(&["AIza"]), r"\bAIza[0-9A-Za-z_-]{35}"),
    // As Google issues access tokens and client secrets of OAuth.
    SecretFormat::new(
        "Google OAuth secret",
        Hint::Any(&["ya29.", "GOCSPX-"]),
        r"\b(?:ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{24,})",
    ),
    // npm documentation, "About access tokens"; the prefix is GitHub's scheme of 2021.
    SecretFormat::new("npm token", Hint::Any(&["npm_"]), r"\bnpm_[A-Za-z0-9]{36}"),
    // PyPI help, "API tokens": a macaroon in base64url, which begins with its version.
    SecretFormat::new("PyPI token", Hint::Any(&["pypi-AgE"]), r"\bpypi-AgE[A-Za-z0-9_-]{16,}"),
    // crates.io, RubyGems: their prefixes.
    SecretFormat::new(
        "package registry token",
        Hint::Any(&["cio", "rubygems_"]),
        r"\b(?:cio[A-Za-z0-9]{32}\b|rubygems_[0-9a-f]{48}\b)",
    )
    .with_digit(),
    // Docker documentation, "Personal access tokens".
    SecretFormat::new(
        "Docker token",
        Hint::Any(&["dckr_pat_", "dckr_oat_"]),
        r"\bdckr_[po]at_[A-Za-z0-9_-]{20,}",
    ),
    // Azure documentation, "Configure connection strings".
    SecretFormat::new(
        "Azure storage key",
        Hint::Any(&["AccountKey=", "SharedAccessKey="]),
        r"(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{20,}={0,2})",
    ),
    // Azure documentation, "Shared access signatures".
    SecretFormat::new(
        "Azure SAS signature",
        Hint::Any(&["sig="]),
        r"[?&;]sig=([A-Za-z0-9%+/_-]{20,}={0,2})",
    )
    .with_digit(),
    // Microsoft Entra ID: the fourth to sixth characters are a digit and `Q~`.
    SecretFormat::new(
        "Azure client secret",
        Hint::Any(&["Q~"]),
        r"(?:^|[^A-Za-z0-9_~.-])([A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34})",
    ),
    // Twilio documentation: SendGrid API keys, Twilio API keys.
    SecretFormat::new(
        "SendGrid key",
        Hint::Any(&["SG."]),
        r"\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}",
    )
    .with_digit(),
    SecretFormat::new("Twilio key", Hint::Any(&["SK"]), r"\bSK[0-9a-f]{32}\b"),
    // Mailgun, Mailchimp, Brevo: their API keys.
    SecretFormat::new(
        "mail service key",
        Hint::Any(&["key-", "-us", "xkeysib-"]),
        r"\b(?:key-[0-9a-f]{32}\b|[0-9a-f]{32}-us[0-9]{1,2}\b|xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16})",
    ),
    // Hugging Face documentation, "User access tokens".
    SecretFormat::new("Hugging Face token", Hint::Any(&["hf_"]), r"\bhf_[A-Za-z0-9]{30,}\b"),
    // DigitalOcean API reference, "Authentication".
    SecretFormat::new(
        "DigitalOcean token",
        Hint::Any(&["dop_v1_", "doo_v1_", "dor_v1_"]),
        r"\bdo[por]_v1_[0-9a-f]{40,}",
    ),
    // Telegram Bot API, "Authorizing your bot".
    SecretFormat::new(
        "Telegram bot token",
        Hint::Any(&[":AA"]),
        r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}\b",
    ),
    // Discord developer documentation: the id of the user, the time, and a signature, each in base64url.
    SecretFormat::new(
        "Discord token",
        Hint::Check(dots_seven_apart),
        r"\b[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}\b",
    )
    .with_digit(),
    SecretFormat::new(
        "Discord webhook",
        Hint::Any(&["/api/webhooks/"]),
        r"/api/webhooks/[0-9]+/([A-Za-z0-9_-]{20,})",
    ),
    // Vault documentation, "Tokens": prefixes since 1.10.
    SecretFormat::new(
        "Vault token",
        Hint::Any(&["hvs.", "hvb.", "hvr."]),
        r"\bhv[sbr]\.[A-Za-z0-9_-]{20,}",
    ),
    // Doppler documentation, "Token formats".
    SecretFormat::new(
        "Doppler token",
        Hint::Any(&["dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit.", "dp.said."]),
        r"\bdp\.(?:pt|st|ct|sa|scim|audit|said)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{20,}",
    ),
    // Shopify documentation, "Access tokens".
    SecretFormat::new(
        "Shopify token",
        Hint::Any(&["shpat_", "shpss_", "shpca_", "shppa_", "shpua_"]),
        r"\bshp(?:at|ss|ca|pa|ua)_[0-9a-fA-F]{32}",
    ),
    // Square documentation, "Access tokens and other credentials".
    SecretFormat::new(
        "Square token",
        Hint::Any(&["sq0", "EAAA"]),
        r"\b(?:sq0(?:atp|csp)-[A-Za-z0-9_-]{22,}|EAAA[A-Za-z0-9_-]{56,})",
    )
    .with_digit(),
    // Terraform Cloud documentation, "API tokens".
    SecretFormat::new(
        "Terraform token",
        Hint::Any(&[".atlasv1."]),
        r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}",
    ),
    // Prefixes as their issuers write them in their documentation.
    SecretFormat::new(
        "Linear key",
        Hint::Any(&["lin_api_", "lin_oauth_"]),
        r"\blin_(?:api|oauth)_[A-Za-z0-9]{32,}",
    ),
    SecretFormat::new(
        "Notion token",
        Hint::Any(&["ntn_", "secret_"]),
        r"\b(?:ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43})\b",
    )
    .with_digit(),
    SecretFormat::new("Postman key", Hint::Any(&["PMAK-"]), r"\bPMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    SecretFormat::new(
        "New Relic key",
        Hint::Any(&["NRAK-", "NRJS-", "NRII-", "NRIQ-", "NRRA-", "NRAL"]),
        r"\b(?:NR(?:AK|JS|II|IQ|RA)-[A-Za-z0-9_-]{19,}|[0-9a-f]{36}NRAL\b)",
    ),
    SecretFormat::new(
        "Atlassian token",
        Hint::Any(&["ATATT", "ATCTT", "ATBB"]),
        r"\b(?:AT[AC]TT3[A-Za-z0-9_=-]{20,}|ATBB[A-Za-z0-9]{32}\b)",
    ),
    SecretFormat::new("Netlify token", Hint::Any(&["nfp_"]), r"\bnfp_[A-Za-z0-9]{36,}"),
    SecretFormat::new("Databricks token", Hint::Any(&["dapi"]), r"\bdapi[0-9a-f]{32}(?:-[0-9])?\b"),
    SecretFormat::new(
        "Grafana token",
        Hint::Any(&["glsa_", "glc_"]),
        r"\b(?:glsa_[A-Za-z0-9]{32}(?:_[0-9a-f]{8})?|glc_[A-Za-z0-9+/]{32,}={0,2})",
    ),
    SecretFormat::new(
        "Sentry token",
        Hint::Any(&["sntrys_", "sntryu_"]),
        r"\bsntry[su]_[A-Za-z0-9+/=_-]{40,}",
    ),
    SecretFormat::new("Supabase token", Hint::Any(&["sbp_"]), r"\bsbp_[0-9a-f]{40}\b"),
    SecretFormat::new(
        "PlanetScale token",
        Hint::Any(&["pscale_"]),
        r"\bpscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,}",
    ),
    SecretFormat::new("Pulumi token", Hint::Any(&["pul-"]), r"\bpul-[0-9a-f]{40}\b"),
    SecretFormat::new("Tailscale key", Hint::Any(&["tskey-"]), r"\btskey-[a-z]+-[A-Za-z0-9-]{20,}"),
    SecretFormat::new("Heroku key", Hint::Any(&["HRKU-"]), r"\bHRKU-[A-Za-z0-9_-]{30,}"),
    SecretFormat::new("1Password token", Hint::Any(&["ops_eyJ"]), r"\bops_eyJ[A-Za-z0-9_-]{40,}"),
    SecretFormat::new(
        "Cloudflare origin key",
        Hint::Any(&["v1.0-"]),
        r"\bv1\.0-[0-9a-f]{24}-[0-9a-f]{100,}",
    ),
];

/// Formats that are secrets because of what is beside them, or that other texts have as well.
pub(super) static BY_CONTEXT: [SecretFormat; 20] = [
    // RFC 7519: `{"` in base64url begins with `eyJ`.
    SecretFormat::new(
        "JSON web token",
        Hint::Any(&["eyJ"]),
        r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]*)?",
    ),
    // RFC 6750 and RFC 7617: the `Authorization` header.
    SecretFormat::new(
        "authorization",
        Hint::Any(&["earer ", "EARER ", "uthorization", "UTHORIZATION"]),
        concat!(
            r#"(?i)(?:\bbearer|authorization["']?: *["']?(?:basic|token|digest|apikey))"#,
            r" +([A-Za-z0-9._~+/=-]{8,})",
        ),
    )
    .with_digit(),
    // RFC 6265: the headers with cookies.
    SecretFormat::new(
        "cookie",
        Hint::Any(&["ookie", "OOKIE"]),
        r#"(?i)\bcookie["']?\s*:\s*["']?([A-Za-z0-9_.%-]+=[^\r\n"'«]{4,})"#,
    ),
    // RFC 3986, section 3.2.1: `user:password@host`.
    SecretFormat::new(
        "password in an address",
        Hint::Any(&["://"]),
        r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@]*:([^\s/@«]+)@",
    ),
    // The same section: a token in place of both.
    SecretFormat::new("token in an address", Hint::Any(&["://"]), r"://([A-Za-z0-9_-]{20,})@").with_digit(),
    // By convention: a name that says so, and its value.
    SecretFormat::new(
        "named value",
        Hint::Check(names_a_value),
        concat!(
            r#"(?i)(?:passw(?:or)?d|secret|token|passphrase|credential"#,
            r#"|(?:api|access|private|secret|account|signing|encryption|master|shared|admin|service)[_-]?key)"#,
            r#"(?:\\?["'])?\s*[:=]\s*(?:\\?["'])?([^\s"'\\,;&|(){}\[\]<>$«=:]{3}[^\s"'\\,;&|(){}<>«]*)"#,
        ),
    ),
    // The same of `pwd`, which is also the working directory of a shell.
    SecretFormat::new(
        "named value",
        Hint::Check(names_a_value),
        concat!(
            r#"(?i)(?:^|[^$\{\w])pwd(?:\\?["'])?\s*[:=]\s*(?:\\?["'])?"#,
            r#"([^\s"'\\,;&|(){}\[\]<>$«=:/][^\s"'\\,;&|(){}\[\]<>$«=:]{2}[^\s"'\\,;&|(){}<>«]*)"#,
        ),
    ),
    // The same of names that say less: only of values that look random.
    SecretFormat::new(
        "random value",
        Hint::Check(names_a_value),
        concat!(
            r#"(?i)\b(?:[a-z0-9]+[_-])?(?:key|sig|credential)(?:\\?["'])?\s*[:=]\s*(?:\\?["'])?"#,
            r"([a-f0-9]{32,}\b|[A-Za-z0-9+/]{40,}={0,2})",
        ),
    )
    .with_digit(),
    // Names that can say something else: `auth`, `pass`, and plurals. Only of values that look random.
    SecretFormat::new(
        "named value",
        Hint::Check(may_name_a_value),
        concat!(
            r#"(?i)(?:pass|passwords|passphrases|tokens|secrets|keys|credentials|creds|pat|auth|passcode)(?:\\?["'])?"#,
            r#"\s*[:=]\s*\[?\s*(?:\\?["'])?([^\s"'\\;&|(){}\[\]<>«$]{8,})"#,
        ),
    )
    .of(SecretValue::Random),
    // The same of variables, which are written in capitals, with a shorter value.
    SecretFormat::new(
        "named value",
        Hint::Check(may_name_a_value),
        concat!(
            r#"\b[A-Z][A-Z0-9_]*_(?:PASS|PASSWORDS|PAT|AUTH|TOKENS|SECRETS|KEYS|CREDENTIALS|CREDS)"#,
            r#"=["']?([^\s"'\\,;&|(){}\[\]<>«$/.:=]{5,})"#,
        ),
    )
    .of(SecretValue::Mixed),
    // `pass` beside the name of an account.
    SecretFormat::new(
        "named value",
        Hint::Check(may_name_a_value),
        concat!(
            r#"(?i)(?:^|[^a-z0-9])(?:[a-z0-9]+[_.-])*(?:db|database|smtp|mail|email|imap|ftp|sftp|ssh|ldap|mysql|mariadb|pg"#,
            r#"|postgres|postgresql|mongo|mongodb|redis|rabbitmq|amqp|root|admin|user|login|account|proxy|vpn|wifi|sudo|jdbc"#,
            r#"|oracle|mssql|keystore|truststore|vault|registry|svc|service|bind)[_.-]?pass(?:\\?["'])?\s*[:=]\s*(?:\\?["'])?"#,
            r#"([^\s"'\\,;&|(){}\[\]<>$«=:]{3}[^\s"'\\,;&|(){}\[\]<>«]*)(?:[\s"'\\,;&|)}\]>]|\z)"#,
        ),
    )
    .of(SecretValue::Text),
    // By convention: an option that says so, and its argument.
    SecretFormat::new(
        "named argument",
        Hint::Check(|text| text.holds("--") && any(text, &["passw", "secret", "token", "key", "passph"])),
        concat!(
            r#"(?i)--[a-z-]*(?:passw(?:or)?d|passphrase|secret|token|(?:api|access|private)-?key)"#,
            r#" +["']?([^\s"'\\$<«-][^\s"'\\«]{2,})"#,
        ),
    ),
    // By words: `the password is hunter2`, or in quotes.
    SecretFormat::new(
        "password in a sentence",
        Hint::Any(&["assword", "assphrase", "ASSWORD"]),
        concat!(
            r"(?i)\b(?:password|passphrase)(?: (?:for|of|to) [^\n.,:;]{1,40}?)? (?:is|was|=)(?: now)?:? ",
            r"([^\s\x22'`«.,;:$<>(){}\[\]][^\s\x22'`«,;]{4,})",
        ),
    )
    .with_digit(),
    SecretFormat::new(
        "password in a sentence",
        Hint::Any(&["assword", "assphrase", "ASSWORD"]),
        concat!(
            r"(?i)\b(?:password|passphrase)(?: (?:for|of|to) [^\n.,:;]{1,40}?)? (?:is|was)(?: now)?:? ",
            r"(?:`([^`\n«$]{4,})`|'([^'\n«$]{4,})'|\x22([^\x22\n«$]{4,})\x22)",
        ),
    ),
    // Google Cloud documentation, "Service account keys": the key file contains the id.
    SecretFormat::new(
        "Google key id",
        Hint::Any(&["private_key_id"]),
        r#"private_key_id\\?["']?\s*[:=]\s*\\?["']?([0-9a-f]{40})\b"#,
    ),
    // Tokens without a form of their own, beside the name of their issuer.
    SecretFormat::new(
        "Twilio token",
        Hint::Any(&["wilio", "WILIO"]),
        r"(?i:twilio)[^\n@]{0,60}?\b([0-9a-f]{32})\b",
    )
    .with_digit(),
    SecretFormat::new(
        "Datadog key",
        Hint::Any(&["atadog", "ATADOG", "DD_API", "DD_APP", "dd_api", "dd-api", "DD-API"]),
        r"(?i:datadog|dd[_-](?:api|app))[^\n@]{0,40}?\b([0-9a-f]{32}|[0-9a-f]{40})\b",
    )
    .with_digit(),
    SecretFormat::new(
        "Cloudflare token",
        Hint::Any(&["loudflare", "LOUDFLARE", "CF_API", "cf_api"]),
        r"(?i:cloudflare|cf_api)[^\n@]{0,40}?[^A-Za-z0-9_/-]([A-Za-z0-9_-]{37}|[A-Za-z0-9_-]{40})(?:[^A-Za-z0-9_/-]|\z)",
    )
    .with_digit(),
    SecretFormat::new(
        "Fastly token",
        Hint::Any(&["astly", "ASTLY"]),
        r"(?i:fastly)[^\n@]{0,40}?[^A-Za-z0-9_/-]([A-Za-z0-9_-]{32})(?:[^A-Za-z0-9_/-]|\z)",
    )
    .with_digit(),
    SecretFormat::new(
        "Vault token of old",
        Hint::Any(&["vault", "VAULT", "Vault"]),
        r"(?i:vault)[^\n@]{0,40}?\b(s\.[A-Za-z0-9]{24})\b",
    )
    .with_digit(),
];

fn any(text: &FilteredText<'_>, literals: &[&str]) -> bool {
    literals.iter().any(|it| text.holds(it))
}

/// Whether two dots are seven bytes apart.
fn dots_seven_apart(FilteredText { text, .. }: &FilteredText<'_>) -> bool {
    let bytes = text.as_bytes();
    memchr_iter(b'.', bytes).any(|at| bytes.get(at + 7) == Some(&b'.'))
}

/// Whether a name of `NAMES` is before a `=` or `:`, quotes and blanks between them left out.
fn names_a_value(text: &FilteredText<'_>) -> bool {
    has_name(text, &NAMES)
}

/// Whether a name of `WEAK_NAMES` is before a `=` or `:`.
fn may_name_a_value(text: &FilteredText<'_>) -> bool {
    has_name(text, &WEAK_NAMES)
}

/// Whether a value of three bytes follows the `=` or `:`, as each pattern requires: the reasons of blocks say `not pass: 1`.
fn has_value(text: &[u8], at: usize) -> bool {
    let rest = text.iter().skip(at.saturating_add(1));
    let is_before =
        |it: &&u8| it.is_ascii_whitespace() || matches!(it, b'[' | b'"' | b'\'' | b'\\');
    let value = rest.skip_while(is_before).take(3);
    value.filter(|it| !it.is_ascii_whitespace() && !matches!(it, b'"' | b'\'' | b'\\')).count() == 3
}

fn has_name(FilteredText { text, .. }: &FilteredText<'_>, names: &[&str]) -> bool {
    memchr2_iter(b'=', b':', text.as_bytes()).filter(|at| has_value(text.as_bytes(), *at)).any(
        |at| {
            let mut named = text.as_bytes().get(..at).unwrap_or_default().trim_ascii_end();
            while let [before @ .., b'"' | b'\'' | b'\\'] = named {
                named = before;
            }
            let last = named.last().map(u8::to_ascii_lowercase);
            // Most names end in another letter.
            names.iter().filter(|it| it.as_bytes().last().copied() == last).any(|name| {
                let start = named.len().checked_sub(name.len());
                let end = start.and_then(|it| named.get(it..));
                end.is_some_and(|it| it.eq_ignore_ascii_case(name.as_bytes()))
            })
        },
    )
}
