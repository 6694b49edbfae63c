//! Facts about one program that a tool call would start, `program`: its words, its input, what it runs.

use std::collections::BTreeSet;
use std::rc::Rc;

use regex::{Regex, RegexBuilder};
use rhai::Dynamic;

use super::FactError;
use super::call_facts::{CallFacts, on_call, values};
use super::containment::{Inside, named_places, stays_inside};
use super::context::{ContextPart, Object};
use super::dynamic::{text_argument, texts};
use super::fact_source::FactSource;
use super::params::{COMMANDS, NAMES, OPTION, OPTIONS, PATHS, WORDS};
use super::place_facts::{globs, not_known};
use super::row::{FactRow, field, method};
pub use super::snapshots::MatchedProgram;
use super::text_list::list;
use super::types::{Evidence::Structure, PackName, Subject, TextForm, Type};
use policyd_facts::call::{
    Access, FileAccess, Invocation, ResolvedPath, ServiceKnowledge, ShellText, folder_of,
    is_nowhere,
};
use policyd_facts::glob::word_matches;
use policyd_facts::lens::ValueOptions;
use policyd_facts::pattern::CommandPattern;
use policyd_facts::shell::quote;
use policyd_yaml::rows::Rows;

/// Wrappers that start a program for each item of a list.
const REPEATERS: [&str; 3] = ["xargs", "parallel", "find"];

