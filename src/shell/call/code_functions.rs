//! Functions and methods of other languages that make texts and paths of their arguments.
//!
//! Contains: the functions by name, and what they return. Data of the languages, not of a pack: what a program does to
//! files is in the vocabulary.
//! Does not contain: how calls are read (`code_paths`).

use super::code_parts::{CodeValue, PartText};
use super::code_paths::{PathReader, ReadArgument, ReadCall, formatted};

/// Characters that end a mark of a format: `%s`, `%5d`.
pub(super) const FORMAT_MARKS: &str = "sdifrxXogce%";
/// Name of a file that the code itself creates. It is below the directory for temporary files.
const TEMPORARY_NAME: &str = "mktemp.XXXXXX";

/// What a function returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathFunction {
    /// The arguments as one path. An absolute argument replaces those before it.
    Join,
    /// The arguments as one path. An absolute argument does not replace others.
    JoinAll,
    /// Its first argument.
    Same,
    /// Its first argument, below the second.
    Below,
    /// The directory of its argument.
    Parent,
    /// The working directory.
    Here,
    /// The home directory.
    Home,
    /// The directory for temporary files.
    Temporary,
    /// A new path there.
    NewTemporary,
    /// A new path that begins with its argument.
    NewNamed,
    /// The files that match a pattern.
    Matches,
    /// The paths below a directory.
    Tree,
    /// The names of the files in a directory.
    Names,
    /// A variable of the environment, or its default.
    Variable,
    /// Its first argument, with the variables of the environment in it.
    Variables,
    /// The second and later arguments, with the first between them.
    TextJoin,
    /// Its first argument with the others in it.
    Format,
}

/// Functions with their modules.
const FUNCTIONS: [(&str, PathFunction); 104] = [
    ("os.path.join", PathFunction::Join),
    ("posixpath.join", PathFunction::Join),
    ("Path", PathFunction::Join),
    ("PurePath", PathFunction::Join),
    ("pathlib.Path", PathFunction::Join),
    ("pathlib.PurePath", PathFunction::Join),
    ("pathlib.PosixPath", PathFunction::Join),
    ("Pathname", PathFunction::Join),
    ("Pathname.new", PathFunction::Join),
    ("path.resolve", PathFunction::Join),
    ("path.posix.resolve", PathFunction::Join),
    ("path.join", PathFunction::JoinAll),
    ("path.posix.join", PathFunction::JoinAll),
    ("File.join", PathFunction::JoinAll),
    ("File.Spec.catfile", PathFunction::JoinAll),
    ("File.Spec.catdir", PathFunction::JoinAll),
    ("catfile", PathFunction::JoinAll),
    ("catdir", PathFunction::JoinAll),
    ("str", PathFunction::Same),
    ("String", PathFunction::Same),
    ("os.fspath", PathFunction::Same),
    ("os.path.expanduser", PathFunction::Same),
    ("os.path.expandvars", PathFunction::Variables),
    ("os.path.abspath", PathFunction::Same),
    ("os.path.realpath", PathFunction::Same),
    ("os.path.normpath", PathFunction::Same),
    ("path.normalize", PathFunction::Same),
    ("fs.realpathSync", PathFunction::Same),
    ("File.realpath", PathFunction::Same),
    ("File.absolute_path", PathFunction::Same),
    ("Cwd.abs_path", PathFunction::Same),
    ("Cwd.realpath", PathFunction::Same),
    ("abs_path", PathFunction::Same),
    ("realpath", PathFunction::Same),
    ("shlex.quote", PathFunction::Same),
    ("Shellwords.escape", PathFunction::Same),
    ("fileURLToPath", PathFunction::Same),
    ("url.fileURLToPath", PathFunction::Same),
    ("list", PathFunction::Same),
    ("sorted", PathFunction::Same),
    ("set", PathFunction::Same),
    ("tuple", PathFunction::Same),
    ("iter", PathFunction::Same),
    ("reversed", PathFunction::Same),
    ("Array.from", PathFunction::Same),
    ("sort", PathFunction::Same),
    ("reverse", PathFunction::Same),
    ("File.expand_path", PathFunction::Below),
    ("os.path.dirname", PathFunction::Parent),
    ("path.dirname", PathFunction::Parent),
    ("File.dirname", PathFunction::Parent),
    ("dirname", PathFunction::Parent),
    ("os.getcwd", PathFunction::Here),
    ("Path.cwd", PathFunction::Here),
    ("pathlib.Path.cwd", PathFunction::Here),
    ("process.cwd", PathFunction::Here),
    ("Deno.cwd", PathFunction::Here),
    ("Dir.pwd", PathFunction::Here),
    ("Dir.getwd", PathFunction::Here),
    ("Cwd.getcwd", PathFunction::Here),
    ("getcwd", PathFunction::Here),
    ("cwd", PathFunction::Here),
    ("Path.home", PathFunction::Home),
    ("pathlib.Path.home", PathFunction::Home),
    ("os.homedir", PathFunction::Home),
    ("Dir.home", PathFunction::Home),
    ("File.HomeDir.my_home", PathFunction::Home),
    ("tempfile.gettempdir", PathFunction::Temporary),
    ("os.tmpdir", PathFunction::Temporary),
    ("tmpdir", PathFunction::Temporary),
    ("Dir.tmpdir", PathFunction::Temporary),
    ("File.Spec.tmpdir", PathFunction::Temporary),
    ("sys_get_temp_dir", PathFunction::Temporary),
    ("tempfile.mkdtemp", PathFunction::NewTemporary),
    ("tempfile.mkstemp", PathFunction::NewTemporary),
    ("tempfile.mktemp", PathFunction::NewTemporary),
    ("tempfile.TemporaryDirectory", PathFunction::NewTemporary),
    ("Dir.mktmpdir", PathFunction::NewTemporary),
    ("File.Temp.tempdir", PathFunction::NewTemporary),
    ("File.Temp.tempfile", PathFunction::NewTemporary),
    ("tempdir", PathFunction::NewTemporary),
    ("tempfile", PathFunction::NewTemporary),
    ("tempnam", PathFunction::NewTemporary),
    ("fs.mkdtempSync", PathFunction::NewNamed),
    ("fs.mkdtemp", PathFunction::NewNamed),
    ("promises.mkdtemp", PathFunction::NewNamed),
    ("mkdtempSync", PathFunction::NewNamed),
    ("mkdtemp", PathFunction::NewNamed),
    ("glob.glob", PathFunction::Matches),
    ("glob.iglob", PathFunction::Matches),
    ("glob.sync", PathFunction::Matches),
    ("globSync", PathFunction::Matches),
    ("glob", PathFunction::Matches),
    ("Dir.glob", PathFunction::Matches),
    ("os.walk", PathFunction::Tree),
    ("os.scandir", PathFunction::Tree),
    ("os.listdir", PathFunction::Names),
    ("Dir.each_child", PathFunction::Names),
    ("os.environ.get", PathFunction::Variable),
    ("os.getenv", PathFunction::Variable),
    ("getenv", PathFunction::Variable),
    ("ENV.fetch", PathFunction::Variable),
    ("Deno.env.get", PathFunction::Variable),
    ("sprintf", PathFunction::Format),
];

