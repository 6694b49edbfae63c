//! What lint says of `context.yaml`, `run.yaml` and `breakers.yaml`.

use policyd::lint::Profile;
use policyd::report::diagnostics::render_compact;

use crate::subjects::{check, look};

#[test]
fn tiers_variants_and_models_that_contradict_each_other() {
    let tier = "tiers:\n  - {id: act, override: true, ";
    check(
        "context.yaml",
        "PD504",
        &[
            ("hysteresis: 2\n", ""),
            ("hysteresis: 54.5\n", ""),
            ("hysteresis: 60\n", "`hysteresis` is 60: only a compaction resets `notice` at 55%"),
            ("hysteresis: 80\n", "resets `notice` at 55%, `warn` at 65%, `act` at 70%"),
            (
                "hysteresis: 60\ntiers:\n  - {id: notice, override: true, at: 50}\n",
                "`notice` is at 50%, within the hysteresis of 60 points",
            ),
            ("hysteresis: 60\ntiers:\n  - {id: notice, override: true, at: 61}\n", ""),
            (&format!("{tier}at: 80, say: x}}\n"), ""),
            (&format!("{tier}at: 120, say: x}}\n"), "`act` is at 120%"),
            (&format!("meter: cumulative\n{tier}at: 120, say: x}}\n"), ""),
            (&format!("{tier}at: 5, say: x}}\n"), "hysteresis of 5 points"),
            (
                "tiers:\n  - {id: high, at: 90, say: x}\n  - {id: low, at: 20, say: x}\n",
                "the tier at 20% follows a tier at 90%",
            ),
            (&format!("{tier}at: 60, say: x}}\n"), "`act` is at 60%, below `warn` at 65%"),
            ("tiers:\n  - {id: notice, override: true, at: 68}\n", "above `warn` at 65%"),
            ("tiers:\n  - {id: notice, override: true, at: 40}\n", ""),
            // Where a new one belongs its percentage says.
            (
                "tiers:\n  - {id: early, at: 40, say: x}\n  - {id: act, override: true, at: 80}\n",
                "",
            ),
            (
                "tiers:\n  - {id: warn, override: true, at: 90}\n  - {id: act, override: true, at: 85}\n",
                "the tier at 85% follows a tier at 90%",
            ),
            ("window: 200\n", "(write `200000` for 200 thousand)"),
            ("window: 32000\n", ""),
            ("variants: {\"[big]\": 100000}\n", "the variant `[big]` is not larger"),
            ("models:\n  \"my*\": {window: 1000}\n", ""),
            ("models:\n  \"*my\": {input: 1}\n  \"my*\": {input: 2}\n", "match the same models"),
            ("models:\n  \"*my*\": {input: 1}\n  \"my-5*\": {input: 2}\n", ""),
            ("models:\n  \"my*\": {output: 2}\n", "no input price"),
            ("models:\n  \"my*\": {input: 2, output: 1}\n", "`output` of `my*` costs less"),
            ("models:\n  \"my*\": {input: 2, cache_read: 3}\n", "`cache_read` of `my*` costs more"),
        ],
    );
}

#[test]
fn limits_of_a_run_that_have_no_effect() {
    check(
        "run.yaml",
        "PD504",
        &[
            ("iterations: {max: 9}\n", ""),
            ("iterations: {max: 0}\n", "the run has no turns"),
            ("iterations: {extend: 2, extend_by: 0}\n", "an extension adds no turns"),
            ("restarts: {max: 0, when_stuck: true}\n", "`max` permits none"),
            ("restarts: {max: 0}\n", ""),
            ("budget: {usd: 0}\n", "spent before the first turn"),
            ("turn: {longest: 10m, silence: 10m}\n", "a turn of 10m ends before it"),
            ("turn: {longest: 40m, grace: 1h}\n", "a turn of 40m ends before it"),
            ("stuckness: {signs: 6}\n", "only 5 signals exist"),
            ("stuckness: {window: 9}\n", "only 8 turns are recorded"),
            ("iterations: {max: 4}\nstuckness: {idle: 5}\n", "a run has 4 turns"),
            ("stuckness: {aborts: 60}\n", "a run has 50 turns"),
            ("claims: []\n", "cannot report completion"),
            ("time: 10m\n", "`time` is 10m, but a turn can last 1h"),
            ("time: 10m\nturn: {longest: 20m, silence: 5m}\n", "a turn can last 20m"),
            ("time: 10m\nturn: {longest: 10m, silence: 5m}\n", ""),
            ("time: 8h\n", ""),
            ("turn: {longest: 9h}\n", ""),
        ],
    );
}

#[test]
fn a_prompt_tells_the_goal() {
    let told = |parts: &str| {
        let text = format!("prompt:\n{parts}");
        let found = look(&[("run.yaml", &text)], Profile::Strict);
        render_compact(&found.findings).contains("PD504")
    };
    assert!(told("  - {id: goal, override: true, text: Go on.}\n"));
    assert!(told("  - {id: goal, override: true, enabled: false}\n"));
    assert!(!told("  - {id: goal, override: true, text: \"Reach ${run.goal}.\"}\n"));
    assert!(!told("  - {id: goal, override: true, text: \"Reach ${run.goal.lower()}.\"}\n"));
    assert!(!told("  - {id: goal, override: true, text: \"Reach ${ run.goal }.\"}\n"));
    assert!(told("  - {id: goal, override: true, text: \"Reach $${run.goal}.\"}\n"));
    assert!(!told("  - {id: own, text: Go on.}\n"));
    let moved = "  - {id: goal, override: true, enabled: false}\n";
    assert!(!told(&format!("{moved}  - {{id: own, text: \"${{run.goal}}\"}}\n")));
}

#[test]
fn a_breaker_of_probes_fits_one() {
    check(
        "breakers.yaml",
        "PD232",
        &[
            ("probe/p*: {failure_threshold: 3}\n", ""),
            ("probe/x: {failure_threshold: 3}\n", "no probe uses the breaker `probe/x`"),
            ("probe*/: {failure_threshold: 3}\n", "no probe uses the breaker `probe*/`"),
            ("\"*/claude\": {failure_threshold: 3}\n", ""),
        ],
    );
}
