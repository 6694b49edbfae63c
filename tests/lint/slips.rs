//! What lint says of slips in numbers, probes, operands, signals and blanks.

use policyd::lint::Profile;
use policyd::report::diagnostics::render_compact;

use crate::subjects::{check, check_made, consideration, look};

/// Considerations that are satisfied where these hold.
fn satisfied(code: &str, situations: &[(&str, &str)]) {
    let made = |it: &str| consideration("own", &format!("  satisfied: '{it}'"));
    check_made(("considerations.yaml", made), code, situations);
}

/// Guards of these conditions.
fn guarded(code: &str, situations: &[(&str, &str)]) {
    let made = |it: &str| {
        format!("- id: own\n  commands: [git]\n  when: '{it}'\n  decision: deny\n  message: No.\n")
    };
    check_made(("guards.yaml", made), code, situations);
}

#[test]
fn a_share_is_no_percentage() {
    let trigger = |it: &str| format!("triggers:\n  - id: own\n    when: {it}\n    reason: Own.\n");
    check_made(
        ("escalation.yaml", trigger),
        "PD234",
        &[
            ("task.confidence < 60", "`task.confidence` is a share"),
            ("60.5 > task.confidence", "`task.confidence` is a share"),
            ("task.confidence < 0.6", ""),
            ("task.confidence < 1", ""),
        ],
    );
    satisfied(
        "PD234",
        &[
            ("context.percent < 0.8", "`context.percent` is a percentage"),
            ("context.percent < 80", ""),
            ("context.percent > 0", ""),
        ],
    );
}

#[test]
fn what_may_be_zero_is_asked_before_it_divides() {
    satisfied(
        "PD235",
        &[
            ("files.count / transcript.prompts < 5", "`transcript.prompts` may be 0"),
            ("files.count % todos.total == 0", "`todos.total` may be 0"),
            ("todos.total > 0 && files.count % todos.total == 0", ""),
            ("files.count / 2 < 5", ""),
            ("files.count / (transcript.prompts + 1) < 5", ""),
            ("files.count % now.weekday == 0", ""),
        ],
    );
    let asked = "  when: todos.total > 0\n  satisfied: files.count / todos.total < 5";
    check("considerations.yaml", "PD235", &[(&consideration("own", asked), "")]);
}

#[test]
fn a_text_has_no_places() {
    let pack = |parse: &str, asked: &str| {
        let probe = format!("- id: own\n  command: [own]\n  parse: {parse}\n  missing: Own.\n");
        let rule = consideration("rule", &format!("  satisfied: '{asked}'"));
        let found =
            look(&[("probes.yaml", &probe), ("considerations.yaml", &rule)], Profile::Default);
        render_compact(&found.findings).contains("PD236")
    };
    assert!(pack("text", "probes.own.text(\"state\") == \"x\""));
    assert!(pack("text", "probes.own.number(\"n\") > 1"));
    assert!(!pack("text", "probes.own.text(\"\") == \"x\""));
    assert!(!pack("json", "probes.own.text(\"state\") == \"x\""));
    assert!(!pack("text", "probes.own.verdict(\"\") == \"unknown\""));
}

#[test]
fn a_probe_that_is_switched_off_answers_nobody() {
    let asked = |on: &str, satisfied: &str, rule: &str| {
        let probe = format!("- id: own\n  enabled: {on}\n  command: [own]\n  missing: Own.\n");
        let rule = consideration("rule", &format!("  satisfied: '{satisfied}'\n{rule}"));
        let found =
            look(&[("probes.yaml", &probe), ("considerations.yaml", &rule)], Profile::Default);
        render_compact(&found.findings).contains("PD620")
    };
    let pack = |on: &str, rule: &str| asked(on, "probes.own.ok", rule);
    assert!(pack("false", ""));
    assert!(!pack("true", ""));
    assert!(!pack("false", "  enabled: false\n"));
    assert!(asked("false", "probes.own.text(\"state\") == \"x\"", ""));
    assert!(!asked("false", "!probes.own.ok || todos.open == 0", ""));
}

