//! Laws of the YAML tree, on generated documents in all five scalar styles: it says what
//! `serde_yaml` says, and every decoded character is traced to the bytes it was written with.
#![expect(clippy::unwrap_used, reason = "a broken law is a failing test")]

use std::sync::Arc;

use policyd_yaml::meaning::{ScalarSense, meaning};
use policyd_yaml::scalar::decoded_map;
use policyd_yaml::{Diagnostic, Node, NodeKind, ScalarStyle, Source, yaml};
use proptest::prelude::*;
use serde_yaml::Value;

/// Chooses `true` once in so many times.
type Choose<'a> = &'a mut dyn FnMut(u8) -> bool;

const TOKEN: &str = "zq7é";
const STYLES: [ScalarStyle; 5] = [
    ScalarStyle::Plain,
    ScalarStyle::SingleQuoted,
    ScalarStyle::DoubleQuoted,
    ScalarStyle::Literal,
    ScalarStyle::Folded,
];

/// A document to be written: its leaves say how.
#[derive(Debug, Clone)]
enum Tree {
    Word(&'static str),
    Text(Text),
    List(Vec<Tree>),
    Map(Vec<Tree>),
}

/// Lines of words, and the choices a writer has: where to fold, what to escape.
#[derive(Debug, Clone)]
struct Text {
    lines: Vec<Vec<String>>,
    style: ScalarStyle,
    choices: Vec<u8>,
}

fn word() -> impl Strategy<Value = String> {
    // Letters around anything that means something to YAML.
    "[a-zé漢😀][a-z'\"\\\\#%{}\\[\\]&*!|>,?@`:é漢😀\u{301}-]{0,5}[a-zé漢😀]"
}

fn text() -> impl Strategy<Value = Text> {
    let line = prop::collection::vec(word(), 1..5);
    let choices = prop::collection::vec(any::<u8>(), 1..40);
    (prop::collection::vec(line, 1..4), prop::sample::select(&STYLES[..]), choices)
        .prop_map(|(lines, style, choices)| Text { lines, style, choices })
}

fn tree() -> impl Strategy<Value = Tree> {
    let words = [
        "true",
        "No",
        "~",
        "",
        "0x1f",
        "1e3",
        "12:30",
        "0755",
        "-.5",
        "1_000",
        "null",
        "on",
        ".inf",
        "2026-01-31",
        "-7",
        "+7",
        "18446744073709551615",
        "0o17",
        "Nil",
        "f",
        "t-1",
        "1.2.3",
    ];
    let leaf = prop_oneof![
        1 => prop::sample::select(words.to_vec()).prop_map(Tree::Word),
        3 => text().prop_map(Tree::Text),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(Tree::List),
            prop::collection::vec(inner, 1..4).prop_map(Tree::Map),
        ]
    })
}

impl Text {
    /// What a reader must get; block scalars end with a line break.
    fn meant(&self) -> String {
        let lines: Vec<String> = self.lines.iter().map(|line| line.join(" ")).collect();
        let end = if self.is_block() { "\n" } else { "" };
        lines.join("\n") + end
    }

    fn is_block(&self) -> bool {
        matches!(self.style, ScalarStyle::Literal | ScalarStyle::Folded)
    }

    fn written(&self, indent: usize) -> String {
        let margin = " ".repeat(indent);
        let mut choices = self.choices.iter().copied().cycle();
        let mut choose = |one_in: u8| choices.next().is_some_and(|it| it % one_in == 0);
        match self.style {
            ScalarStyle::Plain => self.folded_lines(&margin, &mut choose, &verbatim),
            ScalarStyle::SingleQuoted => {
                let quoted = |word: &str, _: Choose| word.replace('\'', "''");
                format!("'{}'", self.folded_lines(&margin, &mut choose, &quoted))
            }
            ScalarStyle::DoubleQuoted => {
                let escape = |word: &str, choose: Choose| {
                    word.chars().map(|c| escaped(c, &margin, choose)).collect()
                };
                format!("\"{}\"", self.folded_lines(&margin, &mut choose, &escape))
            }
            ScalarStyle::Literal => {
                let lines: Vec<String> =
                    self.lines.iter().map(|line| format!("\n{margin}{}", line.join(" "))).collect();
                format!("|{}", lines.concat())
            }
            ScalarStyle::Folded => {
                format!(">\n{margin}{}", self.folded_lines(&margin, &mut choose, &verbatim))
            }
        }
    }

