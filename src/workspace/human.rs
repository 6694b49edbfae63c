//! The one check of commands that only a human may run: every process that started this one is known, no agent
//! is among them, and the user confirms the action at the terminal with a random word.
//!
//! What the check cannot stop, because it reads only what the same user could also write:
//! - a terminal multiplexer, a daemon or a scheduled job that an agent started, or started before, with
//!   a cleaned environment, and that has left the process tree of the agent;
//! - a process of the same user that types into a terminal of that user, or that traces a process;
//! - a client that policyd does not know, and a known one whose program was renamed and whose
//!   variables were removed;
//! - a process that writes the files of the user's choices itself: guards refuse that to an agent.

use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

use policyd_base::programs::{FRONT, TOOLS};
use policyd_harness::{HARNESSES, Harness};
use policyd_world::{ANCESTORS_MAX, Ancestor, AncestryGap, Confirmation, World};

/// The variable that marks the processes of a supervised run: its value names the run and the turn, so
/// that they are known if the supervisor dies.
pub const RUN_VARIABLE: &str = "POLICYD_RUN";
/// What `policyd run` is named in messages.
const SUPERVISOR: &str = "policyd run";
/// Programs that run a script.
const INTERPRETERS: [&str; 4] = ["node", "nodejs", "bun", "deno"];
/// Options of interpreters whose value is the next argument.
const OPTIONS_WITH_VALUE: [&str; 8] = [
    "-r",
    "--require",
    "--import",
    "--loader",
    "--experimental-loader",
    "-C",
    "--conditions",
    "--env-file",
];
/// Words between an interpreter and its script.
const INTERPRETER_WORDS: [&str; 3] = ["run", "x", "exec"];

/// Who runs a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    user: String,
    terminal: String,
}

/// File with the accounts of a machine.
const ACCOUNTS: &str = "/etc/passwd";
/// Longest file of accounts that is read.
const ACCOUNTS_BYTES_MAX: usize = 1024 * 1024;

/// Returns the name of the account of this process. A variable could state any name.
fn account(world: &dyn World) -> Option<String> {
    account_field(world, 0)
}

/// Returns the name of the user of this process: the account, or what the environment says if the account is unknown.
pub fn user_name(world: &dyn World) -> Option<String> {
    let names = ["USER", "LOGNAME", "USERNAME"];
    account(world).or_else(|| names.iter().find_map(|it| world.env(it)))
}

/// Returns the home directory of the account of this process, or what the environment says if the account is unknown.
pub(crate) fn home_of_account(world: &dyn World) -> Option<PathBuf> {
    let home = account_field(world, 5).or_else(|| world.env("HOME"));
    home.or_else(|| world.env("USERPROFILE")).map(PathBuf::from)
}

/// Returns a field of the line of the account of this process.
fn account_field(world: &dyn World, number: usize) -> Option<String> {
    let id = world.user()?.to_string();
    let accounts = world.read(Path::new(ACCOUNTS), ACCOUNTS_BYTES_MAX).ok()?;
    let accounts = String::from_utf8_lossy(&accounts).into_owned();
    let mut lines = accounts.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let fields = lines.find(|it| it.get(2).is_some_and(|it| *it == id))?;
    fields.get(number).filter(|it| !it.is_empty()).map(|it| (*it).to_owned())
}

impl Actor {
    /// The user of this process, and the program that started it.
    pub fn of(world: &dyn World) -> Self {
        let user = user_name(world);
        let number = || world.user().map(|it| format!("user {it}"));
        let user = user.or_else(number).unwrap_or_else(|| "an unknown user".to_owned());
        let terminal = world.ancestors().first().map(|it| file_name(&it.program).to_owned());
        Self { user: shown(&user), terminal: shown(&terminal.unwrap_or_default()) }
    }

    /// A human whom a signed reply names.
    pub fn of_reply(name: &str) -> Self {
        Self { user: shown(name), terminal: "webhook".to_owned() }
    }

    /// The name of the user alone.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The user and the program that started the command: `ada (zsh)`.
    pub fn text(&self) -> String {
        if self.terminal.is_empty() {
            return self.user.clone();
        }
        format!("{} ({})", self.user, self.terminal)
    }
}

/// Why an action that only a human may take was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HumanRefusal {
    /// An agent runs the command; what shows it.
    Agent { action: String, evidence: String },
    /// Processes that started the command are not known.
    Unseen { action: String, gap: AncestryGap },
    /// The machine has no random bytes for the word of the confirmation.
    NoWord { action: String },
    /// The user did not confirm the action.
    NotConfirmed { action: String },
    /// No terminal is there at which a human could confirm.
    NoTerminal { action: String },
}

