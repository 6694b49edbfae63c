//! Towers: text that is nested as deeply as its size permits, from each token that opens something and from mixtures
//! of them. Whatever reads them ends, and needs no more stack than a small thread has.

use std::thread;

use policyd::facts::call::{AnalysisContext, Call, CallEnvironment, NoDisk};
use policyd::facts::compiled::CompiledMatchers;
use policyd::facts::shell;
use policyd::policy::{Policy, builtin, load};
use serde_json::{Value, json};

use crate::targets;
use crate::variants::Numbers;

/// The smallest stack on which towers are read. Frames of a debug build are several times as large as those of a release,
/// which holds on 256 KB.
const STACK_BYTES: usize = if cfg!(debug_assertions) { 2048 * 1024 } else { 256 * 1024 };
/// Sizes of a tower: above the limit of nesting, and near the limit of the length.
const SIZES: [usize; 2] = [2_000, 60_000];
/// Mixtures of tokens of the smaller size.
const MIXTURES: usize = 60;

/// What opens something in a shell, and what closes it.
const SHELL: &[(&str, &str)] = &[
    ("(", ")"),
    ("( ", " )"),
    ("{ ", "; }"),
    ("$(", ")"),
    ("echo $(", ")"),
    ("echo \"$(", ")\""),
    ("`", "`"),
    ("${x:-", "}"),
    ("\"${x:-", "}\""),
    ("${x:-\"", "\"}"),
    ("x=${x:-x=", "}"),
    ("${x:+", "}"),
    ("${x:=", "}"),
    ("${x#", "}"),
    ("${x/a/", "}"),
    ("${x:", "}"),
    ("${x[", "]}"),
    ("${!", "}"),
    ("$((", "))"),
    ("((", "))"),
    ("$[", "]"),
    ("<(", ")"),
    (">(", ")"),
    ("cat <(", ")"),
    ("a <<< $(", ")"),
    ("x=(", ")"),
    ("x[$(", ")]=1"),
    ("[[ ( ", " ) ]]"),
    ("[[ ! ", " ]]"),
    ("! ", ""),
    ("if ", "; then :; fi"),
    ("if :; then ", "; fi"),
    ("if :; then :; else ", "; fi"),
    ("while ", "; do :; done"),
    ("until ", "; do :; done"),
    ("while :; do ", "; done"),
    ("for i in 1; do ", "; done"),
    ("for ((;;)); do ", "; done"),
    ("select i in 1; do ", "; done"),
    ("case x in x) ", ";; esac"),
    ("f() { ", "; }; f"),
    ("f() ( ", "); f"),
    ("function f { ", "; }"),
    ("a && ", ""),
    ("a || ", ""),
    ("a | ", ""),
    ("a & ", ""),
    ("time ", ""),
    ("coproc ", ""),
    ("eval ", ""),
    ("exec ", ""),
    ("command ", ""),
    ("sudo ", ""),
    ("env ", ""),
    ("env -C /a ", ""),
    ("A=b env ", ""),
    ("xargs ", ""),
    ("parallel ", ""),
    ("find . -exec ", " \\;"),
    ("find . -exec ", ""),
    ("fd a -x ", ""),
    ("nohup timeout 9 ", ""),
    ("git -c alias.x=!", " x"),
    ("{a,", "}"),
    ("{a..", "}"),
    ("\"", "\""),
    ("'", "'"),
    ("$'", "'"),
    ("$\"", "\""),
    ("\\", ""),
    ("a > $(", ")"),
    ("cat << A\n$(", "\n)\nA\n"),
    ("trap '", "' EXIT"),
    ("bash -c \"", "\""),
    ("echo $(f() { ", "; }; f)"),
];

/// What opens something in PowerShell.
const POWERSHELL: &[(&str, &str)] = &[
    ("{ ", " }"),
    ("if (", ")"),
    ("if (a) { ", " }"),
    ("foreach ($f in ", ")"),
    ("& { ls ", " }"),
    ("$(", ")"),
    ("@{a=", "}"),
    ("@(", ")"),
    ("try { ls } catch { ", " }"),
    ("`", ""),
];

/// What opens something in code of other languages, each behind the interpreter.
const CODE: &[(&str, &str)] = &[
    ("os.system(", ")"),
    ("os.system('", "')"),
    ("[", "]"),
    ("{", "}"),
    ("(", ")"),
    ("subprocess.run([", "])"),
    ("system(\"", "\")"),
];

