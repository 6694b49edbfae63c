//! Commands: the programs that a shell tool runs, how the call ended, and the verdict of its
//! output.

use policyd_shell::patch;
use std::iter;
use std::rc::Rc;

use super::super::command::{CommandOutcome, CommandVerdict, ShellCommand};
use super::super::compiled::{CommandLine, CompiledKind, CompiledMatchers};
use super::super::lazy::LinePatterns;
use super::super::record::lenient::Either;
use super::super::record::wire::{Empty, Input};
use super::super::task_names::is_unrecognized;
use super::super::{EditUndo, Facts, KindFacts, Program, shell};
use super::{cut, masked_end, masked_front, push_bounded};
use policyd_base::limits::{
    COMMAND_OUTPUT_KEPT_MAX, COMMAND_OUTPUTS_KEPT_MAX, COMMAND_TEXT_MAX, COMMANDS_KEPT_MAX,
    EVIDENCE_CHARS_MAX, FAILURES_BEFORE_MAX, FAILURES_KEPT_MAX, NAME_TEXT_MAX, PROGRAM_ARG_MAX,
    PROGRAM_ARGS_MAX,
};
use policyd_yaml::secrets::{MARK, mask, mask_words, secrets};

/// How a call of a shell tool ended.
pub(super) struct CallEnd<'a> {
    pub(super) outcome: CommandOutcome,
    pub(super) exit_code: Option<i32>,
    pub(super) output: &'a str,
}

impl Facts {
    pub(super) fn command_call(
        &mut self,
        tool: &str,
        input: &Input<'_>,
        lens: &CompiledMatchers,
    ) -> Vec<EditUndo> {
        let text = command_text(&input.command).or_else(|| command_text(&input.cmd));
        let text = text.unwrap_or_default();
        let line = lens.command_line(&text, || command_line(&text, lens));
        let command = Rc::new(ShellCommand {
            seq: self.seq,
            text: masked_front(&text, COMMAND_TEXT_MAX),
            understood: line.understood,
            branch: self.branch.clone(),
            kinds: line.kinds.clone(),
            evidential: line.evidential,
            unrecognized: line.unrecognized,
            programs: line.programs.clone(),
            ..ShellCommand::default()
        });
        for name in &command.kinds {
            let kind = Rc::make_mut(self.commands.by_kind.entry(name.clone()).or_default());
            kind.count += 1;
            kind.last = Rc::clone(&command);
        }
        self.commands.total += 1;
        push_bounded(&mut self.commands.recent, command, COMMANDS_KEPT_MAX);
        self.written_by_command(tool, &line.writes, lens)
    }

    pub(super) fn command_ended(
        &mut self,
        seq: u64,
        ending: &CallEnd<'_>,
        lens: &CompiledMatchers,
    ) {
        let recent = &mut self.commands.recent;
        let Ok(index) = recent.binary_search_by_key(&seq, |command| command.seq) else { return };
        let Some(shared) = recent.get_mut(index) else { return };
        let command = Rc::make_mut(shared);
        command.outcome = ending.outcome;
        command.exit_code = ending.exit_code;
        command.result_seq = self.seq;
        command.output = masked_end(ending.output, COMMAND_OUTPUT_KEPT_MAX);
        let shown = kinds_by_output(command, ending, lens);
        command.kinds.extend(shown.iter().cloned());
        let mut judged = Vec::new();
        for kind in lens.kinds().iter().filter(|kind| command.kinds.contains(&kind.name)) {
            let (verdict, quote) = verdict(kind, command, ending, lens);
            let quote = mask(quote).0;
            if rank(verdict) > rank(command.verdict) {
                command.verdict = verdict;
                quote.as_ref().clone_into(&mut command.quote);
            }
            judged.push((kind, verdict, quote));
        }
        let command = Rc::clone(shared);
        if command.outcome == CommandOutcome::Succeeded
            && let Some(branch) = branch_after(&command.programs, ending.output)
        {
            cut(branch, NAME_TEXT_MAX).clone_into(&mut self.branch);
        }
        shown.iter().for_each(|name| self.kind_shown(name, &command));
        for (kind, verdict, quote) in judged {
            self.kind_ended(kind, &command, verdict, &quote, ending.output);
            if verdict == CommandVerdict::Passed {
                self.repaired_by(kind, &command, lens);
            }
        }
        drop_older_outputs(&mut self.commands.recent);
    }

