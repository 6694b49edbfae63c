//! Packs for commands: a valid policy, or a message that says what is wrong.

use std::path::Path;
use std::sync::Arc;

use super::Console;
use policyd_app::packs::{self, FoundPack, InvalidPack, places};
use policyd_app::workspace::project::{self, Project};
use policyd_fact_table::types::Names;
use policyd_policy::{Policy, builtin};
use policyd_world::World;

/// Reports nearer packs that are not used because they are not trusted.
pub(super) fn warn_untrusted_packs(console: &mut Console<'_>, found: &FoundPack) {
    found.untrusted.iter().for_each(|it| console.eprint(&it.text()));
}

/// Reports that the built-in pack is among the packs that are used, because the project has no pack.
pub(super) fn note_builtin_pack<'p>(
    world: &dyn World,
    console: &mut Console<'_>,
    project: &Project,
    mut packs: impl Iterator<Item = &'p str>,
) {
    if !packs.any(|it| it == builtin::NAME) {
        return;
    }
    match places::unused_pack(world, project) {
        Some(unused) => console.eprint(&format!(
            "{}; the built-in pack is used\n{}",
            unused.text(),
            unused.help()
        )),
        None => console.eprint(
            "this project has no custom pack; the built-in pack is used (run `policyd init`, or \
             pass a directory)",
        ),
    }
}

/// Loads a found pack, with the names that its expressions may use; reports an invalid one.
pub(super) fn require_reviewed(
    world: &dyn World,
    console: &mut Console<'_>,
    found: &FoundPack,
) -> Option<(Policy, Arc<Names>)> {
    let policy = packs::policy(world, found).map_err(|it| report_invalid(console, &it)).ok()?;
    Some((policy, packs::names(found)))
}

fn report_invalid(console: &mut Console<'_>, invalid: &InvalidPack) {
    console.eprint(&packs::explain(invalid));
    console.eprint("run `policyd lint` to list every finding with its location");
}

/// Loads the pack of the project, or the named one; reports an invalid pack.
pub(super) fn require_valid(
    world: &dyn World,
    console: &mut Console<'_>,
    named: Option<&Path>,
) -> Option<Policy> {
    require_valid_with_pack(world, console, named).map(|(policy, _)| policy)
}

/// Does the same as [`require_valid`], and also returns the pack.
pub(super) fn require_valid_with_pack(
    world: &dyn World,
    console: &mut Console<'_>,
    named: Option<&Path>,
) -> Option<(Policy, FoundPack)> {
    let project = project::find(world, None);
    let found = packs::find(world, &project, named);
    warn_untrusted_packs(console, &found);
    let policy = packs::policy(world, &found).map_err(|it| report_invalid(console, &it)).ok()?;
    Some((policy, found))
}

/// Loads the pack of a project, or the built-in one if that is invalid: results of calls and tasks must
/// not get lost because of a typo. The invalid pack is reported.
pub(super) fn or_builtin_policy(
    world: &dyn World,
    console: &mut Console<'_>,
    project: &Project,
) -> Option<Policy> {
    let found = packs::find(world, project, None);
    warn_untrusted_packs(console, &found);
    let invalid = match packs::policy(world, &found) {
        Ok(policy) => return Some(policy),
        Err(invalid) => invalid,
    };
    report_invalid(console, &invalid);
    console.eprint("the built-in pack is used meanwhile");
    packs::builtin_policy()
}
