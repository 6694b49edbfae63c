//! Answers that may be used again, kept per session: a stop that repeats asks a model or a slow
//! program once, and looks for a preference once where it says so. A cache: it is written without
//! fsync, and whatever is odd in it is no answer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::checksum::checksum;
use crate::limits::ANSWERS_BYTES_MAX;
use crate::policy::{Preference, Probe};
use crate::script::context::Reading;
use crate::time::Timestamp;
use crate::world::World;

/// Name of the file in a session's folder.
const FILE: &str = "answers.json";

/// The answers kept of one session.
#[derive(Debug)]
pub struct Answers {
    path: PathBuf,
    kept: Kept,
    changed: bool,
}

/// What the file holds.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Kept {
    probes: BTreeMap<String, Answer>,
    preferences: BTreeMap<String, Found>,
}

/// Whether a preference was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Found {
    /// What was looked for, as a checksum.
    asked: String,
    found: bool,
}

/// The newest answer of one probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Answer {
    /// What was asked, as a checksum.
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
        Self { path: session_folder.join(FILE), kept: Kept::default(), changed: false }
    }

    /// Reads what is kept in the folder of a session.
    #[must_use]
    pub fn load(world: &dyn World, session_folder: &Path) -> Self {
        let empty = Self::none(session_folder);
        let bytes = world.read(&empty.path, ANSWERS_BYTES_MAX).unwrap_or_default();
        Self { kept: serde_json::from_slice(&bytes).unwrap_or_default(), ..empty }
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
            self.kept.preferences.insert(it.id.clone(), Found { asked: sought(it), found });
            self.changed = true;
        }
    }

    /// The answer to the same question, if it is not older than the probe allows.
    #[must_use]
    pub fn find(&self, probe: &Probe, asked: &str, now: Timestamp) -> Option<Reading> {
        let kept = self.kept.probes.get(&probe.id).filter(|it| it.asked == asked)?;
        let age = now.millis().checked_sub(kept.at).and_then(|it| u64::try_from(it).ok())?;
        let fresh = Duration::from_millis(age) < probe.cache?;
        fresh.then(|| Reading::Answer { code: kept.code, value: kept.value.clone() })
    }

    /// Keeps an answer; a failure is asked again.
    pub fn keep(&mut self, probe: &Probe, asked: &str, now: Timestamp, reading: &Reading) {
        if let (Some(_), Reading::Answer { code, value }) = (probe.cache, reading) {
            let (asked, value) = (asked.to_owned(), value.clone());
            let answer = Answer { asked, at: now.millis(), code: *code, value };
            self.kept.probes.insert(probe.id.clone(), answer);
            self.changed = true;
        }
    }

    /// Writes them where one was added; the folder of the session is there. A refusal only costs
    /// the next stop time.
    pub fn save(&self, world: &dyn World) {
        if self.changed
            && let Ok(bytes) = serde_json::to_vec(&self.kept)
            && bytes.len() <= ANSWERS_BYTES_MAX
        {
            let _refused = world.write(&self.path, &bytes);
        }
    }
}

/// What is asked of a probe: its command and how it is read, its folder, the branch there, and its
/// standard input.
#[must_use]
pub fn question(probe: &Probe, (folder, branch): (&Path, &str), stdin: &str) -> String {
    let (folder, parse) = (folder.to_string_lossy(), format!("{:?}", probe.parse));
    let mut parts: Vec<&[u8]> = probe.command.iter().map(|it| it.as_bytes()).collect();
    parts.extend([parse.as_bytes(), folder.as_bytes(), branch.as_bytes(), stdin.as_bytes()]);
    hex(&parts)
}

/// What a preference looks for.
fn sought(it: &Preference) -> String {
    hex(&it.files.iter().chain(&it.regexes).map(|it| it.as_bytes()).collect::<Vec<_>>())
}

fn hex(parts: &[&[u8]]) -> String {
    checksum(parts).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Parse;
    use crate::world::fake::FakeWorld;

    fn judge() -> Probe {
        Probe {
            id: "judge".to_owned(),
            enabled: true,
            command: vec!["claude".to_owned(), "-p".to_owned()],
            stdin: String::new(),
            timeout: Duration::from_secs(30),
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
        let asked = question(&judge, (folder, "main"), "is it done?");
        let at = |seconds: i64| Timestamp::from_millis(1_700_000_000_000 + seconds * 1000);
        let answer = Reading::Answer { code: 0, value: serde_json::json!({"a": "SATISFIED"}) };
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
            question(&judge, (folder, "main"), "more?"),
            question(&judge, (folder, "feat/x"), "is it done?"),
            question(&text, (folder, "main"), "is it done?"),
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
    fn failures_and_odd_files_are_no_answers() {
        let (world, judge) = (FakeWorld::new(), judge());
        let folder = Path::new("/s");
        let mut answers = Answers::load(&world, folder);
        answers.keep(&judge, "q", Timestamp::default(), &Reading::Failed("no".to_owned()));
        answers.save(&world);
        assert!(world.get(folder.join(FILE)).is_none(), "nothing was written");
        for odd in [&b"{"[..], b"[]", br#"{"judge": 3}"#, &[0xff; 40]] {
            world.put(folder.join(FILE), odd);
            assert_eq!(Answers::load(&world, folder).kept, Kept::default());
        }
    }
}
