//! Words as bash passes them: generated lines are run by a real bash, and what it hands to a program must
//! be what the reader says, wherever the reader says that it knows.

use policyd::facts::call::ShellText;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::{BASH_MIN, Done, HOME, Reader, Shown, by_bash, has_bash, smallest};
use crate::support::rounds;

/// Lines that are tried; a hundred thousand find some that nobody writes.
const LINES: usize = 3_000;
/// Lines that are made smaller and shown where they are read wrongly.
const SHRUNK_MAX: usize = 5;
/// What stands before each line: `D` and `E` are not known.
const BEFORE: &str = "N=A A=q B='r s'\n";

/// What the shell puts a value in for, in and outside of quotes.
const VALUES: &str = r#"$A $B $D $E $N $1 $2 $@ $* ${A} ${B} ${@} ${1} ${1:-z} ${A:-x} ${D-x} ${A:+x}
    ${C:+x} ${A:-$B} ${D:-"$A"} ${A%b} ${A#a} ${A%%b} ${A##a} ${A%/*} ${A##*/} ${A%.*} ${#A} ${A:1}
    ${A:0:1} ${A/a/x} ${A//a/x} ${A^^} ${A,,} ${!N} ${A[0]} ${L[@]} ${L[*]} ${L[1]} $((1+1))"#;
/// The same, those with blanks in them.
const LONG_VALUES: &[&str] = &[
    "${D:-x y}",
    "${A: -1}",
    "$(true)",
    "$(echo a)",
    "$(echo $A)",
    "$(echo \"$B\")",
    "$(echo 'a  b')",
    "$(echo -n a; echo b)",
    "$(echo -e 'a\\tb')",
    "$(printf %s x)",
    "$(printf '%s\\n' y z)",
    "$(cat <<<a)",
    "$(show_ 2>/dev/null)",
    "`echo b`",
    "`echo $A`",
];
const PLAIN: &str = "a b ab . / - = : ~/x 1 @ % + * ? [a] ! ^ , é";
const ESCAPED: &[&str] =
    &["\\ ", "\\a", "\\$", "\\\"", "\\'", "\\\\", "\\*", "\\{", "\\~", "\\\n", "\\;"];
const QUOTED: &[&str] = &[
    "''",
    "'a b'",
    "'$A'",
    "'\\'",
    "'\"'",
    "'{a,b}'",
    "'~'",
    "' '",
    "'*'",
    "'\n'",
    "$'a'",
    "$'\\n'",
    "$'\\''",
    "$'\\101'",
    "$'\\x62'",
    "$'\\u0041'",
    "$'a b'",
    "$''",
    "$'\\cG'",
    "$'\\?'",
    "$'a\\x41\\t'",
    "$\"a b\"",
];
const BRACES: &[&str] = &[
    "{a,b}",
    "{a..c}",
    "{c..a}",
    "{1..3}",
    "{3..1}",
    "{01..3}",
    "{1..5..2}",
    "{-1..1}",
    "{,x}",
    "{a}",
    "{a,{b,c}}",
    "{a,b}{c,d}",
    "{'a b',c}",
    "{${A},c}",
    "{a,\"$A\"}",
    "{a,b",
    "a,b}",
    "\\{a,b}",
    "{a\\,b}",
];
const IN_QUOTES: &[&str] = &[
    "a", "b", " ", "  ", "*", "{a,b}", "~", "'", "\\\"", "\\$", "\\\\", "\\a", "\\\n", "\n", "#",
    ";", "=",
];

/// Statements; in `<words>` go words, in `<word>` one, in `<name>` the name of a variable, and the same without
/// signs that would end the quotes around them or cannot be followed.
const STATEMENTS: &[&str] = &[
    "show <words>",
    "show <words> <words>",
    "{ show <words>; }",
    "! show <words>",
    "true && show <words>",
    "(exit 1) || show <words>",
    "show <words> # <words no newline>",
    "show 2>/dev/null <words>",
    "show <words>a 2>/dev/null <words>",
    "(A=z; show <words>); show <words>",
    "if true; then show <words>; fi",
    "case x in x) show <words>;; esac",
    "for B in <words>; do show $B \"$B\" <words>; done",
    "f() { show \"$@\"; show $1; }; f <words>",
    "function f { show <words>; }; f",
    "f() { local A=l; show <words>; }; f <words>; show $A",
    "<name>=<word>",
    "<name>=<word>",
    "<name>=<word> <name>=<word>",
    "<name>+=<word>",
    "<name>=<word> show <words>",
    "<name>=<word> eval 'show <words no quotes>'",
    "<name>=$(echo <words>); show $A \"$A\"",
    "<name>=\"$(printf '%s' <words>)\"; show $A \"$A\"",
    "export <name>=<word>a",
    "declare <name>=<word>a",
    "readonly <name>=<word>a",
    "unset <name>",
    ": \"${<name>:=<word no quotes>}\"",
    "L=(<words>)",
    "set -- <words no values>",
    "set -- <words no values>; shift; show \"$@\"",
    "eval show <words no tilde>",
    "eval \"show <words no quotes>\"",
    "read B <<<<word no escapes>; show \"$B\"",
    "printf '%s\\n' <words> | while read -r B; do show \"$B\"; done",
    "bash -c 'show <words no quotes> \"$@\"' x <words>",
    "echo 'show <words no quotes>' | bash",
    "bash <<X\nshow <words> .\nX\n",
    "bash <<'X'\nshow <words>\nX\n",
    "export A; bash -c 'show \"$A\"'",
];

fn any_of(texts: &'static [&'static str]) -> impl Strategy<Value = String> {
    select(texts).prop_map(str::to_owned)
}

fn any_in(texts: &'static str) -> impl Strategy<Value = String> {
    select(texts.split_whitespace().collect::<Vec<_>>()).prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![2 => any_in(VALUES), 1 => any_of(LONG_VALUES)]
}

fn in_quotes() -> impl Strategy<Value = String> {
    let inner = prop_oneof![4 => any_of(IN_QUOTES), 3 => value()];
    vec(inner, 0..4).prop_map(|it| format!("\"{}\"", it.concat()))
}

fn word() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => any_in(PLAIN), 2 => any_of(ESCAPED), 4 => any_of(QUOTED), 2 => any_of(BRACES),
        4 => value(), 4 => in_quotes(),
    ];
    vec(piece, 1..4).prop_map(|it| it.concat())
}

