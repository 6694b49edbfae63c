//! The build script: compiles the built-in pack, and hashes the sources on which compiled packs depend.

#![expect(clippy::disallowed_methods, reason = "a build script works on files, for cargo alone")]

use std::path::PathBuf;
use std::{env, error, fs};

use policyd_policy::{builtin, load};

/// Directories with the types that the compiled form of a pack holds, and with what makes it.
const COMPILED_BY: &[&str] =
    &["../expr", "../fact_table", "../facts", "../policy", "../shell", "../state", "../yaml"];

fn main() -> Result<(), Box<dyn error::Error>> {
    let out = env::var_os("OUT_DIR").ok_or("cargo sets no OUT_DIR")?;
    fs::write(PathBuf::from(out).join("builtin.pack"), compiled_pack()?)?;
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=POLICYD_SOURCES={}", policyd_sources::checksum(COMPILED_BY)?);
    Ok(())
}

/// The built-in pack as the compiled form that the program embeds.
fn compiled_pack() -> Result<Vec<u8>, Box<dyn error::Error>> {
    let pack = builtin::pack();
    let loaded = load::load(&pack, &pack);
    let broken = || format!("the built-in pack does not load: {:#?}", loaded.diagnostics);
    Ok(postcard::to_stdvec(loaded.policy.as_ref().ok_or_else(broken)?)?)
}
