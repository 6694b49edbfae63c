//! Requests over HTTP, with TLS.

use std::sync::Arc;

use rustls::crypto::ring;
use ureq::http::{HeaderMap, Request};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Error};

use policyd_world::{HttpRequest, HttpResponse, WorldError};

/// Sends a request and reads the response.
pub(crate) fn request(request: &HttpRequest) -> Result<HttpResponse, WorldError> {
    let roots = match &request.roots {
        Some(pem) => RootCerts::new_with_certs(&certificates(pem)?),
        None => RootCerts::PlatformVerifier,
    };
    let provider = Arc::new(ring::default_provider());
    let tls =
        TlsConfig::builder().root_certs(roots).unversioned_rustls_crypto_provider(provider).build();
    let config = Agent::config_builder()
        .tls_config(tls)
        .http_status_as_error(false)
        // A redirect must not leave TLS.
        .https_only(request.url.starts_with("https:"))
        .timeout_global(Some(request.deadline))
        .user_agent(concat!("policyd/", env!("CARGO_PKG_VERSION")))
        .build();
    let mut http = Request::builder().method(request.method.name()).uri(&request.url);
    for (name, value) in &request.headers {
        http = http.header(name, value);
    }
    let agent = Agent::new_with_config(config);
    let sent = match request.method.has_body() {
        true => {
            let http = http.body(request.body.clone());
            http.map_err(Error::from).and_then(|it| agent.run(it))
        }
        false => http.body(()).map_err(Error::from).and_then(|it| agent.run(it)),
    };
    let mut response = sent.map_err(|error| world_error(&error))?;
    let limit = u64::try_from(request.bytes_max).unwrap_or(u64::MAX);
    let body = response.body_mut().with_config().limit(limit).read_to_vec();
    Ok(HttpResponse {
        status: response.status().as_u16(),
        headers: headers(response.headers()),
        body: body.map_err(|error| world_error(&error))?,
    })
}

/// Returns the certificates of a PEM file.
fn certificates(pem: &[u8]) -> Result<Vec<Certificate<'static>>, WorldError> {
    let mut certificates = Vec::new();
    for item in parse_pem(pem) {
        if let PemItem::Certificate(it) = item.map_err(|error| world_error(&error))? {
            certificates.push(it);
        }
    }
    Ok(certificates)
}

fn headers(map: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    map.iter().map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes()))).collect()
}

fn world_error(error: &Error) -> WorldError {
    let timed_out = |it: &std::io::Error| it.kind() == std::io::ErrorKind::TimedOut;
    if let Error::BodyExceedsLimit(bytes) = error {
        return WorldError::TooLarge(*bytes);
    }
    if matches!(error, Error::Timeout(_)) || matches!(error, Error::Io(it) if timed_out(it)) {
        return WorldError::TimedOut;
    }
    WorldError::Io(error.to_string())
}
