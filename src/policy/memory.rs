//! `memory.yaml`: what the rules of a pack remember from one event to the next.

use super::builder::Builder;
use super::field_value::words;
use super::fields::{DESCRIPTION, ENABLED, ID, OVERRIDE};
use super::layers::{Layers, wanted};
use super::record::{record, words};
use policyd_state::memory::{KEPT_MAX, MemoryScope, MemorySettings};
use policyd_yaml::shape::Kind;

pub(super) const FILE: &str = "memory.yaml";

const KEPT: Kind = Kind::Int { min: 1, max: KEPT_MAX as i64 };

words! {
    MemoryScope { Episode = "episode", Session = "session", Day = "day" }
}

record! {
    /// An entry of `memory.yaml`.
    pub(super) const MEMORY: RecordType<MemorySettings> = {
        use ID;
        reset: words::<MemoryScope>() => scope,
            "When it forgets everything: at the next prompt of the user (`episode`), with the `session`, or at the end of \
             the `day`. A `day` belongs to all sessions of the project.";
        expires: Kind::Duration => expires, "For how long a text is remembered; as long as `reset` says, where absent.";
        keep: KEPT => keep, "How many texts it remembers; the oldest goes first.";
        distinct: Kind::Bool => distinct, "Whether equal texts are one.";
        use DESCRIPTION;
        use ENABLED;
        use OVERRIDE;
    }
}

impl Builder<'_> {
    /// Builds the entries of the memory.
    pub(super) fn memory(&mut self, layers: &Layers) -> Vec<(String, MemorySettings)> {
        let entries = wanted(layers.list(FILE), self.own_only).filter(|it| it.is_used());
        entries.map(|it| (it.id.clone(), MEMORY.read(&it.map(), self))).collect()
    }
}
