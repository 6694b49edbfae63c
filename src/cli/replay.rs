//! `policyd replay`: judges recorded sessions with a pack. Reads transcripts and writes
//! nothing but the compiled pack.
//! Sessions are shared out to threads one by one. Their counts add up in any order, so that the
//! report is the same however many threads there are.

mod progress;
pub(super) mod sessions;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use super::{
    Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EXIT_USAGE, ReplayArguments, ReportFormat, log,
    pack, project,
};
use crate::limits;
use crate::policy::Policy;
use crate::replay::tally::Tally;
use crate::replay::{About, Panel, Recording};
use crate::report::replay as report;
use crate::source::suggest;
use crate::store::transcript;
use crate::time::Timestamp;
use crate::world::World;
use progress::Progress;
use sessions::{Found, Session, Transcript};

/// Replays and reports.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &ReplayArguments) -> u8 {
    let Some(oldest) = log::oldest(world, arguments.since.as_deref()) else {
        console.complain(log::SINCE_HELP);
        return EXIT_USAGE;
    };
    let named = arguments.policies.as_deref();
    let Some(policy) = pack::sound(world, console, named) else { return EXIT_BROKEN };
    let other = match &arguments.compare {
        None => None,
        Some(folder) => match pack::sound(world, console, Some(folder)) {
            Some(other) => Some(other),
            None => return EXIT_BROKEN,
        },
    };
    if let Some(problem) = unknown_rule(arguments.rule.as_deref(), &policy, other.as_ref()) {
        console.complain(&problem);
        return EXIT_USAGE;
    }
    let found = sessions::find(world, &arguments.paths, oldest);
    let task = Task {
        world,
        policy: &policy,
        other: other.as_ref(),
        oldest,
        examples: arguments.examples,
        scratch: project::scratch_folders(world),
        temporary: project::temporary_folders(world),
    };
    let jobs = arguments.jobs.map_or_else(|| world.cores(), usize::from);
    let mut progress = Progress::new(console.watched && world.env("CI").is_none(), &found.sessions);
    let tally = task.replay(found, jobs, &mut progress);
    progress.end();
    for (file, why) in &tally.reading.unreadable {
        console.complain(&format!("{file}: {why}"));
    }
    if tally.reading.transcripts == 0 {
        console.complain(&nothing(arguments, &tally));
        return EXIT_BROKEN;
    }
    let scope = report::Scope { pack: &policy.name, rule: arguments.rule.as_deref() };
    console.say(&match arguments.format {
        ReportFormat::Json => format!("{:#}\n", report::to_json(&tally, scope)),
        ReportFormat::Text => report::to_text(&tally, scope, console.color()),
    });
    let compared = tally.comparison.as_ref().filter(|_| arguments.fail_on_new_blocks);
    let (stops, calls) =
        compared.map_or((0, 0), |it| (it.newly_blocked.times, it.newly_stopped.times));
    if stops == 0 && calls == 0 {
        return EXIT_OK;
    }
    console.complain(&format!(
        "the other pack is stricter: stops newly blocked: {stops}, tool calls newly blocked \
         or asked about: {calls}"
    ));
    EXIT_FOUND
}

/// What is wrong with `--rule`, if neither pack has such a rule.
fn unknown_rule(wanted: Option<&str>, policy: &Policy, other: Option<&Policy>) -> Option<String> {
    let wanted = wanted?;
    let ids = |it: &'_ Policy| -> Vec<String> {
        let guards = it.guards.rules.iter().map(|it| &it.id);
        it.considerations.iter().map(|it| &it.id).chain(guards).cloned().collect()
    };
    let known: Vec<String> = std::iter::once(policy).chain(other).flat_map(ids).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    if known.contains(&wanted) {
        return None;
    }
    let help = suggest::did_you_mean(wanted, &known);
    let help = help.unwrap_or_else(|| "run `policyd rules` to list the rules".to_owned());
    Some(format!("unknown rule `{wanted}`\nhelp: {help}"))
}

