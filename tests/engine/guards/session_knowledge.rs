//! Guards that ask programs, preferences, and the session, that remember, and that know what was spent.

use std::time::Duration;

use policyd::world::{CommandOutput, World, WorldError};
use serde_json::{Value, json};

use super::machine::{Machine, decision};

const PROJECT: &str = "/home/dev/project";
const TRANSCRIPT: &str = "/home/dev/session.jsonl";
const CONTEXT: [&str; 3] = ["kubectl", "config", "current-context"];

/// A machine with a guard, and other files of the pack.
fn machine(guards: &str, others: &[(&str, &str)]) -> Machine {
    let machine = Machine::new(PROJECT).recording(TRANSCRIPT);
    machine.guards(guards);
    for (file, text) in others {
        machine.world.put(format!("/home/dev/rules/{file}"), text);
    }
    machine
}

/// A machine with a guard that asks the context of kubectl.
fn cluster() -> Machine {
    machine(
        "- id: own\n  commands: [kubectl apply]\n  when: 'probes.kube.text(\"\") == \"prod\"'\n  \
         decision: deny\n  on_error: ask\n  message: Stop.\n",
        &[(
            "probes.yaml",
            "- id: kube\n  command: [kubectl, config, current-context]\n  parse: text\n  \
             at: [pre_tool_use]\n  cache: 10s\n",
        )],
    )
}

fn answers(machine: &Machine, text: &str) {
    machine.world.unscript(&CONTEXT);
    let stdout = text.as_bytes().to_vec();
    let output = CommandOutput { code: Some(0), stdout, ..CommandOutput::default() };
    machine.world.script(&CONTEXT, Ok(output), Duration::from_millis(20));
}

fn asked(machine: &Machine) -> usize {
    machine.world.ran().iter().filter(|it| it.argv == CONTEXT).count()
}

fn user(id: u8, text: &str) -> String {
    json!({"type": "user", "sessionId": "s", "uuid": format!("u{id}"), "promptId": format!("p{id}"),
        "message": {"role": "user", "content": text}})
    .to_string()
}

fn record(machine: &Machine, lines: &[String]) {
    machine.world.put(TRANSCRIPT, format!("{}\n", lines.join("\n")));
}

#[test]
fn a_probe_is_asked_once_and_only_by_a_call_that_it_concerns() {
    let machine = cluster();
    answers(&machine, "prod");
    assert_eq!(machine.bash("ls").0, "");
    assert_eq!(machine.bash("kubectl get pods").0, "");
    assert_eq!(asked(&machine), 0);
    assert_eq!(machine.bash("kubectl apply -f a").0, "deny");
    assert_eq!(machine.bash("kubectl apply -f b").0, "deny");
    assert_eq!(asked(&machine), 1);
    machine.world.advance(Duration::from_secs(11));
    answers(&machine, "test");
    assert_eq!(machine.bash("kubectl apply -f a").0, "");
    assert_eq!(asked(&machine), 2);
}

#[test]
fn a_file_that_a_call_runs_asks_the_probe_too() {
    let machine = cluster();
    answers(&machine, "prod");
    machine.world.put(format!("{PROJECT}/deploy.sh"), "echo a\nkubectl apply -f a\n");
    let (decided, reason) = machine.bash("bash deploy.sh");
    assert_eq!(decided, "deny");
    assert!(reason.starts_with("In `deploy.sh:2`"), "{reason}");
}

#[test]
fn a_probe_without_an_answer_is_a_question_and_opens_its_breaker() {
    let machine = cluster();
    machine.world.script(&CONTEXT, Err(WorldError::TimedOut), Duration::from_millis(300));
    let (decided, reason) = machine.bash("kubectl apply -f a");
    assert_eq!(decided, "ask");
    assert!(reason.contains("probe `kube`: "), "{reason}");
    for _ in 0..9 {
        assert_eq!(machine.bash("kubectl apply -f a").0, "ask");
    }
    assert!(asked(&machine) < 9, "the breaker opens");
}

