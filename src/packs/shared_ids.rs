//! Rules of one id in the pack of the user and in the pack of a project: which of them is used.

use super::FoundPack;
use policyd_policy::Policy;
use policyd_policy::load::Pack;
use policyd_record::pack_layer::{PackLayer, PackLayers};
use policyd_yaml::Node;
use policyd_yaml::yaml;

/// Two rules of one id, in the pack of the user and in the pack of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedId {
    pub id: String,
    /// Location of the rule that is used.
    pub used: String,
    /// The layer of the rule that is used.
    pub winner: PackLayer,
}

impl SharedId {
    /// Says which of the rules is used, and how to change that.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { id, used, winner } = self;
        let why = match winner {
            PackLayer::User => "yours is used here, because it is stricter",
            PackLayer::BuiltIn
            | PackLayer::Organization
            | PackLayer::Project
            | PackLayer::Named => "that of the project is used here",
        };
        format!("your pack and the pack of the project both have a rule `{id}`; {why} ({used})")
    }

    /// Says how to have only one.
    #[must_use]
    pub const fn help() -> &'static str {
        "rename or remove one of them"
    }
}

/// Returns the rules that the packs of the user and of the project both define. A change of a built-in
/// rule does not define one: `policyd rule list --changed` lists it.
#[must_use]
pub fn shared_ids(found: &FoundPack, policy: &Policy, layers: &PackLayers) -> Vec<SharedId> {
    let Some(builtin) = super::builtin_policy() else { return Vec::new() };
    let guards = policy.guards.rules.iter().map(|it| (&it.id, &it.body.place));
    let checks = policy.considerations.iter().map(|it| (&it.id, &*it.place));
    let rules = guards.chain(checks).filter(|(id, _)| builtin.rule_id(id).is_none());
    let (Some(user), Some(project)) = (found.beneath_files(), found.own_files()) else {
        return Vec::new();
    };
    let both = rules.filter(|(id, _)| has_rule(user, id) && has_rule(project, id));
    let shared = both.map(|(id, place)| SharedId {
        id: id.clone(),
        used: place.to_string(),
        winner: layers.of_rule(&place.file),
    });
    shared.collect()
}

/// Whether a file of a pack has an entry with an id.
fn has_rule(pack: &Pack, id: &str) -> bool {
    let mut files = pack.files.iter().filter(|(_, source)| source.text.contains(id));
    files.any(|(_, source)| {
        let root = yaml::parse(source).0;
        let items = root.as_ref().and_then(Node::items).unwrap_or_default();
        items.iter().any(|it| it.get("id").is_some_and(|it| it.says(id)))
    })
}
