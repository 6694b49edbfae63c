//! Neovim without a screen as a client: the protocol as an editor speaks it. Skipped with a message where Neovim is
//! not installed.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::client::{PACK, pack_file, put_pack};
use crate::machine::{Machine, run};

/// What Neovim showed; nothing where it is absent.
fn shown() -> Option<Value> {
    let version = Command::new("nvim").arg("--version").stdout(Stdio::null()).status();
    if !version.is_ok_and(|status| status.success()) {
        eprintln!("skipped: Neovim is not installed");
        return None;
    }
    let machine = Machine::new();
    put_pack(&machine, &PACK);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/process/lsp/neovim.lua");
    let guards = pack_file(&machine, "guards.yaml");
    // The configuration of the page, for the versions that Linux distributions have.
    let page = policyd::book::page("editors").unwrap().text;
    let section = page.split("Neovim 0.7 to 0.10:").nth(1).unwrap();
    let config = section.split("```lua\n").nth(1).unwrap().split("```").next().unwrap();
    let config_file = machine.path("editors.lua");
    fs::write(&config_file, config).unwrap();
    let programs = machine.path("bin");
    fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_policyd"), programs.join("policyd")).unwrap();
    let arguments = [
        "--clean",
        "--headless",
        "-n",
        "-c",
        &format!("luafile {script}"),
        "--",
        config_file.to_str().unwrap(),
        guards.to_str().unwrap(),
    ];
    let mut command = machine.program("nvim", &arguments);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = [programs].into_iter().chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(path).unwrap());
    let called = run(command, b"");
    let begins = called.stdout.find('{').unwrap_or_else(|| panic!("{called:?}"));
    Some(serde_json::from_str(&called.stdout[begins..]).unwrap())
}

#[test]
fn neovim_shows_findings_and_applies_fixes() {
    let Some(shown) = shown() else { return };
    assert_eq!(shown["errors"], json!([]), "{shown}");
    assert_eq!(shown["lens"], "1 case: 1 passed | run");
    assert_eq!(shown["found"], json!(["PD003"]));
    assert_eq!(shown["action"], "Replace `decison` with `decision` (changes decisions)");
    assert_eq!(shown["line"], "  decision: ask");
    assert!(shown["hover"].as_str().unwrap().starts_with("guard `no_deploy`"), "{shown}");
    assert_eq!(shown["symbols"], "no_deploy");
    assert_eq!((&shown["definition"], &shown["references"]), (&json!(1), &json!(2)));
    assert_eq!((&shown["folds"], &shown["tokens"]), (&json!(1), &json!(10)));
    assert_eq!(shown["formatted"], 0, "it is formatted");
    assert_eq!((&shown["renamed"], &shown["other"]), (&json!("- id: no_release"), &json!(true)));
    assert_eq!((&shown["symbol"], &shown["renamable"]), (&json!("no_deploy"), &json!("no_deploy")));
    assert_eq!(
        (&shown["content"], &shown["signature"]),
        (&json!(true), &json!("has(list of texts): boolean"))
    );
    // Without a session, there are no values to show.
    assert_eq!(shown["hints"], Value::Null);
    let completion = shown["completion"].as_array().unwrap();
    assert!(completion.contains(&json!("programs")), "{shown}");
}
