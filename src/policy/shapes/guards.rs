//! What `guards.yaml` and the built-in sets of guards may hold.

use super::{DESCRIPTION, ENABLED, ID, OVERRIDE, TEXTS};
use crate::facts::call::OperandSelector;
use crate::policy::guards::{Fallback, Verb};
use crate::source::shape::{Field, Kind, field, required};

/// An entry of a file of guards.
pub const GUARD: &[Field] = &[
    ID,
    DESCRIPTION,
    field("on", TEXTS, "Its events; `pre_tool_use` by default."),
    field("tools", TEXTS, "Tools it looks at; `*` stands for any letters. All, where absent."),
    field(
        "commands",
        TEXTS,
        "Programs it looks at, as in `vocabulary.yaml`: `rm`, `git push`. Its expressions are asked for \
         each such program of a command line, which they see as `program`.",
    ),
    field("when", Kind::Expression, "Holds where it fires; always, where absent."),
    field("unless", Kind::Expression, "Where this holds, it does not fire."),
    field(
        "decision",
        Kind::Choice(Verb::NAMES),
        "What it does; `deny` is `block`. `mask` replaces the secrets in the result of a tool before the agent \
         reads it; a result without secrets does not concern such a guard.",
    ),
    field("message", Kind::Template, "What it says: why, and what to do instead."),
    field(
        "updated_input",
        Kind::Map(&Kind::Template),
        "Fields of the tool's input that are put in place of its own.",
    ),
    field("mode", Kind::Choice(&["enforce", "warn", "shadow"]), "How far it is in force."),
    field(
        "on_error",
        Kind::Choice(Fallback::NAMES),
        "What it does where it cannot be told whether it fires; `warn` by default.",
    ),
    field("expires", Kind::Date, "From this day on it is not judged."),
    field("reason", Kind::Text, "Why it is an exception."),
    ENABLED,
    OVERRIDE,
];

const WHICH: Kind = Kind::Choice(OperandSelector::NAMES);

/// What some programs do with the files they are given.
pub(super) const EFFECT: &[Field] = &[
    required("programs", TEXTS, "Command patterns."),
    field("except", TEXTS, "Command patterns that are left out."),
    field("read", WHICH, "Operands that they read."),
    field("write", WHICH, "Operands that they write."),
    field("delete", WHICH, "Operands that they delete."),
    field(
        "saves",
        WHICH,
        "Operands that are addresses, what is there saved under the last step of each.",
    ),
    field("read_options", TEXTS, "Options whose value is a file that they read."),
    field("write_options", TEXTS, "Options whose value is a file that they write."),
    field("folder_options", TEXTS, "Options whose value is a folder that they write files into."),
];

/// A program that runs code which is not shell text.
pub(super) const INTERPRETER: &[Field] = &[
    required("program", Kind::Text, "Its name; `*` stands for any letters."),
    field("code", TEXTS, "Options whose value is code."),
    field("other", TEXTS, "Options after which what follows is no code."),
    field("first", Kind::Bool, "Whether its first operand is code."),
];

/// A call in code that starts a program or touches a file.
pub(super) const CODE_CALL: &[Field] = &[
    required("call", Kind::Text, "Its name before the parenthesis: `os.system`."),
    field(
        "like",
        TEXTS,
        "The words it is like, its arguments after them; where absent, its argument is shell text or a \
         list of words.",
    ),
    field("only", TEXTS, "Programs in whose code it is looked for; all, where absent."),
];

/// Options and operands that are shell text.
pub(super) const SHELL_VALUE: &[Field] = &[
    required("programs", TEXTS, "Command patterns."),
    field("options", TEXTS, "Options whose value it is; where absent, the operands are it."),
    field("after", TEXTS, "What stands before it; a value without that is no shell text."),
];

const ON: Kind = Kind::Bool;

/// The built-in sets of guards that can be switched off in the manifest.
pub(super) const SETS: &[Field] = &[
    field("destructive-commands", ON, "What destroys work: `rm -rf`, `git reset --hard`, `dd`."),
    field("protected-paths", ON, "Files that are not the agent's: policies, keys, CI, lockfiles."),
    field("secrets", ON, "Secrets in files, prompts and commands."),
    field("git-discipline", ON, "Main branches, skipped hooks, merges."),
    field("network-exfiltration", ON, "Data that leaves, and code that comes in."),
];
