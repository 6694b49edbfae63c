//! Every bound of the program in one place, with the relations between them checked at compile time.

use std::time::Duration;

/// Hook payload on stdin, in bytes. A larger one is answered with no opinion.
pub const STDIN_BYTES_MAX: usize = 16 * 1024 * 1024;
/// One policy file, in bytes.
pub const POLICY_FILE_BYTES_MAX: usize = 1024 * 1024;
/// A git configuration; a longer one is taken for none.
pub const GIT_CONFIG_BYTES_MAX: usize = 256 * 1024;
/// Bytes of git's index that are read at first; the state directory is among the first names.
pub const GIT_INDEX_BYTES_FIRST: usize = 64 * 1024;
/// Bytes of git's index that are searched at most.
pub const GIT_INDEX_BYTES_MAX: usize = 8 * 1024 * 1024;
/// One case file, or a transcript that it names.
pub const CASE_FILE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Files in one pack.
pub const POLICY_FILES_MAX: usize = 256;
/// Nesting of YAML collections in a policy file.
pub const YAML_DEPTH_MAX: usize = 32;
/// Nodes in one policy file.
pub const YAML_NODES_MAX: usize = 100_000;
/// Findings reported for one policy file before the rest is left for the next run.
pub const FILE_FINDINGS_MAX: usize = 100;
/// An id in a pack, in characters; tables pad ids to at most this width, for logs can hold any id.
pub const ID_CHARS_MAX: usize = 128;
/// Entries of one kind in a pack after `extends`.
pub const RULES_MAX: usize = 5_000;
/// Packs in an `extends` chain.
pub const EXTENDS_DEPTH_MAX: usize = 8;

/// One expression, in bytes. Rhai columns saturate at 65,535; this stays far below.
pub const EXPRESSION_BYTES_MAX: usize = 8 * 1024;
/// Operations of one evaluation of an expression.
pub const EXPRESSION_OPERATIONS_MAX: u64 = 100_000;
/// Nesting of one expression.
pub const EXPRESSION_DEPTH_MAX: usize = 48;
/// Nesting of calls; expressions cannot define functions.
pub const EXPRESSION_CALLS_MAX: usize = 8;
/// Length of a string inside an expression, in bytes.
pub const EXPRESSION_STRING_MAX: usize = 64 * 1024;
/// Length of an array inside an expression.
pub const EXPRESSION_ARRAY_MAX: usize = 1_000;
/// Source length of one regular expression.
pub const REGEX_SOURCE_MAX: usize = 4 * 1024;
/// Globs that the braces of one glob may stand for.
pub const GLOB_ALTERNATIVES_MAX: usize = 64;
/// Compiled size of one regular expression, in bytes.
pub const REGEX_COMPILED_MAX: usize = 1024 * 1024;

