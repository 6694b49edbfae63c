//! `policyd doctor`: proves that the installation works. What stands in the settings of the clients,
//! what may switch it off, which packs are used, and the whole path of a hook tried on simulated
//! machines on which something goes wrong. Nothing of the project is changed.

mod trials;

use serde_json::{Value, json};

use super::arguments::ReportFormat;
use super::{Console, DoctorArguments, EXIT_FOUND, EXIT_OK, line};
use crate::app::doctor;
use crate::app::doctor::check::{Check, Health};
use crate::app::workspace::project;
use crate::world::World;

/// Version of the JSON form.
const DOCTOR_VERSION: u32 = 1;

/// Looks at everything: exit 1 where something does not work.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &DoctorArguments) -> u8 {
    let project = project::find(world, None);
    let mut checks = doctor::inspect(world, &project, &line::variables());
    checks.extend(trials::run());
    checks.push(trials::time(world, &project));
    let failed = checks.iter().filter(|it| it.health == Health::Bad).count();
    match arguments.format {
        ReportFormat::Json => {
            let all: Vec<Value> = checks.iter().map(to_json).collect();
            let value = json!({"version": DOCTOR_VERSION, "failed": failed, "checks": all});
            console.print(&format!("{value:#}\n"));
        }
        ReportFormat::Text => {
            for it in &checks {
                console.print(&format!("{:6}  {:12}  {}\n", it.health.as_str(), it.about, it.text));
                it.more.iter().for_each(|it| console.print(&format!("{:22}{it}\n", "")));
            }
            let verdict = match failed {
                0 => "everything that was tried works".to_owned(),
                some => format!("checks failed: {some}"),
            };
            console.print(&format!("\n{verdict}\n"));
        }
    }
    if failed == 0 { EXIT_OK } else { EXIT_FOUND }
}

fn to_json(check: &Check) -> Value {
    json!({"about": check.about, "health": check.health.as_str().to_lowercase(),
        "text": check.text, "more": check.more})
}
