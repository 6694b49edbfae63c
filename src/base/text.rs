//! Numbers in texts.

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
}
