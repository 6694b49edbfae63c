//! The table of secrets that `policies/formats/secrets.yaml` describes. `POLICYD_REGEN=1 cargo test --test repository
//! secret_formats` writes it.
use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde::Deserialize;

const DATA: &str = "policies/formats/secrets.yaml";
const TABLE: &str = "src/yaml/secrets/listed.rs";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Formats {
    tokens: Vec<Row>,
    statements: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    words: Vec<String>,
    pattern: String,
    value: String,
    example: String,
}

impl Row {
    /// The row as Rust.
    fn shown(&self) -> String {
        let value = match self.value.as_str() {
            "any" => "",
            "digit" => ".of(SecretValue::Digit)",
            "random" => ".of(SecretValue::Random)",
            other => panic!("{}: value `{other}`", self.name),
        };
        let words: Vec<String> = self.words.iter().map(|it| format!("{it:?}")).collect();
        let (name, pattern) = (&self.name, &self.pattern);
        assert!(!pattern.contains("\"##"), "{name}: the pattern ends the literal");
        let hint = words.join(", ");
        format!(
            "    SecretFormat::new({name:?}, Hint::Any(&[{hint}]), r##\"{pattern}\"##){value},\n"
        )
    }
}

#[test]
fn the_table_is_current_and_its_rows_are_complete() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let formats: Formats =
        serde_yaml::from_str(&fs::read_to_string(root.join(DATA)).unwrap()).unwrap();
    assert!(formats.tokens.len() >= 80 && formats.statements.len() >= 40);
    let mut text = format!(
        "//! Secrets by their beginning, and by the statement around them. Generated from `{DATA}` by\n\
         //! `POLICYD_REGEN=1 cargo test --test repository secret_formats`.\n\n\
         use super::{{Hint, SecretFormat, SecretValue}};\n\n"
    );
    let rows = [("TOKENS", &formats.tokens), ("STATEMENTS", &formats.statements)];
    for (name, rows) in rows {
        let count = rows.len();
        writeln!(text, "pub(super) static {name}: [SecretFormat; {count}] = [").unwrap();
        text.extend(rows.iter().map(Row::shown));
        text.push_str("];\n\n");
    }
    text.push_str("#[cfg(test)]\npub(super) static EXAMPLES: &[(&str, &str)] = &[\n");
    for row in rows.iter().flat_map(|(_, rows)| *rows) {
        let (name, example) = (&row.name, &row.example);
        assert!(!row.words.is_empty() && row.words.iter().all(|it| it.len() >= 2), "{name}");
        assert!(example.contains('«') && example.contains('»'), "{name}: `example`");
        writeln!(text, "    ({name:?}, {example:?}),").unwrap();
    }
    text.push_str("];\n");
    let table = root.join(TABLE);
    if std::env::var_os("POLICYD_REGEN").is_some() {
        fs::write(&table, &text).unwrap();
    }
    let current = fs::read_to_string(&table).unwrap_or_default();
    assert!(
        current == text,
        "{TABLE} is not current: POLICYD_REGEN=1 cargo test --test repository secret_formats"
    );
}
