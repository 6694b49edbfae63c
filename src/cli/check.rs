//! `policyd check`: what policyd decides about a tool call. Runs nothing, writes nothing, and changes no state.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::{
    CheckArguments, Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EXIT_USAGE, ListFormat, pack,
};
use policyd_app::call_check::CallQuestion;
use policyd_app::workspace::project;
use policyd_app::{gate, packs};
use policyd_base::limits::STDIN_BYTES_MAX;
use policyd_eval::line::ArgumentLine;
use policyd_harness::{Harness, claude_code};
use policyd_report::checked_call;
use policyd_shell::shell::quote;
use policyd_world::{FileKind, World};

/// Tool of a command line.
const SHELL: &str = "Bash";
/// Tools whose call one text describes, and the key of that text in the input.
const PLAIN_TOOLS: [(&str, &str); 9] = [
    (SHELL, "command"),
    ("Read", "file_path"),
    ("Write", "file_path"),
    ("Edit", "file_path"),
    ("NotebookEdit", "notebook_path"),
    ("Glob", "pattern"),
    ("Grep", "pattern"),
    ("WebFetch", "url"),
    ("WebSearch", "query"),
];

/// Why no call can be evaluated.
#[derive(Debug, thiserror::Error)]
enum QuestionError {
    #[error(
        "no command line given\nhelp: write it in quotes: `policyd check 'git push --force'`, or pass a file with \
         one per line: `--lines FILE`"
    )]
    Nothing,
    #[error("`{path}` contains no command line\nhelp: write one per line")]
    Empty { path: String },
    #[error("`{path}` is not a directory\nhelp: pass an existing directory to `--cwd`")]
    NoDirectory { path: String },
    #[error("could not read `{path}`: {why}\nhelp: pass a readable file")]
    Unreadable { path: String, why: String },
    #[error(
        "`{path}` is not a JSON object: {why}\nhelp: write the input of the tool, such as \
         `{{\"file_path\": \".env\", \"content\": \"A=1\"}}`"
    )]
    NoInput { path: String, why: String },
    #[error(
        "the input of the tool `{0}` is unknown\nhelp: pass it as JSON: `policyd check --tool {0} --input FILE`"
    )]
    OtherTool(String),
    #[error("{0}")]
    Client(policyd_app::error::AppError),
}

impl QuestionError {
    const fn exit_code(&self) -> u8 {
        match self {
            Self::Unreadable { .. } => EXIT_BROKEN,
            Self::Nothing
            | Self::Empty { .. }
            | Self::NoDirectory { .. }
            | Self::NoInput { .. }
            | Self::OtherTool(_)
            | Self::Client(_) => EXIT_USAGE,
        }
    }
}

/// Prints the decision on each call: exit 1 if a call is blocked.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &CheckArguments) -> u8 {
    match questions(world, console, arguments) {
        Ok(questions) => answer(world, console, arguments, &questions),
        Err(error) => {
            console.eprint(&error.to_string());
            error.exit_code()
        }
    }
}

/// The calls that a command line asks about.
struct Questions {
    client: &'static Harness,
    tool: String,
    directory: Option<PathBuf>,
    inputs: Vec<Value>,
    /// Whether each line of a text is a call.
    is_list: bool,
}

fn answer(
    world: &dyn World,
    console: &mut Console<'_>,
    arguments: &CheckArguments,
    questions: &Questions,
) -> u8 {
    if !is_pack_usable(
        world,
        console,
        questions.directory.as_deref(),
        arguments.policies.as_deref(),
    ) {
        return EXIT_BROKEN;
    }
    let question = |input| CallQuestion {
        client: questions.client,
        tool: &questions.tool,
        input,
        directory: questions.directory.as_deref(),
        policies: arguments.policies.as_deref(),
    };
    let answers = questions.inputs.iter().map(|it| question(it).answer(world));
    let answers: Vec<_> = answers.collect();
    let format = if arguments.json { ListFormat::Json } else { arguments.format };
    let text = match (format, answers.as_slice()) {
        (ListFormat::Json, all) => format!("{:#}\n", checked_call::to_json(all)),
        (ListFormat::Compact, all) => checked_call::compact(all),
        (ListFormat::Text, [one]) if !questions.is_list => one.to_text(console.screen()),
        (ListFormat::Text, all) => checked_call::table(all, console.screen()),
    };
    console.print(&text);
    if answers.iter().any(checked_call::CheckedCall::is_blocked) { EXIT_FOUND } else { EXIT_OK }
}

