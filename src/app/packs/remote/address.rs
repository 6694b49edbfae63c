//! The source of a remote pack: how it is written, and which transport fetches it.

use policyd_policy::pack_list::is_hash;

/// Where a remote pack is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackAddress {
    /// A `.tar.zst` archive on a server.
    Archive {
        /// Address of the archive.
        url: String,
    },
    /// A commit of a git repository.
    Git(GitAddress),
    /// An artifact in a registry.
    Registry(RegistryPack),
}

/// A commit of a git repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitAddress {
    /// Address of the repository.
    pub url: String,
    /// Branch, tag, or commit.
    pub revision: String,
    /// Directory of the pack in the repository. Empty: the top.
    pub subdirectory: String,
}

/// A pack in a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryPack {
    /// Host, with the port if there is one.
    pub host: String,
    /// Name of the repository.
    pub name: String,
    /// Tag or digest.
    pub reference: String,
}

/// Why a text is not the source of a remote pack.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error(
        "expected `https://….tar.zst`, `git+https://…@REVISION`, or `oci://REGISTRY/NAME:TAG` as a source"
    )]
    Scheme,
    #[error("a source must not contain a user name or a password")]
    Credentials,
    #[error("the source has no host")]
    NoHost,
    #[error(
        "the source has no valid revision; write `@` and a branch, a tag, or a commit after it"
    )]
    Revision,
    #[error("the directory after `#` must be a relative path without `..`")]
    Subdirectory,
    #[error(
        "write the source in one way only: the host in lowercase and without a default port, and a path without `//`, \
         `.`, `..`, `%`, and `\\`"
    )]
    Spelling,
    #[error("the source has no valid name and tag; write `oci://REGISTRY/NAME:TAG`")]
    Reference,
}

impl PackAddress {
    /// Parses the source of a remote pack.
    ///
    /// # Errors
    /// [`AddressError`] if the text is not a source.
    pub fn parse(source: &str) -> Result<Self, AddressError> {
        let address = Self::parse_any(source)?;
        // The configuration requires keys for sources by their beginning, so a source has one spelling.
        if is_canonical(source) { Ok(address) } else { Err(AddressError::Spelling) }
    }

    fn parse_any(source: &str) -> Result<Self, AddressError> {
        if let Some(url) = source.strip_prefix("git+") {
            return git(url).map(Self::Git);
        }
        if let Some(rest) = source.strip_prefix("oci://") {
            return registry(rest).map(Self::Registry);
        }
        let rest = source.strip_prefix("https://").ok_or(AddressError::Scheme)?;
        host(rest)?;
        match rest.ends_with(".tar.zst") {
            true => Ok(Self::Archive { url: source.to_owned() }),
            false => Err(AddressError::Scheme),
        }
    }
}

/// Whether another text cannot name the same place.
fn is_canonical(source: &str) -> bool {
    let rest = source.split_once("://").map_or(source, |(_, rest)| rest);
    let rest = rest.split('#').next().unwrap_or_default();
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let has_default_port = [":443", ":22"].iter().any(|it| authority.ends_with(it));
    !source.contains(['%', '\\'])
        && !authority.chars().any(|it| it.is_ascii_uppercase())
        && !authority.ends_with('.')
        && !has_default_port
        && path.split('/').all(|it| !["", ".", ".."].contains(&it))
}

/// Returns the host of an address without its scheme, which must contain no credentials.
fn host(rest: &str) -> Result<&str, AddressError> {
    match rest.split('/').next().unwrap_or_default() {
        "" => Err(AddressError::NoHost),
        host if host.contains('@') => Err(AddressError::Credentials),
        host => Ok(host),
    }
}

fn git(url: &str) -> Result<GitAddress, AddressError> {
    let (url, subdirectory) = url.split_once('#').unwrap_or((url, ""));
    let (scheme, rest) = url.split_once("://").ok_or(AddressError::Scheme)?;
    match scheme {
        "https" => drop(host(rest)?),
        // The user of ssh is part of the address, and is not a secret.
        "ssh" | "file" => {}
        _ => return Err(AddressError::Scheme),
    }
    let (authority, path) = rest.split_once('/').ok_or(AddressError::NoHost)?;
    let (path, revision) = path.rsplit_once('@').ok_or(AddressError::Revision)?;
    if !is_revision(revision) || path.is_empty() || authority.starts_with('-') {
        return Err(AddressError::Revision);
    }
    let is_plain = |it: &str| !["", ".", ".."].contains(&it) && !it.contains([':', '\\']);
    if !subdirectory.is_empty() && !subdirectory.split('/').all(is_plain) {
        return Err(AddressError::Subdirectory);
    }
    Ok(GitAddress {
        url: format!("{scheme}://{authority}/{path}"),
        revision: revision.to_owned(),
        subdirectory: subdirectory.to_owned(),
    })
}

