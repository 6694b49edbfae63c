//! kill -9 at any moment: the state stays loadable, no counter goes back, nothing left over harms.

use std::fs;
use std::io::{Read, Write};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::machine::{Machine, alone, asked, checked, edited};
use crate::support::rounds;

/// Deterministic numbers that look random (a linear congruence).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Begins a stop, kills it after `delay`, and says whether it had spoken and was a block.
fn killed_after(machine: &Machine, prompt: &str, delay: Duration) -> (bool, bool) {
    let mut child = machine
        .command(&["eval", "--hook", "stop"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let payload = machine.payload(&json!({"prompt_id": prompt})).to_string();
    child.stdin.take().unwrap().write_all(payload.as_bytes()).unwrap();
    thread::sleep(delay);
    child.kill().unwrap();
    let mut stdout = String::new();
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    child.wait().unwrap();
    (!stdout.is_empty(), checked(&stdout)["decision"] == "block")
}

#[test]
fn five_hundred_kills_leave_a_state_that_never_went_back() {
    let machine = Machine::new();
    let counters = |state: &Value| {
        ["revision", "total_blocks", "turn_count"].map(|key| state[key].as_u64().unwrap())
    };
    let (_alone, kills) = (alone(), rounds(500_u32));
    // No cap lets go here, so that every stop moves the counters.
    machine.put(
        ".policyd/policies/policyd.yaml",
        "guard: {max_consecutive_blocks: 1000, idle_blocks_max: 1000}\n",
    );
    // The first call compiles the pack, which the others find compiled.
    machine.untested().stop().answer();
    let takes = u64::try_from(machine.stop().took.as_micros()).unwrap();
    let mut last = counters(&machine.state());
    let (mut dice, mut spoken, mut blocks, mut latest) = (Dice(7), 0, last[1], takes * 3 / 2);
    for number in 0..kills {
        // New work in every turn, so that every stop that comes through is a block.
        let prompt = format!("p{number}");
        machine
            .record(&[asked(&prompt, "Add one more")])
            .record(&edited(&format!("f{}.py", number % 5)));
        let delay = Duration::from_micros(dice.below(latest));
        let (spoke, blocked) = killed_after(&machine, &prompt, delay);
        spoken += u32::from(spoke);
        // However fast this machine is now: a third of the calls come to their end.
        let next = if spoke { latest - latest / 10 } else { latest + latest / 20 };
        latest = next.clamp(2_000, 300_000);
        blocks += u64::from(blocked);
        let now = counters(&machine.state());
        assert!(now.iter().zip(last).all(|(now, last)| *now >= last), "{last:?} to {now:?}");
        assert!(now[1] >= blocks, "a block was spoken that is not remembered");
        last = now;
    }
    eprintln!(
        "{kills} kills, the last ones within {latest} us: {spoken} had spoken; counters {last:?}"
    );
    assert!(
        (kills / 10..kills * 9 / 10).contains(&spoken),
        "the kills did not hit what they should: {spoken}"
    );
    let verified = machine.run(&["state", "verify", "s1"], b"");
    assert_eq!((verified.code, verified.stdout.as_str()), (Some(0), "s1: the state is valid\n"));

    // What the killed left over does no harm to those who come later.
    machine.record(&[asked("last", "Add one more")]).record(&edited("last.py"));
    let said: Vec<_> = (0..3).map(|_| machine.stop_with(&json!({"prompt_id": "last"}))).collect();
    assert_eq!(said.iter().map(|it| it.blocks()).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(counters(&machine.state()), [last[0] + 3, last[1] + 2, last[2] + 3]);
    let names = fs::read_dir(machine.session()).unwrap().map(|it| it.unwrap().file_name());
    let mut names: Vec<_> = names.map(|it| it.into_string().unwrap()).collect();
    names.sort();
    let known = [".state.json.tmp", ".state.lock", "cursor.bin", "diagnostic.jsonl", "state.json"];
    assert_eq!(names, known);
}
