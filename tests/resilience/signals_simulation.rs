//! Signals in a simulation: several processes, a clock that jumps, power losses and refused writes,
//! thousands of seeds. What a consumer was handed is handed to nobody else, no signal is lost, an
//! approval approves the request that it was meant for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use policyd::policy::{Policy, builtin, load};
use policyd::state::signal::{End, SignalEvent};
use policyd::store::file::Durability;
use policyd::store::signals::{Draft, SignalOutcome, SignalStore, StoredSignal};
use policyd::time::Timestamp;
use policyd::world::fake::{Content, FakeWorld, Survival};
use policyd::world::{World, WorldError};
use serde_json::{Map, Value};

use crate::support::rounds;

static POLICY: LazyLock<Policy> = LazyLock::new(|| {
    let pack = builtin::pack();
    load::load(&pack, &pack).policy.unwrap()
});

const SEEDS: u32 = 2_000;
const STEPS: usize = 40;
const REQUEST: &str = "HUMAN_REVIEW_NEEDED";
const APPROVAL: &str = "HUMAN_APPROVED";
const NAMES: [&str; 4] = ["STOP", REQUEST, "FEATURE_READY_a", "TESTS_PASSED_a"];
const WHO: [&str; 3] = ["one", "two", "three"];

/// A small generator: a seed always plays the same.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % end
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// What the world outside the store knows.
#[derive(Default)]
struct Known {
    /// Signals whose creation was confirmed.
    created: BTreeSet<String>,
    /// Who was handed a signal.
    handed: BTreeMap<String, String>,
    /// Requests that a human said yes to, by id; also where the answer was lost in a crash.
    approved: BTreeSet<String>,
    /// Requests that an approval made by hand may mean.
    by_hand: BTreeSet<String>,
    /// Claims that nobody may pass over: by whom, until when.
    held: BTreeMap<String, (String, Timestamp)>,
}

struct Game {
    world: FakeWorld,
    dice: Dice,
    known: Known,
    /// Whether a write may be lost with the power although it was confirmed, as was told.
    degraded: bool,
    crashes: usize,
    /// Whether the power was lost in the very turn that ended degraded.
    lost_power_last: bool,
    note: String,
}

impl Game {
    fn new(seed: u64) -> Self {
        let dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let (known, note) = (Known::default(), format!("seed {seed}"));
        let world = FakeWorld::new();
        world.put_folder("/w");
        Self { world, dice, known, degraded: false, crashes: 0, lost_power_last: false, note }
    }

