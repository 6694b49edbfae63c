//! What `policyd lint` costs on many packs, against reading their YAML alone.

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

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

/// Both in one run: a whole process that lints on all cores, and parsing alone on one.
fn line(binary: &Path, rules: usize) {
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<PathBuf> = (0..FILES).map(|it| write(folder.path(), it, rules)).collect();
    let (mut linted, mut parsed) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let status =
            Command::new(binary).arg("lint").arg(folder.path()).stdout(Stdio::null()).status();
        assert!(status.unwrap().success(), "the packs are clean");
        linted.push(began.elapsed());
        let began = Instant::now();
        for file in &files {
            let text = fs::read_to_string(file).unwrap();
            black_box(yaml::parse(&Arc::new(Source { name: String::new(), text })));
        }
        parsed.push(began.elapsed());
    }
    let (linted, parsed) = (median(&mut linted), median(&mut parsed));
    let name = format!("{rules} rule(s) each: YAML alone, one core");
    println!("{name:<40}{:>10.1}", parsed * 1e3);
    println!(
        "{:<40}{:>10.1}{:>9.2}x  <= 2x",
        "policyd lint, all cores",
        linted * 1e3,
        linted / parsed
    );
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
