//! The build script: lists the pages of the book and the example packs.

#![expect(clippy::disallowed_methods, reason = "a build script works on files, for cargo alone")]

use std::path::{Path, PathBuf};
use std::{env, error, fs};

/// The book, below the folder of this crate.
const DOCS: &str = "../docs";
/// First line of a page that the tests generate. Commands print its content, so it is not embedded.
const GENERATED: &str = "<!-- Generated";

fn main() -> Result<(), Box<dyn error::Error>> {
    let (package, out) = (folder("CARGO_MANIFEST_DIR")?, folder("OUT_DIR")?);
    fs::write(out.join("book.rs"), book(&package.join(DOCS))?)?;
    // Cargo watches the embedded pages itself.
    for path in ["build.rs", "../docs/SUMMARY.md", "../docs/examples"] {
        println!("cargo::rerun-if-changed={path}");
    }
    Ok(())
}

fn folder(variable: &str) -> Result<PathBuf, Box<dyn error::Error>> {
    Ok(env::var_os(variable).ok_or_else(|| format!("cargo sets no {variable}"))?.into())
}

/// Rust source of the tables `PAGES`, in the order of the book's summary, and `EXAMPLES`, by name.
fn book(docs: &Path) -> Result<String, Box<dyn error::Error>> {
    let summary = fs::read_to_string(docs.join("SUMMARY.md"))?;
    let mut pages = String::new();
    for name in summary.split("](").skip(1).filter_map(|it| it.split(')').next()) {
        let file = docs.join(name);
        if !fs::read_to_string(&file)?.starts_with(GENERATED) {
            let path = name.trim_end_matches(".md");
            pages += &format!("Page {{ path: {path:?}, text: include_str!({file:?}) }},\n");
        }
    }
    let mut examples = String::new();
    for folder in sorted(&docs.join("examples"))? {
        let mut files = String::new();
        for file in sorted(&folder)?.into_iter().chain(sorted(&folder.join("tests"))?) {
            if file.extension().is_some_and(|it| it == "yaml") {
                let name = file.strip_prefix(&folder)?.display().to_string().replace('\\', "/");
                files += &format!("({name:?}, include_str!({file:?})),\n");
            }
        }
        let name = folder.file_name().ok_or("an example has no name")?;
        examples += &format!("ExamplePack {{ name: {name:?}, files: &[{files}] }},\n");
    }
    Ok(format!(
        "/// Pages of the book.\npub static PAGES: &[Page] = &[{pages}];\n\
         /// Example packs.\npub static EXAMPLES: &[ExamplePack] = &[{examples}];\n"
    ))
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
