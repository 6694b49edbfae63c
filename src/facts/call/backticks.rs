//! Substitutions in backticks: their texts are read as a shell reads them, for the grammar takes two that only
//! blanks part for one, and those within `${…}` for text.

use super::Input;
use super::scan::{Output, Scanner, Scope};
use super::units::{Kind, Unit, put};
use super::value::Text;

/// A piece of a text with backticks.
enum Piece {
    /// The commands between two backticks, their backslashes taken off.
    Code(String),
    /// What stands around them.
    Text(String),
}

impl Scanner<'_> {
    /// Commands in backticks whose value does not matter.
    pub(super) fn in_backticks(&mut self, raw: &str, scope: &Scope) {
        for piece in pieces(raw) {
            if let Piece::Code(code) = piece {
                self.in_process(&code, scope);
            }
        }
    }

    /// What commands in a process of their own put out.
    fn in_process(&mut self, code: &str, scope: &Scope) -> Output {
        let around = self.functions.enter_process_if(true);
        let output = self.text(code, &mut scope.clone(), &Input::default());
        self.functions.leave(around);
        output
    }

    /// What such substitutions come to in a word.
    pub(super) fn backticks(&mut self, raw: &str, scope: &Scope, kind: Kind, out: &mut Vec<Unit>) {
        for piece in pieces(raw) {
            let value = match piece {
                Piece::Code(code) => {
                    let output = self.in_process(&code, scope);
                    output.substituted(&format!("`{code}`"))
                }
                Piece::Text(text) => Text::data(text),
            };
            put(value, kind, out);
        }
    }
}

fn pieces(raw: &str) -> Vec<Piece> {
    let mut found = Vec::new();
    let (mut is_code, mut piece) = (false, String::new());
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        match c {
            '`' => {
                let done = std::mem::take(&mut piece);
                found.push(if is_code { Piece::Code(done) } else { Piece::Text(done) });
                is_code = !is_code;
            }
            '\\' => {
                let next = chars.next();
                let is_taken_off = is_code && matches!(next, Some('`' | '\\' | '$'));
                piece.extend(Some(c).filter(|_| !is_taken_off));
                piece.extend(next);
            }
            c => piece.push(c),
        }
    }
    found.push(Piece::Text(piece));
    found.retain(|it| !matches!(it, Piece::Text(text) if text.is_empty()));
    found
}
