//! Language: house words and shapes of the texts that a reader sees.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use super::reference::GENERATED;
use super::texts::{GUARD_MESSAGE, Text, markdown_texts, pack_texts, rust_texts, sentences};

/// Words to avoid, sorted: the name in the baseline, the pattern, and what to write instead.
const WORDS: &[(&str, &str, &str)] = &[
    ("alike", r"\balike\b", "identical except for case or `-`/`_`"),
    ("amiss", r"\bamiss\b", "did not pass; problem, violation"),
    ("anew", r"\banew\b", "again"),
    (
        "british",
        r"\b(colour|behaviour|recognis|summaris|sanitis|misspelt|licence|labelled|cancelled|neighbour|judgement|catalogue)",
        "American spelling",
    ),
    ("cannot-be-told", r"\bcannot be (told|had|said)\b", "is unknown, is unavailable"),
    (
        "comes-to",
        r"\bcomes? to (the same|nothing|this)\b|\bwhat\b[^.\n]* comes? to\b",
        "is equivalent; the result",
    ),
    ("empty-doc", r"^(Its (id|name)|When|Why|The same)\.$", "a sentence, or no comment"),
    ("for-people", r"\bfor (people|programs)\b", "human-readable, machine-readable"),
    ("form-of", r"(?-i:\bForm of\b)", "output format"),
    ("hand-on", r"\bhand(s|ed)? on\b", "pass, forward"),
    ("in-the-place-of", r"\bin the place of\b", "instead of"),
    ("is-no", r"\b(is|are) (no|none)\b", "is not, cannot, must not, invalid"),
    ("is-told", r"\b(is|are|was|were|be) told\b", "sees, receives; is reported"),
    ("left-alone", r"\bleft alone\b", "is not changed"),
    ("let-go", r"\blets? (go|through)\b", "release, released"),
    ("machine-said", r"\bthe machine said\b", "operating system error"),
    ("mend", r"\bmend(s|ed|ing)?\b", "fix"),
    ("of-our-own", r"\bof our own\b", "policyd's state directory"),
    ("pronoun", r"\b(no|some|any|every)body\b", "name the role: user, agent, client, rule"),
    ("seed", r"\bseed 0\d\d\b", "the name of the upstream project, with a link"),
    ("set-aside", r"\b(puts?|putting|set) aside\b", "quarantine; dead-letter"),
    ("space-percent", r"\d %", "no space before `%`"),
    ("stands-in", r"\bstands? (in|at|for|there|beside)\b", "is in, is at, represents, appears"),
    ("take-in", r"\b(takes?|taken|took) in\b", "ingest, record, accept"),
    ("to-and-fro", r"\bto and fro\b", "oscillates"),
    ("verb-last", r" says `[^`\n]+`\.( |$)", "subject, verb, object"),
    ("what-becomes-of", r"\bwhat (becomes|became) of\b", "result of, outcome of"),
    ("what-is-meant", r"\bwhat is (meant|wanted|asked for)\b", "name the object"),
    ("whoever", r"\bwhoever\b", "name the role: user, agent, client"),
    ("with-s-in-parentheses", r"\w\(s\)", "singular or plural by count"),
    ("written-down", r"\b(written|wrote) down\b", "recorded; saved to `HANDOFF.md`"),
];
/// Words with this name are looked for in `src/lint` only, since a lint message is a comparison there.
const NEARLY: (&str, &str, &str) = ("nearly", r"\bnearly\b", "similar to; is not defined");
/// Texts that contain a word of the list, each with the reason. A single word is a whole literal.
const ALLOWED: &[(&str, &str)] = &[
    ("`src/lint/catalogue.rs`", "the name of a file"),
    ("`status: cancelled`", "a value that Gemini CLI writes"),
    ("cancelled", "a value that clients and code hosts write"),
    ("mended", "a key of logged inputs"),
];
/// Words in a sentence of a document at most.
const SENTENCE_WORDS_MAX: usize = 30;
/// Characters of a help line and of the summary of a lint rule at most.
const LINE_CHARS_MAX: usize = 100;
/// Characters of the message of a guard at most.
const GUARD_CHARS_MAX: usize = 160;

/// A violation: the line of the file, the name of the word, and the text that contains it.
#[derive(Debug)]
struct Hit {
    line: usize,
    word: &'static str,
    text: String,
}

pub(super) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(super) fn files(dir: &str, extension: &str) -> Vec<PathBuf> {
    let (mut found, mut todo) = (vec![], vec![root().join(dir)]);
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|it| it == extension) {
                found.push(path);
            }
        }
    }
    found
}

/// The word list, compiled once.
struct WordList {
    set: RegexSet,
    words: Vec<(&'static str, Regex, &'static str)>,
}

