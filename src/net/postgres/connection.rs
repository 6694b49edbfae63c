//! Connections to PostgreSQL: what the URL means, encryption, and the host of a list that answers first.

use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, timeout_at};
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::{AsyncMessage, Client, Config, Error};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::PostgresServer;
use super::errors::{cause, server_error};
use policyd_world::server::{DocumentServer, ServerAddress, ServerError};

/// Modes of libpq that verify the certificate, which every encrypted connection does here.
const VERIFYING_MODES: [&str; 2] = ["verify-ca", "verify-full"];

/// A client, and the channel of its notifications.
type ListeningClient = (Client, UnboundedReceiver<()>);

/// Connects within a time limit. The hosts of a list share it.
pub(crate) fn connect(
    address: &ServerAddress,
    limit: Duration,
) -> Result<Box<dyn DocumentServer>, ServerError> {
    let end = end_of(limit);
    let config = config(address)?;
    let encrypted = config.get_ssl_mode() != SslMode::Disable;
    let tls = MakeRustlsConnect::new(tls(address, encrypted)?);
    let runtime = Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .map_err(|error| ServerError::Unreachable(error.to_string()))?;
    let connected = runtime.block_on(async {
        let hosts = hosts(&config);
        let mut result = Err(ServerError::Address("the URL names no host".to_owned()));
        let mut left = u32::try_from(hosts.len()).unwrap_or(u32::MAX);
        for host in hosts {
            let rest = end.saturating_duration_since(Instant::now());
            let share = rest.checked_div(left).unwrap_or_default();
            left = left.saturating_sub(1);
            let connecting = open(&host, tls.clone(), &address.group);
            result = match timeout_at(end_of(share), connecting).await {
                Ok(Ok(connected)) => Ok(connected),
                Ok(Err(error)) => Err(not_connected(server_error(&error))),
                Err(_) => {
                    let text = format!("no connection within {} ms", limit.as_millis());
                    Err(ServerError::Unreachable(text))
                }
            };
            // Another host would give the same answer.
            if !matches!(result, Err(ServerError::Unreachable(_))) {
                break;
            }
        }
        result
    });
    let (client, announcements) = match connected {
        Ok(connected) => connected,
        Err(error) => {
            // A name server that does not answer keeps a thread of the runtime waiting.
            runtime.shutdown_background();
            return Err(error);
        }
    };
    Ok(Box::new(PostgresServer {
        runtime: Some(runtime),
        client,
        announcements,
        group: address.group.clone(),
        limit,
        end,
        encrypted,
        listens: false,
        schema: None,
    }))
}

/// Returns when a time limit that begins now ends.
pub(super) fn end_of(limit: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(limit).unwrap_or(now)
}

/// Opens a connection to one host.
async fn open(
    config: &Config,
    tls: MakeRustlsConnect,
    group: &str,
) -> Result<ListeningClient, Error> {
    let (client, mut connection) = config.connect(tls).await?;
    let (announce, announcements) = unbounded_channel();
    let announced = group.to_owned();
    // The task ends with the runtime, or if the connection is lost: the client reports that.
    tokio::spawn(async move {
        while let Some(Ok(message)) =
            std::future::poll_fn(|context| connection.poll_message(context)).await
        {
            if let AsyncMessage::Notification(it) = message
                && it.payload() == announced
            {
                // Without a receiver, the process does not wait for changes.
                let _no_receiver = announce.send(());
            }
        }
    });
    Ok((client, announcements))
}

/// Parses the URL. A connection to another machine is encrypted unless the URL says `sslmode=disable`; one to
/// this machine is only encrypted if the URL says so. Certificates are always verified.
fn config(address: &ServerAddress) -> Result<Config, ServerError> {
    let url = known_parameters(&address.url);
    let mut config: Config =
        url.parse().map_err(|error: Error| ServerError::Address(cause(&error)))?;
    if let Some(password) = &address.password {
        config.password(password);
    }
    config.application_name("policyd");
    let is_local = |host: &Host| match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|it: std::net::IpAddr| it.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    };
    if !url.contains("sslmode=") {
        let local = config.get_hosts().iter().all(is_local);
        config.ssl_mode(if local { SslMode::Disable } else { SslMode::Require });
    } else if config.get_ssl_mode() == SslMode::Prefer {
        config.ssl_mode(SslMode::Require);
    }
    // Of several hosts, policyd needs the one that accepts writes.
    if config.get_hosts().len() > 1 && !url.contains("target_session_attrs=") {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    Ok(config)
}

