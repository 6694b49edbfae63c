//! The words of an expression with their meaning, also of one that is unfinished: what an editor colors, explains,
//! completes, and renames. Reads token by token and keeps the type of what is left of the next one.
//! Does not contain: findings (`check`).

use std::ops::Range;

use super::lexer::{Token, TokenKind, after_blanks, token};
use super::table::{KnownNames, Member};
use super::types::{Domain, NameClass, Type};

/// A word of an expression.
#[derive(Debug, Clone)]
pub struct ExpressionWord {
    /// Its bytes; of a text, with the quotation marks.
    pub range: Range<usize>,
    /// What the word means.
    pub kind: WordSense,
}

/// Meaning of a word.
#[derive(Debug, Clone)]
pub enum WordSense {
    /// `if`, `else`, `true`, `false`, `in`.
    Keyword,
    /// `&&`, `==`, `+`.
    Operator,
    /// A number.
    Number,
    /// A text.
    Text,
    /// A text that is a regular expression.
    Regex,
    /// A text in brackets, such as the name of a breaker.
    Item,
    /// A global name, a field, or a method of the table of facts.
    Fact {
        /// The names that lead to it: `commands.last.outcome`.
        path: String,
        /// Row of the table.
        member: &'static Member,
    },
    /// The record that the expressions of a file read.
    Record,
    /// A field of that record.
    Field {
        /// Name of the field.
        name: String,
    },
    /// A name that the pack defines: a member such as `probes.pr`, or an argument.
    PackName {
        /// Kind of the name.
        class: NameClass,
        /// The name.
        name: String,
    },
    /// A text that is compared with a fact, or an argument of a fact.
    Value {
        /// The names that lead to the fact.
        fact: String,
        /// The text.
        text: String,
    },
    /// A word that nothing defines.
    Unknown,
}

impl ExpressionWord {
    /// Bytes of the word; of a text, without the quotation marks.
    #[must_use]
    pub fn inner(&self, text: &str) -> Range<usize> {
        let written = text.get(self.range.clone()).unwrap_or_default();
        let Some(quote) = written.chars().next().filter(|it| matches!(it, '"' | '`')) else {
            return self.range.clone();
        };
        let closed = written.len() > 1 && written.ends_with(quote);
        self.range.start + 1..self.range.end - usize::from(closed)
    }
}

/// What can be written at a place of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpectedWord {
    /// Nothing that policyd knows, such as an operator.
    Nothing,
    /// A member of a value of this type; of [`Type::Global`], a name that an expression begins with.
    Members(Type),
    /// A name that the pack defines.
    PackNames(NameClass),
    /// A value of a fact.
    Values {
        /// The names that lead to the fact.
        fact: String,
        /// The values, if they are few.
        values: Vec<String>,
    },
    /// The name of an item, such as a breaker.
    Items,
}

/// A place of an expression.
#[derive(Debug, Clone)]
pub struct ExpressionPlace {
    /// Bytes of the word at the place; empty between words. Of a text, without the quotation marks.
    pub word: Range<usize>,
    /// What can be written there.
    pub expected: ExpectedWord,
    /// The innermost call around the place, and the number of the argument there, from 0.
    pub call: Option<(&'static Member, usize)>,
}

/// Returns the words of an expression in their order.
#[must_use]
pub fn marks(text: &str, names: &dyn KnownNames) -> Vec<ExpressionWord> {
    let mut reader = WordReader::new(names);
    tokens(text).iter().for_each(|it| reader.read(it));
    reader.marks
}

/// Returns what can be written at a byte of an expression.
#[must_use]
pub fn place(text: &str, offset: usize, names: &dyn KnownNames) -> ExpressionPlace {
    let mut reader = WordReader::new(names);
    let mut word = offset..offset;
    let mut inside = false;
    for it in &tokens(text) {
        let is_text = matches!(it.kind, TokenKind::Text(_));
        let is_open = !is_closed(it.text);
        if is_text && it.range.start < offset && (offset < it.range.end || is_open) {
            let end = it.range.end - usize::from(!is_open);
            // What follows an open quotation mark is not a part of its text.
            let rest = text.get(offset..end).unwrap_or_default();
            let length = rest.find(|c: char| !is_in_name(c)).unwrap_or(rest.len());
            word = it.range.start + 1..if is_open { offset + length } else { end };
            inside = true;
            break;
        }
        if it.kind == TokenKind::Name && it.range.start <= offset && offset <= it.range.end {
            word = it.range.clone();
            break;
        }
        if it.range.end > offset {
            break;
        }
        reader.read(it);
    }
    let expected = if inside { reader.expected_text() } else { reader.expected_name() };
    ExpressionPlace { word, expected, call: reader.call() }
}

/// Whether a text token ends with its quotation mark.
fn is_closed(written: &str) -> bool {
    let quote = written.chars().next();
    written.len() > 1 && quote.is_some_and(|it| written.ends_with(it))
}

fn is_in_name(c: char) -> bool {
    c.is_alphanumeric() || "_-./*".contains(c)
}

/// The tokens of an expression that need not be one: an open text goes to the end, and what begins no token is left
/// out.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let (mut found, mut at) = (Vec::new(), 0);
    loop {
        at = after_blanks(text, at);
        let Some(rest) = text.get(at..).filter(|it| !it.is_empty()) else { return found };
        let open = |it: char| matches!(it, '"' | '`');
        match token(text, at, rest) {
            Some((kind, length)) => {
                let text = rest.get(..length).unwrap_or_default();
                found.push(Token { kind, text, range: at..at + length });
                at += length;
            }
            None if rest.starts_with(open) => {
                let length = rest.find('\n').unwrap_or(rest.len());
                let written = rest.get(..length).unwrap_or_default();
                let value = written.get(1..).unwrap_or_default().to_owned();
                let kind = TokenKind::Text(value);
                found.push(Token { kind, text: written, range: at..at + length });
                at += length;
            }
            None => at += rest.chars().next().map_or(1, char::len_utf8),
        }
    }
}

