//! Bypass hunting: what is denied stays denied however it is written, wrapped or hidden, and what is
//! only data is let through, whatever it says.

use super::machine::Machine;
use crate::support::sample;

const PROJECT: &str = "/home/dev/project";

/// Commands that are denied, one for each kind of damage. None holds a quote, so that every way of
/// writing can hold every one of them.
const DENIED: &[&str] = &[
    "rm -rf /",
    "rm -rf /home/dev",
    "rm -r -f ../other",
    "rm --recursive --force /etc",
    "rm -fr ~",
    "rm -rf .git",
    "find / -delete",
    "git reset --hard HEAD~1",
    "git clean -fdx",
    "git checkout -- .",
    "git restore .",
    "git push --force origin feature",
    "git push origin +main",
    "git push --mirror",
    "git stash drop",
    "git branch -D feature",
    "git reflog expire --expire=now --all",
    "git commit --no-verify -m x",
    "dd if=/dev/zero of=/dev/sda",
    "mkfs.ext4 /dev/sda1",
    "chmod -R 777 /",
    "terraform destroy",
    "kubectl delete namespace prod",
    "docker system prune -af",
    "aws s3 rb s3://bucket",
    "dropdb production",
    "cat .env",
    "cat ~/.ssh/id_rsa",
    "cat ~/.aws/credentials",
    "shutdown now",
    "crontab -r",
    "policyd pause",
    "policyd state reset",
    "rm -rf .policyd",
    "touch .policyd/.disabled",
];

