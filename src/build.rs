//! The build script: tells `policyd` where Cargo puts the programs of this build, so that a copy of `policyd` that a
//! developer or a test makes finds `policyd-tools`. `POLICYD_PACKAGE=1` leaves the path out of a package.

#![expect(clippy::disallowed_methods, reason = "a build script reads the variables of cargo")]

use std::env;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-env-changed=POLICYD_PACKAGE");
    let out = env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    // Cargo's directory of a build script is `<programs>/build/<package>/out`.
    let programs = out.ancestors().nth(3).unwrap_or(Path::new(""));
    let is_package = env::var_os("POLICYD_PACKAGE").is_some_and(|it| it == "1");
    let programs = if is_package { Path::new("") } else { programs };
    println!("cargo::rustc-env=POLICYD_BUILD_DIRECTORY={}", programs.display());
}