/// Functions whose names mean something else in other languages, each with the language.
const JOINS_TEXTS: [&str; 2] = ["join", "implode"];

/// Methods that return their object, or a list of its items.
const SAME: [&str; 34] = [
    "expanduser",
    "resolve",
    "absolute",
    "as_posix",
    "strip",
    "rstrip",
    "trim",
    "trimEnd",
    "toString",
    "to_s",
    "to_str",
    "to_path",
    "realpath",
    "cleanpath",
    "expand_path",
    "path",
    "decode",
    "encode",
    "copy",
    "each",
    "each_with_index",
    "forEach",
    "filter",
    "select",
    "reject",
    "grep",
    "sort",
    "sort_by",
    "reverse",
    "to_a",
    "flatten",
    "uniq",
    "compact",
    "values",
];

/// Returns what the function with this name does.
pub(super) fn function_named(name: &str) -> Option<PathFunction> {
    if JOINS_TEXTS.contains(&name) {
        return Some(PathFunction::TextJoin);
    }
    FUNCTIONS.iter().find(|it| it.0 == name).map(|it| it.1)
}

impl PathReader<'_> {
    /// Returns the value of a name that the language defines. `None` if it defines none.
    pub(super) fn constant(&self, name: &str) -> Option<CodeValue> {
        let file = || CodeValue::known(self.around.file.as_str());
        match name {
            "__file__"
            | "__filename"
            | "__FILE__"
            | "$0"
            | "import.meta.filename"
            | "import.meta.url" => Some(file()),
            "os.sep" | "os.path.sep" | "path.sep" | "File.SEPARATOR" => Some(CodeValue::known("/")),
            "os.curdir" => Some(CodeValue::known(".")),
            "os.pardir" => Some(CodeValue::known("..")),
            "__dirname" | "__dir__" | "__DIR__" | "import.meta.dirname" => {
                Some(file().map(PartText::parent))
            }
            _ => None,
        }
    }

    /// Returns what a function returns. `unknown` if the function is not known.
    pub(super) fn call(&self, name: &str, arguments: &[ReadArgument]) -> CodeValue {
        let is_opaque = arguments.iter().any(|it| !it.value.is_unknown());
        let unknown = || CodeValue { is_opaque, ..CodeValue::unknown() };
        let Some(function) = function_named(name) else { return unknown() };
        let given: Vec<&ReadArgument> = arguments.iter().filter(|it| it.name.is_none()).collect();
        let first = given.first().map(|it| it.value.clone());
        let temporary = || CodeValue::known(self.around.temporary.as_str());
        match function {
            PathFunction::Join => {
                joined(first.unwrap_or_else(|| CodeValue::known(".")), given.get(1..), true)
            }
            PathFunction::JoinAll => {
                joined(first.unwrap_or_else(|| CodeValue::known(".")), given.get(1..), false)
            }
            PathFunction::Same => first.unwrap_or_else(unknown),
            PathFunction::Below => match (first, given.get(1)) {
                (Some(path), Some(folder)) => folder.value.clone().join(&path, true),
                (path, _) => path.unwrap_or_else(unknown),
            },
            PathFunction::Parent => first.unwrap_or_else(unknown).map(PartText::parent),
            PathFunction::Here => path(CodeValue::known(".")),
            PathFunction::Home => path(CodeValue::known("~")),
            PathFunction::Temporary => path(temporary()),
            PathFunction::NewTemporary => {
                let named =
                    |name: &str| arguments.iter().find(|it| it.name.as_deref() == Some(name));
                let folder = named("dir").map_or_else(temporary, |it| it.value.clone());
                let made = folder.join(&CodeValue::known(TEMPORARY_NAME), true);
                CodeValue { is_list: name.ends_with("mkstemp"), ..made }
            }
            PathFunction::NewNamed => first.unwrap_or_else(temporary).map(PartText::open),
            PathFunction::Matches => {
                list(first.unwrap_or_else(unknown).map(PartText::into_pattern))
            }
            PathFunction::Tree => {
                let folder = first.unwrap_or_else(|| CodeValue::known("."));
                list(folder.join(&CodeValue::unknown(), true))
            }
            PathFunction::Names => list(CodeValue::unknown()),
            PathFunction::Variable => {
                let name = first.as_ref().map(|it| it.texts.as_slice());
                let mut value = match name {
                    Some([one]) => {
                        one.all().map_or_else(CodeValue::unknown, |it| self.variable(it))
                    }
                    _ => CodeValue::unknown(),
                };
                given.get(1).into_iter().for_each(|it| value.add(it.value.clone()));
                value
            }
            PathFunction::Variables => {
                let text = first.as_ref().and_then(|it| it.texts.first()?.all().map(str::to_owned));
                text.map_or_else(unknown, |it| self.with_variables(&it))
            }
            PathFunction::TextJoin => {
                text_joined(first.unwrap_or_else(unknown), given.get(1..).unwrap_or_default())
            }
            PathFunction::Format => {
                let values: Vec<CodeValue> =
                    given.iter().skip(1).map(|it| it.value.clone()).collect();
                formatted(&first.unwrap_or_else(unknown), &values)
            }
        }
    }

    /// Returns a text with the values of the variables in it: `$HOME/a`.
    fn with_variables(&self, text: &str) -> CodeValue {
        let mut pieces = text.split('$');
        let mut value = CodeValue::known(pieces.next().unwrap_or_default());
        for piece in pieces {
            let name = piece.trim_start_matches('{');
            let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(name.len());
            let rest = name.get(end..).unwrap_or_default().trim_start_matches('}');
            value = value.append(&self.variable(name.get(..end).unwrap_or_default()));
            value = value.append(&CodeValue::known(rest));
        }
        value
    }

    /// Returns what a method of a value returns, or a member of it.
    pub(super) fn method_value(&self, value: CodeValue, call: &ReadCall<'_>) -> CodeValue {
        let given: Vec<&ReadArgument> =
            call.arguments.iter().filter(|it| it.name.is_none()).collect();
        let first = given.first().map(|it| it.value.clone());
        let is_opaque = !value.is_unknown() || given.iter().any(|it| !it.value.is_unknown());
        let unknown = || CodeValue { is_opaque, ..CodeValue::unknown() };
        match call.name {
            "joinpath" => joined(value, Some(&given), true),
            "join" if value.is_path() => joined(value, Some(&given), true),
            "join" => match first {
                // `"/".join([a, b])`
                Some(list) if !value.is_list => text_joined(
                    value,
                    &[&ReadArgument { name: None, is_spread: false, value: list }],
                ),
                // `[a, b].join("/")`
                between => {
                    let between = between.unwrap_or_else(|| CodeValue::known(""));
                    text_joined(between, &[&ReadArgument { name: None, is_spread: false, value }])
                }
            },
            "concat" if !value.is_list => {
                given.iter().fold(value, |value, it| value.append(&it.value))
            }
            "format" => braces_filled(&value, call.arguments),
            "parent" | "dirname" => value.map(PartText::parent),
            "with_name" => value.map(PartText::parent).join(&first.unwrap_or_else(unknown), true),
            "with_suffix" | "with_stem" | "sub_ext" => {
                value.map(PartText::parent).join(&CodeValue::unknown(), true)
            }
            "glob" => {
                list(value.join(&first.unwrap_or_else(unknown), true).map(PartText::into_pattern))
            }
            "rglob" => {
                let all = value.join(&CodeValue::known("**"), true);
                list(all.join(&first.unwrap_or_else(unknown), true).map(PartText::into_pattern))
            }
            "iterdir" | "children" | "each_child" | "walk" if !value.is_list => {
                list(value.join(&CodeValue::unknown(), true))
            }
            // `a.map(b => c)`
            "map" | "flatMap" => list(first.unwrap_or(value)),
            name if SAME.contains(&name) => value,
            _ => unknown(),
        }
    }
}

