//! What a client sends: whatever it is, the answer is one that every client can read. The first line
//! is the event as the command line names it, and the client where that is named too.

use super::headed;
use super::machine::{call, machine};

pub(super) fn run(data: &[u8]) {
    let Some((head, payload)) = headed(data) else { return };
    let words: Vec<&str> = head.split_ascii_whitespace().collect();
    let world = machine();
    match words.as_slice() {
        [hook] => call(&world, &["eval", "--hook", hook], payload),
        [hook, client] => call(&world, &["eval", "--hook", hook, "--harness", client], payload),
        _ => return,
    }
    .is_an_answer();
}
