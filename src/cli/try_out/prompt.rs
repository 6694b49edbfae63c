//! The prompt of `policyd try`: one expression after another on the same session, with history and completion.

use std::path::PathBuf;
use std::sync::Arc;

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Editor, Helper};

use super::super::{Console, EXIT_BROKEN, EXIT_OK, TryArguments};
use super::Trial;
use policyd_fact_table::marks::{ExpectedWord, place};
use policyd_fact_table::members::tables;
use policyd_fact_table::types::{Names, Type};
use policyd_store::user::UserDirectory;
use policyd_world::World;

/// Lines of the history that are kept.
const HISTORY_LINES_MAX: usize = 1000;
/// File of the history in the state directory of the user.
const HISTORY_FILE: &str = "try-history";

const INTRODUCTION: &str =
    "Type an expression. Tab completes a name, :help lists the commands, Ctrl-D ends.\n";
const HELP: &str = "\
:session SESSION  try on this session: a transcript file or the beginning of a session ID
:session          try on an empty session
:help             show this list
:quit             end, as Ctrl-D does
A line that begins with a space is not saved in the history.
";

/// A line that the user typed.
#[derive(Debug, PartialEq, Eq)]
enum PromptLine<'l> {
    Nothing,
    Expression(&'l str),
    Session(Option<&'l str>),
    Help,
    Quit,
    Unknown(&'l str),
}

impl<'l> PromptLine<'l> {
    fn read(line: &'l str) -> Self {
        let line = line.trim();
        let Some(command) = line.strip_prefix(':') else {
            return if line.is_empty() { Self::Nothing } else { Self::Expression(line) };
        };
        let (name, rest) = command.split_once(' ').unwrap_or((command, ""));
        let rest = rest.trim();
        match name {
            "session" => Self::Session(Some(rest).filter(|it| !it.is_empty())),
            "help" => Self::Help,
            "quit" => Self::Quit,
            _ => Self::Unknown(name),
        }
    }
}

/// Completes the names of facts, their members, and the names that the pack defines.
struct NameCompleter {
    names: Arc<Names>,
}

impl NameCompleter {
    /// Returns what can be written at a place: the text, and what the list shows.
    fn words(&self, expected: &ExpectedWord) -> Vec<Pair> {
        let word = |text: String, about: &str| Pair {
            display: format!("{text}  {about}"),
            replacement: text,
        };
        match expected {
            ExpectedWord::Nothing | ExpectedWord::Items => Vec::new(),
            ExpectedWord::Members(owner) => match Names::class_of_members(*owner) {
                Some(class) => self
                    .names
                    .of_class(class)
                    .iter()
                    .map(|it| word(it.clone(), class.noun))
                    .collect(),
                None => members(*owner),
            },
            ExpectedWord::PackNames(class) => {
                self.names.of_class(*class).iter().map(|it| word(it.clone(), class.noun)).collect()
            }
            ExpectedWord::Values { values, .. } => {
                values.iter().map(|it| word(it.clone(), "")).collect()
            }
        }
    }
}

/// The members of a type. What takes arguments is completed up to the first of them.
fn members(owner: Type) -> Vec<Pair> {
    let rows = tables().filter(|it| it.owner == owner);
    let pair = |it: &policyd_fact_table::members::Member| Pair {
        display: format!("{}  {}", it.signature(), it.result),
        replacement: match it.params {
            None => it.name.to_owned(),
            Some([]) => format!("{}()", it.name),
            Some(_) => format!("{}(", it.name),
        },
    };
    rows.map(pair).collect()
}

impl Completer for NameCompleter {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _context: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let found = place(line, at, &*self.names);
        let begun = line.get(found.word.start..at).unwrap_or_default();
        let is_quoted = line.get(..found.word.start).is_some_and(|it| it.ends_with(['"', '`']));
        let is_text = !matches!(found.expected, ExpectedWord::Members(_));
        let mut words = self.words(&found.expected);
        words.retain(|it| it.replacement.starts_with(begun));
        if is_text && !is_quoted {
            for word in &mut words {
                word.replacement = format!("\"{}\"", word.replacement);
            }
        }
        Ok((found.word.start, words))
    }
}

impl Helper for NameCompleter {}
impl Hinter for NameCompleter {
    type Hint = String;
}
impl Highlighter for NameCompleter {}
impl Validator for NameCompleter {}

type PromptEditor = Editor<NameCompleter, FileHistory>;

/// Starts the editor of the prompt with the history of the user.
fn editor(names: &Arc<Names>, history: Option<&PathBuf>) -> rustyline::Result<PromptEditor> {
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .max_history_size(HISTORY_LINES_MAX)?
        .history_ignore_space(true)
        .auto_add_history(true)
        .build();
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(NameCompleter { names: Arc::clone(names) }));
    if let Some(history) = history {
        // The first prompt of a user has no history.
        drop(editor.load_history(history));
    }
    Ok(editor)
}

/// Reads and tries expressions until the user ends the prompt.
pub(super) fn run(
    world: &dyn World,
    console: &mut Console<'_>,
    arguments: &TryArguments,
    mut trial: Trial,
) -> u8 {
    let folder = UserDirectory::State.path(world);
    let history = folder.as_ref().map(|it| it.join(HISTORY_FILE));
    let mut editor = match editor(&trial.names, history.as_ref()) {
        Ok(editor) => editor,
        Err(error) => {
            console.eprint(&format!("could not use the terminal: {error}"));
            return EXIT_BROKEN;
        }
    };
    console.print(INTRODUCTION);
    let mut saved = folder.as_ref().map(|it| world.create_folder(it).map_err(|it| it.to_string()));
    loop {
        let line = match editor.readline("try> ") {
            Ok(line) => line,
            // Ctrl-C drops the line, as in a shell.
            Err(ReadlineError::Interrupted) => continue,
            Err(_) => break,
        };
        if let (Some(history), Some(Ok(()))) = (&history, &saved) {
            // After each line, because a terminal can be closed. Another prompt has the same file.
            saved = Some(editor.append_history(history).map_err(|it| it.to_string()));
        }
        match PromptLine::read(&line) {
            PromptLine::Nothing => {}
            PromptLine::Quit => break,
            PromptLine::Help => console.print(HELP),
            PromptLine::Unknown(name) => console
                .eprint(&format!("unknown command `:{name}`\nhelp: `:help` lists the commands")),
            PromptLine::Session(named) => {
                if let Ok(loaded) = Trial::load(world, console, arguments, named) {
                    trial = loaded;
                }
            }
            PromptLine::Expression(expression) => {
                let _code = trial.answer(console, arguments.format, expression);
            }
        }
    }
    if let Some(Err(error)) = saved {
        console.eprint(&format!("the history was not saved: {error}"));
    }
    EXIT_OK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_expression_or_a_command() {
        for (line, expected) in [
            ("  ", PromptLine::Nothing),
            (" files.count > 3 ", PromptLine::Expression("files.count > 3")),
            (":session", PromptLine::Session(None)),
            (":session 4f0c ", PromptLine::Session(Some("4f0c"))),
            (":help", PromptLine::Help),
            (":quit", PromptLine::Quit),
            (":sesion 4", PromptLine::Unknown("sesion")),
        ] {
            assert_eq!(PromptLine::read(line), expected, "{line}");
        }
    }
}
