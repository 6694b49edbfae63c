//! Commands of policyd that only the user may run: each command of the program is one of them or free, and no
//! option, at any place, hides one from the guard.

use policyd::cli::{COMMAND_GROUPS, CommandRow, CommandRunner};

use super::machine::Machine;

/// The words of each command that this user may run, with a word for each argument that it needs.
fn lines_of(runner: CommandRunner) -> Vec<String> {
    let tree = policyd::cli::command_line();
    let rows = COMMAND_GROUPS.iter().flat_map(|it| it.rows).filter(|it| it.runner == runner);
    rows.map(|it| line_of(it, &tree)).collect()
}

fn line_of(row: &CommandRow, tree: &clap::Command) -> String {
    let command = row.words.split(' ').try_fold(tree, |it, word| it.find_subcommand(word));
    let command = command.unwrap();
    let needed = command.get_positionals().filter(|it| it.is_required_set());
    let needed = needed.map(|it| first_value(it, "x"));
    std::iter::once(row.words.to_owned()).chain(needed).collect::<Vec<_>>().join(" ")
}

/// The first value that an argument takes, or another word if it takes any.
fn first_value(argument: &clap::Arg, other: &str) -> String {
    let values = argument.get_possible_values();
    values.first().map_or(other, |it| it.get_name()).to_owned()
}

/// The ways to write an option of a command, each with a value if it takes one.
fn written(option: &clap::Arg) -> Vec<String> {
    let long = option.get_long().map(|it| format!("--{it}"));
    let short = option.get_short().map(|it| format!("-{it}"));
    let value = first_value(option, "phlox");
    let takes = option.get_action().takes_values();
    let each = |name: String| match (takes, name.starts_with("--")) {
        (false, _) => vec![name],
        (true, true) => vec![format!("{name} {value}"), format!("{name}={value}")],
        (true, false) => {
            vec![format!("{name} {value}"), format!("{name}{value}"), format!("{name}={value}")]
        }
    };
    long.into_iter().chain(short).flat_map(each).collect()
}

#[test]
fn every_command_is_for_humans_or_for_everyone() {
    let machine = Machine::new("/home/dev/project");
    let is_denied = |line: &str| machine.bash(&format!("policyd {line}")).0 == "deny";
    let humans = lines_of(CommandRunner::Human);
    let allowed: Vec<_> = humans.into_iter().filter(|it| !is_denied(it)).collect();
    none("are for humans in src/cli/command_table.rs, and not denied", &allowed);
    // An event of the agent's own is denied if it is saved.
    let saves_nothing = |it: String| if it == "eval" { "eval --dry-run".to_owned() } else { it };
    let everyone = lines_of(CommandRunner::Anyone).into_iter().map(saves_nothing);
    let denied: Vec<_> = everyone.filter(|it| is_denied(it)).collect();
    none("are for everyone in src/cli/command_table.rs, and denied", &denied);
}

#[test]
fn the_page_of_trust_names_every_command_for_humans() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/src/docs/trust/trust.md");
    let page = std::fs::read_to_string(page).unwrap();
    let is_named = |line: &String| {
        let words: Vec<&str> = line.split(' ').collect();
        (1..=words.len()).any(|length| page.contains(&format!("`{}`", words[..length].join(" "))))
    };
    let humans = lines_of(CommandRunner::Human).into_iter();
    let absent: Vec<_> = humans.filter(|it| !is_named(it)).collect();
    assert!(absent.is_empty(), "trust/trust.md lacks {absent:?}");
}

#[test]
fn no_option_of_policyd_at_any_place_hides_a_command_for_humans() {
    let machine = Machine::new("/home/dev/project");
    let tree = policyd::cli::command_line();
    let (mut count, mut passed) = (0, Vec::new());
    for line in lines_of(CommandRunner::Human) {
        let words: Vec<&str> = line.split(' ').collect();
        let mut command = &tree;
        // Options of the program, then of each command on the way, where they may stand.
        for at in 0..=words.len() {
            let own = command.get_arguments().filter(|it| !it.is_positional());
            let inherited = tree.get_arguments().filter(|it| it.is_global_set());
            for option in own.chain(inherited).flat_map(written) {
                let help = ["--help", "-h", "--dry-run", "--list", "--read-only"];
                if help.iter().any(|it| option == *it) {
                    continue;
                }
                count += 1;
                let (before, after) = words.split_at(at);
                let line = format!("policyd {} {option} {}", before.join(" "), after.join(" "));
                if machine.bash(&line).0 != "deny" {
                    passed.push(line);
                }
            }
            let Some(next) = words.get(at).and_then(|it| command.find_subcommand(it)) else {
                break;
            };
            command = next;
        }
    }
    none("got through", &passed);
    assert!(count > 200, "{count}");
}

/// Fails with every line of a list.
fn none(what: &str, lines: &[String]) {
    assert!(lines.is_empty(), "{} forms {what}:\n{}", lines.len(), lines.join("\n"));
}
