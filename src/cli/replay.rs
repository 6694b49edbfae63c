//! `policyd replay`: judges recorded sessions with a pack. Reads transcripts and writes
//! nothing but the compiled pack.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{
    Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EXIT_USAGE, ReplayArguments, ReportFormat, check,
    log, pack,
};
use policyd_app::cases::recorded::{CaseRecorder, EventSelector};
use policyd_app::replay::ReplayTask;
use policyd_app::replay::sessions::{self, FoundSessions, ReplaySession};
use policyd_app::sessions::recordings;
use policyd_app::workspace::project;
use policyd_facts::lines::LineChunk;
use policyd_policy::Policy;
use policyd_replay::shown_turn::RecordedTurn;
use policyd_replay::tally::Tally;
use policyd_report::replay as report;
use policyd_report::replay_overview::{self, OverviewScope, SearchedDirectory};
use policyd_store::transcript;
use policyd_world::World;
use policyd_yaml::suggest;
use policyd_yaml::time::Timestamp;

/// Replays and reports.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &ReplayArguments) -> u8 {
    let is_search = arguments.paths.is_empty();
    let since = arguments.since.as_deref().or(is_search.then_some(replay_overview::SINCE_DEFAULT));
    let Some(oldest) = log::oldest(world, since) else {
        console.eprint(log::SINCE_HELP);
        return EXIT_USAGE;
    };
    let named = arguments.policies.as_deref();
    let Some((policy, own_pack)) = pack::require_valid_with_pack(world, console, named) else {
        return EXIT_BROKEN;
    };
    let other = match &arguments.compare {
        None => None,
        Some(folder) => match pack::require_valid(world, console, Some(folder)) {
            Some(other) => Some(other),
            None => return EXIT_BROKEN,
        },
    };
    if let Some(problem) = unknown_rule(arguments.rule.as_deref(), &policy, other.as_ref()) {
        console.eprint(&problem);
        return EXIT_USAGE;
    }
    let rule = arguments.rule.as_deref().map(|it| policy.rule_id(it).unwrap_or(it));
    let (found, searched) = match is_search {
        true => find_recorded(world, oldest),
        false => (sessions::find(world, &arguments.paths, oldest), Vec::new()),
    };
    let task = ReplayTask {
        world,
        policy: &policy,
        other: other.as_ref(),
        oldest,
        examples: if arguments.show.is_some() || is_summary(arguments) {
            replay_overview::EXAMPLES_MAX
        } else {
            arguments.examples
        },
        scratch: project::scratch_folders(world),
        temporary: project::temporary_folders(world),
    };
    let jobs = arguments.jobs.map_or_else(|| world.cores(), usize::from);
    let is_shown = console.stderr_is_tty && world.env("CI").is_none();
    let bar = is_shown.then(|| progress_bar(&found.sessions));
    let tally = task.replay(found, jobs, &|bytes| bar.iter().for_each(|it| it.inc(bytes)));
    bar.iter().for_each(ProgressBar::finish_and_clear);
    for (file, why) in &tally.reading.unreadable {
        console.eprint(&format!("{file}: {why}"));
    }
    if tally.reading.transcripts == 0 && !is_search {
        console.eprint(&nothing(arguments, &tally));
        check::hint_at_paths(world, console, &arguments.paths);
        return EXIT_BROKEN;
    }
    let overview =
        OverviewScope { pack: &policy.name, since: since.unwrap_or_default(), searched: &searched };
    if let Some(number) = arguments.show {
        return show(world, console, &tally, number);
    }
    let text = format_report(console, arguments, &tally, overview, rule);
    console.print(&text);
    if let Some(directory) = &arguments.save_cases {
        let pack = own_pack.pack().into_owned();
        let recorder = CaseRecorder::new(world, pack, &policy, directory.clone());
        save_cases(console, &recorder, &tally, rule);
    }
    exit_code(console, arguments, &tally)
}

/// Returns whether the most frequent rules are reported as text.
fn is_summary(arguments: &ReplayArguments) -> bool {
    arguments.paths.is_empty() && arguments.format == ReportFormat::Text && !is_full(arguments)
}

/// Returns whether each rule is reported, not the most frequent ones.
fn is_full(arguments: &ReplayArguments) -> bool {
    arguments.all_rules || arguments.rule.is_some() || arguments.compare.is_some()
}

/// Shows the turn of an example of the summary.
fn show(world: &dyn World, console: &mut Console<'_>, tally: &Tally, number: usize) -> u8 {
    let Some(found) = replay_overview::example(tally, number) else {
        console.eprint(&format!(
            "the summary has no example {number}\nhelp: `policyd replay` numbers its examples"
        ));
        return EXIT_USAGE;
    };
    let example = found.example;
    let mut turn = RecordedTurn::default();
    let mut is_over = false;
    let read = transcript::lines(world, Path::new(&example.file), |piece| {
        if is_over {
            return;
        }
        let line = match piece {
            LineChunk::Line(line) => line,
            LineChunk::TooLong => &[],
        };
        is_over = turn.take(line, example.line, example.is_call());
    });
    if let Err(error) = read {
        console.eprint(&format!("{}: {error}", example.file));
        return EXIT_BROKEN;
    }
    console.print(&replay_overview::show(number, &found, &turn, console.screen()));
    EXIT_OK
}

