//! Entries of the decision log as they are stored. May not live here: how they are written and read.

use super::{COUNT, EXIT_CODE, TEXTS, WINDOW};
use crate::source::shape::{Field, Kind, field, required};

const CONDITION: &[Field] = &[
    required("key", Kind::Text, "The key it is written under."),
    required("place", Kind::Text, "Where it is written."),
    required("expression", Kind::Text, "The expression."),
    required(
        "parts",
        Kind::List(&Kind::List(&Kind::Any)),
        "Its parts: first byte, one past the last, the byte of the operator, the value; an object \
         tells an error, null what was not reached.",
    ),
];

const TRANSCRIPT_READ: &[Field] = &[
    required("path", Kind::Text, "The file."),
    required("subagent", Kind::Bool, "Whether it is a subagent's own."),
    required("offset", COUNT, "Bytes of its whole lines that were read."),
    required("unfinished", COUNT, "Bytes of a line without its end that were read after them."),
    required("proof", Kind::Text, "Checksum of the bytes before `offset`."),
];

const PROBE_ANSWER: &[Field] = &[
    field("code", EXIT_CODE, "Exit code."),
    field("value", Kind::Any, "What it answered, secrets masked."),
    field("failed", Kind::Text, "Why it could not answer."),
    field("left_out", COUNT, "Bytes of an answer that was too long to be logged."),
    field("masked", COUNT, "Secrets in `value` that were masked."),
];

const WAITING: &[Field] = &[
    required("pending", TEXTS, "Names of those that nobody consumed."),
    required("drifts", COUNT, "Drifts since the context was last cleared."),
    required("awaiting_human", COUNT, "Requests that no human answered."),
];

const INPUTS: &[Field] = &[
    required("program", Kind::Text, "Version of the program."),
    required("pack_hash", Kind::Text, "What the sources of the pack came to."),
    field("pack_folder", Kind::Text, "The folder of the pack; absent for the built-in one."),
    required("transcript", Kind::Record(TRANSCRIPT_READ), "How far the transcript was read."),
    field("forgotten", Kind::Map(&Kind::List(&COUNT)), "What was not counted, by its places."),
    field("last_message", Kind::Text, "Checksum of the agent's last text."),
    required("event", Kind::Any, "The rest of the payload."),
    required("interactive", Kind::Bool, "Whether a human watched."),
    required("project", Kind::Text, "The project's folder."),
    field("remote_host", Kind::Text, "Host of the project's remote."),
    field("window", Kind::Record(WINDOW), "What the environment said of the context."),
    field("forced_type", Kind::Text, "The session type that the environment named."),
    required("memory", Kind::Any, "What the loop guard remembered."),
    field("probes", Kind::Map(&Kind::Record(PROBE_ANSWER)), "What probes answered."),
    field("breakers", Kind::Any, "Where the circuit breakers stood, where the pack looks at them."),
    field("waiting", Kind::Any, "What waited for humans, where the pack looks at it."),
    field("signals", Kind::Record(WAITING), "Which signals waited, where the pack looks at them."),
];

const VERDICT: &[Field] = &[
    required("id", Kind::Text, "The rule."),
    required("status", Kind::Text, "`satisfied`, `unsatisfied` or `unknown`."),
    required("consequence", Kind::Text, "`none`, `recorded`, `warns` or `blocks`."),
    required("micros", COUNT, "Time it took, in microseconds."),
    field("details", Kind::Text, "What is amiss."),
    field("evidence", TEXTS, "What decided."),
    field("error", Kind::Text, "What went wrong outside."),
    field("softened", Kind::Text, "Why a blocker only warned."),
    field(
        "conditions",
        Kind::List(&Kind::Record(CONDITION)),
        "Its conditions with the values of their parts, where something is amiss.",
    ),
];

