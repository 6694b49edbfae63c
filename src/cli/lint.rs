//! `policyd lint`: everything that may be wrong with packs, each with its place and its cure.

mod fixing;

use std::borrow::Cow;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use super::arguments::{FailLevel, LintFormat};
use super::{
    Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EXIT_USAGE, LintArguments, check, error, pack, watch,
};
use policyd_app::cases::suite::beside;
use policyd_app::error::AppError;
use policyd_app::gate::named_harness;
use policyd_app::packs;
use policyd_app::packs::places::{self, PackPlace};
use policyd_app::packs::shared_ids::{SharedId, shared_ids};
use policyd_app::workspace::project::{self, Project};
use policyd_cores as cores;
use policyd_harness::Harness;
use policyd_lint::baseline::{Baseline, BaselineLocation};
use policyd_lint::{self as lint, Profile, Subject};
use policyd_policy::builtin;
use policyd_policy::review::{Base, ReviewedPolicy};
use policyd_record::mask::{mask, mask_quoted};
use policyd_report::diagnostics::{self, Style};
use policyd_report::lint::{LintReview, github, json, summary};
use policyd_report::{junit, sarif};
use policyd_world::World;
use policyd_yaml::time::Timestamp;
use policyd_yaml::{Diagnostic, Level, suggest};

/// Bytes of a baseline file.
const BASELINE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Lints packs: exit 0 where nothing of the level that counts was found, 1 otherwise, 3 where there
/// was nothing to look at.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &LintArguments) -> u8 {
    if let Some(code) = without_packs(console, arguments) {
        return code;
    }
    if !arguments.watch {
        return lint_once(world, console, arguments);
    }
    watch::run_at_changes(world, console, &arguments.paths, |console| {
        lint_once(world, console, arguments)
    })
}

fn lint_once(world: &dyn World, console: &mut Console<'_>, arguments: &LintArguments) -> u8 {
    let baseline = match baseline(world, arguments) {
        Ok(baseline) => baseline,
        Err(error) => return error::report(console, &error),
    };
    let harness = match named_harness(arguments.harness.as_deref()) {
        Ok(harness) => harness,
        Err(error) => return error::report(console, &error),
    };
    let project = project::find(world, None);
    // What packs stand on is read while they are looked for.
    let (places, base) = cores::both(
        world.cores(),
        || places::places(world, &lint_paths(world, &project, arguments)),
        || Base::new(&builtin::pack()),
    );
    let ask = LintRun {
        world,
        project: &project,
        profile: arguments.profile.profile(),
        ignores: !arguments.no_ignores,
        now: world.now(),
        harness,
        base,
    };
    let (packs, mut review) = ask.review(&places);
    for problem in &review.unreadable {
        console.eprint(problem);
    }
    check::hint_at_paths(world, console, &arguments.paths);
    if packs.is_empty() {
        if !matches!(arguments.format, LintFormat::Text) {
            print_review(console, arguments.format, &review);
        }
        return EXIT_BROKEN;
    }
    pack::note_builtin_pack(world, console, &project, packs.iter().map(String::as_str));
    if arguments.fix.is_some() || arguments.diff {
        match fixing::run(console, arguments, &review, &ask) {
            fixing::Done::Shown(code) => return code,
            fixing::Done::Again(fixed) => {
                review = LintReview { unreadable: review.unreadable, ..fixed };
            }
        }
    }
    if let Some(file) = &arguments.write_baseline {
        return write_baseline(world, console, file, &review);
    }
    if let Some((baseline, file)) = baseline.as_ref().zip(arguments.baseline.as_deref()) {
        let here = &world.working_folder();
        set_known_aside(&mut review, baseline, BaselineLocation { here, file });
    }
    without_credentials(&mut review.findings);
    print_review(console, arguments.format, &review);
    if arguments.paths.is_empty() {
        note_shared_ids(world, console, &project);
    }
    // The process ends here: taking what packs extend apart would only cost time.
    if !arguments.watch {
        std::mem::forget(ask);
    }
    exit_code(&review, arguments.fail_level)
}

/// Compiles the pack in use, and reports rules of one id in the packs of the user and of the project.
fn note_shared_ids(world: &dyn World, console: &mut Console<'_>, project: &Project) {
    let found = packs::find(world, project, None);
    let Ok(policy) = packs::policy(world, &found) else { return };
    for it in shared_ids(&found, &policy, &found.layers(world, project)) {
        console.eprint(&format!("{}\nhelp: {}", it.text(), SharedId::help()));
    }
}

