//! Which assignments of a name count where code uses it.
//!
//! Contains: [`CodeScopes`]: the functions, loops, and statements of Python, by the columns of their lines.
//! Does not contain: the assignments (`code_values`). In other languages, each assignment counts everywhere.

use super::expression_tokens::{CodeLanguage, CodeTokenKind, ExpressionTokens};

/// Assignments before a use that are compared with it. Others count, too.
const BEFORE_MAX: usize = 8;
/// Statements between an assignment and its use. If there are more, assignments before it count, too.
const BETWEEN_MAX: usize = 200;
/// Words by which a function changes names of the code around it.
const OUTER_WORDS: [&str; 2] = ["global", "nonlocal"];

/// A statement.
#[derive(Debug, Clone)]
struct CodeStatement {
    start: usize,
    column: usize,
    /// Whether it begins a line. Others may depend on a condition: `if a: b = 1; c = 2`.
    begins_line: bool,
}

/// The parts of a piece of code in which names count.
#[derive(Debug, Default)]
pub(super) struct CodeScopes {
    statements: Vec<CodeStatement>,
    /// For each token, the first token of the function around it.
    functions: Vec<Option<usize>>,
    /// For each token, the first token of the outermost loop around it.
    loops: Vec<Option<usize>>,
}

impl CodeScopes {
    /// Finds the functions and loops of code.
    pub(super) fn of(tokens: &ExpressionTokens<'_>) -> Self {
        let count = tokens.tokens.len();
        let mut scopes = Self::default();
        let changes_outer = (0..count).any(|it| {
            tokens.kind(it) == Some(CodeTokenKind::Name) && OUTER_WORDS.contains(&tokens.text(it))
        });
        if tokens.language != CodeLanguage::Python || changes_outer {
            return scopes;
        }
        // The functions and loops that are open, with their columns.
        let mut open: Vec<(usize, usize, bool)> = Vec::new();
        let (mut begins_line, mut begins, mut column) = (true, true, 0);
        for at in 0..count {
            let is_line = tokens.kind(at) == Some(CodeTokenKind::Line);
            if begins && !is_line {
                if begins_line {
                    column = column_of(tokens, at);
                    while open.last().is_some_and(|it| it.1 >= column) {
                        open.pop();
                    }
                    let word = if tokens.is_name(at, "async") { at + 1 } else { at };
                    let is_function = tokens.is_name(word, "def");
                    let is_loop = tokens.is_name(word, "for") || tokens.is_name(word, "while");
                    open.extend((is_function || is_loop).then_some((at, column, is_function)));
                }
                scopes.statements.push(CodeStatement { start: at, column, begins_line });
            }
            scopes.functions.push(open.iter().rfind(|it| it.2).map(|it| it.0));
            scopes.loops.push(open.iter().find(|it| !it.2).map(|it| it.0));
            begins_line = is_line;
            begins = is_line || tokens.is_sign(at, ";");
        }
        scopes
    }

    /// Returns the function around a token.
    fn function_at(&self, at: usize) -> Option<usize> {
        self.functions.get(at).copied().flatten()
    }

    /// Returns whether a loop contains both tokens.
    fn is_repeated(&self, one: usize, other: usize) -> bool {
        let of = |at: usize| self.loops.get(at).copied().flatten();
        of(one).is_some_and(|it| of(other) == Some(it))
    }

    /// Returns the index of the statement of a token.
    fn statement_of(&self, at: usize) -> usize {
        self.statements.partition_point(|it| it.start <= at).saturating_sub(1)
    }

    /// Returns those of the tokens that set a name whose value it can have at a token.
    pub(super) fn reaching(&self, places: &[usize], at: usize) -> Vec<usize> {
        if self.functions.is_empty() {
            return places.to_vec();
        }
        // The functions around the token, from the inside, and then the module.
        let mut scope = self.function_at(at);
        loop {
            let own = places.iter().copied().filter(|it| self.function_at(*it) == scope);
            let own: Vec<usize> = own.collect();
            if !own.is_empty() {
                return if self.function_at(at) == scope { self.in_order(&own, at) } else { own };
            }
            let Some(start) = scope else { return places.to_vec() };
            scope =
                start.checked_sub(1).and_then(|it| self.function_at(it)).filter(|it| *it < start);
        }
    }

