//! Explains a decision: the recorded result, and the result of a new evaluation. Both are shown, and differences
//! are reported.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use policyd_evaluation::StopOutcome;
use policyd_evaluation::guards::{GuardVerdict, GuardsOutcome};
use policyd_evaluation::message::{in_one_line, indented};
use policyd_evaluation::verdict::{CheckStatus, CheckVerdict};
use policyd_facts::call_subject::subject;
use policyd_record::decision_log::{Entry, LoggedCondition, LoggedGuard, LoggedVerdict};
use policyd_record::drawing;
use policyd_record::mask::MARK;
use policyd_record::pack_layer::PackLayer;
use policyd_record::paint::{AnsiStyle, line};

/// Version of the JSON form.
pub const EXPLANATION_VERSION: u32 = 1;

/// Why a decision was taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// What its record says.
    pub entry: Entry,
    /// Whose pack decided. `None` if the pack is unknown.
    pub layer: Option<PackLayer>,
    /// Result of the new evaluation, if possible.
    pub again: Option<StopOutcome>,
    /// The same of guards.
    pub guarded: Option<GuardsOutcome>,
    /// Inputs that are unavailable or changed, one sentence each.
    pub lost: Vec<String>,
}

impl Explanation {
    /// What is otherwise than it was decided, one sentence each; nothing where it is the same.
    #[must_use]
    pub fn differences(&self) -> Vec<String> {
        match &self.guarded {
            Some(guarded) => self.guards_that_differ(guarded),
            None => self.rules_that_differ(),
        }
    }

    fn guards_that_differ(&self, guarded: &GuardsOutcome) -> Vec<String> {
        let again: BTreeMap<&str, &GuardVerdict> =
            guarded.verdicts.iter().map(|it| (it.id.as_str(), it)).collect();
        let call = self.entry.read_call();
        let kept_out = |id: &str| call.iter().flat_map(|it| &it.elsewhere).any(|it| it == id);
        let mut found = Vec::new();
        for logged in &self.entry.guards {
            let LoggedGuard { id, status: then, .. } = logged;
            let now = again.get(id.as_str()).map_or("silent", |it| it.status());
            if then != now && !kept_out(id) {
                found.push(format!("{id}: {then}, and {now} judged again"));
            }
        }
        let logged = |id: &str| self.entry.guards.iter().any(|it| it.id == id);
        for it in guarded.verdicts.iter().filter(|it| !logged(&it.id)) {
            found.push(format!("{}: silent, and {} judged again", it.id, it.status()));
        }
        found
    }

    fn rules_that_differ(&self) -> Vec<String> {
        let Some(again) = &self.again else { return Vec::new() };
        let mut found = Vec::new();
        let mut compare = |what: &str, then: &str, now: &str| {
            if then != now {
                found.push(format!("{what}: was `{then}`, is `{now}` judged again"));
            }
        };
        compare("the decision", &self.entry.decision, again.decision.as_str());
        compare("release", self.entry.release.as_deref().unwrap_or_default(), again.release);
        let kind = self.entry.session_type.as_deref().unwrap_or_default();
        compare("the session type", kind, &again.session_type);
        for it in &again.verdicts {
            found.extend(self.difference(it));
        }
        let judged = self.entry.verdicts.iter().map(|it| it.id.as_str());
        let skipped = self.entry.skipped.values().flatten().map(String::as_str);
        let known = |id: &str| again.verdicts.iter().any(|it| it.id == id);
        let gone = judged.chain(skipped).filter(|it| !known(it));
        found.extend(gone.map(|it| format!("{it}: the pack does not contain this rule now")));
        found
    }

    /// How one rule that was judged again differs from what it came to.
    fn difference(&self, now: &CheckVerdict) -> Option<String> {
        let id = &now.id;
        let Some(then) = self.entry.verdicts.iter().find(|it| it.id == *id) else {
            return self.was_skipped(now);
        };
        let again = LoggedVerdict::new(now);
        if let CheckStatus::Skipped(why) = now.status {
            return Some(format!("{id}: was {}, is skipped judged again ({why})", came_to(then)));
        }
        if (&then.status, &then.consequence) != (&again.status, &again.consequence) {
            let (then, again) = (came_to(then), came_to(&again));
            return Some(format!("{id}: was {then}, is {again} judged again"));
        }
        if then.details != again.details || then.evidence != again.evidence {
            return Some(format!("{id}: same result, different text"));
        }
        let values = |it: &LoggedVerdict| -> Vec<_> {
            it.conditions.iter().map(|it| (it.expression.clone(), it.parts.clone())).collect()
        };
        (!then.conditions.is_empty() && values(then) != values(&again))
            .then(|| format!("{id}: same result, different values"))
    }

