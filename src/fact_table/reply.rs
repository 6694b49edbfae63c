//! Replies of agents and models: the JSON that prose and fences surround, and the verdict that a
//! text begins with. Nothing in a reply is trusted further than that.

use serde_json::Value;

/// Places at which a JSON object is looked for in prose.
const OBJECTS_TRIED_MAX: usize = 32;

/// Why a reply has no content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    #[error("it answered with nothing")]
    Empty,
    /// The client reports an error. Contains its message.
    #[error("{0}")]
    Failed(String),
}

/// Returns the JSON object in a reply, without the envelope of the client, or else the text of the
/// reply.
///
/// # Errors
/// [`ReplyError`] if the reply is empty, or the client reports an error.
pub fn content(reply: &str) -> Result<Value, ReplyError> {
    let whole: Option<Value> = serde_json::from_str(reply).ok();
    // Clients that print every event end with the result.
    let mut events = whole.as_ref().and_then(Value::as_array).into_iter().flatten().rev();
    let last = events.find(|it| envelope(it).is_some()).cloned();
    let failed = |it: &Value| it.get("is_error") == Some(&Value::Bool(true));
    let Some(found) = last.or_else(|| object(reply)) else {
        let text = reply.trim();
        let text = Some(text).filter(|it| !it.is_empty());
        return text.map(|it| Value::String(it.to_owned())).ok_or(ReplyError::Empty);
    };
    match envelope(&found) {
        Some(text) if failed(&found) => Err(ReplyError::Failed(text.to_owned())),
        None if failed(&found) => Err(ReplyError::Failed(found.to_string())),
        None => Ok(found),
        Some(text) => Ok(object(text).unwrap_or_else(|| Value::String(text.trim().to_owned()))),
    }
}

/// The text that a client wraps: `claude -p --output-format json` has it under `result`,
/// `gemini --output-format json` under `response`.
fn envelope(object: &Value) -> Option<&str> {
    let alone = object.as_object()?.len() == 1;
    let text = |key: &str| object.get(key)?.as_str();
    let claude = object.get("type").and_then(Value::as_str) == Some("result");
    let gemini = object.get("stats").is_some();
    let result = text("result").filter(|_| claude || alone);
    result.or_else(|| text("response").filter(|_| gemini || alone))
}

/// The first JSON object in a text that holds something.
fn object(text: &str) -> Option<Value> {
    let starts = text.match_indices('{').take(OBJECTS_TRIED_MAX);
    starts.filter_map(|(at, _)| text.get(at..)).find_map(|rest| {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        values.next()?.ok().filter(|it| it.as_object().is_some_and(|it| !it.is_empty()))
    })
}

/// Returns the verdict of a judge's reply: `satisfied`, `unsatisfied`, or `unknown`. A verdict begins a line. It is in
/// capitals, or a colon or nothing follows it. No other word decides, so that "no issues" or "nothing failed" in an
/// explanation does not count (amplihack counts the word `no` anywhere as a refusal). A verdict that takes itself back
/// (`Satisfied: no, …`) does not count.
#[must_use]
pub fn verdict(reply: &Value) -> &'static str {
    match reply {
        Value::Bool(true) => "satisfied",
        Value::Bool(false) => "unsatisfied",
        Value::String(text) => text.lines().find_map(line_verdict).unwrap_or("unknown"),
        // `{"satisfied": false, "reason": …}`
        Value::Object(fields) => ["verdict", "satisfied"]
            .iter()
            .find_map(|key| fields.get(*key))
            .filter(|it| !it.is_object())
            .map_or("unknown", verdict),
        Value::Null | Value::Number(_) | Value::Array(_) => "unknown",
    }
}

/// Whether a reply decides anything: one that does not is asked for again.
#[must_use]
pub fn decides(reply: &Value) -> bool {
    let fields = reply.as_object().into_iter().flat_map(|it| it.values());
    fields.chain([reply]).any(|it| verdict(it) != "unknown")
}

fn line_verdict(line: &str) -> Option<&'static str> {
    let plain = line.trim_start_matches(|c: char| !c.is_alphanumeric());
    // What follows the words of a verdict, where they are one.
    let said = |words: &str| {
        let (head, rest) = plain.split_at_checked(words.len())?;
        let ends = !rest.starts_with(|c: char| c.is_alphanumeric());
        let marked = head == words || rest.trim_start_matches(['*', '_']).starts_with(':');
        let alone = rest.chars().all(|c| !c.is_alphanumeric());
        (head.eq_ignore_ascii_case(words) && ends && (marked || alone)).then_some(rest)
    };
    if said("NOT SATISFIED").or_else(|| said("UNSATISFIED")).is_some() {
        return Some("unsatisfied");
    }
    said("SATISFIED").filter(|rest| !takes_back(rest)).map(|_| "satisfied")
}

