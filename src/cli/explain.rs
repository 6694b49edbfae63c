//! `policyd explain`: why a decision was taken, from its record in the decision log. It is judged
//! again from what the record holds, and what differs or cannot be had any more is said.

use std::path::Path;
use std::time::Duration;

use super::project::Project;
use super::recorded::{self, Until};
use super::{
    Console, EXIT_FOUND, EXIT_OK, EXIT_USAGE, ExplainArguments, ListFormat, pack, project,
};
use crate::checksum::hex;
use crate::judge::inputs::Inputs;
use crate::judge::{self, Bench, Detail, Outcome};
use crate::report::decision_log::Entry;
use crate::report::explanation::Explanation;
use crate::script::Evaluator;
use crate::store::trust::Standing;
use crate::world::World;

/// Explains one decision: exit 1 where judging it again comes to something else.
pub(super) fn run(
    world: &dyn World,
    console: &mut Console<'_>,
    arguments: &ExplainArguments,
) -> u8 {
    if arguments.last && arguments.id.is_some() {
        console.complain("name a decision, or ask for the last one with --last");
        return EXIT_USAGE;
    }
    let project = project::find(world, None);
    let found = pack::find(world, &project, arguments.policies.as_deref());
    pack::tell_passed_over(console, &found);
    let policy = recorded::policy(world, &project, &found);
    let entries = recorded::entries(world, &project, policy.as_ref().ok());
    let entry =
        match recorded::find(&entries, arguments.id.as_deref(), arguments.session.as_deref()) {
            Ok(entry) => entry,
            Err((code, complaint)) => {
                console.complain(&complaint);
                return code;
            }
        };
    let mut lost = Vec::new();
    let again = match &entry.inputs {
        Some(inputs) => {
            let found = pack_of((world, &project), arguments, found, inputs, &mut lost);
            judge_again(world, (&project, &found), (&entry, inputs), &mut lost)
        }
        None => {
            let judged = entry.session_type.is_some();
            let why = if judged {
                "the record does not hold what the decision rested on"
            } else {
                "nothing was judged then"
            };
            lost.push(why.to_owned());
            None
        }
    };
    let explanation = Explanation { entry, again, lost };
    console.say(&match arguments.format {
        ListFormat::Json => format!("{:#}\n", explanation.to_json()),
        ListFormat::Text | ListFormat::Compact => {
            explanation.to_text(arguments.all, console.color())
        }
    });
    if explanation.differences().is_empty() { EXIT_OK } else { EXIT_FOUND }
}

/// The pack to judge by: the one that is named, else that of then in its place, else the project's.
fn pack_of(
    (world, project): (&dyn World, &Project),
    arguments: &ExplainArguments,
    today: pack::Found,
    inputs: &Inputs,
    lost: &mut Vec<String>,
) -> pack::Found {
    if arguments.policies.is_some() {
        return today;
    }
    let then = pack::at(world, inputs.pack_folder.as_deref());
    if let Some(folder) = inputs.pack_folder.as_deref().map(Path::new)
        && today.folder() != inputs.pack_folder.as_deref()
        && (folder.starts_with(&project.root) || folder.starts_with(&project.main))
        && pack::standing(world, project, folder, &then) != Standing::Trusted
    {
        let folder = folder.display();
        lost.push(format!(
            "the pack of then is not trusted now (policyd trust {folder}, or --policies {folder})"
        ));
        return today;
    }
    if then.unreadable.is_empty() {
        return then;
    }
    lost.push(format!("the pack of then cannot be read: {}", then.unreadable.join("; ")));
    today
}

/// Judges an entry again.
fn judge_again(
    world: &dyn World,
    (project, found): (&Project, &pack::Found),
    (entry, inputs): (&Entry, &Inputs),
    lost: &mut Vec<String>,
) -> Option<Outcome> {
    let mut policy =
        recorded::policy(world, project, found).map_err(|broken| lost.push(broken)).ok()?;
    let name = entry.pack.as_deref().unwrap_or_default();
    if policy.name != name {
        lost.push(format!("it was decided by the pack {name}; {} is used here", policy.name));
    } else if hex(found.short_hash()) != inputs.pack_hash {
        lost.push(format!("the pack {name} was changed since; it is judged as it is now"));
    }
    if inputs.program != env!("CARGO_PKG_VERSION") {
        lost.push(format!("it was decided by version {} of policyd", inputs.program));
    }
    let whose = entry.whose()?;
    let context = recorded::context(world, (entry, inputs), &mut policy, Until::Then, lost)?;
    let mut evaluator = Evaluator::new(context.clone());
    let forced = inputs.forced_type.as_deref();
    // It classifies the session, which nothing else does.
    let _asked_then = judge::plan(&policy, &context, forced, &mut evaluator);
    let state = inputs.state(&whose);
    let bench = Bench {
        policy: &policy,
        context: &context,
        state: &state,
        stopwatch: &|| Duration::ZERO,
        detail: Detail::Values,
        report_path: "",
    };
    Some(judge::decide(bench, &mut evaluator))
}
