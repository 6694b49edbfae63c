//! Answers that may be used again, kept per session: a stop that repeats asks a model or a slow
//! program once, and looks for a preference once where it says so. A cache: it is written without
//! fsync, and unreadable content counts as absent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use policyd_base::limits::{ANSWERS_BYTES_MAX, ANSWERS_KEPT_MAX};
use policyd_fact_table::context::ProbeResult;
use policyd_fact_table::reply;
use policyd_policy::{Parse, Preference, Probe};
use policyd_record::mask::mask_json;
use policyd_world::World;
use policyd_yaml::checksum::{self, checksum};
use policyd_yaml::time::Timestamp;

/// Name of the file in a session's folder.
const FILE: &str = "answers.json";

/// The answers kept of one session.
#[derive(Debug)]
pub struct Answers {
    path: PathBuf,
    kept: CachedResults,
    /// New results of this process. Saving merges them with the results that other processes saved.
    added: CachedResults,
}

/// Content of the file.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct CachedResults {
    /// The newest answers of each probe, newest last: a session's agents ask different things.
    probes: BTreeMap<String, Vec<CachedProbeResult>>,
    preferences: BTreeMap<String, CachedPreference>,
}

impl CachedResults {
    fn read(world: &dyn World, path: &Path) -> Self {
        let bytes = world.read(path, ANSWERS_BYTES_MAX).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }
}

/// Whether a preference was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CachedPreference {
    /// Checksum of the files and regexes of the preference.
    asked: String,
    found: bool,
}

/// One answer of a probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct CachedProbeResult {
    /// Checksum of the probe call, see [`question`].
    asked: String,
    /// When, in milliseconds since 1970.
    at: i64,
    code: i32,
    value: Value,
}

impl Answers {
    /// No answers yet, of the session with that folder.
    #[must_use]
    pub fn none(session_folder: &Path) -> Self {
        Self {
            path: session_folder.join(FILE),
            kept: CachedResults::default(),
            added: CachedResults::default(),
        }
    }

    /// Reads what is kept in the folder of a session.
    #[must_use]
    pub fn load(world: &dyn World, session_folder: &Path) -> Self {
        let empty = Self::none(session_folder);
        Self { kept: CachedResults::read(world, &empty.path), ..empty }
    }

    /// Whether a preference was found before; nothing where it is looked for at each stop.
    #[must_use]
    pub fn preference(&self, it: &Preference) -> Option<bool> {
        let known = self.kept.preferences.get(&it.id).filter(|_| it.once)?;
        (known.asked == sought(it)).then_some(known.found)
    }

    /// Keeps whether a preference was found.
    pub fn keep_preference(&mut self, it: &Preference, found: bool) {
        if it.once && self.preference(it) != Some(found) {
            let found = CachedPreference { asked: sought(it), found };
            self.kept.preferences.insert(it.id.clone(), found.clone());
            self.added.preferences.insert(it.id.clone(), found);
        }
    }

    /// The answer to the same question, if it is not older than the probe allows.
    #[must_use]
    pub fn find(&self, probe: &Probe, asked: &str, now: Timestamp) -> Option<ProbeResult> {
        let kept = self.kept.probes.get(&probe.id)?.iter().rfind(|it| it.asked == asked)?;
        let age = now.millis().checked_sub(kept.at).and_then(|it| u64::try_from(it).ok())?;
        let fresh = Duration::from_millis(age) < probe.cache?;
        fresh.then(|| ProbeResult::Answer { code: kept.code, value: kept.value.clone() })
    }

    /// Keeps an answer; a failure is asked again, and so is a reply that decides nothing.
    pub fn keep(&mut self, probe: &Probe, asked: &str, now: Timestamp, reading: &ProbeResult) {
        let decides = |value: &Value| probe.parse != Parse::Reply || reply::decides(value);
        if let (Some(_), ProbeResult::Answer { code, value }) = (probe.cache, reading)
            && decides(value)
        {
            let (asked, mut value) = (asked.to_owned(), value.clone());
            mask_json(&mut value);
            let answer = CachedProbeResult { asked, at: now.millis(), code: *code, value };
            self.added.probes.entry(probe.id.clone()).or_default().push(answer);
        }
    }

    /// Writes what was added to what others kept meanwhile. At a stop the session is locked; two tool calls at one time
    /// can lose an answer, which is then asked again. A refusal only costs the next event time.
    pub fn save(self, world: &dyn World) {
        if self.added == CachedResults::default() {
            return;
        }
        // The first tool call of a session comes before its folder.
        let folder = self.path.parent().map(|it| world.create_folder(it));
        if folder.is_some_and(|it| it.is_err()) {
            return;
        }
        let mut kept = CachedResults::read(world, &self.path);
        for (id, added) in self.added.probes {
            let known = kept.probes.entry(id).or_default();
            known.retain(|it| added.iter().all(|new| new.asked != it.asked));
            known.extend(added);
            known.drain(..known.len().saturating_sub(ANSWERS_KEPT_MAX));
        }
        kept.preferences.extend(self.added.preferences);
        if let Ok(bytes) = serde_json::to_vec(&kept)
            && bytes.len() <= ANSWERS_BYTES_MAX
        {
            let _refused = world.write(&self.path, &bytes);
        }
    }
}

