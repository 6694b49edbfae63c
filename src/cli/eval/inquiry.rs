//! What is read and asked before deciding: the transcript's tail, the files that findings speak
//! of, preferences, probes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::Stopping;
use super::speech::Report;
use crate::cli::project::{self, Project};
use crate::deferred::Deferred;
use crate::facts::Facts;
use crate::facts::compiled::CompiledLens;
use crate::facts::event::Event;
use crate::id::SessionId;
use crate::judge::{self, Plan, preference};
use crate::limits;
use crate::policy::Preference;
use crate::script::Evaluator;
use crate::script::context::{self, Context, Learned, Spoken};
use crate::script::pattern::{TextPattern, TextPatternSource, prose_regex};
use crate::store::answers::Answers;
use crate::store::session::SessionStore;
use crate::store::transcript::{self, Places, Reading};
use crate::world::WorldError;

/// What facts are recognised by, taken out of the policy: the context keeps it.
pub(super) struct Words {
    pub(super) lens: CompiledLens,
    pub(super) texts: BTreeMap<String, Deferred<TextPatternSource>>,
}

impl Stopping<'_> {
    /// Everything that expressions see, the transcript's tail read; and the cursor to keep.
    pub(super) fn context(
        &self,
        cursor_path: &Path,
        words: Words,
        interactive: bool,
        report: &mut Report,
    ) -> (Context, Option<Vec<u8>>) {
        let event = self.request.event.clone();
        let deadline = self.world.elapsed().saturating_add(self.policy.settings.deadline);
        let mut read = match &event.transcript {
            None => Reading {
                problem: Some("the payload names no transcript".to_owned()),
                ..Reading::default()
            },
            Some(transcript) => {
                let subagent = event.subagent_transcript;
                let places = Places { transcript, cursor: Some(cursor_path), subagent };
                transcript::read(self.world, places, &words.lens, self.policy.lens_key, deadline)
            }
        };
        let cursor = read.cursor.take();
        self.drop_foreign(&mut read.facts);
        self.drop_mended(&mut read.facts);
        report.note(format!(
            "transcript: {} bytes read, cursor {}",
            read.bytes_read,
            if read.from_cursor { "used" } else { "not used" }
        ));
        if let Some(problem) = &read.problem {
            report.problem(&format!("{problem}; nothing in it was checked"));
        }
        let said = event.last_message.clone().filter(|it| !it.trim().is_empty());
        let last = || read.facts.messages.last.last().map(|it| it.text.clone());
        let patterns = words.texts.into_iter();
        let context = Context {
            last_message: said.or_else(last).unwrap_or_default(),
            event,
            transcript_problem: read.problem,
            facts: read.facts,
            lens: Rc::new(words.lens),
            interactive,
            project: self.project.root.clone(),
            main_branches: self.policy.main_branches.clone(),
            forge: self.forge(),
            patterns: patterns.map(|(id, it)| (id, TextPattern::new(it))).collect(),
            now: self.request.now,
            learned: RefCell::new(Learned::default()),
            spoken: Spoken::default(),
        };
        (context, cursor)
    }

    /// The forge that the project is published to.
    fn forge(&self) -> String {
        let Some(host) = project::remote_host(self.world, self.project) else {
            return String::new();
        };
        let mut forges = self.policy.forges.iter();
        let found = forges.find(|(_, parts)| parts.iter().any(|it| host.contains(it.as_str())));
        found.map(|(name, _)| name.clone()).unwrap_or_default()
    }

    /// Forgets scratch files: those in temporary folders and in the client's own, unless the
    /// project itself lies there.
    fn drop_foreign(&self, facts: &mut Facts) {
        let Project { folder, root, main } = self.project;
        let said = self.request.event.folder.as_ref();
        let own: Vec<&PathBuf> = [folder, root, main].into_iter().chain(said).collect();
        let home = self.world.env("HOME").map(|it| Path::new(&it).join(".claude"));
        let scratch: Vec<PathBuf> = ["/tmp", "/var/tmp", "/private/tmp"]
            .iter()
            .map(PathBuf::from)
            .chain(self.world.env("TMPDIR").map(PathBuf::from))
            .chain(home)
            .collect();
        let foreign = |path: &str| {
            let path = Path::new(path);
            scratch.iter().any(|it| path.starts_with(it))
                && !own.iter().any(|it| path.starts_with(it))
        };
        facts.files.retain(|it| !foreign(&it.path));
        facts.findings.retain(|it| !foreign(&it.path));
    }

    /// Forgets findings that the file on the disk no longer has: they were mended by a command
    /// (`sed -i`, `rm`) that the transcript does not tell.
    fn drop_mended(&self, facts: &mut Facts) {
        let mut texts: BTreeMap<PathBuf, Result<String, WorldError>> = BTreeMap::new();
        facts.findings.retain(|it| {
            let path = self.project.folder.join(&it.path);
            let text = texts.entry(path.clone()).or_insert_with(|| {
                let bytes = self.world.read(&path, limits::POLICY_FILE_BYTES_MAX)?;
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            });
            match text {
                Ok(text) => text.contains(it.excerpt.as_str()),
                // The file is gone; where its folder is not here either, nothing can be told.
                Err(WorldError::Missing) => {
                    path.parent().is_none_or(|folder| self.world.stat(folder).is_err())
                }
                Err(_) => true,
            }
        });
    }

    /// Looks for preferences and runs probes; the answers are to be saved. `memory`: the folder of
    /// the session.
    pub(super) fn ask(
        &self,
        plan: &Plan,
        (context, evaluator): (&Context, &mut Evaluator),
        memory: &Path,
        report: &mut Report,
    ) -> Answers {
        report.note(format!("session type: {}", plan.session_type));
        if plan.preferences.is_empty() && plan.probes.is_empty() {
            return Answers::none(memory);
        }
        let preferences = self.policy.preferences.iter();
        let preferences: Vec<_> =
            preferences.filter(|it| plan.preferences.contains(&it.id)).collect();
        let probes = self.policy.probes.iter();
        let probes: Vec<_> = probes.filter(|it| plan.probes.contains(&it.id)).collect();
        let remembers = preferences.iter().any(|it| it.once)
            || probes.iter().any(|it| it.enabled && it.cache.is_some());
        let mut answers =
            if remembers { Answers::load(self.world, memory) } else { Answers::none(memory) };
        for it in preferences {
            let found = it.value.or_else(|| answers.preference(it)).or_else(|| {
                let found = self.preference(it, report);
                found.inspect(|found| answers.keep_preference(it, *found))
            });
            let found = found.unwrap_or(false);
            report.note(format!("Preference detected: {} = {found}", it.id));
            report.around.preferences.insert(it.id.clone(), found);
            context.learned.borrow_mut().preferences.insert(it.id.clone(), found);
        }
        let readings = self.readings(&probes, (context, evaluator), &mut answers, report);
        for (id, reading) in &readings {
            report.note(match reading {
                context::Reading::Answer { code, value } => {
                    format!(
                        "probe {id}: exit {code}, {}",
                        judge::message::cut(&value.to_string(), 400)
                    )
                }
                context::Reading::Failed(why) => format!("probe {id} failed: {why}"),
            });
        }
        context.learned.borrow_mut().probes = readings;
        answers
    }

    /// Whether a preference is found; nothing where a file could not be read and none says it.
    fn preference(&self, it: &Preference, report: &mut Report) -> Option<bool> {
        let regexes: Vec<_> = it.regexes.iter().map(|it| prose_regex(it)).collect();
        report.note(format!("Preference pattern: {}", it.regexes.join(" | ")));
        let mut unread = false;
        let found = it.files.iter().any(|file| {
            let path = self.project.root.join(file);
            report.note(format!("Reading {}", path.display()));
            match self.world.read(&path, limits::POLICY_FILE_BYTES_MAX) {
                Ok(bytes) => preference::found(&String::from_utf8_lossy(&bytes), &regexes),
                Err(WorldError::Missing) => false,
                Err(error) => {
                    report.note(format!("WARNING: {}: {error}", path.display()));
                    unread = true;
                    false
                }
            }
        });
        (found || !unread).then_some(found)
    }
}

/// The cursor lies beside the state; a subagent's transcript has its own.
pub(super) fn cursor_path(store: &SessionStore<'_>, event: &Event) -> PathBuf {
    let folder = store.paths(&event.session_id).folder;
    let own = event.agent_id.as_deref().filter(|_| event.kind.name() == "subagent_stop");
    folder.join(match own {
        Some(agent) => format!("cursor-{}.bin", SessionId::sanitise(agent)),
        None => "cursor.bin".to_owned(),
    })
}
