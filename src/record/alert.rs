//! Alerts for humans: what they contain, and the recipes by which chat services, pagers, and mail receive them. The
//! recipes are data: an address, and a body as JSON with placeholders.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::decision_log::Entry;
use super::inert::TextFormat;
use super::notice::{NoticeKind, NoticeSeverity};
use policyd_base::limits::ALERT_CHARS_MAX;
use policyd_evaluation::message::cut;
use policyd_facts::shell::quote;
use policyd_state::run::RunStatus;
use policyd_yaml::time::Timestamp;

/// Something that a human should know.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Alert {
    /// Id of the entry of the decision log.
    pub id: String,
    /// The same for alerts about the same thing.
    pub key: String,
    /// Time of the event.
    pub at: Timestamp,
    /// `low`, `medium`, `high`, or `critical`.
    pub severity: String,
    /// What happened: the event of the entry, `report`, or `test`.
    pub kind: String,
    /// Main checkout of the project; empty for several projects.
    pub project: String,
    /// Id of the run, the escalation, or the task; name of the breaker.
    pub subject: String,
    /// One line.
    pub title: String,
    /// What happened, and what to do, in Markdown.
    pub text: String,
    /// The same as HTML, for mail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
}

impl Alert {
    /// Returns the alert about an entry of the decision log of a project. `None` for a decision, for a switch,
    /// and for a breaker that was open before.
    #[must_use]
    pub fn of_entry(project: &str, entry: &Entry) -> Option<Self> {
        let kind = NoticeKind::find(&entry.event)?;
        let notice = entry.notice.as_ref()?;
        let name = project.rsplit('/').next().unwrap_or_default();
        let (subject, outcome) = (&notice.subject, &notice.outcome);
        let in_project = |words: String| format!("policyd -C {} {words}", quote(project));
        let answer = || format!("policyd inbox answer {} yes|no [TEXT]", quote(subject));
        let (what, next) = match kind {
            NoticeKind::RunEnd => {
                let status = RunStatus::find(outcome);
                let next = match (status, status.and_then(RunStatus::resume_option)) {
                    (Some(RunStatus::Complete), _) => in_project("log --summary".to_owned()),
                    (Some(status), _) if status.can_be_accepted() => answer(),
                    (_, Some(option)) => in_project(format!("run --resume {option}")),
                    (_, None) => in_project("run --resume".to_owned()),
                };
                (format!("run ended: {outcome}"), next)
            }
            NoticeKind::Escalation | NoticeKind::SignalRequest => {
                ("a human must decide".to_owned(), answer())
            }
            NoticeKind::CallRequest => ("a blocked call waits for an answer".to_owned(), answer()),
            NoticeKind::BreakerOpen => (
                format!("breaker {subject} is open"),
                in_project(format!("breaker explain {}", quote(subject))),
            ),
            NoticeKind::DeadLetter => (format!("dead letter {subject}"), answer()),
            NoticeKind::BreakerChange | NoticeKind::Switch(_) => return None,
        };
        // Each end of a run is a separate event.
        let resumed = match notice.run.as_ref().map_or(0, |it| it.resumes) {
            0 => String::new(),
            resumes => format!("|{resumes}"),
        };
        Some(Self {
            id: entry.id.clone(),
            key: format!("{project}|{}|{subject}{resumed}", kind.name()),
            at: Timestamp::parse(&entry.timestamp)?,
            severity: kind.severity(outcome).as_str().to_owned(),
            kind: kind.name().to_owned(),
            project: project.to_owned(),
            subject: subject.clone(),
            title: format!("{name}: {what}"),
            text: format!("{}\n\nNext: `{next}`", notice.text),
            html: None,
        })
    }

    /// Returns what happened: the title without the project.
    #[must_use]
    pub fn what(&self) -> &str {
        self.title.split_once(": ").map_or(self.title.as_str(), |(_, what)| what)
    }

    /// Returns the severity.
    #[must_use]
    pub fn severity(&self) -> NoticeSeverity {
        NoticeSeverity::find(&self.severity).unwrap_or(NoticeSeverity::Medium)
    }

