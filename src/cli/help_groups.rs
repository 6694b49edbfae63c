//! The help of the program: its commands in groups. The short one fits one screen.

use std::fmt::Write as _;

use super::command_table::{COMMAND_GROUPS, CommandGroup};
use super::exit_codes::exit_codes;
use super::line::command_line;
use policyd_record::paint::TextColor;
use policyd_record::table::{Align, Screen, TextCell, TextTable};

/// Returns the help that fits one screen.
pub(super) fn short(screen: Screen) -> String {
    let style = screen.style();
    let mut text = head(screen);
    let mut named = TextTable::new(0, &[Align::Left, Align::Left]);
    for group in &COMMAND_GROUPS {
        let lines = lines(group);
        if lines.is_empty() {
            let title = TextCell::new(group.title, TextColor::Bold);
            named.row(vec![title, group.names().join(", ").into()]);
            continue;
        }
        let mut table = TextTable::new(2, &[Align::Left, Align::Left]);
        for HelpLine { names, summary } in lines {
            table.row(vec![names.join(", ").into(), summary.into()]);
        }
        let _written = write!(text, "{}\n{}", style.bold(group.title), table.render(screen));
    }
    text.push_str(&named.render(screen));
    text.push_str("More: policyd help all, policyd help COMMAND, policyd help topics\n");
    text
}

/// A line of the short help: commands that belong together, and what they do.
struct HelpLine {
    names: Vec<&'static str>,
    summary: &'static str,
}

/// Returns the lines of a group in the short help. Without a line, the group is only named.
fn lines(group: &CommandGroup) -> Vec<HelpLine> {
    let mut lines: Vec<HelpLine> = Vec::new();
    for row in group.rows {
        let name = row.name();
        match (row.summary, lines.last_mut()) {
            (Some(summary), _) => lines.push(HelpLine { names: vec![name], summary }),
            (None, Some(line)) if !line.names.contains(&name) => line.names.push(name),
            (None, _) => {}
        }
    }
    lines
}

/// Returns the help with the purpose of every command.
pub(super) fn all(screen: Screen) -> String {
    let line = command_line();
    let style = screen.style();
    let mut text = head(screen);
    for group in &COMMAND_GROUPS {
        let mut table = TextTable::new(2, &[Align::Left, Align::Left]);
        for name in group.names() {
            let about = line.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            table.row(vec![name.into(), about.into()]);
        }
        let _written = write!(text, "{}\n{}\n", style.bold(group.title), table.render(screen));
    }
    let mut options = TextTable::new(2, &[Align::Left, Align::Left]);
    let own = [
        ("-C DIR", "Run as if policyd was started in this directory"),
        ("--color WHEN", "When to colorize the output: `auto`, `always` or `never`"),
        ("-h, --help", "Print help"),
        ("-V, --version", "Print the version"),
    ];
    own.iter().for_each(|(name, meaning)| options.row(vec![(*name).into(), (*meaning).into()]));
    let _written = write!(text, "{}\n{}\n", style.bold("Options"), options.render(screen));
    exit_codes().lines().for_each(|it| screen.paragraph(&mut text, "", it));
    text
}

fn head(screen: Screen) -> String {
    let about = command_line().get_about().map(ToString::to_string).unwrap_or_default();
    let usage = screen.style().bold("Usage:");
    format!("{about}\n{usage} policyd [OPTIONS] COMMAND\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMINAL: Screen = Screen { columns: Some(80), color: false };

    #[test]
    fn the_short_help_fits_one_screen_and_names_every_command() {
        let text = short(TERMINAL);
        let words: Vec<&str> = text.split([' ', ',', '\n']).collect();
        let absent = COMMAND_GROUPS.iter().flat_map(CommandGroup::names);
        let absent: Vec<_> = absent.filter(|it| !words.contains(it)).collect();
        assert!(absent.is_empty(), "{absent:?}: {text}");
        assert!(text.lines().count() <= 24, "{text}");
        assert!(text.lines().all(|it| it.chars().count() <= 80), "{text}");
    }

    #[test]
    fn the_long_help_has_every_command_with_its_purpose() {
        let text = all(TERMINAL);
        for command in command_line().get_subcommands() {
            let name = command.get_name();
            assert!(text.contains(&format!("\n  {name} ")), "{name}: {text}");
        }
        assert!(text.contains("Exit codes: 0 clean"), "{text}");
    }
}
