//! The values of expressions in code of other languages: joined texts and paths, the home directory, the environment.
//!
//! Contains: [`PathReader`], which reads one expression and follows the names in it.
//! Does not contain: what names are set to (`code_values`), functions and methods (`code_functions`), calls (`code`).
//!
//! What is not read is unknown. Each limit ends in an unknown value.

use std::collections::BTreeMap;
use std::ops::Range;

use super::code_functions::{FORMAT_MARKS, function_named};
use super::code_parts::{CodeValue, PartText};
use super::code_values::{CodeNames, NameSource, plain_name};
use super::expression_tokens::{CodeLanguage, CodeTokenKind, ExpressionTokens, TextPart};

/// Expressions in expressions that are read.
const DEPTH_MAX: usize = 40;
/// Parts of expressions that are read in one piece of code.
const WORK_MAX: usize = 60_000;
/// Tokens of a name that another name is set to.
const ALIAS_MAX: usize = 7;
/// Words between an operator and its value.
const IGNORED_WORDS: [&str; 9] =
    ["await", "new", "yield", "my", "our", "local", "const", "let", "var"];
/// Words that begin a function.
const FUNCTION_WORDS: [&str; 6] = ["lambda", "function", "async", "sub", "proc", "not"];
/// Words that end an expression.
const END_WORDS: [&str; 9] =
    ["for", "if", "else", "unless", "do", "as", "while", "then", "foreach"];
/// Operators whose value is not a text.
const COMPARISONS: [&str; 15] = [
    "==",
    "!=",
    "===",
    "!==",
    "<",
    ">",
    "<=",
    ">=",
    "=~",
    "in",
    "not",
    "is",
    "instanceof",
    "eq",
    "ne",
];
/// Objects that contain the environment.
pub(super) const ENVIRONMENTS: [&str; 8] =
    ["os.environ", "process.env", "ENV", "$ENV", "Bun.env", "Deno.env", "$_ENV", "$_SERVER"];

/// A function call in an expression.
#[derive(Debug)]
pub(super) struct ReadCall<'v> {
    /// Full name, with the names of its modules.
    pub(super) name: &'v str,
    pub(super) arguments: &'v [ReadArgument],
}

/// An argument of a call.
#[derive(Debug)]
pub(super) struct ReadArgument {
    /// Its name, if it has one: `dir="x"`.
    pub(super) name: Option<String>,
    /// Whether it contains all arguments: `*a`.
    pub(super) is_spread: bool,
    pub(super) value: CodeValue,
}

/// What the reader knows about the surroundings of the code.
#[derive(Debug, Default)]
pub(super) struct CodeSurroundings {
    /// Variables of the environment with their values.
    pub(super) variables: BTreeMap<String, CodeValue>,
    /// Directory for temporary files.
    pub(super) temporary: String,
    /// The file that contains the code.
    pub(super) file: String,
    /// Local names of modules and functions, with their names.
    pub(super) imported: BTreeMap<String, String>,
}

/// Reads expressions of a piece of code.
#[derive(Debug)]
pub(super) struct PathReader<'c> {
    pub(super) tokens: &'c ExpressionTokens<'c>,
    names: CodeNames<'c>,
    pub(super) around: CodeSurroundings,
    /// The values of names. Open while they are read.
    values: BTreeMap<NameKey, NameValue>,
    /// The token at which names are read.
    position: usize,
    depth: usize,
    work: usize,
}

/// A name, with the tokens that set it to a value which counts.
type NameKey = (String, Vec<usize>);

/// The value of a name.
#[derive(Debug, Clone)]
enum NameValue {
    /// It is being read. It has at least this value.
    Open(CodeValue),
    Read(CodeValue),
}

/// A position in tokens.
#[derive(Debug)]
struct Cursor<'t, 'c> {
    tokens: &'t ExpressionTokens<'c>,
    at: usize,
    end: usize,
}

impl<'c> Cursor<'_, 'c> {
    fn text(&self) -> &'c str {
        if self.at < self.end { self.tokens.text(self.at) } else { "" }
    }

    fn kind(&self) -> Option<CodeTokenKind> {
        self.tokens.kind(self.at).filter(|_| self.at < self.end)
    }

    fn takes(&mut self, text: &str) -> bool {
        let is_text = matches!(self.kind(), Some(CodeTokenKind::Sign | CodeTokenKind::Name))
            && self.text() == text;
        self.at += usize::from(is_text);
        is_text
    }

    /// Returns whether the expression ends here.
    fn is_end(&self) -> bool {
        match self.kind() {
            None | Some(CodeTokenKind::Line) => true,
            Some(CodeTokenKind::Sign) => {
                matches!(self.text(), "," | ")" | "]" | "}" | ":" | ";" | "{" | "=>")
            }
            Some(CodeTokenKind::Name) => END_WORDS.contains(&self.text()),
            Some(CodeTokenKind::Number | CodeTokenKind::Text(_) | CodeTokenKind::Other) => false,
        }
    }
}

