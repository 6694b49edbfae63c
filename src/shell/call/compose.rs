//! The services of compose files: `docker compose up`, `docker-compose run app`. Each service is a line `docker run …`, so
//! that the rules about containers apply to it.
//!
//! Contains: which files a command reads, and the mounts, the rights, and the command of each service in them.
//! Does not contain: containers (`containers`), files that a compose file includes or extends.

use std::collections::BTreeMap;
use std::sync::Arc;

use policyd_yaml::{Node, NodeKind, Source, yaml};

use super::invocation::{Invocation, is_standard_input};
use super::recipes::{TaskLine, TaskLines, TaskSource};
use super::scanner::Scanner;
use super::shell_state::{ShellState, WorkingFolder};
use super::shell_text::ShellText;
use crate::shell::base_name;

/// Files that are read if the command names none.
const FILES: [&str; 4] =
    ["compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"];
/// Files that change the first one.
const OVERRIDES: [&str; 4] = [
    "compose.override.yaml",
    "compose.override.yml",
    "docker-compose.override.yml",
    "docker-compose.override.yaml",
];
/// Options that take a value, before and behind the subcommand.
const VALUED: [&str; 27] = [
    "-f",
    "--file",
    "-p",
    "--project-name",
    "--profile",
    "--env-file",
    "--project-directory",
    "--ansi",
    "--parallel",
    "--progress",
    "-e",
    "--env",
    "-v",
    "--volume",
    "-u",
    "--user",
    "-w",
    "--workdir",
    "--name",
    "--entrypoint",
    "--publish",
    "-l",
    "--label",
    "--scale",
    "-t",
    "--timeout",
    "--pull",
];

/// What a command about services asks for.
#[derive(Debug, Default)]
struct ComposeCommand {
    files: Vec<String>,
    /// The service of `run`, with the words behind it.
    run: Option<(String, Vec<String>)>,
    /// Options of `docker run` for that service.
    options: Vec<String>,
    starts: bool,
}

/// A service, as far as its container can reach this machine.
#[derive(Debug, Default)]
struct Service {
    /// The last file that describes it, and the line there.
    place: (usize, usize),
    options: Vec<String>,
    entrypoint: Option<String>,
    command: Option<String>,
}

/// Returns whether words are a command about services.
pub(super) fn is_composer(words: &[ShellText]) -> bool {
    let mut words = words.iter().map(|it| base_name(&it.text));
    words.next().is_some_and(|it| it.ends_with("-compose"))
        || words.next().is_some_and(|it| it == "compose")
}

impl Scanner<'_> {
    /// Analyzes the services that a program starts. Returns whether it is one for compose files.
    pub(super) fn run_composed(&mut self, program: &Invocation, scope: &ShellState) -> bool {
        let words: Vec<String> = program.args.iter().map(|it| it.text.clone()).collect();
        let words = match words.split_first() {
            _ if program.name.ends_with("-compose") => words.as_slice(),
            Some((first, rest)) if first == "compose" => rest,
            Some(_) | None => return false,
        };
        let command = ComposeCommand::of(words);
        let Some(folder) = program.folder.clone().filter(|_| command.starts) else { return true };
        let (first, more) = match command.files.split_first() {
            Some((first, more)) => (vec![first.clone()], more.to_vec()),
            None => (FILES.map(str::to_owned).to_vec(), OVERRIDES.map(str::to_owned).to_vec()),
        };
        let first = match (first.iter().any(|it| is_standard_input(it)), program.reads.as_slice()) {
            (true, []) => {
                self.run_composed_input(program, &folder, scope, |it| command.lines(it, &more));
                return true;
            }
            (true, files) => files.iter().map(|it| it.text.clone()).collect(),
            (false, _) => first,
        };
        let climbs = command.files.is_empty();
        self.run_task(&folder, &first, climbs, scope, |source| command.lines(source, &more));
        true
    }

    /// Analyzes the services in the standard input of a program.
    fn run_composed_input(
        &mut self,
        program: &Invocation,
        folder: &str,
        scope: &ShellState,
        lines: impl FnOnce(&mut TaskSource<'_>) -> TaskLines,
    ) {
        let Some(text) = program.input.text.clone() else {
            return self.mark_over_limit("the services on a standard input are not known");
        };
        let inside = WorkingFolder::certain(Some(folder.to_owned()));
        let state = ShellState { folder: inside, ..scope.of_a_process() };
        self.run_task_text(folder, None, text, &state, lines);
    }
}

