//! The page that compares policyd with other tools: each statement about policyd is shown by the program.

use std::path::Path;
use std::process::{Command, Output};

use policyd::harness::HARNESSES;

use super::readme::{PROGRAM, root};

const PAGE: &str = "src/docs/about/comparison.md";

/// What shows that a statement is true.
enum Proof {
    /// The help of the command contains all words.
    Help(&'static str, &'static [&'static str]),
    /// The pages of the book contain all words.
    Page(&'static str, &'static [&'static str]),
    /// `policyd check` decides so about the line.
    Decision(&'static str, &'static str),
    /// The example pack has these files.
    Example(&'static str),
}

use Proof::{Decision, Example, Help, Page};

/// Rows of the table about other hook engines, with the cell of policyd without its link, and the proofs.
const ROWS: &[(&str, &str, &[Proof])] = &[
    (
        "Your own rules",
        "YAML with expressions",
        &[Example("changelog"), Help("try", &["expression"])],
    ),
    ("One rule for several clients", "yes", &[Help("eval", &["--harness"])]),
    (
        "Analyzes the command line, not its text",
        "yes",
        &[
            Decision("X=rm; sudo $X -rf /", "block"),
            Decision("git commit -m \"no rm -rf /\"", "none"),
        ],
    ),
    (
        "Analyzes Python and JavaScript code in calls",
        "partly",
        &[
            Decision("python3 -c \"import shutil; shutil.rmtree('/opt/data')\"", "block"),
            Decision("node -e \"require('fs').rmSync('/opt/data', {recursive: true})\"", "block"),
        ],
    ),
    ("Checks a stop by evidence", "yes", &[Help("rules local_testing", &["tests pass", "block"])]),
    ("Tests of rules", "yes, with coverage", &[Help("test", &["--coverage"])]),
    ("Lint with locations and fixes", "yes", &[Help("lint", &["--fix", "--explain"])]),
    ("Replay of recorded sessions", "yes", &[Help("replay", &["recorded"])]),
    ("Tries a command without running it", "`check`", &[Help("check", &["without running it"])]),
    ("Explains a decision", "yes", &[Help("explain", &["Explain a decision"])]),
    (
        "Pauses, or allows for a while",
        "`pause`, `allow`",
        &[Help("pause", &["limited time"]), Help("allow", &["--for"])],
    ),
    (
        "Rules from a remote, pinned by hash",
        "web server, git, OCI registry; signatures",
        &[
            Help("pack", &["verify", "publish"]),
            Page(
                "src/docs/trust/remote-packs.md",
                &["https://", "git+", "oci://", "sha256", "key"],
            ),
        ],
    ),
    (
        "Rules of an organization that a project cannot weaken",
        "yes, nor can a user",
        &[Page("src/docs/trust/organization.md", &["/etc/policyd"])],
    ),
    (
        "Breakers, dead letters, signals, supervised runs",
        "yes",
        &[
            Help("breaker", &["reset"]),
            Help("dlq", &["retry"]),
            Help("signal", &["emit"]),
            Help("run", &["--resume"]),
        ],
    ),
    (
        "User interface",
        "terminal, web, editors",
        &[Help("top", &["terminal"]), Help("dashboard", &["browser"]), Help("lsp", &["editors"])],
    ),
    ("Clients", "7", &[]),
];

fn policyd(arguments: &[&str]) -> Output {
    // A directory without a pack and a home without one: the rules are the built-in ones.
    let empty = tempfile::tempdir().unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(arguments).current_dir(empty.path()).env("HOME", empty.path());
    for variable in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "POLICYD_POLICIES"] {
        command.env_remove(variable);
    }
    command.output().unwrap()
}

fn text(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).unwrap()
}

/// The texts of the cells of a row, without links.
fn cells(row: &str) -> Vec<String> {
    let link = regex::Regex::new(r"\[([^\]]*)\]\([^)]*\)").unwrap();
    let row = link.replace_all(row, "$1").into_owned();
    row.trim_matches('|').split('|').map(|it| it.trim().to_owned()).collect()
}

fn check(statement: &str, proof: &Proof) {
    match proof {
        Help(command, words) => {
            let mut arguments: Vec<&str> = command.split(' ').collect();
            if arguments.len() == 1 {
                arguments.push("--help");
            }
            let output = policyd(&arguments);
            assert!(output.status.success(), "{statement}: policyd {command}");
            let said = String::from_utf8(output.stdout).unwrap();
            let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
            for word in *words {
                assert!(said.contains(word), "{statement}: `policyd {command}` lacks `{word}`");
            }
        }
        Page(page, words) => {
            let page_text = text(page);
            for word in *words {
                assert!(page_text.contains(word), "{statement}: {page} lacks `{word}`");
            }
        }
        Decision(line, wanted) => {
            let said = String::from_utf8(policyd(&["check", line]).stdout).unwrap();
            let decision = format!("decision: {wanted}");
            assert!(said.starts_with(&decision), "{statement}: {line}: {said}");
        }
        Example(name) => {
            let folder = root().join("src/docs/examples").join(name);
            assert!(Path::new(&folder).is_dir(), "{statement}: {}", folder.display());
        }
    }
}

#[test]
fn each_statement_about_policyd_is_shown_by_the_program() {
    let page = text(PAGE);
    let table = page.split_once("| | policyd |").unwrap().1;
    let rows: Vec<Vec<String>> =
        table.lines().skip(2).take_while(|it| it.starts_with("| ")).map(cells).collect();
    let shown: Vec<(&str, &str)> = rows.iter().map(|it| (it[0].as_str(), it[1].as_str())).collect();
    let known: Vec<(&str, &str)> = ROWS.iter().map(|(name, cell, _)| (*name, *cell)).collect();
    assert_eq!(shown, known, "each row of {PAGE} needs a proof in this test");
    for (statement, _, proofs) in ROWS {
        proofs.iter().for_each(|it| check(statement, it));
    }
}

#[test]
fn the_number_of_clients_is_that_of_the_program() {
    // A program that prints plain JSON is not a client of its own.
    let count = HARNESSES.iter().filter(|it| it.name != "plain").count();
    let row = format!("| Clients | [{count}](../reference/clients.md) |");
    assert!(text(PAGE).contains(&row), "{row}");
}

#[test]
fn what_the_page_says_about_scripts_is_true_of_policyd() {
    for (line, decision) in [("X=rm; $X -rf /", "block"), ("git commit -m \"no rm -rf\"", "none")] {
        assert!(text(PAGE).contains(&format!("`{line}`")), "{line}");
        check("Scripts as hooks", &Decision(line, decision));
    }
}
