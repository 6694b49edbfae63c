//! What is counted, and what it comes to: occupancy and spend, each by itself.

use policyd::evaluation::context::{of_meters, window};
use policyd::facts::meters::{Meters, Prices, Usage};
use policyd::policy::context::ContextRules;
use policyd::policy::{builtin, load};
use policyd::state::context::Overrides;

pub(crate) fn rules() -> ContextRules {
    let pack = builtin::pack();
    load::load(&pack, &pack).policy.unwrap().context.into_inner()
}

fn usage(input: u64, output: u64, cache_read: u64, cache_creation: u64) -> Usage {
    Usage { input, output, cache_read, cache_creation }
}

#[test]
fn occupancy_is_of_the_last_call_and_spend_of_all() {
    let mut meters = Meters::default();
    meters.call("claude-opus-4-5", &usage(10, 100, 50_000, 1_000));
    meters.call("claude-opus-4-5", &usage(20, 200, 51_000, 2_000));
    assert_eq!(meters.occupied, 53_020);
    assert_eq!(meters.total(), usage(30, 300, 101_000, 3_000));
    assert_eq!(meters.calls, 2);
    let gauge = of_meters(&rules(), &Overrides::default(), &meters);
    assert_eq!((gauge.percent, gauge.window, gauge.cumulative_pct), (26, 200_000, 52));
}

#[test]
fn totals_of_a_run_say_nothing_of_the_context() {
    let mut meters = Meters::default();
    meters.spend("claude-opus-4-5", &usage(10_000, 5_000, 160_000, 2_000));
    let gauge = of_meters(&rules(), &Overrides::default(), &meters);
    assert!(!gauge.known);
    assert_eq!((gauge.percent, gauge.tier.as_str(), gauge.cumulative_pct), (0, "", 88));
}

#[test]
fn a_compaction_empties_the_context_and_not_the_bill() {
    let mut meters = Meters::default();
    meters.call("m", &usage(150_000, 10, 0, 0));
    meters.compacted();
    let gauge = of_meters(&rules(), &Overrides::default(), &meters);
    assert_eq!((gauge.known, gauge.tokens, gauge.tier.as_str()), (false, 0, ""));
    assert_eq!((gauge.input_tokens, gauge.compactions), (150_000, 1));
    meters.call("m", &usage(20_000, 10, 0, 0));
    assert_eq!((meters.occupied, meters.total().input), (20_000, 170_000));
}

#[test]
fn growth_is_of_the_calls_since_something_was_taken_out() {
    let of = |all: &[u64]| {
        let mut meters = Meters::default();
        all.iter().for_each(|it| meters.call("m", &usage(*it, 1, 0, 0)));
        (meters.growth(), meters.until(140_000, meters.growth()))
    };
    assert_eq!(of(&[]), (None, None));
    assert_eq!(of(&[100_000]), (None, None));
    assert_eq!(of(&[100_000, 110_000]), (Some(10_000), Some(3)));
    assert_eq!(of(&[100_000, 110_000, 111_000]), (Some(5_500), Some(6)));
    assert_eq!(of(&[100_000, 100_000]), (None, None));
    assert_eq!(of(&[100_000, 150_000]), (Some(50_000), Some(0)));
    assert_eq!(of(&[100_000, 150_000, 60_000]), (None, None), "it shrank, and nothing since");
    assert_eq!(of(&[100_000, 60_000, 70_000]), (Some(10_000), Some(7)));
}

#[test]
fn growth_of_turns_is_from_prompt_to_prompt() {
    // 0 is a prompt, -1 a compaction; the rest is what calls put before the model.
    let of = |all: &[i64]| {
        let mut meters = Meters::default();
        for it in all {
            match *it {
                0 => meters.turn(),
                -1 => meters.compacted(),
                it => meters.call("m", &usage(it.unsigned_abs(), 1, 0, 0)),
            }
        }
        let growth = meters.growth_of_turns();
        (growth, meters.until(140_000, growth))
    };
    assert_eq!(of(&[]), (None, None));
    assert_eq!(of(&[0, 50_000]), (None, None), "what the first call brings is there anyway");
    assert_eq!(of(&[0, 50_000, 60_000]), (Some(10_000), Some(8)), "the turn at work so far");
    assert_eq!(of(&[0, 50_000, 60_000, 0]), (Some(10_000), Some(8)), "a prompt adds nothing yet");
    assert_eq!(of(&[0, 50_000, 60_000, 0, 64_000]), (Some(7_000), Some(11)));
    assert_eq!(of(&[0, 50_000, 60_000, 0, 64_000, 90_000]), (Some(20_000), Some(3)));
    assert_eq!(of(&[0, 50_000, 90_000, 0, 60_000, 70_000]), (Some(10_000), Some(7)), "it shrank");
    assert_eq!(of(&[0, 50_000, 90_000, -1, 30_000]), (None, None));
    assert_eq!(of(&[0, 50_000, 90_000, -1, 30_000, 0, 40_000]), (Some(5_000), Some(20)));
    assert_eq!(of(&[50_000, 50_000]), (None, None));
    let many: Vec<i64> = (1..=60).flat_map(|it| [0, it * 1_000]).collect();
    assert_eq!(of(&many), (Some(1_000), Some(80)));
}

