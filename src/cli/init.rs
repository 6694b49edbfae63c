//! `policyd init`: a pack of one's own to start from, with a rule, a case, and the built-in pack beside
//! it for reading. `--upgrade` shows what changed in the built-in pack since.

use std::path::{Path, PathBuf};

use similar::TextDiff;

use super::{Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, InitArguments, trust};
use crate::app::packs::folder;
use crate::app::workspace::project;
use crate::cli::human::require_human;
use crate::limits::POLICY_FILE_BYTES_MAX;
use crate::policy::builtin;
use crate::report::schemas;
use crate::world::{World, WorldError};

/// Files of the new pack, each with the name of its schema.
const FILES: [(&str, &str, &str); 3] = [
    ("policyd.yaml", "policyd", include_str!("init/policyd.yaml")),
    (RULES, "considerations", include_str!("init/considerations.yaml")),
    (CASES, "cases", include_str!("init/changelog.yaml")),
];
/// The file with the rule.
const RULES: &str = "considerations.yaml";
/// The file with the cases of that rule.
const CASES: &str = "tests/changelog.yaml";
/// Folder of the built-in pack as it was, below the pack.
const BUILTIN: &str = "builtin";
/// Folder of the schemas, below the pack.
const SCHEMAS: &str = "schemas";
/// Lines around a change.
const CONTEXT_LINES: usize = 3;

/// Writes the pack, or shows what changed; nothing that is there is written over.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &InitArguments) -> u8 {
    let project = project::find(world, None);
    let own = project.root.join(project::STATE_DIR_NAME).join("policies");
    let folder = arguments.folder.clone().unwrap_or(own);
    let done = if arguments.upgrade {
        upgrade(world, console, &folder)
    } else {
        write_pack(world, console, &folder)
    };
    done.unwrap_or_else(|(path, error)| {
        console.eprint(&format!("{}: {error}", path.display()));
        EXIT_BROKEN
    })
}

/// What could not be written, and why.
type Failed = (PathBuf, WorldError);

fn write_pack(world: &dyn World, console: &mut Console<'_>, folder: &Path) -> Result<u8, Failed> {
    let is_new = !folder::holds_policies(world, folder);
    let action = format!("add files to the pack that exists in {}", folder.display());
    if !is_new && let Err(code) = require_human(world, console, &action) {
        return Ok(code);
    }
    // The case is one of the rule.
    let has_rules = world.stat(&folder.join(RULES)).is_ok();
    let mut written = Vec::new();
    for (file, schema, text) in FILES {
        if has_rules && file == CASES && world.stat(&folder.join(file)).is_err() {
            continue;
        }
        let up = if file.contains('/') { "../" } else { "" };
        let modeline =
            format!("# yaml-language-server: $schema={up}{SCHEMAS}/{schema}.schema.json\n");
        let path = folder.join(file);
        if world.stat(&path).is_ok() {
            console.print(&format!("kept  {}\n", path.display()));
        } else {
            let text = format!("{modeline}{text}");
            put(world, &path, &text)?;
            written.push((file.to_owned(), text));
            console.print(&format!("wrote {}\n", path.display()));
        }
    }
    put_schemas(world, folder)?;
    let copy = folder.join(BUILTIN);
    let is_trusted = is_new && trust::trust_written(world, console, folder, &written);
    let has_copy = world.list(&copy).is_ok_and(|names| !names.is_empty());
    if !has_copy {
        keep_copy(world, &copy)?;
    }
    console.print(&format!("wrote {}: for editors\n", folder.join(SCHEMAS).display()));
    console.print(&match has_copy {
        true => {
            format!("kept  {}: `policyd init --upgrade` shows the changes since\n", copy.display())
        }
        false => format!("wrote {}: for reading\n", copy.display()),
    });
    if !is_trusted {
        console.print(&format!(
            "\n{} contains files that `policyd init` did not write, so the pack is not trusted and \
             not used. Look at it: policyd lint {0}; then trust it: policyd trust {0}\n",
            folder.display()
        ));
        trust::show_grants(world, console, folder);
    }
    console.print(&format!(
        "\nNow: edit {}, then policyd lint, policyd test and policyd trust\n",
        folder.join(RULES).display()
    ));
    Ok(EXIT_OK)
}

fn put_schemas(world: &dyn World, folder: &Path) -> Result<(), Failed> {
    schemas::of_packs().iter().try_for_each(|(name, schema)| {
        let path = folder.join(SCHEMAS).join(format!("{name}.schema.json"));
        put(world, &path, &format!("{schema:#}\n"))
    })
}

fn keep_copy(world: &dyn World, folder: &Path) -> Result<(), Failed> {
    builtin::FILES.iter().try_for_each(|it| put(world, &folder.join(it.name), it.text))
}

/// Shows what changed since the copy was made, and makes it anew.
fn upgrade(world: &dyn World, console: &mut Console<'_>, folder: &Path) -> Result<u8, Failed> {
    let copy = folder.join(BUILTIN);
    let (mut known, mut changes) = (0, String::new());
    for builtin::File { name: file, text: now, .. } in builtin::FILES {
        let then = world.read(&copy.join(file), POLICY_FILE_BYTES_MAX);
        known += usize::from(then.is_ok());
        let then = then.map(|it| String::from_utf8_lossy(&it).into_owned()).unwrap_or_default();
        changes += &difference(&format!("{}/{file}", copy.display()), &then, now);
    }
    let names = world.list(&copy).unwrap_or_default();
    let is_gone = |name: &&String| {
        name.ends_with(".yaml") && !builtin::FILES.iter().any(|it| it.name == *name)
    };
    let gone: Vec<PathBuf> = names.iter().filter(is_gone).map(|it| copy.join(it)).collect();
    for path in &gone {
        let then = world.read(path, POLICY_FILE_BYTES_MAX).unwrap_or_default();
        changes += &difference(&path.display().to_string(), &String::from_utf8_lossy(&then), "");
    }
    if known == 0 {
        console.eprint(&format!(
            "{} contains no copy of the built-in pack\nhelp: run `policyd init` to create one",
            copy.display()
        ));
        return Ok(EXIT_BROKEN);
    }
    if changes.is_empty() {
        console.print("the built-in pack is unchanged\n");
        return Ok(EXIT_OK);
    }
    console.print(&changes);
    let action = format!("update {} as shown", copy.display());
    if let Err(code) = require_human(world, console, &action) {
        return Ok(code);
    }
    keep_copy(world, &copy)?;
    for path in gone {
        world.remove(&path).map_err(|error| (path, error))?;
    }
    put_schemas(world, folder)?;
    console.eprint("updated the copy\nhelp: run `policyd lint` to check your own files against it");
    Ok(EXIT_FOUND)
}

/// A change of a file as a unified diff.
fn difference(name: &str, then: &str, now: &str) -> String {
    let diff = TextDiff::from_lines(then, now);
    let mut unified = diff.unified_diff();
    unified.context_radius(CONTEXT_LINES).header(name, name).to_string()
}

fn put(world: &dyn World, path: &Path, text: &str) -> Result<(), Failed> {
    let folder = path.parent().unwrap_or(path);
    let made = world.create_folder(folder).and_then(|()| world.write(path, text.as_bytes()));
    made.map_err(|error| (path.to_owned(), error))
}
