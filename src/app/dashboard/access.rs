//! Who may use the dashboard: one-time links, sessions, tokens of forms, and names of the host. Contains no clock and no
//! network.
//!
//! - A link is printed on the terminal of the human who started the dashboard. It works once, and only for a few minutes.
//!   Nothing else gets it: no argument of a process, no variable, no file.
//! - A cookie belongs to a host name, and all ports of a host share it. A server that an agent started on another port of
//!   127.0.0.1 would receive it. Therefore each dashboard has a host name of its own, `policyd-….localhost`, which
//!   browsers resolve to this machine.
//! - Only digests of secrets are kept, and digests are compared, so the duration of a comparison tells nothing.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};

use policyd_base::limits::{DASHBOARD_LINK_AGE_MAX, DASHBOARD_SESSIONS_MAX};
use policyd_world::{World, WorldError};
use policyd_yaml::checksum::hex;

/// Name of the cookie.
const COOKIE: &str = "policyd_dashboard";
/// Bytes of a secret.
const SECRET_BYTES: usize = 32;

type SecretDigest = [u8; 32];

/// A link that was not used yet.
struct Link {
    token: SecretDigest,
    /// Secret of the session that it opens.
    session: String,
    /// When it was made, since the start of the process.
    made: Duration,
}

/// The secrets of one dashboard.
pub(super) struct DashboardAccess {
    /// Value of the `Host` header.
    host: String,
    metrics_token: Option<SecretDigest>,
    state: Mutex<AccessState>,
}

#[derive(Default)]
struct AccessState {
    links: Vec<Link>,
    /// Digests of the secrets of sessions, oldest first.
    sessions: Vec<SecretDigest>,
}

/// A signed-in browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BrowserSession {
    /// Value that each form contains.
    pub(super) form_token: String,
}

fn digest(secret: &str) -> SecretDigest {
    Sha256::digest(secret).into()
}

fn random_text(world: &dyn World, bytes: usize) -> Result<String, WorldError> {
    let mut buffer = vec![0; bytes];
    world.random(&mut buffer)?;
    Ok(hex(&buffer))
}

/// Returns a host name that only this dashboard has.
///
/// # Errors
/// The machine has no source of random bytes.
pub(super) fn host_name(world: &dyn World) -> Result<String, WorldError> {
    Ok(format!("policyd-{}.localhost", random_text(world, 6)?))
}

