//! `policyd explain`: why a decision was taken, from its record in the decision log. It is judged
//! again from what the record holds, and what differs or cannot be had any more is said.

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use super::{Console, EXIT_FOUND, EXIT_OK, EXIT_USAGE, ExplainArguments, ListFormat, error, pack};
use crate::app::packs::{self, InvalidPack, organization};
use crate::app::sessions::recorded::{self, ReadLimit};
use crate::app::workspace::project::{self, Project};
use crate::checksum::hex;
use crate::evaluation::called::LoggedEvent;
use crate::evaluation::guards::{self, GuardsOutcome};
use crate::evaluation::inputs::Inputs;
use crate::evaluation::situation::{EventContext, Matchers};
use crate::evaluation::{self, Detail, EvaluationContext, StopOutcome};
use crate::expr::Evaluator;
use crate::expr::call_facts::CallFacts;
use crate::facts::call::{AnalysisContext, TimeLimit};
use crate::facts::compiled::CompiledMatchers;
use crate::policy::Policy;
use crate::report::decision_log::Entry;
use crate::report::explanation::Explanation;
use crate::report::pack_layer::PackLayer;
use crate::store::trust::TrustStatus;
use crate::world::World;

/// Explains one decision: exit 1 where judging it again comes to something else.
pub(super) fn run(
    world: &dyn World,
    console: &mut Console<'_>,
    arguments: &ExplainArguments,
) -> u8 {
    if arguments.last && arguments.id.is_some() {
        console.eprint("`--last` cannot be combined with an id\nhelp: pass an id, or `--last`");
        return EXIT_USAGE;
    }
    let project = project::find(world, None);
    let found = packs::find(world, &project, arguments.policies.as_deref());
    pack::warn_untrusted_packs(console, &found);
    let policy = recorded::policy(world, &project, &found);
    let entries = recorded::entries(world, &project, policy.as_ref().ok());
    let found_entry =
        recorded::find(&entries, arguments.id.as_deref(), arguments.session.as_deref());
    let entry = match found_entry {
        Ok(recorded::Found { entry, skipped }) => {
            if skipped > 0 {
                console.eprint(&skipped_text(skipped));
            }
            entry
        }
        Err(error) => return error::report(console, &error),
    };
    let mut lost = Vec::new();
    let (mut again, mut guarded) = (None, None);
    let mut layer = entry.organization.then_some(PackLayer::Organization);
    if let Some(then) = OriginalDecision::of(&entry) {
        let found = match entry.organization {
            true => organization_pack(world, &mut lost),
            false => Some(pack_of(world, &project, arguments, found, then, &mut lost)),
        };
        if let Some(found) = found {
            layer = Some(found.owner(world, &project));
            match decided_by(world, &project, &found, &entry, then, &mut lost) {
                Err(broken) => lost.push(packs::explain(&broken)),
                Ok(policy) => {
                    let inputs = entry.inputs.as_ref();
                    again = inputs
                        .and_then(|it| judge_again(world, policy.clone(), &entry, it, &mut lost));
                    guarded = entry
                        .call
                        .as_ref()
                        .and_then(|it| guard_again(policy, &entry, it, &mut lost));
                }
            }
        }
    } else if entry.session_type.is_some() || !entry.guards.is_empty() {
        lost.push("cannot re-evaluate: this entry was logged without its inputs".to_owned());
    } else {
        lost.push("cannot re-evaluate: policyd evaluated no rule at this event".to_owned());
    }
    let explanation = Explanation { entry, layer, again, guarded, lost };
    match arguments.format {
        ListFormat::Json => console.print(&format!("{:#}\n", explanation.to_json())),
        ListFormat::Compact => console.print(&explanation.to_lines(console.color())),
        ListFormat::Text => {
            console.print_lines(&explanation.to_text(arguments.all, console.color()));
        }
    }
    if explanation.differences().is_empty() { EXIT_OK } else { EXIT_FOUND }
}

/// The notice about newer entries at which nothing was evaluated.
fn skipped_text(count: usize) -> String {
    let entries =
        if count == 1 { "1 newer entry was" } else { &format!("{count} newer entries were") };
    format!("{entries} not evaluated; `policyd log` lists them with their ids")
}

/// What decided then.
#[derive(Clone, Copy)]
struct OriginalDecision<'a> {
    program: &'a str,
    pack_hash: &'a str,
    pack_folder: Option<&'a str>,
}

impl<'a> OriginalDecision<'a> {
    fn of(entry: &'a Entry) -> Option<Self> {
        let Inputs { program, pack_hash, pack_folder, .. } = match (&entry.inputs, &entry.call) {
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
fn organization_pack(world: &dyn World, lost: &mut Vec<String>) -> Option<packs::Found> {
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
    arguments: &ExplainArguments,
    today: packs::Found,
    decided: OriginalDecision<'_>,
    lost: &mut Vec<String>,
) -> packs::Found {
    if arguments.policies.is_some() {
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
    found: &packs::Found,
    entry: &Entry,
    then: OriginalDecision<'_>,
    lost: &mut Vec<String>,
) -> Result<Policy, InvalidPack> {
    let mut policy = match entry.organization {
        true => packs::policy(world, found)?,
        false => recorded::policy(world, project, found)?,
    };
    if entry.observed {
        policy.observe(|id, _| entry.observes(id));
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
    policy: Policy,
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
    let reading = AnalysisContext {
        lens: &*words.lens,
        knowledge,
        around: &called.around,
        patience: TimeLimit::ENDLESS,
    };
    let call = event.call(reading);
    let seen = Rc::new(CallFacts { call, around: Rc::new(called.around.clone()) });
    let situation =
        EventContext::alone(event.clone(), called.around.project.clone().into(), whose.at);
    let situation = EventContext { interactive: !called.unattended, ..situation };
    let context = Rc::new(situation.context(&policy, &words));
    context.learned.borrow_mut().call = Some(seen.clone());
    let mut evaluator = Evaluator::new(context.clone());
    let concerned = guards::applicable_guards(&policy, &event, whose.at)
        .filter(|it| !it.reads_transcript && !it.reads_stores);
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
    let context = recorded::context(world, entry, inputs, &mut policy, ReadLimit::Then, lost)?;
    let mut evaluator = Evaluator::new(context.clone());
    let forced = inputs.forced_type.as_deref();
    // It classifies the session, which nothing else does.
    let _asked_then = evaluation::plan(&policy, &context, forced, &mut evaluator);
    let state = inputs.state(&whose);
    let bench = EvaluationContext {
        policy: &policy,
        context: &context,
        state: &state,
        stopwatch: &|| Duration::ZERO,
        detail: Detail::Values,
        report_path: "",
        allowed: &entry.allowed(),
    };
    Some(evaluation::decide(bench, &mut evaluator))
}
