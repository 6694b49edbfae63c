//! The forms of the shell's grammar, put into each other: whatever bash starts, the reader has to see.

use policyd::facts::call::ShellText;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::{BASH_MIN, Done, Reader, Shown, by_bash, has_bash, smallest};
use crate::support::rounds;

/// Lines that are tried.
const LINES: usize = 3_000;
/// Lines that are made smaller and shown where they are read wrongly.
const SHRUNK_MAX: usize = 5;

/// Forms; at each `§` goes another one.
const FORMS: &[&str] = &[
    "§; §",
    "§\n§",
    "§ && §",
    "§ || §",
    "§ | §",
    "§ & wait",
    "§ & §; wait",
    "! §",
    "{ §; }",
    "(§)",
    "{ §\n}",
    "(\n§\n)",
    "§ ;",
    "§\n\n\n§",
    "  §",
    "\t§",
    "§ # it's \"so\n§",
    "# §\n§",
    "§ \\\n  && §",
    "true &&\n§",
    "true |\n§",
    "if §; then §; fi",
    "if §\nthen\n§\nelse §; fi",
    "if (exit 1); then :; elif §; then §; else §; fi",
    "if ! §; then :; else §; fi",
    "while §; do §; break; done",
    "until ! §; do §; break; done",
    "for i in 1; do §; done",
    "for i in 1\ndo\n§\ndone",
    "for ((i=0;i<1;i++)); do §; done",
    "for i in $(§) x; do §; done",
    "case x in x) §;; esac",
    "case x in\n  (x|y) § ;;\n  *) §\nesac",
    "case $(§) in *) §;; esac",
    "case a in [a-c]*) §;; esac",
    "case a in b) ;; a) §; esac",
    "case a in a) § ;& b) § ;; esac",
    "f() { §; }; f",
    "f() (§); f",
    "f() {\n§\n}\nf",
    "function f { §; }\nf",
    "function f() {\n§\n}\nf",
    "f()\n{ §\n}\nf",
    "f() if true; then §; fi\nf",
    "f() { §; } >/dev/null; f",
    ": $(§)",
    ": \"$(§)\"",
    ": \"a $(§) b $(§)\"",
    ": \"$(: \"$(§)\")\"",
    "A=$(§)",
    "A=\"x $(§)\" B=2\n§",
    "A=1 B=2\n§",
    "A=1 B=2; §",
    "A=1 §",
    "A=1 >/dev/null\n§",
    "A= B=\n§",
    "A=1\\\n B=2\n§",
    "L=(a $(§))\n§",
    "L=(\n  a # b\n  c\n)\n§",
    "L[0]=$(§)",
    "L+=(x)\n§",
    "declare x=$(§)",
    "export x=\"$(§)\"; §",
    "export A B\n§",
    "readonly Q$RANDOM=1\n§",
    "unset A B\n§",
    "declare -A M=([a]=b)\n§",
    ": ${A:-$(§)}",
    ": \"${D:-$(§)}\"",
    ": ${D:-\"$(§)\"}",
    ": $(( $(§) 1 ))",
    ": ${L[$(§) 0]}",
    "echo ${#A} ; §",
    "echo $# # x\n§",
    "cat <(§) >/dev/null",
    "cat <<<\"$(§)\" >/dev/null",
    "cat <<<x >/dev/null; §",
    "cat <<X >/dev/null\n$(§)\nX\n§",
    "cat <<'X' >/dev/null\n'\nX\n§",
    "cat <<-X >/dev/null\n\tb $(§)\n\tX\n§",
    "cat <<\"X\" >/dev/null\n$(\nX\n§",
    "cat <<X | cat >/dev/null\na\nX\n§",
    "cat <<A <<B >/dev/null\na\nA\nb\nB\n§",
    "cat <<X >/dev/null && §\na\nX\n§",
    "cat <<X >/dev/null; §\na\nX\n§",
    "{ cat <<X\na'b\nX\n} >/dev/null; §",
    "(cat <<\\X\n$(\nX\n) >/dev/null; §",
    "if true; then cat <<X >/dev/null\na\nX\nfi\n§",
    "A=$(cat <<X\na \"b'\nX\n)\n§",
    "A=\"$(cat <<'X'\na ) b\nX\n)\"\n§",
    "cat >/dev/null <<X\n\\a\n$(§)\nX\n§",
    "cat <<X >/dev/null\n\nX\n§",
    "cat <<X >/dev/null\nX\n§",
    "bash <<X\n§\nX\n§",
    "bash <<'X'\n§\nX\n§",
    "[[ $(§) ]]; §",
    "[[ -n x && $(§) == x* ]] || §",
    "[ -n \"$(§)\" ]; §",
    "[[ a =~ ^(a|b)$ ]] && §",
    "[[ a == [a-b] ]] && §",
    "[[ ! -e /x ]] && §",
    "[ a \\< b ] && §",
    "test a = a -a b = b && §",
    "(( 1 + $(§) 1 )); §",
    "((1)) && §",
    "echo $((1<<2)) >/dev/null; §",
    "(( i = 1 << 2 )); §",
    "let i=1+1; §",
    "i=$((1+1))\n§",
    "echo $[1+1]; §",
    "eval \"§\"",
    "eval '§'",
    "bash -c '§'",
    "bash -c \"§\"",
    "trap '§' EXIT",
    "echo '§' | bash",
    "echo \"§\" | sh",
    "command §",
    "builtin eval '§'",
    "env §",
    "time §",
    "nohup §",
    "xargs § </dev/null",
    "exec 3>&1; §",
    "set -e; §",
    "shopt -s extglob; §",
    "§ >/dev/null",
    ">/dev/null §",
    "§ 2>&1 | §",
    "§ |& §",
    "{ §; } 2>/dev/null",
    "(§) >/dev/null 2>&1",
    "if §; then §; fi >/dev/null",
    "for i in 1; do §; done | cat",
    "§ 2>/dev/null >&2",
    "§ &>/dev/null",
    "§ </dev/null",
    "§ >|/dev/null",
    "3>&1 §",
    "§ {x}>/dev/null",
    "while read -r l; do §; done <<< x",
    "echo x | while read -r l; do §; done",
    "while read -r l\ndo §\ndone < <(echo x)",
    "§ < <(§)",
    "A='it'\"'\"'s'; §",
    "echo \"a # b\" >/dev/null; §",
    "echo a#b; §",
    "echo '\\'; §",
    "echo \"\\\"\"; §",
    "echo \\\"; §",
    "echo \\'; §",
    "echo $'\\''; §",
    "echo $'a'; §",
    "echo \"\\\\\"; §",
    "echo \\\\; §",
    "echo \"'\"; §",
    "echo '\"'; §",
    "echo \\#; §",
    "echo \\\n§",
    "echo a\\\n\n§",
    "echo {a,b}; §",
    "echo {1..3}; §",
    "echo \"${A//\\\"/x}\"; §",
    "echo \"${A#\\'}\"; §",
    "x=${A//[^a]/}; §",
    "echo ${A:-'}'}; §",
    "echo \"${A:-\\}}\"; §",
    "echo ${A:-\"}\"}; §",
    "echo \"${A%%'*'}\"; §",
    "echo ${A/#a/b}; §",
    "echo ${A/%a/b}; §",
    "echo ${A:0:1}; §",
    "echo ${!A}; §",
    "echo ${A@Q}; §",
    "echo \"${L[@]}\"; §",
    "echo ${#L[@]}; §",
    "echo $$; §",
    "echo $!; §",
    "echo $? $-; §",
    "echo \"$*\"; §",
    "echo $; §",
    "echo \"$\"; §",
    "echo a$; §",
    "echo =; §",
    "echo ~; §",
    "echo !; §",
    "echo ^; §",
    "echo @; §",
    "echo %; §",
    "echo [; §",
    "echo ]; §",
    "echo }; §",
    "echo {; §",
    "echo {}; §",
    "echo -; §",
    "echo --; §",
    "echo +; §",
    "echo ,; §",
    "echo :; §",
    "echo ?; §",
    "echo *; §",
    "echo a=b; §",
    "echo if then fi; §",
    "echo do done; §",
    "echo esac; §",
    "echo in; §",
    "echo function; §",
    "echo time; §",
    "echo \u{e9}; §",
    "printf -v x y; §",
    "printf '%s\\n' a >/dev/null; §",
    "A=<(true); §",
    "cat < /dev/null; §",
    "true & §",
    "true&§",
    "true;§",
    "true|§",
    "true&&§",
    "(true)&&§",
    "{ true;};§",
    "! true; §",
    "!  (exit 1) && §",
    ": ;§",
    "true \n§",
    "a=1;§",
    "a=1 b=2;§",
    "a=1&&§",
    "[ -f /x ]||§",
    "[[ -f /x ]]||§",
    "((0))||§",
];

