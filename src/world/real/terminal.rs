//! The controlling terminal of this process: one question with one answer.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};

use super::system::TERMINAL;
use crate::Confirmation;

/// Maximum bytes of an answer.
const ANSWER_MAX: u64 = 256;

/// Asks the user for a word.
pub(super) fn confirm(question: &str, word: &str) -> Confirmation {
    let (typed, shown) = TERMINAL;
    let input = OpenOptions::new().read(true).open(typed);
    let output = OpenOptions::new().write(true).open(shown);
    let (Ok(input), Ok(mut output)) = (input, output) else { return Confirmation::NoTerminal };
    if output.write_all(question.as_bytes()).and_then(|()| output.flush()).is_err() {
        return Confirmation::NoTerminal;
    }
    let mut answer = Vec::new();
    match BufReader::new(input.take(ANSWER_MAX)).read_until(b'\n', &mut answer) {
        Err(_) => Confirmation::NoTerminal,
        Ok(_) if answer.trim_ascii() == word.as_bytes() => Confirmation::Yes,
        Ok(_) => Confirmation::No,
    }
}
