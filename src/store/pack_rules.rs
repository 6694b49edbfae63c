//! The key `packs` of `config.yaml`: which signatures remote packs need, and how they are downloaded. The file of the
//! organization and the file of the user contain it; both count.

use std::path::PathBuf;

use policyd_policy::record;
use policyd_policy::record::entries;
use policyd_yaml::Node;
use policyd_yaml::layered_map::LayeredMap;
use policyd_yaml::shape::Kind;

record! {
    /// Keys of the map `packs`.
    pub const PACK_RULES: RecordType<PackRules> = {
        require_signature: Kind::Bool => require_signature,
            "Whether each remote pack must be signed by one of `keys`.";
        keys: Kind::List(&Kind::Text) => keys, "Accepted public keys of minisign.";
        sources: Kind::Map(&Kind::Text) => sources by entries(),
            "The only accepted key for sources that begin with a prefix. The longest prefix decides.";
        ca_file: Kind::Text => ca_file,
            "File with the accepted certificate authorities in PEM format. Default: those of the machine.";
    }
}

/// The rules about remote packs in one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackRules {
    /// Whether each remote pack must be signed.
    pub require_signature: bool,
    /// Accepted public keys.
    pub keys: Vec<String>,
    /// The only accepted key for sources with a prefix.
    pub sources: Vec<(String, String)>,
    /// File with the accepted certificate authorities.
    pub ca_file: Option<PathBuf>,
}

impl PackRules {
    /// Reads the map `packs` of a configuration. Invalid values do not count; they are reported by others.
    #[must_use]
    pub fn from_node(node: &Node) -> Self {
        PACK_RULES.read_untyped(&LayeredMap::from_iter([node]))
    }

    /// Returns the keys of which one must have signed the pack of a source. `None`: no signature is required.
    #[must_use]
    pub fn required_keys(&self, source: &str) -> Option<Vec<String>> {
        // The host of a source is lowercase.
        let source = source.to_ascii_lowercase();
        let begins = |prefix: &str| source.starts_with(&prefix.to_ascii_lowercase());
        let matching = self.sources.iter().filter(|(prefix, _)| begins(prefix));
        match matching.max_by_key(|(prefix, _)| prefix.len()) {
            Some((_, key)) => Some(vec![key.clone()]),
            None => self.require_signature.then(|| self.keys.clone()),
        }
    }

    /// Whether a key is accepted for a source, also if no signature is required.
    #[must_use]
    pub fn accepts(&self, source: &str, key: &str) -> bool {
        let keys = self.required_keys(source).unwrap_or_else(|| self.keys.clone());
        keys.iter().any(|it| it == key)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use policyd_yaml::{Source, yaml};

    fn rules(text: &str) -> PackRules {
        let source = Source { name: "config.yaml".to_owned(), text: text.to_owned() };
        PackRules::from_node(&yaml::parse(&Arc::new(source)).0.unwrap())
    }

    #[test]
    fn the_longest_prefix_decides_and_a_requirement_without_keys_accepts_none() {
        let text = "keys: [A]\nsources: {'https://a.example/': B, 'https://a.example/team/': C}\n";
        let keys = |rules: &PackRules, source: &str| rules.required_keys(source);
        let listed = |key: &str| Some(vec![key.to_owned()]);
        let optional = rules(text);
        assert_eq!(keys(&optional, "https://a.example/x.tar.zst"), listed("B"));
        assert_eq!(keys(&optional, "https://a.example/team/x.tar.zst"), listed("C"));
        assert_eq!(keys(&optional, "https://b.example/x.tar.zst"), None);
        let host = rules("sources: {'https://A.example/': B}\n");
        assert_eq!(keys(&host, "https://a.example/x.tar.zst"), listed("B"));
        let required = rules(&format!("require_signature: true\n{text}"));
        assert_eq!(keys(&required, "https://b.example/x.tar.zst"), listed("A"));
        let none = rules("require_signature: true\n");
        assert_eq!(keys(&none, "https://b.example/x.tar.zst"), Some(Vec::new()));
    }
}
