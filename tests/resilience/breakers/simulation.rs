//! Many virtual processes share one breaker on one virtual machine: random calls, lost processes,
//! power that fails in the middle of a write, refused writes, clocks that jump. The same seeds every
//! time; a failure names its seed and what happened before.

use std::time::Duration;

use policyd::state::breaker::{
    Breaker, BreakerEvent, BreakerFailure, BreakerPhase, BreakerResponse, BreakerSettings,
    CallMetadata,
};
use policyd::store::breakers::BreakerStore;
use policyd::time::Timestamp;
use policyd::world::fake::FakeWorld;
use policyd::world::{World, WorldError};
use serde_json::Value;

use super::{FILE, store};
use crate::chance::Chance;
use crate::support::rounds;

const SEEDS: u32 = 2_400;
const STEPS: usize = 50;
const PROCESSES: u64 = 5;
const KEY: &str = "api/claude";

/// What can be seen of a breaker: its state, when failures came, the end of its cooldown or its last
/// probe, successes, generation.
type Seen = (BreakerPhase, Vec<i64>, Option<i64>, u32, u64);

/// The breaker of seed 003 told once more, as plainly as it can be: milliseconds, no file, no lock.
#[derive(Debug, Clone, Default, PartialEq)]
struct Model {
    half_open: bool,
    open_until: Option<i64>,
    failures: Vec<i64>,
    successes: u32,
    probe: i64,
    generation: u64,
    recoveries: usize,
}

impl Model {
    fn open(&mut self, now: i64) {
        // The file keeps whole seconds, never sooner than it was said.
        self.open_until = Some((now + 300_000 + 999) / 1000 * 1000);
        self.half_open = false;
        self.successes = 0;
        self.generation += 1;
    }

    fn request(&mut self, now: i64) -> bool {
        match self.open_until {
            Some(until) if now < until => false,
            Some(_) => {
                *self = Self {
                    half_open: true,
                    probe: now,
                    generation: self.generation + 1,
                    recoveries: self.recoveries,
                    ..Self::default()
                };
                true
            }
            None if self.half_open && now < self.probe + 10_000 => false,
            None => {
                self.probe = now;
                true
            }
        }
    }

    fn result(&mut self, worked: bool, generation: u64, now: i64) {
        if generation != self.generation || self.open_until.is_some() {
            return;
        }
        match (self.half_open, worked) {
            (true, true) => {
                self.successes += 1;
                if self.successes == 3 {
                    let (generation, recoveries) = (self.generation + 1, self.recoveries + 1);
                    *self = Self { generation, recoveries, ..Self::default() };
                }
            }
            (true, false) => {
                self.failures = vec![now];
                self.open(now);
            }
            (false, true) => {}
            (false, false) => {
                self.failures.retain(|it| now - it <= 60_000);
                self.failures.push(now);
                if self.failures.len() == 3 {
                    self.open(now);
                }
            }
        }
    }

    /// What can be seen of it from outside.
    fn seen(&self) -> Seen {
        let phase = match (self.open_until, self.half_open) {
            (Some(_), _) => BreakerPhase::Open,
            (None, true) => BreakerPhase::HalfOpen,
            (None, false) => BreakerPhase::Closed,
        };
        let probe = self.half_open.then_some(self.probe);
        let until = self.open_until.or(probe);
        (phase, self.failures.clone(), until, self.successes, self.generation)
    }
}

fn seen(store: &BreakerStore<'_>) -> Seen {
    let it = store.peek(KEY).unwrap();
    let failures = it.failures().map(Timestamp::millis).collect();
    let until = it.cooldown_until.or(it.last_probe).map(Timestamp::millis);
    (it.phase, failures, until, it.successes, it.generation)
}

/// What goes wrong while one operation is under way.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// The process dies before this effect.
    Dies(u32),
    /// This effect is refused once.
    Refused(u32),
}

/// Which faults and clocks a run meets.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Weather {
    Calm,
    Faults,
    FaultsAndJumps,
}

