//! The entries of a project's decision logs, newest first. Only the end of a log is read that a search needs.

use std::iter::Peekable;
use std::path::PathBuf;

use super::recorded::log_paths;
use crate::error::AppError;
use crate::workspace::project::Project;
use policyd_policy::Policy;
use policyd_record::decision_log::Entry;
use policyd_store::log_tail::NewestLines;
use policyd_world::World;

/// The decision logs of a project.
pub struct DecisionLogs<'a> {
    world: &'a dyn World,
    paths: Vec<PathBuf>,
}

/// Which entry is searched for.
#[derive(Debug, Clone, Copy, Default)]
pub struct EntryQuery<'a> {
    /// Beginning of its id; without it, the newest entry of an evaluation.
    pub id: Option<&'a str>,
    /// Beginning of the id of its session; `None` for all sessions.
    pub session: Option<&'a str>,
    /// Whether only decisions about stops count: entries with inputs.
    pub stops_only: bool,
}

/// An entry of the decision log.
#[derive(Debug)]
pub struct FoundEntry {
    pub entry: Entry,
    /// Number of newer entries at which nothing was evaluated; 0 for an entry that was asked for by its id.
    pub skipped: usize,
}

impl<'a> DecisionLogs<'a> {
    /// Returns the decision logs of the project; `policy` may keep them elsewhere.
    #[must_use]
    pub fn of(world: &'a dyn World, project: &Project, policy: Option<&Policy>) -> Self {
        Self { world, paths: log_paths(world, project, policy) }
    }

    /// Returns all entries, newest first: those of one log in the order of their lines, those of several logs merged by
    /// their times.
    pub fn newest_first(&self) -> impl Iterator<Item = Entry> + use<'a> {
        self.newest_with("")
    }

    /// Returns at least the entries whose lines contain a text, newest first.
    fn newest_with(&self, text: &str) -> impl Iterator<Item = Entry> + use<'a> {
        let logs = self.paths.iter().map(|path| {
            let (lines, text) = (NewestLines::of(self.world, path), LineText::of(text));
            let entries: LogEntries<'a> = Box::new(
                lines.filter(move |it| text.may_be_in(it)).filter_map(|it| Entry::parse(&it)),
            );
            entries.peekable()
        });
        MergedEntries { logs: logs.collect() }
    }

    /// Finds an entry.
    ///
    /// # Errors
    /// Nothing is logged, no entry fits, or several ids begin with the id.
    pub fn find(&self, query: EntryQuery<'_>) -> Result<FoundEntry, AppError> {
        match query.id {
            Some(id) => self.find_by_id(id, query),
            None => self.find_newest(query),
        }
    }

    fn find_newest(&self, query: EntryQuery<'_>) -> Result<FoundEntry, AppError> {
        let (mut skipped, mut newest) = (0_usize, None);
        for entry in self.entries(query.session.unwrap_or_default(), query) {
            if entry.is_evaluated() {
                return Ok(FoundEntry { entry, skipped });
            }
            skipped = skipped.saturating_add(1);
            newest.get_or_insert(entry);
        }
        Err(self.missing(newest.as_ref(), query))
    }

    fn find_by_id(&self, id: &str, query: EntryQuery<'_>) -> Result<FoundEntry, AppError> {
        let (mut ids, mut newest) = (Vec::new(), None);
        for entry in self.entries(id, query).filter(|it| it.id.starts_with(id)) {
            ids.push(entry.id.clone());
            newest.get_or_insert(entry);
        }
        if ids.iter().any(|it| Some(it) != ids.first()) {
            ids.reverse();
            return Err(AppError::usage(format!(
                "ambiguous decision id `{id}`\n{}",
                ids.join("\n")
            )));
        }
        newest
            .map(|entry| FoundEntry { entry, skipped: 0 })
            .ok_or_else(|| self.missing(None, query))
    }

    /// Returns the entries of the sessions of a query, newest first; their lines contain `text`.
    fn entries<'q>(
        &self,
        text: &str,
        query: EntryQuery<'q>,
    ) -> impl Iterator<Item = Entry> + use<'a, 'q> {
        let EntryQuery { session, stops_only, .. } = query;
        self.newest_with(text)
            .filter(move |it| !stops_only || it.inputs.is_some())
            .filter(move |it| session.is_none_or(|id| it.session_id.starts_with(id)))
    }

    /// Why no entry was found; `newest` is an entry at which nothing was evaluated.
    fn missing(&self, newest: Option<&Entry>, query: EntryQuery<'_>) -> AppError {
        let EntryQuery { id, session, stops_only } = query;
        let all = EntryQuery { stops_only, ..EntryQuery::default() };
        if newest.is_none() && self.entries("", all).next().is_none() {
            let text = "no decision of this project is logged yet";
            return AppError::failed_as(text);
        }
        let of_session = session.map(|it| format!(" of a session `{it}`")).unwrap_or_default();
        let Some(Entry { id: newest, event, .. }) = newest else {
            let named = id.map_or(of_session, |it| format!(" `{it}`"));
            return AppError::failed_as(format!(
                "no decision{named} is logged; `policyd log` lists them with their ids"
            ));
        };
        AppError::failed_as(format!(
            "no evaluated decision{of_session} is logged: nothing was evaluated at the newest entry, \
             `{newest}` ({event})\nhelp: run `policyd explain {newest}` to see that entry, or `policyd doctor` \
             to see why nothing is evaluated"
        ))
    }
}