#[test]
fn what_is_kept_is_bounded() {
    let mut meters = Meters::default();
    for number in 0..1_000_u64 {
        meters.turn();
        meters.call(&format!("model-{number}"), &usage(number + 1, 1, 0, 0));
    }
    assert!(meters.spent.len() <= 17 && meters.samples.len() <= 16);
    assert!(meters.turns.len() <= 16);
    assert_eq!(meters.total().output, 1_000, "nothing is lost");
}

#[test]
fn counts_never_run_over() {
    let most = usage(u64::MAX, u64::MAX, u64::MAX, u64::MAX);
    let mut meters = Meters::default();
    meters.call("claude-opus-4-5", &most);
    meters.call("claude-opus-4-5", &most);
    let gauge = of_meters(&rules(), &Overrides::default(), &meters);
    assert_eq!((gauge.tokens, gauge.input_tokens), (u64::MAX, u64::MAX));
    assert!(gauge.percent > 100 && gauge.cost_nano == u64::MAX);
}

#[test]
fn windows_are_found_by_name_by_variant_and_by_what_is_in_them() {
    let (rules, none) = (rules(), Overrides::default());
    for (model, holds, expected) in [
        ("claude-opus-4-5", 0, 200_000),
        ("claude-opus-4-5[1m]", 0, 1_000_000),
        ("claude-sonnet-4-5-20250929", 199_999, 200_000),
        ("claude-sonnet-4-5-20250929", 200_001, 1_000_000),
        ("claude-opus-5-5", 0, 1_000_000),
        ("claude-opus-5", 0, 1_000_000),
        ("claude-sonnet-5-5", 0, 1_000_000),
        ("claude-fable-5-1", 0, 1_000_000),
        ("claude-opus-4-8", 0, 200_000),
        ("claude-opus-4-8", 200_001, 1_000_000),
        ("gpt-5-codex", 0, 272_000),
        ("gemini-2.5-pro", 500_000, 1_048_576),
        ("somebody-elses", 0, 200_000),
        ("", 0, 200_000),
    ] {
        assert_eq!(window(&rules, &none, model, holds), expected, "{model} {holds}");
    }
    let named = |model: &str| Overrides { model: model.to_owned(), ..Overrides::default() };
    let of = |name: &str| window(&rules, &named(name), "claude-sonnet-4-5-20250929", 0);
    assert_eq!(of("sonnet[1m]"), 1_000_000);
    assert_eq!(of("claude-sonnet-4-5[1m]"), 1_000_000);
    assert_eq!(of("opus[1m]"), 200_000, "another model than the one that answers");
    let forced = Overrides { window: Some(50_000), ..Overrides::default() };
    assert_eq!(window(&rules, &forced, "claude-opus-4-5[1m]", 400_000), 50_000);
}

#[test]
fn prices_are_those_of_the_longest_glob() {
    let rules = rules();
    let million = usage(1_000_000, 1_000_000, 0, 0);
    for (model, dollars) in [
        ("claude-opus-4-5", 30),
        ("claude-opus-4-1-20250805", 90),
        ("claude-opus-4-20250514", 90),
        ("claude-sonnet-4-5-20250929", 18),
        ("claude-sonnet-4-5-20250929[1m]", 18),
        ("claude-haiku-4-5-20251001", 6),
        ("claude-opus-5", 30),
        ("claude-opus-5-5", 24),
        ("claude-sonnet-5-5", 12),
        ("claude-fable-5-1", 60),
        ("gpt-5.5", 35),
        ("somebody-elses", 0),
    ] {
        assert_eq!(rules.cost(model, &million), dollars * 1_000_000_000, "{model}");
    }
    let cached = usage(0, 0, 1_000_000, 1_000_000);
    // A tenth for what was read, a quarter more for what was written.
    assert_eq!(rules.cost("claude-opus-4-5", &cached), 6_750_000_000);
    assert_eq!(Prices::default().cost(&million), 0);
    let mut meters = Meters::default();
    meters.call("claude-opus-4-5", &million);
    meters.call("somebody-elses", &million);
    assert_eq!(rules.spent(&meters), 30_000_000_000);
    assert_eq!(rules.unpriced(&meters), ["somebody-elses"]);
}
