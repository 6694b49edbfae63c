//! Paragraphs and tables that fit the width of a terminal. A word is never broken: a word that is wider than its column
//! gets a line of its own.

use textwrap::{Options, WordSplitter};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::paint::{AnsiStyle, TextColor, visible_width};
use policyd_base::limits::ID_CHARS_MAX;

/// Columns below which no output is wrapped.
const COLUMNS_MIN: usize = 40;
/// Columns below which the last cell of a row moves below the other cells.
const LAST_CELL_MIN: usize = 24;
/// Spaces between two columns.
const GAP: usize = 2;
/// Columns of an example if the width of the output is unknown.
const CUT_COLUMNS: usize = 100;

/// How the output is displayed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Screen {
    /// Width in columns. `None`: unknown, so that no line is wrapped, as for a pipe.
    pub columns: Option<usize>,
    /// Whether the reader sees colors.
    pub color: bool,
}

impl Screen {
    /// Returns the colors of the output.
    #[must_use]
    pub const fn style(self) -> AnsiStyle {
        AnsiStyle::new(self.color)
    }

    /// Returns the width of a line.
    #[must_use]
    pub fn width(self) -> usize {
        self.columns.map_or(usize::MAX, |it| it.max(COLUMNS_MIN))
    }

    /// Cuts a text that must stay on one line behind `used` columns.
    #[must_use]
    pub fn cut(self, text: &str, used: usize) -> String {
        let columns = self.columns.map_or(CUT_COLUMNS, |it| it.max(COLUMNS_MIN));
        cut_at_word(text, columns.saturating_sub(used))
    }

    /// Adds a paragraph: the first line begins with `first`, the other lines are indented by its width.
    pub fn paragraph(self, out: &mut String, first: &str, text: &str) {
        let indent = first.width();
        for (number, line) in wrap(text, self.width().saturating_sub(indent)).iter().enumerate() {
            let prefix = if number == 0 { first.to_owned() } else { " ".repeat(indent) };
            out.push_str(format!("{prefix}{line}").trim_end());
            out.push('\n');
        }
    }
}

/// Wraps a text at spaces. Line breaks of the text stay.
#[must_use]
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    if !text.contains('\n') && text.width() <= columns {
        return vec![text.to_owned()];
    }
    let options = Options::new(columns.min(usize::from(u16::MAX)))
        .break_words(false)
        .word_splitter(WordSplitter::NoHyphenation);
    textwrap::wrap(text, options).into_iter().map(|it| it.trim_end().to_owned()).collect()
}

/// Wraps each line that is wider than the screen. The other lines of a wrapped line begin below its last column, or
/// below its first word.
#[must_use]
pub fn wrap_lines(text: &str, screen: Screen) -> String {
    let width = screen.width();
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let content = line.trim_end_matches('\n');
        if visible_width(content) <= width {
            out.push_str(line);
        } else {
            wrap_line(&mut out, content, width);
        }
    }
    out
}

fn wrap_line(out: &mut String, line: &str, width: usize) {
    let indent = hanging_indent(line, width);
    let (mut current, mut columns) = (String::new(), 0_usize);
    for (number, word) in line.split(' ').enumerate() {
        let next = visible_width(word).saturating_add(1);
        if number > 0 && columns > indent && columns.saturating_add(next) > width {
            push_line(out, &current);
            current = " ".repeat(indent);
            columns = indent;
        } else if number > 0 {
            current.push(' ');
            columns = columns.saturating_add(1);
        }
        current.push_str(word);
        columns = columns.saturating_add(next).saturating_sub(1);
    }
    push_line(out, &current);
}

/// Returns the column behind the last gap in the first half of a line.
fn hanging_indent(line: &str, width: usize) -> usize {
    let lead = line.len().saturating_sub(line.trim_start().len());
    let mut indent = lead.saturating_add(GAP);
    for (at, _) in line.match_indices("  ") {
        let (before, after) = line.split_at(at);
        let spaces = after.len().saturating_sub(after.trim_start().len());
        let column = visible_width(before).saturating_add(spaces);
        if column.saturating_mul(2) <= width && at > lead {
            indent = column;
        }
    }
    indent
}