/// What may stand in the place of a mark.
fn filled(mark: &str, word: &str, words: &str, name: &str) -> String {
    let (kind, without) = mark.split_once(" no ").unwrap_or((mark, ""));
    let text = match kind {
        "name" => name,
        "word" => word,
        _ => words,
    };
    match without {
        "quotes" => text.replace(['\'', '"', '\\', '}', '~'], ""),
        "values" => text.replace('$', ""),
        "escapes" => text.replace(['\\', '~'], ""),
        "tilde" => text.replace('~', ""),
        "newline" => text.replace('\n', ""),
        _ => text.to_owned(),
    }
}

fn statement() -> impl Strategy<Value = String> {
    let marks = vec((word(), vec(word(), 0..3), select(&["A", "B", "D", "E"][..])), 4);
    (any_of(STATEMENTS), marks).prop_map(|(mut statement, marks)| {
        for (word, words, name) in marks {
            // `<<<` and `<<X` are no marks.
            let Some(open) = ["<name", "<word"].iter().find_map(|it| statement.find(it)) else {
                break;
            };
            let (before, mark) = statement.split_at(open);
            let (mark, after) = mark.split_once('>').unwrap();
            let text = filled(mark.trim_start_matches('<'), &word, &words.join(" "), name);
            statement = format!("{before}{text}{after}");
        }
        statement
    })
}

fn line() -> impl Strategy<Value = String> {
    vec(statement(), 1..5).prop_map(|it| format!("{BEFORE}{}\nshow", it.join("\n")))
}

/// A text with the home put in, if it begins with it.
fn with_home(text: &str) -> String {
    match text.strip_prefix('~').filter(|it| it.is_empty() || it.starts_with('/')) {
        Some(rest) => format!("{HOME}{rest}"),
        None => text.to_owned(),
    }
}

/// Whether what was read holds for what was handed: a part that is not known stands for any words. A `~` out of a
/// value may be taken for the home: that is what was meant.
fn holds(read: &[ShellText], handed: &[String]) -> bool {
    for (at, text) in read.iter().enumerate() {
        let known = text.known_part();
        let is_or_begins = |it: &str, known: &str| match text.is_known() {
            true => it == known,
            false => it.starts_with(known),
        };
        let is_same = |it: &String| {
            is_or_begins(it, known) || is_or_begins(&with_home(it), &with_home(known))
        };
        if !text.is_known() {
            return handed.get(at).is_none_or(is_same);
        }
        if !handed.get(at).is_some_and(is_same) {
            return false;
        }
    }
    read.len() == handed.len()
}

/// Whether all that bash did was read, and all that is said to be known was done.
fn agrees(read: &[Shown<ShellText>], done: &Done) -> bool {
    // Where it complains, what it did is not what was asked for.
    if done.complains {
        return true;
    }
    let is_read = |done: &Shown<String>| read.iter().any(|read| holds(read, done));
    let is_done = |read: &Shown<ShellText>| {
        !read.iter().all(ShellText::is_known) || done.shown.iter().any(|done| holds(read, done))
    };
    done.shown.iter().all(is_read) && read.iter().all(is_done)
}

#[test]
fn words_are_those_that_bash_passes() {
    if !has_bash() {
        println!("skipped: there is no bash {BASH_MIN}");
        return;
    }
    let mut runner = TestRunner::deterministic();
    let tried = rounds(LINES);
    let mut trees: Vec<_> = (0..tried).map(|_| line().new_tree(&mut runner).unwrap()).collect();
    let lines: Vec<String> = trees.iter().map(|it| it.current()).collect();
    let reader = Reader::new();
    let (mut understood, mut known, mut wrong, mut shown) = (0, 0, 0, Vec::new());
    for ((tree, line), done) in trees.iter_mut().zip(&lines).zip(&by_bash(&lines)) {
        let Some(read) = reader.shown(line).filter(|_| !done.complains) else { continue };
        understood += 1;
        known += usize::from(read.iter().flatten().all(ShellText::is_known));
        if !agrees(&read, done) {
            wrong += 1;
            if shown.len() < SHRUNK_MAX {
                shown.push(smallest(tree, &reader, agrees));
            }
        }
    }
    println!("{understood} of {tried} lines understood, of {known} all known, {wrong} wrong");
    assert!(wrong == 0, "{wrong} lines are read wrongly:\n{}", shown.join("\n\n"));
    assert!(understood > tried / 2 && known > tried / 4, "{understood} understood, {known} known");
}