#[test]
fn no_shell_reads_a_command() {
    let probe = |it: &str| format!("- id: own\n  command: {it}\n  missing: Own.\n");
    check_made(
        ("probes.yaml", probe),
        "PD807",
        &[
            ("[\"echo hi\"]", "there is no program `echo hi`"),
            ("[\"/opt/My Tools/state\"]", ""),
            ("[git, log, \"|\", head]", "no shell reads `|`"),
            ("[own, \"${session.branch}\"]", "no shell reads `${session.branch}`"),
            ("[own, \"$(date)\"]", "no shell reads `$(date)`"),
            ("[sh, -c, \"${HOME}/x\"]", ""),
            ("[timeout, \"9\", bash.exe, -c, \"a && ${HOME}/x\"]", ""),
            ("[ssh, host, cat, a, \"&&\", cat, b]", ""),
            ("[cut, -d, \"|\", -f, \"2\", f]", ""),
            ("[git, grep, \"|\"]", ""),
            ("[git, grep, TODO, \"|\", wc]", "no shell reads `|`"),
            ("[find, \".\", -exec, grep, -l, TODO, \"{}\", \";\"]", ""),
            ("[gh, pr, view, --json, state]", ""),
            ("[~/bin/state, --json]", "no shell reads `~/bin/state`"),
            ("[git, -C, ~/x, log]", "no shell reads `~/x`"),
            ("[own, $HOME/x]", "no shell reads `$HOME/x`"),
            ("[\"${HOME}/bin/x\"]", "no shell reads `${HOME}/bin/x`"),
            ("[own, -f, \"${HOME}/x\"]", "no shell reads `${HOME}/x`"),
            ("[su, me, -c, $HOME/x]", ""),
            ("[git, check-ignore, \"~\"]", ""),
            ("[gh, api, -f, owner=$OWNER]", "no shell reads `owner=$OWNER`"),
            ("[own, --file=$HOME/x]", "no shell reads `--file=$HOME/x`"),
            ("[sh, -c, cat ~/x]", ""),
            ("[git, grep, -e, $HOME]", ""),
            ("[sed, -n, $p, f]", ""),
            ("[git, rev-list, --count, HEAD~1]", ""),
            ("[git, log, HEAD~/x]", ""),
            ("[own, $]", ""),
        ],
    );
    check(
        "escalation.yaml",
        "PD807",
        &[("channels:\n  - id: own\n    command: [\"mail -s alert\"]\n", "there is no program")],
    );
}

#[test]
fn options_are_no_operands() {
    guarded(
        "PD313",
        &[
            (
                "program.operands.contains(\"--force\")",
                "`--force` is an option, and an operand behind `--` only",
            ),
            (
                "\"--all\" in program.operands",
                "`--all` is an option, and an operand behind `--` only",
            ),
            ("program.operands.contains(\"-1\")", ""),
            ("program.operands.contains(\"--\")", ""),
            ("program.args.contains(\"--force\")", ""),
            ("program.value(\"repo\") == \"x\"", "`repo` is no option"),
            ("program.values(\"-c\").len() > 0", ""),
            ("program.names([\"main|master\"])", "`main|master` is one name"),
            ("program.names([\"main\", \"release/*\"])", ""),
            ("program.names([\".env\", \"**/.env\"])", ""),
            ("program.names([\"\", \"main|master\"])", "`main|master` is one name"),
            ("program.names([\"a[|]b\"])", ""),
            ("program.names([\"^main$\"])", "`^main$` is read as a glob"),
            ("program.names([\"release/.*\"])", "`release/.*` is read as a glob"),
            ("program.names([\"main \"])", "no operand is `main `"),
            ("program.names([\"**/.env\"])", "`**/.env` is no path here"),
            ("program.names([\"*/main\"])", ""),
            ("action.programs.contains(\"/usr/bin/git\")", "is never the name of a program"),
            ("action.sets([\"$LD_PRELOAD\"])", "no variable has the name `$LD_PRELOAD`"),
            ("action.sets([\"CI=1\"])", "no variable has the name `CI=1`"),
            ("action.sets([\"CI\"])", ""),
            ("program.name == \"git push\"", "`git push` is never the name of a program"),
            ("program.name == \"git\"", ""),
            ("program.name == \"bin/git\"", "`bin/git` is never the name of a program alone"),
            ("program.wrapped_by([\"/usr/bin/sudo\"])", "`/usr/bin/sudo` is never the name"),
            ("program.wrapped_by([\"docker exec\"])", "`docker exec` is never the name"),
            ("program.wrapped_by([\"sudo\"])", ""),
        ],
    );
}

