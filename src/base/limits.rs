//! Every limit of the program. The crates in `src` define their own. The relations between limits are
//! checked at compile time.

use std::time::Duration;

pub use policyd_expr::limits::{
    EXPLAINED_PARTS_MAX, EXPRESSION_ARRAY_MAX, EXPRESSION_CALLS_MAX, EXPRESSION_DEPTH_MAX,
    EXPRESSION_OPERATIONS_MAX, EXPRESSION_STRING_MAX, REGEX_COMPILED_MAX,
};
pub use policyd_shell::limits::{
    CALL_PROGRAMS_MAX, CALL_STEP_BYTES, CALL_STEPS_MAX, COMMAND_PROGRAMS_MAX,
    GLOB_ALTERNATIVES_MAX, SHELL_DEPTH_MAX, SHELL_NESTING_MAX, SHELL_STEPS_MAX, SHELL_TEXT_MAX,
};
pub use policyd_yaml::limits::{
    EXPRESSION_BYTES_MAX, FILE_FINDINGS_MAX, POLICY_FILE_BYTES_MAX, REGEX_SOURCE_MAX,
    YAML_DEPTH_MAX, YAML_NODES_MAX,
};

/// Hook payload on standard input, in bytes. A larger payload gets no decision.
pub const STDIN_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Maximum time until a hook payload is complete.
pub const STDIN_WAIT_MAX: Duration = Duration::from_secs(10);
/// A git configuration file, in bytes. A longer file is ignored.
pub const GIT_CONFIG_BYTES_MAX: usize = 256 * 1024;
/// Bytes of git's index that are read first. The state directory is among the first names.
pub const GIT_INDEX_BYTES_FIRST: usize = 64 * 1024;
/// Bytes of git's index that are searched.
pub const GIT_INDEX_BYTES_MAX: usize = 8 * 1024 * 1024;
/// A case file, or a transcript that it names, in bytes.
pub const CASE_FILE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The lock file of a pack, in bytes.
pub const PACK_LOCK_BYTES_MAX: usize = 256 * 1024;
/// The file list of a pack, in bytes.
pub const PACK_LIST_BYTES_MAX: usize = 64 * 1024;
/// A downloaded archive of a pack, in bytes.
pub const PACK_ARCHIVE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// An unpacked archive of a pack, in bytes. A larger archive is rejected, so that a small download cannot fill the
/// memory.
pub const PACK_UNPACKED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Entries in an archive of a pack, other files of its repository among them.
pub const PACK_ARCHIVE_ENTRIES_MAX: usize = 16 * 1024;
/// Longest wait for the cache of remote packs: another process may download.
pub const PACK_LOCK_WAIT: Duration = Duration::from_secs(120);
/// Remote packs that one pack extends.
pub const REMOTE_PACKS_MAX: usize = 16;
/// Deadline of a request for a remote pack.
pub const PACK_REQUEST_DEADLINE: Duration = Duration::from_secs(60);
/// Files in one pack.
pub const POLICY_FILES_MAX: usize = 256;
/// An id in a pack, in characters. Tables pad ids to at most this width, because logs can contain
/// any id.
pub const ID_CHARS_MAX: usize = 128;
/// Entries of one type in a pack, after `extends` is resolved.
pub const RULES_MAX: usize = 5_000;