/// The object in front of a member.
#[derive(Debug)]
struct ReadObject {
    /// Its name with the names of its modules. Empty if it has none.
    name: String,
    value: CodeValue,
}

impl<'c> PathReader<'c> {
    /// Prepares the reader of a piece of code.
    pub(super) fn new(tokens: &'c ExpressionTokens<'c>, around: CodeSurroundings) -> Self {
        let names = CodeNames::of(tokens);
        Self { tokens, names, around, values: BTreeMap::new(), position: 0, depth: 0, work: 0 }
    }

    /// Reads an expression.
    pub(super) fn read(&mut self, expression: &str) -> CodeValue {
        let tokens = ExpressionTokens::of(self.tokens.language, expression.trim());
        self.read_all(&tokens, 0..tokens.tokens.len())
    }

    /// Reads a list of words or of arguments, each as a value of its own.
    pub(super) fn read_items(&mut self, expression: &str) -> Vec<CodeValue> {
        let value = self.read(expression);
        if value.items.is_empty() { vec![value] } else { value.items }
    }

    fn read_all(&mut self, tokens: &ExpressionTokens<'_>, part: Range<usize>) -> CodeValue {
        let mut cursor = Cursor { tokens, at: part.start, end: part.end };
        self.expression(&mut cursor)
    }

    /// Reads the next expressions where they are in the code.
    pub(super) fn go_to(&mut self, offset: usize) {
        self.position = self.tokens.index_at(offset);
    }

    /// Reads a part of the code.
    fn read_part(&mut self, part: Range<usize>) -> CodeValue {
        let before = std::mem::replace(&mut self.position, part.start);
        let value = self.read_all(self.tokens, part);
        self.position = before;
        value
    }

    /// Returns the value of a name. `None` if the code does not set it.
    fn named(&mut self, name: &str) -> Option<CodeValue> {
        let sources = self.names.sources(name, self.position)?;
        let places = sources.iter().map(|it| it.0).collect();
        let key: NameKey = (plain_name(name).to_owned(), places);
        match self.values.get(&key) {
            Some(NameValue::Read(value)) => return Some(value.clone()),
            Some(NameValue::Open(value)) if value.texts.is_empty() => {
                return Some(CodeValue::unknown());
            }
            // A loop may set it again and again.
            Some(NameValue::Open(value)) => {
                let mut value = value.clone();
                value.add(value.clone().map(PartText::open));
                return Some(value);
            }
            None => {}
        }
        let mut value = CodeValue::default();
        for (at, (_, source)) in sources.into_iter().enumerate() {
            self.values.insert(key.clone(), NameValue::Open(value.clone()));
            let other = match source {
                NameSource::Value(part) => self.read_part(part),
                NameSource::Item(part) => {
                    CodeValue { is_list: false, items: Vec::new(), ..self.read_part(part) }
                }
                NameSource::Extended(part) => self.extended(name, &value, part),
                NameSource::Unknown => CodeValue::unknown(),
            };
            if at == 0 {
                value = other;
            } else {
                value.add(other);
            }
        }
        self.values.insert(key, NameValue::Read(value.clone()));
        Some(value)
    }

    /// Returns the values of a name with another value behind them, once and several times.
    fn extended(&mut self, name: &str, value: &CodeValue, part: Range<usize>) -> CodeValue {
        let before = std::mem::replace(&mut self.position, part.start);
        let own = if value.texts.is_empty() { self.named(name) } else { Some(value.clone()) };
        self.position = before;
        let own = own.unwrap_or_else(CodeValue::unknown).append(&self.read_part(part));
        let mut all = own.clone();
        all.add(own.map(PartText::open));
        all
    }

    /// Returns what a function of the code returns. `None` if the code does not define it.
    fn returned(&mut self, name: &str) -> Option<CodeValue> {
        let returns = self.names.function(name)?.returns.clone();
        let key: NameKey = (format!("{name}()"), Vec::new());
        match self.values.get(&key) {
            Some(NameValue::Read(value)) => return Some(value.clone()),
            Some(NameValue::Open(_)) => return Some(CodeValue::unknown()),
            None => {}
        }
        self.values.insert(key.clone(), NameValue::Open(CodeValue::default()));
        let mut value = CodeValue::default();
        for (at, part) in returns.into_iter().enumerate() {
            let other = self.read_part(part);
            if at == 0 {
                value = other;
            } else {
                value.add(other);
            }
        }
        if value.texts.is_empty() {
            value = CodeValue::unknown();
        }
        self.values.insert(key, NameValue::Read(value.clone()));
        Some(value)
    }

