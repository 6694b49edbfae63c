//! `policyd lsp`: the language server on standard input and output.

use super::{Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, LspArguments};
use policyd_lsp::{self as lsp, ServerEnd};
use policyd_world::World;

/// Serves one client: exit 0 after a shutdown, 1 if the client left without one.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &LspArguments) -> u8 {
    let profile = arguments.profile.profile();
    let (stdin, stdout) = console.protocol();
    match lsp::serve(world, stdin, stdout, profile) {
        Ok(ServerEnd::ShutDown) => EXIT_OK,
        Ok(ServerEnd::ClientLeft) => EXIT_FOUND,
        Err(error) => {
            console.eprint(&error.to_string());
            EXIT_BROKEN
        }
    }
}
