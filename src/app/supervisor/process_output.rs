//! A turn's command is started and heard to its end: until it ends by itself, or has to be ended.

use std::path::PathBuf;
use std::time::Duration;

use super::{POLL_INTERVAL, Supervisor};
use crate::workspace::human::RUN_VARIABLE;
use policyd_base::limits::{FAILURE_TEXT_BYTES_MAX, TURN_LOG_BYTES_MAX};
use policyd_hook::agent_output::AgentOutput;
use policyd_record::mask::mask;
use policyd_state::run::budget;
use policyd_world::{ExternalCommand, ProcessEvent, WorldError};

/// How a turn's command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnExit {
    /// By itself.
    Code(Option<i32>),
    /// It took too long.
    Late,
    /// It was silent for too long.
    Silent,
    /// The money is spent.
    Spent,
    /// The run was interrupted.
    Interrupted,
    /// The machine could not say how it goes on.
    Lost,
}

impl TurnExit {
    /// The exit code of a command that ended by itself.
    pub(super) const fn code(self) -> Option<i32> {
        match self {
            Self::Code(code) => code,
            Self::Late | Self::Silent | Self::Spent | Self::Interrupted | Self::Lost => None,
        }
    }
}

/// What a turn's command said.
pub(super) struct TurnOutput {
    pub(super) output: AgentOutput,
    /// The end of its standard error.
    pub(super) complaint: Vec<u8>,
    pub(super) ending: TurnExit,
    pub(super) took: Duration,
}

impl Supervisor<'_> {
    /// Starts the command and hears it to its end.
    pub(super) fn listen(&mut self, prompt: &str) -> Result<TurnOutput, WorldError> {
        let asks = self.run.command.iter().any(|it| it.contains("{prompt}"));
        let argv = self.run.command.iter().map(|it| it.replace("{prompt}", prompt));
        let mut env = vec![(RUN_VARIABLE.to_owned(), self.mark()), self.trace_variable()];
        if self.paths.named {
            env.push(("POLICYD_STATE_DIR".to_owned(), self.paths.own.display().to_string()));
        }
        let command = ExternalCommand {
            argv: argv.collect(),
            folder: self.project.folder.clone(),
            stdin: if asks { Vec::new() } else { prompt.as_bytes().to_vec() },
            env,
            ..ExternalCommand::default()
        };
        let deadline = self.run.options.turn_deadline_ms.map(Duration::from_millis);
        let deadline = deadline.unwrap_or(self.settings.deadline);
        let began = self.world.elapsed();
        let mut program = self.world.start(&command)?;
        let mut collector = OutputCollector::new(self);
        let mut heard_at = began;
        let ending = loop {
            let sign = match program.wait(POLL_INTERVAL) {
                Ok(sign) => sign,
                Err(error) => {
                    collector.collect(self, &ProcessEvent::Stderr(error.to_string().into_bytes()));
                    break TurnExit::Lost;
                }
            };
            let now = self.world.elapsed();
            collector.collect(self, &sign);
            if let ProcessEvent::Exited(code) = sign {
                break TurnExit::Code(code);
            }
            if sign != ProcessEvent::Nothing {
                heard_at = now;
            }
            self.show(&collector.output);
            self.give_sign_of_life();
            if self.world.interrupted() {
                break TurnExit::Interrupted;
            } else if now.saturating_sub(began) >= deadline {
                break TurnExit::Late;
            } else if now.saturating_sub(heard_at) >= self.settings.silence {
                break TurnExit::Silent;
            } else if self.is_overspent(&collector.output) {
                break TurnExit::Spent;
            }
        };
        // What it says while it ends may be what the turn cost.
        program.end(self.settings.grace, &mut |sign| collector.collect(self, sign));
        self.end_left_behind();
        let OutputCollector { mut output, complaint, .. } = collector;
        let records = output.finish();
        self.record(&records);
        let took = self.world.elapsed().saturating_sub(began);
        Ok(TurnOutput { output, complaint, ending, took })
    }

    /// Ends what the turn started outside of its process group.
    fn end_left_behind(&mut self) {
        match self.world.kill_marked(RUN_VARIABLE, &self.mark()) {
            Ok(0) | Err(WorldError::Unsupported) => {}
            Ok(1) => self.problem("1 process that the turn left behind was ended"),
            Ok(count) => {
                self.problem(&format!("{count} processes that the turn left behind were ended"));
            }
            Err(error) => self.problem(&format!("what the turn left behind: {error}")),
        }
    }

    /// Whether the money is spent in the middle of a turn, as far as the pack knows prices.
    fn is_overspent(&self, output: &AgentOutput) -> bool {
        let Some(limit) = self.limits.budget_usd else { return false };
        let spent = self.run.spend.cost_usd + self.spend_of(output).cost_usd;
        budget::level(spent, Some(limit), 100) == budget::BudgetLevel::Spent
    }
}

/// What is heard of a turn's command while it runs.
struct OutputCollector {
    output: AgentOutput,
    /// The end of its standard error.
    complaint: Vec<u8>,
    log: TurnLog,
}

impl OutputCollector {
    fn new(run: &Supervisor<'_>) -> Self {
        let log = TurnLog::new(run);
        Self { output: AgentOutput::default(), complaint: Vec::new(), log }
    }

    fn collect(&mut self, run: &mut Supervisor<'_>, sign: &ProcessEvent) {
        match sign {
            ProcessEvent::Stdout(bytes) => {
                let tree = run.tree();
                let base = run.run.base.as_str();
                let look_up = |path: &str, existed| tree.written(base, path, existed);
                let records = self.output.absorb_with(bytes, &look_up);
                run.record(&records);
                self.log.keep(run, bytes);
            }
            ProcessEvent::Stderr(bytes) => {
                self.complaint.extend_from_slice(bytes);
                let over = self.complaint.len().saturating_sub(FAILURE_TEXT_BYTES_MAX);
                self.complaint.drain(..over);
                self.log.keep(run, bytes);
            }
            ProcessEvent::Exited(_) | ProcessEvent::Nothing => {}
        }
    }
}

/// The log of a turn's output, bounded.
struct TurnLog {
    path: PathBuf,
    left: usize,
}

impl TurnLog {
    fn new(run: &Supervisor<'_>) -> Self {
        let path = run.paths.folder.join(format!("iteration-{}.log", run.run.iteration));
        Self { path, left: TURN_LOG_BYTES_MAX }
    }

    fn keep(&mut self, run: &Supervisor<'_>, bytes: &[u8]) {
        let kept = bytes.get(..self.left.min(bytes.len())).unwrap_or_default();
        // A log that cannot be written does not end the turn.
        if !kept.is_empty() {
            let text = String::from_utf8_lossy(kept);
            let (masked, secrets) = mask(&text);
            // Other bytes stay as they are: a chunk may end within a character.
            let bytes = if secrets == 0 { kept } else { masked.as_bytes() };
            run.world.append(&self.path, bytes).ok();
        }
        if self.left > 0 && kept.len() < bytes.len() {
            run.world.append(&self.path, b"\n[more was printed, and dropped]\n").ok();
        }
        self.left = self.left.saturating_sub(bytes.len());
    }
}
