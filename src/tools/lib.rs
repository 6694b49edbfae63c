#![doc = include_str!("../ARCHITECTURE.md")]

pub use policyd_base::{git_index, id, limits};
pub use policyd_fact_table as expr; // The language of expressions over the table of facts.
pub use policyd_packs::compiler;
pub use policyd_shell::path;
pub use policyd_state as state;
pub use policyd_yaml as source;
pub use policyd_yaml::{checksum, deferred, pairs, time};
pub use {
    policyd_app as app, policyd_book as book, policyd_cases as cases, policyd_cli as cli,
    policyd_editor as editor, policyd_evaluation as evaluation, policyd_fact_table as fact_table,
    policyd_facts as facts, policyd_harness as harness, policyd_hook as hook,
    policyd_index as index, policyd_lint as lint, policyd_net as net, policyd_policy as policy,
    policyd_probe as probe, policyd_record as record, policyd_replay as replay,
    policyd_report as report, policyd_store as store, policyd_world as world,
};
