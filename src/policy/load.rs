//! Loads a pack: from the texts of its files to a policy and all findings.
//!
//! Contains: which pack extends which. Does not contain: parsing (`parse`), layers (`layering`).

pub use super::Pack;
use super::build;
use super::field_value::FieldValue;
use super::layering;
use super::layers::Layers;
pub use super::parse::Files;
use super::parse::read_files;
use super::{EnforcementMode, OnError, Policy, builtin, guards, remote};
use policyd_yaml::memo::Memo;
use policyd_yaml::node::Node;
use policyd_yaml::{Diagnostic, Level};

/// A pack and its findings.
#[derive(Debug)]
pub struct LoadResult {
    /// The policy. `None` if a finding is an error.
    pub policy: Option<Policy>,
    /// All findings.
    pub diagnostics: Vec<Diagnostic>,
    /// `on_error` of a valid manifest.
    pub on_error: Option<OnError>,
    /// `mode` of a valid manifest.
    pub mode: Option<EnforcementMode>,
    /// `enabled` of a valid manifest.
    pub enabled: Option<bool>,
    /// Built-in sets of guards that a valid manifest disables.
    pub sets_off: Vec<&'static str>,
}

/// Loads `pack`, which may extend `builtin`.
#[must_use]
pub fn load(pack: &Pack, builtin: &Pack) -> LoadResult {
    load_again(pack, builtin, &Memo::off())
}

/// Loads `pack` over the pack of its user, whose entries count where `pack` does not set them. If `pack` does not extend
/// the built-in pack, nothing is beneath it.
#[must_use]
pub fn load_over(pack: &Pack, beneath: Option<&Pack>, builtin: &Pack) -> LoadResult {
    load_layers(pack, beneath, builtin, &Memo::off())
}

/// Loads `pack` like [`load`] with the kept results of a memo.
#[must_use]
pub fn load_again(pack: &Pack, builtin: &Pack, memo: &Memo) -> LoadResult {
    load_layers(pack, None, builtin, memo)
}

fn load_layers(pack: &Pack, beneath: Option<&Pack>, builtin: &Pack, memo: &Memo) -> LoadResult {
    let mut diagnostics = Vec::new();
    let own = read_files(&pack.files, memo, &mut diagnostics);
    let manifest = own.get("policyd.yaml");
    let own_name = manifest.and_then(|it| it.get("name")).and_then(Node::text);
    let name = own_name.unwrap_or(&pack.name).to_owned();
    let on_error = manifest.and_then(|it| OnError::from_node(it.get("on_error")?));
    let mode = manifest.and_then(|it| EnforcementMode::from_node(it.get("mode")?));
    let enabled = manifest.and_then(|it| it.get("enabled")).and_then(Node::bool);
    let extends = extends(pack, &own);
    let is_off = |set: &&&str| {
        let said = manifest.and_then(|it| it.get("guard_sets")?.get(set)).and_then(Node::bool);
        !extends || said == Some(false)
    };
    let sets_off = guards::SETS.iter().filter(is_off).copied().collect();
    let mut layers = if extends { layering::below(&builtin.files) } else { Layers::default() };
    if let Some(beneath) = beneath.filter(|_| extends) {
        let files = read_files(&beneath.files, &Memo::off(), &mut diagnostics);
        let remote = remote::usable(beneath, files.get("policyd.yaml"), &mut diagnostics);
        layers.adds_user_pack = true;
        put_remote(&mut layers, &remote, &mut diagnostics);
        put_over(&mut layers, beneath, &files, &mut diagnostics);
        layers.adds_user_pack = false;
    }
    put_remote(&mut layers, &remote::usable(pack, manifest, &mut diagnostics), &mut diagnostics);
    put_over(&mut layers, pack, &own, &mut diagnostics);
    let policy = build::policy(name, build::build(&layers, None, memo, &mut diagnostics));
    let sound = diagnostics.iter().all(|it| it.level != Level::Error);
    let policy = Some(policy).filter(|_| sound);
    LoadResult { policy, diagnostics, on_error, mode, enabled, sets_off }
}

/// Whether a pack, or a remote pack that it extends, extends the built-in pack.
pub(super) fn extends(pack: &Pack, own: &Files) -> bool {
    let named = own.get("policyd.yaml").and_then(|it| it.get("extends"));
    let through_remote = || pack.remote.iter().any(remote::extends_builtin);
    (named.is_none_or(builtin::is_named_by) || through_remote()) && pack.name != builtin::NAME
}

/// Puts the files of remote packs over those of the packs below, the first pack first.
pub(super) fn put_remote(layers: &mut Layers, packs: &[Pack], diagnostics: &mut Vec<Diagnostic>) {
    for pack in packs {
        let files = read_files(&pack.files, &Memo::off(), diagnostics);
        put_over(layers, pack, &files, diagnostics);
    }
}

/// Puts the files of a pack over those of the packs that it extends.
pub(super) fn put_over(
    layers: &mut Layers,
    pack: &Pack,
    own: &Files,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let owns_vocabulary = own.contains_key("vocabulary.yaml");
    // A folder without a manifest is an amplihack folder: its entries change the inherited ones.
    layering::add(layers, own, manifest_less(pack), diagnostics);
    let written = pack.files.iter().any(|(file, _)| file == "vocabulary.yaml");
    layers.incomplete = written && !owns_vocabulary;
}

fn manifest_less(pack: &Pack) -> bool {
    pack.files.iter().all(|(file, _)| file != "policyd.yaml")
}
