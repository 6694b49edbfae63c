//! Input of shells and interpreters: what cannot be computed is asked about, what can be computed is judged by
//! what it does, and plain pipes are silent.

use super::machine::Machine;
use crate::support::sample;

/// Programs that change what they read in a way that is not computed.
const FILTERS: &[&str] = &[
    "sed s/x/rm/",
    "sed -n 2p",
    "cut -c2-",
    "awk '{print $2}'",
    "jq -r .cmd",
    "yq .cmd",
    "tr x r",
    "paste -sd ' '",
    "fold -w 3",
    "grep -v x",
    "head -1",
    "tail -n +2",
    "sort",
    "envsubst",
    "perl -pe s/x/rm/",
    "dd conv=lcase",
    "iconv -t utf8",
];

/// What runs what it reads.
const READERS: &[&str] = &[
    "sh",
    "bash",
    "bash -s",
    "bash -",
    "bash /dev/stdin",
    "sudo bash",
    "env sh",
    "zsh",
    "python3",
    "python3 -",
    "python3 /dev/stdin",
    "node",
    "perl",
    "ruby",
    "source /dev/stdin",
];

/// Forms of `printf` that are not computed.
const FORMATS: &[&str] = &["%03d", "%x", "%q", "%5s", "%*d", "%(%Y)T", "%.3s", "%c"];

/// Code that is the value of a variable nobody can know here.
const VALUES: &[&str] = &[
    "eval \"$x\"",
    "eval $x",
    "eval \"${x}\"",
    "eval \"$x\" && ls",
    "eval \"$1\"",
    "cd /x && eval \"$x $y\"",
    "sh -c \"$x\"",
    "bash -lc \"$x\"",
    "sudo bash -c \"$x\"",
    "python3 -c \"$x\"",
    "node -e \"$x\"",
    "bash <<< \"$x\"",
    "bash <<E\n$x\nE",
    "bash <<E\n$(sed s/x/rm/ <<< 'x -rf ~')\nE",
    "echo \"$x\" | sh",
    "echo \"$x\" > a.sh; bash a.sh",
    "while read -r x; do eval \"$x\"; done < a.txt",
    "eval \"$(sed s/x/rm/ a.txt)\"",
    "source <(cut -c2- a.txt)",
];

/// What is usual.
const USUAL: &[&str] = &[
    "curl -s http://localhost:3000/a | jq .",
    "cat x | python3 script.py",
    "sed s/a/b/ x | python3 script.py",
    "sed s/a/b/ x | python3 -m json.tool",
    "cut -f1 x | python3 -c 'import sys; print(sys.stdin.read())'",
    "jq .a x | node -e 'process.stdin.pipe(process.stdout)'",
    "sort x | perl -ne 'print'",
    "sort x | awk '{print $1}' | ruby -ne 'puts $_'",
    "echo \"$x\" | grep y",
    "python3 -c 'print(1)'",
    "python3 -c \"print('$x')\"",
    "psql < dump.sql",
    "psql -c \"$query\"",
    "eval \"$(ssh-agent -s)\"",
    "eval \"$(direnv hook bash)\"",
    "eval \"$(pyenv init -)\"",
    "eval set -- \"$options\"",
    "source <(kubectl completion bash)",
    "source venv/bin/activate",
    "cat script.sh | bash",
    "bash < script.sh",
    "sh script.sh",
    "sh \"$script\"",
    "bash \"$dir/script.sh\" \"$(head -1 x)\"",
    "bash -c \"$dir/script.sh\"",
    "bash -c \"cd $dir && npm test\"",
    "bash -c \"kill $(lsof -t -i:3000 | head -1)\"",
    "x='ls -la'; eval \"$x\"",
    "for x in ls pwd; do eval \"$x\"; done",
    "echo 'ls -la' | sh",
    "printf 'ls %s\\n' src | sh",
    "bash <<E\nls $x\nE",
    "find . -name '*.sh' | xargs -n1 bash -n",
    "git diff --name-only | grep py | xargs python3 -m py_compile",
    "sed -n 1p x | while read -r f; do node check.js \"$f\"; done",
    "make",
    "make -j4 test",
    "make -f build/Makefile",
];

/// Lines that are not answered as they should be: by a question or a refusal, or not at all.
fn wrong(lines: &[String], stopped: bool) -> Vec<(String, String)> {
    let machine = Machine::new("/home/dev/project");
    let answered = lines.iter().map(|it| (it.clone(), machine.bash(it).0));
    answered.filter(|(_, it)| matches!(it.as_str(), "ask" | "deny") != stopped).collect()
}