    /// Returns the value of a variable of the environment.
    pub(super) fn variable(&self, name: &str) -> CodeValue {
        match name {
            "HOME" if !self.around.variables.contains_key(name) => CodeValue::known("~"),
            "TMPDIR" | "TEMP" | "TMP" if !self.around.variables.contains_key(name) => {
                CodeValue::known(self.around.temporary.as_str())
            }
            _ => self.around.variables.get(name).cloned().unwrap_or_else(CodeValue::unknown),
        }
    }

    /// Returns a name with the names of its modules.
    fn full_name(&self, name: &str) -> String {
        let known = self.around.imported.get(name).map(String::as_str);
        // `env = os.environ`
        let other = || match self.names.sources(name, self.position)?.as_slice() {
            [(_, NameSource::Value(part))] if part.len() <= ALIAS_MAX => {
                let is_part = |at: usize| {
                    self.tokens.kind(at) == Some(CodeTokenKind::Name)
                        || self.tokens.is_member_sign(at)
                };
                let source = self.tokens.source(part);
                (part.clone().all(is_part) && source != name).then_some(source)
            }
            _ => None,
        };
        let whole = known.or_else(other).unwrap_or(name);
        whole.replace("::", ".").replace("->", ".").replace("?.", ".")
    }
}

impl<'c> PathReader<'c> {
    /// Reads an expression up to its end.
    fn expression(&mut self, cursor: &mut Cursor<'_, '_>) -> CodeValue {
        self.work += 1;
        if self.depth >= DEPTH_MAX || self.work >= WORK_MAX {
            cursor.at = cursor.end;
            return CodeValue::unknown();
        }
        self.depth += 1;
        let value = self.alternatives(cursor);
        self.depth -= 1;
        value
    }

    /// Counts the work of joining two values.
    fn count(&mut self, value: &CodeValue, other: &CodeValue) {
        self.work += value.texts.len() * other.texts.len();
    }

    /// Reads values of which the code takes one: `a or b`, `a ? b : c`, `a if b else c`.
    fn alternatives(&mut self, cursor: &mut Cursor<'_, '_>) -> CodeValue {
        let language = cursor.tokens.language;
        let mut value = self.sum(cursor);
        loop {
            let text = cursor.text();
            if ["or", "||", "??", "and", "&&"].contains(&text)
                || (text == "//" && language == CodeLanguage::Perl)
            {
                cursor.at += 1;
                let other = self.sum(cursor);
                value.add(other);
            } else if COMPARISONS.contains(&text) {
                cursor.at += 1;
                self.sum(cursor);
                value = CodeValue::unknown();
            } else if text == "=" {
                cursor.at += 1;
                return self.expression(cursor);
            } else if text == "if" && language == CodeLanguage::Python {
                let found = (cursor.at..cursor.end).find(|it| cursor.tokens.is_name(*it, "else"));
                let Some(other) = found else { break };
                cursor.at = other + 1;
                let other = self.expression(cursor);
                value.add(other);
            } else if text == "?" && language != CodeLanguage::Python {
                cursor.at += 1;
                value = self.expression(cursor);
                if !cursor.takes(":") {
                    return CodeValue::unknown();
                }
                let other = self.expression(cursor);
                value.add(other);
            } else {
                break;
            }
        }
        if !cursor.is_end() {
            cursor.at = cursor.end;
            return CodeValue::unknown();
        }
        value
    }

    /// Reads `a + b`.
    fn sum(&mut self, cursor: &mut Cursor<'_, '_>) -> CodeValue {
        let has_dots = matches!(cursor.tokens.language, CodeLanguage::Perl | CodeLanguage::Php);
        let mut value = self.product(cursor);
        while cursor.takes("+") || (has_dots && cursor.takes(".")) {
            let other = self.product(cursor);
            self.count(&value, &other);
            if value.is_list && other.is_list {
                value.items.clear();
                value.add(other);
            } else {
                value = value.append(&other);
            }
        }
        value
    }

