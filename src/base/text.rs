//! Numbers in texts, and texts cut to a length.

/// Returns a number of things: `1 stop`, `5,120 stops`.
#[must_use]
pub fn counted(number: impl TryInto<u64>, what: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {what}{ending}", grouped(number, ','))
}

/// Returns a number with its thousands apart: `5,120`.
#[must_use]
pub fn grouped(number: u64, separator: char) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(separator);
        }
        text.push(digit);
    }
    text
}

/// Returns the beginning of a text of at most `bytes_max` bytes, cut between characters.
#[must_use]
pub fn cut(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

/// Returns the end of a text of at most `bytes_max` bytes, cut between characters.
#[must_use]
pub fn cut_front(text: &str, bytes_max: usize) -> &str {
    let start = text.len().saturating_sub(bytes_max);
    let start = (start..=text.len()).find(|start| text.is_char_boundary(*start));
    start.and_then(|start| text.get(start..)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        for (number, text) in
            [(0_u64, "0 stops"), (1, "1 stop"), (999, "999 stops"), (1000, "1,000 stops")]
        {
            assert_eq!(counted(number, "stop"), text);
        }
        assert_eq!(grouped(1_234_567, ' '), "1 234 567");
    }

    #[test]
    fn cuts_fall_between_characters() {
        assert_eq!(cut("aäb", 2), "a");
        assert_eq!(cut_front("aäb", 2), "b");
        assert_eq!((cut("ab", 9), cut_front("ab", 9)), ("ab", "ab"));
    }
}
