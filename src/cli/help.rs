//! `policyd help`: the help of commands, and the pages of the book.

use std::ffi::OsString;

use super::line::{self, command_line};
use super::{Console, EXIT_OK, EXIT_USAGE, help_groups};
use policyd_book::{self as book, PAGES};
use policyd_eval::line::ArgumentLine;
use policyd_yaml::suggest;

/// Topic that lists all topics.
const TOPICS: &str = "topics";
/// Topic that lists all commands.
const ALL: &str = "all";

/// Prints the help of a command, a page of the book, or both if they have the same name.
pub(super) fn run(console: &mut Console<'_>, words: &[String]) -> u8 {
    let words = &with_group(words);
    if words.first().is_some_and(|it| it == TOPICS) {
        return list(console);
    }
    match words.as_slice() {
        [] => {
            console.print(&help_groups::short(console.screen()));
            return EXIT_OK;
        }
        [word] if word == ALL => {
            console.print(&help_groups::all(console.screen()));
            return EXIT_OK;
        }
        _ => {}
    }
    let page = book::page(&words.join("-"));
    match (is_command(words), page) {
        (true, page) => {
            let code = of_command(console, words);
            if let Some(page) = page {
                console.print(&format!("\n{}", page.text));
            }
            code
        }
        (false, Some(page)) => {
            console.print(page.text);
            EXIT_OK
        }
        (false, None) => unknown(console, &words.join(" ")),
    }
}

/// The command that `policyd COMMAND help [SUBCOMMAND]` names.
pub(super) fn nested(arguments: &[OsString]) -> Option<Vec<String>> {
    let [command, help, rest @ ..] = ArgumentLine::new(arguments).words() else { return None };
    if help != "help" || !command_line().find_subcommand(command)?.has_subcommands() {
        return None;
    }
    let words = std::iter::once(command).chain(rest);
    Some(words.map(|it| it.to_string_lossy().into_owned()).collect())
}

/// The words of a command with the group that it belongs to.
fn with_group(words: &[String]) -> Vec<String> {
    let program = std::iter::once(OsString::from("policyd"));
    let arguments: Vec<OsString> = program.chain(words.iter().map(OsString::from)).collect();
    let grouped = line::grouped(&arguments);
    grouped.iter().skip(1).map(|it| it.to_string_lossy().into_owned()).collect()
}

/// Whether words name a command. Without words, the command is the program.
fn is_command(words: &[String]) -> bool {
    let line = command_line();
    let found = words.iter().try_fold(&line, |command, word| command.find_subcommand(word));
    found.is_some()
}

/// Prints what `--help` prints for a command.
fn of_command(console: &mut Console<'_>, words: &[String]) -> u8 {
    let parts = [&["policyd".to_owned()], words, &["--help".to_owned()]].concat();
    let arguments: Vec<OsString> = parts.into_iter().map(OsString::from).collect();
    if let Err(help) = line::parse(&arguments) {
        console.print(&help.render().to_string());
    }
    EXIT_OK
}

fn list(console: &mut Console<'_>) -> u8 {
    let width = PAGES.iter().map(|it| it.topic().len()).max().unwrap_or_default();
    for page in PAGES {
        console.print(&format!("{:width$}  {}\n", page.topic(), page.summary()));
    }
    console.print("\nRead one: policyd help TOPIC. Help of a command: policyd help COMMAND\n");
    EXIT_OK
}

/// Returns the topics of the pages that contain a word most often.
fn pages_about(word: &str) -> Vec<&'static str> {
    const SHOWN_MAX: usize = 4;
    let word = word.to_lowercase();
    let times = |text: &str| {
        let text = text.to_lowercase();
        text.split(|c: char| !c.is_alphanumeric()).filter(|it| *it == word).count()
    };
    let mut found: Vec<_> = PAGES.iter().map(|it| (times(it.text), it.topic())).collect();
    found.retain(|(times, _)| *times > 0);
    found.sort_by_key(|(times, _)| std::cmp::Reverse(*times));
    found.into_iter().take(SHOWN_MAX).map(|(_, topic)| topic).collect()
}

fn unknown(console: &mut Console<'_>, topic: &str) -> u8 {
    let line = command_line();
    let mut known: Vec<&str> = line.get_subcommands().map(clap::Command::get_name).collect();
    PAGES.iter().for_each(|it| known.push(it.topic()));
    let about = pages_about(topic);
    let is_finding = topic.strip_prefix("PD").is_some_and(|it| it.parse::<u16>().is_ok());
    let help = match suggest::nearest(topic, &known) {
        _ if is_finding => format!("run `policyd lint --explain {topic}`"),
        Some(it) => format!("did you mean `{it}`?"),
        None if about.is_empty() => "run `policyd help topics` to list the topics".to_owned(),
        None => format!("pages with this word: {}", about.join(", ")),
    };
    console.eprint(&format!("unknown topic `{topic}`\nhelp: {help}"));
    EXIT_USAGE
}
