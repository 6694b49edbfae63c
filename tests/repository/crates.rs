//! The crates: how large they are, what they need, and what the program of hooks contains.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Most lines of one crate: what one person can know.
const LINES_MAX: usize = 20_000;
/// Most packages in the program that clients start, the own ones included: a security reviewer reads the list.
const HOOK_PACKAGES_MAX: usize = 100;
/// Most packages in `policyd-tools` on Linux, the own ones included. A change of this number is a decision.
#[cfg(target_os = "linux")]
const TOOLS_PACKAGES_MAX: usize = 289;

/// The own crates without effects: they cannot even name one.
const PURE: [&str; 15] = [
    "policyd-yaml",
    "policyd-shell",
    "policyd-expr",
    "policyd-base",
    "policyd-state",
    "policyd-facts",
    "policyd-harness",
    "policyd-fact-table",
    "policyd-policy",
    "policyd-evaluation",
    "policyd-hook",
    "policyd-record",
    "policyd-cases",
    "policyd-lint",
    "policyd-replay",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Names of the packages that a package of the workspace is built from.
fn closure(package: &str) -> BTreeSet<String> {
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--locked", "--offline", "--edges", "normal", "--prefix", "none"]);
    tree.args(["--format", "{p}", "--package", package]).current_dir(root());
    let output = tree.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|it| it.split(' ').next()).map(str::to_owned).collect()
}

fn lines_below(folder: &Path) -> usize {
    let mut lines = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            lines += lines_below(&path);
        } else if path.extension().is_some_and(|it| it == "rs") {
            lines += fs::read_to_string(path).unwrap().lines().count();
        }
    }
    lines
}

/// The crates in the order of the table in ARCHITECTURE.md.
fn order() -> Vec<String> {
    let text = fs::read_to_string(root().join("src/ARCHITECTURE.md")).unwrap();
    let rows = text.lines().skip_while(|it| *it != "| crates | contents |").skip(2);
    let names = rows.take_while(|it| it.starts_with('|')).flat_map(|row| {
        let cell = row.split('|').nth(1).unwrap();
        cell.split_whitespace().map(|it| it.trim_matches('`').to_owned()).collect::<Vec<_>>()
    });
    names.collect()
}

#[test]
fn a_crate_names_only_crates_before_it() {
    let order = order();
    let mut crates = vec![];
    for entry in fs::read_dir(root().join("src")).unwrap() {
        let folder = entry.unwrap().path();
        let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) else { continue };
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let own = order.iter().position(|it| *it == name);
        let own = own.unwrap_or_else(|| panic!("ARCHITECTURE.md lacks the crate {name}"));
        let needed = manifest.split("[dependencies]").nth(1).unwrap_or_default();
        let needed = needed.split("\n[").next().unwrap_or_default();
        for line in needed.lines().filter_map(|it| it.strip_prefix("policyd-")) {
            let other = line.split('.').next().unwrap().replace('-', "_");
            let at = order.iter().position(|it| *it == other).unwrap();
            assert!(at < own, "{name} names {other}, which is not before it in ARCHITECTURE.md");
        }
        crates.push(name);
    }
    assert_eq!(crates.len(), order.len(), "each crate once: {order:?}");
}

#[test]
fn no_crate_is_too_large_to_know() {
    let mut wrong = vec![];
    for entry in fs::read_dir(root().join("src")).unwrap() {
        let folder = entry.unwrap().path();
        if folder.join("Cargo.toml").exists() {
            let lines = lines_below(&folder);
            if lines > LINES_MAX {
                wrong.push(format!("{}: {lines} lines, over {LINES_MAX}", folder.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_program_of_hooks_contains_what_a_hook_needs() {
    let packages = closure("policyd");
    assert!(packages.contains("policyd-gate"), "{packages:#?}");
    let heavy = [
        "axum",
        "clap",
        "maud",
        "notify",
        "ratatui",
        "rayon",
        "ring",
        "rusqlite",
        "rustls",
        "tar",
        "tokio",
        "ureq",
        "policyd-app",
        "policyd-cli",
        "policyd-lint",
        "policyd-net",
    ];
    let found: Vec<_> = heavy.into_iter().filter(|it| packages.contains(*it)).collect();
    assert!(found.is_empty(), "hooks do not need {found:?}");
    let count = packages.len();
    assert!(
        count <= HOOK_PACKAGES_MAX,
        "{count} packages, over {HOOK_PACKAGES_MAX}: {packages:#?}"
    );
}

/// Other systems need other packages for terminals, certificates, and changes of files.
#[cfg(target_os = "linux")]
#[test]
fn the_tools_program_needs_no_more_packages() {
    let packages = closure("policyd-tools");
    assert!(packages.contains("policyd-cli"), "{packages:#?}");
    let count = packages.len();
    assert!(
        count <= TOOLS_PACKAGES_MAX,
        "{count} packages, over {TOOLS_PACKAGES_MAX}: {packages:#?}"
    );
}

#[test]
fn decisions_cannot_name_an_effect() {
    for name in PURE {
        let packages = closure(name);
        assert!(packages.contains(name), "{name} is no package");
        for effect in ["policyd-world", "policyd-store", "policyd-net", "rustix"] {
            assert!(!packages.contains(effect), "{name} needs {effect}");
        }
    }
}
