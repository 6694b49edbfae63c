//! Attacks on remote packs: each is rejected, reported, and leaves the last good version active.

use policyd::policy::pack_list::{LIST_FILE, SIGNATURE_FILE};
use policyd::world::{Confirmation, World};
use serde_json::json;
use tar::EntryType;

use super::scene::Scene;
use crate::support::console::{Said, call};
use crate::support::packs::{GUARDS, Publisher, archive, compress, list, listed, tar, team};

const URL: &str = "https://packs.example.com/team.tar.zst";
const PACK: &str = "/work/.policyd/policies";
const CONFIG: &str = "/config/policyd/config.yaml";
const CACHE: &str = "/home/me/.local/share/policyd/packs";

/// A project whose pack extends a remote one; `entry` are more keys of the entry.
fn project(entry: &str) -> Scene {
    let scene = Scene::new();
    scene.world.set_env("HOME", "/home/me");
    extend(&scene, entry);
    scene
}

fn extend(scene: &Scene, entry: &str) {
    let manifest = format!("version: 1\nextends:\n  - source: {URL}\n{entry}");
    scene.world.put(format!("{PACK}/policyd.yaml"), manifest);
}

fn pack(scene: &Scene, words: &[&str]) -> Said {
    let words: Vec<&str> = std::iter::once("pack").chain(words.iter().copied()).collect();
    call(&scene.world, &words, b"")
}

/// The decision about a call that the remote pack blocks.
fn decision(scene: &Scene) -> String {
    let payload = json!({"session_id": "s", "cwd": "/work", "tool_name": "Bash",
        "tool_input": {"command": "make deploy"}});
    let called =
        scene.run(&["policyd", "eval", "--hook", "pre-tool-use"], payload.to_string().as_bytes());
    let answer = called.json();
    let decision = answer["hookSpecificOutput"]["permissionDecision"].as_str();
    decision.unwrap_or("none").to_owned()
}

/// Requires signatures by these keys in the user's configuration.
fn require(scene: &Scene, keys: &str) {
    scene.world.put(CONFIG, format!("packs:\n  require_signature: true\n  keys: [{keys}]\n"));
}

/// Serves an archive and updates. The update must fail with this reason, and version 1.1.0 must stay active.
fn rejects(scene: &Scene, bytes: Vec<u8>, reason: &str) {
    let lock = scene.world.get(format!("{PACK}/policies.lock"));
    scene.world.serve(URL, bytes);
    let said = pack(scene, &["update"]);
    assert_eq!(said.code, 1, "{reason}: {}", said.out);
    assert!(said.err.contains(reason), "{reason}: {}", said.err);
    assert!(said.err.contains("team 1.1.0") && said.err.contains("stays active"), "{}", said.err);
    assert_eq!(scene.world.get(format!("{PACK}/policies.lock")), lock, "{reason}");
    assert_eq!(decision(scene), "deny", "{reason}");
}

/// Other content with the same version and guards.
fn other(version: &str) -> Vec<(&'static str, String)> {
    let mut files = team(version);
    files.push(("tables.yaml", "[]\n".to_owned()));
    files
}

#[test]
fn a_signed_pack_is_never_replaced_by_one_that_is_not_signed_the_same_way() {
    let (publisher, thief) = (Publisher::new(), Publisher::new());
    let (good, next) = (team("1.1.0"), other("1.2.0"));
    let signature = |of: &Publisher, text: &str| (SIGNATURE_FILE, of.sign(text));
    let with = |files: Vec<(&'static str, String)>, signature: (&'static str, String)| {
        let mut all = listed(&files);
        all.push(signature);
        archive(&all)
    };
    // Who requires the signature: the user, a prefix of the user, the manifest, and the first fetch with a known key.
    let key = publisher.key();
    for (config, entry) in [
        (format!("packs: {{require_signature: true, keys: [{key}]}}\n"), String::new()),
        (format!("packs: {{sources: {{'https://packs.example.com/': {key}}}}}\n"), String::new()),
        (String::new(), format!("    key: {key}\n")),
        (format!("packs: {{keys: [{key}]}}\n"), String::new()),
    ] {
        let scene = project(&entry);
        scene.world.put(CONFIG, &config);
        scene.world.serve(URL, archive(&publisher.signed(&good)));
        let fetched = pack(&scene, &["fetch"]);
        assert_eq!(fetched.code, 0, "{config}{entry}: {}", fetched.err);
        assert_eq!(decision(&scene), "deny", "{config}{entry}");

        rejects(&scene, archive(&listed(&next)), "is not signed");
        rejects(&scene, archive(&next), "is not signed");
        rejects(&scene, archive(&thief.signed(&next)), "signed by another key");
        // The signature of the old version beside new files.
        rejects(
            &scene,
            with(next.clone(), signature(&publisher, &list(&good).text())),
            "does not fit",
        );
        rejects(
            &scene,
            with(next.clone(), (SIGNATURE_FILE, "x".to_owned())),
            "not one of minisign",
        );
        // A manifest of the pack cannot lower what others require.
        let mut lowered = next.clone();
        lowered[0].1.push_str("require_signature: false\n");
        rejects(&scene, archive(&listed(&lowered)), "is not signed");

        scene.world.serve(URL, archive(&publisher.signed(&next)));
        let updated = pack(&scene, &["update"]);
        assert!(updated.code == 0 && updated.out.contains("1.1.0"), "{}", updated.err);
    }
}

