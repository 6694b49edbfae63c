//! Settings of the organization: they hold against every way to weaken the rules of users and projects.

use std::path::Path;
use std::time::Duration;

use policyd::policy::EnforcementMode;
use policyd::store::allowance::{Allowance, AllowanceTarget};
use policyd::store::enforcement::EnforcementStore;
use policyd::store::pause::Pause;
use policyd::store::user_choices::{DisabledProject, UserChoiceStore, UserChoices};
use policyd::time::Timestamp;
use policyd::world::fake::FakeWorld;
use policyd::world::{Confirmation, World};

use super::organization::{decision, machine_with_work, stop, tool_call};
use crate::support::console::call;
use crate::support::machine;

const FILE: &str = "/etc/policyd/config.yaml";

const STRICT: &str = "\
mode: enforce
allow_disable: false
allow_exceptions: false
trust:
  allowed_packs: []
";

/// A machine on which root wrote settings.
fn pinned(settings: &str) -> FakeWorld {
    let world = machine_with_work();
    pin(&world, settings);
    world
}

fn pin(world: &FakeWorld, settings: &str) {
    world.put(FILE, settings);
    ["/", "/etc", "/etc/policyd", FILE].iter().for_each(|it| world.give_away(*it, 0));
}

fn choose(world: &FakeWorld, change: impl FnOnce(&mut UserChoices)) {
    UserChoiceStore::new(world, Path::new("/work/.policyd")).change(change).unwrap();
}

fn allow(world: &FakeWorld, rule: &str) {
    let since = world.now();
    let until = since.plus(Duration::from_secs(600));
    let target = AllowanceTarget::Rule(rule.to_owned());
    let (once, by) = (false, "ada".to_owned());
    let allowance = Allowance { target, session: None, since, until, once, by };
    choose(world, |it| it.add_allowance(allowance, since));
}

/// A way to weaken the built-in rules.
struct Weakening {
    name: &'static str,
    apply: fn(&FakeWorld),
    /// Whether it also weakens checks of a stop.
    at_stop: bool,
}

const fn way(name: &'static str, apply: fn(&FakeWorld)) -> Weakening {
    Weakening { name, apply, at_stop: true }
}

const fn of_guards(name: &'static str, apply: fn(&FakeWorld)) -> Weakening {
    Weakening { name, apply, at_stop: false }
}

/// A pack that does not contain `files` changes nothing.
fn named_pack(world: &FakeWorld, file: &str, text: &str) {
    world.set_env("POLICYD_POLICIES", "/pack");
    world.put(format!("/pack/{file}"), text);
}

