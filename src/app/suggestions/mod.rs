//! `policyd suggest`: permission prompts of the decision logs that the user answered, and rules that would have answered those
//! that the user always approved.
//!
//! Contains: which prompts count, and what a rule would have changed. The rules themselves are in `rules`.

pub mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::overview::ProjectScope;
use crate::packs::pack_change::PackChange;
use crate::packs::rule_addition::{NewRule, RuleAdditionError, UserPack};
use crate::sessions::log_reader::{LogQuery, LogReader, ProjectLine};
use crate::workspace::project::Project;
use policyd_facts::Facts;
use policyd_facts::call::Invocation;
use policyd_facts::event::EventKind;
use policyd_facts::lines::LineChunk;
use policyd_policy::Policy;
use policyd_policy::approval::ApprovalLevel;
use policyd_record::decision_log::Entry;
use policyd_record::mask::mask_json;
use policyd_replay::answers::{PromptAnswer, PromptAnswers};
use policyd_replay::judge::{Judge, RecordedEvent, ReplayedPrompt};
use policyd_replay::subject;
use policyd_store::configuration::Configurations;
use policyd_store::transcript;
use policyd_world::{World, WorldError};
use policyd_yaml::time::Timestamp;
use rules::{ApprovedCalls, SuggestedRule, command};

/// Examples of a rule.
const EXAMPLES_MAX: usize = 5;

/// What is searched, and how often the user must have approved.
pub struct SuggestionQuery<'a> {
    /// The project of the working directory.
    pub project: &'a Project,
    pub scope: &'a ProjectScope,
    /// Time of the oldest prompt.
    pub since: Timestamp,
    /// Prompts that the user approved, at least, for a rule.
    pub approved_min: usize,
}

/// What the prompts of the logs show.
#[derive(Debug, Default)]
pub struct PromptReview {
    /// Level of approvals that the user and the organization chose.
    pub level: ApprovalLevel,
    /// Prompts that policyd left to the user.
    pub prompts: usize,
    /// Those that the user approved.
    pub approved: usize,
    /// Those that the user denied.
    pub denied: usize,
    /// Those that today's rules answer.
    pub answered: usize,
    /// Those that the level `work` answers, beyond those.
    pub answered_at_work: usize,
    /// Those that the suggested rules answer, beyond those that today's rules answer.
    pub answered_by_rules: usize,
    /// Rules, the one for the most prompts first.
    pub rules: Vec<SuggestedRule>,
    /// Transcripts and logs that could not be read.
    pub unreadable: Vec<String>,
}

/// A prompt that policyd left to the user.
struct LeftPrompt {
    entry: Entry,
    call: policyd_evaluation::called::LoggedEvent,
    tool: String,
    /// The command or the file.
    subject: String,
    answer: Option<PromptAnswer>,
    replayed: ReplayedPrompt,
}

impl PromptReview {
    /// Reads the logs and searches for rules.
    ///
    /// # Errors
    /// The pack of the user cannot be found or loaded.
    pub fn new(world: &dyn World, query: &SuggestionQuery<'_>) -> Result<Self, RuleAdditionError> {
        let pack = UserPack::find(world)?;
        let level = Configurations::load(world).approvals(world, &query.project.main);
        let mut review = Self { level, ..Self::default() };
        let mut prompts = review.read(world, query);
        review.prompts = prompts.len();
        let count = |answer| prompts.iter().filter(|it| it.answer == Some(answer)).count();
        (review.approved, review.denied) =
            (count(PromptAnswer::Approved), count(PromptAnswer::Denied));
        let mut policy = pack.policy(world)?;
        policy.approvals = ApprovalLevel::Work;
        let at_work = replayed(&policy, &prompts);
        policy.approvals = level;
        let today = replayed(&policy, &prompts);
        for (prompt, replayed) in prompts.iter_mut().zip(today) {
            prompt.replayed = replayed;
        }
        review.answered = prompts.iter().filter(|it| it.replayed.is_approved).count();
        review.answered_at_work =
            at_work.iter().filter(|it| it.is_approved).count().saturating_sub(review.answered);
        prompts.retain(|it| !it.replayed.is_approved);
        let rules = candidates(&prompts, &policy, query.approved_min);
        review.keep_effective(world, &pack, &prompts, rules, query.approved_min)?;
        Ok(review)
    }

