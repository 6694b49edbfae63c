//! Command patterns held against command lines.

use super::lens;
use policyd::facts::ShellCommand;
use policyd::facts::pattern::CommandPattern;
use policyd::facts::shell::parse;

#[test]
fn patterns_and_the_lines_they_match() {
    let lens = lens::compiled();
    for (pattern, line, expected) in [
        ("cargo test", "cargo test", true),
        ("cargo test", "cargo test --release foo", true),
        ("cargo test", "cargo +nightly test", true),
        ("cargo test", "cargo --locked test", true),
        ("cargo test", "cargo -p core test", true),
        ("cargo test", "cargo --package=core test", true),
        ("cargo test", "cargo build", false),
        ("cargo test", "cargo build test", false),
        ("cargo test", "cargo", false),
        ("cargo test", "echo cargo test", false),
        ("cargo test", "echo 'cargo test'", false),
        ("cargo test --no-run", "cargo test --no-run", true),
        ("cargo test --no-run", "cargo test", false),
        ("cargo nextest run", "cargo nextest run -p x", true),
        ("cargo nextest run", "cargo nextest list", false),
        ("cargo", "cargo anything", true),
        ("python -m pytest", "python -m pytest tests", true),
        ("python -m pytest", "python -W ignore -m pytest", true),
        ("python -m pytest", "python -m pip install pytest", false),
        ("python -m pytest", "python pytest", false),
        ("python -m pytest", "python3 -m pytest", false),
        ("python* -m pytest", "python3.12 -m pytest -q", true),
        ("python* -m pytest", "python3 -mpytest", true),
        ("python* -c", "python3 -c 'print(1)'", true),
        ("npm run test*", "npm run test:unit", true),
        ("npm run test*", "npm --prefix web run test", true),
        ("npm run test*", "npm run build", false),
        ("npm test", "npm test -- --watch", true),
        ("git push", "git push origin main", true),
        ("git push", "git -C /x push", true),
        ("git push", "git -c a=b push", true),
        ("git push", "git -C/x push", true),
        ("git push", "git stash push", false),
        ("git push", "git commit -m push", false),
        ("git push --force", "git push --force origin main", true),
        ("git push --force", "git push origin main --force", true),
        ("git push --force", "git push --force-with-lease", false),
        ("git push --force*", "git push --force-with-lease=x", true),
        ("git push -f", "git push -fu origin x", true),
        ("git push -f", "git push --follow-tags", false),
        ("rm -rf", "rm -rf x", true),
        ("rm -rf", "rm -fr x", true),
        ("rm -rf", "rm -r -f x", true),
        ("rm -rf", "rm -r x", false),
        ("rm -r", "rm -rf x", true),
        ("make test", "make -j 8 test", true),
        ("make test", "make -C sub test", true),
        ("make test", "make latest", false),
        ("find -delete", "find . -name x -delete", true),
        ("find -delete", "find . -type d -empty", false),
        ("{npm,pnpm} test", "pnpm test", true),
        ("pytest", "uv run pytest", true),
        ("pytest", "sudo timeout 5 pytest -x", true),
        ("git push origin main", "git push origin main", true),
        ("git push origin main", "git push origin", false),
        ("cat --", "cat -- -x", true),
        ("", "cargo test", false),
        ("*", "anything", true),
    ] {
        let (programs, _) = parse(line, &lens);
        let command = ShellCommand { programs, ..ShellCommand::default() };
        let matched = command.ran(&CommandPattern::parse(pattern), &lens.lens().value_options);
        assert_eq!(matched, expected, "`{pattern}` on `{line}`");
    }
}
