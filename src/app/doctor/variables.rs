//! Environment variables with the prefix of policyd. A misspelled variable has no effect, and only this check reports
//! it.

use std::path::Path;

use super::check::{CheckHealth, DoctorCheck};
use policyd_base::programs::{FRONT_RELEASE, TOOLS_BESIDE};
use policyd_world::World;
use policyd_yaml::suggest;

const ABOUT: &str = "environment";

/// What the names of all of them begin with.
const PREFIX: &str = "POLICYD_";

/// Variables that set no option, as `src/docs/reference/environment.md` lists them.
pub const OWN_VARIABLES: [&str; 13] = [
    "POLICYD_POLICIES",
    "POLICYD_STATE_DIR",
    "POLICYD_MAX_RETRIES",
    "POLICYD_NO_FSYNC",
    "POLICYD_DEBUG",
    "POLICYD_SESSION_TYPE",
    "POLICYD_RUN",
    "POLICYD_DISABLED",
    "POLICYD_NO_CACHE",
    "POLICYD_PRIVATE",
    "POLICYD_STORE",
    FRONT_RELEASE,
    TOOLS_BESIDE,
];

/// Directories of the user, which are absolute.
const DIRECTORIES: [&str; 4] = ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"];

/// Holds those that are set against those that are read.
pub(super) fn scan_variables(world: &dyn World, options: &[String]) -> Vec<DoctorCheck> {
    let known: Vec<&str> =
        OWN_VARIABLES.into_iter().chain(options.iter().map(String::as_str)).collect();
    let mut set = world.variables();
    set.retain(|it| it.starts_with(PREFIX) && it != FRONT_RELEASE);
    set.sort_unstable();
    let (read, unread): (Vec<String>, _) =
        set.into_iter().partition(|it| known.contains(&it.as_str()));
    // The common prefix is cut, so that it does not make different names similar.
    let rests: Vec<&str> = known.iter().filter_map(|it| it.strip_prefix(PREFIX)).collect();
    let unread = unread.iter().map(|it| {
        let near = it.strip_prefix(PREFIX).and_then(|rest| suggest::nearest(rest, &rests));
        let cure = match near {
            Some(near) => format!("did you mean `{PREFIX}{near}`?"),
            None => "`policyd man COMMAND` names the variables of options".to_owned(),
        };
        DoctorCheck::new(
            ABOUT,
            CheckHealth::Look,
            format!("{it} is set, but policyd does not read it; {cure}"),
        )
    });
    let mut checks: Vec<DoctorCheck> = unread.collect();
    let relative = DIRECTORIES
        .iter()
        .filter(|it| world.env(it).is_some_and(|path| !Path::new(&path).has_root()));
    checks.extend(relative.map(|it| {
        let text = format!("{it} is a relative path and is ignored; write an absolute one");
        DoctorCheck::new(ABOUT, CheckHealth::Look, text)
    }));
    if !read.is_empty() {
        checks.push(DoctorCheck::good(ABOUT, format!("set: {}", read.join(", "))));
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_world::fake::FakeWorld;

    #[test]
    fn a_relative_directory_is_reported() {
        let world = FakeWorld::new();
        world.set_env("HOME", "/home/me");
        assert!(scan_variables(&world, &["POLICYD_LINT_FAIL_LEVEL".to_owned()]).is_empty());
        world.set_env("XDG_STATE_HOME", "state");
        let found = scan_variables(&world, &["POLICYD_LINT_FAIL_LEVEL".to_owned()]);
        assert_eq!(found.len(), 1);
        assert!(found[0].text.starts_with("XDG_STATE_HOME is a relative path"));
    }

    #[test]
    fn a_variable_that_nothing_reads_is_told_with_the_one_that_was_meant() {
        let world = FakeWorld::new();
        assert!(scan_variables(&world, &["POLICYD_LINT_FAIL_LEVEL".to_owned()]).is_empty());
        for name in ["POLICYD_DISABELD", "POLICYD_LINT_FAIL_LEVEL", "POLICYD_DEBUG", "EDITOR"] {
            world.set_env(name, "1");
        }
        let checks: Vec<_> = scan_variables(&world, &["POLICYD_LINT_FAIL_LEVEL".to_owned()])
            .into_iter()
            .map(|it| (it.health, it.text))
            .collect();
        let [(first, told), (other, set)] = checks.as_slice() else { panic!("{checks:?}") };
        assert_eq!((first, other), (&CheckHealth::Look, &CheckHealth::Good));
        assert!(told.contains("POLICYD_DISABELD") && told.contains("`POLICYD_DISABLED`"), "{told}");
        assert_eq!(set, "set: POLICYD_DEBUG, POLICYD_LINT_FAIL_LEVEL");
    }
}
