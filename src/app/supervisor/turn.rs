//! One turn: the command receives its prompt and works (`process_output`). The result of the turn is measured, claimed,
//! and reported, and decides the next step of the run.

use std::path::PathBuf;

use serde_json::json;

use super::Supervisor;
use super::changes::Tree;
use super::completion::Occasion;
use super::failures::{CONTEXT_CLASS, one_line};
use super::process_output::{TurnExit, TurnOutput};
use policyd_base::limits::TURN_LOG_BYTES_MAX;
use policyd_evaluation::context::of_meters;
use policyd_evaluation::dead_letter::fingerprint;
use policyd_facts::meters::{Usage, dollars};
use policyd_hook::agent_output::AgentOutput;
use policyd_record::context::{EventOrigin, usage, warning};
use policyd_record::mask::mask;
use policyd_state::context::ACT;
use policyd_state::run::stuckness::{TurnRecord, overlap_percent};
use policyd_state::run::{
    Claim, ContextRequest, RunEvent, Spend, TurnFailure, TurnResult, TurnUsage, unseen,
};

impl Supervisor<'_> {
    /// Makes one turn and moves the run on.
    pub(super) fn turn(&mut self) {
        // What was claimed before this turn says nothing about it.
        self.take_claim();
        let switched = self.run.switched_at_work.clone();
        self.check_gate();
        if self.run.switched_at_work != switched {
            self.save();
        }
        let prompt = self.prompt(&self.summary());
        if self.run.base.is_empty() {
            self.run.base = self.tree().base().unwrap_or_default();
        }
        let before = self.tree().content(&self.run.base);
        let seen = self.facts().seq;
        self.record_prompt(&prompt);
        let heard = match self.listen(&prompt) {
            Ok(heard) => heard,
            Err(error) => {
                let program = self.run.command.first().cloned().unwrap_or_default();
                let why = format!("`{program}` could not be started: {error}");
                return self.step(&RunEvent::CannotRun(&why));
            }
        };
        self.check_gate();
        if heard.ending == TurnExit::Interrupted {
            let (spend, priced) = self.measure(&heard.output);
            let used = TurnUsage { spend, priced, took: heard.took };
            return self.step(&RunEvent::Interrupted(Some(used)));
        }
        let after = self.tree().content(&self.run.base);
        let changes =
            before.as_ref().zip(after.as_ref()).map(|(before, after)| after.since(before));
        if let Some(why) = self.not_started(&heard, changes.as_ref().map(|it| it.moved)) {
            return self.step(&RunEvent::CannotRun(&why));
        }
        let failure = self.failure(&heard);
        let said = heard.output.last_texts();
        self.record_answer(&heard.output);
        let exit_code = heard.ending.code().unwrap_or_default();
        let error = failure.as_ref().map(|it| format!("{} {}", it.class, it.text));
        let error = error.or_else(|| self.failed_test(seen)).map(|it| fingerprint(&it));
        let files = changes.as_ref().map(|it| it.files.clone()).unwrap_or_default();
        let (spend, priced) = self.measure(&heard.output);
        self.note_price(priced || failure.is_some());
        let context = self.context_now(failure.as_ref());
        let mut turn = TurnResult {
            claim: self.claim(&heard, failure.is_none(), &files),
            spend,
            priced,
            context,
            mark: TurnRecord {
                content: after.map(|it| it.fingerprint).unwrap_or_default(),
                lines: changes.as_ref().map(|it| it.lines),
                error: error.unwrap_or_default(),
                exit_code,
                words_percent: overlap_percent(&said, &self.said_before()),
                tests: self.tests(),
            },
            moved: changes.map(|it| it.moved),
            files,
            tools_seen: heard.output.tools > 0,
            took: heard.took,
            failure,
            ..TurnResult::default()
        };
        turn.looks_complete = self.looks_complete(&turn, &answer(&heard));
        self.raise(&mut turn);
        self.keep_said(&said);
        self.report_turn(&heard, &turn);
        self.failed = turn.failure.is_some();
        self.step(&RunEvent::Ended(&turn));
        self.write_progress(&self.run.clone());
    }

    /// The project as git sees it.
    pub(super) fn tree(&self) -> Tree<'_> {
        Tree::new(self.world, &self.project.root, &self.paths.own)
    }

    /// Reports if the changes of turns cannot be observed.
    pub(super) fn note_git(&mut self) {
        self.run.base = self.tree().base().unwrap_or_default();
        if self.run.base.is_empty() {
            let root = self.project.root.display();
            let text = format!(
                "git does not know {root}: what a turn changes is not known, so a run in which nothing \
                 changes goes on to its last turn"
            );
            self.problem(&text);
        }
    }

    /// Why the command did not start, if a shell says so by its exit code, and no turn of the run did anything.
    fn not_started(&self, heard: &TurnOutput, moved: Option<bool>) -> Option<String> {
        let code = heard.ending.code().filter(|it| matches!(it, 126 | 127))?;
        let spent = self.run.spend.plus(self.spend_of(&heard.output)).tokens();
        let is_silent = heard.output.tools == 0 && answer(heard).trim().is_empty();
        let why = one_line(&String::from_utf8_lossy(&heard.complaint));
        (is_silent && spent == 0 && moved != Some(true) && !self.run.worked)
            .then(|| format!("the command could not be started (exit code {code}): {why}"))
    }

    /// Reports once if a budget cannot end the run, because the cost of a turn is not known.
    fn note_price(&mut self, is_known: bool) {
        if is_known || self.is_cost_unknown || self.limits.budget_usd.is_none() {
            return;
        }
        self.is_cost_unknown = true;
        let text = "the cost of a turn is not known: the command reported neither a cost nor tokens of a model with a price; \
                    the budget counts the turn as 0. Limit the run by `--max-iterations`";
        self.problem(text);
    }

    /// Reads the meters: tokens and money of the turn, and whether its price is known. What the command
    /// tells of its cost comes before the pack's prices.
    pub(super) fn measure(&mut self, output: &AgentOutput) -> (Spend, bool) {
        let rules = &self.policy().context;
        let (turn, spend) = (output.meters(), self.spend_of(output));
        let priced = spend.tokens() > 0 && rules.unpriced(&turn).is_empty();
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

    /// What a command used, as far as it told. What it tells of its cost comes before the pack's prices.
    pub(super) fn spend_of(&self, output: &AgentOutput) -> Spend {
        let turn = output.meters();
        let used = turn.total();
        Spend {
            input: used.input,
            output: used.output,
            cache_read: used.cache_read,
            cache_creation: used.cache_creation,
            cost_usd: output
                .cost_usd
                .unwrap_or_else(|| dollars(self.policy().context.spent(&turn))),
        }
    }

    /// Whether the context must be cleared before the next turn.
    fn context_now(&self, failure: Option<&TurnFailure>) -> ContextRequest {
        let full = self.context.reached.iter().any(|it| it == ACT);
        if full || failure.is_some_and(|it| it.class == CONTEXT_CLASS) {
            ContextRequest::Exhausted
        } else if self.wants_clear() {
            ContextRequest::ClearRequested
        } else {
            ContextRequest::Fits
        }
    }

    /// What the agent says of being done, judged. Text counts for nothing.
    fn claim(&mut self, heard: &TurnOutput, worked: bool, files: &[String]) -> Claim {
        let takes = |way: &str| match self.run.options.claims.as_slice() {
            [] => self.settings.takes_claim(way),
            asked => asked.iter().any(|it| it == way),
        };
        let structured = takes("structured") && heard.output.complete;
        // Who was ended by us claims nothing by it.
        let exit = takes("exit") && worked && heard.ending == TurnExit::Code(Some(0));
        let signal = takes("signal");
        let claimed = (signal && self.take_claim()) || structured || exit;
        if !claimed {
            return Claim::None;
        }
        let unseen = unseen::after(&self.run.unseen, files, heard.output.tools > 0);
        let verdict = match self.judge(&answer(heard), Occasion::Claim) {
            // A human who switched the gate off takes the agent's word.
            Claim::Accepted if !unseen.is_empty() && self.run.switched.off.is_none() => {
                Claim::Unverified(format!("{}.", unseen::describe(&unseen)))
            }
            verdict
            @ (Claim::None | Claim::Refused(_) | Claim::Unverified(_) | Claim::Accepted) => verdict,
        };
        self.decided = if verdict == Claim::Accepted { "content" } else { "not content" };
        if let Claim::Refused(why) | Claim::Unverified(why) = &verdict {
            self.report("loop.completion_refused", &[("reason", json!(why))]);
        }
        verdict
    }

    /// Whether a run in which nothing happens any more looks complete: earlier turns worked, this one changed nothing and
    /// failed in nothing, and the stop gate would accept a claim.
    fn looks_complete(&self, turn: &TurnResult, answer: &str) -> bool {
        // `idle: 0` lets a run wait as long as it likes.
        let is_quiet = self.limits.idle > 0
            && self.run.worked
            && turn.claim == Claim::None
            && turn.failure.is_none()
            && turn.moved == Some(false)
            && turn.context == ContextRequest::Fits;
        // Changes that could not be observed, and a gate that is switched off, are not evidence.
        is_quiet
            && self.run.unseen.is_empty()
            && self.run.switched.off.is_none()
            && self.judge(answer, Occasion::Unclaimed) == Claim::Accepted
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

    fn report_turn(&mut self, heard: &TurnOutput, turn: &TurnResult) {
        let spend = turn.spend;

        let tokens = spend.tokens();
        let fields = [
            ("iteration", json!(self.run.iteration)),
            ("session", json!(self.run.session)),
            ("exit_code", json!(heard.ending.code())),
            ("ended", json!((heard.ending == TurnExit::Spent).then_some("the money is spent"))),
            ("took_ms", json!(u64::try_from(turn.took.as_millis()).unwrap_or(u64::MAX))),
            ("tokens", json!(tokens)),
            ("cost_usd", json!(spend.cost_usd)),
            ("moved", json!(turn.moved)),
            ("lines", json!(turn.mark.lines)),
            ("failure", json!(turn.failure.as_ref().map(|it| it.class.as_str()))),
            ("error", json!(turn.failure.as_ref().map(|it| it.text.as_str()))),
            ("claimed", json!(turn.claim != Claim::None)),
        ];
        self.report("loop.iteration_complete", &fields);
        self.report_context(turn.context);
    }
}

/// What the agent answered last.
fn answer(heard: &TurnOutput) -> String {
    if heard.output.answer.is_empty() {
        heard.output.last_texts()
    } else {
        heard.output.answer.clone()
    }
}

impl Supervisor<'_> {
    /// How full the context is, by the seed's names.
    fn report_context(&mut self, context: ContextRequest) {
        let gauge = self.context.clone();
        if gauge.input_tokens == 0 && gauge.output_tokens == 0 {
            return; // The command tells no tokens.
        }
        let session = self.run.event_session();
        let now = self.world.now();
        let whose = EventOrigin { session: &session, now, iteration: self.run.iteration.into() };
        self.report_event(usage(whose, &gauge));
        if context == ContextRequest::Exhausted {
            self.report_event(warning(whose, &gauge));
        }
    }
}
