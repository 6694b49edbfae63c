//! The fuzz targets as ordinary tests: each seed of the corpus and a bounded number of variants of it,
//! the same at every run. `cargo fuzz run --fuzz-dir tests/fuzz TARGET` looks further.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a broken promise is a failing test; the corpus is real files"
)]

mod targets;
mod towers;
mod variants;

use std::fs;
use std::panic;
use std::path::{Path, PathBuf};

/// Seeds of a target, in the order of their names.
fn seeds(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(target);
    let mut found: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    found.sort();
    found
}

/// Runs a target over its corpus and variants of it; what breaks it is shown, so that it can become
/// a seed.
fn hold(target: &str, variants: usize) {
    let seeds = seeds(target);
    assert!(seeds.len() > 2, "{target} has seeds");
    for (path, seed) in &seeds {
        targets::run(target, seed);
        for variant in variants::of(seed, &seeds, variants) {
            let held = panic::catch_unwind(|| targets::run(target, &variant));
            let (path, shown) = (path.display(), variant.escape_ascii());
            assert!(held.is_ok(), "a variant of {path} breaks `{target}`:\n{shown}");
        }
    }
}

macro_rules! each_holds {
    ($($target:ident: $variants:literal)*) => {
        $(#[test] fn $target() { hold(stringify!($target), $variants); })*

        #[test]
        fn no_target_is_left_out() {
            let named = [$(stringify!($target)),*];
            assert_eq!(named, targets::TARGETS.map(|it| it.0));
            for name in named {
                let file = format!("tests/fuzz/fuzz_targets/{name}.rs");
                assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(&file).exists(), "{file}");
            }
        }
    };
}

// How many variants of a seed are tried: some targets cost more than others.
each_holds! {
    payload: 20 pack: 2 expression: 60 template: 200
    shell: 200 transcript: 60 stored: 20 settings: 60 yaml: 200
}
