//! Switches of the stop gate that checks claims: all of it, or single checks.

use serde::{Deserialize, Serialize};

/// What is switched off.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Switched {
    /// Why nothing would be judged; nothing where something would be.
    pub off: Option<String>,
    /// Checks that a switch of their own turns off.
    pub without: Vec<String>,
}

impl Switched {
    /// Describes the switches that are off here and were not off `before`.
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
        let without = |ids: &[&str]| Switched {
            without: ids.iter().map(|it| (*it).to_owned()).collect(),
            ..Switched::default()
        };
        let off = Switched { off: Some("paused".to_owned()), ..Switched::default() };
        for (now, before, more) in [
            (Switched::default(), Switched::default(), None),
            (off.clone(), Switched::default(), Some("paused")),
            (off.clone(), off.clone(), None),
            (Switched::default(), off.clone(), None),
            (without(&["a"]), without(&["a", "b"]), None),
            (without(&["a", "b"]), without(&["a"]), Some("the check `b` is switched off")),
            (without(&["a"]), off, Some("the check `a` is switched off")),
        ] {
            assert_eq!(now.more_than(&before).as_deref(), more, "{now:?} {before:?}");
        }
    }
}
