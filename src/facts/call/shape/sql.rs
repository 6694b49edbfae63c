//! Whether a text is SQL.

/// What statements are about that make, change or remove something.
const OBJECTS: [&str; 18] = [
    "collection",
    "column",
    "database",
    "extension",
    "function",
    "index",
    "keyspace",
    "materialized",
    "owned",
    "policy",
    "role",
    "schema",
    "sequence",
    "table",
    "tablespace",
    "trigger",
    "user",
    "view",
];

/// Whether one of the statements of a text begins as SQL does.
pub(super) fn is_sql(text: &str) -> bool {
    text.split(';').any(begins)
}

fn begins(text: &str) -> bool {
    let lower = code(text).to_lowercase();
    let mut words =
        lower.split(|c: char| c.is_whitespace() || c == '(').filter(|it| !it.is_empty());
    let (Some(verb), second) = (words.next(), words.next().unwrap_or_default()) else {
        return false;
    };
    let has = |word: &str| lower.split_whitespace().any(|it| it == word);
    match verb {
        "select" => has("from") || has("into"),
        "drop" | "alter" | "create" => {
            OBJECTS.contains(&second) || matches!(second, "or" | "temp" | "temporary" | "unique")
        }
        "truncate" => second == "table" || lower.split_whitespace().count() == 2,
        "delete" => second == "from",
        "insert" | "replace" | "merge" => second == "into",
        "update" => has("set"),
        "grant" | "revoke" => has("on") || has("to") || has("from"),
        "with" => has("as"),
        "explain" => matches!(second, "analyze" | "delete" | "insert" | "select" | "update"),
        _ => false,
    }
}

/// A text without the comments and brackets before it.
fn code(text: &str) -> &str {
    let mut rest = text.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
    loop {
        let after = match (rest.strip_prefix("--"), rest.strip_prefix("/*")) {
            (Some(line), _) => line.split_once('\n').map_or("", |it| it.1),
            (None, Some(block)) => block.split_once("*/").map_or("", |it| it.1),
            (None, None) => return rest,
        };
        rest = after.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
    }
}
