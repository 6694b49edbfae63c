//! Remote packs from a real TLS server, git repositories, and a real registry, fetched by the binary.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::json;
use tempfile::TempDir;

use super::machine::{BOUND, Called, Machine, read_json, run};
use crate::support::packs::{Publisher, archive, listed, team};

/// What a server publishes.
#[derive(Default)]
struct Site {
    /// Files by their paths.
    files: Mutex<BTreeMap<String, Vec<u8>>>,
    /// Directory of git repositories, below the path `/git`.
    repositories: Mutex<Option<PathBuf>>,
}

/// A TLS server on this machine.
struct Server {
    port: u16,
    site: Arc<Site>,
    certificate: String,
}

impl Server {
    fn start() -> Self {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").unwrap());
        let port = listener.local_addr().unwrap().port();
        let site: Arc<Site> = Arc::default();
        let served = Arc::clone(&site);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (config, served) = (Arc::clone(&config), Arc::clone(&served));
                thread::spawn(move || answer(stream.unwrap(), config, &served));
            }
        });
        Self { port, site, certificate: cert.pem() }
    }

    fn put(&self, path: &str, bytes: Vec<u8>) {
        self.site.files.lock().unwrap().insert(path.to_owned(), bytes);
    }

    fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.port)
    }
}

/// Answers one request. A client that does not accept the certificate ends the connection.
fn answer(stream: TcpStream, config: Arc<ServerConfig>, site: &Site) {
    let tls = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
    let mut tls = BufReader::new(tls);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        match tls.read_line(&mut line) {
            Ok(_) if line.trim().is_empty() => break,
            Ok(_) => lines.push(line.trim().to_owned()),
            Err(_) => return,
        }
    }
    let header = |name: &str| {
        let mut parts = lines.iter().filter_map(|it| it.split_once(": "));
        let value = parts.find(|(it, _)| it.eq_ignore_ascii_case(name));
        value.map(|(_, value)| value.to_owned()).unwrap_or_default()
    };
    let Some(first) = lines.first() else { return };
    let target = first.split(' ').nth(1).unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let response = match site.repositories.lock().unwrap().clone() {
        Some(root) if path.starts_with("/git/") => {
            let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
            tls.read_exact(&mut body).unwrap();
            let method = first.split(' ').next().unwrap_or_default();
            let mut backend = Command::new("git");
            backend
                .arg("http-backend")
                .env("GIT_PROJECT_ROOT", root)
                .env("GIT_HTTP_EXPORT_ALL", "1");
            backend.env("PATH_INFO", path.trim_start_matches("/git")).env("QUERY_STRING", query);
            backend.env("REQUEST_METHOD", method).env("CONTENT_TYPE", header("content-type"));
            backend.env("GIT_PROTOCOL", header("git-protocol"));
            backend.env("HTTP_CONTENT_ENCODING", header("content-encoding"));
            backend.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut backend = backend.spawn().unwrap();
            backend.stdin.take().unwrap().write_all(&body).unwrap();
            let output = backend.wait_with_output().unwrap().stdout;
            [b"HTTP/1.1 200 OK\r\nConnection: close\r\n".as_slice(), &output].concat()
        }
        _ => {
            let found = site.files.lock().unwrap().get(path).cloned();
            let status = if found.is_some() { "200 OK" } else { "404 Not Found" };
            let body = found.unwrap_or_default();
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            [head.as_bytes(), &body].concat()
        }
    };
    let tls = tls.get_mut();
    let _closed = tls.write_all(&response);
    tls.conn.send_close_notify();
    let _closed = tls.flush();
    let _end = tls.sock.read(&mut [0; 1]);
}

/// A project that extends the pack of a server, on a machine that accepts the certificate.
struct Project {
    machine: Machine,
    roots: PathBuf,
}

impl Project {
    fn new(server: &Server, source: &str) -> Self {
        let machine = Machine::new();
        let manifest = format!("version: 1\nextends:\n  - builtin\n  - source: {source}\n");
        machine.put(".policyd/policies/policyd.yaml", &manifest);
        let roots = machine.path("roots.pem");
        fs::write(&roots, &server.certificate).unwrap();
        Self { machine, roots }
    }

    /// Names the certificate of the server in the user's configuration.
    fn configure(&self) {
        let text = format!("packs:\n  ca_file: {}\n", self.roots.display());
        fs::write(self.machine.path("config/policyd/config.yaml"), text).unwrap();
    }