    /// Reads `a / b` and `a % b`.
    fn product(&mut self, cursor: &mut Cursor<'_, '_>) -> CodeValue {
        let joins = matches!(cursor.tokens.language, CodeLanguage::Python | CodeLanguage::Ruby);
        let mut is_text = matches!(cursor.kind(), Some(CodeTokenKind::Text(_)));
        let mut value = self.operand(cursor);
        loop {
            if cursor.takes("/") {
                is_text |= matches!(cursor.kind(), Some(CodeTokenKind::Text(_)));
                let other = self.operand(cursor);
                self.count(&value, &other);
                let is_path = value.is_path() || other.is_path() || is_text;
                value =
                    if joins && is_path { value.join(&other, true) } else { CodeValue::unknown() };
            } else if cursor.takes("%") {
                let other = self.operand(cursor);
                let values = if other.items.is_empty() { vec![other] } else { other.items };
                value = formatted(&value, &values);
            } else if ["*", "**", "-", "//", "|", "&", "^", ".."].iter().any(|it| cursor.takes(it))
            {
                self.operand(cursor);
                value = CodeValue::unknown();
            } else {
                return value;
            }
        }
    }

    /// Reads a value with its members, calls, and parts.
    fn operand(&mut self, cursor: &mut Cursor<'_, '_>) -> CodeValue {
        self.work += 1;
        if self.work >= WORK_MAX {
            cursor.at = cursor.end;
            return CodeValue::unknown();
        }
        let text = cursor.text();
        let object = match cursor.kind() {
            None | Some(CodeTokenKind::Line) => return CodeValue::unknown(),
            Some(CodeTokenKind::Text(_)) => {
                let value = self.texts(cursor);
                ReadObject { name: String::new(), value }
            }
            Some(CodeTokenKind::Number) => {
                cursor.at += 1;
                let value = CodeValue::known(text);
                ReadObject { name: String::new(), value }
            }
            Some(CodeTokenKind::Other) => {
                cursor.at += 1;
                ReadObject { name: String::new(), value: CodeValue::unknown() }
            }
            Some(CodeTokenKind::Name) if IGNORED_WORDS.contains(&text) => {
                cursor.at += 1;
                return self.nested_operand(cursor);
            }
            Some(CodeTokenKind::Name) if FUNCTION_WORDS.contains(&text) => {
                cursor.at = cursor.end;
                return CodeValue::unknown();
            }
            Some(CodeTokenKind::Name) if END_WORDS.contains(&text) => return CodeValue::unknown(),
            Some(CodeTokenKind::Name) => {
                cursor.at += 1;
                let value = self.named(text).unwrap_or_else(CodeValue::unknown);
                ReadObject {
                    name: self.full_name(text),
                    value: self.constant(text).unwrap_or(value),
                }
            }
            Some(CodeTokenKind::Sign) => match text {
                "*" | "..." | "\\" | "&" | "@" | "$" | "**" => {
                    cursor.at += 1;
                    return self.nested_operand(cursor);
                }
                "!" | "-" | "+" | "~" => {
                    cursor.at += 1;
                    self.nested_operand(cursor);
                    return CodeValue::unknown();
                }
                "(" | "[" => ReadObject { name: String::new(), value: self.bracket(cursor) },
                "{" => {
                    cursor.at = cursor.tokens.behind(cursor.at);
                    return CodeValue::unknown();
                }
                _ => {
                    cursor.at += usize::from(!cursor.is_end());
                    return CodeValue::unknown();
                }
            },
        };
        self.members(cursor, object)
    }

    /// Reads a value behind a sign, and counts its depth.
    fn nested_operand(&mut self, cursor: &mut Cursor<'_, '_>) -> CodeValue {
        if self.depth >= DEPTH_MAX {
            cursor.at = cursor.end;
            return CodeValue::unknown();
        }
        self.depth += 1;
        let value = self.operand(cursor);
        self.depth -= 1;
        value
    }

    /// Reads the texts that are behind each other.
    fn texts(&mut self, cursor: &mut Cursor<'_, '_>) -> CodeValue {
        let joins = matches!(cursor.tokens.language, CodeLanguage::Python | CodeLanguage::Ruby);
        let mut value = CodeValue::known("");
        while matches!(cursor.kind(), Some(CodeTokenKind::Text(_))) {
            for part in cursor.tokens.text_parts(cursor.at) {
                let part = match part {
                    TextPart::Known(text) => CodeValue::known(text),
                    TextPart::Expression(source) => self.inner(source),
                };
                self.count(&value, &part);
                value = value.append(&part);
            }
            cursor.at += 1;
            if !joins {
                break;
            }
        }
        // Of the home directory, paths are made.
        value.map(|it| if it.all() == Some("~") { it.into_path() } else { it.into_text() })
    }

    /// Reads an expression in a text.
    fn inner(&mut self, source: &str) -> CodeValue {
        let is_name = source.chars().all(|c| c.is_alphanumeric() || c == '_');
        if is_name && let Some(value) = self.named(source) {
            return CodeValue { is_list: false, items: Vec::new(), ..value };
        }
        let tokens = ExpressionTokens::of(self.tokens.language, source);
        self.read_all(&tokens, 0..tokens.tokens.len())
    }