#[test]
fn a_requirement_counts_from_the_moment_it_is_set() {
    let (publisher, scene) = (Publisher::new(), project(""));
    scene.world.serve(URL, archive(&listed(&team("1.1.0"))));
    assert_eq!(pack(&scene, &["fetch"]).code, 0);
    assert_eq!(decision(&scene), "deny");
    require(&scene, &publisher.key());
    assert_eq!(decision(&scene), "none", "an unsigned pack is not used any more");
    let stop = scene.stop().json()["systemMessage"].as_str().unwrap().to_owned();
    assert!(stop.contains("is not signed, but your configuration requires"), "{stop}");
    scene.world.serve(URL, archive(&publisher.signed(&team("1.1.0"))));
    assert_eq!(pack(&scene, &["fetch"]).code, 0);
    assert_eq!(decision(&scene), "deny", "the same content with a signature");

    require(&scene, "");
    assert!(pack(&scene, &["verify"]).err.contains("names no key"));
    require(&scene, "RWabc");
    assert!(pack(&scene, &["verify"]).err.contains("is not a public key of minisign"));
    for broken in ["packs: [", "packs: {require_signature: yes please}\n", "packs: {key: x}\n"] {
        scene.world.put(CONFIG, broken);
        assert!(pack(&scene, &["verify"]).err.contains("is invalid"), "{broken}");
        assert_eq!(decision(&scene), "none", "a requirement could be overlooked: {broken}");
        assert_eq!(pack(&scene, &["update"]).code, 3, "{broken}");
    }
}

#[test]
fn the_organization_requires_a_signature_that_nothing_lowers() {
    let (publisher, thief) = (Publisher::new(), Publisher::new());
    let scene = project(&format!("    key: {}\n", thief.key()));
    for path in ["/", "/etc", "/etc/policyd", "/etc/policyd/config.yaml"] {
        scene.world.give_away(path, 0);
    }
    let rules = format!("packs: {{require_signature: true, keys: [{}]}}\n", publisher.key());
    scene.world.put("/etc/policyd/config.yaml", &rules);
    scene
        .world
        .put(CONFIG, format!("packs: {{require_signature: false, keys: [{}]}}\n", thief.key()));
    scene.world.serve(URL, archive(&thief.signed(&team("1.1.0"))));
    let said = pack(&scene, &["fetch"]);
    assert!(said.code == 1 && said.err.contains("the organization requires"), "{}", said.err);
    extend(&scene, "");
    scene.world.put(CONFIG, "{}\n");
    scene.world.serve(URL, archive(&publisher.signed(&team("1.1.0"))));
    assert_eq!(pack(&scene, &["fetch"]).code, 0);
    assert_eq!(decision(&scene), "deny");
}

#[test]
fn a_new_key_counts_if_the_user_names_it() {
    let (old, new) = (Publisher::new(), Publisher::new());
    let scene = project(&format!("    key: {}\n", old.key()));
    scene.world.serve(URL, archive(&old.signed(&team("1.1.0"))));
    assert_eq!(pack(&scene, &["fetch"]).code, 0);
    // The repository changes the key of its entry: the lock file still demands the old one.
    extend(&scene, &format!("    key: {}\n", new.key()));
    scene.world.serve(URL, archive(&new.signed(&other("1.2.0"))));
    let said = pack(&scene, &["update"]);
    assert!(said.code == 1 && said.err.contains("the lock file requires"), "{}", said.err);
    scene.world.put(CONFIG, format!("packs: {{sources: {{'{URL}': {}}}}}\n", new.key()));
    let said = pack(&scene, &["update"]);
    assert!(said.code == 0 && said.out.contains("1.2.0"), "{}", said.err);
}

#[test]
fn doctor_reports_a_failed_fetch_until_one_succeeds() {
    let scene = project("");
    scene.world.serve(URL, archive(&listed(&team("1.1.0"))));
    assert_eq!(pack(&scene, &["fetch"]).code, 0);
    rejects(&scene, archive(&listed(&team("1.0.0"))), "is older than");
    let doctor = || call(&scene.world, &["doctor"], b"").out;
    let failed = doctor();
    assert!(failed.contains("the last fetch failed") && failed.contains("1.0.0"), "{failed}");
    scene.world.serve(URL, archive(&listed(&other("1.2.0"))));
    assert_eq!(pack(&scene, &["update"]).code, 0);
    assert!(!doctor().contains("the last fetch failed"));
}