/// Rows of `program`.
pub(super) const ROWS: &[FactRow] = &[
    field(
        Subject::Invocation,
        "name",
        Type::Text,
        Structure,
        ["Its name without its folder, empty where unknown.", "program.name == \"rm\""],
        |it, _| on_program(it, |it, _, _| Ok(it.name.clone().into())),
    )
    .of_ids(PackName::Program),
    field(
        Subject::Invocation,
        "line",
        Type::Text,
        Structure,
        ["The program with its arguments.", "program.line.contains(\"prod\")"],
        |it, _| on_program(it, |it, _, _| Ok(it.line().into())),
    ),
    field(
        Subject::Invocation,
        "args",
        Type::Texts,
        Structure,
        ["Its arguments.", "\"--yes\" in program.args"],
        |it, _| on_program(it, |it, _, _| Ok(texts(it.args.iter().map(|it| it.text.clone())))),
    ),
    method(
        Subject::Invocation,
        "has",
        OPTIONS,
        (Type::Bool, Structure),
        [
            "Whether one of these options is given, bundled or shortened too.",
            "program.has([\"-f\", \"--force\"])",
        ],
        |it, args| {
            let options = list(args)?;
            let values = values(it);
            // A whole argument that is not known is a file or a name much more often.
            on_program(it, |program, _, _| {
                Ok(options.texts().iter().any(|it| program.has(it, values)).into())
            })
        },
    ),
    method(
        Subject::Invocation,
        "has_only",
        OPTIONS,
        (Type::Bool, Structure),
        [
            "Whether it has no other options than these; each letter of a bundle counts, numbers (`-20`) do not.",
            "program.has_only([\"-s\", \"--silent\"])",
        ],
        |it, args| {
            let (options, values) = (list(args)?, values(it));
            on_program(it, |it, _, _| Ok(it.has_only(options.texts(), values).into()))
        },
    ),
    method(
        Subject::Invocation,
        "value",
        OPTION,
        (Type::Text, Structure),
        ["The value of an option, else empty.", "program.value(\"--namespace\") == \"prod\""],
        |it, args| {
            let option = text_argument(args, 0)?;
            on_program(it, |it, _, _| {
                Ok(it.values(&option).next().map(|it| it.text).unwrap_or_default().into())
            })
        },
    ),
    method(
        Subject::Invocation,
        "values",
        OPTION,
        (Type::Texts, Structure),
        [
            "All values of an option that may be given more than once.",
            "program.values(\"-c\").join(\" \").contains(\"core.pager\")",
        ],
        |it, args| {
            let option = text_argument(args, 0)?;
            on_program(it, |it, _, _| Ok(texts(it.values(&option).map(|it| it.text))))
        },
    ),
    field(
        Subject::Invocation,
        "operands",
        Type::Texts,
        Structure,
        [
            "Arguments that are not options, without the arguments of the command pattern.",
            "program.operands.len() == 0",
        ],
        |it, _| {
            let values = values(it);
            on_program(it, |it, named, _| {
                let operands = it.operands(values).into_iter().skip(named);
                Ok(texts(operands.map(|it| it.text.clone())))
            })
        },
    ),
    method(
        Subject::Invocation,
        "names",
        WORDS,
        (Type::Bool, Structure),
        [
            "Whether one of its operands is one of these; `*` matches any characters.",
            "program.names([\"main\", \"release/*\"])",
        ],
        |it, args| {
            let (wanted, values) = (list(args)?, values(it));
            on_program(it, |it, named, _| {
                let operands: Vec<_> = it.operands(values).into_iter().skip(named).collect();
                let fits = |text: &str| wanted.texts().iter().any(|it| word_matches(it, text));
                if operands.iter().any(|it| fits(&it.text)) {
                    return Ok(true.into());
                }
                let could = |it: &ShellText| {
                    let known = it.known_part();
                    let begins = |glob: &String| {
                        let literal = glob.split('*').next().unwrap_or_default();
                        literal.starts_with(known) || known.starts_with(literal)
                    };
                    !it.is_known() && wanted.texts().iter().any(begins)
                };
                match operands.iter().find(|it| could(it)) {
                    Some(unknown) => Err(not_known(&unknown.text).into()),
                    None => Ok(false.into()),
                }
            })
        },
    ),
    method(
        Subject::Invocation,
        "selects",
        WORDS,
        (Type::Bool, Structure),
        [
            "Whether `pkill`, `pgrep`, or `killall` selects one of these processes, each a command line. Their operand can be a \
             regular expression, and with `-f` it is looked for in the whole line.",
            "program.selects([\"policyd eval --hook stop\"])",
        ],
        |it, args| {
            let (processes, values) = (list(args)?, values(it));
            on_program(it, |it, _, _| match process_selector(it, values)? {
                Some(selector) => Ok(processes.texts().iter().any(|it| selector.fits(it)).into()),
                None => Ok(false.into()),
            })
        },
    ),
    field(
        Subject::Invocation,
        "targets",
        Subject::Places.as_type(),
        Structure,
        ["Its operands as paths.", "program.targets.outside"],
        |it, _| {
            let values = values(it);
            let at = recognized(it)?.at;
            on_program(it, |program, named, seen| {
                let operands = program.operands(values).into_iter().skip(named);
                let own = |it: &&FileAccess| it.does.removes() && it.program == Some(at);
                let files = seen.call.files.iter().filter(own);
                let deleted: BTreeSet<&str> = files.map(|it| it.place.written.as_str()).collect();
                // The empty word is the name of no file.
                let named = operands.filter(|it| !it.text.is_empty());
                let places = named
                    .map(|it| program.place(it, deleted.contains(it.text.as_str()), &seen.around));
                Ok(it.part(ContextPart::Places(places.collect())))
            })
        },
    )
    .from(FactSource::ProgramPaths),
    field(
        Subject::Invocation,
        "stays_inside",
        Type::Bool,
        Structure,
        [
            "Whether its directory, its files, and all paths in its arguments lie in the project or among temporary files.",
            "program.stays_inside",
        ],
        |it, _| {
            let at = recognized(it)?.at;
            on_call(it, |seen| Ok(stays_inside(at, seen, values(it), Inside::OrTemporary)?.into()))
        },
    )
    .from(FactSource::ProgramPaths),
    field(
        Subject::Invocation,
        "stays_in_project",
        Type::Bool,
        Structure,
        [
            "Like `stays_inside`, but only its input and output may be temporary files, and not its configuration.",
            "program.stays_in_project",
        ],
        |it, _| {
            let at = recognized(it)?.at;
            on_call(it, |seen| Ok(stays_inside(at, seen, values(it), Inside::Project)?.into()))
        },
    )
    .from(FactSource::ProgramPaths),
    field(
        Subject::Invocation,
        "in_root",
        Type::Bool,
        Structure,
        [
            "Whether it works in the root of the project, where its repository is. Another directory can contain another repository.",
            "program.in_root",
        ],
        |it, _| {
            let at = recognized(it)?.at;
            on_call(it, |seen| {
                let Some(program) = seen.call.programs.get(at) else { return Ok(false.into()) };
                let folder = match program.name.as_str() {
                    "git" => folder_of(program, &seen.around),
                    _ => program.folder.clone(),
                };
                let folder = folder.ok_or_else(|| not_known("the working directory"))?;
                Ok(seen.around.is_project(&folder).into())
            })
        },
    )
    .from(FactSource::ProgramPaths),
    field(
        Subject::Invocation,
        "named",
        Subject::Places.as_type(),
        Structure,
        [
            "Its directory and the paths in its arguments, as far as known, without the files that `read` and `changed` have.",
            "program.named.any([\"**/.ssh/**\"])",
        ],
        |it, _| {
            let at = recognized(it)?.at;
            on_call(it, |seen| {
                Ok(it.part(ContextPart::Places(named_places(at, seen, values(it)).into())))
            })
        },
    )
    .from(FactSource::ProgramPaths),
    method(
        Subject::Invocation,
        "fed_by",
        COMMANDS,
        (Type::Bool, Structure),
        [
            "Whether the output of such a program reaches it, by command pattern.",
            "program.fed_by([\"curl\", \"wget\"])",
        ],
        |it, args| {
            let (wanted, values) = (list(args)?, values(it));
            let patterns: Vec<_> =
                wanted.texts().iter().map(|it| CommandPattern::parse(it)).collect();
            let at = recognized(it)?.at;
            on_call(it, |seen| {
                let upstream = seen.call.upstream(at);
                let mut programs = upstream.iter().filter_map(|it| seen.call.programs.get(*it));
                let any = programs.any(|it| patterns.iter().any(|pattern| it.is(pattern, values)));
                Ok(any.into())
            })
        },
    ),
    method(
        Subject::Invocation,
        "fed_from",
        PATHS,
        (Type::Bool, Structure),
        [
            "Whether it, or what its input comes from, reads a file of these globs.",
            "program.fed_from([\"**/.ssh/**\"])",
        ],
        |it, args| {
            let wanted = globs(it, args)?;
            let at = recognized(it)?.at;
            on_call(it, |seen| {
                let fed = fed_files(seen, at);
                Ok(fed.iter().any(|it| wanted.fit(it, &seen.around)).into())
            })
        },
    )
    .from(FactSource::ProgramPaths),
    field(
        Subject::Invocation,
        "fed_files",
        Subject::Places.as_type(),
        Structure,
        ["Files that it, or what its input comes from, reads.", "program.fed_files.outside"],
        |it, _| {
            let at = recognized(it)?.at;
            on_call(it, |seen| Ok(it.part(ContextPart::Places(fed_files(seen, at)))))
        },
    )
    .from(FactSource::ProgramPaths),
    field(
        Subject::Invocation,
        "fed_lines",
        Type::Texts,
        Structure,
        [
            "The programs whose output reaches it, each with its arguments, in quotes where a shell needs them; `[s]shd`, \
             a pattern that does not find itself, is `sshd`.",
            "program.fed_lines.join(\"\\n\").matches(\"(?m)^pgrep .*nginx\")",
        ],
        |it, _| {
            let at = recognized(it)?.at;
            on_call(it, |seen| {
                let upstream = seen.call.upstream(at);
                let programs = upstream.iter().filter_map(|it| seen.call.programs.get(*it));
                Ok(texts(programs.map(quoted_line)))
            })
        },
    ),
    method(
        Subject::Invocation,
        "expands",
        WORDS,
        (Type::Bool, Structure),
        [
            "Whether its arguments contain an environment variable with such a name.",
            "program.expands([\"*_TOKEN\"])",
        ],
        |it, args| {
            let globs = list(args)?;
            on_program(it, |it, _, _| {
                let any = it
                    .args
                    .iter()
                    .flat_map(ShellText::variables)
                    .any(|name| globs.texts().iter().any(|glob| word_matches(glob, name)));
                Ok(any.into())
            })
        },
    ),
    field(
        Subject::Invocation,
        "read",
        Subject::Places.as_type(),
        Structure,
        ["Files that it reads.", "program.read.outside"],
        |it, _| accessed(it, |file| file.does == Access::Read),
    )
    .from(FactSource::ProgramPaths),
    field(
        Subject::Invocation,
        "changed",
        Subject::Places.as_type(),
        Structure,
        ["Files that it writes or deletes.", "program.changed.outside"],
        |it, _| accessed(it, |file| file.does != Access::Read),
    )
    .from(FactSource::ProgramPaths),
    field(
        Subject::Invocation,
        "deleted",
        Subject::Places.as_type(),
        Structure,
        ["Files and directories that it deletes.", "program.deleted.outside"],
        |it, _| deleted(it, false),
    )
    .from(FactSource::ProgramPaths),
    field(
        Subject::Invocation,
        "deleted_trees",
        Subject::Places.as_type(),
        Structure,
        [
            "Directories that it deletes with everything below them, as far as `deleted` has them.",
            "program.deleted_trees.whole_project",
        ],
        |it, _| deleted(it, true),
    )
    .from(FactSource::ProgramPaths),
    field(
        Subject::Invocation,
        "moved",
        Subject::Places.as_type(),
        Structure,
        ["Files and directories that it moves to another path.", "program.moved.outside"],
        |it, _| accessed(it, |file| file.does == Access::Move),
    )
    .from(FactSource::ProgramPaths),
    field(
        Subject::Invocation,
        "output_files",
        Subject::Places.as_type(),
        Structure,
        ["Files to which its output is redirected.", "program.output_files.count > 0"],
        |it, _| {
            on_program(it, |program, _, seen| {
                let stored = |it: &&ShellText| !is_nowhere(&it.text);
                let files = program.writes.iter().filter(stored);
                let places = files.map(|it| program.place(it, false, &seen.around));
                Ok(it.part(ContextPart::Places(places.collect())))
            })
        },
    )
    .from(FactSource::ProgramPaths),
    field(
        Subject::Invocation,
        "input",
        Type::Text,
        Structure,
        [
            "What it reads from its standard input, as far as known.",
            "program.input.matches(\"drop table\")",
        ],
        |it, _| on_program(it, |it, _, _| Ok(it.input.text.clone().unwrap_or_default().into())),
    ),
    field(
        Subject::Invocation,
        "said",
        Type::Text,
        Structure,
        [
            "The program with its arguments, and what it reads from its standard input.",
            "program.said.matches(\"drop table\")",
        ],
        |it, _| {
            on_program(it, |it, _, _| {
                let input = it.input.text.clone().unwrap_or_default();
                Ok([it.line(), input].join(" ").into())
            })
        },
    ),
    field(
        Subject::Invocation,
        "is_fed",
        Type::Bool,
        Structure,
        ["Whether anything is piped into it.", "program.is_fed"],
        |it, _| on_program(it, |it, _, _| Ok(it.input.piped.into())),
    ),
    field(
        Subject::Invocation,
        "tree_clean",
        Type::Bool,
        Structure,
        [
            "Whether git reports no change to a tracked file where this git command would run.",
            "program.tree_clean",
        ],
        |it, _| {
            let at = recognized(it)?.at;
            on_program(it, |program, _, seen| {
                if seen.call.is_new_tree(at, &seen.around) {
                    return Ok(true.into());
                }
                let folder = seen.call.tree_folder(at, &seen.around);
                let clean = folder.and_then(|it| seen.around.clean_trees.get(&it).copied());
                let why = || format!("whether `{}` runs in a clean tree is unknown", program.line());
                clean.map(Dynamic::from).ok_or_else(|| why().into())
            })
        },
    )
    .from(FactSource::WorkTree),
    field(
        Subject::Invocation,
        "tree_new",
        Type::Bool,
        Structure,
        [
            "Whether it is a git command in a repository that the line itself creates in a temporary directory.",
            "program.tree_new",
        ],
        |it, _| {
            let at = recognized(it)?.at;
            on_call(it, |seen| Ok(seen.call.is_new_tree(at, &seen.around).into()))
        },
    ),
    field(
        Subject::Invocation,
        "repeated",
        Type::Bool,
        Structure,
        [
            "Whether it may run for each item of a list that the line does not name: in a loop, by `xargs`, `parallel`, or `find`.",
            "program.repeated",
        ],
        |it, _| {
            on_program(it, |it, _, _| {
                let by_wrapper = it.wrappers.iter().any(|it| REPEATERS.contains(&it.as_str()));
                Ok((it.repeated || by_wrapper).into())
            })
        },
    ),
    field(
        Subject::Invocation,
        "branch",
        Type::Text,
        Structure,
        [
            "The branch that is checked out in the project, else empty.",
            "program.branch in session.main_branches",
        ],
        |it, _| {
            on_program(it, |_, _, seen| match &seen.around.branch {
                Some(branch) => Ok(branch.clone().into()),
                None => Err("which branch is checked out is unknown".into()),
            })
        },
    )
    .of_form(TextForm::Branch)
    .from(FactSource::Branch),
    field(
        Subject::Invocation,
        "on_this_machine",
        Type::Bool,
        Structure,
        [
            "Whether it names hosts in addresses, and each of them is this machine. A host that is not known is another one.",
            "program.on_this_machine",
        ],
        |it, _| {
            let values = values(it);
            on_program(it, |it, _, _| Ok(it.is_on_this_machine(values).into()))
        },
    ),
    field(
        Subject::Invocation,
        "sent",
        Type::Texts,
        Structure,
        [
            "Values of its options that are sent, by `file_effects` of the vocabulary: `-d` of `curl`.",
            "program.sent.join(\"\\n\").contains(\"$(\")",
        ],
        |it, _| on_program(it, |it, _, _| Ok(texts(it.sent.iter().map(|it| it.text.clone())))),
    ),
    field(
        Subject::Invocation,
        "request_effects",
        Type::Texts,
        Structure,
        [
            "What its HTTP request changes, by the method, the path, and the mutations of GraphQL, as `tool_effects` of the \
             vocabulary names it: `deletes`. A request that changes something else has `changes`.",
            "program.request_effects.len() > 0",
        ],
        |it, _| {
            let known = service_knowledge(it);
            on_program(it, |it, _, _| Ok(texts(it.request_effects(known))))
        },
    ),
    field(
        Subject::Invocation,
        "service_effects",
        Type::Texts,
        Structure,
        [
            "What it does to something that is not a local file, if it is the command line of a service, by the words of its \
             command up to the first verb, as `tool_effects` of the vocabulary names it: `deletes` for `apps destroy`.",
            "\"deletes\" in program.service_effects",
        ],
        |it, _| {
            let known = service_knowledge(it);
            on_program(it, |it, _, _| Ok(texts(it.service_effects(known))))
        },
    ),
    field(
        Subject::Invocation,
        "statement_effects",
        Type::Texts,
        Structure,
        [
            "What the statements of a client in `database_clients` of the vocabulary do: `drops` (objects), `empties` (all rows or \
             keys are deleted), `changes_all` (all rows), `grants` (rights). A transaction that is rolled back does nothing.",
            "program.statement_effects.any_in([\"drops\", \"empties\"])",
        ],
        |it, _| {
            let known = service_knowledge(it);
            on_program(it, |it, _, _| {
                let effects = it.statement_effects(known).into_iter();
                Ok(texts(effects.map(str::to_owned)))
            })
        },
    ),
    field(
        Subject::Invocation,
        "database",
        Type::Text,
        Structure,
        [
            "The database of such a client, as far as its line tells: `test`, `own` (on this machine, or of one developer), or \
             `unknown`.",
            "program.database == \"test\"",
        ],
        |it, _| {
            let known = service_knowledge(it);
            on_program(it, |it, _, seen| {
                Ok(it.database_target(known, &seen.around).as_str().into())
            })
        },
    ),
    field(
        Subject::Invocation,
        "has_credential",
        Type::Bool,
        Structure,
        [
            "Whether its HTTP request proves who calls: by a header, an option, or the address.",
            "program.has_credential",
        ],
        |it, _| {
            let known = service_knowledge(it);
            on_program(it, |it, _, _| Ok(it.has_credential(known).into()))
        },
    ),
    field(
        Subject::Invocation,
        "asks_help",
        Type::Bool,
        Structure,
        [
            "Whether it only asks for its help or its version: it is given `--help` or `--version` behind the words of the command \
             pattern. Guards look at such a program only to allow it.",
            "program.asks_help",
        ],
        |it, _| {
            let values = values(it);
            on_program(it, |it, named, _| Ok((it.words_before_help(values) == Some(named)).into()))
        },
    ),
    field(
        Subject::Invocation,
        "runs_unknown",
        Type::Bool,
        Structure,
        ["Whether it runs code that cannot be known.", "program.runs_unknown"],
        |it, _| on_program(it, |it, _, _| Ok(it.runs_unknown.into())),
    ),
    field(
        Subject::Invocation,
        "runs_fetched",
        Type::Bool,
        Structure,
        [
            "Whether it runs code that the line gets from another machine, and that cannot be known.",
            "program.runs_fetched",
        ],
        |it, _| {
            on_program(it, |program, _, seen| {
                Ok((program.runs_unknown && seen.call.has_fetcher(&program.fed_by)).into())
            })
        },
    ),
    field(
        Subject::Invocation,
        "called_by_path",
        Type::Bool,
        Structure,
        ["Whether it is called by its path: `./install.sh`.", "program.called_by_path"],
        |it, _| on_program(it, |it, _, _| Ok(it.called.text.contains('/').into())),
    ),
    field(
        Subject::Invocation,
        "code",
        Type::Text,
        Structure,
        ["Code that it is given to run, else empty.", "program.code.contains(\"rmtree\")"],
        |it, _| on_program(it, |it, _, _| Ok(it.code.clone().into())),
    ),
    method(
        Subject::Invocation,
        "wrapped_by",
        NAMES,
        (Type::Bool, Structure),
        ["Whether one of these programs starts it.", "program.wrapped_by([\"sudo\", \"doas\"])"],
        |it, args| {
            let wanted = list(args)?;
            on_program(it, |it, _, _| {
                Ok(it.wrappers.iter().any(|it| wanted.texts().contains(it)).into())
            })
        },
    ),
];

