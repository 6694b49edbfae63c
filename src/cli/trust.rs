//! `policyd trust`: a human says that a pack found in a repository may be used on this machine, as it
//! is now. What that grants is shown before the question; a change of its files asks again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, TrustArguments, error, pause};
use crate::human::{keeps_on, require_human, require_unpinned};
use policyd_app::error::AppError;
use policyd_app::packs::trust_record::PackDifference;
use policyd_app::packs::{self, folder, grants, places, trust_record};
use policyd_app::workspace::project::{self, Project};
use policyd_policy::Policy;
use policyd_record::notice::SwitchKind;
use policyd_record::paint::TextColor;
use policyd_report::text_changes;
use policyd_shell::path::normal;
use policyd_store::configuration::{Configuration, ConfigurationOwner, Pins};
use policyd_store::trust::{TrustStatus, TrustStore, TrustedPack};
use policyd_store::user_choices::UserChoiceStore;
use policyd_world::World;
use policyd_yaml::Source;

/// Trusts, lists or revokes.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &TrustArguments) -> u8 {
    let Some(store) = packs::trust_store(world) else {
        console.eprint("cannot store trust: neither `XDG_CONFIG_HOME` nor `HOME` is set");
        return EXIT_BROKEN;
    };
    if arguments.list {
        return list(world, console, &store);
    }
    let project = project::find(world, None);
    if arguments.switch_files {
        return switch_files(world, console, &project, !arguments.revoke);
    }
    let Some(folder) = folder(world, &project, arguments.folder.as_deref()) else {
        let named = arguments.folder.as_deref().unwrap_or(&project.root);
        console.eprint(&format!("{} contains no pack", named.display()));
        if let Some(unused) = places::unused_pack(world, &project) {
            console.eprint(&format!("{}\n{}", unused.text(), unused.help()));
        }
        return EXIT_BROKEN;
    };
    if arguments.hash {
        return print_hash(world, console, &folder);
    }
    let done = if arguments.revoke {
        revoke(world, console, &folder)
    } else {
        trust(world, console, arguments.changes, &folder)
    };
    done.unwrap_or_else(|error| error::report(console, &error))
}

/// The pack that is meant: a folder of policies, or the one of a project.
fn folder(world: &dyn World, project: &Project, named: Option<&Path>) -> Option<PathBuf> {
    let Some(named) = named else { return packs::nearest_of(world, project) };
    let named = normal(&world.working_folder().join(named));
    let inner = named.join(project::STATE_DIR_NAME).join("policies");
    // What is gone can still be revoked.
    let found = [&inner, &named].into_iter().find(|it| folder::holds_policies(world, it));
    let known = packs::trust_store(world).and_then(|it| it.all().ok()).unwrap_or_default();
    let revocable = || {
        [inner.clone(), named.clone()]
            .into_iter()
            .find(|it| known.iter().any(|known| Path::new(&known.folder) == it))
    };
    found.cloned().or_else(revocable)
}

/// Prints the content hash of a pack, for the list of allowed packs of an organization.
fn print_hash(world: &dyn World, console: &mut Console<'_>, folder: &Path) -> u8 {
    let found = packs::at(world, Some(&folder.display().to_string()));
    if !found.unreadable.is_empty() {
        console.eprint(&found.unreadable.join("\n"));
        return EXIT_BROKEN;
    }
    console.print(&format!("{}  {}\n", found.content_hash(), folder.display()));
    EXIT_OK
}

fn trust(
    world: &dyn World,
    console: &mut Console<'_>,
    changes: bool,
    folder: &Path,
) -> Result<u8, AppError> {
    let name = folder.display().to_string();
    let found = packs::at(world, Some(&name));
    if !found.unreadable.is_empty() {
        return Err(AppError::failed_as(found.unreadable.join("\n")));
    }
    let is_other =
        |pins: &Pins| (!pins.allows_pack(&found.content_hash())).then_some("trust.allowed_packs");
    if let Err(code) = require_unpinned(world, console, is_other) {
        console.eprint(&format!("note: the content hash of the pack is {}", found.content_hash()));
        return Ok(code);
    }
    list_grants(world, console, &found)?;
    let until = if changes { "including future changes" } else { "until its files change" };
    if let Err(code) = require_human(world, console, &format!("trust {name}, {until}")) {
        return Ok(code);
    }
    let hash = (!changes).then(|| found.content_hash());
    let trusted = TrustedPack { folder: name.clone(), hash, since: world.now() };
    trust_record::add(world, &found, trusted).map_err(AppError::failed)?;
    console.print(&format!("trusted  {name}, {until}\n"));
    if !packs::is_active_directory(world, folder) {
        console.eprint(
            "the pack is not active: a project uses only its directory `.policyd/policies`\nhelp: move the pack \
             there, then run `policyd trust`; or set `POLICYD_POLICIES`",
        );
    }
    Ok(EXIT_OK)
}

/// Shows what the pack in a folder may do once it is trusted.
pub(super) fn show_grants(world: &dyn World, console: &mut Console<'_>, folder: &Path) {
    let folder = normal(&world.working_folder().join(folder));
    let found = packs::at(world, Some(&folder.display().to_string()));
    if let Err(error) = list_grants(world, console, &found) {
        error::report(console, &error);
    }
}