impl Display for HumanRefusal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent { action, evidence } => write!(
                f,
                "refused to {action}: this is for humans, and an agent runs this command: {evidence}; \
                 run it in a terminal of your own"
            ),
            Self::Unseen { action, gap } => {
                write!(f, "refused to {action}: this is for humans, and {}", unseen(*gap))
            }
            Self::NoWord { action } => write!(
                f,
                "refused to {action}: this machine has no random bytes for the word that confirms it"
            ),
            Self::NotConfirmed { action } => {
                write!(f, "refused to {action}: it was not confirmed with the displayed word")
            }
            Self::NoTerminal { action } => write!(
                f,
                "refused to {action}: this is for humans, who confirm it at a terminal, and this \
                 process has none; run it in a terminal"
            ),
        }
    }
}

/// Explains which processes are not known, and how a human can run the command instead.
fn unseen(gap: AncestryGap) -> String {
    match gap {
        AncestryGap::TooMany => format!(
            "more than {ANCESTORS_MAX} processes started this command\n\
             help: run it in a new terminal of your own"
        ),
        AncestryGap::Unreadable(pid) => format!(
            "the process {pid}, which started this command, or its parent cannot be inspected\n\
             help: run it in a new terminal of your own, on a machine that lists all processes"
        ),
        AncestryGap::Namespace => "this command runs in a container or in another PID namespace, \
             which hides the processes that started it\n\
             help: run it on the host, in the same project directory; the container must mount this \
             directory and the `policyd` directory of your configuration at the same paths, the latter read-only"
            .to_owned(),
    }
}

/// Returns a random word of three syllables, which input that was prepared before cannot contain.
fn random_word(world: &dyn World) -> Option<String> {
    const SYLLABLES: usize = 3;
    const CONSONANTS: [char; 16] =
        ['b', 'd', 'f', 'g', 'h', 'k', 'l', 'm', 'n', 'p', 'r', 's', 't', 'v', 'w', 'z'];
    const VOWELS: [char; 4] = ['a', 'e', 'i', 'o'];
    let mut bytes = [0; SYLLABLES * 2];
    world.random(&mut bytes).ok()?;
    let letter =
        |letters: &[char], byte: u8| letters.get(usize::from(byte) % letters.len().max(1)).copied();
    let pairs = bytes.chunks_exact(2);
    let letters = pairs.flat_map(|pair| match pair {
        [first, second] => [letter(&CONSONANTS, *first), letter(&VOWELS, *second)],
        _ => [None, None],
    });
    letters.collect()
}

/// Requires that a human runs this command and confirms the action, which is a verb with its object:
/// `pause policyd for 30m`. Returns who it is.
///
/// # Errors
/// Why the action is refused.
pub fn confirm(world: &dyn World, action: &str) -> Result<Actor, HumanRefusal> {
    refuse_agent(world, action)?;
    let action = shown(action);
    if let Some(gap) = world.ancestry().gap {
        return Err(HumanRefusal::Unseen { action, gap });
    }
    let Some(word) = random_word(world) else { return Err(HumanRefusal::NoWord { action }) };
    let question = format!("policyd will {action}.\nType `{word}` to confirm: ");
    match world.confirm(&question, &word) {
        Confirmation::Yes => Ok(Actor::of(world)),
        Confirmation::No => Err(HumanRefusal::NotConfirmed { action }),
        Confirmation::NoTerminal => Err(HumanRefusal::NoTerminal { action }),
    }
}

/// Refuses an action that is the word of a human if an agent runs this command. A program of a human needs no terminal.
///
/// # Errors
/// What shows that an agent runs it.
pub fn refuse_agent(world: &dyn World, action: &str) -> Result<(), HumanRefusal> {
    let Some(evidence) = agent_evidence(world) else { return Ok(()) };
    Err(HumanRefusal::Agent { action: shown(action), evidence: shown(&evidence) })
}

/// What shows that an agent runs this command; nothing if nothing does.
fn agent_evidence(world: &dyn World) -> Option<String> {
    let own = world.variables().into_iter().find_map(|name| {
        let client = client_of_variable(&name)?;
        Some(format!("the variable {name} of {client} is set"))
    });
    own.or_else(|| world.ancestors().iter().find_map(evidence_of))
}

/// What shows that a process is an agent's.
fn evidence_of(ancestor: &Ancestor) -> Option<String> {
    let (pid, name) = (ancestor.pid, file_name(&ancestor.program));
    if let Some(client) = client_of_program(ancestor) {
        return Some(format!("the process {pid} `{name}` is {client}"));
    }
    ancestor.variables.iter().find_map(|variable| {
        let client = client_of_variable(variable)?;
        Some(format!("the variable {variable} of {client} is set for the process {pid} `{name}`"))
    })
}

fn client_of_variable(name: &str) -> Option<&'static str> {
    if name == RUN_VARIABLE {
        return Some(SUPERVISOR);
    }
    let client = HARNESSES.into_iter().find(|it| it.process.variables.contains(&name));
    client.map(|it| it.title)
}

