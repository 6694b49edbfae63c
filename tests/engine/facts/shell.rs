//! What command lines run: programs, arguments, files written, and whose success the line tells.

use super::lens;
use policyd::facts::Program;
use policyd::facts::shell::parse;

/// One line per program: `name arg…`, ` > file` per file written, `?` in front when not decisive.
fn show(programs: &[Program]) -> Vec<String> {
    programs
        .iter()
        .map(|program| {
            let mark = if program.decisive { "" } else { "?" };
            let mut words = vec![format!("{mark}{}", program.name)];
            words.extend(program.args.iter().cloned());
            words.extend(program.writes.iter().map(|file| format!("> {file}")));
            words.join(" ")
        })
        .collect()
}

fn check(line: &str, expected: &[&str]) {
    let (programs, understood) = parse(line, &lens::compiled());
    assert_eq!(show(&programs), expected, "{line}");
    assert!(understood, "not understood: {line}");
}

#[test]
fn simple_commands() {
    check("cargo test", &["cargo test"]);
    check("/usr/bin/cargo test", &["cargo test"]);
    check("./gradlew test", &["gradlew test"]);
    check("RUST_LOG=debug A=1 cargo test", &["cargo test"]);
    check("env A=1 B=2 cargo test", &["cargo test"]);
    check("# nothing", &[]);
    check("", &[]);
    check("cargo test # and a word", &["cargo test"]);
    check("cargo \\\n  test", &["cargo test"]);
    check("export A=1", &["export A=1"]);
}

#[test]
fn quotes_and_escapes() {
    check("'cargo' \"test\"", &["cargo test"]);
    check("c'a'r\"g\"o te\\st", &["cargo test"]);
    check("echo $'a\\tb\\x41\\u00e4'", &["echo a\tbA\u{e4}"]);
    check("echo \"a \\\"b\\\" \\$c\"", &["echo a \"b\" $c"]);
    check("echo \"$HOME/x\" $HOME/y", &["echo $HOME/x $HOME/y"]);
    check("echo a\\ b", &["echo a b"]);
    check("\\rm -rf x", &["rm -rf x"]);
    check(
        "git commit -m \"run pytest && cargo test\"",
        &["git commit -m run pytest && cargo test"],
    );
    check("echo 'cargo test; rm -rf /'", &["echo cargo test; rm -rf /"]);
    check("grep pytest setup.cfg", &["grep pytest setup.cfg"]);
}

#[test]
fn lists_and_pipes() {
    check("cd x && cargo test", &["cd x", "cargo test"]);
    check("cargo test; echo done", &["?cargo test", "echo done"]);
    check("cargo test\necho done", &["?cargo test", "echo done"]);
    check("cargo test || true", &["?cargo test", "?true"]);
    check("cargo test || exit 1", &["cargo test", "?exit 1"]);
    check("cargo test || exit 1; echo ok", &["cargo test", "?exit 1", "echo ok"]);
    check("a && b || { echo no; exit 2; }; c", &["a", "b", "?echo no", "?exit 2", "c"]);
    check("a && b && c", &["a", "b", "c"]);
    check("a && b || c", &["?a", "?b", "?c"]);
    check("cargo test | tail -5", &["?cargo test", "tail -5"]);
    check("cargo test 2>&1 | tail -5", &["?cargo test", "tail -5"]);
    check("cargo test |& tee log", &["?cargo test", "tee log"]);
    check("set -o pipefail; cargo test | tail", &["?set -o pipefail", "cargo test", "tail"]);
    check(
        "set -euo pipefail\ncargo test | tail\necho x",
        &["?set -euo pipefail", "cargo test", "tail", "echo x"],
    );
    check("set -e; cargo test; echo x", &["?set -e", "cargo test", "echo x"]);
    check("set -e; cargo test && echo y; echo x", &["?set -e", "?cargo test", "echo y", "echo x"]);
    check("set -e; set +e; cargo test; echo x", &["?set -e", "set +e", "?cargo test", "echo x"]);
    check("cargo test &", &["?cargo test"]);
    check("cargo test & wait", &["?cargo test", "wait"]);
    check("! cargo test", &["?cargo test"]);
    check("time cargo test", &["cargo test"]);
}

#[test]
fn compound_statements() {
    check("(cd x; cargo test)", &["?cd x", "cargo test"]);
    check("{ cargo test; }", &["cargo test"]);
    check(
        "if cargo test; then echo yes; else echo no; fi",
        &["?cargo test", "?echo yes", "?echo no"],
    );
    check("for p in a b; do cargo test -p $p; done", &["?cargo test -p $p"]);
    check("while true; do make; done", &["?true", "?make"]);
    check("f() { cargo test; }; f", &["?cargo test", "f"]);
    check("case $x in a) cargo test;; esac", &["?cargo test"]);
    check("[ -f x ] && cargo test", &["cargo test"]);
    check("[[ -n $(cargo test) ]]", &["?cargo test"]);
}

#[test]
fn forms_that_the_grammar_loses() {
    check("A=1 B=2\n{ cargo test; }", &["cargo test"]);
    check("A=1 B=2 # so far\n! cargo test", &["?cargo test"]);
    check("! if cargo test; then ls; fi", &["?cargo test", "?ls", "fi"]);
    check("time while cargo test; do ls; done", &["?cargo test", "?ls", "done"]);
}

