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
const ROUNDS: usize = 11;

/// Both in one run: a whole process that lints on all cores, and parsing alone on one.
pub(crate) fn table(binary: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<PathBuf> = (0..FILES).map(|it| write(folder.path(), it)).collect();
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
    println!("\n{:<40}{:>10}{:>10}  goal", format!("lint of {FILES} rule files"), "ms", "ratio");
    println!("{:<40}{:>10.1}", "reading and parsing YAML, one core", parsed * 1e3);
    println!(
        "{:<40}{:>10.1}{:>9.2}x  <= 2x",
        "policyd lint, all cores",
        linted * 1e3,
        linted / parsed
    );
}

/// One pack with one rule.
fn write(folder: &Path, number: usize) -> PathBuf {
    let folder = folder.join(format!("pack_{number:04}"));
    fs::create_dir(&folder).unwrap();
    let rule = format!(
        r#"# Rules of team {number}.
- id: changelog_{number}
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
    );
    let file = folder.join("considerations.yaml");
    fs::write(&file, rule).unwrap();
    file
}