/// One transcript line that is parsed, in bytes. Longer lines are counted and skipped.
pub const TRANSCRIPT_LINE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes read from a transcript at a time.
pub const TRANSCRIPT_CHUNK_BYTES: usize = 256 * 1024;
/// Directory depth of the search for transcripts, so that a cycle of links ends.
pub const TRANSCRIPT_FOLDER_DEPTH_MAX: usize = 16;
/// The metadata file that a client stores beside a subagent's transcript, in bytes.
pub const AGENT_META_BYTES_MAX: usize = 64 * 1024;
/// Bytes before the cursor that are compared to detect another file.
pub const CURSOR_PROOF_BYTES: usize = 4 * 1024;
/// Encoded cursor with its facts, in bytes. A larger cursor is not saved.
pub const CURSOR_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Cached results of one probe in one session.
pub const ANSWERS_KEPT_MAX: usize = 8;
/// Cached probe results of one session, in bytes.
pub const ANSWERS_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Commands that are stored in full, newest last.
pub const COMMANDS_KEPT_MAX: usize = 100;
/// Stored output of one command, in bytes. The end is stored, because test runners print their
/// summary there.
pub const COMMAND_OUTPUT_KEPT_MAX: usize = 2 * 1024;
/// Commands with stored output, newest last.
pub const COMMAND_OUTPUTS_KEPT_MAX: usize = 16;
/// Stored text of one command line, in bytes.
pub const COMMAND_TEXT_MAX: usize = 1024;
/// Maximum number of failures, such as failed tests, that facts keep of one command.
pub const FAILURES_KEPT_MAX: usize = 20;
/// Maximum number of failures before the first edit that facts keep of a command class.
pub const FAILURES_BEFORE_MAX: usize = 100;
/// Paths of one tool call whose symbolic links are resolved.
pub const CALL_PATHS_MAX: usize = 512;
/// Patch files that are read for one tool call.
pub const CALL_PATCHES_MAX: usize = 4;
/// A patch file that is read for a tool call, in bytes.
pub const CALL_PATCH_BYTES_MAX: usize = 256 * 1024;
/// Text of a file that guards can read, in bytes. Of a longer file, this beginning is known.
pub const FILE_TEXT_BYTES_MAX: usize = 256 * 1024;
/// Lines at the beginning of a file that are its header.
pub const FILE_HEADER_LINES: usize = 20;
/// A file whose lines are counted, in bytes.
pub const FILE_LINES_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Changed files of one tool call whose texts are read.
pub const CHANGED_TEXTS_MAX: usize = 32;
/// Names in directories that are compared with one glob of an expression.
pub const PROJECT_WALK_MAX: usize = 5_000;
/// Paths and globs that the expressions of one event ask about.
pub const PROJECT_QUESTIONS_MAX: usize = 64;
/// Stored text of one program argument, in bytes.
pub const PROGRAM_ARG_MAX: usize = 512;
/// Stored arguments of one program.
pub const PROGRAM_ARGS_MAX: usize = 64;
/// Command lines with a cached analysis.
pub const SHELL_LINES_KEPT_MAX: usize = 512;
/// A command line with a cached analysis, in bytes.
pub const SHELL_LINE_KEPT_BYTES_MAX: usize = 1024;
/// Files of a project that are searched for tests.
pub const PROJECT_FILES_MAX: usize = 20_000;
/// Files whose text is searched for a sign of tests.
pub const SIGN_FILES_MAX: usize = 40;
/// Text of such a file that is searched, in bytes.
pub const SIGN_BYTES_MAX: usize = 64 * 1024;
/// Bytes at the beginning of a file that can say that it is generated.
pub const HEADER_BYTES_MAX: usize = 1024;
/// Lines at the beginning of a file that can say that it is generated.
pub const HEADER_LINES_MAX: usize = 10;
/// A file whose content is compared with that before an edit, in bytes.
pub const SNAPSHOT_BYTES_MAX: usize = 1024 * 1024;
/// Positions and changes that are stored of one edited file, the last.
pub const FILE_EDITS_KEPT_MAX: usize = 16;
/// Edited files that are stored, the most recently edited.
pub const FILES_KEPT_MAX: usize = 300;
/// Command classes that are stored. Further classes are not distinguished.
pub const COMMAND_KINDS_MAX: usize = 200;
/// Stored findings of one content pattern over all files.
pub const FINDINGS_KEPT_MAX: usize = 100;
/// Stored todo items.
pub const TODOS_KEPT_MAX: usize = 200;
/// Stored user prompts: one half from the beginning, one half from the end.
pub const PROMPTS_KEPT_MAX: usize = 12;
/// Stored assistant messages, newest last.
pub const MESSAGES_KEPT_MAX: usize = 8;
/// Stored text of one message or prompt, in bytes.
pub const MESSAGE_TEXT_MAX: usize = 4 * 1024;
/// The end of the last message in a payload that is evaluated, in bytes.
pub const LAST_MESSAGE_BYTES_MAX: usize = 256 * 1024;
/// Tool calls without a result that are stored.
pub const PENDING_TOOLS_MAX: usize = 64;
/// Maximum wait at a stop until the transcript shows what the event and hooks report.
pub const TRANSCRIPT_WAIT_MAX: Duration = Duration::from_millis(500);
/// Warnings of one session that are stored, so that each is reported once.
pub const NOTIFIED_KEPT_MAX: usize = 64;
/// Hashes of the ids of ended tool calls, so that an end that is recorded twice counts once.
pub const ENDED_CALLS_KEPT_MAX: usize = 256;
/// Subagents with stored reports, whose transcripts are read at a stop.
pub const SUBAGENTS_KEPT_MAX: usize = 64;
/// Time of one probe that guards ask.
pub const GUARD_PROBE_TIMEOUT_MAX: Duration = Duration::from_millis(300);
/// Time of all probes that guards ask at one event.
pub const GUARD_PROBES_DEADLINE: Duration = Duration::from_millis(500);
/// Types of subagents, and tools, of which the newest call is stored.
pub const LATEST_CALLS_MAX: usize = 64;
/// Bytes of a field of the input of such a call.
pub const INPUT_FIELD_BYTES_MAX: usize = 256;
/// Skills that are stored by name.
pub const SKILLS_KEPT_MAX: usize = 200;
/// Ids of API messages that are stored, so that usage repeated on their further blocks is not
/// counted.
pub const COUNTED_MESSAGES_MAX: usize = 32;
/// API calls whose context size is stored, to estimate how fast the context grows.
pub const CONTEXT_SAMPLES_MAX: usize = 16;
/// Characters of the summary that is passed from one context to the next. shipwright uses the same
/// limit.
pub const SUMMARY_CHARS_MAX: usize = 2_000;
/// Characters of the goal in a summary, if the sections need the room.
pub const SUMMARY_GOAL_CHARS_MAX: usize = 500;
/// Files that a summary lists. shipwright uses the same limit.
pub const SUMMARY_FILES_MAX: usize = 20;
/// Sessions with stored summaries.
pub const SUMMARIES_MAX: usize = 16;
/// The file of summaries, in bytes.
pub const SUMMARIES_BYTES_MAX: usize = 256 * 1024;
/// Largest reported estimate of the turns that a context has left.
pub const CONTEXT_TURNS_MAX: u64 = 1_000_000;
/// Models whose tokens are counted separately. Tokens of further models are counted together.
pub const MODELS_COUNTED_MAX: usize = 16;
/// A stored name, id, path or branch, in bytes.
pub const NAME_TEXT_MAX: usize = 512;
/// Distinct tool names. Further names count as `other`.
pub const TOOL_NAMES_MAX: usize = 200;