#[test]
fn a_preference_and_the_type_of_the_session_decide() {
    let guards = "- id: own\n  tools: [Edit]\n  when: 'session.type == \"INVESTIGATION\"'\n  decision: ask\n  message: Stop.\n\
                  - id: other\n  commands: [make]\n  when: prefs.no_make\n  decision: deny\n  message: Stop.\n";
    let preference = "- id: no_make\n  files: [NOTES.md]\n  regexes: ['never use make']\n";
    let machine = machine(guards, &[("preferences.yaml", preference)]);
    let edit =
        json!({"file_path": format!("{PROJECT}/a.txt"), "old_string": "a", "new_string": "b"});
    record(&machine, &[user(1, "Investigate why the cache is slow")]);
    assert_eq!(machine.tool("Edit", &edit).0, "ask");
    machine.world.set_env("POLICYD_SESSION_TYPE", "DEVELOPMENT");
    assert_eq!(machine.tool("Edit", &edit).0, "");
    assert_eq!(machine.bash("make").0, "");
    machine.world.put(format!("{PROJECT}/NOTES.md"), "- Never use make.\n");
    assert_eq!(machine.bash("make").0, "deny");
}

#[test]
fn the_remote_is_known_at_a_call() {
    let guards = "- id: no_remote\n  commands: [make]\n  when: session.forge == \"\"\n  decision: deny\n  message: Stop.\n\
                  - id: on_gitlab\n  commands: [cmake]\n  when: session.remote_host == \"gitlab.com\"\n  decision: deny\n  message: Stop.\n";
    let machine = machine(guards, &[]);
    let config = "[remote \"origin\"]\n\turl = git@gitlab.com:a/b.git\n";
    machine.world.put(format!("{PROJECT}/.git/HEAD"), "ref: refs/heads/work\n");
    machine.world.put(format!("{PROJECT}/.git/config"), config);
    record(&machine, &[user(1, "Build it")]);
    assert_eq!(machine.bash("make").0, "");
    assert_eq!(machine.bash("cmake").0, "deny");
}

/// A machine that remembers calls of `make`, and asks at the third.
fn remembering(reset: &str) -> Machine {
    machine(
        "- id: seen\n  commands: [make]\n  remember: {calls: '${program.line}'}\n\
         - id: forgotten\n  commands: [cmake]\n  forget: [calls]\n\
         - id: third\n  commands: [make]\n  when: memory.calls.count >= 2\n  decision: deny\n  message: Stop.\n",
        &[("memory.yaml", &format!("- id: calls\n  reset: {reset}\n"))],
    )
}

#[test]
fn a_memory_ends_with_its_scope() {
    for (reset, of_prompt, of_session, of_day) in
        [("episode", "", "", ""), ("session", "deny", "", "deny"), ("day", "deny", "deny", "")]
    {
        let machine = remembering(reset);
        let other = |machine: &Machine| {
            decision(&machine.answer(&json!({
                "session_id": "other", "cwd": PROJECT, "hook_event_name": "PreToolUse",
                "tool_name": "Bash", "tool_input": {"command": "make"},
            })))
            .0
        };
        record(&machine, &[user(1, "Build it")]);
        assert_eq!(machine.bash("make a").0, "", "{reset}");
        assert_eq!(machine.bash("make b").0, "", "{reset}");
        assert_eq!(machine.bash("make c").0, "deny", "{reset}");
        assert_eq!(other(&machine), of_session, "{reset}");
        record(&machine, &[user(1, "Build it"), user(2, "Again")]);
        assert_eq!(machine.bash("make d").0, of_prompt, "{reset}");
        machine.world.advance(Duration::from_hours(24));
        assert_eq!(
            machine.bash("make e").0,
            if reset == "episode" { "" } else { of_day },
            "{reset}"
        );
        machine.bash("cmake");
        assert_eq!(machine.bash("make f").0, "", "{reset}");
    }
}

