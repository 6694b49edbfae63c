//! `policyd test`: runs the cases of packs on simulated machines. Nothing of this machine is used
//! but the files of the packs, and nothing is written but snapshots that are asked for.

use std::path::{Path, PathBuf};

use super::{
    Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EXIT_USAGE, TestArguments, TestFormat, Update,
    check, error, pack, watch,
};
use policyd_app::cases::recorded::{CaseRecorder, EventSelector};
use policyd_app::cases::{CaseRequest, SnapshotUpdate, run_suite, suite};
use policyd_app::packs::{self, UntrustedReason, places};
use policyd_app::sessions::location;
use policyd_app::workspace::project;
use policyd_cases::result::CaseSummary;
use policyd_cases::shape::FOLDER;
use policyd_policy::builtin;
use policyd_report::cases as report;
use policyd_world::World;

/// Runs cases. Exit code 0: all passed. 1: a case failed, or no case was run. 3: no case file was found, or a pack
/// cannot be loaded.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &TestArguments) -> u8 {
    if let Some((session, call)) = &arguments.record {
        return record(world, console, &arguments.paths, session, call);
    }
    if !arguments.watch {
        return test_once(world, console, arguments);
    }
    watch::run_at_changes(world, console, &arguments.paths, |console| {
        test_once(world, console, arguments)
    })
}

fn test_once(world: &dyn World, console: &mut Console<'_>, arguments: &TestArguments) -> u8 {
    let mut summaries = Vec::new();
    let project = project::find(world, None);
    let is_named = places::are_named(world, &arguments.paths);
    let here = places::pack_here(world).filter(|_| !is_named);
    let paths = here.map_or_else(|| arguments.paths.clone(), |it| vec![it]);
    let (suites, unreadable) = suite::find(world, &project, &paths);
    unreadable.iter().for_each(|it| console.eprint(it));
    check::hint_at_paths(world, console, &paths);
    let names = suites.iter().map(|it| it.pack.name.as_str());
    pack::note_builtin_pack(world, console, &project, names);
    let mut code = if unreadable.is_empty() { EXIT_OK } else { EXIT_BROKEN };
    let request = request(arguments);
    for suite in suites {
        if suite.files.is_empty() {
            let folder = suite.folder.as_deref().unwrap_or(Path::new(builtin::NAME));
            console.eprint(&format!("no case file in {}", folder.display()));
            code = EXIT_BROKEN;
            continue;
        }
        let summary = run_suite(world, &suite, &request);
        summary.wanting.iter().for_each(|it| console.eprint(it));
        code = code.max(judged(&summary));
        summaries.push(summary);
    }
    let color = console.color();
    let text = match arguments.format {
        TestFormat::Text => report::to_text(&summaries, color),
        TestFormat::Json => format!("{:#}\n", report::to_json(&summaries)),
        TestFormat::Junit => match report::to_junit(&summaries) {
            Ok(text) => text,
            Err(why) => {
                console.eprint(&format!("the results cannot be written as XML: {why}"));
                return EXIT_BROKEN;
            }
        },
    };
    console.print(&text);
    code
}

/// Writes a recorded tool call as a case of the pack: exit 1 where the case would not pass.
fn record(
    world: &dyn World,
    console: &mut Console<'_>,
    paths: &[PathBuf],
    session: &str,
    call: &str,
) -> u8 {
    let project = project::find(world, None);
    if !places::are_named(world, paths) && places::pack_here(world).is_none() {
        // As without `--record`: a pack that was trusted can be tested while it is changed.
        let found = packs::find(world, &project, None);
        let mut untrusted = found.untrusted.iter();
        if let Some(pack) = untrusted.find(|it| it.reason != UntrustedReason::Changed) {
            console.eprint(&pack.text());
            return EXIT_BROKEN;
        }
    }
    let Some(folder) = watch::directories(world, &project, paths).into_iter().next() else {
        console.eprint(
            "no pack for the case\nhelp: run `policyd init`, or pass the directory of a pack",
        );
        return EXIT_USAGE;
    };
    let loaded = pack::require_valid_with_pack(world, console, Some(&folder));
    let Some((policy, found)) = loaded else { return EXIT_BROKEN };
    let (sessions, _) = project::sessions(world, &project, &policy.settings);
    let transcript = match location::find(world, &sessions, &project, Some(session)) {
        Ok(place) => place.transcript,
        Err(error) => return error::report(console, &error),
    };
    let directory = folder.join(FOLDER).join("recorded");
    let recorder = CaseRecorder::new(world, found.pack().into_owned(), &policy, directory);
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let session = transcript.file_stem().unwrap_or_default().to_string_lossy();
    let name: String = format!("{session}-{call}").chars().map(plain).collect();
    match recorder.record(&transcript, EventSelector::Call(call), &name) {
        Ok(path) => {
            console.print(&format!("wrote {}\n", path.display()));
            EXIT_OK
        }
        Err(error) => {
            console.eprint(&error.to_string());
            EXIT_FOUND
        }
    }
}

fn request(arguments: &TestArguments) -> CaseRequest {
    CaseRequest {
        filter: arguments.filter.clone(),
        update: arguments.update.map(|update| match update {
            Update::All => SnapshotUpdate::Accept,
            Update::Review => SnapshotUpdate::Review,
        }),
        coverage: arguments.coverage,
        threshold: arguments.threshold,
    }
}

/// The exit code of what came of a pack's cases.
fn judged(summary: &CaseSummary) -> u8 {
    let (_, failed, _) = summary.counts();
    if summary.broken {
        EXIT_BROKEN
    } else if failed == 0 && summary.findings.is_empty() && summary.wanting.is_empty() {
        EXIT_OK
    } else {
        EXIT_FOUND
    }
}
