//! `policyd breaker route`: the first tier of a chain of fallbacks that may be called.

use std::time::Duration;

use serde_json::{Value, json};

use super::BreakerCommand;
use crate::{Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EXIT_USAGE, ListFormat};
use policyd_policy::LoadTier;
use policyd_record::breaker_view::BreakerView;
use policyd_state::breaker::BreakerResponse;
use policyd_yaml::suggest;
use policyd_yaml::time::short_text;

pub(super) fn run(
    command: &BreakerCommand<'_>,
    console: &mut Console<'_>,
    chain: Option<&str>,
    format: ListFormat,
) -> u8 {
    let routes = &*command.policy.routes;
    let found = match chain {
        Some(id) => routes.iter().find(|it| it.id == id),
        None => routes.first(),
    };
    let Some(route) = found else {
        let known: Vec<&str> = routes.iter().map(|it| it.id.as_str()).collect();
        let id = chain.unwrap_or_default();
        let help = suggest::did_you_mean(id, &known);
        let help = help.unwrap_or_else(|| "routes.yaml defines no chain".to_owned());
        console.eprint(&format!("unknown chain `{id}`\nhelp: {help}"));
        return EXIT_USAGE;
    };
    let mut busy: Vec<(&LoadTier, BreakerView, Option<u64>)> = Vec::new();
    for tier in &route.tiers {
        let settings = command.policy.breaker(&tier.breaker);
        let request = command.store.request(&tier.breaker, &settings, command.world.now());
        let (breaker, answer) = match request {
            Ok(answered) => answered,
            Err(error) => {
                console.eprint(&command.store.unreadable(&error));
                return EXIT_BROKEN;
            }
        };
        let seen = command.seen(&tier.breaker, breaker);
        match answer {
            BreakerResponse::Rejected { .. } => {
                let wait = seen.answer_json(answer).get("retry_after").and_then(Value::as_u64);
                busy.push((tier, seen, wait));
            }
            BreakerResponse::Permitted
            | BreakerResponse::WouldReject { .. }
            | BreakerResponse::Recorded => {
                console.print(&match format {
                    ListFormat::Text | ListFormat::Compact => format!("{}\n", tier.name),
                    ListFormat::Json => format!(
                        "{}\n",
                        json!({"chain": route.id, "tier": tier.name, "breaker": tier.breaker,
                            "models": tier.models, "generation": seen.breaker.generation,
                            "passed_over": passed_over(&busy)})
                    ),
                });
                return EXIT_OK;
            }
        }
    }
    let soonest =
        busy.iter().filter_map(|(tier, _, wait)| Some(((*wait)?, tier))).min_by_key(|it| it.0);
    console.print(&match format {
        ListFormat::Json => format!(
            "{}\n",
            json!({"chain": route.id, "tier": null, "escalate": true,
                "retry_after": soonest.map(|it| it.0), "passed_over": passed_over(&busy)})
        ),
        ListFormat::Text | ListFormat::Compact => {
            let when = soonest.map_or_else(
                || "no tier recovers without a reset".to_owned(),
                |(wait, tier)| {
                    let wait = short_text(Duration::from_secs(wait));
                    format!("`{}` permits a trial call in {wait}", tier.name)
                },
            );
            format!("{}: every tier rejects calls; {when}; escalate to a human\n", route.id)
        }
    });
    EXIT_FOUND
}

fn passed_over(busy: &[(&LoadTier, BreakerView, Option<u64>)]) -> Vec<Value> {
    let row = |(tier, seen, wait): &(&LoadTier, BreakerView, Option<u64>)| {
        json!({"tier": tier.name, "breaker": tier.breaker, "state": seen.breaker.phase.as_str(),
            "retry_after": wait, "last_error": seen.breaker.last_error})
    };
    busy.iter().map(row).collect()
}
