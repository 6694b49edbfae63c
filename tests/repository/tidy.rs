//! Tidy: properties of the source text itself. Headers, sizes, named paths, snapshots.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const SOURCE_LINES_MAX: usize = 1_000;
const TEST_LINES_MAX: usize = 600;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(dir: &str, extension: &str) -> Vec<(PathBuf, String)> {
    let (mut found, mut todo) = (vec![], vec![root().join(dir)]);
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|it| it == extension) {
                found.push((path.clone(), fs::read_to_string(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn files_say_what_lives_here_and_stay_small() {
    let mut wrong = vec![];
    for (path, text) in files("src", "rs").into_iter().chain(files("tests", "rs")) {
        let path = path.strip_prefix(root()).unwrap().display().to_string();
        let header = text.starts_with("//! ") || path == "src/tools/lib.rs";
        if !header {
            wrong.push(format!("{path}: the first line is not a `//!` header"));
        }
        let most = if path.starts_with("src/") { SOURCE_LINES_MAX } else { TEST_LINES_MAX };
        if text.lines().count() > most {
            wrong.push(format!("{path}: {} lines, over {most}", text.lines().count()));
        }
        for (index, line) in text.lines().enumerate() {
            if line.trim_end() != line {
                wrong.push(format!("{path}:{}: trailing blanks", index + 1));
            }
            let open = ["TODO", "FIXME", "XXX"];
            if path.starts_with("src/") && open.iter().any(|it| line.contains(&format!("// {it}")))
            {
                wrong.push(format!("{path}:{}: an open end", index + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Code for one system only must be compiled by a check, which has one target for each of these systems.
const CHECKED_SYSTEMS: [&str; 3] = ["linux", "macos", "windows"];

#[test]
fn code_for_one_system_is_compiled_by_a_check() {
    let script = fs::read_to_string(root().join(".ci/run")).unwrap();
    for target in ["aarch64-unknown-linux-musl", "aarch64-apple-darwin", "x86_64-pc-windows-gnu"] {
        assert!(script.contains(target), "`.ci/run` does not check {target}");
    }
    for (path, text) in files("src", "rs") {
        for condition in text.split("target_os = \"").skip(1) {
            let system = condition.split('"').next().unwrap();
            let path = path.display();
            assert!(CHECKED_SYSTEMS.contains(&system), "{path}: no check compiles `{system}`");
        }
    }
}

#[test]
fn commands_write_through_the_console_alone() {
    for (path, text) in files("src/cli", "rs") {
        let code = text.split("#[cfg(test)]").next().unwrap();
        let code = code.replace("stdout_is_tty", "").replace("stderr_is_tty", "");
        // It puts a watch around the stream.
        let own = path.ends_with("cli/lib.rs");
        for stream in ["console.stdout", "console.stderr", "io::stdout", "io::stderr"] {
            assert!(own || !code.contains(stream), "{}: names {stream}", path.display());
        }
    }
}

#[test]
fn the_application_is_below_the_command_line() {
    let uses = |text: &str, word: &str| {
        let code = text.split("#[cfg(test)]").next().unwrap();
        code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|it| it == word)
    };
    let mut wrong = vec![];
    for (path, text) in files("src/app", "rs") {
        for word in ["Console", "clap"].iter().filter(|it| uses(&text, it)) {
            wrong.push(format!("{}: uses `{word}`", path.display()));
        }
    }
    for (path, text) in files("src/cli", "rs") {
        if !uses(&text, "Console") && !uses(&text, "clap") {
            wrong.push(format!("{}: neither parses nor prints", path.display()));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn no_module_is_a_drawer() {
    for (path, _) in files("src", "rs") {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let drawers = ["utils", "util", "helpers", "helper", "common", "misc", "manager"];
        assert!(!drawers.contains(&name), "{}", path.display());
    }
}

#[test]
fn every_path_in_the_architecture_exists() {
    let text = fs::read_to_string(root().join("src/ARCHITECTURE.md")).unwrap();
    let named: Vec<&str> =
        text.split('`').filter(|it| it.starts_with("src/") || it.starts_with("tests/")).collect();
    assert!(named.len() > 8, "the architecture names files");
    for path in named {
        assert!(root().join(path).exists(), "ARCHITECTURE.md names {path}, which does not exist");
    }
    for document in [".github/CONTRIBUTING.md", ".github/threat-model.md"] {
        let text = fs::read_to_string(root().join(document)).unwrap();
        let folders = ["src/", "tests/", "policies", ".ci/"];
        let paths =
            text.split('`').filter(|it| folders.iter().any(|folder| it.starts_with(folder)));
        for path in paths.filter(|it| !it.contains(' ')) {
            assert!(root().join(path).exists(), "{document} names {path}, which does not exist");
        }
    }
}

#[test]
fn every_snapshot_is_named_by_a_test() {
    let mut sources: String =
        files("src", "rs").into_iter().chain(files("tests", "rs")).map(|it| it.1).collect();
    sources.extend(files("tests", "yaml").into_iter().map(|it| it.1));
    let orphans: Vec<_> = files("snapshots", "snap")
        .into_iter()
        .filter(|(path, _)| {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let situation = name.rsplit("__").next().unwrap();
            !sources.contains(name) && !sources.contains(situation)
        })
        .map(|it| it.0)
        .collect();
    assert!(orphans.is_empty(), "orphan snapshots: {orphans:#?}");
}

/// Each binary links the whole library, so that one more costs seconds of every build.
#[test]
fn test_files_belong_to_few_binaries() {
    let tests = root().join("tests");
    let (mut binaries, mut wrong) = (vec![], vec![]);
    for (path, _) in files("tests", "rs") {
        let inner = path.strip_prefix(&tests).unwrap();
        if inner.starts_with("bench")
            || inner.starts_with("fuzz")
            || inner.ends_with("support/mod.rs")
        {
            continue;
        }
        let folder = path.parent().unwrap();
        let (folder, module) = match path.file_stem().unwrap().to_str().unwrap() {
            "main" => {
                binaries.push(folder.file_name().unwrap().to_owned());
                continue;
            }
            "mod" => (folder.parent().unwrap(), folder.file_name().unwrap().to_str().unwrap()),
            name => (folder, name),
        };
        let module = format!("mod {module};");
        let texts = ["main.rs", "mod.rs"].map(|it| fs::read_to_string(folder.join(it)));
        if !texts.into_iter().flatten().any(|it| it.contains(&module)) {
            wrong.push(format!("{}: is not a module of a test binary", inner.display()));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    let few = ["engine", "lint", "policies", "process", "repository", "resilience", "systems"];
    assert_eq!(binaries, few, "a new test file is a module of one of these");
}

/// Only these files send requests, so that each place that does is known.
#[test]
fn only_commands_and_runs_use_the_network() {
    const SENDERS: [&str; 4] =
        ["packs/remote/https.rs", "packs/remote/registry.rs", "app/alerts.rs", "app/export.rs"];
    for (path, text) in files("src", "rs") {
        let code = text.split("#[cfg(test)]").next().unwrap();
        let is_transport =
            ["src/world", "src/net"].iter().any(|it| path.starts_with(root().join(it)));
        let is_sender = SENDERS.iter().any(|it| path.ends_with(it));
        assert!(is_transport || is_sender || !code.contains("HttpRequest"), "{}", path.display());
    }
}

#[test]
fn commands_of_powershell_that_policies_name_are_read_in_any_case() {
    let known = fs::read_to_string(root().join("src/shell/call/powershell.rs")).unwrap();
    let is_one = |word: &&str| {
        let parts: Vec<&str> = word.split('-').collect();
        let begins_large = |it: &&str| it.starts_with(|c: char| c.is_ascii_uppercase());
        parts.len() == 2 && parts.iter().all(begins_large)
    };
    let mut named = BTreeSet::new();
    for (_, text) in files("policies", "yaml") {
        let lists = text.lines().map(str::trim_start);
        let lists = lists.filter(|it| it.contains("commands: [") || it.contains("programs: ["));
        let words = lists.flat_map(|it| it.split(|c: char| !c.is_ascii_alphabetic() && c != '-'));
        named.extend(words.filter(is_one).map(str::to_owned));
    }
    assert!(named.contains("Remove-Item"), "{named:?}");
    named.retain(|it| !known.contains(&format!("\"{it}\"")));
    assert_eq!(named, BTreeSet::new());
}

#[test]
fn the_top_level_is_fixed() {
    let fixed = [
        "Cargo.toml",
        "Cargo.lock",
        "src",
        "policies",
        "schemas",
        "tests",
        "snapshots",
        "README.md",
        "CHANGELOG.md",
        "LICENSE",
        "target",
    ];
    for entry in fs::read_dir(root()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name.starts_with('.') || fixed.contains(&name.as_str()), "{name} at the top level");
    }
}