/// Replaces parameters of libpq that this client does not know and whose meaning it has anyway.
fn known_parameters(url: &str) -> String {
    let Some((place, parameters)) = url.split_once('?') else { return url.to_owned() };
    // The certificates of a file are read before.
    let parameters = parameters.split('&').filter(|it| !it.starts_with("sslrootcert=")).map(|it| {
        let mode = it.strip_prefix("sslmode=");
        if mode.is_some_and(|it| VERIFYING_MODES.contains(&it)) { "sslmode=require" } else { it }
    });
    format!("{place}?{}", parameters.collect::<Vec<_>>().join("&"))
}

/// Returns a configuration for each host of a list.
fn hosts(config: &Config) -> Vec<Config> {
    let (names, addresses, ports) =
        (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let count = names.len().max(addresses.len());
    if count == 1 {
        return vec![config.clone()];
    }
    let one = |at: usize| {
        let mut one = without_hosts(config);
        match names.get(at) {
            Some(Host::Tcp(name)) => {
                one.host(name);
            }
            #[cfg(unix)]
            Some(Host::Unix(path)) => {
                one.host_path(path);
            }
            None => {}
        }
        if let Some(address) = addresses.get(at) {
            one.hostaddr(*address);
        }
        if let Some(port) = ports.get(at).or_else(|| ports.first()) {
            one.port(*port);
        }
        one
    };
    (0..count).map(one).collect()
}

/// Copies everything but the hosts.
fn without_hosts(config: &Config) -> Config {
    let mut copy = Config::new();
    if let Some(user) = config.get_user() {
        copy.user(user);
    }
    if let Some(password) = config.get_password() {
        copy.password(password);
    }
    if let Some(database) = config.get_dbname() {
        copy.dbname(database);
    }
    if let Some(options) = config.get_options() {
        copy.options(options);
    }
    if let Some(name) = config.get_application_name() {
        copy.application_name(name);
    }
    if let Some(limit) = config.get_connect_timeout() {
        copy.connect_timeout(*limit);
    }
    copy.ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .keepalives(config.get_keepalives())
        .target_session_attrs(config.get_target_session_attrs())
        .channel_binding(config.get_channel_binding());
    copy
}

/// Builds the settings of TLS. Without encryption, no certificates are read.
fn tls(address: &ServerAddress, encrypted: bool) -> Result<rustls::ClientConfig, ServerError> {
    let mut roots = rustls::RootCertStore::empty();
    match &address.authorities {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let added =
                    certificate.map_err(|error| ServerError::Address(error.to_string())).and_then(
                        |it| roots.add(it).map_err(|it| ServerError::Address(it.to_string())),
                    );
                added?;
            }
        }
        None if encrypted => {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
        }
        None => {}
    }
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| ServerError::Address(error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Without a connection, nothing was changed.
fn not_connected(error: ServerError) -> ServerError {
    if let ServerError::Lost(why) = error { ServerError::Unreachable(why) } else { error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config_of(url: &str) -> Config {
        let (password, authorities) = (None, None);
        let address =
            ServerAddress { url: url.to_owned(), password, authorities, group: "team".to_owned() };
        config(&address).unwrap()
    }

    #[test]
    fn modes_of_libpq_that_verify_are_encryption() {
        for mode in [
            "require",
            "verify-ca",
            "verify-full",
            "verify-full&sslrootcert=system",
            "verify-full&sslrootcert=/etc/ca.pem",
        ] {
            let config = config_of(&format!("postgres://me@db/x?connect_timeout=5&sslmode={mode}"));
            assert_eq!(config.get_ssl_mode(), SslMode::Require, "{mode}");
            assert_eq!(config.get_connect_timeout(), Some(&Duration::from_secs(5)));
        }
        assert_eq!(config_of("postgres://me@db/x").get_ssl_mode(), SslMode::Require);
        assert_eq!(config_of("postgres://me@localhost/x").get_ssl_mode(), SslMode::Disable);
    }

    #[test]
    fn each_host_of_a_list_is_tried_with_all_that_the_url_says() {
        let config = config_of("postgres://me:pw@one:1,two:2/x?options=-c%20a=b&sslmode=disable");
        let found = hosts(&config);
        let places: Vec<_> =
            found.iter().map(|it| (it.get_hosts().to_vec(), it.get_ports().to_vec())).collect();
        let host = |name: &str, port: u16| (vec![Host::Tcp(name.to_owned())], vec![port]);
        assert_eq!(places, [host("one", 1), host("two", 2)]);
        for it in &found {
            assert_eq!(it.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
            assert_eq!(it.get_password(), Some(b"pw".as_slice()));
            assert_eq!((it.get_user(), it.get_dbname()), (Some("me"), Some("x")));
            assert_eq!((it.get_options(), it.get_ssl_mode()), (Some("-c a=b"), SslMode::Disable));
        }
        assert_eq!(hosts(&config_of("postgres://me@one/x")).len(), 1);
    }
}