    /// Adds a command to a class to which its output assigns it.
    fn kind_shown(&mut self, name: &str, command: &Rc<ShellCommand>) {
        let kind = Rc::make_mut(self.commands.by_kind.entry(name.to_owned()).or_default());
        kind.count += 1;
        if kind.last.seq < command.seq {
            kind.last = Rc::clone(command);
        }
    }

    fn kind_ended(
        &mut self,
        class: &CompiledKind,
        command: &Rc<ShellCommand>,
        verdict: CommandVerdict,
        quote: &str,
        output: &str,
    ) {
        let name = class.name.as_str();
        if command.outcome == CommandOutcome::Denied {
            return self.kind_not_run(name, command.seq);
        }
        let before_edits = self.files.iter().all(|file| command.seq < file.first_seq);
        let Some(kind) = self.commands.by_kind.get_mut(name).map(Rc::make_mut) else { return };
        match verdict {
            CommandVerdict::Failed => {
                let failures = failures(class, command, quote, output);
                kind.failed += 1;
                if before_edits {
                    kind.failures_before.extend(failures.iter().cloned());
                    while kind.failures_before.len() > FAILURES_BEFORE_MAX {
                        kind.failures_before.pop_first();
                    }
                }
                if command.seq >= kind.last_failed_seq {
                    kind.last_failed_seq = command.seq;
                    kind.failures = failures;
                }
            }
            CommandVerdict::Passed if command.seq >= kind.last_passed_seq => {
                kind.last_passed_seq = command.seq;
                kind.last_passed_text.clone_from(&command.text);
            }
            CommandVerdict::Passed
            | CommandVerdict::Unknown
            | CommandVerdict::Empty
            | CommandVerdict::Unable => {}
        }
        if kind.last.seq == command.seq {
            kind.last = judged(command, verdict, quote);
        }
    }

    /// Counts a successful command of one class as a pass of each class whose last failure it repaired: `black` after
    /// `black --check`.
    fn repaired_by(
        &mut self,
        by: &CompiledKind,
        command: &Rc<ShellCommand>,
        lens: &CompiledMatchers,
    ) {
        for class in lens.kinds().iter().filter(|it| it.repaired_by.contains(&by.name)) {
            let Some(kind) = self.commands.by_kind.get_mut(&class.name) else { continue };
            let mut reported = kind.last.programs.iter().filter(|it| class.includes(it, lens));
            let is_repaired = |failed: &Program| {
                command.programs.iter().any(|it| by.names_both(it, failed, lens))
            };
            let failed = kind.last.verdict == CommandVerdict::Failed && kind.last.seq < command.seq;
            if failed && reported.clone().next().is_some() && reported.all(is_repaired) {
                let kind = Rc::make_mut(kind);
                kind.last_passed_seq = command.seq;
                kind.last_passed_text.clone_from(&command.text);
                kind.last = judged(command, CommandVerdict::Passed, "");
            }
        }
    }

    /// Removes a denied command from its class. The previous command becomes the newest again.
    fn kind_not_run(&mut self, name: &str, seq: u64) {
        let Some(kind) = self.commands.by_kind.get_mut(name).map(Rc::make_mut) else { return };
        kind.count = kind.count.saturating_sub(1);
        kind.last_denied_seq = kind.last_denied_seq.max(seq);
        if kind.count == 0 {
            kind.last = Rc::default();
            return;
        }
        let earlier = self.commands.recent.iter().rev().find(|command| {
            command.kinds.contains(name) && command.outcome != CommandOutcome::Denied
        });
        if let Some(earlier) = earlier
            && kind.last.seq == seq
        {
            kind.last = earlier_of_kind(kind, earlier);
        }
    }
}

