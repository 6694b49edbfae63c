//! A review that uses kept results of former reviews finds what a first review finds, after any edit.
#![expect(clippy::indexing_slicing, reason = "an index outside of a list fails the test")]

use std::sync::Arc;

use policyd::editor::view::{LintSettings, PackView};
use policyd::lint::Profile;
use policyd::policy::load::Pack;
use policyd::policy::{builtin, review::Base};
use policyd::source::Source;
use policyd::time::Timestamp;

use crate::subjects::TODAY;
use crate::support::random::Random;

/// A pack with findings of the loader, of single expressions and regexes, of several files, and of cases.
const FILES: [(&str, &str); 8] = [
    ("policyd.yaml", "version: 1\nname: team\nextends: [builtin]\n"),
    (
        "vocabulary.yaml",
        "commands:\n  deploy:\n    programs: [deploy, \"make deploy\"]\n    failed: [\"^error:\"]\ntexts:\n  promised:\n    \
         phrases: [will test later]\n    regexes: ['\\bpromise\\b']\n    unless: ['\\bpromise\\b kept']\n",
    ),
    (
        "probes.yaml",
        "- id: ticket\n  command: [tracker, show]\n  timeout: 5s\n  parse: json\n  cache: 1m\n",
    ),
    (
        "checkers.yaml",
        "has_ticket:\n  satisfied: probes.ticket.ok && probes.ticket.code == 0\n  details: \"it is ${probes.ticket.error}\"\n",
    ),
    (
        "considerations.yaml",
        "- id: ticket_known\n  category: Work\n  question: Is the ticket known?\n  severity: warning\n  \
         applicable_session_types: [DEVELOPMENT]\n  checker: has_ticket\n  guidance: Create a ticket.\n- id: changelog\n  \
         category: Work\n  question: Is the change in the changelog?\n  severity: warning\n  when: files.count > 3 && files.count > 1\n  \
         satisfied: commands.kind(\"deploy\").count > 0 || transcript.in_message(\"promised\")\n  guidance: Run `deploy`.\n",
    ),
    (
        "guards.yaml",
        "- id: no_deploy\n  commands: [deploy]\n  when: action.command.matches(\"(?i)prod\")\n  decision: ask\n  message: Deploy?\n\
         - id: no_push\n  commands: [git push]\n  when: program.has([\"--force\"])\n  decision: deny\n  message: No.\n",
    ),
    (
        "session_types.yaml",
        "- id: RELEASE\n  when: files.matching(\"**/CHANGELOG.md\").count > 0\n",
    ),
    (
        "tests/cases.yaml",
        "- name: a deployment is asked about\n  on: {event: pre_tool_use, command: deploy prod}\n  expect:\n    guards: {no_deploy: fired}\n",
    ),
];

/// Texts that edits insert.
const PIECES: [&str; 20] = [
    "\n",
    "\n  ",
    "- id: x\n",
    "when: ",
    "files.count > 0",
    " && ",
    "!",
    "\"",
    "'",
    "${",
    "}",
    "# policyd: ignore[PD601] reason=\"x\"\n",
    "(",
    ".*",
    "x",
    ": ",
    "deploy",
    "ticket",
    "breakers",
    "override: true\n",
];

fn view(files: &[(String, String)], base: &Base) -> PackView {
    let source = |(name, text): &(String, String)| {
        let name = format!("pack/{name}");
        Arc::new(Source { name, text: text.clone() })
    };
    let (cases, own): (Vec<_>, Vec<_>) = files.iter().partition(|it| it.0.starts_with("tests/"));
    let own = own.into_iter().map(|it| (it.0.clone(), source(it))).collect();
    let pack = Pack { name: "pack".to_owned(), files: own, ..Pack::default() };
    PackView::new(pack, cases.into_iter().map(source).collect(), vec![], base)
}

/// Edits a pack in so many rounds, and compares the findings after each edit.
fn compare(files: Vec<(String, String)>, rounds: usize) {
    let (kept, first) = (Base::new(&builtin::pack()).with_memo(), Base::new(&builtin::pack()));
    let settings = LintSettings { profile: Profile::Strict, harness: None };
    let now = Timestamp::parse(TODAY).unwrap();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let (original, mut files) = (files.clone(), files);
    let mut with_findings = 0;
    for round in 0..rounds {
        let number = random.below(files.len());
        let text = &mut files[number].1;
        let near = random.below(text.len() + 1);
        let at = (near..=text.len()).find(|it| text.is_char_boundary(*it)).unwrap();
        let more = if random.below(3) == 0 { random.below(8) } else { 0 };
        let end = text.len().min(at + more);
        let end = (end..=text.len()).find(|it| text.is_char_boundary(*it)).unwrap();
        text.replace_range(at..end, PIECES[random.below(PIECES.len())]);
        if random.below(4) == 0 {
            // A pack with errors is not searched for everything.
            let restored = random.below(files.len());
            files[restored] = original[restored].clone();
        }
        kept.memo().begin_review();
        let again = view(&files, &kept).lint(settings, now, 2);
        assert_eq!(again, view(&files, &first).lint(settings, now, 1), "round {round}: {files:?}");
        with_findings += usize::from(!again.is_empty());
    }
    assert!(with_findings > rounds / 4, "{with_findings} of {rounds}");
}