/// What is left of the next token.
#[derive(Debug, Clone, Default)]
struct LeftOperand {
    /// Its type, if it is known.
    result: Option<Type>,
    /// The names that lead to it; empty if it is not a fact.
    path: String,
    /// Its row, if it is a method whose arguments can follow.
    method: Option<&'static Member>,
    /// Its values, if they are few.
    values: Vec<String>,
    /// Number of its mark, if it is a text.
    text: Option<usize>,
}

/// An open bracket.
#[derive(Debug, Clone)]
enum OpenBracket {
    /// `(` of a group, `{` of a branch, or nothing: the expression.
    Group,
    /// `(` of a call.
    Call { member: &'static Member, path: String, argument: usize },
    /// `[` behind a value.
    Item,
    /// `[` of a list.
    List,
}

/// What was read since an open bracket.
#[derive(Debug, Clone)]
struct OpenPart {
    bracket: OpenBracket,
    operand: Option<LeftOperand>,
    /// The left side of a comparison, until the comparison ends.
    left: Option<LeftOperand>,
}

impl OpenPart {
    fn new(bracket: OpenBracket) -> Self {
        Self { bracket, operand: None, left: None }
    }
}

struct WordReader<'n> {
    names: &'n dyn KnownNames,
    outer: Vec<OpenPart>,
    frame: OpenPart,
    /// Whether a member follows: the last token is `.`.
    after_dot: bool,
    marks: Vec<ExpressionWord>,
}

impl<'n> WordReader<'n> {
    fn new(names: &'n dyn KnownNames) -> Self {
        let (outer, marks) = (Vec::new(), Vec::new());
        Self { names, outer, frame: OpenPart::new(OpenBracket::Group), after_dot: false, marks }
    }

    fn read(&mut self, token: &Token<'_>) {
        let after_dot = std::mem::take(&mut self.after_dot);
        let kind = match &token.kind {
            TokenKind::Name if after_dot => Some(self.member(token.text)),
            TokenKind::Name => Some(self.name(token.text)),
            TokenKind::Number(_) => {
                self.frame.operand = Some(LeftOperand::of(Type::Int));
                Some(WordSense::Number)
            }
            TokenKind::Text(value) => Some(self.text(value)),
            TokenKind::Character => Some(WordSense::Unknown),
            TokenKind::Sign => self.sign(token.text),
        };
        if let Some(kind) = kind {
            self.marks.push(ExpressionWord { range: token.range.clone(), kind });
        }
    }

    fn name(&mut self, word: &str) -> WordSense {
        match word {
            "true" | "false" => {
                self.frame.operand = Some(LeftOperand::of(Type::Bool));
                return WordSense::Keyword;
            }
            "in" => {
                self.compare();
                return WordSense::Keyword;
            }
            "if" | "else" => {
                self.end_operands();
                return WordSense::Keyword;
            }
            _ => {}
        }
        let mut operand = LeftOperand { path: word.to_owned(), ..LeftOperand::default() };
        let kind = match (self.names.record(), self.names.table().find(Type::Global, word)) {
            (Some(record), _) if record.name == word => {
                operand.result = Some(Type::Record);
                WordSense::Record
            }
            (Some(_), _) | (None, None) => WordSense::Unknown,
            (None, Some(member)) => {
                operand.result = Some(member.result);
                WordSense::Fact { path: word.to_owned(), member }
            }
        };
        self.put(operand);
        kind
    }

