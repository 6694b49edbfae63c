//! What an account may do on the server of the shared store: execute functions, and nothing else.

use serde_json::{Value, json};

use crate::shared_store::{accounts, done, host, status};
use crate::support::postgres::{self, query};

/// Error code of PostgreSQL for a missing privilege, and for what only a human may do.
const DENIED: &str = "E42501";

/// Runs statements that the server must refuse for want of a privilege.
fn refused(url: &str, sql: &str) -> String {
    let error = postgres::execute(url, sql).expect_err(sql);
    assert!(error.contains(DENIED), "{sql}: {error}");
    error
}

/// Returns the address of another agent with the same role.
fn other_agent(admin: &str) -> String {
    let (_, name) = admin.rsplit_once('/').unwrap();
    let account = format!("other_{name}");
    let sql = format!(
        "DROP ROLE IF EXISTS {account}; CREATE ROLE {account} LOGIN; GRANT policyd_agent TO {account}"
    );
    postgres::execute(admin, &sql).unwrap();
    admin.replace("postgres@", &format!("{account}@"))
}

/// Saves a document through the function of the server.
fn save(url: &str, kind: &str, name: &str, body: Option<&Value>) -> Result<(), String> {
    let body = body.map_or("NULL".to_owned(), |it| format!("'{it}'"));
    let sql = format!("SELECT policyd.save_document('team', '{kind}', '{name}', {body})");
    postgres::execute(url, &sql)
}

/// A time before or after now.
fn time(admin: &str, offset: &str) -> String {
    let format = "YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"";
    let sql = format!(
        "SELECT to_char((clock_timestamp() + interval '{offset}') AT TIME ZONE 'UTC', '{format}')"
    );
    query(admin, &sql).remove(0)
}

#[test]
fn no_role_reads_or_changes_a_table() {
    let Some(server) = postgres::server("no_role_reads_or_changes_a_table") else { return };
    let url = server.database();
    let [agent, human] = accounts(&url);
    let columns = query(
        &url,
        "SELECT table_name || '.' || column_name FROM information_schema.columns \
         WHERE table_schema = 'policyd' ORDER BY 1",
    );
    assert!(columns.len() >= 20, "{columns:?}");
    for account in [&agent, &human] {
        for column in &columns {
            let (table, column) = column.split_once('.').unwrap();
            let mut statements = vec![
                format!("UPDATE policyd.{table} SET {column} = {column}"),
                format!("UPDATE policyd.{table} SET {column} = NULL WHERE false"),
                format!("INSERT INTO policyd.{table} ({column}) VALUES (NULL)"),
                format!("DELETE FROM policyd.{table} WHERE {column} IS NULL"),
                format!("TRUNCATE policyd.{table}"),
                format!("BEGIN; LOCK TABLE policyd.{table} IN ROW EXCLUSIVE MODE; COMMIT"),
                format!("SELECT {column} FROM policyd.{table} FOR UPDATE"),
                format!("CREATE TRIGGER x BEFORE UPDATE ON policyd.{table} EXECUTE FUNCTION x()"),
                format!("COPY policyd.{table} FROM PROGRAM 'true'"),
            ];
            // Every client reads the version of the schema.
            if table != "migration" {
                statements.push(format!("SELECT {column} FROM policyd.{table}"));
                statements.push(format!("SELECT count(*) FROM policyd.{table}"));
            }
            for statement in statements {
                refused(account, &statement);
            }
        }
        for statement in [
            "CREATE TABLE policyd.x (a int)",
            "CREATE FUNCTION policyd.x() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "DROP FUNCTION policyd.may_use(text)",
            "ALTER TABLE policyd.document DISABLE TRIGGER ALL",
            "ALTER TABLE policyd.document DISABLE ROW LEVEL SECURITY",
            "SET ROLE policyd_admin",
            "SET session_replication_role = replica",
            "GRANT policyd_human TO policyd_agent",
        ] {
            let error = postgres::execute(account, statement).expect_err(statement);
            assert!(error.contains(DENIED) || error.contains("E0A000"), "{statement}: {error}");
        }
    }
}

