//! The lens the facts tests look through: a small vocabulary of every kind of row.

use policyd::facts::compiled::CompiledMatchers;
use policyd::facts::lens::{
    CommandKind, ContentPattern, FileKindRow, MatcherConfig, ValueOptions, Wrapper,
};

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

fn wrapper(command: &str, value_options: &[&str], skip: usize, shell_option: &str) -> Wrapper {
    Wrapper {
        command: command.to_owned(),
        value_options: texts(value_options),
        skip,
        shell_option: shell_option.to_owned(),
        ..Wrapper::default()
    }
}

fn values(program: &str, options: &[&str]) -> ValueOptions {
    ValueOptions { program: program.to_owned(), options: texts(options) }
}

/// The lens of the built-in pack.
pub(crate) fn builtin() -> CompiledMatchers {
    let pack = policyd::policy::builtin::pack();
    CompiledMatchers::new(policyd::policy::load::load(&pack, &pack).policy.unwrap().lens)
}

/// Ten test runners, the usual wrappers, four kinds of files and two content patterns.
pub(crate) fn test_lens() -> MatcherConfig {
    MatcherConfig {
        wrappers: vec![
            wrapper("sudo", &["-u", "-g"], 0, ""),
            wrapper("env", &["-u", "-C"], 0, ""),
            wrapper("timeout", &["-s", "-k"], 1, ""),
            wrapper("nohup", &[], 0, ""),
            wrapper("nice", &["-n"], 0, ""),
            wrapper("uv run", &["--with", "-p"], 0, ""),
            wrapper("poetry run", &[], 0, ""),
            wrapper("npx", &["-p", "--package"], 0, ""),
            wrapper("xargs", &["-n", "-I", "-P", "-L"], 0, ""),
            wrapper("{bash,sh,zsh}", &["-o", "--rcfile"], 0, "-c"),
        ]
        .into(),
        value_options: vec![
            values("git", &["-C", "-c", "-m"]),
            values("cargo", &["-p", "--package", "--manifest-path", "--test"]),
            values("python*", &["-m", "-c", "-W"]),
            values("make", &["-C", "-f", "-j"]),
            values("npm", &["--prefix"]),
            values("go", &["-C"]),
            values("uv", &["--directory"]),
        ]
        .into(),
        commands: vec![
            CommandKind {
                failed_if_hidden: Vec::new(),
                empty: Vec::new(),
                passed_unless_empty: Vec::new(),
                name: "test".to_owned(),
                programs: texts(&[
                    "cargo test",
                    "cargo nextest run",
                    "pytest",
                    "python* -m pytest",
                    "npm test",
                    "npm run test*",
                    "go test",
                    "make test",
                    "jest",
                    "gradlew test",
                ]),
                except: texts(&["cargo test --no-run", "pytest --collect-only"]),
                failed: texts(&[r"test result: FAILED", r"\b[1-9]\d* failed\b"]),
                passed: texts(&[r"test result: ok\.", r"\b\d+ passed\b"]),
                ..CommandKind::default()
            },
            CommandKind {
                name: "push".to_owned(),
                programs: texts(&["git push"]),
                ..CommandKind::default()
            },
            CommandKind {
                name: "force_push".to_owned(),
                programs: texts(&["git push --force*", "git push -f"]),
                ..CommandKind::default()
            },
        ]
        .into(),
        files: vec![
            FileKindRow {
                name: "code".to_owned(),
                globs: texts(&["*.rs", "*.py", "*.{ts,tsx,js}"]),
                except: texts(&["**/tests/**"]),
                ..FileKindRow::default()
            },
            FileKindRow {
                name: "tests".to_owned(),
                globs: texts(&["**/tests/**", "test_*.py"]),
                ..FileKindRow::default()
            },
            FileKindRow {
                name: "docs".to_owned(),
                globs: texts(&["*.md", "docs/**"]),
                ..FileKindRow::default()
            },
        ]
        .into(),
        contents: vec![
            ContentPattern {
                name: "todo".to_owned(),
                regexes: texts(&[r"\b(TODO|FIXME)\b"]),
                except_files: texts(&["docs"]),
                ..ContentPattern::default()
            },
            ContentPattern {
                name: "stub".to_owned(),
                regexes: texts(&[r"raise NotImplementedError", r"(?i)unimplemented!"]),
                files: texts(&["code"]),
                unless: texts(&["@abstractmethod"]),
                ..ContentPattern::default()
            },
        ]
        .into(),
        edit_tools: texts(&[
            "Write",
            "Edit",
            "MultiEdit",
            "NotebookEdit",
            "apply_patch",
            "create",
            "edit",
            "write_file",
            "replace",
            "str_replace_editor",
        ]),
        shell_tools: texts(&["Bash", "bash", "exec_command", "shell", "run_shell_command"]),
        ..MatcherConfig::default()
    }
}

/// The same, ready to match.
pub(crate) fn compiled() -> CompiledMatchers {
    CompiledMatchers::new(test_lens())
}
