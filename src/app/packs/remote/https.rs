//! Archives of remote packs on a web server.

use super::fetch_error::FetchError;
use policyd_base::limits::{PACK_ARCHIVE_BYTES_MAX, PACK_REQUEST_DEADLINE};
use policyd_world::{HttpRequest, World};

/// Downloads an archive from a server that one of the `roots` certifies.
pub(super) fn download(
    world: &dyn World,
    url: &str,
    roots: Option<Vec<u8>>,
) -> Result<Vec<u8>, FetchError> {
    let request = HttpRequest {
        url: url.to_owned(),
        deadline: PACK_REQUEST_DEADLINE,
        bytes_max: PACK_ARCHIVE_BYTES_MAX,
        roots,
        ..HttpRequest::default()
    };
    let failed = |source| FetchError::Request { url: url.to_owned(), source };
    let response = world.request(&request).map_err(failed)?;
    match response.status {
        200 => Ok(response.body),
        status => Err(FetchError::Status { url: url.to_owned(), status }),
    }
}
