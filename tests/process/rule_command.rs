//! `policyd rule`: what it writes, that lint and hooks accept it, what it refuses, and what it lists. Search of rules.

use policyd::world::fake::FakeWorld;
use serde_json::Value;

use crate::support::console::{Said, call};
use crate::support::machine::machine;

const USER: &str = "/home/me/.config/policyd/policies";
const PROJECT: &str = "/work/.policyd/policies";

fn run(world: &FakeWorld, line: &str) -> Said {
    call(world, &line.split(' ').collect::<Vec<_>>(), b"")
}

fn done(world: &FakeWorld, line: &str) -> String {
    let said = run(world, line);
    assert_eq!(said.code, 0, "{line}: {}{}", said.out, said.err);
    said.out
}

fn text(world: &FakeWorld, path: &str) -> Option<String> {
    world.get(path).map(|it| String::from_utf8(it).unwrap())
}

/// What `policyd check` decides about `rm -rf ~`.
fn decision(world: &FakeWorld) -> String {
    let json = call(world, &["check", "rm -rf ~", "--json"], b"").out;
    let json: Value = serde_json::from_str(&json).unwrap();
    let call = &json["calls"][0];
    let effect = call["rules"][0]["effect"].as_str().unwrap_or("-");
    format!("{} {effect}", call["decision"].as_str().unwrap())
}