/// Writes a case for each different example of each rule that fired.
fn save_cases(
    console: &mut Console<'_>,
    recorder: &CaseRecorder<'_>,
    tally: &Tally,
    rule: Option<&str>,
) {
    let guards = tally.guards.iter().map(|it| (it, true));
    let rules = tally.rules.iter().map(|it| (it, false)).chain(guards);
    let mut saved: usize = 0;
    for (tallied, is_guard) in rules.filter(|(it, _)| rule.is_none_or(|rule| it.id == rule)) {
        let mut subjects = BTreeSet::new();
        let examples = tallied.fired.examples.iter();
        let different = examples.filter(|it| !is_guard || subjects.insert(it.subject.clone()));
        for (example, number) in different.zip(1..) {
            let (line, rule) = (example.line, tallied.id.as_str());
            let selector = match is_guard {
                true => EventSelector::GuardAt { line, rule },
                false => EventSelector::CheckAt { line, rule },
            };
            let name = format!("{rule}-{number}");
            match recorder.record(Path::new(&example.file), selector, &name) {
                Ok(_path) => saved = saved.saturating_add(1),
                Err(error) => console
                    .eprint(&format!("no case for {rule} at {}:{line}: {error}", example.file)),
            }
        }
    }
    console.eprint(&format!("cases saved in {}: {saved}", recorder.directory().display()));
}

/// Formats the summary if no path was given, or the full report.
fn format_report(
    console: &Console<'_>,
    arguments: &ReplayArguments,
    tally: &Tally,
    overview: OverviewScope<'_>,
    rule: Option<&str>,
) -> String {
    let is_search = arguments.paths.is_empty();
    let scope = report::ReplayScope { pack: overview.pack, rule };
    let json = || report::to_json(tally, scope);
    match arguments.format {
        ReportFormat::Json if is_search => {
            format!("{:#}\n", replay_overview::with_overview(json(), tally, overview))
        }
        ReportFormat::Json => format!("{:#}\n", json()),
        ReportFormat::Text if is_search && tally.reading.transcripts == 0 => {
            replay_overview::nothing_found(overview, console.screen())
        }
        ReportFormat::Text if is_search && !is_full(arguments) => {
            replay_overview::to_text(tally, overview, console.screen())
        }
        ReportFormat::Text => report::to_text(tally, scope, console.screen()),
    }
}

/// Finds the sessions that clients recorded for the projects of the user.
fn find_recorded(world: &dyn World, oldest: Timestamp) -> (FoundSessions, Vec<SearchedDirectory>) {
    let (mut all, mut searched) = (FoundSessions::default(), Vec::new());
    for directory in recordings::directories(world) {
        let exists = world.stat(&directory.path).is_ok();
        let paths: &[PathBuf] =
            if exists { std::slice::from_ref(&directory.path) } else { Default::default() };
        let found = sessions::find(world, paths, oldest);
        searched.push(SearchedDirectory {
            client: directory.harness.title,
            path: directory.path.display().to_string(),
            sessions: exists.then_some(found.sessions.len()),
        });
        all.sessions.extend(found.sessions);
        all.unreadable.extend(found.unreadable);
    }
    (all, searched)
}

/// Reports whether the other pack is stricter, if `--fail-on-new-blocks` requests it.
fn exit_code(console: &mut Console<'_>, arguments: &ReplayArguments, tally: &Tally) -> u8 {
    let compared = tally.comparison.as_ref().filter(|_| arguments.fail_on_new_blocks);
    let (stops, calls) =
        compared.map_or((0, 0), |it| (it.newly_blocked.times, it.newly_stopped.times));
    if stops == 0 && calls == 0 {
        return EXIT_OK;
    }
    console.eprint(&format!(
        "the other pack is stricter: stops newly blocked: {stops}, tool calls newly blocked \
         or asked about: {calls}"
    ));
    EXIT_FOUND
}

/// What is wrong with `--rule`, if neither pack has such a rule.
fn unknown_rule(wanted: Option<&str>, policy: &Policy, other: Option<&Policy>) -> Option<String> {
    let wanted = wanted?;
    let ids = |it: &'_ Policy| -> Vec<String> {
        let guards = it.guards.rules.iter().map(|it| &it.id);
        it.considerations.iter().map(|it| &it.id).chain(guards).cloned().collect()
    };
    let known: Vec<String> = std::iter::once(policy).chain(other).flat_map(ids).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    if std::iter::once(policy).chain(other).any(|it| it.rule_id(wanted).is_some()) {
        return None;
    }
    let help = suggest::did_you_mean(wanted, &known);
    let help = help.unwrap_or_else(|| "run `policyd rules` to list the rules".to_owned());
    Some(format!("unknown rule `{wanted}`\nhelp: {help}"))
}

/// Why there is nothing to report.
fn nothing(arguments: &ReplayArguments, tally: &Tally) -> String {
    let paths: Vec<String> = arguments.paths.iter().map(|it| it.display().to_string()).collect();
    let within = arguments.since.as_ref().map_or_else(String::new, |it| format!(" within {it}"));
    let also = match tally.reading.no_transcripts {
        0 => String::new(),
        files => format!(" (files without agent activity: {files})"),
    };
    format!(
        "no transcript found in {}{within}{also}\nhelp: pass `.jsonl` files or a directory \
         of them, such as `~/.claude/projects`",
        paths.join(", ")
    )
}

/// A bar over the bytes of all transcripts.
fn progress_bar(sessions: &[ReplaySession]) -> ProgressBar {
    let bytes = sessions.iter().map(ReplaySession::bytes).sum();
    let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr());
    let shape = "{wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
    match ProgressStyle::with_template(shape) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
