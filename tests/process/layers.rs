//! The pack of the user beneath the pack of a project: it weakens what the project does not set, and tightens everything.

use policyd::world::fake::FakeWorld;
use serde_json::{Value, json};

use crate::support::console::{Said, call};
use crate::support::machine::machine;

const USER: &str = "/home/me/.config/policyd/policies";
const PROJECT: &str = "/work/.policyd/policies";
const OWN_RULE: &str = "\
- id: no_telnet
  commands: [telnet]
  decision: block
  message: Do not use telnet.
";

fn run(world: &FakeWorld, line: &str) -> Said {
    call(world, &line.split(' ').collect::<Vec<_>>(), b"")
}

fn done(world: &FakeWorld, line: &str) -> String {
    let said = run(world, line);
    assert_eq!(said.code, 0, "{line}: {}{}", said.out, said.err);
    said.out
}

/// A machine with a trusted pack of the project.
fn with_project(guards: &str) -> FakeWorld {
    let world = machine();
    world.put(format!("{PROJECT}/policyd.yaml"), "version: 1\nextends: [builtin]\n");
    world.put(format!("{PROJECT}/guards.yaml"), guards);
    done(&world, "trust");
    world
}

fn put_user(world: &FakeWorld, guards: &str) {
    world.put(format!("{USER}/policyd.yaml"), "version: 1\nname: user\n");
    world.put(format!("{USER}/guards.yaml"), guards);
}

fn override_of(id: &str, keys: &str) -> String {
    format!("- {{id: {id}, override: true, {keys}, reason: r}}\n")
}

/// The decision on a command line, the first rule, and its layer.
fn decided(world: &FakeWorld, line: &str) -> String {
    let said = call(world, &["check", line, "--json"], b"");
    let json: Value = serde_json::from_str(&said.out).unwrap();
    let call = &json["calls"][0];
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let rule = &call["rules"][0];
    format!("{} {} {}", text(&call["decision"]), text(&rule["id"]), text(&rule["layer"]))
}

/// What a hook answers to a command line.
fn hooked(world: &FakeWorld, line: &str) -> String {
    let payload = json!({"session_id": "s", "cwd": "/work", "tool_name": "Bash",
        "tool_input": {"command": line}});
    call(world, &["eval", "--hook", "pre-tool-use"], payload.to_string().as_bytes()).out
}

#[test]
fn a_rule_of_the_user_counts_in_a_project_with_a_pack() {
    let world = with_project(OWN_RULE);
    put_user(&world, &OWN_RULE.replace("telnet", "rlogin"));
    assert_eq!(decided(&world, "telnet x"), "block no_telnet project");
    assert_eq!(decided(&world, "rlogin x"), "block no_rlogin user");
    assert_eq!(decided(&world, "rm -rf ~"), "block rm_recursive built-in");
    for line in ["telnet x", "rlogin x"] {
        assert!(hooked(&world, line).contains("deny"), "{line}");
    }
    let rules = done(&world, "rules");
    assert!(rules.contains("[user] Do not use rlogin"), "{rules}");
    assert!(rules.contains("[project] Do not use telnet"), "{rules}");
    assert!(done(&world, "rules no_rlogin").contains("layer       user"));
    assert!(done(&world, "trust --list").trim_end().ends_with("trusted"), "only the pack itself");
}

#[test]
fn the_user_weakens_only_what_the_project_does_not_set() {
    let world = with_project(&override_of("rm_recursive", "mode: warn"));
    let both = ["rm_recursive", "env_file_read"].map(|it| override_of(it, "enabled: false"));
    put_user(&world, &both.concat());
    assert_eq!(decided(&world, "rm -rf ~"), "none rm_recursive project", "it warns");
    assert_eq!(decided(&world, "cat .env"), "none - -");
    assert!(!hooked(&world, "cat .env").contains("deny"));
    let said = run(&world, "rule off rm_recursive");
    assert_eq!(said.code, 0);
    assert!(said.err.contains("still `warn` in this project"), "{}", said.err);
    assert!(said.err.contains("add `--project`"), "{}", said.err);
}

