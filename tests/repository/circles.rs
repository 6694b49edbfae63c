//! Circles of files: files of one crate that import each other in a loop, so that none can be understood first. Calls of methods
//! are not imports: the methods of one type can be in several files.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use super::language::root;

/// Most files of a circle: what one reading can hold.
const CIRCLE_FILES_MAX: usize = 3;

/// Comments, texts, and characters: what looks like code in them is none.
static NO_CODE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r##"(?s)//[^\n]*|r#".*?"#|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])'"##).unwrap()
});
static CHILD: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?m)^\s*(?:pub(?:\([^)]*\))? )?mod (\w+);").unwrap());
static TEST_FILE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))? )?mod \w+;").unwrap());
static TEST_MODULE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"#\[cfg\(test\)\]\s*mod \w+ \{").unwrap());
static DEFINITION: LazyLock<Regex> = LazyLock::new(|| {
    let kinds = r"struct|enum|trait|union|fn|const|static|type|macro_rules!";
    Regex::new(&format!(r"(?:^|[^'\w])(?:{kinds})\s+(\w+)")).unwrap()
});
static IMPORT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);").unwrap());
static PATH: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b\w+(?:::\w+)+").unwrap());
static WORD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\w+").unwrap());

/// A path as its steps: `crate::files::Row`.
type Steps = Vec<String>;

/// One file of a crate.
#[derive(Default)]
struct Module {
    /// The code without imports, comments, and texts.
    body: String,
    /// Names that the file defines.
    definitions: BTreeSet<String>,
    /// What the file imports: the name here, the path, and whether other files get the name from here.
    imports: Vec<(String, Steps, bool)>,
}

/// The files of one crate by their module path; the empty path is `lib.rs`.
type Modules = BTreeMap<Steps, Module>;

/// The paths of one `use`: `a::{b, c::{d, self}}`.
fn import_paths(tree: &str, before: &[String], found: &mut Vec<(String, Steps)>) {
    let tree = tree.trim();
    let steps = |text: &str| text.split("::").map(str::trim).map(str::to_owned).collect::<Steps>();
    if let Some((start, list)) = tree.split_once('{') {
        let start = start.trim().trim_end_matches("::");
        let start = if start.is_empty() { vec![] } else { steps(start) };
        let before = [before, &start].concat();
        let list = list.trim_end().strip_suffix('}').unwrap_or(list);
        let (mut depth, mut part) = (0_i32, String::new());
        for letter in list.chars().chain([',']) {
            depth += i32::from(letter == '{') - i32::from(letter == '}');
            if letter == ',' && depth == 0 {
                import_paths(&std::mem::take(&mut part), &before, found);
            } else {
                part.push(letter);
            }
        }
    } else if !tree.is_empty() {
        let (path, alias) = tree.split_once(" as ").unwrap_or((tree, ""));
        let mut path = [before, &steps(path)].concat();
        path.truncate(path.len() - usize::from(path.last().is_some_and(|it| it == "self")));
        let alias = if alias.is_empty() { path.last().cloned() } else { Some(alias.to_owned()) };
        found.extend(alias.map(|alias| (alias, path)));
    }
}

impl Module {
    fn parse(code: &str) -> Self {
        let code = NO_CODE.replace_all(code, "");
        let definitions = DEFINITION.captures_iter(&code).map(|it| it[1].to_owned()).collect();
        let mut imports = vec![];
        for import in IMPORT.captures_iter(&code) {
            let mut paths = vec![];
            import_paths(&import[2], &[], &mut paths);
            let is_public = import.get(1).is_some();
            imports.extend(paths.into_iter().map(|(alias, path)| (alias, path, is_public)));
        }
        Self { body: IMPORT.replace_all(&code, "").into_owned(), definitions, imports }
    }
}

/// Reads a file and the files that it declares as its modules.
fn read_modules(path: Steps, file: &Path, modules: &mut Modules) {
    let text = fs::read_to_string(file).unwrap();
    let code = TEST_FILE.replace_all(&text, "");
    let code = TEST_MODULE.splitn(&code, 2).next().unwrap();
    let name = file.file_stem().unwrap().to_str().unwrap();
    let folder = file.parent().unwrap();
    let folder = if ["lib", "mod"].contains(&name) { folder.to_owned() } else { folder.join(name) };
    let children = NO_CODE.replace_all(code, "");
    for child in CHILD.captures_iter(&children) {
        let child = &child[1];
        let found = [folder.join(format!("{child}.rs")), folder.join(child).join("mod.rs")];
        let found = found.iter().find(|it| it.exists());
        let found = found.unwrap_or_else(|| panic!("{}: no file of `{child}`", file.display()));
        read_modules([&path[..], &[child.to_owned()]].concat(), found, modules);
    }
    modules.insert(path, Module::parse(code));
}