impl WordList {
    fn new() -> Self {
        let rows: Vec<_> = WORDS.iter().chain([&NEARLY]).collect();
        let set = RegexSetBuilder::new(rows.iter().map(|it| it.1))
            .case_insensitive(true)
            .multi_line(true)
            .unicode(false)
            .build();
        let one = |pattern: &str| {
            let mut builder = RegexBuilder::new(pattern);
            builder.case_insensitive(true).multi_line(true).unicode(false).build().unwrap()
        };
        let words = rows.iter().map(|(name, pattern, advice)| (*name, one(pattern), *advice));
        Self { set: set.unwrap(), words: words.collect() }
    }

    /// Finds the words in the texts of a file; a hit within an allowed text does not count.
    fn hits(&self, path: &str, texts: &[Text]) -> Vec<Hit> {
        let mut hits = vec![];
        for (line, text) in texts {
            for index in self.set.matches(text.as_bytes()) {
                let (word, regex, _) = &self.words[index];
                if *word == NEARLY.0 && !path.starts_with("src/lint/") {
                    continue;
                }
                let found = regex.find_iter(text.as_bytes()).map(|it| it.range());
                for range in found.filter(|range| !is_allowed(text, range.start, range.end)) {
                    let before: Vec<char> = text[..range.start].chars().rev().take(40).collect();
                    let shown: String =
                        before.iter().rev().chain(&after(&text[range.start..])).collect();
                    hits.push(Hit { line: *line, word, text: shown.replace('\n', " ") });
                }
            }
        }
        hits
    }

    fn advice(&self, word: &str) -> &'static str {
        let row = self.words.iter().find(|it| it.0 == word);
        row.map_or("see the shape limits in this test", |it| it.2)
    }
}

/// The characters of a text that are shown from a hit on.
fn after(text: &str) -> Vec<char> {
    text.chars().take(60).collect()
}

fn is_allowed(text: &str, start: usize, end: usize) -> bool {
    ALLOWED.iter().any(|(allowed, _)| {
        let is_word = allowed.bytes().all(|it| it.is_ascii_alphabetic());
        let mut places = text.match_indices(allowed).filter(|_| !is_word || text == *allowed);
        places.any(|(at, _)| at <= start && end <= at + allowed.len())
    })
}

/// Texts of a pack file that are too long for the message of a guard.
fn long_messages(texts: &[(String, Text)]) -> Vec<Hit> {
    let messages = texts.iter().filter(|it| it.0 == GUARD_MESSAGE);
    let long = messages.filter(|(_, (_, text))| {
        // Only one alternative of a condition is shown.
        let chars_max = GUARD_CHARS_MAX * if text.contains("${if ") { 2 } else { 1 };
        text.chars().count() > chars_max || text.trim().matches(". ").count() > 1
    });
    long.map(|(_, (line, text))| Hit { line: *line, word: "guard-message", text: text.clone() })
        .collect()
}

/// All violations by file, relative to the root.
fn violations(list: &WordList) -> BTreeMap<String, Vec<Hit>> {
    let mut paths = files("src", "rs");
    paths.extend(files("policies", "yaml"));
    paths.extend(files("src/docs/examples", "yaml"));
    paths.extend(files("src/lint/docs", "md"));
    paths.extend(files("src/docs", "md"));
    let documents = ["README.md", "src/ARCHITECTURE.md", ".github/CONTRIBUTING.md"];
    paths.extend(documents.iter().map(|it| root().join(it)));
    let of_file = |path: PathBuf| {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        let source = fs::read_to_string(&path).unwrap();
        let mut shapes = vec![];
        let texts = if name.ends_with(".rs") {
            rust_texts(&source)
        } else if source.starts_with(GENERATED) {
            // The texts are those of the program, which are checked where they are written.
            vec![]
        } else if name.ends_with(".md") {
            let texts = markdown_texts(&source);
            let long = |it: &&str| it.split_whitespace().count() > SENTENCE_WORDS_MAX;
            for (line, text) in texts.iter().filter(|_| documents.contains(&name.as_str())) {
                let long = sentences(text).filter(long);
                shapes.extend(long.map(|it| Hit {
                    line: *line,
                    word: "sentence",
                    text: it.into(),
                }));
            }
            texts
        } else {
            let texts = pack_texts(&name, &source);
            shapes = long_messages(&texts);
            // Cases quote what agents write: only their comments are texts of this project.
            let is_case = name.contains("/tests/");
            let texts = texts.into_iter().filter(|it| !is_case || it.0 == "comment");
            texts.map(|it| it.1).collect()
        };
        shapes.extend(list.hits(&name, &texts));
        (name, shapes)
    };
    let mut found: BTreeMap<String, Vec<Hit>> = paths.into_par_iter().map(of_file).collect();
    let wrong = |it: &&str| !it.ends_with('.') || it.chars().count() > LINE_CHARS_MAX;
    let summaries = policyd::lint::rules().iter().map(|it| it.summary).filter(wrong);
    let summaries = summaries.map(|it| Hit { line: 0, word: "lint-summary", text: it.into() });
    found.entry("src/lint/catalogue.rs".to_owned()).or_default().extend(summaries);
    found
}