    fn call(&self, arguments: &[&str]) -> Called {
        let mut command = self.machine.command(arguments);
        command.env("SSL_CERT_FILE", &self.roots);
        run(command, b"")
    }

    /// The decision about a call that the remote pack blocks.
    fn decision(&self) -> String {
        let payload = json!({"session_id": "s1", "cwd": self.machine.project, "tool_name": "Bash",
            "tool_input": {"command": "make deploy"}});
        let words = ["eval", "--hook", "pre-tool-use"];
        let answer = self.machine.run(&words, payload.to_string().as_bytes()).answer();
        let decision = &answer["hookSpecificOutput"]["permissionDecision"];
        decision.as_str().unwrap_or("none").to_owned()
    }
}

#[test]
fn a_pack_from_a_tls_server_blocks_a_call() {
    let server = Server::start();
    let source = server.url("/packs/team.tar.zst");
    server.put("/packs/team.tar.zst", archive(&listed(&team("1.0.0"))));
    let project = Project::new(&server, &source);
    assert_eq!(project.decision(), "none");

    let unknown = project.machine.run(&["pack", "fetch"], b"");
    assert_eq!(unknown.code, Some(1), "the certificate is not one of the machine's: {unknown:?}");
    assert!(unknown.stderr.contains("could not download"), "{unknown:?}");

    let fetched = project.call(&["pack", "fetch"]);
    assert_eq!(fetched.code, Some(0), "{fetched:?}");
    assert!(
        fetched.stdout.starts_with("fetched  ") && fetched.stdout.contains("team 1.0.0"),
        "{fetched:?}"
    );
    assert_eq!(project.decision(), "deny");

    server.site.files.lock().unwrap().clear();
    let gone = project.call(&["pack", "update"]);
    assert_eq!(gone.code, Some(1));
    assert!(gone.stderr.contains("status 404") && gone.stderr.contains("team 1.0.0"), "{gone:?}");
    assert_eq!(project.decision(), "deny", "the last good version stays active");
}

/// Runs git in a directory; returns its output.
fn git(folder: &Path, words: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@example.com"]).args(words);
    command
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A repository with a version of the pack in the directory `packs/team`, besides other files.
fn repository(folder: &Path, version: &str) {
    let pack = folder.join("packs/team");
    fs::create_dir_all(&pack).unwrap();
    for (name, text) in team(version) {
        fs::write(pack.join(name), text).unwrap();
    }
    fs::write(folder.join("mkdocs.yml"), "other: true\n").unwrap();
    if !folder.join(".git").exists() {
        git(folder, &["init", "--quiet", "--initial-branch=main"]);
        std::os::unix::fs::symlink("packs", folder.join("link")).unwrap();
    }
    git(folder, &["add", "."]);
    git(folder, &["commit", "--quiet", "-m", version]);
}

#[test]
fn a_pack_in_a_git_repository_is_fetched_by_branch_and_locked_by_commit() {
    let server = Server::start();
    let upstream = tempfile::tempdir().unwrap();
    repository(upstream.path(), "1.0.0");
    let first = git(upstream.path(), &["rev-parse", "HEAD"]);
    let url = format!("git+file://{}@main#packs/team", upstream.path().display());
    let project = Project::new(&server, &url);
    let fetched = project.call(&["pack", "fetch"]);
    assert!(fetched.stdout.contains("team 1.0.0"), "{fetched:?}");
    let lock =
        || fs::read_to_string(project.machine.file(".policyd/policies/policies.lock")).unwrap();
    assert!(lock().contains(&first), "{}", lock());
    assert_eq!(project.decision(), "deny");

    repository(upstream.path(), "1.1.0");
    fs::remove_dir_all(project.machine.path("home/.local")).unwrap();
    assert_eq!(project.decision(), "none", "the cache is gone");
    let again = project.call(&["pack", "fetch"]);
    assert!(again.stdout.contains("team 1.0.0"), "the locked commit, not the branch: {again:?}");
    assert_eq!(project.decision(), "deny");
    let updated = project.call(&["pack", "update"]);
    assert!(updated.stdout.contains("-> team 1.1.0"), "{updated:?}");
    let left = fs::read_dir(project.machine.path("home/.local/share/policyd/packs")).unwrap();
    let left: Vec<_> = left.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!left.iter().any(|it| it.starts_with(".git")), "{left:?}");

    for (source, reason) in [
        (url.replace("@main", "@gone"), "could not fetch the repository"),
        (url.replace("#packs/team", ""), "no `policyd.yaml`"),
        (url.replace("#packs/team", "#packs/other"), "could not fetch the repository"),
    ] {
        let project = Project::new(&server, &source);
        let failed = project.call(&["pack", "fetch"]);
        assert!(failed.code == Some(1) && failed.stderr.contains(reason), "{source}: {failed:?}");
    }
}

