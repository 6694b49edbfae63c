//! Every command in one table: its group in the help, who may run it, and its line in the short help. What it does and its
//! arguments are at its variant in `arguments.rs`, from which `clap` makes the command line.

/// Who may run a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandRunner {
    /// The user alone: the guard `human_commands` refuses it to an agent.
    Human,
    /// An agent, too.
    Anyone,
}

/// A command that can be run: one without subcommands, or one that does not need them.
#[derive(Debug)]
pub struct CommandRow {
    /// The words behind `policyd`.
    pub words: &'static str,
    /// Who may run it.
    pub runner: CommandRunner,
    /// What the short help says, if it describes the group. A command without one shares the line of the command before it.
    pub(super) summary: Option<&'static str>,
}

impl CommandRow {
    /// Returns the first word, which names the command in the help.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.words.split_once(' ').map_or(self.words, |(name, _)| name)
    }

    const fn summary(self, text: &'static str) -> Self {
        Self { summary: Some(text), ..self }
    }
}

/// A group of commands. The short help describes a group whose first row has a summary, and only names the others.
#[derive(Debug)]
pub struct CommandGroup {
    /// The heading.
    pub title: &'static str,
    /// Its commands, in the order of the help.
    pub rows: &'static [CommandRow],
}

impl CommandGroup {
    /// Returns the names of the commands, without those of their subcommands.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.rows.iter().map(CommandRow::name).collect();
        names.dedup();
        names
    }
}

const fn human(words: &'static str) -> CommandRow {
    CommandRow { words, runner: CommandRunner::Human, summary: None }
}

const fn anyone(words: &'static str) -> CommandRow {
    CommandRow { words, runner: CommandRunner::Anyone, summary: None }
}

/// Every command in one group, and the subcommands of a command side by side.
pub const COMMAND_GROUPS: [CommandGroup; 5] = [
    CommandGroup {
        title: "Start",
        rows: &[
            human("install").summary("Add hooks to the settings of clients, and remove them"),
            human("uninstall"),
            anyone("doctor").summary("Check the installation on simulated machines"),
            anyone("replay").summary("Show what would have been blocked in your recorded sessions"),
            anyone("check").summary("Show what policyd decides about a command line"),
        ],
    },
    CommandGroup {
        title: "Everyday",
        rows: &[
            anyone("status").summary("Show runs, stops, blocks, questions, context, and cost"),
            anyone("inbox").summary("List what waits for you in all projects, and answer it"),
            anyone("inbox list"),
            human("inbox answer"),
            anyone("log").summary("List logged decisions, newest last"),
            anyone("explain")
                .summary("Explain a decision: which rules fired and with which values"),
            anyone("rules").summary("List, search, or explain rules; disable or soften one"),
            human("rule off"),
            human("rule warn"),
            human("rule observe"),
            human("rule on"),
            anyone("rule list"),
            human("allow").summary("Let a rule or a blocked call pass once, or for a while"),
            human("pause").summary("Pause policyd for a limited time"),
            anyone("resume"),
            human("disable").summary("Disable policyd in this project"),
            human("enable"),
        ],
    },
    CommandGroup {
        title: "Write",
        rows: &[
            human("init"),
            anyone("lint"),
            anyone("test"),
            anyone("try"),
            anyone("facts"),
            human("learn"),
            anyone("suggest"),
            human("suggest accept"),
            human("trust"),
            anyone("pack fetch"),
            human("pack update"),
            anyone("pack verify"),
            anyone("pack manifest"),
            human("pack push"),
            anyone("schema"),
            anyone("lsp"),
        ],
    },
    CommandGroup {
        title: "Operate",
        rows: &[
            human("dashboard"),
            anyone("top"),
            anyone("report"),
            anyone("run"),
            anyone("breaker list"),
            anyone("breaker status"),
            anyone("breaker show"),
            anyone("breaker explain"),
            anyone("breaker allow"),
            anyone("breaker record"),
            human("breaker trip"),
            human("breaker reset"),
            anyone("breaker watch"),
            anyone("breaker route"),
            anyone("dlq add"),
            anyone("dlq list"),
            anyone("dlq show"),
            anyone("dlq review"),
            anyone("dlq retry"),
            human("dlq abandon"),
            human("dlq resolve"),
            anyone("dlq redrive"),
            anyone("dlq claim"),
            anyone("dlq unclaim"),
            anyone("dlq finish"),
            anyone("dlq stats"),
            anyone("escalation open"),
            anyone("escalation list"),
            anyone("escalation show"),
            human("escalation resolve"),
            anyone("escalation ack"),
            human("escalation notify"),
            human("escalation test"),
            anyone("signal emit"),
            anyone("signal list"),
            anyone("signal types"),
            anyone("signal show"),
            anyone("signal consume"),
            anyone("signal release"),
            human("signal approve"),
            human("signal reject"),
            anyone("signal history"),
            anyone("signal watch"),
            anyone("signal check"),
            anyone("signal process"),
            anyone("context status"),
            anyone("context summary"),
            anyone("context line"),
            anyone("store init"),
            anyone("store migrate"),
            anyone("store status"),
            anyone("store verify"),
            anyone("store copy"),
            anyone("store runs"),
            anyone("store sync"),
            anyone("store move"),
            anyone("store rejected"),
            anyone("store watch"),
            anyone("metrics"),
            human("export"),
            human("export otlp"),
        ],
    },
    CommandGroup {
        title: "Advanced",
        rows: &[
            anyone("eval"),
            human("enforce"),
            anyone("debug state show"),
            anyone("debug state verify"),
            human("debug state reset"),
            anyone("debug state list"),
            anyone("debug diag failures"),
            anyone("debug diag retries"),
            anyone("debug diag corruption"),
            anyone("debug diag tail"),
            anyone("debug failure classify"),
            anyone("debug failure wait"),
            anyone("debug failure recover"),
            anyone("debug decide"),
            anyone("debug rationalization check"),
            anyone("help"),
            anyone("completions"),
            anyone("man"),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line;

    /// Collects the words of every command that can be run.
    fn runnable(command: &clap::Command, words: &str, found: &mut Vec<String>) {
        if !command.is_subcommand_required_set() {
            found.push(words.to_owned());
        }
        for sub in command.get_subcommands() {
            runnable(sub, format!("{words} {}", sub.get_name()).trim(), found);
        }
    }

    #[test]
    fn every_command_has_one_row() {
        let mut known = Vec::new();
        runnable(&command_line(), "", &mut known);
        let rows = COMMAND_GROUPS.iter().flat_map(|it| it.rows).map(|it| it.words);
        let rows: Vec<&str> = rows.collect();
        let absent: Vec<_> = known.iter().filter(|it| !rows.contains(&it.as_str())).collect();
        assert!(absent.is_empty(), "src/cli/command_table.rs lacks {absent:?}");
        let unknown: Vec<_> =
            rows.iter().filter(|it| !known.iter().any(|own| own == *it)).collect();
        assert!(unknown.is_empty(), "src/cli/command_table.rs has {unknown:?}");
        assert_eq!(rows.len(), known.len(), "src/cli/command_table.rs has a command twice");
    }

    #[test]
    fn every_command_is_in_one_group() {
        let mut names: Vec<&str> = COMMAND_GROUPS.iter().flat_map(CommandGroup::names).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "the subcommands of a command are side by side");
    }
}
