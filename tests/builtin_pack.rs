//! The built-in pack loads without a complaint.

use policyd::policy::{builtin, load};
use policyd::report::diagnostics;

#[test]
fn the_built_in_pack_has_no_finding() {
    let pack = builtin::pack();
    let loaded = load::load(&pack, &pack);
    assert_eq!(diagnostics::render_compact(&loaded.diagnostics), "");
    let policy = loaded.policy.expect("a sound pack is a policy");
    assert_eq!(policy.considerations.len(), 26, "amplihack's 25 and `compaction_handling`");
    let categories = policy.considerations.iter().map(|it| it.category.as_str());
    assert_eq!(categories.collect::<std::collections::BTreeSet<_>>().len(), 6);
}
