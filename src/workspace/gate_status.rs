//! Whether policyd is off in a project, and who says so. Only the user can turn it off: by a variable,
//! by `policyd pause` and `policyd disable`, by a switch file if they chose to honor those, or by a
//! trusted pack. Whatever else looks like a switch is ignored and reported.

use std::path::PathBuf;

use super::amplihack::{self, PowerSteeringConfig};
use super::project::{self, AMPLIHACK_FOLDER, Project, STATE_DIR_NAME};
use policyd_base::id::SessionId;
use policyd_record::decision_log::NoOpinionKind;
use policyd_store::allowance::Allowance;
use policyd_store::choice_files::ChoiceFiles;
use policyd_store::configuration::{Configuration, ConfigurationOwner, Pins};
use policyd_store::enforcement::EnforcementChoice;
use policyd_store::pause::Pause;
use policyd_store::user_choices::{DisabledProject, UserChoices};
use policyd_world::World;
use policyd_yaml::time::Timestamp;

/// Name of a switch file.
const SWITCH_FILE: &str = ".disabled";

/// Why policyd is off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OffReason {
    /// A variable of the environment is set.
    Variable(&'static str),
    /// The user disabled it in this project.
    Disabled(DisabledProject),
    /// A switch file that the user honors exists.
    SwitchFile(PathBuf),
    /// amplihack's configuration, which the user honors, says so.
    PowerSteering(PathBuf),
    /// The manifest of the pack says so.
    Manifest,
    /// The user paused it.
    Paused(Pause),
}

impl OffReason {
    /// Returns the kind that the decision log stores.
    pub const fn kind(&self) -> NoOpinionKind {
        match self {
            Self::Paused(_) => NoOpinionKind::Paused,
            Self::Variable(_)
            | Self::Disabled(_)
            | Self::SwitchFile(_)
            | Self::PowerSteering(_)
            | Self::Manifest => NoOpinionKind::Disabled,
        }
    }

    /// What is off, why, and how to turn it on again.
    pub fn text(&self, now: Timestamp) -> String {
        match self {
            Self::Variable(name) => format!("disabled: the variable {name} is set"),
            Self::Disabled(DisabledProject { since, reason }) => {
                let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
                format!("disabled in this project since {since}{why}; `policyd enable` ends it")
            }
            Self::SwitchFile(path) => format!("disabled: `{}` exists", path.display()),
            Self::PowerSteering(path) => {
                format!("disabled: `{}` contains `enabled: false`", path.display())
            }
            Self::Manifest => "disabled: the manifest contains `enabled: false`".to_owned(),
            Self::Paused(pause) => pause.text(now),
        }
    }
}

/// Whether policyd is on, and what else the user must know about that.
#[derive(Debug, Default)]
pub struct GateStatus {
    /// Why it is off; nothing if it is on.
    pub off: Option<OffReason>,
    /// amplihack's configuration, if the user honors it.
    pub config: Option<PowerSteeringConfig>,
    /// Pauses that apply now, in the project or in a session of it.
    pub pauses: Vec<Pause>,
    /// Whether the user lets rules act.
    pub enforcement: EnforcementChoice,
    /// Rules and calls that the user lets pass now. `None` if the organization does not allow that.
    pub allowances: Option<Vec<Allowance>>,
    /// What the organization decides.
    pub pins: Pins,
    /// What is ignored or could not be used, each in one sentence with the fix.
    pub problems: Vec<String>,
}

impl GateStatus {
    /// Reads everything that could turn policyd off for a session, or for every session.
    pub fn read(
        world: &dyn World,
        project: &Project,
        session: Option<&SessionId>,
        now: Timestamp,
    ) -> Self {
        let organization = Configuration::load(world, ConfigurationOwner::Organization);
        let files = ChoiceFiles::read(world, &project.state);
        Self::by_files(world, project, &organization, &files, session, now)
    }

