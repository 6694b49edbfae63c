//! One turn: the command is started with its prompt, its output read as it comes, and what became of
//! it is told to breakers, tasks and the run.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use super::changes::Tree;
use super::{LOOK_EVERY, MARK, Supervisor};
use crate::cli::resilience::{Report, Stores};
use crate::facts::meters::{Usage, dollars};
use crate::hook::agent_output::AgentOutput;
use crate::judge::context::of_meters;
use crate::judge::dead_letter::fingerprint;
use crate::judge::message::cut;
use crate::limits::{EVIDENCE_CHARS_MAX, FAILURE_TEXT_BYTES_MAX, TURN_LOG_BYTES_MAX};
use crate::policy::failures::{Classified, Moment};
use crate::report::context::{Whose, usage, warning};
use crate::report::mask::mask;
use crate::state::breaker;
use crate::state::context::ACT;
use crate::state::dead_letter::{Attempt, Task};
use crate::state::run::stuckness::{Mark, overlap_percent};
use crate::state::run::{Claim, Context, Event, Failure, Spend, Turn, Used, budget};
use crate::world::{Command, Sign, WorldError};

/// The class of a failure that a fresh context cures.
const CONTEXT_CLASS: &str = "context_exhaustion";

/// How a turn's command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// By itself.
    Code(Option<i32>),
    /// It took too long.
    Late,
    /// It was silent for too long.
    Silent,
    /// The money is spent.
    Spent,
    /// Somebody interrupted the run.
    Interrupted,
    /// The machine could not say how it goes on.
    Lost,
}

/// What a turn's command said.
struct Heard {
    output: AgentOutput,
    /// The end of its standard error.
    complaint: Vec<u8>,
    ending: Ending,
    took: Duration,
}

