//! The built-in pack with the rest of amplihack's list, which is an example pack.

use policyd::book;
use policyd::policy::{Policy, builtin, load};
use policyd::source::Source;

thread_local! {
    static COMPLETE: Policy = {
        let mut pack = builtin::pack();
        pack.name = "complete".to_owned();
        let text = moved_checks().to_owned();
        let source = Source { name: "considerations.yaml".to_owned(), text };
        pack.files = vec![("considerations.yaml".to_owned(), source.into())];
        load::load(&pack, &builtin::pack()).policy.unwrap()
    };
}

/// The checks of the example pack.
pub(super) fn moved_checks() -> &'static str {
    let pack = book::example("strict-delivery").unwrap();
    pack.files.iter().find(|it| it.0 == "considerations.yaml").unwrap().1
}

/// The built-in pack with these checks.
pub(super) fn complete_policy() -> Policy {
    COMPLETE.with(Policy::clone)
}
