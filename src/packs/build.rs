//! The build script: compiles the built-in pack, and hashes the sources on which compiled packs depend.

#![expect(clippy::disallowed_methods, reason = "a build script works on files, for cargo alone")]

use std::path::{Path, PathBuf};
use std::{env, error, fs};

use policyd_policy::{builtin, load};
use policyd_yaml::checksum;

/// Directories with the types that the compiled form of a pack holds, and with what makes it.
const COMPILED_BY: &[&str] =
    &["../expr", "../fact_table", "../facts", "../policy", "../shell", "../state", "../yaml"];

fn main() -> Result<(), Box<dyn error::Error>> {
    fs::write(folder("OUT_DIR")?.join("builtin.pack"), compiled_pack()?)?;
    for path in COMPILED_BY.iter().chain(&["build.rs"]) {
        println!("cargo::rerun-if-changed={path}");
    }
    println!("cargo::rustc-env=POLICYD_SOURCES={}", sources(&folder("CARGO_MANIFEST_DIR")?)?);
    Ok(())
}

/// The built-in pack as the compiled form that the program embeds.
fn compiled_pack() -> Result<Vec<u8>, Box<dyn error::Error>> {
    let pack = builtin::pack();
    let loaded = load::load(&pack, &pack);
    let broken = || format!("the built-in pack does not load: {:#?}", loaded.diagnostics);
    Ok(postcard::to_stdvec(loaded.policy.as_ref().ok_or_else(broken)?)?)
}

fn folder(variable: &str) -> Result<PathBuf, Box<dyn error::Error>> {
    Ok(env::var_os(variable).ok_or_else(|| format!("cargo sets no {variable}"))?.into())
}

/// Checksum of the sources in the directories of [`COMPILED_BY`], with their paths.
fn sources(package: &Path) -> Result<String, Box<dyn error::Error>> {
    let mut todo: Vec<PathBuf> = COMPILED_BY.iter().map(|it| package.join(it)).collect();
    let mut texts = Vec::new();
    while let Some(folder) = todo.pop() {
        for path in sorted(&folder)? {
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                texts.push(path.strip_prefix(package)?.display().to_string().into_bytes());
                texts.push(fs::read(&path)?);
            }
        }
    }
    let parts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
    Ok(checksum::hex(&checksum::checksum(&parts)))
}

/// The paths in a directory, sorted.
fn sorted(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn error::Error>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}