    fn member(&mut self, word: &str) -> WordSense {
        let before = self.frame.operand.take().unwrap_or_default();
        let path = match before.path.as_str() {
            "" => word.to_owned(),
            before => format!("{before}.{word}"),
        };
        let mut operand = LeftOperand { path: path.clone(), ..LeftOperand::default() };
        let kind = self.member_of(before.result, word, &mut operand);
        self.put(operand);
        kind.unwrap_or(WordSense::Unknown)
    }

    fn member_of(
        &self,
        owner: Option<Type>,
        word: &str,
        operand: &mut LeftOperand,
    ) -> Option<WordSense> {
        let owner = owner?;
        if owner == Type::Record {
            let record = self.names.record()?;
            let field = record.fields.iter().find(|it| it.name == word)?;
            operand.result = Some(field.result);
            operand.values.clone_from(&field.values);
            return Some(WordSense::Field { name: word.to_owned() });
        }
        if let Some(named) = self.names.table().named_members(owner) {
            operand.result = Some(named.result);
            return Some(WordSense::PackName { class: named.kind, name: word.to_owned() });
        }
        let member = self.names.table().find(owner, word)?;
        operand.result = Some(member.result);
        operand.method = member.params.map(|_| member);
        let known = member
            .ids
            .and_then(|it| self.names.values(it))
            .unwrap_or_else(|| member.values.to_vec());
        operand.values = known.into_iter().map(str::to_owned).collect();
        Some(WordSense::Fact { path: operand.path.clone(), member })
    }

    /// Makes a fact the operand. A text that is compared with the fact is a value of it.
    fn put(&mut self, operand: LeftOperand) {
        let compared = self.frame.left.as_ref().and_then(|it| it.text);
        if let Some(ExpressionWord { kind, .. }) = compared.and_then(|it| self.marks.get_mut(it))
            && let WordSense::Text | WordSense::Value { .. } = kind
        {
            let text = if let WordSense::Value { text, .. } = kind {
                std::mem::take(text)
            } else {
                self.frame.left.as_ref().map(|it| it.path.clone()).unwrap_or_default()
            };
            *kind = WordSense::Value { fact: operand.path.clone(), text };
        }
        self.frame.operand = Some(operand);
    }

    fn text(&mut self, value: &str) -> WordSense {
        let kind = match self.expected_text() {
            ExpectedWord::PackNames(class) => WordSense::PackName { class, name: value.to_owned() },
            ExpectedWord::Values { fact, .. } if !fact.is_empty() => {
                WordSense::Value { fact, text: value.to_owned() }
            }
            ExpectedWord::Items => WordSense::Item,
            ExpectedWord::Values { .. } | ExpectedWord::Members(_) | ExpectedWord::Nothing => {
                if self.is_regex() {
                    WordSense::Regex
                } else {
                    WordSense::Text
                }
            }
        };
        // The path of a text is its value, until it is known which fact it is compared with.
        let text = Some(self.marks.len());
        let operand = LeftOperand { path: value.to_owned(), text, ..LeftOperand::of(Type::Text) };
        self.frame.operand = Some(operand);
        kind
    }

    fn sign(&mut self, sign: &str) -> Option<WordSense> {
        match sign {
            "." | "?." => {
                self.after_dot = true;
                return None;
            }
            "(" => {
                let method =
                    self.frame.operand.as_mut().and_then(|it| Some((it.method?, &it.path)));
                let bracket = match method {
                    Some((member, path)) => {
                        OpenBracket::Call { member, path: path.clone(), argument: 0 }
                    }
                    None => OpenBracket::Group,
                };
                self.open(bracket);
            }
            "[" | "?[" => {
                let is_item = self.frame.operand.is_some();
                self.open(if is_item { OpenBracket::Item } else { OpenBracket::List });
            }
            "{" => {
                self.end_operands();
                self.open(OpenBracket::Group);
            }
            ")" | "]" | "}" => self.close(),
            "," => {
                if let OpenBracket::Call { argument, .. } = &mut self.frame.bracket {
                    *argument += 1;
                }
                self.end_operands();
            }
            "==" | "!=" | "!in" => {
                self.compare();
                return Some(WordSense::Operator);
            }
            "<" | "<=" | ">" | ">=" | "&&" | "||" => {
                self.end_operands();
                return Some(WordSense::Operator);
            }
            _ => {
                self.frame.operand = None;
                return Some(WordSense::Operator);
            }
        }
        None
    }

