//! Inspections of an installation: settings of clients, versions, switches, packs, state, logs, and
//! transcripts. They change nothing in the project.

mod audit_log;
pub mod check;
mod layers;
mod transcripts;
pub mod variables;
mod versions;

use std::path::Path;
use std::time::Duration;

use crate::packs::shared_ids::{SharedId, shared_ids};
use crate::packs::{self, organization};
use crate::programs;
use crate::tasks::{StoreLocation, Stores};
use crate::workspace::gate_status::GateStatus;
use crate::workspace::project::Project;
use check::{CheckHealth, DoctorCheck, try_to_write};
use policyd_policy::approval::ApprovalLevel;
use policyd_policy::pack_list::PackList;
use policyd_policy::remote::RemotePack;
use policyd_store::administrator;
use policyd_store::breakers::BreakerStore;
use policyd_store::configuration::{Configuration, ConfigurationOwner, Configurations};
use policyd_store::document::DocumentError;
use policyd_store::file::Durability;
use policyd_store::pack_cache::PackCache;
use policyd_store::pack_history::{FailedFetch, PackHistoryStore};
use policyd_world::{FileKind, World};

/// Inspects everything that can be read; `options` are the variables that set options.
pub fn inspect(world: &dyn World, project: &Project, options: &[String]) -> Vec<DoctorCheck> {
    let mut checks = vec![program(world)];
    let (layers, callers) = layers::inspect_layers(world, project);
    checks.extend(layers);
    checks.extend(versions::inspect_versions(world, &callers));
    checks.extend(switches(world, project));
    checks.extend(variables::scan_variables(world, options));
    checks.extend(packs(world, project));
    checks.extend(organization(world));
    checks.extend(
        [ConfigurationOwner::Organization, ConfigurationOwner::User]
            .iter()
            .flat_map(|it| settings(world, *it)),
    );
    checks.push(state(world, project));
    checks.extend(audit_log::inspect_log(world, project));
    let breakers = BreakerStore::new(world, &project.state, Durability::default());
    checks.extend(breakers.damage().map(|it| DoctorCheck::new("breakers", CheckHealth::Look, it)));
    checks.extend(stores(world, project));
    checks.extend(transcripts::inspect_transcripts(world));
    checks
}

/// Stored documents whose content is unknown.
fn stores(world: &dyn World, project: &Project) -> Vec<DoctorCheck> {
    let policy = packs::policy(world, &packs::find(world, project, None)).ok();
    let Some(policy) = policy.or_else(packs::builtin_policy) else { return Vec::new() };
    let durability = Durability::default();
    let location = StoreLocation {
        state_dir: &project.state,
        durability: &durability,
        lock_wait: Duration::ZERO,
    };
    let problems = Stores::new(world, &policy, location).document_problems();
    let text = |it: &DocumentError| it.note();
    problems.iter().map(|it| DoctorCheck::new("state", CheckHealth::Look, text(it))).collect()
}

/// Which programs run. A hook names `policyd`, so its absence is a defect.
fn program(world: &dyn World) -> DoctorCheck {
    let version = env!("CARGO_PKG_VERSION");
    let programs = programs::installed(world);
    if let Some(tools) = programs.first().filter(|it| programs::is_tools(it)) {
        let text = format!("policyd {version}: `policyd` is missing beside `{}`", tools.display());
        let mut check = DoctorCheck::new("program", CheckHealth::Bad, text);
        check.more = vec!["help: install policyd again, and run `policyd install`".to_owned()];
        return check;
    }
    let paths: Vec<String> = programs.iter().map(|it| it.display().to_string()).collect();
    if paths.is_empty() {
        return DoctorCheck::new(
            "program",
            CheckHealth::Look,
            format!("policyd {version}, path unknown"),
        );
    }
    DoctorCheck::good("program", format!("policyd {version}, {}", paths.join(" and ")))
}