#[test]
fn an_older_version_is_rejected_until_a_human_accepts_it() {
    let publisher = Publisher::new();
    let scene = project("");
    require(&scene, &publisher.key());
    scene.world.serve(URL, archive(&publisher.signed(&team("1.1.0"))));
    assert_eq!(pack(&scene, &["fetch"]).code, 0);
    let older = archive(&publisher.signed(&team("1.0.9")));
    rejects(&scene, older.clone(), "version 1.0.9 is older than 1.1.0");
    rejects(&scene, archive(&publisher.signed(&team("1.1.0-rc.1"))), "is older than 1.1.0");
    let mut none = team("1.1.0");
    none[0].1 = "version: 1\nname: team\n".to_owned();
    rejects(&scene, archive(&publisher.signed(&none)), "version none is older");
    // Another project without a lock file is on the same machine.
    scene.world.remove(format!("{PACK}/policies.lock").as_ref()).unwrap();
    scene.world.serve(URL, older);
    let said = pack(&scene, &["fetch"]);
    assert!(said.code == 1 && said.err.contains("is older than 1.1.0"), "{}", said.err);
    scene.world.set_confirmation(Confirmation::No);
    let said = pack(&scene, &["update", "--allow-older"]);
    assert!(said.code == 1 && said.err.contains("not confirmed"), "{}", said.err);
    scene.world.set_confirmation(Confirmation::Yes);
    let said = pack(&scene, &["update", "--allow-older"]);
    assert!(said.code == 0 && said.out.contains("team 1.0.9"), "{}", said.err);
    assert!(scene.world.questions().iter().any(|it| it.contains("older versions")));
}

#[test]
fn damaged_and_unsafe_archives_are_rejected() {
    let scene = project("");
    scene.world.serve(URL, archive(&listed(&team("1.1.0"))));
    assert_eq!(pack(&scene, &["fetch"]).code, 0);
    let next = listed(&other("1.2.0"));
    let whole = archive(&next);
    for length in [0, 1, 10, whole.len() / 2, whole.len() - 1] {
        rejects(&scene, whole[..length].to_vec(), "incomplete or damaged");
    }
    let mut flipped = whole.clone();
    flipped.truncate(4);
    flipped.extend([0xff; 64]);
    rejects(&scene, flipped, "incomplete or damaged");
    // A file of the list is missing, or is another one.
    let without: Vec<_> = next.iter().filter(|(name, _)| *name != "guards.yaml").cloned().collect();
    rejects(&scene, archive(&without), "not those of `pack.manifest`");
    let mut changed = next.clone();
    changed[1].1 = GUARDS.replace("decision: block", "decision: warn");
    rejects(&scene, archive(&changed), "not those of `pack.manifest`");
    let mut list = next.clone();
    list.last_mut().unwrap().1.push('\n');
    assert_eq!(list.last().unwrap().0, LIST_FILE);
    rejects(&scene, archive(&list), "not those of `pack.manifest`");

    let regular = EntryType::Regular;
    let manifest = ("policyd.yaml", regular, "version: 1\nname: team\npack_version: 1.2.0\n");
    for (entry, reason) in [
        (("../guards.yaml", regular, "[]"), "leaves the archive"),
        (("a/../../guards.yaml", regular, "[]"), "leaves the archive"),
        (("/etc/guards.yaml", regular, "[]"), "leaves the archive"),
        (("guards.yaml", EntryType::Symlink, ""), "is not a regular file"),
        (("guards.yaml", EntryType::Link, ""), "is not a regular file"),
        (("guards.yaml", EntryType::Fifo, ""), "is not a regular file"),
        (("policyd.yaml", regular, "version: 1\n"), "contains `policyd.yaml` twice"),
        (("my guards.yaml", regular, "[]"), "is not a name of a policy file"),
        (("unknown.yaml", regular, "[]"), "is not a file of a pack"),
        (("guards.yaml", regular, "- {id: x"), "does not load"),
    ] {
        let entries = [manifest, entry].into_iter();
        let entries = entries.map(|(name, kind, text)| (name, kind, text.as_bytes()));
        rejects(&scene, compress(&tar(entries)), reason);
    }
    let huge = vec![b'#'; 65 * 1024 * 1024];
    let entries = [("README.md", regular, huge.as_slice())];
    rejects(&scene, compress(&tar(entries.into_iter())), "is larger than");
    let nested =
        format!("version: 1\nname: team\npack_version: 1.2.0\nextends: [{{source: '{URL}'}}]\n");
    let nested = [("policyd.yaml", nested)];
    rejects(&scene, archive(&nested), "extends another source");
}

