//! Remote packs for tests: archives, and a rule that blocks a call.

use std::sync::Arc;

use minisign::KeyPair;
use policyd::policy::pack_list::{LIST_FILE, PackList, SIGNATURE_FILE};
use policyd::source::Source;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tar::{Builder, EntryType, Header};

/// A guard that blocks `make deploy`.
pub(crate) const GUARDS: &str = "- id: no_deploy\n  commands: [make deploy]\n  decision: block\n  \
    message: Deployments are made by the release team. Ask the user to request one.\n";

/// A version of a pack with [`GUARDS`].
pub(crate) fn team(version: &str) -> Vec<(&'static str, String)> {
    let manifest = format!("version: 1\nname: team\npack_version: {version}\n");
    vec![("policyd.yaml", manifest), ("guards.yaml", GUARDS.to_owned())]
}

/// The file list of a pack.
pub(crate) fn list(files: &[(&str, String)]) -> PackList {
    let source = |(name, text): &(&str, String)| {
        let source = Source { name: (*name).to_owned(), text: text.clone() };
        ((*name).to_owned(), Arc::new(source))
    };
    PackList::of(&files.iter().map(source).collect::<Vec<_>>()).unwrap()
}

/// Adds the file list to the files of a pack.
pub(crate) fn listed(files: &[(&'static str, String)]) -> Vec<(&'static str, String)> {
    let mut all = files.to_vec();
    all.push((LIST_FILE, list(files).text()));
    all
}

/// A `.tar.zst` archive of files.
pub(crate) fn archive(files: &[(&str, String)]) -> Vec<u8> {
    let entries = files.iter().map(|(name, text)| (*name, EntryType::Regular, text.as_bytes()));
    compress(&tar(entries))
}

/// A tar archive with entries exactly as they are named, also with unsafe paths.
pub(crate) fn tar<'a>(entries: impl Iterator<Item = (&'a str, EntryType, &'a [u8])>) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (name, kind, content) in entries {
        let mut header = Header::new_gnu();
        let field = &mut header.as_old_mut().name;
        field.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
        header.set_entry_type(kind);
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        if kind == EntryType::Symlink {
            header.set_link_name("/etc/passwd").unwrap();
            header.set_size(0);
        }
        header.set_cksum();
        let content = if kind == EntryType::Symlink { &[] } else { content };
        builder.append(&header, content).unwrap();
    }
    builder.into_inner().unwrap()
}

/// Compresses a tar archive.
pub(crate) fn compress(tar: &[u8]) -> Vec<u8> {
    compress_to_vec(tar, CompressionLevel::Fastest)
}

/// A key of a publisher.
pub(crate) struct Publisher(minisign::KeyPair);

impl Publisher {
    pub(crate) fn new() -> Self {
        Self(minisign::KeyPair::generate_unencrypted_keypair().unwrap())
    }

    /// The public key as configurations name it.
    pub(crate) fn key(&self) -> String {
        self.0.pk.to_base64()
    }

    /// The signature of a text.
    pub(crate) fn sign(&self, text: &str) -> String {
        let KeyPair { pk, sk } = &self.0;
        minisign::sign(Some(pk), sk, text.as_bytes(), None, None).unwrap().into_string()
    }

    /// Adds the file list and its signature to the files of a pack.
    pub(crate) fn signed(&self, files: &[(&'static str, String)]) -> Vec<(&'static str, String)> {
        let mut all = listed(files);
        all.push((SIGNATURE_FILE, self.sign(&list(files).text())));
        all
    }
}
