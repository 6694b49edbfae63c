//! Adds guards with their cases to the pack of the user. Files keep their order and their comments.

use std::path::{Path, PathBuf};

use super::pack_change::{PackChange, PackChangeError, USER_MANIFEST, with_files};
use super::{FoundPack, InvalidPack, folder};
use policyd_base::limits::CASE_FILE_BYTES_MAX;
use policyd_cases::shape::FOLDER;
use policyd_store::user;
use policyd_world::{World, WorldError};

/// File of the guards.
const GUARDS: &str = "guards.yaml";
/// File of the cases, in the directory of cases.
const CASES: &str = "suggested.yaml";
/// Characters of a text that needs no quotes.
const PLAIN: &str = " ._/+-";

/// A guard with its cases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRule {
    /// Id of the guard.
    pub id: String,
    /// The guard, as an item of a list.
    pub guard: String,
    /// The cases, as items of a list.
    pub cases: String,
}

/// Why rules were not added.
#[derive(Debug, thiserror::Error)]
pub enum RuleAdditionError {
    #[error("{0}\nhelp: run `policyd lint`, fix the pack, and run the command again")]
    Invalid(String),
    #[error("neither `XDG_CONFIG_HOME` nor `HOME` is set, so no pack of the user can be written")]
    NoDirectory,
    #[error("cannot add a rule to {path}\nhelp: add these lines:\n{lines}", path = path.display())]
    NotEdited { path: PathBuf, lines: String },
    #[error(transparent)]
    Change(#[from] PackChangeError),
}

/// The pack of the user.
pub struct UserPack {
    folder: PathBuf,
    found: FoundPack,
}

impl UserPack {
    /// Reads the pack of the user; without one, it is the built-in pack.
    ///
    /// # Errors
    /// [`RuleAdditionError::NoDirectory`] without a home directory.
    pub fn find(world: &dyn World) -> Result<Self, RuleAdditionError> {
        let folder = user::config_folder(world).map(|it| it.join("policies"));
        let folder = folder.ok_or(RuleAdditionError::NoDirectory)?;
        let name = folder.display().to_string();
        let is_there = folder::holds_policies(world, &folder);
        let found = super::at(world, is_there.then_some(name.as_str()));
        Ok(Self { folder, found })
    }

    /// Returns the policy that the pack means.
    ///
    /// # Errors
    /// [`RuleAdditionError::Invalid`] if the pack cannot be loaded.
    pub fn policy(&self, world: &dyn World) -> Result<policyd_policy::Policy, RuleAdditionError> {
        super::policy(world, &self.found).map_err(|it| invalid(&it))
    }

    /// Plans the addition of rules.
    ///
    /// # Errors
    /// The pack would not contain the rules, or the file of cases cannot be read.
    pub fn add(
        &self,
        world: &dyn World,
        rules: &[NewRule],
    ) -> Result<PackChange, RuleAdditionError> {
        let pack = self.found.own_files();
        let files = pack.map(|it| it.files.as_slice()).unwrap_or_default();
        let before = files.iter().find(|(name, _)| name == GUARDS);
        let before = before.map_or("", |(_, source)| source.text.as_str());
        let guards: String = rules.iter().map(|it| it.guard.as_str()).collect();
        let text = appended(before, "# Guards of the user.", &guards);
        let mut changed = vec![(GUARDS.to_owned(), text)];
        if pack.is_none() {
            changed.insert(0, (USER_MANIFEST.0.to_owned(), USER_MANIFEST.1.to_owned()));
        }
        let after = self.found.with_pack(with_files(pack, &self.folder, &changed));
        let policy = super::loaded(&after).ok();
        let has = |rule: &NewRule| {
            policy.iter().any(|it| it.guards.rules.iter().any(|guard| guard.id == rule.id))
        };
        if !rules.iter().all(has) {
            let path = self.folder.join(GUARDS);
            return Err(RuleAdditionError::NotEdited { path, lines: guards });
        }
        let folder = self.folder.clone();
        let mut files: Vec<(PathBuf, String)> =
            changed.into_iter().map(|(file, text)| (folder.join(file), text)).collect();
        let cases = folder.join(FOLDER).join(CASES);
        let before = read_cases(world, &cases)?;
        let text: String = rules.iter().map(|it| it.cases.as_str()).collect();
        files.push((cases, appended(&before, "# Cases of `policyd suggest`.", text.trim_start())));
        Ok(PackChange { folder, files, after, trusts_new: false })
    }
}

impl PackChange {
    /// Returns the policy of the pack as it is afterwards.
    ///
    /// # Errors
    /// [`RuleAdditionError::Invalid`] if the pack cannot be loaded.
    pub fn policy_after(&self) -> Result<policyd_policy::Policy, RuleAdditionError> {
        super::loaded(&self.after).map_err(|it| invalid(&it))
    }
}

fn invalid(error: &InvalidPack) -> RuleAdditionError {
    RuleAdditionError::Invalid(super::explain(error))
}

/// Returns a file of cases; empty if it does not exist.
pub(super) fn read_cases(world: &dyn World, path: &Path) -> Result<String, PackChangeError> {
    match world.read(path, CASE_FILE_BYTES_MAX) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(WorldError::NotFound) => Ok(String::new()),
        Err(error) => Err(PackChangeError::File { path: path.to_owned(), error }),
    }
}

/// Returns a file with items behind its own. A new file begins with a comment.
fn appended(before: &str, comment: &str, items: &str) -> String {
    let before = before.trim_end();
    let before = if before.is_empty() { comment } else { before };
    format!("{before}\n\n{items}")
}

/// Returns a text as YAML writes it, in double quotes if it needs any.
#[must_use]
pub fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || PLAIN.contains(c);
    let is_word = text.starts_with(|c: char| c.is_ascii_alphabetic());
    match is_word && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => serde_json::Value::from(text).to_string(),
    }
}