/// Parses a command line.
fn command_line(text: &str, lens: &CompiledMatchers) -> CommandLine {
    let (programs, understood) = shell::parse(text, lens);
    let kinds = lens.kinds_of(&programs).map(str::to_owned).collect();
    let (mut evidential, mut unrecognized) = (false, false);
    for program in &programs {
        let own = || lens.kinds().iter().filter(|kind| kind.includes(program, lens));
        evidential |= !own().any(|kind| kind.no_evidence);
        unrecognized |= is_unrecognized(program, lens);
    }
    let writes = written_paths(&programs, text);
    // A word alone does not always show that it is a secret, such as `me:SECRET@db` of an address.
    let known: Vec<&str> =
        secrets(text).into_iter().filter_map(|(range, _)| text.get(range)).collect();
    let programs = programs.into_iter().map(|it| bounded(it, &known)).collect();
    CommandLine { programs, understood, kinds, evidential, unrecognized, writes }
}

/// Returns an earlier command with the verdict of one class. The stored verdict combines all
/// classes; the class's own result is in its counters.
fn earlier_of_kind(kind: &KindFacts, earlier: &Rc<ShellCommand>) -> Rc<ShellCommand> {
    let verdict = if earlier.seq == kind.last_failed_seq {
        CommandVerdict::Failed
    } else if earlier.seq == kind.last_passed_seq {
        CommandVerdict::Passed
    } else {
        CommandVerdict::Unknown
    };
    let quote = if verdict == earlier.verdict { earlier.quote.as_str() } else { "" };
    judged(earlier, verdict, quote)
}

/// Returns a command with the verdict of one class.
fn judged(command: &Rc<ShellCommand>, verdict: CommandVerdict, quote: &str) -> Rc<ShellCommand> {
    if (command.verdict, command.quote.as_str()) == (verdict, quote) {
        return Rc::clone(command);
    }
    Rc::new(ShellCommand { verdict, quote: quote.to_owned(), ..ShellCommand::clone(command) })
}

/// Returns the text of a command line. A list of words is quoted so that a shell reads the same
/// words.
fn command_text(command: &Either<'_, Empty>) -> Option<String> {
    match command {
        Either::Text(text) => Some(text.clone().into_owned()),
        Either::Many(words) => {
            let quoted = words.iter().filter_map(|word| match word {
                Either::Text(word) => Some(format!("'{}'", word.replace('\'', "'\\''"))),
                Either::One(_) | Either::Many(_) | Either::None => None,
            });
            Some(quoted.collect::<Vec<_>>().join(" "))
        }
        Either::One(_) | Either::None => None,
    }
}

/// Decides the verdict by exit status and output, and returns the deciding line.
fn verdict<'o>(
    kind: &CompiledKind,
    command: &ShellCommand,
    ending: &CallEnd<'o>,
    lens: &CompiledMatchers,
) -> (CommandVerdict, &'o str) {
    match ending.outcome {
        CommandOutcome::Pending | CommandOutcome::Denied => return (CommandVerdict::Unknown, ""),
        CommandOutcome::Failed | CommandOutcome::Succeeded | CommandOutcome::Background => {}
    }
    // What is read before the end shows it only by its text.
    let is_open = ending.outcome == CommandOutcome::Background;
    let decisive = !is_open && is_decisive(kind, command, lens);
    let line = |patterns: &LinePatterns| patterns.last_line(ending.output).map(str::trim);
    let hidden = || line(&kind.failed_if_hidden).filter(|_| !decisive);
    let exit_failed = ending.outcome == CommandOutcome::Failed;
    let (failed, passed, empty) = (line(&kind.failed), line(&kind.passed), line(&kind.empty));
    let last = || last_line(ending.output);
    let code_says = exit_failed && matches!(ending.exit_code, Some(NOT_EXECUTABLE | NOT_FOUND));
    let unable = line(&kind.unable).or_else(|| code_says.then(last));
    let (verdict, quote) = if let Some(quote) = failed {
        (CommandVerdict::Failed, quote)
    } else if let Some(quote) = unable.filter(|_| passed.is_none() && (exit_failed || !decisive)) {
        (CommandVerdict::Unable, quote)
    } else if let Some(quote) = empty.filter(|_| passed.is_none() && exit_failed) {
        (CommandVerdict::Empty, quote)
    } else if exit_failed {
        (CommandVerdict::Failed, hidden().unwrap_or_else(last))
    } else if let Some(quote) = hidden() {
        (CommandVerdict::Failed, quote)
    } else if let Some(quote) = passed {
        (CommandVerdict::Passed, quote)
    } else if let Some(quote) = empty {
        (CommandVerdict::Empty, quote)
    } else if let Some(quote) = line(&kind.passed_unless_empty) {
        (CommandVerdict::Passed, quote)
    } else if decisive {
        (CommandVerdict::Passed, last())
    } else {
        (CommandVerdict::Unknown, "")
    };
    (verdict, cut(quote, EVIDENCE_CHARS_MAX))
}