fn client_of_program(ancestor: &Ancestor) -> Option<&'static str> {
    let is_own = |path: &&str| [FRONT, TOOLS].contains(&file_name(path));
    if paths(ancestor).iter().any(is_own) {
        let is_supervisor = ancestor.arguments.iter().skip(1).any(|it| it == "run");
        return is_supervisor.then_some(SUPERVISOR);
    }
    let client = HARNESSES.into_iter().find(|it| is_process_of(ancestor, it));
    client.map(|it| it.title)
}

/// Whether a process is one of a client.
pub(super) fn is_process_of(ancestor: &Ancestor, client: &Harness) -> bool {
    let signs = &client.process;
    paths(ancestor).iter().any(|path| {
        signs.programs.contains(&file_name(path))
            || signs.packages.iter().any(|it| is_in_package(path, it))
    })
}

/// The paths of what a process runs: its program, the name by which it was started, and the script.
fn paths(ancestor: &Ancestor) -> [&str; 3] {
    let started_as = ancestor.arguments.first().map_or("", String::as_str);
    [ancestor.program.as_str(), started_as, script(ancestor).unwrap_or_default()]
}

/// The script that an interpreter runs.
fn script(ancestor: &Ancestor) -> Option<&str> {
    ancestor.arguments.get(script_index(ancestor)?).map(String::as_str)
}

/// The arguments of the program of a process, or of the script that it runs.
pub(super) fn arguments(ancestor: &Ancestor) -> &[String] {
    let first = script_index(ancestor).unwrap_or_default().saturating_add(1);
    ancestor.arguments.get(first..).unwrap_or_default()
}

fn script_index(ancestor: &Ancestor) -> Option<usize> {
    let first = ancestor.arguments.first()?;
    let is_interpreter = |path: &str| INTERPRETERS.contains(&file_name(path));
    if !is_interpreter(&ancestor.program) && !is_interpreter(first) {
        return None;
    }
    let mut is_value = false;
    let mut words = ancestor.arguments.iter().map(String::as_str).enumerate().skip(1);
    let script = words.find(|(_, it)| {
        let is_skipped = is_value || it.starts_with('-') || INTERPRETER_WORDS.contains(it);
        is_value = !is_value && OPTIONS_WITH_VALUE.contains(it);
        !is_skipped
    });
    script.map(|it| it.0)
}

/// Whether the directory of a file contains the directories of a package, one directly in the other.
fn is_in_package(path: &str, package: &str) -> bool {
    format!("/{}", path.replace('\\', "/")).contains(&format!("/{package}/"))
}

/// The file name of a program; a login shell is started with a hyphen before it.
fn file_name(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let name = name.strip_prefix('-').unwrap_or(name);
    name.strip_suffix(".exe").unwrap_or(name)
}

