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
            ("task.confidence < 60", "`task.confidence` is a fraction"),
            ("60.5 > task.confidence", "`task.confidence` is a fraction"),
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
            ("files.count / transcript.prompts < 5", "`transcript.prompts` can be 0"),
            ("files.count % todos.total == 0", "`todos.total` can be 0"),
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
        render_compact(&found.findings).contains("PD243")
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
        render_compact(&found.findings).contains("PD219")
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
            ("[\"echo hi\"]", "`echo hi` is not a program"),
            ("[\"/opt/My Tools/state\"]", ""),
            ("[git, log, \"|\", head]", "`|` is shell syntax, but no shell runs"),
            (
                "[own, \"${session.branch}\"]",
                "`${session.branch}` is shell syntax, but no shell runs",
            ),
            ("[own, \"$(date)\"]", "`$(date)` is shell syntax, but no shell runs"),
            ("[sh, -c, \"${HOME}/x\"]", ""),
            ("[timeout, \"9\", bash.exe, -c, \"a && ${HOME}/x\"]", ""),
            ("[ssh, host, cat, a, \"&&\", cat, b]", ""),
            ("[cut, -d, \"|\", -f, \"2\", f]", ""),
            ("[git, grep, \"|\"]", ""),
            ("[git, grep, TODO, \"|\", wc]", "`|` is shell syntax, but no shell runs"),
            ("[find, \".\", -exec, grep, -l, TODO, \"{}\", \";\"]", ""),
            ("[gh, pr, view, --json, state]", ""),
            ("[~/bin/state, --json]", "`~/bin/state` is shell syntax, but no shell runs"),
            ("[git, -C, ~/x, log]", "`~/x` is shell syntax, but no shell runs"),
            ("[own, $HOME/x]", "`$HOME/x` is shell syntax, but no shell runs"),
            ("[\"${HOME}/bin/x\"]", "`${HOME}/bin/x` is shell syntax, but no shell runs"),
            ("[own, -f, \"${HOME}/x\"]", "`${HOME}/x` is shell syntax, but no shell runs"),
            ("[su, me, -c, $HOME/x]", ""),
            ("[git, check-ignore, \"~\"]", ""),
            ("[gh, api, -f, owner=$OWNER]", "`owner=$OWNER` is shell syntax, but no shell runs"),
            ("[own, --file=$HOME/x]", "`--file=$HOME/x` is shell syntax, but no shell runs"),
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
        &[("channels:\n  - id: own\n    command: [\"mail -s alert\"]\n", "is not a program")],
    );
}

