//! The names of code in other languages, and what they are set to.
//!
//! Contains: [`CodeNames`]: assignments, loops, `with`, parameters of functions and of blocks, and what functions
//! return.
//! Does not contain: the values of expressions (`code_paths`), which assignments count at a use (`code_scopes`).

use std::collections::BTreeMap;
use std::ops::Range;

use super::code_scopes::CodeScopes;
use super::expression_tokens::{CodeLanguage, CodeTokenKind, ExpressionTokens};

/// Tokens of one expression that are read. What is behind them is unknown.
const EXPRESSION_MAX: usize = 400;
/// Keywords that end the list of a loop.
const LOOP_ENDS: [&str; 6] = ["if", "for", "do", "async", "then", "unless"];
/// Words in front of an object whose method is called.
const BEFORE_OBJECT: [&str; 18] = [
    "in", "of", "return", "if", "elif", "else", "and", "or", "not", "yield", "await", "while",
    "with", "for", "unless", "lambda", "new", "do",
];
/// The names of the object to which a method belongs.
const OWN: [&str; 3] = ["self", "this", "cls"];

/// What the code sets a name to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NameSource {
    /// An expression.
    Value(Range<usize>),
    /// An item of a list.
    Item(Range<usize>),
    /// Its own value, and an expression behind it: `a += b`.
    Extended(Range<usize>),
    /// Something unknown.
    Unknown,
}

/// A function that code defines.
#[derive(Debug, Clone, Default)]
pub(super) struct CodeFunction<'c> {
    parameters: Vec<&'c str>,
    /// What it returns.
    pub(super) returns: Vec<Range<usize>>,
    /// Where its definition names it.
    at: usize,
}

/// The names of a piece of code.
#[derive(Debug, Default)]
pub(super) struct CodeNames<'c> {
    /// What names are set to, each with the index of the token that sets it.
    sources: BTreeMap<&'c str, Vec<(usize, NameSource)>>,
    scopes: CodeScopes,
    /// The token that is read.
    at: usize,
    functions: BTreeMap<&'c str, CodeFunction<'c>>,
    /// The function that was defined last.
    last: Option<&'c str>,
}

/// Returns a name without the signs of Perl, PHP, and Ruby.
pub(super) fn plain_name(name: &str) -> &str {
    name.trim_start_matches(['$', '@', '%'])
}

impl<'c> CodeNames<'c> {
    /// Finds the names of code.
    pub(super) fn of(tokens: &ExpressionTokens<'c>) -> Self {
        let mut names = Self { scopes: CodeScopes::of(tokens), ..Self::default() };
        let mut open: Vec<usize> = Vec::new();
        for at in 0..tokens.tokens.len() {
            names.at = at;
            match tokens.kind(at) {
                Some(CodeTokenKind::Name) => names.add_keyword(tokens, at),
                Some(CodeTokenKind::Sign) => {
                    let text = tokens.text(at);
                    match text {
                        "(" | "[" | "{" => open.push(at),
                        ")" | "]" | "}" => {
                            open.pop();
                        }
                        _ => names.add_sign(tokens, at, !open.is_empty()),
                    }
                }
                Some(
                    CodeTokenKind::Number
                    | CodeTokenKind::Text(_)
                    | CodeTokenKind::Other
                    | CodeTokenKind::Line,
                )
                | None => {}
            }
        }
        names.add_arguments(tokens);
        names
    }

    /// Returns what a name is set to where a token uses it. `None` if the code does not set it.
    pub(super) fn sources(&self, name: &str, at: usize) -> Option<Vec<(usize, NameSource)>> {
        let all = self.sources.get(plain_name(name))?;
        // An object has its members in all of its methods.
        if name.contains('.') {
            return Some(all.clone());
        }
        let places: Vec<usize> = all.iter().map(|it| it.0).collect();
        let reaching = self.scopes.reaching(&places, at);
        let found = all.iter().filter(|it| reaching.contains(&it.0)).cloned().collect::<Vec<_>>();
        Some(if found.is_empty() { all.clone() } else { found })
    }

