//! Scenarios with real clients and a scripted model. Opt-in: the clients are large, and the runs take minutes.
//! `POLICYD_CLIENTS=all cargo test --test process scenario -- --nocapture`, or names such as `codex,opencode`;
//! `POLICYD_CLIENTS_ARGS` has more arguments of `tests/clients/run.py`.

use std::process::Command;

#[test]
fn every_scenario_passes() {
    let Ok(clients) = std::env::var("POLICYD_CLIENTS") else {
        eprintln!("skipped: set POLICYD_CLIENTS=all to run the scenarios with real clients");
        return;
    };
    let more = std::env::var("POLICYD_CLIENTS_ARGS").unwrap_or_default();
    let status = Command::new("python3")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/run.py"))
        .args(["--client", &clients])
        .args(more.split_whitespace())
        .env("POLICYD_BIN", env!("CARGO_BIN_EXE_policyd"))
        .status();
    assert!(status.is_ok_and(|it| it.success()), "a scenario failed; its checks are printed above");
}