/// Returns the cache key of a probe call: command, format of the output, directory, branch, and
/// standard input.
#[must_use]
pub fn question(probe: &Probe, folder: &Path, branch: &str, stdin: &str) -> String {
    let (folder, parse) = (folder.to_string_lossy(), format!("{:?}", probe.parse));
    let mut parts: Vec<&[u8]> = probe.command.iter().map(|it| it.as_bytes()).collect();
    parts.extend([parse.as_bytes(), folder.as_bytes(), branch.as_bytes(), stdin.as_bytes()]);
    hex(&parts)
}

/// Returns the cache key of a preference: its files and regexes.
fn sought(it: &Preference) -> String {
    hex(&it.files.iter().chain(&it.regexes).map(|it| it.as_bytes()).collect::<Vec<_>>())
}

fn hex(parts: &[&[u8]]) -> String {
    checksum::hex(&checksum(parts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_world::fake::FakeWorld;

    fn judge() -> Probe {
        Probe {
            id: "judge".to_owned(),
            enabled: true,
            command: vec!["claude".to_owned(), "-p".to_owned()],
            stdin: String::new(),
            timeout: Duration::from_secs(30),
            at: Vec::new(),
            answers: Vec::new(),
            parse: Parse::Reply,
            cache: Some(Duration::from_secs(60)),
            breaker: "probe/judge".to_owned(),
            missing: String::new(),
            cures: Vec::new(),
        }
    }

    #[test]
    fn the_same_question_is_answered_from_memory_for_a_while() {
        let (world, judge) = (FakeWorld::new(), judge());
        let folder = Path::new("/w/.policyd/sessions/s");
        let asked = question(&judge, folder, "main", "is it done?");
        let at = |seconds: i64| Timestamp::from_millis(1_700_000_000_000 + seconds * 1000);
        let answer = ProbeResult::Answer { code: 0, value: serde_json::json!({"a": "SATISFIED"}) };
        world.put_folder(folder);
        let mut answers = Answers::load(&world, folder);
        assert_eq!(answers.find(&judge, &asked, at(0)), None);
        answers.keep(&judge, &asked, at(0), &answer);
        answers.save(&world);
        let answers = Answers::load(&world, folder);
        assert_eq!(answers.find(&judge, &asked, at(59)), Some(answer));
        assert_eq!(answers.find(&judge, &asked, at(60)), None, "too old");
        assert_eq!(answers.find(&judge, &asked, at(-1)), None, "a clock that went back");
        let text = Probe { parse: Parse::Text, ..judge.clone() };
        for other in [
            question(&judge, folder, "main", "more?"),
            question(&judge, folder, "feat/x", "is it done?"),
            question(&text, folder, "main", "is it done?"),
        ] {
            assert_eq!(answers.find(&judge, &other, at(1)), None);
        }
        assert_eq!(answers.find(&Probe { cache: None, ..judge }, &asked, at(1)), None);
    }

    #[test]
    fn a_preference_is_kept_where_it_says_so() {
        let (world, folder) = (FakeWorld::new(), Path::new("/s"));
        let regexes = vec!["never".to_owned()];
        let once = Preference {
            id: "p".to_owned(),
            value: None,
            files: vec!["a.md".to_owned()],
            regexes,
            once: true,
        };
        let always = Preference { once: false, ..once.clone() };
        world.put_folder(folder);
        let mut answers = Answers::none(folder);
        answers.keep_preference(&always, true);
        assert_eq!((answers.preference(&always), answers.preference(&once)), (None, None));
        answers.keep_preference(&once, true);
        answers.save(&world);
        let answers = Answers::load(&world, folder);
        assert_eq!(answers.preference(&once), Some(true));
        assert_eq!(answers.preference(&Preference { regexes: vec![], ..once }), None, "it changed");
    }

    #[test]
    fn what_others_kept_meanwhile_stays() {
        let (world, judge, folder) = (FakeWorld::new(), judge(), Path::new("/s"));
        world.put_folder(folder);
        let answer = ProbeResult::Answer { code: 0, value: serde_json::json!({"a": "SATISFIED"}) };
        let (mut one, mut other) = (Answers::load(&world, folder), Answers::load(&world, folder));
        one.keep(&judge, "main", Timestamp::default(), &answer);
        other.keep(&judge, "subagent", Timestamp::default(), &answer);
        one.save(&world);
        other.save(&world);
        let kept = Answers::load(&world, folder);
        for asked in ["main", "subagent"] {
            assert!(kept.find(&judge, asked, Timestamp::default()).is_some(), "{asked}");
        }
        let mut many = Answers::none(folder);
        for number in 0..20 {
            many.keep(&judge, &number.to_string(), Timestamp::default(), &answer);
        }
        many.save(&world);
        let kept = Answers::load(&world, folder).kept.probes["judge"].len();
        assert_eq!(kept, ANSWERS_KEPT_MAX);
    }

    #[test]
    fn failures_and_odd_files_are_no_answers() {
        let (world, judge) = (FakeWorld::new(), judge());
        let folder = Path::new("/s");
        let mut answers = Answers::load(&world, folder);
        answers.keep(&judge, "q", Timestamp::default(), &ProbeResult::Failed("no".to_owned()));
        answers.save(&world);
        assert!(world.get(folder.join(FILE)).is_none(), "nothing was written");
        for odd in [&b"{"[..], b"[]", br#"{"judge": 3}"#, &[0xff; 40]] {
            world.put(folder.join(FILE), odd);
            assert_eq!(Answers::load(&world, folder).kept, CachedResults::default());
        }
    }
}