type Way = (&'static str, fn(&str) -> String);

/// Ways to write the same command.
const WAYS: &[Way] = &[
    ("as it is", str::to_owned),
    ("blanks around it", |it| format!("   {it}   ")),
    ("more blanks within", |it| it.replace(' ', "   ")),
    ("tabs", |it| it.replace(' ', "\t")),
    ("lines continued", |it| it.replace(' ', " \\\n  ")),
    ("the program in quotes", |it| {
        let (program, rest) = it.split_once(' ').unwrap();
        format!("\"{program}\" {rest}")
    }),
    ("quotes within the program", |it| {
        let (first, rest) = it.split_at(1);
        format!("{first}''{rest}")
    }),
    ("a backslash before it", |it| format!("\\{it}")),
    ("a backslash within", |it| {
        let (first, rest) = it.split_at(1);
        format!("{first}\\{rest}")
    }),
    ("in ANSI quotes", |it| {
        let (program, rest) = it.split_once(' ').unwrap();
        let bytes: String = program.bytes().map(|b| format!("\\x{b:02x}")).collect();
        format!("$'{bytes}' {rest}")
    }),
    ("after another", |it| format!("git status; {it}")),
    ("if another works", |it| format!("true && {it}")),
    ("if another fails", |it| format!("false || {it}")),
    ("on its own line", |it| format!("echo start\n{it}\necho end")),
    ("on a line that a backslash begins", |it| format!("echo start\n\\{it}")),
    ("on such a line after a comment", |it| format!("echo start # it\n\\{it}\necho end")),
    ("on such a line in a condition", |it| format!("if true; then echo start\n\\{it}; fi")),
    ("in the background", |it| format!("{it} &")),
    ("in a pipe", |it| format!("echo y | {it} | cat")),
    ("in a subshell", |it| format!("( {it} )")),
    ("in braces", |it| format!("{{ {it}; }}")),
    ("in a condition", |it| format!("if true; then {it}; fi")),
    ("as a condition", |it| format!("while {it}; do break; done")),
    ("in a loop", |it| format!("for i in 1 2; do {it}; done")),
    ("in a case", |it| format!("case x in x) {it};; esac")),
    ("negated", |it| format!("! {it}")),
    ("in a function", |it| format!("f() {{ {it}; }}; f")),
    ("in a function nobody calls here", |it| format!("f() {{ {it}; }}")),
    ("in a substitution", |it| format!("echo $({it})")),
    ("in backticks", |it| format!("echo `{it}`")),
    ("in a quoted substitution", |it| format!("echo \"a $({it}) b\"")),
    ("in an assignment", |it| format!("X=$({it})")),
    ("in arithmetic", |it| format!("echo $(( $({it}) + 1 ))")),
    ("in a process substitution", |it| format!("cat <({it})")),
    ("in a here-document", |it| format!("cat <<EOF\n$({it})\nEOF")),
    ("redirected", |it| format!("{it} > /dev/null 2>&1")),
    ("redirected before its words", |it| {
        let (program, rest) = it.split_once(' ').unwrap();
        format!("{program} > /dev/null 2>&1 {rest}")
    }),
    ("in whatever shell there is", |it| format!("$SHELL -c '{it}'")),
    ("with secrets put in", |it| format!("op run --env-file x -- {it}")),
    ("started again and again", |it| format!("ls | entr -s '{it}'")),
    ("with a variable before it", |it| format!("A=1 B=2 {it}")),
    ("in a variable", |it| format!("CMD='{it}'; $CMD")),
    ("in a variable that is evaluated", |it| format!("CMD='{it}'; eval \"$CMD\"")),
    ("its program in a variable", |it| {
        let (program, rest) = it.split_once(' ').unwrap();
        format!("P={program}; $P {rest}")
    }),
    ("its program in two variables", |it| {
        let (first, rest) = it.split_at(1);
        format!("A={first}; ${{A}}{rest}")
    }),
    ("its program printed", |it| {
        let (program, rest) = it.split_once(' ').unwrap();
        format!("$(echo {program}) {rest}")
    }),
    ("blanks out of a variable", |it| it.replace(' ', "${IFS}")),
    ("words out of braces", |it| format!("{{{}}}", it.replace(' ', ","))),
    ("evaluated", |it| format!("eval {it}")),
    ("evaluated in quotes", |it| format!("eval '{it}'")),
    ("in bash", |it| format!("bash -c '{it}'")),
    ("in sh with more options", |it| format!("sh -exc \"{it}\"")),
    ("in a login shell", |it| format!("/bin/bash -lc '{it}'")),
    ("in a shell within a shell", |it| format!("bash -c \"sh -c '{it}'\"")),
    ("fed to a shell", |it| format!("echo '{it}' | bash")),
    ("printed into a shell", |it| format!("printf '%s\\n' '{it}' | sh -s")),
    ("a here-string of a shell", |it| format!("bash <<< '{it}'")),
    ("a here-document of a shell", |it| format!("bash <<'EOF'\n{it}\nEOF")),
    ("a here-document through cat", |it| format!("cat <<EOF | sh\n{it}\nEOF")),
    ("hidden in base64", |it| format!("echo {} | base64 -d | bash", base64(it))),
    ("a script made and run", |it| format!("echo '{it}' > x.sh && bash x.sh")),
    ("a script made and started", |it| {
        format!("cat > x.sh <<'EOF'\n{it}\nEOF\nchmod +x x.sh; ./x.sh")
    }),
    ("with sudo", |it| format!("sudo {it}")),
    ("with sudo for a user", |it| format!("sudo -u root -- {it}")),
    ("with env", |it| format!("env {it}")),
    ("with env and variables", |it| format!("/usr/bin/env -i A=1 {it}")),
    ("with env -S", |it| format!("env -S '{it}'")),
    ("with command", |it| format!("command {it}")),
    ("with exec", |it| format!("exec {it}")),
    ("with nohup", |it| format!("nohup {it} &")),
    ("with timeout", |it| format!("timeout -s KILL 10 {it}")),
    ("with nice", |it| format!("nice -n 5 {it}")),
    ("with time", |it| format!("time {it}")),
    ("with xargs", |it| format!("echo | xargs {it}")),
    ("with words for xargs", |it| {
        let (program, rest) = it.split_once(' ').unwrap();
        format!("echo '{rest}' | xargs {program}")
    }),
    ("with find -exec", |it| format!("find . -maxdepth 0 -exec {it} \\;")),
    ("with watch", |it| format!("watch -n 1 {it}")),
    ("with setsid", |it| format!("setsid {it}")),
    ("with stdbuf", |it| format!("stdbuf -oL {it}")),
    ("with busybox sh", |it| format!("busybox sh -c '{it}'")),
    ("with su", |it| format!("su root -c '{it}'")),
    ("wrapped three times", |it| format!("sudo env A=1 nice {it}")),
    ("in a trap", |it| format!("trap '{it}' EXIT")),
    ("as an alias", |it| format!("alias x='{it}'\nx")),
    ("in Python", |it| format!("python3 -c \"import os; os.system('{it}')\"")),
    ("in a process of Python", |it| {
        format!("python -c \"import subprocess; subprocess.run('{it}', shell=True)\"")
    }),
    ("in a list of Python", |it| {
        // No shell is there to put a home in place of `~`.
        let line = it.replace('~', "/home/dev");
        let words: Vec<String> = line.split(' ').map(|it| format!("'{it}'")).collect();
        format!("python3 -c \"import subprocess; subprocess.call([{}])\"", words.join(", "))
    }),
    ("in a here-document of Python", |it| {
        format!("python3 - <<'EOF'\nimport os\nos.system(\"{it}\")\nEOF")
    }),
    ("a pipe as a script", |it| format!("bash <(echo '{it}')")),
    ("a pipe that is read in", |it| format!("source <(printf '%s' '{it}')")),
    ("a pipe as input", |it| format!("sh < <(echo '{it}')")),
    ("in bash with options that have values", |it| format!("bash -euo pipefail -c '{it}'")),
    ("in bash behind the end of options", |it| format!("bash -c -- '{it}'")),
    ("typed into tmux", |it| format!("tmux send-keys -t 0 '{it}' Enter")),
    ("typed into screen", |it| format!("screen -S a -X stuff '{it}\\n'")),
    ("tried out by git", |it| format!("git bisect run {it}")),
    ("between commits of git", |it| format!("git rebase -i --exec '{it}' main")),
    ("from an editor", |it| format!("vim -es -c ':!{it}' -c ':q' notes.txt")),
    ("from tar", |it| format!("tar cf a.tar b --checkpoint=1 --checkpoint-action=exec='{it}'")),
    ("from ssh's own options", |it| format!("ssh -o ProxyCommand='{it}' host.example")),
    ("for each file that fd finds", |it| format!("fd -e tmp . -x {it}")),
    ("in a container of a cluster", |it| format!("kubectl exec -n prod web-0 -- {it}")),
    ("in a variable of Python", |it| {
        format!("python3 -c \"import os; line = '{it}'; os.system(line)\"")
    }),
    ("under another name of Python", |it| {
        format!("python3 -c \"import subprocess as sp; sp.run('{it}', shell=True)\"")
    }),
    ("imported alone in Python", |it| {
        format!("python3 -c \"from os import system as s; s('{it}')\"")
    }),
    ("in a variable of Node", |it| {
        format!("node -e \"const c = '{it}'; require('child_process').exec(c)\"")
    }),
    ("in Perl", |it| format!("perl -e 'system(\"{it}\")'")),
    ("in Ruby", |it| format!("ruby -e 'system \"{it}\"'")),
    ("in Node", |it| format!("node -e \"require('child_process').execSync('{it}')\"")),
    ("in awk", |it| format!("awk 'BEGIN {{ system(\"{it}\") }}'")),
];

fn base64(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| (bits << 8) | u32::from(*byte));
        let bits = bits << (8 * (3 - chunk.len()));
        for at in 0..4_u32 {
            let letter = LETTERS[usize::try_from((bits >> (18 - 6 * at)) & 63).unwrap()];
            out.push(if usize::try_from(at).unwrap() <= chunk.len() {
                char::from(letter)
            } else {
                '='
            });
        }
    }
    out
}

