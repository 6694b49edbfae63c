//! `policyd signal`: signals between the processes of a project, and a human's answers to them.

mod print;
mod remote;

use std::cell::Cell;
use std::time::Duration;

use serde_json::Value;

use super::store::{LocalFiles, around};
use super::{
    Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EXIT_USAGE, ListFormat, SignalAction,
    SignalArguments, pack,
};
use crate::human::{HumanAnswer, refuse_agent, require_human};
use crate::lists::print_empty;
use policyd_app::sharing::{COMMAND, QUICK, SyncLimits};
use policyd_app::tasks::{self, Stores, signal_fields};
use policyd_app::workspace::human::Actor;
use policyd_app::workspace::project;
use policyd_base::limits::SIGNALS_MAX;
use policyd_evaluation::signals;
use policyd_fact_table::words;
use policyd_policy::records;
use policyd_policy::signals::{SignalKind, SignalStorage, Signals};
use policyd_report::overview::WaitingKind;
use policyd_state::signal::{End, SignalEvent};
use policyd_store::file::Durability;
use policyd_store::shared::SharedSignalEnd;
use policyd_store::signals::{Draft, SignalOutcome, SignalStore};
use policyd_world::{World, WorldError};
use policyd_yaml::suggest;

/// What every action needs.
struct SignalCommand<'c, 's> {
    world: &'c dyn World,
    store: SignalStore<'s>,
    stores: &'s Stores<'s>,
    signals: &'s Signals,
    format: ListFormat,
    /// Limits of the shared store.
    limits: SyncLimits<'c>,
}

/// A human's yes with a decision, or no with a reason.
#[derive(Clone, Copy)]
struct SignalDecision<'a> {
    approved: bool,
    text: &'a str,
    /// Who decides, if it is not the user of this process.
    by: &'a Option<String>,
}

/// Runs one action.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &SignalArguments) -> u8 {
    let Some(policy) = pack::or_builtin_policy(world, console, &project::find(world, None)) else {
        return EXIT_BROKEN;
    };
    let fenced = tasks::fenced(world, &policy);
    let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
    let stores = Stores::of_project(world, &policy);
    let (store, format) = (stores.signals.clone(), arguments.format);
    let files = LocalFiles { root: &stores.own, durability: &Durability::default() };
    let shared = match &arguments.action {
        // Agents and scripts emit signals, and do not wait for a server that does not answer.
        SignalAction::Emit { .. } | SignalAction::Process | SignalAction::Release { .. } => {
            Some(QUICK)
        }
        SignalAction::List
        | SignalAction::Show { .. }
        | SignalAction::Consume { .. }
        | SignalAction::Approve { .. }
        | SignalAction::Reject { .. } => Some(COMMAND),
        SignalAction::Types
        | SignalAction::History { .. }
        | SignalAction::Watch { .. }
        | SignalAction::Check { .. } => None,
    };
    let limits = shared.unwrap_or(QUICK);
    let left = Cell::new(limits.wait);
    let limits = limits.within(&left);
    let command = SignalCommand {
        world,
        store,
        stores: &stores,
        signals: &policy.signals,
        format,
        limits: limits.and_then(),
    };
    if shared.is_none() {
        return command.act(console, &arguments.action, &mut None);
    }
    let code = around(world, console, files, limits, |console, _, answer| {
        if let Err(error) = command.store.take_over_ends(world.now()) {
            console.eprint(&format!("answers of other hosts were not taken over: {error}"));
        }
        command.act(console, &arguments.action, answer)
    });
    let mut reasons = stores.degraded();
    reasons.extend(command.store.degraded().filter(|it| !reasons.contains(it)));
    console.warn_if_not_durable(&reasons);
    code
}

impl SignalCommand<'_, '_> {
    /// Runs one action on the local copy.
    fn act(
        &self,
        console: &mut Console<'_>,
        action: &SignalAction,
        logged: &mut Option<HumanAnswer>,
    ) -> u8 {
        let answer = match action {
            SignalAction::Emit { name, fields, from, expires } => {
                self.emit(console, name, fields, from, *expires)
            }
            SignalAction::List => Ok(self.list(console)),
            SignalAction::Types => Ok(print::kinds(console, self.signals, self.format)),
            SignalAction::Show { id } => Ok(self.show(console, id)),
            SignalAction::Consume { signal, by, lease } => {
                self.consume(console, signal, by, *lease)
            }
            SignalAction::Release { id, by } => {
                let answer = self.store.take(id, SignalEvent::Release { by }, self.world.now());
                answer.map(|it| self.print_answer(console, &it, id))
            }
            SignalAction::Approve { id, decision, by } => {
                let decision = SignalDecision { approved: true, text: decision, by };
                self.decide(console, id, decision, logged)
            }
            SignalAction::Reject { id, reason, by } => {
                let decision = SignalDecision { approved: false, text: reason, by };
                self.decide(console, id, decision, logged)
            }
            SignalAction::History { limit, signal } => {
                Ok(self.history(console, *limit, signal.as_deref()))
            }
            SignalAction::Watch { every, length } => Ok(self.watch(console, *every, *length)),
            SignalAction::Check { run, emit } => self.check(console, run, *emit),
            SignalAction::Process => self.process(console),
        };
        answer.unwrap_or_else(|error| {
            console.eprint(&format!("{}: {error}; signals not changed", self.stores.own.display()));
            EXIT_BROKEN
        })
    }

