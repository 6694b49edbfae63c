//! Reads what expressions ask about the files of a project: whether a file exists, its text, and who owns files.
//! Every read is bounded, and none leaves the project.

use std::path::{Component, Path};
use std::rc::Rc;

use super::file_text::read_text;
use policyd_base::limits::{PROJECT_QUESTIONS_MAX, PROJECT_WALK_MAX};
use policyd_fact_table::FactError;
use policyd_fact_table::ast::Expr;
use policyd_fact_table::code_owners::{self, CodeOwners};
use policyd_fact_table::project_facts::{ProjectQuestion, questions};
use policyd_fact_table::source::{FactSource, FactSources};
use policyd_fact_table::template::{TemplatePart, pieces};
use policyd_fact_table::text_facts::{DiskFacts, KnownText, ReadText};
use policyd_facts::glob::PathGlob;
use policyd_policy::guards::Guard;
use policyd_world::{FileKind, World, WorldError};

/// Directories that are not searched, unless the glob begins in them: git's own, packages, and results of builds.
const SKIPPED: [&str; 5] = [".git", "node_modules", "target", "venv", "vendor"];

/// Reads what guards ask about the files of the project.
pub(super) fn read_for_guards(
    world: &dyn World,
    root: &Path,
    sources: FactSources,
    guards: &[&Guard],
    facts: &mut DiskFacts,
) {
    let asking = guards.iter().filter(|it| it.sources.contains(FactSource::ProjectFiles));
    let asked = asking.flat_map(|it| questions_of(it));
    let owners = sources.contains(FactSource::CodeOwners).then_some(ProjectQuestion::Owners);
    read(world, root, asked.chain(owners).collect(), facts);
}

/// Reads what expressions ask about the files of the project.
pub(super) fn read(
    world: &dyn World,
    root: &Path,
    mut asked: Vec<ProjectQuestion>,
    facts: &mut DiskFacts,
) {
    let project = ProjectFiles { world, root };
    asked.sort_unstable();
    asked.dedup();
    if asked.contains(&ProjectQuestion::Owners) {
        facts.owners = Some(project.owners());
    }
    for question in asked.into_iter().take(PROJECT_QUESTIONS_MAX) {
        match question {
            ProjectQuestion::Has(glob) => {
                let found = project.has(&glob);
                facts.has.insert(glob, found);
            }
            ProjectQuestion::Text(path) => {
                let text = project.text(&path);
                facts.project_texts.insert(path, text);
            }
            ProjectQuestion::Owners => {}
        }
    }
}

/// Returns what the expressions and texts of a guard ask.
fn questions_of(guard: &Guard) -> Vec<ProjectQuestion> {
    let body = &*guard.body;
    let conditions = body
        .conditions()
        .map(|it| it.1)
        .chain(body.message.iter().filter_map(|it| it.when.as_ref()));
    let mut found: Vec<ProjectQuestion> =
        conditions.filter_map(|it| it.compiled.tree()).flat_map(questions).collect();
    let texts =
        body.message.iter().map(|it| &it.text).chain(body.updated_input.iter().map(|it| &it.1));
    let texts = texts.chain(body.remember.iter().map(|it| &it.1));
    for part in texts.flat_map(|it| pieces(it).unwrap_or_default()) {
        if let TemplatePart::Hole { expression, .. } = part {
            found.extend(Expr::parse(expression).iter().flat_map(|it| questions(it)));
        }
    }
    found
}

/// The files of a project.
struct ProjectFiles<'a> {
    world: &'a dyn World,
    root: &'a Path,
}