/// Blocks that are stored with their evidence, newest last.
pub const BLOCK_HISTORY_MAX: usize = 20;
/// Copies of block limiters in the user's state directory.
pub const BLOCK_COPIES_MAX: usize = 200;
/// Age at which a copy of a block limiter is removed.
pub const BLOCK_COPY_AGE_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Subagents that are stored in one session.
pub const AGENTS_MAX: usize = 64;
/// Counter above which a state file counts as corrupt. amplihack uses the same limit.
pub const COUNTER_MAX: i64 = 1_000;
/// One state file, in bytes. A larger file counts as corrupt.
pub const STATE_FILE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Corrupt state files that are kept beside the current file.
pub const QUARANTINE_FILES_MAX: usize = 3;
/// The file of circuit breakers, in bytes. A larger file is quarantined.
pub const BREAKER_FILE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The file of one task queue, in bytes. A larger file is quarantined, and none is written.
pub const QUEUE_FILE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// One escalation document, or the index of escalations, in bytes.
pub const ESCALATIONS_FILE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Stored error text of a failed call, in bytes. The end is stored.
pub const FAILURE_TEXT_BYTES_MAX: usize = 16 * 1024;
/// Resolved escalations that are still listed. Older ones are moved to the archive.
pub const ESCALATIONS_CLOSED_MAX: usize = 500;
/// Dead letters that one call reviews, and deferred failures that it records. The next call
/// continues.
pub const REVIEWED_AT_ONCE_MAX: usize = 200;
/// Time for the review of dead letters, and time for deferred failures, in one call.
pub const REVIEW_TIME_MAX: Duration = Duration::from_millis(50);
/// Time for notifications about escalations in one call. The next call continues.
pub const REMINDING_TIME_MAX: Duration = Duration::from_secs(2);
/// Stored attempts of one task. Those in the middle are removed first.
pub const TASK_ATTEMPTS_MAX: usize = 200;
/// Ids of tasks that are done, on which other tasks can depend. The oldest are removed first.
pub const RESOLVED_TASKS_MAX: usize = 1_000;
/// One text of a failed task, in characters.
pub const TASK_TEXT_CHARS_MAX: usize = 4_000;
/// Calls in the window of a circuit breaker, and largest failure threshold.
pub const BREAKER_CALLS_MAX: usize = 1_000;
/// One signal file, in bytes. A larger file is quarantined.
pub const SIGNAL_FILE_BYTES_MAX: usize = 256 * 1024;
/// Files that are read in the directory of signals.
pub const SIGNALS_MAX: usize = 2_000;
/// Maximum lease of a claimed signal.
pub const SIGNAL_LEASE_MAX: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);
/// Signal answers that the agent has not received yet, newest last.
pub const SIGNAL_ANSWERS_MAX: usize = 20;
/// Minimum time between the call that first sees an expired signal and the call that ends it.
pub const SIGNAL_LATE_MIN: std::time::Duration = std::time::Duration::from_secs(60 * 60);
/// Maximum plausible time between the two calls. A longer time is a second jump of the clock.
pub const SIGNAL_LATE_MAX: std::time::Duration = std::time::Duration::from_secs(30 * 24 * 60 * 60);
/// The end of the drift log that is read, in bytes.
pub const DRIFT_LOG_BYTES_MAX: u64 = 1024 * 1024;
/// New lines of a log of drifts that one pass reads, in bytes.
pub const DRIFTS_READ_BYTES_MAX: usize = 64 * 1024;
/// Appended drifts whose effects one pass does. The next pass continues.
pub const DRIFTS_AT_ONCE_MAX: usize = 20;
/// Default wait for the lock of a session. A disk can stall for seconds while other processes save,
/// and a stop must not lose its evaluation.
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
/// Sessions that one call inspects and deletes when it prunes old sessions, so that no hook call
/// waits.
pub const PRUNED_AT_ONCE_MAX: usize = 20;
/// Corrupt content that is quoted in a diagnostic entry, in characters.
pub const CORRUPT_QUOTE_CHARS_MAX: usize = 500;
/// Log size at which it is rotated, in bytes.
pub const LOG_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Projects that have metrics of their own; the others count as `other`.
pub const METRIC_PROJECTS_MAX: usize = 500;
/// Rules that have metrics of their own; the others count as `other`.
pub const METRIC_RULES_MAX: usize = 2_000;
/// JSON file in the user's state directory, in bytes.
pub const USER_STATE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Records in one request of an export.
pub const EXPORT_RECORDS_MAX: usize = 500;
/// Response of a collector, in bytes.
pub const EXPORT_RESPONSE_BYTES_MAX: usize = 1024 * 1024;
/// Rows of a table of the morning report.
pub const REPORT_ROWS_MAX: usize = 50;
/// Text of an alert, in characters.
pub const ALERT_CHARS_MAX: usize = 100_000;
/// Age of an event after which no alert is sent.
pub const ALERT_AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Time after which no further alert is sent by one process at a time.
pub const ALERT_TIME_MAX: Duration = Duration::from_secs(60);
/// Response of a channel, in bytes.
pub const ALERT_RESPONSE_BYTES_MAX: usize = 64 * 1024;
/// Text of a notice in the decision log, in characters.
pub const NOTICE_CHARS_MAX: usize = 400;
/// The finding of a decision in the index, in characters.
pub const INDEX_DETAIL_CHARS_MAX: usize = 160;
/// Lines of a log that the index adds in one transaction, in bytes.
pub const INDEX_CHUNK_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Lines of all logs after which the index begins another transaction, in bytes.
pub const INDEX_BATCH_BYTES: usize = 128 * 1024 * 1024;
/// Longest wait for another process that writes the index.
pub const INDEX_LOCK_WAIT: std::time::Duration = std::time::Duration::from_secs(10);
/// Signed-in browsers of one dashboard; the oldest one is signed out.
pub const DASHBOARD_SESSIONS_MAX: usize = 16;
/// Age of a link to the dashboard from which it does not work.
pub const DASHBOARD_LINK_AGE_MAX: std::time::Duration = std::time::Duration::from_secs(10 * 60);
/// Pages that are updated live at one time.
pub const DASHBOARD_STREAMS_MAX: usize = 64;
/// Fields of a form, in bytes.
pub const DASHBOARD_FORM_BYTES_MAX: usize = 64 * 1024;
/// Requests that wait for a thread.
pub const DASHBOARD_REQUESTS_MAX: usize = 64;
/// Threads that make pages. One of them can wait for a long transcript.
pub const DASHBOARD_THREADS: usize = 3;
/// Interval in which the dashboard looks for changes.
pub const DASHBOARD_INTERVAL: std::time::Duration = std::time::Duration::from_secs(2);
/// Age of the state of a project from which it is read again although no file changed: a breaker closes by time alone.
pub const DASHBOARD_AGE_MAX: std::time::Duration = std::time::Duration::from_secs(30);
/// Transcript that is copied beside the draft of a case, in bytes.
pub const CASE_DRAFT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Name of the draft of a case, in characters.
pub const CASE_DRAFT_CHARS_MAX: usize = 100;
/// File with a secret of the dashboard, in bytes.
pub const DASHBOARD_SECRET_BYTES_MAX: usize = 4 * 1024;
/// Projects of the registry that are listed.
pub const KNOWN_PROJECTS_MAX: usize = 10_000;
/// Sessions whose project is remembered; the oldest are forgotten.
pub const SESSION_PROJECTS_MAX: usize = 1_000;
/// Age at which the project of a session is forgotten.
pub const SESSION_PROJECTS_MAX_AGE: std::time::Duration =
    std::time::Duration::from_secs(90 * 86_400);
