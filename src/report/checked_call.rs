//! What policyd decides about a tool call that a user asks about, as text, as a table, and as JSON.

use serde_json::{Value, json};

use policyd_evaluation::combine::Decision;
use policyd_record::pack_layer::PackLayer;
use policyd_record::paint::{AnsiStyle, TextColor, line};
use policyd_record::table::{Align, Screen, TextCell, TextTable};

/// Version of the JSON form.
const CHECKED_CALL_VERSION: u32 = 1;

/// Effects that the text shows.
const EFFECTS_MAX: usize = 12;

/// A rule that fired at the call, or whose result is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleAnswer {
    pub id: String,
    /// Guard set that contains the rule.
    pub set: String,
    /// Effect of the rule on the call: `block`, `ask`, `warn`, `log`, ….
    pub effect: &'static str,
    /// Effect of the rule if it were enforced. `None` if it is, or if it would stop nothing.
    pub would: Option<&'static str>,
    /// Mode of the rule.
    pub mode: &'static str,
    /// Whose pack contains the rule.
    pub layer: PackLayer,
    /// Location of the rule.
    pub place: String,
    /// Message of the rule about this call.
    pub message: String,
    /// Reason why the result is unknown.
    pub unknown: Option<String>,
    /// Allowance of the user by which the effect of the rule is dropped.
    pub allowed: Option<String>,
}

/// What policyd decides about one call, and what each reader would see.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckedCall {
    /// The command line, or the tool with its input.
    pub call: String,
    pub tool: String,
    pub decision: Decision,
    /// The rules that fired, the strongest first.
    pub rules: Vec<RuleAnswer>,
    /// Rules that answer a permission prompt of the client about the call with yes.
    pub approved: Vec<String>,
    /// What the call does to files and variables, as far as known.
    pub effects: Vec<String>,
    /// Number of evaluated guards.
    pub evaluated: usize,
    /// Why no rule was evaluated.
    pub not_evaluated: Option<String>,
    /// Text that the agent reads.
    pub agent: String,
    /// Text that the user reads.
    pub user: String,
    /// Question that the user answers.
    pub question: String,
    /// Input with which the call runs instead.
    pub changed_input: Option<Value>,
    /// Anything else the user should know, such as an untrusted pack.
    pub problems: Vec<String>,
}

impl CheckedCall {
    /// Returns whether the call would not run.
    #[must_use]
    pub const fn is_blocked(&self) -> bool {
        matches!(self.decision, Decision::Block | Decision::Halt)
    }

