//! Loaded packs in compiled form, saved from one call to the next. A cache: a damaged or outdated file is a miss.
//! Without it a warm stop executes 15 times as many instructions (callgrind, x86-64, 2026-11-25).

use std::path::PathBuf;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::found::{FoundPack, Layer};
use super::organization;
use policyd_base::limits;
use policyd_policy::Policy;
use policyd_store::administrator::weakness;
use policyd_store::user::UserDirectory;
use policyd_workspace::project::is_on;
use policyd_world::World;
use policyd_yaml::checksum::{checksum, hex};
use policyd_yaml::deferred::{self, EncodedBytes};

/// Version of the program, and a fingerprint of the sources of every crate whose types the compiled form holds: a
/// program reads only what the same program wrote. The build script computes it.
const COMPILED_BY: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("POLICYD_SOURCES"));

/// The compiled form of the built-in pack, which the build script made.
static BUILT_IN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/builtin.pack"));

/// The policy of the built-in pack.
pub(super) fn built_in() -> Option<Policy> {
    deferred::decode(&EncodedBytes::Static(BUILT_IN), 0..BUILT_IN.len())
}

/// The file that keeps the compiled form of a pack: its key, the checksum of the rest, the rest.
pub(super) struct CompiledPack {
    path: PathBuf,
    /// What it was made of, and what made it.
    key: [u8; 32],
    layer: Layer,
}

impl CompiledPack {
    /// The file for a pack; none where the user wants none, or has no home folder. A user could change the
    /// cache of the user, so the organization's pack has its compiled form beside it.
    pub(super) fn of(world: &dyn World, found: &FoundPack) -> Option<Self> {
        let path = match found.layer {
            Layer::Project if is_on(world, "POLICYD_NO_CACHE") => return None,
            Layer::Project => {
                // One for each pack, whatever its content was before; the key is in the file.
                let name = checksum(&[found.name().as_bytes()]);
                let name = format!("{}.pack", hex(&name));
                UserDirectory::Cache.path(world)?.join(name)
            }
            Layer::Organization => organization::compiled_file(),
        };
        let key = Sha256::new().chain_update(COMPILED_BY).chain_update(found.hash);
        Some(Self { path, key: key.finalize().into(), layer: found.layer })
    }

    /// What is kept; nothing where it is another pack's or damaged.
    pub(super) fn read(&self, world: &dyn World) -> Option<Policy> {
        if self.layer == Layer::Organization && weakness(world, &self.path).is_some() {
            return None;
        }
        let bytes = world.read(&self.path, limits::POLICY_FILE_BYTES_MAX.saturating_mul(8)).ok()?;
        let (key, rest) = bytes.split_at_checked(32)?;
        let (proof, body) = rest.split_at_checked(8)?;
        let current = key == self.key && proof == checksum(&[body]);
        let body = bytes.len().saturating_sub(body.len())..bytes.len();
        let bytes = EncodedBytes::Read(Arc::new(bytes));
        if current { deferred::decode(&bytes, body) } else { None }
    }

    /// Keeps an encoded policy. If that fails, the next call compiles the pack again.
    pub(super) fn write(&self, world: &dyn World, body: &[u8]) {
        let bytes = [self.key.as_slice(), &checksum(&[body]), body].concat();
        let folder = self.path.parent().map_or(Ok(()), |it| world.create_folder(it));
        let written = folder.and_then(|()| world.write(&self.path, &bytes));
        if self.layer == Layer::Organization {
            // Every user reads it, as the files of the pack.
            drop(written.and_then(|()| organization::publish(world, &self.path)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::found::read;
    use super::super::{loaded, policy};
    use super::*;
    use policyd_world::fake::FakeWorld;

    #[test]
    fn the_build_script_compiled_the_built_in_pack_as_it_is_compiled_now() {
        assert_eq!(built_in().unwrap(), loaded(&FoundPack::new(None, Vec::new())).unwrap());
    }

    #[test]
    fn every_flipped_byte_and_every_cut_of_a_compiled_pack_is_a_miss() {
        let world = FakeWorld::new();
        world.set_env("HOME", "/home/me");
        world.put("/pack/policyd.yaml", "name: own\nextends: [builtin]\n");
        let found = read(&world, Path::new("/pack"));
        let loaded = policy(&world, &found).unwrap();
        let mut kept = CompiledPack::of(&world, &found).unwrap();
        let bytes = world.get(&kept.path).unwrap();
        assert_eq!(kept.read(&world).unwrap(), loaded);
        for at in (0..bytes.len()).step_by(997) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            for damaged in [flipped, bytes[..at].to_vec()] {
                world.put(&kept.path, damaged);
                assert!(kept.read(&world).is_none(), "byte {at}");
            }
        }
        world.put(&kept.path, bytes);
        kept.key[0] ^= 1;
        assert!(kept.read(&world).is_none(), "another pack's");
    }
}
