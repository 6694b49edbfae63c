//! `policyd init`: a custom pack to start from, with a check, a guard, and cases, or an example pack of the book.
//! `--upgrade` shows what changed in the copy of the built-in pack.

mod example;
mod target;

use std::path::{Path, PathBuf};

use similar::TextDiff;

use super::{Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, InitArguments};
use crate::human::require_human;
use policyd_app::packs::folder;
use policyd_app::workspace::project;
use policyd_base::limits::POLICY_FILE_BYTES_MAX;
use policyd_policy::builtin;
use policyd_report::schemas;
use policyd_world::{World, WorldError};
use target::Target;

/// Files of the new pack, each with the name of its schema.
const FILES: [(&str, &str, &str); 5] = [
    ("policyd.yaml", "policyd", include_str!("init/policyd.yaml")),
    ("considerations.yaml", "considerations", include_str!("init/considerations.yaml")),
    ("guards.yaml", "guards", include_str!("init/guards.yaml")),
    ("tests/changelog.yaml", "cases", include_str!("init/changelog.yaml")),
    ("tests/deploy.yaml", "cases", include_str!("init/deploy.yaml")),
];
/// Directory of the copy of the built-in pack, below the pack.
const BUILTIN: &str = "builtin";
/// Directory of the schemas, below the pack.
const SCHEMAS: &str = "schemas";
/// Keeps a directory that the program can write again out of the repository.
const IGNORED: &str = "# Written by `policyd init`, which writes it again.\n*\n";
/// Lines around a change.
const CONTEXT_LINES: usize = 3;

/// Writes a pack or shows what changed in the built-in pack. Existing files of a pack are kept.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &InitArguments) -> u8 {
    if arguments.list_examples || arguments.example == Some(None) {
        return example::list(console);
    }
    let project = project::find(world, None);
    let target = Target::new(world, &project, arguments.folder.as_deref());
    let done = match &arguments.example {
        Some(Some(name)) => example::write(&target, console, name),
        _ if arguments.upgrade => upgrade(world, console, &target.folder),
        _ => write_pack(&target, console),
    };
    done.unwrap_or_else(|(path, error)| {
        console.eprint(&format!("{}: {error}", path.display()));
        EXIT_BROKEN
    })
}

/// A file that could not be written, and the reason.
type FailedFile = (PathBuf, WorldError);

fn write_pack(target: &Target<'_>, console: &mut Console<'_>) -> Result<u8, FailedFile> {
    let Target { world, folder, shown, .. } = target;
    let is_new = !folder::holds_policies(*world, folder);
    let action = format!("add files to the pack that exists in {shown}");
    if !is_new && let Err(code) = require_human(*world, console, &action) {
        return Ok(code);
    }
    let mut written = Vec::new();
    for (file, schema, text) in FILES {
        let path = folder.join(file);
        if world.stat(&path).is_ok() {
            console.print(&format!("kept  {shown}/{file}\n"));
        } else if is_new {
            let up = if file.contains('/') { "../" } else { "" };
            let text = format!(
                "# yaml-language-server: $schema={up}{SCHEMAS}/{schema}.schema.json\n{text}"
            );
            put(*world, &path, &text)?;
            console.print(&format!("wrote {shown}/{file}\n"));
            written.push((file.to_owned(), text));
        }
    }
    put_schemas(*world, folder)?;
    console.print(&format!("wrote {shown}/{SCHEMAS}: schemas for editors\n"));
    let copy = folder.join(BUILTIN);
    let has_copy = world.list(&copy).is_ok_and(|names| !names.is_empty());
    // Files in it could be mistaken for files of the pack, so trust is decided before they are written.
    let is_trusted = is_new && target.trust_written(console, &written);
    if has_copy {
        console.print(&format!(
            "kept  {shown}/{BUILTIN}: `policyd init --upgrade` shows what changed since\n"
        ));
    } else {
        keep_copy(*world, &copy)?;
        console.print(&format!(
            "wrote {shown}/{BUILTIN}: a copy of the built-in pack to read; policyd does not load it\n"
        ));
    }
    target.print_next_steps(console, is_trusted);
    Ok(EXIT_OK)
}

fn put_schemas(world: &dyn World, folder: &Path) -> Result<(), FailedFile> {
    put(world, &folder.join(SCHEMAS).join(".gitignore"), IGNORED)?;
    schemas::of_packs().iter().try_for_each(|(name, schema)| {
        let path = folder.join(SCHEMAS).join(format!("{name}.schema.json"));
        put(world, &path, &format!("{schema:#}\n"))
    })
}

fn keep_copy(world: &dyn World, folder: &Path) -> Result<(), FailedFile> {
    put(world, &folder.join(".gitignore"), IGNORED)?;
    builtin::FILES.iter().try_for_each(|it| put(world, &folder.join(it.name), it.text))
}

/// Shows what changed since the copy was made, and updates the copy.
fn upgrade(world: &dyn World, console: &mut Console<'_>, folder: &Path) -> Result<u8, FailedFile> {
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

fn put(world: &dyn World, path: &Path, text: &str) -> Result<(), FailedFile> {
    let folder = path.parent().unwrap_or(path);
    let made = world.create_folder(folder).and_then(|()| world.write(path, text.as_bytes()));
    made.map_err(|error| (path.to_owned(), error))
}