#[test]
fn a_lock_file_of_a_clone_does_not_lower_the_newest_version() {
    let server = Server::start();
    let upstream = tempfile::tempdir().unwrap();
    let commit = |version: &str| {
        repository(upstream.path(), version);
        git(upstream.path(), &["rev-parse", "HEAD"])
    };
    let first = commit("1.0.0");
    let second = commit("1.5.0");
    commit("2.0.0");
    let url = format!("git+file://{}@main#packs/team", upstream.path().display());
    let project = Project::new(&server, &url);
    let lock = project.machine.file(".policyd/policies/policies.lock");
    let fetch = || project.call(&["pack", "fetch"]);
    // The lock file of a clone names the first version, which is accepted.
    git(upstream.path(), &["checkout", "--quiet", "-B", "main", &first]);
    assert!(fetch().stdout.contains("team 1.0.0"));
    let old = fs::read_to_string(&lock).unwrap();
    git(upstream.path(), &["checkout", "--quiet", "-B", "main", &second]);
    fs::remove_file(&lock).unwrap();
    assert!(fetch().stdout.contains("team 1.5.0"));
    fs::write(&lock, old).unwrap();
    fetch();
    git(upstream.path(), &["checkout", "--quiet", "-B", "main", &first]);
    fs::remove_file(&lock).unwrap();
    let rejected = fetch();
    assert_eq!(rejected.code, Some(1), "{rejected:?}");
    assert!(rejected.stderr.contains("is older than 1.5.0"), "{rejected:?}");
}

#[test]
fn a_pack_in_a_git_repository_is_fetched_from_a_tls_server() {
    let server = Server::start();
    let upstream = tempfile::tempdir().unwrap();
    repository(upstream.path(), "1.0.0");
    *server.site.repositories.lock().unwrap() = Some(upstream.path().to_owned());
    let url = format!("git+{}@main#packs/team", server.url("/git/.git"));
    let project = Project::new(&server, &url);
    let refused = project.machine.run(&["pack", "fetch"], b"");
    assert!(refused.stderr.contains("could not fetch the repository"), "{refused:?}");
    project.configure();
    let fetched = project.machine.run(&["pack", "fetch"], b"");
    assert!(fetched.code == Some(0) && fetched.stdout.contains("team 1.0.0"), "{fetched:?}");
    assert_eq!(project.decision(), "deny");
}

/// A registry on this machine, ended with the test.
struct LocalRegistry {
    process: Child,
    host: String,
    _folder: TempDir,
}

impl Drop for LocalRegistry {
    fn drop(&mut self) {
        let _gone = self.process.kill();
        let _gone = self.process.wait();
    }
}

