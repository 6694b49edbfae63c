//! Rules of a pack as text and JSON: the list by groups, and the page of one rule.

use serde_json::{Value, json};

use super::rule_patterns::ClassPatterns;
use policyd_evaluation::message::in_one_line;
use policyd_fact_table::template::{self, TemplatePart};
use policyd_facts::event::EventKind;
use policyd_facts::pattern::CommandPattern;
use policyd_policy::field_value::Word;
use policyd_policy::guards::{Guard, GuardAction};
use policyd_policy::requests::without_requests;
use policyd_policy::{Check, Mode, Severity, builtin};
use policyd_record::mask::mask;
use policyd_record::outcome::mode;
use policyd_record::pack_layer::{PackLayer, PackLayers};
use policyd_record::paint::{TextColor, line};
use policyd_record::table::{Align, Screen, TextTable};
use policyd_yaml::time::Timestamp;

/// Patterns of a class on the page of a rule.
const PATTERNS_SHOWN: usize = 12;
/// Lines of one example.
const EXAMPLE_LINES_MAX: usize = 3;
/// Lines of the purpose of one rule in the list of one group.
const PURPOSE_LINES_MAX: usize = 2;
/// Columns of ids in a list. A longer id moves the rest of its line.
const ID_COLUMNS_MAX: usize = 30;

/// A check or a guard.
#[derive(Debug, Clone, Copy)]
pub enum ActiveRule<'p> {
    /// A check at a stop.
    Check(&'p Check),
    /// A guard at another event.
    Guard(&'p Guard),
}

/// Whether a rule acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleState {
    /// Its entry disables it.
    Disabled,
    /// Its `expires` has passed.
    Expired,
    /// policyd evaluates and logs it, and does not act.
    Observed,
    /// It acts in this mode.
    Active(Mode),
}

impl RuleState {
    /// Returns the word that the user reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Expired => "expired",
            Self::Observed => "observe",
            Self::Active(its) => mode(its),
        }
    }
}

/// Texts about a rule that the policy does not contain.
#[derive(Debug, Clone, Default)]
pub struct RuleNotes {
    /// Description of its entry.
    pub description: Option<String>,
    /// Examples that it catches, from its cases.
    pub caught: Vec<String>,
    /// Examples that it does not catch, from its cases.
    pub not_caught: Vec<String>,
    /// Patterns of the classes that it names.
    pub patterns: Vec<ClassPatterns>,
    /// The layer of the rule.
    pub layer: PackLayer,
    /// Which of two rules of this id is used, if another pack has one.
    pub shared: Option<String>,
}