#[test]
fn a_signal_is_created_with_its_own_fields() {
    let reaction = |it: &str| {
        format!("- id: own\n  on: [stop_failure]\n  signal:\n    name: HUMAN_REVIEW_NEEDED\n{it}")
    };
    check_made(
        ("reactions.yaml", reaction),
        "PD129",
        &[
            ("    fields: {reason: x}\n", ""),
            ("    fields: {reeson: x, reason: x}\n  enabled: false\n", ""),
            ("    fields: {reason: x, reeson: x}\n", "has no field `reeson`"),
            ("    fields: {task_id: x}\n", "needs a field `reason`"),
        ],
    );
}

#[test]
fn a_signal_is_of_the_kind_that_names_it() {
    let signals = "signals:\n  - {id: \"DEPLOYED_*\", purpose: p, created_by: a, consumed_by: b, \
                   fields: {environment: {required: true}}}\n  - {id: DEPLOYED_TEST, purpose: p, \
                   created_by: a, consumed_by: b, fields: {who: {}}}\n";
    let told = |name: &str| {
        let reaction =
            format!("- id: own\n  on: [stop]\n  signal: {{name: {name}, fields: {{who: y}}}}\n");
        let files = [("signals.yaml", signals), ("reactions.yaml", reaction.as_str())];
        render_compact(&look(&files, Profile::Default).findings).contains("PD129")
    };
    assert!(!told("DEPLOYED_TEST"));
    assert!(told("DEPLOYED_LIVE"));
}

#[test]
fn classes_of_failures_are_written_as_they_are_defined() {
    let breaker = |it: &str| format!("api/own:\n  {it}\n");
    check_made(
        ("breakers.yaml", breaker),
        "PD130",
        &[
            ("ignore: [bad_request]", ""),
            ("ignore: [bad_requst]", "`bad_requst` is nearly `bad_request`"),
            ("permanent: [autentication]", "`autentication` is nearly `authentication`"),
            ("permanent: [account_closed, rate_limit]", ""),
        ],
    );
}

#[test]
fn what_is_judged_does_something() {
    let reaction = |it: &str| format!("- id: own\n  on: [stop_failure]\n{it}\n");
    check_made(
        ("reactions.yaml", reaction),
        "PD141",
        &[("  when: event.human", "`own` does nothing"), ("  say: Wait.", "")],
    );
    let channel = |it: &str| format!("channels:\n  - id: own\n{it}\n");
    check_made(
        ("escalation.yaml", channel),
        "PD141",
        &[("    timeout: 5s", "`own` does nothing"), ("    folder: alerts", "")],
    );
    check_made(
        ("escalation.yaml", channel),
        "PD142",
        &[
            ("    folder: alerts/mine", ""),
            ("    folder: ~/alerts", "`~/alerts` is a folder of that very name"),
            ("    folder: ./alerts", "`./alerts` does not lie"),
            ("    folder: /var/alerts", "`/var/alerts` does not lie"),
            ("    folder: ../alerts", "`../alerts` does not lie"),
        ],
    );
}

