//! Replays recorded sessions. Sessions are shared out to threads one by one. Their counts add up in any
//! order, so that the report does not depend on the number of threads.

pub mod sessions;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use policyd_base::limits;
use policyd_policy::Policy;
use policyd_replay::tally::Tally;
use policyd_replay::{PolicyPair, Recording, TranscriptInfo};
use policyd_store::transcript;
use policyd_world::World;
use policyd_yaml::time::Timestamp;
use sessions::{FoundSessions, ReplaySession, Transcript};

/// A replay of recorded sessions: what all its threads share.
pub struct ReplayTask<'a> {
    pub world: &'a dyn World,
    pub policy: &'a Policy,
    pub other: Option<&'a Policy>,
    pub oldest: Timestamp,
    pub examples: usize,
    pub scratch: Vec<PathBuf>,
    pub temporary: Vec<String>,
}

impl ReplayTask<'_> {
    /// Replays all sessions; the result does not depend on `jobs`. `advance` receives the size of each
    /// session that was read, in bytes.
    pub fn replay(&self, found: FoundSessions, jobs: usize, advance: &dyn Fn(u64)) -> Tally {
        let mut whole = self.tally();
        whole.reading.unreadable = found.unreadable;
        // The largest first, so that the other threads do not wait for one large session at the end.
        let mut sessions = found.sessions;
        sessions.sort_by_key(|it| std::cmp::Reverse(it.bytes()));
        let next = AtomicUsize::new(0);
        let (sender, receiver) = mpsc::channel();
        let work = |sender: mpsc::Sender<News>| {
            // Facts and expressions are of one thread; each prepares its own.
            let mut panel = PolicyPair::new(self.policy, self.other);
            let mut part = self.tally();
            while let Some(session) = sessions.get(next.fetch_add(1, Ordering::Relaxed)) {
                part.merge(self.session(session, &mut panel));
                // The receiver is dropped only if the whole replay ends early.
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
                    News::Read(bytes) => advance(bytes),
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
    fn session(&self, session: &ReplaySession, panel: &mut PolicyPair<'_>) -> Tally {
        let mut tally = self.tally();
        for it in &session.transcripts {
            self.transcript(session, it, panel, &mut tally);
        }
        tally.end_session();
        tally
    }

    fn transcript(
        &self,
        session: &ReplaySession,
        it: &Transcript,
        panel: &mut PolicyPair<'_>,
        tally: &mut Tally,
    ) {
        let about = TranscriptInfo {
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
            // The part that was read counts. An unreadable end is not a stop.
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
