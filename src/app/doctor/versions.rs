//! Versions of the clients that call policyd. An older client ignores a hook line that it does not support, so policyd
//! evaluates nothing there.

use std::path::PathBuf;
use std::time::Duration;

use super::check::{CheckHealth, DoctorCheck};
use crate::install::places::SettingsPlace;
use crate::workspace::project;
use policyd_probe::outside_of;
use policyd_world::{ExternalCommand, World, WorldError};

const ABOUT: &str = "version";
/// Time that a client may take to say its version; some of them start a whole runtime for it.
const DEADLINE: Duration = Duration::from_secs(5);

/// Asks each client for its version.
pub(super) fn inspect_versions(
    world: &dyn World,
    places: &[&'static SettingsPlace],
) -> Vec<DoctorCheck> {
    places.iter().map(|it| version(world, it)).collect()
}

fn version(world: &dyn World, place: &'static SettingsPlace) -> DoctorCheck {
    let (title, program) = (place.harness.title, place.program);
    let command = ExternalCommand {
        argv: vec![program.to_owned(), "--version".to_owned()],
        folder: PathBuf::from("."),
        deadline: DEADLINE,
        output_max: 4096,
        not_from: Some(outside_of(world, &[&project::find(world, None).root])),
        ..ExternalCommand::default()
    };
    let said = match world.run(&command) {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Err(WorldError::NotFound) => {
            let text =
                format!("{title}: `{program}` is not on the PATH, so its version is not known");
            return DoctorCheck::new(ABOUT, CheckHealth::Look, text);
        }
        Err(error) => {
            let text = format!("{title}: `{program} --version`: {error}");
            return DoctorCheck::new(ABOUT, CheckHealth::Look, text);
        }
    };
    let Some(own) = said.split_whitespace().find_map(parts) else {
        let text = format!("{title}: `{program} --version` prints no version");
        return DoctorCheck::new(ABOUT, CheckHealth::Look, text);
    };
    let [major, minor, patch] = own;
    let own_text = format!("{title} {major}.{minor}.{patch}");
    match place.since {
        Some((since, why)) if parts(since).is_some_and(|since| own < since) => {
            let text = format!("{own_text} is older than {since}, the first that {why}: update it");
            DoctorCheck::new(ABOUT, CheckHealth::Bad, text)
        }
        Some(_) | None => DoctorCheck::good(ABOUT, own_text),
    }
}

/// The numbers of a version such as `v2.1.139`; nothing for another word.
fn parts(word: &str) -> Option<[u32; 3]> {
    let word = word.trim_start_matches('v').split(['-', '+', ',', ')']).next()?;
    let mut numbers = word.split('.').map(|it| it.parse().ok());
    let found = [numbers.next()??, numbers.next()??, numbers.next()??];
    numbers.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_world::CommandOutput;
    use policyd_world::fake::FakeWorld;

    fn told(said: &str) -> (CheckHealth, String) {
        let world = FakeWorld::new();
        let output = CommandOutput {
            code: Some(0),
            stdout: said.as_bytes().to_vec(),
            stderr: Vec::new(),
            truncated: false,
        };
        world.script(&["claude", "--version"], Ok(output), Duration::ZERO);
        let check = version(&world, SettingsPlace::of("claude-code").unwrap());
        (check.health, check.text)
    }

    #[test]
    fn a_version_that_does_not_read_the_hook_line_fails() {
        assert_eq!(told("2.1.270 (Claude Code)\n").0, CheckHealth::Good);
        let (health, text) = told("2.1.138 (Claude Code)\n");
        assert_eq!(health, CheckHealth::Bad);
        assert!(text.contains("older than 2.1.139"), "{text}");
        assert_eq!(told("").0, CheckHealth::Look);
        let absent = version(&FakeWorld::new(), SettingsPlace::of("codex").unwrap());
        assert!(absent.text.contains("not on the PATH"), "{}", absent.text);
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(parts("v0.116.0"), Some([0, 116, 0]));
        assert_eq!(parts("1.2.3-beta.1"), Some([1, 2, 3]));
        assert!(parts("2.1.9") < parts("2.1.139"));
        for other in ["codex-cli", "2.1", "2.1.3.4", ""] {
            assert_eq!(parts(other), None, "{other}");
        }
    }
}