#[test]
fn a_call_that_two_hook_lines_report_is_remembered_once() {
    let machine = remembering("session");
    let call = |id: &str| {
        let answer = machine.answer(&json!({
            "session_id": "s", "cwd": PROJECT, "hook_event_name": "PreToolUse", "tool_use_id": id,
            "tool_name": "Bash", "tool_input": {"command": "make"},
        }));
        decision(&answer).0
    };
    for _ in 0..3 {
        assert_eq!(call("toolu_1"), "");
    }
    assert_eq!(call("toolu_2"), "");
    assert_eq!(call("toolu_3"), "deny");
}

#[test]
fn the_rules_of_a_call_do_not_see_what_it_remembers() {
    let machine = machine(
        "- id: seen\n  commands: [make]\n  remember: {calls: x}\n\
         - id: again\n  commands: [make]\n  when: memory.calls.count >= 1\n  decision: deny\n  message: Stop.\n",
        &[("memory.yaml", "- id: calls\n")],
    );
    let call = |id: &str| {
        let answer = machine.answer(&json!({
            "session_id": "s", "cwd": PROJECT, "hook_event_name": "PreToolUse", "tool_use_id": id,
            "tool_name": "Bash", "tool_input": {"command": "make"},
        }));
        decision(&answer).0
    };
    assert_eq!(call("toolu_1"), "");
    assert_eq!(call("toolu_1"), "", "a second hook line");
    assert_eq!(call("toolu_2"), "deny");
}

#[test]
fn an_episode_begins_with_its_prompt_and_is_unknown_without_a_transcript() {
    let machine = machine(
        "- id: approved\n  on: [user_prompt_submit]\n  when: event.prompt.contains(\"deploy\")\n  remember: {said: 'yes'}\n\
         - id: not_approved\n  commands: [make]\n  when: memory.said.count == 0\n  decision: deny\n  on_error: ask\n  message: Stop.\n",
        &[("memory.yaml", "- id: said\n  reset: episode\n")],
    );
    let prompt = |text: &str| {
        machine.answer(&json!({
            "session_id": "s", "cwd": PROJECT, "hook_event_name": "UserPromptSubmit", "prompt": text,
            "transcript_path": TRANSCRIPT,
        }))
    };
    record(&machine, &[user(1, "Look at it")]);
    assert_eq!(machine.bash("make").0, "deny");
    prompt("Now deploy it");
    record(&machine, &[user(1, "Look at it"), user(2, "Now deploy it")]);
    assert_eq!(machine.bash("make").0, "");
    machine.world.remove(std::path::Path::new(TRANSCRIPT)).unwrap();
    assert_eq!(machine.bash("make").0, "ask", "the episode is not known");
    record(&machine, &[user(1, "Look at it"), user(2, "Now deploy it")]);
    assert_eq!(machine.bash("make").0, "", "nothing was lost");
}

#[test]
fn a_file_that_a_call_runs_is_counted_by_the_guard_that_judges_it() {
    let machine = machine(
        "- id: third\n  commands: [deploy]\n  when: memory.calls.count < 5\n  decision: ask\n  message: Stop.\n  \
         remember: {calls: '${program.line}'}\n",
        &[("memory.yaml", "- id: calls\n")],
    );
    machine.world.put(format!("{PROJECT}/d.sh"), "deploy prod\n");
    assert_eq!(machine.bash("bash d.sh").0, "ask");
    let file = machine.world.files().into_iter().find(|it| it.ends_with("memory.json")).unwrap();
    let stored = String::from_utf8(machine.world.get(&file).unwrap()).unwrap();
    assert!(stored.contains("deploy prod"), "{stored}");
}

#[test]
fn long_and_unknown_texts() {
    let machine = machine(
        "- id: seen\n  commands: [make]\n  remember: {calls: '${program.line}', values: '${probes.none.text(\"\")}'}\n\
         - id: again\n  commands: [make]\n  when: memory.calls.has(program.line) && memory.calls.times(program.line) == 1 && memory.values.count == 0\n  decision: deny\n  message: Stop.\n",
        &[
            ("memory.yaml", "- id: calls\n- id: values\n"),
            (
                "probes.yaml",
                "- id: none\n  command: [none]\n  parse: text\n  at: [pre_tool_use]\n  cache: 1s\n",
            ),
        ],
    );
    let line = format!("make {}", "b".repeat(300));
    assert_eq!(machine.bash(&line).0, "");
    assert_eq!(machine.bash(&line).0, "deny");
}

