//! `store:` in the user's configuration: where the shared store is, and how this process signs in.
//!
//! A repository cannot set it: neither a pack nor an environment variable of a hook counts.

use std::path::PathBuf;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::checksum::hex;
use crate::limits::{CONFIG_BYTES_MAX, PASSWORD_BYTES_MAX, PASSWORD_COMMAND_TIME};
use crate::store::user;
use crate::world::server::ServerAddress;
use crate::world::{ExternalCommand, World, WorldError};

/// The file in the user's configuration directory.
pub const CONFIG_FILE: &str = "config.yaml";
/// The variable that chooses one of the configured URLs.
pub const VARIABLE: &str = "POLICYD_STORE";
/// Hexadecimal digits that tell two stores apart.
const FINGERPRINT_DIGITS: usize = 16;

/// The part of the configuration that is read here.
#[derive(Debug, Default, Deserialize)]
struct ConfigFile {
    #[serde(default)]
    store: Option<SharedStoreSettings>,
}

/// Settings of the shared store.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedStoreSettings {
    /// `postgres://user@host/database`.
    pub url: String,
    /// Further URLs that the variable `POLICYD_STORE` can choose.
    #[serde(default)]
    alternatives: Vec<String>,
    /// Projects of one group share their breakers, tasks, and escalations.
    #[serde(default = "default_group")]
    pub group: String,
    /// What is shared besides breakers.
    #[serde(default)]
    share: Vec<SharedSubject>,
    /// File with the password.
    #[serde(default)]
    password_file: Option<PathBuf>,
    /// Environment variable with the password.
    #[serde(default)]
    password_env: Option<String>,
    /// Command that prints the password.
    #[serde(default)]
    password_command: Option<Vec<String>>,
    /// Certificates of authorities in PEM; by default those that the machine trusts.
    #[serde(default)]
    ca_file: Option<PathBuf>,
}

/// What can be shared besides breakers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SharedSubject {
    /// Failed tasks and dead letters.
    Tasks,
    /// Requests to humans, and their answers.
    Escalations,
    /// The decision log.
    Decisions,
}

fn default_group() -> String {
    "default".to_owned()
}

/// Why the shared store cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SharedSettingsError {
    #[error("could not read `{}`: {source}", path.display())]
    Unreadable { path: PathBuf, source: WorldError },
    /// `problem` is the message of the YAML parser.
    #[error("`{}` is invalid: {problem}", path.display())]
    Invalid { path: PathBuf, problem: String },
    #[error("`store: url` in `{}` must begin with `postgres://` or `postgresql://`", path.display())]
    Scheme { path: PathBuf },
    #[error("`store: group` in `{}` must have 1 to 100 printable characters", path.display())]
    Group { path: PathBuf },
    #[error("the environment variable `{0}` with the password is not set")]
    NoPassword(String),
    #[error("the password command failed: {0}")]
    PasswordCommand(String),
}

impl SharedStoreSettings {
    /// Returns the settings of the user; `None` if no shared store is configured.
    ///
    /// # Errors
    /// The file cannot be read, or is invalid.
    pub fn load(world: &dyn World) -> Result<Option<Self>, SharedSettingsError> {
        let Some(path) = user::config_folder(world).map(|it| it.join(CONFIG_FILE)) else {
            return Ok(None);
        };
        let bytes = match world.read(&path, CONFIG_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(WorldError::NotFound) => return Ok(None),
            Err(source) => return Err(SharedSettingsError::Unreadable { path, source }),
        };
        let file: Result<Option<ConfigFile>, _> = serde_yaml::from_slice(&bytes);
        let file = match file {
            Ok(file) => file.unwrap_or_default(),
            Err(error) => {
                return Err(SharedSettingsError::Invalid { path, problem: error.to_string() });
            }
        };
        let Some(mut settings) = file.store else { return Ok(None) };
        // A repository can set variables of hooks. Therefore the variable only chooses.
        if let Some(chosen) = world.env(VARIABLE).filter(|it| settings.alternatives.contains(it)) {
            settings.url = chosen;
        }
        if !["postgres://", "postgresql://"].iter().any(|it| settings.url.starts_with(it)) {
            return Err(SharedSettingsError::Scheme { path });
        }
        let count = settings.group.chars().count();
        if count == 0 || count > 100 || settings.group.contains(char::is_control) {
            return Err(SharedSettingsError::Group { path });
        }
        Ok(Some(settings))
    }

    /// Returns a short hash of the URL and the group: what is known of one store says nothing about another.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let text = format!("{}\n{}", self.shown_url(), self.group);
        let mut digits = hex(&Sha256::digest(text.as_bytes()));
        digits.truncate(FINGERPRINT_DIGITS);
        digits
    }

    /// Returns the URL without a password.
    #[must_use]
    pub fn shown_url(&self) -> String {
        let Some((scheme, rest)) = self.url.split_once("://") else { return String::new() };
        match rest.split_once('@') {
            Some((user, host)) => {
                let name = user.split_once(':').map_or(user, |(name, _)| name);
                format!("{scheme}://{name}@{host}")
            }
            None => self.url.clone(),
        }
    }

    /// Reads the password and the certificates.
    ///
    /// # Errors
    /// A file cannot be read, the variable is not set, or the command failed.
    pub fn address(&self, world: &dyn World) -> Result<ServerAddress, SharedSettingsError> {
        let read = |path: &PathBuf| {
            let absolute = world.working_folder().join(path);
            world
                .read(&absolute, PASSWORD_BYTES_MAX)
                .map_err(|source| SharedSettingsError::Unreadable { path: path.clone(), source })
        };
        let authorities = self.ca_file.as_ref().map(read).transpose()?;
        Ok(ServerAddress {
            url: self.url.clone(),
            password: self.password(world)?,
            authorities,
            group: self.group.clone(),
        })
    }

    fn password(&self, world: &dyn World) -> Result<Option<String>, SharedSettingsError> {
        let line = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            text.lines().next().unwrap_or_default().to_owned()
        };
        if let Some(path) = &self.password_file {
            let read = world.read(path, PASSWORD_BYTES_MAX);
            let bytes = read
                .map_err(|source| SharedSettingsError::Unreadable { path: path.clone(), source })?;
            return Ok(Some(line(&bytes)));
        }
        if let Some(name) = &self.password_env {
            let value = world.env(name);
            return value.map(Some).ok_or_else(|| SharedSettingsError::NoPassword(name.clone()));
        }
        let Some(argv) = &self.password_command else { return Ok(None) };
        let folder = user::config_folder(world).unwrap_or_else(|| world.working_folder());
        let command = ExternalCommand {
            argv: argv.clone(),
            folder,
            deadline: PASSWORD_COMMAND_TIME,
            output_max: PASSWORD_BYTES_MAX,
            not_from: Some(vec![world.working_folder()]),
            ..ExternalCommand::default()
        };
        let failed = |why: String| SharedSettingsError::PasswordCommand(why);
        let output = world.run(&command).map_err(|error| failed(error.to_string()))?;
        match output.code {
            Some(0) => Ok(Some(line(&output.stdout))),
            code => Err(failed(format!("exit code {}", code.unwrap_or(-1)))),
        }
    }

    /// Returns whether a subject is shared.
    #[must_use]
    pub fn shares(&self, subject: SharedSubject) -> bool {
        self.share.contains(&subject)
    }

    /// Returns whether breakers of this name are shared. Others describe one machine.
    #[must_use]
    pub fn shares_breaker(key: &str) -> bool {
        key.starts_with("api/")
    }
}