    /// Returns the value of a placeholder.
    fn value(&self, name: &str, parameters: &RecipeParameters<'_>) -> String {
        let position =
            NoticeSeverity::ALL.iter().position(|it| *it == self.severity()).unwrap_or(1);
        let level = parameters.recipe.levels.get(position).copied().unwrap_or_default();
        let Recipe { format, chars_max, .. } = parameters.recipe;
        let text = cut(&format.inert(&self.text), (*chars_max).min(ALERT_CHARS_MAX));
        match name {
            "id" => self.id.clone(),
            "key" => self.key.clone(),
            "at" => self.at.to_string(),
            "severity" => self.severity.clone(),
            "level" => level.to_owned(),
            "kind" => self.kind.clone(),
            "project" => format.inert(&self.project),
            "subject" => format.inert(&self.subject),
            "title" => format.inert(&self.title),
            "text" => text,
            "topic" => parameters.topic().to_owned(),
            "secret" => parameters.secret.to_owned(),
            _ => String::new(),
        }
    }
}

/// What receives alerts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipe {
    /// Word in configurations.
    pub name: &'static str,
    /// Where the alert goes.
    pub transport: Transport,
    /// Address if the configuration has none.
    pub url: Option<&'static str>,
    /// Whether the channel must have a secret.
    pub needs_secret: bool,
    /// Words for the four severities, the lowest first.
    pub levels: [&'static str; 4],
    /// Format in which the channel shows texts.
    pub format: TextFormat,
    /// Longest text, in characters.
    pub chars_max: usize,
    /// Whether alerts of one kind that are due at the same moment become one message. A pager closes each incident by its
    /// subject, and a program answers by it, so these receive each alert.
    pub groups: bool,
    /// Body as JSON; `{{name}}` is a placeholder, and `{{#name}}` a number.
    pub body: &'static str,
    /// Body that says that what an alert is about is over. `None` if the channel cannot close an alert.
    pub resolution: Option<&'static str>,
}

/// How an alert is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Request with a body to the address.
    Post,
    /// The same to the address without its last part, which is the topic.
    PostToTopic,
    /// The same, signed as [Standard Webhooks](https://www.standardwebhooks.com) describes.
    SignedPost,
    /// Message on standard input of `sendmail`.
    Mail,
    /// Markdown on standard input of a program of the user.
    Program,
}

