//! One step of a pattern of the shell, `.e[mn]*`: how much it says, and which names it could stand for.

/// How much a step says: its letters, of which those in brackets are one, or none where they are left out.
pub(super) fn letters(step: &str) -> usize {
    let mut rest = step.as_bytes();
    let mut count = 0_usize;
    while let Some((sign, behind)) = Sign::first_of(rest) {
        count += usize::from(match sign {
            Sign::Letter(_) => true,
            Sign::OneOf(set) => !set.starts_with(b"!") && !set.starts_with(b"^"),
            Sign::Any | Sign::One => false,
        });
        rest = behind;
    }
    count
}

/// Whether a step stands for names of files.
pub(super) fn is_wild(step: &str) -> bool {
    step.contains(['*', '?', '['])
}

/// One sign of a pattern.
#[derive(Debug, Clone, Copy)]
enum Sign<'p> {
    /// `*`
    Any,
    /// `?`
    One,
    /// `[ab]`, `[a-z]`, `[!ab]`: what stands in the brackets.
    OneOf(&'p [u8]),
    Letter(u8),
}

impl<'p> Sign<'p> {
    /// The first sign of a pattern, and what is behind it.
    fn first_of(pattern: &'p [u8]) -> Option<(Self, &'p [u8])> {
        let (first, behind) = pattern.split_first()?;
        Some(match first {
            b'*' => (Self::Any, behind),
            b'?' => (Self::One, behind),
            b'[' => match set_of(behind) {
                Some((set, behind)) => (Self::OneOf(set), behind),
                None => (Self::Letter(b'['), behind),
            },
            letter => (Self::Letter(*letter), behind),
        })
    }

    /// Whether it may stand for a letter.
    fn takes(self, letter: u8) -> bool {
        match self {
            Self::Any | Self::One => true,
            Self::Letter(own) => own == letter,
            Self::OneOf(set) => is_in(set, letter),
        }
    }
}

/// What stands between brackets, behind the first one, and what follows them. Of `[]ab]` and `[!]ab]` the first
/// bracket is one of the letters.
fn set_of(behind: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut at = usize::from(behind.starts_with(b"!") || behind.starts_with(b"^"));
    at += usize::from(behind.get(at) == Some(&b']'));
    while *behind.get(at)? != b']' {
        let rest = behind.get(at..)?;
        let is_class = rest.starts_with(b"[:");
        let class = rest.windows(2).position(|it| it == b":]").filter(|_| is_class);
        at += class.map_or(1, |it| it + 2);
    }
    Some((behind.get(..at)?, behind.get(at + 1..)?))
}

/// Whether a letter is one of those in brackets; of a class (`[:alpha:]`) any is taken to be.
fn is_in(set: &[u8], letter: u8) -> bool {
    if set.windows(2).any(|it| it == b"[:") {
        return true;
    }
    let is_left_out = set.starts_with(b"!") || set.starts_with(b"^");
    let mut rest = set.get(usize::from(is_left_out)..).unwrap_or_default();
    let mut is_listed = false;
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        is_listed |= match behind {
            [b'-', last, after @ ..] => {
                rest = after;
                (*first..=*last).contains(&letter)
            }
            _ => *first == letter,
        };
    }
    is_listed != is_left_out
}

/// Whether a step could stand for a name. Of its `*` only the last one met is tried again.
pub(super) fn could_be_named(step: &str, name: &str) -> bool {
    let (mut pattern, mut rest) = (step.as_bytes(), name.as_bytes());
    let mut again: Option<(&[u8], &[u8])> = None;
    loop {
        let (sign, behind) = match Sign::first_of(pattern) {
            Some((Sign::Any, behind)) => {
                (pattern, again) = (behind, Some((behind, rest)));
                continue;
            }
            Some((sign, behind)) => (Some(sign), behind),
            None => (None, pattern),
        };
        match (sign, rest.split_first()) {
            (None, None) => return true,
            (Some(sign), Some((letter, after))) if sign.takes(*letter) => {
                (pattern, rest) = (behind, after);
            }
            _ => match again.and_then(|(behind, from)| Some((behind, from.get(1..)?))) {
                Some((behind, from)) => {
                    (pattern, rest, again) = (behind, from, Some((behind, from)));
                }
                None => return false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_the_names_that_a_shell_puts_in_its_place() {
        for (step, name) in [
            (".e[mn]*", ".env"),
            ("*.[ch]", "a.c"),
            ("[!a-y]*", "zoo"),
            ("[^a-y]*", "zoo"),
            ("[]x]y", "]y"),
            ("[!]x]y", "ay"),
            ("[[:alpha:]]b", "ab"),
            ("[a-]b", "-b"),
            ("a[b", "a[b"),
            ("*a*b", "xaxbxb"),
            ("*", ""),
        ] {
            assert!(could_be_named(step, name), "{step} {name}");
        }
        for (step, name) in [
            ("*.[ch]", "a.rs"),
            ("[!a-y]*", "yes"),
            ("[]x]y", "ay"),
            ("?", ""),
            ("*a*b", "xaxbxc"),
            ("a", "ab"),
        ] {
            assert!(!could_be_named(step, name), "{step} {name}");
        }
    }

    #[test]
    fn letters_in_brackets_are_one() {
        for (step, count) in [(".e*", 2), ("*[^cmd]", 0), ("[ab]c", 2), ("?*", 0), ("a[b", 3)] {
            assert_eq!(letters(step), count, "{step}");
        }
    }
}
