//! The screen of `policyd top`: the rows of the overview on a terminal, sorted, filtered, and one of them opened. Contains the
//! state of the screen, what keys do to it, and how it is drawn.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState, Wrap};

use super::overview::{CommandScope, ProjectRow, Urgency, age, short_name};
use policyd_record::paint::TextColor;
use policyd_state::run::budget::TurnCost;
use policyd_yaml::time::Timestamp;

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopKey {
    Up,
    Down,
    PageUp,
    PageDown,
    /// Opens the selected project, or ends the input of a filter.
    Enter,
    /// Goes back: closes a project, or removes the filter.
    Back,
    /// A character: a command, or a part of the filter.
    Char(char),
    /// Removes the last character of the filter.
    Erase,
}

/// Order of the rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TopOrder {
    /// The greatest need first.
    #[default]
    Need,
    /// The newest activity first.
    Age,
    /// The most expensive first.
    Cost,
    /// The most blocks first.
    Blocked,
    /// By directory.
    Name,
}

impl TopOrder {
    const ALL: [Self; 5] = [Self::Need, Self::Age, Self::Cost, Self::Blocked, Self::Name];

    const fn name(self) -> &'static str {
        match self {
            Self::Need => "need",
            Self::Age => "age",
            Self::Cost => "cost",
            Self::Blocked => "blocked",
            Self::Name => "name",
        }
    }

    fn next(self) -> Self {
        let at = Self::ALL.iter().position(|it| *it == self).unwrap_or(0);
        Self::ALL.get(at.saturating_add(1)).copied().unwrap_or_default()
    }
}

/// State of the screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopScreen {
    order: TopOrder,
    /// Text that the directory or the state of a project must contain.
    filter: String,
    is_typing: bool,
    is_open: bool,
    /// Directory of the selected project, which stays selected when rows move.
    selected: Option<String>,
    is_over: bool,
}

/// What is shown.
#[derive(Debug, Clone, Copy)]
pub struct TopContent<'a> {
    /// Rows, the greatest need first.
    pub rows: &'a [ProjectRow],
    /// Why a part is missing, or how far the logs are read.
    pub notice: &'a str,
    pub now: Timestamp,
}

