//! The build script: parses the files of the built-in pack, which are embedded as trees. The program and this script
//! read policy files with the same crate.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a build script works on files, and speaks to cargo"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, error, fs};

use policyd_yaml::{Diagnostic, Source, stored, yaml};

/// The built-in pack, below the folder of this crate.
const POLICIES: &str = "../../policies";

fn main() -> Result<(), Box<dyn error::Error>> {
    let (package, out) = (folder("CARGO_MANIFEST_DIR")?, folder("OUT_DIR")?);
    for entry in fs::read_dir(package.join(POLICIES))? {
        let file = entry?.path();
        if let Some(name) = file.extension().filter(|it| *it == "yaml").and(file.file_name()) {
            fs::write(out.join(name).with_extension("tree"), tree(&file)?)?;
        }
    }
    for path in ["embed.rs", POLICIES] {
        println!("cargo::rerun-if-changed={path}");
    }
    Ok(())
}

fn folder(variable: &str) -> Result<PathBuf, Box<dyn error::Error>> {
    Ok(env::var_os(variable).ok_or_else(|| format!("cargo sets no {variable}"))?.into())
}

/// The tree of one file as bytes.
fn tree(file: &Path) -> Result<Vec<u8>, Box<dyn error::Error>> {
    let text = fs::read_to_string(file)?;
    let source = Source { name: file.display().to_string(), text };
    match yaml::parse(&Arc::new(source)) {
        (Some(tree), findings) if findings.is_empty() => Ok(stored::write(&tree)?),
        (None, findings) if findings.is_empty() => {
            Err(format!("{} is empty", file.display()).into())
        }
        (_, findings) => Err(findings.iter().map(shown).collect::<String>().into()),
    }
}

fn shown(finding: &Diagnostic) -> String {
    format!("\n{}: {}", finding.span.place(), finding.message)
}