/// Returns a value as a path.
fn path(value: CodeValue) -> CodeValue {
    value.map(PartText::into_path)
}

/// Returns a value as a list.
fn list(value: CodeValue) -> CodeValue {
    CodeValue { is_list: true, items: Vec::new(), ..value }
}

/// Returns the path that a path and names build.
fn joined(first: CodeValue, names: Option<&[&ReadArgument]>, replaces: bool) -> CodeValue {
    let names = names.unwrap_or_default();
    path(names.iter().fold(first, |value, it| match it.is_spread {
        true => value.join(&it.value.clone().map(PartText::open), replaces),
        false => value.join(&it.value, replaces),
    }))
}

/// Returns the items of lists with a text between them.
fn text_joined(between: CodeValue, lists: &[&ReadArgument]) -> CodeValue {
    let mut parts: Vec<CodeValue> = Vec::new();
    for list in lists {
        match (list.value.items.as_slice(), list.value.is_list) {
            ([], true) => {
                parts.push(CodeValue { is_list: false, ..list.value.clone().map(PartText::open) })
            }
            ([], false) => parts.push(list.value.clone()),
            (items, _) => parts.extend(items.iter().cloned()),
        }
    }
    let mut parts = parts.into_iter();
    let Some(first) = parts.next() else { return CodeValue::known("") };
    parts.fold(first, |text, part| text.append(&between).append(&part))
}