/// Starts `docker-registry`. `None` if the program is absent.
fn local_registry() -> Option<LocalRegistry> {
    let found = Command::new("docker-registry").arg("--version").output();
    if found.is_err() {
        println!("packs: skipped  registry: docker-registry is absent");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let host = format!("127.0.0.1:{port}");
    let config = folder.path().join("config.yml");
    let text = format!(
        "version: 0.1\nlog: {{level: error}}\nstorage:\n  filesystem: {{rootdirectory: {}}}\nhttp:\n  addr: {host}\n",
        folder.path().join("data").display()
    );
    fs::write(&config, text).unwrap();
    let mut command = Command::new("docker-registry");
    command.arg("serve").arg(&config).stdout(Stdio::null()).stderr(Stdio::null());
    let process = command.spawn().unwrap();
    let began = Instant::now();
    while TcpStream::connect(&host).is_err() {
        assert!(began.elapsed() < BOUND, "the registry does not start");
        thread::sleep(Duration::from_millis(20));
    }
    Some(LocalRegistry { process, host, _folder: folder })
}

#[test]
fn a_signed_pack_is_pushed_to_a_registry_and_pulled_by_its_digest() {
    let Some(registry) = local_registry() else { return };
    let publisher = Publisher::new();
    let source = format!("oci://{}/acme/team:stable", registry.host);
    let author = Machine::new();
    let publish = |version: &str| {
        for (name, text) in team(version) {
            author.put(&format!("team/{name}"), &text);
        }
        let written = author.run(&["pack", "manifest", "team"], b"");
        assert_eq!(written.code, Some(0), "{written:?}");
        let list = fs::read_to_string(author.file("team/pack.manifest")).unwrap();
        author.put("team/pack.manifest.minisig", &publisher.sign(&list));
        let pushed = author.run(&["pack", "push", "team", &source, "--key", &publisher.key()], b"");
        assert_eq!(pushed.code, Some(0), "{pushed:?}");
        pushed.stdout
    };
    let digest = publish("1.0.0").trim().rsplit_once("  ").unwrap().1.to_owned();
    assert!(digest.starts_with("sha256:"), "{digest}");

    let server = Server::start();
    let project = Project::new(&server, &source);
    let rules = format!("packs:\n  require_signature: true\n  keys: [{}]\n", publisher.key());
    fs::write(project.machine.path("config/policyd/config.yaml"), rules).unwrap();
    let fetched = project.call(&["pack", "fetch"]);
    assert!(fetched.stdout.contains("team 1.0.0"), "{fetched:?}");
    let lock = project.machine.file(".policyd/policies/policies.lock");
    assert_eq!(read_json(&lock)["packs"][0]["revision"], digest.as_str());
    assert_eq!(project.decision(), "deny");

    publish("1.1.0");
    fs::remove_dir_all(project.machine.path("home/.local")).unwrap();
    let again = project.call(&["pack", "fetch"]);
    assert!(again.stdout.contains("team 1.0.0"), "the locked digest, not the tag: {again:?}");
    let updated = project.call(&["pack", "update"]);
    assert!(updated.stdout.contains("-> team 1.1.0"), "{updated:?}");
    let by_digest = source.replace(":stable", &format!("@{digest}"));
    let other = Project::new(&server, &by_digest);
    assert!(other.call(&["pack", "fetch"]).stdout.contains("team 1.0.0"));
    let gone = Project::new(&server, &source.replace("stable", "gone")).call(&["pack", "fetch"]);
    assert!(gone.code == Some(1) && gone.stderr.contains("status 404"), "{gone:?}");

    // Another key, a changed file, and a changed list are not published.
    let words = ["pack", "push", "team", source.as_str(), "--key"];
    let key = Publisher::new().key();
    let refused = author.run(&[words.as_slice(), &[&key]].concat(), b"");
    assert!(refused.stderr.contains("signed by another key"), "{refused:?}");
    author.put("team/guards.yaml", "[]\n");
    let refused = author.run(&words[..4], b"");
    assert!(refused.stderr.contains("is not the list of the present files"), "{refused:?}");
}

#[test]
fn a_pack_is_written_to_an_archive_that_a_server_publishes() {
    let server = Server::start();
    let author = Machine::new();
    for (name, text) in team("1.0.0") {
        author.put(&format!("team/{name}"), &text);
    }
    let pushed = author.run(&["pack", "push", "team", "team.tar.zst"], b"");
    assert!(pushed.code == Some(0) && pushed.stderr.contains("is not signed"), "{pushed:?}");
    server.put("/team.tar.zst", fs::read(author.file("team.tar.zst")).unwrap());
    let project = Project::new(&server, &server.url("/team.tar.zst"));
    project.configure();
    let fetched = project.machine.run(&["pack", "fetch"], b"");
    assert!(fetched.stdout.contains("team 1.0.0"), "{fetched:?}");
    assert_eq!(project.decision(), "deny");
    author.put("team/policyd.yaml", "version: 1\nname: team\n");
    let refused = author.run(&["pack", "push", "team", "team.tar.zst"], b"");
    assert!(refused.code == Some(3) && refused.stderr.contains("no `pack_version`"), "{refused:?}");
    let usage = author.run(&["pack", "push", "team", "https://a.example/team.tar.zst"], b"");
    assert_eq!(usage.code, Some(2), "{usage:?}");
}
