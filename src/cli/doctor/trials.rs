//! The whole path of a hook, tried: once as it should be, and on simulated machines on which something
//! goes wrong. Whatever goes wrong, the agent is not trapped and the exit code is 0.

use std::ffi::OsString;
use std::time::Duration;

use serde_json::{Value, json};

use crate::Console;
use policyd_app::doctor::check::{CheckHealth, DoctorCheck};
use policyd_app::packs::{self, organization};
use policyd_app::workspace::project::Project;
use policyd_policy::EnforcementMode;
use policyd_store::administrator;
use policyd_world::fake::{FakeWorld, Op};
use policyd_world::{ExternalCommand, World, WorldError};

/// An agent that wants to stop with a failing test.
const TRANSCRIPT: &str = include_str!("transcript.jsonl");
const TRANSCRIPT_PATH: &str = "/t/session.jsonl";
const PACK: &str = "/pack";
/// The file of guards that a pack adds.
const GUARDS: &str = "guards.yaml";
/// Calls whose time is measured.
const CALLS: usize = 5;
/// A call that takes longer is felt.
const SLOW: Duration = Duration::from_millis(500);

/// What a hook answered.
struct HookAnswer {
    code: u8,
    stdout: String,
}

impl HookAnswer {
    fn value(&self) -> Option<Value> {
        if self.stdout.is_empty() {
            Some(json!({}))
        } else {
            serde_json::from_str(&self.stdout).ok()
        }
    }

    fn blocks(&self) -> bool {
        self.text("decision") == "block"
    }

    /// What is said of an answer that should be another one.
    fn unexpected(&self) -> String {
        format!(
            "exit code {}, and an answer that should be another one: {}",
            self.code, self.stdout
        )
    }

    /// Returns the message that the user sees, or an empty string.
    fn notice(&self) -> String {
        self.text("systemMessage")
    }

    fn text(&self, key: &str) -> String {
        let value = self.value().unwrap_or_default();
        value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    }
}

/// Tries everything.
pub(super) fn run() -> Vec<DoctorCheck> {
    let blocked = call(&machine(), &["--hook", "stop"], &payload());
    let mut checks = vec![good_payload(&blocked)];
    let harmless = [
        ("bad flag", machine(), vec!["--hook", "stop", "--no-such-flag"], payload()),
        ("bad event", machine(), vec!["--hook", "stopp"], payload()),
        ("bad stdin", machine(), vec!["--hook", "stop"], "{\"session_id\":".to_owned()),
        ("no stdin", machine(), vec!["--hook", "stop"], String::new()),
        ("bad pack", broken_pack(), vec!["--hook", "stop", "--policies", PACK], payload()),
    ];
    for (about, world, arguments, stdin) in harmless {
        let answered = call(&world, &arguments, &stdin);
        checks.push(harmless_and_told(about, &answered));
    }
    for (about, error) in
        [("read-only", "Read-only file system"), ("full disk", "No space left on device")]
    {
        checks.push(blocked_and_released(about, error));
    }
    checks.push(slow_probe());
    checks
}

/// Without any state, the failing test is blocked, and the stop after the block is not.
fn blocked_and_released(about: &'static str, error: &str) -> DoctorCheck {
    let world = refusing(error);
    let first = call(&world, &["--hook", "stop"], &payload());
    let after = payload().replace("\"stop_hook_active\":false", "\"stop_hook_active\":true");
    let second = call(&world, &["--hook", "stop"], &after);
    let is_sound = |it: &HookAnswer| it.code == 0 && !it.notice().is_empty();
    if !is_sound(&first) || !first.blocks() {
        return DoctorCheck::new(about, CheckHealth::Bad, first.unexpected());
    }
    if !is_sound(&second) || second.blocks() {
        return DoctorCheck::new(about, CheckHealth::Bad, second.unexpected());
    }
    let text = "blocked without a state; the stop after it is not. The user sees:".to_owned();
    let mut check = DoctorCheck::new(about, CheckHealth::Good, text);
    check.more = first.notice().lines().map(str::to_owned).collect();
    check
}