/// Ways in which a text about a command is data.
const DATA: &[Way] = &[
    ("printed", |it| format!("echo \"{it}\"")),
    ("printed in single quotes", |it| format!("echo '{it}'")),
    ("printed by printf", |it| format!("printf '%s\\n' '{it}'")),
    ("in a message of a commit", |it| format!("git commit -m \"docs: say why {it} is refused\"")),
    ("in a longer message", |it| format!("git commit -m 'Guard' -m 'Refuses `{it}` now.'")),
    ("looked for", |it| format!("grep -rn \"{it}\" docs")),
    ("looked for by rg", |it| format!("rg -n '{it}' README.md")),
    ("looked for in the history", |it| format!("git log --grep='{it}'")),
    ("in a comment", |it| format!("ls -la # not {it}")),
    ("in a comment above", |it| format!("# {it}\nls")),
    ("in a here-document for a file", |it| {
        format!("cat > docs/guards.md <<'EOF'\n# Refused\n{it}\nEOF")
    }),
    ("in a variable that is printed", |it| format!("W='{it}'; echo \"$W\"")),
    ("in the text of an issue", |it| {
        format!("gh issue create --title 'Guard' --body 'It ran {it}.'")
    }),
    ("replaced by sed", |it| format!("sed 's#{it}#(removed)#' notes.txt")),
    ("in a test", |it| format!("[ \"$X\" = '{it}' ] && echo same")),
    ("in Python's print", |it| format!("python3 -c \"print('{it}')\"")),
    ("piped into a filter", |it| format!("echo '{it}' | wc -c")),
    ("only checked by a shell", |it| format!("bash -n <<'EOF'\n{it}\nEOF")),
    ("in JSON", |it| format!("jq -n '{{command: \"{it}\"}}'")),
];

