//! A real bash beside the reader of calls: generated lines are run by the one and read by the other.

mod forms;
mod words;

use std::io::Write as _;
use std::process::{Command, Stdio};

use policyd::facts::call::{AnalysisContext, Call, CallEnvironment, NoDisk, ShellText};
use policyd::facts::compiled::CompiledMatchers;
use policyd::policy::{Policy, builtin, load};
use proptest::strategy::ValueTree;
use serde_json::json;

/// The bash whose expansions are meant: older ones know fewer of them.
const BASH_MIN: u32 = 5;

/// The home that both sides know.
const HOME: &str = "/home/dev";

/// What ends a word, and what begins a call, in what bash prints.
const WORD: char = '\u{1}';
const CALL: char = '\u{2}';
/// The one word of a call that stands for a complaint.
const COMPLAINT: &str = "\u{3}";

/// Runs each line it reads in a shell of its own; `show` prints the number of the line and what it is handed.
const DRIVER: &str = r#"
exec 9>&1
show() { local it=; [ $# = 0 ] || printf -v it '%s\1' "$@"; printf '\2%s\1%s' $AT "$it" >&9; }
export -f show
export AT=0
set -f
export SHELLOPTS
while IFS= read -r -d '' line; do
  ( eval "$line" ) 2>"$ERRORS" >/dev/null </dev/null
  [ -s "$ERRORS" ] && show $'\3'
  AT=$((AT + 1))
done
wait
"#;

/// A call of `show`: its words.
type Shown<W> = Vec<W>;

/// What bash did with a line.
#[derive(Clone, Default)]
struct Done {
    /// What it handed to `show`.
    shown: Vec<Shown<String>>,
    /// Whether it wrote to its standard error.
    complains: bool,
}

/// What bash does with each line.
fn by_bash(lines: &[String]) -> Vec<Done> {
    let folder = tempfile::tempdir().unwrap();
    let errors = tempfile::NamedTempFile::new().unwrap();
    let mut bash = Command::new("bash")
        .args(["--norc", "--noprofile", "-c", DRIVER])
        .env_clear()
        .envs([("HOME", HOME), ("PATH", "/usr/bin:/bin"), ("LC_ALL", "C.UTF-8")])
        .env("ERRORS", errors.path())
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let input: String = lines.iter().flat_map(|it| [it.as_str(), "\0"]).collect();
    let mut stdin = bash.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = bash.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let mut done = vec![Done::default(); lines.len()];
    for call in text.split(CALL).skip(1) {
        let mut words = call.split_terminator(WORD).map(str::to_owned);
        let at: usize = words.next().unwrap().parse().unwrap();
        let shown: Shown<String> = words.collect();
        if shown == [COMPLAINT] {
            done[at].complains = true;
        } else {
            done[at].shown.push(shown);
        }
    }
    done
}

/// The reader of calls, with what the built-in pack knows of programs.
struct Reader {
    policy: Policy,
    lens: CompiledMatchers,
}

impl Reader {
    fn new() -> Self {
        let pack = builtin::pack();
        let policy = load::load(&pack, &pack).policy.unwrap();
        let lens = CompiledMatchers::new(policy.lens.clone());
        Self { policy, lens }
    }

    /// What it says of `show`; nothing where it says that it did not understand the line.
    fn shown(&self, line: &str) -> Option<Vec<Shown<ShellText>>> {
        let around = CallEnvironment {
            folder: "/work".to_owned(),
            project: "/work".to_owned(),
            home: HOME.to_owned(),
            ..CallEnvironment::default()
        };
        let knowledge = &*self.policy.guards.knowledge;
        let reading =
            AnalysisContext { lens: &self.lens, knowledge, around: &around, disk: &NoDisk };
        let call = Call::read("Bash", &json!({ "command": line }), reading);
        let shown = call.programs.iter().filter(|it| it.name == "show");
        (call.is_understood() && !call.beyond).then(|| shown.map(|it| it.args.clone()).collect())
    }
}

/// Both sides of a line that is read wrongly.
fn shown_both(line: &str, reader: &Reader, done: &Done) -> String {
    let known = |it: &ShellText| match it.is_known() {
        true => format!("{:?}", it.text),
        false => format!("{:?}…", it.known_part()),
    };
    let read = reader.shown(line).unwrap_or_default();
    let read: Vec<String> =
        read.iter().map(|it| it.iter().map(known).collect::<Vec<_>>().join(" ")).collect();
    format!("{line}\n  bash: {:?}\n  read: {read:?}", done.shown)
}

/// The smallest line like it that is still read wrongly.
fn smallest(
    tree: &mut impl ValueTree<Value = String>,
    reader: &Reader,
    agrees: fn(&[Shown<ShellText>], &Done) -> bool,
) -> String {
    let is_wrong = |line: &String| {
        let done = &by_bash(std::slice::from_ref(line))[0];
        let wrong = reader.shown(line).is_some_and(|it| !agrees(&it, done));
        wrong.then(|| shown_both(line, reader, done))
    };
    let mut found = is_wrong(&tree.current()).unwrap_or_default();
    let mut tries = 0..200;
    while tries.next().is_some() && tree.simplify() {
        loop {
            if let Some(smaller) = is_wrong(&tree.current()) {
                found = smaller;
                break;
            }
            if tries.next().is_none() || !tree.complicate() {
                break;
            }
        }
    }
    found
}

/// Whether the bash of this machine is the one that is meant.
fn has_bash() -> bool {
    let version = Command::new("bash").args(["-c", "echo ${BASH_VERSINFO[0]}"]).output();
    let version = version.map(|it| String::from_utf8_lossy(&it.stdout).trim().parse::<u32>());
    version.is_ok_and(|it| it.is_ok_and(|it| it >= BASH_MIN))
}