    /// Returns a function of the code.
    pub(super) fn function(&self, name: &str) -> Option<&CodeFunction<'c>> {
        self.functions.get(name)
    }

    fn bind(&mut self, name: &'c str, source: NameSource) {
        let own = self.sources.entry(plain_name(name)).or_default();
        let source = (self.at, source);
        if !own.contains(&source) && own.len() < EXPRESSION_MAX {
            own.push(source);
        }
    }

    /// Binds a name to an expression, or to something unknown if the expression is too long.
    fn bind_value(
        &mut self,
        name: &'c str,
        value: Option<Range<usize>>,
        make: fn(Range<usize>) -> NameSource,
    ) {
        self.bind(name, value.map_or(NameSource::Unknown, make));
    }

    fn add_keyword(&mut self, tokens: &ExpressionTokens<'c>, at: usize) {
        let is_python = tokens.language == CodeLanguage::Python;
        match tokens.text(at) {
            "with" if is_python => self.add_with(tokens, at + 1),
            "for" | "foreach" => self.add_loop(tokens, at),
            "def" | "function" | "sub" => self.add_function(tokens, at),
            "return" => {
                let value = expression_end(tokens, at + 1, &[";"]).map(|end| at + 1..end);
                let own = self.last.and_then(|it| self.functions.get_mut(it));
                own.into_iter().for_each(|it| it.returns.extend(value.clone()));
            }
            _ => {}
        }
    }

    /// Adds `with open(a) as b, c as d:`.
    fn add_with(&mut self, tokens: &ExpressionTokens<'c>, from: usize) {
        let (mut start, mut at) = (from, from);
        while at < tokens.tokens.len().min(from + EXPRESSION_MAX) {
            if tokens.is_sign(at, ":") || tokens.kind(at) == Some(CodeTokenKind::Line) {
                return;
            }
            if tokens.is_name(at, "as") {
                self.bind(tokens.text(at + 1), NameSource::Value(start..at));
            }
            if tokens.is_sign(at, ",") {
                start = at + 1;
            }
            at = tokens.behind(at);
        }
    }

    /// Adds the names of a loop.
    fn add_loop(&mut self, tokens: &ExpressionTokens<'c>, keyword: usize) {
        let from = keyword + 1 + usize::from(tokens.is_name(keyword + 1, "await"));
        let is_perl = tokens.language == CodeLanguage::Perl;
        let is_name = |at: usize| tokens.kind(at) == Some(CodeTokenKind::Name);
        if tokens.is_sign(from, "(")
            && !matches!(tokens.language, CodeLanguage::Python | CodeLanguage::Ruby)
        {
            let inside = tokens.inside(from);
            let list = inside.clone().take(EXPRESSION_MAX);
            let word = list
                .into_iter()
                .find(|at| ["of", "in", "as"].contains(&tokens.text(*at)) && is_name(*at));
            match word {
                Some(word) if tokens.is_name(word, "as") => {
                    let name = inside.end.saturating_sub(1);
                    self.bind(tokens.text(name), NameSource::Item(inside.start..word));
                }
                Some(word) => {
                    let names = (inside.start..word).filter(|at| is_name(*at));
                    names.for_each(|it| {
                        self.bind(tokens.text(it), NameSource::Item(word + 1..inside.end))
                    });
                }
                None if is_perl => self.bind("$_", NameSource::Item(inside)),
                None => {}
            }
            return;
        }
        if is_perl {
            let name = if tokens.is_name(from, "my") || tokens.is_name(from, "our") {
                from + 1
            } else {
                from
            };
            if is_name(name) && tokens.is_sign(name + 1, "(") && tokens.text(name).starts_with('$')
            {
                self.bind(tokens.text(name), NameSource::Item(tokens.inside(name + 1)));
            } else {
                // `unlink $_ for glob("x")`
                let list = expression_end(tokens, from, &[";"]).map(|end| from..end);
                self.bind_value("$_", list, NameSource::Item);
            }
            return;
        }
        let mut names = Vec::new();
        for at in from..tokens.tokens.len().min(from + EXPRESSION_MAX) {
            if tokens.is_name(at, "in") {
                let list = loop_end(tokens, at + 1).map(|end| at + 1..end);
                names
                    .into_iter()
                    .for_each(|it| self.bind_value(it, list.clone(), NameSource::Item));
                return;
            }
            match tokens.kind(at) {
                Some(CodeTokenKind::Name) => names.push(tokens.text(at)),
                Some(CodeTokenKind::Sign) if matches!(tokens.text(at), "," | "(" | ")") => {}
                Some(
                    CodeTokenKind::Sign
                    | CodeTokenKind::Number
                    | CodeTokenKind::Text(_)
                    | CodeTokenKind::Other
                    | CodeTokenKind::Line,
                )
                | None => return,
            }
        }
    }

    /// Adds the function whose definition begins at a keyword.
    fn add_function(&mut self, tokens: &ExpressionTokens<'c>, keyword: usize) {
        let is_named = tokens.kind(keyword + 1) == Some(CodeTokenKind::Name);
        let open = if is_named { keyword + 2 } else { keyword + 1 };
        let mut parameters = Vec::new();
        if tokens.is_sign(open, "(") {
            for part in tokens.split(&tokens.inside(open)) {
                let name = part.clone().find(|it| tokens.kind(*it) == Some(CodeTokenKind::Name));
                let Some(name) = name else { continue };
                parameters.push(tokens.text(name));
                // `def f(a="b")`
                let default = part.clone().find(|it| tokens.is_sign(*it, "="));
                default.into_iter().for_each(|it| {
                    self.bind(tokens.text(name), NameSource::Value(it + 1..part.end))
                });
            }
        }
        if is_named {
            let name = tokens.text(keyword + 1);
            self.functions
                .insert(name, CodeFunction { parameters, returns: Vec::new(), at: keyword + 1 });
            self.last = Some(name);
        } else {
            self.add_callback(tokens, keyword, &parameters);
        }
    }

    fn add_sign(&mut self, tokens: &ExpressionTokens<'c>, at: usize, is_inside: bool) {
        let is_python = tokens.language == CodeLanguage::Python;
        let value = || expression_end(tokens, at + 1, &[";", ","]).map(|end| at + 1..end);
        let before = at.checked_sub(1);
        let name = before.filter(|it| tokens.kind(*it) == Some(CodeTokenKind::Name));
        match tokens.text(at) {
            "=" if !(is_python && is_inside) => self.add_assignment(tokens, at),
            ":=" => name
                .into_iter()
                .for_each(|it| self.bind_value(tokens.text(it), value(), NameSource::Value)),
            "+=" | ".=" | "/=" => {
                name.into_iter()
                    .for_each(|it| self.bind_value(tokens.text(it), value(), NameSource::Extended));
            }
            "||=" | "&&=" | "??=" | "//=" => {
                name.into_iter()
                    .for_each(|it| self.bind_value(tokens.text(it), value(), NameSource::Value));
            }
            "=>" if tokens.language == CodeLanguage::JavaScript => self.add_arrow(tokens, at),
            "|" if tokens.language == CodeLanguage::Ruby => self.add_block(tokens, at),
            _ => {}
        }
    }

    /// Adds `a = value`, `a, b = values`, `a: Path = value`, `const [a, b] = values`.
    fn add_assignment(&mut self, tokens: &ExpressionTokens<'c>, at: usize) {
        let Some(left) = at.checked_sub(1) else { return };
        let all = expression_end(tokens, at + 1, &[";"]).map(|end| at + 1..end);
        let first = expression_end(tokens, at + 1, &[";", ","]).map(|end| at + 1..end);
        if tokens.kind(left) != Some(CodeTokenKind::Name) {
            let Some(open) =
                tokens.tokens.get(left).and_then(|it| it.partner).filter(|it| *it < left)
            else {
                return;
            };
            let is_list = tokens.is_sign(open, "(") || tokens.is_sign(open, "[");
            let before = open.checked_sub(1);
            // `a[b] = c` sets a part of a value.
            let is_part = before.is_some_and(|it| {
                tokens.kind(it) == Some(CodeTokenKind::Name)
                    && !["const", "let", "var", "my", "our"].contains(&tokens.text(it))
            });
            let inside = (open + 1..left).take(EXPRESSION_MAX);
            let names =
                inside.filter(|it| !is_part && tokens.kind(*it) == Some(CodeTokenKind::Name));
            for name in names {
                let list = first.clone().filter(|_| is_list);
                self.bind_value(tokens.text(name), list, NameSource::Item);
            }
            return;
        }
        let mut names = vec![left];
        while let Some(comma) =
            names.last().and_then(|it| it.checked_sub(1)).filter(|it| tokens.is_sign(*it, ","))
            && let Some(name) =
                comma.checked_sub(1).filter(|it| tokens.kind(*it) == Some(CodeTokenKind::Name))
            && tokens.language != CodeLanguage::JavaScript
            && names.len() < EXPRESSION_MAX
        {
            names.push(name);
        }
        names.reverse();
        if names.len() > 1 {
            let values = all.as_ref().map(|it| tokens.split(it)).unwrap_or_default();
            for (index, name) in names.iter().enumerate() {
                let own = values.get(index).filter(|_| values.len() == names.len());
                let source = own.map_or_else(
                    || all.clone().map_or(NameSource::Unknown, NameSource::Item),
                    |it| NameSource::Value(it.clone()),
                );
                self.bind(tokens.text(*name), source);
            }
            return;
        }
        let before = |at: usize, back: usize| at.checked_sub(back);
        let is_member = before(left, 1).is_some_and(|it| tokens.is_member_sign(it));
        let is_own = is_member && before(left, 2).is_some_and(|it| OWN.contains(&tokens.text(it)));
        if is_own {
            let member = tokens.source(&(left.saturating_sub(2)..left + 1));
            self.bind_value(member, first.clone(), NameSource::Value);
        } else if !is_member {
            self.bind_value(tokens.text(left), first.clone(), NameSource::Value);
        }
        // `a: Path = value`, `a: pathlib.Path = value`
        let mut colon = left;
        while before(colon, 1).is_some_and(|it| tokens.is_member_sign(it)) && left - colon < 8 {
            colon = colon.saturating_sub(2);
        }
        if let Some(name) =
            before(colon, 2).filter(|_| before(colon, 1).is_some_and(|it| tokens.is_sign(it, ":")))
            && tokens.kind(name) == Some(CodeTokenKind::Name)
        {
            self.bind_value(tokens.text(name), first, NameSource::Value);
        }
    }

    /// Adds the function that an arrow makes, or the parameter that a method gives to it.
    fn add_arrow(&mut self, tokens: &ExpressionTokens<'c>, at: usize) {
        let Some(last) = at.checked_sub(1) else { return };
        let partner =
            tokens.tokens.get(last).and_then(|it| it.partner).filter(|_| tokens.is_sign(last, ")"));
        let start = partner.unwrap_or(last);
        let names = (start..at)
            .take(EXPRESSION_MAX)
            .filter(|it| tokens.kind(*it) == Some(CodeTokenKind::Name));
        let parameters: Vec<&'c str> = names.map(|it| tokens.text(it)).collect();
        let start = match start.checked_sub(1).filter(|it| tokens.is_name(*it, "async")) {
            Some(keyword) => keyword,
            None => start,
        };
        let name = start.checked_sub(2).filter(|_| tokens.is_sign(start.saturating_sub(1), "="));
        match name.filter(|it| tokens.kind(*it) == Some(CodeTokenKind::Name)) {
            Some(name) => {
                let body = expression_end(tokens, at + 1, &[";", ","]).map(|end| at + 1..end);
                let returns = body.filter(|_| !tokens.is_sign(at + 1, "{")).into_iter().collect();
                self.functions
                    .insert(tokens.text(name), CodeFunction { parameters, returns, at: name });
                self.last = Some(tokens.text(name));
            }
            None => self.add_callback(tokens, start, &parameters),
        }
    }

    /// Adds the parameters of a function that a method receives: `a.forEach(b => …)`. It begins at an index.
    fn add_callback(
        &mut self,
        tokens: &ExpressionTokens<'c>,
        start: usize,
        parameters: &[&'c str],
    ) {
        let open = start.checked_sub(1).filter(|it| tokens.is_sign(*it, "("));
        let dot = open.and_then(|it| it.checked_sub(2)).filter(|it| tokens.is_member_sign(*it));
        let object = dot.zip(open).map(|(dot, open)| object_start(tokens, dot)..open);
        let mut parameters = parameters.iter();
        if let (Some(name), Some(object)) =
            (parameters.next(), object.filter(|it| it.len() <= EXPRESSION_MAX))
        {
            self.bind(name, NameSource::Item(object));
        }
        parameters.for_each(|it| self.bind(it, NameSource::Unknown));
    }

    /// Adds the parameters of a block of Ruby: `a.each { |b| … }`, `a.each do |b|`.
    fn add_block(&mut self, tokens: &ExpressionTokens<'c>, at: usize) {
        let before = at.checked_sub(1);
        let Some(open) = before.filter(|it| tokens.is_sign(*it, "{") || tokens.is_name(*it, "do"))
        else {
            return;
        };
        // The last name or bracket of the call.
        let Some(last) = open.checked_sub(1) else { return };
        let start = object_start(tokens, last + 1);
        let value = start..open;
        let names =
            (at + 1..tokens.tokens.len()).take(8).take_while(|it| !tokens.is_sign(*it, "|"));
        for name in names.filter(|it| tokens.kind(*it) == Some(CodeTokenKind::Name)) {
            let value = Some(value.clone()).filter(|it| it.len() <= EXPRESSION_MAX);
            self.bind_value(tokens.text(name), value, NameSource::Item);
        }
    }

    /// Binds the parameters of functions to the arguments of their calls.
    fn add_arguments(&mut self, tokens: &ExpressionTokens<'c>) {
        let functions = std::mem::take(&mut self.functions);
        // A parameter is set where its function begins.
        for at in 0..tokens.tokens.len() {
            let Some(function) = functions.get(tokens.text(at)) else { continue };
            self.at = function.at + 1;
            if at == function.at || !tokens.is_sign(at + 1, "(") {
                continue;
            }
            let inside = tokens.inside(at + 1);
            if inside.len() > EXPRESSION_MAX {
                function.parameters.iter().for_each(|it| self.bind(it, NameSource::Unknown));
                continue;
            }
            let skipped = function.parameters.first().is_some_and(|it| OWN.contains(it));
            let positional = function.parameters.iter().skip(usize::from(skipped));
            for (part, name) in tokens
                .split(&inside)
                .into_iter()
                .zip(positional.map(Some).chain(std::iter::repeat(None)))
            {
                let keyword = tokens.is_sign(part.start + 1, "=").then(|| tokens.text(part.start));
                match (keyword, name) {
                    (Some(name), _) => self.bind(name, NameSource::Value(part.start + 2..part.end)),
                    (None, Some(name)) => self.bind(name, NameSource::Value(part)),
                    (None, None) => {}
                }
            }
        }
        self.functions = functions;
    }
}