    /// The kind of a name; an unknown name is a typo.
    fn kind(&self, console: &mut Console<'_>, name: &str) -> Option<&SignalKind> {
        let kind = self.signals.kind(name);
        if kind.is_none() {
            let known: Vec<&str> = self.signals.kinds.iter().map(|it| it.id.as_str()).collect();
            let help = suggest::did_you_mean(name, &known);
            let help = help.unwrap_or_else(|| "run `policyd signal types` to list them".to_owned());
            console.eprint(&format!("unknown signal `{name}`\nhelp: {help}"));
        }
        kind
    }

    fn emit(
        &self,
        console: &mut Console<'_>,
        name: &str,
        words: &[String],
        from: &str,
        expires: Option<Duration>,
    ) -> Result<u8, WorldError> {
        let Some(kind) = self.kind(console, name) else { return Ok(EXIT_USAGE) };
        let is_approval = !kind.approves.is_empty();
        if is_approval
            && let Err(code) = require_human(self.world, console, &format!("approve by `{name}`"))
        {
            return Ok(code);
        }
        // The next prompt contains it as the word of a human.
        if kind.interrupts == "input"
            && let Err(code) = refuse_agent(self.world, console, &format!("emit `{name}`"))
        {
            return Ok(code);
        }
        let said = match signal_fields::parse(kind, words) {
            Ok(said) => said,
            Err(error) => {
                console.eprint(&error.to_string());
                return Ok(EXIT_USAGE);
            }
        };
        let now = self.world.now();
        let draft = Draft {
            name: name.to_owned(),
            fields: said,
            sender: if from.is_empty() && (is_approval || kind.interrupts == "stop") {
                Actor::of(self.world).user().to_owned()
            } else {
                from.to_owned()
            },
            request: String::new(),
            expires: expires.map(|it| now.plus(it)),
            by_user: true,
        };
        let emitted = self.stores.emit(&draft)?;
        match &emitted.drift {
            Some(answer) => print::drift(console, answer, &emitted.more, self.format),
            None => print::emitted(console, &emitted.signal, self.format),
        }
        emitted.problems.iter().for_each(|it| console.eprint(it));
        for it in std::iter::once(&emitted.signal).chain(&emitted.more) {
            if let Some(count) = self.store.files_hiding(it, now) {
                console.eprint(&format!(
                    "{} is not visible: signals/ contains {count} files, but only {SIGNALS_MAX} are \
                     read\nhelp: remove the files that you do not need",
                    it.name
                ));
            }
        }
        Ok(EXIT_OK)
    }

    fn list(&self, console: &mut Console<'_>) -> u8 {
        let now = self.world.now();
        let view = self.store.view(now);
        for it in &view.signals {
            let state = print::state(it, self.signals, now);
            print::signal(console, it, &state, self.format, now);
        }
        for file in &view.unknown {
            console.eprint(&format!("signals/{file}: `signals.yaml` does not define this signal"));
        }
        for (file, why) in &view.unusable {
            console.eprint(&format!(
                "signals/{file} is invalid: {why}; `policyd signal process` quarantines it"
            ));
        }
        if view.cut {
            console.eprint("signals/ contains more files than policyd reads");
        }
        let code = console.report_unread(self.store.problem(now));
        let others = match self.list_others(console) {
            Ok(others) => others,
            Err(code) => return code,
        };
        if view.signals.is_empty() && !others && code == EXIT_OK {
            print_empty(console, self.format, "pending signals");
        }
        code
    }

    fn show(&self, console: &mut Console<'_>, id: &str) -> u8 {
        let now = self.world.now();
        let view = self.store.view(now);
        if let Some(it) = view.signals.iter().find(|it| it.id.starts_with(id) || it.name == id) {
            let state = print::state(it, self.signals, now);
            print::signal(console, it, &state, self.format, now);
            return EXIT_OK;
        }
        let history = match self.store.history() {
            Ok(history) => history,
            Err(problem) => return console.report_unread([problem]),
        };
        let text =
            |it: &Value| it.get("id").and_then(Value::as_str).is_some_and(|it| it.starts_with(id));
        match history.iter().rev().find(|it| text(it)) {
            Some(entry) => {
                print::over(console, entry, self.format);
                EXIT_OK
            }
            None if view.problem.is_some() => console.report_unread(view.problem),
            None => {
                console.eprint(&format!(
                    "unknown signal `{id}`\nhelp: run `policyd signal list` to list pending signals"
                ));
                EXIT_FOUND
            }
        }
    }

