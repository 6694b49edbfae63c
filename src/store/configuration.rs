//! `config.yaml`: settings of the organization in the administrator's directory, and of the user in their
//! configuration. A repository cannot contain either of them.
//!
//! Each valid key counts, also beside an invalid one: an older policyd obeys the keys that it knows.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::administrator::{self, Weakness};
use super::alert_settings::{AlertSettingProblem, AlertSettings, CHANNEL, REPORT};
use super::pack_rules::{PACK_RULES, PackRules};
use super::shared::settings::{STORE, SharedStoreSettings};
use super::user::{self, UserDirectory};
use policyd_base::limits::POLICY_FILE_BYTES_MAX;
use policyd_policy::approval::ApprovalLevel;
use policyd_policy::field_value::{FieldValue, words};
use policyd_policy::record;
use policyd_policy::record::Conversion;
use policyd_policy::{EnforcementMode, OnError, Policy};
use policyd_world::{World, WorldError};
use policyd_yaml::layered_map::LayeredMap;
use policyd_yaml::shape::{Field, Kind, field};
use policyd_yaml::{Diagnostic, Node, Source, check, yaml};

/// Name of the file.
const FILE: &str = "config.yaml";
/// Hexadecimal digits of the content hash of a pack.
const HASH_DIGITS: usize = 64;

record! {
    /// Keys of the organization's file.
    pub const ORGANIZATION: RecordType<Pins> = {
        mode: words::<EnforcementMode>() => mode,
            "Mode of all rules of users and projects. Without it, they choose it themselves.";
        allow_disable: Kind::Bool => allow_disable, "Whether users and projects can disable or pause policyd.";
        use APPROVALS;
        allow_exceptions: Kind::Bool => allow_exceptions,
            "Whether `policyd allow` lets a rule or a call pass.";
        on_error: words::<OnError>() => blocks_without_pack by BLOCKS,
            "What happens to tool calls while the organization's pack cannot be used. Default: `allow`, so that the rules \
             of the project decide alone.";
        trust: Kind::Record(TRUST_KEYS), "Which packs of users and projects are used.";
        use STORE_KEY;
        use PACKS;
        use CHANNELS;
        use REPORTS;
    }
}

const BLOCKS: Conversion<bool> =
    Conversion::reading(|node, _| Some(OnError::from_node(node)? == OnError::Block));

/// Which permission prompts policyd answers, in both files.
const APPROVALS: Field = field(
    "approvals",
    words::<ApprovalLevel>(),
    "Which permission prompts policyd answers in place of the user: `read` for calls that only read, `work` also for the \
     usual work in the project. If the organization and the user set it, the lower level counts.",
)
.with_default(|| Some(ApprovalLevel::None.as_str().into()));

/// The shared store, in both files.
const STORE_KEY: Field = field(
    "store",
    STORE.map,
    "Server that several hosts share. The organization's comes before the user's.",
);

/// Rules about remote packs, in both files.
const PACKS: Field = field(
    "packs",
    PACK_RULES.map,
    "Which signatures remote packs need. The rules of the organization and of the user both count.",
);

/// Channels that receive alerts, in both files.
const CHANNELS: Field = field(
    "channels",
    CHANNEL.list,
    "Who receives alerts, such as a chat, a pager, or mail. The channels of the organization and of the user both count.",
);

/// Scheduled reports, in both files.
const REPORTS: Field =
    field("reports", REPORT.list, "Reports over all projects that are made every day.");

const TRUST_KEYS: &[Field] = &[field(
    "allowed_packs",
    Kind::List(&Kind::Text),
    "Content hashes of packs that are used if the user trusts them. An empty list allows only the built-in pack. \
     Without it, each trusted pack is used.",
)];

/// Keys of the user's file.
const USER_KEYS: &[Field] = &[APPROVALS, STORE_KEY, PACKS, CHANNELS, REPORTS];

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigurationOwner {
    Organization,
    User,
}

