//! The expression language: every row of the table of facts works as its example says, and the
//! sandbox holds.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use policyd::deferred::Lazy;
use policyd::evaluation::situation::Matchers;
use policyd::expr::ast::Expr;
use policyd::expr::breaker_facts::{BreakerSnapshot, BreakersSnapshot};
use policyd::expr::call_facts::CallFacts;
use policyd::expr::check::check;
use policyd::expr::clock_facts;
use policyd::expr::context::{
    Context, ConversationProse, Excuse, FactView, Memory, OutcomeFacts, ProbeResult, Readings,
    RuleFacts, StoreSnapshots,
};
use policyd::expr::context_facts::ContextUsage;
use policyd::expr::members;
use policyd::expr::pattern::{StoredPattern, TextPatternSource};
use policyd::expr::program_facts::MatchedProgram;
use policyd::expr::signal_facts::SignalSnapshot;
use policyd::expr::text_facts::{DiskFacts, KnownText};
use policyd::expr::types::{Names, Type};
use policyd::expr::{FactEvaluator, ScriptErrorKind, Value};
use policyd::facts::Facts;
use policyd::facts::call::{Call, CallEnvironment, Invocation};
use policyd::facts::compiled::CompiledMatchers;
use policyd::facts::event::EventKind;
use policyd::facts::lens::MatcherConfig;
use policyd::hook::payload as wire;
use policyd::policy::{builtin, load};
use policyd::record::drawing;
use policyd::time::Timestamp;
use proptest::prelude::*;

use crate::support::{expressions, rounds, snapshot};

/// Names that the examples of the table use.
fn names() -> Names {
    let set = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
    Names {
        command_kinds: set(&["test"]),
        file_kinds: set(&["code"]),
        path_lists: set(&["secret_files"]),
        tiers: set(&["act"]),
        contents: set(&["stub"]),
        texts: set(&["next_steps", "operations", "completion"]),
        preferences: set(&["no_auto_merge"]),
        probes: set(&["pr"]),
        memory: set(&["deploys"]),
        session_types: set(&["DEVELOPMENT"]),
        forges: set(&["gitlab"]),
        incomplete: false,
        record: None,
    }
}

fn evaluator() -> FactEvaluator {
    FactEvaluator::new(Rc::new(view(context())))
}

/// A context with something of everything.
fn view(context: Context) -> FactView {
    let answer = serde_json::json!({"state": "OPEN", "number": 7, "isDraft": false,
        "statusCheckRollup": [{"conclusion": "SUCCESS"}]});
    let open = BreakerSnapshot {
        state: "OPEN".to_owned(),
        open: true,
        retry_after: 90,
        last_error: "529".to_owned(),
        ..BreakerSnapshot::default()
    };
    let standing = BreakersSnapshot {
        load_level: "reduced".to_owned(),
        parallelism: 2,
        known: [("api/claude".to_owned(), open)].into(),
    };
    let waiting = SignalSnapshot {
        pending: vec!["STOP".to_owned(), "HUMAN_REVIEW_NEEDED".to_owned()],
        drifts: 4,
        awaiting_human: 1,
    };
    let git = Invocation {
        name: "git".to_owned(),
        folder: Some("/work".to_owned()),
        ..Invocation::default()
    };
    let call = Call { programs: vec![git], ..Call::default() };
    let clean_trees = [("/work".to_owned(), true)].into();
    let around = Rc::new(CallEnvironment {
        clean_trees,
        branch: Some("main".to_owned()),
        ..CallEnvironment::default()
    });
    let disk = DiskFacts {
        has: [("pnpm-lock.yaml".to_owned(), Some(true))].into(),
        project_texts: [("package.json".to_owned(), Ok(KnownText::whole("{}")))].into(),
        owners: Some(Ok(Rc::default())),
        ..DiskFacts::default()
    };
    let pr = ProbeResult::Answer { code: 0, value: answer };
    let stores = StoreSnapshots {
        breakers: Some(standing),
        waiting: Some(policyd::expr::queue_facts::QueueSnapshot::default()),
        signals: Some(waiting),
        costs: Some(Default::default()),
        memory: Some(Default::default()),
    };
    FactView {
        call: Some(Rc::new(CallFacts {
            call,
            around,
            disk: Rc::new(disk),
            ..CallFacts::default()
        })),
        program: Some(MatchedProgram::default()),
        session_type: "DEVELOPMENT".to_owned(),
        readings: Rc::new(Readings {
            probes: [("pr".to_owned(), pr)].into(),
            ..Readings::default()
        }),
        stores: Rc::new(stores),
        usage: Some(Rc::default()),
        ..FactView::new(Rc::new(context))
    }
}