#[test]
fn a_listed_exit_code_is_an_answer_and_opens_no_breaker() {
    let machine = cluster();
    machine.guards(
        "- id: own\n  commands: [kubectl apply]\n  when: probes.kube.code == 3\n  decision: deny\n  on_error: ask\n  message: Stop.\n",
    );
    machine.world.put(
        "/home/dev/rules/probes.yaml",
        "- id: kube\n  command: [kubectl, config, current-context]\n  parse: text\n  at: [pre_tool_use]\n  cache: 1ms\n  answers: [3]\n",
    );
    let output = CommandOutput { code: Some(3), ..CommandOutput::default() };
    machine.world.script(&CONTEXT, Ok(output), Duration::from_millis(20));
    for _ in 0..6 {
        assert_eq!(machine.bash("kubectl apply -f a").0, "deny");
        machine.world.advance(Duration::from_secs(1));
    }
    assert_eq!(asked(&machine), 6);
}

#[test]
fn a_guard_reads_the_result_of_its_call() {
    let machine = machine(
        "- id: failed\n  on: [post_tool_use]\n  commands: [vault login]\n  when: event.output.contains(\"denied\")\n  remember: {failures: x}\n\
         - id: second\n  commands: [vault login]\n  when: memory.failures.count >= 1\n  decision: deny\n  message: Stop.\n",
        &[("memory.yaml", "- id: failures\n")],
    );
    for (response, expected) in [
        (json!({"stdout": "welcome", "stderr": ""}), ""),
        (json!({"stdout": "", "stderr": "permission denied"}), "deny"),
    ] {
        machine.answer(&json!({
            "session_id": "s", "cwd": PROJECT, "hook_event_name": "PostToolUse", "tool_name": "Bash",
            "tool_input": {"command": "vault login"}, "tool_response": response,
        }));
        assert_eq!(machine.bash("vault login").0, expected, "{response}");
    }
}