    /// Returns the assignments of one function that can be the last ones before a token.
    fn in_order(&self, places: &[usize], at: usize) -> Vec<usize> {
        let before = places.iter().rev().copied().filter(|it| *it < at).take(BEFORE_MAX);
        let last = before.filter(|it| self.is_before(*it, at)).max();
        let is_after = |place: usize| place >= at || self.is_own(place, at);
        let counts = |place: &usize| {
            let is_later = is_after(*place) && !self.is_repeated(*place, at);
            last.is_none_or(|it| *place >= it) && !is_later
        };
        places.iter().copied().filter(counts).collect()
    }

    /// Returns whether a token is in the value of an assignment.
    fn is_own(&self, place: usize, at: usize) -> bool {
        let statement = self.statement_of(place);
        let start = self.statements.get(statement).map(|it| it.start);
        statement == self.statement_of(at) && start.is_some_and(|it| place == it + 1)
    }

    /// Returns whether an assignment always runs before a token: it begins its line, and its block contains the token.
    fn is_before(&self, place: usize, at: usize) -> bool {
        let (first, last) = (self.statement_of(place), self.statement_of(at));
        let Some(own) = self.statements.get(first) else { return false };
        let between = self.statements.get(first + 1..=last).unwrap_or_default();
        let is_assignment = own.begins_line && place == own.start + 1;
        first < last
            && is_assignment
            && between.len() <= BETWEEN_MAX
            && between.iter().all(|it| it.column >= own.column)
    }
}

/// Returns the column of a token.
fn column_of(tokens: &ExpressionTokens<'_>, at: usize) -> usize {
    let offset = tokens.tokens.get(at).map_or(0, |it| it.at);
    let before = tokens.code.get(..offset).unwrap_or_default();
    offset - before.rfind('\n').map_or(0, |it| it + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns which of the assignments of `d` count where `f(d)` is, counted from 0.
    fn counted(code: &str) -> Vec<usize> {
        let tokens = ExpressionTokens::of(CodeLanguage::Python, code);
        let sets = |it: &usize| tokens.is_name(it - 1, "d") && tokens.is_sign(*it, "=");
        let places: Vec<usize> = (1..tokens.tokens.len()).filter(sets).collect();
        let at = tokens.index_at(code.find("f(d)").unwrap());
        let found = CodeScopes::of(&tokens).reaching(&places, at);
        let index = |place: &usize| found.contains(place);
        places.iter().enumerate().filter(|it| index(it.1)).map(|it| it.0).collect()
    }

    #[test]
    fn the_last_assignment_counts() {
        for (code, expected) in [
            ("d = 1\nd = 2\nf(d)", vec![1]),
            ("d = 1\nf(d)\nd = 2", vec![0]),
            ("d = 1\nif x:\n    d = 2\nf(d)", vec![0, 1]),
            ("d = 1\nif x:\n    d = 2\n    f(d)", vec![1]),
            ("d = 1\nif x: d = 2\nf(d)", vec![0, 1]),
            ("d = 1\ntry:\n    d = 2\nexcept E:\n    f(d)", vec![0, 1]),
            ("d = 1\nwhile x:\n    f(d)\n    d = 2", vec![0, 1]),
            ("d = 1\nd = f(d)", vec![0]),
            ("d = 1\ndef g():\n    d = 2\n    f(d)", vec![1]),
            ("d = 1\ndef g():\n    d = 2\nf(d)", vec![0]),
            ("def g():\n    f(d)\nd = 1\nd = 2", vec![0, 1]),
            ("d = 1\ndef g():\n    global d\n    d = 2\nf(d)", vec![0, 1]),
        ] {
            assert_eq!(counted(code), expected, "{code}");
        }
    }
}
