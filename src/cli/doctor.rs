//! `policyd doctor`: proves that the installation works. What stands in the settings of the clients,
//! what may switch it off, which packs are used, and the whole path of a hook tried on simulated
//! machines on which something goes wrong. Nothing of the project is changed.

mod audit_log;
mod layers;
mod transcripts;
mod trials;
mod variables;
mod versions;

use std::path::Path;

use serde_json::{Value, json};

use super::arguments::ReportFormat;
use super::project::{self, Project};
use super::{Console, DoctorArguments, EXIT_FOUND, EXIT_OK, gate_status::GateStatus, pack};
use crate::store::{breakers::BreakerStore, file::Durability};
use crate::world::{FileKind, World, WorldError};

/// Version of the JSON form.
const DOCTOR_VERSION: u32 = 1;

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    /// As it should be.
    Good,
    /// Something the user should know.
    Look,
    /// It does not work.
    Bad,
}

impl Health {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Look => "look",
            Self::Bad => "FAILED",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone)]
struct Check {
    /// What, in one or two words.
    about: &'static str,
    health: Health,
    /// What was seen.
    text: String,
    /// More of it, a line each: what the agent would see.
    more: Vec<String>,
}

impl Check {
    fn new(about: &'static str, health: Health, text: impl Into<String>) -> Self {
        Self { about, health, text: text.into(), more: Vec::new() }
    }

    fn good(about: &'static str, text: impl Into<String>) -> Self {
        Self::new(about, Health::Good, text)
    }

    fn to_json(&self) -> Value {
        json!({"about": self.about, "health": self.health.as_str().to_lowercase(),
            "text": self.text, "more": self.more})
    }
}

/// Looks at everything: exit 1 where something does not work.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &DoctorArguments) -> u8 {
    let project = project::find(world, None);
    let mut checks = vec![program(world)];
    let (layers, callers) = layers::look(world, &project);
    checks.extend(layers);
    checks.extend(versions::look(world, &callers));
    checks.extend(switches(world, &project));
    checks.extend(variables::look(world));
    checks.extend(packs(world, &project));
    checks.push(state(world, &project));
    checks.extend(audit_log::look(world, &project));
    let breakers = BreakerStore::new(world, &project.state, Durability::default());
    checks.extend(breakers.damage().map(|it| Check::new("breakers", Health::Look, it)));
    checks.extend(transcripts::look(world));
    checks.extend(trials::run());
    checks.push(trials::time(world, &project));
    let failed = checks.iter().filter(|it| it.health == Health::Bad).count();
    match arguments.format {
        ReportFormat::Json => {
            let all: Vec<Value> = checks.iter().map(Check::to_json).collect();
            let value = json!({"version": DOCTOR_VERSION, "failed": failed, "checks": all});
            console.say(&format!("{value:#}\n"));
        }
        ReportFormat::Text => {
            for it in &checks {
                console.say(&format!("{:6}  {:12}  {}\n", it.health.as_str(), it.about, it.text));
                it.more.iter().for_each(|it| console.say(&format!("{:22}{it}\n", "")));
            }
            let verdict = match failed {
                0 => "everything that was tried works".to_owned(),
                some => format!("checks failed: {some}"),
            };
            console.say(&format!("\n{verdict}\n"));
        }
    }
    if failed == 0 { EXIT_OK } else { EXIT_FOUND }
}

fn program(world: &dyn World) -> Check {
    let version = env!("CARGO_PKG_VERSION");
    match world.program() {
        Some(path) => Check::good("program", format!("policyd {version}, {}", path.display())),
        None => Check::new("program", Health::Look, format!("policyd {version}, somewhere")),
    }
}

/// What disables policyd, wholly or for a while, and what looks as if it did.
fn switches(world: &dyn World, project: &Project) -> Vec<Check> {
    let now = world.now();
    let status = GateStatus::read(world, project, None, now);
    let off = status.off.iter().map(|it| Check::new("switch", Health::Bad, it.text(now)));
    let problems = status.problems.iter().map(|it| Check::new("switch", Health::Look, it.as_str()));
    let pauses = status.pauses.iter().map(|it| Check::new("switch", Health::Look, it.text(now)));
    let mut checks: Vec<Check> = off.chain(problems).chain(pauses).collect();
    if checks.is_empty() {
        checks.push(Check::good("switch", "policyd is not disabled"));
    }
    checks
}

/// Which pack is used, and which is not.
fn packs(world: &dyn World, project: &Project) -> Vec<Check> {
    let found = pack::find(world, project, None);
    let passed = found.passed_over.iter();
    let mut checks: Vec<Check> =
        passed.map(|it| Check::new("trust", Health::Look, it.text())).collect();
    match pack::trust_store(world).map(|it| it.all()) {
        None => checks.push(Check::new(
            "trust",
            Health::Look,
            "HOME is not set, so no pack of a repository can be trusted",
        )),
        Some(Err(problem)) => checks.push(Check::new("trust", Health::Bad, problem)),
        Some(Ok(all)) => {
            let text = format!("trusted packs of repositories: {}", all.len());
            checks.push(Check::good("trust", text));
        }
    }
    let name = found.folder().unwrap_or("the built-in pack").to_owned();
    checks.push(match pack::policy(world, &found) {
        Ok(policy) if !policy.settings.enabled => {
            Check::new("pack", Health::Bad, format!("{name} is switched off (`enabled: false`)"))
        }
        Ok(policy) => {
            let rules = policy.considerations.iter().filter(|it| it.enabled).count();
            let probes = policy.probes.iter().filter(|it| it.enabled).count();
            Check::good("pack", format!("{name}: {rules} checks, {probes} probes"))
        }
        Err(broken) => Check::new("pack", Health::Bad, pack::explain(&broken)),
    });
    checks
}

/// Whether what must be remembered can be: a block that cannot be is not spoken.
/// Creates and removes a file in a directory.
fn try_to_write(world: &dyn World, directory: &Path) -> Result<(), WorldError> {
    let trial = directory.join(".policyd-doctor.tmp");
    world.write(&trial, b"{}").and_then(|()| world.remove(&trial))
}

fn state(world: &dyn World, project: &Project) -> Check {
    let own = project.state.clone();
    let name = own.display();
    let there = world.stat(&own).ok();
    if there.as_ref().is_some_and(|it| it.kind != FileKind::Folder) {
        return Check::new("state", Health::Bad, format!("{name} is not a folder"));
    }
    // Where it is yet to be made, what it will be made in is tried.
    let nearest = own.ancestors().find(|it| world.stat(it).is_ok()).unwrap_or(&own);
    match try_to_write(world, nearest) {
        Ok(()) if there.is_some() => Check::good("state", format!("{name} can be written")),
        Ok(()) => Check::good("state", format!("{name} is made when it is needed")),
        Err(error) => {
            let text = format!(
                "state directory is not writable, so policyd will not block: {name}: {error}"
            );
            let mut check = Check::new("state", Health::Bad, text);
            check.more = vec!["help: set `POLICYD_STATE_DIR` to a writable directory".to_owned()];
            check
        }
    }
}
