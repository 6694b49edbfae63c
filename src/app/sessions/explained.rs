//! Explains a decision from its record in the decision log. It is evaluated again from what the record holds, and what
//! differs or is not available any more is reported.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use super::recorded::{self, ReadLimit};
use crate::packs::{self, InvalidPack, organization};
use crate::workspace::project::Project;
use policyd_evaluation::called::LoggedEvent;
use policyd_evaluation::guards::{self, GuardsOutcome};
use policyd_evaluation::inputs::Inputs;
use policyd_evaluation::situation::{EventContext, Matchers};
use policyd_evaluation::{self as evaluation, Detail, EvaluationContext, StopOutcome};
use policyd_fact_table::FactEvaluator;
use policyd_fact_table::call_facts::CallFacts;
use policyd_fact_table::context::FactView;
use policyd_fact_table::source::FactSources;
use policyd_facts::call::{AnalysisContext, NoDisk};
use policyd_facts::compiled::CompiledMatchers;
use policyd_policy::Policy;
use policyd_policy::approval::ApprovalLevel;
use policyd_record::decision_log::Entry;
use policyd_record::pack_layer::PackLayer;
use policyd_report::explanation::Explanation;
use policyd_store::trust::TrustStatus;
use policyd_world::World;
use policyd_yaml::checksum::hex;

/// Which pack evaluates the decision again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackChoice {
    /// The one that the user named.
    Named,
    /// The one that the record names, else that of the project.
    Logged,
}

/// Explains a decision; `found` is the pack that the user named, or that of the project.
pub fn explain(
    world: &dyn World,
    project: &Project,
    mut entry: Entry,
    found: packs::FoundPack,
    choice: PackChoice,
) -> Explanation {
    let (mut lost, mut former) = (Vec::new(), BTreeMap::new());
    let (mut again, mut guarded) = (None, None);
    let mut layer = entry.organization.then_some(PackLayer::Organization);
    let (inputs, call) = (entry.read_inputs(), entry.read_call());
    if let Some(then) = OriginalDecision::of(inputs.as_ref(), call.as_ref()) {
        let found = match entry.organization {
            true => organization_pack(world, &mut lost),
            false => Some(pack_of(world, project, choice, found, then, &mut lost)),
        };
        if let Some(found) = found {
            layer = Some(found.owner(world, project));
            match decided_by(world, project, &found, &entry, then, &mut lost) {
                Err(broken) => lost.push(packs::explain(&broken)),
                Ok(policy) => {
                    let ids = policy.former_ids();
                    former = ids.map(|(old, id)| (old.to_owned(), id.to_owned())).collect();
                    again = inputs
                        .as_ref()
                        .and_then(|it| judge_again(world, policy.clone(), &entry, it, &mut lost));
                    guarded =
                        call.as_ref().and_then(|it| guard_again(policy, &entry, it, &mut lost));
                }
            }
        }
    } else if entry.session_type.is_some() || !entry.guards.is_empty() {
        lost.push("cannot re-evaluate: this entry was logged without its inputs".to_owned());
    } else if entry.notice.is_none() {
        lost.push("cannot re-evaluate: policyd evaluated no rule at this event".to_owned());
    }
    entry.rename_rules(|id| former.get(id).cloned());
    Explanation { entry, layer, again, guarded, lost }
}

/// What decided then.
#[derive(Clone, Copy)]
struct OriginalDecision<'a> {
    program: &'a str,
    pack_hash: &'a str,
    pack_folder: Option<&'a str>,
}

impl<'a> OriginalDecision<'a> {
    fn of(inputs: Option<&'a Inputs>, call: Option<&'a LoggedEvent>) -> Option<Self> {
        let Inputs { program, pack_hash, pack_folder, .. } = match (inputs, call) {
            (Some(inputs), _) => inputs,
            (None, Some(LoggedEvent { program, pack_hash, pack_folder, .. })) => {
                return Some(Self { program, pack_hash, pack_folder: pack_folder.as_deref() });
            }
            (None, None) => return None,
        };
        Some(Self { program, pack_hash, pack_folder: pack_folder.as_deref() })
    }
}

/// The pack of the organization as it is now. `None`, with the reason in `lost`, if it is not used.
fn organization_pack(world: &dyn World, lost: &mut Vec<String>) -> Option<packs::FoundPack> {
    match organization::find(world) {
        Ok(Some(found)) => return Some(found),
        Ok(None) => lost.push("the organization no longer has rules".to_owned()),
        Err(ignored) => lost.push(ignored.to_string()),
    }
    None
}

