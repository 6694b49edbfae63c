//! `store:` in the configuration of the organization or the user: where the shared store is, and how this process signs in.
//!
//! A repository cannot set it: neither a pack nor an environment variable of a hook counts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::document_kind::{APPROVAL, ESCALATION, RUN, SIGNAL, TASK};
use crate::configuration::{Configuration, ConfigurationOwner};
use crate::user;
use policyd_base::limits::{PASSWORD_BYTES_MAX, PASSWORD_COMMAND_TIME};
use policyd_policy::field_value::Word;
use policyd_policy::record;
use policyd_policy::record::{entries, one_or_list};
use policyd_world::server::ServerAddress;
use policyd_world::{ExternalCommand, World, WorldError};
use policyd_yaml::Node;
use policyd_yaml::checksum::hex;
use policyd_yaml::layered_map::LayeredMap;
use policyd_yaml::shape::Kind;

/// The variable that chooses one of the configured URLs.
pub const VARIABLE: &str = "POLICYD_STORE";
/// Hexadecimal digits that tell two stores apart.
const FINGERPRINT_DIGITS: usize = 16;

record! {
    /// Keys of `store:`.
    pub const STORE: RecordType<SharedStoreSettings> = {
        url [mandatory()]: Kind::Text => url, "`postgres://user@host/database`. Required.";
        alternatives: Kind::List(&Kind::Text) => alternatives by one_or_list(),
            "Further URLs that the variable `POLICYD_STORE` can choose.";
        group: Kind::Text => group, "Projects of one group share their breakers.";
        groups: Kind::Map(&Kind::Text) => groups by entries(),
            "Groups of the projects below a directory, such as `~/payments: payments`. The longest directory decides.";
        share: Kind::List(&Kind::Choice(SharedSubject::NAMES)) => share by one_or_list(),
            "What is shared besides breakers. Default: nothing.";
        password_file: Kind::Text => password_file, "File with the password.";
        password_env: Kind::Text => password_env, "Environment variable with the password.";
        password_command: Kind::List(&Kind::Text) => password_command by one_or_list(),
            "Command that prints the password.";
        ca_file: Kind::Text => ca_file,
            "Certificates of authorities in PEM. Default: those that the machine trusts.";
    }
}

/// Settings of the shared store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedStoreSettings {
    pub url: String,
    alternatives: Vec<String>,
    pub group: String,
    groups: Vec<(PathBuf, String)>,
    share: Vec<SharedSubject>,
    password_file: Option<PathBuf>,
    password_env: Option<String>,
    /// Program and arguments; empty without one.
    password_command: Vec<String>,
    ca_file: Option<PathBuf>,
}

/// What can be shared besides breakers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedSubject {
    /// Failed tasks and dead letters.
    Tasks,
    /// Requests to humans, and their answers.
    Escalations,
    /// Requests to let blocked tool calls pass, and the answers.
    Approvals,
    /// The registry of supervised runs.
    Runs,
    /// Signals between processes.
    Signals,
    /// The decision log.
    Decisions,
}

impl Word for SharedSubject {
    const NAMES: &'static [&'static str] =
        &["tasks", "escalations", "approvals", "runs", "signals", "decisions"];
    const VALUES: &'static [Self] = &[
        Self::Tasks,
        Self::Escalations,
        Self::Approvals,
        Self::Runs,
        Self::Signals,
        Self::Decisions,
    ];
}

/// Variable in which clients of PostgreSQL look for a password.
const PASSWORD_VARIABLE: &str = "PGPASSWORD";

/// Returns whether a URL contains a password.
fn has_password(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |it| it.1);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let account = authority.rsplit_once('@').map_or("", |it| it.0);
    account.contains(':') || parameter(url, "password").is_some()
}

/// Returns a URL without its password, and without its parameters, one of which can be a password.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return String::new() };
    let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    match place.rsplit_once('@') {
        Some((account, host)) => {
            let name = account.split(':').next().unwrap_or_default();
            format!("{scheme}://{name}@{host}")
        }
        // The sign before it can belong to a password.
        None if parameters.contains('@') => format!("{scheme}://…"),
        None => format!("{scheme}://{place}"),
    }
}

