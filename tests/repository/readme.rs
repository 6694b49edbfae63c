//! The README and the pages of the book are true: their console blocks are run, their packs are checked, and
//! their tables match the program. `POLICYD_REGEN=1 cargo test --test repository readme` writes what console blocks
//! print, and the files of the examples.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use policyd::source::secrets;
use policyd::store::configuration::{Configuration, ConfigurationOwner};
use policyd::world::fake::FakeWorld;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_policyd");

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The README and every page of the book, in the order of their paths.
pub(crate) fn pages() -> Vec<(PathBuf, String)> {
    fn add(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                add(&path, found);
            } else if path.extension().is_some_and(|it| it == "md") {
                found.push(path);
            }
        }
    }
    let mut paths = vec![root().join("README.md")];
    add(&root().join("src/docs"), &mut paths);
    paths.sort();
    let page = |path: PathBuf| (path.clone(), fs::read_to_string(path).unwrap());
    paths.into_iter().map(page).collect()
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

/// Fenced blocks of one language.
fn blocks<'t>(text: &'t str, language: &str) -> Vec<&'t str> {
    let opening = format!("```{language}\n");
    text.split(&opening).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn the_first_command_prints_what_the_readme_shows() {
    let readme = page("README.md");
    let arguments = readme.lines().find_map(|it| it.strip_prefix("cargo run -q -- ")).unwrap();
    let output = Command::new(PROGRAM)
        .args(arguments.split_whitespace())
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success());
    let stdout = String::from_utf8(output.stdout).unwrap();
    let shown = blocks(&readme, "json")[0].trim();
    if std::env::var_os("POLICYD_REGEN").is_some() {
        fs::write(root().join("README.md"), readme.replace(shown, stdout.trim())).unwrap();
        return;
    }
    assert_eq!(stdout.trim(), shown);
}

/// A YAML block by its first line: a file of the page's pack, a file of an example, a mistake and its fix, or settings.
const PACK: &str = "# .policyd/policies/";
const EXAMPLE: &str = "# examples/";
const MISTAKE: &str = "# do not: ";
const FIX: &str = "# do: ";
const ORGANIZATION_SETTINGS: &str = "# /etc/policyd/config.yaml";
const USER_SETTINGS: &str = "# ~/.config/policyd/config.yaml";

/// The YAML blocks with one marker: the rest of the first line, and the other lines.
fn packs<'t>(text: &'t str, marker: &str) -> Vec<(&'t str, &'t str)> {
    let marked = blocks(text, "yaml").into_iter().filter_map(|it| it.strip_prefix(marker));
    marked.map(|it| it.split_once('\n').unwrap()).collect()
}

fn policyd(arguments: &[&str], path: &Path) -> Output {
    Command::new(PROGRAM).args(arguments).arg(path).current_dir(root()).output().unwrap()
}

fn assert_success(output: &Output, place: &Path) {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {stdout}{stderr}", place.display());
}

#[test]
fn the_packs_of_every_page_are_valid() {
    let mut count = 0;
    for (path, text) in pages() {
        for block in blocks(&text, "yaml") {
            let known = [PACK, EXAMPLE, MISTAKE, FIX, ORGANIZATION_SETTINGS, USER_SETTINGS];
            let is_known = known.iter().any(|it| block.starts_with(it));
            assert!(is_known, "{}: {block}", path.display());
        }
        let folder = tempfile::tempdir().unwrap();
        let policies = folder.path().join("policies");
        fs::create_dir_all(policies.join("tests")).unwrap();
        let packs = packs(&text, PACK);
        if packs.is_empty() {
            continue;
        }
        count += packs.len();
        for (file, pack) in packs {
            fs::write(policies.join(file), pack).unwrap();
        }
        assert_success(&policyd(&["lint"], &policies), &path);
        if fs::read_dir(policies.join("tests")).unwrap().next().is_some() {
            assert_success(&policyd(&["test"], &policies), &path);
        }
    }
    assert!(count >= 10, "{count} files of packs");
}

#[test]
fn the_settings_of_every_page_are_valid() {
    let mut count = 0;
    for (path, text) in pages() {
        for (marker, owner) in [
            (ORGANIZATION_SETTINGS, ConfigurationOwner::Organization),
            (USER_SETTINGS, ConfigurationOwner::User),
        ] {
            for (_, settings) in packs(&text, marker) {
                let world = FakeWorld::new();
                world.set_env("HOME", "/home/me");
                let file = owner.path(&world).unwrap();
                world.put(&file, settings);
                file.ancestors().for_each(|it| world.give_away(it, 0));
                let problems = Configuration::load(&world, owner).problems;
                assert_eq!(problems, [], "{}: {settings}", path.display());
                count += 1;
            }
        }
    }
    assert!(count >= 1, "{count} blocks of settings");
}

