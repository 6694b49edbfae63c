//! `vocabulary.yaml`: classes of commands, files, and texts, and facts about programs. The vocabularies of all packs
//! are joined.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use policyd_yaml::rows::{NameIndex, RowNames, Rows};

use super::builder::{Builder, text};
use super::field_value::FieldValue;
use super::fields::{GLOBS, REGEX_LIST, REPLACES, TEXTS};
use super::record::{Conversion, REGEXES, RecordType, record};
use super::shared::SharedValue;
use super::tool_vocabulary::{
    DATABASE_CLIENT, DATABASE_CLIENTS, EFFECTS as EFFECTS_OF_TOOLS, HTTP_CLIENT, HTTP_CLIENTS,
    TOOL_EFFECT, TOOL_WORDS, WORDS,
};
use policyd_expr::table::list_name;
use policyd_fact_table::pattern::{StoredPattern, TextPatternSource};
use policyd_facts::call::{
    CodeCall, DryRun, FileEffect, Interpreter, OperandSelector, ProgramDatabase, ShellValue,
};
use policyd_facts::lens::{
    CommandKind, ContentPattern, FileKindRow, MatcherConfig, PathList, TestSign, ToolWords,
    ValueOptions, Wrapper,
};
use policyd_facts::pattern::CommandPattern;
use policyd_yaml::Diagnostic;
use policyd_yaml::deferred::Lazy;
use policyd_yaml::layered_map::LayeredMap;
use policyd_yaml::node::{Node, NodeKind};
use policyd_yaml::shape::Kind;

/// Operands of a program.
const OPERANDS: Kind = Kind::Choice(OperandSelector::NAMES);

/// The vocabularies of all packs, joined.
#[derive(Debug, Clone, Default)]
pub(super) struct Vocabulary {
    pub(super) lens: MatcherConfig,
    pub(super) texts: BTreeMap<String, StoredPattern>,
    pub(super) stop_words: Vec<String>,
    pub(super) main_branches: Vec<String>,
    /// Code hosts by name, each with parts of the host names of its remotes.
    pub(super) forges: Vec<(String, Vec<String>)>,
    /// Facts about programs.
    pub(super) knowledge: ProgramDatabase,
}

impl Vocabulary {
    /// Returns every command pattern.
    pub(super) fn patterns(&self) -> impl Iterator<Item = &str> {
        let MatcherConfig { wrappers, value_options, commands, .. } = &self.lens;
        let ProgramDatabase { interpreters, effects, shell_values, .. } = &self.knowledge;
        let wrappers = wrappers.iter().map(|it| it.command.as_str());
        let options = value_options.iter().map(|it| it.program.as_str());
        let kinds = commands.iter().flat_map(|it| it.programs.iter().chain(&it.except));
        let interpreters = interpreters.iter().map(|it| it.program.as_str());
        let effects = effects.iter().flat_map(|it| it.programs.iter().chain(&it.except));
        let shell_values = shell_values.iter().flat_map(|it| &it.programs);
        let patterns = effects.chain(shell_values).map(CommandPattern::as_str);
        let texts = wrappers.chain(options).chain(kinds.map(String::as_str));
        texts.chain(interpreters).chain(patterns)
    }
}

/// Returns the names of the programs that a vocabulary and guards list. `*` matches any letters.
pub(super) fn listed_names<'n>(
    lens: &'n MatcherConfig,
    knowledge: &'n ProgramDatabase,
    guarded: impl Iterator<Item = &'n CommandPattern>,
) -> NameIndex {
    let wrappers = lens.wrappers.iter().flat_map(RowNames::names);
    let options = lens.value_options.iter().flat_map(RowNames::names);
    let interpreters = knowledge.interpreters.iter().flat_map(RowNames::names);
    let effects = knowledge.effects.iter().flat_map(RowNames::names);
    let values = knowledge.shell_values.iter().flat_map(RowNames::names);
    let vocabulary = wrappers.chain(options).chain(interpreters).chain(effects).chain(values);
    let names = vocabulary.chain(guarded.flat_map(RowNames::names));
    let names: BTreeSet<Cow<'_, str>> = names.collect();
    names.into_iter().map(|it| (it.into_owned(), 0)).collect()
}

impl FieldValue for OperandSelector {
    fn from_node(node: &Node) -> Option<Self> {
        node.text().map(Self::find)
    }