impl TopScreen {
    /// Whether the user ended the screen.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns the rows that fit the filter, in their order.
    fn shown<'a>(&self, rows: &'a [ProjectRow]) -> Vec<&'a ProjectRow> {
        let fits = |it: &&ProjectRow| {
            let (word, _) = it.urgency().cell();
            it.directory.contains(&self.filter) || word.contains(&self.filter)
        };
        let mut shown: Vec<&ProjectRow> = rows.iter().filter(fits).collect();
        let cost = |it: &ProjectRow| it.cost().map_or(0.0, |it| it.known_usd);
        match self.order {
            TopOrder::Need => {}
            TopOrder::Age => shown.sort_by_key(|it| std::cmp::Reverse(it.last_activity)),
            TopOrder::Cost => shown.sort_by(|one, other| cost(other).total_cmp(&cost(one))),
            TopOrder::Blocked => shown.sort_by_key(|it| {
                std::cmp::Reverse(it.blocked_stops.saturating_add(it.blocked_calls))
            }),
            TopOrder::Name => shown.sort_by(|one, other| one.directory.cmp(&other.directory)),
        }
        shown
    }

    fn position(&self, shown: &[&ProjectRow]) -> usize {
        let selected = self.selected.as_deref();
        shown.iter().position(|it| Some(it.directory.as_str()) == selected).unwrap_or(0)
    }

    /// Applies a key.
    pub fn press(&mut self, key: TopKey, rows: &[ProjectRow]) {
        match key {
            TopKey::Up => self.move_by(rows, |at| at.saturating_sub(1)),
            TopKey::Down => self.move_by(rows, |at| at.saturating_add(1)),
            TopKey::PageUp => self.move_by(rows, |at| at.saturating_sub(10)),
            TopKey::PageDown => self.move_by(rows, |at| at.saturating_add(10)),
            TopKey::Enter if self.is_typing => self.is_typing = false,
            TopKey::Enter => self.open(rows),
            TopKey::Back if self.is_open => self.is_open = false,
            TopKey::Back => {
                self.is_typing = false;
                self.filter.clear();
            }
            TopKey::Erase if self.is_typing => drop(self.filter.pop()),
            TopKey::Erase => {}
            TopKey::Char(letter) if self.is_typing => self.filter.push(letter),
            TopKey::Char('q') => self.is_over = true,
            TopKey::Char('s') => self.order = self.order.next(),
            TopKey::Char('/') => self.is_typing = true,
            TopKey::Char('j') => self.press(TopKey::Down, rows),
            TopKey::Char('k') => self.press(TopKey::Up, rows),
            TopKey::Char(_) => {}
        }
    }

    fn move_by(&mut self, rows: &[ProjectRow], to: impl Fn(usize) -> usize) {
        let shown = self.shown(rows);
        let at = to(self.position(&shown)).min(shown.len().saturating_sub(1));
        self.selected = shown.get(at).map(|it| it.directory.clone());
    }

    fn open(&mut self, rows: &[ProjectRow]) {
        self.move_by(rows, |at| at);
        self.is_open = self.selected.is_some();
    }

    /// Draws the screen.
    pub fn draw(&self, frame: &mut Frame<'_>, content: TopContent<'_>) {
        let parts = [Constraint::Length(1), Constraint::Min(3), Constraint::Length(1)];
        let [head, middle, foot] = Layout::vertical(parts).areas(frame.area());
        frame.render_widget(summary(content), head);
        let shown = self.shown(content.rows);
        match shown.get(self.position(&shown)).filter(|_| self.is_open) {
            Some(row) => frame.render_widget(details(row, content.now), middle),
            None => self.table(frame, middle, &shown, content),
        }
        frame.render_widget(self.keys(), foot);
    }

    fn table(
        &self,
        frame: &mut Frame<'_>,
        area: Rect,
        shown: &[&ProjectRow],
        content: TopContent<'_>,
    ) {
        let columns = columns_in(area.width);
        let head = Row::new(columns.iter().map(|it| it.heading));
        let head = head.style(Style::new().add_modifier(Modifier::BOLD));
        let all: Vec<&str> = content.rows.iter().map(|it| it.directory.as_str()).collect();
        let rows = shown.iter().map(|row| {
            let place = RowPlace { row, directories: &all, now: content.now };
            Row::new(columns.iter().map(|it| (it.cell)(&place)))
        });
        let widths = columns.iter().map(|it| match it.width {
            0 => Constraint::Fill(1),
            width => Constraint::Length(width),
        });
        let table = Table::new(rows, widths)
            .header(head)
            .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        let mut state = TableState::new().with_selected(Some(self.position(shown)));
        frame.render_stateful_widget(table, area, &mut state);
    }

    fn keys(&self) -> Paragraph<'_> {
        let text = match (self.is_typing, self.is_open) {
            (true, _) => format!("filter: {}_   Enter: keep  Esc: remove", self.filter),
            (false, true) => "Esc: back  ↑↓: next project  q: quit".to_owned(),
            (false, false) => {
                let filter = match self.filter.as_str() {
                    "" => String::new(),
                    filter => format!("  filter: {filter}"),
                };
                let order = self.order.name();
                format!("↑↓: select  Enter: open  s: sort ({order})  /: filter  q: quit{filter}")
            }
        };
        Paragraph::new(text).style(Style::new().add_modifier(Modifier::DIM))
    }
}

const fn color(color: TextColor) -> Color {
    match color {
        TextColor::Red => Color::Red,
        TextColor::Yellow => Color::Yellow,
        TextColor::Green => Color::Green,
        TextColor::Plain | TextColor::Bold | TextColor::Dim => Color::Reset,
    }
}

fn summary(content: TopContent<'_>) -> Line<'_> {
    let mut spans = vec![Span::raw(format!("{} projects", content.rows.len()))];
    for wanted in [Urgency::Human, Urgency::Failed, Urgency::Look, Urgency::Working] {
        let count = content.rows.iter().filter(|it| it.urgency() == wanted).count();
        let (word, paint) = wanted.cell();
        if count > 0 {
            spans.push(Span::raw("  "));
            spans.push(Span::styled(format!("{count} {word}"), color(paint)));
        }
    }
    if !content.notice.is_empty() {
        spans.push(Span::styled(format!("  {}", content.notice), Color::Yellow));
    }
    Line::from(spans)
}

/// A project in the table.
struct RowPlace<'r> {
    row: &'r ProjectRow,
    directories: &'r [&'r str],
    now: Timestamp,
}