/// Reports a pack that hooks do not use. Returns whether the answers are about the pack that was named, if one was.
fn is_pack_usable(
    world: &dyn World,
    console: &mut Console<'_>,
    directory: Option<&Path>,
    named: Option<&Path>,
) -> bool {
    let project = directory.map_or_else(|| project::find(world, None), |it| project::at(world, it));
    if named.is_none() {
        let policy = pack::or_builtin_policy(world, console, &project);
        let skipped = policy.as_ref().filter(|it| !it.skipped_layer.is_empty());
        skipped.into_iter().for_each(|it| console.eprint(&it.skipped_layer));
        return policy.is_some();
    }
    let found = packs::find(world, &project, named);
    pack::require_reviewed(world, console, &found).is_some()
}

fn questions(
    world: &dyn World,
    console: &mut Console<'_>,
    arguments: &CheckArguments,
) -> Result<Questions, QuestionError> {
    let CheckArguments { words, tool, input, lines, cwd, harness, .. } = arguments;
    let client = gate::named_harness(harness.as_deref()).map_err(QuestionError::Client)?;
    let client = client.unwrap_or(&claude_code::HARNESS);
    let directory = cwd.as_deref().map(|it| directory(world, it)).transpose()?;
    let tool = tool.as_deref().map_or(SHELL, |it| canonical(client, it));
    let is_terminal = console.stdin_is_tty;
    let (inputs, is_list) = match (words.as_slice(), input, lines) {
        ([line], ..) => (vec![plain_input(tool, line)?], false),
        ([_, _, ..], ..) => (vec![plain_input(tool, &joined(words))?], false),
        ([], Some(path), _) => (vec![json_input(world, console, path)?], false),
        ([], None, Some(path)) => (listed(world, console, tool, path)?, true),
        ([], None, None) if is_terminal => return Err(QuestionError::Nothing),
        ([], None, None) => {
            let inputs = listed(world, console, tool, Path::new("-"));
            let is_empty = |it: &QuestionError| matches!(it, QuestionError::Empty { .. });
            let inputs =
                inputs.map_err(|it| if is_empty(&it) { QuestionError::Nothing } else { it })?;
            let is_list = inputs.len() > 1;
            (inputs, is_list)
        }
    };
    Ok(Questions { client, tool: tool.to_owned(), directory, inputs, is_list })
}

/// Returns the neutral name of a tool, whatever the case of its letters.
fn canonical<'t>(client: &Harness, name: &'t str) -> &'t str {
    let known = PLAIN_TOOLS.iter().map(|(tool, _)| *tool);
    let mut known = known.filter(|it| it.eq_ignore_ascii_case(name));
    let neutral = client.tool(name);
    if client.knows_tool(neutral) { neutral } else { known.next().unwrap_or(neutral) }
}

fn directory(world: &dyn World, named: &Path) -> Result<PathBuf, QuestionError> {
    let folder = policyd_shell::path::normal(&world.working_folder().join(named));
    let is_directory = world.stat(&folder).is_ok_and(|it| it.kind == FileKind::Folder);
    let no_directory = || QuestionError::NoDirectory { path: named.display().to_string() };
    is_directory.then_some(folder).ok_or_else(no_directory)
}

/// Returns the input of a tool whose call one text describes.
fn plain_input(tool: &str, text: &str) -> Result<Value, QuestionError> {
    let key = PLAIN_TOOLS.iter().find(|(name, _)| *name == tool);
    let (_, key) = key.ok_or_else(|| QuestionError::OtherTool(tool.to_owned()))?;
    let text = text.trim();
    if text.is_empty() {
        return Err(QuestionError::Nothing);
    }
    let mut input = Map::from_iter([((*key).to_owned(), json!(text))]);
    match tool {
        "Write" => drop(input.insert("content".to_owned(), json!(""))),
        "Edit" => ["old_string", "new_string"].into_iter().for_each(|it| {
            input.insert(it.to_owned(), json!(""));
        }),
        _ => {}
    }
    Ok(Value::Object(input))
}

fn json_input(
    world: &dyn World,
    console: &mut Console<'_>,
    path: &Path,
) -> Result<Value, QuestionError> {
    let text = read(world, console, path)?;
    let no_input = |why: String| QuestionError::NoInput { path: path.display().to_string(), why };
    let value: Value = serde_json::from_str(&text).map_err(|error| no_input(error.to_string()))?;
    if value.is_object() { Ok(value) } else { Err(no_input("expected `{`".to_owned())) }
}

/// Returns the inputs of the calls that a text lists. Empty lines and comments are skipped.
fn listed(
    world: &dyn World,
    console: &mut Console<'_>,
    tool: &str,
    path: &Path,
) -> Result<Vec<Value>, QuestionError> {
    let text = read(world, console, path)?;
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|it| !it.is_empty() && !it.starts_with('#'));
    let inputs: Vec<Value> = lines.map(|it| plain_input(tool, it)).collect::<Result<_, _>>()?;
    if inputs.is_empty() {
        return Err(QuestionError::Empty { path: path.display().to_string() });
    }
    Ok(inputs)
}

