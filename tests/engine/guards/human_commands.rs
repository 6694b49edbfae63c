//! Commands of policyd that only the user may run: each command of the program is one of them or free, and no
//! option, at any place, hides one from the guard.

use super::machine::Machine;

/// Commands that the guard refuses to an agent, as words of the command tree.
const HUMAN_COMMANDS: &[&str] = &[
    "init",
    "allow x",
    "learn test x",
    "suggest accept x",
    "pause 1d",
    "disable",
    "enable",
    "enforce",
    "rule off x",
    "rule warn x",
    "rule observe x",
    "rule on x",
    "inbox answer x yes",
    "debug state reset",
    "export otlp",
    "escalation notify",
    "escalation test",
    "pack push",
    "dashboard",
    "breaker trip x",
    "breaker reset x",
    "dlq abandon x",
    "dlq resolve x",
    "escalation resolve x",
    "signal approve x",
    "signal reject x",
    "install",
    "uninstall",
    "trust",
    "pack update",
];

/// Commands that an agent may run, as far as this guard decides.
const FREE_COMMANDS: &[&str] = &[
    "eval",
    "check",
    "help",
    "lint",
    "test",
    "lsp",
    "rules",
    "rule list",
    "inbox",
    "facts",
    "try",
    "resume",
    "replay",
    "debug state show",
    "debug state verify",
    "debug state list",
    "status",
    "top",
    "metrics",
    "report",
    "log",
    "explain",
    "debug diag failures",
    "debug diag retries",
    "debug diag corruption",
    "debug diag tail",
    "breaker list",
    "breaker status",
    "breaker show",
    "breaker explain",
    "breaker allow",
    "breaker record",
    "breaker watch",
    "breaker route",
    "dlq add",
    "dlq list",
    "dlq show",
    "dlq review",
    "dlq retry",
    "dlq redrive",
    "dlq claim",
    "dlq unclaim",
    "dlq finish",
    "dlq stats",
    "escalation open",
    "escalation list",
    "escalation show",
    "escalation ack",
    "run",
    "debug failure classify",
    "debug failure wait",
    "debug failure recover",
    "store init",
    "store migrate",
    "store status",
    "store verify",
    "store copy",
    "store runs",
    "store sync",
    "store move",
    "store rejected",
    "store watch",
    "signal emit",
    "signal list",
    "signal types",
    "signal show",
    "signal consume",
    "signal release",
    "signal history",
    "signal watch",
    "signal check",
    "signal process",
    "context status",
    "context summary",
    "context line",
    "debug decide",
    "debug rationalization check",
    "doctor",
    "pack fetch",
    "pack verify",
    "pack manifest",
    "schema",
    "completions",
    "man",
];

/// Every command without subcommands, by its words.
fn leaves(command: &clap::Command, words: &str, found: &mut Vec<String>) {
    if !words.is_empty() && !command.has_subcommands() {
        found.push(words.to_owned());
    }
    for sub in command.get_subcommands() {
        leaves(sub, format!("{words} {}", sub.get_name()).trim(), found);
    }
}

/// The ways to write an option of a command, each with a value if it takes one.
fn written(option: &clap::Arg) -> Vec<String> {
    let long = option.get_long().map(|it| format!("--{it}"));
    let short = option.get_short().map(|it| format!("-{it}"));
    let value = option.get_possible_values().first().map_or("phlox", |it| it.get_name()).to_owned();
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
    let (mut found, machine) = (Vec::new(), Machine::new("/home/dev/project"));
    leaves(&policyd::cli::command_line(), "", &mut found);
    let first = |it: &&str, leaf: &str| *it == leaf || it.starts_with(&format!("{leaf} "));
    let unknown = found.iter().filter(|leaf| {
        let human = HUMAN_COMMANDS.iter().any(|it| first(it, leaf));
        human == FREE_COMMANDS.contains(&leaf.as_str())
    });
    none(
        "belong to one of both lists, not more and not less",
        &unknown.cloned().collect::<Vec<_>>(),
    );
    let silent =
        HUMAN_COMMANDS.iter().filter(|it| machine.bash(&format!("policyd {it}")).0 != "deny");
    none("are not denied", &silent.map(|it| (*it).to_owned()).collect::<Vec<_>>());
    // An event of the agent's own is denied if it is saved.
    let saves_nothing =
        |it: &str| if it == "eval" { "eval --dry-run".to_owned() } else { it.to_owned() };
    let is_denied = |it: &str| machine.bash(&format!("policyd {}", saves_nothing(it))).0 == "deny";
    let denied = FREE_COMMANDS.iter().filter(|it| is_denied(it));
    none("are denied", &denied.map(|it| (*it).to_owned()).collect::<Vec<_>>());
}

#[test]
fn the_page_of_trust_names_every_command_for_humans() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/src/docs/trust/trust.md");
    let page = std::fs::read_to_string(page).unwrap();
    let is_named = |line: &&&str| {
        let words: Vec<&str> = line.split(' ').collect();
        (1..=words.len()).any(|length| page.contains(&format!("`{}`", words[..length].join(" "))))
    };
    let absent: Vec<_> = HUMAN_COMMANDS.iter().filter(|it| !is_named(it)).collect();
    assert!(absent.is_empty(), "trust/trust.md lacks {absent:?}");
}

#[test]
fn no_option_of_policyd_at_any_place_hides_a_command_for_humans() {
    let machine = Machine::new("/home/dev/project");
    let tree = policyd::cli::command_line();
    let (mut count, mut passed) = (0, Vec::new());
    for line in HUMAN_COMMANDS {
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
