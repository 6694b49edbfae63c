//! `policyd rule`: how a human disables, softens, or enforces one rule by an override in a pack of the user or of the
//! project. Lint accepts what is written.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::pack_change::{PackChange, PackChangeError, USER_MANIFEST, with_files};
use super::rule_entry::{EntryKeys, RuleEntry};
use super::{FoundPack, UntrustedPack, UntrustedReason, folder, organization, own_directory};
use crate::workspace::project::Project;
use policyd_policy::load::Pack;
use policyd_policy::{Mode, Policy};
use policyd_store::administrator;
use policyd_store::trust::TrustStatus;
use policyd_store::user;
use policyd_world::World;
use policyd_yaml::suggest;

/// First line of a file that does not exist yet.
const HEADER: &str = "# Changes by `policyd rule`.\n";
/// Manifest of a pack of a project that does not exist yet.
const PROJECT_MANIFEST: (&str, &str) = ("policyd.yaml", "version: 1\nextends: [builtin]\n");
const GUARDS: &str = "guards.yaml";
const CHECKS: &str = "considerations.yaml";

/// What a rule does from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleSwitch {
    /// The rule is not evaluated.
    Off,
    /// The rule warns at most.
    Warn,
    /// The rule is only logged.
    Observe,
    /// The rule acts as its author wrote it.
    On,
}

impl RuleSwitch {
    /// Returns the word that the user types.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Warn => "warn",
            Self::Observe => "observe",
            Self::On => "on",
        }
    }

    /// Returns the state of a rule in a policy. A disabled guard is not in the policy.
    #[must_use]
    pub fn of(policy: &Policy, id: &str) -> Self {
        let mode = |mode: Mode| match mode {
            Mode::Enforce => Self::On,
            Mode::Warn => Self::Warn,
            Mode::Shadow => Self::Observe,
        };
        let check = policy.considerations.iter().find(|it| it.id == id);
        let guard = policy.guards.rules.iter().find(|it| it.id == id);
        match (check, guard) {
            (Some(check), _) if check.enabled => mode(check.mode),
            (Some(_), _) | (None, None) => Self::Off,
            (None, Some(guard)) => mode(guard.mode),
        }
    }
}

/// Whose pack contains an override.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverrideOwner {
    /// The user, in every project.
    User,
    /// The project, for everyone who trusts its pack.
    Project,
}

impl OverrideOwner {
    /// Returns the word that the user reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

/// A request to change rules.
#[derive(Debug, Clone, Copy)]
pub struct RuleRequest<'a> {
    /// Ids of rules, and names of guard sets.
    pub names: &'a [String],
    pub switch: RuleSwitch,
    pub owner: OverrideOwner,
    /// Why, as the user states it.
    pub reason: Option<&'a str>,
}

/// Why rules were not changed.
#[derive(Debug, thiserror::Error)]
pub enum RuleChangeError {
    #[error("unknown rule or guard set `{name}`\nhelp: {help}")]
    Unknown { name: String, help: String },
    #[error(
        "the organization set the rule `{rule}`, so no user can change it\nhelp: `{path}` contains it; ask the \
         administrator of this machine"
    )]
    Organization { rule: String, path: PathBuf },
    /// The pack is not trusted. Contains its text.
    #[error("{0}")]
    Untrusted(String),
    #[error("{0}\nhelp: run `policyd lint`, fix the pack, and run the command again")]
    Invalid(String),
    #[error("neither `XDG_CONFIG_HOME` nor `HOME` is set, so no pack of the user can be written")]
    NoDirectory,
    #[error("cannot change the rule in {path}\nhelp: add these lines:\n{lines}", path = path.display())]
    NotEdited { path: PathBuf, lines: String },
    #[error(transparent)]
    Change(#[from] PackChangeError),
}

/// What a request changes.
#[derive(Debug)]
pub enum RuleChangePlan {
    /// Nothing: the pack already contains what the user wants.
    Done(Vec<String>),
    /// Files to write.
    Change(Box<OverrideChange>),
}

/// A change of rules.
#[derive(Debug)]
pub struct OverrideChange {
    /// Ids of the rules.
    pub rules: Vec<String>,
    pub change: PackChange,
}

