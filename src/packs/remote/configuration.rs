//! What the configuration of the organization and of the user demands of remote packs.

use std::path::Path;

use super::signature::{Requirement, Requirer};
use policyd_base::limits::SETTINGS_FILE_BYTES_MAX;
use policyd_policy::remote::{RemoteEntry, RemoteProblem};
use policyd_store::administrator;
use policyd_store::configuration::{Configuration, ConfigurationOwner};
use policyd_store::pack_rules::PackRules;
use policyd_world::{World, WorldError};

/// The rules of both files.
#[derive(Debug)]
pub struct PackConfiguration {
    organization: PackRules,
    user: PackRules,
}

impl PackConfiguration {
    /// Loads the rules for the pack in a directory. The configuration of a user does not count for the pack of the
    /// organization: it could keep that pack from loading.
    ///
    /// # Errors
    /// [`RemoteProblem::Configuration`] if a file is invalid, so that a requirement could be overlooked.
    pub fn load(world: &dyn World, pack: &Path) -> Result<Self, RemoteProblem> {
        let rules = |owner: ConfigurationOwner| {
            let file = Configuration::load(world, owner);
            match file.hides_pack_rules {
                false => Ok(file.packs),
                true => {
                    let path = owner.path(world).unwrap_or_default();
                    Err(RemoteProblem::Configuration(path.display().to_string()))
                }
            }
        };
        Ok(Self {
            organization: rules(ConfigurationOwner::Organization)?,
            user: match administrator::is_policies(pack) {
                true => PackRules::default(),
                false => rules(ConfigurationOwner::User)?,
            },
        })
    }

    /// Returns the signatures that the pack of an entry must have.
    pub fn requirements(&self, entry: &RemoteEntry) -> Vec<Requirement> {
        let demanded = |by: Requirer, rules: &PackRules| {
            rules.required_keys(&entry.source).map(|keys| Requirement { by, keys })
        };
        let manifest = entry.key.clone();
        let manifest = manifest.map(|key| Requirement { by: Requirer::Manifest, keys: vec![key] });
        let organization = demanded(Requirer::Organization, &self.organization);
        let user = demanded(Requirer::User, &self.user);
        organization.into_iter().chain(user).chain(manifest).collect()
    }

    /// Returns the keys that are accepted although no signature is required.
    pub fn known_keys(&self) -> Requirement {
        let keys = self.organization.keys.iter().chain(&self.user.keys).cloned().collect();
        Requirement { by: Requirer::User, keys }
    }

    /// Returns the file with the accepted certificate authorities.
    pub fn ca_file(&self) -> Option<&Path> {
        self.organization.ca_file.as_deref().or(self.user.ca_file.as_deref())
    }

    /// Returns the accepted certificate authorities. `None`: those of the machine.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn roots(&self, world: &dyn World) -> Result<Option<Vec<u8>>, WorldError> {
        self.ca_file().map(|it| world.read(it, SETTINGS_FILE_BYTES_MAX)).transpose()
    }
}
