//! The web server of the dashboard. It accepts connections of this machine only, checks who asks, and passes requests to
//! the threads that make pages. It is the only code that accepts connections.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Form, Query, Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, HOST, LOCATION,
    ORIGIN, REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::stream;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot, watch};

use super::access::{BrowserSession, DashboardAccess};
use super::pages::layout::{self, PLAYGROUND};
use super::request::{PageRequest, Reply};
use crate::webhook::{self, SignedMessage};
use policyd_base::limits::{DASHBOARD_FORM_BYTES_MAX, DASHBOARD_STREAMS_MAX};
use policyd_record::paint::for_browser;
use policyd_report::html::STYLE;

const ICON: &str = include_str!("assets/icon.svg");
const SCRIPT: &str = include_str!("assets/dashboard.js");
/// Only files of the dashboard itself are loaded, nothing inline runs, and no other page shows it in a frame.
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; \
     connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// Where signed webhook replies arrive. The signature protects it, so it needs no session, and any name of the host counts.
const REPLY: &str = "/reply";
/// Attempts to find a port that is free in both address families.
const PORT_ATTEMPTS: usize = 16;

/// A request, and where its answer is expected.
pub(super) struct PendingRequest {
    pub(super) request: PageRequest,
    pub(super) answer: oneshot::Sender<Reply>,
}

/// What all requests share.
#[derive(Clone)]
pub(super) struct ServerContext {
    pub(super) access: Arc<DashboardAccess>,
    pub(super) jobs: SyncSender<PendingRequest>,
    pub(super) changes: watch::Receiver<u64>,
    pub(super) streams: Arc<Semaphore>,
    pub(super) is_read_only: bool,
}

impl ServerContext {
    pub(super) fn new(
        access: Arc<DashboardAccess>,
        jobs: SyncSender<PendingRequest>,
        changes: watch::Receiver<u64>,
        is_read_only: bool,
    ) -> Self {
        let streams = Arc::new(Semaphore::new(DASHBOARD_STREAMS_MAX));
        Self { access, jobs, changes, streams, is_read_only }
    }
}

/// The sockets of the server: one for each address family, so that no other process receives requests for its name.
pub(super) struct Listeners {
    pub(super) port: u16,
    sockets: Vec<TcpListener>,
}

/// Accepts connections on a port of the loopback addresses; 0 is any free port.
///
/// # Errors
/// The port is not free in one of the address families.
pub(super) async fn listen(port: u16) -> std::io::Result<Listeners> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let first = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
        let bound = first.local_addr()?.port();
        match TcpListener::bind(SocketAddr::from((Ipv6Addr::LOCALHOST, bound))).await {
            Ok(second) => return Ok(Listeners { port: bound, sockets: vec![first, second] }),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                if port != 0 || attempt >= PORT_ATTEMPTS {
                    return Err(error);
                }
            }
            // The machine has no IPv6.
            Err(_) => return Ok(Listeners { port: bound, sockets: vec![first] }),
        }
    }
}

/// Answers requests until `stop` changes.
pub(super) async fn serve(
    listeners: Listeners,
    shared: ServerContext,
    mut stop: watch::Receiver<bool>,
) {
    let app = Router::new()
        .route("/open", get(open))
        .route("/events", get(events))
        .route("/metrics", get(metrics))
        .route(REPLY, post(reply))
        .route("/style.css", get(|| async { asset("text/css; charset=utf-8", STYLE) }))
        .route("/live.js", get(|| async { asset("text/javascript; charset=utf-8", SCRIPT) }))
        .route("/icon.svg", get(|| async { asset("image/svg+xml", ICON) }))
        .fallback(page)
        .layer(DefaultBodyLimit::max(DASHBOARD_FORM_BYTES_MAX))
        .layer(middleware::from_fn_with_state(shared.clone(), guard))
        .with_state(shared);
    for socket in listeners.sockets {
        let app = app.clone();
        tokio::spawn(async move { axum::serve(socket, app).await });
    }
    // An error means that the sender is gone, which also is the end.
    drop(stop.changed().await);
}

fn text(headers: &HeaderMap, name: HeaderName) -> &str {
    headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default()
}