#[test]
fn each_role_executes_its_functions_only() {
    let Some(server) = postgres::server("each_role_executes_its_functions_only") else { return };
    let url = server.database();
    let [agent, human] = accounts(&url);
    let both = [
        "append_decisions",
        "begin_change",
        "count_documents",
        "read_changes",
        "read_group",
        "read_page",
        "read_state",
        "save_document",
    ];
    let functions = query(
        &url,
        "SELECT proname || '(' || (SELECT coalesce(string_agg('NULL::' || format_type(it, NULL), ', '), '') \
         FROM unnest(proargtypes) AS it) || ')' FROM pg_proc WHERE pronamespace = 'policyd'::regnamespace",
    );
    assert!(functions.len() >= 15, "{functions:?}");
    for (account, own) in
        [(&agent, &both[..]), (&human, &[&both[..], &["read_decisions"]].concat())]
    {
        for call in &functions {
            let name = call.split('(').next().unwrap();
            let sql = format!("SELECT policyd.{call}");
            let result = postgres::execute(account, &sql);
            let is_denied =
                result.as_ref().is_err_and(|it| it.contains("permission denied for function"));
            assert_eq!(is_denied, !own.contains(&name), "{sql}: {result:?}");
        }
    }
    // An account without a role cannot do anything.
    let (_, name) = url.rsplit_once('/').unwrap();
    let stranger = format!("stranger_{name}");
    let sql = format!("DROP ROLE IF EXISTS {stranger}; CREATE ROLE {stranger} LOGIN");
    postgres::execute(&url, &sql).unwrap();
    let stranger = url.replace("postgres@", &format!("{stranger}@"));
    for call in &functions {
        refused(&stranger, &format!("SELECT policyd.{call}"));
    }
    // Every function that runs with the privileges of the owner has a fixed search path.
    let open = query(
        &url,
        "SELECT proname::text FROM pg_proc WHERE pronamespace = 'policyd'::regnamespace \
         AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (proconfig), false)",
    );
    assert_eq!(open, [""; 0]);
}

#[test]
fn an_account_changes_no_request_or_run_of_another() {
    let Some(server) = postgres::server("an_account_changes_no_request_or_run_of_another") else {
        return;
    };
    let url = server.database();
    let [agent, human] = accounts(&url);
    let other = other_agent(&url);
    let (now, tomorrow) = (time(&url, "0"), time(&url, "23 hours"));
    let call = json!({"digest": "d", "asked": now, "input": "ls"});
    let answer = json!({"allowed": false, "by": "ada", "at": now, "taken": false});
    let with = |document: &Value, key: &str, value: Value| {
        let mut document = document.clone();
        document[key] = value;
        document
    };
    let signal =
        json!({"id": "s", "signal": "HUMAN_REVIEW_NEEDED", "asks": true, "interrupts": ""});
    let work = json!({"id": "w", "signal": "WORK", "asks": false, "interrupts": ""});
    let claim = json!({"by": "x", "until": tomorrow, "generation": 1});
    let escalation = json!({"id": "e", "status": "open", "reason": "Buy a disk?", "created": now});
    let run = json!({"run": "r", "updated": now});
    let new = [
        ("approval", "a", &call),
        ("signal", "s", &signal),
        ("signal", "w", &work),
        ("escalation", "e", &escalation),
        ("run", "r", &run),
    ];
    for (kind, name, document) in new {
        save(&agent, kind, name, Some(document)).unwrap();
    }
    let ended = |outcome: &str| json!({"outcome": outcome, "by": "x", "text": ""});
    let claimed = with(&work, "claim", claim.clone());
    save(&agent, "signal", "w", Some(&claimed)).unwrap();
    for (kind, name, document) in [
        ("approval", "a", Some(with(&call, "withdrawn", json!(true)))),
        ("approval", "a", Some(with(&call, "answer", answer.clone()))),
        ("approval", "a", None),
        ("signal", "s", Some(with(&signal, "ended", ended("closed")))),
        ("signal", "s", Some(with(&signal, "ended", ended("approved")))),
        ("signal", "s", Some(with(&signal, "ended", json!({})))),
        ("signal", "s", None),
        (
            "signal",
            "w",
            Some(with(&claimed, "claim", json!({"by": "y", "until": tomorrow, "generation": 2}))),
        ),
        ("signal", "w", Some(with(&claimed, "ended", ended("consumed")))),
        ("signal", "w", Some(work.clone())),
        ("escalation", "e", Some(with(&escalation, "reason", json!("Say yes")))),
        ("escalation", "e", Some(with(&escalation, "status", json!("approved")))),
        ("escalation", "e", Some(with(&escalation, "told_at", json!("2099-01-01T00:00:00Z")))),
        ("escalation", "e", None),
        ("run", "r", Some(with(&run, "state", json!("completed")))),
        ("run", "r", None),
    ] {
        let error = save(&other, kind, name, document.as_ref()).expect_err(kind);
        assert!(error.contains(DENIED), "{kind} {document:?}: {error}");
    }
    // Its own account changes them, except that it answers nothing and takes no answer back.
    save(&agent, "run", "r", Some(&with(&run, "state", json!("completed")))).unwrap();
    save(&agent, "escalation", "e", Some(&with(&escalation, "told_at", json!(now)))).unwrap();
    save(&agent, "signal", "w", Some(&with(&claimed, "ended", ended("consumed")))).unwrap();
    save(&human, "approval", "a", Some(&with(&call, "answer", answer))).unwrap();
    let error = save(&agent, "approval", "a", Some(&call)).unwrap_err();
    assert!(error.contains("only a human takes an answer back"), "{error}");
    save(&human, "signal", "s", Some(&with(&signal, "ended", ended("rejected")))).unwrap();
    let error = save(&agent, "signal", "s", Some(&with(&signal, "ended", ended("closed"))));
    assert!(error.unwrap_err().contains("only a human answers a request"));
}