#[test]
fn what_is_denied_stays_denied_however_it_is_written() {
    let machine = Machine::new(PROJECT);
    let mut passed = Vec::new();
    let mut tried = 0;
    let all = DENIED.iter().flat_map(|command| WAYS.iter().map(move |way| (command, way)));
    for (command, (way, write)) in sample(all) {
        // A word that the shell would expand is another one in quotes of other programs.
        let line = write(command);
        let (decision, _) = machine.bash(&line);
        tried += 1;
        if !matches!(decision.as_str(), "deny" | "ask") {
            passed.push(format!("{way}: {line}"));
        }
    }
    println!("{tried} variants");
    assert!(passed.is_empty(), "{} of {tried} pass:\n{}", passed.len(), passed.join("\n"));
}

#[test]
fn data_is_no_command() {
    let machine = Machine::new(PROJECT);
    let mut stopped = Vec::new();
    let all = DENIED.iter().flat_map(|command| DATA.iter().map(move |way| (command, way)));
    for (command, (way, write)) in sample(all) {
        let line = write(command);
        let (decision, reason) = machine.bash(&line);
        if !decision.is_empty() {
            stopped.push(format!("{way}: {line} -> {decision} {reason}"));
        }
    }
    assert!(stopped.is_empty(), "{} stopped:\n{}", stopped.len(), stopped.join("\n"));
}

#[test]
fn what_is_too_much_to_look_at_is_asked_about() {
    let machine = Machine::new(PROJECT);
    let long = "x".repeat(70 * 1024);
    let mut passed = Vec::new();
    for command in ["git push --force", "cat .env", "echo A=1 >> .env", "> .policyd/.disabled"] {
        let deep = format!("{}{command}{}", "$(".repeat(80), ")".repeat(80));
        for (way, line) in [
            ("many programs", format!("{}{command}", many(600))),
            ("long", format!(": {long}; {command}")),
            ("deep", deep),
        ] {
            let (decision, _) = machine.bash(&line);
            if !matches!(decision.as_str(), "deny" | "ask") {
                passed.push(format!("{way}: {command}"));
            }
        }
    }
    assert!(passed.is_empty(), "{passed:?}");
    let (decision, reason) = machine.bash(&format!("{}ls", many(600)));
    assert_eq!(decision, "ask");
    assert!(reason.contains("it starts very many programs"), "{reason}");
}

/// Programs that differ.
fn many(count: usize) -> String {
    (0..count).map(|it| format!("echo {it}; ")).collect()
}