/// Every recipe.
pub const RECIPES: [Recipe; 8] = [
    Recipe {
        name: "slack",
        transport: Transport::Post,
        url: None,
        needs_secret: false,
        levels: [":white_circle:", ":large_yellow_circle:", ":red_circle:", ":rotating_light:"],
        format: TextFormat::Slack,
        chars_max: 2_800,
        groups: true,
        body: r#"{"text": "{{level}} {{title}}", "blocks": [
            {"type": "header", "text": {"type": "plain_text", "text": "{{title}}"}},
            {"type": "section", "text": {"type": "mrkdwn", "text": "{{text}}"}},
            {"type": "context", "elements": [{"type": "mrkdwn", "text": "{{level}} {{severity}} · {{project}} · {{at}}"}]}]}"#,
        resolution: None,
    },
    Recipe {
        name: "teams",
        transport: Transport::Post,
        url: None,
        needs_secret: false,
        levels: ["default", "warning", "attention", "attention"],
        format: TextFormat::Markdown,
        chars_max: 8_000,
        groups: true,
        body: r#"{"type": "message", "attachments": [{"contentType": "application/vnd.microsoft.card.adaptive",
            "content": {"type": "AdaptiveCard", "version": "1.4", "body": [
            {"type": "TextBlock", "size": "medium", "weight": "bolder", "wrap": true, "color": "{{level}}", "text": "{{title}}"},
            {"type": "TextBlock", "wrap": true, "text": "{{text}}"},
            {"type": "TextBlock", "isSubtle": true, "wrap": true, "text": "{{severity}} · {{project}} · {{at}}"}]}}]}"#,
        resolution: None,
    },
    Recipe {
        name: "discord",
        transport: Transport::Post,
        url: None,
        needs_secret: false,
        levels: ["8421504", "15844367", "15158332", "15158332"],
        format: TextFormat::Markdown,
        chars_max: 3_500,
        groups: true,
        body: r#"{"allowed_mentions": {"parse": []}, "embeds": [{"title": "{{title}}", "description": "{{text}}",
            "color": "{{#level}}", "timestamp": "{{at}}", "footer": {"text": "{{severity}} · {{project}}"}}]}"#,
        resolution: None,
    },
    Recipe {
        name: "ntfy",
        transport: Transport::PostToTopic,
        url: None,
        needs_secret: false,
        levels: ["2", "3", "4", "5"],
        format: TextFormat::Markdown,
        chars_max: 3_500,
        groups: true,
        body: r#"{"topic": "{{topic}}", "title": "{{title}}", "message": "{{text}}", "priority": "{{#level}}",
            "tags": ["policyd", "{{severity}}"], "markdown": "{{#true}}"}"#,
        resolution: None,
    },
    Recipe {
        name: "pagerduty",
        transport: Transport::Post,
        url: Some("https://events.pagerduty.com/v2/enqueue"),
        needs_secret: true,
        levels: ["info", "warning", "error", "critical"],
        format: TextFormat::Plain,
        chars_max: 8_000,
        groups: false,
        body: r#"{"routing_key": "{{secret}}", "event_action": "trigger", "dedup_key": "{{key}}", "client": "policyd",
            "payload": {"summary": "{{title}}", "source": "{{project}}", "severity": "{{level}}",
            "timestamp": "{{at}}", "class": "{{kind}}", "component": "{{subject}}",
            "custom_details": {"text": "{{text}}"}}}"#,
        resolution: Some(
            r#"{"routing_key": "{{secret}}", "event_action": "resolve", "dedup_key": "{{key}}"}"#,
        ),
    },
    Recipe {
        name: "email",
        transport: Transport::Mail,
        url: None,
        needs_secret: false,
        levels: ["5", "3", "1", "1"],
        format: TextFormat::Plain,
        chars_max: usize::MAX,
        groups: true,
        body: "{}",
        resolution: None,
    },
    Recipe {
        name: "webhook",
        transport: Transport::SignedPost,
        url: None,
        needs_secret: false,
        levels: ["low", "medium", "high", "critical"],
        format: TextFormat::Plain,
        chars_max: usize::MAX,
        groups: false,
        body: r#"{"type": "policyd.{{kind}}", "timestamp": "{{at}}", "data": {"id": "{{id}}", "key": "{{key}}",
            "severity": "{{severity}}", "project": "{{project}}", "subject": "{{subject}}",
            "title": "{{title}}", "text": "{{text}}"}}"#,
        resolution: None,
    },
    Recipe {
        name: "command",
        transport: Transport::Program,
        url: None,
        needs_secret: false,
        levels: ["low", "medium", "high", "critical"],
        format: TextFormat::Markdown,
        chars_max: usize::MAX,
        groups: false,
        body: "{}",
        resolution: None,
    },
];

/// Names of all recipes.
pub const RECIPE_NAMES: &[&str] = &names();

#[expect(clippy::indexing_slicing, reason = "the compiler evaluates it")]
const fn names() -> [&'static str; RECIPES.len()] {
    let mut names = [""; RECIPES.len()];
    let mut number = 0;
    while number < names.len() {
        names[number] = RECIPES[number].name;
        number += 1;
    }
    names
}

impl Recipe {
    /// Returns the recipe with a name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        RECIPES.iter().find(|it| it.name == name)
    }
}

/// What a channel adds to its recipe.
#[derive(Debug, Clone, Copy)]
pub struct RecipeParameters<'a> {
    pub recipe: &'a Recipe,
    /// Address, empty if the channel has none.
    pub url: &'a str,
    /// Secret, empty if the channel has none.
    pub secret: &'a str,
}

