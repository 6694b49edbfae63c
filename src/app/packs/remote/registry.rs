//! Remote packs in registries: a minimal client of the OCI distribution protocol, which pulls and pushes one layer. The
//! crate `oci-client` is asynchronous and would add a runtime.
//!
//! A pack is an OCI image manifest with an empty configuration, so that tools such as cosign can sign it, too.

use serde::Deserialize;
use serde_json::{Value, json};

use super::address::RegistryPack;
use super::credentials;
use super::fetch_error::FetchError;
use policyd_base::limits::{PACK_ARCHIVE_BYTES_MAX, PACK_LOCK_BYTES_MAX, PACK_REQUEST_DEADLINE};
use policyd_policy::pack_list::sha256;
use policyd_world::{HttpMethod, HttpRequest, HttpResponse, World};

const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";
const PACK_TYPE: &str = "application/vnd.policyd.pack.v1";
const LAYER_TYPE: &str = "application/vnd.policyd.pack.v1.tar+zstd";
/// The empty configuration of an artifact.
const EMPTY: &[u8] = b"{}";

/// Why a registry did not do what was requested.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error("the registry `{0}` requires credentials; run `docker login`, or set `DOCKER_CONFIG`")]
    Unauthorized(String),
    #[error("the registry sent content with the digest `{found}` instead of `{wanted}`")]
    OtherDigest { found: String, wanted: String },
    #[error("the artifact is not a pack: {0}")]
    NotAPack(&'static str),
    #[error("the registry `{0}` accepted an upload without a location")]
    NoLocation(String),
}

/// The part of an image manifest that a pack uses.
#[derive(Debug, Deserialize)]
struct ImageManifest {
    layers: Vec<ImageLayer>,
}

#[derive(Debug, Deserialize)]
struct ImageLayer {
    #[serde(rename = "mediaType")]
    media_type: String,
    digest: String,
}

/// A registry with what it accepted as proof of identity.
pub struct Registry<'a> {
    world: &'a dyn World,
    pack: &'a RegistryPack,
    roots: Option<Vec<u8>>,
    /// Value of the header `Authorization`.
    authorization: Option<String>,
}

impl<'a> Registry<'a> {
    /// Returns the registry of a pack.
    pub fn new(world: &'a dyn World, pack: &'a RegistryPack, roots: Option<Vec<u8>>) -> Self {
        Self { world, pack, roots, authorization: None }
    }

    /// Downloads the archive of the pack; returns it with the digest of its manifest.
    ///
    /// # Errors
    /// The registry cannot be reached, or the artifact is not a pack.
    pub fn pull(&mut self) -> Result<(Vec<u8>, String), FetchError> {
        let reference = self.pack.reference.clone();
        let url = self.url(&format!("manifests/{reference}"));
        let accept = vec![("Accept".to_owned(), MANIFEST_TYPE.to_owned())];
        let manifest = self.get(url, accept, PACK_LOCK_BYTES_MAX)?;
        let digest = sha256_digest(&manifest.body);
        if reference.starts_with("sha256:") {
            require_digest(&digest, &reference)?;
        }
        let parsed: ImageManifest = serde_json::from_slice(&manifest.body)
            .map_err(|_| RegistryError::NotAPack("its manifest is not an image manifest"))?;
        let mut layers = parsed.layers.iter().filter(|it| it.media_type == LAYER_TYPE);
        let (Some(layer), None) = (layers.next(), layers.next()) else {
            return Err(RegistryError::NotAPack("it has not exactly one layer of a pack").into());
        };
        let url = self.url(&format!("blobs/{}", layer.digest));
        let archive = self.get(url, Vec::new(), PACK_ARCHIVE_BYTES_MAX)?.body;
        let found = sha256_digest(&archive);
        require_digest(&found, &layer.digest)?;
        Ok((archive, digest))
    }

