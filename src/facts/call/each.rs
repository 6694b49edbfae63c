//! Programs that run another one for each of something: `xargs` and `parallel` for what they read,
//! `find` and `fd` for the files below a folder.

use super::super::shell::unwrap::base_name;
use super::scan::{Scanner, Scope};
use super::value::Text;
use super::wrap::Simple;
use super::{Input, output};

/// Wrappers that put what they read behind the words they are given.
const FROM_INPUT: [&str; 2] = ["xargs", "parallel"];
/// Words of one input that are followed.
const INPUT_WORDS_MAX: usize = 32;

impl Scanner<'_> {
    /// The words of a wrapper with those that it reads.
    pub(super) fn with_input(
        &self,
        taken: &[Text],
        mut words: Vec<Text>,
        input: &Input,
    ) -> Vec<Text> {
        let wrapper = taken.first().map(|it| base_name(&it.text)).unwrap_or_default();
        if !FROM_INPUT.contains(&wrapper) {
            return words;
        }
        let read: Vec<Text> = match (&input.text, &input.below) {
            (Some(text), _) => text
                .split_whitespace()
                .take(INPUT_WORDS_MAX)
                .map(|it| Text { glob: false, from: input.from.clone(), ..Text::known(it) })
                .collect(),
            (None, Some(root)) => vec![below(root)],
            (None, None) => {
                vec![Text { from: input.from.clone(), ..Text::unknown("(standard input)") }]
            }
        };
        let mark = taken.iter().enumerate().find_map(|(at, it)| match it.text.as_str() {
            "-I" | "-J" => taken.get(at + 1).map(|it| it.text.clone()),
            "-i" | "--replace" | "--replace=" => Some("{}".to_owned()),
            glued => {
                let glued = glued.strip_prefix("-I").or_else(|| glued.strip_prefix("--replace="));
                glued.map(str::to_owned)
            }
        });
        let mark = mark.or_else(|| (wrapper == "parallel").then(|| "{}".to_owned()));
        if let Some(mark) =
            mark.filter(|mark| words.iter().any(|it| it.text.contains(mark.as_str())))
        {
            let put = |it: Text| match (it.text.split_once(mark.as_str()), read.first()) {
                (Some((before, after)), Some(value)) => {
                    let mut made = Text::known(before);
                    made.append(value);
                    made.append(&Text::known(after));
                    made
                }
                _ => it,
            };
            return words.into_iter().map(put).collect();
        }
        words.extend(read);
        words
    }

    /// The folders that a program looks for files in.
    pub(super) fn looked_in(&self, words: &[Text], scope: &Scope) -> Vec<Text> {
        let called = words.first().map(|it| base_name(&it.text)).unwrap_or_default();
        if called == "find" {
            return output::roots(words.get(1..).unwrap_or_default());
        }
        // `fd pattern folder… -x program`
        let end = words
            .iter()
            .position(|it| matches!(it.text.as_str(), "-x" | "-X" | "--exec" | "--exec-batch"));
        let words = words.get(..end.unwrap_or(words.len())).unwrap_or_default();
        let program = self.invocation(words, scope, &Input::default(), Vec::new());
        let values = &self.reading.lens.lens().value_options;
        let folders: Vec<Text> = program.operands(values).into_iter().skip(1).cloned().collect();
        if folders.is_empty() { vec![Text::known(".")] } else { folders }
    }

    /// What `find` runs for each file below its roots; `fd` puts the file at the end where it is not
    /// told a place.
    pub(super) fn for_each(&mut self, action: &[Text], roots: &[Text], scope: &mut Scope) {
        let mark = action.iter().all(|it| !it.text.contains("{}")).then(|| Text::known("{}"));
        let action: Vec<Text> = action.iter().cloned().chain(mark).collect();
        for root in roots {
            let put = |it: &Text| match it.text.split_once("{}") {
                Some((before, after)) if it.is_known() => {
                    let mut made = Text::known(before);
                    made.append(&root.all().map_or_else(|| Text::unknown("{}"), below));
                    made.append(&Text::known(after));
                    made
                }
                _ => it.clone(),
            };
            let words = action.iter().map(put).collect();
            let simple = Simple { words, wrappers: vec!["find".to_owned()], ..Simple::default() };
            self.simple(simple, scope, &Input::default());
        }
    }
}

/// Some file below a folder.
fn below(root: &str) -> Text {
    let known = format!("{}/", root.trim_end_matches('/'));
    let mut text = Text::known(known);
    text.append(&Text::unknown("{}"));
    text
}
