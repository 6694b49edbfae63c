//! A map of a policy file as several packs write it.

use super::Node;

/// The same map of several packs, the topmost pack first. Each key is taken from the topmost map that has it.
#[derive(Debug, Clone)]
pub struct LayeredMap<'n>(Vec<&'n Node>);

impl<'n> LayeredMap<'n> {
    /// Returns the value of a key. `None` if the key is absent or has no value in all maps.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&'n Node> {
        self.0.iter().find_map(|map| map.get(key))
    }

    /// Returns the maps below a key.
    #[must_use]
    pub fn section(&self, key: &str) -> Self {
        self.0.iter().filter_map(|map| map.get(key)).collect()
    }
}

impl<'n> FromIterator<&'n Node> for LayeredMap<'n> {
    fn from_iter<I: IntoIterator<Item = &'n Node>>(maps: I) -> Self {
        Self(maps.into_iter().collect())
    }
}