/// One transcript line that is still parsed, in bytes; longer ones are counted and skipped.
pub const TRANSCRIPT_LINE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes read from a transcript at a time.
pub const TRANSCRIPT_CHUNK_BYTES: usize = 256 * 1024;
/// Folders in folders that are searched for transcripts, so that a ring of links ends.
pub const TRANSCRIPT_FOLDER_DEPTH_MAX: usize = 16;
/// The file that a client keeps beside a subagent's transcript, in bytes.
pub const AGENT_META_BYTES_MAX: usize = 64 * 1024;
/// Bytes before the cursor that prove it still points into the same file.
pub const CURSOR_PROOF_BYTES: usize = 4 * 1024;
/// Encoded cursor with its facts, in bytes; a larger one is not kept.
pub const CURSOR_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Answers kept of one probe in one session.
pub const ANSWERS_KEPT_MAX: usize = 8;
/// Answers of probes kept of one session, in bytes.
pub const ANSWERS_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Commands kept in full, newest last.
pub const COMMANDS_KEPT_MAX: usize = 100;
/// Output kept of one command, in bytes (its end, where test runners print the verdict).
pub const COMMAND_OUTPUT_KEPT_MAX: usize = 2 * 1024;
/// Commands that keep their output, newest last.
pub const COMMAND_OUTPUTS_KEPT_MAX: usize = 16;
/// Text kept of one command line, in bytes.
pub const COMMAND_TEXT_MAX: usize = 1024;
/// Programs read out of one command line.
pub const COMMAND_PROGRAMS_MAX: usize = 64;
/// Programs that one tool call would start, where it is looked at before it runs. One that is started
/// again with the same words counts once.
pub const CALL_PROGRAMS_MAX: usize = 512;
/// Statements of one tool call that are looked at, each turn of a loop by itself, and one more for each
/// `CALL_STEP_BYTES` of their text and of the values put into it.
pub const CALL_STEPS_MAX: usize = 10_000;
/// Time that reading a tool call and judging the guards on it may take.
pub const CALL_TIME_MAX: Duration = Duration::from_secs(1);
/// Text that counts for as much as one statement, in bytes.
pub const CALL_STEP_BYTES: usize = 256;
/// Paths of one tool call whose links are followed on the disk.
pub const CALL_PATHS_MAX: usize = 512;
/// Files of patches that are read for one tool call.
pub const CALL_PATCHES_MAX: usize = 4;
/// Length of a patch that is read for a tool call, in bytes.
pub const CALL_PATCH_BYTES_MAX: usize = 256 * 1024;
/// Text kept of one argument of a program, in bytes.
pub const PROGRAM_ARG_MAX: usize = 512;
/// Arguments kept of one program.
pub const PROGRAM_ARGS_MAX: usize = 64;
/// Nesting of shells in shells (`bash -c "sh -c …"`).
pub const SHELL_DEPTH_MAX: usize = 6;
/// Nesting of groups, substitutions and bodies inside one shell text.
pub const SHELL_NESTING_MAX: usize = 64;
/// Command lines whose reading is kept, so that one that comes again is not parsed again.
pub const SHELL_LINES_KEPT_MAX: usize = 512;
/// Length of a command line whose reading is kept, in bytes.
pub const SHELL_LINE_KEPT_BYTES_MAX: usize = 1024;
/// Parser steps (in hundreds) spent on one shell text before it counts as not understood.
pub const SHELL_STEPS_MAX: usize = 1_000;
/// Length of a command line that is parsed as shell, in bytes.
pub const SHELL_TEXT_MAX: usize = 64 * 1024;
/// Files kept with their edits, most recently edited kept.
pub const FILES_KEPT_MAX: usize = 300;
/// Kinds of commands kept; more are not told apart.
pub const COMMAND_KINDS_MAX: usize = 200;
/// Findings of one content pattern kept over all files.
pub const FINDINGS_KEPT_MAX: usize = 100;
/// Todos kept.
pub const TODOS_KEPT_MAX: usize = 200;
/// Human prompts kept: the first ones and the last ones, each half.
pub const PROMPTS_KEPT_MAX: usize = 12;
/// Assistant messages kept, newest last.
pub const MESSAGES_KEPT_MAX: usize = 8;
/// Text kept of one message or prompt, in bytes.
pub const MESSAGE_TEXT_MAX: usize = 4 * 1024;
/// Text judged of the last message that a payload carries, in bytes: its end.
pub const LAST_MESSAGE_BYTES_MAX: usize = 256 * 1024;
/// Tool calls remembered while their result is awaited.
pub const PENDING_TOOLS_MAX: usize = 64;
/// Longest wait at a stop until the transcript shows what the event and hooks report.
pub const TRANSCRIPT_WAIT_MAX: Duration = Duration::from_millis(500);
/// Warnings of one session that are remembered so that they are reported once.
pub const NOTIFIED_KEPT_MAX: usize = 64;
/// Hashes of tool call ids kept after the calls ended, so that an end that is recorded twice counts once.
pub const ENDED_CALLS_KEPT_MAX: usize = 256;
/// Subagents whose reports are kept, and whose transcripts are read at a stop.
pub const SUBAGENTS_KEPT_MAX: usize = 64;
/// Skills remembered by name.
pub const SKILLS_KEPT_MAX: usize = 200;
/// Ids of API messages remembered, so that usage repeated on their further blocks is not counted.
pub const COUNTED_MESSAGES_MAX: usize = 32;
/// API calls whose occupancy is kept, to tell how fast a context fills.
pub const CONTEXT_SAMPLES_MAX: usize = 16;
/// Characters of what is carried over from one context into the next (seed 004).
pub const SUMMARY_CHARS_MAX: usize = 2_000;
/// Characters of the goal in it.
pub const SUMMARY_GOAL_CHARS_MAX: usize = 500;
/// Files that it lists (seed 004).
pub const SUMMARY_FILES_MAX: usize = 20;
/// Sessions whose summaries are kept.
pub const SUMMARIES_MAX: usize = 16;
/// Bytes of the file that holds them.
pub const SUMMARIES_BYTES_MAX: usize = 256 * 1024;
/// Turns that a context is said to have left, at most.
pub const CONTEXT_TURNS_MAX: u64 = 1_000_000;
/// Models whose tokens are counted apart; those of further ones are counted together.
pub const MODELS_COUNTED_MAX: usize = 16;
/// One name, id, path or branch kept from a transcript, in bytes.
pub const NAME_TEXT_MAX: usize = 512;
/// Distinct tool names counted; further ones count as `other`.
pub const TOOL_NAMES_MAX: usize = 200;