    fn with<T>(&mut self, work: impl FnOnce(&SignalStore<'_>, Timestamp) -> T) -> T {
        let world = self.world.clone();
        let root = Path::new("/w/.policyd");
        let store = SignalStore::new(&world, root, &POLICY.signals, Durability::default());
        let done = work(&store, world.now());
        self.degraded |= store.degraded().is_some();
        done
    }

    fn waiting(&mut self, name: &str) -> Vec<StoredSignal> {
        let mut found = self.with(|store, now| store.pending(now));
        found.retain(|it| it.name == name);
        found
    }

    fn hand(&mut self, id: &str, by: &str) {
        if self.lost_power_last {
            return;
        }
        let before = self.known.handed.insert(id.to_owned(), by.to_owned());
        assert_eq!(before, None, "{}: {id} was handed out twice", self.note);
        if let Some((holder, until)) = self.known.held.get(id) {
            let passed_over = holder != by && self.world.now() < *until;
            assert!(!passed_over, "{}: {by} got {id} while {holder} held it", self.note);
        }
    }

    fn turn(&mut self) {
        // The clock goes on, and sometimes back a little.
        let minutes = self.dice.of(&[0, 1, 5, 60, 600]);
        self.world.advance(Duration::from_secs(minutes * 60 + 1));
        if self.dice.below(20) == 0 {
            let back = Timestamp::from_millis(self.world.now().millis() - 2_000);
            self.world.set_now(back);
        }
        let trouble = self.dice.below(6);
        let at = self.world.ops() + u32::try_from(self.dice.below(40)).unwrap();
        let loses_power = trouble == 0 && !self.degraded;
        if loses_power {
            self.world.crash_at(at);
            self.crashes += 1;
        } else if trouble == 1 {
            self.world.refuse_at(at, WorldError::Io("disk full".to_owned()));
        }
        self.act();
        self.lost_power_last |= loses_power && self.degraded;
        if loses_power {
            let content =
                self.dice.of(&[Content::Old, Content::New, Content::Half, Content::Empty]);
            let names = self.dice.of(&[0, 1, 2, 3, usize::MAX]);
            self.world = self.world.reboot(Survival { names, content });
        }
        self.world.refuse_nothing();
    }

    fn act(&mut self) {
        let (name, who) = (self.dice.of(&NAMES), self.dice.of(&WHO));
        match self.dice.below(12) {
            0..=2 => {
                let fields = Map::from_iter([("reason".to_owned(), Value::from(who))]);
                let draft = Draft { name: name.to_owned(), fields, ..Draft::default() };
                if let Ok(made) = self.with(|store, now| store.emit(&draft, now)) {
                    self.known.created.insert(made.id);
                }
            }
            3..=5 => self.consume(name, who),
            6 => {
                let lease = Duration::from_secs(300);
                let claim = SignalEvent::Claim { by: who, lease };
                if let Ok(SignalOutcome::Held(found, until)) =
                    self.with(|store, now| store.take(name, claim, now))
                {
                    self.known.held.insert(found.id, (who.to_owned(), until));
                }
            }
            7 => self.approve(who),
            8 => self.approve_by_hand(),
            9 => self.consume(APPROVAL, who),
            10 => {
                let waiting = self.waiting(name);
                if let Some(it) = waiting.last() {
                    let _any = self.with(|store, now| store.reject(&it.id, who, "no", now));
                }
            }
            _ => {
                let _any = self.with(|store, now| store.process(now, &mut |_| Ok(())));
            }
        }
    }

    fn consume(&mut self, name: &str, who: &str) {
        let answer =
            self.with(|store, now| store.take(name, SignalEvent::Consume { by: who }, now));
        if let Ok(SignalOutcome::Ended(found, End::Consumed, request)) = answer {
            self.hand(&found.id, who);
            if let Some(request) = request {
                self.check_approval(&request.id);
            }
        }
    }

    fn approve(&mut self, who: &str) {
        let waiting = self.waiting(REQUEST);
        if waiting.is_empty() {
            return;
        }
        let id = waiting[self.dice.below(waiting.len())].id.clone();
        // Where the answer is lost the approval may be written all the same.
        self.known.approved.insert(id.clone());
        let _any = self.with(|store, now| store.approve(&id, who, "go on", now));
    }

    fn approve_by_hand(&mut self) {
        let path = format!("/w/.policyd/signals/{APPROVAL}");
        if self.world.get(&path).is_some() {
            return;
        }
        let (waits, incomplete) = self.with(|store, now| {
            let view = store.view(now);
            let waits = view.awaiting_human(&POLICY.signals, now).map(|it| it.id.clone());
            (waits.collect::<Vec<_>>(), view.incomplete)
        });
        if incomplete {
            return;
        }
        if let [only] = waits.as_slice() {
            self.known.by_hand.insert(only.clone());
        }
        self.world.put(&path, "");
        self.world.advance(Duration::from_secs(3));
    }

    fn check_approval(&self, id: &str) {
        let meant = self.known.approved.contains(id) || self.known.by_hand.contains(id);
        assert!(meant, "{}: nobody approved {id}", self.note);
    }

    /// What must hold at the end, after one look of a process that lived.
    fn settle(&mut self) {
        self.with(|store, now| store.remove_answers(&[], now)).unwrap();
        let history = self.with(|store, _| store.history().unwrap());
        let view = self.with(|store, now| store.view(now));
        let text = |it: &Value, key: &str| it[key].as_str().unwrap_or_default().to_owned();
        let mut over: BTreeMap<String, String> = BTreeMap::new();
        for entry in &history {
            let (id, outcome) = (text(entry, "id"), text(entry, "outcome"));
            if text(entry, "signal") == REQUEST && outcome == "approved" {
                self.check_approval(&id);
            }
            let before = over.insert(id.clone(), outcome);
            assert!(id.is_empty() || before.is_none(), "{}: {id} ended twice", self.note);
        }
        for id in &self.known.created {
            let waits = view.signals.iter().any(|it| it.id == *id);
            let ended = over.contains_key(id);
            assert!(waits != ended, "{}: {id} waits: {waits}, ended: {ended}", self.note);
        }
        for id in self.known.handed.keys() {
            let outcome = over.get(id).map(String::as_str);
            assert_eq!(outcome, Some("consumed"), "{}: {id}", self.note);
        }
    }
}

#[test]
fn a_signal_is_consumed_once_and_never_lost() {
    let (mut handed, mut approved, mut crashes, mut settled) = (0, 0, 0, 0);
    let seeds = rounds(SEEDS);
    for seed in 0..u64::from(seeds) {
        let mut game = Game::new(seed);
        for _ in 0..STEPS {
            game.turn();
        }
        // What was confirmed as degraded may be lost with the power: that was said.
        if !(game.degraded && game.lost_power_last) {
            game.settle();
            settled += 1;
        }
        handed += game.known.handed.len();
        approved += game.known.approved.len() + game.known.by_hand.len();
        crashes += game.crashes;
    }
    // The simulation is worth nothing where hardly anything happens in it.
    let least = |of_all: u32| usize::try_from(of_all * seeds / SEEDS).unwrap();
    assert!(
        handed > least(5_000)
            && approved > least(1_000)
            && crashes > least(2_000)
            && settled > least(1_500),
        "{handed} {approved} {crashes} {settled}"
    );
}
