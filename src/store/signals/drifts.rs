//! Drifts that other programs append to a log of signals. A line has an effect once: its position is saved in the
//! ledger together with the drift, and the drift is removed when its effect is done.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::appended_drift::AppendedDrift;
use super::follow_up::{FollowUpHandler, FollowUpResult, SignalFollowUp};
use super::found::is_id;
use super::{LockedSignals, SignalStore};
use policyd_base::limits::{DRIFTS_AT_ONCE_MAX, DRIFTS_READ_BYTES_MAX};
use policyd_policy::signals::SignalStorage;
use policyd_world::WorldError;
use policyd_yaml::time::Timestamp;

/// Longest duration of the effects of the drifts of one pass; then another process tries again.
const EFFECT_LEASE: Duration = Duration::from_secs(60);

impl SignalStore<'_> {
    /// The logs of signals that are not links, with their names.
    pub(super) fn logs(&self) -> impl Iterator<Item = (&str, PathBuf)> {
        let logs = self.kinds.kinds.iter().filter(|it| it.form == SignalStorage::Log);
        let logs = logs.map(|it| (it.id.as_str(), self.folder().join(&it.id)));
        logs.filter(|(_, path)| !self.world.entry(path).is_ok_and(|it| it.link.is_some()))
    }

    /// Returns whether a log has grown, or a drift waits for its effect.
    #[must_use]
    pub fn has_new_drifts(&self) -> bool {
        if !self.exists() {
            return false;
        }
        let lengths = self.logs().filter_map(|(id, path)| {
            Some((id, self.world.stat(&path).ok()?.length)).filter(|it| it.1 > 0)
        });
        let lengths: Vec<_> = lengths.collect();
        // A ledger that cannot be read is reported where a session begins.
        let Some(ledger) = (!lengths.is_empty()).then(|| self.ledger().ok()).flatten() else {
            return false;
        };
        let is_read = |(id, length): &(&str, u64)| {
            ledger.drifts_read.get(*id).is_some_and(|it| it.offset == *length)
        };
        !ledger.drifts_due.is_empty() || !lengths.iter().all(is_read)
    }

    /// Reads new lines into the ledger, and claims drifts whose effect no process does.
    pub(super) fn claim_drifts(
        &self,
        open: &mut LockedSignals,
        now: Timestamp,
    ) -> Result<Vec<AppendedDrift>, WorldError> {
        let before = open.ledger.clone();
        if open.ledger.drifts_due.is_empty() {
            let logs: Vec<_> = self.logs().map(|(id, path)| (id.to_owned(), path)).collect();
            for (id, path) in logs {
                self.read_drifts(open, &id, &path, now)?;
            }
        }
        let is_free = |it: &&mut AppendedDrift| it.until.is_none_or(|it| it <= now);
        let mut claimed = Vec::new();
        for it in open.ledger.drifts_due.iter_mut().filter(is_free).take(DRIFTS_AT_ONCE_MAX) {
            it.until = Some(now.plus(EFFECT_LEASE));
            claimed.push(it.clone());
        }
        if open.ledger != before {
            self.save(&open.ledger)?;
        }
        Ok(claimed)
    }

    fn read_drifts(
        &self,
        open: &mut LockedSignals,
        id: &str,
        path: &std::path::Path,
        now: Timestamp,
    ) -> Result<(), WorldError> {
        let from = open.ledger.drifts_from.filter(|it| *it <= now);
        let position = open.ledger.drifts_read.get(id).cloned().unwrap_or_default();
        let mut lines = Vec::new();
        let mut reached = position.clone();
        for (mut file, start) in position.open_new(self.world, path)? {
            let chunk = file.chunk(&start, DRIFTS_READ_BYTES_MAX)?;
            lines.extend(super::counted_lines(&chunk.bytes, from));
            reached = chunk.end;
            if !chunk.is_last {
                break;
            }
        }
        if reached == position {
            return Ok(());
        }
        let all = self.drifts_since(from);
        let task = |it: &Value| it.get("task_id").cloned();
        for (at, line) in lines.iter().enumerate() {
            let later = lines.get(at.saturating_add(1)..).unwrap_or_default();
            let own = line.get("id").and_then(Value::as_str).is_some_and(is_id);
            let Some(fields) = line.as_object().filter(|_| !own) else { continue };
            let same = |it: &&Value| task(it) == task(line);
            let count = |all: usize, later: usize| {
                u32::try_from(all.saturating_sub(later).max(1)).unwrap_or(u32::MAX)
            };
            open.ledger.drifts_due.push(AppendedDrift {
                name: id.to_owned(),
                fields: fields.clone(),
                in_task: count(all.iter().filter(same).count(), later.iter().filter(same).count()),
                total: count(all.len(), later.len()),
                until: None,
            });
        }
        open.ledger.drifts_read.insert(id.to_owned(), reached);
        Ok(())
    }

    /// Does the effects of claimed drifts. A drift whose effect failed waits for the next process.
    pub(super) fn follow_drifts(
        &self,
        claimed: Vec<AppendedDrift>,
        done: &mut FollowUpResult,
        act: &mut FollowUpHandler<'_>,
        now: Timestamp,
    ) -> Result<(), WorldError> {
        for drift in claimed {
            let follow_up =
                SignalFollowUp::Drift { drift: Box::new(drift.clone()), message: String::new() };
            let failure = act(&follow_up).err();
            let mut open = self.open(now)?;
            let due = &mut open.ledger.drifts_due;
            match failure {
                None => {
                    let place = due.iter().position(|it| it.is(&drift));
                    place.into_iter().for_each(|at| drop(due.remove(at)));
                }
                Some(error) => {
                    due.iter_mut().filter(|it| it.is(&drift)).for_each(|it| it.until = None);
                    done.failed_drifts.push((drift, error.to_string()));
                }
            }
            self.save(&open.ledger)?;
        }
        Ok(())
    }
}