/// Blocks remembered with their evidence, newest last.
pub const BLOCK_HISTORY_MAX: usize = 20;
/// Subagents remembered in one session.
pub const AGENTS_MAX: usize = 64;
/// Counter above which a state file is taken as corrupt (seed 000).
pub const COUNTER_MAX: i64 = 1_000;
/// One state file, in bytes; a larger one is taken as corrupt.
pub const STATE_FILE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Corrupt state files kept beside the current one.
pub const QUARANTINE_FILES_MAX: usize = 3;
/// The file of circuit breakers, in bytes; a larger one is put aside.
pub const BREAKER_FILE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The file of one list of tasks, in bytes; a larger one is put aside, and none is written.
pub const QUEUE_FILE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// One document of an escalation, or their index, in bytes.
pub const ESCALATIONS_FILE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// What a failed call said, in bytes; its end is kept.
pub const FAILURE_TEXT_BYTES_MAX: usize = 16 * 1024;
/// Escalations that were answered and are still listed; older ones are moved to their archive.
pub const ESCALATIONS_CLOSED_MAX: usize = 500;
/// Dead letters that one call reviews, and failures put off that it takes in; the next call goes on.
pub const REVIEWED_AT_ONCE_MAX: usize = 200;
/// Time that one call spends on either.
pub const REVIEW_TIME_MAX: Duration = Duration::from_millis(50);
/// Time after which one call tells humans of no further escalation; the next call goes on.
pub const REMINDING_TIME_MAX: Duration = Duration::from_secs(2);
/// Attempts that are kept of one task; those in the middle go first.
pub const TASK_ATTEMPTS_MAX: usize = 200;
/// One text of a task that failed, in characters.
pub const TASK_TEXT_CHARS_MAX: usize = 4_000;
/// Calls that a circuit breaker remembers, and failures that it may be set to wait for.
pub const BREAKER_CALLS_MAX: usize = 1_000;
/// One file of a signal, in bytes; a larger one is put aside.
pub const SIGNAL_FILE_BYTES_MAX: usize = 256 * 1024;
/// Files that are looked at in the folder of signals.
pub const SIGNALS_MAX: usize = 2_000;
/// Longest time that a signal is kept for whoever claimed it.
pub const SIGNAL_LEASE_MAX: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);
/// Answers that were not told yet, newest last.
pub const SIGNAL_ANSWERS_MAX: usize = 20;
/// Minimum time between the call that first sees a signal late and the call that ends it.
pub const SIGNAL_LATE_MIN: std::time::Duration = std::time::Duration::from_secs(60 * 60);
/// Longest plausible time between the two calls; a longer one is a second jump of the clock.
pub const SIGNAL_LATE_MAX: std::time::Duration = std::time::Duration::from_secs(30 * 24 * 60 * 60);
/// The log of drifts that is read, in bytes: its end.
pub const DRIFT_LOG_BYTES_MAX: u64 = 1024 * 1024;
/// Longest wait for the lock of a session where no manifest says otherwise: a disk that stalls for
/// seconds while others save must not cost a stop its place.
pub const LOCK_WAIT: std::time::Duration = std::time::Duration::from_secs(4);
/// Longest wait of a hook for a lock of the stores beside the session.
pub const HOOK_LOCK_WAIT: std::time::Duration = std::time::Duration::from_secs(1);
/// Longest wait of a command for a lock of the stores: a script would rather wait than lose a result.
pub const COMMAND_LOCK_WAIT: std::time::Duration = std::time::Duration::from_secs(30);
/// Longest wait of `policyd run` for a lock of the stores.
pub const RUN_LOCK_WAIT: std::time::Duration = std::time::Duration::from_secs(10);
/// Longest wait for the lock of the user's choices and trusted packs.
pub const USER_LOCK_WAIT: std::time::Duration = std::time::Duration::from_secs(10);
/// Attempts to save one file.
pub const SAVE_ATTEMPTS_MAX: u32 = 10;
/// Sessions looked at and deleted when old ones are pruned, so that no hook call waits for it.
pub const PRUNED_AT_ONCE_MAX: usize = 20;
/// Corrupt content quoted in a diagnostic entry, in characters.
pub const CORRUPT_QUOTE_CHARS_MAX: usize = 500;
/// Log size at which it is rotated, in bytes.
pub const LOG_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Rotated logs kept beside the current one.
pub const LOG_FILES_MAX: usize = 3;