    fn to_json(&self) -> Option<serde_json::Value> {
        None
    }
}

record! {
    const WRAPPER: RecordType<Wrapper> = {
        command [mandatory()]: Kind::Text => command by TRIMMED,
            "The words it starts with: `uv run`.";
        value_options: TEXTS => value_options,
            "Its options that take a value from the next argument.";
        skip: Kind::Int { min: 0, max: 9 } => skip, "Arguments of its own before the program.";
        shell_option: Kind::Text => shell_option, "The option whose value is shell text: `-c`.";
        check_option: Kind::Text => check_option,
            "The option with which it runs nothing: `-n` of `bash`.";
        folder_options: TEXTS => folder_options,
            "Its options whose value is the folder of the program.";
        kept: Kind::Bool => kept, "Whether guards look at it as a program, too: `ssh`.";
        plain_options: TEXTS => plain_options by PLAIN,
            "Its options with which it changes neither what the program does nor its rights, such as `-s` of `timeout`. \
             Without this key, it may always change that.";
        gets_packages: Kind::Bool => gets_packages,
            "Whether it can get the program from a registry and run it at once: `npx`. `@packages` in `commands` of a guard \
             names such programs.";
    }
}

/// A list that may be empty or absent.
const PLAIN: Conversion<Option<Vec<String>>> =
    Conversion::reading(|node, _| FieldValue::from_node(node).map(Some));

/// A list that few calls need.
const DEFERRED_TEXTS: Conversion<Lazy<Vec<String>>> =
    Conversion::reading(|node, _| Some(Vec::from_node(node)?.into()));

/// Text without spaces around it.
const TRIMMED: Conversion<String> =
    Conversion::reading(|node, _| Some(node.text()?.trim().to_owned()));

record! {
    const EFFECT: RecordType<FileEffect> = {
        programs [mandatory()]: TEXTS => programs, "Command patterns.";
        except: TEXTS => except, "Command patterns that are left out.";
        read: OPERANDS => read, "Operands that they read.";
        write: OPERANDS => write, "Operands that they write.";
        delete: OPERANDS => delete, "Operands that they delete.";
        move: OPERANDS => moves, "Operands that they move to another path.";
        recursive: TEXTS => recursive,
            "Command patterns of those that delete a folder with everything below it: `rm -r`.";
        saves: OPERANDS => saves,
            "Operands that are addresses, what is there saved under the last step of each.";
        read_options: TEXTS => read_options, "Options whose value is a file that they read.";
        run_options: TEXTS => run_options,
            "Options whose value is a file of statements that they run, as they run those of their standard input.";
        write_options: TEXTS => write_options, "Options whose value is a file that they write.";
        folder_options: TEXTS => folder_options,
            "Options whose value is a folder that they write files into.";
        trees: OPERANDS => trees,
            "Operands that are folders written with everything below them.";
        tree_options: TEXTS => tree_options, "Options whose value is such a folder.";
        marks: TEXTS => marks,
            "Beginnings of the operands that name files, such as `OPEN:`; where absent, the whole operand is the name.";
        text_unless: TEXTS => text_unless by PLAIN,
            "Options without which the first operand is a text, such as the script of `sed`; where absent, it is always a file.";
        remote: Kind::Bool => remote,
            "Whether operands can name files of another machine: `host:/path`.";
        fetches: Kind::Bool => fetches,
            "Whether what they write comes from another machine, so that code in it is unknown: `curl`.";
        clones: Kind::Bool => clones,
            "Whether the first operand is an address, and the second one a directory that they fill from there: `git clone`. \
             Without a second operand, the directory is the last step of the address, without `.git`.";
        marked_options: TEXTS => marked_options,
            "Options whose value is a text, or a file that they read behind `@`: `-d` of `curl`.";
        sent_options: TEXTS => sent_options,
            "Further options whose value they send: `--data-raw` of `curl`.";
        lists: OPERANDS => lists,
            "Operands that are folders whose files they print; without such an operand, it is the working folder.";
        unpacks: Kind::Bool => unpacks,
            "Whether they write files of any names below a folder of `tree_options`, or below their working folder.";
    }

    const DRY_RUN: RecordType<DryRun> = {
        programs [mandatory()]: TEXTS => programs, "Command patterns.";
        options [mandatory()]: TEXTS => options, "The options: `--dry-run`.";
        at_end: Kind::Bool => at_end,
            "Whether an option counts only as the last argument, and not behind another option, whose value it can be: `pr merge 12 --help`. It can be a word: `help`.";
    }