#[test]
fn only_tools_that_start_subagents_count_and_one_in_the_background_did_not_run() {
    let launched = |details: &Value| {
        json!({"type": "user", "sessionId": "s", "uuid": "r", "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}]}, "toolUseResult": details})
        .to_string()
    };
    let ended = json!({"type": "user", "sessionId": "s", "uuid": "n", "promptSource": "system", "message": {"role": "user",
        "content": "<task-notification>\n<task-id>a1</task-id>\n<tool-use-id>toolu_1</tool-use-id>\n<status>completed</status>\n<summary>Done</summary>\n</task-notification>"}})
    .to_string();
    let call = |tool: &str| call("1", tool, &json!({"subagent_type": "tester", "prompt": "x"}));
    let (now, later) = (json!({"agentId": "a1"}), json!({"isAsync": true, "agentId": "a1"}));
    for (lines, expected) in [
        (vec![call("Task"), launched(&now)], true),
        (vec![call("mcp__notes__list"), launched(&now)], false),
        (vec![call("Task"), launched(&later)], false),
        (vec![call("Task"), launched(&later), ended], true),
    ] {
        let machine = machine(
            "- id: own\n  commands: [make]\n  when: agents.ran(\"tester\")\n  decision: deny\n  message: Stop.\n",
            &[],
        );
        record(&machine, &[vec![user(1, "Test it")], lines.clone()].concat());
        assert_eq!(machine.bash("make").0 == "deny", expected, "{lines:?}");
    }
}

#[test]
fn a_memory_that_cannot_be_used_is_reported_and_nothing_is_lost() {
    let machine = remembering("session");
    machine.bash("make a");
    let file = machine.world.files().into_iter().find(|it| it.ends_with("memory.json")).unwrap();
    machine.world.put(&file, "{\"version\": 9, \"entries\": {}}");
    let answer = machine.answer(&json!({
        "session_id": "s", "cwd": PROJECT, "hook_event_name": "PreToolUse",
        "tool_name": "Bash", "tool_input": {"command": "make"},
    }));
    let said = answer["systemMessage"].as_str().unwrap();
    assert!(said.contains("memory.json") && said.contains("newer version"), "{said}");
    assert_eq!(machine.world.get(&file).unwrap(), b"{\"version\": 9, \"entries\": {}}");
}

/// A message of the agent that cost something: a million output tokens are some dollars.
fn spent(id: u8) -> String {
    json!({"type": "assistant", "sessionId": "s", "uuid": format!("a{id}"), "message": {"role": "assistant",
        "id": format!("m{id}"), "model": "claude-opus-4-5", "content": [{"type": "text", "text": "Done."}],
        "usage": {"input_tokens": 5, "output_tokens": 1_000_000}}})
    .to_string()
}

#[test]
fn the_costs_of_a_day_are_those_of_all_sessions() {
    let machine = machine(
        "- id: own\n  commands: [make]\n  when: costs.today_cents > 3000\n  decision: ask\n  \
         message: 'Today ${costs.today_cents}, all ${costs.by_user_today_cents}.'\n",
        &[],
    );
    let of = |machine: &Machine, session: &str, folder: &str| {
        machine.world.put(format!("{folder}/.git/HEAD"), "ref: refs/heads/main\n");
        decision(&machine.answer(&json!({
            "session_id": session, "cwd": folder, "hook_event_name": "PreToolUse",
            "tool_name": "Bash", "tool_input": {"command": "make"}, "transcript_path": TRANSCRIPT,
        })))
    };
    record(&machine, &[user(1, "Build"), spent(1)]);
    assert_eq!(of(&machine, "one", PROJECT).0, "");
    assert_eq!(of(&machine, "one", PROJECT).0, "", "one session counts once");
    assert_eq!(of(&machine, "two", PROJECT).1, "Today 5000, all 5000. (guard `own`)");
    assert_eq!(of(&machine, "three", "/home/dev/else").0, "", "another project");
    assert_eq!(of(&machine, "four", PROJECT).1, "Today 7500, all 10000. (guard `own`)");
    machine.world.advance(Duration::from_hours(24));
    assert_eq!(of(&machine, "four", PROJECT).0, "", "another day");
}

#[test]
fn a_pack_says_at_load_what_a_guard_cannot_ask() {
    let report = |probe: &str, guard: &str| {
        let machine = Machine::new(PROJECT);
        machine.guards(&format!("- id: own\n  decision: deny\n  message: Stop.\n{guard}"));
        let probe = format!("- id: kube\n  command: [kubectl]\n{probe}");
        machine.world.put("/home/dev/rules/probes.yaml", &probe);
        let said = crate::support::console::call(&machine.world, &["lint", "/home/dev/rules"], b"");
        format!("{}{}", said.out, said.err)
    };
    let asks = "  when: probes.kube.ok\n";
    for (probe, guard, expected) in [
        ("", asks, "guards do not ask `kube` at `pre_tool_use`"),
        (
            "  at: [pre_tool_use]\n  cache: 1s\n",
            "  on: [post_tool_use]\n  when: probes.kube.ok\n",
            "at `post_tool_use`",
        ),
        ("  at: [stop]\n  cache: 1s\n", "", "checks at `stop` ask each probe"),
        ("  at: [pre_tool_use]\n", "", "needs a `cache`"),
        ("  at: [pre_tool_use]\n  cache: 1s\n  timeout: 1s\n", "", "may take 300ms at most"),
        ("  at: [pre_tool_use]\n  cache: 1s\n  stdin: a\n", "", "gets no input"),
        (
            "",
            "  when: now.in_zone(\"Europe/Berlim\").hour > 3\n",
            "unknown time zone `Europe/Berlim`",
        ),
        ("", "  remember: {call: x}\n", "unknown entry of the memory `call`"),
        (
            "",
            "  when: now.in_zone(session.branch).hour > 3\n",
            "needs a text that is written out here",
        ),
        ("", "  when: project.has(event.tool)\n", "needs a text that is written out here"),
        (
            "",
            "  when: tools.last(\"Bash\").input(\"comand\") == \"x\"\n",
            "field of a tool call that is kept",
        ),
    ] {
        let said = report(probe, guard);
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let clean = report("  at: [pre_tool_use]\n  cache: 1s\n", asks);
    assert!(clean.contains("0 errors"), "{clean}");
}

#[test]
fn an_expression_reads_the_newest_calls() {
    let calls = [
        user(1, "Change it"),
        call(
            "1",
            "Edit",
            &json!({"file_path": "/home/dev/project/a.rs", "old_string": "a", "new_string": "b"}),
        ),
        call("2", "Skill", &json!({"skill": "review"})),
        call("3", "Task", &json!({"subagent_type": "tester", "prompt": "x"})),
        call("4", "WebFetch", &json!({"url": "https://a.org", "prompt": "x"})),
    ];
    for (condition, expected) in [
        ("tools.skill_at(\"review\") > files.last_at", true),
        ("tools.skill_at(\"other\") == 0", true),
        ("agents.last(\"tester\").at > tools.skill_at(\"review\")", true),
        ("agents.last(\"tester\").outcome == \"pending\"", true),
        ("agents.ran(\"tester\")", false),
        ("agents.types.contains(\"tester\")", true),
        ("tools.last(\"WebFetch\").input(\"url\") == \"https://a.org\"", true),
        ("tools.last(\"WebFetch\").at > agents.last(\"tester\").at", true),
        ("tools.last(\"WebSearch\").exists", false),
        ("agents.last(\"tester\").input(\"subagent_type\") == \"tester\"", true),
    ] {
        let guards = format!(
            "- id: own\n  commands: [make]\n  when: '{condition}'\n  decision: deny\n  message: Stop.\n"
        );
        let machine = machine(&guards, &[]);
        record(&machine, &calls);
        assert_eq!(machine.bash("make").0 == "deny", expected, "{condition}");
    }
}

fn call(id: &str, tool: &str, input: &Value) -> String {
    json!({"type": "assistant", "sessionId": "s", "uuid": format!("c{id}"), "message": {"role": "assistant",
        "id": format!("mc{id}"), "content": [{"type": "tool_use", "id": format!("toolu_{id}"), "name": tool, "input": input}]}})
    .to_string()
}

#[test]
fn checks_and_guards_read_the_same_files_of_the_project() {
    let machine = |condition: &str, package: &str| {
        let machine = Machine::new(PROJECT).recording(TRANSCRIPT);
        machine.guards(&format!(
            "- id: own\n  commands: [make]\n  when: '{condition}'\n  decision: deny\n  on_error: ask\n  message: Stop.\n"
        ));
        let check = format!(
            "- id: own_check\n  category: x\n  question: Is it?\n  severity: blocker\n  \
             applicable_session_types: [\"*\"]\n  satisfied: '!({condition})'\n  on_error: block\n"
        );
        machine.world.put("/home/dev/rules/considerations.yaml", &check);
        machine.world.put("/home/dev/rules/policyd.yaml", "name: own\nextends: []\n");
        machine.world.put(format!("{PROJECT}/package.json"), package);
        machine.world.put(format!("{PROJECT}/docs/a.md"), "");
        machine.world.put(format!("{PROJECT}/CODEOWNERS"), "/docs @writers\n");
        record(&machine, &[user(1, "Change it"), spent(1)]);
        machine
    };
    let package =
        r#"{"scripts": {"test": "vitest"}, "private": true, "workspaces": ["a", "b"], "n": 3}"#;
    for (condition, text, expected) in [
        ("project.json(\"package.json\").has(\"scripts.test\")", package, Some(true)),
        ("project.json(\"package.json\").has(\"scripts.lint\")", package, Some(false)),
        (
            "project.json(\"package.json\").text(\"scripts.test\") == \"vitest\"",
            package,
            Some(true),
        ),
        ("project.json(\"package.json\").flag(\"private\")", package, Some(true)),
        ("project.json(\"package.json\").number(\"n\") == 3", package, Some(true)),
        (
            "project.json(\"package.json\").list(\"workspaces[]\").contains(\"b\")",
            package,
            Some(true),
        ),
        ("project.json(\"package.json\").has(\"scripts\")", "{", None),
        ("project.json(\"none.json\").has(\"scripts\")", "{", Some(false)),
        ("project.has(\"docs/*.md\")", "", Some(true)),
        ("project.has_tests", "", Some(false)),
        ("project.has(\"docs/*.txt\")", "", Some(false)),
        ("project.text(\"package.json\").contains(\"vitest\")", package, Some(true)),
        ("project.owners(\"docs/a.md\").contains(\"@writers\")", "", Some(true)),
        ("\"@writers\" in project.owners(\"src/a.rs\")", "", Some(false)),
    ] {
        let machine = machine(condition, text);
        let wanted = |yes: &str, unknown: &str| match expected {
            Some(true) => yes.to_owned(),
            Some(false) => String::new(),
            None => unknown.to_owned(),
        };
        let got = machine.bash("make");
        assert_eq!(got.0, wanted("deny", "ask"), "{condition}: {got:?}");
        let answer = machine.answer(&json!({
            "session_id": "s", "cwd": PROJECT, "hook_event_name": "Stop", "transcript_path": TRANSCRIPT,
        }));
        assert_eq!(decision(&answer).0, wanted("block", "block"), "{condition}: {answer}");
    }
}

#[test]
fn lint_reports_what_can_never_be() {
    let report = |memory: &str, condition: &str| {
        let machine = Machine::new(PROJECT);
        machine.guards(&format!(
            "- id: seen\n  commands: [make]\n  remember: {{calls: x}}\n\
             - id: own\n  commands: [make]\n  when: '{condition}'\n  decision: deny\n  message: Stop.\n"
        ));
        machine.world.put("/home/dev/rules/memory.yaml", format!("- id: calls\n{memory}"));
        let said = crate::support::console::call(&machine.world, &["lint", "/home/dev/rules"], b"");
        format!("{}{}", said.out, said.err)
    };
    let last = "commands.last(\"cargo test\").output";
    for (memory, condition, expected) in [
        ("  keep: 3\n", "memory.calls.count >= 4", "never has 4 texts: it keeps 3"),
        ("  keep: 3\n", "memory.calls.count > 3", "never has 4 texts"),
        ("  keep: 3\n", "4 <= memory.calls.count", "never has 4 texts"),
        ("  keep: 3\n", "memory.calls.count >= 3", "0 warnings"),
        ("  keep: 3\n", "memory.calls.count < 9", "0 warnings"),
        ("", "memory.calls.count > 100", "it keeps 100"),
        ("  distinct: true\n", "memory.calls.count > 1", "guards remember 1 different texts"),
        (
            "  reset: day\n  expires: 48h\n",
            "memory.calls.count > 1",
            "forgotten at the end of the day",
        ),
        ("  reset: day\n  expires: 6h\n", "memory.calls.count > 1", "0 warnings"),
        (
            "",
            &format!("{last}.number(\"passed\") > 1 && memory.calls.count > 1"),
            "never a whole number",
        ),
        (
            "",
            &format!("{last}.number(\"(\\\\d+\\\\.\\\\d+)%\") > 1 && memory.calls.count > 1"),
            "never a whole number",
        ),
        (
            "",
            &format!("{last}.number(\"(\\\\d+)\\\\.\\\\d+%\") > 1 && memory.calls.count > 1"),
            "0 warnings",
        ),
        (
            "",
            &format!("{last}.sum(\"(-?[0-9]+) (passed|failed)\") > 1 && memory.calls.count > 1"),
            "0 warnings",
        ),
        ("", "project.has(\"../x\") && memory.calls.count > 1", "not in the project"),
        ("", "project.has(\"/etc/passwd\") && memory.calls.count > 1", "not in the project"),
        (
            "",
            "project.text(\"src/*.rs\").contains(\"x\") && memory.calls.count > 1",
            "a glob does not name one",
        ),
        ("", "project.has(\"src/*.rs\") && memory.calls.count > 1", "0 warnings"),
    ] {
        let said = report(memory, condition);
        assert!(said.contains(expected), "{memory} {condition}: {said}");
    }
}
