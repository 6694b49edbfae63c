//! What the files of a pack may hold: one table per file kind.
//! The loader, the JSON Schemas and the documentation read these tables.

pub mod guards;

use serde_json::Value;

use crate::source::shape::{Field, Kind, field, required};

pub(super) const TEXTS: Kind = Kind::List(&Kind::Text);
pub(super) const REGEX_LIST: Kind = Kind::List(&Kind::Regex);
const GLOBS: Kind = Kind::List(&Kind::Text);
const DELAYS: Kind = Kind::List(&Kind::Duration);

const CHOICE: &[Field] = &[
    field("when", Kind::Expression, "Holds where this text is used; always, where absent."),
    required("text", Kind::Template, "A template with `${expression}` holes."),
];
/// One template, or a list of texts of which the first fitting one is used.
pub(super) const CHOICES: Kind = Kind::Either(&[Kind::Template, Kind::List(&Kind::Record(CHOICE))]);
const EVIDENCE_ITEM: Kind = Kind::Either(&[Kind::Template, Kind::Record(CHOICE)]);
pub(super) const EVIDENCE: Kind = Kind::List(&EVIDENCE_ITEM);

/// The id of an entry.
pub(super) const ID: Field =
    required("id", Kind::Text, "Its name in messages, logs and overrides.");
/// The condition under which an entry applies.
pub(super) const WHEN: Field = field("when", Kind::Expression, "Holds where it applies.").needed();
/// A comment for the readers of a pack.
pub(super) const DESCRIPTION: Field = field("description", Kind::Text, "For people.");
/// Whether an entry is used.
pub(super) const ENABLED: Field = enabled("Whether it is used at all; `true` by default.");

/// Returns the key `enabled` with its description.
pub(super) const fn enabled(doc: &'static str) -> Field {
    field("enabled", Kind::Bool, doc).with_default(|| Some(Value::Bool(true)))
}

pub(super) const OVERRIDE: Field =
    field("override", Kind::Bool, "Changes the inherited entry of this id, key by key.");

const REPLACES: Field =
    field("override", Kind::Bool, "Replaces the inherited entry of this name; it is joined else.");

/// An entry of `preferences.yaml`.
pub const PREFERENCE: &[Field] = &[
    required("id", Kind::Text, "Name of the fact: `prefs.<id>`."),
    field("value", Kind::Bool, "A fixed answer; nothing is looked for."),
    field("files", GLOBS, "Files relative to the project."),
    field("regexes", REGEX_LIST, "Tried on each paragraph, case not counted."),
    field(
        "cache",
        Kind::Choice(&["none", "session"]),
        "`session`: looked for once in a session; by default it is at each stop.",
    ),
    field("description", Kind::Text, "For people."),
    OVERRIDE,
];

/// An entry of `probes.yaml`.
pub const PROBE: &[Field] = &[
    required("id", Kind::Text, "Name of the fact: `probes.<id>`."),
    field("enabled", Kind::Bool, "Whether it is run at all; `true` by default."),
    field("command", TEXTS, "Program and arguments; never a shell line."),
    field("stdin", Kind::Template, "What is written to its standard input."),
    field("timeout", Kind::Duration, "Time it may take."),
    field(
        "parse",
        Kind::Choice(&["json", "text", "reply"]),
        "How its output is read: `reply` is the JSON object in what a model says, else its text.",
    ),
    field("cache", Kind::Duration, "For how long the same question is not asked again."),
    field("breaker", Kind::Text, "Name of its circuit breaker; `probe/<id>` by default."),
    field("missing", Kind::Text, "Said when the program is not installed."),
    field("cures", Kind::Map(&Kind::Text), "Said when its error output contains the key."),
    field("description", Kind::Text, "For people."),
    OVERRIDE,
];

const MESSAGE_CHOICE: &[Field] = &[
    field("voice", Kind::Text, "Voice it belongs to; every voice, where absent."),
    field("when", Kind::Expression, "Holds where this text is used; always, where absent."),
    required("text", Kind::Template, "A template with `${expression}` holes."),
];

const WRAPPER: &[Field] = &[
    required("command", Kind::Text, "The words it starts with: `uv run`."),
    field("value_options", TEXTS, "Its options that take a value from the next argument."),
    field("skip", Kind::Int { min: 0, max: 9 }, "Arguments of its own before the program."),
    field("shell_option", Kind::Text, "The option whose value is shell text: `-c`."),
    field("check_option", Kind::Text, "The option with which it runs nothing: `-n` of `bash`."),
    field("folder_options", TEXTS, "Its options whose value is the folder of the program."),
    field("kept", Kind::Bool, "Whether guards look at it as a program, too: `ssh`."),
];

/// How a command pattern is written.
const PATTERNS: &str = "Command patterns: the program's name without its folder, then the words \
     that follow it, options left out (`cargo test`, `npm run test*`, `check.sh`); a word with `-` \
     must be among the options (`cargo fmt --check`). `*` stands for any letters.";

