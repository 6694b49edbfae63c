//! Builtins of the shell that change what the words after them mean: folders, variables, aliases.

use super::super::shell::unwrap::is_keyword;
use super::super::shell::word::unescape;
use super::scan::{Scanner, Scope};
use super::units::blank;
use super::value::Text;
use super::{Input, Invocation};

impl Scanner<'_> {
    /// What a builtin changes for what follows.
    pub(super) fn builtin(&mut self, program: &Invocation, scope: &mut Scope, input: &Input) {
        let first = program.args.iter().find(|it| !it.text.starts_with('-') || it.text == "-");
        match program.name.as_str() {
            "cd" | "pushd" | "chdir" => {
                scope.folder = match first {
                    None => Some(self.reading.around.home.clone()).filter(|it| !it.is_empty()),
                    Some(folder) if folder.text == "-" => None,
                    Some(folder) if !folder.is_known() => None,
                    Some(folder) => self.place(folder, scope).absolute,
                };
            }
            "popd" => scope.folder = None,
            "read" => read(&program.args, input, scope),
            "mapfile" | "readarray" => {
                if let Some(name) = operands(&program.args, "dnOsuCc").last() {
                    let lines = input.text.as_ref().map(|it| it.lines().map(Text::data).collect());
                    let lines = lines.unwrap_or_else(|| vec![unread(name, input)]);
                    scope.variables.insert(name.text.clone(), lines);
                }
            }
            "set" if program.args.first().is_some_and(|it| it.text == "--") => {
                scope.parameters = Some(program.args.iter().skip(1).cloned().collect());
            }
            "shift" => {
                if let Some(parameters) = scope.parameters.as_mut().filter(|it| !it.is_empty()) {
                    parameters.remove(0);
                }
            }
            "alias" => {
                for (name, body) in program.args.iter().filter_map(|it| it.all()?.split_once('=')) {
                    scope.alias(name, body);
                }
            }
            "printf" => {
                let joined = program.args.first().and_then(|it| it.text.strip_prefix("-v"));
                let name = match joined {
                    Some("") => program.args.get(1).map(|it| it.text.as_str()),
                    joined => joined,
                };
                if let Some(name) = name {
                    scope.forget(name);
                }
            }
            "return" | "break" if is_here(program) => self.functions.may_end(),
            "exit" if is_here(program) => self.functions.may_all_end(),
            "trap" => {
                self.at_the_end.extend(first.and_then(Text::all).map(str::to_owned));
            }
            _ => {}
        }
    }
}

/// Whether the shell itself does what a builtin says, and not a program that it starts.
fn is_here(program: &Invocation) -> bool {
    const OF_SHELL: [&str; 3] = ["eval", "builtin", "command"];
    program.wrappers.iter().all(|it| OF_SHELL.contains(&it.as_str()) || is_keyword(it))
}

/// The arguments that are no options, and no values of the options with these letters.
fn operands<'a>(args: &'a [Text], valued: &str) -> Vec<&'a Text> {
    let mut found = Vec::new();
    let mut is_value = false;
    for arg in args {
        if std::mem::take(&mut is_value) {
            continue;
        }
        match arg.text.strip_prefix('-').filter(|it| !it.is_empty()) {
            Some(letters) => is_value = letters.ends_with(|c| valued.contains(c)),
            None => found.push(arg),
        }
    }
    found
}

/// What a variable holds that was read out of something unknown.
fn unread(name: &Text, input: &Input) -> Text {
    Text { from: input.from.clone(), ..Text::unknown(format!("${}", name.text)) }
}

/// `read`: the words of the first line go to the names, what is left over to the last one.
fn read(args: &[Text], input: &Input, scope: &mut Scope) {
    let mut names = operands(args, "adinNptu");
    let reply = Text::known("REPLY");
    let has =
        |letter: char| args.iter().any(|it| it.text.starts_with('-') && it.text.contains(letter));
    if names.is_empty() {
        names.push(&reply);
    }
    let Some(text) = input.text.as_ref().filter(|_| !has('a')) else {
        for name in args.iter().filter(|it| !it.text.starts_with('-')).chain(names) {
            scope.variables.insert(name.text.clone(), vec![unread(name, input)]);
        }
        return;
    };
    let mut line = String::new();
    match (has('r'), has('d')) {
        (_, true) => text.clone_into(&mut line),
        (true, false) => line.push_str(text.lines().next().unwrap_or_default()),
        // A line that ends in a backslash goes on.
        (false, false) => {
            unescape(&first_line(text), |_| true, &mut line);
        }
    }
    let mut rest = line.trim_matches(blank);
    for (at, name) in names.iter().enumerate() {
        let is_last = at + 1 == names.len();
        let (word, after) = match is_last {
            true => (rest, ""),
            false => rest.split_once(blank).unwrap_or((rest, "")),
        };
        rest = after.trim_start_matches(blank);
        scope.variables.insert(name.text.clone(), vec![Text::data(word)]);
    }
}

/// The first line, with those that it goes on in behind a backslash.
fn first_line(text: &str) -> String {
    let mut line = String::new();
    for part in text.lines() {
        line.push_str(part);
        let backslashes = part.len() - part.trim_end_matches('\\').len();
        if backslashes % 2 == 0 {
            break;
        }
        line.push('\n');
    }
    line
}