/// Returns the file with the certificates of authorities that a URL names.
fn root_certificates(url: &str) -> Option<PathBuf> {
    let path = parameter(url, "sslrootcert")?;
    (path != "system").then(|| PathBuf::from(path.replace("%2F", "/").replace("%2f", "/")))
}

/// Returns a parameter of a URL.
fn parameter<'u>(url: &'u str, name: &str) -> Option<&'u str> {
    let (_, parameters) = url.split_once('?')?;
    parameters.split('&').filter_map(|it| it.split_once('=')).find(|it| it.0 == name).map(|it| it.1)
}

impl Default for SharedStoreSettings {
    fn default() -> Self {
        Self {
            url: String::new(),
            alternatives: Vec::new(),
            group: "default".to_owned(),
            groups: Vec::new(),
            share: Vec::new(),
            password_file: None,
            password_env: None,
            password_command: Vec::new(),
            ca_file: None,
        }
    }
}

/// Why the shared store cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SharedSettingsError {
    #[error("could not read `{}`: {source}", path.display())]
    Unreadable { path: PathBuf, source: WorldError },
    #[error("`store.url` in `config.yaml` must begin with `postgres://` or `postgresql://`")]
    Scheme,
    #[error("a group of `store` in `config.yaml` must have 1 to 100 printable characters")]
    Group,
    #[error("the environment variable `{0}` with the password is not set")]
    NoPassword(String),
    #[error(
        "the password command did not end within {} ms; hooks need `password_file` or `password_env`, or run \
         `policyd store watch`",
        .0.as_millis()
    )]
    SlowPassword(Duration),
    #[error("the password command failed: {0}")]
    PasswordCommand(String),
}

impl SharedStoreSettings {
    /// Returns the settings of the organization, else those of the user, for the project with a state directory. `None` if
    /// no shared store is configured.
    ///
    /// # Errors
    /// The URL or the group is invalid.
    pub fn load(world: &dyn World, root: &Path) -> Result<Option<Self>, SharedSettingsError> {
        let owners = [ConfigurationOwner::Organization, ConfigurationOwner::User];
        let configured = owners.into_iter().find_map(|it| Configuration::load(world, it).store);
        let Some(mut settings) = configured else { return Ok(None) };
        // A repository can set variables of hooks. Therefore the variable only chooses.
        if let Some(chosen) = world.env(VARIABLE).filter(|it| settings.alternatives.contains(it)) {
            settings.url = chosen;
        }
        if !["postgres://", "postgresql://"].iter().any(|it| settings.url.starts_with(it)) {
            return Err(SharedSettingsError::Scheme);
        }
        let home = world.env("HOME").map(PathBuf::from);
        let directory = |it: &Path| match (it.strip_prefix("~"), &home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => it.to_owned(),
        };
        let directories = settings.groups.iter().map(|(at, group)| (directory(at), group));
        let around = directories.filter(|(at, _)| root.starts_with(at));
        if let Some((_, group)) = around.max_by_key(|(at, _)| at.components().count()) {
            settings.group = group.clone();
        }
        let count = settings.group.chars().count();
        if count == 0 || count > 100 || settings.group.contains(char::is_control) {
            return Err(SharedSettingsError::Group);
        }
        Ok(Some(settings))
    }

    /// Reads the value of `store:`.
    pub(crate) fn from_node(node: &Node) -> Option<Self> {
        node.entries()?;
        Some(STORE.read_untyped(&LayeredMap::from_iter([node])))
    }