/// Any string handed to a caller, in characters. Claude Code replaces strings over 10,000.
pub const SPOKEN_CHARS_MAX: usize = 9_000;
/// Beginning of a block's reason that is saved to recognize the reason in a prompt, in characters.
pub const REASON_KEPT_CHARS_MAX: usize = 300;
/// One problem that the user is told of, in characters: it may quote a path of any length.
pub const PROBLEM_CHARS_MAX: usize = 2_000;
/// Parts of one expression that are explained.
pub const EXPLAINED_PARTS_MAX: usize = 200;
/// Columns of an expression that is drawn with its values; a wider one is listed part by part.
pub const DRAWN_COLUMNS_MAX: usize = 100;
/// Columns of a value below an expression.
pub const DRAWN_VALUE_COLUMNS_MAX: usize = 60;
/// Pieces of evidence kept per consideration.
pub const EVIDENCE_MAX: usize = 10;
/// One piece of evidence, in characters.
pub const EVIDENCE_CHARS_MAX: usize = 300;
/// Answer of one probe that is logged with a decision, in bytes of JSON; a longer one is left out.
pub const READING_LOGGED_BYTES_MAX: usize = 16 * 1024;
/// Standard output kept of one probe, in bytes.
pub const PROBE_OUTPUT_MAX: usize = 1024 * 1024;

const _: () = assert!(SPOKEN_CHARS_MAX < 10_000, "Claude Code cuts at 10,000 characters");
const _: () = assert!(EXPRESSION_BYTES_MAX < 65_535, "Rhai columns are u16");
const _: () = assert!(CURSOR_PROOF_BYTES < TRANSCRIPT_CHUNK_BYTES, "one read proves the cursor");
const _: () = assert!(EVIDENCE_CHARS_MAX * 3 < SPOKEN_CHARS_MAX, "a finding fits into a message");

/// Time a probe may take where its pack does not say.
pub const PROBE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);
/// Seconds that a client gives a hook by the lines that `policyd install` writes.
pub const HOOK_TIMEOUT_SECONDS: u32 = 20;
/// Time that all probes of one event may take together, unless the manifest says otherwise: the client ends
/// a hook that takes longer, and then nothing is checked.
pub const PROBES_DEADLINE_MAX: std::time::Duration = std::time::Duration::from_secs(18);
const _: () = assert!(PROBES_DEADLINE_MAX.as_secs() < HOOK_TIMEOUT_SECONDS as u64);
/// Longest pause of the gate.
pub const PAUSE_MAX: std::time::Duration = std::time::Duration::from_secs(7 * 86_400);
/// The file of the user's choices for a project, in bytes; a larger one is not used.
pub const USER_CHOICES_BYTES_MAX: usize = 256 * 1024;
/// Runs and approvals that the user's choices keep, the newest.
pub const USER_CHOICES_KEPT: usize = 200;
/// Bytes of a client's settings file; a longer one is not edited.
pub const SETTINGS_FILE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of the file of trusted packs; a longer one trusts nothing.
pub const TRUST_FILE_BYTES_MAX: usize = 1024 * 1024;
/// Sessions not touched for this long are removed.
pub const SESSIONS_MAX_AGE: std::time::Duration = std::time::Duration::from_secs(30 * 86_400);
/// Sessions kept at most.
pub const SESSIONS_MAX_COUNT: usize = 500;
/// Restarts of one run at most, whatever a pack or a command line says (seed 004).
pub const RESTARTS_MAX: u32 = 5;
/// The document of one run, in bytes.
pub const RUN_FILE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// What is kept of one turn's output, in bytes; more is dropped, and said to be.
pub const TURN_LOG_BYTES_MAX: usize = 16 * 1024 * 1024;
/// One line of an agent's output that is read, in bytes; a longer one is dropped.
pub const OUTPUT_LINE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// A prompt, in bytes: systems do not take longer arguments.
pub const PROMPT_BYTES_MAX: usize = 120_000;
/// Longest goal, in bytes.
pub const GOAL_BYTES_MAX: usize = 64 * 1024;
