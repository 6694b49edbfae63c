//! `policyd lint`: everything wrong with a pack, each with its place.

use super::{Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, LintArguments, ListFormat, pack, project};
use crate::policy::{builtin, load};
use crate::report::diagnostics;
use crate::source::Level;
use crate::world::World;

/// Lints a pack: exit 0 without errors, 1 with, 3 when nothing could be read.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &LintArguments) -> u8 {
    let project = project::find(world, None);
    let found = pack::find(world, &project, arguments.path.as_deref());
    let pack = found.pack();
    for problem in &found.unreadable {
        console.complain(problem);
    }
    if pack.files.is_empty() {
        return EXIT_BROKEN;
    }
    let findings = load::load(&pack, &builtin::pack()).diagnostics;
    let text = match arguments.format {
        ListFormat::Text => {
            let style = diagnostics::Style { color: console.color(world) };
            diagnostics::render_text(&findings, style)
        }
        ListFormat::Compact => diagnostics::render_compact(&findings),
        ListFormat::Json => diagnostics::render_json(&findings).to_string(),
    };
    console.say(&text);
    let errors = findings.iter().filter(|it| it.level == Level::Error).count();
    if arguments.format == ListFormat::Text {
        let files = pack.files.len();
        let warnings = findings.len().saturating_sub(errors);
        console.say(&format!(
            "{}: {files} file(s), {errors} error(s), {warnings} warning(s)\n",
            pack.name
        ));
    }
    if errors > 0 || !found.unreadable.is_empty() { EXIT_FOUND } else { EXIT_OK }
}