#[test]
fn kept_results_change_no_finding_of_a_pack() {
    let rounds = std::env::var("POLICYD_EDITS").ok().and_then(|it| it.parse().ok()).unwrap_or(30);
    compare(FILES.map(|(name, text)| (name.to_owned(), text.to_owned())).to_vec(), rounds);
}

#[test]
fn kept_results_change_no_finding_of_a_pack_that_extends_nothing() {
    let own = builtin::FILES.iter().map(|it| (it.name.to_owned(), it.text.to_owned()));
    let cases = builtin::CASES.iter().filter(|(name, _)| name.ends_with(".yaml")).take(2);
    let cases = cases.map(|(name, text)| (format!("tests/{name}"), (*text).to_owned()));
    compare(own.chain(cases).collect(), 6);
}

/// Rules that are compared with each other: guards of each strictness, and checks with categories.
struct ComparedRules {
    guards: Vec<[&'static str; 4]>,
    categories: Vec<&'static str>,
}

const DECISIONS: [&str; 5] = ["allow", "ask", "deny", "block", "halt"];
const COMMANDS: [&str; 5] = ["git push", "git", "rm", "deploy", "\"git*\""];
const CONDITIONS: [&str; 4] = [
    "true",
    "program.has([\"--force\"])",
    "program.has([\"--force\"]) && files.count > 1",
    "files.count > 2",
];
const EXCEPTIONS: [&str; 2] = ["false", "program.has([\"--dry-run\"])"];
const CATEGORIES: [&str; 6] = ["Work", "work", "Testing", "Tsting", "Reviews", "Reviewss"];

impl ComparedRules {
    fn change(&mut self, random: &mut Random) {
        let guard = [&DECISIONS[..], &COMMANDS, &CONDITIONS, &EXCEPTIONS];
        let guard = guard.map(|values| values[random.below(values.len())]);
        let (guards, categories) = (self.guards.len(), self.categories.len());
        match random.below(8) {
            0 => self.guards.insert(random.below(guards + 1), guard),
            1 if guards > 1 => drop(self.guards.remove(random.below(guards))),
            2 if guards > 1 => self.guards.swap(random.below(guards), random.below(guards)),
            3 => self.categories.push(CATEGORIES[random.below(CATEGORIES.len())]),
            4 if categories > 1 => drop(self.categories.remove(random.below(categories))),
            _ if guards > 0 => {
                let (number, field) = (random.below(guards), random.below(guard.len()));
                self.guards[number][field] = guard[field];
            }
            _ => {}
        }
    }

    fn files(&self) -> Vec<(String, String)> {
        let guards = self.guards.iter().enumerate().map(|(number, guard)| {
            let [decision, commands, when, unless] = guard;
            format!(
                "- id: g{number}\n  commands: [{commands}]\n  when: {when}\n  unless: {unless}\n  decision: {decision}\n  \
                 message: No.\n"
            )
        });
        let checks = self.categories.iter().enumerate().map(|(number, category)| {
            format!(
                "- id: c{number}\n  category: {category}\n  question: Is it done?\n  severity: warning\n  \
                 satisfied: files.count > {number}\n  guidance: Do it.\n"
            )
        });
        let manifest = "version: 1\nname: team\nextends: [builtin]\n".to_owned();
        [
            ("policyd.yaml", manifest),
            ("guards.yaml", guards.collect()),
            ("considerations.yaml", checks.collect()),
        ]
        .map(|(name, text): (_, String)| (name.to_owned(), text))
        .to_vec()
    }
}

#[test]
fn kept_pairs_of_rules_change_no_finding() {
    let (kept, first) = (Base::new(&builtin::pack()).with_memo(), Base::new(&builtin::pack()));
    let settings = LintSettings { profile: Profile::Default, harness: None };
    let now = Timestamp::parse(TODAY).unwrap();
    let mut random = Random(0x0DDB_1A5E_5BAD_5EED);
    let mut rules = ComparedRules { guards: Vec::new(), categories: Vec::new() };
    let rounds = std::env::var("POLICYD_EDITS").ok().and_then(|it| it.parse().ok()).unwrap_or(60);
    let kinds = ["never decides", "duplicates", "is similar to"];
    let mut counts = kinds.map(|_| 0);
    for round in 0..rounds {
        (0..if round == 0 { 40 } else { 1 + round % 2 }).for_each(|_| rules.change(&mut random));
        let files = rules.files();
        kept.memo().begin_review();
        let again = view(&files, &kept).lint(settings, now, 2);
        assert_eq!(again, view(&files, &first).lint(settings, now, 1), "round {round}: {files:?}");
        for (kind, count) in kinds.iter().zip(&mut counts) {
            *count += again.iter().filter(|it| it.message.contains(kind)).count();
        }
    }
    assert!(counts.iter().all(|it| *it > 0), "{kinds:?}: {counts:?}");
}