const GUARD: &[Field] = &[
    required("id", Kind::Text, "The guard."),
    required("set", Kind::Text, "The set it belongs to: its file without the ending."),
    required("status", Kind::Choice(&["fired", "unknown"]), "What it came to."),
    required(
        "decision",
        Kind::Choice(&["allow", "defer", "ask", "block", "halt", "context", "warn"]),
        "What it does.",
    ),
    required("mode", Kind::Choice(&["enforce", "warn", "shadow"]), "How far it is in force."),
    required("message", Kind::Text, "What it says, secrets masked."),
    field("why", Kind::Text, "Why it could not be told whether it fires."),
    required("program", Kind::Any, "The program it is about; may be empty."),
    required("place", Kind::Text, "Where it is written."),
];

const REAL: &[Field] = &[
    required("lies", Kind::Text, "The place, the links of its folder followed."),
    required("leads", Kind::Text, "What it leads to."),
];

const AROUND: &[Field] = &[
    required("folder", Kind::Any, "The folder that the agent worked in."),
    required("project", Kind::Any, "The project's folder."),
    required("home", Kind::Any, "The user's home."),
    field("temporary", TEXTS, "Folders for temporary files."),
    field("real", Kind::Map(&Kind::Record(REAL)), "Where paths led that have links in them."),
];

const CALLED: &[Field] = &[
    required("program", Kind::Text, "Version of the program."),
    required("pack_hash", Kind::Any, "What the sources of the pack came to."),
    field("pack_folder", Kind::Text, "The folder of the pack; absent for the built-in one."),
    required("around", Kind::Record(AROUND), "Where it happened."),
    field("input", Kind::Any, "The tool's input, secrets masked."),
    field("prompt", Kind::Text, "What the user said, secrets masked."),
    required("masked", COUNT, "Secrets that were masked."),
    required("left_out", COUNT, "Bytes that were too many to be logged."),
    field("permission_mode", Kind::Text, "The client's permission mode."),
    field("agent_type", Kind::Any, "The subagent's type."),
    field("elsewhere", TEXTS, "Guards that also looked at what is not kept."),
    field("patches", TEXTS, "Files whose patches were read, which are not kept."),
];

pub(super) const DECISION: &[Field] = &[
    required("version", COUNT, "Version of the entry; 1."),
    required("timestamp", Kind::Date, "When."),
    field("id", Kind::Text, "Its id, as `policyd explain` takes it."),
    required(
        "event",
        Kind::Text,
        "Neutral name of the event, or the command of the user that turned policyd off or on.",
    ),
    required("session_id", Kind::Any, "The session; empty for a whole project."),
    field("agent_id", Kind::Text, "The subagent that wanted to stop."),
    field("prompt_id", Kind::Text, "The prompt it worked on."),
    required(
        "decision",
        Kind::Choice(&["none", "allow", "defer", "ask", "block", "halt"]),
        "What was decided; a stop is blocked or it is not.",
    ),
    field("spoken", Kind::Bool, "Whether a block was said."),
    field("release", Kind::Text, "Why the agent was let go, or empty."),
    field("session_type", Kind::Text, "Type of the session."),
    field("consecutive_blocks", COUNT, "Blocks of this episode, this one counted."),
    required("verdicts", Kind::List(&Kind::Record(VERDICT)), "What every rule came to."),
    field("skipped", Kind::Map(&TEXTS), "Rules that were not judged, by the reason."),
    field("preferences", Kind::Map(&Kind::Bool), "Preferences that were asked for."),
    field("inputs", Kind::Record(INPUTS), "What the decision rested on."),
    field("guards", Kind::List(&Kind::Record(GUARD)), "Guards that fired or could not be judged."),
    field("tool", Kind::Text, "The tool that the event was about."),
    field("call", Kind::Record(CALLED), "What guards decided about."),
    field("no_opinion", Kind::Text, "Why nothing was judged: a pause."),
    field("by", Kind::Text, "Who turned policyd off or on, such as `ada (zsh)`."),
    field("pack", Kind::Text, "Name of the pack."),
    field("saved", Kind::Text, "How the state was saved."),
    field("problems", TEXTS, "Anything the user was told besides."),
];
