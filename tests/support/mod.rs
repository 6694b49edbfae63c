//! Named snapshots, shared by the test files that have some.

/// Compares `value` with `snapshots/<group>/<name>.snap`; `name` is `subject__situation`.
pub(crate) fn snapshot(group: &str, name: &str, value: impl std::fmt::Display) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(format!("{}/snapshots/{group}", env!("CARGO_MANIFEST_DIR")));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, value.to_string()));
}