/// The failing test is blocked, and this is what the agent reads.
fn good_payload(answered: &HookAnswer) -> DoctorCheck {
    let health =
        if answered.code == 0 && answered.blocks() { CheckHealth::Good } else { CheckHealth::Bad };
    let text = match health {
        CheckHealth::Good => "stop with a failing test: blocked. The agent sees:".to_owned(),
        CheckHealth::Look | CheckHealth::Bad => answered.unexpected(),
    };
    let mut check = DoctorCheck::new("block", health, text);
    check.more = answered.text("reason").lines().map(str::to_owned).collect();
    check
}

fn harmless_and_told(about: &'static str, answered: &HookAnswer) -> DoctorCheck {
    let notice = answered.notice();
    let sound = answered.code == 0 && !answered.blocks() && !notice.is_empty();
    let health = if sound { CheckHealth::Good } else { CheckHealth::Bad };
    let text = match health {
        CheckHealth::Good => "exit code 0, not blocked. The user sees:".to_owned(),
        CheckHealth::Look | CheckHealth::Bad => answered.unexpected(),
    };
    let mut check = DoctorCheck::new(about, health, text);
    check.more = notice.lines().map(str::to_owned).collect();
    check
}

/// A probe that takes too long makes its rule unknown, and nothing else.
fn slow_probe() -> DoctorCheck {
    let world = machine();
    let rule = "- {id: slow, category: C, question: Q, severity: blocker, details: slow, \
        applicable_session_types: ['*'], satisfied: 'probes.slow.text(\"\") == \"x\"'}\n";
    world.put(format!("{PACK}/policyd.yaml"), "version: 1\nextends: []\n");
    world.put(format!("{PACK}/considerations.yaml"), rule);
    let probe = "- {id: slow, command: [slow-program], timeout: 2s, parse: text}\n";
    world.put(format!("{PACK}/probes.yaml"), probe);
    let takes = Duration::from_secs(2);
    world.script(&["slow-program"], Err(WorldError::TimedOut), takes);
    let answered = call(&world, &["--hook", "stop", "--policies", PACK], &payload());
    let asked = world.ran().iter().any(|it| it.argv == ["slow-program"]);
    let sound = answered.code == 0 && !answered.blocks() && asked;
    let health = if sound { CheckHealth::Good } else { CheckHealth::Bad };
    DoctorCheck::new("slow probe", health, "timed out: its check is `unknown` and does not block")
}

/// A guard that is added to the rules of the organization, for a call that nothing else blocks.
const LOCKED: &str = "\n- id: policyd_doctor\n  commands: [policyd-doctor-trial]\n  decision: block\n  \
    message: The organization blocks this call.\n";
/// The same guard in the pack of a user, who allows the call.
const UNLOCKED: &str = "- id: policyd_doctor\n  commands: [policyd-doctor-trial]\n  decision: allow\n  \
    message: Allowed.\n";

/// The rules of the organization, tried on a simulated machine whose user weakens them in every way that needs no
/// terminal. `None` if this machine has no such rules, or if they only observe.
pub(super) fn organization(world: &dyn World) -> Option<DoctorCheck> {
    let found = organization::find(world).ok()??;
    let policy = packs::policy(world, &found).ok()?;
    if policy.settings.mode == Some(EnforcementMode::Observe) {
        return None;
    }
    let folder = administrator::policies();
    let machine = machine();
    let pack = found.pack();
    for (file, source) in &pack.files {
        machine.put(folder.join(file), &source.text);
    }
    let guards = pack.files.iter().find(|(file, _)| file == GUARDS);
    let guards = guards.map_or_else(String::new, |(_, source)| source.text.clone());
    machine.put(folder.join(GUARDS), format!("{guards}{LOCKED}"));
    let files = machine.files();
    let own = files.iter().filter(|it| it.starts_with(&folder));
    own.flat_map(|it| it.ancestors()).for_each(|it| machine.give_away(it, 0));
    machine.put(format!("{PACK}/policyd.yaml"), "version: 1\nenabled: false\nmode: observe\n");
    machine.put(format!("{PACK}/{GUARDS}"), UNLOCKED);
    machine.set_env("POLICYD_DISABLED", "1");
    machine.set_env("AMPLIHACK_SKIP_POWER_STEERING", "1");
    machine.set_env("POLICYD_POLICIES", PACK);
    let event = json!({"session_id": "doctor", "cwd": "/work", "hook_event_name": "PreToolUse",
        "tool_name": "Bash", "tool_input": {"command": "policyd-doctor-trial"}});
    let line = ["--hook", "pre-tool-use", "--policies", PACK];
    let answered = call(&machine, &line, &event.to_string());
    let denied = answered.code == 0 && answered.stdout.contains("\"deny\"");
    let (health, text) = match denied {
        true => (
            CheckHealth::Good,
            "holds although policyd is disabled and a pack allows the call".to_owned(),
        ),
        false => (CheckHealth::Bad, answered.unexpected()),
    };
    Some(DoctorCheck::new("locked layer", health, text))
}