impl ComposeCommand {
    /// Reads the words behind `docker compose`.
    fn of(words: &[String]) -> Self {
        let mut command = Self::default();
        let mut words = words.iter();
        let mut verb = None;
        while let Some(word) = words.next() {
            if word.starts_with('-') {
                let (option, glued) = match word.split_once('=') {
                    Some((option, value)) => (option, Some(value.to_owned())),
                    None => (word.as_str(), None),
                };
                let is_valued = VALUED.contains(&option) && glued.is_none();
                let next = if is_valued { words.next().cloned() } else { None };
                let value = glued.or(next);
                match (option, value) {
                    ("-f" | "--file", Some(value)) if verb.is_none() => command.files.push(value),
                    ("-v" | "--volume", Some(value)) => {
                        command.options.push(format!("-v {}", quoted(&value)));
                    }
                    ("--entrypoint", Some(value)) => {
                        command.options.push(format!("--entrypoint {}", quoted(&value)));
                    }
                    _ => {}
                }
            } else if verb.is_none() {
                verb = Some(word.as_str());
                command.starts = matches!(word.as_str(), "up" | "run" | "create" | "start");
            } else if verb == Some("run") {
                command.run = Some((word.clone(), words.cloned().collect()));
                break;
            }
        }
        command
    }

    /// Returns a line for each service of some files.
    fn lines(&self, source: &mut TaskSource<'_>, more: &[String]) -> TaskLines {
        let mut texts = vec![(0, source.text.to_owned())];
        texts.extend(more.iter().flat_map(|it| (source.include)(it)));
        let mut services: BTreeMap<String, Service> = BTreeMap::new();
        let mut unread = None;
        for (file, text) in texts {
            let source = Arc::new(Source { name: String::new(), text });
            match yaml::parse(&source).0 {
                Some(node) => add_services(&node, file, &mut services, &mut unread),
                None => unread = Some("its form is not that of a compose file"),
            }
        }
        let lines = services.into_iter().map(|(name, service)| {
            let run = self.run.as_ref().filter(|it| it.0 == name);
            let mut options = service.options;
            options.extend(run.iter().flat_map(|_| &self.options).cloned());
            let given = run.filter(|it| !it.1.is_empty());
            let given = given.map(|it| it.1.iter().map(|it| quoted(it)).collect::<Vec<_>>());
            let command = given.map(|it| it.join(" ")).or(service.command).unwrap_or_default();
            let entry = service.entrypoint.unwrap_or_default();
            let options = options.join(" ");
            let (file, at) = service.place;
            let text = format!("docker run {options} service-image {entry} {command}");
            TaskLine { file, at, text }
        });
        TaskLines { lines: lines.collect(), unread }
    }
}

