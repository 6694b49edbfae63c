//! Remote packs: packs that a manifest extends by their source.
//!
//! Contains: the entries of `extends`, and which remote packs can be used. Does not contain: how a pack is fetched,
//! cached, or verified. Loading a pack never uses the network.

use std::sync::Arc;

use super::builtin;
use super::pack::Pack;
use super::record::record;
pub use super::remote_pack::{RemotePack, RemoteProblem, Requirer, SignatureProblem, has};
use policyd_yaml::layered_map::LayeredMap;
use policyd_yaml::node::Node;
use policyd_yaml::shape::Kind;
use policyd_yaml::{Diagnostic, Source, Span, quoted, yaml};

/// The manifest of a pack.
pub(super) const MANIFEST_FILE: &str = "policyd.yaml";
/// Code of the findings about remote packs.
const UNAVAILABLE: &str = "unavailable-source";

/// An entry of `extends` that names a remote pack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemoteEntry {
    /// The source as the manifest states it.
    pub source: String,
    /// SHA-256 that the content must have, in hexadecimal digits.
    pub sha256: Option<String>,
    /// Public key of minisign by which the pack must be signed.
    pub key: Option<String>,
}

record! {
    pub(super) const REMOTE: RecordType<RemoteEntry> = {
        source [mandatory()]: Kind::Text => source,
            "Where the pack is: `https://….tar.zst`, `git+https://…@REVISION`, or `oci://REGISTRY/NAME:TAG`.";
        sha256: Kind::Text => sha256, "SHA-256 of the content, as `policyd pack fetch` prints it.";
        key: Kind::Text => key, "Public key of minisign by which the pack must be signed.";
    }
}

/// Returns the remote packs that a pack names, in their order.
#[must_use]
pub fn entries(files: &[(String, Arc<Source>)]) -> Vec<RemoteEntry> {
    let manifest = files.iter().find(|(file, _)| file == MANIFEST_FILE);
    // Most manifests name none, and each hook reads the manifest.
    let Some((_, manifest)) = manifest.filter(|(_, it)| it.text.contains("source")) else {
        return Vec::new();
    };
    let (node, _) = yaml::parse(manifest);
    node.iter().flat_map(|it| entries_of(it)).map(|(entry, _)| entry).collect()
}

/// Returns the remote packs that a manifest names, each with its node.
fn entries_of(manifest: &Node) -> Vec<(RemoteEntry, &Node)> {
    let items = manifest.get("extends").and_then(Node::items).unwrap_or_default();
    let remote = items.iter().filter(|it| it.get("source").is_some_and(|it| it.text().is_some()));
    remote.map(|it| (REMOTE.read_untyped(&LayeredMap::from_iter([it])), it)).collect()
}

/// Whether a remote pack extends the built-in pack.
pub(super) fn extends_builtin(pack: &RemotePack) -> bool {
    let manifest = pack.files.iter().flatten().find(|(file, _)| file == MANIFEST_FILE);
    let node = manifest.and_then(|(_, source)| yaml::parse(source).0);
    let extends = node.as_ref().and_then(|it| it.get("extends"));
    pack.files.is_ok() && extends.is_none_or(builtin::is_named_by)
}

/// Returns the remote packs that can be used, and reports the other ones.
pub(super) fn usable(
    pack: &Pack,
    manifest: Option<&Node>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Pack> {
    let Some(manifest) = manifest else { return Vec::new() };
    let mut packs = Vec::new();
    for (entry, node) in entries_of(manifest) {
        let resolved = pack.remote.iter().find(|it| it.source == entry.source);
        let files = resolved.map_or(Err(RemoteProblem::NotFetched), |it| it.files.clone());
        match files.and_then(|files| {
            if entries(&files).is_empty() { Ok(files) } else { Err(RemoteProblem::Nested) }
        }) {
            Ok(files) => packs.push(Pack { name: entry.source, files, remote: Vec::new() }),
            Err(problem) => {
                let span = node.get("source").map_or(&node.span, |it| &it.span);
                diagnostics.push(unavailable(&entry.source, span, &problem));
            }
        }
    }
    packs
}

fn unavailable(source: &str, span: &Span, problem: &RemoteProblem) -> Diagnostic {
    let message = format!("{} {problem}", quoted(source));
    Diagnostic::error(UNAVAILABLE, span.clone(), message).with_help(problem.help())
}
