//! A PostgreSQL server for tests: the one of `POLICYD_TEST_POSTGRES` (a URL of an administrator), else one that is
//! started from the programs of this machine. Without either, tests are skipped and say so; with
//! `POLICYD_REQUIRE_POSTGRES=1` they fail.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Longest start of a server on a busy machine.
const START: Duration = Duration::from_secs(60);

/// A server of this test binary; tests that kill it keep the others away.
static SHARED: LazyLock<Option<Mutex<Postgres>>> =
    LazyLock::new(|| Postgres::find().map(Mutex::new));

/// A server.
pub(crate) struct Postgres {
    admin_url: String,
    own: Option<OwnServer>,
}

/// A server that this process started.
struct OwnServer {
    folder: TempDir,
    programs: PathBuf,
    port: u16,
    /// Addresses at which it accepts connections.
    listens: &'static str,
    /// Further options.
    options: String,
    /// The shell around the server. It kills the server if its standard input ends.
    shell: Option<Child>,
}

/// Returns the server, for one test at a time. `None`: the test is skipped, and says so.
pub(crate) fn server(test: &str) -> Option<MutexGuard<'static, Postgres>> {
    if let Some(server) = &*SHARED {
        return Some(server.lock().unwrap_or_else(PoisonError::into_inner));
    }
    let required = std::env::var("POLICYD_REQUIRE_POSTGRES").is_ok_and(|it| it == "1");
    assert!(!required, "{test}: POLICYD_REQUIRE_POSTGRES is set, and there is no PostgreSQL");
    eprintln!("SKIPPED {test}: set POLICYD_TEST_POSTGRES, or install PostgreSQL");
    None
}

impl Postgres {
    fn find() -> Option<Self> {
        if let Ok(admin_url) = std::env::var("POLICYD_TEST_POSTGRES") {
            return Some(Self { admin_url, own: None });
        }
        let mut own = OwnServer::create(programs()?);
        own.start();
        let admin_url = format!("postgres://postgres@127.0.0.1:{}/postgres", own.port);
        Some(Self { admin_url, own: Some(own) })
    }

    /// Starts a server on the host of the calling thread, for the hosts of a network. `None` without PostgreSQL.
    pub(crate) fn on_network(address: &str) -> Option<Self> {
        let mut own = OwnServer::create(programs()?);
        let rules = own.folder.path().join("data/pg_hba.conf");
        let mut rules = fs::OpenOptions::new().append(true).open(rules).unwrap();
        writeln!(rules, "host all all {address}/24 trust").unwrap();
        own.listens = "*";
        own.start();
        let admin_url = format!("postgres://postgres@{address}:{}/postgres", own.port);
        Some(Self { admin_url, own: Some(own) })
    }

    /// Starts a server that encrypts connections with a certificate for `localhost`. `None` without PostgreSQL.
    pub(crate) fn with_certificate(certificate: &str, key: &str) -> Option<Self> {
        let mut own = OwnServer::create(programs()?);
        for (name, text) in [("server.crt", certificate), ("server.key", key)] {
            let path = own.folder.path().join("data").join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            if let Some(user) = user() {
                assert!(Command::new("chown").arg(user).arg(path).status().unwrap().success());
            }
        }
        own.options = "-c ssl=on".to_owned();
        own.start();
        let admin_url = format!("postgres://postgres@localhost:{}/postgres", own.port);
        Some(Self { admin_url, own: Some(own) })
    }

    /// Creates an empty database; returns its URL for the administrator.
    pub(crate) fn database(&self) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("policyd_{}_{number}", std::process::id());
        execute(&self.admin_url, &format!("DROP DATABASE IF EXISTS {name}")).unwrap();
        execute(&self.admin_url, &format!("CREATE DATABASE {name}")).unwrap();
        let (server, _) = self.admin_url.rsplit_once('/').unwrap();
        format!("{server}/{name}")
    }

    /// Copies a database, as a standby or a backup has it. Returns the name of the copy.
    pub(crate) fn back_up(&self, url: &str) -> String {
        let (_, name) = url.rsplit_once('/').unwrap();
        let copy = format!("{name}_copy");
        self.administer(&format!("CREATE DATABASE {copy} TEMPLATE {name}"));
        copy
    }

    /// Puts a copy in the place of a database, which loses what changed since.
    pub(crate) fn fail_over(&self, url: &str, copy: &str) {
        let (_, name) = url.rsplit_once('/').unwrap();
        self.administer(&format!("DROP DATABASE {name} WITH (FORCE)"));
        self.administer(&format!("ALTER DATABASE {copy} RENAME TO {name}"));
    }

    /// Runs statements in another database of the server.
    pub(crate) fn administer(&self, sql: &str) {
        execute(&self.admin_url, sql).unwrap();
    }

    /// Whether this process can kill the server.
    pub(crate) fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// Kills the server without warning.
    pub(crate) fn kill(&mut self) {
        self.own.as_mut().unwrap().kill();
    }

    /// Lets the server accept connections and answer nothing, as behind a broken network; or ends that.
    pub(crate) fn set_silent(&self, is_silent: bool) {
        let pid = fs::read_to_string(self.own.as_ref().unwrap().folder.path().join("pid")).unwrap();
        let signal = if is_silent { "-STOP" } else { "-CONT" };
        assert!(Command::new("kill").args([signal, pid.trim()]).status().unwrap().success());
    }

    /// Starts the server again.
    pub(crate) fn restart(&mut self) {
        self.own.as_mut().unwrap().start();
    }
}