/// Directories of one session whose project is remembered, the first ones.
pub const SESSION_DIRECTORIES_MAX: usize = 16;
/// File with the projects of a session, in bytes. A larger file is not used.
pub const SESSION_PROJECTS_BYTES_MAX: usize = 256 * 1024;
/// Rotated logs that are kept beside the current log.
pub const LOG_FILES_MAX: usize = 3;

/// A string that is sent to a client, in characters. Claude Code replaces strings over 10,000.
pub const SPOKEN_CHARS_MAX: usize = 9_000;
/// Stored beginning of a block's reason, in characters. It identifies the reason in a later prompt.
pub const REASON_KEPT_CHARS_MAX: usize = 300;
/// One problem that is reported to the user, in characters. It can quote a path of any length.
pub const PROBLEM_CHARS_MAX: usize = 2_000;
/// Columns of an expression that is drawn with its values. A wider expression is listed part by
/// part.
pub const DRAWN_COLUMNS_MAX: usize = 100;
/// Columns of a value that is drawn below an expression.
pub const DRAWN_VALUE_COLUMNS_MAX: usize = 60;
/// Stored pieces of evidence of one check.
pub const EVIDENCE_MAX: usize = 10;
/// One piece of evidence, in characters.
pub const EVIDENCE_CHARS_MAX: usize = 300;
/// Reports of a linter or a compiler about the edited files that a rule reads.
pub const REPORTS_SHOWN_MAX: usize = 3;
/// Probe result that is logged with a decision, in bytes of JSON. A longer result is not logged.
pub const READING_LOGGED_BYTES_MAX: usize = 16 * 1024;
/// Stored standard output of one probe, in bytes.
pub const PROBE_OUTPUT_MAX: usize = 1024 * 1024;

