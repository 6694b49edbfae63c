//! The file list of a pack, `pack.manifest`: name, version, and the SHA-256 of each file. A signature covers this text,
//! and its own SHA-256 identifies the content of the pack.
//!
//! Each pack has exactly one such text, so policyd writes it again from the files and compares it.

use std::collections::BTreeMap;
use std::sync::Arc;

use semver::Version;
use sha2::{Digest, Sha256};

use super::remote::MANIFEST_FILE;
use policyd_base::limits::{ID_CHARS_MAX, POLICY_FILES_MAX};
use policyd_yaml::checksum::hex;
use policyd_yaml::node::Node;
use policyd_yaml::{Source, yaml};

/// File name of the list beside the files of a pack.
pub const LIST_FILE: &str = "pack.manifest";
/// File name of the signature of the list.
pub const SIGNATURE_FILE: &str = "pack.manifest.minisig";
/// First line of the list.
const HEADER: &str = "policyd-pack 1";
/// Hexadecimal digits of a SHA-256.
const HASH_DIGITS: usize = 64;

/// The file list of a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackList {
    /// Name of the pack.
    pub name: String,
    /// Version of the pack. `None`: its manifest has none.
    pub version: Option<Version>,
    /// SHA-256 of each file, in hexadecimal digits.
    pub files: BTreeMap<String, String>,
}

/// Why files are not a pack that can be fetched or published.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackListError {
    /// The pack lacks `policyd.yaml`.
    #[error("it contains no `policyd.yaml`")]
    NoManifest,
    /// The manifest has no valid name.
    #[error("its manifest has no `name` of letters, digits, `-`, `_`, and `.`")]
    Name,
    /// The manifest has an invalid version.
    #[error("`pack_version` of its manifest is `{0}`, which is not a version such as `1.4.0`")]
    Version(String),
}

impl PackList {
    /// Returns the list of the files of a pack.
    ///
    /// # Errors
    /// [`PackListError`] if the manifest is missing, or has no valid name or version.
    pub fn of(files: &[(String, Arc<Source>)]) -> Result<Self, PackListError> {
        let manifest = files.iter().find(|(name, _)| name == MANIFEST_FILE);
        let (_, manifest) = manifest.ok_or(PackListError::NoManifest)?;
        let (node, _) = yaml::parse(manifest);
        let text = |key: &str| node.as_ref()?.get(key).and_then(Node::text);
        let name = text("name").filter(|it| is_name(it)).ok_or(PackListError::Name)?;
        let version = match text("pack_version") {
            None => None,
            Some(text) => {
                Some(Version::parse(text).map_err(|_| PackListError::Version(text.to_owned()))?)
            }
        };
        let hashed =
            |(name, source): &(String, Arc<Source>)| (name.clone(), sha256(source.text.as_bytes()));
        Ok(Self { name: name.to_owned(), version, files: files.iter().map(hashed).collect() })
    }

    /// Returns the name and the version of the pack.
    #[must_use]
    pub fn title(&self) -> String {
        let version = self.version.as_ref().map(|it| format!(" {it}")).unwrap_or_default();
        format!("{}{version}", self.name)
    }

    /// Returns the text of the list.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{HEADER}\nname {}\n", self.name);
        if let Some(version) = &self.version {
            text.push_str(&format!("version {version}\n"));
        }
        for (file, hash) in &self.files {
            text.push_str(&format!("{hash}  {file}\n"));
        }
        text
    }

    /// Parses the text of a list. `None` if it is not exactly the text of one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().peekable();
        lines.next().filter(|it| *it == HEADER)?;
        let name = lines.next()?.strip_prefix("name ").filter(|it| is_name(it))?.to_owned();
        let version = lines.peek().and_then(|it| it.strip_prefix("version "));
        let version = version.map(Version::parse).transpose().ok()?;
        if version.is_some() {
            lines.next();
        }
        let mut files = BTreeMap::new();
        for line in lines {
            let (hash, file) = line.split_once("  ")?;
            files.insert(file.to_owned(), hash.to_owned());
        }
        let list = Self { name, version, files };
        let is_valid = list.files.len() <= POLICY_FILES_MAX
            && list.files.iter().all(|(file, hash)| is_file_name(file) && is_hash(hash));
        Some(list).filter(|it| is_valid && it.text() == text)
    }

    /// Returns the SHA-256 of the text, which identifies the content of the pack.
    #[must_use]
    pub fn hash(&self) -> String {
        sha256(self.text().as_bytes())
    }
}

/// Returns the SHA-256 of bytes in hexadecimal digits.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Whether a text is a SHA-256 in hexadecimal digits.
#[must_use]
pub fn is_hash(text: &str) -> bool {
    text.len() == HASH_DIGITS && text.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a text is the name of a policy file: one name without a directory.
#[must_use]
pub fn is_file_name(name: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
    let is_yaml = [".yaml", ".yml"].iter().any(|end| name.ends_with(end));
    is_yaml && !name.starts_with('.') && name.chars().all(is_plain)
}

fn is_name(name: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
    (1..=ID_CHARS_MAX).contains(&name.len()) && name.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(manifest: &str) -> Vec<(String, Arc<Source>)> {
        let file = |name: &str, text: &str| {
            let source = Source { name: name.to_owned(), text: text.to_owned() };
            (name.to_owned(), Arc::new(source))
        };
        vec![file("policyd.yaml", manifest), file("guards.yaml", "[]\n")]
    }

    #[test]
    fn a_list_is_read_back_only_as_it_was_written() {
        let list = PackList::of(&files("version: 1\nname: team\npack_version: 1.4.0\n")).unwrap();
        let text = list.text();
        assert!(text.starts_with("policyd-pack 1\nname team\nversion 1.4.0\n"), "{text}");
        assert_eq!(PackList::parse(&text), Some(list));
        for other in [
            text.replace("team", "te am"),
            text.replace("guards.yaml", "../guards.yaml"),
            text.replace("1.4.0", "01.4.0"),
            format!("{text}\n"),
            text.lines().rev().collect::<Vec<_>>().join("\n"),
            text.replace('\n', "\r\n"),
        ] {
            assert_eq!(PackList::parse(&other), None, "{other}");
        }
    }

    #[test]
    fn every_byte_of_a_file_changes_the_hash() {
        let hash = |manifest: &str| PackList::of(&files(manifest)).unwrap().hash();
        let one = hash("version: 1\nname: team\n");
        assert!(is_hash(&one));
        assert_ne!(one, hash("version: 1\nname: team\n\n"));
    }

    #[test]
    fn a_pack_without_a_name_or_with_an_invalid_version_is_rejected() {
        let error = |manifest: &str| PackList::of(&files(manifest)).unwrap_err();
        assert_eq!(error("version: 1\n"), PackListError::Name);
        assert_eq!(error("name: \"a\\nversion 9.0.0\"\n"), PackListError::Name);
        assert_eq!(error("name: a\npack_version: 1.4\n"), PackListError::Version("1.4".to_owned()));
        assert_eq!(PackList::of(&[]).unwrap_err(), PackListError::NoManifest);
    }
}
