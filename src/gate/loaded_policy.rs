//! A pack that is ready to evaluate events: its policy, its vocabulary, and where it was found.

use std::rc::Rc;

use policyd_evaluation::situation::Matchers;
use policyd_packs::FoundPack;
use policyd_policy::Policy;

/// A loaded pack: it evaluates any number of events.
pub struct LoadedPolicy {
    /// The pack without its vocabulary.
    pub policy: Policy,
    /// The vocabulary, by which facts are recognized.
    pub words: Matchers,
    /// Where the pack was found; `None` for a pack that no project has.
    pub found: Option<Rc<FoundPack>>,
}

impl LoadedPolicy {
    /// Prepares a policy.
    pub fn new(mut policy: Policy, found: Option<Rc<FoundPack>>) -> Self {
        let words = Matchers::out_of(&mut policy);
        Self { policy, words, found }
    }
}
