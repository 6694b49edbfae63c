//! Texts about a rule that the compiled policy does not contain: descriptions of its file and its entry, and examples from
//! the cases of the pack.

use std::sync::Arc;

use serde_json::Value;

use super::FoundPack;
use crate::cases::suite;
use policyd_cases::example_text;
use policyd_cases::expect::{Expectation, Matcher};
use policyd_cases::happens::StepAction;
use policyd_cases::names::NameTable;
use policyd_cases::{Case, CaseStep, Expect, Given, TranscriptAddition, read};
use policyd_policy::guards::set_of;
use policyd_policy::{Pack, Policy, builtin};
use policyd_replay::subject;
use policyd_world::World;
use policyd_yaml::{Source, yaml};

/// Number of examples of each result.
const EXAMPLES_MAX: usize = 6;

/// Examples of a rule.
#[derive(Debug, Default)]
pub struct RuleExamples {
    /// Calls or situations in which the rule fires.
    pub fires: Vec<String>,
    /// Calls or situations in which the rule passes.
    pub passes: Vec<String>,
}

impl RuleExamples {
    fn add(&mut self, fires: bool, example: String) {
        let list = if fires { &mut self.fires } else { &mut self.passes };
        if !example.is_empty() && !list.contains(&example) {
            list.push(example);
        }
    }

    /// Leaves out the same actions with both results, which a probe or a file decides, and all but the first examples.
    fn shown(self) -> Self {
        let Self { mut fires, mut passes } = self;
        let both: Vec<String> = fires.iter().filter(|it| passes.contains(it)).cloned().collect();
        for list in [&mut fires, &mut passes] {
            list.retain(|it| !both.contains(it));
            list.truncate(EXAMPLES_MAX);
        }
        Self { fires, passes }
    }
}

/// The packs whose files can contain a rule: the pack in use, and the built-in pack that it extends.
pub struct RuleTexts<'w> {
    world: &'w dyn World,
    packs: Vec<Pack>,
}

impl<'w> RuleTexts<'w> {
    /// Reads the packs.
    pub fn new(world: &'w dyn World, found: &FoundPack) -> Self {
        let mut packs = vec![found.pack().into_owned()];
        if found.folder().is_some() {
            packs.push(builtin::pack());
        }
        Self { world, packs }
    }

    /// Returns the first sentence of the comment at the beginning of a set's file.
    pub fn set_description(&self, set: &str) -> Option<String> {
        let mut files = self.packs.iter().flat_map(|it| &it.files);
        let (_, source) = files.find(|(name, _)| set_of(name) == set)?;
        let comment = source.text.lines().map_while(|it| it.strip_prefix('#'));
        let comment = comment.map(str::trim).filter(|it| !it.starts_with("yaml-language-server"));
        let text = comment.collect::<Vec<_>>().join(" ");
        let sentence = text.split_once(". ").map_or(text.as_str(), |(first, _)| first);
        let sentence = sentence.trim_end_matches('.').trim();
        (!sentence.is_empty()).then(|| format!("{sentence}."))
    }

    /// Returns the description of an entry.
    pub fn description(&self, id: &str) -> Option<String> {
        let mut files = self.packs.iter().flat_map(|it| &it.files);
        files.find_map(|(_, source)| description_in(source, id))
    }

    /// Collects examples of a guard or a check from the cases of the packs.
    pub fn examples(&self, policy: &Policy, id: &str) -> RuleExamples {
        let known = NameTable::of(policy);
        let mut examples = RuleExamples::default();
        for pack in &self.packs {
            let (files, _) = suite::beside(self.world, pack, None);
            for source in files.iter().filter(|it| it.text.contains(id)) {
                let (cases, _) = read::read(source, &known);
                cases.iter().for_each(|it| add_case(&mut examples, it, id));
            }
        }
        examples.shown()
    }
}

fn description_in(source: &Arc<Source>, id: &str) -> Option<String> {
    if !source.text.contains(id) {
        return None;
    }
    let (node, _) = yaml::parse(source);
    let node = node?;
    let entry = node.items()?.iter().find(|it| it.get("id").is_some_and(|it| it.says(id)))?;
    entry.get("description").and_then(|it| it.text()).map(|it| it.trim().to_owned())
}

fn add_case(examples: &mut RuleExamples, case: &Case, id: &str) {
    for step in &case.steps {
        let Expect::Wanted(wanted) = &step.expect else { continue };
        for it in wanted {
            match it.path.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
                ["guards", name] if *name == id && is_plain(step) => {
                    if let Some(fires) = result(it) {
                        examples.add(fires, call(&step.on));
                    }
                }
                // Earlier steps can decide the result of a later one.
                ["considerations", name, "status" | "consequence"]
                    if *name == id && case.steps.len() == 1 =>
                {
                    if let Some(fires) = result(it) {
                        examples.add(fires, example_text::of_step(step));
                    }
                }
                _ => {}
            }
        }
    }
}

/// Returns whether the rule is expected to fire. `None` for other results.
fn result(expectation: &Expectation) -> Option<bool> {
    let Matcher::Is(Value::String(word)) = &expectation.test else { return None };
    match word.as_str() {
        "fired" | "unsatisfied" | "blocks" | "warns" | "recorded" => Some(true),
        "silent" | "passed" | "satisfied" => Some(false),
        _ => None,
    }
}

/// Returns whether the result of a step depends on its action only.
fn is_plain(step: &CaseStep) -> bool {
    let Given { files, env, branch, remote, tree_clean, tracked, uncommitted, .. } = &step.given;
    let is_empty = matches!(step.transcript, TranscriptAddition::Nothing);
    is_empty
        && files.is_empty()
        && env.is_empty()
        && tree_clean.is_none()
        && tracked.is_empty()
        && uncommitted.is_empty()
        && branch.is_none()
        && remote.is_none()
}

/// Returns the command, the file, or the prompt of an event.
fn call(action: &StepAction) -> String {
    let StepAction::Event { fields, .. } = action else { return String::new() };
    match (fields.get("tool_input"), fields.get("prompt").and_then(Value::as_str)) {
        (Some(input), _) => subject(action.tool(), input),
        (None, Some(prompt)) => prompt.to_owned(),
        (None, None) => String::new(),
    }
}
