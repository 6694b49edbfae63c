//! Literals that every match of a pattern contains, extracted from its source.
//!
//! Contains: a reader for plain regex syntax. It rejects flags, named groups and nested classes.
//! Does not contain: the search for the literals (`lazy`).
//!
//! Why not `regex_syntax::hir::literal::Extractor`: it returns only prefixes and suffixes. Of the 338 regexes in
//! `policies/` (November 2026), 19 have a more selective literal in the middle. Parsing and extraction also took
//! 18 µs for each pattern instead of 1.2 µs, and every hook call repeats the extraction for the patterns that it
//! uses.

/// Literals that a matching text must contain.
#[derive(Debug, Default)]
pub(super) struct RequiredLiterals {
    /// A matching text contains at least one of them. Empty if no literal is known.
    pub(super) any_of: Vec<String>,
    /// Further sets. A matching text contains at least one literal of each set.
    pub(super) also: Vec<Vec<String>>,
    /// Beginning of every matching line. Empty if it is unknown.
    pub(super) line_start: String,
    /// Whether the pattern ignores case.
    pub(super) ignore_case: bool,
}

/// Extracts the required literals of a pattern. Unsupported syntax gives no literals, which costs
/// time but never loses a match.
pub(super) fn required_literals(source: &str) -> RequiredLiterals {
    let ignoring = ["(?i)", "(?im)"].iter().find_map(|flags| source.strip_prefix(flags));
    let (body, ignore_case) = ignoring.map_or((source, false), |body| (body, true));
    let mut reader =
        LiteralReader { rest: body.chars().peekable(), depth: 0, branches: 0, sets: Vec::new() };
    // A pattern that was not read to its end has no known literals.
    let Some(any_of) = reader.alternation().filter(|_| reader.rest.next().is_none()) else {
        return RequiredLiterals { ignore_case, ..RequiredLiterals::default() };
    };
    let foldable = |set: &[String]| !ignore_case || set.iter().all(|literal| literal.is_ascii());
    let any_of = if foldable(&any_of) { any_of } else { Vec::new() };
    // The literals of one branch are not required by the other branches.
    let mut also = if reader.branches == 1 { reader.sets } else { Vec::new() };
    also.retain(|set| *set != any_of && foldable(set));
    also.truncate(SETS_MAX);
    let line_start = if reader.branches == 1 && !any_of.is_empty() {
        leading_literal(body)
    } else {
        String::new()
    };
    RequiredLiterals { any_of, also, line_start, ignore_case }
}

/// Returns the literal with which every match begins, if the pattern has no alternatives and begins
/// at the start of a line.
fn leading_literal(pattern: &str) -> String {
    let mut literal = String::new();
    let mut rest = pattern.strip_prefix('^').unwrap_or_default().chars();
    while let Some(c) = rest.next() {
        match c {
            '*' | '?' | '{' => {
                literal.pop(); // may occur zero times
                break;
            }
            '\\' => match rest.next() {
                Some(c) if c.is_ascii_punctuation() => literal.push(c),
                Some(_) | None => break,
            },
            '.' | '^' | '$' | '|' | '(' | ')' | '[' | '+' => break,
            c => literal.push(c),
        }
    }
    literal
}

struct LiteralReader<'s> {
    rest: std::iter::Peekable<std::str::Chars<'s>>,
    depth: usize,
    /// Number of branches of the whole pattern.
    branches: usize,
    /// Sets of literals that the last branch requires.
    sets: Vec<Vec<String>>,
}

/// Maximum number of sets in [`RequiredLiterals::also`].
const SETS_MAX: usize = 3;

