//! Simulated machines on which the program is called.

use policyd::cli::{self, Console};
use policyd::world::fake::{FakeWorld, Survival};

/// What a call of the program gave.
pub(super) struct Called {
    pub(super) code: u8,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Called {
    /// Asserts what a hook promises: exit code 0, and at most one JSON object.
    pub(super) fn is_an_answer(&self) {
        assert_eq!(self.code, 0, "a hook always exits with 0: {}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        assert!(!self.stdout.contains("policyd failed inside"), "{}", self.stdout);
        if !self.stdout.trim().is_empty() {
            let parsed: Result<serde_json::Value, _> = serde_json::from_str(&self.stdout);
            assert!(parsed.is_ok_and(|it| it.is_object()), "not one object: {}", self.stdout);
        }
    }
}

/// A machine with a project, on which the built-in pack was compiled before.
pub(super) fn machine() -> FakeWorld {
    thread_local! {
        static WARM: FakeWorld = {
            let world = FakeWorld::new();
            world.put("/work/.git/HEAD", "ref: refs/heads/main\n");
            world.set_env("HOME", "/home/dev");
            let stop = br#"{"session_id": "warm", "cwd": "/work", "hook_event_name": "Stop"}"#;
            call(&world, &["eval", "--hook", "stop"], stop).is_an_answer();
            world
        };
    }
    WARM.with(|it| it.reboot(Survival::EVERYTHING))
}

/// Calls the program.
pub(super) fn call(world: &FakeWorld, words: &[&str], mut stdin: &[u8]) -> Called {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut console = Console {
        stdin: &mut stdin,
        stdout: &mut stdout,
        stderr: &mut stderr,
        stdout_is_tty: false,
        stderr_is_tty: false,
        stdin_is_tty: false,
        columns: None,
    };
    let words: Vec<_> = std::iter::once("policyd").chain(words.iter().copied()).collect();
    let words: Vec<_> = words.into_iter().map(Into::into).collect();
    let code = cli::run(world, &mut console, &words);
    let text = |bytes| String::from_utf8(bytes).expect("what is printed is text");
    Called { code, stdout: text(stdout), stderr: text(stderr) }
}
