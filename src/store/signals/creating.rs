//! A signal is created: as a file of its own, or as a line of a log.

use serde_json::{Map, Value};

use super::found::id_of;
use super::{FOLDER, SignalStore, StoredSignal, View, file_names};
use crate::{decision_log, log};
use policyd_base::limits::SIGNAL_FILE_BYTES_MAX;
use policyd_policy::signals::SignalStorage;
use policyd_record::mask::{mask, mask_json};
use policyd_record::notice::{Notice, NoticeKind};
use policyd_state::signal::{Signal, SignalPhase};
use policyd_world::WorldError;
use policyd_yaml::time::Timestamp;

/// A signal that is to be created.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    /// Name of the signal.
    pub name: String,
    /// Fields of the signal.
    pub fields: Map<String, Value>,
    /// Sender. Can be empty.
    pub sender: String,
    /// Id of the request that it answers; may be empty.
    pub request: String,
    /// From when on it is void, where not as its kind says.
    pub expires: Option<Timestamp>,
    /// Whether the user of this machine gives it, so that an approval counts.
    pub by_user: bool,
}

impl SignalStore<'_> {
    /// Creates a signal. A log gets another line; no existing file is overwritten.
    ///
    /// # Errors
    /// The lock was not free, or the signal was not written.
    pub fn emit(&self, draft: &Draft, now: Timestamp) -> Result<StoredSignal, WorldError> {
        let open = self.open(now)?;
        self.create(&open.view, draft, now)
    }

    /// Creates a signal unless one of its name waits already.
    ///
    /// # Errors
    /// As [`SignalStore::emit`].
    pub fn emit_once(
        &self,
        draft: &Draft,
        now: Timestamp,
    ) -> Result<Option<StoredSignal>, WorldError> {
        let open = self.open(now)?;
        if open.view.signals.iter().any(|it| it.name == draft.name && !it.signal.is_over(now)) {
            return Ok(None);
        }
        self.create(&open.view, draft, now).map(Some)
    }

    pub(super) fn create(
        &self,
        view: &View,
        draft: &Draft,
        now: Timestamp,
    ) -> Result<StoredSignal, WorldError> {
        let kind = self.kinds.kind(&draft.name);
        // Whatever the fields come from, no secret of them is stored or shared.
        let mut fields = Value::Object(draft.fields.clone());
        mask_json(&mut fields);
        let text = fields.to_string();
        let fields = fields.as_object().cloned().unwrap_or_default();
        let sender = mask(&draft.sender).0.into_owned();
        let process = self.world.process_id().to_le_bytes();
        // A clock that went back must not make the same id again.
        let elapsed = self.world.elapsed().as_nanos().to_le_bytes();
        let id = (0_u64..).map(|salt| {
            let parts = [
                draft.name.as_bytes(),
                text.as_bytes(),
                draft.sender.as_bytes(),
                &now.millis().to_le_bytes(),
                &process,
                &elapsed,
                &salt.to_le_bytes(),
            ];
            id_of(&parts)
        });
        let id = id.into_iter().find(|id| view.signals.iter().all(|it| it.id != *id));
        let file = file_names::plain(&draft.name);
        let mut made = StoredSignal {
            id: id.unwrap_or_default(),
            name: draft.name.clone(),
            sender,
            request: draft.request.clone(),
            fields,
            signal: Signal {
                phase: SignalPhase::Pending,
                created: now,
                expires: draft.expires.or_else(|| kind?.expires.map(|it| now.plus(it))),
                answer_by: kind.and_then(|it| it.answer_within).map(|it| now.plus(it)),
                late_since: None,
            },
            note: String::new(),
            foreign: false,
            file,
        };
        if kind.is_some_and(|it| it.form == SignalStorage::Log) {
            let path = self.folder().join(&made.file);
            if !log::append(self.world, &path, &[made.to_json()]) {
                return Err(WorldError::Io("the log could not be written".to_owned()));
            }
            self.sync(&path)?;
            return Ok(made);
        }
        if self.world.stat(&self.folder().join(&made.file)) != Err(WorldError::NotFound) {
            made.file = file_names::further(&made.name, &made.id);
        }
        if draft.by_user && kind.is_some_and(|it| !it.approves.is_empty()) {
            let recorded = self.choices.change(|it| it.add_approval(&made.id));
            recorded.map_err(|error| WorldError::Io(error.to_string()))?;
        }
        let text = format!("{:#}\n", made.to_json());
        if text.len() > SIGNAL_FILE_BYTES_MAX {
            return Err(WorldError::TooLarge(text.len() as u64));
        }
        self.share(&made, now)?;
        self.documents.save(&format!("{FOLDER}/{}", made.file), &text)?;
        if kind.is_some_and(|it| it.awaits_human(self.kinds)) {
            let notice = Notice::of_signal(&made.id, &made.name, made.message());
            let root = &self.documents.root;
            // The question is asked even if the log cannot be written.
            let _unlogged =
                decision_log::notify(self.world, root, NoticeKind::SignalRequest, notice);
        }
        Ok(made)
    }
}