    /// Returns the strongest effect that rules would have if they were enforced.
    fn would(&self) -> Option<&'static str> {
        let mut stronger = self.rules.iter().filter_map(|it| it.would);
        let first = stronger.next()?;
        Some(if first == "ask" { stronger.find(|it| *it != "ask").unwrap_or(first) } else { first })
    }

    /// Returns the decision in one word, or what it would be.
    fn verdict(&self) -> String {
        match (self.decision, self.would()) {
            (Decision::None, Some(would)) => format!("would {would}"),
            (decision, _) => decision.as_str().to_owned(),
        }
    }

    /// Returns why the decision is what it is, in a few words.
    fn explanation(&self) -> String {
        if let Some(why) = &self.not_evaluated {
            return format!("policyd evaluated no rule: {why}");
        }
        let rules = match self.evaluated {
            1 => "1 rule evaluated".to_owned(),
            count => format!("{count} rules evaluated"),
        };
        match (self.decision, self.would(), self.rules.is_empty()) {
            (Decision::None, Some(would), _) => {
                format!("{rules}; policyd only observes. Enforced, it would {would} this call")
            }
            (Decision::None, None, _) if !self.approved.is_empty() => format!(
                "{rules}, none stops it; if the client asks for permission, policyd approves: {}",
                self.approved.join(", ")
            ),
            (Decision::None, None, true) => {
                format!("{rules}, none fired; the client decides as without policyd")
            }
            (Decision::None, None, false) => {
                format!("{rules}; the client decides as without policyd")
            }
            _ => rules,
        }
    }

    /// Returns the answer as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let rule = |it: &RuleAnswer| {
            json!({
                "id": it.id, "set": it.set, "effect": it.effect, "would": it.would, "mode": it.mode,
                "layer": it.layer.name(), "place": it.place, "message": it.message,
                "unknown": it.unknown, "allowed": it.allowed,
            })
        };
        json!({
            "call": self.call,
            "tool": self.tool,
            "decision": self.decision.as_str(),
            "would": self.would(),
            "rules": self.rules.iter().map(rule).collect::<Vec<_>>(),
            "approved": self.approved,
            "effects": self.effects,
            "evaluated": self.evaluated,
            "not_evaluated": self.not_evaluated,
            "agent": self.agent,
            "user": self.user,
            "question": self.question,
            "changed_input": self.changed_input,
            "problems": self.problems,
        })
    }

    /// Returns what is unknown, each reason once, and what the user allowed.
    fn notes(&self) -> Vec<String> {
        let mut unknown: Vec<(&str, &str, usize)> = Vec::new();
        for rule in &self.rules {
            let Some(why) = rule.unknown.as_deref() else { continue };
            match unknown.iter_mut().find(|it| it.1 == why) {
                Some((_, _, more)) => *more = more.saturating_add(1),
                None => unknown.push((&rule.id, why, 0)),
            }
        }
        let notes = unknown.into_iter().map(|(id, why, more)| match more {
            0 => format!("{id}: unknown, {why}"),
            more => format!("{id} and {more} more: unknown, {why}"),
        });
        let allowed = self.rules.iter().filter_map(|it| {
            it.allowed.as_ref().map(|how| format!("{}: you allowed it, {how}", it.id))
        });
        notes.chain(allowed).collect()
    }

    /// Returns the answer as text.
    #[must_use]
    pub fn to_text(&self, screen: Screen) -> String {
        let style = screen.style();
        let mut text = String::new();
        let title = format!("{} {}", style.bold("decision:"), self.painted(style));
        let explanation = self.explanation();
        screen.paragraph(&mut text, "", &format!("{title} ({explanation})"));
        if !self.rules.is_empty() {
            line(&mut text, "");
            text.push_str(&self.rule_table().render(screen));
        }
        self.notes().iter().for_each(|note| screen.paragraph(&mut text, "  ", note));
        let changed = self.changed_input.as_ref().map(Value::to_string).unwrap_or_default();
        for (title, content) in [
            ("The agent reads", &self.agent),
            ("You are asked", &self.question),
            ("You read", &self.user),
            ("The call runs with another input", &changed),
        ] {
            if !content.trim().is_empty() {
                line(&mut text, &format!("\n{}", style.bold(title)));
                content.lines().for_each(|it| screen.paragraph(&mut text, "  ", it));
            }
        }
        if !self.effects.is_empty() {
            line(&mut text, &format!("\n{}", style.bold("The call")));
            let (shown, rest) = self.effects.split_at(self.effects.len().min(EFFECTS_MAX));
            shown.iter().for_each(|it| screen.paragraph(&mut text, "  ", it));
            if !rest.is_empty() {
                line(&mut text, &format!("  and {} more", rest.len()));
            }
        }
        for it in &self.problems {
            line(&mut text, "");
            screen.paragraph(&mut text, "", &format!("{} {it}", style.yellow("problem:")));
        }
        if let Some(rule) = self.rules.first() {
            let hint = format!("\npolicyd rules {} explains the rule", rule.id);
            line(&mut text, &style.dim(&hint));
        }
        text
    }

    fn painted(&self, style: AnsiStyle) -> String {
        style.paint(color(self.decision), &self.verdict())
    }

    fn rule_table(&self) -> TextTable {
        let mut table = TextTable::new(2, &[Align::Left; 4]);
        for it in &self.rules {
            let effect = if it.allowed.is_some() { "allowed" } else { it.effect };
            let effect = TextCell::new(effect, effect_color(effect));
            let (layer, place) = (it.layer.name(), it.place.as_str());
            table.row(vec![effect, it.id.as_str().into(), layer.into(), place.into()]);
        }
        table
    }
}

const fn color(decision: Decision) -> TextColor {
    match decision {
        Decision::Block | Decision::Halt => TextColor::Red,
        Decision::Ask | Decision::Defer => TextColor::Yellow,
        Decision::None | Decision::Allow => TextColor::Green,
    }
}