/// Returns the beginning of a text that is wider than `columns`, with a mark.
#[must_use]
pub(super) fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut left = columns.saturating_sub(1);
    let fits = |c: &char| {
        let width = c.width().unwrap_or(0);
        let room = left >= width;
        left = left.saturating_sub(width);
        room
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

/// Does the same at the end of a word, unless less than half of the text would be left.
fn cut_at_word(text: &str, columns: usize) -> String {
    let short = cut(text, columns);
    if short.len() == text.len() {
        return short;
    }
    let words = short.trim_end_matches('…');
    match words.rsplit_once(' ') {
        Some((whole, _)) if whole.width().saturating_mul(2) >= columns => {
            format!("{} …", whole.trim_end())
        }
        _ => short,
    }
}

/// Alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A cell of a table.
#[derive(Debug, Clone)]
pub struct TextCell {
    text: String,
    color: TextColor,
}

impl TextCell {
    /// Creates a cell.
    #[must_use]
    pub fn new(text: impl Into<String>, color: TextColor) -> Self {
        Self { text: text.into(), color }
    }
}

impl<T: Into<String>> From<T> for TextCell {
    fn from(text: T) -> Self {
        Self::new(text, TextColor::Plain)
    }
}

/// A table whose columns are as wide as their cells. The last column is wrapped, or moves below the other cells if it
/// would be too narrow.
#[derive(Debug)]
pub struct TextTable {
    columns: Vec<Align>,
    indent: usize,
    rows: Vec<Vec<TextCell>>,
}

impl TextTable {
    /// Creates an empty table.
    #[must_use]
    pub fn new(indent: usize, columns: &[Align]) -> Self {
        Self { columns: columns.to_vec(), indent, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<TextCell>) {
        self.rows.push(cells);
    }

    /// Returns the width of the widest cell of each column. A name can be longer than the limit of ids.
    fn widths(&self) -> Vec<usize> {
        let widest = |column: usize| {
            let cells = self.rows.iter().filter_map(|it| it.get(column));
            cells.map(|it| it.text.width()).max().unwrap_or(0).min(ID_CHARS_MAX)
        };
        (0..self.columns.len()).map(widest).collect()
    }

    /// Returns the width of the table if no cell is wrapped.
    #[must_use]
    pub fn width(&self) -> usize {
        let gaps = self.columns.len().saturating_sub(1).saturating_mul(GAP);
        self.widths().iter().sum::<usize>().saturating_add(gaps).saturating_add(self.indent)
    }

    /// Returns the lines of the table.
    #[must_use]
    pub fn render(&self, screen: Screen) -> String {
        let widths = self.widths();
        let last = self.columns.len().saturating_sub(1);
        let before: usize = widths.iter().take(last).map(|it| it.saturating_add(GAP)).sum();
        let before = before.saturating_add(self.indent);
        let room = screen.width().saturating_sub(before);
        let is_below = room < LAST_CELL_MIN && widths.last().is_some_and(|it| *it > room);
        let indent = if is_below { self.indent.saturating_add(2 * GAP) } else { before };
        let style = screen.style();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = " ".repeat(self.indent);
            for ((cell, align), width) in row.iter().zip(&self.columns).zip(&widths).take(last) {
                let space = " ".repeat(width.saturating_sub(cell.text.width()));
                let text = style.paint(cell.color, &cell.text);
                line.push_str(&match align {
                    Align::Left => format!("{text}{space}"),
                    Align::Right => format!("{space}{text}"),
                });
                line.push_str(&" ".repeat(GAP));
            }
            if let Some(cell) = row.get(last) {
                let room = screen.width().saturating_sub(indent);
                let align = self.columns.last().copied().unwrap_or(Align::Left);
                let width = widths.last().copied().unwrap_or(0).min(room);
                for (number, text) in wrap(&cell.text, room).iter().enumerate() {
                    if number > 0 || (is_below && !text.is_empty()) {
                        push_line(&mut out, &line);
                        line = " ".repeat(indent);
                    }
                    if align == Align::Right {
                        line.push_str(&" ".repeat(width.saturating_sub(text.width())));
                    }
                    line.push_str(&style.paint(cell.color, text));
                }
            }
            push_line(&mut out, &line);
        }
        out
    }
}

fn push_line(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "deletes directories outside the project, or the whole project";

    fn screen(columns: usize) -> Screen {
        Screen { columns: Some(columns), color: false }
    }

    fn table() -> TextTable {
        let mut table = TextTable::new(2, &[Align::Left, Align::Right, Align::Left]);
        table.row(vec!["rm_recursive".into(), "7".into(), TEXT.into()]);
        table.row(vec!["rm".into(), "1,200".into(), "".into()]);
        table
    }

    #[test]
    fn a_table_wraps_its_last_column_at_words() {
        assert_eq!(
            table().render(screen(60)),
            "  rm_recursive      7  deletes directories outside the\n\
             \x20                      project, or the whole project\n\
             \x20 rm            1,200\n"
        );
        let wide = table().render(Screen::default());
        assert!(wide.starts_with(&format!("  rm_recursive      7  {TEXT}\n")), "{wide}");
    }

    #[test]
    fn a_narrow_table_has_its_last_column_below() {
        assert_eq!(
            table().render(screen(44)),
            "  rm_recursive      7\n\
             \x20     deletes directories outside the\n\
             \x20     project, or the whole project\n\
             \x20 rm            1,200\n"
        );
    }

    #[test]
    fn no_line_is_wider_and_no_word_is_broken() {
        for columns in COLUMNS_MIN..120 {
            let shown = table().render(screen(columns));
            assert!(shown.lines().all(|it| it.width() <= columns), "{columns}\n{shown}");
            let words = TEXT.split(' ');
            assert!(words.clone().all(|it| shown.split_whitespace().any(|word| word == it)));
        }
    }

    #[test]
    fn a_line_is_cut_at_a_word() {
        assert_eq!(screen(40).cut(TEXT, 4), "deletes directories outside the …");
        assert_eq!(screen(80).cut(TEXT, 4), TEXT);
        assert_eq!(screen(40).cut(&"x".repeat(60), 0), format!("{}…", "x".repeat(39)));
    }

    #[test]
    fn a_long_line_continues_below_its_last_column() {
        let red = AnsiStyle::new(true).red("block");
        let lines = format!("short\n  {red}  rm  {TEXT}\n");
        let plain = format!("short\n  block  rm  {TEXT}\n");
        let expected = "short\n  block  rm  deletes directories outside the\n             \
                        project, or the whole project\n";
        assert_eq!(wrap_lines(&plain, screen(50)), expected);
        assert_eq!(wrap_lines(&lines, screen(50)), expected.replacen("block", &red, 1));
        assert_eq!(wrap_lines(&plain, Screen::default()), plain);
    }

    #[test]
    fn a_paragraph_hangs_below_its_first_line() {
        let mut out = String::new();
        screen(40).paragraph(&mut out, "when  ", TEXT);
        assert_eq!(
            out,
            "when  deletes directories outside the\n      project, or the whole project\n"
        );
    }
}
