//! `policyd context line`: the status line of a client, which asks for it after each message.

use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use policyd_base::limits;
use policyd_evaluation::situation::Matchers;
use policyd_fact_table::context_facts::ContextUsage;
use policyd_facts::Facts;
use policyd_gate::meter::{MeterPlace, SessionMeter};
use policyd_packs::{self as packs, LoadPack};
use policyd_record::context::ContextView;
use policyd_state::context::Overrides;
use policyd_store::transcript::TranscriptError;
use policyd_workspace::project;
use policyd_world::{World, WorldError};
use serde_json::Value;

use crate::Console;
use crate::exit::EXIT_OK;

/// Longest time for a transcript, which can be long if no hook read it before.
pub const READING_MAX: Duration = Duration::from_secs(60);
/// Variable of the option `--color`, which the whole command line reads.
const COLOR_VARIABLE: &str = "POLICYD_COLOR";
/// Billionths of a US dollar in a dollar.
const NANO_PER_DOLLAR: f64 = 1e9;

/// Answers by the pack of the project, without colors. `None` if it does not load, or if colors are chosen. Nothing was read
/// from standard input then.
pub fn answer(world: &dyn World, console: &mut Console<'_>, load: LoadPack) -> Option<u8> {
    if world.env(COLOR_VARIABLE).is_some() {
        return None;
    }
    let project = project::find(world, None);
    let fenced = project::fenced(world, &project);
    let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
    let found = packs::find(world, &project, None);
    let mut policy = load(world, &found).ok()?;
    let fenced = project::fenced_by_pack(world, &project, &policy.settings);
    let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
    let (store, _) = project::sessions(world, &project, &policy.settings);
    let (overrides, wrong) = project::overrides(world);
    wrong.iter().for_each(|it| console.eprint(it));
    let words = Matchers::out_of(&mut policy);
    let meter = SessionMeter { world, policy: &policy, words: &words, store: &store };
    Some(StatusLine { meter, overrides: &overrides }.answer(console))
}

/// The meter of a session, and the settings from the environment.
pub struct StatusLine<'a> {
    pub meter: SessionMeter<'a>,
    pub overrides: &'a Overrides,
}

impl StatusLine<'_> {
    /// Reads what the client says, and prints the line. Whatever is wrong, the line says so and the exit code is 0: the
    /// client shows nothing else.
    pub fn answer(&self, console: &mut Console<'_>) -> u8 {
        let mut bytes = Vec::new();
        let most = u64::try_from(limits::STDIN_BYTES_MAX).unwrap_or(u64::MAX);
        drop((&mut *console.stdin).take(most).read_to_end(&mut bytes));
        let told: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let line = match told.pointer("/transcript_path").and_then(Value::as_str) {
            None | Some("") => Err(TranscriptError::NotNamed),
            Some(transcript) => self.line(Path::new(transcript), &told, console.color()),
        };
        match line {
            Ok(text) => console.print(&text),
            Err(error) => console.print(&format!("context –: {error}\n")),
        }
        EXIT_OK
    }

    /// The line by a transcript and by what the client itself measured, which is newer. The client asks before it writes
    /// the transcript, and says nothing of the context then.
    fn line(
        &self,
        transcript: &Path,
        told: &Value,
        color: bool,
    ) -> Result<String, TranscriptError> {
        let text = |path: &str| told.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let used = told.pointer("/context_window/used_percentage").and_then(Value::as_f64);
        let is_there = !matches!(self.meter.world.stat(transcript), Err(WorldError::NotFound));
        if !is_there && used.is_none() {
            return Ok("context 0%\n".to_owned());
        }
        let place = MeterPlace::of(transcript, text("/session_id"));
        let size = told.pointer("/context_window/context_window_size").and_then(Value::as_u64);
        let overrides = Overrides {
            window: self.overrides.window.or(size),
            model: text("/model/id").to_owned(),
            ..self.overrides.clone()
        };
        let facts =
            if is_there { self.meter.facts(&place, READING_MAX)? } else { Facts::default() };
        let gauge = self.meter.usage(&place, &facts, &overrides);
        let cost = told.pointer("/cost/total_cost_usd").and_then(Value::as_f64);
        let seen = ContextView {
            session: text("/session_id"),
            gauge: &measured_by_client(gauge, used, cost),
            settings: &overrides.settings(&self.meter.policy.context.settings),
            unpriced: Vec::new(),
        };
        Ok(format!("{}\n", seen.line(color)))
    }
}

/// The gauge with what the client measured: the percentage that is used, and the cost in US dollars.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "both are checked to be finite and not negative; a cast saturates"
)]
fn measured_by_client(gauge: ContextUsage, used: Option<f64>, cost: Option<f64>) -> ContextUsage {
    let sound = |it: &f64| it.is_finite() && *it >= 0.0;
    let percent = used.filter(sound).map(|it| it as u64);
    let cost_nano = cost.filter(sound).map(|it| (it * NANO_PER_DOLLAR) as u64);
    ContextUsage {
        known: gauge.known || percent.is_some(),
        percent: percent.unwrap_or(gauge.percent),
        cost_nano: cost_nano.unwrap_or(gauge.cost_nano),
        ..gauge
    }
}
