//! `policyd init`: what it writes, what it keeps, and what changed in the built-in pack since.

use super::scene::{Called, Scene};

const RULES: &str = "/work/p/considerations.yaml";

fn init(scene: &Scene, more: &[&str]) -> Called {
    scene.run(&[&["policyd", "init", "/work/p"], more].concat(), b"")
}

#[test]
fn what_is_there_is_kept_and_gets_no_cases_of_other_rules() {
    let scene = Scene::new();
    let rule = "- {id: own, category: Own, question: Is it done?, severity: warning, satisfied: todos.open == 0}\n";
    scene.world.put(RULES, rule);
    let called = init(&scene, &[]);
    assert_eq!(called.code, 0, "{called:?}");
    assert!(called.stdout.contains(&format!("kept  {RULES}")), "{}", called.stdout);
    assert_eq!(scene.world.get("/work/p/tests/changelog.yaml"), None);
    assert_eq!(scene.world.get(RULES).unwrap(), rule.as_bytes());
    assert!(called.stdout.contains("wrote /work/p/builtin"), "{}", called.stdout);
    let again = init(&scene, &[]);
    assert!(again.stdout.contains("kept  /work/p/builtin"), "{}", again.stdout);
}

#[test]
fn what_the_built_in_pack_no_longer_holds_is_told_and_goes() {
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
