//! Guards at an event: what its tool call would do is read, the guards that it concerns are judged,
//! their answer is logged and said. The transcript is read only where one of them looks at it.

use std::collections::BTreeSet;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::rc::Rc;

use super::on_disk;
use super::speech::{self, Report};
use super::work_tree;
use super::{Request, Stopping, cursor_path};
use crate::cli::pack;
use crate::cli::project::{self, Project};
use crate::facts::call::{AnalysisContext, Call, CallEnvironment, TimeLimit};
use crate::judge::called::{By, Called};
use crate::judge::combine::Decision;
use crate::judge::guards::{self, Guarded};
use crate::judge::message::cut;
use crate::judge::situation::{Situation, Words};
use crate::limits::{CALL_TIME_MAX, SPOKEN_CHARS_MAX};
use crate::policy::Policy;
use crate::policy::guards::{Guard, Verb};
use crate::report::decision_log;
use crate::report::mask::{mask, mask_json};
use crate::script::Evaluator;
use crate::script::call_facts::Seen;
use crate::script::context::Context;
use crate::store::transcript;
use crate::world::World;

/// An event that guards may be for.
pub(super) struct Guarding<'a> {
    pub(super) world: &'a dyn World,
    pub(super) request: &'a Request<'a>,
    pub(super) policy: &'a Policy,
    pub(super) words: &'a Words,
    pub(super) project: &'a Project,
    /// The pack, where it was looked for.
    pub(super) found: Option<&'a pack::Found>,
}

