//! Documents about the server: what happens to one that is missing, damaged, newer, or without a version.

use super::mirror::APPROVALS;
use super::*;
use crate::document::DamageAction::Quarantine;
use crate::document::tests::{StoredCase, check};
use policyd_world::fake::FakeWorld;

const FOLDER: &str = "/home/me/shared";

fn machine() -> FakeWorld {
    let world = FakeWorld::new();
    world.put_folder(FOLDER);
    world
}

fn store(world: &FakeWorld) -> SharedStore<'_> {
    SharedStore {
        world,
        root: "/work/.policyd".into(),
        folder: FOLDER.into(),
        durability: Durability::default(),
        settings: SharedStoreSettings::default(),
    }
}

fn move_position(world: &FakeWorld, number: u32) {
    let Ok(position) = store(world).position() else { return };
    let next = SyncPosition { version: number.into(), ..position };
    next.save(world, Path::new(FOLDER)).unwrap();
    assert_eq!(store(world).position(), Ok(next));
}

fn mirror(world: &FakeWorld, number: u32) {
    let changed = store(world).mirror(APPROVALS).change(|all| {
        all.insert(number.to_string(), number.into());
        Ok(())
    });
    drop(changed);
}

#[test]
fn no_change_overwrites_what_it_cannot_read() {
    for (name, change) in
        [("sync.json", move_position as fn(&FakeWorld, u32)), ("approval.json", mirror)]
    {
        check(&StoredCase { name, if_damaged: Quarantine, change }, machine);
    }
}

#[test]
fn an_operation_of_a_newer_version_waits_and_a_file_that_is_none_is_set_apart() {
    let world = machine();
    let store = store(&world);
    store
        .push(
            SharedAction::Breaker {
                key: "api".to_owned(),
                event: action::SharedBreakerEvent::Request,
                settings: Box::default(),
            },
            store.now(),
        )
        .unwrap();
    let outbox = store.outbox();
    let name = outbox.names().pop().unwrap();
    let path = Path::new(FOLDER).join("outbox").join(&name);
    let operation = outbox.read(&name).unwrap();
    assert!(operation.is_some());
    let text = String::from_utf8(world.get(&path).unwrap()).unwrap();
    world.put(&path, text.replacen("\"version\":1,", "", 1));
    assert_eq!(outbox.read(&name), Ok(operation), "an earlier program wrote no version");
    let newer = text.replacen("\"version\":1", "\"version\":2", 1);
    world.put(&path, &newer);
    let problem = outbox.read(&name).unwrap_err();
    assert!(problem.waits && problem.why.contains("update policyd"), "{problem:?}");
    for (text, why) in [("{\"id\": 1}".to_owned(), "damaged"), (String::new(), "empty")] {
        world.put(&path, text);
        let problem = outbox.read(&name).unwrap_err();
        assert!(!problem.waits && problem.why.contains(why), "{problem:?}");
    }
    world.put(&path, "x".repeat(policyd_base::limits::OPERATION_BYTES_MAX + 1));
    assert!(!outbox.read(&name).unwrap_err().waits);
}