const COMMAND_KIND: &[Field] = &[
    field("programs", TEXTS, PATTERNS),
    field("except", TEXTS, "Command patterns that are not of this kind."),
    field("failed", REGEX_LIST, "Output lines that mean failure, whatever the exit status."),
    field(
        "failed_if_hidden",
        REGEX_LIST,
        "Output lines that mean failure where the status is hidden.",
    ),
    field("empty", REGEX_LIST, "Output lines that say that nothing ran, which is neither."),
    field("passed", REGEX_LIST, "Output lines that mean success, where the status is hidden."),
    field(
        "passed_unless_empty",
        REGEX_LIST,
        "Output lines that mean success unless a line of `empty` is there: `OK` without a count.",
    ),
    REPLACES,
];

const FILE_KIND: &[Field] = &[
    field("globs", GLOBS, "Path globs."),
    field("except", GLOBS, "Path globs that are not of this kind."),
    REPLACES,
];

const CONTENT: &[Field] = &[
    field("regexes", REGEX_LIST, "Tried on each line of edited text."),
    field("files", TEXTS, "File kinds it is looked for in; all files, where absent."),
    field("except_files", TEXTS, "File kinds it is not looked for in."),
    field("unless", REGEX_LIST, "Found anywhere in the same text, they excuse it."),
    REPLACES,
];

const TEXT_PATTERN: &[Field] = &[
    field("phrases", TEXTS, "Whole words, any case."),
    field("regexes", REGEX_LIST, "Tried on each sentence, case not counted."),
    field("unless", REGEX_LIST, "Found in the same sentence, they excuse it."),
    REPLACES,
];

/// `vocabulary.yaml`: which commands, files and texts have a name.
pub const VOCABULARY: &[Field] = &[
    field("shell_tools", TEXTS, "Tools that run a shell command."),
    field("edit_tools", TEXTS, "Tools that edit files."),
    field("wrappers", Kind::List(&Kind::Record(WRAPPER)), "Programs that run another program."),
    field(
        "value_options",
        Kind::Map(&TEXTS),
        "Options that take a value, per program, or per program and subcommand (`git commit`): `-m` \
         takes the next word or what is glued to it, `-S*` only what is glued to it.",
    ),
    field("read_tools", TEXTS, "Tools that read files."),
    field(
        "file_effects",
        Kind::List(&Kind::Record(guards::EFFECT)),
        "What programs do with the files they are given.",
    ),
    field(
        "interpreters",
        Kind::List(&Kind::Record(guards::INTERPRETER)),
        "Programs that run code which is not shell text.",
    ),
    field(
        "code_calls",
        Kind::List(&Kind::Record(guards::CODE_CALL)),
        "Calls in code that start programs or touch files.",
    ),
    field(
        "shell_values",
        Kind::List(&Kind::Record(guards::SHELL_VALUE)),
        "Options and operands of programs that are shell text.",
    ),
    field("commands", Kind::Map(&Kind::Record(COMMAND_KIND)), "Kinds of commands."),
    field("files", Kind::Map(&Kind::Record(FILE_KIND)), "Kinds of files."),
    field("contents", Kind::Map(&Kind::Record(CONTENT)), "Patterns in edited text."),
    field("texts", Kind::Map(&Kind::Record(TEXT_PATTERN)), "Patterns in prose."),
    field("main_branches", TEXTS, "Branches that everybody builds on."),
    field(
        "forges",
        Kind::Map(&TEXTS),
        "What the host of a remote on each forge contains, in small letters.",
    ),
    field("stop_words", TEXTS, "Words that are never significant in a question."),
];

const DURABILITY: &[Field] = &[
    field("fsync", Kind::Bool, "Force state to the disk."),
    field("verify", Kind::Bool, "Read state back and compare."),
    field("attempts", Kind::Int { min: 1, max: 20 }, "Attempts before the fallback."),
    field("retry_delays", DELAYS, "Waits between attempts; the last one doubles on."),
    field(
        "lock_wait",
        Kind::Duration,
        "Longest wait for the lock of a session; without it nothing is blocked.",
    ),
];

const PATHS: &[Field] = &[
    field("layout", Kind::Choice(&["policyd", "amplihack"]), "Layout of the stored files."),
    field("root", Kind::Text, "Root folder, relative to the project."),
    field("diagnostics", Kind::Text, "Folder of the diagnostic logs."),
];

const COUNT: Kind = Kind::Int { min: 0, max: 1000 };

const GUARD: &[Field] = &[
    field("max_consecutive_blocks", COUNT, "Blocks of one episode before the agent is let go."),
    field("warn_from", COUNT, "Blocks from which the agent is warned."),
    field("same_failure_max", Kind::Int { min: 1, max: 1000 }, "Stops with the same finding."),
    field("idle_blocks_max", Kind::Int { min: 1, max: 1000 }, "Blocks in a row without a tool."),
];

