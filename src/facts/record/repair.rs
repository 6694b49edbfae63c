//! The repair of a line that the strict parser rejects.

use std::borrow::Cow;

/// Replaces what the strict parser rejects: invalid UTF-8, and unpaired surrogates, which clients
/// write when they cut text inside a character. `None` if the line is valid.
#[must_use]
pub fn repaired(line: &[u8]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(line);
    let mut out = String::with_capacity(text.len());
    let mut changed = matches!(text, Cow::Owned(_));
    let mut rest = text.as_ref();
    while let Some(at) = rest.find("\\") {
        let (head, tail) = rest.split_at_checked(at)?;
        out.push_str(head);
        let kept = match (surrogate(tail), tail.get(6..).and_then(surrogate)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => tail.get(..12),
            (Some(_), _) => {
                changed = true;
                out.push_str("\\ufffd");
                rest = tail.get(6..)?;
                continue;
            }
            (None, _) => tail.char_indices().nth(2).map_or(Some(tail), |(end, _)| tail.get(..end)),
        }?;
        out.push_str(kept);
        rest = tail.get(kept.len()..)?;
    }
    out.push_str(rest);
    changed.then(|| out.into_bytes())
}

fn surrogate(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok().filter(|code| (0xd800..=0xdfff).contains(code))
}
