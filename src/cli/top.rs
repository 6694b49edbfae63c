//! `policyd top`: the overview of all projects on a terminal, refreshed, with keys.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use super::{Console, EXIT_BROKEN, EXIT_OK, EXIT_USAGE, TopArguments, error};
use policyd_app::dashboard::{self, Snapshot};
use policyd_report::top::{TopContent, TopKey, TopScreen};
use policyd_world::World;
use policyd_yaml::time::parse_duration;

/// Longest wait for a key until rows are drawn again.
const KEY_WAIT: Duration = Duration::from_millis(500);

/// Shows the screen until the user ends it.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &TopArguments) -> u8 {
    let Ok(since) = parse_duration(&arguments.since) else {
        console.eprint(super::log::SINCE_HELP);
        return EXIT_USAGE;
    };
    if !console.stdout_is_tty || !console.stdin_is_tty {
        console.eprint("no terminal\nhelp: `policyd status --all` prints the same rows once");
        return EXIT_USAGE;
    }
    let mut screen = TopScreen::default();
    let (mut drawn, mut failed) = (Ok(()), None);
    // A signal that comes earlier would leave the terminal on the second screen.
    world.note_interrupts();
    match AlternateScreen::enter(console) {
        Ok(mut terminal) => {
            let mut show = |snapshot: &Snapshot| {
                drawn = terminal.show(&mut screen, snapshot, world);
                drawn.is_ok() && !screen.is_over() && !world.interrupted()
            };
            failed = dashboard::watch(world, since, &mut show).err();
        }
        Err(error) => drawn = Err(error),
    }
    match (failed, drawn) {
        (Some(error), _) => error::report(console, &error),
        (None, Err(error)) => {
            console.eprint(&format!("could not use the terminal: {error}"));
            EXIT_BROKEN
        }
        (None, Ok(())) => EXIT_OK,
    }
}

/// The second screen of the terminal. The first one comes back when it is dropped, also after a panic.
struct AlternateScreen<'t, 'c> {
    terminal: Terminal<CrosstermBackend<&'t mut (dyn io::Write + 'c)>>,
}

impl<'t> AlternateScreen<'t, 't> {
    fn enter(console: &'t mut Console<'_>) -> io::Result<Self> {
        let mut backend = CrosstermBackend::new(console.full_screen());
        enable_raw_mode()?;
        execute!(backend, EnterAlternateScreen, Hide)?;
        Ok(Self { terminal: Terminal::new(backend)? })
    }

    /// Draws the rows, and applies the keys that were pressed.
    fn show(
        &mut self,
        screen: &mut TopScreen,
        snapshot: &Snapshot,
        world: &dyn World,
    ) -> io::Result<()> {
        let notice = match snapshot.problems.first() {
            Some(problem) => problem.clone(),
            None if snapshot.is_complete => String::new(),
            None => format!("the logs are being read: {} decisions so far", snapshot.indexed),
        };
        let content = TopContent { rows: &snapshot.rows, notice: &notice, now: world.now() };
        self.terminal.draw(|frame| screen.draw(frame, content))?;
        // The library that reads keys never returns once the terminal is closed.
        if !world.input_comes(KEY_WAIT) {
            return Ok(());
        }
        if !io::stdin().is_terminal() {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "the terminal was closed"));
        }
        while poll(Duration::ZERO)? {
            if let Event::Key(key) = read()?
                && let Some(key) = key_of(key)
            {
                screen.press(key, &snapshot.rows);
            }
        }
        Ok(())
    }
}

impl Drop for AlternateScreen<'_, '_> {
    fn drop(&mut self) {
        // A terminal that is gone needs no reset.
        drop(execute!(self.terminal.backend_mut(), LeaveAlternateScreen, Show));
        drop(disable_raw_mode());
    }
}

/// Returns what a key does; `None` for a key without a meaning.
fn key_of(key: KeyEvent) -> Option<TopKey> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    #[expect(clippy::wildcard_enum_match_arm, reason = "a terminal has many keys")]
    match key.code {
        KeyCode::Char('c') if is_control => Some(TopKey::Char('q')),
        KeyCode::Char(_) if is_control => None,
        KeyCode::Char(letter) => Some(TopKey::Char(letter)),
        KeyCode::Up => Some(TopKey::Up),
        KeyCode::Down => Some(TopKey::Down),
        KeyCode::PageUp => Some(TopKey::PageUp),
        KeyCode::PageDown => Some(TopKey::PageDown),
        KeyCode::Enter => Some(TopKey::Enter),
        KeyCode::Esc => Some(TopKey::Back),
        KeyCode::Backspace => Some(TopKey::Erase),
        _ => None,
    }
}