    /// Reads `(a)`, `(a, b)`, and `[a, b]`.
    fn bracket(&mut self, cursor: &mut Cursor<'_, '_>) -> CodeValue {
        let tokens = cursor.tokens;
        let open = cursor.at;
        let inside = tokens.inside(open);
        cursor.at = tokens.behind(open);
        if tokens.is_sign(cursor.at, "=>") {
            cursor.at = cursor.end;
            return CodeValue::unknown();
        }
        let parts = tokens.split(&inside);
        let has_comma = inside.end.checked_sub(1).is_some_and(|it| tokens.is_sign(it, ","));
        if let ([one], true) = (parts.as_slice(), tokens.is_sign(open, "(") && !has_comma) {
            return self.read_all(tokens, one.clone());
        }
        let mut list = CodeValue::list();
        let mut items = Vec::new();
        for part in parts {
            // `[a for b in c]`
            let is_single =
                !part.clone().any(|it| tokens.is_name(it, "for") || tokens.is_sign(it, "*"));
            let value = self.read_all(tokens, part.clone());
            list.add(value.clone());
            if is_single && !value.is_list {
                items.push(value);
            } else {
                items.clear();
                list.is_opaque = true;
            }
        }
        if !list.is_opaque {
            list.items = items;
        }
        list.is_opaque = false;
        list
    }
}

impl<'c> PathReader<'c> {
    /// Reads the members and calls behind a value.
    fn members(&mut self, cursor: &mut Cursor<'_, '_>, mut object: ReadObject) -> CodeValue {
        let tokens = cursor.tokens;
        while cursor.at < cursor.end {
            self.work += 1;
            let next = cursor.at + 1;
            if tokens.is_member_sign(cursor.at)
                && next < cursor.end
                && matches!(tokens.kind(next), Some(CodeTokenKind::Text(_)))
            {
                // The home directory of a module became a text: `pathlib."~"`.
                cursor.at = next;
                object = ReadObject { name: String::new(), value: self.texts(cursor) };
                continue;
            }
            if tokens.is_member_sign(cursor.at)
                && tokens.kind(next) == Some(CodeTokenKind::Name)
                && next < cursor.end
            {
                cursor.at += 2;
                let member = tokens.text(next);
                let name = match object.name.as_str() {
                    "" => String::new(),
                    own => self.full_name(&format!("{own}.{member}")),
                };
                object = match tokens.is_sign(cursor.at, "(") && cursor.at < cursor.end {
                    true => self.method(cursor, object, member, name),
                    false => ReadObject { value: self.member(cursor, object, member, &name), name },
                };
            } else if tokens.is_sign(cursor.at, "(") && !object.name.is_empty() {
                let arguments = self.arguments(cursor);
                let own = self.returned(&object.name);
                let value = own.unwrap_or_else(|| self.call(&object.name, &arguments));
                object = ReadObject { name: String::new(), value };
            } else if tokens.is_sign(cursor.at, "[") || tokens.is_sign(cursor.at, "{") {
                let is_part = tokens.is_sign(cursor.at, "[") || object.name.starts_with('$');
                if !is_part {
                    break;
                }
                let value = self.part(cursor, &object);
                object = ReadObject { name: String::new(), value };
            } else if tokens.language.is_bare()
                && self.begins_argument(cursor)
                && function_named(&object.name).is_some()
            {
                let value = self.bare_call(cursor, &object.name);
                object = ReadObject { name: String::new(), value };
            } else {
                break;
            }
        }
        object.value
    }

    /// Returns whether an argument without brackets begins here.
    fn begins_argument(&self, cursor: &Cursor<'_, '_>) -> bool {
        match cursor.kind() {
            Some(CodeTokenKind::Text(_)) => true,
            Some(CodeTokenKind::Name) => {
                !END_WORDS.contains(&cursor.text()) && !COMPARISONS.contains(&cursor.text())
            }
            Some(
                CodeTokenKind::Sign
                | CodeTokenKind::Number
                | CodeTokenKind::Other
                | CodeTokenKind::Line,
            )
            | None => false,
        }
    }

    /// Reads a call without brackets: `File.join Dir.home, "a"`.
    fn bare_call(&mut self, cursor: &mut Cursor<'_, '_>, name: &str) -> CodeValue {
        let mut arguments = Vec::new();
        loop {
            let value = self.expression(cursor);
            arguments.push(ReadArgument { name: None, is_spread: false, value });
            if !cursor.takes(",") {
                return self.call(name, &arguments);
            }
        }
    }