    /// Words joined by blanks or single line breaks, lines by double ones.
    fn folded_lines(
        &self,
        margin: &str,
        choose: Choose,
        write: &dyn Fn(&str, Choose) -> String,
    ) -> String {
        let mut written = String::new();
        for (row, line) in self.lines.iter().enumerate() {
            if row > 0 {
                written += &format!("\n\n{margin}");
            }
            for (column, word) in line.iter().enumerate() {
                match (column, choose(3)) {
                    (0, _) => {}
                    (_, true) => written += &format!("\n{margin}"),
                    (_, false) => written.push(' '),
                }
                written += &write(word, choose);
            }
        }
        written
    }
}

fn verbatim(word: &str, _: Choose) -> String {
    word.to_owned()
}

fn escaped(c: char, margin: &str, choose: Choose) -> String {
    let code = u32::from(c);
    let broken = if choose(11) { format!("\\\n{margin}") } else { String::new() };
    let text = match c {
        '"' | '\\' => format!("\\{c}"),
        _ if code < 0x100 && choose(5) => format!("\\x{code:02x}"),
        _ if code < 0x1_0000 && choose(7) => format!("\\u{code:04X}"),
        _ if choose(7) => format!("\\U{code:08x}"),
        _ => c.to_string(),
    };
    format!("{broken}{text}")
}

fn write(tree: &Tree, indent: usize, out: &mut String) {
    let margin = " ".repeat(indent);
    match tree {
        Tree::Word(word) => *out += &format!(" {word}\n"),
        Tree::Text(text) => *out += &format!(" {}\n", text.written(indent + 2)),
        Tree::List(items) => {
            out.push('\n');
            for item in items {
                *out += &format!("{margin}-");
                write(item, indent + 2, out);
            }
        }
        Tree::Map(values) => {
            out.push('\n');
            for (at, value) in values.iter().enumerate() {
                *out += &format!("{margin}\"key\\x20{at}\": # comment\n{margin} ");
                write(value, indent + 2, out);
            }
        }
    }
}

/// The document as a file: a list, so that any tree can be its root.
fn document(tree: &Tree, ending: &str, bom: bool, cut: bool) -> String {
    let mut text = String::from("-");
    write(tree, 2, &mut text);
    let text = if cut { text.trim_end_matches('\n') } else { &text };
    let bom = if bom { "\u{feff}" } else { "" };
    format!("{bom}{}", text.replace('\n', ending))
}

fn parse(text: &str) -> (Option<Node>, Vec<Diagnostic>) {
    yaml::parse(&Arc::new(Source { name: "generated.yaml".to_owned(), text: text.to_owned() }))
}

fn read(text: &str) -> Node {
    let (root, findings) = parse(text);
    assert_eq!(findings, [], "{text}");
    root.unwrap()
}

fn same(node: &Node, value: &Value) -> bool {
    match (&node.kind, value) {
        (NodeKind::Scalar(scalar), _) => match (meaning(scalar), value) {
            (ScalarSense::Null, Value::Null) => true,
            (ScalarSense::Bool(a), Value::Bool(b)) => a == *b,
            (ScalarSense::Int(a), Value::Number(b)) => b.as_i64() == Some(a),
            (ScalarSense::Number(a), Value::Number(b)) => {
                b.as_i64().is_none() && b.as_f64() == Some(a)
            }
            (ScalarSense::Text, Value::String(b)) => scalar.text == *b,
            _ => false,
        },
        (NodeKind::List(items), Value::Sequence(values)) => {
            items.len() == values.len() && items.iter().zip(values).all(|(a, b)| same(a, b))
        }
        (NodeKind::Map(entries), Value::Mapping(values)) => {
            entries.len() == values.len()
                && entries.iter().zip(values).all(|((k, v), (a, b))| same(k, a) && same(v, b))
        }
        _ => false,
    }
}