/// What the pack knows about HTTP requests, services, and databases.
fn service_knowledge(it: &Object) -> ServiceKnowledge<'_> {
    let lens = it.context().lens.lens();
    ServiceKnowledge {
        clients: &lens.http_clients,
        databases: &lens.database_clients,
        values: &lens.value_options,
        effects: &lens.tool_effects,
        words: &lens.tool_words,
    }
}

fn recognized(it: &Object) -> Result<MatchedProgram, FactError> {
    it.view.program.ok_or_else(|| "no program was recognized".into())
}

fn on_program(
    it: &Object,
    ask: impl FnOnce(&Invocation, usize, &CallFacts) -> Result<Dynamic, FactError>,
) -> Result<Dynamic, FactError> {
    let MatchedProgram { at, named } = recognized(it)?;
    on_call(it, |seen| match seen.call.programs.get(at) {
        Some(program) => ask(program, named, seen),
        None => Err("no program was recognized".into()),
    })
}

/// Which processes a program finds or ends by their names.
struct ProcessSelector {
    patterns: Vec<Regex>,
    /// Whether it looks at the whole command line.
    whole_line: bool,
}

impl ProcessSelector {
    /// Returns whether a process with this command line is selected.
    fn fits(&self, line: &str) -> bool {
        let name = line.split(' ').next().unwrap_or_default();
        let text = if self.whole_line { line } else { name };
        self.patterns.iter().any(|it| it.is_match(text))
    }
}

