//! The part of the [`World`](crate::World) that reaches beyond files and processes. A program can be built without it:
//! hooks are.

use std::path::PathBuf;
use std::time::Duration;

use crate::server::{DocumentServer, ServerAddress, ServerError};
use crate::{DirectoryWatch, HttpRequest, HttpResponse, WorldError};

/// Requests, connections, and watches. The methods are those of [`World`](crate::World) with the same names.
pub trait Network: std::fmt::Debug + Sync {
    /// Sends an HTTP request.
    ///
    /// # Errors
    /// As [`World::request`](crate::World::request).
    fn request(&self, request: &HttpRequest) -> Result<HttpResponse, WorldError>;

    /// Watches directories for changes of files.
    ///
    /// # Errors
    /// As [`World::watch`](crate::World::watch).
    fn watch(&self, folders: &[PathBuf]) -> Result<Box<dyn DirectoryWatch>, WorldError>;

    /// Connects to a server of shared documents.
    ///
    /// # Errors
    /// As [`World::connect`](crate::World::connect).
    fn connect(
        &self,
        address: &ServerAddress,
        limit: Duration,
    ) -> Result<Box<dyn DocumentServer>, ServerError>;
}

/// A program without a network: everything is unsupported.
#[derive(Debug, Clone, Copy)]
pub struct NoNetwork;

impl Network for NoNetwork {
    fn request(&self, _request: &HttpRequest) -> Result<HttpResponse, WorldError> {
        Err(WorldError::Unsupported)
    }

    fn watch(&self, _folders: &[PathBuf]) -> Result<Box<dyn DirectoryWatch>, WorldError> {
        Err(WorldError::Unsupported)
    }

    fn connect(
        &self,
        _address: &ServerAddress,
        _limit: Duration,
    ) -> Result<Box<dyn DocumentServer>, ServerError> {
        Err(ServerError::Unreachable("this program has no network".to_owned()))
    }
}