impl ConfigurationOwner {
    /// Returns the path of the file. `None` if the user has no directory for it.
    #[must_use]
    pub fn path(self, world: &dyn World) -> Option<PathBuf> {
        match self {
            Self::Organization => Some(administrator::directory().join(FILE)),
            Self::User => user::config_folder(world).map(|it| it.join(FILE)),
        }
    }

    const fn keys(self) -> &'static [Field] {
        match self {
            Self::Organization => ORGANIZATION.fields,
            Self::User => USER_KEYS,
        }
    }
}

/// Why a file or a key of it is ignored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationProblem {
    /// A user other than root could change the organization's file.
    #[error(
        "the settings of the organization are ignored: {0}. Until this is fixed, policyd cannot be disabled or softened"
    )]
    Weak(#[from] Weakness),
    #[error("the settings in `{}` are ignored: {source}", path.display())]
    Unreadable { path: PathBuf, source: WorldError },
    #[error("the settings in `{}` are ignored: the file is not UTF-8 text", path.display())]
    NotText { path: PathBuf },
    /// The rest of the file counts.
    #[error("{}: {}; this entry is ignored", .0.span.place(), .0.message)]
    Invalid(Box<Diagnostic>),
    #[error("{0}; this entry is ignored")]
    Alert(#[from] AlertSettingProblem),
}

/// What the organization decides for all users and projects of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pins {
    /// Mode of all rules of users and projects. `None`: they choose it.
    pub mode: Option<EnforcementMode>,
    /// Whether they can disable or pause policyd.
    pub allow_disable: bool,
    /// Whether the user can let a rule or a call pass.
    pub allow_exceptions: bool,
    /// Whether tool calls are blocked while the organization's pack cannot be used.
    pub blocks_without_pack: bool,
    /// Content hashes of their packs. `None`: each trusted pack is used.
    pub allowed_packs: Option<Vec<String>>,
    /// Whether not all of the file can be used, so that it counts as forbidding what it may forbid.
    pub is_assumed: bool,
}

impl Default for Pins {
    fn default() -> Self {
        Self {
            mode: None,
            allow_disable: true,
            allow_exceptions: true,
            blocks_without_pack: false,
            allowed_packs: None,
            is_assumed: false,
        }
    }
}

impl Pins {
    /// What counts of a file that cannot be read: it may forbid what a file can forbid.
    fn of_unreadable_file() -> Self {
        Self { allow_disable: false, allow_exceptions: false, is_assumed: true, ..Self::default() }
    }

    /// Reads the keys of a file. Where it does not state a key, `usual` counts.
    fn from_node(node: &Node, usual: &Self) -> Self {
        let mut pins = usual.clone();
        ORGANIZATION.fill_untyped(&mut pins, &LayeredMap::from_iter([node]));
        let hash = |it: &Node| it.text().filter(|it| is_hash(it)).map(str::to_ascii_lowercase);
        let packs = allowed_packs(node);
        pins.allowed_packs = packs.map(|it| it.one_or_items().iter().filter_map(hash).collect());
        pins
    }

    /// Returns whether a pack with this content hash may be used.
    #[must_use]
    pub fn allows_pack(&self, hash: &str) -> bool {
        self.allowed_packs.as_ref().is_none_or(|all| all.iter().any(|it| it == hash))
    }

    /// Uses a policy although its manifest disables it, if the organization does not allow to disable policyd.
    pub fn apply(&self, policy: &mut Policy) {
        policy.settings.enabled |= !self.allow_disable;
    }