    /// Reads the arguments of a call.
    fn arguments(&mut self, cursor: &mut Cursor<'_, '_>) -> Vec<ReadArgument> {
        let tokens = cursor.tokens;
        let inside = tokens.inside(cursor.at);
        cursor.at = tokens.behind(cursor.at);
        let mut found = Vec::new();
        for part in tokens.split(&inside) {
            let is_named = tokens.kind(part.start) == Some(CodeTokenKind::Name)
                && (tokens.is_sign(part.start + 1, "=")
                    || (tokens.language == CodeLanguage::Ruby
                        && tokens.is_sign(part.start + 1, ":")));
            let is_spread = ["*", "**", "..."].iter().any(|it| tokens.is_sign(part.start, it));
            let start = part.start + if is_named { 2 } else { usize::from(is_spread) };
            // A function that a method receives returns its items: `a.map(b => c)`.
            let arrow =
                (part.start..part.end.min(part.start + 8)).find(|it| tokens.is_sign(*it, "=>"));
            let start = arrow.map_or(start, |it| it + 1);
            let value = self.read_all(tokens, start..part.end);
            self.count(&value, &value);
            if is_spread && !value.items.is_empty() {
                let each = value.items.into_iter();
                found.extend(each.map(|value| ReadArgument {
                    name: None,
                    is_spread: false,
                    value,
                }));
                continue;
            }
            let name = is_named.then(|| tokens.text(part.start).to_owned());
            found.push(ReadArgument { name, is_spread, value });
        }
        found
    }

    /// Reads the call of a method or of a function of a module.
    fn method(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
        object: ReadObject,
        member: &str,
        name: String,
    ) -> ReadObject {
        let arguments = self.arguments(cursor);
        let call = |name| ReadCall { name, arguments: &arguments };
        let value = if function_named(&name).is_some() {
            self.call(&name, &arguments)
        } else if object.value.is_unknown()
            && !object.value.is_list
            && let Some(value) = self.returned(member)
        {
            value
        } else {
            self.method_value(object.value, &call(member))
        };
        ReadObject { name: String::new(), value }
    }

    /// Reads a member that is not called.
    fn member(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
        object: ReadObject,
        member: &str,
        name: &str,
    ) -> CodeValue {
        let is_own = ["self", "this", "cls"].contains(&object.name.as_str());
        if is_own {
            let own = self.named(&format!("{}.{member}", object.name));
            if let Some(value) = own.or_else(|| self.named(member)) {
                return value;
            }
        }
        if object.name == "process.env" || object.name == "Bun.env" {
            return self.variable(member);
        }
        // `a.parents[1]`
        if member == "parents" && cursor.tokens.is_sign(cursor.at, "[") {
            let count =
                cursor.tokens.text(cursor.at + 1).parse::<usize>().ok().filter(|it| *it < 8);
            cursor.at = cursor.tokens.behind(cursor.at);
            let up = |value: CodeValue| value.map(PartText::parent);
            return count.map_or_else(CodeValue::unknown, |it| {
                (0..=it).fold(object.value, |value, _| up(value))
            });
        }
        if cursor.tokens.language.is_bare() && function_named(name).is_some() {
            return self.call(name, &[]);
        }
        if let Some(value) = self.constant(name) {
            return value;
        }
        self.method_value(object.value, &ReadCall { name: member, arguments: &[] })
    }

    /// Reads `a["b"]` and `$a{b}`.
    fn part(&mut self, cursor: &mut Cursor<'_, '_>, object: &ReadObject) -> CodeValue {
        let tokens = cursor.tokens;
        let inside = tokens.inside(cursor.at);
        let is_brace = tokens.is_sign(cursor.at, "{");
        cursor.at = tokens.behind(cursor.at);
        if ENVIRONMENTS.contains(&object.name.as_str()) {
            if is_brace && tokens.kind(inside.start) == Some(CodeTokenKind::Name) {
                return self.variable(tokens.text(inside.start));
            }
            let name = self.read_all(tokens, inside);
            return match name.texts.as_slice() {
                [one] => one.all().map_or_else(CodeValue::unknown, |it| self.variable(it)),
                _ => CodeValue::unknown(),
            };
        }
        if object.name == "Dir" {
            let value = self.read_all(tokens, inside);
            return self.call("Dir.glob", &[ReadArgument { name: None, is_spread: false, value }]);
        }
        let index = tokens.text(inside.start).parse::<usize>().ok().filter(|_| inside.len() == 1);
        if let Some(item) = index.and_then(|it| object.value.items.get(it)) {
            return item.clone();
        }
        match object.value.is_list && !is_brace {
            true => {
                CodeValue { items: Vec::new(), is_list: inside.len() > 1, ..object.value.clone() }
            }
            false => CodeValue::unknown(),
        }
    }
}