impl Supervisor<'_, '_, '_> {
    /// Makes one turn and moves the run on.
    pub(super) fn turn(&mut self) {
        // What was claimed before this turn says nothing about it.
        self.take_claim();
        self.note_gate();
        let prompt = self.prompt(&self.summary());
        let (own, root) = (self.paths.own.clone(), self.project.root.clone());
        let tree = Tree { world: self.world, root: &root, own: &own };
        let before = tree.content();
        self.record_prompt(&prompt);
        let heard = match self.listen(&prompt) {
            Ok(heard) => heard,
            Err(error) => {
                let program = self.run.command.first().cloned().unwrap_or_default();
                let why = format!("`{program}` could not be started: {error}");
                return self.step(&Event::CannotRun(&why));
            }
        };
        if heard.ending == Ending::Interrupted {
            let (spend, priced) = self.measure(&heard.output);
            let used = Used { spend, priced, took: heard.took };
            return self.step(&Event::Interrupted(Some(used)));
        }
        self.check_gate();
        let after = tree.content();
        let moved = before
            .as_ref()
            .zip(after.as_ref())
            .map(|(before, after)| before.fingerprint != after.fingerprint);
        let lines = match (&before, moved) {
            (Some(before), Some(true)) => tree.lines_since(&before.commit),
            (_, Some(false)) => Some(0),
            (_, Some(true) | None) => None,
        };
        let failure = self.failure(&heard);
        let said = heard.output.said();
        self.record_answer(&heard.output);
        let exit_code = match heard.ending {
            Ending::Code(code) => code.unwrap_or_default(),
            Ending::Late | Ending::Silent | Ending::Spent | Ending::Interrupted | Ending::Lost => 0,
        };
        let error = failure.as_ref().map(|it| fingerprint(&format!("{} {}", it.class, it.text)));
        let (spend, priced) = self.measure(&heard.output);
        let context = self.context_now(failure.as_ref());
        let mut turn = Turn {
            claim: self.claim(&heard, failure.is_none()),
            spend,
            priced,
            context,
            mark: Mark {
                content: after.map(|it| it.fingerprint).unwrap_or_default(),
                lines,
                error: error.unwrap_or_default(),
                exit_code,
                words_percent: overlap_percent(&said, &self.said_before()),
                tests: self.tests(),
            },
            moved,
            took: heard.took,
            failure,
            ..Turn::default()
        };
        self.raise(&mut turn);
        self.keep_said(&said);
        self.told_turn(&heard, &turn);
        self.failed = turn.failure.is_some();
        self.step(&Event::Ended(&turn));
        self.write_progress(&self.run.clone());
    }

    /// Starts the command and hears it to its end.
    fn listen(&mut self, prompt: &str) -> Result<Heard, WorldError> {
        let asks = self.run.command.iter().any(|it| it.contains("{prompt}"));
        let argv = self.run.command.iter().map(|it| it.replace("{prompt}", prompt));
        let mut env = vec![(MARK.to_owned(), self.mark())];
        if self.paths.named {
            env.push(("POLICYD_STATE_DIR".to_owned(), self.paths.own.display().to_string()));
        }
        let command = Command {
            argv: argv.collect(),
            folder: self.project.folder.clone(),
            stdin: if asks { Vec::new() } else { prompt.as_bytes().to_vec() },
            env,
            ..Command::default()
        };
        let deadline = self.run.options.turn_deadline_ms.map(Duration::from_millis);
        let deadline = deadline.unwrap_or(self.settings.deadline);
        let began = self.world.elapsed();
        let mut program = self.world.start(&command)?;
        let mut ears = Ears::new(self);
        let mut heard_at = began;
        let ending = loop {
            let sign = match program.wait(LOOK_EVERY) {
                Ok(sign) => sign,
                Err(error) => {
                    ears.hear(self, &Sign::Complained(error.to_string().into_bytes()));
                    break Ending::Lost;
                }
            };
            let now = self.world.elapsed();
            ears.hear(self, &sign);
            if let Sign::Ended(code) = sign {
                break Ending::Code(code);
            }
            if sign != Sign::Nothing {
                heard_at = now;
            }
            self.teller.show(|| self.standing());
            if self.world.interrupted() {
                break Ending::Interrupted;
            } else if now.saturating_sub(began) >= deadline {
                break Ending::Late;
            } else if now.saturating_sub(heard_at) >= self.settings.silence {
                break Ending::Silent;
            } else if self.is_overspent(&ears.output) {
                break Ending::Spent;
            }
        };
        // What it says while it ends may be what the turn cost.
        program.end(self.settings.grace, &mut |sign| ears.hear(self, sign));
        let Ears { mut output, complaint, .. } = ears;
        let records = output.finish();
        self.record(&records);
        let took = self.world.elapsed().saturating_sub(began);
        Ok(Heard { output, complaint, ending, took })
    }

    /// Whether the money is spent in the middle of a turn, as far as the pack knows prices.
    fn is_overspent(&self, output: &AgentOutput) -> bool {
        let Some(limit) = self.limits.budget_usd else { return false };
        let now = dollars(self.policy().context.spent(&output.meters()));
        let spent = self.run.spend.cost_usd + output.cost_usd.unwrap_or(now);
        budget::level(spent, Some(limit), 100) == budget::Level::Spent
    }

    /// What went wrong, where something did; breakers and tasks are told.
    fn failure(&mut self, heard: &Heard) -> Option<Failure> {
        let output = &heard.output;
        let ended = matches!(heard.ending, Ending::Code(Some(0)) | Ending::Spent);
        let worked = ended && !output.failed;
        let key = self.breaker_key();
        let stores = self.stores();
        if worked {
            self.tell_breaker(&stores, &key, breaker::Event::success());
            return None;
        }
        let text = words(heard);
        let name = match heard.ending {
            Ending::Late | Ending::Silent => "timeout",
            Ending::Code(_) | Ending::Spent | Ending::Interrupted | Ending::Lost => {
                output.error.as_str()
            }
        };
        let found = self.policy().classify(name, &text);
        let line = one_line(&text);
        let settings = self.policy().breaker(&key);
        let effect = settings.effect_of(&found.class.id).unwrap_or(found.class.effect);
        let retry_after = self.policy().failures.waits.retry_after(&text, stores.now);
        let failed = breaker::Failure { effect, retry_after, ..breaker::Failure::new(&line) };
        self.tell_breaker(&stores, &key, breaker::Event::Failure(failed));
        let again = !found.class.attempt && found.class.id != CONTEXT_CLASS;
        let attempt = if again {
            self.run.attempt
        } else {
            self.run.failures.min(found.retry.max.saturating_sub(1))
        };
        let wait = self.wait(&found, &text, attempt.saturating_add(1));
        let retry = wait.clone().filter(|_| again);
        let given_up = retry.is_none() && found.class.id != CONTEXT_CLASS;
        let put_aside = given_up && self.fail_task(&stores, &found, &line);
        Some(Failure {
            class: found.class.id.clone(),
            text: line,
            permanent: found.is_permanent(),
            wait: wait.filter(|_| !again && found.class.id != CONTEXT_CLASS),
            retry,
            put_aside,
        })
    }

    /// How long to wait before the next attempt, and why.
    fn wait(&self, found: &Classified, text: &str, attempt: u32) -> Option<(Duration, String)> {
        let now = self.world.now();
        let millis = now.millis().rem_euclid(86_400_000).unsigned_abs();
        let at = Moment {
            now,
            time_of_day: Duration::from_millis(millis),
            attempt,
            requests_per_minute: None,
            // Nobody who waits shares the thousandth of a second with many others.
            chance: u16::try_from(millis % 1_000).map_or(0.0, f64::from) / 1_000.0,
        };
        self.policy().failures.wait(found, text, &at)
    }

    fn tell_breaker(&mut self, stores: &Stores<'_>, key: &str, event: breaker::Event<'_>) {
        if key.is_empty() {
            return;
        }
        let settings = self.policy().breaker(key);
        if let Err(error) = stores.breakers.record(key, event, &settings, self.world.now()) {
            self.problem(&format!("breaker `{key}` could not be told: {error}"));
        }
    }

    /// Counts a failed turn against its task; whether the task was put aside.
    fn fail_task(&mut self, stores: &Stores<'_>, found: &Classified, line: &str) -> bool {
        let report = Report {
            task: self.task(),
            attempt: Attempt {
                error_type: found.class.id.clone(),
                error: line.to_owned(),
                agent: format!("run {}", self.run.id),
                counts: found.class.attempt,
                // A turn is reported once, whatever becomes of this process.
                key: format!("{}-{}", self.mark(), self.run.attempt),
                ..Attempt::default()
            },
            at_once: false,
        };
        match stores.fail(&report) {
            Ok(taken) => {
                taken.problems.iter().for_each(|it| self.problem(it));
                if !taken.entered.is_empty() {
                    self.tell("loop.dead_letter", &[("task_id", json!(taken.task.id))]);
                }
                !taken.entered.is_empty()
            }
            Err(error) => {
                self.problem(&format!("the failure could not be counted: {error}"));
                false
            }
        }
    }

    /// What the run works on: the task that the project names, else the run itself.
    pub(super) fn task(&self) -> Task {
        let (id, title) = self.stores().current_task();
        let own = id.is_empty();
        let goal: String =
            self.run.goal.lines().next().unwrap_or_default().chars().take(120).collect();
        Task {
            id: if own { format!("run/{}", self.run.id) } else { id },
            title: if own || title.is_empty() { goal } else { title },
            ..Task::default()
        }
    }

    /// Reads the meters: tokens and money of the turn, and whether its price is known. What the command
    /// tells of its cost comes before the pack's prices.
    fn measure(&mut self, output: &AgentOutput) -> (Spend, bool) {
        let rules = &self.policy().context;
        let turn = output.meters();
        let used = turn.total();
        let by_prices = dollars(rules.spent(&turn));
        let spend = Spend {
            input: used.input,
            output: used.output,
            cache_read: used.cache_read,
            cache_creation: used.cache_creation,
            cost_usd: output.cost_usd.unwrap_or(by_prices),
        };
        let priced = used.total() > 0 && rules.unpriced(&turn).is_empty();
        // The session's own tokens, which the cumulative meter is measured by.
        let mut session = turn;
        let before = self.run.session_spend;
        let before = Usage {
            input: before.input,
            output: before.output,
            cache_read: before.cache_read,
            cache_creation: before.cache_creation,
        };
        let model = session.model.clone();
        session.spend(&model, &before);
        self.context = of_meters(rules, &self.overrides, &session);
        (spend, priced || output.cost_usd.is_some())
    }

    /// Whether the context must be cleared before the next turn.
    fn context_now(&self, failure: Option<&Failure>) -> Context {
        let full = self.context.reached.iter().any(|it| it == ACT);
        if full || failure.is_some_and(|it| it.class == CONTEXT_CLASS) {
            Context::Exhausted
        } else if self.wants_clear() {
            Context::ClearRequested
        } else {
            Context::Fits
        }
    }

    /// What the agent says of being done, judged. Text counts for nothing.
    fn claim(&mut self, heard: &Heard, worked: bool) -> Claim {
        let takes = |way: &str| match self.run.options.claims.as_slice() {
            [] => self.settings.takes_claim(way),
            asked => asked.iter().any(|it| it == way),
        };
        let structured = takes("structured") && heard.output.complete;
        let exit = takes("exit") && worked;
        let signal = takes("signal");
        let claimed = (signal && self.take_claim()) || structured || exit;
        if !claimed {
            return Claim::None;
        }
        let answer = if heard.output.answer.is_empty() {
            heard.output.said()
        } else {
            heard.output.answer.clone()
        };
        let verdict = self.judge(&answer);
        self.decided = if verdict == Claim::Accepted { "content" } else { "not content" };
        if let Claim::Refused(why) = &verdict {
            self.tell("loop.completion_refused", &[("reason", json!(why))]);
        }
        verdict
    }

    fn said_path(&self) -> PathBuf {
        self.paths.folder.join("last-said.txt")
    }

    fn said_before(&self) -> String {
        let bytes = self.world.read(&self.said_path(), TURN_LOG_BYTES_MAX).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn keep_said(&self, said: &str) {
        // It is compared with the next turn's; without it nothing seems to be said again.
        self.world.write(&self.said_path(), mask(said).0.as_bytes()).ok();
    }

    fn told_turn(&mut self, heard: &Heard, turn: &Turn) {
        let code = match heard.ending {
            Ending::Code(code) => code,
            Ending::Late | Ending::Silent | Ending::Spent | Ending::Interrupted | Ending::Lost => {
                None
            }
        };
        let spend = turn.spend;

        let tokens = spend.tokens();
        let fields = [
            ("iteration", json!(self.run.iteration)),
            ("session", json!(self.run.session)),
            ("exit_code", json!(code)),
            ("took_ms", json!(u64::try_from(turn.took.as_millis()).unwrap_or(u64::MAX))),
            ("tokens", json!(tokens)),
            ("cost_usd", json!(spend.cost_usd)),
            ("moved", json!(turn.moved)),
            ("lines", json!(turn.mark.lines)),
            ("failure", json!(turn.failure.as_ref().map(|it| it.class.as_str()))),
            ("error", json!(turn.failure.as_ref().map(|it| it.text.as_str()))),
            ("claimed", json!(turn.claim != Claim::None)),
        ];
        self.tell("loop.iteration_complete", &fields);
        self.told_context(turn.context);
    }
}