/// Exit code of a shell for a program that it cannot execute.
const NOT_EXECUTABLE: i32 = 126;
/// Exit code of a shell for a program that it does not find.
const NOT_FOUND: i32 = 127;

/// Returns whether success of the line implies success of its commands of a class. Without such a
/// command, the output assigned the line to the class, and every program whose output is evidence
/// counts.
fn is_decisive(kind: &CompiledKind, command: &ShellCommand, lens: &CompiledMatchers) -> bool {
    let all = |meant: Vec<&Program>| !meant.is_empty() && meant.iter().all(|it| it.decisive);
    let programs = command.programs.iter();
    let own: Vec<&Program> = programs.clone().filter(|it| kind.includes(it, lens)).collect();
    if !own.is_empty() {
        return all(own);
    }
    let silent = |it: &&Program| lens.kinds().iter().any(|k| k.no_evidence && k.lists(it, lens));
    all(programs.filter(|it| !silent(it)).collect())
}

/// Returns the classes to which the output of a command assigns it.
fn kinds_by_output(
    command: &ShellCommand,
    ending: &CallEnd<'_>,
    lens: &CompiledMatchers,
) -> Vec<String> {
    let ended = matches!(ending.outcome, CommandOutcome::Succeeded | CommandOutcome::Failed);
    if !ended || !command.evidential || ending.output.is_empty() {
        return Vec::new();
    }
    // A text of the command line that is printed again is not a result.
    let is_result = |line: &str| !command.text.contains(line.trim());
    let shows = |patterns: &LinePatterns| patterns.last_line(ending.output).is_some_and(is_result);
    let kinds = lens.kinds().iter().filter(|kind| {
        kind.by_output
            && !command.kinds.contains(&kind.name)
            && (shows(&kind.passed) || shows(&kind.failed))
    });
    kinds.map(|kind| kind.name.clone()).collect()
}

/// Returns the failures of a failed command: the lines that name one each, otherwise the deciding
/// line with the command. Times are left out, so that the same failure has the same text.
fn failures(kind: &CompiledKind, command: &ShellCommand, quote: &str, output: &str) -> Vec<String> {
    let mut named: Vec<String> = Vec::new();
    for line in kind.failures(output) {
        let name = without_times(&masked_front(line.trim(), EVIDENCE_CHARS_MAX));
        if !named.contains(&name) && named.len() < FAILURES_KEPT_MAX {
            named.push(name);
        }
    }
    if named.is_empty() {
        named.push(format!("{} (`{}`)", without_times(quote), cut(&command.text, NAME_TEXT_MAX)));
    }
    named
}

/// Removes durations such as `0.31s` and `12 ms` from a text.
fn without_times(text: &str) -> String {
    let is_number =
        |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let is_time = |word: &str| {
        let word = word.trim_matches(|it| matches!(it, '(' | ')' | ',' | '[' | ']'));
        ["ms", "s", "sec", "seconds"]
            .iter()
            .any(|unit| word.strip_suffix(unit).is_some_and(is_number))
    };
    text.split_whitespace().filter(|word| !is_time(word)).collect::<Vec<_>>().join(" ")
}