/// The entries of one log, newest first.
type LogEntries<'a> = Box<dyn Iterator<Item = Entry> + 'a>;

/// The entries of several logs, newest first.
struct MergedEntries<'a> {
    logs: Vec<Peekable<LogEntries<'a>>>,
}

impl Iterator for MergedEntries<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        if let [log] = self.logs.as_mut_slice() {
            return log.next();
        }
        let times = self.logs.iter_mut().map(|it| it.peek().map(|it| it.timestamp.clone()));
        // Of two logs whose newest entries have the same time, the last one is newer.
        let (newest, _) = times.enumerate().max_by(|(_, one), (_, other)| one.cmp(other))?;
        self.logs.get_mut(newest)?.next()
    }
}

/// A text that the lines of entries contain, so that the other lines are not parsed.
struct LineText {
    /// Empty if a line can contain the text in another form.
    bytes: Vec<u8>,
}

impl LineText {
    fn of(text: &str) -> Self {
        let is_plain = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_');
        let text = if text.bytes().all(is_plain) { text } else { "" };
        Self { bytes: text.as_bytes().to_vec() }
    }

    /// Whether the values of a line may contain the text.
    fn may_be_in(&self, line: &[u8]) -> bool {
        // JSON can write any character as an escape.
        let contains = |text: &[u8]| memchr::memmem::find(line, text).is_some();
        self.bytes.is_empty() || contains(&self.bytes) || contains(b"\\u")
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use policyd_store::log;
    use policyd_store::log_files::rotated;
    use policyd_world::fake::FakeWorld;

    const LOGS: [&str; 2] = ["/work/.policyd/logs/decisions.jsonl", "/state/logs/decisions.jsonl"];

    fn logs(world: &FakeWorld, count: usize) -> DecisionLogs<'_> {
        DecisionLogs { world, paths: LOGS.iter().take(count).map(PathBuf::from).collect() }
    }

    /// An entry of each kind: a stop, a call, a pause, and a line of another program.
    fn line(number: u64) -> String {
        let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let timestamp = format!("2026-01-02T{:02}:{:02}:00Z", number / 60, number % 60);
        let session = ["s1", "s2", "other", "a \u{1}"][usize::try_from(random >> 40).unwrap() % 4];
        let mut entry = json!({"version": 1, "timestamp": timestamp, "event": "stop", "decision": "none",
            "id": format!("{:02x}{number:06x}", random >> 60), "session_id": session, "verdicts": []});
        let padding = usize::try_from(random >> 50).unwrap() % 900;
        match random >> 48 & 3 {
            0 => entry["session_type"] = "DEVELOPMENT".into(),
            1 => entry["guards"] = json!([{"id": "odd", "message": "x".repeat(padding)}]),
            2 => entry["no_opinion"] = "paused".into(),
            _ => return "no entry\n".to_owned(),
        }
        format!("{entry}\n")
    }

    fn put(world: &FakeWorld, log: &str, numbers: impl Iterator<Item = u64>, count: usize) {
        let lines: Vec<u64> = numbers.take(count).collect();
        let files = lines.chunks(count.div_ceil(3).max(1)).rev().enumerate();
        for (age, numbers) in files {
            let name = if age == 0 { PathBuf::from(log) } else { rotated(Path::new(log), age) };
            world.put(name, numbers.iter().map(|it| line(*it)).collect::<String>());
        }
    }

