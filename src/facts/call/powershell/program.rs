//! PowerShell as a program that is started: where among its words the code stands.

use super::super::super::shell::unwrap::Word;
use super::super::value::Text;

/// Its names.
const PROGRAMS: [&str; 2] = ["pwsh", "powershell"];
/// Options of the program that take a value, in small letters.
const VALUE_OPTIONS: [&str; 9] = [
    "executionpolicy",
    "ep",
    "version",
    "inputformat",
    "outputformat",
    "windowstyle",
    "configurationname",
    "workingdirectory",
    "settingsfile",
];

/// Whether a program is this shell.
pub(in super::super) fn is_one(program: &str) -> bool {
    PROGRAMS.iter().any(|it| program.eq_ignore_ascii_case(it))
}

/// The code that the program is given among its words; nothing where it is given a file, or none.
pub(in super::super) fn code(args: &[Text]) -> Option<Text> {
    let mut words = args.iter().enumerate();
    while let Some((at, word)) = words.next() {
        let written = word.text.to_ascii_lowercase();
        let Some(option) = written.strip_prefix('-') else {
            let is_script = written.ends_with(".ps1") || word.pipe;
            return (!is_script)
                .then(|| <Text as Word>::joined(args.get(at..).unwrap_or_default()));
        };
        let is =
            |names: &[&str]| !option.is_empty() && names.iter().any(|it| it.starts_with(option));
        if is(&["command", "commandwithargs"]) {
            return Some(<Text as Word>::joined(args.get(at.saturating_add(1)..)?));
        }
        if option.is_empty() || is(&["encodedcommand", "file"]) || option == "ec" {
            return None;
        }
        if is(&VALUE_OPTIONS) {
            words.next();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_stands_behind_the_options() {
        let given = |line: &str| {
            let words: Vec<Text> = line.split(' ').map(Text::known).collect();
            code(&words).map(|it| it.text)
        };
        for (line, said) in [
            ("-NoProfile -ExecutionPolicy Bypass -Command ls a", Some("ls a")),
            ("-c ls", Some("ls")),
            ("-NoProfile ls a", Some("ls a")),
            ("-ep Bypass -File a.ps1", None),
            ("-ExecutionPolicy Bypass a.ps1", None),
            ("-EncodedCommand ZQBj", None),
            ("-", None),
        ] {
            assert_eq!(given(line).as_deref(), said, "{line}");
        }
    }
}