/// Plans a change of rules in the pack of an owner.
pub fn plan(
    world: &dyn World,
    project: &Project,
    request: RuleRequest<'_>,
) -> Result<RuleChangePlan, RuleChangeError> {
    let target = OverrideTarget::find(world, project, request.owner)?;
    let before = policy_of(&target.found)?;
    let builtin = super::builtin_policy();
    let policies: Vec<&Policy> = std::iter::once(&before).chain(&builtin).collect();
    let rules = match rules(request.names, &policies, &target) {
        Err(RuleChangeError::Unknown { name, .. }) if is_of_project(world, project, &name) => {
            let help = format!(
                "it is a rule of the pack of this project: `policyd rule {} {name} --project`",
                request.switch.name()
            );
            return Err(RuleChangeError::Unknown { name, help });
        }
        found => found?,
    };
    let of_organization = organization_policy(world);
    let is_fixed =
        |it: &&String| of_organization.as_ref().is_some_and(|all| all.rule_id(it).is_some());
    if let Some(rule) = rules.iter().find(is_fixed) {
        let (rule, path) = (rule.clone(), administrator::policies());
        return Err(RuleChangeError::Organization { rule, path });
    }
    let is_done = |it: &String| RuleSwitch::of(&before, it) == request.switch;
    if request.reason.is_none() && rules.iter().all(is_done) {
        return Ok(RuleChangePlan::Done(rules));
    }
    // Without its entry, a rule acts as the packs below say. A second attempt writes each key.
    for keys in [EntryKeys::Fewest, EntryKeys::All] {
        let Some(changed) = target.edited(&rules, &policies, request, keys) else {
            break;
        };
        let after = target.found.with_pack(with_files(target.pack(), &target.folder, &changed));
        let Ok(policy) = super::loaded(&after) else { continue };
        if rules.iter().any(|it| RuleSwitch::of(&policy, it) != request.switch) {
            continue;
        }
        if changed.iter().all(|(file, text)| target.text(file) == text.as_str()) {
            return Ok(RuleChangePlan::Done(rules));
        }
        let folder = target.folder.clone();
        let files = changed.into_iter().map(|(file, text)| (folder.join(file), text)).collect();
        let trusts_new = target.pack().is_none() && request.owner == OverrideOwner::Project;
        let change = PackChange { folder, files, after, trusts_new };
        return Ok(RuleChangePlan::Change(Box::new(OverrideChange { rules, change })));
    }
    let lines = rules.iter().map(|it| entry(it, request, EntryKeys::All).line()).collect();
    Err(RuleChangeError::NotEdited { path: target.folder, lines })
}

/// The pack that is changed.
struct OverrideTarget {
    folder: PathBuf,
    found: FoundPack,
    owner: OverrideOwner,
}

impl OverrideTarget {
    fn find(
        world: &dyn World,
        project: &Project,
        owner: OverrideOwner,
    ) -> Result<Self, RuleChangeError> {
        let folder = match owner {
            OverrideOwner::User => user::config_folder(world).map(|it| it.join("policies")),
            OverrideOwner::Project => {
                Some(super::nearest_of(world, project).unwrap_or_else(|| own_directory(project)))
            }
        };
        let folder = folder.ok_or(RuleChangeError::NoDirectory)?;
        let name = folder.display().to_string();
        let is_there = folder::holds_policies(world, &folder);
        let found = super::at(world, is_there.then_some(name.as_str()));
        if owner == OverrideOwner::Project && is_there {
            let reason = match super::standing(world, project, &folder, &found) {
                TrustStatus::Trusted => None,
                TrustStatus::Changed => Some(UntrustedReason::Changed),
                TrustStatus::Unknown => Some(UntrustedReason::Unknown),
            };
            if let Some(reason) = reason {
                let text = UntrustedPack { folder, reason }.text();
                return Err(RuleChangeError::Untrusted(text));
            }
        }
        Ok(Self { folder, found, owner })
    }

    fn pack(&self) -> Option<&Pack> {
        self.found.own_files()
    }

    fn text(&self, file: &str) -> &str {
        let files = self.pack().map(|it| it.files.as_slice()).unwrap_or_default();
        files.iter().find(|(name, _)| name == file).map_or("", |(_, source)| source.text.as_str())
    }

    /// Returns whether a file of the pack has an entry of this rule.
    fn contains(&self, rule: &str) -> bool {
        let mut files = self.pack().map(|it| it.files.as_slice()).unwrap_or_default().iter();
        files.any(|(file, source)| is_rules(file) && RuleEntry::is_in(source, &[rule]))
    }

    /// Returns the file that contains the entry of a rule, or that a new entry belongs to.
    fn file_of(&self, names: &[&str], is_check: bool) -> String {
        let files = self.pack().map(|it| it.files.as_slice()).unwrap_or_default();
        let mut with_entry =
            files.iter().filter(|(file, source)| is_rules(file) && RuleEntry::is_in(source, names));
        let usual = if is_check { CHECKS } else { GUARDS };
        with_entry.next().map_or(usual, |(file, _)| file.as_str()).to_owned()
    }