/// Lists what trust in a pack grants.
///
/// # Errors
/// The pack cannot be loaded.
fn list_grants(
    world: &dyn World,
    console: &mut Console<'_>,
    found: &packs::FoundPack,
) -> Result<(), AppError> {
    let policy = packs::policy(world, found).map_err(|broken| {
        let why = packs::explain(&broken);
        AppError::failed_as(format!("{why}; fix the pack, then run `policyd trust` again"))
    })?;
    let builtin = packs::builtin_policy()
        .ok_or_else(|| AppError::failed_as("the built-in pack does not load"))?;
    for it in found.remote() {
        let hash = it.sha256.as_deref().unwrap_or_default();
        console.print(&format!("extends  {} ({hash})\n", it.source));
    }
    for line in grants::list(&policy, &builtin) {
        console.print(&format!("{line}\n"));
    }
    print_difference(world, console, found, &policy);
    Ok(())
}

/// Shows what changed since the user trusted the pack. What changed in the rules comes last, next to the question.
fn print_difference(
    world: &dyn World,
    console: &mut Console<'_>,
    found: &packs::FoundPack,
    policy: &Policy,
) {
    let Some(difference) = trust_record::difference(world, found, policy) else { return };
    let PackDifference { since, before, now, is_same, rules } = difference;
    if is_same {
        console.print(&format!("no file changed since you trusted the pack at {since}\n"));
        return;
    }
    let files = text_changes::unified(&before, &now);
    console.print(&format!("\nchanged since you trusted it at {since}:\n"));
    for line in &files {
        let color = match line.as_bytes().first() {
            Some(b'+') => TextColor::Green,
            Some(b'-') => TextColor::Red,
            _ => TextColor::Dim,
        };
        let line = console.screen().style().paint(color, line);
        console.print(&format!("  {line}\n"));
    }
    if files.is_empty() {
        console.print("  only values that are masked here, such as secrets\n");
    }
    console.print("\n");
    match rules.as_deref() {
        None => console
            .print("the rules cannot be compared, because the earlier version is not known or does not load\n"),
        Some([]) => console.print("no rule, setting, or command is weaker, added, or removed\n"),
        Some(rules) => rules.iter().for_each(|it| console.print(&format!("{it}\n"))),
    }
    console.print("\n");
}

/// Honors the switch files of a project, or no longer.
fn switch_files(
    world: &dyn World,
    console: &mut Console<'_>,
    project: &Project,
    is_honored: bool,
) -> u8 {
    if is_honored && let Err(code) = require_unpinned(world, console, keeps_on) {
        return code;
    }
    let (verb, files) = (if is_honored { "honor" } else { "ignore" }, "switch files in");
    let root = project.main.display();
    let actor = match require_human(world, console, &format!("{verb} {files} {root}")) {
        Ok(actor) => actor,
        Err(code) => return code,
    };
    let store = UserChoiceStore::new(world, &project.state);
    if let Err(error) = store.change(|it| it.switch_files = is_honored) {
        console.eprint(&error.to_string());
        return EXIT_BROKEN;
    }
    let what = if is_honored { "honored" } else { "ignored" };
    pause::log(world, project, SwitchKind::Trust, None, format!("switch files are {what}"), &actor);
    console.print(&format!("{what}  {files} {root}\n"));
    EXIT_OK
}

fn revoke(world: &dyn World, console: &mut Console<'_>, folder: &Path) -> Result<u8, AppError> {
    let action = format!("no longer trust {}", folder.display());
    if let Err(code) = require_human(world, console, &action) {
        return Ok(code);
    }
    if trust_record::revoke(world, folder).map_err(AppError::failed)? {
        console.print(&format!("revoked  {}\n", folder.display()));
        return Ok(EXIT_OK);
    }
    console.eprint(&format!("{} was not trusted", folder.display()));
    Ok(EXIT_FOUND)
}

fn list(world: &dyn World, console: &mut Console<'_>, store: &TrustStore<'_>) -> u8 {
    let all = match store.all() {
        Ok(all) => all,
        Err(error) => {
            console.eprint(&error.to_string());
            return EXIT_BROKEN;
        }
    };
    if all.is_empty() {
        console.eprint("no pack of a repository is trusted");
    }
    let pins = Configuration::load(world, ConfigurationOwner::Organization).pins;
    for it in all {
        let folder = Path::new(&it.folder);
        let now = packs::at(world, Some(&it.folder));
        let standing = match store.standing(folder, None, &now.content_hash()) {
            _ if !now.unreadable.is_empty() => "gone",
            TrustStatus::Trusted if !pins.allows_pack(&now.content_hash()) => {
                "trusted, not used: the organization does not allow it"
            }
            TrustStatus::Trusted if it.hash.is_none() => "trusted, including future changes",
            TrustStatus::Trusted => "trusted",
            TrustStatus::Changed | TrustStatus::Unknown => "changed since, not used",
        };
        console.print(&format!("{}  {}  {standing}\n", it.since, it.folder));
    }
    EXIT_OK
}

/// Trusts a pack that `policyd init` has just written, if it contains those files and no other ones;
/// returns whether it is trusted.
pub(super) fn trust_written(
    world: &dyn World,
    console: &mut Console<'_>,
    folder: &Path,
    written: &[(String, String)],
) -> bool {
    let folder = normal(&world.working_folder().join(folder));
    let name = folder.display().to_string();
    let found = packs::at(world, Some(&name));
    let is_written = |(file, source): &(String, Arc<Source>)| {
        written.iter().any(|(name, text)| name == file && *text == *source.text)
    };
    if !found.unreadable.is_empty() || !found.pack().files.iter().all(is_written) {
        return false;
    }
    let hash = Some(found.content_hash());
    let trusted = TrustedPack { folder: name, hash, since: world.now() };
    match trust_record::add(world, &found, trusted) {
        Ok(()) => {
            packs::compile_ahead(world, &found);
            true
        }
        Err(error) => {
            console.eprint(&error.to_string());
            false
        }
    }
}