    const INTERPRETER: RecordType<Interpreter> = {
        program [mandatory()]: Kind::Text => program, "Its name; `*` matches any characters.";
        code: TEXTS => code, "Options whose value is code.";
        other: TEXTS => other, "Options whose value is not code.";
        first: Kind::Bool => first, "Whether its first operand is code.";
    }

    const CODE_CALL: RecordType<CodeCall> = {
        call [mandatory()]: Kind::Text => call, "Its name before the parenthesis: `os.system`.";
        like: TEXTS => like,
            "The words it is like, its arguments after them; where absent, its argument is shell \
             text or a list of words.";
        only: TEXTS => only, "Programs in whose code it is looked for; all, where absent.";
        code: Kind::Bool => code, "Whether its argument is code of the same language: `eval`.";
    }

    const SHELL_VALUE: RecordType<ShellValue> = {
        programs [mandatory()]: TEXTS => programs, "Command patterns.";
        options: TEXTS => options, "Options whose value it is; where absent, the operands are it.";
        after: TEXTS => after, "Text before it; a value without this text is not shell code.";
    }

    const COMMAND_KIND: RecordType<CommandKind> = {
        programs: TEXTS => programs,
            "Command patterns: the program's name without its folder, then the words that follow \
             it, options left out (`cargo test`, `npm run test*`, `check.sh`); a word with `-` \
             must be among the options (`cargo fmt --check`). `*` matches any characters.";
        except: TEXTS => except, "Command patterns that are not of this kind.";
        except_kinds: TEXTS => except_kinds,
            "Kinds whose commands are not of this kind, whatever else they are: `dry_run`.";
        repaired_by: TEXTS => repaired_by,
            "Kinds whose successful commands repair what a command of this kind reported, if one of \
             their patterns matches both: `black` after `black --check`.";
        tasks: TEXTS => tasks,
            "Words in the names of tasks and scripts of this kind: `test` for `make unit-test`, \
             `bin/test`, and `mise run test`. A command of the kind behind another program \
             (`docker run image pytest`) is of the kind, too.";
        except_tasks: TEXTS => except_tasks,
            "Words in the names of tasks and scripts that are not of this kind: `lint`.";
        no_evidence: Kind::Bool => no_evidence,
            "Whether its commands are never evidence for another kind, whatever they print: \
             `git log`.";
        by_output: Kind::Bool => by_output,
            "Whether a command is of this kind if its output matches `passed` or `failed`.";
        unable: REGEX_LIST => unable by REGEXES,
            "Output lines that mean that it could not run, which is neither.";
        failures: REGEX_LIST => failures by REGEXES,
            "Output lines that name one failure each, such as a failed test.";
        failed: REGEX_LIST => failed by REGEXES,
            "Output lines that mean failure, whatever the exit status.";
        failed_if_hidden: REGEX_LIST => failed_if_hidden by REGEXES,
            "Output lines that mean failure where the status is hidden.";
        empty: REGEX_LIST => empty by REGEXES,
            "Output lines that say that nothing ran, which is neither.";
        passed: REGEX_LIST => passed by REGEXES,
            "Output lines that mean success, where the status is hidden.";
        passed_unless_empty: REGEX_LIST => passed_unless_empty by REGEXES,
            "Output lines that mean success unless a line of `empty` is there: `OK` without a \
             count.";
        use REPLACES;
    }

    const FILE_KIND: RecordType<FileKindRow> = {
        globs: GLOBS => globs, "Path globs.";
        except: GLOBS => except, "Path globs that are not of this kind.";
        except_generated: Kind::Bool => except_generated,
            "Whether generated and vendored files (by `.gitattributes`, or by their first lines), and files of which only \
             comments changed, are not of this kind.";
        shows_tests: Kind::Bool => shows_tests,
            "Whether a project with such a file has tests: `project.has_tests`.";
        use REPLACES;
    }

    const CONTENT: RecordType<ContentPattern> = {
        regexes: REGEX_LIST => regexes by REGEXES, "Tried on each line of edited text.";
        files: TEXTS => files, "File kinds it is looked for in; all files, where absent.";
        except_files: TEXTS => except_files, "File kinds it is not looked for in.";
        unless: REGEX_LIST => unless by REGEXES, "Found anywhere in the same text, they excuse it.";
        unless_inside: REGEX_LIST => unless_inside by REGEXES,
            "Found in a line, they excuse it there, and in the deeper indented lines that follow: `trait \\w+`.";
        use REPLACES;
    }

