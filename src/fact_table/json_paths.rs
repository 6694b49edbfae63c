//! Paths into JSON: the answers of probes, and files of the project.

use rhai::Dynamic;
use serde_json::Value;

use super::FactError;
use super::dynamic::count;

/// Returns the values at a path such as `a.b[].c`, `a[0].c` or `[head=main].ci`. The empty path selects the whole
/// answer. An invalid path selects nothing.
pub(super) fn values<'v>(root: &'v Value, path: &str) -> Vec<&'v Value> {
    let mut found = vec![root];
    let mut rest = path;
    while !rest.is_empty() {
        let (key, after) = rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len()));
        if !key.is_empty() {
            found = found.into_iter().filter_map(|it| it.get(key)).collect();
        }
        rest = after.strip_prefix('.').unwrap_or(after);
        if let Some(inside) = rest.strip_prefix('[') {
            let Some((wanted, after)) = inside_brackets(inside) else { return Vec::new() };
            found = elements(found, wanted);
            rest = after.strip_prefix('.').unwrap_or(after);
        }
    }
    found
}

/// Returns the first value as a whole number; 0 without one.
///
/// # Errors
/// The value is something else.
pub(super) fn whole_number(found: &[&Value]) -> Result<Dynamic, FactError> {
    match found.first() {
        None | Some(Value::Null) => Ok(count(0)),
        Some(value) => {
            let number = value.as_i64().ok_or_else(|| format!("`{value}` is not a whole number"));
            Ok(count(number?))
        }
    }
}

/// Returns the values at a path as texts, without empty ones.
pub(super) fn texts_at(root: &Value, path: &str) -> Vec<String> {
    let (path, keys) = split_keys(path);
    let found = values(root, path).into_iter().map(|it| joined_text(it, keys));
    found.filter(|it| !it.is_empty()).collect()
}

/// A JSON value as text: texts as they are, nothing for null, JSON for the rest.
pub(super) fn json_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// Splits the keys of a last step `{name,url}` off a path.
fn split_keys(path: &str) -> (&str, Option<&str>) {
    let keys = path.strip_suffix('}').and_then(|it| it.rsplit_once('{'));
    keys.map_or((path, None), |(path, keys)| (path.trim_end_matches('.'), Some(keys)))
}

/// Returns a value as text: that of its keys, joined, if keys are asked for.
fn joined_text(value: &Value, keys: Option<&str>) -> String {
    let Some(keys) = keys else { return json_text(value) };
    let texts = keys.split(',').filter_map(|key| value.get(key.trim())).map(json_text);
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Elements of lists: all of them, one by its place, or those with or without a certain value; one such
/// condition may follow another. An element that lacks the key is not among either.
fn elements<'v>(found: Vec<&'v Value>, wanted: &str) -> Vec<&'v Value> {
    let (lists, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|it| it.is_array());
    let lists = lists.into_iter().filter_map(Value::as_array);
    match (wanted.split_once('='), wanted.parse::<usize>()) {
        (Some((key, text)), _) => {
            let (key, is_wanted) = key.strip_suffix('!').map_or((key, true), |key| (key, false));
            let fits =
                |it: &&Value| it.get(key).is_some_and(|it| (json_text(it) == text) == is_wanted);
            others.into_iter().chain(lists.flatten()).filter(fits).collect()
        }
        (None, Ok(place)) => lists.filter_map(|it| it.get(place)).collect(),
        (None, Err(_)) if wanted.is_empty() => lists.flatten().collect(),
        (None, Err(_)) => Vec::new(),
    }
}

/// What stands before the bracket that closes a step, and what follows; a wanted value may contain
/// brackets, too.
fn inside_brackets(rest: &str) -> Option<(&str, &str)> {
    let closes = |after: &str| after.is_empty() || after.starts_with(['.', '[']);
    rest.match_indices(']').find_map(|(at, _)| {
        let after = rest.get(at.saturating_add(1)..).filter(|it| closes(it))?;
        Some((rest.get(..at)?, after))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_into_lists() {
        let answer = serde_json::json!({"a": [{"b": "x"}, {"b": null}, {"c": 1}], "n": 3});
        let texts = |path| values(&answer, path).into_iter().map(json_text).collect::<Vec<_>>();
        assert_eq!(texts("a[].b"), ["x", ""]);
        assert_eq!(texts("n"), ["3"]);
        assert!(texts("missing[].b").is_empty());
        let pulls = serde_json::json!([
            {"head": "v1.2", "ci": "success", "labels": [{"name": "x"}]},
            {"head": "main", "ci": "failure"},
            {"head": "v1.2", "ci": "pending"},
        ]);
        let texts = |path| values(&pulls, path).into_iter().map(json_text).collect::<Vec<_>>();
        assert_eq!(texts("[head=v1.2].ci"), ["success", "pending"]);
        assert_eq!(texts("[head=v1.2].labels[].name"), ["x"]);
        assert_eq!(texts("[].head"), ["v1.2", "main", "v1.2"]);
        assert_eq!(texts("[head=v1.2][ci=pending].head"), ["v1.2"]);
        assert_eq!(texts("[1].head"), ["main"]);
        for nowhere in ["[head=other].ci", "[head", "[9].head", "[-1].head", "[x].head", "[]head"] {
            assert!(texts(nowhere).is_empty(), "{nowhere}");
        }
        assert_eq!(texts("[ci!=success].head"), ["main", "v1.2"]);
        assert_eq!(texts("[ci!=success][ci!=pending].head"), ["main"]);
        assert!(texts("[state!=open].head").is_empty(), "no element has the key");
        let joined = |path: &str| {
            let (path, keys) = split_keys(path);
            values(&pulls, path).into_iter().map(|it| joined_text(it, keys)).collect::<Vec<_>>()
        };
        assert_eq!(joined("[].{head,ci,url}"), ["v1.2 success", "main failure", "v1.2 pending"]);
        assert_eq!(joined("[head=main].head"), ["main"]);
        let odd = serde_json::json!([{"head": "feat]x", "ci": "failure"}]);
        assert_eq!(values(&odd, "[head=feat]x].ci"), [&serde_json::json!("failure")]);
    }
}
