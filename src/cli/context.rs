//! `policyd context`: how full the context of a session is, and what is carried over from it.

use std::time::Duration;

use super::{
    Console, ContextAction, ContextArguments, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, ListFormat, error,
};
use policyd_app::gate::meter::{MeterPlace, SessionMeter};
use policyd_app::packs;
use policyd_app::sessions::location;
use policyd_app::sessions::summaries::{SummaryDraft, SummaryWriter};
use policyd_app::workspace::project::{self, Project};
use policyd_base::limits;
use policyd_eval::status_line::{READING_MAX, StatusLine};
use policyd_evaluation::situation::Matchers;
use policyd_facts::Facts;
use policyd_policy::Policy;
use policyd_record::context::ContextView;
use policyd_state::context::Overrides;
use policyd_store::session::SessionStore;
use policyd_store::transcript::TranscriptError;
use policyd_world::World;

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
        ContextAction::Line => {
            StatusLine { meter: command.meter(), overrides: &command.overrides }.answer(console)
        }
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

    fn status(&self, console: &mut Console<'_>, place: &MeterPlace, format: ListFormat) -> u8 {
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
        place: &MeterPlace,
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
        place: &MeterPlace,
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
        place: Option<&MeterPlace>,
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
}