/// Reads which processes `pkill`, `pgrep`, or `killall` selects. `None` for another program.
fn process_selector(
    program: &Invocation,
    values: &Rows<ValueOptions>,
) -> Result<Option<ProcessSelector>, FactError> {
    let has = |options: &[&str]| options.iter().any(|it| program.has(it, values));
    let as_regex: fn(&str) -> String = match program.name.as_str() {
        "pkill" | "pgrep" if has(&["-x", "--exact"]) => |it| format!("^({it})$"),
        "killall" if !has(&["-r", "--regexp"]) => |it| format!("^{}$", regex::escape(it)),
        "pkill" | "pgrep" | "killall" => str::to_owned,
        _ => return Ok(None),
    };
    let mut patterns = Vec::new();
    for operand in program.operands(values) {
        let text = operand.all().ok_or_else(|| not_known(&operand.text))?;
        let pattern = as_regex(text);
        match RegexBuilder::new(&pattern).size_limit(SELECTOR_BYTES_MAX).build() {
            Ok(compiled) => patterns.push(compiled),
            Err(regex::Error::CompiledTooBig(_)) => return Err(not_known(text).into()),
            // The program itself refuses an invalid expression.
            Err(_) => {}
        }
    }
    let whole_line = program.name != "killall" && has(&["-f", "--full"]);
    Ok(Some(ProcessSelector { patterns, whole_line }))
}

