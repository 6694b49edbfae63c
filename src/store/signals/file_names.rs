//! Names of signals as names of files: the first pending signal of a name is the plain file, as in
//! the seed; further ones end in their id. A branch's `/` is written `%2F`.

use std::fmt::Write as _;

/// A file in the directory of signals that is not a signal.
pub(super) const HISTORY: &str = "history.jsonl";
/// Where files go that cannot be used.
pub(super) const QUARANTINE: &str = "quarantine";

/// The plain name of the file of a signal.
pub(super) fn plain(signal: &str) -> String {
    let mut name = String::new();
    for byte in signal.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') {
            name.push(char::from(byte));
        } else {
            // Writing into a text does not fail.
            write!(name, "%{byte:02X}").ok();
        }
    }
    name
}

/// The name of the file of a further signal.
pub(super) fn further(signal: &str, id: &str) -> String {
    format!("{}.{id}", plain(signal))
}

/// Returns the name of a file's signal; `None` for a hidden file and for other files of policyd.
pub(super) fn signal(file: &str) -> Option<String> {
    if file.starts_with('.') || file.starts_with(HISTORY) || file == QUARANTINE {
        return None;
    }
    let plain = file.split('.').next().unwrap_or_default();
    let (mut bytes, mut rest) = (Vec::new(), plain.as_bytes());
    while let [first, tail @ ..] = rest {
        let code = tail.get(..2).and_then(|it| std::str::from_utf8(it).ok());
        let code = code.and_then(|it| u8::from_str_radix(it, 16).ok());
        match (first, code) {
            (b'%', Some(code)) => {
                bytes.push(code);
                rest = tail.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_from_files() {
        for name in ["STOP", "MERGE_REQUESTED_feat/login", "FEATURE_READY_a.b", "TESTS_PASSED_ä 1%"]
        {
            assert_eq!(signal(&plain(name)).as_deref(), Some(name));
            assert_eq!(signal(&further(name, "0123456789ab")).as_deref(), Some(name));
            assert!(!plain(name).contains(['/', '.']), "{name}");
        }
        assert_eq!(plain("MERGE_REQUESTED_feat/login"), "MERGE_REQUESTED_feat%2Flogin");
        assert_eq!(signal("HUMAN_INPUT.md").as_deref(), Some("HUMAN_INPUT"));
        assert_eq!(signal("A%zz").as_deref(), Some("A%zz"));
        for none in [".STOP.tmp", "history.jsonl", "history.jsonl.1", "quarantine"] {
            assert_eq!(signal(none), None, "{none}");
        }
    }
}
