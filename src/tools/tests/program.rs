//! The program as `policyd` starts it. Its existence makes `cargo test` build the program beside `policyd`.

#![expect(clippy::disallowed_methods, reason = "a test of the real program")]

use std::process::Command;

#[test]
fn another_release_of_policyd_is_refused() {
    let run = |release: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_policyd-tools"));
        let command = command.args(["schema", "--help"]).env("POLICYD_FRONT_RELEASE", release);
        let output = command.output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), stderr.contains("Install policyd again"))
    };
    assert_eq!(run(env!("CARGO_PKG_VERSION")), (Some(0), false));
    assert_eq!(run("0.0.1"), (Some(3), true));
}