/// What disables policyd, wholly or for a while, and what looks as if it did.
fn switches(world: &dyn World, project: &Project) -> Vec<DoctorCheck> {
    let now = world.now();
    let status = GateStatus::read(world, project, None, now);
    let off =
        status.off.iter().map(|it| DoctorCheck::new("switch", CheckHealth::Bad, it.text(now)));
    let reported = Configuration::load(world, ConfigurationOwner::Organization).problems;
    let reported: Vec<String> = reported.iter().map(ToString::to_string).collect();
    let problems = status
        .problems
        .iter()
        .filter(|it| !reported.contains(it))
        .map(|it| DoctorCheck::new("switch", CheckHealth::Look, it.as_str()));
    let manifest = packs::policy(world, &packs::find(world, project, None));
    let manifest = manifest.ok().and_then(|it| it.settings.mode);
    let observes = status.enforcement.text(manifest);
    let observes =
        observes.iter().map(|it| DoctorCheck::new("switch", CheckHealth::Look, it.as_str()));
    let level = Configurations::load(world).approvals(world, &project.main);
    let approves = (level != ApprovalLevel::None).then(|| {
        let text = format!("permission prompts are answered up to the level `{}`", level.as_str());
        DoctorCheck::good("approvals", text)
    });
    let pauses =
        status.pauses.iter().map(|it| DoctorCheck::new("switch", CheckHealth::Look, it.text(now)));
    let mut checks: Vec<DoctorCheck> = off.chain(problems).chain(observes).chain(pauses).collect();
    if checks.is_empty() {
        checks.push(DoctorCheck::good("switch", "policyd enforces its rules"));
    }
    checks.extend(approves);
    checks
}

/// Which pack is used, and which is not.
fn packs(world: &dyn World, project: &Project) -> Vec<DoctorCheck> {
    let found = packs::find(world, project, None);
    let passed = found.untrusted.iter();
    let mut checks: Vec<DoctorCheck> =
        passed.map(|it| DoctorCheck::new("trust", CheckHealth::Look, it.text())).collect();
    match packs::trust_store(world).map(|it| it.all()) {
        None => checks.push(DoctorCheck::new(
            "trust",
            CheckHealth::Look,
            "HOME is not set, so no pack of a repository can be trusted",
        )),
        Some(Err(error)) => {
            checks.push(DoctorCheck::new("trust", CheckHealth::Bad, error.to_string()));
        }
        Some(Ok(all)) => {
            let text = format!("trusted packs of repositories: {}", all.len());
            checks.push(DoctorCheck::good("trust", text));
        }
    }
    let name = found.folder().unwrap_or("the built-in pack").to_owned();
    let keeps_on = !Configuration::load(world, ConfigurationOwner::Organization).pins.allow_disable;
    checks.push(match packs::policy(world, &found) {
        Ok(policy) if !policy.settings.enabled && !keeps_on => DoctorCheck::new(
            "pack",
            CheckHealth::Bad,
            format!("{name} is disabled (`enabled: false`)"),
        ),
        Ok(policy) if !policy.skipped_layer.is_empty() => {
            DoctorCheck::new("pack", CheckHealth::Look, policy.skipped_layer)
        }
        Ok(policy) => {
            let rules = policy.considerations.iter().filter(|it| it.enabled).count();
            let probes = policy.probes.iter().filter(|it| it.enabled).count();
            let beneath = found.beneath();
            let beneath =
                beneath.map_or_else(String::new, |it| format!(", over your pack in {it}"));
            DoctorCheck::good("pack", format!("{name}: {rules} checks, {probes} probes{beneath}"))
        }
        Err(broken) => DoctorCheck::new("pack", CheckHealth::Bad, packs::explain(&broken)),
    });
    if let Ok(policy) = packs::policy(world, &found) {
        let shared = shared_ids(&found, &policy, &found.layers(world, project));
        checks.extend(shared.iter().map(|it| {
            let mut check = DoctorCheck::new("pack", CheckHealth::Look, it.text());
            check.more = vec![format!("help: {}", SharedId::help())];
            check
        }));
    }
    checks.extend(found.remote().iter().map(remote));
    checks.extend(failed_fetches(world, Path::new(&name), found.remote()));
    if let Some(unused) = packs::places::unused_pack(world, project) {
        let mut check = DoctorCheck::new("pack", CheckHealth::Look, unused.text());
        check.more = vec![unused.help()];
        checks.push(check);
    }
    checks
}

/// Fetches of remote packs that failed, so that a newer version is not used.
fn failed_fetches(world: &dyn World, folder: &Path, packs: &[RemotePack]) -> Vec<DoctorCheck> {
    let Some(cache) = PackCache::of_pack(world, folder).filter(|_| !packs.is_empty()) else {
        return Vec::new();
    };
    let history = match PackHistoryStore::new(world, cache.folder()).load() {
        Ok(history) => history,
        Err(error) => {
            return vec![DoctorCheck::new("remote pack", CheckHealth::Look, error.to_string())];
        }
    };
    let failed = packs.iter().filter_map(|it| Some((it, history.failures.get(&it.source)?)));
    let check = |(pack, failure): (&RemotePack, &FailedFetch)| {
        let (source, FailedFetch { at, reason }) = (&pack.source, failure);
        let text = format!("{source}: the last fetch failed at {at}: {reason}");
        DoctorCheck::new("remote pack", CheckHealth::Look, text)
    };
    failed.map(check).collect()
}