    /// Describes what is decided, one line each.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mode = self.mode.map(|it| match it {
            EnforcementMode::Enforce => {
                "mode: enforce: no user and no project can let rules observe".to_owned()
            }
            EnforcementMode::Observe => {
                "mode: observe: rules of users and projects do not block".to_owned()
            }
        });
        let disable = (!self.allow_disable)
            .then(|| "allow_disable: false: policyd cannot be disabled or paused".to_owned());
        let exceptions = (!self.allow_exceptions)
            .then(|| "allow_exceptions: false: `policyd allow` has no effect".to_owned());
        let errors = self.blocks_without_pack.then(|| {
            "on_error: block: no tool call runs while the organization's pack cannot be used"
                .to_owned()
        });
        let packs = self.allowed_packs.as_ref().map(|it| match it.len() {
            0 => "trust.allowed_packs: no pack of a user or project is used".to_owned(),
            1 => "trust.allowed_packs: one pack of users and projects is allowed".to_owned(),
            count => {
                format!("trust.allowed_packs: {count} packs of users and projects are allowed")
            }
        });
        let assumed = self
            .is_assumed
            .then(|| "not all of the file can be used: what it may forbid is forbidden".to_owned());
        let keys = mode.into_iter().chain(disable).chain(exceptions).chain(errors).chain(packs);
        assumed.into_iter().chain(keys).collect()
    }
}

/// The files of the organization and of the user, each read at most once, so that one event is evaluated under one
/// configuration.
#[derive(Debug, Default)]
pub struct Configurations {
    /// The file of the organization.
    pub organization: Configuration,
    user: OnceCell<Configuration>,
}

impl Configurations {
    /// Loads the file of the organization.
    #[must_use]
    pub fn load(world: &dyn World) -> Self {
        let organization = Configuration::load(world, ConfigurationOwner::Organization);
        Self { organization, user: OnceCell::new() }
    }

    /// Returns the file of the user. It is loaded at the first call.
    pub fn user(&self, world: &dyn World) -> &Configuration {
        self.user.get_or_init(|| Configuration::load(world, ConfigurationOwner::User))
    }

    /// Returns which permission prompts policyd answers in a project. A file in the project does not count as the user's,
    /// because a repository can set the variable that names its directory.
    pub fn approvals(&self, world: &dyn World, project: &Path) -> ApprovalLevel {
        let is_named = world.env(UserDirectory::Configuration.variable()).is_some();
        let path = ConfigurationOwner::User.path(world).filter(|_| is_named);
        let is_foreign = path.is_some_and(|it| it.starts_with(project));
        let user = (!is_foreign).then(|| self.user(world).approvals).flatten();
        ApprovalLevel::chosen(self.organization.approvals, user)
    }

    /// Returns the shared store of the organization, else that of the user, valid or not.
    pub fn shared_store(&self, world: &dyn World) -> Option<&SharedStoreSettings> {
        self.organization.store.as_ref().or_else(|| self.user(world).store.as_ref())
    }
}

/// The content of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Decisions of the organization; those of a user's file do not count.
    pub pins: Pins,
    /// Which permission prompts policyd answers. `None`: the file does not say it. If it might say something that cannot be
    /// read, policyd answers none.
    pub approvals: Option<ApprovalLevel>,
    /// Server that several hosts share.
    pub store: Option<SharedStoreSettings>,
    /// Rules about remote packs.
    pub packs: PackRules,
    /// Channels of alerts, and scheduled reports.
    pub alerts: AlertSettings,
    /// Whether something that is ignored could be a rule about remote packs.
    pub hides_pack_rules: bool,
    /// What is ignored.
    pub problems: Vec<ConfigurationProblem>,
}

impl Configuration {
    /// Loads a file. Without it, nothing is set.
    #[must_use]
    pub fn load(world: &dyn World, owner: ConfigurationOwner) -> Self {
        let Some(path) = owner.path(world) else { return Self::default() };
        match read(world, owner, &path) {
            Ok(None) => Self::default(),
            Ok(Some(source)) => Self::parse(&Arc::new(source), owner),
            Err(problem) => Self {
                // A file that a user could change is not the organization's. It can still forbid something.
                hides_pack_rules: !matches!(problem, ConfigurationProblem::Weak(_)),
                approvals: Some(ApprovalLevel::None),
                pins: match owner {
                    ConfigurationOwner::Organization => Pins::of_unreadable_file(),
                    ConfigurationOwner::User => Pins::default(),
                },
                problems: vec![problem],
                ..Self::default()
            },
        }
    }