/// Returns a text whose marks are replaced by values, in order: `%s`, `{}`.
pub(super) fn formatted(form: &CodeValue, values: &[CodeValue]) -> CodeValue {
    let [form] = form.texts.as_slice() else { return CodeValue::unknown() };
    let Some(text) = form.all() else { return CodeValue::unknown() };
    let mut values = values.iter();
    let (mut made, mut rest) = (CodeValue::known(""), text);
    while let Some(at) = rest.find('%') {
        made = made.append(&CodeValue::known(rest.get(..at).unwrap_or_default()));
        let behind = rest.get(at + 1..).unwrap_or_default();
        let name = behind.starts_with('(').then(|| behind.find(')')).flatten().unwrap_or_default();
        let end = behind.get(name..).and_then(|it| it.find(|c: char| FORMAT_MARKS.contains(c)));
        let length = end.map_or(behind.len(), |it| name + it + 1);
        let mark = behind.get(..length).unwrap_or_default();
        made = match mark {
            "%" => made.append(&CodeValue::known("%")),
            _ if mark.starts_with(['(', '<', '{']) => made.append(&CodeValue::unknown()),
            _ => made.append(values.next().unwrap_or(&CodeValue::unknown())),
        };
        rest = behind.get(length..).unwrap_or_default();
    }
    made.append(&CodeValue::known(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the words that an expression can be behind some code. `?` is an unknown part.
    fn words(language: CodeLanguage, code: &str, expression: &str) -> Vec<String> {
        let tokens = ExpressionTokens::of(language, code);
        let imported = [("P", "pathlib.Path"), ("j", "os.path.join")];
        let around = CodeSurroundings {
            temporary: "/tmp".to_owned(),
            file: "./code".to_owned(),
            imported: imported.map(|(known, whole)| (known.to_owned(), whole.to_owned())).into(),
            ..CodeSurroundings::default()
        };
        let mut reader = PathReader::new(&tokens, around);
        // Behind the code, or in the call of `f`.
        reader.go_to(code.rfind("f(d)").unwrap_or(code.len()));
        let value = reader.read(expression);
        value.texts.iter().map(|it| it.in_shell().replace("${__unknown__}", "?")).collect()
    }

    #[test]
    fn python_builds_paths() {
        for (code, expression, expected) in [
            ("", "'a' + 'b' 'c'", vec!["abc"]),
            ("", "Path('~') / '.ssh' / name", vec!["~/.ssh/?"]),
            ("", "P.home().joinpath('a', 'b').parent", vec!["~/a"]),
            ("", "j('a', '/b', c)", vec!["/b/?"]),
            ("", "os.path.join(os.path.expanduser('~'), 'a')", vec!["~/a"]),
            ("", "os.environ['HOME'] + '/x'", vec!["~/x"]),
            ("", "os.environ.get('OUT', 'build')", vec!["?", "build"]),
            ("", "'%s/%s' % ('/srv', x)", vec!["/srv/?"]),
            ("", "'{}/{a}'.format('/srv', a='b')", vec!["/srv/b"]),
            ("", "'/'.join(['a', 'b', c])", vec!["a/b/?"]),
            ("", "'a' if x == 1 else 'b'", vec!["a", "b"]),
            ("", "Path.home().glob('*.md')", vec!["~/*.md"]),
            ("", "len('a')", vec!["?"]),
            ("", "lambda: 'a'", vec!["?"]),
            ("", "total / 2", vec!["?"]),
            ("", "[p for p in ['a', 'b']]", vec!["?"]),
            ("h = Path.home()\nd = h / 'w'", "d / f'{h}x'", vec!["~x"]),
            ("d = 'a'\nif x:\n    d = 'b'\nf(d)", "d", vec!["a", "b"]),
            ("d = 'a'\nd = 'b'\nf(d)", "d", vec!["b"]),
            ("d = 'a'\nd = d + 'b'\nf(d)", "d", vec!["ab"]),
            ("d = 'a'\nfor x in y:\n    f(d)\n    d = 'b'", "d", vec!["a", "b"]),
            ("def f():\n    d = 'a'\ndef g():\n    d = 'b'\n    f(d)", "d", vec!["b"]),
            ("d = 'a'\ndef f():\n    global d\n    d = 'b'\nf(d)", "d", vec!["a", "b"]),
            ("d = '~'\nd += '/a'\nf(d)", "d", vec!["~/a", "~/a?"]),
            ("for p in ['a', 'b']: f(p)", "p", vec!["a", "b"]),
            ("for r, d, f in os.walk('/srv'):\n    pass", "os.path.join(r, f)", vec!["/srv/?"]),
            ("with tempfile.TemporaryDirectory() as d:\n    pass", "d", vec!["/tmp/mktemp.XXXXXX"]),
            ("def f(a, b='x'):\n    return a / 'y'\nf(Path('z'))", "f(Path('z')), b", vec!["z/y"]),
            ("a, b = '1', 'x'", "b", vec!["x"]),
            ("d: Path = Path('x')", "d", vec!["x"]),
            ("self.d = 'x'", "self.d", vec!["x"]),
            ("if (d := 'x'): pass", "d", vec!["x"]),
            ("f(d='x')", "d", vec!["?"]),
            ("a = b\nb = a", "a", vec!["?"]),
            ("e = os.environ", "e['HOME']", vec!["~"]),
            ("", "os.path.join(*['a', 'b'])", vec!["a/b"]),
            ("", "pathlib.'~' / 'a'", vec!["~/a"]),
            ("", "os.path.expandvars('$HOME/a')", vec!["~/a"]),
            ("", "os.sep + 'srv'", vec!["/srv"]),
        ] {
            assert_eq!(
                words(CodeLanguage::Python, code, expression),
                expected,
                "{code} {expression}"
            );
        }
    }

    #[test]
    fn other_languages_build_paths() {
        for (language, code, expression, expected) in [
            (
                CodeLanguage::JavaScript,
                "const d = path.join(os.homedir(), '.aws')",
                "`${d}/x`",
                vec!["~/.aws/x"],
            ),
            (CodeLanguage::JavaScript, "for (const f of ['a', 'b']) g(f)", "f", vec!["a", "b"]),
            (
                CodeLanguage::JavaScript,
                "fs.readdirSync('d').forEach(f => g(f))",
                "path.join('d', f)",
                vec!["d/?"],
            ),
            (
                CodeLanguage::JavaScript,
                "['a'].map(x => 'b/' + x).forEach((y) => g(y))",
                "y",
                vec!["b/a"],
            ),
            (CodeLanguage::JavaScript, "", "process.env.HOME + '/x'", vec!["~/x"]),
            (CodeLanguage::JavaScript, "", "a === b ? 'x' : 'y'", vec!["x", "y"]),
            (CodeLanguage::JavaScript, "", "a / b", vec!["?"]),
            (CodeLanguage::JavaScript, "", "path.resolve(__dirname, 'dist')", vec!["./dist"]),
            (CodeLanguage::Ruby, "", "File.join(Dir.home, 'x')", vec!["~/x"]),
            (CodeLanguage::Ruby, "", "File.expand_path('x', '~')", vec!["~/x"]),
            (CodeLanguage::Ruby, "Dir.glob('/srv/*').each { |f| g f }", "f", vec!["/srv/*"]),
            (CodeLanguage::Ruby, "d = '/srv'", "\"#{d}/x\"", vec!["/srv/x"]),
            (CodeLanguage::Perl, "my $d = $ENV{HOME} . '/x';", "\"$d/y\"", vec!["~/x/y"]),
            (CodeLanguage::Perl, "for my $f (glob('/srv/*')) { g($f) }", "$f", vec!["/srv/*"]),
            (CodeLanguage::Perl, "", "join('/', 'a', 'b')", vec!["a/b"]),
        ] {
            assert_eq!(words(language, code, expression), expected, "{code} {expression}");
        }
    }

    #[test]
    fn limits_end_in_an_unknown_value() {
        let deep = format!("{}'a'{}", "(".repeat(500), ")".repeat(500));
        assert_eq!(words(CodeLanguage::Python, "", &deep), ["?"]);
        let long: String = (0..2_000).map(|it| format!("a{} = a{it} + a{it}\n", it + 1)).collect();
        assert_eq!(words(CodeLanguage::Python, &format!("a0 = 'x'\n{long}"), "a2000"), ["?"]);
        let many: String = (0..20).map(|it| format!("if x:\n    a = '{it}'\n")).collect();
        assert!(words(CodeLanguage::Python, &many, "a").contains(&"?".to_owned()));
        for part in
            ["a.", "f(", "[", "a = ", "'", "f'{", "a, ", "=> ", "for x in ", "def f(a", "x if "]
        {
            for language in [
                CodeLanguage::Python,
                CodeLanguage::JavaScript,
                CodeLanguage::Ruby,
                CodeLanguage::Perl,
            ] {
                words(language, &part.repeat(4_000), &part.repeat(200));
            }
        }
    }
}
