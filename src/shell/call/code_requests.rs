//! HTTP requests in code: the method, the address, and the proof of who calls, as options of `curl`.
//!
//! Does not contain: the recognition of a call and its other arguments (`code`).

use super::requests::{METHODS, is_credential};
use super::shell_text::ShellText;

/// The program that calls in code that send requests are like.
pub(super) const CLIENT: &str = "curl";
/// Settings that prove who calls.
const LOGINS: [&str; 4] = ["auth", "cookies", "withCredentials", "credentials"];

/// Returns the options of `curl` that the settings of a request are like. `settings` are arguments such as
/// `headers={…}` and `{method: "PUT"}`.
pub(super) fn request_options<'a>(settings: impl Iterator<Item = &'a String>) -> Vec<ShellText> {
    let (mut options, mut addresses) = (Vec::new(), Vec::new());
    let mut add = |option: &str, value: String| {
        options.extend([ShellText::known(option), ShellText::known(value)]);
    };
    for setting in settings {
        for (key, value) in pairs(setting) {
            let key = key.trim_matches(['"', '\'', '`']);
            let literal = value.trim_start().strip_prefix(['"', '\'', '`']);
            let word: String =
                literal.unwrap_or_default().chars().take_while(char::is_ascii_alphabetic).collect();
            let lower = key.to_ascii_lowercase();
            if lower == "method" && method(&word).is_some() {
                add("-X", word.to_uppercase());
            } else if lower == "headers" && !value.trim_start().starts_with(['{', '[']) {
                // Another part of the code has the names.
                add("-H", "Authorization: \u{2026}".to_owned());
            } else if LOGINS.contains(&key)
                && !matches!(word.as_str(), "omit")
                && !value.trim_start().starts_with("None")
            {
                add("-u", "\u{2026}".to_owned());
            } else if setting.to_ascii_lowercase().contains("headers") && is_credential(&lower) {
                add("-H", format!("{key}: \u{2026}"));
            }
        }
        if let Some((_, rest)) =
            setting.split_once("url").filter(|_| setting.trim_start().starts_with('{'))
        {
            let value = rest.trim_start_matches(['"', '\'', ':', ' ']);
            let address: String =
                value.chars().take_while(|c| !matches!(c, '"' | '\'' | '`' | ',' | '}')).collect();
            if address.contains("://") {
                addresses.push(ShellText::known(address));
            }
        }
    }
    options.extend(addresses);
    options
}

/// Returns the method that a text is.
pub(super) fn method(text: &str) -> Option<String> {
    METHODS.iter().find(|it| it.eq_ignore_ascii_case(text)).map(|it| (*it).to_owned())
}

/// Returns the names before `:`, `=`, or `=>` in a text, each with what follows.
fn pairs(text: &str) -> Vec<(&str, &str)> {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '"' | '\'' | '`');
    let signs = text.match_indices([':', '=']);
    let found = signs.filter_map(|(at, sign)| {
        let before = text.get(..at)?.trim_end();
        let start = before.rfind(|c| !is_name(c)).map_or(0, |it| it + 1);
        // A name begins at a boundary of a character, because `rfind` returns one that is not part of it.
        let name = before.get(before.char_indices().map(|it| it.0).find(|it| *it >= start)?..)?;
        let after = text.get(at + sign.len()..)?;
        Some((name, after.strip_prefix('>').unwrap_or(after)))
    });
    found.filter(|it| !it.0.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(settings: &[&str]) -> Vec<String> {
        let settings: Vec<String> = settings.iter().map(|it| (*it).to_owned()).collect();
        request_options(settings.iter()).into_iter().map(|it| it.text).collect()
    }

    #[test]
    fn settings_are_options_of_a_client() {
        assert_eq!(
            options(&["{method: 'delete', headers: {Authorization: 'Bearer ' + t, 'X-Y': 1}}"]),
            ["-X", "DELETE", "-H", "Authorization: \u{2026}"]
        );
        assert_eq!(options(&["headers={'PRIVATE-TOKEN': t}"]), ["-H", "PRIVATE-TOKEN: \u{2026}"]);
        assert_eq!(options(&["headers=h"]), ["-H", "Authorization: \u{2026}"]);
        assert_eq!(options(&["auth=('a', 'b')"]), ["-u", "\u{2026}"]);
        assert_eq!(options(&["json={'token': 1}", "timeout=3", "auth=None"]), Vec::<String>::new());
        assert_eq!(
            options(&["{method: 'put', url: 'https://a.b/c', data: 1}"]),
            ["-X", "PUT", "https://a.b/c"]
        );
    }
}
