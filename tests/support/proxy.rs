//! A proxy between a client and PostgreSQL that cuts the connection at a commit, and a host that accepts connections and
//! answers nothing.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What the proxy does at a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CutAt {
    /// The server gets the commit, and the client no answer.
    Answer,
    /// The server does not get the commit.
    Commit,
}

/// The proxy. It ends with the test.
pub(crate) struct Proxy {
    port: u16,
    /// Commits of changes that pass before the connection is cut; more than any test makes: none is cut.
    passing: Arc<AtomicUsize>,
}

/// A statement that changes a document; the next commit of its connection is that of a change.
const SAVE: &[u8] = b"policyd.save_document";
const COMMIT: &[u8] = b"COMMIT\0";

impl Proxy {
    /// Starts a proxy to the server of a URL.
    pub(crate) fn start(url: &str, cut_at: CutAt) -> Self {
        let (_, place) = url.rsplit_once('@').unwrap();
        let target = place.split('/').next().unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let passing = Arc::new(AtomicUsize::new(usize::MAX));
        let passing_here = Arc::clone(&passing);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(&target) else { continue };
                let (passing, answers) = (Arc::clone(&passing_here), server.try_clone().unwrap());
                let back = client.try_clone().unwrap();
                thread::spawn(move || copy(answers, back));
                thread::spawn(move || forward(client, server, &passing, cut_at));
            }
        });
        Self { port, passing }
    }

    /// Cuts the connection at the next commit of a change.
    pub(crate) fn cut_next(&self) {
        self.passing.store(0, Ordering::SeqCst);
    }

    /// The URL of the server through the proxy.
    pub(crate) fn url(&self, url: &str) -> String {
        let (start, place) = url.rsplit_once('@').unwrap();
        let (_, database) = place.split_once('/').unwrap();
        format!("{start}@127.0.0.1:{}/{database}", self.port)
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if to.write_all(buffer.get(..count).unwrap_or_default()).is_err() {
            return;
        }
    }
    drop(to.shutdown(Shutdown::Both));
}

/// Copies what the client sends, until a commit of a change is to be cut.
fn forward(mut client: TcpStream, mut server: TcpStream, passing: &AtomicUsize, cut_at: CutAt) {
    let mut buffer = [0; 16 * 1024];
    let mut changes = false;
    let contains = |bytes: &[u8], text: &[u8]| bytes.windows(text.len()).any(|it| it == text);
    while let Ok(count @ 1..) = client.read(&mut buffer) {
        let bytes = buffer.get(..count).unwrap_or_default();
        changes |= contains(bytes, SAVE);
        let is_cut = changes && contains(bytes, COMMIT) && passing.load(Ordering::SeqCst) == 0;
        if is_cut {
            passing.store(usize::MAX, Ordering::SeqCst);
            drop(client.shutdown(Shutdown::Both));
            if cut_at == CutAt::Answer {
                drop(server.write_all(bytes));
                // The server commits before it learns that the client is gone.
                thread::sleep(std::time::Duration::from_millis(300));
            }
            drop(server.shutdown(Shutdown::Both));
            return;
        }
        if server.write_all(bytes).is_err() {
            return;
        }
    }
    drop(server.shutdown(Shutdown::Both));
}

/// Starts a host that accepts connections and answers nothing. Returns its port.
pub(crate) fn silent_host() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut kept = Vec::new();
        kept.extend(listener.incoming());
    });
    port
}