const SESSIONS: &[Field] = &[
    field("max_age", Kind::Duration, "Older sessions are removed."),
    field("max_count", Kind::Int { min: 1, max: 100_000 }, "Sessions kept."),
];

/// `policyd.yaml`: the manifest.
pub const MANIFEST: &[Field] = &[
    field("version", Kind::Int { min: 1, max: 1 }, "Version of the pack format; 1."),
    field("name", Kind::Text, "Name of the pack."),
    field(
        "extends",
        Kind::List(&Kind::Choice(&["builtin"])),
        "Packs it builds on: `[builtin]` by default, `[]` for none.",
    ),
    field("enabled", Kind::Bool, "Whether the pack judges at all."),
    field(
        "on_error",
        crate::source::field_value::words::<super::OnError>(),
        "The answer when the pack cannot be evaluated.",
    ),
    field("when_forgotten", Kind::Choice(&["allow", "block"]), "A block that was not saved."),
    field("deadline", Kind::Duration, "Time all probes of one event may take together."),
    field("voice", Kind::Text, "Voice of the messages."),
    field("session_type_env", TEXTS, "Variables that force the session type."),
    field("guard_sets", Kind::Record(guards::SETS), "Built-in guards, switched off by set."),
    field("guard", Kind::Record(GUARD), "Numbers of the loop guard."),
    field("durability", Kind::Record(DURABILITY), "How state is written."),
    field("paths", Kind::Record(PATHS), "Where state is kept."),
    field("sessions", Kind::Record(SESSIONS), "How long sessions are kept."),
];

const GUARDS: Kind = super::guards::GUARD.list;

/// One kind of file of a pack.
#[derive(Debug)]
pub struct FileShape {
    /// File name in the folder of the pack.
    pub file: &'static str,
    /// What it holds.
    pub kind: Kind,
}

/// Every kind of file a pack may hold.
pub const FILES: &[FileShape] = &[
    FileShape { file: "policyd.yaml", kind: Kind::Record(MANIFEST) },
    FileShape { file: "vocabulary.yaml", kind: Kind::Record(VOCABULARY) },
    FileShape { file: "preferences.yaml", kind: Kind::List(&Kind::Record(PREFERENCE)) },
    FileShape { file: "probes.yaml", kind: Kind::List(&Kind::Record(PROBE)) },
    FileShape { file: "breakers.yaml", kind: Kind::Map(&super::breakers::BREAKER.map) },
    FileShape { file: "dead_letter.yaml", kind: super::resilience::DEAD_LETTER.map },
    FileShape { file: "escalation.yaml", kind: super::resilience::ESCALATION.map },
    FileShape { file: "failures.yaml", kind: super::failures::FAILURES.map },
    FileShape { file: "routes.yaml", kind: super::breakers::ROUTE.list },
    FileShape { file: "reactions.yaml", kind: super::resilience::REACTION.list },
    FileShape { file: "context.yaml", kind: super::context::CONTEXT.map },
    FileShape { file: "signals.yaml", kind: super::signals::SIGNALS.map },
    FileShape { file: "guards.yaml", kind: GUARDS },
    FileShape { file: "destructive-commands.yaml", kind: GUARDS },
    FileShape { file: "protected-paths.yaml", kind: GUARDS },
    FileShape { file: "secrets.yaml", kind: GUARDS },
    FileShape { file: "git-discipline.yaml", kind: GUARDS },
    FileShape { file: "network-exfiltration.yaml", kind: GUARDS },
    FileShape { file: "run.yaml", kind: super::run::RUN.map },
    FileShape { file: "tables.yaml", kind: super::tables::TABLE.list },
    FileShape {
        file: "rationalizations.yaml",
        kind: super::rationalizations::RATIONALIZATIONS.map,
    },
    FileShape { file: "session_types.yaml", kind: super::considerations::SESSION_TYPE.list },
    FileShape { file: "checkers.yaml", kind: Kind::Map(&super::considerations::CHECKER.map) },
    FileShape { file: "considerations.yaml", kind: super::considerations::CONSIDERATION.list },
    FileShape {
        file: "messages.yaml",
        kind: Kind::Map(&Kind::List(&Kind::Record(MESSAGE_CHOICE))),
    },
];

impl FileShape {
    /// The keys of a file that hold lists of entries, each with an id.
    pub fn sections(&self) -> impl Iterator<Item = (&'static str, &'static Kind)> {
        let fields = if let Kind::Record(fields) = self.kind { fields } else { &[] };
        fields.iter().filter_map(|it| {
            let Kind::List(one) = it.kind else { return None };
            let Kind::Record(keys) = one else { return None };
            keys.iter().any(|it| it.name == "id").then_some((it.name, one))
        })
    }
}

/// Messages the program says; other ids in `messages.yaml` are errors.
pub const MESSAGES: &[&str] = &[
    "block_header",
    "block_footer",
    "warning_header",
    "release",
    "not_saved",
    "summary",
    "escalation",
    "review_done",
    "humans_asked",
    "queue_alarms",
    "signals_pending",
];