    /// Uploads the archive of a pack; returns the digest of its manifest.
    ///
    /// # Errors
    /// The registry cannot be reached, or refuses the upload.
    pub fn push(&mut self, archive: &[u8], annotations: &Value) -> Result<String, FetchError> {
        for blob in [EMPTY, archive] {
            self.upload(blob)?;
        }
        let descriptor = |kind: &str, bytes: &[u8]| json!({"mediaType": kind, "digest": sha256_digest(bytes), "size": bytes.len()});
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "artifactType": PACK_TYPE,
            "config": descriptor(EMPTY_TYPE, EMPTY),
            "layers": [descriptor(LAYER_TYPE, archive)],
            "annotations": annotations,
        });
        let body = manifest.to_string().into_bytes();
        let digest = sha256_digest(&body);
        let url = self.url(&format!("manifests/{}", self.pack.reference));
        self.change(HttpMethod::Put, url, MANIFEST_TYPE, body)?;
        Ok(digest)
    }

    /// Uploads a blob, unless the registry has it.
    fn upload(&mut self, blob: &[u8]) -> Result<(), FetchError> {
        let digest = sha256_digest(blob);
        let url = self.url(&format!("blobs/{digest}"));
        let head = HttpRequest { method: HttpMethod::Head, ..self.request(url, Vec::new(), 0) };
        if self.send(head)?.status == 200 {
            return Ok(());
        }
        let url = self.url("blobs/uploads/");
        let begun = self.change(HttpMethod::Post, url, "application/octet-stream", Vec::new())?;
        let location = begun.header("location");
        let location = location.ok_or_else(|| RegistryError::NoLocation(self.pack.host.clone()))?;
        let location = match location.starts_with('/') {
            true => format!("{}{location}", self.origin()),
            false => location.to_owned(),
        };
        let joint = if location.contains('?') { '&' } else { '?' };
        let url = format!("{location}{joint}digest={digest}");
        self.change(HttpMethod::Put, url, "application/octet-stream", blob.to_vec())?;
        Ok(())
    }

    fn origin(&self) -> String {
        let scheme = if is_loopback(&self.pack.host) { "http" } else { "https" };
        format!("{scheme}://{}", self.pack.host)
    }

    fn url(&self, rest: &str) -> String {
        format!("{}/v2/{}/{rest}", self.origin(), self.pack.name)
    }

    fn request(
        &self,
        url: String,
        headers: Vec<(String, String)>,
        bytes_max: usize,
    ) -> HttpRequest {
        HttpRequest {
            url,
            headers,
            deadline: PACK_REQUEST_DEADLINE,
            bytes_max,
            roots: self.roots.clone(),
            ..HttpRequest::default()
        }
    }

    fn get(
        &mut self,
        url: String,
        headers: Vec<(String, String)>,
        bytes_max: usize,
    ) -> Result<HttpResponse, FetchError> {
        let request = self.request(url.clone(), headers, bytes_max);
        let response = self.send(request)?;
        require_status(response, url)
    }

    fn change(
        &mut self,
        method: HttpMethod,
        url: String,
        kind: &str,
        body: Vec<u8>,
    ) -> Result<HttpResponse, FetchError> {
        let headers = vec![("Content-Type".to_owned(), kind.to_owned())];
        let request = self.request(url.clone(), headers, PACK_LOCK_BYTES_MAX);
        let response = self.send(HttpRequest { method, body, ..request })?;
        require_status(response, url)
    }

    /// Sends a request; authenticates once if the registry demands it.
    fn send(&mut self, request: HttpRequest) -> Result<HttpResponse, FetchError> {
        let first = self.send_once(&request)?;
        if first.status != 401 || self.authorization.is_some() {
            return Ok(first);
        }
        self.authorization = Some(self.authenticate(&first)?);
        self.send_once(&request)
    }

    fn send_once(&self, request: &HttpRequest) -> Result<HttpResponse, FetchError> {
        let mut request = request.clone();
        // An upload can be continued at another host, which must not see the credentials.
        let is_own = request.url.starts_with(&format!("{}/", self.origin()));
        if let Some(value) = self.authorization.as_ref().filter(|_| is_own) {
            request.headers.push(("Authorization".to_owned(), value.clone()));
        }
        let url = request.url.clone();
        self.world.request(&request).map_err(|source| FetchError::Request { url, source })
    }

    /// Returns the header `Authorization` that a refused request lacks.
    fn authenticate(&self, refused: &HttpResponse) -> Result<String, FetchError> {
        let unauthorized = || RegistryError::Unauthorized(self.pack.host.clone());
        let basic = credentials::of_registry(self.world, &self.pack.host);
        let challenge = refused.header("www-authenticate").unwrap_or_default();
        let Some(parameters) = challenge.strip_prefix("Bearer ") else {
            return Ok(basic.ok_or_else(unauthorized)?);
        };
        let realm = parameter(parameters, "realm").filter(|it| self.may_see_credentials(it));
        let realm = realm.ok_or_else(unauthorized)?;
        let query: Vec<String> = ["service", "scope"]
            .iter()
            .filter_map(|name| Some(format!("{name}={}", escaped(&parameter(parameters, name)?))))
            .collect();
        let joint = if realm.contains('?') { '&' } else { '?' };
        let url = format!("{realm}{joint}{}", query.join("&"));
        let headers = basic.map(|it| ("Authorization".to_owned(), it)).into_iter().collect();
        let request = self.request(url.clone(), headers, PACK_LOCK_BYTES_MAX);
        let failed = |source| FetchError::Request { url: url.clone(), source };
        let response = self.world.request(&request).map_err(failed)?;
        if response.status != 200 {
            return Err(unauthorized().into());
        }
        let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        let token = ["token", "access_token"].iter().find_map(|it| body.get(it)?.as_str());
        Ok(format!("Bearer {}", token.ok_or_else(unauthorized)?))
    }

    /// Whether credentials may be sent to the server of tokens: over TLS, or to this machine.
    fn may_see_credentials(&self, realm: &str) -> bool {
        realm.starts_with("https://") || realm.starts_with(&format!("{}/", self.origin()))
    }
}