    /// Returns the prompts that policyd left to the user, with their answers.
    fn read(&mut self, world: &dyn World, query: &SuggestionQuery<'_>) -> Vec<LeftPrompt> {
        let is_left = |it: &Entry| {
            it.event == EventKind::PermissionRequest.name()
                && it.decision == "none"
                && !it.organization
        };
        let content = LogReader::new(world, query.scope).read(LogQuery {
            since: Some(query.since),
            newest: usize::MAX,
            accepts: Some(&is_left),
        });
        let problem = |(path, error): &(PathBuf, _)| format!("{}: {error}", path.display());
        self.unreadable.extend(content.problems.iter().map(problem));
        let mut answers: BTreeMap<String, PromptAnswers> = BTreeMap::new();
        let mut prompts = Vec::new();
        for entry in content.lines.iter().filter_map(ProjectLine::entry) {
            let Some(call) = entry.read_call().filter(|it| it.left_out == 0) else { continue };
            let Some(tool) = entry.tool.clone() else { continue };
            let path = call.around.transcript.clone();
            let known = answers.entry(path).or_insert_with_key(|path| self.answers(world, path));
            let answer = known.answer(&tool, &call.input);
            let subject = subject(&tool, &call.input);
            let replayed = ReplayedPrompt::default();
            prompts.push(LeftPrompt { entry, call, tool, subject, answer, replayed });
        }
        prompts
    }

    /// Reads the answers of a transcript.
    fn answers(&mut self, world: &dyn World, path: &str) -> PromptAnswers {
        let mut answers = PromptAnswers::new(mask_json);
        if path.is_empty() {
            return answers;
        }
        let take = |piece: LineChunk<'_>| {
            if let LineChunk::Line(line) = piece {
                answers.take(line);
            }
        };
        match transcript::lines(world, Path::new(path), take) {
            // Clients remove old transcripts.
            Ok(_) | Err(WorldError::NotFound) => {}
            Err(error) => self.unreadable.push(format!("{path}: {error}")),
        }
        answers
    }

    /// Keeps the rules that would have answered enough prompts, by an evaluation with all of them.
    fn keep_effective(
        &mut self,
        world: &dyn World,
        pack: &UserPack,
        prompts: &[LeftPrompt],
        mut rules: Vec<SuggestedRule>,
        approved_min: usize,
    ) -> Result<(), RuleAdditionError> {
        while !rules.is_empty() {
            let level = self.level.max(ApprovalLevel::Read);
            let mut policy = pack.add(world, &new_rules(&rules, level))?.policy_after()?;
            policy.approvals = level;
            let results = replayed(&policy, prompts);
            let answered: Vec<&LeftPrompt> = prompts
                .iter()
                .zip(&results)
                .filter(|(_, it)| it.is_approved)
                .map(|(prompt, _)| prompt)
                .collect();
            let before = rules.len();
            for rule in &mut rules {
                let calls = rule.calls.clone();
                rule.count(answered.iter().copied().filter(|it| it.is_about(&calls)));
            }
            rules.retain(|it| it.approved >= approved_min);
            self.answered_by_rules = answered.len();
            if rules.len() == before {
                break;
            }
        }
        if rules.is_empty() {
            self.answered_by_rules = 0;
        }
        rules.sort_by_key(|it| (std::cmp::Reverse(it.approved), it.id.clone()));
        self.rules = rules;
        Ok(())
    }

    /// Plans the addition of suggested rules to the pack of the user.
    ///
    /// # Errors
    /// As [`UserPack::add`].
    pub fn accept(
        &self,
        world: &dyn World,
        rules: &[SuggestedRule],
    ) -> Result<PackChange, RuleAdditionError> {
        let level = self.level.max(ApprovalLevel::Read);
        UserPack::find(world)?.add(world, &new_rules(rules, level))
    }
}

fn new_rules(rules: &[SuggestedRule], level: ApprovalLevel) -> Vec<NewRule> {
    rules.iter().map(|it| it.rule(level)).collect()
}

