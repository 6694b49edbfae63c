//! Every client is in the lists beside its row: settings, help, documents, and the scenarios with the real client.

use std::collections::BTreeSet;

use policyd::app::install::places::PLACES;
use policyd::harness::{HARNESSES, plain};

/// Clients without a scenario: no free account runs them without a user.
const WITHOUT_SCENARIO: [&str; 2] = ["cursor-agent", "droid"];

fn text(path: &str) -> String {
    std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn every_client_has_a_place_for_its_hooks() {
    let clients = HARNESSES.iter().map(|it| it.name).filter(|it| *it != plain::HARNESS.name);
    let placed: BTreeSet<&str> = PLACES.iter().map(|it| it.harness.name).collect();
    assert_eq!(clients.collect::<BTreeSet<_>>(), placed, "src/app/install/places.rs");
}

#[test]
fn documents_and_help_name_every_client() {
    let mut line = policyd::cli::command_line();
    let install = line.find_subcommand_mut("install").unwrap();
    let help = install.render_long_help().to_string();
    let organization = text("src/docs/trust/organization.md");
    for place in PLACES {
        let harness = place.harness;
        assert!(help.contains(harness.name), "{}: src/cli/arguments/setup.rs", harness.name);
        for document in ["README.md", "CHANGELOG.md", "src/docs/reference/clients.md"] {
            let text = text(document).to_lowercase();
            assert!(text.contains(&harness.title.to_lowercase()), "{}: {document}", harness.title);
        }
        if let Some(file) = place.system_file() {
            let file = file.display().to_string();
            assert!(organization.contains(&file), "{file}: src/docs/trust/organization.md");
        }
    }
}

#[test]
fn every_client_has_scenarios() {
    let workflow = text(".github/workflows/ci.yml");
    let (_, clients) = workflow.split_once("matrix: { client: [").unwrap();
    let (clients, _) = clients.split_once(']').unwrap();
    let scenarios: BTreeSet<&str> = clients.split(", ").collect();
    let programs = PLACES.iter().map(|it| it.program);
    let expected: BTreeSet<&str> = programs.filter(|it| !WITHOUT_SCENARIO.contains(it)).collect();
    assert_eq!(scenarios, expected, ".github/workflows/ci.yml");
    let bench = text("tests/clients/bench/clients.py");
    for program in expected {
        assert!(
            bench.contains(&format!("\"{program}\"")),
            "{program}: tests/clients/bench/clients.py"
        );
    }
}