    const TEXT_PATTERN: RecordType<TextPatternSource> = {
        phrases: TEXTS => phrases, "Whole words, any case.";
        regexes: REGEX_LIST => regexes by REGEXES, "Tried on each sentence, case not counted.";
        unless: REGEX_LIST => unless by REGEXES, "Found in the same sentence, they excuse it.";
        use REPLACES;
    }

    pub(super) const VOCABULARY: RecordType<Vocabulary> = {
        shell_tools: TEXTS => lens.shell_tools, "Tools that run a shell command.";
        edit_tools: TEXTS => lens.edit_tools, "Tools that edit files.";
        agent_tools: TEXTS => lens.agent_tools, "Tools that start a subagent.";
        task_runners: TEXTS => lens.task_runners,
            "Programs whose operands are names of tasks: `make`.";
        script_runners: TEXTS => lens.script_runners,
            "Programs whose first operand is a script: `python*`.";
        wrappers: WRAPPER.list => lens.wrappers by WRAPPERS, "Programs that run another program.";
        value_options: Kind::Map(&TEXTS) => lens.value_options by VALUE_OPTIONS,
            "Options that take a value, per program, or per program and subcommand (`git \
             commit`): `-m` takes the next word or what is glued to it, `-S*` only what is glued \
             to it.";
        plain_variables: TEXTS => lens.plain_variables by DEFERRED_TEXTS,
            "Environment variables that do not change which files and programs a program uses: `NODE_ENV`, `PAGER=cat`. `*` \
             matches any characters.";
        tool_folders: GLOBS => lens.tool_folders by DEFERRED_TEXTS,
            "Programs that a project installs for itself, as globs of paths: `**/node_modules/.bin/*`.";
        read_tools: TEXTS => knowledge.read_tools, "Tools that read files.";
        tool_words: TOOL_WORDS.map => lens.tool_words by WORDS,
            "Words in the names of tools that no list names, and keys of their inputs. Words are in lower case. Keys contain \
             letters and digits only: `filepath` for `file_path`.";
        tool_effects: TOOL_EFFECT.list => lens.tool_effects by EFFECTS_OF_TOOLS,
            "What such tools do to something that is not a local file. All conditions of a row must be true. The rows also \
             apply to mutations of GraphQL and to paths of requests.";
        http_clients: HTTP_CLIENT.list => lens.http_clients by HTTP_CLIENTS,
            "Programs that send HTTP requests.";
        database_clients: DATABASE_CLIENT.list => lens.database_clients by DATABASE_CLIENTS,
            "Programs that run statements of a database. `@queries` in `commands` of a guard names them all.";
        prose_programs: TEXTS => knowledge.prose_programs,
            "Programs whose arguments are names or prose, and not commands: `git`, `grep`, `pytest`.";
        dry_runs: DRY_RUN.list => knowledge.dry_runs by DRY_RUNS,
            "Programs that only print what they would do, or how they are used, if they are given one of some options. They \
             have no effects then, and guards do not look at them.";
        file_effects: EFFECT.list => knowledge.effects by EFFECTS,
            "What programs do with the files they are given.";
        interpreters: INTERPRETER.list => knowledge.interpreters by INTERPRETERS,
            "Programs that run code which is not shell text.";
        code_calls: CODE_CALL.list => knowledge.calls by CODE_CALLS,
            "Calls in code that start programs or touch files.";
        shell_values: SHELL_VALUE.list => knowledge.shell_values by SHELL_VALUES,
            "Options and operands of programs that are shell text.";
        commands: Kind::Map(&COMMAND_KIND.map) => lens.commands by COMMANDS, "Kinds of commands.";
        files: Kind::Map(&FILE_KIND.map) => lens.files by FILES, "Kinds of files.";
        paths: Kind::Map(&GLOBS) => lens.paths by PATH_LISTS,
            "Lists of globs that rules name as `@name` in a list of globs: `action.changes([\"@key_files\"])`. A glob \
             behind `!` excludes paths that others match.";
        contents: Kind::Map(&CONTENT.map) => lens.contents by CONTENTS, "Patterns in edited text.";
        texts: Kind::Map(&TEXT_PATTERN.map) => texts by TEXT_PATTERNS, "Patterns in prose.";
        test_signs: Kind::Map(&Kind::Text) => lens.test_signs by TEST_SIGNS,
            "Globs of files that show that the project has tests, each with a regex that their \
             text must match.";
        package_files: TEXTS => lens.package_files,
            "Names of files that describe a package: `package.json`.";
        main_branches: TEXTS => main_branches, "Shared branches, such as `main`.";
        forges: Kind::Map(&TEXTS) => forges by NAMED_TEXTS,
            "What the host of a remote on each forge contains, in small letters.";
        stop_words: TEXTS => stop_words, "Words that are never significant in a question.";
    }
}

