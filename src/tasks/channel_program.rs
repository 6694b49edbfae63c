//! Runs the program of a channel, by which a human is notified.

use std::path::{Path, PathBuf};
use std::time::Duration;

use policyd_probe::outside_of;
use policyd_world::{ExternalCommand, World, WorldError};

/// Output of a program that is kept, in bytes.
const OUTPUT_MAX: usize = 4096;

/// The program of a channel.
pub struct ChannelProgram<'a> {
    pub argv: Vec<String>,
    /// Working directory.
    pub folder: PathBuf,
    pub stdin: Vec<u8>,
    /// Environment variables without the prefix `POLICYD_`.
    pub variables: &'a [(&'a str, &'a str)],
    pub deadline: Duration,
    /// Directories of the project. A program in them is not run.
    pub outside: &'a [&'a Path],
}

/// Why the program of a channel failed.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The program failed. Contains its exit code, -1 after a signal, and its first line of stderr.
    #[error("exit {0}: {1}")]
    Exit(i32, String),
    #[error("program not found")]
    NotFound,
    #[error(transparent)]
    World(WorldError),
}

impl ChannelProgram<'_> {
    /// Runs the program to its end.
    ///
    /// # Errors
    /// The program cannot be run, or failed.
    pub fn run(self, world: &dyn World) -> Result<(), ProgramError> {
        let variables = self.variables.iter();
        let command = ExternalCommand {
            argv: self.argv,
            folder: self.folder,
            stdin: self.stdin,
            env: variables
                .map(|(name, value)| (format!("POLICYD_{name}"), (*value).to_owned()))
                .collect(),
            deadline: self.deadline,
            output_max: OUTPUT_MAX,
            not_from: Some(outside_of(world, self.outside)),
            ..ExternalCommand::default()
        };
        match world.run(&command) {
            Ok(output) if output.code == Some(0) => Ok(()),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                let line = said.lines().next().unwrap_or_default();
                Err(ProgramError::Exit(output.code.unwrap_or(-1), line.to_owned()))
            }
            Err(WorldError::NotFound) => Err(ProgramError::NotFound),
            Err(error) => Err(ProgramError::World(error)),
        }
    }
}
