//! Events of a supervised run: as data with shipwright's names, and as human-readable lines.

use std::time::Duration;

use serde_json::{Map, Value};

use policyd_base::text::counted;
use policyd_state::run::RunStatus;
use policyd_state::run::budget::TurnCost;
use policyd_yaml::time::{Timestamp, short_text};

/// An event of a run: `ts`, `ts_epoch` and `type` first, which no field replaces.
#[must_use]
pub fn event(kind: &str, now: Timestamp, fields: &[(&str, Value)]) -> Value {
    let mut all = Map::new();
    all.insert("ts".to_owned(), now.to_string().into());
    all.insert("ts_epoch".to_owned(), now.millis().div_euclid(1_000).into());
    all.insert("type".to_owned(), kind.into());
    for (key, value) in fields {
        if !all.contains_key(*key) {
            all.insert((*key).to_owned(), value.clone());
        }
    }
    Value::Object(all)
}

/// An event that is made already, with `ts` and `ts_epoch` where it has none.
#[must_use]
pub fn stamped(mut event: Value, now: Timestamp) -> Value {
    if let Value::Object(fields) = &mut event
        && !fields.contains_key("ts")
    {
        fields.insert("ts".to_owned(), now.to_string().into());
        fields.insert("ts_epoch".to_owned(), now.millis().div_euclid(1_000).into());
    }
    event
}

/// A field that is given as text: a number where it is written as JSON has them, text else. What
/// looks like a number and is not one (`0123`, `1.`) stays text, so that the line is sound.
#[must_use]
pub fn typed(text: &str) -> Value {
    let plain = text.bytes().all(|it| it.is_ascii_digit() || matches!(it, b'-' | b'.'));
    let number = serde_json::from_str::<serde_json::Number>(text).ok().filter(|_| plain);
    number.map_or_else(|| text.into(), Value::Number)
}

/// Fields of an event that are read often.
struct Fields<'e>(&'e Value);

impl Fields<'_> {
    fn text(&self, key: &str) -> &str {
        self.0.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    fn count(&self, key: &str) -> u64 {
        self.0.get(key).and_then(Value::as_u64).unwrap_or(0)
    }

    fn cost(&self) -> TurnCost {
        let known_usd = self.0.get("cost_usd").and_then(Value::as_f64).unwrap_or(0.0);
        let unpriced = u32::try_from(self.count("unpriced_turns")).unwrap_or(u32::MAX);
        TurnCost { known_usd, unpriced }
    }

    fn time(&self, key: &str) -> String {
        time_text(Duration::from_millis(self.count(key)))
    }
}

/// Formats a duration. Below 10 seconds it is exact enough that the times of short turns add up.
fn time_text(duration: Duration) -> String {
    let millis = duration.as_millis();
    match millis {
        0..1_000 => format!("{millis}ms"),
        1_000..10_000 => format!("{}.{}s", millis / 1_000, millis % 1_000 / 100),
        _ => short_text(duration),
    }
}

/// Formats an event as a line; `None` for events that only programs read.
#[must_use]
pub fn line(event: &Value) -> Option<String> {
    let it = Fields(event);
    Some(match it.text("type") {
        "loop.start" => format!("run {}: {}", it.text("run"), first_line(it.text("goal"))),
        "loop.resume" => {
            format!("run {} goes on after turn {}", it.text("run"), it.count("iteration"))
        }
        "loop.iteration_start" => {
            let again = it.count("attempt");
            let again = if again > 0 { format!(", attempt {}", again + 1) } else { String::new() };
            format!("turn {} of {}{again}", it.count("iteration"), it.count("max_iterations"))
        }
        "loop.iteration_complete" => iteration(&it),
        "loop.completion_refused" => format!("  not done: {}", it.text("reason")),
        "loop.wait" => format!("  waits {}: {}", it.time("wait_ms"), it.text("reason")),
        "loop.paused" => format!("paused: {}", it.text("reason")),
        "loop.extended" => {
            format!("  {} turns more: now {}", it.count("by"), it.count("max_iterations"))
        }
        "loop.stuckness_detected" => format!("  seems stuck: {}", it.text("reasons")),
        "loop.budget_warning" => format!("  {} % of the money is spent", it.count("percent")),
        "loop.restart" => restart(&it),
        "loop.signal" => format!("  asks for {}: {}", it.text("signal"), it.text("reason")),
        "loop.dead_letter" => format!("  the task `{}` is a dead letter now", it.text("task_id")),
        "loop.problem" => format!("  {}", it.text("problem")),
        "loop.end" => format!(
            "{}: {} ({} turn{}, {}, {} tokens, {}){}",
            it.text("status"),
            it.text("reason"),
            it.count("iteration"),
            if it.count("iteration") == 1 { "" } else { "s" },
            it.time("worked_ms"),
            it.count("tokens"),
            it.cost().text_with_unit(),
            onwards(it.text("status")),
        ),
        _ => return None,
    })
}

