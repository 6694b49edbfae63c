//! `policyd context`: how full the context of a session is, and what is carried over from it.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::{
    Console, ContextAction, ContextArguments, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, ListFormat, error,
};
use policyd_app::packs;
use policyd_app::sessions::location::{self, Place};
use policyd_app::sessions::meter::SessionMeter;
use policyd_app::sessions::summaries::{SummaryDraft, SummaryWriter};
use policyd_app::workspace::project::{self, Project};
use policyd_base::limits;
use policyd_evaluation::situation::Matchers;
use policyd_fact_table::context_facts::ContextUsage;
use policyd_facts::Facts;
use policyd_policy::Policy;
use policyd_record::context::ContextView;
use policyd_state::context::Overrides;
use policyd_store::session::SessionStore;
use policyd_store::transcript::TranscriptError;
use policyd_world::{World, WorldError};

/// A transcript that nobody read before may be long.
const READING_MAX: Duration = Duration::from_secs(60);

/// Runs one action.
pub(super) fn run(
    world: &dyn World,
    console: &mut Console<'_>,
    arguments: &ContextArguments,
) -> u8 {
    let project = project::find(world, None);
    let found = packs::find(world, &project, arguments.policies.as_deref());
    let mut policy = match packs::policy(world, &found) {
        Ok(policy) => policy,
        Err(broken) => {
            console.eprint(&packs::explain(&broken));
            return EXIT_BROKEN;
        }
    };
    let fenced = project::fenced_by_pack(world, &project, &policy.settings);
    let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
    let (store, _) = project::sessions(world, &project, &policy.settings);
    let (overrides, wrong) = project::overrides(world);
    wrong.iter().for_each(|it| console.eprint(it));
    let words = Matchers::out_of(&mut policy);
    let command = ContextCommand { world, policy: &policy, words, store, overrides };
    match &arguments.action {
        ContextAction::Status { session, format, watch, every, length } => {
            let place = match location::find(world, &command.store, &project, session.as_deref()) {
                Ok(place) => place,
                Err(error) => return error::report(console, &error),
            };
            if *watch {
                return command.watch(console, &place, *format, *every, *length);
            }
            command.status(console, &place, *format)
        }
        ContextAction::Summary { session, since, print } => {
            match location::find(world, &command.store, &project, session.as_deref()) {
                Ok(place) => {
                    command.summary(console, Some(&place), &project, since.as_deref(), *print)
                }
                Err(error) => {
                    console.eprint(&error.to_string());
                    // What git says is worth something by itself.
                    match session {
                        Some(_) => EXIT_BROKEN,
                        None => command.summary(console, None, &project, since.as_deref(), *print),
                    }
                }
            }
        }
        ContextAction::Line => command.line(console),
    }
}

/// What every action needs.
struct ContextCommand<'a> {
    world: &'a dyn World,
    policy: &'a Policy,
    words: Matchers,
    store: SessionStore<'a>,
    overrides: Overrides,
}