/// What opens something in JSON, YAML, expressions, and templates.
const DATA: &[(&str, &str)] = &[
    ("[", "]"),
    ("{\"a\":", "}"),
    ("{a: ", "}"),
    ("- ", ""),
    ("? ", ""),
    ("a:\n ", ""),
    ("&a [", "]"),
    ("(", ")"),
    ("!", ""),
    ("-", ""),
    ("if a { ", " }"),
    ("[1].all(|x| ", ")"),
    ("a.b(", ")"),
    ("a || ", ""),
    ("a[", "]"),
    ("${", "}"),
    ("`${", "}`"),
    ("\"", "\""),
    ("{\"tool_input\":", "}"),
];

/// Texts of a list of tokens: each alone, and of the smaller size also without its end, and mixtures. Long texts take time.
fn towers(tokens: &[(&str, &str)], size: usize) -> Vec<String> {
    let is_long = size > SIZES[0];
    let alone = tokens.iter().flat_map(|(open, close)| {
        let count = size / (open.len() + close.len());
        let whole = format!("{}a{}", open.repeat(count), close.repeat(count));
        let cut = (!is_long).then(|| open.repeat(size / open.len()));
        std::iter::once(whole).chain(cut)
    });
    let mut numbers = Numbers::new(size as u64);
    let mixture = |_| {
        // A few tokens, so that some of them fit into each other.
        let few: Vec<_> =
            (0..1 + numbers.below(4)).map(|_| tokens[numbers.below(tokens.len())]).collect();
        let (mut open, mut close) = (String::new(), Vec::new());
        let mut length = 0;
        while length < size {
            let (begins, ends) = few[numbers.below(few.len())];
            length += begins.len() + ends.len();
            open.push_str(begins);
            close.push(ends);
        }
        close.reverse();
        format!("{open}a{}", close.concat())
    };
    let mixtures = if is_long { 0 } else { MIXTURES };
    alone.chain((0..mixtures).map(mixture)).collect()
}

/// Runs a test on a small stack. A thread without enough stack ends the process.
fn on_small_stack(test: impl FnOnce() + Send + 'static) {
    thread::Builder::new().stack_size(STACK_BYTES).spawn(test).unwrap().join().unwrap();
}

fn policy() -> (Policy, CompiledMatchers) {
    let pack = builtin::pack();
    let policy = load::load(&pack, &pack).policy.unwrap();
    let lens = CompiledMatchers::new(policy.lens.clone());
    (policy, lens)
}

/// Reads calls of a tool. No call with a tower hides what is behind it, unless the tower is a text that policyd does not understand.
fn read_calls(tool: &'static str, inputs: Vec<Value>) {
    on_small_stack(move || {
        let (policy, lens) = policy();
        let around = CallEnvironment { folder: "/work".to_owned(), ..CallEnvironment::default() };
        let knowledge = &*policy.guards.knowledge;
        let reading = AnalysisContext { lens: &lens, knowledge, around: &around, disk: &NoDisk };
        for input in inputs {
            let call = Call::read(tool, &input, reading);
            let is_seen = call.programs.iter().any(|it| it.name == "shred");
            let begins = || input.to_string().chars().take(200).collect::<String>();
            assert!(is_seen || !call.is_understood(), "{}", begins());
        }
    });
}

#[test]
fn shell_text_is_read_on_a_small_stack() {
    for size in SIZES {
        let lines = towers(SHELL, size).into_iter();
        read_calls("Bash", lines.map(|it| json!({"command": format!("{it}\nshred x")})).collect());
    }
}

#[test]
fn programs_of_a_transcript_are_read_on_a_small_stack() {
    on_small_stack(|| {
        let (_, lens) = policy();
        for text in SIZES.iter().flat_map(|size| towers(SHELL, *size)) {
            let _programs = shell::parse(&text, &lens);
        }
    });
}

#[test]
fn other_languages_are_read_on_a_small_stack() {
    for size in SIZES {
        let lines = towers(POWERSHELL, size).into_iter();
        let with_end = |it: String| json!({"command": format!("{it}\nshred x")});
        read_calls("PowerShell", lines.map(with_end).collect());
        let code = towers(CODE, size).into_iter().map(|it| {
            let quoted = format!("'{}'", it.replace('\'', r"'\''"));
            json!({"command": format!("python3 -c {quoted}\nshred x")})
        });
        read_calls("Bash", code.collect());
    }
}

#[test]
fn data_is_read_on_a_small_stack() {
    for (name, _) in targets::TARGETS.iter().filter(|it| it.0 != "shell") {
        on_small_stack(|| {
            for text in SIZES.iter().flat_map(|size| towers(DATA, *size)) {
                targets::run(name, text.as_bytes());
                let heads = ["pre-tool-use", "stop claude-code", "guards.yaml"];
                heads.iter().for_each(|it| targets::run(name, format!("{it}\n{text}").as_bytes()));
            }
        });
    }
}