/// How a run that ended is gone on with.
fn onwards(status: &str) -> String {
    let status = RunStatus::find(status);
    let more = match status {
        Some(RunStatus::Complete) => return String::new(),
        Some(RunStatus::HumanNeeded) => {
            return "\n`policyd inbox` shows what waits for you; then `policyd run --resume` resumes it"
                .to_owned();
        }
        Some(RunStatus::MaxIterations) => "goes on with more turns",
        Some(RunStatus::Budget) => "goes on with more money",
        Some(RunStatus::ContextExhaustion) => "goes on with more sessions",
        Some(_) | None => "resumes it",
    };
    let option = status.and_then(RunStatus::resume_option);
    let option = option.map_or_else(String::new, |it| format!(" {it}"));
    format!("\n`policyd run --resume{option}` {more}")
}

fn restart(it: &Fields<'_>) -> String {
    let session = it.count("session");
    let spent = format!("restart {} of {}", it.count("restart"), it.count("max"));
    match it.text("reason") {
        "context_clear" => format!("session {session} begins with a clear context"),
        "stuck_restart" => format!("session {session} begins: the agent was stuck ({spent})"),
        _ => format!("session {session} begins: the context was full ({spent})"),
    }
}

fn iteration(it: &Fields<'_>) -> String {
    let failed = it.text("failure");
    let ended = match it.0.get("exit_code").and_then(Value::as_i64) {
        _ if !failed.is_empty() => format!("failed, `{failed}`: {}", first_line(it.text("error"))),
        Some(code) => format!("exit {code}"),
        None if !it.text("ended").is_empty() => format!("ended: {}", it.text("ended")),
        None => "ended by a signal".to_owned(),
    };
    let mut parts = vec![ended, it.time("took_ms")];
    if it.count("tokens") > 0 {
        parts.push(format!("{} tokens", it.count("tokens")));
    }
    if it.cost().known_usd > 0.0 {
        parts.push(it.cost().text_with_unit());
    }
    match it.0.get("moved").and_then(Value::as_bool) {
        Some(true) => parts.push(format!("{} changed", counted(it.count("lines"), "line"))),
        Some(false) => parts.push("nothing changed".to_owned()),
        None => {}
    }
    format!("  {}", parts.join(", "))
}

fn first_line(text: &str) -> String {
    const CHARS: usize = 120;
    let line = text.lines().next().unwrap_or_default();
    let cut: String = line.chars().take(CHARS).collect();
    if cut == text { cut } else { format!("{cut} …") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_of_json_stays_text() {
        for (text, number) in [
            ("3", true),
            ("-3", true),
            ("0.5", true),
            ("0", true),
            ("0123", false),
            ("1.", false),
            (".5", false),
            ("", false),
            ("a\rb", false),
            ("1e5", false),
            ("--1", false),
            ("1.2.3", false),
        ] {
            assert_eq!(typed(text).is_number(), number, "{text}");
            let line = event("x", Timestamp::default(), &[("v", typed(text))]).to_string();
            assert!(serde_json::from_str::<Value>(&line).is_ok() && !line.contains('\r'), "{line}");
        }
    }

    #[test]
    fn the_end_names_an_unknown_cost_and_the_option_of_a_resume() {
        let end = |status: &str, unpriced: u64| {
            let end = serde_json::json!({"type": "loop.end", "status": status, "reason": "why",
                "iteration": 1, "worked_ms": 5, "cost_usd": 0.0, "unpriced_turns": unpriced});
            line(&end).unwrap()
        };
        assert_eq!(
            end("budget", 0),
            "budget: why (1 turn, 5ms, 0 tokens, 0.00 USD)\n\
             `policyd run --resume --budget-usd N` goes on with more money"
        );
        let stuck = end("stuck", 1);
        assert!(stuck.contains("0 tokens, unknown cost)\n`policyd run --resume` resumes it"));
        assert!(end("complete", 0).ends_with(" USD)"));
    }

    #[test]
    fn times_of_short_turns_are_exact() {
        for (millis, text) in [
            (0, "0ms"),
            (5, "5ms"),
            (999, "999ms"),
            (1_000, "1.0s"),
            (1_999, "1.9s"),
            (9_999, "9.9s"),
            (10_000, "10s"),
            (61_000, "1m1s"),
        ] {
            assert_eq!(time_text(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn no_field_replaces_when_and_what() {
        let now = Timestamp::from_millis(1_500);
        let fields = [("type", typed("x")), ("ts", typed("1")), ("iteration", typed("3"))];
        let event = event("loop.context_usage", now, &fields);
        assert_eq!(
            event.to_string(),
            r#"{"ts":"1970-01-01T00:00:01.500Z","ts_epoch":1,"type":"loop.context_usage","iteration":3}"#
        );
    }
}
