//! `policyd suggest`: rules that would have answered the permission prompts which the user always approved. A human accepts
//! them one by one.

use serde_json::{Value, json};

use super::arguments::SuggestAction;
use super::{
    Console, EXIT_BROKEN, EXIT_OK, EXIT_USAGE, ReportFormat, SuggestArguments, log, pause,
};
use crate::human::{require_human, require_unpinned};
use policyd_app::overview::ProjectScope;
use policyd_app::suggestions::rules::SuggestedRule;
use policyd_app::suggestions::{PromptReview, SuggestionQuery};
use policyd_app::workspace::project;
use policyd_base::text::counted;
use policyd_evaluation::message::in_one_line;
use policyd_policy::approval::ApprovalLevel;
use policyd_record::notice::SwitchKind;
use policyd_store::configuration::Pins;
use policyd_world::World;
use policyd_yaml::suggest;

/// Lists suggested rules, or adds some of them to the pack of the user.
pub(super) fn run(
    world: &dyn World,
    console: &mut Console<'_>,
    arguments: &SuggestArguments,
) -> u8 {
    let Some(since) = log::oldest(world, Some(&arguments.since)) else {
        console.eprint(log::SINCE_HELP);
        return EXIT_USAGE;
    };
    let project = project::find(world, None);
    let scope = match arguments.all {
        true => ProjectScope::All,
        false => ProjectScope::Some(vec![project.clone()]),
    };
    let approved_min = arguments.min.get();
    let query = SuggestionQuery { project: &project, scope: &scope, since, approved_min };
    let review = match PromptReview::new(world, &query) {
        Ok(review) => review,
        Err(error) => {
            console.eprint(&error.to_string());
            return EXIT_BROKEN;
        }
    };
    for problem in &review.unreadable {
        console.eprint(problem);
    }
    if let Some(SuggestAction::Accept { ids }) = &arguments.action {
        return accept(world, console, &review, ids);
    }
    console.print(&match arguments.format {
        ReportFormat::Json => format!("{:#}\n", to_json(&review)),
        ReportFormat::Text => to_text(&review, &arguments.since),
    });
    EXIT_OK
}

/// Adds rules that a human confirms.
fn accept(
    world: &dyn World,
    console: &mut Console<'_>,
    review: &PromptReview,
    ids: &[String],
) -> u8 {
    let mut rules: Vec<SuggestedRule> = Vec::new();
    for id in ids {
        let Some(rule) = review.rules.iter().find(|it| it.id == *id) else {
            let known: Vec<&str> = review.rules.iter().map(|it| it.id.as_str()).collect();
            let near = suggest::nearest(id, &known).map(|it| format!("did you mean `{it}`?"));
            let help = near.unwrap_or_else(|| "`policyd suggest` lists them".to_owned());
            console.eprint(&format!("no rule `{id}` is suggested\nhelp: {help}"));
            return EXIT_USAGE;
        };
        rules.push(rule.clone());
    }
    let is_pinned = |pins: &Pins| pins.allowed_packs.is_some().then_some("trust.allowed_packs");
    if let Err(code) = require_unpinned(world, console, is_pinned) {
        return code;
    }
    let change = match review.accept(world, &rules) {
        Ok(change) => change,
        Err(error) => {
            console.eprint(&error.to_string());
            return EXIT_BROKEN;
        }
    };
    let list: Vec<String> = rules.iter().map(|it| format!("`{}`", it.calls.text())).collect();
    let list = list.join(", ");
    let action = format!("approve {list} without a question, in every project");
    let actor = match require_human(world, console, &action) {
        Ok(actor) => actor,
        Err(code) => return code,
    };
    if let Err(error) = change.write(world) {
        console.eprint(&error.to_string());
        return EXIT_BROKEN;
    }
    let text = format!("{}: approved from now on", ids.join(", "));
    pause::log(world, &project::find(world, None), SwitchKind::Rule, None, text, &actor);
    console.print(&format!("{list}: approved from now on\n"));
    for (path, _) in &change.files {
        console.print(&format!("wrote {}\n", path.display()));
    }
    if review.level == ApprovalLevel::None {
        console
            .print("The rules act as soon as a level is chosen: policyd install --approve read\n");
    }
    EXIT_OK
}

fn to_text(review: &PromptReview, since: &str) -> String {
    if review.prompts == 0 {
        let why = match review.level {
            ApprovalLevel::None => {
                "policyd records permission prompts if a level of approvals is chosen: policyd install --approve read"
            }
            ApprovalLevel::Read | ApprovalLevel::Work => {
                "policyd answered all of them, or the client asked nothing."
            }
        };
        return format!("No permission prompt of the last {since} was left to you.\n{why}\n");
    }
    let PromptReview { approved, denied, .. } = review;
    let prompts = counted(review.prompts, "permission prompt");
    let mut lines = vec![format!(
        "{prompts} of the last {since}: you approved {approved} and denied {denied}."
    )];
    let unknown = review.prompts.saturating_sub(approved.saturating_add(*denied));
    if unknown > 0 {
        lines.push(format!("The answers to {unknown} of them are not recorded."));
    }
    if review.answered > 0 {
        lines.push(format!("Today's rules answer {} of them.", review.answered));
    }
    if review.answered_at_work > 0 {
        let more = review.answered_at_work;
        lines.push(format!("The level `work` answers {more} more: policyd install --approve work"));
    }
    match review.rules.first() {
        None => {
            lines.push(
                "You approved no command often enough, and without a denial, for a rule."
                    .to_owned(),
            );
        }
        Some(first) => {
            let more = review.answered_by_rules;
            lines.push(format!(
                "{} would answer {more} of them:",
                counted(review.rules.len(), "new rule")
            ));
            let level = review.level.max(ApprovalLevel::Read);
            review.rules.iter().for_each(|it| lines.extend(rule_lines(it, level)));
            lines.push(format!("\nAccept a rule: policyd suggest accept {}", first.id));
        }
    }
    lines.join("\n") + "\n"
}

/// A rule, with the calls that it rests on.
fn rule_lines(rule: &SuggestedRule, level: ApprovalLevel) -> Vec<String> {
    let call = |it: &String| format!("    {}", in_one_line(it));
    let approved = counted(rule.approved, "prompt");
    let mut lines = vec![format!("\n{}", rule.id)];
    lines.push(format!("  You approved all {approved}, such as"));
    lines.extend(rule.examples.iter().map(call));
    match rule.unknown {
        0 => lines.push("  The rule answers no other recorded prompt.".to_owned()),
        count => {
            let others = counted(count, "prompt");
            lines.push(format!("  The rule also answers {others} whose answers are not recorded."));
        }
    }
    lines.extend(rule.others.iter().map(call));
    lines.extend(rule.rule(level).guard.lines().map(|it| format!("  | {it}")));
    lines
}

fn to_json(review: &PromptReview) -> Value {
    let level = review.level.max(ApprovalLevel::Read);
    let rule = |it: &SuggestedRule| {
        let text = it.rule(level);
        json!({
            "id": it.id,
            "calls": it.calls.text(),
            "approved": it.approved,
            "unknown": it.unknown,
            "examples": it.examples,
            "others": it.others,
            "guard": text.guard,
            "cases": text.cases,
        })
    };
    json!({
        "version": 1,
        "level": review.level.as_str(),
        "prompts": review.prompts,
        "approved": review.approved,
        "denied": review.denied,
        "answered": review.answered,
        "answered_at_work": review.answered_at_work,
        "answered_by_rules": review.answered_by_rules,
        "rules": review.rules.iter().map(rule).collect::<Vec<_>>(),
    })
}
