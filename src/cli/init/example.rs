//! `policyd init --example`: the example packs of the book.

use super::target::Target;
use super::{FailedFile, put};
use crate::{Console, EXIT_BROKEN, EXIT_OK, EXIT_USAGE};
use policyd_book::{self as book, EXAMPLES};
use policyd_yaml::suggest;

/// Lists the example packs with one sentence each.
pub(super) fn list(console: &mut Console<'_>) -> u8 {
    let width = EXAMPLES.iter().map(|it| it.name.len()).max().unwrap_or_default();
    for it in EXAMPLES {
        console.print(&format!("{:width$}  {}\n", it.name, it.summary()));
    }
    console.print("\nWrite one: policyd init --example NAME [DIR]\n");
    EXIT_OK
}

/// Writes an example pack, or nothing if one of its files exists.
pub(super) fn write(
    target: &Target<'_>,
    console: &mut Console<'_>,
    name: &str,
) -> Result<u8, FailedFile> {
    let Some(example) = book::example(name) else {
        let names: Vec<&str> = EXAMPLES.iter().map(|it| it.name).collect();
        let help = suggest::nearest(name, &names).map_or_else(
            || "run `policyd init --list-examples` to list the examples".to_owned(),
            |it| format!("did you mean `{it}`?"),
        );
        console.eprint(&format!("unknown example `{name}`\nhelp: {help}"));
        return Ok(EXIT_USAGE);
    };
    let Target { world, folder, shown, .. } = target;
    let existing = example.files.iter().find(|it| world.stat(&folder.join(it.0)).is_ok());
    if let Some((file, _)) = existing {
        console.eprint(&format!(
            "`{shown}/{file}` exists; no file was written\nhelp: pass another directory: policyd init \
             --example {name} DIR"
        ));
        return Ok(EXIT_BROKEN);
    }
    let mut written = Vec::new();
    for (file, text) in example.files {
        put(*world, &folder.join(file), text)?;
        console.print(&format!("wrote {shown}/{file}\n"));
        written.push(((*file).to_owned(), (*text).to_owned()));
    }
    let is_trusted = target.trust_written(console, &written);
    target.print_next_steps(console, is_trusted);
    Ok(EXIT_OK)
}
