//! Why a step of a case cannot be run.

use std::path::PathBuf;

use crate::workspace::enclosure::outside;
use policyd_fact_table::ScriptError;
use policyd_fact_table::words::WordError;
use policyd_hook::payload::PayloadError;
use policyd_policy::SourceLocation;
use policyd_policy::tables::TableError;
use policyd_world::WorldError;

/// Why a step of a case cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// A file that the case names could not be read.
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: WorldError },
    /// A link leads out of the repository of the pack.
    #[error("{}", outside(.0))]
    Outside(PathBuf),
    #[error("unknown event `{0}`")]
    UnknownEvent(String),
    #[error(transparent)]
    Payload(#[from] PayloadError),
    #[error(transparent)]
    Table(#[from] TableError),
    /// A field of a run is invalid.
    #[error(transparent)]
    Field(#[from] WordError),
    /// A row of a table could not be evaluated.
    #[error("{location}: {source}")]
    Row { location: SourceLocation, source: ScriptError },
    /// The condition of a trigger could not be evaluated.
    #[error("could not evaluate `{id}`: {source}")]
    Trigger { id: String, source: ScriptError },
    /// A signal or a task could not be saved.
    #[error(transparent)]
    Store(#[from] WorldError),
}
