//! The README's examples are run: what it prints is what the program prints.

use std::path::Path;
use std::process::Command;

use policyd::source::secrets;

const README: &str = include_str!("../../README.md");

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

/// Commands of a console block with what they should print: `$ ` begins one, `> ` goes on.
fn commands(block: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in block.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            found.push((command.to_owned(), String::new()));
            continue;
        }
        let (command, output) = found.last_mut().unwrap();
        match line.strip_prefix('>') {
            Some(more) => {
                command.push('\n');
                command.push_str(more.strip_prefix(' ').unwrap_or(more));
            }
            None => {
                output.push_str(line);
                output.push('\n');
            }
        }
    }
    found
}

#[test]
fn the_first_rule_is_written_as_the_readme_says() {
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_policyd")).parent().unwrap().display().to_string();
    let path = format!("{program}:{}", std::env::var("PATH").unwrap());
    let mut run = 0;
    for (command, expected) in blocks("console").into_iter().flat_map(commands) {
        let output = Command::new("sh")
            .args(["-c", &format!("{command}\n")])
            .current_dir(folder.path())
            .env("PATH", &path)
            .env("HOME", folder.path())
            .output()
            .unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert_eq!(stdout, expected, "$ {command}\n{}", String::from_utf8_lossy(&output.stderr));
        run += 1;
    }
    assert!(run >= 8, "{run} commands");
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

#[test]
fn the_hooks_of_pre_commit_look_at_every_file_of_a_pack() {
    let hooks = include_str!("../../.pre-commit-hooks.yaml");
    let pattern = hooks.lines().find_map(|it| it.trim().strip_prefix("files: &pack ")).unwrap();
    let pattern = regex::Regex::new(pattern).unwrap();
    let files = policyd::policy::shapes::FILES.iter().map(|it| it.file);
    let cases = ["tests/a.yaml", "tests/deeper/a.yml", "tests/snapshots/a__b.snap"];
    for file in files.chain(cases) {
        for folder in ["policies", ".policyd/policies"] {
            assert!(pattern.is_match(&format!("{folder}/{file}")), "{folder}/{file}");
        }
    }
    for other in ["src/main.rs", "docs/policies.yaml", "policies/README.md"] {
        assert!(!pattern.is_match(other), "{other}");
    }
}

#[test]
fn the_readme_lists_every_kind_of_secret() {
    let row = |start: &str| README.lines().find(|it| it.starts_with(start)).unwrap();
    let listed = |kinds: &mut dyn Iterator<Item = String>| kinds.collect::<Vec<_>>().join(", ");
    let published = listed(&mut secrets::published().map(str::to_owned));
    assert_eq!(row("| by format "), format!("| by format | {published} |"));
    let context = listed(&mut secrets::by_context().map(str::to_owned));
    assert_eq!(row("| by context "), format!("| by context | {context} |"));
    let arguments = listed(&mut secrets::arguments().map(|it| format!("`{it}`")));
    let expected =
        format!("| arguments (`X`) | {arguments}, and the same options of related programs |");
    assert_eq!(row("| arguments (`X`) "), expected);
}
