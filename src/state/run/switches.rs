//! Whether users switched off the stop gate that evaluates claims, or single checks of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Disabled features.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StopGateSwitches {
    /// Why the stop gate evaluates nothing; `null` if it evaluates.
    pub off: Option<String>,
    /// Checks that are switched off one by one.
    pub without: Vec<String>,
}

impl StopGateSwitches {
    /// Describes what is switched off here and was not switched off `before`.
    #[must_use]
    pub fn more_than(&self, before: &Self) -> Option<String> {
        let off = self.off.clone().filter(|_| before.off.is_none());
        let without = || {
            let id = self.without.iter().find(|it| !before.without.contains(it))?;
            Some(format!("the check `{id}` is switched off"))
        };
        off.or_else(without)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_switched_off_beyond_what_was_is_named() {
        let without = |ids: &[&str]| StopGateSwitches {
            without: ids.iter().map(|it| (*it).to_owned()).collect(),
            ..StopGateSwitches::default()
        };
        let off =
            StopGateSwitches { off: Some("paused".to_owned()), ..StopGateSwitches::default() };
        for (now, before, more) in [
            (StopGateSwitches::default(), StopGateSwitches::default(), None),
            (off.clone(), StopGateSwitches::default(), Some("paused")),
            (off.clone(), off.clone(), None),
            (StopGateSwitches::default(), off.clone(), None),
            (without(&["a"]), without(&["a", "b"]), None),
            (without(&["a", "b"]), without(&["a"]), Some("the check `b` is switched off")),
            (without(&["a"]), off, Some("the check `a` is switched off")),
        ] {
            assert_eq!(now.more_than(&before).as_deref(), more, "{now:?} {before:?}");
        }
    }
}