/// The pack to judge by: the one that is named, else that of then in its place, else the project's.
fn pack_of(
    world: &dyn World,
    project: &Project,
    choice: PackChoice,
    today: packs::FoundPack,
    decided: OriginalDecision<'_>,
    lost: &mut Vec<String>,
) -> packs::FoundPack {
    // The same pack, with the user's pack beneath it.
    if choice == PackChoice::Named || today.folder() == decided.pack_folder {
        return today;
    }
    let then = packs::at(world, decided.pack_folder);
    if let Some(folder) = decided.pack_folder.map(Path::new)
        && today.folder() != decided.pack_folder
        && (folder.starts_with(&project.root) || folder.starts_with(&project.main))
        && packs::standing(world, project, folder, &then) != TrustStatus::Trusted
    {
        let folder = folder.display();
        lost.push(format!(
            "the logged pack is not trusted (run `policyd trust {folder}`, or pass `--policies \
             {folder}`)"
        ));
        return today;
    }
    if then.unreadable.is_empty() {
        return then;
    }
    lost.push(format!("could not read the logged pack: {}", then.unreadable.join("; ")));
    today
}

/// The policy to judge by; what is otherwise than then is added to `lost`.
fn decided_by(
    world: &dyn World,
    project: &Project,
    found: &packs::FoundPack,
    entry: &Entry,
    then: OriginalDecision<'_>,
    lost: &mut Vec<String>,
) -> Result<Policy, InvalidPack> {
    let mut policy = match entry.organization {
        true => packs::policy(world, found)?,
        false => recorded::policy(world, project, found)?,
    };
    if entry.observed {
        policy.observe(|names| names.iter().any(|it| entry.observes(it)));
    }
    let name = entry.pack.as_deref().unwrap_or_default();
    if policy.name != name {
        lost.push(format!(
            "the decision used the pack {name}; the explanation uses {}",
            policy.name
        ));
    } else if then.pack_hash.is_empty() {
        lost.push("the entry does not identify the content of its pack".to_owned());
    } else if hex(found.short_hash()) != then.pack_hash {
        lost.push(format!("the pack {name} has changed; the explanation uses its current content"));
    }
    if then.program != env!("CARGO_PKG_VERSION") {
        lost.push(format!("the decision was made by policyd {}", then.program));
    }
    Ok(policy)
}

/// Judges a tool call again. Guards that looked at more than the call are left out.
fn guard_again(
    mut policy: Policy,
    entry: &Entry,
    called: &LoggedEvent,
    lost: &mut Vec<String>,
) -> Option<GuardsOutcome> {
    lost.extend(called.lost());
    if called.left_out > 0 {
        return None;
    }
    let whose = entry.whose()?;
    let event = called.event(&whose, entry.tool.as_deref());
    let words = Matchers::new(CompiledMatchers::new(policy.lens.clone()), policy.texts.clone());
    let knowledge = &*policy.guards.knowledge;
    let reading =
        AnalysisContext { lens: &*words.lens, knowledge, around: &called.around, disk: &NoDisk };
    let call = event.call(reading);
    let seen =
        Rc::new(CallFacts { call, around: Rc::new(called.around.clone()), ..CallFacts::default() });
    let situation =
        EventContext::alone(event.clone(), called.around.project.clone().into(), whose.at);
    let situation = EventContext {
        interactive: !called.unattended,
        supervised: called.supervised,
        ..situation
    };
    let view = FactView { call: Some(Rc::clone(&seen)), ..situation.view(&policy, &words) };
    let context = Rc::clone(&view.context);
    let mut evaluator = FactEvaluator::new(Rc::new(view));
    // Which approvals the user had chosen is not logged: the decision says what counted.
    policy.approvals = ApprovalLevel::Work;
    let concerned = guards::applicable_guards(&policy, &event, whose.at).filter(|it| {
        !it.sources.has_some(FactSources::TRANSCRIPT)
            && !it.sources.has_some(FactSources::STORES)
            && !it.sources.has_some(FactSources::FILES)
    });
    let asked = (&*context, &mut evaluator);
    let mut guarded = guards::judge(concerned, &event, &seen, asked.0, asked.1, Detail::Values);
    let allowed = entry.allowed();
    if !allowed.is_empty() {
        guarded.allow(&allowed);
    }
    Some(guarded)
}

/// Judges a stop again.
fn judge_again(
    world: &dyn World,
    mut policy: Policy,
    entry: &Entry,
    inputs: &Inputs,
    lost: &mut Vec<String>,
) -> Option<StopOutcome> {
    let whose = entry.whose()?;
    let mut view = recorded::view(world, entry, inputs, &mut policy, ReadLimit::Then, lost)?;
    let mut evaluator = FactEvaluator::new(Rc::new(view.clone()));
    let forced = inputs.forced_type.as_deref();
    view.session_type = evaluation::classify(&policy, forced, &mut evaluator);
    let state = inputs.state(&whose);
    let bench = EvaluationContext {
        policy: &policy,
        view: &view,
        state: &state,
        stopwatch: &|| Duration::ZERO,
        detail: Detail::Values,
        report_path: "",
        allowed: &entry.allowed(),
    };
    Some(evaluation::decide(bench, &mut evaluator))
}