    fn was_skipped(&self, now: &CheckVerdict) -> Option<String> {
        let id = &now.id;
        let mut skipped = self.entry.skipped.iter();
        let then = skipped.find(|(_, ids)| ids.contains(id)).map(|(why, _)| why.as_str());
        match (then, &now.status) {
            (Some(then), CheckStatus::Skipped(now)) if then == *now => None,
            (Some(then), CheckStatus::Skipped(now)) => {
                Some(format!("{id}: was skipped ({then}), is skipped judged again ({now})"))
            }
            (Some(then), _) => {
                let now = came_to(&LoggedVerdict::new(now));
                Some(format!("{id}: was skipped ({then}), is {now} judged again"))
            }
            (None, _) => Some(format!("{id}: the pack did not contain this rule then")),
        }
    }

    /// Returns the explanation as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let again = self.again.as_ref().map(|it| {
            json!({
                "decision": it.decision.as_str(),
                "release": it.release,
                "session_type": it.session_type,
                "verdicts": it.verdicts.iter().map(LoggedVerdict::new).collect::<Vec<_>>(),
            })
        });
        let guards = self.guarded.as_ref().map(|it| {
            let one = |it: &GuardVerdict| {
                let mut value = json!(LoggedGuard::new(it));
                let conditions: Vec<_> = it.explanation.iter().map(LoggedCondition::new).collect();
                if let Some(fields) = value.as_object_mut() {
                    fields.insert("conditions".to_owned(), json!(conditions));
                }
                value
            };
            let guards: Vec<Value> = it.verdicts.iter().map(one).collect();
            json!({"decision": it.decision.as_str(), "guards": guards})
        });
        let again = again.or(guards);
        let differences = self.differences();
        json!({
            "version": EXPLANATION_VERSION,
            "entry": self.entry,
            "layer": self.layer.map(PackLayer::name),
            "judged_again": &again,
            "same": again.as_ref().map(|_| differences.is_empty()),
            "differences": differences,
            "lost": self.lost,
        })
    }

    /// Returns the explanation as text; `all` includes rules that passed, with their values.
    #[must_use]
    pub fn to_text(&self, all: bool, color: bool) -> String {
        let (paint, mut text) = (AnsiStyle::new(color), String::new());
        self.head(&mut text, paint);
        self.guards_drawn(&mut text, paint);
        for it in self.entry.verdicts.iter().filter(|it| it.details.is_some()) {
            line(&mut text, "");
            verdict(&mut text, it, paint);
            let again =
                || self.again.iter().flat_map(|now| &now.verdicts).find(|now| now.id == it.id);
            match it.conditions.as_slice() {
                [] => again().into_iter().for_each(|now| {
                    conditions(&mut text, &LoggedVerdict::new(now).conditions, paint)
                }),
                recorded => conditions(&mut text, recorded, paint),
            }
        }
        if all {
            self.rest_drawn(&mut text, paint);
        } else {
            self.rest_named(&mut text);
        }
        if text.contains(MARK) {
            line(
                &mut text,
                &format!("\n{MARK} replaces a secret; rules evaluated the secret itself"),
            );
        }
        self.tail(&mut text, paint);
        text
    }

    /// A line for each guard and rule, and one for what differs now or is lost: for `grep` and the like.
    #[must_use]
    pub fn to_lines(&self, color: bool) -> String {
        let (paint, mut text) = (AnsiStyle::new(color), String::new());
        for logged in &self.entry.guards {
            let (mark, name, message) = guard(logged, paint);
            line(&mut text, &format!("{mark}  {name}: {}", in_one_line(message)));
        }
        for it in &self.entry.verdicts {
            let details = it.details.as_deref().unwrap_or_default();
            let why = it.error.as_deref().into_iter().chain([details]).find(|it| !it.is_empty());
            let why = why.map_or_else(String::new, |it| format!(": {}", in_one_line(it)));
            line(&mut text, &format!("{}  {}{why}", mark(it, paint), paint.bold(&it.id)));
        }
        for (why, ids) in &self.entry.skipped {
            let mark = paint.dim("skip   ");
            ids.iter()
                .for_each(|id| line(&mut text, &format!("{mark}  {}: {why}", paint.bold(id))));
        }
        for it in self.differences() {
            line(&mut text, &format!("{}  {}", paint.yellow("differs"), in_one_line(&it)));
        }
        for it in &self.lost {
            line(&mut text, &format!("{}  {}", paint.yellow("note   "), in_one_line(it)));
        }
        text
    }

    fn head(&self, text: &mut String, paint: AnsiStyle) {
        let entry = &self.entry;
        let who = entry.agent_id.as_ref().map_or_else(String::new, |it| format!(", agent {it}"));
        let event = entry.event.replace('_', "-");
        let of_session = match entry.session_id.as_str() {
            "" => String::new(),
            id => format!(" of session {id}"),
        };
        let what = format!("{event}{of_session}{who}");
        line(
            text,
            &format!("{} {}  {}  {what}", paint.bold("decision"), entry.id, entry.timestamp),
        );
        let blocks = entry.consecutive_blocks.unwrap_or_default();
        let release = entry.release.as_deref().unwrap_or_default();
        let decided = match (entry.decision.as_str(), entry.spoken, &entry.session_type) {
            (decision @ ("ask" | "halt"), _, None) => paint.red(decision),
            (decision, _, None) if !entry.guards.is_empty() && decision != "block" => {
                paint.yellow(&format!("{decision}, by guards"))
            }
            ("block", true, None) => paint.red("block"),
            ("block", true, Some(_)) => {
                format!("{}: number {blocks} of its episode", paint.red("block"))
            }
            ("block", false, _) => {
                paint.yellow("block dropped because the state could not be saved")
            }
            (_, _, None) => match &entry.notice {
                Some(it) if it.outcome.is_empty() => format!("{}: {}", it.subject, it.text),
                Some(it) => format!("{} ({}): {}", it.subject, it.outcome, it.text),
                None => paint.yellow("not evaluated"),
            },
            _ if release.is_empty() => paint.green("clean"),
            _ => {
                let ending = if blocks == 1 { "" } else { "s" };
                paint.yellow(&format!("released ({release}) after {blocks} block{ending}"))
            }
        };
        line(text, &decided);
        if let (Some(kind), Some(pack)) = (&entry.session_type, &entry.pack) {
            let kind = if kind.is_empty() { "none" } else { kind };
            let pack = self.pack(pack);
            line(text, &format!("session type {kind}, {pack}, state {}", entry.saved));
        }
        if let (false, Some(tool), Some(pack)) = (entry.guards.is_empty(), &entry.tool, &entry.pack)
        {
            let call = entry.read_call().map(|it| in_one_line(&subject(tool, &it.input)));
            let call =
                call.filter(|it| it != tool).map_or_else(String::new, |it| format!(" `{it}`"));
            line(text, &format!("tool {tool}{call}, {}", self.pack(pack)));
        }
        if entry.observed {
            line(text, "policyd observed: the rules below were logged and had no effect");
        }
        if let Some(why) = &entry.no_opinion {
            line(text, why);
        }
        for problem in &entry.problems {
            line(text, &format!("{} {problem}", paint.yellow("problem:")));
        }
    }

    /// The pack with its layer, which the name of the built-in pack states already.
    fn pack(&self, name: &str) -> String {
        match self.layer {
            None | Some(PackLayer::BuiltIn) => format!("pack {name}"),
            Some(layer) => format!("pack {name} (layer: {})", layer.name()),
        }
    }

    /// What guards said, with the values of their conditions as judging them again finds them.
    fn guards_drawn(&self, text: &mut String, paint: AnsiStyle) {
        for logged in &self.entry.guards {
            let (mark, name, message) = guard(logged, paint);
            line(text, &format!("\n{mark}  {name}: {message}"));
            let [why, allowed] =
                [&logged.why, &logged.allowed].map(|it| it.as_deref().unwrap_or_default());
            let asides = [("of", logged.program.as_str()), ("why", why), ("user", allowed)];
            for (key, aside) in asides.into_iter().filter(|it| !it.1.is_empty()) {
                line(text, &format!("    {key}: {aside}"));
            }
            line(text, &format!("    {}", paint.dim(&logged.place)));
            let again =
                self.guarded.iter().flat_map(|it| &it.verdicts).filter(|it| it.id == logged.id);
            let drawn: Vec<_> =
                again.flat_map(|it| &it.explanation).map(LoggedCondition::new).collect();
            conditions(text, &drawn, paint);
        }
    }

    /// Lists the rules that passed.
    fn rest_named(&self, text: &mut String) {
        let fine = self.entry.verdicts.iter().filter(|it| it.details.is_none());
        let fine: Vec<&str> = fine.map(|it| it.id.as_str()).collect();
        if !fine.is_empty() {
            line(text, &format!("\npassed: {}", fine.join(", ")));
        }
        for (why, ids) in &self.entry.skipped {
            line(text, &format!("skipped ({why}): {}", ids.join(", ")));
        }
    }

    /// Draws the rules that passed, with the values of the new evaluation.
    fn rest_drawn(&self, text: &mut String, paint: AnsiStyle) {
        let amiss =
            |id: &str| self.entry.verdicts.iter().any(|it| it.id == id && it.details.is_some());
        for it in self.again.iter().flat_map(|it| &it.verdicts).filter(|it| !amiss(&it.id)) {
            line(text, "");
            verdict(text, &LoggedVerdict::new(it), paint);
            conditions(text, &LoggedVerdict::new(it).conditions, paint);
        }
    }

    fn tail(&self, text: &mut String, paint: AnsiStyle) {
        let differences = self.differences();
        let again = self.again.is_some() || self.guarded.is_some();
        let said = match (again, differences.len()) {
            (false, _) => paint.yellow("not evaluated again"),
            (true, 0) => format!("evaluated again: {}", paint.green("same result")),
            (true, 1) => format!("evaluated again: {}", paint.yellow("1 difference")),
            (true, many) => {
                format!("evaluated again: {}", paint.yellow(&format!("{many} differences")))
            }
        };
        if self.entry.notice.is_none() {
            line(text, &format!("\n{said}"));
        }
        for it in &self.lost {
            line(text, &format!("  {} {it}", paint.yellow("note:")));
        }
        differences.iter().for_each(|it| line(text, &format!("  {it}")));
    }
}