/// A column of the table.
struct TopColumn {
    heading: &'static str,
    /// Characters. 0: what is left.
    width: u16,
    /// Of the columns that do not fit, the highest number is left out first. The details of a project have all.
    rank: u8,
    cell: fn(&RowPlace<'_>) -> Cell<'static>,
}

/// Characters of the name of a project, before a column is left out.
const NAME_WIDTH_MIN: u16 = 16;

static COLUMNS: [TopColumn; 9] = [
    TopColumn {
        heading: "project",
        width: 0,
        rank: 0,
        cell: |it| Cell::from(short_name(&it.row.directory, it.directories)),
    },
    TopColumn {
        heading: "state",
        width: 9,
        rank: 0,
        cell: |it| {
            let (word, paint) = it.row.urgency().cell();
            Cell::from(Span::styled(word, color(paint)))
        },
    },
    TopColumn {
        heading: "run",
        width: 12,
        rank: 1,
        cell: |it| text_cell(it.row.run.as_ref().map(|it| it.progress.as_str().to_owned())),
    },
    TopColumn {
        heading: "last stop",
        width: 9,
        rank: 4,
        cell: |it| text_cell(it.row.last_stop.as_ref().map(|it| it.outcome.as_str().to_owned())),
    },
    TopColumn {
        heading: "blocked",
        width: 8,
        rank: 3,
        cell: |it| Cell::from(format!("{}+{}", it.row.blocked_stops, it.row.blocked_calls)),
    },
    TopColumn {
        heading: "released",
        width: 8,
        rank: 5,
        cell: |it| Cell::from(it.row.released_stops.to_string()),
    },
    TopColumn {
        heading: "context",
        width: 7,
        rank: 6,
        cell: |it| text_cell(it.row.context_percent.map(|it| format!("{it}%"))),
    },
    TopColumn {
        heading: "USD",
        width: 8,
        rank: 2,
        cell: |it| text_cell(it.row.cost().map(TurnCost::text)),
    },
    TopColumn {
        heading: "age",
        width: 5,
        rank: 2,
        cell: |place| text_cell(place.row.last_activity.map(|it| age(it, place.now))),
    },
];

/// Returns the columns that fit beside the name of a project.
fn columns_in(width: u16) -> Vec<&'static TopColumn> {
    let mut columns: Vec<&TopColumn> = COLUMNS.iter().collect();
    let needed = |columns: &[&TopColumn]| {
        let widths = columns.iter().skip(1).map(|it| it.width.saturating_add(1));
        widths.fold(NAME_WIDTH_MIN, u16::saturating_add)
    };
    while needed(&columns) > width {
        let last = columns.iter().map(|it| it.rank).max().filter(|it| *it > 0);
        let Some(last) = last else { break };
        columns.retain(|it| it.rank != last);
    }
    columns
}

fn text_cell(text: Option<String>) -> Cell<'static> {
    Cell::from(text.unwrap_or_else(|| "–".to_owned()))
}

/// Returns all that is known about one project.
fn details<'a>(row: &ProjectRow, now: Timestamp) -> Paragraph<'a> {
    let (word, paint) = row.urgency().cell();
    let mut lines = vec![
        Line::styled(row.directory.clone(), Style::new().add_modifier(Modifier::BOLD)),
        Line::styled(word, color(paint)),
        Line::raw(""),
    ];
    let details = row.details(CommandScope::Anywhere).into_iter();
    lines.extend(details.map(|(paint, text)| Line::styled(shown(&text), color(paint))));
    if let Some(run) = &row.run {
        lines.push(Line::raw(format!(
            "run {}: {}, {} turns, {} tokens, {}: {}",
            run.id,
            run.progress.as_str(),
            run.turns,
            run.tokens,
            run.cost().text_with_unit(),
            shown(&run.goal)
        )));
    }
    if let Some(stop) = &row.last_stop {
        let ago = stop.at.map_or_else(String::new, |at| format!(", {} ago", age(at, now)));
        lines.push(Line::raw(format!(
            "last stop of session {}: {}{ago}",
            stop.session_id,
            stop.outcome.as_str()
        )));
    }
    lines.push(Line::raw(format!(
        "blocked: {} stops, {} tool calls; released: {} stops; only observed: {} decisions",
        row.blocked_stops, row.blocked_calls, row.released_stops, row.observed
    )));
    Paragraph::new(lines).wrap(Wrap { trim: false })
}