fn effect_color(effect: &str) -> TextColor {
    match effect {
        "block" | "halt" => TextColor::Red,
        "ask" | "defer" | "warn" => TextColor::Yellow,
        "log" => TextColor::Dim,
        _ => TextColor::Plain,
    }
}

/// Returns the answers as JSON.
#[must_use]
pub fn to_json(answers: &[CheckedCall]) -> Value {
    let calls: Vec<Value> = answers.iter().map(CheckedCall::to_json).collect();
    json!({"version": CHECKED_CALL_VERSION, "calls": calls})
}

/// Returns one row for each call, and the count of each decision.
#[must_use]
pub fn table(answers: &[CheckedCall], screen: Screen) -> String {
    let mut table = TextTable::new(0, &[Align::Left; 3]);
    let mut counts: Vec<(String, usize)> = Vec::new();
    for it in answers {
        let verdict = it.verdict();
        match counts.iter_mut().find(|(known, _)| *known == verdict) {
            Some((_, count)) => *count = count.saturating_add(1),
            None => counts.push((verdict.clone(), 1)),
        }
        let rule = it.rules.first().map(|rule| rule.id.as_str()).unwrap_or_default();
        let verdict = TextCell::new(verdict, color(it.decision));
        table.row(vec![verdict, rule.into(), it.call.as_str().into()]);
    }
    let mut text = table.render(screen);
    let counts: Vec<String> = counts.iter().map(|(word, it)| format!("{it} {word}")).collect();
    let calls = if answers.len() == 1 { "call" } else { "calls" };
    line(&mut text, &format!("\n{} {calls}: {}", answers.len(), counts.join(", ")));
    let mut problems: Vec<&String> = Vec::new();
    for it in answers.iter().flat_map(|it| it.not_evaluated.iter().chain(&it.problems)) {
        if !problems.contains(&it) {
            problems.push(it);
            let label = screen.style().yellow("problem:");
            screen.paragraph(&mut text, "", &format!("{label} {it}"));
        }
    }
    text
}

/// Returns one line for each call, not wrapped: the decision, the rule, and the call.
#[must_use]
pub fn compact(answers: &[CheckedCall]) -> String {
    let line = |it: &CheckedCall| {
        let rule = it.rules.first().map_or("-", |rule| rule.id.as_str());
        format!("{} {rule} {}\n", it.decision.as_str(), it.call)
    };
    answers.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(id: &str, effect: &'static str, would: Option<&'static str>) -> RuleAnswer {
        RuleAnswer {
            id: id.to_owned(),
            set: "set".to_owned(),
            effect,
            would,
            mode: "enforce",
            layer: PackLayer::BuiltIn,
            place: "builtin/set.yaml:1:1".to_owned(),
            message: "M.".to_owned(),
            unknown: None,
            allowed: None,
        }
    }

    #[test]
    fn what_observed_rules_would_do_is_the_strongest_effect() {
        let observed = |rules| CheckedCall { rules, ..CheckedCall::default() };
        let both = vec![rule("a", "log", Some("ask")), rule("b", "log", Some("block"))];
        assert_eq!(observed(both).verdict(), "would block");
        assert_eq!(observed(vec![rule("a", "log", Some("ask"))]).verdict(), "would ask");
        assert_eq!(observed(vec![rule("a", "warn", None)]).verdict(), "none");
        let blocked = CheckedCall {
            decision: Decision::Block,
            rules: vec![rule("a", "block", None), rule("b", "log", Some("block"))],
            ..CheckedCall::default()
        };
        assert_eq!(blocked.verdict(), "block");
    }

    #[test]
    fn a_table_counts_the_decisions() {
        let call = |call: &str, decision| CheckedCall {
            call: call.to_owned(),
            decision,
            ..CheckedCall::default()
        };
        let calls =
            [call("ls", Decision::None), call("rm", Decision::Block), call("ls", Decision::None)];
        let text = table(&calls, Screen::default());
        assert!(text.ends_with("\n3 calls: 2 none, 1 block\n"), "{text}");
        assert_eq!(compact(&calls[..1]), "none - ls\n");
    }
}
