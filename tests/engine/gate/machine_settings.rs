//! Hooks in the settings of the machine: `policyd install --scope system`.

use policyd::app::install::places::{PLACES, SettingsPlace};
use policyd::facts::event::EventKind;
use policyd::world::World;
use policyd::world::fake::FakeWorld;
use serde_json::Value;

use crate::support::console::call;
use crate::support::machine;

/// Settings of the machine, each with the client's name of the event before a tool call.
fn files() -> Vec<(String, &'static str)> {
    let file = |place: &SettingsPlace| {
        let moment = place.harness.moment_of(EventKind::PreToolUse)?;
        Some((place.system_file()?.display().to_string(), moment.native))
    };
    PLACES.iter().filter_map(file).collect()
}

const INSTALL: [&str; 3] = ["install", "--scope", "system"];
const UNINSTALL: [&str; 3] = ["uninstall", "--scope", "system"];

/// A machine on which root runs a program that only root can change.
fn of_root() -> FakeWorld {
    let world = machine::machine();
    world.set_user(0);
    world.put("/usr/bin/policyd", "program");
    world.put_folder("/etc");
    ["/", "/etc", "/usr", "/usr/bin", "/usr/bin/policyd"]
        .iter()
        .for_each(|it| world.give_away(*it, 0));
    world
}

fn text(world: &FakeWorld, path: &str) -> String {
    String::from_utf8(world.get(path).unwrap()).unwrap()
}

#[test]
fn every_client_with_settings_of_the_machine_gets_hooks_that_no_user_can_change() {
    let world = of_root();
    let said = call(&world, &INSTALL, b"");
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("not written: "), "{}", said.out);
    let files = files();
    for (path, event) in &files {
        let value: Value = serde_json::from_str(&text(&world, path)).unwrap();
        let lines = value["hooks"][*event].to_string();
        assert!(lines.contains("/usr/bin/policyd"), "{path}: {value}");
        for part in std::path::Path::new(path).ancestors() {
            let entry = world.entry(part).unwrap();
            assert_eq!((entry.owner, entry.shared_write), (Some(0), false), "{}", part.display());
        }
    }
    let doctor = call(&world, &["doctor"], b"").out;
    for (path, _) in &files {
        assert!(doctor.contains(path), "{path}: {doctor}");
    }
    assert!(!doctor.contains("approve them"), "{doctor}");
    let before = world.files();
    let again = call(&world, &INSTALL, b"").out;
    assert_eq!(again.matches("unchanged").count(), files.len(), "{again}");
    assert_eq!(world.files(), before);
    let removed = call(&world, &UNINSTALL, b"");
    assert_eq!(removed.code, 0, "{removed:?}");
    assert!(files.iter().all(|it| world.get(&it.0).is_none()), "{:?}", world.files());
}

#[test]
fn settings_of_the_administrator_stay_as_they_are() {
    let world = of_root();
    let before = "{\n  \"permissions\": {\"deny\": [\"Read(./.env)\"]},\n  \"allowManagedHooksOnly\": true\n}\n";
    let claude = &files()[0].0;
    world.put(claude, before);
    assert_eq!(call(&world, &INSTALL, b"").code, 0);
    let after: Value = serde_json::from_str(&text(&world, claude)).unwrap();
    assert_eq!(after["allowManagedHooksOnly"], true);
    assert!(after["hooks"]["Stop"].is_array(), "{after}");
    assert_eq!(call(&world, &UNINSTALL, b"").code, 0);
    assert_eq!(text(&world, claude), before);
}

#[test]
fn nobody_but_root_changes_settings_of_the_machine() {
    let world = of_root();
    world.set_user(1000);
    let before = world.files();
    for words in [&INSTALL[..], &UNINSTALL] {
        let said = call(&world, words, b"");
        assert_eq!(said.code, 2, "{said:?}");
        assert!(said.err.contains("sudo"), "{}", said.err);
    }
    assert_eq!(world.files(), before);
}

#[test]
fn a_program_that_a_user_can_replace_is_refused() {
    let tools = "/usr/bin/policyd-tools";
    for (part, is_shared) in [("/usr/bin/policyd", false), (tools, false), ("/usr/bin", true)] {
        let world = of_root();
        world.put(tools, "program");
        world.give_away(tools, 0);
        if is_shared {
            world.share_write(part, 0);
        } else {
            world.give_away(part, 1000);
        }
        let said = call(&world, &INSTALL, b"");
        assert_eq!(said.code, 2, "{said:?}");
        assert!(said.err.contains(&format!("`{part}` ")), "{}", said.err);
        assert!(world.get(&files()[0].0).is_none());
    }
}

#[test]
fn a_client_without_such_settings_is_named() {
    let world = of_root();
    let said = call(&world, &["install", "--scope", "system", "--harness", "opencode"], b"");
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("documents no settings of the machine"), "{}", said.err);
}