/// What needs no pack to be answered.
fn without_packs(console: &mut Console<'_>, arguments: &LintArguments) -> Option<u8> {
    if arguments.list {
        console.print(&list(arguments.format));
        return Some(EXIT_OK);
    }
    if let Some(code) = &arguments.explain {
        return Some(explain(console, code));
    }
    let text = matches!(arguments.format, LintFormat::Text | LintFormat::Compact);
    if arguments.diff && !text {
        console.eprint(
            "`--diff` prints only a diff and cannot be combined with `--format`\nhelp: `--format \
             json` contains the fix of each finding",
        );
        return Some(EXIT_USAGE);
    }
    None
}

/// What is asked of packs.
struct LintRun<'a> {
    world: &'a dyn World,
    project: &'a Project,
    profile: Profile,
    ignores: bool,
    now: Timestamp,
    harness: Option<&'static Harness>,
    /// What packs extend.
    base: Base,
}

/// What one pack came to.
#[derive(Default)]
struct PackReview {
    name: String,
    /// Names of its files; none where it holds no policy.
    files: Vec<String>,
    reviewed: lint::SuppressionReview,
    /// Files of the pack that could not be read.
    unreadable: Vec<String>,
    /// Case files that could not be read.
    unreadable_cases: Vec<String>,
}

impl LintRun<'_> {
    /// Looks at all packs; their names come first.
    fn review(&self, places: &[PackPlace]) -> (Vec<String>, LintReview) {
        let here = self.world.working_folder();
        // Each is read and looked at by one thread: none waits until all are read.
        let looked = cores::on_all(self.world.cores(), places, |it| self.review_pack(&here, it));
        let (mut names, mut review) = (Vec::new(), LintReview::default());
        let mut unreadable_cases = Vec::new();
        for pack in looked {
            review.unreadable.extend(pack.unreadable);
            if !pack.files.is_empty() {
                names.push(pack.name);
                unreadable_cases.extend(pack.unreadable_cases);
                review.files.extend(pack.files);
                review.findings.extend(pack.reviewed.findings);
                review.ignored.extend(pack.reviewed.ignored);
            }
        }
        review.unreadable.extend(unreadable_cases);
        (names, review)
    }

    fn review_pack(&self, here: &Path, place: &PackPlace) -> PackReview {
        let (pack, unreadable) = place.read(self.world, self.project, here);
        let files: Vec<String> = pack.files.iter().map(|(_, it)| it.name.clone()).collect();
        let name = pack.name.clone();
        if files.is_empty() {
            return PackReview { name, unreadable, ..PackReview::default() };
        }
        let beside = || beside(self.world, &pack, None);
        let (cases, unreadable_cases) =
            if place.may_hold_cases() { beside() } else { (vec![], vec![]) };
        let loaded = ReviewedPolicy::new(&pack, &self.base);
        let subject = Subject::new(&pack, &loaded, self.now).with_cases(cases);
        let subject = subject.with_unread(place.unread(self.world, &pack.name));
        let subject = subject.for_harness(self.harness).on_cores(self.world.cores());
        let reviewed = lint::review(&subject, self.profile, self.ignores);
        PackReview { name, files, reviewed, unreadable, unreadable_cases }
    }
}

/// What is said may be kept in the log of a CI: no message repeats a credential. Advice contains ids and YAML of policyd's
/// own, such as `expects guards: {acme_token: silent}`. Only what is a secret by its format or in the text of the pack is masked
/// there.
fn without_credentials(findings: &mut [Diagnostic]) {
    for finding in findings {
        if let Cow::Owned(masked) = mask(&finding.message).0 {
            finding.message = masked;
        }
        let text = finding.span.source.text.as_str();
        for advice in [finding.help.as_mut(), finding.note.as_mut()].into_iter().flatten() {
            if let Cow::Owned(masked) = mask_quoted(advice, text) {
                *advice = masked;
            }
        }
    }
}

fn print_review(console: &mut Console<'_>, format: LintFormat, review: &LintReview) {
    let text = match format {
        LintFormat::Text => {
            let style = Style { color: console.color() };
            let text = diagnostics::render_text(&review.findings, style);
            let blank = if text.is_empty() { "" } else { "\n" };
            format!("{text}{blank}{}", summary(review))
        }
        LintFormat::Compact => diagnostics::render_compact(&review.findings),
        LintFormat::Json => format!("{:#}\n", json(review)),
        LintFormat::Sarif => format!("{:#}\n", sarif::sarif(review)),
        LintFormat::Github => github(review),
        LintFormat::Junit => junit::junit(review),
    };
    console.print(&text);
}