impl DashboardAccess {
    /// Returns the access to the dashboard at a host name and port.
    pub(super) fn new(name: &str, port: u16, metrics_token: Option<&str>) -> Self {
        Self {
            host: format!("{name}:{port}"),
            metrics_token: metrics_token.map(digest),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, AccessState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a link that opens the dashboard once.
    ///
    /// # Errors
    /// The machine has no source of random bytes.
    pub(super) fn new_link(&self, world: &dyn World) -> Result<String, WorldError> {
        let token = random_text(world, SECRET_BYTES)?;
        let session = random_text(world, SECRET_BYTES)?;
        let link = Link { token: digest(&token), session, made: world.elapsed() };
        self.state().links.push(link);
        Ok(format!("http://{}/open?token={token}", self.host))
    }

    /// Removes links that were not used in time.
    pub(super) fn expire_links(&self, elapsed: Duration) {
        let is_fresh = |it: &Link| elapsed.saturating_sub(it.made) < DASHBOARD_LINK_AGE_MAX;
        self.state().links.retain(is_fresh);
    }

    /// Uses a link. Returns the `Set-Cookie` header of the new session; `None` if the token is not one of an unused link.
    pub(super) fn redeem(&self, token: &str) -> Option<String> {
        let token = digest(token);
        let mut state = self.state();
        let at = state.links.iter().position(|it| it.token == token)?;
        let link = state.links.swap_remove(at);
        state.sessions.push(digest(&link.session));
        let surplus = state.sessions.len().saturating_sub(DASHBOARD_SESSIONS_MAX);
        state.sessions.drain(..surplus);
        Some(format!("{COOKIE}={}; Path=/; HttpOnly; SameSite=Strict", link.session))
    }

    /// Returns the session of a `Cookie` header.
    pub(super) fn session(&self, cookies: &str) -> Option<BrowserSession> {
        let pairs = cookies.split(';').filter_map(|it| it.trim().split_once('='));
        let mut secrets = pairs.filter(|(name, _)| *name == COOKIE).map(|(_, secret)| secret);
        let secret = secrets.find(|it| self.state().sessions.contains(&digest(it)))?;
        Some(BrowserSession { form_token: hex(&digest(&format!("form:{secret}"))) })
    }

    /// Whether a request names this dashboard as its host. A page of another site that resolves its own name to this
    /// machine does not.
    pub(super) fn is_host(&self, host: &str) -> bool {
        host.eq_ignore_ascii_case(&self.host)
    }

    /// Whether an `Origin` header names this dashboard.
    pub(super) fn is_origin(&self, origin: &str) -> bool {
        origin.strip_prefix("http://").is_some_and(|it| self.is_host(it))
    }

    /// Whether an `Authorization` header has the token for metrics.
    pub(super) fn may_read_metrics(&self, authorization: &str) -> bool {
        let given = authorization.strip_prefix("Bearer ").map(digest);
        given.is_some() && given == self.metrics_token
    }
}

impl BrowserSession {
    /// Whether the value of a form is that of this session.
    pub(super) fn owns_form(&self, token: &str) -> bool {
        digest(token) == digest(&self.form_token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_world::fake::FakeWorld;

    fn token(link: &str) -> &str {
        link.split_once("?token=").unwrap().1
    }

    fn cookie(header: &str) -> &str {
        header.split(';').next().unwrap()
    }

    #[test]
    fn a_link_works_once_and_not_for_ever() {
        let (world, access) =
            (FakeWorld::new(), DashboardAccess::new("policyd-1.localhost", 7000, None));
        let link = access.new_link(&world).unwrap();
        assert!(link.starts_with("http://policyd-1.localhost:7000/open?token="), "{link}");
        assert_eq!(access.redeem("guess"), None);
        let header = access.redeem(token(&link)).unwrap();
        assert!(header.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{header}");
        assert_eq!(access.redeem(token(&link)), None, "it was used");
        assert!(!header.contains(token(&link)), "the cookie is another secret");
        let late = access.new_link(&world).unwrap();
        access.expire_links(world.elapsed() + DASHBOARD_LINK_AGE_MAX);
        assert_eq!(access.redeem(token(&late)), None, "it is too old");
    }

    #[test]
    fn a_session_owns_its_forms_only() {
        let (world, access) = (FakeWorld::new(), DashboardAccess::new("h", 1, None));
        let open = || {
            let header = access.redeem(token(&access.new_link(&world).unwrap())).unwrap();
            access.session(&format!("other=1; {}", cookie(&header))).unwrap()
        };
        let (one, other) = (open(), open());
        assert!(one.owns_form(&one.form_token) && !one.owns_form(&other.form_token));
        assert!(!one.owns_form(""));
        for wrong in ["", "policyd_dashboard=", "policyd_dashboard=1", "other"] {
            assert_eq!(access.session(wrong), None, "{wrong}");
        }
        let first = access.redeem(token(&access.new_link(&world).unwrap())).unwrap();
        (0..DASHBOARD_SESSIONS_MAX).for_each(|_| drop(open()));
        assert_eq!(access.session(cookie(&first)), None, "the oldest session ends");
    }

    #[test]
    fn only_its_own_name_is_its_host() {
        let access = DashboardAccess::new("policyd-1.localhost", 7000, Some("secret"));
        assert!(access.is_host("POLICYD-1.localhost:7000"));
        for wrong in ["", "localhost:7000", "policyd-1.localhost", "evil.example:7000"] {
            assert!(!access.is_host(wrong), "{wrong}");
        }
        assert!(access.is_origin("http://policyd-1.localhost:7000"));
        for wrong in ["null", "https://policyd-1.localhost:7000", "http://localhost:7000"] {
            assert!(!access.is_origin(wrong), "{wrong}");
        }
        assert!(access.may_read_metrics("Bearer secret"));
        assert!(!access.may_read_metrics("Bearer other") && !access.may_read_metrics("secret"));
        assert!(!DashboardAccess::new("h", 1, None).may_read_metrics("Bearer "));
    }
}