impl<'p> ActiveRule<'p> {
    /// Returns the id.
    #[must_use]
    pub fn id(self) -> &'p str {
        match self {
            Self::Check(it) => &it.id,
            Self::Guard(it) => &it.id,
        }
    }

    /// Returns the group: the category of a check, the set of a guard.
    #[must_use]
    pub fn group(self) -> &'p str {
        match self {
            Self::Check(it) => &it.category,
            Self::Guard(it) => &it.set,
        }
    }

    /// Returns whether the rule acts, and in which mode.
    #[must_use]
    pub fn state(self, now: Timestamp) -> RuleState {
        let (enabled, its, expires) = match self {
            Self::Check(it) => (it.enabled, it.mode, it.expires_millis),
            Self::Guard(it) => (true, it.mode, it.expires_millis),
        };
        match (enabled, expires.is_some_and(|at| now.millis() >= at)) {
            (false, _) => RuleState::Disabled,
            (true, true) => RuleState::Expired,
            (true, false) if self.is_observed() => RuleState::Observed,
            (true, false) => RuleState::Active(its),
        }
    }

    /// Returns whether policyd only observes the rule.
    const fn is_observed(self) -> bool {
        match self {
            Self::Check(it) => it.observed,
            Self::Guard(it) => it.observed,
        }
    }

    /// Returns the effect of the rule if it fires; `none` if it is not active.
    #[must_use]
    pub fn effect(self, now: Timestamp) -> &'static str {
        match (self.state(now), self) {
            (RuleState::Active(Mode::Enforce), Self::Guard(it)) => it.body.verb.as_str(),
            (RuleState::Active(Mode::Enforce), Self::Check(it)) => match it.severity {
                Severity::Blocker => "block",
                Severity::Warning => "warn",
            },
            (RuleState::Active(Mode::Warn), _) => "warn",
            (RuleState::Active(Mode::Shadow) | RuleState::Observed, _) => "log",
            (RuleState::Disabled | RuleState::Expired, _) => "none",
        }
    }

    /// Returns the effect of an active rule, else why it is not active.
    fn effect_or_state(self, now: Timestamp) -> &'static str {
        match self.state(now) {
            state @ (RuleState::Disabled | RuleState::Expired) => state.name(),
            RuleState::Observed | RuleState::Active(_) => self.effect(now),
        }
    }

    /// Returns the purpose of the rule in a few words: the question of a check, the message of a guard.
    fn purpose(self) -> String {
        match self {
            Self::Check(it) => in_one_line(&it.question),
            Self::Guard(it) => it.body.texts().map(purpose_of).collect::<Vec<_>>().join(" / "),
        }
    }

    /// Returns whether a word begins with `text` in the id, the group, the texts, or the commands of the rule,
    /// whatever the case of the letters.
    #[must_use]
    pub fn mentions(self, text: &str) -> bool {
        let text = text.to_lowercase();
        let has_word = |of: &str| {
            let of = of.to_lowercase();
            let mut places = of.match_indices(&text);
            places.any(|(at, _)| {
                let before = of.get(..at).and_then(|it| it.chars().next_back());
                before.is_none_or(|it| !it.is_alphanumeric())
            })
        };
        if text.is_empty() || has_word(self.id()) || has_word(self.group()) {
            return !text.is_empty();
        }
        match self {
            Self::Check(it) => has_word(&it.question) || has_word(&it.guidance),
            Self::Guard(it) => {
                it.body.texts().any(has_word) || it.commands.iter().any(|it| has_word(it.as_str()))
            }
        }
    }

    fn place(self) -> String {
        match self {
            Self::Check(it) => it.place.to_string(),
            Self::Guard(it) => it.body.place.to_string(),
        }
    }

    /// Returns the layer of the rule.
    #[must_use]
    pub fn layer(self, layers: &PackLayers) -> PackLayer {
        layers.of_rule(self.file().0)
    }

    /// Returns the file of the rule, and whether it is a file of the built-in pack.
    fn file(self) -> (&'p str, bool) {
        let file = match self {
            Self::Check(it) => it.place.file.as_str(),
            Self::Guard(it) => it.body.place.file.as_str(),
        };
        (file, builtin::has(file))
    }
}

/// Returns the first sentence of a message, with `…` for placeholders and without the command at its beginning.
fn purpose_of(message: &str) -> String {
    let pieces = template::pieces(message).unwrap_or_default();
    let text: String = pieces.iter().map(placeholder).collect();
    let text = in_one_line(&text.replace("`…`", "…"));
    let text = text.strip_prefix("… ").or_else(|| text.strip_prefix("This ")).unwrap_or(&text);
    let text = text.split_once(". ").map_or(text, |(first, _)| first);
    text.trim_end_matches('.').to_owned()
}

/// Returns the text of a piece of a message: for a choice of words, each of them.
fn placeholder(piece: &TemplatePart<'_>) -> String {
    match piece {
        TemplatePart::Text(text) => (*text).to_owned(),
        TemplatePart::Hole { expression, .. } if expression.starts_with("if ") => {
            let branches = expression.split("{ \"").skip(1);
            let words: Vec<&str> = branches.filter_map(|it| Some(it.split_once('"')?.0)).collect();
            words.join(" or ")
        }
        TemplatePart::Hole { .. } => "…".to_owned(),
    }
}

fn color(effect: &str) -> TextColor {
    match effect {
        "block" | "halt" => TextColor::Red,
        "ask" | "warn" => TextColor::Yellow,
        "none" | "log" => TextColor::Dim,
        _ => TextColor::Plain,
    }
}

/// A group of rules with its description.
#[derive(Debug)]
pub struct RuleGroup<'p> {
    /// Category of checks, or set of guards.
    pub name: &'p str,
    /// One sentence about the group. `None`: its name is enough.
    pub description: Option<String>,
    /// The rules, in the order of the pack.
    pub rules: Vec<ActiveRule<'p>>,
}