/// Returns a text with values for its `{}`, `{0}`, and `{name}`.
fn braces_filled(form: &CodeValue, arguments: &[ReadArgument]) -> CodeValue {
    let [form] = form.texts.as_slice() else { return CodeValue::unknown() };
    let Some(text) = form.all() else { return CodeValue::unknown() };
    let positional: Vec<&ReadArgument> = arguments.iter().filter(|it| it.name.is_none()).collect();
    let mut next = 0_usize;
    let (mut made, mut rest) = (CodeValue::known(""), text);
    while let Some((before, behind)) = rest.split_once('{') {
        made = made.append(&CodeValue::known(before));
        if let Some(behind) = behind.strip_prefix('{') {
            made = made.append(&CodeValue::known("{"));
            rest = behind;
            continue;
        }
        let Some((mark, behind)) = behind.split_once('}') else { return CodeValue::unknown() };
        rest = behind;
        let key = mark.split(['!', ':']).next().unwrap_or_default();
        let found = match (key, key.parse::<usize>()) {
            ("", _) => {
                next += 1;
                positional.get(next - 1).copied()
            }
            (_, Ok(index)) => positional.get(index).copied(),
            (name, Err(_)) => arguments.iter().find(|it| it.name.as_deref() == Some(name)),
        };
        made = made.append(
            &found
                .filter(|it| !it.is_spread)
                .map_or_else(CodeValue::unknown, |it| it.value.clone()),
        );
    }
    made.append(&CodeValue::known(rest.replace("}}", "}")))
}