#[test]
fn texts_follow_the_house_language() {
    let list = WordList::new();
    let found = violations(&list);
    let hits = found.iter().flat_map(|(path, hits)| hits.iter().map(move |it| (path, it)));
    let wrong: Vec<String> = hits
        .map(|(path, it)| {
            let (line, text, word) = (it.line, &it.text, &it.word);
            format!("{path}:{line}: `{word}` in …{text}…; write: {}", list.advice(word))
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// Help lines of a command and of everything below it: the command, the name, the first line.
fn help_lines(command: &clap::Command, path: &str, lines: &mut Vec<(String, String)>) {
    let path = format!("{path} {}", command.get_name());
    let mut add = |name: String, help: Option<&clap::builder::StyledStr>| {
        lines.push((name, help.map(ToString::to_string).unwrap_or_default()));
    };
    add(path.clone(), command.get_about());
    for argument in command.get_arguments().filter(|it| !it.is_hide_set()) {
        add(format!("{path} {}", argument.get_id()), argument.get_help());
        for value in argument.get_possible_values().iter().filter(|it| it.get_help().is_some()) {
            add(format!("{path} {} {}", argument.get_id(), value.get_name()), value.get_help());
        }
    }
    command.get_subcommands().for_each(|it| help_lines(it, &path, lines));
}

#[test]
fn help_is_one_short_capitalized_line() {
    let (mut lines, list) = (vec![], WordList::new());
    help_lines(&policyd::cli::command_line(), "", &mut lines);
    assert!(lines.len() > 200, "{} help lines", lines.len());
    let mut wrong = vec![];
    for (name, help) in &lines {
        let begins = help.starts_with(|it: char| it.is_uppercase() || it == '`');
        if help.is_empty() || !begins || help.ends_with('.') || help.contains('\n') {
            wrong.push(format!("{name}: capital, no period, one line: {help}"));
        }
        if help.chars().count() > LINE_CHARS_MAX {
            wrong.push(format!("{name}: over {LINE_CHARS_MAX} characters: {help}"));
        }
        let hits = list.hits("help", &[(0, help.clone())]);
        wrong.extend(hits.iter().map(|it| format!("{name}: `{}`: {help}", it.word)));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_word_list_is_sorted_and_used() {
    assert!(WORDS.is_sorted_by(|a, b| a.0 < b.0), "sort WORDS by name");
    let sources = files("src", "rs").into_iter().chain([root().join(".github/CONTRIBUTING.md")]);
    let text: String = sources.map(|it| fs::read_to_string(it).unwrap()).collect();
    for (allowed, reason) in ALLOWED {
        assert!(text.contains(allowed) && reason.contains(' '), "unused: {allowed}");
    }
}

#[test]
fn new_words_and_stale_lines_are_reported() {
    let source = "/// Its id.\nfn f<'a>(c: char) { let x = ['\"', '\\'']; } // is\n// told; 'mend\nconst A: \
                  &str = \"nobody\\n70 %\"; const B: &str = r#\"a \"alike\" b\"#; const recommend: u8 = 1;";
    let hits = WordList::new().hits("src/x.rs", &rust_texts(source));
    let words: Vec<_> = hits.iter().map(|it| (it.line, it.word)).collect();
    let expected = [
        (1, "empty-doc"),
        (2, "is-told"),
        (2, "mend"),
        (4, "pronoun"),
        (4, "space-percent"),
        (4, "alike"),
    ];
    assert_eq!(words, expected);
}

#[test]
fn texts_of_packs_and_documents_are_found() {
    let pack = "# a comment\n- id: a\n  when: whoever\n  message: \"Who is told? A. B. C.\"\n  decision: ask\n\
                - text: {say: x}\n  voice: pirate\n- guidance: [one, two]\n";
    let texts = pack_texts("a.yaml", pack);
    let mut named: Vec<_> = texts.iter().map(|(key, it)| (it.0, key.as_str())).collect();
    named.sort_unstable();
    assert_eq!(named, [(1, "comment"), (4, GUARD_MESSAGE), (8, "guidance"), (8, "guidance")]);
    assert_eq!(long_messages(&texts).len(), 1);
    let document =
        "# Head\nA sentence\nof two lines.\n\n```sh\nwhoever\n```\n- an item\n  goes on\n";
    let expected = [(1, "# Head"), (2, "A sentence of two lines."), (8, "- an item goes on")];
    let texts = markdown_texts(document);
    assert_eq!(texts.iter().map(|it| (it.0, it.1.as_str())).collect::<Vec<_>>(), expected);
}