impl Guarding<'_> {
    /// Judges the guards that the event concerns. Whether there was any.
    pub(super) fn guard(&self, report: &mut Report) -> bool {
        let (event, now) = (&self.request.event, self.request.now);
        let concerned: Vec<&Guard> = guards::concerned(self.policy, event, now).collect();
        if concerned.is_empty() {
            return false;
        }
        let begun = self.world.elapsed();
        let is_late = || self.world.elapsed().saturating_sub(begun) > CALL_TIME_MAX;
        let mut seen = self.seen(TimeLimit(&is_late));
        let taken = self.world.elapsed().saturating_sub(begun);
        let values = &self.words.lens.lens().value_options;
        let mut at_paths = concerned.iter().filter(|it| it.reads_paths);
        if at_paths.any(|it| guards::recognises(it, &seen.call, values)) {
            on_disk::look(self.world, &mut seen.call, Rc::make_mut(&mut seen.around));
        }
        let at_trees = concerned.iter().filter(|it| it.reads_tree);
        let asking: BTreeSet<usize> =
            at_trees.flat_map(|it| guards::recognised(it, &seen.call, values)).collect();
        if !asking.is_empty() {
            let Seen { call, around } = &mut seen;
            let call = (&*call, self.project.root.as_path());
            work_tree::look(self.world, call, Rc::make_mut(around), asking.into_iter());
        }
        let seen = Rc::new(seen);
        let recognised = |it: &&&Guard| guards::recognises(it, &seen.call, values);
        let context =
            match concerned.iter().filter(|it| it.reads_transcript).any(|it| recognised(&it)) {
                true => self.told(report),
                false => {
                    let (project, now) = (self.project.root.clone(), self.request.now);
                    let alone = Situation::alone(event.clone(), project, now);
                    let alone = Situation { gauged: false, ..alone };
                    Rc::new(alone.context(self.policy, self.words))
                }
            };
        if concerned.iter().filter(|it| it.reads_stores).any(|it| recognised(&it)) {
            self.of_project(|it| it.learn(&context, (true, true, true)));
        }
        context.learned.borrow_mut().call = Some(seen.clone());
        let mut evaluator = ManuallyDrop::new(Evaluator::new(context.clone()));
        evaluator.watch.clone_from(&self.request.watch);
        let asked = (&*context, &mut *evaluator);
        // The result of a tool is not kept.
        let masks = |it: &Guard| !event.tool_response.is_null() && it.body.verb == Verb::Mask;
        let elsewhere =
            concerned.iter().filter(|it| it.reads_transcript || it.reads_stores || masks(it));
        let elsewhere: BTreeSet<&str> = elsewhere.map(|it| it.id.as_str()).collect();
        let detail = self.request.detail;
        // What was asked of the disk and of the transcript in between has bounds of its own.
        let end = self.world.elapsed().saturating_add(CALL_TIME_MAX.saturating_sub(taken));
        let in_time = |_: &&Guard| self.world.elapsed() <= end;
        let judged = concerned.iter().copied().take_while(in_time);
        let mut guarded = guards::judge(judged, event, &seen, asked, detail);
        if self.world.elapsed() > end
            && let Some(guard) = concerned.iter().find(|it| guards::may_stop(it))
        {
            guarded.ask_for(guard, "it takes too long to analyze", event);
        }
        self.log((&guarded, &seen, &elsewhere), report);
        self.answer(guarded, report);
        true
    }

    /// The tool call as guards see it; at an event without one there is nothing in it.
    fn seen(&self, patience: TimeLimit<'_>) -> Seen {
        let around = Rc::new(self.around());
        let knowledge = &*self.policy.guards.knowledge;
        let reading =
            AnalysisContext { lens: &self.words.lens, knowledge, around: &around, patience };
        let call = Call::from_event(&self.request.event, reading);
        Seen { call, around }
    }

    fn around(&self) -> CallEnvironment {
        let shown = |path: &Path| path.display().to_string();
        let folder = self.request.event.folder.as_deref().unwrap_or(&self.project.folder);
        let home = self.world.env("HOME").unwrap_or_default();
        let temporary = project::temporary_folders(self.world);
        let transcript = self.request.event.transcript.as_deref().map(shown).unwrap_or_default();
        CallEnvironment::new(&shown(folder), &shown(&self.project.root), &home, &temporary)
            .with_transcript(&transcript)
    }

    /// What the transcript tells beside the event.
    fn told(&self, report: &mut Report) -> Rc<Context> {
        self.of_project(|it| {
            let cursor = cursor_path(it.store, &it.request.event);
            let gathered = it.gather(&cursor, self.words, true, report);
            gathered.cursor.iter().for_each(|bytes| transcript::keep(it.world, &cursor, bytes));
            gathered.context
        })
    }

    /// Asks what a stop asks of the project.
    fn of_project<T>(&self, ask: impl FnOnce(&Stopping<'_>) -> T) -> T {
        let Self { world, request, policy, project, .. } = *self;
        let (store, own) = project::sessions(world, project, &policy.settings);
        let (store, own) = (&store, own.as_path());
        ask(&Stopping { world, request, policy, project, store, own, found: None })
    }

    /// Logs what the guards say, and says it.
    fn answer(&self, guarded: Guarded, report: &mut Report) {
        let masked = |text: &str| cut(&mask(text).0, SPOKEN_CHARS_MAX);
        let answer = &mut report.answer;
        if guarded.decision > answer.decision {
            answer.decision = guarded.decision;
            answer.reason = masked(&guarded.reason);
        }
        let joined = |before: Option<String>, text: &str| {
            let both = before.into_iter().chain([masked(text)]).filter(|it| !it.is_empty());
            let both: Vec<String> = both.collect();
            (!both.is_empty()).then(|| both.join("\n"))
        };
        answer.context = joined(answer.context.take(), &guarded.context);
        answer.notice = joined(answer.notice.take(), &guarded.notice);
        if !matches!(guarded.decision, Decision::Block | Decision::Halt) {
            answer.updated_input.clone_from(&guarded.updated_input);
        }
        if guarded.masks {
            let mut result = self.request.event.tool_response.clone();
            mask_json(&mut result);
            answer.updated_output = Some(result);
        }
        report.around.guarded = Some(guarded);
    }

    /// Logs what guards say and what they said it about; nothing is logged of their silence.
    fn log(
        &self,
        (guarded, seen, elsewhere): (&Guarded, &Seen, &BTreeSet<&str>),
        report: &mut Report,
    ) {
        let Request { event, now, dry_run, .. } = self.request;
        if guarded.verdicts.is_empty() || (*dry_run && !project::debug(self.world)) {
            return;
        }
        let patches: Vec<String> = seen.call.patches.iter().map(|it| it.path.clone()).collect();
        let by = By {
            program: env!("CARGO_PKG_VERSION"),
            pack_hash: self.found.map(pack::Found::short_hash).unwrap_or_default(),
            pack_folder: self.found.and_then(pack::Found::folder),
        };
        let mut called = Called::new(event, (&seen.around, &patches), by, mask_json);
        let said = guarded.verdicts.iter().map(|it| &it.id);
        called.elsewhere = said.filter(|it| elsewhere.contains(it.as_str())).cloned().collect();
        let entry = decision_log::guard_entry(*now, event, &report.around, guarded, called);
        let own = self.project.state.clone();
        if !speech::log_decision(self.world, &own, entry) {
            report.problem(&speech::unlogged(&own));
        }
    }
}
