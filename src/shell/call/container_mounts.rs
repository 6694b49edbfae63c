//! The directories of this machine that a container sees.

use super::paths::CallEnvironment;
use crate::path::in_folder;

/// The directories of this machine that a container sees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerMounts {
    /// Path in the container, and path on this machine; `None` if that is unknown.
    pub(super) binds: Vec<(String, Option<String>)>,
}

impl ContainerMounts {
    /// Returns the path on this machine of a path in the container. What is not mounted ends with the container, as a
    /// temporary file does.
    pub(super) fn host(&self, path: &str) -> Option<String> {
        let holds = |folder: &str, path: &str| {
            let rest = path.strip_prefix(folder.trim_end_matches('/'));
            rest.is_some_and(|it| it.is_empty() || it.starts_with('/'))
        };
        let around = self.binds.iter().filter(|it| holds(&it.0, path));
        if let Some((inside, outside)) = around.max_by_key(|it| it.0.len()) {
            let rest = path.get(inside.trim_end_matches('/').len()..).unwrap_or_default();
            return outside.as_ref().map(|it| format!("{it}{rest}"));
        }
        // What happens to a directory happens to what is mounted below it.
        match self.binds.iter().find(|it| holds(path, &it.0)) {
            Some((_, outside)) => outside.clone(),
            None => CallEnvironment::TEMPORARY
                .first()
                .map(|it| in_folder(it, path.trim_start_matches('/'))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mounted_path_is_one_of_this_machine() {
        let bind = |inside: &str, outside: &str| (inside.to_owned(), Some(outside.to_owned()));
        let mounts =
            ContainerMounts { binds: vec![bind("/h", "/home/dev"), bind("/h/x/", "/srv")] };
        for (path, expected) in [
            ("/h", "/home/dev"),
            ("/h/a", "/home/dev/a"),
            ("/h/x/a", "/srv/a"),
            ("/", "/home/dev"),
            ("/hat", "/tmp/hat"),
        ] {
            assert_eq!(mounts.host(path).as_deref(), Some(expected), "{path}");
        }
    }
}
