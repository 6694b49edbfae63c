//! Options and operands that are shell text, by the table of what is known of programs: `git rebase
//! --exec`, `vim -c '!…'`, `tmux send-keys`.

use super::super::pattern::CommandPattern;
use super::super::shell::unwrap::base_name;
use super::Input;
use super::known::ShellValue;
use super::scan::{Scanner, Scope};
use super::value::Text;

/// What ends a line that is typed into a terminal.
const ENDS_OF_LINE: [&str; 4] = ["Enter", "C-m", "\\n", "^M"];

impl Scanner<'_> {
    /// Reads the values of a program that are shell text.
    pub(super) fn shell_values(&mut self, words: &[Text], scope: &Scope) {
        let reading = self.reading;
        let name = words.first().map(|it| base_name(&it.text)).unwrap_or_default();
        let begins = |it: &CommandPattern| it.names(name);
        let rows = &reading.knowledge.shell_values;
        if !rows.iter().any(|it| it.programs.iter().any(begins)) {
            return;
        }
        let values = &reading.lens.lens().value_options;
        let program = self.invocation(words, scope, &Input::default(), Vec::new());
        for row in rows {
            let pattern = row.programs.iter().find(|it| program.is(it, values));
            let Some(pattern) = pattern else { continue };
            let given: Vec<Text> = match row.options.is_empty() {
                true => {
                    let named = pattern.operands(&program.name, values);
                    program.operands(values).into_iter().skip(named).cloned().collect()
                }
                false => row.options.iter().flat_map(|it| program.values(it)).collect(),
            };
            for text in given.iter().filter_map(|it| text_of(row, it)) {
                self.text(&text, &mut scope.clone(), &Input::default());
            }
        }
    }
}

/// The shell text in a value, if there is any.
fn text_of(row: &ShellValue, value: &Text) -> Option<String> {
    let text = value.text.trim();
    let text = match row.after.is_empty() {
        true => text,
        false => row.after.iter().find_map(|it| after(text, it))?,
    };
    let ends = ENDS_OF_LINE.iter().find_map(|it| text.strip_suffix(it));
    let text = ends.unwrap_or(text).trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// What follows a mark at the beginning of a text, whatever the case of its letters.
fn after<'t>(text: &'t str, mark: &str) -> Option<&'t str> {
    let head = text.get(..mark.len())?;
    if head.eq_ignore_ascii_case(mark) { text.get(mark.len()..) } else { None }
}