/// The directory with `initdb` and `postgres`.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let named = std::env::split_paths(&path).collect::<Vec<_>>();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let installed = versions.filter_map(|it| Some(it.ok()?.path().join("bin")));
    named
        .into_iter()
        .chain(installed)
        .find(|it| it.join("initdb").exists() && it.join("postgres").exists())
}

/// The user that runs the server. It refuses to run as root.
fn user() -> Option<&'static str> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let exists = |name: &&str| {
        let output = Command::new("id").args(["-u", *name]).output();
        output.is_ok_and(|it| it.status.success())
    };
    Some(["postgres", "nobody"].into_iter().find(exists).unwrap())
}

/// A shell line, as the user of the server.
fn shell(script: &str, folder: &Path) -> Command {
    let mut command = match user() {
        Some(user) => {
            let mut command = Command::new("runuser");
            command.args(["-u", user, "--", "sh", "-c", script]);
            command
        }
        None => {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        }
    };
    command.current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

impl OwnServer {
    fn create(programs: PathBuf) -> Self {
        let folder = tempfile::Builder::new().prefix("policyd-postgres-").tempdir().unwrap();
        if let Some(user) = user() {
            assert!(Command::new("chown").arg(user).arg(folder.path()).status().unwrap().success());
        }
        let initdb = programs.join("initdb");
        let script = format!(
            "{} -D data -U postgres -A trust -E UTF8 --locale=C --no-sync",
            initdb.display()
        );
        let created = shell(&script, folder.path()).stdin(Stdio::null()).status().unwrap();
        assert!(created.success(), "initdb failed");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self { folder, programs, port, listens: "127.0.0.1", options: String::new(), shell: None }
    }

    fn start(&mut self) {
        let began = Instant::now();
        loop {
            let script = format!(
                "{} -D data -p {} -c listen_addresses='{}' -c unix_socket_directories= \
                 -c fsync=off -c max_connections=300 {} & pid=$!; echo $pid > pid; cat > /dev/null; kill -9 $pid",
                self.programs.join("postgres").display(),
                self.port,
                self.listens,
                self.options
            );
            let child = shell(&script, self.folder.path()).stdin(Stdio::piped()).spawn().unwrap();
            self.shell = Some(child);
            let url = format!("postgres://postgres@127.0.0.1:{}/postgres", self.port);
            for _ in 0..100 {
                if execute(&url, "SELECT 1").is_ok() {
                    return;
                }
                assert!(began.elapsed() < START, "PostgreSQL does not start");
                thread::sleep(Duration::from_millis(50));
            }
            // After `kill -9`, the memory of the old server is in use for a moment.
            self.kill();
        }
    }

    /// Ends the shell, which kills the server.
    fn kill(&mut self) {
        if let Some(mut shell) = self.shell.take() {
            drop(shell.stdin.take());
            shell.wait().unwrap();
        }
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs statements.
pub(crate) fn execute(url: &str, sql: &str) -> Result<(), String> {
    with(url, async |client| client.batch_execute(sql).await)
}

/// Holds the lock of a group for a while, as a process that stopped within its transaction does.
pub(crate) fn hold_group(url: &str, group: &str, length: Duration) {
    let sql = format!(
        "BEGIN; SELECT FROM policyd.project_group WHERE name = '{group}' FOR UPDATE; SELECT pg_sleep({}); COMMIT",
        length.as_secs_f64()
    );
    execute(url, &sql).unwrap();
}

/// Returns the first column of a query as text.
pub(crate) fn query(url: &str, sql: &str) -> Vec<String> {
    let rows = with(url, async |client| client.query(sql, &[]).await).unwrap();
    rows.iter().map(|it| it.get::<_, String>(0)).collect()
}

fn with<T>(
    url: &str,
    work: impl AsyncFnOnce(&tokio_postgres::Client) -> Result<T, tokio_postgres::Error>,
) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let connecting = tokio_postgres::connect(url, tokio_postgres::NoTls);
        let connected = tokio::time::timeout(Duration::from_secs(5), connecting).await;
        let (client, connection) =
            connected.map_err(|_| "no answer".to_owned())?.map_err(|error| error.to_string())?;
        tokio::spawn(connection);
        work(&client).await.map_err(|error| format!("{error:?}"))
    })
}