#[test]
fn long_lines_of_ordinary_work_are_let_through() {
    let machine = Machine::new(PROJECT);
    let body = "let line = \"rm -rf / && git push --force\"; // cat .env\n".repeat(4000);
    let plain = "A line of a document, and one more.\n".repeat(4000);
    for (what, line) in [
        ("a file that is written", format!("cat > src/big.rs <<'EOF'\n{body}EOF\ncargo fmt")),
        ("two of them", format!("cat > a.rs <<'A'\n{body}A\ncat >> b.md <<B\n{plain}B\n")),
        ("in a condition", format!("if true; then\ncat > a.rs <<'A'\n{body}A\nfi")),
        ("behind a comment", format!("# don't stop\ncat > \"$(pwd)/a.rs\" <<'A'\n{body}A\n")),
        ("before another", format!("cat <<'A' > a.rs && ls -la\n{body}A\necho 'it is' # `done\n")),
        (
            "a long loop",
            format!(
                "for f in {}; do wc -l $f; head -1 $f; cat $f | sort | uniq; done",
                (0..40).map(|it| format!("f{it}.txt")).collect::<Vec<_>>().join(" ")
            ),
        ),
        (
            "loops in loops",
            String::from(
                "for a in 1 2 3 4 5 6; do for b in 1 2 3 4 5 6; do curl -s localhost/$a/$b | jq . ; done; done",
            ),
        ),
        ("the same again", "curl -s localhost; sleep 1; ".repeat(100)),
        ("many programs", many(200)),
    ] {
        let (decision, reason) = machine.bash(&line);
        assert_eq!(decision, "", "{what}: {reason}");
    }
    // A shell that reads such a body runs it, and what follows it is looked at.
    for line in [
        format!("bash <<'EOF'\n{}rm -rf /\nEOF\n", "echo 1\n".repeat(2000)),
        format!("cat > a.rs <<'EOF'\n{body}EOF\nrm -rf /"),
        format!("cat <<EOF\n{plain}$(rm -rf /)\nEOF\n"),
    ] {
        let (decision, _) = machine.bash(&line);
        assert!(matches!(decision.as_str(), "deny" | "ask"));
    }
}

#[test]
fn no_command_hides_in_a_long_line() {
    let machine = Machine::new(PROJECT);
    let mut passed = Vec::new();
    for line in [
        "# see <<EOF\nrm -rf /\nEOF",
        "printf '# see <<EOF\n'; rm -rf /\nEOF",
        "echo '\ncat <<A\n'; rm -rf / ; : '\nA\n'",
        "echo $((1<<A))\nrm -rf /\nA",
        "((x = 1<<A))\nrm -rf /\nA",
        "cat <<E \\\n; rm -rf /\nx\nE",
        "x='a\nb <<E c'\nrm -rf /\nE",
        "cat <<A # <<B\nx\nA\nrm -rf /\nB",
        "cat <<X\n$Y\ncat <<'E'\nX\nrm -rf /\nE",
    ] {
        for pad in [9_000, 70_000] {
            let pad = "y".repeat(pad);
            for line in [format!("{line}\n# {pad}"), format!("cat <<'P'\n{pad}\nP\n{line}")] {
                let (decision, _) = machine.bash(&line);
                if !matches!(decision.as_str(), "deny" | "ask") {
                    passed.push(line.replace(&pad, "…"));
                }
            }
        }
    }
    assert!(passed.is_empty(), "{}", passed.join("\n---\n"));
}

#[test]
fn loops_in_loops_are_bounded() {
    let machine = Machine::new(PROJECT);
    let nested = |depth: usize, body: &str| {
        let open: String =
            (0..depth).map(|it| format!("for a{it} in 1 2 3 4 5 6 7 8; do ")).collect();
        format!("{open}{body};{}", " done;".repeat(depth))
    };
    let long = "word ".repeat(6_000);
    let doubled = format!("a=word; {}echo $a", "a=$a$a; ".repeat(64));
    for (what, line) in [
        ("turns", nested(12, "echo a")),
        ("turns of nothing", nested(12, "[ -n x ]")),
        ("long words", nested(12, &format!("echo {long}"))),
        ("functions", format!("f() {{ : {long}; }}; {}", nested(12, "f"))),
        ("values", doubled),
    ] {
        let begun = std::time::Instant::now();
        let (decision, reason) = machine.bash(&line);
        assert_eq!(decision, "ask", "{what}: {reason}");
        let took = begun.elapsed();
        println!("{what}: {took:?}");
        assert!(took < std::time::Duration::from_secs(20), "{what}: {took:?}");
    }
    assert_eq!(machine.bash(&nested(3, "echo $a0 $a1")).0, "");
    assert_eq!(machine.bash(&nested(12, "rm -rf /")).0, "deny");
}