/// Why there is nothing to report.
fn nothing(arguments: &ReplayArguments, tally: &Tally) -> String {
    let paths: Vec<String> = arguments.paths.iter().map(|it| it.display().to_string()).collect();
    let within = arguments.since.as_ref().map_or_else(String::new, |it| format!(" within {it}"));
    let also = match tally.reading.no_transcripts {
        0 => String::new(),
        files => format!(" (files without agent activity: {files})"),
    };
    format!(
        "no transcript found in {}{within}{also}\nhelp: pass `.jsonl` files or a directory \
         of them, such as `~/.claude/projects`",
        paths.join(", ")
    )
}

/// What all threads share.
struct Task<'a> {
    world: &'a dyn World,
    policy: &'a Policy,
    other: Option<&'a Policy>,
    oldest: Timestamp,
    examples: usize,
    scratch: Vec<PathBuf>,
    temporary: Vec<String>,
}

impl Task<'_> {
    /// Replays all sessions; what comes out does not depend on `jobs`.
    fn replay(&self, found: Found, jobs: usize, progress: &mut Progress) -> Tally {
        let mut whole = self.tally();
        whole.reading.unreadable = found.unreadable;
        // The largest first, so that no thread is left alone with one at the end.
        let mut sessions = found.sessions;
        sessions.sort_by_key(|it| std::cmp::Reverse(it.bytes()));
        let next = AtomicUsize::new(0);
        let (sender, receiver) = mpsc::channel();
        let work = |sender: mpsc::Sender<News>| {
            // Facts and expressions are of one thread; each prepares its own.
            let mut panel = Panel::new(self.policy, self.other);
            let mut part = self.tally();
            while let Some(session) = sessions.get(next.fetch_add(1, Ordering::Relaxed)) {
                part.merge(self.session(session, &mut panel));
                // Nobody listens any more only where the whole is given up.
                let _heard = sender.send(News::Read(session.bytes()));
            }
            let _heard = sender.send(News::Done(Box::new(part)));
        };
        std::thread::scope(|scope| {
            let start = |_: &usize| {
                let (sender, work) = (sender.clone(), &work);
                std::thread::Builder::new().spawn_scoped(scope, move || work(sender)).is_ok()
            };
            let started = (0..jobs.min(sessions.len())).filter(start).count();
            if started == 0 {
                // The system grants no thread.
                work(sender.clone());
            }
            drop(sender);
            for news in receiver {
                match news {
                    News::Read(bytes) => progress.advance(bytes),
                    News::Done(part) => whole.merge(*part),
                }
            }
        });
        whole
    }

    fn tally(&self) -> Tally {
        Tally::new(self.policy, self.other, self.examples)
    }

    /// One session: its own transcript, then those of its subagents.
    fn session(&self, session: &Session, panel: &mut Panel<'_>) -> Tally {
        let mut tally = self.tally();
        for it in &session.transcripts {
            self.transcript(session, it, panel, &mut tally);
        }
        tally.end_session();
        tally
    }

    fn transcript(
        &self,
        session: &Session,
        it: &Transcript,
        panel: &mut Panel<'_>,
        tally: &mut Tally,
    ) {
        let about = About {
            path: &it.path,
            session: session.id.clone(),
            agent: it.agent(),
            agent_type: self.agent_type(it),
            home: self.world.env("HOME").unwrap_or_default(),
            temporary: &self.temporary,
            scratch: &self.scratch,
            oldest: self.oldest,
            modified: it.modified,
        };
        let mut recording = Recording::new(panel, about, tally);
        let read = transcript::lines(self.world, &it.path, |piece| recording.take(piece));
        match read {
            Ok(bytes) => {
                recording.finish();
                tally.reading.bytes = tally.reading.bytes.saturating_add(bytes);
            }
            // What was read of it counts; where it ends is no stop.
            Err(error) => {
                drop(recording);
                let file = it.path.display().to_string();
                tally.reading.unreadable.push((file, error.to_string()));
            }
        }
    }

    /// The type of a subagent, from the small file that the client keeps beside its transcript.
    fn agent_type(&self, it: &Transcript) -> Option<String> {
        it.agent()?;
        let path = it.path.with_extension("meta.json");
        let bytes = self.world.read(&path, limits::AGENT_META_BYTES_MAX).ok()?;
        let meta: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
        meta.get("agentType")?.as_str().map(str::to_owned)
    }
}

/// What a thread tells.
enum News {
    /// A session of so many bytes was read.
    Read(u64),
    /// What it counted; there is nothing left.
    Done(Box<Tally>),
}