#[test]
fn a_claim_belongs_to_its_account_until_the_lease_ends() {
    let test = "a_claim_belongs_to_its_account_until_the_lease_ends";
    let Some(server) = postgres::server(test) else { return };
    let url = server.database();
    let [agent, human] = accounts(&url);
    let other = other_agent(&url);
    let (soon, past, next_year) =
        (time(&url, "1 hour"), time(&url, "-1 hour"), time(&url, "1 year"));
    let task = |queue: &str, holder: &str, until: &str, generation: u64| json!({"queue": queue, "claim": {"holder": holder, "until": until, "generation": generation}});
    let mine = task("dead_letter", "me", &soon, 1);
    save(&agent, "task", "t", Some(&mine)).unwrap();
    for document in [
        Some(task("dead_letter", "you", &soon, 2)),
        Some(task("dead_letter", "", &past, 1)),
        Some(task("pending", "me", &soon, 1)),
        Some(json!({"queue": "dead_letter"})),
        None,
    ] {
        let error = save(&other, "task", "t", document.as_ref()).unwrap_err();
        assert!(error.contains("another account claimed this"), "{document:?}: {error}");
    }
    // What is no claim can change: the task failed again elsewhere.
    let mut learned = mine.clone();
    learned["last_error"] = json!("no space");
    save(&other, "task", "t", Some(&learned)).unwrap();
    // No lease for ever, and no number that leaves none for the next claim.
    for document in [
        task("dead_letter", "me", &next_year, 2),
        task("dead_letter", "me", "infinity", 2),
        task("dead_letter", "me", &soon, 9),
        task("dead_letter", "me", &soon, 0),
    ] {
        let error = save(&agent, "task", "t", Some(&document)).unwrap_err();
        assert!(error.contains(DENIED) || error.contains("E22007"), "{document}: {error}");
    }
    save(&agent, "task", "t", Some(&task("dead_letter", "me", &past, 2))).unwrap();
    save(&other, "task", "t", Some(&task("dead_letter", "you", &soon, 3))).unwrap();
    save(&agent, "task", "t", None).unwrap_err();
    save(&human, "task", "t", None).unwrap();
    // A client of another account cannot end the claim either, though it knows the number.
    let [one, two] = [&agent, &other].map(|it| host(it, "  share: [tasks]\n"));
    done(&one.run(&["dlq", "add", "t1", "--error", "x", "--immediately"], b""));
    done(&one.run(&["dlq", "claim", "t1"], b""));
    let taken = two.run(&["dlq", "finish", "t1", "--generation", "1"], b"");
    assert_eq!(taken.code, Some(3), "{taken:?}");
    assert!(taken.stderr.contains("another account claimed this"), "{taken:?}");
    done(&one.run(&["dlq", "finish", "t1", "--generation", "1"], b""));
}