    /// Reads the same, by settings of the organization and files with the user's choices that were read already.
    pub fn by_files(
        world: &dyn World,
        project: &Project,
        organization: &Configuration,
        files: &ChoiceFiles,
        session: Option<&SessionId>,
        now: Timestamp,
    ) -> Self {
        let pins = organization.pins.clone();
        let problems = organization.problems.iter().map(ToString::to_string).collect();
        let mut status = Self { pins, problems, ..Self::default() };
        if let Some(problem) = &project.state_problem {
            let state = project.state.display();
            status.problems.push(format!("{problem}. State is kept in `{state}`"));
        }
        let choices = files.choices().unwrap_or_else(|error| {
            status.problems.push(error.note());
            UserChoices::default()
        });
        match (status.pins.mode, files.enforcement()) {
            (Some(mode), _) => status.enforcement = EnforcementChoice::pinned(mode),
            (None, Ok(choice)) => status.enforcement = choice,
            (None, Err(problem)) => status.problems.push(problem.note()),
        }
        status.allowances = status
            .pins
            .allow_exceptions
            .then(|| choices.allowances.iter().filter(|it| it.holds(now)).cloned().collect());
        status.read_switches(world, project, &choices, session, now);
        if !status.pins.allow_disable {
            status.keep_on(now);
        }
        status
    }

    /// Reads what turns policyd off, and what looks as if it did.
    fn read_switches(
        &mut self,
        world: &dyn World,
        project: &Project,
        choices: &UserChoices,
        session: Option<&SessionId>,
        now: Timestamp,
    ) {
        let file = switch_file(world, project);
        if let Some(path) = file.as_ref().filter(|_| !choices.switch_files) {
            self.problems.push(ignored(&format!("the switch file `{}`", path.display())));
        }
        self.read_config(world, project, choices.switch_files);
        self.pauses = choices.pauses.iter().filter(|it| it.holds(now)).cloned().collect();
        self.off = variable(world)
            .or_else(|| choices.disabled.clone().map(OffReason::Disabled))
            .or_else(|| file.filter(|_| choices.switch_files).map(OffReason::SwitchFile))
            .or_else(|| {
                let config = self.config.as_ref().filter(|it| it.off)?;
                Some(OffReason::PowerSteering(config.path.clone()))
            })
            .or_else(|| {
                let id = session?;
                choices.pause_of(id, now).cloned().map(OffReason::Paused)
            });
    }

    /// Ignores everything that turns policyd off, because the organization does not allow it.
    fn keep_on(&mut self, now: Timestamp) {
        let config = self.config.take().filter(PowerSteeringConfig::disables_something);
        let config = config.map(|it| format!("`{}` disables checks", it.path.display()));
        let pauses = std::mem::take(&mut self.pauses);
        let off = self.off.take().or_else(|| pauses.into_iter().next().map(OffReason::Paused));
        if let Some(ignored) = off.map(|it| it.text(now)).or(config) {
            self.problems.push(format!(
                "the organization does not allow that policyd is disabled; this is ignored: {ignored}"
            ));
        }
    }

    fn read_config(&mut self, world: &dyn World, project: &Project, is_honored: bool) {
        match amplihack::read_config(world, project) {
            Ok(config) if is_honored => self.config = config,
            Err(error) if is_honored => self.problems.push(error.to_string()),
            Ok(Some(config)) if config.disables_something() => {
                self.problems.push(ignored(&format!("`{}`", config.path.display())));
            }
            Ok(_) | Err(_) => {}
        }
    }
}

fn ignored(what: &str) -> String {
    format!(
        "{what} is ignored, because a repository can contain it; to disable policyd here, run \
         `policyd disable`, or `policyd trust --switch-files` to honor such files"
    )
}

/// A variable that turns policyd off.
fn variable(world: &dyn World) -> Option<OffReason> {
    if project::is_on(world, "POLICYD_DISABLED") {
        return Some(OffReason::Variable("POLICYD_DISABLED"));
    }
    // amplihack: any text disables, even `0`.
    let skip = "AMPLIHACK_SKIP_POWER_STEERING";
    world.env(skip).map(|_| OffReason::Variable(skip))
}

/// The first switch file of a project; a worktree has those of its main checkout, too.
fn switch_file(world: &dyn World, project: &Project) -> Option<PathBuf> {
    // Mostly these are one directory.
    let mut roots = vec![&project.folder, &project.root, &project.main];
    roots.dedup();
    let files = roots.iter().flat_map(|root| {
        ["", STATE_DIR_NAME, AMPLIHACK_FOLDER].map(|folder| root.join(folder).join(SWITCH_FILE))
    });
    files.into_iter().find(|it| world.stat(it).is_ok())
}
