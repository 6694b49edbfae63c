//! Packs made of texts, and what lint finds in them.

use std::sync::Arc;

use policyd::lint::{self, Profile, Reviewed, Subject};
use policyd::policy::builtin;
use policyd::policy::load::{self, Base, Pack};
use policyd::source::Source;
use policyd::time::Timestamp;

/// The day on which these packs are looked at.
pub(crate) const TODAY: &str = "2026-11-21T12:00:00Z";

/// A pack in `policies/` with these files.
pub(crate) fn pack(files: &[(&str, &str)]) -> Pack {
    let file = |(name, text): &(&str, &str)| {
        let source = Source { name: format!("policies/{name}"), text: (*text).to_owned() };
        ((*name).to_owned(), Arc::new(source))
    };
    Pack { name: "policies".to_owned(), files: files.iter().map(file).collect() }
}

/// What lint finds in a pack.
pub(crate) fn look(files: &[(&str, &str)], profile: Profile) -> Reviewed {
    let pack = pack(files);
    let reviewed = load::review(&pack, &Base::new(&builtin::pack()));
    let now = Timestamp::parse(TODAY).unwrap();
    lint::review(&Subject::new(&pack, &reviewed, now), profile, true)
}