/// Returns where the expression that begins at an index ends: at the end of its line, at a bracket that closes around it, or
/// at one of some signs. `None` if it is too long.
fn expression_end(tokens: &ExpressionTokens<'_>, from: usize, ends: &[&str]) -> Option<usize> {
    let mut at = from;
    while at - from <= EXPRESSION_MAX {
        let is_end = match tokens.kind(at) {
            None | Some(CodeTokenKind::Line) => true,
            Some(CodeTokenKind::Sign) => {
                matches!(tokens.text(at), ")" | "]" | "}") || ends.contains(&tokens.text(at))
            }
            Some(
                CodeTokenKind::Name
                | CodeTokenKind::Number
                | CodeTokenKind::Text(_)
                | CodeTokenKind::Other,
            ) => false,
        };
        if is_end {
            return Some(at.min(tokens.tokens.len()));
        }
        at = tokens.behind(at);
    }
    None
}

/// Returns where the list of a loop ends.
fn loop_end(tokens: &ExpressionTokens<'_>, from: usize) -> Option<usize> {
    let end = expression_end(tokens, from, &[";", ":", "{"])?;
    let mut at = from;
    while at < end
        && !(tokens.kind(at) == Some(CodeTokenKind::Name) && LOOP_ENDS.contains(&tokens.text(at)))
    {
        at = tokens.behind(at);
    }
    Some(at.min(end))
}

