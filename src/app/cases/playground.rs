//! Evaluates rules that are not in a file for a situation that is not in a file. Everything happens in memory on the
//! simulated machine of cases. It runs no command, and reads and writes no file.

use std::sync::Arc;

use super::suite::Suite;
use super::{CaseRequest, Runner};
use policyd_cases::names::NameTable;
use policyd_cases::read;
use policyd_lint::{self as lint, Profile, Subject};
use policyd_policy::load::Pack;
use policyd_policy::review::{Base, ReviewedPolicy};
use policyd_policy::{builtin, load};
use policyd_report::diagnostics::{self, Style};
use policyd_world::World;
use policyd_yaml::time::Timestamp;
use policyd_yaml::{Diagnostic, Source};

/// Name of the pack in messages.
const PACK: &str = "playground";
/// Name of the situation in messages.
const SITUATION: &str = "situation.yaml";

/// Rules and a situation, as a user writes them.
pub struct Playground<'a> {
    /// Text of `guards.yaml`.
    pub guards: &'a str,
    /// Text of `considerations.yaml`.
    pub checks: &'a str,
    /// A case without `name` and `expect`.
    pub situation: &'a str,
}

/// What comes of a situation.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PlaygroundResult {
    /// Findings of lint, with their places. Empty if lint finds nothing.
    pub findings: String,
    /// The report of each step. Empty if the rules or the situation are invalid.
    pub reports: Vec<String>,
}

impl Playground<'_> {
    fn pack(&self) -> Pack {
        let file = |name: &str, text: &str| {
            let text = text.replace("\r\n", "\n");
            let source = Source { name: format!("{PACK}/{name}"), text };
            (name.to_owned(), Arc::new(source))
        };
        let files = [("guards.yaml", self.guards), ("considerations.yaml", self.checks)];
        let files = files.into_iter().filter(|(_, text)| !text.trim().is_empty());
        let manifest = ("policyd.yaml", "version: 1\n");
        let files = std::iter::once(manifest).chain(files).map(|(name, text)| file(name, text));
        Pack { name: PACK.to_owned(), files: files.collect(), ..Pack::default() }
    }

    /// Returns the situation as a case file. Its lines keep their numbers.
    fn case(&self) -> Arc<Source> {
        let text = self.situation.replace("\r\n", "\n");
        let lines = text.trim_end().lines().enumerate();
        let lines =
            lines.map(|(at, line)| format!("{}{line}\n", if at == 0 { "- " } else { "  " }));
        let end = "  name: situation\n  expect: snapshot\n";
        let text = lines.collect::<String>() + end;
        let text = if text.starts_with("- ") { text } else { format!("- {}", end.trim_start()) };
        Arc::new(Source { name: SITUATION.to_owned(), text })
    }

    /// Checks the rules, and evaluates them for the situation.
    pub fn run(&self, world: &dyn World) -> PlaygroundResult {
        let (pack, builtin) = (self.pack(), builtin::pack());
        let mut findings = self.findings(&pack, world.now());
        let mut result = PlaygroundResult::default();
        if let Some(mut policy) = load::load(&pack, &builtin).policy {
            policy.settings.mode = None;
            let (cases, of_cases) = read::read(&self.case(), &NameTable::of(&policy));
            findings.extend(of_cases);
            let suite = Suite { pack, folder: None, files: Vec::new(), whole: false };
            let request =
                CaseRequest { filter: None, update: None, coverage: false, threshold: None };
            let mut runner = Runner::new(world, &suite, &request, policy);
            for case in &cases {
                result.reports.extend(runner.reports(case));
            }
        }
        result.findings = diagnostics::render_text(&findings, Style { color: false });
        result
    }

    fn findings(&self, pack: &Pack, now: Timestamp) -> Vec<Diagnostic> {
        let base = Base::new(&builtin::pack());
        let reviewed = ReviewedPolicy::new(pack, &base);
        lint::review(&Subject::new(pack, &reviewed, now), Profile::Default, true).findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_world::fake::FakeWorld;

    const GUARD: &str = "\
- id: no_force
  commands: [git]
  when: program.has([\"--force\"])
  decision: block
  message: Do not force-push.
";

    fn run(guards: &str, situation: &str) -> PlaygroundResult {
        Playground { guards, checks: "", situation }.run(&FakeWorld::new())
    }

    #[test]
    fn rules_are_evaluated_for_a_situation() {
        let found = run(GUARD, "on: {event: pre_tool_use, command: git push --force}\r\n");
        assert_eq!((found.findings.as_str(), found.reports.len()), ("", 1), "{found:?}");
        assert!(found.reports[0].contains("Do not force-push."), "{}", found.reports[0]);
        let found = run(GUARD, "on: {event: pre_tool_use, command: git push}");
        assert!(!found.reports[0].contains("Do not force-push."), "{}", found.reports[0]);
    }

    #[test]
    fn mistakes_are_shown_at_their_places() {
        let broken = run(&GUARD.replace("program.has", "program.hass"), "on: stop");
        assert!(broken.findings.contains("playground/guards.yaml:3:"), "{}", broken.findings);
        assert!(broken.reports.is_empty(), "{broken:?}");
        let broken = run(GUARD, "transcript:\n  - user: x\nonn: stop");
        assert!(broken.findings.contains("situation.yaml:3:3"), "{}", broken.findings);
        assert!(run(GUARD, "").findings.is_empty(), "a stop after nothing");
    }
}
