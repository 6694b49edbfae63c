//! Texts for a reader within files: comments and literals of Rust, Markdown, packs.

use std::sync::{Arc, LazyLock};

use policyd::source::{Source, yaml};
use regex::Regex;
use serde_json::Value;

/// A text for a reader and the line on which it begins.
pub(crate) type Text = (usize, String);

/// Name of the texts that a guard shows.
pub(crate) const GUARD_MESSAGE: &str = "guard message";
/// Keys of packs whose values are texts for a reader.
const TEXT_KEYS: [&str; 12] = [
    "action",
    "description",
    "details",
    "evidence",
    "guidance",
    "message",
    "purpose",
    "question",
    "reason",
    "say",
    "text",
    "wrong",
];

/// A comment, a raw string, a string or a character of Rust.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    let raw = r###"(?-u:\b)b?r(?:"[^"]*"|#".*?"#|##".*?"##)"###;
    let rest = r#"//[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.[^'\n]*|[^\\'\n])'"#;
    Regex::new(&format!("(?s){raw}|{rest}")).unwrap()
});

/// Comments and string literals of Rust. The lines of one comment are joined with spaces.
pub(crate) fn rust_texts(source: &str) -> Vec<Text> {
    let mut texts: Vec<Text> = vec![];
    let (mut line, mut at, mut comment) = (1, 0, (0, ""));
    for token in TOKEN.find_iter(source) {
        line += source[at..token.start()].matches('\n').count();
        let text = token.as_str();
        if text.starts_with("//") {
            let inner = text.trim_start_matches(['/', '!']);
            let marker = &text[..text.len() - inner.len()];
            let continues = comment == (line - 1, marker) && !inner.trim().is_empty();
            match texts.last_mut().filter(|_| continues) {
                Some((_, before)) => *before = format!("{before} {}", inner.trim()),
                None => texts.push((line, inner.trim().to_owned())),
            }
            comment = if inner.trim().is_empty() { (0, "") } else { (line, marker) };
        } else if text.starts_with('"') {
            texts.push((line, literal(text)));
        } else if !text.starts_with('\'') {
            texts.push((line, text.to_owned()));
        }
        line += text.matches('\n').count();
        at = token.end();
    }
    texts
}

/// The text of a string literal without its escapes.
fn literal(source: &str) -> String {
    let (mut text, mut chars) = (String::new(), source.trim_matches('"').chars().peekable());
    while let Some(char) = chars.next() {
        match (char, chars.peek()) {
            ('\\', Some('\n')) => while chars.next_if(|it| it.is_whitespace()).is_some() {},
            ('\\', Some('n' | 't')) => text.extend(chars.next().map(|_| '\n')),
            ('\\', _) => text.extend(chars.next()),
            _ => text.push(char),
        }
    }
    text
}

/// Paragraphs of Markdown without code blocks; a list item, heading or table row is its own paragraph.
pub(crate) fn markdown_texts(source: &str) -> Vec<Text> {
    let (mut texts, mut is_code, mut continues): (Vec<Text>, bool, bool) = (vec![], false, false);
    for (index, line) in source.lines().enumerate() {
        let text = line.trim();
        if text.starts_with("```") {
            (is_code, continues) = (!is_code, false);
            continue;
        }
        if is_code || text.is_empty() {
            continues = false;
            continue;
        }
        let begins = text.starts_with(['#', '|', '-', '*', '>']);
        match texts.last_mut().filter(|_| continues && !begins) {
            Some((_, before)) => *before = format!("{before} {text}"),
            None => texts.push((index + 1, text.to_owned())),
        }
        continues = !text.starts_with(['#', '|']);
    }
    texts
}

/// Comments of a pack file, and the values under the keys that hold texts for a reader.
pub(crate) fn pack_texts(name: &str, source: &str) -> Vec<(String, Text)> {
    let mut texts: Vec<(String, Text)> = vec![];
    for (index, line) in source.lines().enumerate() {
        let comment = line.trim().strip_prefix('#').map(|it| it.trim().to_owned());
        texts.extend(comment.map(|it| ("comment".to_owned(), (index + 1, it))));
    }
    let file = Arc::new(Source { name: name.to_owned(), text: source.to_owned() });
    let value = yaml::parse(&file).0.map(|it| it.json()).unwrap_or_default();
    let mut open = vec![(String::new(), value)];
    while let Some((key, value)) = open.pop() {
        match value {
            Value::String(text) if TEXT_KEYS.contains(&key.as_str()) || key == GUARD_MESSAGE => {
                let first: String = text.split(['\n', '"', '\'']).next().unwrap().into();
                let words: Vec<&str> = first.split(' ').take(4).collect();
                let line = source.lines().position(|it| it.contains(&words.join(" ")));
                texts.push((key, (line.map_or(0, |it| it + 1), text)));
            }
            Value::Array(items) => open.extend(items.into_iter().map(|it| (key.clone(), it))),
            // The voice of a pirate is not the house style.
            Value::Object(fields) if fields.get("voice").is_some_and(|it| it == "pirate") => {}
            Value::Object(fields) => {
                let (is_guard, is_text) = (fields.contains_key("decision"), key == GUARD_MESSAGE);
                open.extend(fields.into_iter().map(|(name, it)| match name.as_str() {
                    "message" if is_guard => (GUARD_MESSAGE.to_owned(), it),
                    "text" if is_text => (GUARD_MESSAGE.to_owned(), it),
                    _ => (name, it),
                }));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    texts
}

/// Sentences of a paragraph; each cell of a table row is one.
pub(crate) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split(['|', ';', ':']).flat_map(|it| it.split(". "))
}