#[test]
fn a_rule_is_changed_for_the_user_and_back() {
    let world = machine();
    for (word, entry, decided) in [
        ("off", "enabled: false, reason: \"why\"", "none -"),
        ("warn", "mode: warn, reason: \"why\"", "none warn"),
        ("observe", "mode: shadow, reason: \"why\"", "none log"),
    ] {
        let out = done(&world, &format!("rule {word} rm_recursive --reason why"));
        assert!(out.starts_with(&format!("rm_recursive: {word} (layer user)\nwrote ")), "{out}");
        let guards = text(&world, &format!("{USER}/guards.yaml")).unwrap();
        let line = format!("- {{id: rm_recursive, override: true, {entry}}}\n");
        assert_eq!(guards, format!("# Changes by `policyd rule`.\n{line}"));
        assert_eq!(decision(&world), decided, "{word}");
        assert!(done(&world, "lint").contains("0 errors, 0 warnings"));
        let again = done(&world, &format!("rule {word} rm_recursive"));
        assert_eq!(again, format!("rm_recursive: {word} already (layer user)\n"));
        let list = done(&world, "rule list --changed");
        assert!(list.starts_with(&format!("rm_recursive  {word}  user  why (/home/")), "{list}");
    }
    done(&world, "rule on rm_recursive");
    assert_eq!(text(&world, &format!("{USER}/guards.yaml")), None);
    assert_eq!(decision(&world), "block block");
    assert_eq!(done(&world, "rule list --changed"), "no changed rules\n");
    let log = text(&world, "/work/.policyd/logs/decisions.jsonl").unwrap();
    assert!(log.contains(r#""event": "rule""#) && log.contains("(layer user, "), "{log}");
    assert!(done(&world, "log").contains("rm_recursive: on (layer user"));
}

#[test]
fn checks_sets_and_former_ids_are_changed() {
    let world = machine();
    done(&world, "rule warn local_testing philosophy_compliance");
    let checks = text(&world, &format!("{USER}/considerations.yaml")).unwrap();
    assert!(checks.contains("id: local_testing,") && checks.contains("id: no_stubs,"), "{checks}");
    done(&world, "rule off git-discipline");
    let rules = done(&world, "rule list --changed --format json");
    let rules: Value = serde_json::from_str(&rules).unwrap();
    let off = rules["rules"].as_array().unwrap().iter().filter(|it| it["state"] == "off");
    assert!(off.count() > 5, "{rules}");
    assert!(done(&world, "lint").contains("0 errors, 0 warnings"));
    done(&world, "rule on git-discipline local_testing no_stubs");
    assert_eq!(done(&world, "rule list --changed --format compact"), "");
}

#[test]
fn a_pack_of_the_project_keeps_its_texts_and_its_trust() {
    let world = machine();
    done(&world, "init");
    let before = text(&world, &format!("{PROJECT}/guards.yaml")).unwrap();
    done(&world, "rule off rm_recursive --project");
    let after = text(&world, &format!("{PROJECT}/guards.yaml")).unwrap();
    assert!(after.starts_with(&before) && after.contains("id: rm_recursive"), "{after}");
    assert!(done(&world, "trust --list").trim_end().ends_with("trusted"));
    assert_eq!(decision(&world), "none -");
    assert!(done(&world, "lint").contains("0 errors, 0 warnings"));
    let list = done(&world, "rule list --changed --format compact");
    assert!(list.contains("rm_recursive off project"), "{list}");
    done(&world, "rule on rm_recursive --project");
    assert_eq!(text(&world, &format!("{PROJECT}/guards.yaml")), Some(before));
    assert_eq!(decision(&world), "block block");
}

#[test]
fn a_project_without_a_pack_gets_one_that_is_trusted() {
    let world = machine();
    done(&world, "rule warn rm_recursive --project --reason tests");
    let manifest = text(&world, &format!("{PROJECT}/policyd.yaml")).unwrap();
    assert_eq!(manifest, "version: 1\nextends: [builtin]\n");
    assert!(done(&world, "trust --list").trim_end().ends_with("trusted"));
    assert_eq!(decision(&world), "none warn");
    assert!(done(&world, "lint").contains("0 errors, 0 warnings"));
}

#[test]
fn a_rule_of_the_project_is_switched_off_and_on_again() {
    let world = machine();
    done(&world, "init");
    let file = format!("{PROJECT}/guards.yaml");
    let before = text(&world, &file).unwrap();
    let for_user = run(&world, "rule off production_deploy");
    assert_eq!(for_user.code, 2);
    assert!(for_user.err.contains("policyd rule off production_deploy --project"), "{for_user:?}");
    done(&world, "rule off production_deploy --project --reason trial");
    assert!(text(&world, &file).unwrap().contains("enabled: false  # trial\n"));
    let changed = done(&world, "rule list --changed");
    assert!(changed.contains("production_deploy") && changed.contains("trial"), "{changed}");
    done(&world, "rule on production_deploy --project");
    assert_eq!(text(&world, &file).unwrap(), before);
    let changed = done(&world, "rule list --changed --format compact");
    assert!(changed.contains("production_deploy added project "), "{changed}");
}

#[test]
fn what_cannot_be_changed_is_refused_with_the_fix() {
    let world = machine();
    let unknown = run(&world, "rule off rm_recursiv");
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("did you mean `rm_recursive`?"), "{}", unknown.err);
    world.put(
        format!("{PROJECT}/guards.yaml"),
        "- {id: rm_recursive, override: true, enabled: false}\n",
    );
    let untrusted = run(&world, "rule off rm_recursive --project");
    assert_eq!(untrusted.code, 3);
    assert!(untrusted.err.contains("policyd trust"), "{}", untrusted.err);
    world.put(
        format!("{USER}/guards.yaml"),
        "[{id: own, commands: [x], decision: warn, message: X.}]\n",
    );
    let other_form = run(&world, "rule off rm_recursive");
    assert!(other_form.err.contains("add these lines:\n- {id: rm_recursive"), "{}", other_form.err);
    world.put(format!("{USER}/guards.yaml"), "- idd: x\n");
    let invalid = run(&world, "rule off rm_recursive");
    assert!(invalid.err.contains("policyd lint"), "{}", invalid.err);
    world.put("/etc/policyd/policies/policyd.yaml", "version: 1\n");
    world.put(
        "/etc/policyd/policies/guards.yaml",
        "- {id: rm_recursive, override: true, reason: locked}\n",
    );
    for path in ["/", "/etc", "/etc/policyd", "/etc/policyd/policies"] {
        world.give_away(path, 0);
    }
    for file in ["policyd.yaml", "guards.yaml"] {
        world.give_away(format!("/etc/policyd/policies/{file}"), 0);
    }
    world.put(format!("{USER}/guards.yaml"), "");
    let locked = run(&world, "rule off rm_recursive");
    assert_eq!(locked.code, 1, "{locked:?}");
    assert!(locked.err.contains("the organization set the rule"), "{}", locked.err);
}

#[test]
fn observing_a_rule_that_is_not_enforced_by_name_names_the_right_command() {
    let world = machine();
    let said = run(&world, "enforce --observe local_testing");
    assert_eq!(said.code, 2);
    assert!(said.err.contains("policyd rule observe local_testing"), "{}", said.err);
    assert!(world.questions().is_empty());
    done(&world, "enforce local_testing");
    done(&world, "enforce --observe local_testing");
}

#[test]
fn rules_are_searched_and_explain_how_to_change_them() {
    let world = machine();
    let found = done(&world, "rules force");
    assert!(found.contains("git_push_force") && !found.contains("local_testing"), "{found}");
    assert!(done(&world, "rules rm").contains("rm_recursive"));
    let none = run(&world, "rules xyzzy");
    assert_eq!((none.code, none.out.as_str()), (2, ""));
    let page = done(&world, "rules rm_recursive");
    for command in ["rule off", "rule warn", "rule observe", "allow"] {
        assert!(page.contains(&format!("policyd {command} rm_recursive")), "{page}");
    }
    done(&world, "rule off rm_recursive --reason slow");
    let off = done(&world, "rules rm_recursive");
    assert!(off.starts_with("rm_recursive is off (layer user, /home/"), "{off}");
    assert!(off.contains("slow") && off.contains("policyd rule on rm_recursive"), "{off}");
}

#[test]
fn every_rule_that_a_layer_sets_is_listed_with_the_layer() {
    let world = machine();
    world.put(
        format!("{USER}/policyd.yaml"),
        "version: 1\nname: user\nguard_sets: {destructive-commands: false}\n",
    );
    let guards = "- {id: env_file_read, override: true, decision: warn, reason: r}\n\
        - {id: no_telnet, commands: [telnet], decision: block, message: No.}\n";
    world.put(format!("{USER}/guards.yaml"), guards);
    let list = done(&world, "rule list --changed --format compact");
    for line in
        ["env_file_read changed user ", "no_telnet added user ", "destructive-commands off user"]
    {
        assert_eq!(list.lines().filter(|it| it.starts_with(line)).count(), 1, "{line}: {list}");
    }
    assert_eq!(list.lines().count(), 3, "{list}");
}

#[test]
fn a_rule_that_only_warns_requests_nothing() {
    let world = machine();
    done(&world, "rule warn deleted_outside kubernetes");
    for line in ["rm -rf /opt/cache", "kubectl delete ns prod"] {
        let said = call(&world, &["check", line], b"").out;
        assert!(said.contains("delete"), "{said}");
        assert!(!said.contains("Approve only") && !said.contains("Ask the user"), "{said}");
    }
    assert!(!done(&world, "rules deleted_outside").contains("Approve only"));
    done(&world, "rule on deleted_outside");
    assert!(done(&world, "rules deleted_outside").contains("Approve only"));
}

#[test]
fn the_page_of_a_check_shows_what_the_agent_does() {
    let page = done(&machine(), "rules local_testing");
    assert!(page.contains("(fails), says \"The parser is there.\""), "{page}");
    assert!(!page.contains("a missing program is not a failure"), "no name of a case: {page}");
}
