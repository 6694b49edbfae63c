//! What the test binaries share: named snapshots, machines, the console, and the shared cases.

pub(crate) mod console;
pub(crate) mod expressions;
pub(crate) mod human;
pub(crate) mod machine;
#[cfg(target_os = "linux")]
pub(crate) mod network;
pub(crate) mod packs;
#[cfg(unix)]
pub(crate) mod postgres;
#[cfg(unix)]
pub(crate) mod proxy;
pub(crate) mod random;
pub(crate) mod shared;

/// Compares `value` with `snapshots/<group>/<name>.snap`; `name` is `subject__situation`.
pub(crate) fn snapshot(group: &str, name: &str, value: impl std::fmt::Display) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(format!("{}/snapshots/{group}", env!("CARGO_MANIFEST_DIR")));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, value.to_string()));
}

/// Whether long simulations are played in full: if `CI` is set, as `.ci/second-tier` does.
pub(crate) fn full() -> bool {
    std::env::var_os("CI").is_some()
}

/// How many of the rounds of a long simulation are played: a tenth, if not in full.
pub(crate) fn rounds<N: From<u8> + std::ops::Div<Output = N>>(all: N) -> N {
    if full() { all } else { all / N::from(10) }
}

/// The combinations of several tables that are tried: every seventh, if not in full.
pub(crate) fn sample<T>(all: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    all.step_by(if full() { 1 } else { 7 })
}
