//! What reaches beyond the files and processes of the machine: HTTP, PostgreSQL, and notices of the operating system
//! about changed files.
//!
//! Contains: [`RealNetwork`], which a [`RealWorld`](policyd_world::real::RealWorld) is given.
//! Does not contain: decisions, or what is sent. A hook is not given it: its program has no socket and no TLS.
//!
//! ```
//! use policyd_net::RealNetwork;
//! use policyd_world::real::RealWorld;
//!
//! let _world = RealWorld::new().with_network(&RealNetwork);
//! ```

mod http;
mod postgres;
mod watch;

use std::path::PathBuf;
use std::time::Duration;

use policyd_world::network::Network;
use policyd_world::server::{DocumentServer, ServerAddress, ServerError};
use policyd_world::{DirectoryWatch, HttpRequest, HttpResponse, WorldError};

/// The network of this machine.
#[derive(Debug, Clone, Copy)]
pub struct RealNetwork;

impl Network for RealNetwork {
    fn request(&self, request: &HttpRequest) -> Result<HttpResponse, WorldError> {
        http::request(request)
    }

    fn watch(&self, folders: &[PathBuf]) -> Result<Box<dyn DirectoryWatch>, WorldError> {
        Ok(Box::new(watch::RealWatch::new(folders)?))
    }

    fn connect(
        &self,
        address: &ServerAddress,
        limit: Duration,
    ) -> Result<Box<dyn DocumentServer>, ServerError> {
        postgres::connect(address, limit)
    }
}