#[test]
fn the_examples_are_clean_and_their_cases_pass() {
    let examples = root().join("src/docs/examples");
    assert_success(
        &policyd(&["lint", "--profile", "strict", "--fail-level", "note"], &examples),
        &examples,
    );
    let output = policyd(&["test"], &examples);
    assert_success(&output, &examples);
    let stdout = String::from_utf8(output.stdout).unwrap();
    let cookbook = page("src/docs/write/cookbook.md");
    for entry in fs::read_dir(&examples).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let passed = stdout.lines().find_map(|it| it.split_once(&format!("/{name}: "))).unwrap().1;
        let passed: usize = passed.split(' ').next().unwrap().parse().unwrap();
        assert!(passed >= 2, "{name}: a case that fires and one that passes");
        assert!(cookbook.contains(&format!("{EXAMPLE}{name}/")), "{name} is not in the cookbook");
    }
}

#[test]
fn the_recipes_are_the_files_of_the_examples() {
    let is_regenerated = std::env::var_os("POLICYD_REGEN").is_some();
    let mut count = 0;
    for (path, text) in pages() {
        let mut written = text.clone();
        for (file, shown) in packs(&text, EXAMPLE) {
            let content = page(&format!("src/docs/examples/{file}"));
            assert!(is_regenerated || shown == content, "{}: {file}", path.display());
            written = written.replace(
                &format!("{EXAMPLE}{file}\n{shown}```"),
                &format!("{EXAMPLE}{file}\n{content}```"),
            );
            count += 1;
        }
        if written != text {
            fs::write(&path, written).unwrap();
        }
    }
    assert!(count >= 20, "{count} files of examples");
}

#[test]
fn mistakes_have_the_code_that_the_page_names_and_their_fixes_are_clean() {
    let code = regex::Regex::new("PD[0-9]{3}").unwrap();
    let mut count = 0;
    for (path, text) in pages() {
        let mistakes = packs(&text, MISTAKE).into_iter().map(|(label, pack)| {
            let (file, code) = label.split_once(", ").unwrap();
            (file, pack, vec![code])
        });
        let fixes = packs(&text, FIX).into_iter().map(|(file, pack)| (file, pack, vec![]));
        for (file, pack, expected) in mistakes.chain(fixes) {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join(file), pack).unwrap();
            let output = policyd(&["lint", "--format", "compact"], folder.path());
            let stdout = String::from_utf8(output.stdout).unwrap();
            let found: Vec<_> = code.find_iter(&stdout).map(|it| it.as_str()).collect();
            assert_eq!(found, expected, "{}: {pack}{stdout}", path.display());
            count += 1;
        }
    }
    assert!(count >= 30, "{count} mistakes and fixes");
}

/// A command of a console block, with what it should print.
struct Step {
    command: String,
    output: String,
}

/// The commands of a console block: `$ ` begins one, `> ` continues it.
fn steps(block: &str) -> Vec<Step> {
    let mut found: Vec<Step> = Vec::new();
    for line in block.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            found.push(Step { command: command.to_owned(), output: String::new() });
            continue;
        }
        let step = found.last_mut().unwrap();
        match line.strip_prefix('>').filter(|_| step.output.is_empty()) {
            Some(more) => {
                step.command.push('\n');
                step.command.push_str(more.strip_prefix(' ').unwrap_or(more));
            }
            None => {
                step.output.push_str(line);
                step.output.push('\n');
            }
        }
    }
    found
}

fn run(command: &str, folder: &Path) -> Output {
    let program = Path::new(PROGRAM).parent().unwrap().display().to_string();
    let path = format!("{program}:{}", std::env::var("PATH").unwrap());
    Command::new("sh")
        .args(["-c", &format!("{command}\n")])
        .current_dir(folder)
        .env("PATH", path)
        .env("HOME", folder)
        .output()
        .unwrap()
}

#[test]
fn console_blocks_print_what_the_pages_show() {
    let is_regenerated = std::env::var_os("POLICYD_REGEN").is_some();
    let mut count = 0;
    for (path, text) in pages() {
        let folder = tempfile::tempdir().unwrap();
        let mut written = text.clone();
        for block in blocks(&text, "console") {
            let mut printed = String::new();
            for Step { command, output } in steps(block) {
                let said = run(&command, folder.path());
                let stdout = String::from_utf8(said.stdout).unwrap();
                let stderr = String::from_utf8_lossy(&said.stderr);
                let place = path.display();
                assert!(
                    is_regenerated || stdout == output,
                    "{place}: $ {command}\n{stdout}{stderr}"
                );
                printed += &format!("$ {}\n{stdout}", command.replace('\n', "\n> "));
                count += 1;
            }
            written = written.replace(block, &printed);
        }
        if is_regenerated && written != text {
            fs::write(&path, written).unwrap();
        }
    }
    assert!(count >= 20, "{count} commands");
}