/// Whether a host is this machine, whose registry is used without TLS, as other clients do.
fn is_loopback(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    matches!(name, "localhost" | "127.0.0.1" | "[::1]")
}

fn require_status(response: HttpResponse, url: String) -> Result<HttpResponse, FetchError> {
    match response.status {
        200..=299 => Ok(response),
        status => Err(FetchError::Status { url, status }),
    }
}

fn require_digest(found: &str, wanted: &str) -> Result<(), RegistryError> {
    match found == wanted {
        true => Ok(()),
        false => {
            Err(RegistryError::OtherDigest { found: found.to_owned(), wanted: wanted.to_owned() })
        }
    }
}

fn sha256_digest(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256(bytes))
}

/// Returns a parameter of a header: `realm="https://…"`.
fn parameter(parameters: &str, name: &str) -> Option<String> {
    let (_, rest) = parameters.split_once(&format!("{name}=\""))?;
    rest.split_once('"').map(|(value, _)| value.to_owned())
}

/// Escapes a value for the query of a URL.
fn escaped(value: &str) -> String {
    let mut text = String::new();
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' | b':' => {
                text.push(char::from(byte));
            }
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_a_challenge_are_found_and_escaped() {
        let header = r#"realm="https://auth.example.com/token",service="registry",scope="repository:a/b:pull,push""#;
        assert_eq!(parameter(header, "realm").unwrap(), "https://auth.example.com/token");
        assert_eq!(escaped(&parameter(header, "scope").unwrap()), "repository:a/b:pull%2Cpush");
        assert_eq!(parameter(header, "error"), None);
    }

    #[test]
    fn only_a_registry_of_this_machine_is_used_without_tls() {
        assert!(is_loopback("localhost:5000") && is_loopback("127.0.0.1"));
        assert!(!is_loopback("localhost.example.com:5000") && !is_loopback("10.0.0.1:5000"));
    }
}