impl ContextCommand<'_> {
    fn meter(&self) -> SessionMeter<'_> {
        let Self { world, policy, words, store, .. } = self;
        SessionMeter { world: *world, policy, words, store }
    }

    fn status(&self, console: &mut Console<'_>, place: &Place, format: ListFormat) -> u8 {
        match self.look(place, &self.overrides, format, console.color()) {
            Ok((text, acts)) => {
                console.print(&text);
                if acts { EXIT_FOUND } else { EXIT_OK }
            }
            Err(error) => {
                console.eprint(&error.to_string());
                EXIT_BROKEN
            }
        }
    }

    /// What is printed of a session, and whether something should be done.
    fn look(
        &self,
        place: &Place,
        overrides: &Overrides,
        format: ListFormat,
        color: bool,
    ) -> Result<(String, bool), TranscriptError> {
        let facts = self.meter().facts(place, READING_MAX)?;
        let gauge = self.meter().usage(place, &facts, overrides);
        let settings = overrides.settings(&self.policy.context.settings);
        let seen = ContextView {
            session: place.session.as_ref().map_or("", |it| it.as_str()),
            gauge: &gauge,
            settings: &settings,
            unpriced: self.policy.context.unpriced(&facts.tokens.meters),
        };
        let text = match format {
            ListFormat::Text => seen.text(color),
            ListFormat::Compact => format!("{}\n", seen.line(color)),
            ListFormat::Json => format!("{}\n", seen.json()),
        };
        Ok((text, gauge.measured >= gauge.threshold && !gauge.tier.is_empty()))
    }

    /// Prints it whenever it changed.
    fn watch(
        &self,
        console: &mut Console<'_>,
        place: &Place,
        format: ListFormat,
        every: Duration,
        length: Option<Duration>,
    ) -> u8 {
        let start = self.world.elapsed();
        let (mut before, mut acted) = (String::new(), false);
        loop {
            match self.look(place, &self.overrides, format, console.color()) {
                Ok((text, acts)) => {
                    if text != before {
                        console.print(&text);
                    }
                    (before, acted) = (text, acts);
                }
                Err(error) => {
                    let text = error.to_string();
                    if text != before {
                        console.eprint(&text);
                    }
                    before = text;
                }
            }
            if length.is_some_and(|it| self.world.elapsed().saturating_sub(start) >= it) {
                return if acted { EXIT_FOUND } else { EXIT_OK };
            }
            self.world.sleep(every);
        }
    }

    /// Prints what is carried over from a session, and keeps it.
    fn summary(
        &self,
        console: &mut Console<'_>,
        place: Option<&Place>,
        project: &Project,
        since: Option<&str>,
        print: bool,
    ) -> u8 {
        let facts = match place.map(|it| self.meter().facts(it, READING_MAX)).transpose() {
            Ok(facts) => facts.unwrap_or_default(),
            // What git says is worth something by itself.
            Err(error) => {
                console.eprint(&error.to_string());
                Facts::default()
            }
        };
        let own = project::sessions(self.world, project, &self.policy.settings).1;
        let writer = SummaryWriter {
            world: self.world,
            folder: &project.root,
            own: &own,
            store: &self.store,
            wait: limits::COMMAND_LOCK_WAIT,
        };
        let gauge =
            place.map(|it| self.meter().usage(it, &facts, &self.overrides)).unwrap_or_default();
        let text = writer.summarize(&facts, &gauge, since);
        console.print(&text);
        let session = place.and_then(|it| it.session.as_ref());
        let Some(session) = session.filter(|_| !print) else { return EXIT_OK };
        let (reason, at) = ("command", self.world.now());
        let draft = SummaryDraft { text: &text, reason, at, told: None };
        match writer.keep(session, facts.prompts.count, draft) {
            Ok(()) => EXIT_OK,
            Err(error) => error::report(console, &error),
        }
    }

    /// Answers the client's status line. Whatever is wrong, the line says so and the exit code is 0:
    /// the client shows nothing else.
    fn line(&self, console: &mut Console<'_>) -> u8 {
        use std::io::Read as _;
        let mut bytes = Vec::new();
        let most = u64::try_from(limits::STDIN_BYTES_MAX).unwrap_or(u64::MAX);
        drop((&mut *console.stdin).take(most).read_to_end(&mut bytes));
        let told: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let line = match told.pointer("/transcript_path").and_then(Value::as_str) {
            None | Some("") => Err(TranscriptError::NotNamed),
            Some(transcript) => self.status_line(Path::new(transcript), &told, console.color()),
        };
        match line {
            Ok(text) => console.print(&text),
            Err(error) => console.print(&format!("context –: {error}\n")),
        }
        EXIT_OK
    }

    /// The status line by a transcript and by what the client itself measured, which is newer. The client
    /// asks before it writes the transcript, and says nothing of the context then.
    fn status_line(
        &self,
        transcript: &Path,
        told: &Value,
        color: bool,
    ) -> Result<String, TranscriptError> {
        let text = |path: &str| told.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let used = told.pointer("/context_window/used_percentage").and_then(Value::as_f64);
        let is_there = !matches!(self.world.stat(transcript), Err(WorldError::NotFound));
        if !is_there && used.is_none() {
            return Ok("context 0%\n".to_owned());
        }
        let place = Place::of(transcript, text("/session_id"));
        let size = told.pointer("/context_window/context_window_size").and_then(Value::as_u64);
        let overrides = Overrides {
            window: self.overrides.window.or(size),
            model: text("/model/id").to_owned(),
            ..self.overrides.clone()
        };
        let facts =
            if is_there { self.meter().facts(&place, READING_MAX)? } else { Facts::default() };
        let gauge = self.meter().usage(&place, &facts, &overrides);
        let cost = told.pointer("/cost/total_cost_usd").and_then(Value::as_f64);
        let seen = ContextView {
            session: text("/session_id"),
            gauge: &measured_by_client(gauge, used, cost),
            settings: &overrides.settings(&self.policy.context.settings),
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

/// Billionths of a US dollar in a dollar.
const NANO_PER_DOLLAR: f64 = 1e9;