fn exit_code(review: &LintReview, fail_level: FailLevel) -> u8 {
    let least = match fail_level {
        FailLevel::Note => Level::Note,
        FailLevel::Warning => Level::Warning,
        FailLevel::Error => Level::Error,
    };
    let counts = review.findings.iter().any(|it| it.level >= least);
    if counts || !review.unreadable.is_empty() { EXIT_FOUND } else { EXIT_OK }
}

/// The table of all rules.
fn list(format: LintFormat) -> String {
    if format == LintFormat::Json {
        let rule = |it: &lint::Rule| {
            serde_json::json!({"code": it.code, "name": it.name, "level": diagnostics::level_name(it.level),
                "profile": it.profile.name(), "summary": it.summary})
        };
        let rules: Vec<serde_json::Value> = lint::rules().iter().map(rule).collect();
        return format!("{:#}\n", serde_json::json!({"version": 1, "rules": rules}));
    }
    let row = |it: &lint::Rule| {
        let (level, profile) = (diagnostics::level_name(it.level), it.profile.name());
        format!("{}  {level:<8} {profile:<9} {:<25} {}\n", it.code, it.name, it.summary)
    };
    lint::rules().iter().map(row).collect()
}

fn explain(console: &mut Console<'_>, code: &str) -> u8 {
    if let Some(rule) = lint::find(code) {
        let (level, profile) = (diagnostics::level_name(rule.level), rule.profile.name());
        let about = format!("{level}, profile {profile}");
        console.print(&format!("{}\n{about}\n", rule.page.trim_end()));
        return EXIT_OK;
    }
    let known: Vec<&str> = lint::rules().iter().flat_map(|it| [it.code, it.name]).collect();
    let near = suggest::nearest(code, &known);
    let near = near.map_or_else(
        || "run `policyd lint --list` to list the rules".to_owned(),
        |it| format!("did you mean `{it}`?"),
    );
    console.eprint(&format!("unknown lint rule `{code}`\nhelp: {near}"));
    EXIT_USAGE
}

fn baseline(world: &dyn World, arguments: &LintArguments) -> Result<Option<Baseline>, AppError> {
    let Some(file) = &arguments.baseline else { return Ok(None) };
    let unusable = |why: &dyn Display| {
        let file = file.display();
        let help = format!("run `policyd lint --write-baseline {file}` to recreate it");
        AppError::failed_as(format!("{file}: {why}\nhelp: {help}"))
    };
    let bytes = world.read(file, BASELINE_BYTES_MAX).map_err(|error| unusable(&error))?;
    let text = String::from_utf8(bytes).map_err(|_| unusable(&"is not UTF-8 text"))?;
    Baseline::parse(&text).map(Some).map_err(|error| unusable(&error))
}

fn write_baseline(
    world: &dyn World,
    console: &mut Console<'_>,
    file: &std::path::Path,
    review: &LintReview,
) -> u8 {
    let can_be = |it: &&Diagnostic| lint::find(it.code).is_some_and(lint::Rule::can_be_silenced);
    let (findings, broken): (Vec<_>, Vec<_>) = review.findings.iter().partition(can_be);
    let baseline =
        Baseline::of(&findings, BaselineLocation { here: &world.working_folder(), file });
    let text = serde_json::to_string_pretty(&baseline).unwrap_or_default();
    match world.write(file, format!("{text}\n").as_bytes()) {
        Ok(()) => {
            let number = baseline.findings.len();
            let findings = if number == 1 { "finding" } else { "findings" };
            console.print(&format!(
                "wrote {number} {findings} to the baseline `{}`\n",
                file.display()
            ));
            if broken.is_empty() {
                return EXIT_OK;
            }
            let broken = broken.len();
            console.eprint(&format!(
                "errors that keep a pack from loading: {broken}; a baseline cannot suppress them"
            ));
            EXIT_FOUND
        }
        Err(error) => {
            console.eprint(&format!("{}: {error}", file.display()));
            EXIT_BROKEN
        }
    }
}

fn set_known_aside(review: &mut LintReview, baseline: &Baseline, seat: BaselineLocation<'_>) {
    let known = {
        let findings: Vec<&Diagnostic> = review.findings.iter().collect();
        baseline.knows(&findings, seat)
    };
    let mut known = known.into_iter();
    let (old, new) = review.findings.drain(..).partition(|_| known.next() == Some(true));
    (review.known, review.findings) = (old, new);
}

/// What is looked at: what is named, else the project's pack, trusted or not, for nothing of it is
/// evaluated here.
fn lint_paths(world: &dyn World, project: &Project, arguments: &LintArguments) -> Vec<PathBuf> {
    if places::are_named(world, &arguments.paths) {
        return arguments.paths.clone();
    }
    places::pack_here(world).or_else(|| packs::nearest_of(world, project)).into_iter().collect()
}