struct Simulation {
    world: FakeWorld,
    chance: Chance,
    weather: Weather,
    model: Model,
    /// Admitted calls whose result is still to come: the generation of each process.
    calls: Vec<Option<u64>>,
    /// When the last probe was admitted, in which generation.
    probe: Option<(Timestamp, u64)>,
    story: Vec<String>,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let weather = [Weather::Calm, Weather::Faults, Weather::FaultsAndJumps]
            [usize::try_from(seed % 3).unwrap()];
        let world = FakeWorld::new();
        // Folders are made by the first process; a write that is refused there says nothing new.
        world.put_folder("/w/.policyd/state");
        world.put_folder("/w/.policyd/logs");
        let calls = vec![None; usize::try_from(PROCESSES).unwrap()];
        let (model, story) = (Model::default(), vec![format!("seed {seed}, {weather:?}")]);
        Self { world, chance: Chance::new(seed), weather, model, calls, probe: None, story }
    }

    fn fault(&mut self) -> Fault {
        let effect = |chance: &mut Chance| u32::try_from(chance.below(14)).unwrap();
        match self.weather {
            Weather::Calm => Fault::None,
            Weather::Faults | Weather::FaultsAndJumps => match self.chance.below(8) {
                0 => Fault::Dies(effect(&mut self.chance)),
                1 => Fault::Refused(effect(&mut self.chance)),
                _ => Fault::None,
            },
        }
    }

    /// Lets something happen in one process, and compares what is stored with the model. Where the
    /// process died or was refused, what it did happened as a whole or not at all.
    fn happens<T>(
        &mut self,
        fault: Fault,
        act: impl FnOnce(&BreakerStore<'_>) -> T,
        then: impl FnOnce(&mut Model),
    ) -> T {
        self.world.clear_log();
        match fault {
            Fault::None => {}
            Fault::Dies(op) => self.world.crash_at(op),
            Fault::Refused(op) => self.world.refuse_at(op, WorldError::Io("EIO".to_owned())),
        }
        let answer = act(&store(&self.world));
        self.world.refuse_nothing();
        self.world.revive();
        if let Some(bytes) = self.world.get(FILE) {
            let whole = serde_json::from_slice::<Value>(&bytes).is_ok_and(|it| it.is_object());
            assert!(whole, "a torn file: {:#?}", self.story);
        }
        let mut next = self.model.clone();
        then(&mut next);
        let now = seen(&store(&self.world));
        if self.weather == Weather::FaultsAndJumps {
            return answer;
        }
        if now == next.seen() {
            self.model = next;
        } else {
            assert!(fault != Fault::None, "{now:?} is not {:?}: {:#?}", next.seen(), self.story);
            assert_eq!(now, self.model.seen(), "half of a step: {:#?}", self.story);
        }
        answer
    }

    fn time_passes(&mut self) {
        let seconds = [1, 3, 10, 30, 100, 300][usize::try_from(self.chance.below(6)).unwrap()];
        self.world.advance(Duration::from_secs(seconds));
        if self.weather == Weather::FaultsAndJumps && self.chance.one_in(6) {
            let jump = i64::try_from(self.chance.below(7_200_000)).unwrap() - 3_600_000;
            let now = Timestamp::from_millis(self.world.now().millis() + jump / 1000 * 1000);
            self.world.set_now(now);
            self.probe = None;
        }
        self.story.push(format!("{}: later", self.world.now()));
    }

    fn request(&mut self, process: usize) {
        let (now, fault, settings) = (self.world.now(), self.fault(), BreakerSettings::default());
        let at = now.millis();
        let mut expected = false;
        let (breaker, answer) = self.happens(
            fault,
            // Who dies has no answer.
            |store| match store.request(KEY, &settings, now) {
                Ok(answered) => answered,
                Err(_) => (Breaker::default(), BreakerResponse::Rejected { wait: None }),
            },
            |model| expected = model.request(at),
        );
        self.story.push(format!("{now}: {process} asks ({fault:?}): {answer:?}"));
        // Who died asks no more; who could not be asked is let through.
        if matches!(fault, Fault::Dies(_)) || answer != BreakerResponse::Permitted {
            return;
        }
        self.calls[process] = Some(breaker.generation);
        if fault != Fault::None {
            return;
        }
        if self.weather != Weather::FaultsAndJumps {
            assert!(expected, "{:#?}", self.story);
        }
        if breaker.phase == BreakerPhase::HalfOpen {
            let generation = breaker.generation;
            if let Some((last, _)) = self.probe.filter(|it| it.1 == generation) {
                let apart = now.since(last).as_secs();
                assert!(apart >= 10, "two probes within {apart} s: {:#?}", self.story);
            }
            self.probe = Some((now, generation));
        }
    }

    fn result(&mut self, process: usize, generation: u64) {
        let (now, fault, settings) = (self.world.now(), self.fault(), BreakerSettings::default());
        let worked = self.chance.one_in(2);
        let told = CallMetadata { generation: Some(generation), took: None };
        let event = if worked {
            BreakerEvent::Success(told)
        } else {
            BreakerEvent::Failure(BreakerFailure { told, ..BreakerFailure::new("529") })
        };
        let at = now.millis();
        let saved = self.happens(
            fault,
            |store| store.record(KEY, event, &settings, now).is_ok(),
            |model| model.result(worked, generation, at),
        );
        self.story.push(format!("{now}: {process} worked: {worked} ({fault:?}), saved: {saved}"));
        assert!(saved || fault != Fault::None, "{:#?}", self.story);
        self.calls[process] = None;
    }

    /// What was said to be saved is there after the power failed.
    fn run(mut self) {
        for _ in 0..STEPS {
            let process = usize::try_from(self.chance.below(PROCESSES)).unwrap();
            match (self.chance.below(5), self.calls[process]) {
                (0, _) => self.time_passes(),
                // A process is lost with the result of its call.
                (1, Some(_)) => self.calls[process] = None,
                (_, Some(generation)) => self.result(process, generation),
                (_, None) => self.request(process),
            }
        }
        self.comes_back();
        if self.weather == Weather::Calm {
            let log = self.world.get("/w/.policyd/logs/circuit-recovery.log").unwrap_or_default();
            let lines = String::from_utf8(log).unwrap().matches("recovered").count();
            let recovered = self.model.recoveries;
            // The last one came after the model.
            assert!(lines == recovered || lines == recovered + 1, "{lines}: {:#?}", self.story);
        }
    }

    /// Whatever happened: when calls succeed again, it closes.
    fn comes_back(&self) {
        let (store, settings) = (store(&self.world), BreakerSettings::default());
        for _ in 0..40 {
            if store.peek(KEY).unwrap().phase == BreakerPhase::Closed {
                return;
            }
            self.world.advance(Duration::from_secs(10));
            let (breaker, answer) = store.request(KEY, &settings, self.world.now()).unwrap();
            if answer == BreakerResponse::Permitted {
                let told = CallMetadata { generation: Some(breaker.generation), took: None };
                store
                    .record(KEY, BreakerEvent::Success(told), &settings, self.world.now())
                    .unwrap();
            }
        }
        assert_eq!(store.peek(KEY).unwrap().phase, BreakerPhase::Closed, "{:#?}", self.story);
    }
}

#[test]
fn whatever_happens_nothing_is_lost_and_it_comes_back() {
    let mut phases = std::collections::BTreeMap::new();
    let seeds = u64::from(rounds(SEEDS));
    for seed in 0..seeds {
        let simulation = Simulation::new(seed);
        let world = simulation.world.clone();
        simulation.run();
        let generation = store(&world).peek(KEY).unwrap().generation;
        *phases.entry(generation.min(6)).or_insert(0) += 1;
    }
    // A run in which nothing ever opens proves nothing.
    let moved: u64 = phases.iter().filter(|it| *it.0 >= 3).map(|it| it.1).sum();
    assert!(moved > seeds / 3, "{phases:?}");
}