/// Returns the entries of a map in the order of their names, each with the value of its map.
fn named<T: Default>(
    map: &Node,
    record: &RecordType<T>,
    builder: &mut Builder<'_>,
) -> impl Iterator<Item = (String, T)> {
    let entries = map.entries().unwrap_or_default().iter();
    let values: BTreeMap<String, T> = entries
        .map(|(name, node)| {
            (text(Some(name)), record.read(&LayeredMap::from_iter([node]), builder))
        })
        .collect();
    values.into_iter()
}

/// A map of lists of texts, in the order of its keys.
const NAMED_TEXTS: Conversion<Vec<(String, Vec<String>)>> = Conversion::reading(|map, _| {
    let entries = map.entries()?.iter();
    let lists: BTreeMap<String, Vec<String>> = entries
        .map(|(name, list)| (text(Some(name)), FieldValue::from_node(list).unwrap_or_default()))
        .collect();
    Some(lists.into_iter().collect())
});

const PATH_LISTS: Conversion<Lazy<Vec<PathList>>> = Conversion::reading(|map, builder| {
    let lists = (NAMED_TEXTS.read)(map, builder)?.into_iter();
    Some(
        lists
            .map(|(name, globs)| PathList { name, globs: globs.into() })
            .collect::<Vec<_>>()
            .into(),
    )
});

const WRAPPERS: Conversion<Lazy<Rows<Wrapper>>> =
    Conversion::reading(|list, builder| Some((WRAPPER.items.read)(list, builder)?.into()));

const DRY_RUNS: Conversion<Lazy<Rows<DryRun>>> =
    Conversion::reading(|list, builder| Some((DRY_RUN.items.read)(list, builder)?.into()));

const EFFECTS: Conversion<Lazy<Rows<FileEffect>>> =
    Conversion::reading(|list, builder| Some((EFFECT.items.read)(list, builder)?.into()));

const INTERPRETERS: Conversion<Lazy<Rows<Interpreter>>> =
    Conversion::reading(|list, builder| Some((INTERPRETER.items.read)(list, builder)?.into()));

const CODE_CALLS: Conversion<Lazy<Vec<CodeCall>>> =
    Conversion::reading(|list, builder| Some((CODE_CALL.items.read)(list, builder)?.into()));

const SHELL_VALUES: Conversion<Lazy<Rows<ShellValue>>> =
    Conversion::reading(|list, builder| Some((SHELL_VALUE.items.read)(list, builder)?.into()));

const VALUE_OPTIONS: Conversion<Lazy<Rows<ValueOptions>>> = Conversion::reading(|map, builder| {
    let lists = (NAMED_TEXTS.read)(map, builder)?.into_iter();
    let rows = lists.map(|(program, options)| ValueOptions { program, options });
    Some(rows.collect::<Vec<_>>().into())
});

const COMMANDS: Conversion<Lazy<Vec<CommandKind>>> = Conversion::reading(|map, builder| {
    let kinds = named(map, &COMMAND_KIND, builder);
    Some(kinds.map(|(name, kind)| CommandKind { name, ..kind }).collect::<Vec<_>>().into())
});

const TEST_SIGNS: Conversion<Lazy<Vec<TestSign>>> = Conversion::reading(|map, _| {
    let signs = map.entries()?.iter();
    let signs =
        signs.map(|(files, regex)| TestSign { files: text(Some(files)), regex: text(Some(regex)) });
    Some(signs.collect::<Vec<_>>().into())
});

const FILES: Conversion<Lazy<Vec<FileKindRow>>> = Conversion::reading(|map, builder| {
    let kinds = named(map, &FILE_KIND, builder);
    Some(kinds.map(|(name, kind)| FileKindRow { name, ..kind }).collect::<Vec<_>>().into())
});