/// Returns where the object begins whose member is behind the sign at an index: `a(b).c` of `a(b).c.d`.
pub(super) fn object_start(tokens: &ExpressionTokens<'_>, dot: usize) -> usize {
    let mut start = dot;
    for _ in 0..EXPRESSION_MAX {
        let Some(last) = start.checked_sub(1) else { return start };
        let is_name = tokens.kind(last) == Some(CodeTokenKind::Name);
        if is_name && BEFORE_OBJECT.contains(&tokens.text(last)) {
            return start;
        }
        let partner = tokens.tokens.get(last).and_then(|it| it.partner).filter(|it| *it < last);
        start = partner.filter(|_| !tokens.is_sign(last, "}")).unwrap_or(last);
        let is_text = matches!(tokens.kind(last), Some(CodeTokenKind::Text(_)));
        if !is_name && !is_text && start == last {
            return last + 1;
        }
        let before = start.checked_sub(1);
        let is_call = !is_name
            && !is_text
            && before.is_some_and(|it| {
                let is_object = tokens.kind(it) == Some(CodeTokenKind::Name)
                    && !BEFORE_OBJECT.contains(&tokens.text(it));
                is_object || tokens.is_sign(it, ")") || tokens.is_sign(it, "]")
            });
        match before {
            Some(_) if is_call => {}
            Some(sign) if tokens.is_member_sign(sign) => start = sign,
            _ => return start,
        }
    }
    start
}
