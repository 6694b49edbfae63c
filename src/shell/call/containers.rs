//! Commands in containers: `docker run -v "$HOME":/h alpine rm -rf /h`. A path of the container that is mounted is a path
//! of this machine.
//!
//! Contains: the mounts and the command of a container that a program starts.
//! Does not contain: containers that run already (`docker exec` is a wrapper), compose files.

use std::rc::Rc;

use super::container_mounts::ContainerMounts;
use super::invocation::{Invocation, StandardInput};
use super::scanner::Scanner;
use super::shell_state::{ShellState, WorkingFolder};
use super::shell_text::ShellText;
use super::simple_command::SimpleCommand;

/// Programs that start containers with the options of Docker.
const PROGRAMS: [&str; 5] = ["docker", "podman", "nerdctl", "finch", "container"];
/// Options that take no value. The others take one.
const FLAGS: [&str; 14] = [
    "--detach",
    "--disable-content-trust",
    "--init",
    "--interactive",
    "--no-healthcheck",
    "--oom-kill-disable",
    "--privileged",
    "--publish-all",
    "--quiet",
    "--read-only",
    "--replace",
    "--rm",
    "--sig-proxy",
    "--tty",
];
/// Letters of such options.
const FLAG_LETTERS: &str = "ditPq";

impl Scanner<'_> {
    /// Runs the command of a container that a program starts. Returns whether it starts one.
    pub(super) fn run_in_container(
        &mut self,
        program: &Invocation,
        scope: &ShellState,
        input: &StandardInput,
    ) -> bool {
        if !PROGRAMS.contains(&program.name.as_str()) {
            return false;
        }
        let starts = |it: &ShellText| matches!(it.text.as_str(), "run" | "create");
        let Some(at) = program.args.iter().take(3).position(starts) else { return false };
        let mut words = program.args.iter().skip(at + 1);
        let (mut mounts, mut folder) = (ContainerMounts::default(), "/".to_owned());
        let mut command: Vec<ShellText> = Vec::new();
        while let Some(word) = words.next() {
            let text = word.text.as_str();
            if !text.starts_with('-') {
                break; // The image.
            }
            let (option, value) = match text.split_once('=').filter(|_| text.starts_with("--")) {
                Some((option, _)) => (option, Some(word.tail(option.len() + 1))),
                None if is_flag(text) => continue,
                None if text.len() > 2 && !text.starts_with("--") => {
                    (text.get(..2).unwrap_or_default(), Some(word.tail(2)))
                }
                None => (text, words.next().cloned()),
            };
            let Some(value) = value else { break };
            match option {
                "-v" | "--volume" => mounts.binds.extend(self.volume(&value, scope)),
                "--mount" => mounts.binds.extend(self.mount(&value, scope)),
                "-w" | "--workdir" => value.text.clone_into(&mut folder),
                "--entrypoint" => command.push(value),
                _ => {}
            }
        }
        command.extend(words.cloned());
        self.record_mounts(mounts.binds.iter().filter_map(|it| it.1.clone()).collect());
        if command.is_empty() {
            return true;
        }
        let folder = WorkingFolder::certain(Some(folder));
        let container = Some(Rc::new(mounts));
        let mut inner = ShellState { folder, container, ..scope.of_a_process() };
        let wrappers = vec![program.name.clone()];
        let simple = SimpleCommand { words: command, wrappers, ..SimpleCommand::default() };
        self.run_simple(simple, &mut inner, input);
        true
    }

    fn record_mounts(&mut self, paths: Vec<String>) {
        for path in paths {
            let place = self.context.around.known_place(&path, None);
            if !self.call.mounts.contains(&place) {
                self.call.mounts.push(place);
            }
        }
    }

    /// Returns the mount of `source:target`. A source without a slash is a volume, not a directory.
    fn volume(&self, value: &ShellText, scope: &ShellState) -> Option<(String, Option<String>)> {
        let (source, target) = value.text.split_once(':')?;
        let target = target.split(':').next()?.to_owned();
        if !value.is_known() {
            return Some((target, None));
        }
        let is_folder = source.contains('/') || source.starts_with(['.', '~']);
        let source = ShellText::known(source).with_home(&self.context.around.home);
        is_folder.then(|| (target, self.resolve_path(&source, scope).absolute))
    }

    /// Returns the mount of `type=bind,source=…,target=…`.
    fn mount(&self, value: &ShellText, scope: &ShellState) -> Option<(String, Option<String>)> {
        let field = |names: [&str; 3]| {
            let mut fields = value.text.split(',').filter_map(|it| it.split_once('='));
            fields.find(|it| names.contains(&it.0)).map(|it| it.1)
        };
        let target = field(["target", "destination", "dst"])?.to_owned();
        if field(["type", "type", "type"]) != Some("bind") {
            return None;
        }
        if !value.is_known() {
            return Some((target, None));
        }
        let source = ShellText::known(field(["source", "src", "from"])?);
        let source = source.with_home(&self.context.around.home);
        Some((target, self.resolve_path(&source, scope).absolute))
    }
}

/// Returns whether an option takes no value.
fn is_flag(option: &str) -> bool {
    let letters = option.strip_prefix('-').unwrap_or_default();
    FLAGS.contains(&option) || letters.chars().all(|it| FLAG_LETTERS.contains(it))
}
