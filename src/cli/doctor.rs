//! `policyd doctor`: proves that the installation works. Inspects the settings of clients, everything that can disable
//! policyd, and the packs, and runs the hook path on simulated machines on which something fails. Changes nothing.

mod trials;

use serde_json::{Value, json};

use super::arguments::ReportFormat;
use super::{Console, DoctorArguments, EXIT_FOUND, EXIT_OK, line};
use policyd_app::doctor;
use policyd_app::doctor::check::{CheckHealth, DoctorCheck};
use policyd_app::workspace::project;
use policyd_record::paint::TextColor;
use policyd_record::table::{Align, TextCell, TextTable};
use policyd_world::World;

/// Version of the JSON form.
const DOCTOR_VERSION: u32 = 1;

/// Looks at everything: exit 1 where something does not work.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &DoctorArguments) -> u8 {
    let project = project::find(world, None);
    let mut checks = doctor::inspect(world, &project, &line::variables());
    checks.extend(trials::run());
    checks.extend(trials::organization(world));
    checks.push(trials::time(world, &project));
    let failed = checks.iter().filter(|it| it.health == CheckHealth::Bad).count();
    match arguments.format {
        ReportFormat::Json => {
            let all: Vec<Value> = checks.iter().map(to_json).collect();
            let value = json!({"version": DOCTOR_VERSION, "failed": failed, "checks": all});
            console.print(&format!("{value:#}\n"));
        }
        ReportFormat::Text => {
            let style = console.screen().style();
            let verdict = match failed {
                0 => style.paint(TextColor::Green, "all checks passed"),
                some => style.paint(TextColor::Red, &format!("checks failed: {some}")),
            };
            let text = format!("{}\n{verdict}\n", table(&checks).render(console.screen()));
            console.print(&text);
        }
    }
    if failed == 0 { EXIT_OK } else { EXIT_FOUND }
}

/// The checks by status and subject, each with its details below.
fn table(checks: &[DoctorCheck]) -> TextTable {
    let mut table = TextTable::new(0, &[Align::Left, Align::Left, Align::Left]);
    for it in checks {
        let color = match it.health {
            CheckHealth::Good => TextColor::Green,
            CheckHealth::Look => TextColor::Yellow,
            CheckHealth::Bad => TextColor::Red,
        };
        let status = TextCell::new(it.health.label(), color);
        table.row(vec![status, it.about.into(), it.text.as_str().into()]);
        for more in &it.more {
            table.row(vec!["".into(), "".into(), more.as_str().into()]);
        }
    }
    table
}

fn to_json(check: &DoctorCheck) -> Value {
    json!({"about": check.about, "health": check.health.as_str(),
        "text": check.text, "more": check.more})
}