/// Whether a remote pack can be used.
fn remote(pack: &RemotePack) -> DoctorCheck {
    let source = &pack.source;
    match &pack.files {
        Ok(files) => {
            let name = PackList::of(files).map_or_else(|it| it.to_string(), |it| it.title());
            DoctorCheck::good("remote pack", format!("{source}: {name}"))
        }
        Err(problem) => {
            let mut check =
                DoctorCheck::new("remote pack", CheckHealth::Bad, format!("{source} {problem}"));
            check.more = vec![format!("help: {}", problem.help())];
            check
        }
    }
}

/// Whether the rules of the machine's administrator are used, if there are any.
fn organization(world: &dyn World) -> Vec<DoctorCheck> {
    let about = "organization";
    let found = match organization::find(world) {
        Ok(Some(found)) => found,
        Ok(None) => return Vec::new(),
        Err(weakness) => {
            return vec![DoctorCheck::new(about, CheckHealth::Bad, weakness.to_string())];
        }
    };
    let folder = administrator::policies();
    let mut checks = vec![match packs::policy(world, &found) {
        Err(invalid) => DoctorCheck::new(about, CheckHealth::Bad, packs::explain(&invalid)),
        Ok(policy) => {
            let (guards, checks) = (policy.guards.rules.len(), policy.considerations.len());
            let text = format!("{}: {guards} guards, {checks} checks", folder.display());
            match world.user() {
                Some(0) => {
                    let text = format!("{text}; this user is root, so an agent can change them");
                    DoctorCheck::new(about, CheckHealth::Look, text)
                }
                _ => DoctorCheck::good(about, format!("{text}; only root can change them")),
            }
        }
    }];
    checks.extend(found.remote().iter().map(remote));
    checks.extend(failed_fetches(world, &folder, found.remote()));
    checks
}

/// Which settings of a configuration file count.
fn settings(world: &dyn World, owner: ConfigurationOwner) -> Vec<DoctorCheck> {
    let about = match owner {
        ConfigurationOwner::Organization => "organization",
        ConfigurationOwner::User => "settings",
    };
    let Configuration { pins, problems, .. } = Configuration::load(world, owner);
    let problems =
        problems.iter().map(|it| DoctorCheck::new(about, CheckHealth::Bad, it.to_string()));
    let path = owner.path(world).unwrap_or_default();
    let pins = pins.lines().into_iter();
    let pins = pins.map(|it| DoctorCheck::good(about, format!("{}: {it}", path.display())));
    problems.chain(pins).collect()
}

/// What follows if no state can be saved, as `stop.rs` decides it.
const WITHOUT_STATE: &str = "blocks are counted by the transcript and the client; if neither counts them, policyd does not \
                             block. Queues, breakers, and the decision log are not saved";

/// Whether the state can be saved.
fn state(world: &dyn World, project: &Project) -> DoctorCheck {
    let own = project.state.clone();
    let name = own.display();
    let there = world.stat(&own).ok();
    if there.as_ref().is_some_and(|it| it.kind != FileKind::Folder) {
        let text = format!("{name} is not a directory, so no state can be saved: {WITHOUT_STATE}");
        return DoctorCheck::new("state", CheckHealth::Bad, text);
    }
    // Where it is yet to be made, what it will be made in is tried.
    let nearest = own.ancestors().find(|it| world.stat(it).is_ok()).unwrap_or(&own);
    match try_to_write(world, nearest) {
        Ok(()) if there.is_some() => DoctorCheck::good("state", format!("{name} is writable")),
        Ok(()) => {
            DoctorCheck::good("state", format!("{name} does not exist yet; policyd creates it"))
        }
        Err(error) => {
            let text = format!("{name} is not writable ({error}): {WITHOUT_STATE}");
            let mut check = DoctorCheck::new("state", CheckHealth::Bad, text);
            check.more = vec!["help: set `POLICYD_STATE_DIR` to a writable directory".to_owned()];
            check
        }
    }
}