impl Supervisor<'_, '_, '_> {
    /// How full the context is, by the seed's names.
    fn told_context(&mut self, context: Context) {
        let gauge = self.context.clone();
        if gauge.input_tokens == 0 && gauge.output_tokens == 0 {
            return; // The command tells no tokens.
        }
        let session = format!("run-{}", self.run.id);
        let now = self.world.now();
        let whose = Whose { session: &session, now, iteration: self.run.iteration.into() };
        self.tell_event(usage(whose, &gauge));
        if context == Context::Exhausted {
            self.tell_event(warning(whose, &gauge));
        }
    }
}

/// What was said by whoever failed: the complaint, or the answer where the command says that it
/// failed; never what an agent writes about its work.
fn words(heard: &Heard) -> String {
    const LAST_LINES: usize = 5;
    let complaint = String::from_utf8_lossy(&heard.complaint).into_owned();
    let answer = if heard.output.failed { heard.output.answer.as_str() } else { "" };
    let late = match heard.ending {
        Ending::Late => "the turn timed out",
        Ending::Silent => "the command timed out: it said nothing",
        Ending::Code(None) => "it was ended by a signal",
        Ending::Lost => "it could not be waited for",
        Ending::Code(Some(_)) | Ending::Spent | Ending::Interrupted => "",
    };
    let told: Vec<&str> =
        [late, complaint.trim(), answer].into_iter().filter(|it| !it.is_empty()).collect();
    if !told.is_empty() {
        return told.join("\n");
    }
    let said = heard.output.said();
    let last: Vec<&str> = said.lines().rev().take(LAST_LINES).collect();
    last.into_iter().rev().collect::<Vec<_>>().join("\n")
}