    /// Returns the new texts of the files. `None` if a file has a form that this does not edit.
    fn edited(
        &self,
        rules: &[String],
        policies: &[&Policy],
        request: RuleRequest<'_>,
        keys: EntryKeys,
    ) -> Option<Vec<(String, String)>> {
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        for rule in rules {
            let is_check =
                policies.iter().any(|it| it.considerations.iter().any(|it| it.id == *rule));
            let former = policies.iter().flat_map(|it| it.former_ids());
            let former = former.filter(|(_, id)| *id == rule).map(|(former, _)| former);
            let names: Vec<&str> = std::iter::once(rule.as_str()).chain(former).collect();
            let file = self.file_of(&names, is_check);
            let text = texts.entry(file.clone()).or_insert_with(|| self.text(&file).to_owned());
            *text = entry(rule, request, keys).put_into(text, &names)?;
        }
        let finished = |(file, text): (String, String)| {
            let is_new = self.text(&file).is_empty() && !text.is_empty();
            let text = if is_new { format!("{HEADER}{text}") } else { text };
            let text = if text.trim() == HEADER.trim() { String::new() } else { text };
            (file, text)
        };
        let mut changed: Vec<(String, String)> = texts.into_iter().map(finished).collect();
        // A file that never existed is not removed.
        changed.retain(|(file, text)| !text.is_empty() || !self.text(file).is_empty());
        if self.pack().is_none() && !changed.is_empty() {
            let (file, text) = match self.owner {
                OverrideOwner::User => USER_MANIFEST,
                OverrideOwner::Project => PROJECT_MANIFEST,
            };
            changed.insert(0, (file.to_owned(), text.to_owned()));
        }
        Some(changed)
    }
}

/// Whether the entries of a file with ids are rules.
fn is_rules(file: &str) -> bool {
    file == CHECKS || policyd_policy::layers::GUARD_FILES.contains(&file)
}

/// Whether the pack of the project has an entry of this rule.
fn is_of_project(world: &dyn World, project: &Project, rule: &str) -> bool {
    OverrideTarget::find(world, project, OverrideOwner::Project).is_ok_and(|it| it.contains(rule))
}

/// Returns the entry that a request needs in a file.
fn entry<'a>(rule: &'a str, request: RuleRequest<'a>, keys: EntryKeys) -> RuleEntry<'a> {
    RuleEntry { id: rule, switch: request.switch, reason: request.reason, keys }
}

/// Returns the ids of rules that ids and names of guard sets mean.
fn rules(
    names: &[String],
    policies: &[&Policy],
    target: &OverrideTarget,
) -> Result<Vec<String>, RuleChangeError> {
    let mut found: Vec<String> = Vec::new();
    for name in names {
        let id = policies.iter().find_map(|it| it.rule_id(name));
        let of_set = policies.iter().flat_map(|it| it.guards.rules.iter());
        let of_set = of_set.filter(|it| it.set == *name).map(|it| it.id.clone());
        // A policy does not contain rules that are off.
        let own = || Some(name.clone()).filter(|it| target.contains(it));
        let id = id.map(str::to_owned).or_else(own);
        let ids: Vec<String> = id.into_iter().chain(of_set).collect();
        if ids.is_empty() {
            return Err(unknown(name, policies));
        }
        for id in ids {
            if !found.contains(&id) {
                found.push(id);
            }
        }
    }
    Ok(found)
}

fn unknown(name: &str, policies: &[&Policy]) -> RuleChangeError {
    let checks = policies.iter().flat_map(|it| it.considerations.iter().map(|it| it.id.as_str()));
    let guards = policies.iter().flat_map(|it| it.guards.rules.iter());
    let guards = guards.flat_map(|it| [it.id.as_str(), it.set.as_str()]);
    let known: Vec<&str> = checks.chain(guards).collect();
    let near = suggest::nearest(name, &known).map(|it| format!("did you mean `{it}`?"));
    let help = near.unwrap_or_else(|| format!("`policyd rules {name}` searches the rules"));
    RuleChangeError::Unknown { name: name.to_owned(), help }
}

fn policy_of(found: &FoundPack) -> Result<Policy, RuleChangeError> {
    super::loaded(found).map_err(|invalid| RuleChangeError::Invalid(super::explain(&invalid)))
}

fn organization_policy(world: &dyn World) -> Option<Policy> {
    super::policy(world, &organization::find(world).ok().flatten()?).ok()
}

/// Returns the overrides of rules in the packs of the user and of the project, with their owners.
#[must_use]
pub fn overrides(world: &dyn World, project: &Project) -> Vec<OverriddenRule> {
    let mut found = Vec::new();
    for owner in [OverrideOwner::Project, OverrideOwner::User] {
        let Ok(OverrideTarget { found: pack, .. }) = OverrideTarget::find(world, project, owner)
        else {
            continue;
        };
        let Some(files) = pack.own_files() else { continue };
        let rules = files.files.iter().filter(|(file, _)| is_rules(file));
        rules.for_each(|(_, source)| found.extend(RuleEntry::overrides_in(source, owner)));
    }
    found
}

/// A rule that a pack of the user or of the project changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverriddenRule {
    pub id: String,
    /// `off`, `warn`, `observe`, `on`, or `changed` for other keys.
    pub state: &'static str,
    pub reason: String,
    /// Location of the entry.
    pub place: String,
    pub owner: OverrideOwner,
}