#[test]
fn blanks_and_letters_of_patterns_are_those_that_are_typed() {
    let commands = |it: &str| {
        format!("- id: own\n  commands: [\"{it}\"]\n  decision: deny\n  message: Nö\u{a0}!\n")
    };
    check_made(
        ("guards.yaml", commands),
        "PD314",
        &[("git\u{a0}push", "U+00A0 looks like a blank"), ("git push", "")],
    );
    guarded("PD314", &[("action.written.contains(\"\u{a0}\")", "")]);
    // The second one has a Cyrillic letter.
    check_made(
        ("guards.yaml", commands),
        "PD707",
        &[
            ("deploy", ""),
            ("depl\u{43e}y", "mixes letters of several scripts"),
            ("d\u{e9}ploie", ""),
        ],
    );
    let message = |it: &str| {
        format!("- id: own\n  commands: [deploy]\n  decision: deny\n  message: \"{it}\"\n")
    };
    check_made(
        ("guards.yaml", message),
        "PD706",
        &[
            ("\u{1f469}\u{200d}\u{1f4bb} only", ""),
            ("\u{645}\u{6cc}\u{200c}\u{62e}", ""),
            ("no\u{200b}thing", "U+200B cannot be seen"),
            ("no\u{200d}thing", "U+200D cannot be seen"),
        ],
    );
}

#[test]
fn lists_of_nothing_are_told() {
    guarded(
        "PD224",
        &[
            ("program.has([])", "`program.has` is asked for nothing"),
            ("action.changes([])", "`action.changes` is asked for nothing"),
            ("action.runs(\"\")", "`action.runs` is asked for nothing"),
            ("program.has([\"-f\"])", ""),
        ],
    );
}

#[test]
fn a_text_is_no_list() {
    satisfied(
        "PD237",
        &[
            (
                "session.branch in \"main\"",
                "this asks whether `session.branch` is a part of a text",
            ),
            ("session.branch in [\"main\"]", ""),
            ("\"x\" in session.branch", ""),
        ],
    );
}

#[test]
fn a_literal_is_no_pattern() {
    satisfied(
        "PD315",
        &[
            ("transcript.last_message.contains(\"done|finished\")", "`contains` looks for"),
            ("transcript.last_message.contains(\"\\\\bdone\")", "`contains` looks for"),
            ("transcript.last_message.ends_with(\"done$\")", "`ends_with` looks for"),
            ("session.branch.starts_with(\"feat/*\")", "`starts_with` looks for"),
            ("session.branch.starts_with(\"feat/\")", ""),
            ("transcript.last_message.contains(\"a | b\")", ""),
            ("transcript.last_message.contains(\"C:\\\\build\")", ""),
            ("transcript.last_message.starts_with(\"**Summary**\")", ""),
            ("transcript.last_message.matches(\"done|finished\")", ""),
            ("commands.last(\"x\").text.contains(\"curl|sh\")", ""),
        ],
    );
    let entry = |it: &str| {
        format!("entries:\n  - id: own\n    {it}\n    wrong: No.\n    action: Mend it.\n")
    };
    check_made(
        ("rationalizations.yaml", entry),
        "PD315",
        &[("phrases: [nobody .* notice]", "word by word"), ("phrases: [nobody will notice]", "")],
    );
    check_made(
        ("rationalizations.yaml", entry),
        "PD316",
        &[
            ("regexes: ['\\bnobody\\\\b']", "a backslash and a `b`"),
            ("regexes: ['\\\\build']", ""),
            ("regexes: [\"\\\\bnobody\"]", ""),
            ("regexes: ['\\bnobody']", ""),
        ],
    );
    check_made(
        ("rationalizations.yaml", entry),
        "PD304",
        &[
            ("regexes: ['.+']", "every text but the empty one"),
            ("regexes: ['\\.']", ""),
            ("regexes: [x]\n    unless: ['.']", "every text but the empty one"),
        ],
    );
}

