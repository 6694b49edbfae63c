//! What `policyd lint` costs on many packs, against reading their YAML alone.

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use policyd::source::{Source, yaml};

use crate::measure::median;

/// Packs, each of one rule file.
const FILES: usize = 1_000;
/// Rules in each of them: the least there can be, and as many as the built-in files have about.
const RULES: [usize; 2] = [1, 10];
const ROUNDS: usize = 11;

/// What lint of many files costs, few rules in each and more.
pub(crate) fn table(binary: &Path) {
    println!("\n{:<40}{:>10}{:>10}  goal", format!("lint of {FILES} rule files"), "ms", "ratio");
    RULES.iter().for_each(|rules| line(binary, *rules));
}

/// All in one run: a whole process that lints on all cores, and parsing alone on one, into the tree with
/// places that lint looks at and into plain values.
fn line(binary: &Path, rules: usize) {
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<PathBuf> = (0..FILES).map(|it| write(folder.path(), it, rules)).collect();
    let (mut linted, mut parsed, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let status =
            Command::new(binary).arg("lint").arg(folder.path()).stdout(Stdio::null()).status();
        assert!(status.unwrap().success(), "the packs are clean");
        linted.push(began.elapsed());
        parsed.push(each(&files, |text| {
            black_box(yaml::parse(&Arc::new(Source { name: String::new(), text })));
        }));
        plain.push(each(&files, |text| {
            black_box(serde_yaml::from_str::<serde_yaml::Value>(&text).unwrap());
        }));
    }
    let (linted, parsed, plain) = (median(&mut linted), median(&mut parsed), median(&mut plain));
    let rules = format!("{rules} rule(s) each");
    println!("{:<40}{:>10.1}", format!("{rules}: YAML with places, one core"), parsed * 1e3);
    println!("{:<40}{:>10.1}", format!("{rules}: serde_yaml, one core"), plain * 1e3);
    println!(
        "{:<40}{:>10.1}{:>9.2}x  <= 2x; of serde_yaml {:.2}x",
        "policyd lint, all cores",
        linted * 1e3,
        linted / parsed,
        linted / plain,
    );
}

/// How long it takes to read each file and to do this with it.
fn each(files: &[PathBuf], work: impl Fn(String)) -> Duration {
    let began = Instant::now();
    files.iter().for_each(|it| work(fs::read_to_string(it).unwrap()));
    began.elapsed()
}

/// One pack.
fn write(folder: &Path, number: usize, rules: usize) -> PathBuf {
    let folder = folder.join(format!("pack_{number:04}"));
    fs::create_dir(&folder).unwrap();
    let rules: String = (number..number + rules).map(rule).collect();
    let file = folder.join("considerations.yaml");
    fs::write(&file, format!("# Rules of team {number}.\n{rules}")).unwrap();
    file
}

fn rule(number: usize) -> String {
    format!(
        r#"- id: changelog_{number}
  category: Documentation
  question: Is change {number} in the changelog?
  description: Users read the changelog before they update.
  severity: blocker
  applicable_session_types: [DEVELOPMENT]
  when: files.kind("code").count > {limit}
  satisfied: files.matching("**/CHANGELOG-{number}.md").count > 0
  details:
    - when: commands.kind("test").failed
      text: code was edited, tests fail, CHANGELOG-{number}.md was not touched
    - text: code was edited, CHANGELOG-{number}.md was not
  evidence: ["last edited: ${{files.last_path}}"]
  guidance: Add a line to CHANGELOG-{number}.md.
"#,
        limit = number % 7,
    )
}
