//! Start-up cost of a hook: time, processor time, page faults, and memory, against empty processes of the same run.

use std::fs;
use std::process::Child;
use std::time::Duration;

use crate::measure::median;
use crate::{Case, Machine, count};

/// Rounds; each round runs every case once, so that noise meets all alike.
const ROUNDS: usize = 300;

/// One table for all programs: their rounds alternate.
pub(crate) fn table(machines: &[Machine]) {
    let sessions: Vec<_> = machines
        .iter()
        // A stop waits for the result of each call that a hook saw, so calls are in a session of their own.
        .map(|it| {
            let calls = it.session("calls", 200, true);
            [it.session("start", 200, true), it.session("start", 200, false), calls]
        })
        .collect();
    let mut rows: Vec<(&Machine, &str, Case<'_>)> = Vec::new();
    for (machine, [passing, failing, calls]) in machines.iter().zip(&sessions) {
        if rows.is_empty() {
            rows.push((machine, "", Case::empty("empty process, dynamic", &machine.empty)));
            rows.push((machine, "", Case::empty("empty process, static", &machine.empty_static)));
        }
        let call = Case::stop("tool call", calls);
        rows.push((machine, "<= 1.15x", Case { hook: "pre-tool-use", ..call }));
        rows.push((machine, "<= 1.4x", Case::stop("warm stop", passing)));
        rows.push((machine, "<= 2.0x", Case::stop("stop, state saved durably", failing)));
    }
    for _ in 0..6 {
        // The first stops write caches and enter the episode; the following ones repeat.
        for (machine, _, case) in &rows {
            case.run(machine);
        }
    }
    for _ in 0..ROUNDS {
        rows.iter_mut().for_each(|(machine, _, case)| case.measure(machine));
    }
    println!(
        "\n{:<28}{:>8}{:>8}{:>10}{:>8}{:>8}{:>8}  goal",
        "start-up", "min ms", "ratio", "CPU ms", "ratio", "faults", "MB"
    );
    let Some((_, _, empty)) = rows.first() else { return };
    let (floor, cpu_floor) = (least(empty), cpu(&empty.usage));
    for (machine, goal, case) in &rows {
        let (least, cpu) = (least(case), cpu(&case.usage));
        let peak =
            machine.peak(case).map_or("?".to_owned(), |it| format!("{:.1}", count(it) / 1e3));
        println!(
            "{:<28}{:>8.2}{:>7.2}x{:>10.2}{:>7.2}x{:>8}{peak:>8}  {goal}",
            case.name,
            least * 1e3,
            least / floor,
            cpu * 1e3,
            cpu / cpu_floor,
            faults(&case.usage),
        );
    }
}

/// The shortest run in seconds: other processes can only make a run longer.
fn least(case: &Case<'_>) -> f64 {
    case.took.iter().min().map_or(f64::NAN, Duration::as_secs_f64)
}

/// The median of processor time in seconds.
fn cpu(usage: &[Usage]) -> f64 {
    let mut times: Vec<Duration> = usage.iter().map(|it| it.cpu).collect();
    if times.is_empty() { f64::NAN } else { median(&mut times) }
}

/// The median number of page faults.
fn faults(usage: &[Usage]) -> u64 {
    let mut counts: Vec<u64> = usage.iter().map(|it| it.page_faults).collect();
    counts.sort_unstable();
    counts.get(counts.len() / 2).copied().unwrap_or_default()
}

/// What the operating system counted for a process.
pub(crate) struct Usage {
    /// Time on a processor, in user and kernel mode. Other processes disturb it less than the clock.
    pub(crate) cpu: Duration,
    /// Pages that were mapped on first access, without the disk.
    pub(crate) page_faults: u64,
}

impl Usage {
    /// Waits until a process ends, and reads its counters before it is reaped. `None` without Linux.
    pub(crate) fn at_exit(child: &Child) -> Option<Self> {
        #[cfg(target_os = "linux")]
        {
            use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
            let id = WaitId::Pid(Pid::from_raw(child.id().try_into().ok()?)?);
            waitid(id, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).ok()?;
        }
        let counters = |name: &str| fs::read_to_string(format!("/proc/{}/{name}", child.id())).ok();
        let cpu = counters("schedstat")?.split(' ').next()?.parse().ok()?;
        // The second field is a name in parentheses; `minflt` is the tenth.
        let page_faults = counters("stat")?.rsplit(") ").next()?.split(' ').nth(7)?.parse().ok()?;
        Some(Self { cpu: Duration::from_nanos(cpu), page_faults })
    }
}