#[test]
fn what_grows_with_its_length_alone_is_answered() {
    let machine = Machine::new(PROJECT);
    for (line, expected) in [
        (format!("{}work & {}", "while true; do ".repeat(2_000), "done; ".repeat(2_000)), "ask"),
        (format!("cp {}{}", "-t d ".repeat(300), "a ".repeat(3_000)), ""),
        (format!("find {}-name x {}", "r ".repeat(500), "-exec cat {} \\; ".repeat(100)), "ask"),
    ] {
        assert_eq!(machine.bash(&line).0, expected, "{} bytes: {:.60}", line.len(), line);
    }
}

#[test]
fn commands_within_names_and_defaults_are_looked_at() {
    let machine = Machine::new(PROJECT);
    for line in [
        "echo \"${y:-`rm -rf /`}\"",
        "echo ${y:=`rm -rf /`}",
        "echo ${y:-a${z:-`rm -rf /`}}",
        "echo ${PATH:+$(rm -rf /)}",
        "[[ -n ${y:-`rm -rf /`} ]]",
        "a[$(rm -rf /)]=1",
        "a[`rm -rf /`]=1",
        "declare a[$(rm -rf /)]=1",
    ] {
        assert_eq!(machine.bash(line).0, "deny", "{line}");
    }
    for line in ["echo \"${y:-`date`}\"", "a[$(wc -l < b)]=1", "echo \"${y:-\\`rm -rf /\\`}\""] {
        assert_eq!(machine.bash(line).0, "", "{line}");
    }
}

#[test]
fn links_that_the_line_makes_are_followed() {
    let machine = Machine::new(PROJECT);
    for line in [
        "ln -s ~ h && rm -rf h/docs",
        "ln -s / x; rm -rf x/home",
        "ln -s ~ h && rm -rf h/",
        "ln -s ~ h; ln -s h i; chmod -R 777 i/docs",
    ] {
        assert!(matches!(machine.bash(line).0.as_str(), "deny" | "ask"), "{line}");
    }
    for line in ["ln -s src h && rm -rf h/old", "ln -s /opt/x h; rm -rf build"] {
        assert_eq!(machine.bash(line).0, "", "{line}");
    }
}

#[test]
fn links_on_the_disk_are_followed() {
    let machine = Machine::new(PROJECT);
    let world = &machine.world;
    for (path, target) in [
        ("notes.txt", "/home/dev/project/.env"),
        ("id.pub", "/home/dev/.ssh/id_rsa"),
        ("keys", "/home/dev/.ssh"),
        ("rules", "/home/dev/project/.policyd/policies"),
        ("other", "/home/dev/other"),
        ("lib", "/home/dev/project/src"),
        ("later", "/home/dev/.ssh/authorized_keys"),
        ("etc", "/etc/ssh"),
    ] {
        world.put_link(format!("{PROJECT}/{path}"), target);
    }
    world.put(format!("{PROJECT}/.env"), "A=1");
    world.put("/home/dev/.ssh/id_rsa", "x");
    world.put(format!("{PROJECT}/.policyd/policies/guards.yaml"), "[]");
    world.put_folder("/home/dev/other/deep");
    world.put(format!("{PROJECT}/src/a.rs"), "x");
    let read = |path: &str| machine.tool("Read", &serde_json::json!({"file_path": path})).0;
    let write = |path: &str| {
        machine.tool("Write", &serde_json::json!({"file_path": path, "content": "x"})).0
    };
    assert_eq!(read("/home/dev/project/notes.txt"), "deny");
    assert_eq!(read("notes.txt"), "deny");
    assert_eq!(read("/home/dev/project/keys/id_rsa"), "deny");
    assert_eq!(read("id.pub"), "deny", "its name says nothing");
    assert_eq!(write("rules/guards.yaml"), "deny");
    assert_eq!(write("rules/new.yaml"), "deny", "not there yet");
    assert_eq!(write("later"), "deny", "it leads to what is not there yet");
    assert_eq!(read("lib/a.rs"), "");
    world.put_folder("/etc/ssh");
    world.put("/etc/shadow", "x");
    assert_eq!(write("lib/new/b.rs"), "");
    for line in [
        "cat notes.txt",
        "cat keys/id_*",
        "rm -rf other/deep",
        "chmod -R 700 other",
        "rm rules/guards.yaml",
        "cat etc/../shadow",
        "echo k >> later",
    ] {
        assert!(matches!(machine.bash(line).0.as_str(), "deny" | "ask"), "{line}");
    }
    for line in ["rm other", "rm -rf other", "rm notes.txt", "rm -rf lib/old", "cat lib/a.rs"] {
        assert_eq!(machine.bash(line).0, "", "{line}");
    }
}

