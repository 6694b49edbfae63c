//! A file of a pack, whose name is the first line: lint finds what is wrong with it at places that
//! exist and can be drawn, and what it calls free of errors is a pack that loads.

use std::sync::Arc;

use super::headed;
use policyd::lint::{self, Profile, Subject};
use policyd::policy::builtin;
use policyd::policy::load::{self, Pack};
use policyd::policy::review::{Base, ReviewedPolicy};
use policyd::report::diagnostics::{Style, render_text};
use policyd::source::{Level, Source};
use policyd::time::Timestamp;

thread_local! {
    static BASE: Base = Base::new(&builtin::pack());
}

pub(super) fn run(data: &[u8]) {
    let Some((name, text)) = headed(data) else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let plain = |it: char| it.is_ascii_lowercase() || it == '_';
    if !name.strip_suffix(".yaml").is_some_and(|it| !it.is_empty() && it.chars().all(plain)) {
        return;
    }
    let source = Source { name: format!("pack/{name}"), text: text.to_owned() };
    let pack = Pack {
        name: "pack".to_owned(),
        files: vec![(name.to_owned(), Arc::new(source))],
        ..Pack::default()
    };
    BASE.with(|base| {
        let reviewed = ReviewedPolicy::new(&pack, base);
        let subject = Subject::new(&pack, &reviewed, Timestamp::from_millis(1_767_225_600_000));
        let found = lint::review(&subject, Profile::Pedantic, true).findings;
        let related = found.iter().flat_map(|it| it.related.iter().map(|it| &it.0));
        for span in found.iter().map(|it| &it.span).chain(related) {
            let inside = span.source.text.get(span.start..span.end);
            assert!(inside.is_some(), "{}: {}..{}", span.source.name, span.start, span.end);
        }
        assert!(found.is_empty() || !render_text(&found, Style { color: false }).is_empty());
        if reviewed.diagnostics.iter().all(|it| it.level < Level::Error) {
            let loaded = load::load(&pack, &builtin::pack());
            assert!(loaded.policy.is_some(), "{:?}", loaded.diagnostics);
        }
    });
}
