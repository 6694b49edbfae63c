//! Runs external commands whose results are facts.
//!
//! Contains: running a command and parsing its output. Does not contain: the selection of probes
//! (`evaluation::plan`), their breakers and their deadline.
//!
//! ```
//! use std::path::Path;
//!
//! use policyd_probe::outside_of;
//! use policyd_world::fake::FakeWorld;
//!
//! // A program that lies in the project is not run by its name.
//! let world = FakeWorld::new();
//! assert!(outside_of(&world, &[Path::new("/work")]).contains(&"/work".into()));
//! ```

pub mod git;
pub mod git_fetch;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use policyd_base::limits;
use policyd_fact_table::context::ProbeResult;
use policyd_fact_table::reply;
use policyd_policy::{Parse, Probe};
use policyd_world::{CommandOutput, ExternalCommand, World, WorldError};

/// Environment of probes: no pager, prompt, color or update notice. An LLM judge must not be
/// stopped by its own stop hook, which would start another judge.
const ENVIRONMENT: [(&str, &str); 5] = [
    ("GH_PAGER", "cat"),
    ("GH_PROMPT_DISABLED", "1"),
    ("GH_NO_UPDATE_NOTIFIER", "1"),
    ("NO_COLOR", "1"),
    ("POLICYD_DISABLED", "1"),
];

/// Variables that probes do not inherit. With them, a `claude` that is started as a judge detects a
/// nested session and refuses to run.
const NOT_INHERITED: [&str; 2] = ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"];

/// Programs that start others by name. PATH of these programs is reduced, too.
const STARTERS: [&str; 4] = ["git", "gh", "glab", "tea"];

/// Returns the directories whose programs are not run by name: those of the project, and the
/// working directory. A directory that contains the user's home does not count.
#[must_use]
pub fn outside_of(world: &dyn World, folders: &[&Path]) -> Vec<PathBuf> {
    let home = world.env("HOME").map(PathBuf::from);
    let working = world.working_folder();
    let all = folders.iter().copied().chain([working.as_path()]).filter(|it| it.is_absolute());
    let own = |it: &&Path| home.as_ref().is_none_or(|home| !home.starts_with(it));
    all.filter(own).map(Path::to_path_buf).collect()
}

/// A probe to run, with its input.
#[derive(Debug)]
pub struct Question<'p> {
    pub probe: &'p Probe,
    /// Standard input.
    pub stdin: String,
}

/// Result of a probe run.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeRun {
    /// Value for expressions.
    pub reading: ProbeResult,
    /// Result for the circuit breaker.
    pub health: ProgramHealth,
}

/// Whether a program works, as one call of it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramHealth {
    /// It answered, or reported a missing login or pull request.
    Works,
    /// It failed and might work later: it was too slow, or failed for an unknown reason.
    Fails,
    /// Unknown: it could not be started, or had less than its time limit.
    Unknown,
}

/// Runs a probe in a directory of a project. `deadline` is its time limit.
#[must_use]
pub fn ask(
    world: &dyn World,
    question: &Question<'_>,
    folder: &Path,
    project: &Path,
    deadline: Duration,
) -> ProbeRun {
    let probe = question.probe;
    let command = ExternalCommand {
        argv: probe.command.clone(),
        folder: folder.to_owned(),
        stdin: question.stdin.clone().into_bytes(),
        env: ENVIRONMENT.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        env_removed: NOT_INHERITED.map(str::to_owned).to_vec(),
        deadline,
        output_max: limits::PROBE_OUTPUT_MAX,
        not_from: Some(outside_of(world, &[folder, project])),
        path_reduced: probe.command.first().is_some_and(|it| STARTERS.contains(&it.as_str())),
    };
    let failed =
        |health: ProgramHealth, why: String| ProbeRun { reading: ProbeResult::Failed(why), health };
    match world.run(&command) {
        Ok(output) => read(probe, &output),
        Err(WorldError::NotFound) if !probe.missing.is_empty() => {
            failed(ProgramHealth::Unknown, probe.missing.clone())
        }
        Err(WorldError::TimedOut) => {
            let limit = policyd_yaml::time::duration_text(deadline);
            let why = format!("`{}` did not answer within {limit}", probe.command.join(" "));
            failed(
                if deadline < probe.timeout {
                    ProgramHealth::Unknown
                } else {
                    ProgramHealth::Fails
                },
                why,
            )
        }
        Err(error) => {
            let program = probe.command.first().cloned().unwrap_or_default();
            failed(ProgramHealth::Unknown, format!("`{program}` could not be run: {error}"))
        }
    }
}

fn read(probe: &Probe, output: &CommandOutput) -> ProbeRun {
    let failed =
        |health: ProgramHealth, why: String| ProbeRun { reading: ProbeResult::Failed(why), health };
    let answer = |code: i32, value: Value| ProbeRun {
        reading: ProbeResult::Answer { code, value },
        health: ProgramHealth::Works,
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    let code = output.code.unwrap_or(-1);
    if code != 0 && !probe.answers.contains(&code) {
        let cure =
            probe.cures.iter().find(|(key, _)| stderr.to_lowercase().contains(&key.to_lowercase()));
        let stdout = String::from_utf8_lossy(&output.stdout);
        let mut said = stderr.lines().chain(stdout.lines());
        let first = said.find(|it| !it.trim().is_empty()).unwrap_or("no output");
        let first: String = first.chars().take(limits::EVIDENCE_CHARS_MAX).collect();
        return match cure {
            // A program that reports what is missing works.
            Some((_, cure)) => failed(ProgramHealth::Works, cure.clone()),
            None => {
                let command = probe.command.join(" ");
                failed(
                    ProgramHealth::Fails,
                    format!("`{command}` exited with {code}: {}", first.trim()),
                )
            }
        };
    }
    let stdout = String::from_utf8_lossy(&output.stdout);
    match probe.parse {
        Parse::Text => answer(code, Value::String(stdout.trim_end().to_owned())),
        Parse::Json | Parse::Reply if output.truncated => {
            let most = limits::PROBE_OUTPUT_MAX;
            failed(ProgramHealth::Fails, format!("its output is longer than {most} bytes"))
        }
        Parse::Json | Parse::Reply if code != 0 && stdout.trim().is_empty() => {
            answer(code, Value::Null)
        }
        Parse::Reply => match reply::content(&stdout) {
            Ok(value) => answer(code, value),
            Err(why) => {
                failed(ProgramHealth::Fails, format!("`{}`: {why}", probe.command.join(" ")))
            }
        },
        Parse::Json => match serde_json::from_str(&stdout) {
            Ok(value) => answer(code, value),
            Err(error) => {
                let command = probe.command.join(" ");
                failed(
                    ProgramHealth::Fails,
                    format!("`{command}` did not answer with JSON: {error}"),
                )
            }
        },
    }
}
