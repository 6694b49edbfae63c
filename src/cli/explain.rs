//! `policyd explain`: why a decision was taken, from its record in the decision log.

use super::{
    Console, EXIT_FOUND, EXIT_OK, EXIT_USAGE, ExplainArguments, ListFormat, check, error, pack,
};
use policyd_app::packs;
use policyd_app::sessions::explained::{self, PackChoice};
use policyd_app::sessions::logged_entries::{DecisionLogs, EntryQuery, FoundEntry};
use policyd_app::sessions::recorded;
use policyd_app::workspace::project;
use policyd_world::World;

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
    let (id, session) = (arguments.id.as_deref(), arguments.session.as_deref());
    let logs = DecisionLogs::of(world, &project, policy.as_ref().ok());
    let entry = match logs.find(EntryQuery { id, session, ..EntryQuery::default() }) {
        Ok(FoundEntry { entry, skipped }) => {
            if skipped > 0 {
                console.eprint(&skipped_text(skipped));
            }
            entry
        }
        Err(error) => {
            let code = error::report(console, &error);
            if let Some(hint) = id.and_then(check::hint) {
                console.eprint_as_is(&format!("{hint}\n"));
            }
            return code;
        }
    };
    let choice = if arguments.policies.is_some() { PackChoice::Named } else { PackChoice::Logged };
    let explanation = explained::explain(world, &project, entry, found, choice);
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