    fn parse(source: &Arc<Source>, owner: ConfigurationOwner) -> Self {
        let (node, mut findings) = yaml::parse(source);
        let is_damaged = !findings.is_empty();
        if let Some(node) = &node {
            check::check(node, &Kind::Record(owner.keys()), &mut findings);
        }
        let node = node.or_else(|| before_error(source, findings.first()?));
        let node = node.unwrap_or_else(|| Node::nothing(source));
        findings.extend(invalid_hashes(&node));
        let packs = node.get("packs");
        let in_packs = |it: &Diagnostic| {
            packs.is_some_and(|packs| (packs.span.start..=packs.span.end).contains(&it.span.start))
        };
        let hides_pack_rules = is_damaged || findings.iter().any(in_packs);
        let packs = packs.map(PackRules::from_node).unwrap_or_default();
        let pins = match owner {
            ConfigurationOwner::Organization if is_damaged => {
                Pins::from_node(&node, &Pins::of_unreadable_file())
            }
            ConfigurationOwner::Organization => Pins::from_node(&node, &Pins::default()),
            ConfigurationOwner::User => Pins::default(),
        };
        let (alerts, ignored) = AlertSettings::from_node(&node);
        let invalid = findings.into_iter().map(|it| ConfigurationProblem::Invalid(Box::new(it)));
        let problems = invalid.chain(ignored.into_iter().map(Into::into)).collect();
        let store = node.get("store").and_then(SharedStoreSettings::from_node);
        let level = |it: &Node| ApprovalLevel::from_node(it).unwrap_or_default();
        let approvals = match node.get("approvals") {
            Some(said) => Some(level(said)),
            None => is_damaged.then_some(ApprovalLevel::None),
        };
        Self { pins, approvals, store, packs, alerts, hides_pack_rules, problems }
    }
}

/// Reads the text of a file. `None` if it does not exist.
fn read(
    world: &dyn World,
    owner: ConfigurationOwner,
    path: &Path,
) -> Result<Option<Source>, ConfigurationProblem> {
    let path = path.to_path_buf();
    let bytes = match world.read(&path, POLICY_FILE_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(WorldError::NotFound) => return Ok(None),
        Err(source) => return Err(ConfigurationProblem::Unreadable { path, source }),
    };
    if owner == ConfigurationOwner::Organization
        && let Some(weakness) = administrator::weakness_on_way(world, &path)
    {
        return Err(weakness.into());
    }
    let name = path.display().to_string();
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(Source { name, text })),
        Err(_) => Err(ConfigurationProblem::NotText { path }),
    }
}

/// Returns what the lines before the first error contain.
fn before_error(source: &Arc<Source>, error: &Diagnostic) -> Option<Node> {
    let start = source.text.get(..error.span.start)?.rfind('\n')?;
    let text = source.text.get(..=start)?.to_owned();
    yaml::parse(&Arc::new(Source { name: source.name.clone(), text })).0
}

/// The list of packs. A key without a value is an empty list.
fn allowed_packs(node: &Node) -> Option<&Node> {
    let entries = node.get("trust")?.entries()?;
    entries.iter().find(|(key, _)| key.says("allowed_packs")).map(|(_, value)| value)
}

/// Whether a text can be the content hash of a pack.
fn is_hash(text: &str) -> bool {
    text.len() == HASH_DIGITS && text.bytes().all(|it| it.is_ascii_hexdigit())
}

/// Texts that cannot be content hashes.
fn invalid_hashes(node: &Node) -> Vec<Diagnostic> {
    let packs = allowed_packs(node);
    let all = packs.into_iter().flat_map(Node::one_or_items);
    let invalid = all.filter(|it| !it.text().is_some_and(is_hash));
    let message = "a content hash has 64 hexadecimal digits; `policyd trust --hash` prints it";
    invalid.map(|it| Diagnostic::error("invalid-hash", it.span.clone(), message)).collect()
}
