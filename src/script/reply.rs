//! Replies of agents and models: the JSON that prose and fences surround, and the verdict that a
//! text begins with. Nothing in a reply is trusted further than that.

use serde_json::Value;

/// Keys under which agent clients put the text of a reply (`claude -p --output-format json`,
/// `gemini --output-format json`).
const ENVELOPES: [&str; 2] = ["result", "response"];

/// Places at which a JSON object is looked for in prose.
const OBJECTS_TRIED_MAX: usize = 32;

/// The JSON object in a reply, without a client's envelope; its text where there is none.
#[must_use]
pub fn content(reply: &str) -> Value {
    let found = object(reply);
    let inner =
        found.as_ref().and_then(|it| ENVELOPES.iter().find_map(|key| it.get(key)?.as_str()));
    match inner {
        Some(text) => object(text).unwrap_or_else(|| Value::String(text.trim().to_owned())),
        None => found.unwrap_or_else(|| Value::String(reply.trim().to_owned())),
    }
}

/// The first JSON object in a text.
fn object(text: &str) -> Option<Value> {
    let starts = text.match_indices('{').take(OBJECTS_TRIED_MAX);
    starts.filter_map(|(at, _)| text.get(at..)).find_map(|rest| {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        values.next()?.ok().filter(Value::is_object)
    })
}

/// What a reply says of a question: `satisfied`, `unsatisfied`, or `unknown`. A verdict stands at
/// the beginning of a line, in capitals or with a colon behind it; no other word decides, so that
/// "no issues" or "nothing failed" in an explanation means nothing (amplihack took the word `no`
/// anywhere for a refusal).
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

fn line_verdict(line: &str) -> Option<&'static str> {
    let plain = line.trim_start_matches(|c: char| !c.is_alphanumeric());
    let said = |words: &str| {
        let (head, rest) = plain.split_at_checked(words.len())?;
        let ends = !rest.starts_with(|c: char| c.is_alphanumeric());
        let marked = head == words || rest.trim_start_matches(['*', '_']).starts_with(':');
        let alone = rest.chars().all(|c| !c.is_alphanumeric());
        (head.eq_ignore_ascii_case(words) && ends && (marked || alone)).then_some(())
    };
    if said("NOT SATISFIED").or_else(|| said("UNSATISFIED")).is_some() {
        Some("unsatisfied")
    } else {
        said("SATISFIED").map(|()| "satisfied")
    }
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
            (r#"{"response":"SATISFIED: fine"}"#, json!("SATISFIED: fine")),
            ("use {braces} and {\"a\": 3}", json!({"a": 3})),
            ("SATISFIED: fine\n", json!("SATISFIED: fine")),
            ("{ broken", json!("{ broken")),
            ("", json!("")),
        ] {
            assert_eq!(content(reply), expected, "{reply}");
        }
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