#[test]
fn no_account_stops_the_writes_or_exhausts_the_readers_of_a_group() {
    let test = "no_account_stops_the_writes_or_exhausts_the_readers_of_a_group";
    let Some(server) = postgres::server(test) else { return };
    let url = server.database();
    let [agent, human] = accounts(&url);
    let other = other_agent(&url);
    let machine = host(&human, "  share: [tasks, signals]\n");
    // The operation of another account has another key.
    let begin = "SELECT * FROM policyd.begin_change('team', 'id-1', 'task', 't')";
    postgres::execute(&agent, begin).unwrap();
    let applied = |url: &str| {
        let sql = format!("SELECT is_applied::text FROM ({begin}) AS it");
        query(url, &sql)
    };
    assert_eq!(
        (applied(&other), applied(&agent)),
        (vec!["false".to_owned()], vec!["true".to_owned()])
    );
    for (kind, name, body) in [
        ("task", "t", json!({"text": "x".repeat(1_100_000)})),
        ("other", "t", json!({})),
        ("task", "", json!({})),
        ("task", &"n".repeat(2_000), json!({})),
        ("task", "t", json!([1])),
        ("breaker", "api/x", json!({"state": "OPEN", "cooldown_until": "2099-01-01T00:00:00Z"})),
        ("breaker", "api/x", json!({"state": "OPEN", "cooldown_until": "infinity"})),
        ("breaker", "api/x", json!({"state": "OPEN", "cooldown_until": "soon"})),
        ("breaker", "api/x", json!({"forced": "open"})),
        ("approval", "a", json!({"asked": "2099-01-01T00:00:00Z"})),
    ] {
        let result = save(&agent, kind, name, Some(&body));
        assert!(result.is_err(), "{kind} {}", body.to_string().get(..60).unwrap_or_default());
    }
    let version = query(&url, "SELECT version::text FROM policyd.project_group");
    assert_eq!(version, ["0"], "only the server counts versions");
    // One signal of another host, and then 24 MB of an agent: each answer has a bounded size, and a reader gets everything in
    // several. Its copy keeps the small signal.
    let signal = |name: &str, length: u32, count: u32| {
        format!(
            "SELECT policyd.save_document('team', 'signal', '{name}' || n, \
             json_build_object('id', '{name}' || n, 'signal', 'WORK', 'asks', false, 'interrupts', '', 'created', \
             '2026-01-01T00:00:00Z', 'fields', json_build_object('text', repeat('x', {length})))::text) \
             FROM generate_series(1, {count}) AS n"
        )
    };
    postgres::execute(&other, &signal("small", 10, 1)).unwrap();
    postgres::execute(&agent, &signal("large", 250_000, 96)).unwrap();
    let error = postgres::execute(&agent, &signal("over", 270_000, 1)).unwrap_err();
    assert!(error.contains("at most 256 KiB"), "{error}");
    let page = query(
        &human,
        "SELECT sum(octet_length(body))::text FROM policyd.read_changes('team', 0, 2147483647, 2147483647)",
    );
    assert!(page[0].parse::<u64>().unwrap() <= 16 * 1024 * 1024, "{page:?}");
    let synced = machine.run(&["store", "sync"], b"");
    assert!(done(&synced).stdout.contains("97 received"), "{synced:?}");
    let listed = machine.run(&["signal", "list", "--format", "json"], b"").stdout;
    assert!(listed.contains("small1"), "{} lines", listed.lines().count());
    // Open tasks of one account have a limit; those of others are not in the way.
    let tasks = "SELECT policyd.save_document('team', 'task', 'task' || n, \
        json_build_object('queue', 'pending', 'text', repeat('x', 500000))::text) FROM generate_series(1, 9) AS n";
    let error = postgres::execute(&agent, tasks).unwrap_err();
    assert!(error.contains("E53400"), "{error}");
    save(&other, "task", "small", Some(&json!({"queue": "pending"}))).unwrap();
    // Writes still work.
    done(&machine.run(&["dlq", "add", "t9", "--error", "x", "--immediately"], b""));
    done(&machine.run(&["store", "sync"], b""));
    assert_eq!(status(&machine)["waiting"], 0);
    // A store from before version 4 can contain a document of any size. It is reported and left out.
    let old = "ALTER TABLE policyd.document DROP CONSTRAINT document_size; \
        SELECT policyd.save_document('team', 'task', 'big', json_build_object('x', repeat('x', 2000000))::text)";
    postgres::execute(&url, old).unwrap();
    let synced = machine.run(&["store", "sync"], b"");
    assert!(format!("{synced:?}").contains("larger than 1 MiB"), "{synced:?}");
}

#[test]
fn the_tables_of_earlier_clients_are_closed_and_their_operations_wait() {
    let test = "the_tables_of_earlier_clients_are_closed_and_their_operations_wait";
    let Some(server) = postgres::server(test) else { return };
    let url = server.database();
    let [agent, _] = accounts(&url);
    // The first statement of an operation of an earlier client: no check raises it, so the client keeps the operation.
    let lock = "SELECT version FROM policyd.project_group WHERE name = 'team' FOR UPDATE";
    let error = refused(&agent, lock);
    assert!(error.contains("permission denied") && !error.contains("exec_stmt_raise"), "{error}");
    // Where it looks for the reason, it finds the version that it needs.
    let needed = query(&agent, "SELECT max(client_min)::text FROM policyd.migration");
    assert_eq!(needed, ["4"]);
}
