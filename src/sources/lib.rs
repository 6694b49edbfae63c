//! A checksum of the sources on which a cache depends: a program never decodes what other sources encoded.
//!
//! Contains: [`checksum`], for build scripts. A list of directories cannot miss a type that moves to another file.
//! Does not contain: anything that a program runs.
//!
//! ```
//! # fn main() -> std::io::Result<()> {
//! let one = policyd_sources::checksum(&["."])?;
//! assert_eq!(one.len(), 16, "hexadecimal digits");
//! # Ok(())
//! # }
//! ```

#![expect(clippy::disallowed_methods, reason = "a build script works on files, for cargo alone")]
#![expect(clippy::print_stdout, reason = "a build script speaks to cargo on standard output")]

use std::path::{Path, PathBuf};
use std::{fs, io};

use xxhash_rust::xxh3::Xxh3;

/// Returns the checksum of the Rust files in directories, with their paths, and lets cargo run the build script again
/// if one of them changes. A build script runs in the directory of its crate, so the paths are relative to that.
///
/// # Errors
/// A directory or a file cannot be read.
pub fn checksum(folders: &[&str]) -> io::Result<String> {
    let mut hash = Xxh3::new();
    for folder in folders {
        println!("cargo::rerun-if-changed={folder}");
        add(&mut hash, Path::new(folder))?;
    }
    Ok(format!("{:016x}", hash.digest()))
}

fn add(hash: &mut Xxh3, folder: &Path) -> io::Result<()> {
    let entries = fs::read_dir(folder)?.map(|it| it.map(|it| it.path()));
    let mut paths = entries.collect::<io::Result<Vec<PathBuf>>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            add(hash, &path)?;
        } else if path.extension().is_some_and(|it| it == "rs") {
            hash.update(path.as_os_str().as_encoded_bytes());
            hash.update(&fs::read(&path)?);
        }
    }
    Ok(())
}