fn scalars(node: &Node) -> Vec<&Node> {
    match &node.kind {
        NodeKind::Scalar(_) => vec![node],
        NodeKind::List(items) => items.iter().flat_map(scalars).collect(),
        NodeKind::Map(entries) => {
            entries.iter().flat_map(|(k, v)| [scalars(k), scalars(v)].concat()).collect()
        }
        NodeKind::Invalid => Vec::new(),
    }
}

fn texts(tree: &Tree) -> Vec<String> {
    match tree {
        Tree::Word(_) => Vec::new(),
        Tree::Text(text) => vec![text.meant()],
        Tree::List(trees) | Tree::Map(trees) => trees.iter().flat_map(texts).collect(),
    }
}

/// The text that a slice of a scalar was written for.
fn unescaped(slice: &str, style: ScalarStyle) -> String {
    match style {
        ScalarStyle::DoubleQuoted => serde_yaml::from_str(&format!("\"{slice}\"")).unwrap(),
        ScalarStyle::SingleQuoted => slice.replace("''", "'"),
        ScalarStyle::Plain | ScalarStyle::Literal | ScalarStyle::Folded => slice.to_owned(),
    }
}

/// Every scalar has an exact map, and each character outside line folding re-decodes.
fn traces_back(node: &Node) {
    let scalar = node.scalar().unwrap();
    let map = decoded_map(node).unwrap();
    assert_eq!(map.text(), scalar.text);
    for (at, c) in scalar.text.char_indices().filter(|(_, c)| !c.is_whitespace()) {
        let span = node.sub_span(at..at + c.len_utf8());
        assert_eq!(unescaped(span.text(), scalar.style), c.to_string(), "{}", node.span.text());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_tree_says_what_serde_yaml_says(
        tree in tree(), crlf: bool, bom: bool, cut: bool,
    ) {
        let text = document(&tree, if crlf { "\r\n" } else { "\n" }, bom, cut);
        let root = read(&text);
        let value: Value = serde_yaml::from_str(&text).unwrap();
        prop_assert!(same(&root, &value), "{text}\n{root:#?}\n{value:#?}");
    }

    #[test]
    fn every_scalar_is_traced_back(tree in tree(), crlf: bool, bom: bool, cut: bool) {
        let text = document(&tree, if crlf { "\r\n" } else { "\n" }, bom, cut);
        let root = read(&text);
        for node in scalars(&root) {
            traces_back(node);
        }
        let read: Vec<String> = scalars(&root)
            .iter()
            .filter_map(|node| node.text())
            .map(|it| it.trim_end_matches('\n').to_owned())
            .collect();
        for meant in texts(&tree) {
            prop_assert!(read.contains(&meant.trim_end_matches('\n').to_owned()), "{meant}\n{text}");
        }
    }

    #[test]
    fn a_token_is_found_in_every_style(text in text(), at in any::<prop::sample::Index>()) {
        for style in STYLES {
            let mut text = Text { style, ..text.clone() };
            let row = at.index(text.lines.len());
            let line = &mut text.lines[row];
            line.insert(at.index(line.len() + 1), TOKEN.to_owned());
            let root = read(&document(&Tree::Text(text), "\n", false, false));
            let node = root.items().unwrap().first().unwrap();
            let decoded = node.text().unwrap();
            for (start, _) in decoded.match_indices(TOKEN) {
                let span = node.sub_span(start..start + TOKEN.len());
                prop_assert_eq!(unescaped(span.text(), style), TOKEN);
            }
        }
    }

    /// Text that no writer would write: wherever it reads at all, it is traced back.
    #[test]
    fn hostile_scalars_are_traced_back_or_refused(
        header in prop::sample::select(vec!["", "'", "\"", "|", ">", "|-", ">+", ">2", "|1-", "|+ # c"]),
        body in "([ \\ta'\"\\\\é😀#:-]|\n|\r\n|\n   |\n     |\n\t|\\\\\n  |\\\\x41|\\\\u00e9|''|\\\\ ){0,24}",
    ) {
        let close = if matches!(header, "'" | "\"") { header } else { "" };
        let start = if header.starts_with(['|', '>']) { "\n   " } else { "" };
        let text = format!("a: {header}{start}{body}{close}\nb: x\n");
        let (root, findings) = parse(&text);
        if findings.is_empty() {
            for node in scalars(&root.unwrap()) {
                if let Some(map) = decoded_map(node) {
                    prop_assert_eq!(map.text(), &node.scalar().unwrap().text);
                } else {
                    let block = node.scalar().unwrap().text.trim().is_empty();
                    prop_assert!(block || header.starts_with(['|', '>']), "{text:?}");
                }
            }
        }
    }
}

#[test]
fn escapes_of_all_kinds_are_traced_back() {
    let text = r#"when: "\0\a\b\t\n\v\f\r\e\N\_\L\P\ \"\/\\\x41\u00e9\ud83d\ude00\U0001F600x""#;
    let root = read(text);
    let node = root.get("when").unwrap();
    let decoded = node.text().unwrap();
    assert_eq!(decoded_map(node).unwrap().text(), decoded);
    let at = decoded.find('😀').unwrap();
    assert_eq!(node.sub_span(at..at + 4).text(), r"\ud83d\ude00");
    let end = decoded.len();
    assert_eq!(node.sub_span(end - 1..end).text(), "x");
    assert_eq!(node.sub_span(end..end).start, node.span.end - 1);
    assert_eq!(node.sub_span(0..end + 1), node.span, "outside the text the whole scalar answers");
}

#[test]
fn blocks_with_indicators_blank_lines_and_deeper_lines_are_traced_back() {
    let texts = [
        "a: |2-\n    deeper\n  x == 1\n\n\n  last\n\n",
        "a: >+\n\n  one\n  two\n\n    deeper\n    still\n  three\n\n",
        "- >-\n  no end",
        "- |\r\n  one\r\n\r\n  two\r\n",
        "a: # c\n  >-\n  one\n\n\n  two\n",
    ];
    for text in texts {
        let root = read(text);
        scalars(&root).into_iter().for_each(traces_back);
    }
}

#[test]
fn both_readers_agree_on_the_end_of_the_file() {
    let texts = [
        "- |\n  x",
        "- |\n  x\n",
        "- |+\n  x\n  ",
        "- >2\n  x\n     ",
        "- >+\n   ",
        "- |-\n  x\n\n",
    ];
    for text in texts {
        let value: Value = serde_yaml::from_str(text).unwrap();
        assert!(same(&read(text), &value), "{text:?}");
    }
}

/// U+0085, U+2028 and U+2029 end a line for `serde_yaml` and not for the event parser.
#[test]
fn characters_on_which_readers_differ_are_refused() {
    for c in ['\u{85}', '\u{2028}', '\u{2029}', '\u{feff}'] {
        let (_, findings) = parse(&format!("a: 'x{c}y'\n"));
        let codes: Vec<&str> = findings.iter().map(|it| it.code).collect();
        assert_eq!(codes, ["yaml-syntax"]);
        assert_eq!(findings.first().unwrap().span.text(), c.to_string());
    }
    assert_eq!(read("a: \"\\u2028\"").get("a").unwrap().text(), Some("\u{2028}"));
}