#[test]
fn code_that_a_filter_makes_is_not_run_unasked() {
    let mut lines = Vec::new();
    for (filter, reader) in FILTERS.iter().flat_map(|it| READERS.iter().map(move |to| (it, to))) {
        lines.push(format!("{filter} a.txt | {reader}"));
        lines.push(format!("cat a.txt | {filter} | {reader}"));
        lines.push(format!("{filter} <<< 'x -rf ~' | {reader}"));
    }
    for (format, reader) in FORMATS.iter().flat_map(|it| READERS.iter().map(move |to| (it, to))) {
        lines.push(format!("printf '{format}' 7 | {reader}"));
    }
    let lines: Vec<String> = sample(lines.into_iter()).collect();
    let wrong = wrong(&lines, true);
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), lines.len());
}

#[test]
fn code_in_an_unknown_variable_is_not_run_unasked() {
    let lines: Vec<String> = VALUES.iter().map(|it| (*it).to_owned()).collect();
    let wrong = wrong(&lines, true);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_makefile_on_the_standard_input_is_not_run_unasked() {
    let mut lines = Vec::new();
    for file in ["-", "/dev/stdin", "/dev/fd/0"] {
        for option in ["-f ", "-f", "-sf ", "--file=", "--file ", "--makefile="] {
            lines.push(format!("printf 'a:\\n\\trm -rf ~\\n' | make {option}{file}"));
            lines.push(format!("make {option}{file} a <<< 'a: ; rm -rf ~'"));
        }
    }
    let wrong = wrong(&lines, true);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn usual_pipes_and_values_are_silent() {
    let lines: Vec<String> = USUAL.iter().map(|it| (*it).to_owned()).collect();
    let wrong = wrong(&lines, false);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Ways to fetch a directory `t` with files of another machine.
const FETCHES: &[&str] = &[
    "git clone https://a.example/a/t",
    "git clone --depth 1 git@a.example:a/t.git",
    "git clone https://a.example/a/other t",
    "git clone --depth 1 https://a.example/a/other /home/dev/project/t",
    "gh repo clone a/t",
    "hg clone https://a.example/t",
    "svn checkout https://a.example/t",
    "npx degit a/t",
    "scp -r host:/srv/t .",
    "curl -sL https://a.example/t.tgz | tar xz",
    "wget https://a.example/t.zip && unzip t.zip",
    "wget -qO t.tgz https://a.example/x && tar -xf t.tgz",
    "gh release download -R a/t -D t",
    "gh repo clone a/t -- --depth 1",
    "git clone --shallow-since 2026-01-01 https://a.example/a/t/.git",
    "scp -r host:t .",
    "mkdir t && curl -sL https://a.example/t.tgz | tar -xz -C t",
    "wget -q https://a.example/t.tgz; tar fx t.tgz",
];

/// Ways to run what is in that directory.
const RUNS: &[&str] = &[
    "./t/run.sh",
    "cd t && ./configure",
    "bash t/run.sh",
    "sudo sh t/run.sh",
    "python3 t/setup.py install",
    "node t/index.js",
    ". t/env.sh",
    "chmod +x t/run && t/run --now",
    "cat t/run.sh | bash",
    "bash -c \"$(cat t/run.sh)\"",
];

/// Ways to run a task of the project in that directory.
const TASKS: &[&str] = &[
    "cd t/a && make",
    "make -C t/a install",
    "cd t/a && sudo make install",
    "cd t/a && npm run x",
];

#[test]
fn code_that_a_line_fetches_is_not_run_unasked() {
    let runs = || RUNS.iter().chain(TASKS);
    let all = FETCHES.iter().flat_map(|fetch| runs().map(move |run| format!("{fetch} && {run}")));
    let lines: Vec<String> = all.collect();
    let wrong = wrong(&lines, true);
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), lines.len());
}

#[test]
fn what_a_line_fetches_can_be_read_and_own_code_still_runs() {
    let uses =
        ["ls t", "cat t/README.md", "grep -rn x t/src", "cargo test", "make test", "./own.sh"];
    let all = FETCHES.iter().flat_map(|fetch| uses.map(move |it| format!("{fetch} && {it}")));
    // Whether the archive contains `own.sh` is unknown.
    let unpacks = |it: &String| ["tar", "unzip"].iter().any(|part| it.contains(part));
    let copies = ["git clone . /tmp/w && cd /tmp/w && make test", "cd / && tar ztf a.tgz"];
    let all = all.filter(|it| !(unpacks(it) && it.contains("own.sh")));
    let lines: Vec<String> = all.chain(copies.map(str::to_owned)).collect();
    let wrong = wrong(&lines, false);
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), lines.len());
}