#[test]
fn options_are_no_operands() {
    guarded(
        "PD313",
        &[
            ("program.operands.contains(\"--force\")", "`--force` is an option, not an operand"),
            ("\"--all\" in program.operands", "`--all` is an option, not an operand"),
            ("program.operands.contains(\"-1\")", ""),
            ("program.operands.contains(\"--\")", ""),
            ("program.args.contains(\"--force\")", ""),
            ("program.value(\"repo\") == \"x\"", "`repo` is not an option"),
            ("program.values(\"-c\").len() > 0", ""),
            ("program.names([\"main|master\"])", "`main|master` is a single name"),
            ("program.names([\"main\", \"release/*\"])", ""),
            ("program.names([\".env\", \"**/.env\"])", ""),
            ("program.names([\"\", \"main|master\"])", "`main|master` is a single name"),
            ("program.names([\"a[|]b\"])", ""),
            ("program.names([\"^main$\"])", "`^main$` is a regular expression"),
            ("program.names([\"release/.*\"])", "`release/.*` is a regular expression"),
            ("program.names([\"main \"])", "`main ` never matches an operand"),
            ("program.names([\"**/.env\"])", "`**/.env` does not match a name"),
            ("program.names([\"*/main\"])", ""),
            ("action.programs.contains(\"/usr/bin/git\")", "is not the name of a program"),
            ("action.sets([\"$LD_PRELOAD\"])", "`$LD_PRELOAD` is not the name of a variable"),
            ("action.sets([\"CI=1\"])", "`CI=1` is not the name of a variable"),
            ("action.sets([\"CI\"])", ""),
            ("program.name == \"git push\"", "`git push` is not the name of a program"),
            ("program.name == \"git\"", ""),
            ("program.name == \"bin/git\"", "`bin/git` is not the name of a program"),
            ("program.wrapped_by([\"/usr/bin/sudo\"])", "`/usr/bin/sudo` is not the name"),
            ("program.wrapped_by([\"docker exec\"])", "`docker exec` is not the name"),
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
            ("    fields: {task_id: x}\n", "requires the field `reason`"),
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
        "PD232",
        &[
            ("ignore: [bad_request]", ""),
            ("ignore: [bad_requst]", "unknown failure class `bad_requst`"),
            ("permanent: [autentication]", "unknown failure class `autentication`"),
            ("permanent: [account_closed, rate_limit]", ""),
        ],
    );
}

#[test]
fn what_is_judged_does_something() {
    let reaction = |it: &str| format!("- id: own\n  on: [stop_failure]\n{it}\n");
    check_made(
        ("reactions.yaml", reaction),
        "PD610",
        &[("  when: event.human", "`own` does nothing"), ("  say: Wait.", "")],
    );
    let channel = |it: &str| format!("channels:\n  - id: own\n{it}\n");
    check_made(
        ("escalation.yaml", channel),
        "PD610",
        &[("    timeout: 5s", "`own` does nothing"), ("    folder: alerts", "")],
    );
    check_made(
        ("escalation.yaml", channel),
        "PD504",
        &[
            ("    folder: alerts/mine", ""),
            ("    folder: ~/alerts", "`~/alerts` is not expanded"),
            ("    folder: ./alerts", "`./alerts` is outside of"),
            ("    folder: /var/alerts", "`/var/alerts` is outside of"),
            ("    folder: ../alerts", "`../alerts` is outside of"),
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
        "PD706",
        &[("git\u{a0}push", "U+00A0 looks like a space"), ("git push", "")],
    );
    guarded("PD706", &[("action.written.contains(\"\u{a0}\")", "")]);
    // The second one has a Cyrillic letter.
    check_made(
        ("guards.yaml", commands),
        "PD706",
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
            ("no\u{200b}thing", "U+200B is invisible"),
            ("no\u{200d}thing", "U+200D is invisible"),
        ],
    );
}

#[test]
fn lists_of_nothing_are_told() {
    guarded(
        "PD304",
        &[
            ("program.has([])", "`program.has` has an empty argument"),
            ("action.changes([])", "`action.changes` has an empty argument"),
            ("action.runs(\"\")", "`action.runs` has an empty argument"),
            ("program.has([\"-f\"])", ""),
        ],
    );
}

#[test]
fn a_text_is_no_list() {
    satisfied(
        "PD237",
        &[
            ("session.branch in \"main\"", "this tests whether `session.branch` is a substring"),
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
            ("transcript.last_message.contains(\"done|finished\")", "`contains` matches"),
            ("transcript.last_message.contains(\"\\\\bdone\")", "`contains` matches"),
            ("transcript.last_message.ends_with(\"done$\")", "`ends_with` matches"),
            ("session.branch.starts_with(\"feat/*\")", "`starts_with` matches"),
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
        "PD319",
        &[
            ("regexes: ['\\bnobody\\\\b']", "a literal backslash"),
            ("regexes: ['\\\\build']", ""),
            ("regexes: [\"\\\\bnobody\"]", ""),
            ("regexes: ['\\bnobody']", ""),
        ],
    );
    check_made(
        ("rationalizations.yaml", entry),
        "PD304",
        &[
            ("regexes: ['.+']", "every text except the empty one"),
            ("regexes: ['\\.']", ""),
            ("regexes: [x]\n    unless: ['.']", "every text except the empty one"),
        ],
    );
}

#[test]
fn programs_are_those_of_a_command_line() {
    let tools = |it: &str| format!("- id: own\n{it}\n  decision: deny\n  message: No.\n");
    check_made(
        ("guards.yaml", tools),
        "PD241",
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
    assert!(told.contains("PD241]: this pack has no tool that runs commands"), "{told}");
    check_made(
        ("guards.yaml", tools),
        "PD310",
        &[("  commands: [\"rm, mv\"]", "a comma does not separate"), ("  commands: [rm, mv]", "")],
    );
    check_made(
        ("guards.yaml", tools),
        "PD232",
        &[
            ("  commands: [Git push]", "unknown program or subcommand `Git`"),
            ("  commands: [Remove-Item]", ""),
        ],
    );
    check_made(
        ("guards.yaml", tools),
        "PD307",
        &[
            ("  when: action.writes([\"*.rs|*.ts\"])", "`|` does not separate"),
            ("  when: action.writes([\"a|b.rs\"])", ""),
            ("  when: action.writes([\"src/*.ts \"])", "starts or ends with a space"),
        ],
    );
    check_made(
        ("guards.yaml", tools),
        "PD225",
        &[
            ("  when: action.address.starts_with(\"https://docs.rs\")", ""),
            (
                "  when: '!action.address.starts_with(\"https://docs.rs\")'",
                "`https://docs.rs` also matches addresses of other hosts",
            ),
            ("  when: '!action.address.starts_with(\"https://docs.rs/\")'", ""),
            ("  when: action.address.starts_with(\"docs.rs\")", "addresses start with a"),
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
            ("    enabled: false", "this override weakens `security_critical`"),
            ("    blocking: false", "this override weakens `security_critical`"),
            ("    severity: low", "this override weakens `security_critical`"),
            ("    severity: low\n    description: We look at all of them anyway.", ""),
            ("    answer_within: 2h", ""),
        ],
    );
    let reaction = |it: &str| format!("- id: api_error\n  override: true\n{it}\n");
    check_made(
        ("reactions.yaml", reaction),
        "PD116",
        &[("  enabled: false", "this override weakens `api_error`"), ("  say: Wait.", "")],
    );
    let class = |it: &str| format!("classes:\n  - {{id: overloaded, override: true, {it}}}\n");
    check_made(
        ("failures.yaml", class),
        "PD116",
        &[
            ("effect: ignore", "this override weakens `overloaded`"),
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
                "this override weakens `depth`",
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
                "`Development` differs from the inherited `DEVELOPMENT` only in case, `-` or `_`",
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
        "PD504",
        &[
            ("order: [abandon, human, wait, retry, escalate]\n", "before `human` is evaluated"),
            ("order: [human, wait, retry, abandon, escalate]\n", "before `escalate` is evaluated"),
            ("order: [human, wait, retry, escalate, abandon]\n", ""),
            (
                "review:\n  - {id: tired, group: human, when: task.idle_hours > 2, do: abandon}\n",
                "a rule of `human` abandons tasks",
            ),
        ],
    );
}

#[test]
fn breakers_are_written_as_others_write_them() {
    check_made(
        ("breakers.yaml", |it: &str| format!("{it}:\n  threshold: 5\n")),
        "PD232",
        &[
            ("api/claud", "the breaker `api/claud` receives no calls"),
            ("api/claude", ""),
            ("api/own", ""),
            ("api/*", ""),
        ],
    );
    satisfied(
        "PD232",
        &[
            ("!breakers[\"api/cluade\"].open", "the breaker `api/cluade` receives no calls"),
            ("!breakers.open.contains(\"api/claud\")", "a similar one is `api/claude`"),
            ("!breakers[\"api/claude\"].open && !breakers[\"api/own\"].open", ""),
        ],
    );
    let reaction =
        |it: &str| format!("- id: own\n  on: [stop]\n  breaker: {it}\n  result: success\n");
    check_made(
        ("reactions.yaml", reaction),
        "PD232",
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
        "PD234",
        &[("24s", "24s is very short for `answer_within`"), ("24h", ""), ("30m", "")],
    );
    check(
        "dead_letter.yaml",
        "PD234",
        &[
            ("review_every: 24m\n", "24m is very short for `review_every`"),
            ("review_every: 24h\n", ""),
            ("redrive: {rate: 5, per: 1s}\n", "1s is very short for `per`"),
            ("retention: {max_age: 1h}\n", "1h is very short for `max_age`"),
            ("retention: {max_age: 30d}\n", ""),
        ],
    );
}