fn last_line(output: &str) -> &str {
    output.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

fn rank(verdict: CommandVerdict) -> u8 {
    match verdict {
        CommandVerdict::Unknown => 0,
        CommandVerdict::Empty => 1,
        CommandVerdict::Unable => 2,
        CommandVerdict::Passed => 3,
        CommandVerdict::Failed => 4,
    }
}

fn drop_older_outputs(recent: &mut [Rc<ShellCommand>]) {
    let with_output = recent.iter_mut().rev().filter(|command| !command.output.is_empty());
    for command in with_output.skip(COMMAND_OUTPUTS_KEPT_MAX) {
        Rc::make_mut(command).output = String::new();
    }
}

/// Returns a program for storage: without secrets, those of its command line included, and bounded
/// in size.
fn bounded(mut program: Program, secrets: &[&str]) -> Program {
    program.args.truncate(PROGRAM_ARGS_MAX);
    program.writes.truncate(PROGRAM_ARGS_MAX);
    for word in program.args.iter_mut().chain(&mut program.writes).chain([&mut program.name]) {
        for secret in secrets {
            if word.contains(secret) {
                *word = word.replace(secret, MARK);
            }
        }
    }
    mask_words(&mut iter::once(&mut program.name).chain(&mut program.args).collect::<Vec<_>>());
    for text in program.args.iter_mut().chain(&mut program.writes).chain([&mut program.name]) {
        if text.len() > PROGRAM_ARG_MAX {
            *text = cut(text, PROGRAM_ARG_MAX).to_owned();
        }
    }
    program
}

/// Texts of which a command line that edits a file contains at least one.
const EDIT_SIGNS: [&str; 4] = [">", "sed", "tee", "apply_patch"];

/// Returns the files that a call of a shell tool would edit.
pub(super) fn edited_paths(input: &Input<'_>, lens: &CompiledMatchers) -> Vec<String> {
    let text = command_text(&input.command).or_else(|| command_text(&input.cmd));
    let text = text.filter(|it| EDIT_SIGNS.iter().any(|sign| it.contains(sign)));
    let Some(text) = text else { return Vec::new() };
    written_paths(&shell::parse(&text, lens).0, &text)
}

/// Returns the files that a command line edits: redirections, `tee`, `sed -i`, and patches piped to
/// `apply_patch`.
fn written_paths(programs: &[Program], text: &str) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for program in programs {
        paths.extend(program.writes.iter().cloned());
        let words = program.args.iter().filter(|arg| !arg.starts_with('-'));
        match program.name.as_str() {
            "tee" => paths.extend(words.cloned()),
            "sed" if edits_in_place(&program.args) => paths.extend(sed_files(&program.args)),
            "apply_patch" => {
                paths.extend(patch::files(text).iter().map(|file| file.path.to_owned()));
            }
            _ => {}
        }
    }
    paths.retain(|path| !is_throwaway(path));
    paths.truncate(PROGRAM_ARGS_MAX);
    paths
}

/// Returns the files of a `sed` call: every argument except options and the script.
fn sed_files(args: &[String]) -> Vec<String> {
    let mut files = Vec::new();
    let mut script_seen = false;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "-e" || arg == "-f" {
            args.next();
            script_seen = true;
        } else if !arg.starts_with('-') {
            files.push(arg.clone());
        }
    }
    files.drain(..usize::from(!script_seen).min(files.len()));
    files
}

fn edits_in_place(args: &[String]) -> bool {
    args.iter().any(|arg| {
        arg.starts_with("--in-place")
            || (arg.starts_with('-') && !arg.starts_with("--") && arg.contains('i'))
    })
}

fn is_throwaway(path: &str) -> bool {
    path.is_empty()
        || ["/dev/", "/tmp/", "/var/tmp/", "$"].iter().any(|start| path.starts_with(start))
}

/// Returns the branch that a successful git command prints or switches to.
fn branch_after<'a>(programs: &'a [Program], output: &'a str) -> Option<&'a str> {
    let mut found = None;
    for program in programs.iter().filter(|program| program.name == "git") {
        let made = program.args.windows(2).find_map(|pair| match pair {
            [option, name] if ["-b", "-B", "-c", "-C", "--create"].contains(&option.as_str()) => {
                Some(name.as_str())
            }
            _ => None,
        });
        let runs = |verb: &str| program.args.iter().any(|arg| arg == verb);
        if runs("checkout") || runs("switch") {
            found = made.or(found);
        }
        let told = output.lines().find_map(|line| told_branch(line, runs("branch")));
        found = told.or(found);
    }
    found.filter(|name| !name.is_empty() && !name.starts_with(['(', '-']))
}

fn told_branch(line: &str, lists_branches: bool) -> Option<&str> {
    if let Some(name) = line.strip_prefix("On branch ") {
        return Some(name.trim());
    }
    if let Some(rest) = line.strip_prefix("Switched to ") {
        let quoted = rest.split_once('\'')?.1;
        return quoted.split_once('\'').map(|(name, _)| name);
    }
    let current = line.strip_prefix("* ").filter(|_| lists_branches)?;
    current.split_whitespace().next()
}
