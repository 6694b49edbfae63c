//! The README's examples are run: what it prints is what the program prints.
#![expect(clippy::disallowed_methods, reason = "the real README and the real binary")]

use std::process::Command;

const README: &str = include_str!("../README.md");

/// Fenced blocks of one language.
fn blocks(language: &str) -> Vec<&'static str> {
    let opening = format!("```{language}\n");
    README.split(&opening).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn the_first_command_prints_what_the_readme_shows() {
    let command = blocks("sh")[0].lines().next().unwrap();
    let arguments = command.strip_prefix("cargo run -q -- ").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_policyd"))
        .args(arguments.split_whitespace())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), blocks("json")[0].trim());
}

#[test]
fn the_packs_in_the_readme_are_sound() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("tests")).unwrap();
    let packs = blocks("yaml");
    assert!(packs.len() >= 3);
    for pack in packs {
        let file = pack.lines().next().unwrap().split_once("policies/").unwrap().1;
        std::fs::write(folder.path().join(file), pack).unwrap();
    }
    for command in ["lint", "test"] {
        let output = Command::new(env!("CARGO_BIN_EXE_policyd"))
            .arg(command)
            .arg(folder.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn every_command_in_the_readme_exists() {
    let help = Command::new(env!("CARGO_BIN_EXE_policyd")).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let named = README.split("`policyd ").skip(1).filter_map(|it| it.split([' ', '`']).next());
    for command in named {
        assert!(help.contains(&format!("  {command} ")), "policyd {command}");
    }
}

#[test]
fn the_exit_codes_are_those_of_the_program() {
    let readme = README.split_whitespace().collect::<Vec<_>>().join(" ");
    for (code, meaning) in policyd::cli::EXIT_CODES {
        assert!(readme.contains(&format!("{code} {meaning}")), "{code} {meaning}");
    }
}