/// The file that a path leads to from a module; `None` for another crate. A name that a module only passes on leads to the
/// file that defines it.
fn target(modules: &Modules, from: &Steps, path: &[String], depth: usize) -> Option<Steps> {
    let (first, rest) = path.split_first()?;
    let absolute = match first.as_str() {
        "crate" => rest.to_vec(),
        "self" => [&from[..], rest].concat(),
        "super" => {
            let ups = path.iter().take_while(|it| *it == "super").count();
            [&from[..from.len().checked_sub(ups)?], &path[ups..]].concat()
        }
        _ => [&from[..], path].concat(),
    };
    let known = (0..=absolute.len()).rev().find(|it| modules.contains_key(&absolute[..*it]))?;
    let (owner, names) = absolute.split_at(known);
    let module = &modules[owner];
    let is_relative = !["crate", "self", "super"].contains(&first.as_str());
    if is_relative && owner == &from[..] {
        return None; // a name of another crate, or of this file
    }
    let Some(name) = names.first().filter(|it| !module.definitions.contains(*it)) else {
        return Some(owner.to_vec());
    };
    let import = module.imports.iter().find(|(alias, _, _)| alias == name);
    if depth > 8 {
        return None;
    }
    match import {
        Some((_, path, _)) => target(modules, &owner.to_vec(), path, depth + 1),
        None => Some(owner.to_vec()),
    }
}

/// The files that each file of a crate needs.
fn arrows(modules: &Modules) -> BTreeMap<&Steps, BTreeSet<Steps>> {
    let needs = modules.iter().map(|(path, module)| {
        let words: BTreeSet<_> = WORD.find_iter(&module.body).map(|it| it.as_str()).collect();
        let imported = module.imports.iter();
        // A name that is only passed on is not needed here.
        let imported = imported
            .filter(|(alias, _, is_public)| !is_public || words.contains(alias.as_str()))
            .map(|(_, path, _)| path.clone());
        let named = PATH.find_iter(&module.body);
        let named = named.map(|it| it.as_str().split("::").map(str::to_owned).collect());
        let targets = imported.chain(named).filter_map(|it: Steps| target(modules, path, &it, 0));
        (path, targets.filter(|it| it != path).collect())
    });
    needs.collect()
}

/// The largest sets of files in which each one needs each other, directly or through others.
fn circles(arrows: &BTreeMap<&Steps, BTreeSet<Steps>>) -> Vec<BTreeSet<Steps>> {
    let reached = |from: &Steps| {
        let (mut reached, mut todo) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(next) = todo.pop() {
            for other in &arrows[&next] {
                if reached.insert(other.clone()) {
                    todo.push(other.clone());
                }
            }
        }
        reached
    };
    let reached: BTreeMap<&Steps, _> = arrows.keys().map(|it| (*it, reached(it))).collect();
    let circle = |it: &Steps| {
        let members = reached[it].iter().filter(|other| reached[other].contains(it));
        members.cloned().collect::<BTreeSet<_>>()
    };
    let mut found: Vec<_> = arrows.keys().map(|it| circle(it)).filter(|it| it.len() > 1).collect();
    found.sort();
    found.dedup();
    found
}

#[test]
fn no_circle_spans_more_files_than_one_reading_holds() {
    let mut wrong = vec![];
    for entry in fs::read_dir(root().join("src")).unwrap() {
        let folder = entry.unwrap().path();
        let library = folder.join("lib.rs");
        if !folder.join("Cargo.toml").exists() || !library.exists() {
            continue;
        }
        let mut modules = Modules::new();
        read_modules(vec![], &library, &mut modules);
        for circle in circles(&arrows(&modules)).iter().filter(|it| it.len() > CIRCLE_FILES_MAX) {
            let names = circle.iter().map(|it| it.join("::"));
            let names: Vec<_> =
                names.map(|it| if it.is_empty() { "lib".into() } else { it }).collect();
            wrong.push(format!("{}: {}", folder.display(), names.join(", ")));
        }
    }
    assert!(wrong.is_empty(), "files that import each other in a loop:\n{}", wrong.join("\n"));
}

#[test]
fn a_loop_of_imports_is_found() {
    let module = |path: &str, code: &str| {
        let path = path.split("::").filter(|it| !it.is_empty()).map(str::to_owned).collect();
        (path, Module::parse(code))
    };
    let modules = Modules::from([
        module("", "mod a;\nmod b;\nmod c;\npub use a::A;\npub use c::{d::D, self};"),
        module("a", "use crate::{b::{self, B}, Other};\npub struct A(B);"),
        module(
            "b",
            "// crate::c::d::D\npub struct B;\nfn f() { super::c::d::g(\"http://crate::a\", '\"') }",
        ),
        module("c", ""),
        module("c::d", "use crate::A as Renamed;\npub struct D(Renamed);"),
    ]);
    let steps = |it: &str| it.split("::").map(str::to_owned).collect::<Steps>();
    assert_eq!(circles(&arrows(&modules)), [BTreeSet::from(["a", "b", "c::d"].map(steps))]);
}