/// The last line that says something, without secrets.
fn one_line(text: &str) -> String {
    let line = text.lines().rev().find(|it| !it.trim().is_empty()).unwrap_or("no output");
    cut(&mask(line.trim()).0, EVIDENCE_CHARS_MAX)
}

/// What is heard of a turn's command while it runs.
struct Ears {
    output: AgentOutput,
    /// The end of its standard error.
    complaint: Vec<u8>,
    log: TurnLog,
}

impl Ears {
    fn new(run: &Supervisor<'_, '_, '_>) -> Self {
        let log = TurnLog::new(run);
        Self { output: AgentOutput::default(), complaint: Vec::new(), log }
    }

    fn hear(&mut self, run: &mut Supervisor<'_, '_, '_>, sign: &Sign) {
        match sign {
            Sign::Said(bytes) => {
                let records = self.output.absorb(bytes);
                run.record(&records);
                self.log.keep(run, bytes);
            }
            Sign::Complained(bytes) => {
                self.complaint.extend_from_slice(bytes);
                let over = self.complaint.len().saturating_sub(FAILURE_TEXT_BYTES_MAX);
                self.complaint.drain(..over);
                self.log.keep(run, bytes);
            }
            Sign::Ended(_) | Sign::Nothing => {}
        }
    }
}

/// The log of a turn's output, bounded.
struct TurnLog {
    path: PathBuf,
    left: usize,
}

impl TurnLog {
    fn new(run: &Supervisor<'_, '_, '_>) -> Self {
        let path = run.paths.folder.join(format!("iteration-{}.log", run.run.iteration));
        Self { path, left: TURN_LOG_BYTES_MAX }
    }

    fn keep(&mut self, run: &Supervisor<'_, '_, '_>, bytes: &[u8]) {
        let kept = bytes.get(..self.left.min(bytes.len())).unwrap_or_default();
        // A log that cannot be written is no reason to end the turn.
        if !kept.is_empty() {
            run.world.append(&self.path, kept).ok();
        }
        if self.left > 0 && kept.len() < bytes.len() {
            run.world.append(&self.path, b"\n[more was printed, and dropped]\n").ok();
        }
        self.left = self.left.saturating_sub(bytes.len());
    }
}