    fn compare(&mut self) {
        self.frame.left = self.frame.operand.take();
    }

    fn end_operands(&mut self) {
        (self.frame.operand, self.frame.left) = (None, None);
    }

    fn open(&mut self, bracket: OpenBracket) {
        let outer = std::mem::replace(&mut self.frame, OpenPart::new(bracket));
        self.outer.push(outer);
    }

    fn close(&mut self) {
        let Some(outer) = self.outer.pop() else { return };
        let inner = std::mem::replace(&mut self.frame, outer);
        match inner.bracket {
            OpenBracket::Group => {
                self.frame.operand = inner.operand.map(|it| LeftOperand::of_result(it.result))
            }
            OpenBracket::Call { member, path, .. } => {
                // What is compared with a call is a value of its fact.
                let values = member.values.iter().map(|it| (*it).to_owned()).collect();
                let result = Some(member.result);
                self.frame.operand =
                    Some(LeftOperand { result, path, values, ..LeftOperand::default() });
            }
            OpenBracket::Item => {
                let path = self.frame.operand.take().map(|it| it.path).unwrap_or_default();
                let result = Some(self.names.table().items().result);
                self.frame.operand = Some(LeftOperand { result, path, ..LeftOperand::default() });
            }
            OpenBracket::List => self.frame.operand = Some(LeftOperand::of(Type::Texts)),
        }
    }

    /// The innermost call around the next token.
    fn call(&self) -> Option<(&'static Member, usize)> {
        let frames = std::iter::once(&self.frame).chain(self.outer.iter().rev());
        frames.into_iter().find_map(|it| match &it.bracket {
            OpenBracket::Call { member, argument, .. } => Some((*member, *argument)),
            OpenBracket::Group | OpenBracket::Item | OpenBracket::List => None,
        })
    }

    /// What a text can be that comes next.
    fn expected_text(&self) -> ExpectedWord {
        let holder = match (&self.frame.bracket, self.outer.last()) {
            (OpenBracket::List, Some(outer)) => outer,
            _ => &self.frame,
        };
        if let Some(left) = &holder.left {
            let (fact, values) = match left.text {
                None => (left.path.clone(), left.values.clone()),
                Some(_) => (String::new(), Vec::new()),
            };
            return ExpectedWord::Values { fact, values };
        }
        match &holder.bracket {
            OpenBracket::Call { member, path, argument } => {
                match member.params.and_then(|it| it.get(*argument)).map(|(_, domain)| *domain) {
                    Some(Domain::Name(class)) => ExpectedWord::PackNames(class),
                    Some(Domain::Text(_)) => {
                        // `signals.pending.contains("…")` asks for a value of `signals.pending`.
                        let asks = ["contains", "any_in", "all_in"].contains(&member.name);
                        let fact = path.rsplit_once('.').filter(|_| asks);
                        let fact = fact.map_or(path.as_str(), |(fact, _)| fact).to_owned();
                        ExpectedWord::Values { fact, values: Vec::new() }
                    }
                    Some(Domain::Regex) | None => ExpectedWord::Nothing,
                }
            }
            OpenBracket::Item => ExpectedWord::Items,
            OpenBracket::Group | OpenBracket::List => ExpectedWord::Nothing,
        }
    }

    fn is_regex(&self) -> bool {
        let OpenBracket::Call { member, argument, .. } = &self.frame.bracket else { return false };
        let domain = member.params.and_then(|it| it.get(*argument)).map(|(_, domain)| *domain);
        domain == Some(Domain::Regex)
    }

    /// What a name can be that comes next.
    fn expected_name(&self) -> ExpectedWord {
        let operand = self.frame.operand.as_ref();
        if self.after_dot {
            let owner = operand.and_then(|it| it.result);
            return owner.map_or(ExpectedWord::Nothing, ExpectedWord::Members);
        }
        if operand.is_some() {
            return ExpectedWord::Nothing;
        }
        match &self.frame.left {
            // `in` needs a list; after `==`, a fact with few values needs one of them.
            Some(left) if !left.values.is_empty() => {
                let (fact, values) = (left.path.clone(), left.values.clone());
                ExpectedWord::Values { fact, values }
            }
            _ => ExpectedWord::Members(Type::Global),
        }
    }
}

impl LeftOperand {
    fn of(result: Type) -> Self {
        Self::of_result(Some(result))
    }

    fn of_result(result: Option<Type>) -> Self {
        Self { result, ..Self::default() }
    }
}