/// A line, its programs numbered.
fn line() -> impl Strategy<Value = String> {
    let leaf = Just("show 0".to_owned());
    let form = leaf.prop_recursive(4, 12, 3, |inner| {
        let holes = proptest::collection::vec(inner, 3);
        (select(FORMS), holes).prop_map(|(form, inner)| {
            let mut inner = inner.iter().cycle();
            let pieces: Vec<&str> = form.split('§').collect();
            let last = pieces.len() - 1;
            let each = pieces.iter().enumerate();
            each.map(|(at, piece)| match at == last {
                true => (*piece).to_owned(),
                false => format!("{piece}{}", inner.next().unwrap()),
            })
            .collect()
        })
    });
    form.prop_map(|text| {
        let mut pieces = text.split("show 0");
        let first = pieces.next().unwrap_or_default().to_owned();
        let numbered = pieces.enumerate().map(|(at, it)| format!("show {}{it}", at + 1));
        format!("{first}{}\nshow last", numbered.collect::<String>())
    })
}

/// Whether all that bash started was seen.
fn agrees(read: &[Shown<ShellText>], done: &Done) -> bool {
    let is = |read: &Shown<ShellText>, done: &Shown<String>| {
        let all: Option<Vec<&str>> = read.iter().map(ShellText::all).collect();
        all.is_none_or(|it| it.as_slice() == done.as_slice())
    };
    done.shown.iter().all(|done| read.iter().any(|read| is(read, done)))
}

#[test]
fn what_bash_starts_is_seen() {
    if !has_bash() {
        println!("skipped: there is no bash {BASH_MIN}");
        return;
    }
    let mut runner = TestRunner::deterministic();
    let tried = rounds(LINES);
    let mut trees: Vec<_> = (0..tried).map(|_| line().new_tree(&mut runner).unwrap()).collect();
    let lines: Vec<String> = trees.iter().map(|it| it.current()).collect();
    let reader = Reader::new();
    let (mut understood, mut started, mut wrong, mut shown) = (0, 0, 0, Vec::new());
    for ((tree, line), done) in trees.iter_mut().zip(&lines).zip(&by_bash(&lines)) {
        let Some(read) = reader.shown(line) else { continue };
        understood += 1;
        started += done.shown.len();
        if !agrees(&read, done) {
            wrong += 1;
            if shown.len() < SHRUNK_MAX {
                shown.push(smallest(tree, &reader, agrees));
            }
        }
    }
    println!("{understood} of {tried} lines understood, {started} started, {wrong} wrong");
    assert!(wrong == 0, "{wrong} lines are read wrongly:\n{}", shown.join("\n\n"));
    assert!(
        understood > tried / 2 && started > tried,
        "{understood} understood, {started} started"
    );
}
