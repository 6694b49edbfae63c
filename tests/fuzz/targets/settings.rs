//! A settings file of a client: what `install` wrote `uninstall` takes away again, byte for byte; a
//! file that cannot be read is not touched.

use super::headed;
use super::machine::call;
use policyd::world::fake::FakeWorld;

const SETTINGS: &str = "/home/dev/.claude/settings.json";

pub(super) fn run(data: &[u8]) {
    let Some(("claude-code", bytes)) = headed(data) else { return };
    let world = FakeWorld::new();
    world.put("/work/.git/HEAD", "ref: refs/heads/main\n");
    world.set_env("HOME", "/home/dev");
    world.put(SETTINGS, bytes);
    let harness = ["--harness", "claude-code", "--scope", "user"];
    let installed = call(&world, &[&["install"][..], &harness].concat(), b"");
    let text = || world.get(SETTINGS).expect("settings are never removed");
    if installed.code != 0 {
        assert_eq!(text(), bytes, "refused, but changed: {}", installed.stderr);
        return;
    }
    let once = text();
    assert_eq!(call(&world, &[&["install"][..], &harness].concat(), b"").code, 0);
    assert_eq!(text(), once, "installed twice, written twice");
    let removed = call(&world, &[&["uninstall"][..], &harness].concat(), b"");
    assert_eq!(removed.code, 0, "{}", removed.stderr);
    if !bytes.windows(7).any(|it| it == b"policyd") {
        assert_eq!(text(), bytes, "uninstalled, but not as it was");
    }
}