#[test]
fn every_command_that_a_page_names_exists() {
    let help = Command::new(PROGRAM).args(["help", "all"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    for (path, text) in pages() {
        let named = text.split("`policyd ").skip(1).filter_map(|it| it.split([' ', '`']).next());
        for command in named.filter(|it| it.chars().all(|it| it.is_ascii_lowercase())) {
            let is_known = help.contains(&format!("  {command} "));
            assert!(is_known, "{}: policyd {command}", path.display());
        }
    }
}

#[test]
fn the_exit_codes_are_those_of_the_program() {
    let tables =
        [page("src/docs/reference/commands.md"), page("src/docs/operate/runs.md")].concat();
    for (code, meaning) in policyd::cli::EXIT_CODES {
        assert!(tables.contains(&format!("| {code} | {meaning} |")), "{code} {meaning}");
    }
}

#[test]
fn the_book_lists_every_page_and_its_links_lead_somewhere() {
    let summary = page("src/docs/SUMMARY.md");
    for (path, text) in pages() {
        let folder = path.parent().unwrap();
        let book = path.strip_prefix(root().join("src/docs")).ok();
        if let Some(name) = book.filter(|it| it.as_os_str() != "SUMMARY.md") {
            assert!(summary.contains(&format!("({})", name.display())), "{}", name.display());
        }
        let links = text.split("](").skip(1).filter_map(|it| it.split(')').next());
        for link in links.filter(|it| !it.starts_with("http")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { folder.join(file) };
            assert!(target.exists(), "{}: {link}", path.display());
            if !anchor.is_empty() {
                let known = anchors(&fs::read_to_string(&target).unwrap());
                assert!(known.iter().any(|it| it == anchor), "{}: {link}", path.display());
            }
        }
    }
}

/// The anchors of the headings of a page, as mdBook and GitHub make them.
fn anchors(text: &str) -> Vec<String> {
    let is_kept = |it: &char| it.is_alphanumeric() || matches!(it, ' ' | '-' | '_');
    let headings = text.lines().filter(|it| it.starts_with('#'));
    let titles = headings.map(|it| it.trim_start_matches('#').trim().to_lowercase());
    titles.map(|it| it.chars().filter(is_kept).collect::<String>().replace(' ', "-")).collect()
}

#[test]
fn the_hooks_of_pre_commit_look_at_every_file_of_a_pack() {
    let hooks = include_str!("../../.pre-commit-hooks.yaml");
    let pattern = hooks.lines().find_map(|it| it.trim().strip_prefix("files: &pack ")).unwrap();
    let pattern = regex::Regex::new(pattern).unwrap();
    let files = policyd::policy::shapes::FILES.iter().map(|it| it.file);
    let cases = ["tests/a.yaml", "tests/deeper/a.yml", "tests/snapshots/a__b.snap"];
    for file in files.chain(cases) {
        for folder in ["policies", ".policyd/policies"] {
            assert!(pattern.is_match(&format!("{folder}/{file}")), "{folder}/{file}");
        }
    }
    for other in ["src/main.rs", "docs/policies.yaml", "policies/README.md"] {
        assert!(!pattern.is_match(other), "{other}");
    }
}

#[test]
fn the_book_lists_every_kind_of_secret() {
    let text = page("src/docs/trust/privacy.md");
    let row = |start: &str| text.lines().find(|it| it.starts_with(start)).unwrap();
    let listed = |kinds: &mut dyn Iterator<Item = String>| kinds.collect::<Vec<_>>().join(", ");
    let by_format = secrets::published().chain(secrets::listed());
    let published = listed(&mut by_format.map(str::to_owned));
    assert_eq!(row("| by format "), format!("| by format | {published} |"));
    let context = listed(&mut secrets::by_context().map(str::to_owned));
    assert_eq!(row("| by context "), format!("| by context | {context} |"));
    let arguments = listed(&mut secrets::arguments().map(|it| format!("`{it}`")));
    let expected =
        format!("| arguments (`X`) | {arguments}, and the same options of related programs |");
    assert_eq!(row("| arguments (`X`) "), expected);
}
