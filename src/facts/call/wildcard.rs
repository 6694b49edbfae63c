//! One step of a pattern of the shell, `.e[mn]*`: how much it says, and which names it could stand for.

/// Longer names are none of any system (`NAME_MAX`); a longer step is taken to stand for any name.
const NAME_BYTES_MAX: usize = 255;

/// How much a step says: its letters, of which those in brackets are one.
pub(super) fn letters(step: &str) -> usize {
    if step.len() > NAME_BYTES_MAX {
        return step.len();
    }
    signs(step).filter(|it| matches!(it, Sign::Letter(_) | Sign::OneOf(_))).count()
}

/// Whether a step stands for most of what is in a folder: `*`, `.*`, `[a-z]*`, `[!.]*`.
pub(super) fn is_for_most(step: &str) -> bool {
    let of_letters = |set: &[u8]| {
        let mut ranges = set.windows(3).filter(|it| it.get(1) == Some(&b'-'));
        ranges.any(|it| it.first().is_some_and(u8::is_ascii_alphabetic))
    };
    let is_broad = |it| match it {
        Sign::Any | Sign::One => true,
        Sign::OneOf(set) => {
            is_left_out(set) || of_letters(set) || (has_class(set) && set != b"[:digit:]")
        }
        Sign::Letter(_) => false,
    };
    let step = step.strip_prefix('.').unwrap_or(step);
    step.contains('*') && step.len() <= NAME_BYTES_MAX && signs(step).all(is_broad)
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

/// The signs of a step, one after the other.
fn signs(step: &str) -> impl Iterator<Item = Sign<'_>> {
    let mut rest = step.as_bytes();
    std::iter::from_fn(move || {
        let (sign, behind) = Sign::first_of(rest)?;
        rest = behind;
        Some(sign)
    })
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
    memchr::memrchr(b']', behind)?; // Most have none, and end here.
    let mut at = usize::from(is_left_out(behind));
    at += usize::from(behind.get(at) == Some(&b']'));
    while *behind.get(at)? != b']' {
        let rest = behind.get(at..)?;
        // Of `[[:alpha:]]`, `[[=e=]]` and `[[.e.]]` the inner bracket ends none.
        let class = match rest {
            [b'[', sign @ (b':' | b'=' | b'.'), ..] => memchr::memmem::find(rest, &[*sign, b']']),
            _ => None,
        };
        at += class.map_or(1, |it| it + 2);
    }
    Some((behind.get(..at)?, behind.get(at + 1..)?))
}

/// Whether a set leaves out what it lists.
fn is_left_out(set: &[u8]) -> bool {
    set.starts_with(b"!") || set.starts_with(b"^")
}

/// Whether a set names a class: `[:alpha:]`, `[=e=]`.
fn has_class(set: &[u8]) -> bool {
    set.windows(2).any(|it| matches!(it, b"[:" | b"[=" | b"[."))
}

/// Whether a letter may be one of those in brackets. Of a class (`[:alpha:]`) any is taken to be, and of a set
/// that begins with `!`: whether that stood in quotes, where it is a letter like any other, is not known here.
fn is_in(set: &[u8], letter: u8) -> bool {
    if is_left_out(set) || has_class(set) {
        return true;
    }
    let mut rest = set;
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        let is_listed = match behind {
            [b'-', last, after @ ..] => {
                rest = after;
                (*first..=*last).contains(&letter)
            }
            _ => *first == letter,
        };
        if is_listed {
            return true;
        }
    }
    false
}

/// Whether a step could stand for a name. Of its `*` only the last one met is tried again.
pub(super) fn could_be_named(step: &str, name: &str) -> bool {
    if step.len() > NAME_BYTES_MAX {
        return true;
    }
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
            ("[[=a=]]b", "ab"),
            // In quotes, which are gone here, `!` is a letter: `["!"a]`.
            ("[!a]b", "ab"),
            ("[a-]b", "-b"),
            ("a[b", "a[b"),
            ("*a*b", "xaxbxb"),
            ("*", ""),
        ] {
            assert!(could_be_named(step, name), "{step} {name}");
        }
        for (step, name) in
            [("*.[ch]", "a.rs"), ("[]x]y", "ay"), ("?", ""), ("*a*b", "xaxbxc"), ("a", "ab")]
        {
            assert!(!could_be_named(step, name), "{step} {name}");
        }
    }

    #[test]
    fn letters_in_brackets_are_one() {
        for (step, count) in [(".e*", 2), ("*[^cmd]", 1), ("[ab]c", 2), ("?*", 0), ("a[b", 3)] {
            assert_eq!(letters(step), count, "{step}");
        }
    }

    #[test]
    fn most_of_a_folder_is_meant_by_no_letters() {
        for step in ["*", ".*", "[a-z]*", "[!.]*", "[^.]?*", "?*", ".[!.]*", "*?", "[[:alnum:]]*"] {
            assert!(is_for_most(step), "{step}");
        }
        for step in ["a*", "*.rs", "[ab]*", "?", "[a-z]", ".e*", "[0-9]*", "*[0-9]"] {
            assert!(!is_for_most(step), "{step}");
        }
    }

    #[test]
    fn many_brackets_take_no_longer_than_their_letters() {
        for part in ["[", "[[:", "[a", "[]", "[!"] {
            let step = part.repeat(2_000);
            assert!(letters(&step) > 0 && could_be_named(&step, ".env"), "{part}");
            let step = format!("{}]", part.repeat(80));
            assert!(!could_be_named(&step, &"x".repeat(200)), "{part}");
        }
    }
}