const _: () = assert!(SPOKEN_CHARS_MAX < 10_000, "Claude Code cuts at 10,000 characters");
const _: () = assert!(CURSOR_PROOF_BYTES < TRANSCRIPT_CHUNK_BYTES, "one read proves the cursor");
const _: () = assert!(EVIDENCE_CHARS_MAX * 3 < SPOKEN_CHARS_MAX, "a finding fits into a message");

/// Default time limit of a probe.
pub const PROBE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);
/// Timeout in seconds of the hook lines that `policyd install` writes.
pub const HOOK_TIMEOUT_SECONDS: u32 = 20;
/// Default time limit of all probes of one event together. A client kills a slower hook, and then
/// nothing is checked.
pub const PROBES_DEADLINE_MAX: std::time::Duration = std::time::Duration::from_secs(18);
const _: () = assert!(PROBES_DEADLINE_MAX.as_secs() < HOOK_TIMEOUT_SECONDS as u64);
/// Longest time that a hook waits for `policyd-tools` to compile a pack.
pub const PACK_COMPILE_TIME_MAX: std::time::Duration = std::time::Duration::from_secs(8);
const _: () = assert!(PACK_COMPILE_TIME_MAX.as_secs() < HOOK_TIMEOUT_SECONDS as u64);
/// Maximum duration of a pause.
pub const PAUSE_MAX: std::time::Duration = std::time::Duration::from_secs(7 * 86_400);
/// Maximum duration of an allowance.
pub const ALLOWANCE_MAX: std::time::Duration = std::time::Duration::from_secs(86_400);
/// Time in which an allowance for one use must be used.
pub const ALLOWANCE_ONCE: std::time::Duration = std::time::Duration::from_secs(3_600);
/// Time in which a human can answer a request to let a blocked tool call pass.
pub const APPROVAL_REQUEST_MAX: std::time::Duration = std::time::Duration::from_secs(86_400);
/// Requests in the local copy, the newest.
pub const APPROVALS_KEPT: usize = 500;
/// Allowances that are stored in the user's choices, the newest.
pub const ALLOWANCES_KEPT: usize = 50;
/// A file with choices of the user, in bytes. A larger file is not used.
pub const USER_CHOICES_BYTES_MAX: usize = 1024 * 1024;
/// The stored texts of one trusted pack, in bytes. Changes of a larger pack are not shown.
pub const TRUSTED_TEXTS_BYTES_MAX: usize = 1024 * 1024;
/// Lines of a difference that `policyd trust` shows.
pub const TRUST_DIFF_LINES_MAX: usize = 200;
/// Runs and approvals that are stored in the user's choices, the newest.
pub const USER_CHOICES_KEPT: usize = 200;
/// A client's settings file, in bytes. A longer file is not edited.
pub const SETTINGS_FILE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Age at which an unused session is removed.
pub const SESSIONS_MAX_AGE: std::time::Duration = std::time::Duration::from_secs(30 * 86_400);
/// Stored sessions.
pub const SESSIONS_MAX_COUNT: usize = 500;
/// Restarts of one run, whatever a pack or a command line sets. shipwright uses the same limit.
pub const RESTARTS_MAX: u32 = 5;
/// The state file of one run, in bytes.
pub const RUN_FILE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longest wait of a new run for the lock of the project's runs: `policyd status` holds it for a moment.
pub const RUNS_LOCK_WAIT: std::time::Duration = std::time::Duration::from_millis(200);
/// Files of all runs of a project, in bytes. The logs of the oldest runs beyond it are removed.
pub const RUN_LOGS_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Stored output of one turn, in bytes. The rest is dropped, and a note reports it.
pub const TURN_LOG_BYTES_MAX: usize = 16 * 1024 * 1024;
/// One line of an agent's output, in bytes. A longer line is dropped.
pub const OUTPUT_LINE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// A prompt, in bytes. Operating systems do not accept longer arguments.
pub const PROMPT_BYTES_MAX: usize = 120_000;
/// A goal, in bytes.
pub const GOAL_BYTES_MAX: usize = 64 * 1024;
/// A password or a file of certificates, in bytes.
pub const PASSWORD_BYTES_MAX: usize = 1024 * 1024;
/// Time limit of the command that prints the password of the shared store.
pub const PASSWORD_COMMAND_TIME: std::time::Duration = std::time::Duration::from_secs(2);
/// Longest time that a hook waits for the server of the shared store.
pub const SHARED_HOOK_WAIT: std::time::Duration = std::time::Duration::from_millis(250);
/// Time that must be left of it for another operation.
pub const SHARED_CALL_TIME: std::time::Duration = std::time::Duration::from_millis(50);
/// Longest time that a command waits for the server of the shared store. Scripts of agents call such commands.
pub const SHARED_COMMAND_WAIT: std::time::Duration = std::time::Duration::from_secs(3);
/// Longest time that `policyd store` waits for it.
pub const SHARED_STORE_WAIT: std::time::Duration = std::time::Duration::from_secs(10);
/// Age up to which the local copy of the shared store counts as current at a stop.
pub const SHARED_AGE_MAX: std::time::Duration = std::time::Duration::from_secs(1);
/// Shortest delay of the next attempt after the server could not be reached.
pub const SHARED_RETRY_MIN: std::time::Duration = std::time::Duration::from_secs(5);
/// Longest delay of the next attempt.
pub const SHARED_RETRY_MAX: std::time::Duration = std::time::Duration::from_secs(60);
/// Difference of two clocks up to which times are not converted.
pub const SHARED_CLOCK_TOLERANCE: std::time::Duration = std::time::Duration::from_secs(2);
/// Interval in which a supervised run tells other hosts that its process lives.
pub const SHARED_RUN_SIGN_EVERY: std::time::Duration = std::time::Duration::from_secs(10 * 60);
/// Time without such a sign after which a run of another host counts as abandoned.
pub const SHARED_RUN_SILENCE_MAX: std::time::Duration = std::time::Duration::from_secs(30 * 60);
/// Operations that wait for the server. Further ones are not recorded.
pub const OUTBOX_MAX: usize = 20_000;
/// Time for which sent operations are kept, to send them again if the server lost them.
pub const SENT_KEPT: std::time::Duration = std::time::Duration::from_secs(3_600);
/// Sent operations of an hour that are kept, in bytes.
pub const SENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// One operation that waits for the server, in bytes.
pub const OPERATION_BYTES_MAX: usize = 1024 * 1024;
/// Local copy of the documents of one kind, in bytes.
pub const MIRROR_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Signals in the local copy of the shared store, the newest.
pub const SHARED_SIGNALS_KEPT: usize = 2_000;
/// Runs in the local copy of the registry, the newest.
pub const SHARED_RUNS_KEPT: usize = 2_000;
/// Changed documents in one answer of the server of the shared store.
pub const SHARED_PAGE_ROWS: i32 = 500;
/// Bytes of the documents in one answer. One document has at most a MiB.
pub const SHARED_PAGE_BYTES: i32 = 4 * 1024 * 1024;
/// Documents that `policyd store verify` compares, in bytes.
pub const SHARED_COMPARED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// What is known of the server, in bytes.
pub const SHARED_FILE_BYTES_MAX: usize = 64 * 1024;
/// Longest lease of a claimed task.
pub const CLAIM_LEASE_MAX: std::time::Duration = std::time::Duration::from_secs(24 * 3_600);
/// Lines of a log that are sent at once.
pub const DECISIONS_AT_ONCE: usize = 200;