/// Limit for a compiled pattern of process names.
const SELECTOR_BYTES_MAX: usize = 1024 * 1024;

/// Returns the places of the files that fit.
fn places(seen: &CallFacts, fits: impl Fn(&FileAccess) -> bool) -> Rc<[ResolvedPath]> {
    seen.call.files.iter().filter(|it| fits(it)).map(|it| it.place.clone()).collect()
}

/// The files of a program whose access fits.
fn accessed(it: &Object, fits: impl Fn(&FileAccess) -> bool) -> Result<Dynamic, FactError> {
    let at = recognized(it)?.at;
    on_call(it, |seen| {
        let own = |it: &FileAccess| it.program == Some(at) && fits(it);
        Ok(it.part(ContextPart::Places(places(seen, own))))
    })
}

/// The files that a program deletes; `trees`: only directories with everything below them. A program that is not known might
/// delete what it is given.
fn deleted(it: &Object, trees: bool) -> Result<Dynamic, FactError> {
    let (at, values) = (recognized(it)?.at, values(it));
    on_call(it, |seen| {
        let program = seen.call.programs.get(at).filter(|it| it.name.is_empty());
        let Some(program) = program else {
            let is_own = |it: &FileAccess| it.does == Access::Delete && it.program == Some(at);
            let found = places(seen, |it| is_own(it) && (it.tree || !trees));
            return Ok(it.part(ContextPart::Places(found)));
        };
        let takes_trees = ["-r", "-R", "--recursive"].iter().any(|it| program.has(it, values));
        let operands = program.operands(values).into_iter().filter(|_| takes_trees || !trees);
        let found = operands.map(|it| program.place(it, true, &seen.around));
        Ok(it.part(ContextPart::Places(found.collect())))
    })
}

/// Returns the files that a program, or what its input comes from, reads.
fn fed_files(seen: &CallFacts, at: usize) -> Rc<[ResolvedPath]> {
    let upstream = seen.call.upstream(at);
    let is_near = |it: usize| it == at || upstream.contains(&it);
    places(seen, |it| it.does == Access::Read && it.program.is_some_and(is_near))
}

/// A program with its arguments in quotes. A set of one letter in a pattern is the letter.
fn quoted_line(program: &Invocation) -> String {
    let mut line = program.name.clone();
    for arg in &program.args {
        let mut text = String::new();
        let mut rest = arg.text.as_str();
        while let Some((before, after)) = rest.split_once('[') {
            text.push_str(before);
            let mut chars = after.chars();
            match (chars.next(), chars.next()) {
                (Some(letter), Some(']')) if letter.is_alphanumeric() => {
                    text.push(letter);
                    rest = chars.as_str();
                }
                _ => {
                    text.push('[');
                    rest = after;
                }
            }
        }
        text.push_str(rest);
        line.push(' ');
        line.push_str(&quote(&text));
    }
    line
}