    /// All entries, oldest first, by reading everything.
    fn all(world: &FakeWorld, count: usize) -> Vec<Entry> {
        let lines = LOGS.iter().take(count).flat_map(|it| log::read_all(world, Path::new(it)));
        let entries = lines.filter_map(|it| Entry::parse(it.to_string().as_bytes()));
        let mut all: Vec<Entry> = entries.collect();
        if count > 1 {
            all.sort_by_key(|it| it.timestamp.clone());
        }
        all
    }

    /// What a search over all entries finds: the entry, or the error.
    fn searched(
        entries: &[Entry],
        id: Option<&str>,
        session: Option<&str>,
    ) -> Result<(Entry, usize), String> {
        if entries.is_empty() {
            return Err("no decision of this project is logged".to_owned());
        }
        let fits = |it: &Entry| {
            id.is_none_or(|id| it.id.starts_with(id))
                && session.is_none_or(|id| it.session_id.starts_with(id))
        };
        let mut fitting: Vec<Entry> = entries.iter().filter(|it| fits(it)).cloned().collect();
        let ids: Vec<&str> = fitting.iter().map(|it| it.id.as_str()).collect();
        if id.is_some() && ids.iter().any(|it| Some(it) != ids.first()) {
            return Err(format!(
                "ambiguous decision id `{}`\n{}",
                id.unwrap_or_default(),
                ids.join("\n")
            ));
        }
        match fitting.iter().rposition(|it| id.is_some() || it.is_evaluated()) {
            Some(at) => {
                let skipped = fitting.len() - at - 1;
                Ok((fitting.swap_remove(at), skipped))
            }
            None => Err(match (fitting.last(), id) {
                (Some(newest), _) => format!("`{}` ({})", newest.id, newest.event),
                (None, Some(id)) => format!("no decision `{id}` is logged"),
                (None, None) => {
                    format!("no decision of a session `{}` is logged", session.unwrap_or_default())
                }
            }),
        }
    }

    #[test]
    fn a_search_from_the_end_finds_what_a_search_of_everything_finds() {
        for (count, lengths) in
            [(1, [0, 0]), (1, [1, 0]), (1, [700, 0]), (2, [300, 500]), (2, [0, 40])]
        {
            let world = FakeWorld::new();
            put(&world, LOGS[0], (0..).step_by(2), lengths[0]);
            put(&world, LOGS[1], (0..).map(|it| it * 2 + it % 2), lengths[1]);
            let logs = logs(&world, count);
            let all = all(&world, count);
            assert!(logs.newest_first().eq(all.iter().rev().cloned()), "{lengths:?}");
            let ids: Vec<&str> = all.iter().rev().map(|it| it.id.as_str()).step_by(60).collect();
            let beginnings = ids.iter().flat_map(|it| [Some(*it), it.get(..2), it.get(..5)]);
            for id in beginnings.chain([None, Some(""), Some("no such"), Some("zz")]) {
                for session in [None, Some("s1"), Some("s"), Some("a \u{1}"), Some("no-such")] {
                    let query = EntryQuery { id, session, stops_only: false };
                    match (logs.find(query), searched(&all, id, session)) {
                        (Ok(found), Ok((entry, skipped))) => {
                            assert_eq!((found.entry, found.skipped), (entry, skipped), "{query:?}");
                        }
                        (Err(error), Err(text)) => {
                            assert!(
                                error.to_string().contains(&text),
                                "{query:?}: {error}: {text}"
                            );
                        }
                        other => panic!("{query:?}: {other:?}"),
                    }
                }
            }
        }
    }

    #[test]
    fn the_newest_entry_of_a_long_log_needs_its_end_only() {
        let read = |count| {
            let world = FakeWorld::new();
            put(&world, LOGS[0], 0.., count);
            world.clear_log();
            assert!(logs(&world, 1).find(EntryQuery::default()).is_ok());
            world.bytes_read()
        };
        let (short, long) = (read(3_000), read(40_000));
        assert!(short == long && long <= 64 * 1024, "{short} and {long} bytes");
    }
}