    /// Returns the actor that `--by` names, or the name of the operating system user.
    fn actor_or_user(&self, by: &Option<String>) -> String {
        by.clone().unwrap_or_else(|| Actor::of(self.world).user().to_owned())
    }

    fn consume(
        &self,
        console: &mut Console<'_>,
        signal: &str,
        by: &Option<String>,
        lease: Option<Duration>,
    ) -> Result<u8, WorldError> {
        // A mistyped name would wait for ever.
        let view = self.store.view(self.world.now());
        let is_id = signal.len() >= 4 && signal.bytes().all(|it| it.is_ascii_hexdigit());
        let waits = view.signals.iter().any(|it| it.name == signal);
        if !is_id && !waits {
            let Some(kind) = self.kind(console, signal) else { return Ok(EXIT_USAGE) };
            if kind.form == SignalStorage::Log {
                console.eprint(&format!("`{signal}` is a log and cannot be consumed"));
                return Ok(EXIT_USAGE);
            }
        }
        let asks = view.awaiting_human(self.signals, self.world.now());
        let asked = asks.into_iter().any(|it| it.name == signal || it.id.starts_with(signal));
        let action = format!("consume `{signal}`, which waits for a human");
        if asked && let Err(code) = require_human(self.world, console, &action) {
            return Ok(code);
        }
        let by = self.actor_or_user(by);
        let event = match lease {
            Some(lease) => SignalEvent::Claim { by: &by, lease },
            None => SignalEvent::Consume { by: &by },
        };
        let answer = self.store.take(signal, event, self.world.now())?;
        if answer == SignalOutcome::Nothing
            && let Some(code) = self.take_of_others(console, signal, event)
        {
            return Ok(code);
        }
        Ok(self.print_answer(console, &answer, signal))
    }

    fn print_answer(&self, console: &mut Console<'_>, answer: &SignalOutcome, which: &str) -> u8 {
        match answer {
            SignalOutcome::Nothing => {
                if self.format != ListFormat::Json {
                    console.eprint(&format!("no signal `{which}` is pending"));
                }
                EXIT_FOUND
            }
            SignalOutcome::Refused(found, why) => {
                console.eprint(&format!("{} {}: {why}", found.name, found.id));
                EXIT_FOUND
            }
            SignalOutcome::Ended(found, policyd_state::signal::End::Expired, _) => {
                console.eprint(&format!("{} {} expired", found.name, found.id));
                EXIT_FOUND
            }
            SignalOutcome::Held(found, _) | SignalOutcome::GivenBack(found) => {
                let state = print::state(found, self.signals, self.world.now());
                print::signal(console, found, &state, self.format, self.world.now());
                EXIT_OK
            }
            SignalOutcome::Ended(found, end, request) => {
                print::ended(console, found, *end, request.as_deref(), self.format);
                EXIT_OK
            }
        }
    }

    /// A human's yes (with a decision) or no.
    fn decide(
        &self,
        console: &mut Console<'_>,
        id: &str,
        decision: SignalDecision<'_>,
        logged: &mut Option<HumanAnswer>,
    ) -> Result<u8, WorldError> {
        let SignalDecision { approved, text, by } = decision;
        let verb = if approved { "approve" } else { "reject" };
        let actor = match require_human(self.world, console, &format!("{verb} `{id}`")) {
            Ok(actor) => actor,
            Err(code) => return Ok(code),
        };
        let (by, now) = (self.actor_or_user(by), self.world.now());
        let answer = match approved {
            true => self.store.approve(id, &by, text, now)?,
            false => self.store.reject(id, &by, text, now)?,
        };
        if answer == SignalOutcome::Nothing {
            let end = SharedSignalEnd {
                outcome: if approved { End::Approved } else { End::Rejected }.as_str().to_owned(),
                by,
                text: text.to_owned(),
            };
            if let Some(code) = self.answer_other(console, id, end) {
                let answer = HumanAnswer::new(verb, WaitingKind::RemoteSignal, id, actor);
                *logged = Some(HumanAnswer { text: text.to_owned(), ..answer });
                return Ok(code);
            }
            let waiting: Vec<String> = {
                let view = self.store.view(now);
                let waiting = view.awaiting_human(self.signals, now);
                waiting.map(|it| format!("{} {}", it.id, it.name)).collect()
            };
            let help = match waiting.as_slice() {
                [] => "no request is pending".to_owned(),
                some => format!("pending requests: {}", some.join(", ")),
            };
            console.eprint(&format!("unknown request `{id}`\nhelp: {help}"));
            return Ok(EXIT_FOUND);
        }
        if let SignalOutcome::Ended(request, End::Approved | End::Rejected, _) = &answer {
            let problem = self.stores.answered(request, approved);
            problem.iter().for_each(|it| console.eprint(it));
            let answer = HumanAnswer::new(verb, WaitingKind::Signal, &request.id, actor);
            let (what, text) = (request.name.clone(), text.to_owned());
            *logged = Some(HumanAnswer { what, text, ..answer });
        }
        Ok(self.print_answer(console, &answer, id))
    }