impl LiteralReader<'_> {
    /// Returns the literals of all branches. `None` if the syntax is not supported; empty if a
    /// branch requires no literal.
    fn alternation(&mut self) -> Option<Vec<String>> {
        let mut all = self.branch()?;
        let mut needless = all.is_empty();
        while self.rest.next_if_eq(&'|').is_some() {
            let branch = self.branch()?;
            needless |= branch.is_empty();
            all.extend(branch);
        }
        Some(if needless { Vec::new() } else { all })
    }

    /// Returns the most selective literals of one branch.
    fn branch(&mut self) -> Option<Vec<String>> {
        let mut best: Vec<String> = Vec::new();
        let mut run = String::new();
        self.branches += usize::from(self.depth == 0);
        while let Some(c) = self.rest.next_if(|c| !matches!(c, '|' | ')')) {
            let atom = self.atom(c)?;
            let repeated = self.repetition()?;
            match (atom, repeated) {
                (Atom::Literal(c), Repetition::Once) => run.push(c),
                (Atom::Literal(c), Repetition::AtLeastOnce) => {
                    run.push(c);
                    keep_better(&mut best, vec![std::mem::take(&mut run)]);
                }
                (Atom::Other(found), Repetition::Once | Repetition::AtLeastOnce) => {
                    keep_better(&mut best, vec![std::mem::take(&mut run)]);
                    if self.depth == 0 && found.iter().any(|literal| literal.len() > 1) {
                        self.sets.push(found.clone());
                    }
                    keep_better(&mut best, found);
                }
                (Atom::Literal(_) | Atom::Other(_), Repetition::Perhaps) => {
                    keep_better(&mut best, vec![std::mem::take(&mut run)]);
                }
            }
        }
        keep_better(&mut best, vec![run]);
        Some(best)
    }

    fn atom(&mut self, first: char) -> Option<Atom> {
        match first {
            '(' => self.group().map(Atom::Other),
            '[' => self.class().map(|()| Atom::Other(Vec::new())),
            '.' | '^' | '$' => Some(Atom::Other(Vec::new())),
            '*' | '+' | '?' | '{' => None, // repeats nothing: invalid
            '\\' => match self.rest.next()? {
                '<' | '>' => None,
                c if c.is_ascii_punctuation() => Some(Atom::Literal(c)),
                't' => Some(Atom::Literal('\t')),
                'n' => Some(Atom::Literal('\n')),
                'b' if self.rest.peek() == Some(&'{') => None,
                'b' | 'B' | 'd' | 'D' | 's' | 'S' | 'w' | 'W' | 'A' | 'z' => {
                    Some(Atom::Other(Vec::new()))
                }
                _ => None,
            },
            c => Some(Atom::Literal(c)),
        }
    }

    fn group(&mut self) -> Option<Vec<String>> {
        if self.depth >= 16 {
            return None;
        }
        if self.rest.next_if_eq(&'?').is_some() && self.rest.next()? != ':' {
            return None; // flags and named groups
        }
        self.depth += 1;
        let found = self.alternation()?;
        self.depth -= 1;
        self.rest.next_if_eq(&')')?;
        Some(found)
    }

    fn class(&mut self) -> Option<()> {
        self.rest.next_if_eq(&'^');
        self.rest.next_if_eq(&']');
        loop {
            match self.rest.next()? {
                ']' => return Some(()),
                '[' => return None, // nested and named classes
                '\\' => {
                    self.rest.next()?;
                }
                _ => {}
            }
        }
    }

    fn repetition(&mut self) -> Option<Repetition> {
        let repeated = match self.rest.peek() {
            Some('*' | '?') => Repetition::Perhaps,
            Some('+') => Repetition::AtLeastOnce,
            Some('{') => {
                while self.rest.next()? != '}' {}
                self.rest.next_if_eq(&'?');
                return Some(Repetition::Perhaps);
            }
            _ => return Some(Repetition::Once),
        };
        self.rest.next();
        self.rest.next_if_eq(&'?');
        Some(repeated)
    }
}

enum Atom {
    Literal(char),
    /// Anything else, with its required literals.
    Other(Vec<String>),
}

enum Repetition {
    Once,
    AtLeastOnce,
    Perhaps,
}

/// Keeps the set whose shortest literal is longer.
fn keep_better(best: &mut Vec<String>, found: Vec<String>) {
    let telling = |literals: &[String]| literals.iter().map(String::len).min().unwrap_or(0);
    if telling(&found) > telling(best) {
        *best = found;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literals(source: &str) -> Vec<String> {
        required_literals(source).any_of
    }

    #[test]
    fn literals_of_usual_patterns() {
        for (source, expected) in [
            (r"\bTODO\b", &["TODO"][..]),
            (r"\b(TODO|FIXME|XXX)\b", &["TODO", "FIXME", "XXX"]),
            (r"^\s*raise NotImplementedError", &["raise NotImplementedError"]),
            (r"^FAIL\t", &["FAIL\t"]),
            (r"test result: ok\. \d+ passed", &["test result: ok. "]),
            (r"(?i)not implemented", &["not implemented"]),
            (r"(?im)^done\b", &["done"]),
            (r"[0-9]+ failed", &[" failed"]),
            (r"ab?c", &["a"]),
            (r"a|", &[]),
            (r".*", &[]),
            (r"(abc)?d", &["d"]),
            (r"x{0,3}yz", &["yz"]),
            (r"(?P<n>abc)", &[]),
            (r"(?x) a b c", &[]),
            (r"\x41bc", &[]),
            (r"(foo|b(ar|az)) qux", &[" qux"]),
            ("unclosed(", &[]),
        ] {
            assert_eq!(literals(source), expected, "{source}");
        }
    }

    #[test]
    fn lines_are_recognized_by_their_beginning() {
        for (source, expected) in [
            (r"^FAILED \((failures|errors)=", "FAILED ("),
            (r"^ok\s+\S+", "ok"),
            (r"^ab?c", "a"),
            (r"^ab*c", "a"),
            (r"^a{0}b", ""),
            (r"^=+ x", "="),
            (r"^a|b", ""),
            (r"^(a|b)c", ""),
            (r"^\s*a", ""),
            (r"a", ""),
            (r"a|^b", ""),
        ] {
            assert_eq!(required_literals(source).line_start, expected, "{source}");
        }
    }
}