/// Returns the groups as text: a heading with counts, then one line for each rule, with its layer if it is not
/// built in.
#[must_use]
pub fn list(
    groups: &[RuleGroup<'_>],
    layers: &PackLayers,
    now: Timestamp,
    screen: Screen,
) -> String {
    let ids = groups.iter().flat_map(|it| &it.rules).map(|it| it.id().chars().count());
    let width = ids.max().unwrap_or(0).min(ID_COLUMNS_MAX);
    let purpose_lines = if groups.len() == 1 { PURPOSE_LINES_MAX } else { 1 };
    let style = screen.style();
    let mut text = String::new();
    for group in groups {
        let title = format!("{}: {}", group.name, counts(&group.rules, now));
        line(&mut text, "");
        for (number, it) in policyd_record::table::wrap(&title, screen.width()).iter().enumerate() {
            let indent = if number == 0 { "" } else { "  " };
            line(&mut text, &style.bold(&format!("{indent}{it}")));
        }
        if let Some(description) = &group.description {
            screen.paragraph(&mut text, "", description);
        }
        for rule in &group.rules {
            let effect = rule.effect(now);
            let state = rule.effect_or_state(now);
            let used = width.saturating_add(14);
            let id = format!("{:width$}", rule.id());
            let state = style.paint(color(effect), &format!("{state:8}"));
            let layer = rule.layer(layers);
            let purpose = match layer == PackLayer::BuiltIn {
                true => rule.purpose(),
                false => format!("[{}] {}", layer.name(), rule.purpose()),
            };
            let mut lines = shortened(
                &purpose,
                used.max(id.chars().count().saturating_add(14)),
                screen,
                purpose_lines,
            );
            let first = lines.next().unwrap_or_default();
            line(&mut text, format!("  {id}  {state}  {first}").trim_end());
            lines.for_each(|it| line(&mut text, &format!("{}{it}", " ".repeat(used))));
        }
    }
    text
}

/// Returns the first lines of a text behind `used` columns. What does not fit is cut.
fn shortened(
    text: &str,
    used: usize,
    screen: Screen,
    lines_max: usize,
) -> impl Iterator<Item = String> {
    let lines = match screen.columns {
        Some(_) => policyd_record::table::wrap(text, screen.width().saturating_sub(used)),
        None => vec![text.to_owned()],
    };
    let rest = lines.get(lines_max.saturating_sub(1)..).unwrap_or_default().join(" ");
    let mut shown: Vec<String> = lines.into_iter().take(lines_max.saturating_sub(1)).collect();
    shown.extend(Some(rest).filter(|it| !it.is_empty()));
    shown.into_iter().map(move |it| match screen.columns {
        Some(_) => screen.cut(&it, used),
        None => it,
    })
}

/// Returns `33 rules (20 block, 13 ask)`.
fn counts(rules: &[ActiveRule<'_>], now: Timestamp) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for it in rules {
        let word = it.effect_or_state(now);
        match counts.iter_mut().find(|(known, _)| *known == word) {
            Some((_, count)) => *count = count.saturating_add(1),
            None => counts.push((word, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let counts: Vec<String> = counts.iter().map(|(word, it)| format!("{it} {word}")).collect();
    let what = if rules.len() == 1 { "rule" } else { "rules" };
    format!("{} {what} ({})", rules.len(), counts.join(", "))
}

/// Returns one line for each rule, not wrapped: id, effect, and location.
#[must_use]
pub fn compact(groups: &[RuleGroup<'_>], now: Timestamp) -> String {
    let mut text = String::new();
    for rule in groups.iter().flat_map(|it| &it.rules) {
        let (effect, state) = (rule.effect(now), rule.state(now).name());
        let state = if effect == "none" { state } else { effect };
        line(&mut text, &format!("{} {state} {}", rule.id(), rule.place()));
    }
    text
}

/// Returns the labeled properties of a rule.
fn properties(
    rule: ActiveRule<'_>,
    layer: PackLayer,
    now: Timestamp,
) -> Vec<(&'static str, String)> {
    let mut rows: Vec<(&'static str, String)> = Vec::new();
    let mut add = |label: &'static str, text: &str| {
        if !text.trim().is_empty() {
            rows.push((label, in_one_line(text)));
        }
    };
    let events = |it: &[EventKind]| it.iter().map(|it| it.name()).collect::<Vec<_>>().join(", ");
    add("effect", &format!("{} (mode {})", rule.effect(now), rule.state(now).name()));
    match rule {
        ActiveRule::Check(it) => {
            let body = &*it.check.body;
            add("events", &events(&it.on));
            add("session types", &it.session_types.join(", ").replace('*', "all"));
            add("applies when", it.when.as_ref().map_or("", |it| it.text.as_str()));
            add("and when", it.check.when.as_ref().map_or("", |it| it.text.as_str()));
            add("passes when", &body.satisfied.text);
            add("blocks when", body.blocking.as_ref().map_or("", |it| it.text.as_str()));
            add("message", &it.guidance);
            add("if unknown", it.on_error.name());
        }
        ActiveRule::Guard(it) => {
            let body = &*it.body;
            let commands: Vec<&str> = it.commands.iter().map(CommandPattern::as_str).collect();
            add("events", &events(&it.on));
            add("tools", &it.tools.join(", "));
            add("commands", &commands.join(", "));
            add("fires when", body.when.as_ref().map_or("always", |it| it.text.as_str()));
            add("unless", body.unless.as_ref().map_or("", |it| it.text.as_str()));
            for text in &body.message {
                let when = text.when.as_ref().map(|it| format!(" (when {})", it.text));
                let shown = match rule.effect(now) {
                    "warn" => without_requests(&text.text),
                    _ => text.text.trim(),
                };
                add("message", &format!("{shown}{}", when.unwrap_or_default()));
            }
            add("if unknown", body.on_error.name());
        }
    }
    add("layer", layer.name());
    add("source", &rule.place());
    rows
}

/// Returns the entry of a pack that softens a rule.
fn soften_yaml(rule: ActiveRule<'_>) -> String {
    let own = match rule {
        ActiveRule::Guard(it) if it.mode == Mode::Enforce && it.body.verb == GuardAction::Block => {
            "decision: ask  # or `mode: shadow` (only logs), or `enabled: false`"
        }
        ActiveRule::Check(_) | ActiveRule::Guard(_) => {
            "mode: warn  # or `mode: shadow` (only logs), or `enabled: false`"
        }
    };
    match rule.file() {
        (_, true) => {
            format!(
                "- id: {}\n  override: true\n  {own}\n  reason: why this project differs\n",
                rule.id()
            )
        }
        (_, false) => format!("{own}\n"),
    }
}

/// Returns the page of a rule.
#[must_use]
pub fn page(rule: ActiveRule<'_>, notes: &RuleNotes, now: Timestamp, screen: Screen) -> String {
    let style = screen.style();
    let mut text = String::new();
    let kind = match rule {
        ActiveRule::Check(_) => "check",
        ActiveRule::Guard(_) => "guard",
    };
    line(&mut text, &format!("{}  {kind} of {}", style.bold(rule.id()), rule.group()));
    if let ActiveRule::Check(it) = rule {
        screen.paragraph(&mut text, "", &it.question);
    }
    if let Some(description) = &notes.description {
        screen.paragraph(&mut text, "", description);
    }
    line(&mut text, "");
    let mut table = TextTable::new(0, &[Align::Left, Align::Left]);
    let shared = notes.shared.clone().map(|it| ("note", it));
    for (label, value) in properties(rule, notes.layer, now).into_iter().chain(shared) {
        table.row(vec![label.into(), value.into()]);
    }
    text.push_str(&table.render(screen));
    list_patterns(&mut text, &notes.patterns, screen);
    for (title, examples, color) in [
        ("Caught", &notes.caught, TextColor::Red),
        ("Not caught", &notes.not_caught, TextColor::Green),
    ] {
        if !examples.is_empty() {
            line(&mut text, &format!("\n{}", style.paint(color, title)));
        }
        for it in examples {
            let shown = in_one_line(&mask(it).0);
            for (number, it) in shortened(&shown, 4, screen, EXAMPLE_LINES_MAX).enumerate() {
                let indent = if number == 0 { "  " } else { "    " };
                line(&mut text, &format!("{indent}{it}"));
            }
        }
    }
    line(&mut text, "");
    if notes.layer == PackLayer::Organization {
        let title = "The organization set this rule. Only the administrator of this machine can change it or let it pass.";
        screen.paragraph(&mut text, "", title);
        return text;
    }
    line(&mut text, "As a human at a terminal");
    let id = rule.id();
    let mut table = TextTable::new(2, &[Align::Left, Align::Left]);
    for (command, meaning) in [
        (format!("policyd rule off {id}"), "disable it (`--project`: for the team)"),
        (format!("policyd rule warn {id}"), "let it only warn"),
        (format!("policyd rule observe {id}"), "let it only write to the log"),
        (format!("policyd allow {id} --once"), "let it pass once"),
    ] {
        table.row(vec![command.into(), meaning.into()]);
    }
    text.push_str(&table.render(screen));
    text
}

/// Lists the first patterns of each class, one on each line.
fn list_patterns(text: &mut String, classes: &[ClassPatterns], screen: Screen) {
    for ClassPatterns { noun, name, patterns } in classes {
        let title = format!("Class `{name}` ({noun})");
        line(text, &format!("\n{}", screen.style().bold(&title)));
        for pattern in patterns.iter().take(PATTERNS_SHOWN) {
            line(text, &format!("  {}", screen.cut(pattern, 2)));
        }
        let more = patterns.len().saturating_sub(PATTERNS_SHOWN);
        if more > 0 {
            line(text, &format!("  and {more} more: policyd rules ID --format json lists all"));
        }
    }
}

/// Returns the page of a rule as JSON.
#[must_use]
pub fn page_json(rule: ActiveRule<'_>, notes: &RuleNotes, now: Timestamp) -> Value {
    let mut value = rule_json(rule, notes.layer, now);
    if let Value::Object(fields) = &mut value {
        let rows = properties(rule, notes.layer, now).into_iter();
        let rows: serde_json::Map<String, Value> =
            rows.map(|(label, text)| (label.replace(' ', "_"), text.into())).collect();
        fields.insert("description".to_owned(), json!(notes.description));
        fields.insert("properties".to_owned(), Value::Object(rows));
        let classes = notes
            .patterns
            .iter()
            .map(|it| json!({"class": it.name, "matches": it.noun, "patterns": it.patterns}));
        fields.insert("patterns".to_owned(), classes.collect());
        fields.insert("caught".to_owned(), json!(notes.caught));
        fields.insert("not_caught".to_owned(), json!(notes.not_caught));
        if notes.layer != PackLayer::Organization {
            fields.insert("soften".to_owned(), soften_yaml(rule).into());
        }
    }
    value
}

/// Returns a rule of the list as JSON.
#[must_use]
pub fn rule_json(rule: ActiveRule<'_>, layer: PackLayer, now: Timestamp) -> Value {
    // The keys and words of version 1 stay.
    let state = match rule.state(now) {
        RuleState::Disabled => "off",
        state @ (RuleState::Expired | RuleState::Observed | RuleState::Active(_)) => state.name(),
    };
    let layer = layer.name();
    match rule {
        ActiveRule::Check(it) => json!({
            "id": it.id, "layer": layer, "enabled": it.enabled, "severity": it.severity.name(),
            "mode": mode(it.mode), "observed": it.observed, "state": state,
            "effect": rule.effect(now), "on": it.on, "session_types": it.session_types, "checker": it.check.name,
            "category": it.category, "question": it.question, "place": rule.place(),
        }),
        ActiveRule::Guard(it) => {
            let commands: Vec<&str> = it.commands.iter().map(CommandPattern::as_str).collect();
            json!({
                "id": it.id, "layer": layer, "set": it.set, "decision": it.body.verb.as_str(),
                "mode": mode(it.mode), "observed": it.observed, "state": state,
                "effect": rule.effect(now), "on": it.on, "tools": it.tools, "commands": commands, "message": it.body.texts().collect::<Vec<_>>().join("\n"),
                "place": rule.place(),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_policy::Choice;
    use policyd_policy::guards::GuardBody;

    #[test]
    fn a_rule_is_found_by_the_beginning_of_a_word() {
        let message = vec![Choice { when: None, text: "Did it pass?".to_owned() }];
        let body = GuardBody { message, ..GuardBody::default() };
        let guard = Guard { id: "local_testing".to_owned(), body: body.into(), ..Guard::default() };
        let rule = ActiveRule::Guard(&guard);
        for word in ["test", "LOCAL", "local_t", "pass"] {
            assert!(rule.mentions(word), "{word}");
        }
        for word in ["ass", "ocal", "", "did fail"] {
            assert!(!rule.mentions(word), "{word}");
        }
    }

    #[test]
    fn the_purpose_of_a_guard_is_the_first_sentence_of_its_message() {
        for (message, purpose) in [
            ("`${program.line}` deletes a list. Approve it.", "deletes a list"),
            ("This writes a secret (${x.join(\", \")}). Stop.", "writes a secret (…)"),
            ("`.env` files contain secrets.", "`.env` files contain secrets"),
        ] {
            assert_eq!(purpose_of(message), purpose);
        }
    }
}