const WEAKENINGS: &[Weakening] = &[
    way("POLICYD_DISABLED", |world| world.set_env("POLICYD_DISABLED", "1")),
    way("amplihack's variable", |world| world.set_env("AMPLIHACK_SKIP_POWER_STEERING", "1")),
    way("policyd disable", |world| {
        let since = Timestamp::from_millis(0);
        choose(world, |it| it.disabled = Some(DisabledProject { since, reason: String::new() }));
    }),
    way("policyd pause", |world| {
        let since = world.now();
        let until = since.plus(Duration::from_secs(600));
        let pause = Pause { session: None, since, until, reason: String::new() };
        choose(world, |it| it.add_pause(pause, since));
    }),
    way("a switch file", |world| {
        choose(world, |it| it.switch_files = true);
        world.put("/work/.policyd/.disabled", "");
    }),
    way("amplihack's configuration", |world| {
        choose(world, |it| it.switch_files = true);
        let path = "/work/.claude/tools/amplihack/.power_steering_config";
        world.put(path, r#"{"enabled": false}"#);
    }),
    way("policyd enforce --observe", |world| {
        EnforcementStore::new(world).change(|it| it.mode = EnforcementMode::Observe).unwrap();
    }),
    way("a manifest with mode: observe", |world| {
        named_pack(world, "policyd.yaml", "version: 1\nmode: observe\n");
    }),
    way("a manifest with enabled: false", |world| {
        named_pack(world, "policyd.yaml", "version: 1\nenabled: false\n");
    }),
    way("a pack without the built-in one", |world| {
        named_pack(world, "policyd.yaml", "version: 1\nextends: []\n");
    }),
    of_guards("a manifest without a set of guards", |world| {
        let text = "version: 1\nguard_sets:\n  destructive-commands: false\n";
        named_pack(world, "policyd.yaml", text);
    }),
    of_guards("an override", |world| {
        named_pack(
            world,
            "guards.yaml",
            "- id: rm_recursive\n  override: true\n  enabled: false\n",
        );
    }),
    of_guards("an override in shadow mode", |world| {
        named_pack(world, "guards.yaml", "- id: rm_recursive\n  override: true\n  mode: shadow\n");
    }),
    of_guards("an override in the trusted pack of the project", |world| {
        machine::trusting(world);
        let text = "- id: rm_recursive\n  override: true\n  enabled: false\n";
        world.put("/work/.policyd/policies/guards.yaml", text);
    }),
    of_guards("an override in the pack of the user", |world| {
        let text = "- id: rm_recursive\n  override: true\n  enabled: false\n";
        world.put("/home/me/.config/policyd/policies/guards.yaml", text);
    }),
    of_guards("policyd allow", |world| allow(world, "rm_recursive")),
];

const DESTRUCTIVE: &str = "rm -rf /srv/data";

#[test]
fn every_weakening_works_without_the_settings_and_none_with_them() {
    for it in WEAKENINGS {
        let world = machine_with_work();
        (it.apply)(&world);
        let answer = tool_call(&world, DESTRUCTIVE, &[]);
        assert_ne!(decision(&answer), "deny", "{}: {answer}", it.name);
        pin(&world, STRICT);
        let answer = tool_call(&world, DESTRUCTIVE, &[]);
        assert_eq!(decision(&answer), "deny", "{}: {answer}", it.name);
    }
    let world = pinned(STRICT);
    world.put("/free/policyd.yaml", "version: 1\nenabled: false\n");
    let answer = tool_call(&world, DESTRUCTIVE, &["--policies", "/free"]);
    assert_eq!(decision(&answer), "deny", "{answer}");
}

#[test]
fn no_weakening_ends_a_stop_check_if_the_settings_forbid_it() {
    for it in WEAKENINGS.iter().filter(|it| it.at_stop) {
        let world = machine_with_work();
        (it.apply)(&world);
        assert_ne!(stop(&world)["decision"], "block", "{}", it.name);
        pin(&world, STRICT);
        let answer = stop(&world);
        assert_eq!(answer["decision"], "block", "{}: {answer}", it.name);
    }
}

#[test]
fn each_setting_decides_its_own_subject() {
    let blocks = |settings: &str, name: &str| {
        let world = pinned(settings);
        let weakening = WEAKENINGS.iter().find(|it| it.name == name).unwrap();
        (weakening.apply)(&world);
        decision(&tool_call(&world, DESTRUCTIVE, &[])) == "deny"
    };
    for (settings, name, expected) in [
        ("mode: enforce\n", "policyd enforce --observe", true),
        ("mode: enforce\n", "a manifest with mode: observe", true),
        ("mode: enforce\n", "policyd pause", false),
        ("allow_disable: false\n", "policyd pause", true),
        ("allow_disable: false\n", "a manifest with enabled: false", true),
        ("allow_disable: false\n", "an override", false),
        ("allow_disable: true\n", "policyd pause", false),
        ("allow_exceptions: false\n", "policyd allow", true),
        ("allow_exceptions: false\n", "policyd disable", false),
        ("trust: {allowed_packs: []}\n", "an override", true),
        ("trust:\n  allowed_packs:\n", "an override", true),
        ("trust: {}\n", "an override", false),
        ("mode: observe\n", "a switch file", false),
    ] {
        assert_eq!(blocks(settings, name), expected, "{settings} {name}");
    }
}

#[test]
fn a_pinned_mode_observes_although_a_manifest_or_the_user_enforces() {
    let world = pinned("mode: observe\n");
    named_pack(&world, "policyd.yaml", "version: 1\nmode: enforce\n");
    EnforcementStore::new(&world)
        .change(|it| it.enforced.insert("rm_recursive".to_owned()))
        .unwrap();
    assert_eq!(decision(&tool_call(&world, DESTRUCTIVE, &[])), "none");
    assert_ne!(stop(&world)["decision"], "block");
}

#[test]
fn an_allowed_pack_is_used_and_another_content_is_not() {
    let world = machine_with_work();
    named_pack(&world, "guards.yaml", "- id: rm_recursive\n  override: true\n  enabled: false\n");
    let said = call(&world, &["trust", "--hash", "/pack"], b"");
    let hash = said.out.split_whitespace().next().unwrap().to_owned();
    pin(&world, &format!("trust:\n  allowed_packs: [{}]\n", hash.to_ascii_uppercase()));
    assert_eq!(decision(&tool_call(&world, DESTRUCTIVE, &[])), "none");
    world.put("/pack/guards.yaml", "- id: rm_recursive\n  override: true\n  enabled: no\n");
    assert_eq!(decision(&tool_call(&world, DESTRUCTIVE, &[])), "deny");
    let said = call(&world, &["rules"], b"");
    assert!(said.err.contains("the organization allows only certain packs"), "{}", said.err);
}

#[test]
fn commands_refuse_what_the_organization_decided() {
    for (command, key) in [
        (&["pause", "10m"][..], "allow_disable: false"),
        (&["disable"], "allow_disable: false"),
        (&["trust", "--switch-files"], "allow_disable: false"),
        (&["enforce", "--observe"], "mode: enforce"),
        (&["enforce", "rm_recursive"], "mode: enforce"),
        (&["allow", "rm_recursive", "--once"], "allow_exceptions: false"),
        (&["trust", "/work/.policyd/policies"], "trust.allowed_packs"),
    ] {
        let world = pinned(STRICT);
        world.put("/work/.policyd/policies/policyd.yaml", "version: 1\n");
        world.set_confirmation(Confirmation::Yes);
        let before = world.files();
        let said = call(&world, command, b"");
        assert_eq!(said.code, 1, "{command:?}: {said:?}");
        assert!(said.err.contains(&format!("`{key}` in `{FILE}`")), "{command:?}: {said:?}");
        assert_eq!(world.files(), before, "{command:?}");
    }
}

#[test]
fn a_file_with_an_error_forbids_what_it_could_forbid() {
    for text in ["allow_disable: false\nmode: [\n", "mode: [\nallow_disable: true\n", "\u{0}"] {
        let world = pinned(text);
        world.set_env("POLICYD_DISABLED", "1");
        assert_eq!(decision(&tool_call(&world, DESTRUCTIVE, &[])), "deny", "{text}");
        let said = call(&world, &["pause", "1m"], b"").err;
        assert!(said.contains("the organization may forbid this"), "{text}: {said}");
    }
}

#[test]
fn settings_that_somebody_else_can_change_are_ignored_and_reported() {
    for part in ["/", "/etc", "/etc/policyd", FILE] {
        for (change, why) in [
            (FakeWorld::give_away as fn(&FakeWorld, &'static str, u32), "belongs to user 1000"),
            (|world, path, _| world.share_write(path, 0), "can be changed by other users"),
            (|world, path, _| world.put_link(path, "/tmp/x"), "is a symbolic link"),
        ] {
            let world = pinned(STRICT);
            if part == FILE && why.contains("link") {
                world.put("/tmp/x", STRICT);
            }
            change(&world, part, 1000);
            world.set_env("POLICYD_DISABLED", "1");
            // It can still forbid something: what cannot be read counts as forbidden.
            assert_eq!(decision(&tool_call(&world, DESTRUCTIVE, &[])), "deny", "{part}");
            let said = call(&world, &["doctor"], b"").out;
            let expected = format!("settings of the organization are ignored: `{part}` {why}");
            assert!(said.contains(&expected), "{part}: {said}");
        }
    }
}

#[test]
fn an_invalid_key_is_reported_and_the_others_count() {
    let text = "mode: enforce\nallow_disable: nope\nalow_exceptions: false\ntrust: {allowed_packs: [abc]}\n";
    let world = pinned(text);
    named_pack(&world, "policyd.yaml", "version: 1\nmode: observe\n");
    assert_eq!(decision(&tool_call(&world, DESTRUCTIVE, &[])), "deny");
    let said = call(&world, &["doctor"], b"");
    assert_eq!(said.code, 1);
    for place in ["config.yaml:2:16", "config.yaml:3:1", "config.yaml:4:25"] {
        assert!(said.out.contains(place), "{place}: {}", said.out);
    }
    let notice = stop(&world)["systemMessage"].as_str().unwrap().to_owned();
    assert!(notice.contains("config.yaml:2:16"), "{notice}");
}

#[test]
fn doctor_and_rules_list_the_settings() {
    let world = pinned(STRICT);
    world.set_env("POLICYD_DISABLED", "1");
    let doctor = call(&world, &["doctor"], b"").out;
    let rules = call(&world, &["rules"], b"").err;
    for line in [
        "mode: enforce: ",
        "allow_disable: false: ",
        "allow_exceptions: false: ",
        "trust.allowed_packs: ",
    ] {
        assert!(doctor.contains(&format!("{FILE}: {line}")), "{doctor}");
        assert!(rules.contains(&format!("set by the organization: {line}")), "{rules}");
    }
    let ignored = "does not allow that policyd is disabled; this is ignored: disabled: the variable POLICYD_DISABLED";
    assert!(doctor.contains(ignored) && rules.contains(ignored), "{doctor}\n{rules}");
}