/// Whether a refusal follows the verdict at once, or a question mark. `no issues` explains,
/// `no, …` refuses.
fn takes_back(rest: &str) -> bool {
    let said = rest.trim_start_matches(|c: char| !c.is_alphanumeric());
    let end = said.find(|c: char| !c.is_alphanumeric()).unwrap_or(said.len());
    let (first, after) = said.split_at(end);
    let goes_on = after.strip_prefix(' ').is_some_and(|it| it.starts_with(char::is_alphanumeric));
    rest.starts_with('?')
        || first.eq_ignore_ascii_case("not")
        || first.eq_ignore_ascii_case("false")
        || (first.eq_ignore_ascii_case("no") && !goes_on)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_json_of_a_reply_is_found() {
        for (reply, expected) in [
            (r#"{"a": "SATISFIED"}"#, json!({"a": "SATISFIED"})),
            ("Here it is:\n```json\n{\"a\": 1}\n```\nDone.", json!({"a": 1})),
            (r#"{"type":"result","result":"```json\n{\"a\": 2}\n```"}"#, json!({"a": 2})),
            (r#"{"response":"SATISFIED: fine","stats":{}}"#, json!("SATISFIED: fine")),
            (r#"[{"type":"init"},{"type":"result","result":"{\"a\": 4}"}]"#, json!({"a": 4})),
            (r#"{"a": "SATISFIED", "result": "x"}"#, json!({"a": "SATISFIED", "result": "x"})),
            ("use {braces}, format!(\"{}\") and {\"a\": 3}", json!({"a": 3})),
            ("SATISFIED: fine\n", json!("SATISFIED: fine")),
            ("{ broken", json!("{ broken")),
        ] {
            assert_eq!(content(reply), Ok(expected), "{reply}");
        }
        let failed = r#"{"type":"result","is_error":true,"result":"API Error: overloaded"}"#;
        assert_eq!(content(failed), Err(ReplyError::Failed("API Error: overloaded".to_owned())));
        for failed in
            ["", " \n", r#"{"type":"result","subtype":"error_max_turns","is_error":true}"#]
        {
            assert!(content(failed).is_err(), "{failed}");
        }
        assert!(decides(&json!({"a": "SATISFIED: x"})) && decides(&json!("NOT SATISFIED")));
        assert!(!decides(&json!({"a": "perhaps"})) && !decides(&json!("")));
    }

    #[test]
    fn a_verdict_stands_at_the_beginning_of_a_line() {
        for (reply, expected) in [
            (json!("SATISFIED: all tests pass"), "satisfied"),
            (json!("SATISFIED: no issues, nothing is missing or failed"), "satisfied"),
            (json!("NOT SATISFIED: tests were not run"), "unsatisfied"),
            (json!("UNSATISFIED - two todos are open"), "unsatisfied"),
            (json!("**Not satisfied**: see below"), "unsatisfied"),
            (json!("- Satisfied: yes"), "satisfied"),
            (json!("satisfied"), "satisfied"),
            (json!("Let me see.\n\nNOT SATISFIED: no test"), "unsatisfied"),
            (json!("Satisfied users are what we want"), "unknown"),
            (json!("Satisfied: no, the parser is missing"), "unknown"),
            (json!("Satisfied: no"), "unknown"),
            (json!("SATISFIED: not at all"), "unknown"),
            (json!("SATISFIED? No."), "unknown"),
            (json!("**SATISFIED**: no test is missing"), "satisfied"),
            (json!("No problems were found."), "unknown"),
            (json!("SATISFIEDLY done"), "unknown"),
            (json!(""), "unknown"),
            (json!(true), "satisfied"),
            (json!({"satisfied": false, "reason": "x"}), "unsatisfied"),
            (json!({"verdict": "SATISFIED"}), "satisfied"),
            (json!({"other": 1}), "unknown"),
            (json!(null), "unknown"),
        ] {
            assert_eq!(verdict(&reply), expected, "{reply}");
        }
    }
}