/// Checks each request before anything else sees it, and adds the headers of each response.
async fn guard(State(shared): State<ServerContext>, request: Request, next: Next) -> Response {
    let mut response = match refusal(&shared, &request) {
        Some(refusal) => refusal,
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, CONTENT_POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        // With `no-referrer`, forms of the dashboard itself have the origin `null`.
        (REFERRER_POLICY, "same-origin"),
        (CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Why a request is refused.
fn refusal(shared: &ServerContext, request: &Request) -> Option<Response> {
    let headers = request.headers();
    if request.uri().path() == REPLY {
        return None;
    }
    if !shared.access.is_host(text(headers, HOST)) {
        let why = "This address does not belong to the dashboard. Use the link that `policyd dashboard` printed.";
        return Some(problem(StatusCode::MISDIRECTED_REQUEST, why));
    }
    let origin = text(headers, ORIGIN);
    let site = text(headers, HeaderName::from_static("sec-fetch-site"));
    let is_other_site = matches!(site, "cross-site" | "same-site");
    let is_change = !matches!(*request.method(), Method::GET | Method::HEAD);
    if (!origin.is_empty() && !shared.access.is_origin(origin)) || (is_change && is_other_site) {
        return Some(problem(StatusCode::FORBIDDEN, "Another site sent this request."));
    }
    let path = request.uri().path();
    let is_metrics =
        path == "/metrics" && shared.access.may_read_metrics(text(headers, AUTHORIZATION));
    if matches!(path, "/open" | "/icon.svg") || is_metrics || session(shared, headers).is_some() {
        return None;
    }
    let why = "You are not signed in. Use the link that `policyd dashboard` printed; press Enter there for a new one.";
    Some(problem(StatusCode::UNAUTHORIZED, why))
}

fn session(shared: &ServerContext, headers: &HeaderMap) -> Option<BrowserSession> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|it| it.to_str().ok())
        .find_map(|it| shared.access.session(it))
}

fn problem(status: StatusCode, why: &str) -> Response {
    (status, html(layout::plain("policyd", why))).into_response()
}

/// Sends a page. Characters that change the order of text are shown by their number, wherever an agent wrote them.
fn html(page: String) -> Response {
    let page = for_browser(&page).into_owned();
    ([(CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response()
}

fn asset(kind: &'static str, content: &'static str) -> Response {
    ([(CONTENT_TYPE, kind)], content).into_response()
}

/// Opens a session. The page goes on to the overview by itself: a redirect would lack the cookie if another program
/// opened the link.
async fn open(
    State(shared): State<ServerContext>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    let token = query.get("token").map(String::as_str).unwrap_or_default();
    let Some(cookie) = shared.access.redeem(token) else {
        let why = "This link was used already, or it is too old. Press Enter in the terminal of `policyd dashboard` \
             for a new one.";
        return problem(StatusCode::UNAUTHORIZED, why);
    };
    let mut response = html(layout::opened());
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

/// Tells the browser that something changed. The browser then loads its page again.
async fn events(State(shared): State<ServerContext>) -> Response {
    let Ok(permit) = shared.streams.clone().try_acquire_owned() else {
        return problem(StatusCode::SERVICE_UNAVAILABLE, "Too many pages are open.");
    };
    let first = (shared.changes.clone(), permit);
    let numbers = stream::unfold(first, |(mut changes, permit)| async move {
        changes.changed().await.ok()?;
        let number = *changes.borrow_and_update();
        let event = Event::default().event("changed").data(number.to_string());
        Some((Ok::<_, Infallible>(event), (changes, permit)))
    });
    let keep_alive = KeepAlive::new().interval(Duration::from_secs(15));
    Sse::new(numbers).keep_alive(keep_alive).into_response()
}

async fn metrics(State(shared): State<ServerContext>) -> Response {
    let request = PageRequest { path: "/metrics".to_owned(), ..PageRequest::default() };
    answer(&shared, request).await
}

/// Accepts a signed webhook reply.
async fn reply(State(shared): State<ServerContext>, headers: HeaderMap, body: String) -> Response {
    let header = |name: &'static str| text(&headers, HeaderName::from_static(name)).to_owned();
    let message = SignedMessage {
        id: header(webhook::ID),
        timestamp: header(webhook::TIMESTAMP),
        signature: header(webhook::SIGNATURE),
        body,
    };
    let path = REPLY.to_owned();
    answer(&shared, PageRequest { path, message: Some(message), ..PageRequest::default() }).await
}

/// Makes a page, or does what a form asks for.
async fn page(
    State(shared): State<ServerContext>,
    Query(query): Query<BTreeMap<String, String>>,
    request: Request<Body>,
) -> Response {
    let Some(session) = session(&shared, request.headers()) else {
        return problem(StatusCode::UNAUTHORIZED, "You are not signed in.");
    };
    let path = request.uri().path().to_owned();
    let form = match *request.method() {
        Method::GET | Method::HEAD => None,
        Method::POST if shared.is_read_only && path != PLAYGROUND => {
            let why =
                "This dashboard is read-only. Start it without `--read-only` to answer questions.";
            return problem(StatusCode::FORBIDDEN, why);
        }
        Method::POST => {
            let extracted =
                <Form<BTreeMap<String, String>> as axum::extract::FromRequest<_>>::from_request(
                    request, &shared,
                );
            match extracted.await {
                Ok(Form(form)) => Some(form),
                Err(rejection) => return rejection.into_response(),
            }
        }
        _ => return problem(StatusCode::METHOD_NOT_ALLOWED, "The method is not supported."),
    };
    if let Some(form) = &form {
        let token = form.get("form_token").map(String::as_str).unwrap_or_default();
        if !session.owns_form(token) {
            let why =
                "The form is not one of this session. Load the page again, then send it again.";
            return problem(StatusCode::FORBIDDEN, why);
        }
    }
    let form_token = session.form_token;
    answer(&shared, PageRequest { path, query, form, form_token, message: None }).await
}

/// Passes a request to the threads that make pages.
async fn answer(shared: &ServerContext, request: PageRequest) -> Response {
    let (answer, reply) = oneshot::channel();
    if shared.jobs.try_send(PendingRequest { request, answer }).is_err() {
        return problem(
            StatusCode::SERVICE_UNAVAILABLE,
            "The dashboard is busy. Load the page again.",
        );
    }
    match reply.await {
        Ok(Reply::Page(page)) => html(page),
        Ok(Reply::Metrics(metrics)) => {
            let kind = "text/plain; version=0.0.4; charset=utf-8";
            ([(CONTENT_TYPE, kind)], metrics).into_response()
        }
        Ok(Reply::SeeOther(path)) => (StatusCode::SEE_OTHER, [(LOCATION, path)]).into_response(),
        Ok(Reply::Noted(text)) => text.into_response(),
        Ok(Reply::Unsigned(why)) => (StatusCode::UNAUTHORIZED, why).into_response(),
        Ok(Reply::NotFound(why)) => problem(StatusCode::NOT_FOUND, &why),
        Ok(Reply::Refused(why)) => problem(StatusCode::CONFLICT, &why),
        Ok(Reply::Failed(why)) => problem(StatusCode::INTERNAL_SERVER_ERROR, &why),
        Err(_) => problem(StatusCode::INTERNAL_SERVER_ERROR, "The page could not be made."),
    }
}