impl RecipeParameters<'_> {
    /// Returns the last part of the address.
    fn topic(&self) -> &str {
        self.url.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
    }

    /// Returns the address to which the body goes.
    #[must_use]
    pub fn address(&self) -> &str {
        match self.recipe.transport {
            Transport::PostToTopic => {
                let url = self.url.trim_end_matches('/');
                url.strip_suffix(self.topic()).unwrap_or(url)
            }
            Transport::Post | Transport::SignedPost | Transport::Mail | Transport::Program => {
                self.url
            }
        }
    }

    /// Returns the body of the request.
    #[must_use]
    pub fn body(&self, alert: &Alert) -> Value {
        self.filled_body(self.recipe.body, alert)
    }

    /// Returns the body of the request that closes an alert. `None` if the channel cannot close one.
    #[must_use]
    pub fn resolution(&self, alert: &Alert) -> Option<Value> {
        Some(self.filled_body(self.recipe.resolution?, alert))
    }

    fn filled_body(&self, template: &str, alert: &Alert) -> Value {
        let mut body: Value = serde_json::from_str(template).unwrap_or_else(|_| json!({}));
        self.fill(&mut body, alert);
        body
    }

    fn fill(&self, value: &mut Value, alert: &Alert) {
        match value {
            Value::String(text) => {
                if let Some(name) = text.strip_prefix("{{#").and_then(|it| it.strip_suffix("}}")) {
                    let filled = match name {
                        "true" => "true".to_owned(),
                        name => alert.value(name, self),
                    };
                    *value = serde_json::from_str(&filled).unwrap_or(Value::Null);
                } else {
                    *text = self.filled(text, alert);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|it| self.fill(it, alert)),
            Value::Object(fields) => fields.values_mut().for_each(|it| self.fill(it, alert)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Fills the placeholders of a text. Placeholders in values are not filled.
    fn filled(&self, template: &str, alert: &Alert) -> String {
        let mut out = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once("{{") {
            out.push_str(before);
            let Some((name, behind)) = after.split_once("}}") else { break };
            out.push_str(&alert.value(name, self));
            rest = behind;
        }
        out.push_str(rest);
        out
    }
}

/// Returns a message for `sendmail -t`: headers, an empty line, and the text.
#[must_use]
pub fn mail(alert: &Alert, to: &[String], from: Option<&str>) -> String {
    let level = Recipe::find("email").and_then(|it| {
        let position = NoticeSeverity::ALL.iter().position(|it| *it == alert.severity())?;
        it.levels.get(position).copied()
    });
    // A header must stay on its line.
    let line = |text: &str| -> String {
        text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect()
    };
    let (kind, body) = match &alert.html {
        Some(html) => ("text/html", html.as_str()),
        None => ("text/plain", alert.text.as_str()),
    };
    let mut out = String::new();
    if let Some(from) = from {
        out.push_str(&format!("From: {}\n", line(from)));
    }
    let to: Vec<String> = to.iter().map(|it| line(it)).collect();
    out.push_str(&format!(
        "To: {}\nSubject: {}\nMessage-ID: <{}.{}@policyd>\nX-Priority: {}\n\
         Auto-Submitted: auto-generated\nMIME-Version: 1.0\nContent-Type: {kind}; charset=utf-8\n\
         Content-Transfer-Encoding: 8bit\n\n{body}\n",
        to.join(", "),
        header_text(&line(&alert.title)),
        line(&alert.id),
        alert.at.millis(),
        level.unwrap_or("3"),
    ));
    out
}

/// Returns the text of a mail header. Other characters than ASCII are encoded words of at most 75 characters (RFC 2047), one
/// on each line.
fn header_text(text: &str) -> String {
    /// Bytes of a text that fit into an encoded word.
    const WORD_BYTES_MAX: usize = 45;
    if text.is_ascii() && !text.contains("=?") {
        return text.to_owned();
    }
    let mut words = vec![String::new()];
    for it in text.chars() {
        let is_full = words.last().is_some_and(|word| word.len() + it.len_utf8() > WORD_BYTES_MAX);
        if is_full {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(it);
        }
    }
    let words = words.iter().map(|it| format!("=?utf-8?B?{}?=", base64(it.as_bytes())));
    words.collect::<Vec<_>>().join("\n ")
}

/// Returns bytes in base64 with padding (RFC 4648).
#[must_use]
pub fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for (at, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            let index = usize::try_from((bits >> shift) & 63).unwrap_or(0);
            let digit = ALPHABET.get(index).copied().unwrap_or(b'=');
            out.push(if at <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alert() -> Alert {
        let entry = json!({"id": "a1b2", "timestamp": "2026-01-02T03:04:05Z", "event": "escalation",
            "decision": "none", "notice": {"subject": "e1", "outcome": "critical",
            "text": "Drop \"it\"? {{secret}}\u{1f}"}});
        let entry = Entry::parse(entry.to_string().as_bytes()).unwrap();
        Alert::of_entry("/w/billing", &entry).unwrap()
    }

    #[test]
    fn every_recipe_has_a_valid_body_in_which_nothing_is_left_to_fill() {
        for recipe in &RECIPES {
            assert_eq!(Recipe::find(recipe.name), Some(recipe));
            let template: Value = serde_json::from_str(recipe.body).unwrap();
            let parameters =
                RecipeParameters { recipe, url: "https://push.example/alerts", secret: "KEY" };
            let body = parameters.body(&alert());
            assert_eq!(template.is_object(), body.is_object());
            let text = body.to_string().replace("{{secret}}", "");
            assert!(!text.contains("{{") && !text.contains("null"), "{text}");
            if text.contains("title") || text.contains("summary") {
                assert!(text.contains("billing: a human must decide"), "{text}");
            }
        }
    }

    #[test]
    fn the_next_command_resumes_a_run_with_the_option_that_it_needs() {
        for (ending, next) in [
            ("budget", "run --resume --budget-usd N"),
            ("max_iterations", "run --resume --max-iterations N"),
            ("context_exhaustion", "run --resume --max-restarts N"),
            ("stuck", "run --resume"),
            ("complete", "log --summary"),
        ] {
            let entry = json!({"id": "a1b2", "timestamp": "2026-01-02T03:04:05Z", "event": "run_end",
                "decision": "none", "notice": {"subject": "r1", "outcome": ending, "text": "why"}});
            let entry = Entry::parse(entry.to_string().as_bytes()).unwrap();
            let text = Alert::of_entry("/w/my app", &entry).unwrap().text;
            assert_eq!(text, format!("why\n\nNext: `policyd -C '/w/my app' {next}`"));
        }
    }

    #[test]
    fn recipes_use_the_words_of_their_service() {
        let body = |name: &str| {
            let recipe = Recipe::find(name).unwrap();
            let parameters =
                RecipeParameters { recipe, url: "https://push.example/alerts", secret: "KEY" };
            (parameters.address().to_owned(), parameters.body(&alert()))
        };
        let (address, ntfy) = body("ntfy");
        assert_eq!(address, "https://push.example/");
        assert_eq!((&ntfy["topic"], &ntfy["priority"]), (&json!("alerts"), &json!(5)));
        let (_, pager) = body("pagerduty");
        assert_eq!(
            (&pager["routing_key"], &pager["payload"]["severity"]),
            (&json!("KEY"), &json!("critical"))
        );
        assert_eq!(pager["dedup_key"], "/w/billing|escalation|e1");
        let (_, webhook) = body("webhook");
        assert_eq!(webhook["type"], "policyd.escalation");
        // What others wrote is not filled.
        assert!(webhook["data"]["text"].as_str().unwrap().starts_with("Drop \"it\"? {{secret}}"));
    }

    #[test]
    fn a_mail_has_no_header_that_others_wrote() {
        let mut alert = alert();
        alert.title = "x\nBcc: all@example.org".to_owned();
        let to = ["me@example.org\nCc: you@example.org".to_owned()];
        let text = mail(&alert, &to, Some("policyd@example.org"));
        let (head, body) = text.split_once("\n\n").unwrap();
        assert!(!head.lines().any(|it| it.starts_with("Bcc") || it.starts_with("Cc")), "{head}");
        assert!(head.contains("Content-Type: text/plain") && body.starts_with("Drop"), "{text}");
        assert_eq!(base64(b"any carnal pleas"), "YW55IGNhcm5hbCBwbGVhcw==");
        assert_eq!(base64(b"any carnal pleasure"), "YW55IGNhcm5hbCBwbGVhc3VyZQ==");
    }

    #[test]
    fn the_subject_of_a_mail_is_plain_or_in_short_encoded_words() {
        assert_eq!(header_text("policyd: 4 projects"), "policyd: 4 projects");
        let lines = header_text(&"Grüße ".repeat(30));
        let lines: Vec<&str> = lines.split("\n ").collect();
        assert!(lines.len() > 1 && lines.iter().all(|it| it.len() <= 75), "{lines:?}");
        assert!(lines.iter().all(|it| it.starts_with("=?utf-8?B?") && it.ends_with("?=")));
        assert_eq!(header_text("=?x?="), format!("=?utf-8?B?{}?=", base64(b"=?x?=")));
    }
}