const CONTENTS: Conversion<Lazy<Vec<ContentPattern>>> = Conversion::reading(|map, builder| {
    let patterns = named(map, &CONTENT, builder);
    let patterns = patterns.map(|(name, pattern)| ContentPattern { name, ..pattern });
    Some(patterns.collect::<Vec<_>>().into())
});

const TEXT_PATTERNS: Conversion<BTreeMap<String, StoredPattern>> =
    Conversion::reading(|map, builder| {
        let patterns = named(map, &TEXT_PATTERN, builder);
        Some(patterns.map(|(name, pattern)| (name, pattern.into())).collect())
    });

/// Joins values, the topmost first: lists are concatenated, and maps are joined key by key. An entry with
/// `override: true` hides the entries of the same key below it. Of other values, the topmost remains.
fn joined(values: &[&Node]) -> Option<Node> {
    let stated: Vec<&Node> = values.iter().copied().filter(|value| !value.is_null()).collect();
    let values = if stated.is_empty() { values } else { stated.as_slice() };
    let (top, below) = values.split_first()?;
    if below.is_empty() {
        return Some(Node::clone(top));
    }
    let kind = match &top.kind {
        NodeKind::List(_) => {
            let items = values.iter().filter_map(|value| value.items()).flatten();
            NodeKind::List(items.cloned().collect())
        }
        NodeKind::Map(_) => {
            let mut layers: BTreeMap<&str, (&Node, Vec<&Node>)> = BTreeMap::new();
            for (key, value) in values.iter().filter_map(|value| value.entries()).flatten() {
                let Some(name) = key.text() else { continue };
                let (_, values) = layers.entry(name).or_insert_with(|| (key, Vec::new()));
                if !values.last().is_some_and(|above| hides_entries_below(above)) {
                    values.push(value);
                }
            }
            let entries = layers.into_values();
            NodeKind::Map(
                entries.filter_map(|(key, values)| Some((key.clone(), joined(&values)?))).collect(),
            )
        }
        NodeKind::Scalar(_) | NodeKind::Invalid => top.kind.clone(),
    };
    Some(Node { span: top.span.clone(), kind })
}

fn hides_entries_below(entry: &Node) -> bool {
    entry.get("override").and_then(Node::bool) == Some(true)
}

impl Builder<'_> {
    /// Joins the vocabularies of all packs, the topmost first.
    pub(super) fn vocabulary(&mut self, files: &[SharedValue<Node>]) -> Vocabulary {
        let files: Vec<&Node> = files.iter().map(|file| &**file).collect();
        let joined = joined(&files);
        let mut vocabulary = VOCABULARY.read(&joined.iter().collect(), self);
        if joined.as_ref().is_none_or(|it| it.get("tool_words").is_none()) {
            vocabulary.lens.tool_words = ToolWords::of_no_vocabulary().into();
        }
        self.report_unknown_file_kinds(&files, &vocabulary.lens);
        self.report_nested_lists(&files);
        vocabulary
    }

    /// Reports lists of paths that name another list. Only rules can join lists.
    fn report_nested_lists(&mut self, files: &[&Node]) {
        let lists = files.iter().filter_map(|file| file.get("paths")?.entries()).flatten();
        for item in lists.filter_map(|(_, list)| list.items()).flatten() {
            let glob = item.text().unwrap_or_default();
            if list_name(glob).is_some() {
                let message = format!("`{glob}` names a list, and a list of paths contains globs");
                let found = Diagnostic::error("wrong-type", item.span.clone(), message);
                let help = "write the globs here, or name both lists in the rule";
                self.diagnostics.push(found.with_help(help));
            }
        }
    }

    /// Reports file classes of content patterns that do not exist.
    fn report_unknown_file_kinds(&mut self, files: &[&Node], lens: &MatcherConfig) {
        let known: Vec<&str> = lens.files.iter().map(|kind| kind.name.as_str()).collect();
        let entries = files.iter().filter_map(|file| file.get("contents")?.entries()).flatten();
        let named = entries.flat_map(|(_, entry)| {
            ["files", "except_files"].into_iter().filter_map(|key| entry.get(key)?.items())
        });
        for node in named.flatten() {
            if !known.contains(&node.text().unwrap_or_default()) {
                self.unknown("unknown-name", "file kind", node, &known);
            }
        }
    }
}