/// Adds what a file says about services. `unread` is set if it says a part in a form that is not read.
fn add_services(
    file: &Node,
    index: usize,
    services: &mut BTreeMap<String, Service>,
    unread: &mut Option<&'static str>,
) {
    if file.get("include").is_some() {
        *unread = Some("it includes other files");
    }
    let devices = |name: &str| {
        let volume = file.get("volumes")?.get(name)?;
        Some(volume.get("driver_opts")?.get("device")?.text()?.to_owned())
    };
    let entries = file.get("services").and_then(Node::entries).unwrap_or_default();
    for (name, node) in entries {
        let Some(name) = name.text() else { continue };
        let service = services.entry(name.to_owned()).or_default();
        service.place = (index, node.span.line_column().0.saturating_sub(1).max(1));
        let keys = node.entries().unwrap_or_default();
        let is_open = |(key, value): &(Node, Node)| {
            key.says("extends")
                || matches!(key.kind, NodeKind::Invalid)
                || key.says("<<")
                || matches!(value.kind, NodeKind::Invalid)
        };
        if node.entries().is_none() || keys.iter().any(is_open) {
            *unread = Some("a service takes a part of its keys from elsewhere");
        }
        for volume in node.get("volumes").map(Node::one_or_items).unwrap_or_default() {
            let mount = match (volume.get("source"), volume.get("target")) {
                (Some(source), Some(target)) => source.text().zip(target.text()),
                _ => volume.text().and_then(|it| it.split_once(':')),
            };
            let Some((source, target)) = mount else { continue };
            let source = devices(source).unwrap_or_else(|| source.to_owned());
            service.options.push(format!("-v {}", quoted(&format!("{source}:{target}"))));
        }
        for (key, value, option) in [
            ("privileged", "true", "--privileged"),
            ("pid", "host", "--pid=host"),
            ("ipc", "host", "--ipc=host"),
            ("network_mode", "host", "--network=host"),
        ] {
            let is_set = node.get(key).is_some_and(|it| it.text() == Some(value));
            service.options.extend(is_set.then(|| option.to_owned()));
        }
        for added in node.get("cap_add").map(Node::one_or_items).unwrap_or_default() {
            service.options.extend(added.text().map(|it| format!("--cap-add={}", quoted(it))));
        }
        let folder = node.get("working_dir").and_then(Node::text);
        service.options.extend(folder.map(|it| format!("-w {}", quoted(it))));
        service.entrypoint = node.get("entrypoint").map(words).or(service.entrypoint.take());
        service.command = node.get("command").map(words).or(service.command.take());
    }
}

/// Returns the words of a command, as a shell reads them.
fn words(node: &Node) -> String {
    match node.items() {
        Some(items) => {
            items.iter().filter_map(Node::text).map(quoted).collect::<Vec<_>>().join(" ")
        }
        None => node.text().unwrap_or_default().replace("$$", "\\$").replace('\n', " "),
    }
}

/// Returns a value in quotes in which a shell expands variables, as compose does.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('`', "\\`");
    format!("\"{}\"", text.replace("$(", "\\$(").replace("$$", "\\$"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lines of the services that some words start.
    fn shown(words: &str, text: &str) -> Vec<String> {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let mut source = TaskSource { text, include: &mut |_| Vec::new() };
        let found = ComposeCommand::of(&words).lines(&mut source, &[]);
        assert_eq!(found.unread, None);
        found.lines.into_iter().map(|it| format!("{}: {}", it.at, it.text)).collect()
    }

    #[test]
    fn a_service_is_a_container() {
        let text = "services:\n  a:\n    image: x\n    privileged: true\n    volumes: ['~:/h', {type: bind, source: /, target: /r}, d:/d]\n    command: rm -rf /h\n\
                    \x20 b:\n    entrypoint: [sh, -c, \"rm $$x\"]\nvolumes: {d: {driver_opts: {device: /etc}}}\n";
        let b = "7: docker run  service-image \"sh\" \"-c\" \"rm \\$x\" ";
        let options = "-v \"~:/h\" -v \"/:/r\" -v \"/etc:/d\" --privileged";
        let a = format!("2: docker run {options} service-image  rm -rf /h");
        assert_eq!(shown("up -d", text), [a, b.to_owned()]);
        let a = format!("2: docker run {options} -v \"./x:/x\" service-image  \"ls\" \"/h\"");
        assert_eq!(shown("-f c.yml run --rm -v ./x:/x a ls /h", text), [a, b.to_owned()]);
    }

    #[test]
    fn what_is_elsewhere_is_not_read() {
        for text in [
            "services: {a: {extends: {file: b.yml, service: b}}}",
            "include: [b.yml]\nservices: {}",
            "x: &x {privileged: true}\nservices: {a: *x}",
            "x: &x {privileged: true}\nservices:\n  a:\n    <<: *x\n",
            "services: [",
        ] {
            let mut source = TaskSource { text, include: &mut |_| Vec::new() };
            let found = ComposeCommand::of(&["up".to_owned()]).lines(&mut source, &[]);
            assert!(found.unread.is_some(), "{text}");
        }
    }
}