impl SuggestedRule {
    /// Counts the prompts that the rule answers.
    fn count<'p>(&mut self, prompts: impl Iterator<Item = &'p LeftPrompt>) {
        (self.approved, self.unknown) = (0, 0);
        let (mut examples, mut others) = (BTreeSet::new(), BTreeSet::new());
        for prompt in prompts {
            let (count, calls) = match prompt.answer {
                Some(PromptAnswer::Approved) => (&mut self.approved, &mut examples),
                Some(PromptAnswer::Denied) | None => (&mut self.unknown, &mut others),
            };
            *count = count.saturating_add(1);
            calls.insert(prompt.subject.clone());
        }
        self.examples = examples.iter().take(EXAMPLES_MAX).cloned().collect();
        self.others = others.difference(&examples).take(EXAMPLES_MAX).cloned().collect();
    }
}

impl LeftPrompt {
    /// Returns whether a rule for such calls is about this prompt.
    fn is_about(&self, calls: &ApprovedCalls) -> bool {
        match calls {
            ApprovedCalls::Tool(name) => self.tool == *name,
            ApprovedCalls::Command(_) | ApprovedCalls::Line(_) => {
                self.replayed.not_allowed.iter().any(|it| calls.has(it))
            }
        }
    }

    /// Returns the tool, if it is one of a server and runs no command.
    fn server_tool(&self) -> Option<&str> {
        let is_server = self.tool.starts_with("mcp__") && self.replayed.not_allowed.is_empty();
        is_server.then_some(self.tool.as_str())
    }
}

/// Returns rules for the calls that the user approved often enough and never denied.
fn candidates(prompts: &[LeftPrompt], policy: &Policy, approved_min: usize) -> Vec<SuggestedRule> {
    let mut programs: BTreeMap<Vec<String>, Vec<&Invocation>> = BTreeMap::new();
    let mut calls: BTreeSet<ApprovedCalls> = BTreeSet::new();
    for prompt in prompts.iter().filter(|it| it.answer == Some(PromptAnswer::Approved)) {
        calls.extend(prompt.server_tool().map(|it| ApprovedCalls::Tool(it.to_owned())));
        for program in &prompt.replayed.not_allowed {
            let name: Vec<String> = command(program).into_iter().take(2).collect();
            programs.entry(name).or_default().push(program);
        }
    }
    calls.extend(programs.values().filter_map(|it| ApprovedCalls::of(it)));
    let mut rules: Vec<SuggestedRule> = Vec::new();
    for calls in calls {
        let about = || prompts.iter().filter(|it| it.is_about(&calls));
        if about().any(|it| it.answer == Some(PromptAnswer::Denied)) {
            continue;
        }
        let newest = about().filter_map(|it| Timestamp::parse(&it.entry.timestamp)).max();
        let is_known =
            |id: &str| policy.rule_id(id).is_some() || rules.iter().any(|it| it.id == id);
        let id = SuggestedRule::id(&calls, is_known);
        let (examples, others) = (Vec::new(), Vec::new());
        let mut rule = SuggestedRule {
            id,
            calls: calls.clone(),
            approved: 0,
            unknown: 0,
            examples,
            others,
            newest,
        };
        rule.count(about());
        if rule.approved >= approved_min {
            rules.push(rule);
        }
    }
    rules
}

/// Evaluates prompts with a pack.
fn replayed(policy: &Policy, prompts: &[LeftPrompt]) -> Vec<ReplayedPrompt> {
    let mut judge = Judge::new(policy);
    let mut facts = Facts::default();
    let replay = |prompt: &LeftPrompt| {
        let Some(whose) = prompt.entry.whose() else { return ReplayedPrompt::default() };
        let event = prompt.call.event(&whose, Some(&prompt.tool));
        let event = policyd_facts::event::Event { kind: EventKind::PreToolUse, ..event };
        let recorded = RecordedEvent {
            event,
            interactive: !prompt.call.unattended,
            project: Path::new(&prompt.call.around.project),
            scratch: &[],
            now: whose.at,
        };
        let around = Rc::new(prompt.call.around.clone());
        judge.guard_and_approve(&recorded, &around, &mut facts).1
    };
    prompts.iter().map(replay).collect()
}
