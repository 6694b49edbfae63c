//! A bound or a join of the analysis ends in "unknown", never in a smaller set: what stands behind a limit, and what a
//! branch, a loop, or a failed `cd` leaves, is not passed.

use super::machine::Machine;

const PROJECT: &str = "/home/dev/project";

/// What each of these lines may delete is the home directory, by one of several ways.
const JOINED: &[&str] = &[
    "x=~; if [ -f a ]; then x=d0; fi; if [ -f b ]; then x=d1; fi; rm -rf $x",
    "x=~; if [ -f a ]; then x=d0; elif [ -f b ]; then x=d1; fi; rm -rf $x",
    "x=~; case $1 in a) x=a;; b) x=b;; esac; rm -rf $x",
    "x=~; while [ -f lock ]; do x=build; done; rm -rf \"$x\"",
    "x=~; until [ -f lock ]; do x=build; done; rm -rf \"$x\"",
    "x=~; for ((;i<2;)); do x=build; done; rm -rf \"$x\"",
    "x=~; for f in $(find . -name y); do x=build; done; rm -rf \"$x\"",
    "x=build; while read -r l; do rm -rf $x; x=~; done",
    "x=~; true && x=a; [ -f b ] && x=b; [ -f c ] && x=c; rm -rf $x",
    "x=~; [ -f a ] || x=b; [ -f b ] || x=c; rm -rf $x",
    "if [ -f a ]; then f() { rm -rf ~; }; else f() { :; }; fi; f",
    "f() { rm -rf ~; }; f() { :; }; f",
    "f() { [ -n \"$2\" ] && rm -rf \"$1\"; f \"$1/..\" \"$2\"; }; f build a",
    "echo 'rm -rf ~' > x.sh; echo true >> x.sh; bash x.sh",
    "printf -v c 'rm -rf %s' ~; $c",
    "x=~; select y in a b; do x=build; done; rm -rf \"$x\"",
    "select x in ~ build; do rm -rf \"$x\"; done",
    "coproc rm -rf ~",
    "coproc { rm -rf ~; }",
    "trap 'rm -rf ~' EXIT",
    "x=~; trap 'rm -rf \"$x\"' EXIT; true",
    "a=(build ~); rm -rf \"${a[1]}\"",
    "a=(build); a+=(~); rm -rf \"${a[@]}\"",
    "a=(build ~); for x in \"${a[@]}\"; do rm -rf \"$x\"; done",
    "a[0]=build; a[1]=~; rm -rf ${a[*]}",
];

/// Each of these lines may delete all files of the project, because a `cd` may fail.
const FAILED: &[&str] = &[
    "cd /tmp/missing; rm -rf *",
    "cd missing; rm -rf ../project",
    "if [ -d a ]; then cd missing; fi; rm -rf *",
    "true && cd missing; rm -rf *",
    "cd missing || true; rm -rf *",
    "cd missing || echo no; rm -rf *",
    "while read -r d; do cd missing; done; rm -rf *",
    "case a in a) cd missing;; esac; rm -rf *",
    "set -e; set +e; cd missing; rm -rf *",
];

/// In these lines, a `cd` succeeds, or nothing runs after it.
const SUCCEEDED: &[&str] = &[
    "cd build; rm -rf *",
    "cd missing && rm -rf *",
    "cd missing || exit 1; rm -rf *",
    "cd missing || { echo no; exit 1; }; rm -rf *",
    "cd missing || return; rm -rf *",
    "set -e; cd missing; rm -rf *",
    "set -euo pipefail\ncd missing\nrm -rf *",
    "mkdir -p missing; cd missing; rm -rf *",
    "git clone https://github.com/a/missing.git; cd missing; rm -rf *",
    "(cd missing; true); rm -rf build",
    "cd build && make; cd ..; rm -rf build",
    "if cd missing; then rm -rf *; fi",
    "x=a; if [ -f a ]; then x=b; fi; if [ -f b ]; then x=c; fi; rm -rf build/$x",
    "for i in 1 2 3; do rm -rf build/$i; done",
];

fn machine() -> Machine {
    let machine = Machine::new(PROJECT);
    machine.world.put(format!("{PROJECT}/build/x"), "");
    machine
}

#[test]
fn no_join_loses_a_value() {
    for line in JOINED {
        assert_ne!(machine().bash(line).0, "", "{line}");
    }
}

#[test]
fn a_cd_that_may_fail_leaves_both_directories() {
    for line in FAILED {
        assert_ne!(machine().bash(line).0, "", "{line}");
    }
    for line in SUCCEEDED {
        assert_eq!(machine().bash(line), (String::new(), String::new()), "{line}");
    }
}

/// Lines with a command that deletes the home directory behind so many parts.
fn behind(count: usize) -> Vec<String> {
    let each = |part: fn(usize) -> String| (0..count).map(part).collect::<String>();
    let letters = "v".repeat(count);
    vec![
        format!("x=~; {}rm -rf $x", each(|it| format!("[ -f {it} ] && x=d{it}; "))),
        format!("case $1 in {}z) x=~;; esac; rm -rf $x", each(|it| format!("{it}) x=d{it};; "))),
        format!("for x in {} ~; do rm -rf $x; done", each(|it| format!("d{it} "))),
        format!(
            "printf '{}~' | while read -r x; do rm -rf $x; done",
            each(|it| format!("d{it}\\n"))
        ),
        format!(
            "python3 -c \"import os\n{}os.system('rm -rf ~')\"",
            "os.system('true')\n".repeat(count)
        ),
        format!("node -e \"{}fs.rmSync('/home/dev')\"", "fs.rmSync('a');".repeat(count)),
        format!("rm -{letters}rf ~"),
        format!("git clean -{letters}fdx"),
        format!("python3 -{}c \"import os; os.system('rm -rf ~')\"", "B".repeat(count)),
        format!("perl -{}e \"system('rm -rf ~')\"", "w".repeat(count)),
        format!("rm -rf {{{}/home/dev}}", each(|it| format!("d{it},"))),
        format!("rm -rf {{{}/home/dev}}{{,}}", each(|it| format!("d{it},"))),
        format!(
            "{}rm -rf l{count}/",
            each(|it| match it {
                0 => "ln -s ~ l1; ".to_owned(),
                it => format!("ln -s l{it} l{}; ", it + 1),
            })
        ),
        format!("start {} rm -rf ~", each(|it| format!("a{it} "))),
        format!("{}rm -rf ~{}", "(".repeat(count), ")".repeat(count)),
        format!("{}rm -rf ~", "sudo ".repeat(count)),
        format!("{}rm -rf ~", each(|it| format!("echo {it}; "))),
        format!("awk 'BEGIN{{e=\"\";c={}\"rm -rf ~\";c|getline}}'", "e ".repeat(count)),
        format!(
            "awk 'BEGIN{{v0=\"rm -rf ~\";{}v{count}|getline}}'",
            each(|it| format!("v{}=v{it};", it + 1))
        ),
        format!("echo {} | xargs rm -rf", each(|it| format!("d{it} ")) + "/home/dev"),
    ]
}

#[test]
fn nothing_is_passed_behind_a_limit() {
    for count in [1, 3, 5, 9, 17, 33, 65, 129, 600] {
        for line in behind(count) {
            let (decision, _) = machine().bash(&line);
            let shown: String = line.chars().take(80).collect();
            assert_ne!(decision, "", "{count}: {shown}");
        }
    }
}