fn context() -> Context {
    let payload = br#"{"session_id":"s","prompt_id":"p","last_assistant_message":"All done."}"#;
    let texts = names().texts.into_iter().map(|it| (it, TextPatternSource::default().into()));
    let texts: BTreeMap<String, StoredPattern> = texts.collect();
    Context {
        event: wire::parse(payload, EventKind::Stop).unwrap(),
        facts: Facts::default(),
        lens: Rc::new(CompiledMatchers::new(MatcherConfig {
            kept_calls: ["WebFetch".to_owned(), "Skill".to_owned()].into(),
            ..MatcherConfig::default()
        })),
        transcript_problem: None,
        last_message: "All done.".to_owned(),
        interactive: true,
        supervised: false,
        recorded: false,
        main_branches: vec!["main".to_owned()],
        forge: "gitlab".to_owned(),
        remote_host: "gitlab.com".to_owned(),
        project: "/work".into(),
        project_view: None,
        patterns: Rc::new(Lazy::from(texts).into()),
        sought: Rc::default(),
        overrides: Default::default(),
        now: Timestamp::from_millis(1_767_225_600_000),
        zones: clock_facts::zones(&Expr::parse("now.in_zone(\"Europe/Berlin\").hour").unwrap()),
        spoken: ConversationProse::default(),
        files_by_kind: std::cell::RefCell::default(),
    }
}

