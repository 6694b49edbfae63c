//! Builtins of the shell that change what the words after them mean: folders, variables, aliases.

use super::scan::{Function, Scanner, Scope};
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
            "read" | "mapfile" | "readarray" => {
                for name in program.args.iter().filter(|it| !it.text.starts_with('-')) {
                    let read = match &input.text {
                        Some(text) => Text::known(text.trim_end()),
                        None => Text {
                            from: input.from.clone(),
                            ..Text::unknown(format!("${}", name.text))
                        },
                    };
                    scope.variables.insert(name.text.clone(), vec![read]);
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
                    let body = format!("{body} \"$@\"").into();
                    scope.functions.insert(name.to_owned(), Function { body });
                }
            }
            "trap" => {
                self.at_the_end.extend(first.and_then(Text::all).map(str::to_owned));
            }
            _ => {}
        }
    }
}