#[test]
fn the_manifest_and_the_lock_file_fix_the_content() {
    let good = list(&team("1.1.0")).hash();
    let scene = project(&format!("    sha256: {good}\n"));
    scene.world.serve(URL, archive(&listed(&team("1.1.0"))));
    assert_eq!(pack(&scene, &["fetch"]).code, 0);
    rejects(&scene, archive(&listed(&other("1.2.0"))), "but the manifest demands");
    // The same on a machine that lacks the content.
    for path in scene.world.files() {
        if path.starts_with(CACHE) {
            scene.world.remove(&path).unwrap();
        }
    }
    extend(&scene, "");
    let said = pack(&scene, &["fetch"]);
    assert!(said.code == 1 && said.err.contains("but the lock file demands"), "{}", said.err);
    assert_eq!(decision(&scene), "none");
    scene.world.serve(URL, archive(&listed(&team("1.1.0"))));
    assert_eq!(pack(&scene, &["fetch"]).code, 0);
    assert_eq!(decision(&scene), "deny");
}

#[test]
fn a_changed_file_of_the_cache_is_never_used() {
    let scene = project("");
    scene.world.serve(URL, archive(&listed(&team("1.1.0"))));
    assert_eq!(pack(&scene, &["fetch"]).code, 0);
    let folder = format!("{CACHE}/{}", list(&team("1.1.0")).hash());
    for file in ["guards.yaml", "policyd.yaml", LIST_FILE] {
        let path = format!("{folder}/{file}");
        let before = scene.world.get(&path).unwrap();
        let text = String::from_utf8(before.clone()).unwrap();
        for damaged in [text.replace("block", "warn") + "#", text[..text.len() / 2].to_owned()] {
            scene.world.put(&path, damaged);
            let said = pack(&scene, &["verify"]);
            assert!(said.code == 1 && said.err.contains("is damaged in the cache"), "{}", said.err);
        }
        scene.world.put(&path, before);
    }
    assert_eq!(pack(&scene, &["verify"]).code, 0);
    scene.world.put(format!("{folder}/guards.yaml"), "[]\n");
    let repaired = pack(&scene, &["fetch"]);
    assert!(repaired.out.starts_with("fetched"), "{}", repaired.err);
    assert_eq!(decision(&scene), "deny");
    for lock in ["{}", "{\"version\":2,\"packs\":[]}", "{\"version\":1,\"packs\":[{}]}"] {
        scene.world.put(format!("{PACK}/policies.lock"), lock);
        assert!(pack(&scene, &["verify"]).err.contains("`policies.lock` is invalid"), "{lock}");
        assert_eq!(pack(&scene, &["fetch"]).code, 3, "{lock}");
    }
}

/// A machine whose organization extends the remote pack. Returns the directory of its content.
fn governed() -> (Scene, String) {
    let scene = Scene::new();
    scene.world.set_env("HOME", "/home/me");
    let policies = "/etc/policyd/policies";
    scene.world.put(
        format!("{policies}/policyd.yaml"),
        format!("version: 1\nextends:\n  - source: {URL}\n"),
    );
    scene.world.serve(URL, archive(&listed(&team("1.1.0"))));
    assert_eq!(pack(&scene, &["fetch", "--policies", policies]).code, 0);
    for path in ["/", "/etc", "/etc/policyd", policies] {
        scene.world.give_away(path, 0);
    }
    for file in ["policyd.yaml", "policies.lock"] {
        scene.world.give_away(format!("{policies}/{file}"), 0);
    }
    (scene, format!("/etc/policyd/packs/{}", list(&team("1.1.0")).hash()))
}

#[test]
fn no_user_can_remove_a_remote_pack_of_the_organization() {
    let (scene, content) = governed();
    assert_eq!(decision(&scene), "deny");
    assert!(scene.world.get(format!("{content}/guards.yaml")).is_some());
    assert!(scene.world.files().iter().all(|it| !it.starts_with(CACHE)), "no user's cache is used");
    for path in [content.as_str(), "/etc/policyd/policies/policies.lock"] {
        let published = format!("publish {path}");
        assert!(scene.world.log().iter().any(|it| it.starts_with(&published)), "{published}");
    }
    // A configuration that the user breaks or tightens is one of the user.
    for configuration in ["packs: [\n", "packs: {require_signature: true, keys: []}\n"] {
        scene.world.put(CONFIG, configuration);
        assert_eq!(decision(&scene), "deny", "{configuration}");
    }
    scene.world.give_away("/etc/policyd/policies/policies.lock", 1000);
    let doctor = call(&scene.world, &["doctor"], b"");
    assert!(doctor.out.contains("belongs to user 1000"), "{}", doctor.out);
}
