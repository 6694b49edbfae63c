//! The help of the program: its commands in groups. The short one fits one screen.

use std::fmt::Write as _;

use super::exit_codes::exit_codes;
use super::line::command_line;
use policyd_record::paint::TextColor;
use policyd_record::table::{Align, Screen, TextCell, TextTable};

/// A group of commands. The short help describes the commands of `rows`, and only names the other groups.
struct CommandGroup {
    title: &'static str,
    commands: &'static [&'static str],
    /// Rows of the short help: commands that belong together, and what they do. Empty: the text of the command.
    rows: &'static [(&'static str, &'static str)],
}

/// Every command of the program in one group.
const GROUPS: [CommandGroup; 5] = [
    CommandGroup {
        title: "Start",
        commands: &["install", "uninstall", "doctor", "replay", "check"],
        rows: &[
            ("install, uninstall", "Add hooks to the settings of clients, and remove them"),
            ("doctor", "Check the installation on simulated machines"),
            ("replay", "Show what would have been blocked in your recorded sessions"),
            ("check", "Show what policyd decides about a command line"),
        ],
    },
    CommandGroup {
        title: "Everyday",
        commands: &[
            "status", "inbox", "log", "explain", "rules", "rule", "allow", "pause", "resume",
            "disable", "enable",
        ],
        rows: &[
            ("status", "Show runs, stops, blocks, questions, context, and cost"),
            ("inbox", "List what waits for you in all projects, and answer it"),
            ("log", "List logged decisions, newest last"),
            ("explain", "Explain a decision: which rules fired and with which values"),
            ("rules, rule", "List, search, or explain rules; disable or soften one"),
            ("allow", "Let a rule or a blocked call pass once, or for a while"),
            ("pause, resume", "Pause policyd for a limited time"),
            ("disable, enable", "Disable policyd in this project"),
        ],
    },
    CommandGroup {
        title: "Write",
        commands: &[
            "init", "lint", "test", "try", "facts", "learn", "suggest", "trust", "pack", "schema",
            "lsp",
        ],
        rows: &[],
    },
    CommandGroup {
        title: "Operate",
        commands: &[
            "dashboard",
            "top",
            "report",
            "run",
            "breaker",
            "dlq",
            "escalation",
            "signal",
            "context",
            "store",
            "metrics",
            "export",
        ],
        rows: &[],
    },
    CommandGroup {
        title: "Advanced",
        commands: &["eval", "enforce", "debug", "help", "completions", "man"],
        rows: &[],
    },
];

/// Returns the help that fits one screen.
pub(super) fn short(screen: Screen) -> String {
    let style = screen.style();
    let mut text = head(screen);
    let mut named = TextTable::new(0, &[Align::Left, Align::Left]);
    for group in &GROUPS {
        if group.rows.is_empty() {
            let title = TextCell::new(group.title, TextColor::Bold);
            named.row(vec![title, group.commands.join(", ").into()]);
            continue;
        }
        let mut table = TextTable::new(2, &[Align::Left, Align::Left]);
        for (commands, meaning) in group.rows {
            table.row(vec![(*commands).into(), (*meaning).into()]);
        }
        let _written = write!(text, "{}\n{}", style.bold(group.title), table.render(screen));
    }
    text.push_str(&named.render(screen));
    text.push_str("More: policyd help all, policyd help COMMAND, policyd help topics\n");
    text
}

/// Returns the help with the purpose of every command.
pub(super) fn all(screen: Screen) -> String {
    let line = command_line();
    let style = screen.style();
    let mut text = head(screen);
    for group in &GROUPS {
        let mut table = TextTable::new(2, &[Align::Left, Align::Left]);
        for name in group.commands {
            let about = line.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            table.row(vec![(*name).into(), about.into()]);
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
    fn every_command_is_in_one_group() {
        let mut known: Vec<String> =
            command_line().get_subcommands().map(|it| it.get_name().to_owned()).collect();
        let mut grouped: Vec<String> =
            GROUPS.iter().flat_map(|it| it.commands).map(|it| (*it).to_owned()).collect();
        known.sort();
        grouped.sort();
        assert_eq!(known, grouped);
        for group in GROUPS.iter().filter(|it| !it.rows.is_empty()) {
            let rows: Vec<&str> =
                group.rows.iter().flat_map(|(names, _)| names.split(", ")).collect();
            assert_eq!(rows, group.commands);
        }
    }

    #[test]
    fn the_short_help_fits_one_screen() {
        let text = short(TERMINAL);
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
