//! Compiles a pack in another process. The hook program has no compiler: most of its calls find a compiled form, and what
//! they do not need is not in their program.
//!
//! Contains: the input and the output of that process. Does not contain: how it is started.

use serde::{Deserialize, Serialize};

use super::found::{FoundPack, Layer};
use super::invalid_pack::{InvalidPack, LoadError, problems};
use super::layers::loaded;
use policyd_policy::load::Pack;
use policyd_policy::{EnforcementMode, OnError};

/// A pack that is to be compiled, as it was read.
#[derive(Serialize, Deserialize)]
struct CompilerInput {
    layer: Layer,
    pack: Option<Pack>,
    beneath: Option<Pack>,
    unreadable: Vec<String>,
}

/// What compiling came to.
#[derive(Serialize, Deserialize)]
enum CompilerOutput {
    /// The encoded policy.
    Policy(Vec<u8>),
    /// The pack is broken.
    Invalid {
        problems: Vec<String>,
        on_error: Option<OnError>,
        mode: Option<EnforcementMode>,
        enabled: Option<bool>,
        sets_off: Vec<String>,
    },
}

/// Returns the input for a pack.
pub(super) fn input(found: &FoundPack) -> Vec<u8> {
    let input = CompilerInput {
        layer: found.layer,
        pack: found.folder.clone(),
        beneath: found.beneath.clone(),
        unreadable: found.unreadable.clone(),
    };
    postcard::to_stdvec(&input).unwrap_or_default()
}

/// Compiles the pack of an input, and returns the output. `None` if the input is damaged.
#[must_use]
pub fn run(input: &[u8]) -> Option<Vec<u8>> {
    let CompilerInput { layer, pack, beneath, unreadable } = postcard::from_bytes(input).ok()?;
    let found = FoundPack { layer, ..FoundPack::new(pack, unreadable) }.over(beneath);
    let output = match loaded(&found) {
        Ok(policy) => CompilerOutput::Policy(postcard::to_stdvec(&policy).ok()?),
        Err(invalid) => {
            let problems = problems(&invalid);
            let InvalidPack { on_error, mode, enabled, sets_off, .. } = invalid;
            CompilerOutput::Invalid { problems, on_error, mode, enabled, sets_off }
        }
    };
    postcard::to_stdvec(&output).ok()
}

/// Returns the encoded policy of an output.
///
/// # Errors
/// [`LoadError::Invalid`] if the pack is broken, [`LoadError::NotCompiled`] if the output is damaged.
pub(super) fn read(output: &[u8]) -> Result<Vec<u8>, LoadError> {
    match postcard::from_bytes(output) {
        Ok(CompilerOutput::Policy(body)) => Ok(body),
        Ok(CompilerOutput::Invalid { problems, on_error, mode, enabled, sets_off }) => {
            let (unreadable, diagnostics) = (problems, Vec::new());
            let invalid =
                InvalidPack { unreadable, diagnostics, on_error, mode, enabled, sets_off };
            Err(LoadError::Invalid(invalid))
        }
        Err(_) => Err(LoadError::NotCompiled("the output of the compiler is damaged".into())),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::found::read as read_pack;
    use super::super::{load_by, policy};
    use super::*;
    use policyd_world::fake::FakeWorld;

    const MANIFEST: &str = "/pack/policyd.yaml";

    #[test]
    fn another_process_compiles_the_same_policy_and_it_is_kept() {
        let world = FakeWorld::new();
        world.set_env("HOME", "/home/me");
        world.put(MANIFEST, "name: own\nextends: [builtin]\n");
        let found = read_pack(&world, Path::new("/pack"));
        let by_other = load_by(&world, &found, |it| Ok(run(it).unwrap())).unwrap();
        assert_eq!(by_other, loaded(&found).unwrap());
        let again = load_by(&world, &found, |_| panic!("it is kept")).unwrap();
        assert_eq!(again, policy(&world, &found).unwrap());
    }

    #[test]
    fn a_broken_pack_says_the_same_as_in_this_process() {
        let world = FakeWorld::new();
        world.put(MANIFEST, "name: own\nextends: [builtin]\non_error: block\n");
        world.put("/pack/considerations.yaml", "- id: broken\n");
        let found = read_pack(&world, Path::new("/pack"));
        let here = loaded(&found).unwrap_err();
        match load_by(&world, &found, |it| Ok(run(it).unwrap())) {
            Err(LoadError::Invalid(there)) => {
                assert_eq!(super::super::explain(&there), super::super::explain(&here));
                assert_eq!(there.on_error, Some(OnError::Block));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_damaged_input_or_output_is_no_policy() {
        assert_eq!(run(&[7; 3]), None);
        assert!(matches!(read(&[7; 3]), Err(LoadError::NotCompiled(_))));
    }
}