/// Whether a text is a branch, a tag, or a commit, and not an option or a refspec of git.
fn is_revision(text: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "._-/".contains(it);
    !text.is_empty() && !text.starts_with('-') && !text.contains("..") && text.chars().all(is_plain)
}

fn registry(rest: &str) -> Result<RegistryPack, AddressError> {
    let host = host(rest)?;
    let (_, path) = rest.split_once('/').ok_or(AddressError::Reference)?;
    let (name, reference) = match path.split_once('@') {
        Some((name, digest)) => {
            let hash = digest.strip_prefix("sha256:").ok_or(AddressError::Reference)?;
            (name, Some(digest).filter(|_| is_hash(hash)))
        }
        None => path.rsplit_once(':').map_or((path, None), |(name, tag)| (name, Some(tag))),
    };
    let is_plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || "._-/".contains(it);
    let is_name = !name.is_empty() && name.chars().all(is_plain) && !name.contains("..");
    let is_tag = |it: char| it.is_ascii_alphanumeric() || "._-:".contains(it);
    let reference = reference.filter(|it| !it.is_empty() && it.chars().all(is_tag));
    match reference.filter(|_| is_name) {
        Some(reference) => Ok(RegistryPack {
            host: host.to_owned(),
            name: name.to_owned(),
            reference: reference.to_owned(),
        }),
        None => Err(AddressError::Reference),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_of_each_transport_are_parsed() {
        let url = "https://packs.example.com/team-1.tar.zst".to_owned();
        assert_eq!(PackAddress::parse(&url.clone()), Ok(PackAddress::Archive { url }));
        let git = |source: &str| match PackAddress::parse(source) {
            Ok(PackAddress::Git(it)) => [it.url, it.revision, it.subdirectory],
            other => panic!("{source}: {other:?}"),
        };
        assert_eq!(
            git("git+https://a.example/o/r.git@v1"),
            ["https://a.example/o/r.git", "v1", ""]
        );
        assert_eq!(
            git("git+ssh://git@a.example/o/r@release/1#packs/team"),
            ["ssh://git@a.example/o/r", "release/1", "packs/team"]
        );
        assert_eq!(git("git+file:///srv/r@main"), ["file:///srv/r", "main", ""]);
        let registry = |source: &str| match PackAddress::parse(source) {
            Ok(PackAddress::Registry(it)) => [it.host, it.name, it.reference],
            other => panic!("{source}: {other:?}"),
        };
        assert_eq!(registry("oci://localhost:5000/a/b:1.0"), ["localhost:5000", "a/b", "1.0"]);
        let digest = format!("sha256:{}", "0".repeat(64));
        assert_eq!(
            registry(&format!("oci://r.example/a@{digest}")),
            ["r.example", "a", digest.as_str()]
        );
    }

    #[test]
    fn invalid_sources_and_credentials_are_rejected() {
        for (source, error) in [
            ("http://packs.example.com/team.tar.zst", AddressError::Scheme),
            ("https://packs.example.com/team.zip", AddressError::Scheme),
            ("team", AddressError::Scheme),
            ("https:///team.tar.zst", AddressError::NoHost),
            ("https://me:secret@packs.example.com/team.tar.zst", AddressError::Credentials),
            ("git+https://me:secret@a.example/r@v1", AddressError::Credentials),
            ("git+http://a.example/r@v1", AddressError::Scheme),
            ("git+ext::sh -c evil@v1", AddressError::Scheme),
            ("git+https://a.example/r", AddressError::Revision),
            ("git+ssh://git@a.example/r", AddressError::Revision),
            ("git+https://a.example/r@--upload-pack=evil", AddressError::Revision),
            ("git+https://a.example/r@+main:refs/x", AddressError::Revision),
            ("git+ssh://-oProxyCommand=evil/r@v1", AddressError::Revision),
            ("git+file:///srv/../srv/r@main", AddressError::Spelling),
            ("git+file:////srv/r@main", AddressError::Spelling),
            ("https://Packs.example.com/team.tar.zst", AddressError::Spelling),
            ("https://packs.example.com:443/team.tar.zst", AddressError::Spelling),
            ("https://packs.example.com./team.tar.zst", AddressError::Spelling),
            ("https://packs.example.com/x/%2e%2e/team.tar.zst", AddressError::Spelling),
            ("https://packs.example.com\\x/team.tar.zst", AddressError::Spelling),
            ("oci://R.example/a:1", AddressError::Spelling),
            ("git+https://a.example/r@v1#../x", AddressError::Subdirectory),
            ("git+https://a.example/r@v1#/etc", AddressError::Subdirectory),
            ("oci://r.example/a", AddressError::Reference),
            ("oci://r.example/../a:1", AddressError::Reference),
            ("oci://r.example/a@sha256:00", AddressError::Reference),
        ] {
            assert_eq!(PackAddress::parse(source), Err(error), "{source}");
        }
    }
}