#[test]
fn programs_are_those_of_a_command_line() {
    let tools = |it: &str| format!("- id: own\n{it}\n  decision: deny\n  message: No.\n");
    check_made(
        ("guards.yaml", tools),
        "PD624",
        &[
            ("  tools: [Write]\n  commands: [deploy]", "none of these tools runs commands"),
            ("  tools: [Write, Bash]\n  commands: [deploy]", ""),
            ("  tools: [\"*\"]\n  commands: [deploy]", ""),
            ("  tools: [mcp__shell__run]\n  commands: [deploy]", ""),
            ("  commands: [deploy]", ""),
        ],
    );
    let alone = [
        ("policyd.yaml", "version: 1\nextends: []\n"),
        ("guards.yaml", "- {id: own, commands: [deploy], decision: deny, message: No.}\n"),
    ];
    let told = render_compact(&look(&alone, Profile::Default).findings);
    assert!(told.contains("PD624]: no tool of this pack runs commands"), "{told}");
    check_made(
        ("guards.yaml", tools),
        "PD310",
        &[("  commands: [\"rm, mv\"]", "a comma separates nothing"), ("  commands: [rm, mv]", "")],
    );
    check_made(
        ("guards.yaml", tools),
        "PD126",
        &[("  commands: [Git push]", "`Git` is nearly `git`"), ("  commands: [Remove-Item]", "")],
    );
    check_made(
        ("guards.yaml", tools),
        "PD308",
        &[
            ("  when: action.writes([\"*.rs|*.ts\"])", "`|` separates nothing"),
            ("  when: action.writes([\"a|b.rs\"])", ""),
            ("  when: action.writes([\"src/*.ts \"])", "begins or ends with a blank"),
        ],
    );
    check_made(
        ("guards.yaml", tools),
        "PD225",
        &[
            ("  when: action.address.starts_with(\"https://docs.rs\")", ""),
            (
                "  when: '!action.address.starts_with(\"https://docs.rs\")'",
                "`https://docs.rs` also begins the addresses of other hosts",
            ),
            ("  when: '!action.address.starts_with(\"https://docs.rs/\")'", ""),
            ("  when: action.address.starts_with(\"docs.rs\")", "most addresses begin with their"),
            ("  when: action.address.starts_with(\"https://\")", ""),
            ("  when: action.address.starts_with(\"http\")", ""),
        ],
    );
    let allows = |it: &str| {
        let when = format!("action.address.starts_with(\"{it}\")");
        format!("- id: own\n  tools: [WebFetch]\n  when: {when}\n  decision: allow\n")
    };
    check_made(
        ("guards.yaml", allows),
        "PD225",
        &[
            ("https://docs.rs", "other hosts"),
            ("https://docs.rs/", ""),
            ("http://192.168.", ""),
            ("http://localhost:", ""),
        ],
    );
}