fn came_to(it: &LoggedVerdict) -> String {
    let consequence = match it.consequence.as_str() {
        "" | "none" => String::new(),
        other => format!(" ({other})"),
    };
    format!("{}{consequence}", it.status)
}

/// What a guard did, its name with how far it is in force, and what it said.
fn guard(logged: &LoggedGuard, paint: AnsiStyle) -> (String, String, &str) {
    let decision = logged.decision.as_str();
    let mark = match decision {
        "block" | "halt" => paint.red(decision),
        _ => paint.yellow(decision),
    };
    let mode = match logged.mode.as_str() {
        _ if logged.observed => " (observed)".to_owned(),
        "enforce" => String::new(),
        mode => format!(" ({mode})"),
    };
    (mark, format!("{}{mode}", paint.bold(&logged.id)), &logged.message)
}

/// What a rule came to.
fn mark(it: &LoggedVerdict, paint: AnsiStyle) -> String {
    match (it.consequence.as_str(), it.status.as_str()) {
        ("blocks", _) => paint.red("block  "),
        ("warns", _) => paint.yellow("warn   "),
        ("recorded", _) => paint.dim("log    "),
        (_, "unknown") => paint.yellow("unknown"),
        (_, "skipped") => paint.dim("skip   "),
        _ => paint.green("pass   "),
    }
}

fn verdict(text: &mut String, it: &LoggedVerdict, paint: AnsiStyle) {
    let mark = mark(it, paint);
    let details =
        it.details.as_deref().map_or_else(String::new, |it| format!(": {}", indented(it, 4)));
    line(text, &format!("{mark}  {}{details}", paint.bold(&it.id)));
    for evidence in it.evidence.iter().flatten() {
        line(text, &format!("    {}", paint.dim(&indented(evidence, 4))));
    }
    if let Some(error) = &it.error {
        line(text, &format!("    {} {error}", paint.yellow("error:")));
    }
    if let Some(why) = &it.allowed {
        line(text, &format!("    {}", paint.dim(&format!("does not block: {why}"))));
    }
    if let Some(why) = &it.softened {
        line(text, &format!("    {}", paint.dim(&format!("does not block: {why}"))));
    }
}

fn conditions(text: &mut String, conditions: &[LoggedCondition], paint: AnsiStyle) {
    for it in conditions {
        line(text, &format!("    {} ({})", it.key, paint.dim(&it.place)));
        for drawn in drawing::draw(&it.expression, &it.parts()).lines() {
            line(text, format!("      {drawn}").trim_end());
        }
    }
}