/// Reads a file, or standard input.
fn read(
    world: &dyn World,
    console: &mut Console<'_>,
    path: &Path,
) -> Result<String, QuestionError> {
    let unreadable =
        |why: String| QuestionError::Unreadable { path: path.display().to_string(), why };
    let bytes = if path == Path::new("-") {
        let bound = u64::try_from(STDIN_BYTES_MAX).unwrap_or(u64::MAX);
        let mut bytes = Vec::new();
        let read = (&mut *console.stdin).take(bound).read_to_end(&mut bytes);
        read.map_err(|error| unreadable(error.to_string()))?;
        bytes
    } else {
        let path = world.working_folder().join(path);
        world.read(&path, STDIN_BYTES_MAX).map_err(|error| unreadable(error.to_string()))?
    };
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the words of one command line as a shell reads them.
fn joined(words: &[String]) -> String {
    words.iter().map(|it| quote(it)).collect::<Vec<_>>().join(" ")
}

/// Returns how to ask about a text that a user typed as another argument, if the text looks like a command line.
pub(super) fn hint(typed: &str) -> Option<String> {
    let typed = typed.trim();
    let (program, rest) = typed.split_once(char::is_whitespace)?;
    let rest = rest.trim_start();
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_./~$=;".contains(c);
    let is_operator = rest.starts_with("- ") || rest.starts_with(|c: char| "=!<>&|+*?".contains(c));
    let is_command = program.chars().all(is_name)
        && program.starts_with(|c: char| c.is_ascii_alphabetic() || "./~_".contains(c))
        && !is_operator;
    is_command.then(|| {
        let line = quote(typed);
        format!("help: to see what policyd decides about this command line: policyd check {line}")
    })
}

/// Prints how to ask about an argument that names no file, if the argument looks like a command line.
pub(super) fn hint_at_paths(world: &dyn World, console: &mut Console<'_>, paths: &[PathBuf]) {
    let missing = paths.iter().filter(|it| world.stat(&world.working_folder().join(it)).is_err());
    if let Some(hint) = missing.filter_map(|it| hint(it.to_str()?)).next() {
        console.eprint_as_is(&format!("{hint}\n"));
    }
}

/// Returns how to ask about words that name no command, or that `check` does not read as one command line.
pub(super) fn hint_at_words(line: ArgumentLine<'_>) -> Option<String> {
    let words: Vec<String> =
        line.words().iter().map(|it| it.to_string_lossy().into_owned()).collect();
    let line = match words.as_slice() {
        [first, rest @ ..] if first == "check" => joined(rest),
        // A word that could be meant for a command, and its line in quotes.
        [_, line] if line.contains(char::is_whitespace) => line.clone(),
        [line] => line.clone(),
        all => joined(all),
    };
    hint(&line)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn words_are_joined_as_a_shell_reads_them() {
        let words =
            |all: &[&str]| joined(&all.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
        assert_eq!(words(&["git", "push", "--force"]), "git push --force");
        assert_eq!(words(&["echo", "a b", "it's", "$X", ""]), r"echo 'a b' 'it'\''s' '$X' ''");
    }

    #[test]
    fn what_looks_like_a_command_line_leads_to_check() {
        for line in ["rm -rf ~", "git push", "X=rm; sudo $X -rf /", "./run.sh now", "cat a | sh"] {
            assert!(hint(line).is_some(), "{line}");
        }
        for other in [
            "rm",
            "files.count > 3",
            "files.count - 3",
            "1 + 2",
            "a && b",
            "(x) y",
            "tests/unit",
            "",
        ] {
            assert!(hint(other).is_none(), "{other}");
        }
        assert!(hint("echo 'a'").is_some_and(|it| it.ends_with(r"policyd check 'echo '\''a'\'''")));
    }

    #[test]
    fn words_that_name_no_command_are_a_command_line() {
        let hint = |line: &[&str]| {
            let words: Vec<OsString> = ["policyd"].iter().chain(line).map(OsString::from).collect();
            hint_at_words(ArgumentLine::new(&words)).unwrap_or_default()
        };
        for words in [
            &["git push"][..],
            &["git", "push"],
            &["simulate", "git push"],
            &["check", "git", "push"],
        ] {
            assert!(hint(words).ends_with("policyd check 'git push'"), "{words:?}");
        }
        assert!(hint(&["check", "rm", "-rf", "/"]).ends_with("policyd check 'rm -rf /'"));
        assert_eq!(hint(&["chek"]), "");
    }
}
