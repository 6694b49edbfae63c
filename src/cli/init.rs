//! `policyd init`: a pack of one's own to start from, with a rule, a case, and the built-in pack beside
//! it for reading. `--upgrade` shows what changed in the built-in pack since.

use std::path::{Path, PathBuf};

use similar::TextDiff;

use super::{Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, InitArguments, project, trust};
use crate::limits::POLICY_FILE_BYTES_MAX;
use crate::policy::builtin;
use crate::report::schemas;
use crate::world::{World, WorldError};

/// Files of the new pack, each with the name of its schema.
const FILES: [(&str, &str, &str); 3] = [
    ("policyd.yaml", "policyd", include_str!("init/policyd.yaml")),
    ("considerations.yaml", "considerations", include_str!("init/considerations.yaml")),
    ("tests/changelog.yaml", "cases", include_str!("init/changelog.yaml")),
];
/// Folder of the built-in pack as it was, below the pack.
const BUILTIN: &str = "builtin";
/// Folder of the schemas, below the pack.
const SCHEMAS: &str = "schemas";
/// Lines around a change.
const CONTEXT_LINES: usize = 3;

/// Writes the pack, or shows what changed; nothing that is there is written over.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &InitArguments) -> u8 {
    let project = project::find(world, None);
    let own = project.root.join(project::OWN_FOLDER).join("policies");
    let folder = arguments.folder.clone().unwrap_or(own);
    let done = if arguments.upgrade {
        upgrade(world, console, &folder)
    } else {
        write_pack(world, console, &folder)
    };
    done.unwrap_or_else(|(path, error)| {
        console.complain(&format!("{}: {error}", path.display()));
        EXIT_BROKEN
    })
}

/// What could not be written, and why.
type Failed = (PathBuf, WorldError);

fn write_pack(world: &dyn World, console: &mut Console<'_>, folder: &Path) -> Result<u8, Failed> {
    for (file, schema, text) in FILES {
        let up = if file.contains('/') { "../" } else { "" };
        let modeline =
            format!("# yaml-language-server: $schema={up}{SCHEMAS}/{schema}.schema.json\n");
        let path = folder.join(file);
        if world.stat(&path).is_ok() {
            console.say(&format!("kept  {}\n", path.display()));
        } else {
            put(world, &path, &format!("{modeline}{text}"))?;
            console.say(&format!("wrote {}\n", path.display()));
        }
    }
    put_schemas(world, folder)?;
    let copy = folder.join(BUILTIN);
    trust::own(world, console, folder);
    let has_copy = world.list(&copy).is_ok_and(|names| !names.is_empty());
    if !has_copy {
        keep_copy(world, &copy)?;
    }
    console.say(&format!(
        "wrote {}, {}: for editors, and for reading\n\nNow: edit {}, then policyd lint, policyd test and \
         policyd trust\n",
        folder.join(SCHEMAS).display(),
        copy.display(),
        folder.join("considerations.yaml").display()
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
    builtin::FILES.iter().try_for_each(|(file, text)| put(world, &folder.join(file), text))
}

/// Shows what changed since the copy was made, and makes it anew.
fn upgrade(world: &dyn World, console: &mut Console<'_>, folder: &Path) -> Result<u8, Failed> {
    let copy = folder.join(BUILTIN);
    let (mut known, mut changes) = (0, String::new());
    for (file, now) in builtin::FILES {
        let then = world.read(&copy.join(file), POLICY_FILE_BYTES_MAX);
        known += usize::from(then.is_ok());
        let then = then.map(|it| String::from_utf8_lossy(&it).into_owned()).unwrap_or_default();
        let name = format!("{}/{file}", copy.display());
        let diff = TextDiff::from_lines(then.as_str(), *now);
        let mut unified = diff.unified_diff();
        changes += &unified.context_radius(CONTEXT_LINES).header(&name, &name).to_string();
    }
    if known == 0 {
        console.complain(&format!(
            "{} holds no copy of the built-in pack; `policyd init` makes one",
            copy.display()
        ));
        return Ok(EXIT_BROKEN);
    }
    if changes.is_empty() {
        console.say("the built-in pack is as it was\n");
        return Ok(EXIT_OK);
    }
    console.say(&changes);
    keep_copy(world, &copy)?;
    put_schemas(world, folder)?;
    console.complain(
        "the copy is up to date now; `policyd lint` tells what of your own no longer fits",
    );
    Ok(EXIT_FOUND)
}

fn put(world: &dyn World, path: &Path, text: &str) -> Result<(), Failed> {
    let folder = path.parent().unwrap_or(path);
    let made = world.create_folder(folder).and_then(|()| world.write(path, text.as_bytes()));
    made.map_err(|error| (path.to_owned(), error))
}
