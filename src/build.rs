//! The build script: the files of the built-in pack are parsed once, here, and go into the program as trees.
//! It is made of the same lowest floors as the program, so that there is one way to read a policy file.

#![expect(clippy::disallowed_methods, reason = "a build script works on files, for cargo alone")]

#[expect(dead_code, unreachable_pub, reason = "the program uses the rest")]
mod limits;
#[expect(dead_code, unreachable_pub, reason = "the program uses the rest")]
mod pairs;
#[expect(dead_code, unreachable_pub, reason = "the program uses the rest")]
mod source;
#[expect(dead_code, unreachable_pub, reason = "the program uses the rest")]
mod time;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, error, fs};

use source::{Diagnostic, Source, stored, yaml};

/// The built-in pack, below the folder of the package.
const POLICIES: &str = "policies";
/// What this program is made of: cargo runs it again where one of these changed.
const MADE_OF: &[&str] =
    &["src/build.rs", "src/limits.rs", "src/pairs.rs", "src/source", "src/time.rs", POLICIES];

fn main() -> Result<(), Box<dyn error::Error>> {
    let (package, out) = (folder("CARGO_MANIFEST_DIR")?, folder("OUT_DIR")?);
    for entry in fs::read_dir(package.join(POLICIES))? {
        let file = entry?.path();
        if let Some(name) = file.extension().filter(|it| *it == "yaml").and(file.file_name()) {
            fs::write(out.join(name).with_extension("tree"), tree(&file)?)?;
        }
    }
    for path in MADE_OF {
        println!("cargo::rerun-if-changed={path}");
    }
    Ok(())
}

fn folder(variable: &str) -> Result<PathBuf, String> {
    env::var_os(variable).map(PathBuf::from).ok_or(format!("cargo sets no {variable}"))
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