    fn history(&self, console: &mut Console<'_>, limit: usize, signal: Option<&str>) -> u8 {
        let mut entries = match self.store.history() {
            Ok(entries) => entries,
            Err(problem) => return console.report_unread([problem]),
        };
        entries.retain(|it| {
            signal.is_none_or(|name| it.get("signal").and_then(Value::as_str) == Some(name))
        });
        let skipped = entries.len().saturating_sub(limit);
        entries.iter().skip(skipped).for_each(|it| print::over(console, it, self.format));
        EXIT_OK
    }

    fn watch(&self, console: &mut Console<'_>, every: Duration, length: Option<Duration>) -> u8 {
        let start = self.world.elapsed();
        let mut known: Vec<String> = Vec::new();
        let mut drifts = self.store.drifts(self.world.now()).len();
        loop {
            let now = self.world.now();
            let view = self.store.view(now);
            if view.problem.is_some() {
                return console.report_unread(view.problem);
            }
            let found = view.signals;
            for it in found.iter().filter(|it| !known.contains(&it.id)) {
                let state = print::state(it, self.signals, now);
                print::signal(console, it, &state, self.format, now);
            }
            let is_gone = |id: &&String| found.iter().all(|it| it.id != **id);
            if known.iter().any(|id| is_gone(&id)) {
                let history = match self.store.history() {
                    Ok(history) => history,
                    Err(problem) => return console.report_unread([problem]),
                };
                for id in known.iter().filter(is_gone) {
                    let entry = history.iter().rev();
                    let mut entry =
                        entry.filter(|it| it.get("id").and_then(Value::as_str) == Some(id));
                    match entry.next() {
                        Some(entry) => print::over(console, entry, self.format),
                        None => console.eprint(&format!("{id}: file removed without policyd")),
                    }
                }
            }
            let all = self.store.drifts(now);
            all.iter().skip(drifts).for_each(|it| print::over(console, it, self.format));
            (drifts, known) = (all.len(), found.into_iter().map(|it| it.id).collect());
            if length.is_some_and(|it| self.world.elapsed().saturating_sub(start) >= it) {
                return EXIT_OK;
            }
            self.world.sleep(every);
        }
    }

    fn check(
        &self,
        console: &mut Console<'_>,
        said: &[String],
        emit: bool,
    ) -> Result<u8, WorldError> {
        let shape = records::shape(&records::signals::RUN);
        let run = match words::record(shape, signals::run(), said) {
            Ok(run) => run,
            Err(error) => {
                console.eprint(&error.to_string());
                return Ok(EXIT_USAGE);
            }
        };
        let task = run.get("task_id").cloned();
        let (due, failed) = signals::due(self.signals, run, None);
        for (trigger, why) in failed {
            console.eprint(&format!("{}: `{}` is unknown: {why}", trigger.when.place, trigger.id));
        }
        let task = match &task {
            Some(policyd_fact_table::record::RecordValue::Text(task)) => task.as_str(),
            _ => "",
        };
        for it in &due {
            let raised = if emit { self.stores.raise(it, task, "")? } else { None };
            let (made, problems) = raised.unzip();
            problems.iter().flatten().for_each(|it| console.eprint(it));
            print::due(console, it, made.as_ref(), emit, self.format);
        }
        if due.is_empty() && self.format == ListFormat::Text {
            console.print("no signal is due\n");
        }
        Ok(if due.is_empty() { EXIT_OK } else { EXIT_FOUND })
    }

    fn process(&self, console: &mut Console<'_>) -> Result<u8, WorldError> {
        let mut deeds = Vec::new();
        let done = self.stores.process_signals(&mut deeds)?;
        print::processed(console, &deeds, &done, self.format);
        let is_done = done.failed.is_empty() && done.failed_drifts.is_empty();
        Ok(if is_done { EXIT_OK } else { EXIT_FOUND })
    }
}