    /// Returns the fingerprint of the configured store.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.url, &self.group)
    }

    /// Returns the URL without a password and parameters.
    #[must_use]
    pub fn shown_url(&self) -> String {
        without_password(&self.url)
    }

    /// Reads the password and the certificates. The command that prints the password has at most `limit`.
    ///
    /// # Errors
    /// A file cannot be read, the variable is not set, or the command failed.
    pub fn address(
        &self,
        world: &dyn World,
        limit: Duration,
    ) -> Result<ServerAddress, SharedSettingsError> {
        let read = |path: &PathBuf| {
            let absolute = world.working_folder().join(path);
            world
                .read(&absolute, PASSWORD_BYTES_MAX)
                .map_err(|source| SharedSettingsError::Unreadable { path: path.clone(), source })
        };
        let named = root_certificates(&self.url);
        let authorities = self.ca_file.as_ref().or(named.as_ref()).map(read).transpose()?;
        Ok(ServerAddress {
            url: self.url.clone(),
            password: self.password(world, limit)?,
            authorities,
            group: self.group.clone(),
        })
    }

    /// Returns the address of another account or server, for which the password of the configuration does not count.
    ///
    /// # Errors
    /// A file with certificates cannot be read.
    pub fn address_of(
        &self,
        world: &dyn World,
        url: &str,
    ) -> Result<ServerAddress, SharedSettingsError> {
        let other = Self {
            url: url.to_owned(),
            password_file: None,
            password_env: None,
            password_command: Vec::new(),
            ..self.clone()
        };
        other.address(world, Duration::ZERO)
    }

    fn password(
        &self,
        world: &dyn World,
        limit: Duration,
    ) -> Result<Option<String>, SharedSettingsError> {
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
        let argv = &self.password_command;
        if argv.is_empty() {
            // A password of the URL comes first, as for other clients of PostgreSQL.
            return Ok(world.env(PASSWORD_VARIABLE).filter(|_| !has_password(&self.url)));
        }
        let folder = user::config_folder(world).unwrap_or_else(|| world.working_folder());
        let deadline = PASSWORD_COMMAND_TIME.min(limit);
        let command = ExternalCommand {
            argv: argv.clone(),
            folder,
            deadline,
            output_max: PASSWORD_BYTES_MAX,
            not_from: Some(vec![world.working_folder()]),
            ..ExternalCommand::default()
        };
        let failed = |why: String| SharedSettingsError::PasswordCommand(why);
        let output = world.run(&command).map_err(|error| match error == WorldError::TimedOut {
            true => SharedSettingsError::SlowPassword(deadline),
            false => failed(error.to_string()),
        })?;
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

    /// Returns whether documents of a kind are shared.
    #[must_use]
    pub fn shares_kind(&self, kind: &str) -> bool {
        let subject = match kind {
            TASK => SharedSubject::Tasks,
            ESCALATION => SharedSubject::Escalations,
            APPROVAL => SharedSubject::Approvals,
            RUN => SharedSubject::Runs,
            SIGNAL => SharedSubject::Signals,
            _ => return true,
        };
        self.shares(subject)
    }

    /// Returns whether breakers of this name are shared. Others describe one machine.
    #[must_use]
    pub fn shares_breaker(key: &str) -> bool {
        key.starts_with("api/")
    }
}

/// Returns a short hash of the server, the database, and the group: what is known of one store says nothing about another.
/// The account does not matter.
#[must_use]
pub fn fingerprint(url: &str, group: &str) -> String {
    let url = url.split_once('?').map_or(url, |(url, _)| url);
    let place = url.split_once("://").map_or(url, |(_, rest)| rest);
    let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
    let text = format!("{place}\n{group}");
    let mut digits = hex(&Sha256::digest(text.as_bytes()));
    digits.truncate(FINGERPRINT_DIGITS);
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_url_contains_no_password() {
        for (url, shown) in [
            ("postgres://h:5432/policyd", "postgres://h:5432/policyd"),
            ("postgres://me@h/policyd?sslmode=require", "postgres://me@h/policyd"),
            ("postgres://me:secret@h/policyd", "postgres://me@h/policyd"),
            ("postgres://me:se@cr/et@h/policyd", "postgres://me@h/policyd"),
            ("postgres://me:se?cret@h/policyd", "postgres://…"),
            ("postgres://h/policyd?user=me&password=secret", "postgres://h/policyd"),
            ("postgres://me@h/policyd?password=se@cret", "postgres://me@h/policyd"),
            ("h/policyd", ""),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}