/// A text as it is shown on a terminal: control characters are escaped.
pub fn shown(text: &str) -> String {
    let escaped = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_world::fake::FakeWorld;

    fn process(program: &str, arguments: &[&str], variables: &[&str]) -> Ancestor {
        let texts = |all: &[&str]| all.iter().map(|&it| it.to_owned()).collect();
        Ancestor {
            pid: 7,
            program: program.to_owned(),
            arguments: texts(arguments),
            variables: texts(variables),
        }
    }

    fn assert_refused(world: &FakeWorld, evidence: &str) {
        let said = confirm(world, "pause policyd").unwrap_err().to_string();
        assert!(said.contains(evidence) && said.contains("terminal of your own"), "{said}");
        assert!(world.questions().is_empty(), "nothing is asked of an agent");
    }

    #[test]
    fn every_client_has_variables_and_programs() {
        for it in HARNESSES.iter().filter(|it| it.name != "plain") {
            assert!(!it.process.variables.is_empty(), "{}", it.name);
            assert!(!it.process.programs.is_empty(), "{}", it.name);
        }
    }

    #[test]
    fn a_variable_of_a_client_refuses_here_and_in_an_ancestor() {
        let clients = HARNESSES
            .iter()
            .flat_map(|it| it.process.variables.iter().map(|variable| (*variable, it.title)));
        for (variable, title) in clients.chain([(RUN_VARIABLE, SUPERVISOR)]) {
            let world = FakeWorld::new();
            world.set_env(variable, "1");
            assert_refused(&world, &format!("the variable {variable} of {title} is set"));
            let world = FakeWorld::new();
            let shell = process("/bin/zsh", &["-zsh"], &[]);
            world.set_ancestors(vec![shell, process("/bin/sh", &["sh"], &["HOME", variable])]);
            assert_refused(&world, &format!("of {title} is set for the process 7 `sh`"));
        }
    }

    #[test]
    fn a_client_among_the_ancestors_refuses() {
        let (node, script) = ("/usr/bin/node", "/usr/lib/node_modules");
        let packages = HARNESSES.iter().flat_map(|it| {
            let path = |package: &&str| format!("{script}/{package}/dist/index.js");
            it.process.packages.iter().map(move |package| (path(package), it.title))
        });
        let names = HARNESSES.iter().flat_map(|it| {
            it.process.programs.iter().map(|name| (format!("/usr/local/bin/{name}"), it.title))
        });
        for (path, title) in names.chain(packages) {
            for ancestor in [
                process(&path, &[], &[]),
                process("/opt/versions/2.1.3", &[&path, "-p"], &[]),
                process(node, &["node", "--no-warnings", "-r", "x.js", &path], &[]),
                process("/usr/bin/bun", &["bun", "run", &path], &[]),
            ] {
                let world = FakeWorld::new();
                world.set_ancestors(vec![process("/bin/sh", &["sh"], &[]), ancestor]);
                assert_refused(&world, &format!("is {title}"));
            }
        }
        for program in ["/bin/policyd", "/bin/policyd-tools"] {
            let world = FakeWorld::new();
            world.set_ancestors(vec![process(program, &[program, "run", "--", "x"], &[])]);
            assert_refused(&world, "is policyd run");
        }
    }

    #[test]
    fn a_terminal_of_a_human_is_none_of_an_agent() {
        for ancestor in [
            process("/bin/zsh", &["-zsh"], &["TERM_PROGRAM", "CURSOR_TRACE_ID", "VSCODE_PID"]),
            process("/Applications/Cursor.app/Contents/MacOS/Cursor", &["Cursor"], &[]),
            process("/usr/share/cursor/cursor", &["cursor", "--type=ptyHost"], &[]),
            process("/home/claude/bin/fish", &["fish", "/home/claude/codex"], &["CODEX_HOME"]),
            process("/usr/bin/vim", &["vim", "claude"], &["CLAUDE_CONFIG_DIR"]),
            process("/usr/bin/node", &["node", "server.js", "claude"], &[]),
            process("/usr/bin/policyd", &["policyd", "breaker", "watch"], &[]),
        ] {
            let world = FakeWorld::new();
            world.set_env("USER", "ada");
            world.set_ancestors(vec![process("/usr/bin/zsh", &["zsh"], &[]), ancestor]);
            let actor = confirm(&world, "pause policyd").map(|it| it.text());
            assert_eq!(actor, Ok("ada (zsh)".to_owned()));
        }
    }

    #[test]
    fn ancestors_that_are_not_known_refuse_and_the_text_says_what_to_do() {
        for (gap, why, help) in [
            (AncestryGap::TooMany, "64 processes", "a new terminal"),
            (AncestryGap::Unreadable(41), "the process 41", "a new terminal"),
            (AncestryGap::Namespace, "in a container", "run it on the host"),
        ] {
            let world = FakeWorld::new();
            world.set_ancestors(vec![process("/usr/bin/zsh", &["zsh"], &[])]);
            world.set_ancestry_gap(Some(gap));
            let said = confirm(&world, "pause policyd").unwrap_err().to_string();
            assert!(
                said.contains(why) && said.contains("\nhelp: ") && said.contains(help),
                "{said}"
            );
            assert!(world.questions().is_empty(), "{said}");
        }
    }

    #[test]
    fn each_confirmation_has_another_word() {
        let world = FakeWorld::new();
        let words: std::collections::BTreeSet<String> =
            (0..32).filter_map(|_| random_word(&world)).collect();
        assert!(words.len() > 28, "{words:?}");
        assert!(words.iter().all(|it| it.len() == 6 && it != "yes"), "{words:?}");
        confirm(&world, "pause policyd").unwrap();
        let word = world.questions()[0].split('`').nth(1).unwrap().to_owned();
        assert_eq!(word.len(), 6, "{word}");
    }

    #[test]
    fn only_the_displayed_word_at_a_terminal_confirms() {
        let world = FakeWorld::new();
        let actor = confirm(&world, "pause policyd").map(|it| it.text());
        assert_eq!(actor, Ok("user 1000".to_owned()));
        assert!(world.questions()[0].contains("policyd will pause policyd"));
        world.set_confirmation(Confirmation::No);
        let said = confirm(&world, "pause policyd").unwrap_err().to_string();
        assert!(said.contains("not confirmed"), "{said}");
        world.set_confirmation(Confirmation::NoTerminal);
        let said = confirm(&world, "pause policyd").unwrap_err().to_string();
        assert!(said.contains("run it in a terminal"), "{said}");
    }

    #[test]
    fn an_action_is_shown_without_control_characters() {
        assert_eq!(shown("trust a\u{1b}[2Jb\n"), "trust a\\u{1b}[2Jb\\n");
    }
}