impl ProjectFiles<'_> {
    /// Returns whether the project has a path, or a file of a glob. `None` if this cannot be known.
    fn has(&self, glob: &str) -> Option<bool> {
        let glob = glob.strip_prefix("./").unwrap_or(glob);
        if !is_inside(glob) {
            return Some(false);
        }
        let Some(wildcard) = glob.find(['*', '?', '{']) else { return self.exists(glob) };
        let start = glob
            .get(..wildcard)
            .and_then(|it| it.rfind('/'))
            .map_or("", |at| glob.get(..at).unwrap_or_default());
        let depth = match glob.contains("**") {
            true => usize::MAX,
            false => glob.matches('/').count().saturating_sub(start.matches('/').count()),
        };
        self.search(start, &PathGlob::new(&format!("/{glob}")), depth)
    }

    fn exists(&self, path: &str) -> Option<bool> {
        let whole = self.root.join(path);
        // No link leads out of the project.
        let parent = whole.parent().map(|it| self.world.real_path(it));
        let root = self.world.real_path(self.root);
        match (parent, root) {
            (Some(Ok(parent)), Ok(root)) if !parent.starts_with(&root) => return Some(false),
            (Some(Err(WorldError::NotFound)), _) => return Some(false),
            _ => {}
        }
        match self.world.entry(&whole) {
            Ok(_) => Some(true),
            Err(WorldError::NotFound) => Some(false),
            Err(_) => None,
        }
    }

    /// Searches a directory for a path that matches, breadth first. Links are not followed.
    fn search(&self, start: &str, glob: &PathGlob, depth: usize) -> Option<bool> {
        let mut folders = vec![(start.to_owned(), 0_usize)];
        let (mut visited, mut is_complete) = (0_usize, true);
        while let Some((folder, at)) = (!folders.is_empty()).then(|| folders.remove(0)) {
            let names = match self.world.list(&self.root.join(&folder)) {
                Ok(names) => names,
                Err(WorldError::NotFound) => continue,
                Err(_) => {
                    is_complete = false;
                    continue;
                }
            };
            for name in names {
                visited += 1;
                if visited > PROJECT_WALK_MAX {
                    return None;
                }
                let path =
                    if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
                if glob.matches(&format!("/{path}")) {
                    return Some(true);
                }
                if at < depth && !SKIPPED.contains(&name.as_str()) && self.is_folder(&path) {
                    folders.push((path, at.saturating_add(1)));
                }
            }
        }
        is_complete.then_some(false)
    }

    fn is_folder(&self, path: &str) -> bool {
        let path = self.root.join(path);
        self.world.stat(&path).is_ok_and(|it| it.kind == FileKind::Folder)
            && self.world.entry(&path).is_ok_and(|it| it.link.is_none())
    }

    /// Returns the text of a file of the project.
    fn text(&self, path: &str) -> ReadText {
        let path = path.strip_prefix("./").unwrap_or(path);
        if !is_inside(path) {
            return Err(format!("`{path}` is not a path in the project").into());
        }
        let whole = self.root.join(path);
        let real = match self.world.real_path(&whole) {
            Ok(real) => real,
            Err(WorldError::NotFound) => return Ok(KnownText::whole("")),
            Err(error) => return Err(format!("`{path}` could not be read: {error}").into()),
        };
        let root = self.world.real_path(self.root);
        if !root.is_ok_and(|it| real.starts_with(it)) {
            return Err(format!("`{path}` leads out of the project").into());
        }
        read_text(self.world, &real)
    }

    /// Returns the owners of files, or why they are unknown.
    fn owners(&self) -> Result<Rc<CodeOwners>, FactError> {
        for place in code_owners::PLACES {
            if self.exists(place) == Some(false) {
                continue;
            }
            let text = self.text(place)?;
            return match text.is_whole {
                true => Ok(Rc::new(CodeOwners::parse(&text.text))),
                false => Err(format!("`{place}` is too long to be read to its end").into()),
            };
        }
        Ok(Rc::default())
    }
}

/// Returns whether a path begins at the project directory and stays in it.
fn is_inside(path: &str) -> bool {
    Path::new(path).components().all(|it| matches!(it, Component::Normal(_) | Component::CurDir))
}

#[cfg(test)]
mod tests {
    use policyd_world::fake::FakeWorld;

    use super::*;

    #[test]
    fn a_path_or_a_glob_begins_at_the_project() {
        let world = FakeWorld::new();
        for path in ["a.lock", "src/a.rs", "src/deep/er/b.sql", "node_modules/x/c.js", "docs/é.md"]
        {
            world.put(format!("/w/{path}"), "");
        }
        let project = ProjectFiles { world: &world, root: Path::new("/w") };
        for (glob, expected) in [
            ("a.lock", Some(true)),
            ("./a.lock", Some(true)),
            ("b.sql", Some(false)),
            ("src", Some(true)),
            ("*.lock", Some(true)),
            ("*.rs", Some(false)),
            ("src/*.rs", Some(true)),
            ("{src,lib}/*.rs", Some(true)),
            ("**/*.rs", Some(true)),
            ("**/b.sql", Some(true)),
            ("src/**/*.js", Some(false)),
            ("**/*.js", Some(false)),
            ("node_modules/*/c.js", Some(true)),
            ("*/deep/*/b.sql", Some(true)),
            ("../w/a.lock", Some(false)),
            ("/w/a.lock", Some(false)),
            ("none/*.rs", Some(false)),
        ] {
            assert_eq!(project.has(glob), expected, "{glob}");
        }
        for number in 0..=PROJECT_WALK_MAX {
            world.put(format!("/w/many/{number}"), "");
        }
        assert_eq!(project.has("many/*.sql"), None);
        assert_eq!(project.has("many/7"), Some(true));
    }

    #[test]
    fn a_text_is_in_the_project() {
        let world = FakeWorld::new();
        world.put("/w/a", "text");
        world.put("/etc/passwd", "root");
        world.put_link("/w/out", "/etc");
        world.put_link("/w/in", "/w/a");
        let project = ProjectFiles { world: &world, root: Path::new("/w") };
        assert_eq!(project.text("a"), Ok(KnownText::whole("text")));
        assert_eq!(project.text("in"), Ok(KnownText::whole("text")));
        assert_eq!(project.text("none"), Ok(KnownText::whole("")));
        for path in ["out/passwd", "../etc/passwd", "/etc/passwd"] {
            assert!(project.text(path).is_err(), "{path}");
        }
    }

    #[test]
    fn the_first_file_of_owners_counts() {
        let world = FakeWorld::new();
        let project = ProjectFiles { world: &world, root: Path::new("/w") };
        world.put("/w/src/a", "");
        assert!(project.owners().unwrap().of("src/a").is_empty());
        world.put("/w/docs/CODEOWNERS", "* @docs");
        assert_eq!(project.owners().unwrap().of("src/a"), ["@docs"]);
        world.put("/w/.github/CODEOWNERS", "* @github");
        assert_eq!(project.owners().unwrap().of("src/a"), ["@github"]);
        world.put_link("/w/.github/CODEOWNERS", "/etc/owners");
        world.put("/etc/owners", "* @other");
        assert!(project.owners().is_err(), "a link leads out of the project");
    }
}