/// A text on one line, without control characters.
fn shown(text: &str) -> String {
    text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect()
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::overview::{WaitingItem, WaitingKind};

    fn rows() -> Vec<ProjectRow> {
        let row = |directory: &str, blocked_stops, cost: f64| ProjectRow {
            directory: directory.to_owned(),
            blocked_stops,
            session_cost_usd: Some(cost),
            last_activity: Some(Timestamp::from_millis(0)),
            ..ProjectRow::default()
        };
        let text = "may I\u{1b}[2J deploy?";
        let asked = ProjectRow {
            waiting: vec![WaitingItem::new(WaitingKind::Question, "q", "", text)],
            context_percent: Some(71),
            ..row("/w/billing", 1, 2.0)
        };
        vec![asked, row("/w/api", 9, 1.0), row("/w/docs", 0, 5.0)]
    }

    fn drawn(screen: &TopScreen, width: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, 8)).unwrap();
        let (rows, now) = (rows(), Timestamp::from_millis(60_000));
        terminal.draw(|it| screen.draw(it, TopContent { rows: &rows, notice: "", now })).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| {
            let cells = (0..buffer.area.width).map(|x| buffer[(x, y)].symbol());
            cells.collect::<String>().trim_end().to_owned()
        };
        (0..buffer.area.height).map(line).collect::<Vec<_>>().join("\n")
    }

    fn press(screen: &mut TopScreen, keys: &[TopKey]) {
        keys.iter().for_each(|it| screen.press(*it, &rows()));
    }

    fn names(screen: &TopScreen) -> Vec<String> {
        screen.shown(&rows()).iter().map(|it| it.directory.replace("/w/", "")).collect()
    }

    #[test]
    fn the_screen_shows_the_rows() {
        insta::assert_snapshot!(drawn(&TopScreen::default(), 90), @r"
        3 projects  1 needs you
        project          state     run          last stop blocked  released context USD      age
        billing          needs you –            –         1+0      0        71%     2.00     1m
        api              quiet     –            –         9+0      0        –       1.00     1m
        docs             quiet     –            –         0+0      0        –       5.00     1m


        ↑↓: select  Enter: open  s: sort (need)  /: filter  q: quit
        ");
    }

    #[test]
    fn a_narrow_screen_keeps_the_names() {
        insta::assert_snapshot!(drawn(&TopScreen::default(), 80), @r"
        3 projects  1 needs you
        project                 state     run          last stop blocked  USD      age
        billing                 needs you –            –         1+0      2.00     1m
        api                     quiet     –            –         9+0      1.00     1m
        docs                    quiet     –            –         0+0      5.00     1m


        ↑↓: select  Enter: open  s: sort (need)  /: filter  q: quit
        ");
        insta::assert_snapshot!(drawn(&TopScreen::default(), 50), @r"
        3 projects  1 needs you
        project                     state     run
        billing                     needs you –
        api                         quiet     –
        docs                        quiet     –


        ↑↓: select  Enter: open  s: sort (need)  /: filter
        ");
    }

    #[test]
    fn keys_sort_filter_and_open() {
        let mut screen = TopScreen::default();
        let orders = ["billing", "billing", "docs", "api", "api", "billing"];
        for first in orders {
            assert_eq!(names(&screen)[0], first, "{:?}", screen.order);
            press(&mut screen, &[TopKey::Char('s')]);
        }
        let mut screen = TopScreen::default();
        press(&mut screen, &[TopKey::Char('/'), TopKey::Char('q'), TopKey::Erase]);
        assert!(!screen.is_over(), "a letter of a filter is not a command");
        press(&mut screen, &[TopKey::Char('d'), TopKey::Char('o'), TopKey::Enter]);
        assert_eq!(names(&screen), ["docs"]);
        press(&mut screen, &[TopKey::Back, TopKey::Down, TopKey::Down, TopKey::Down]);
        assert_eq!(screen.selected.as_deref(), Some("/w/docs"), "the last row is the last");
        press(&mut screen, &[TopKey::PageUp, TopKey::Enter]);
        let open = drawn(&screen, 90);
        assert!(
            open.contains("/w/billing") && open.contains("question: may I [2J deploy?"),
            "{open}"
        );
        press(&mut screen, &[TopKey::Back, TopKey::Char('q')]);
        assert!(!screen.is_open && screen.is_over());
    }
}