#[test]
fn substitutions() {
    check("for i in $(cargo test) x; do ls; done", &["?cargo test", "?ls"]);
    check("case $(cargo test) in *) ls;; esac", &["?cargo test", "?ls"]);
    check("echo \"$(cargo test)\"", &["echo $(cargo test)", "?cargo test"]);
    check("echo `cargo test`", &["echo `cargo test`", "?cargo test"]);
    check("x=$(cargo test)", &["?cargo test"]);
    check("A=$(date) make", &["make", "?date"]);
    check("diff <(sort a) <(sort b)", &["diff <(sort a) <(sort b)", "?sort a", "?sort b"]);
    check("echo ${x:-$(cargo test)}", &["echo ${x:-$(cargo test)}", "?cargo test"]);
}

#[test]
fn redirections_and_here_documents() {
    check("echo hi > f", &["echo hi > f"]);
    check("echo hi >> \"a b\"", &["echo hi > a b"]);
    check("make &> log", &["make > log"]);
    check("make > /dev/null 2>&1", &["make > /dev/null"]);
    check("make >&2", &["make"]);
    check("sort < in > out", &["sort > out"]);
    check("a | b > f", &["?a", "b > f"]);
    check("{ a; b; } > f", &["?a", "b > f"]);
    check("cat > f <<'EOF'\ncargo test\nEOF", &["cat > f"]);
    check("cat <<EOF > f && cargo test\nrm -rf /\nEOF", &["cat > f", "cargo test"]);
    check("cat <<EOF | grep x\ncargo test\nEOF", &["?cat", "grep x"]);
    check("cat <<EOF\n$(cargo test)\nEOF", &["cat", "?cargo test"]);
    check("bash <<EOF\ncargo test\nEOF", &["cargo test"]);
    check("bash -s <<'EOF'\ncd x\ncargo test\nEOF", &["?cd x", "cargo test"]);
    check("cat <<< 'cargo test'", &["cat"]);
    check(
        "git commit -m \"$(cat <<'EOF'\nrun pytest\nEOF\n)\"",
        &["git commit -m $(cat <<'EOF'\nrun pytest\nEOF\n)", "?cat"],
    );
}

#[test]
fn wrappers() {
    check("sudo -u dev cargo test", &["cargo test"]);
    check("timeout 60 cargo test", &["cargo test"]);
    check("timeout -s KILL 60 nice -n 5 cargo test", &["cargo test"]);
    check("uv run pytest -q", &["pytest -q"]);
    check("uv --directory x run --with y pytest", &["pytest"]);
    check("uv sync", &["uv sync"]);
    check("npx jest --ci", &["jest --ci"]);
    check("nohup cargo test", &["cargo test"]);
    check("bash -c 'cargo test'", &["cargo test"]);
    check("bash -lc \"cd x && cargo test\"", &["cd x", "cargo test"]);
    check("bash -c \"sh -c 'cargo test'\"", &["cargo test"]);
    check("bash -c 'cargo test; true'", &["?cargo test", "true"]);
    check("bash run.sh", &["run.sh"]);
    check("sudo bash -c 'timeout 5 make test'", &["make test"]);
    check("eval \"cargo test\"", &["cargo test"]);
    check("eval cargo test", &["cargo test"]);
    check("command cargo test", &["cargo test"]);
    check("command -v cargo", &["command -v cargo"]);
    check("exec cargo test", &["cargo test"]);
    check("ls | xargs -n 1 rm -f", &["?ls", "rm -f"]);
    check("find . -name '*.py' -exec rm {} \\;", &["find . -name *.py -exec rm {} ;", "?rm {}"]);
    check("sudo -i", &["sudo -i"]);
}

#[test]
fn broken_and_hostile_text_is_listed_as_far_as_found() {
    let lens = lens::compiled();
    for (line, expected) in [
        ("cargo test && ; echo x", &["cargo test", "echo x"][..]),
        ("cat <<A && b; c\nx\nA\n", &["cat", "?b", "c"]),
    ] {
        let (programs, understood) = parse(line, &lens);
        assert!(!understood, "{line}");
        assert_eq!(show(&programs), expected, "{line}");
    }
    let shells = (0..12).fold("rm x".to_owned(), |inner, _| format!("bash -c {}", quote(&inner)));
    for hostile in [
        "(".repeat(60_000),
        "$(".repeat(30_000),
        "{ ".repeat(30_000),
        "\"$(".repeat(20_000),
        "if a; then ".repeat(5_000),
        "a;".repeat(30_000),
        "a|".repeat(30_000),
        "<<A ".repeat(10_000),
        "'".repeat(60_001),
        "x".repeat(70_000),
        "eval ".repeat(10_000),
        "\u{0}\u{1}\u{ffff}`'\"".repeat(3_000),
        shells,
    ] {
        let (programs, understood) = parse(&hostile, &lens);
        assert!(programs.len() <= policyd::limits::COMMAND_PROGRAMS_MAX);
        assert!(!understood, "{}", hostile.chars().take(20).collect::<String>());
    }
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