#[test]
fn what_is_switched_off_is_told() {
    check(
        "policyd.yaml",
        "PD801",
        &[
            ("version: 1\nenabled: false\n", "the whole pack is switched off"),
            ("version: 1\nenabled: true\n", ""),
        ],
    );
    let trigger =
        |it: &str| format!("triggers:\n  - id: security_critical\n    override: true\n{it}\n");
    check_made(
        ("escalation.yaml", trigger),
        "PD116",
        &[
            ("    enabled: false", "`security_critical` is made weaker"),
            ("    blocking: false", "`security_critical` is made weaker"),
            ("    severity: low", "`security_critical` is made weaker"),
            ("    severity: low\n    description: We look at all of them anyway.", ""),
            ("    answer_within: 2h", ""),
        ],
    );
    let reaction = |it: &str| format!("- id: api_error\n  override: true\n{it}\n");
    check_made(
        ("reactions.yaml", reaction),
        "PD116",
        &[("  enabled: false", "`api_error` is made weaker"), ("  say: Wait.", "")],
    );
    let class = |it: &str| format!("classes:\n  - {{id: overloaded, override: true, {it}}}\n");
    check_made(
        ("failures.yaml", class),
        "PD116",
        &[
            ("effect: ignore", "`overloaded` is made weaker"),
            ("effect: ignore, description: It is over in a minute.", ""),
            ("errors: [busy]", ""),
        ],
    );
    check(
        "dead_letter.yaml",
        "PD116",
        &[
            (
                "alarms:\n  - {id: depth, override: true, enabled: false}\n",
                "`depth` is made weaker",
            ),
            ("alarms:\n  - {id: depth, override: true, enabled: false, description: X.}\n", ""),
            // It gives tasks up.
            ("review:\n  - {id: max_attempts, override: true, enabled: false}\n", ""),
        ],
    );
    check(
        "session_types.yaml",
        "PD110",
        &[
            (
                "- {id: Development, when: files.count > 0}\n",
                "`Development` is almost `DEVELOPMENT`",
            ),
            ("- {id: RELEASE, when: files.count > 0}\n", ""),
        ],
    );
    check(
        "session_types.yaml",
        "PD210",
        &[("- {id: RELEASE, when: session.type == \"DEVELOPMENT\"}\n", "is not known here")],
    );
}

#[test]
fn tasks_are_given_up_last() {
    check(
        "dead_letter.yaml",
        "PD625",
        &[
            ("order: [abandon, human, wait, retry, escalate]\n", "before `human` is judged"),
            ("order: [human, wait, retry, abandon, escalate]\n", "before `escalate` is judged"),
            ("order: [human, wait, retry, escalate, abandon]\n", ""),
            (
                "review:\n  - {id: tired, group: human, when: task.idle_hours > 2, do: abandon}\n",
                "a rule of `human` gives tasks up",
            ),
        ],
    );
}

#[test]
fn breakers_are_written_as_others_write_them() {
    check_made(
        ("breakers.yaml", |it: &str| format!("{it}:\n  threshold: 5\n")),
        "PD125",
        &[
            ("api/claud", "`api/claud` is nearly the breaker `api/claude`"),
            ("api/claude", ""),
            ("api/own", ""),
            ("api/*", ""),
        ],
    );
    satisfied(
        "PD125",
        &[
            ("!breakers[\"api/cluade\"].open", "`api/cluade` is nearly the breaker `api/claude`"),
            ("!breakers.open.contains(\"api/claud\")", "is nearly the breaker `api/claude`"),
            ("!breakers[\"api/claude\"].open && !breakers[\"api/own\"].open", ""),
        ],
    );
    let reaction =
        |it: &str| format!("- id: own\n  on: [stop]\n  breaker: {it}\n  result: success\n");
    check_made(
        ("reactions.yaml", reaction),
        "PD125",
        &[("api/claud", ""), ("api/claude", ""), ("api/x${event.tool}", "")],
    );
}

#[test]
fn times_of_humans_are_no_seconds() {
    let trigger = |it: &str| {
        format!(
            "triggers:\n  - id: own\n    when: task.security\n    reason: Own.\n    answer_within: {it}\n"
        )
    };
    check_made(
        ("escalation.yaml", trigger),
        "PD503",
        &[("24s", "24s is very short for `answer_within`"), ("24h", ""), ("30m", "")],
    );
    check(
        "dead_letter.yaml",
        "PD503",
        &[
            ("review_every: 24m\n", "24m is very short for `review_every`"),
            ("review_every: 24h\n", ""),
            ("redrive: {rate: 5, per: 1s}\n", "1s is very short for `per`"),
            ("retention: {max_age: 1h}\n", "1h is very short for `max_age`"),
            ("retention: {max_age: 30d}\n", ""),
        ],
    );
}
