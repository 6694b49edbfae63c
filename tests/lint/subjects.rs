//! Packs made of texts, and what lint finds in them.

use std::sync::Arc;

use policyd::lint::{self, Profile, Reviewed, Subject};
use policyd::policy::builtin;
use policyd::policy::load::{self, Base, Pack};
use policyd::source::Source;
use policyd::time::Timestamp;

/// The day on which these packs are looked at.
pub(crate) const TODAY: &str = "2026-11-21T12:00:00Z";

thread_local! {
    static BASE: Base = Base::new(&builtin::pack());
}

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
    look_at(&pack(files), profile, true)
}

/// What lint finds in a pack, with or without its ignores.
pub(crate) fn look_at(pack: &Pack, profile: Profile, ignores: bool) -> Reviewed {
    let now = Timestamp::parse(TODAY).unwrap();
    BASE.with(|base| {
        let reviewed = load::review(pack, base);
        lint::review(&Subject::new(pack, &reviewed, now), profile, ignores)
    })
}

/// A consideration with these lines below its fixed keys.
pub(crate) fn consideration(id: &str, lines: &str) -> String {
    format!(
        "- id: {id}\n  category: Own\n  question: Is {id} done?\n  severity: warning\n{lines}\n"
    )
}