thread_local! {
    /// One evaluator for all generated expressions: building one takes longer than an evaluation.
    static EVALUATOR: RefCell<FactEvaluator> = RefCell::new(evaluator());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: rounds(20_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_has_the_value_and_the_error_of_rhai(
        text in prop_oneof![3 => expressions::condition(), 1 => expressions::tokens()]
    ) {
        let (found, by_rhai, parts) = EVALUATOR.with_borrow_mut(|it| {
            (it.eval(&text), it.eval_by_rhai(&text), it.explain(&text))
        });
        match (found, by_rhai) {
            (Err(one), Err(other)) => {
                prop_assert_eq!((one.kind, one.message), (other.kind, other.message), "{}", text);
            }
            // Facts can be longer than the limits of Rhai.
            (Ok(_), Err(error)) => {
                prop_assert_eq!(error.kind, ScriptErrorKind::TooLarge, "{}: {}", text, error);
            }
            (one, other) => prop_assert_eq!(one, other, "{}", text),
        }
        for part in parts {
            prop_assert!(text.get(part.start..part.end).is_some(), "{}: {:?}", text, part);
        }
    }
}

#[test]
fn what_a_later_step_finds_is_seen_by_what_was_evaluated_before() {
    let later = |view: &mut FactView| {
        view.session_type = "SIMPLE".to_owned();
        view.memory = Memory { blocks: 3, total_blocks: 4, turns: 5 };
        view.readings = Rc::new(Readings {
            preferences: [("no_auto_merge".to_owned(), true)].into(),
            probes: [("pr".to_owned(), ProbeResult::Failed("no forge".to_owned()))].into(),
        });
        view.stores = Rc::new(StoreSnapshots {
            breakers: None,
            waiting: None,
            signals: Some(SignalSnapshot {
                pending: vec!["DOCS_NEEDED".to_owned()],
                drifts: 2,
                awaiting_human: 0,
            }),
            ..StoreSnapshots::default()
        });
        view.usage = Some(Rc::new(ContextUsage { percent: 71, ..ContextUsage::default() }));
        view.rule = RuleFacts { id: "rule_2".to_owned(), keywords: vec!["done".to_owned()] };
        view.outcome = OutcomeFacts {
            failed: 2,
            warned: 2,
            block: 2,
            max_blocks: 5,
            remaining: 3,
            idle_remaining: 1,
            explanation: "\"Done.\"".to_owned(),
            release: "cap".to_owned(),
            failed_ids: vec!["a".to_owned()],
            failed_details: vec!["b".to_owned()],
            workflow_compliant: true,
            quality_score: 100,
        };
        view.excuses = Some(Rc::new(vec![Excuse { proven: true, ..Excuse::default() }]));
    };
    let mut changed = 0;
    for row in members::tables() {
        let mut view = view(context());
        let mut evaluator = FactEvaluator::new(Rc::new(view.clone()));
        let before = evaluator.eval(row.example);
        later(&mut view);
        evaluator.change(later);
        let after = evaluator.eval(row.example);
        assert_eq!(after, FactEvaluator::new(Rc::new(view)).eval(row.example), "{}", row.example);
        changed += usize::from(before != after);
    }
    assert!(changed > 10, "{changed} rows read what changes");
}

#[test]
fn of_several_arguments_that_fail_the_first_one_is_told() {
    let nothing = FactView::new(Rc::new(context()));
    let mut evaluator = FactEvaluator::new(Rc::new(nothing));
    let (no_program, no_call) = ("no program was recognized", "this event has no tool call");
    for (expression, why) in [
        ("files.matching(program.name).paths.contains(action.tool)", no_program),
        ("files.matching(action.tool).paths.any_in([program.name])", no_call),
        ("files.kind(action.tool).matching(program.name).count > 0", no_call),
        ("[program.name].join(action.tool).contains(program.name)", no_call),
    ] {
        assert_eq!(evaluator.eval(expression).unwrap_err().message, why, "{expression}");
    }
}

#[test]
fn every_row_of_the_table_works_as_its_example_says() {
    let (names, mut evaluator) = (names(), evaluator());
    let mut rows = 0;
    for row in members::tables() {
        let typed = check(row.example, &names);
        assert!(typed.findings.is_empty(), "{}: {:?}", row.example, typed.findings);
        assert_eq!(typed.result, Type::Bool, "{}", row.example);
        let value = evaluator.eval(row.example);
        assert!(matches!(value, Ok(Value::Bool(_))), "{}: {value:?}", row.example);
        assert!(row.doc.ends_with('.'), "{}: a sentence", row.name);
        rows += 1;
    }
    assert!(rows > 80, "{rows} rows");
}

/// Facts of the sample session, as the built-in pack sees them.
fn worked(words: &Matchers) -> Context {
    let mut facts = Facts::default();
    for line in include_str!("../samples/transcript.jsonl").lines() {
        facts.ingest_record(line.as_bytes(), &words.lens);
    }
    assert!(facts.files.len() + facts.commands.recent.len() > 1, "the sample shows some work");
    let (lens, patterns) = (words.lens.clone(), words.patterns.clone());
    Context { facts, lens, patterns, ..context() }
}

/// What is of plain form is evaluated without the engine; in an `if` it never is.
#[test]
fn plain_expressions_have_the_value_that_the_engine_gives() {
    let policy = load::load(&builtin::pack(), &builtin::pack()).policy.unwrap();
    let mut texts: Vec<String> = members::tables().map(|it| it.example.to_owned()).collect();
    for it in policy.considerations.iter() {
        let (body, whens) = (&it.check.body, [&it.when, &it.check.when]);
        texts.extend(whens.into_iter().flatten().map(|it| it.text.clone()));
        texts.extend(body.blocking.iter().chain([&body.satisfied]).map(|it| it.text.clone()));
    }
    texts.extend(policy.session_types.iter().map(|it| it.when.text.clone()));
    for more in [
        "tools.total + 1 > tools.total",
        "tools.total == \"0\"",
        "true == false",
        "\"a\" < \"b\" && !(\"b\" <= \"a\")",
        "\"x\" in [\"x\", \"y\"] && !(\"z\" in [\"x\"])",
        "session.branch in session.main_branches || session.main_branches.len() == 1",
        "tools.total > 0 && tools.nothing",
        "probes.other.ok || true",
        "true || probes.other.ok",
        "files.paths",
        "session.forge",
        "breakers[\"api/\" + \"claude\"].open",
        "breakers[\"api/claude\"].last_error.contains(\"5\")",
        "breakers[\"api/other\"].retry_after == 0",
        "breakers[session.branch].open",
        "breakers[3].open",
    ] {
        texts.push(more.to_owned());
    }
    assert!(texts.len() > 150, "{}", texts.len());
    let words = Matchers::new(CompiledMatchers::new(policy.lens), policy.texts);
    for context in [context(), worked(&words)] {
        let mut evaluator = FactEvaluator::new(Rc::new(view(context)));
        for text in &texts {
            let by_engine = evaluator.eval(&format!("if true {{ {text} }} else {{ {text} }}"));
            match (evaluator.eval(text), by_engine) {
                (Err(one), Err(other)) => assert_eq!(one.message, other.message, "{text}"),
                (one, other) => assert_eq!(one, other, "{text}"),
            }
        }
    }
}

#[test]
fn a_breaker_is_named_in_brackets() {
    let told = |text: &str| {
        let typed = check(text, &names());
        typed.findings.iter().map(|it| it.message.clone()).collect::<Vec<_>>().join("; ")
    };
    for (text, expected) in [
        ("breakers[\"api/claude\"].open", ""),
        ("breakers[session.branch].failures > 2", ""),
        ("breakers[\"api/claude\"].last_error.contains(\"529\")", ""),
        ("breakers[\"api/claude\"].opne", "breaker has no `opne`"),
        (
            "breakers[\"api/claude\"].state == \"open\"",
            "`breakers[\"api/claude\"].state` is never \"open\"",
        ),
        ("breakers[\"open\"].open", "`open` is not the name of a breaker"),
        ("breakers[3].open", "the name of a breaker is a text, not a number"),
        ("probes[\"pr\"].ok", "a probes has nothing in brackets"),
        ("breakers.load_level == \"high\"", "`breakers.load_level` is never \"high\""),
        (
            "breakers[\"a\"] == \"OPEN\"",
            "`==` compares a breaker with a text, which are never equal",
        ),
    ] {
        assert_eq!(told(text), expected, "{text}");
    }
    let typed = check("breakers[\"api/claude\"].open && breakers.open.len() > 0", &names());
    let uses: Vec<_> = typed.uses.into_iter().collect();
    assert_eq!(uses, ["breakers.open", "breakers[\"api/claude\"].open"]);
    assert_eq!(
        parts("breakers[\"api/claude\"].open && breakers[\"api/\" + \"x\"].failures > 0"),
        [
            "breakers[\"api/claude\"].open = true",
            "\"api/\" + \"x\" = api/x",
            "breakers[\"api/\" + \"x\"].failures = 0",
            "breakers[\"api/\" + \"x\"].failures > 0 = false",
            "breakers[\"api/claude\"].open && breakers[\"api/\" + \"x\"].failures > 0 = false",
        ]
    );
}

#[test]
fn names_of_the_table_are_unique() {
    let mut seen = std::collections::BTreeSet::new();
    for row in members::tables() {
        assert!(seen.insert((row.owner, row.name)), "{} {}", row.owner, row.name);
    }
}

#[test]
fn values_are_what_they_should_be() {
    let mut evaluator = evaluator();
    let mut is = |text: &str| evaluator.eval(text).expect(text);
    assert_eq!(is("now.hour"), Value::Int(0));
    assert_eq!(is("now.weekday"), Value::Int(4));
    assert_eq!(is("now.date"), Value::Text("2026-01-01".to_owned()));
    assert_eq!(is("probes.pr.number(\"number\") + 1"), Value::Int(8));
    assert_eq!(
        is("probes.pr.list(\"statusCheckRollup[].conclusion\").join(\"|\")"),
        Value::Text("SUCCESS".to_owned())
    );
    assert_eq!(is("\"b\" in [\"a\", \"b\"] && !(\"c\" in [\"a\"])"), Value::Bool(true));
    assert_eq!(
        is("if files.count > 0 { \"some\" } else { \"none\" }"),
        Value::Text("none".to_owned())
    );
    assert_eq!(is("-2 * 3 % 4"), Value::Int(-2));
    assert_eq!(is("transcript.last_message.matches(\"^all\\\\s+done\")"), Value::Bool(true));
    assert_eq!(is("\"straße\".len()"), Value::Int(6));
    assert_eq!(is("breakers[\"api/claude\"].retry_after"), Value::Int(90));
    assert_eq!(is("breakers.open.join(\"\")"), Value::Text("api/claude".to_owned()));
    let closed = "breakers[\"api/x\"].state == \"CLOSED\" && !breakers[\"api/x\"].open";
    assert_eq!(is(closed), Value::Bool(true), "one that nobody knows is closed");
}

#[test]
fn what_cannot_be_evaluated_is_an_error_not_a_crash() {
    let mut evaluator = evaluator();
    for text in [
        "1 / 0 == 1",
        "9223372036854775807 + 1 > 0",
        "probes.other.ok",
        "eval(\"1\")",
        "print(\"x\")",
        "sleep(1)",
        "exit(1)",
        "import \"x\"",
        "while true {}",
        "loop {}",
        "let x = 1",
        "|x| x",
        "Fn(\"len\")",
        "todos.nothing",
        "nothing",
        "()",
        "",
        "((((",
    ] {
        assert!(evaluator.eval(text).is_err(), "{text}");
    }
    assert!(evaluator.eval_bool("todos.open").is_err(), "a condition is true or false");
}

#[test]
fn hostile_expressions_end_quickly() {
    let mut evaluator = evaluator();
    let nested =
        |open: &str, close: &str| format!("{}1{}", open.repeat(1_000), close.repeat(1_000));
    let doubling = format!("\"{}\"{}", "x".repeat(1_000), " + \"xxxxxxxxxx\"".repeat(300));
    for text in [nested("(", ")"), nested("[", "]"), nested("!", ""), nested("-", ""), doubling] {
        drop(evaluator.eval(&text));
        drop(check(&text, &names()));
    }
    let long = format!("\"{}\".len() > 0", "x".repeat(9_000));
    assert!(evaluator.eval(&long).is_err(), "longer than an expression may be");
}

/// The parts as `text = value`, as `--explain` lists them.
fn parts(text: &str) -> Vec<String> {
    let parts = evaluator().explain(text);
    parts.iter().map(|it| format!("{} = {}", &text[it.start..it.end], it.found)).collect()
}

#[test]
fn an_explanation_names_the_parts_and_what_was_not_reached() {
    for (text, expected) in [
        ("todos.open", vec!["todos.open = 0"]),
        (
            "todos.open == 0 && (commands.total > 3 || files.count == 0)",
            vec![
                "todos.open = 0",
                "todos.open == 0 = true",
                "commands.total = 0",
                "commands.total > 3 = false",
                "files.count = 0",
                "files.count == 0 = true",
                "commands.total > 3 || files.count == 0 = true",
                "todos.open == 0 && (commands.total > 3 || files.count == 0) = true",
            ],
        ),
        (
            "false || !(files.count == 0) && session.interactive",
            vec![
                "false = false",
                "files.count = 0",
                "files.count == 0 = true",
                "!(files.count == 0) = false",
                "session.interactive = not reached",
                "!(files.count == 0) && session.interactive = false",
                "false || !(files.count == 0) && session.interactive = false",
            ],
        ),
        (
            r#"files.paths.all_in(["a)", "\"("])"#,
            vec!["files.paths = ", r#"files.paths.all_in(["a)", "\"("]) = true"#],
        ),
        (
            r#""a" in files.paths || session.branch !in ["x", "y"]"#,
            vec![
                "files.paths = ",
                r#""a" in files.paths = false"#,
                "session.branch = ",
                r#"session.branch !in ["x", "y"] = true"#,
                r#""a" in files.paths || session.branch !in ["x", "y"] = true"#,
            ],
        ),
        (
            r#"if todos.open > 0 { session.branch } else { transcript.last_message.lower() }"#,
            vec![
                "todos.open = 0",
                "todos.open > 0 = false",
                "session.branch = not reached",
                "transcript.last_message = All done.",
                "transcript.last_message.lower() = all done.",
                "if todos.open > 0 { session.branch } else { transcript.last_message.lower() } = all done.",
            ],
        ),
        (
            r#"transcript.last_message == `a"(b` || session.interactive"#,
            vec![
                "transcript.last_message = All done.",
                r#"transcript.last_message == `a"(b` = false"#,
                "session.interactive = true",
                r#"transcript.last_message == `a"(b` || session.interactive = true"#,
            ],
        ),
        (r#"commands.kind("test").failed"#, vec![r#"commands.kind("test").failed = false"#]),
    ] {
        assert_eq!(parts(text), expected, "{text}");
    }
}

#[test]
fn every_expression_of_the_built_in_pack_can_be_taken_apart() {
    let pack = builtin::pack();
    let policy = load::load(&pack, &pack).policy.unwrap();
    let names = Names {
        incomplete: true,
        session_types: policy.session_types.iter().map(|it| it.id.clone()).collect(),
        ..names()
    };
    let mut evaluator = evaluator();
    let mut count = 0;
    for it in policy.considerations.iter() {
        let body = &it.check.body;
        let all = [
            it.when.as_ref(),
            it.check.when.as_ref(),
            Some(&body.satisfied),
            body.blocking.as_ref(),
        ];
        for condition in all.into_iter().flatten() {
            let parts = evaluator.explain(&condition.text);
            let whole = parts.last().unwrap();
            assert_eq!((whole.start, whole.end), (0, condition.text.len()));
            for part in &parts {
                let text = &condition.text[part.start..part.end];
                let wrong = check(text, &names).findings;
                assert!(wrong.is_empty(), "{text} of {}: {wrong:?}", condition.text);
                assert!((part.start..part.end).contains(&part.at), "{text}");
                count += 1;
            }
        }
    }
    assert!(count > 100, "{count}");
}

#[test]
fn a_drawing_hangs_each_value_below_its_part() {
    let long = "x".repeat(100);
    let expressions = [
        "todos.open == 0",
        "files.count > 3 && todos.open == 0",
        "todos.open == 0 && (commands.total > 3 || files.count == 0)",
        r#"transcript.last_message.contains("naïve 東京") || session.branch == "東京" && tokens.context > 1"#,
        r#"files.paths.all_in(["a", "b"]) && "a" in files.paths"#,
        "todos.open == 0 &&\n    (commands.total > 3\n\t|| files.count == 0)",
        r#"probes.ci.text("state") == "OPEN" || probes.pr.exit_code == 0"#,
        r#"(transcript.last_message + " and a second sentence that goes on for more than sixty columns") != """#,
        &format!(r#"transcript.last_message == "{long}" && session.branch == """#),
        "\"\u{1b}[31m\u{202e}\" + transcript.last_message",
        "todos.open ==",
    ];
    let mut evaluator = evaluator();
    let drawn = expressions.map(|it| drawing::draw(it, &evaluator.explain(it)));
    snapshot("drawings", "drawing__every_form", drawn.join("\n"));
}
