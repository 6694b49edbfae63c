//! Runs external commands whose answers are facts, all of them under one deadline.
//! Lives here: running and reading. Which probes are needed, `judge::plan` says.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::limits;
use crate::policy::{Parse, Probe};
use crate::script::context::Reading;
use crate::script::reply;
use crate::world::{Command, CommandOutput, World, WorldError};

/// Variables that probes run with: no pager, no prompt, no colour, no update notice in the output;
/// and an agent that is asked to judge is not itself held at its stop, which would ask another one.
const ENVIRONMENT: [(&str, &str); 5] = [
    ("GH_PAGER", "cat"),
    ("GH_PROMPT_DISABLED", "1"),
    ("GH_NO_UPDATE_NOTIFIER", "1"),
    ("NO_COLOR", "1"),
    ("POLICYD_DISABLED", "1"),
];

/// A probe that is to be run, and what it is told.
#[derive(Debug)]
pub struct Question<'p> {
    /// The probe.
    pub probe: &'p Probe,
    /// Its standard input.
    pub stdin: String,
}

/// Runs probes in order, in `folder`, until `deadline` is used up.
#[must_use]
pub fn gather(
    world: &dyn World,
    questions: &[Question<'_>],
    folder: &Path,
    deadline: Duration,
) -> BTreeMap<String, Reading> {
    let began = world.elapsed();
    let mut readings = BTreeMap::new();
    for question in questions {
        let id = &question.probe.id;
        let left = deadline.saturating_sub(world.elapsed().saturating_sub(began));
        let reading = if left.is_zero() {
            Reading::Failed(format!("probe `{id}` was not run: the time for probes was used up"))
        } else {
            run(world, question, folder, left.min(question.probe.timeout))
        };
        readings.insert(id.clone(), reading);
    }
    readings
}

fn run(world: &dyn World, question: &Question<'_>, folder: &Path, deadline: Duration) -> Reading {
    let probe = question.probe;
    let command = Command {
        argv: probe.command.clone(),
        folder: folder.to_owned(),
        stdin: question.stdin.clone().into_bytes(),
        env: ENVIRONMENT.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        deadline,
        output_max: limits::PROBE_OUTPUT_MAX,
    };
    match world.run(&command) {
        Ok(output) => read(probe, &output),
        Err(WorldError::Missing) if !probe.missing.is_empty() => {
            Reading::Failed(probe.missing.clone())
        }
        Err(WorldError::TimedOut) => {
            let limit = crate::time::duration_text(deadline);
            Reading::Failed(format!("`{}` did not answer within {limit}", probe.command.join(" ")))
        }
        Err(error) => {
            let program = probe.command.first().cloned().unwrap_or_default();
            Reading::Failed(format!("`{program}` could not be run: {error}"))
        }
    }
}

fn read(probe: &Probe, output: &CommandOutput) -> Reading {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let code = output.code.unwrap_or(-1);
    if code != 0 {
        let cure =
            probe.cures.iter().find(|(key, _)| stderr.to_lowercase().contains(&key.to_lowercase()));
        let first = stderr.lines().find(|it| !it.trim().is_empty()).unwrap_or("no error output");
        let plain = || {
            let command = probe.command.join(" ");
            format!("`{command}` exited with {code}: {}", first.trim())
        };
        return Reading::Failed(cure.map_or_else(plain, |(_, cure)| cure.clone()));
    }
    let stdout = String::from_utf8_lossy(&output.stdout);
    match probe.parse {
        Parse::Text => Reading::Answer { code, value: Value::String(stdout.trim_end().to_owned()) },
        Parse::Reply => Reading::Answer { code, value: reply::content(&stdout) },
        Parse::Json if output.truncated => {
            Reading::Failed(format!("its output is longer than {} bytes", limits::PROBE_OUTPUT_MAX))
        }
        Parse::Json => match serde_json::from_str(&stdout) {
            Ok(value) => Reading::Answer { code, value },
            Err(error) => Reading::Failed(format!(
                "`{}` did not answer with JSON: {error}",
                probe.command.join(" ")
            )),
        },
    }
}