#[test]
fn a_project_behind_a_link_is_the_project() {
    let machine = Machine::new(PROJECT);
    machine.world.put_link(PROJECT, "/data/project");
    machine.world.put("/data/project/src/a.rs", "x");
    assert_eq!(machine.bash("rm -rf src/a.rs build").0, "");
    assert_eq!(machine.bash("rm -rf /data/project/build").0, "");
    assert_eq!(machine.bash("rm -rf ../other").0, "deny");
}

#[test]
fn patches_in_files_are_read() {
    let machine = Machine::new(PROJECT);
    machine.world.put(format!("{PROJECT}/a.patch"), "--- a/.policyd/x\n+++ b/.policyd/x\n+y\n");
    machine.world.put(format!("{PROJECT}/b.patch"), "--- a/src/x.rs\n+++ b/src/x.rs\n+y\n");
    machine
        .world
        .put(format!("{PROJECT}/c.patch"), "--- a/settings.json\n+++ b/settings.json\n+y\n");
    let gone = "--- a/.policyd/policies/x.yaml\n+++ /dev/null\n-y\n";
    machine.world.put(format!("{PROJECT}/gone.patch"), gone);
    let moved = "rename from .policyd/policies/x.yaml\nrename to y.yaml\n";
    machine.world.put(format!("{PROJECT}/moved.patch"), moved);
    machine.world.put(format!("{PROJECT}/long.patch"), "+x\n".repeat(100_000));
    assert_eq!(machine.bash("git apply long.patch").0, "ask", "nobody has read it");
    for line in [
        "git apply a.patch",
        "patch -p1 < a.patch",
        "patch -p1 -i a.patch",
        "git apply --directory=.claude c.patch",
        "cp a.patch b && git apply --3way a.patch",
        "git apply gone.patch",
        "git apply moved.patch",
        "patch -p1 --input=a.patch",
        "git am a.patch",
    ] {
        assert_eq!(machine.bash(line).0, "deny", "{line}");
    }
    for line in [
        "git apply b.patch",
        "git apply --check a.patch",
        "git apply c.patch",
        "git apply none.patch",
    ] {
        assert_eq!(machine.bash(line).0, "", "{line}");
    }
}

#[test]
fn a_pack_that_does_not_load_leaves_the_built_in_guards() {
    let machine = Machine::new(PROJECT);
    machine.guards("- id: x\n  nonsense: 1\n");
    let answer = machine.answer(&serde_json::json!({
        "session_id": "s", "cwd": PROJECT, "hook_event_name": "PreToolUse",
        "permission_mode": "default", "tool_name": "Bash",
        "tool_input": {"command": "rm -rf /"},
    }));
    assert_eq!(super::machine::decision(&answer).0, "deny", "{answer}");
    let told = answer["systemMessage"].to_string();
    assert!(told.contains("the policy pack is broken"), "{answer}");
    assert_eq!(machine.bash("ls"), (String::new(), String::new()));
    machine.world.put("/home/dev/rules/policyd.yaml", "on_error: block\n");
    let (decision, reason) = machine.bash("ls");
    assert_eq!(decision, "deny");
    assert!(reason.contains("the policy pack is broken"), "{reason}");
    let (decision, _) = machine.tool("Read", &serde_json::json!({"file_path": "a.rs"}));
    assert_eq!(decision, "", "what changes nothing is let through");
    // What its manifest leaves out stays left out.
    let manifests = [
        ("guard_sets: {destructive-commands: false}\n", "", "deny"),
        ("guard_sets: {protected-paths: false}\n", "deny", ""),
        ("extends: []\n", "", ""),
        ("guard_sets: {destructive-commands: maybe}\n", "deny", "deny"),
    ];
    for (manifest, of_rm, of_read) in manifests {
        machine.world.put("/home/dev/rules/policyd.yaml", manifest);
        assert_eq!(machine.bash("git push --force").0, of_rm, "{manifest}");
        assert_eq!(machine.bash("cat .env").0, of_read, "{manifest}");
    }
}
