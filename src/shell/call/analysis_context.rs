//! What the analysis of a call needs besides the call.

use super::disk::CallDisk;
use super::paths::CallEnvironment;
use super::program_database::ProgramDatabase;
use crate::vocabulary::ShellVocabulary;

/// Everything that the analysis of a call needs besides the call.
#[derive(Debug, Clone, Copy)]
pub struct AnalysisContext<'a> {
    /// Which tools are shells and editors, and which programs are wrappers.
    pub lens: &'a dyn ShellVocabulary,
    /// Facts about programs.
    pub knowledge: &'a ProgramDatabase,
    /// Where the call happens.
    pub around: &'a CallEnvironment,
    /// What the disk knows.
    pub disk: &'a dyn CallDisk,
}
