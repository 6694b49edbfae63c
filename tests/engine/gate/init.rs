//! `policyd init`: what it writes, what it keeps, what changed in the built-in pack, and packs that are not active.

use policyd::book::EXAMPLES;

use super::scene::{Called, Scene};

const RULES: &str = "/work/p/considerations.yaml";

fn policyd(scene: &Scene, line: &str) -> Called {
    let words: Vec<&str> = std::iter::once("policyd").chain(line.split(' ')).collect();
    scene.run(&words, b"")
}

fn init(scene: &Scene, more: &[&str]) -> Called {
    scene.run(&[&["policyd", "init", "/work/p"], more].concat(), b"")
}

#[test]
fn existing_files_are_kept_and_get_no_cases_of_other_rules() {
    let scene = Scene::new();
    let rule = "- {id: own, category: Own, question: Is it done?, severity: warning, satisfied: todos.open == 0}\n";
    scene.world.put(RULES, rule);
    let called = init(&scene, &[]);
    assert_eq!(called.code, 0, "{called:?}");
    assert!(called.stdout.contains("kept  p/considerations.yaml"), "{}", called.stdout);
    for absent in ["guards.yaml", "tests/changelog.yaml", "tests/deploy.yaml"] {
        assert_eq!(scene.world.get(format!("/work/p/{absent}")), None);
    }
    assert_eq!(scene.world.get(RULES).unwrap(), rule.as_bytes());
    assert!(called.stdout.contains("wrote p/builtin"), "{}", called.stdout);
    for copies in ["builtin", "schemas"] {
        let ignored = scene.world.get(format!("/work/p/{copies}/.gitignore")).unwrap();
        assert!(ignored.ends_with(b"\n*\n"), "git ignores the copies");
    }
    let again = init(&scene, &[]);
    assert!(again.stdout.contains("kept  p/builtin"), "{}", again.stdout);
}

#[test]
fn removed_files_of_the_built_in_pack_are_shown_and_removed() {
    let scene = Scene::new();
    init(&scene, &[]);
    assert_eq!(init(&scene, &["--upgrade"]).stdout, "the built-in pack is unchanged\n");
    scene.world.put("/work/p/builtin/gone.yaml", "- old\n");
    let called = init(&scene, &["--upgrade"]);
    assert_eq!(called.code, 1, "{called:?}");
    assert!(called.stdout.contains("-- old\n"), "{}", called.stdout);
    assert_eq!(scene.world.get("/work/p/builtin/gone.yaml"), None);
    assert_eq!(init(&scene, &["--upgrade"]).code, 0);
}

// The README lints a new pack and runs its cases.
#[test]
fn a_new_pack_is_active() {
    let scene = Scene::new();
    let called = policyd(&scene, "init");
    assert!(called.stdout.contains("is trusted and active"), "{}", called.stdout);
    let rules = policyd(&scene, "rules").stdout;
    assert!(rules.contains("production_deploy") && rules.contains("changelog"), "{rules}");
    let again = policyd(&scene, "init");
    assert!(again.stdout.contains("is trusted and active"), "{}", again.stdout);
}

#[test]
#[ignore = "second tier: it runs all cases of the built-in pack"]
fn a_pack_in_another_directory_is_named_by_each_command_that_does_not_use_it() {
    let scene = Scene::new();
    let called = init(&scene, &[]);
    for part in ["p is not active", "policyd lint p", "policyd test p", "mv p .policyd/policies"] {
        assert!(called.stdout.contains(part), "{}", called.stdout);
    }
    let part = "the pack in `p` is not active";
    for line in ["lint", "test --filter own", "trust"] {
        let called = policyd(&scene, line);
        assert!(called.stderr.contains(part), "{line}: {}", called.stderr);
        assert!(called.stderr.contains("help: check it with `policyd lint p`"), "{line}");
    }
    assert!(policyd(&scene, "doctor").stdout.contains(part));
    let trusted = policyd(&scene, "trust p");
    assert!(trusted.stderr.contains("the pack is not active"), "{}", trusted.stderr);
    // With a second pack, none of them is the pack that the user means.
    scene.world.put("/work/q/policyd.yaml", "version: 1\n");
    assert!(!policyd(&scene, "lint").stderr.contains("is not active"));
}

#[test]
fn commands_without_a_path_use_the_pack_in_the_working_directory() {
    let scene = Scene::new();
    scene.world.put("/work/policyd.yaml", "version: 1\n");
    scene.world.put("/work/guards.yaml", "- {id: own, decison: deny}\n");
    let called = policyd(&scene, "lint");
    assert!(called.stdout.contains("guards.yaml") && called.code == 1, "{}", called.stdout);
    let called = policyd(&scene, "test");
    assert!(called.stderr.contains("no case file in"), "{}", called.stderr);
}

#[test]
fn examples_are_listed_and_written_once() {
    let scene = Scene::new();
    let listed = policyd(&scene, "init --list-examples").stdout;
    assert_eq!(listed, policyd(&scene, "init --example").stdout);
    for example in EXAMPLES {
        assert!(listed.contains(example.name) && listed.contains(example.summary()));
        assert!(example.summary().len() > 20, "{}", example.name);
        let line = format!("init /work/{0} --example {0}", example.name);
        let called = policyd(&scene, &line);
        assert_eq!(called.code, 0, "{}", called.stderr);
        for (file, text) in example.files {
            let written = scene.world.get(format!("/work/{}/{file}", example.name));
            assert_eq!(written.unwrap(), text.as_bytes(), "{file}");
        }
        let again = policyd(&scene, &line);
        assert_eq!(again.code, 3);
        assert!(again.stderr.contains("exists; no file was written"), "{}", again.stderr);
    }
    let active = policyd(&scene, "init --example changelog");
    assert!(active.stdout.contains("is trusted and active"), "{}", active.stdout);
    let unknown = policyd(&scene, "init --example changlog");
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("help: did you mean `changelog`?"), "{}", unknown.stderr);
}
