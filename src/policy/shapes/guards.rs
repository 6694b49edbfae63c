//! What `guards.yaml` and the built-in sets of guards may hold.

use super::TEXTS;
use crate::facts::call::OperandSelector;
use crate::source::shape::{Field, Kind, field, required};

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