/// What one call costs on this machine, the start of the process included.
pub(super) fn time(world: &dyn World, project: &Project) -> DoctorCheck {
    let Some(program) = world.program() else {
        return DoctorCheck::new(
            "time",
            CheckHealth::Look,
            "the path of this program is not known",
        );
    };
    let argv = [&program.display().to_string(), "eval", "--hook", "stop", "--dry-run"];
    let stdin = json!({"session_id": "doctor", "hook_event_name": "Stop",
        "cwd": project.folder.display().to_string()});
    let command = ExternalCommand {
        argv: argv.iter().map(|it| (*it).to_owned()).collect(),
        folder: project.folder.clone(),
        stdin: stdin.to_string().into_bytes(),
        deadline: Duration::from_secs(20),
        output_max: 64 * 1024,
        ..ExternalCommand::default()
    };
    let mut times = Vec::new();
    for _ in 0..CALLS {
        let began = world.elapsed();
        match world.run(&command) {
            Ok(output) if output.code == Some(0) => {}
            Ok(output) => {
                let text = format!("a call ended with {:?} instead of 0", output.code);
                return DoctorCheck::new("time", CheckHealth::Bad, text);
            }
            Err(error) => {
                return DoctorCheck::new("time", CheckHealth::Bad, format!("a call: {error}"));
            }
        }
        times.push(world.elapsed().saturating_sub(began));
    }
    times.sort_unstable();
    let middle = times.get(CALLS / 2).copied().unwrap_or_default();
    let health = if middle > SLOW { CheckHealth::Look } else { CheckHealth::Good };
    let millis = middle.as_secs_f64() * 1000.0;
    DoctorCheck::new("time", health, format!("{millis:.1} ms for a call at a stop in this project"))
}

/// A machine on which the agent has just worked.
fn machine() -> FakeWorld {
    let world = FakeWorld::new();
    world.put("/work/.git/HEAD", "ref: refs/heads/main\n");
    world.put(TRANSCRIPT_PATH, TRANSCRIPT);
    world
}

fn broken_pack() -> FakeWorld {
    let world = machine();
    world.put(format!("{PACK}/considerations.yaml"), "- id: mine\n  severty: blocker\n");
    world
}

/// A machine that writes nothing.
fn refusing(why: &str) -> FakeWorld {
    let world = machine();
    for op in [Op::Write, Op::Append, Op::CreateFolder, Op::Lock, Op::Rename, Op::Exchange] {
        world.refuse_always(op, "", WorldError::Io(why.to_owned()));
    }
    world
}

fn payload() -> String {
    json!({"session_id": "doctor", "transcript_path": TRANSCRIPT_PATH, "cwd": "/work",
        "prompt_id": "p1", "hook_event_name": "Stop", "stop_hook_active": false})
    .to_string()
}

/// Calls the program as a client does.
fn call(world: &FakeWorld, arguments: &[&str], stdin: &str) -> HookAnswer {
    let (mut stdin, mut stdout, mut stderr) = (stdin.as_bytes(), Vec::new(), Vec::new());
    let mut console = Console {
        stdin: &mut stdin,
        stdout: &mut stdout,
        stderr: &mut stderr,
        stdout_is_tty: false,
        stderr_is_tty: false,
        stdin_is_tty: false,
        columns: None,
    };
    let words = ["policyd", "eval"].iter().chain(arguments).map(OsString::from);
    let code = crate::run(world, &mut console, &words.collect::<Vec<_>>());
    HookAnswer { code, stdout: String::from_utf8_lossy(&stdout).into_owned() }
}