#[test]
fn the_user_tightens_what_the_project_weakens() {
    for weaker in ["enabled: false", "mode: warn", "mode: shadow", "decision: ask"] {
        let world = with_project(&override_of("rm_recursive", weaker));
        put_user(
            &world,
            &override_of("rm_recursive", "enabled: true, mode: enforce, decision: block"),
        );
        assert_eq!(decided(&world, "rm -rf ~"), "block rm_recursive user", "{weaker}");
        assert!(hooked(&world, "rm -rf ~").contains("deny"), "{weaker}");
    }
    let world = with_project("");
    world.put(
        format!("{PROJECT}/considerations.yaml"),
        override_of("local_testing", "enabled: false"),
    );
    done(&world, "trust");
    let state = |world: &FakeWorld| {
        let page: Value =
            serde_json::from_str(&done(world, "rules local_testing --format json")).unwrap();
        format!("{} {}", page["state"].as_str().unwrap(), page["layer"].as_str().unwrap())
    };
    assert_eq!(state(&world), "off project");
    put_user(&world, "");
    world.put(
        format!("{USER}/considerations.yaml"),
        override_of("local_testing", "enabled: true, mode: enforce"),
    );
    assert_eq!(state(&world), "enforce user");
}

#[test]
fn a_change_of_the_users_pack_takes_effect_at_once() {
    let world = with_project(OWN_RULE);
    assert_eq!(decided(&world, "rm -rf ~"), "block rm_recursive built-in");
    done(&world, "rule off rm_recursive");
    assert_eq!(decided(&world, "rm -rf ~"), "none - -");
    done(&world, "rule on rm_recursive");
    assert_eq!(decided(&world, "rm -rf ~"), "block rm_recursive built-in");
}

#[test]
fn the_stricter_of_two_rules_with_one_id_counts_and_the_rest_of_both_packs_stays() {
    let asks = OWN_RULE.replace("block", "ask");
    for (project, user, decision) in [
        (OWN_RULE, asks.as_str(), "block no_telnet project"),
        (asks.as_str(), OWN_RULE, "block no_telnet user"),
        (OWN_RULE, OWN_RULE, "block no_telnet project"),
    ] {
        let world = with_project(project);
        put_user(&world, &format!("{user}{}", OWN_RULE.replace("telnet", "rlogin")));
        assert_eq!(decided(&world, "telnet x"), decision);
        assert_eq!(decided(&world, "rlogin x"), "block no_rlogin user");
        assert!(!run(&world, "doctor").out.contains("is not used"));
    }
}

#[test]
fn a_users_pack_that_is_broken_is_reported_and_the_project_counts_alone() {
    let world = with_project(OWN_RULE);
    put_user(&world, "- idd: x\n");
    assert_eq!(decided(&world, "telnet x"), "block no_telnet project");
    let doctor = run(&world, "doctor").out;
    let said = "your pack in /home/me/.config/policyd/policies is not used here: it is broken: ";
    assert!(doctor.contains(said), "{doctor}");
    assert!(doctor.contains("/home/me/.config/policyd/policies/guards.yaml:1:3"), "{doctor}");
    assert!(run(&world, "rules").err.contains("is not used here"));
    assert!(run(&world, "check ls").err.contains("is not used here"));
    let start = json!({"session_id": "s", "cwd": "/work", "source": "startup"});
    let said = call(&world, &["eval", "--hook", "session-start"], start.to_string().as_bytes());
    assert!(said.out.contains("is not used here"), "{}", said.out);
}

#[test]
fn a_pack_that_extends_nothing_and_a_named_pack_stay_alone() {
    let world = with_project(OWN_RULE);
    world.put(format!("{PROJECT}/policyd.yaml"), "version: 1\nextends: []\n");
    done(&world, "trust");
    put_user(&world, &override_of("rm_recursive", "mode: warn"));
    assert_eq!(decided(&world, "telnet x"), "block no_telnet project");
    world.set_env("POLICYD_POLICIES", PROJECT);
    assert!(!run(&world, "rules").err.contains("is not used"));
}

#[test]
fn of_two_rules_with_one_id_the_used_one_is_named() {
    let world = with_project(OWN_RULE);
    put_user(&world, &OWN_RULE.replace("block", "warn"));
    let page = done(&world, "rules no_telnet");
    assert!(page.contains("that of the project is used here"), "{page}");
    assert!(run(&world, "doctor").out.contains("both have a rule `no_telnet`"));
    put_user(&world, &OWN_RULE.replace("block", "halt"));
    let page = done(&world, "rules no_telnet");
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("yours is used here, because it is stricter"), "{page}");
    let lint = run(&world, "lint");
    assert!(lint.err.contains("both have a rule `no_telnet`"), "{lint:?}");
    assert!(lint.err.contains("help: rename or remove one of them"), "{lint:?}");
    put_user(&world, &override_of("rm_recursive", "mode: warn"));
    assert!(
        !run(&world, "lint").err.contains("both have"),
        "a change of a built-in rule is no second rule"
    );
}
