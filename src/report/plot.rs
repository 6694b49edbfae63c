//! Plots as SVG in a page. Colors are classes of the style sheet, because the content policy of the dashboard forbids
//! styles in the page. Each plot has a description, and its page has a table with the same numbers.

use maud::{Markup, html};

/// Size of a plot in units of its view box.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 180.0;
/// Space around the area of the values, for labels and marks.
const LEFT: f64 = 56.0;
const RIGHT: f64 = 8.0;
const BOTTOM: f64 = 24.0;
const TOP: f64 = 12.0;
/// Horizontal lines besides the axis.
const LINES: u32 = 4;
/// Height of a lane, width of the names beside lanes, and characters of a name.
const LANE: f64 = 22.0;
const NAMES: f64 = 120.0;
const NAME_CHARS_MAX: usize = 16;
/// Distances between horizontal lines, times a power of ten, so that labels are exact.
const STEPS: [f64; 5] = [1.0, 2.0, 2.5, 5.0, 10.0];

/// Parts of a stacked bar: class and number.
pub type BarParts = Vec<(&'static str, f64)>;

/// A bar over a moment.
pub struct Bar {
    /// Position, from 0 at the left to 1.
    pub at: f64,
    /// Parts from the bottom up.
    pub parts: BarParts,
    /// What a reader sees who points at it.
    pub title: String,
}

/// A line through points, each from 0 to 1 in x, and a value in y.
pub struct PlotLine {
    pub class: &'static str,
    pub points: Vec<(f64, f64)>,
}

/// A mark at the upper edge.
pub struct PlotMark {
    pub class: &'static str,
    pub at: f64,
    pub title: String,
}

/// A period, drawn in a row of its own.
pub struct Lane {
    pub name: String,
    pub class: &'static str,
    /// Beginning and end, from 0 at the left to 1.
    pub from: f64,
    pub to: f64,
    /// What a reader sees who points at it.
    pub title: String,
}

/// Names at the ends of the horizontal axis.
pub struct Axis {
    pub begin: String,
    pub end: String,
    /// Unit of the vertical axis.
    pub unit: &'static str,
    /// Value at the upper end of the vertical axis, if it does not depend on the values.
    pub most: Option<f64>,
}

fn x(at: f64) -> f64 {
    LEFT + at.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
}

fn y(value: f64, most: f64) -> f64 {
    let share = if most > 0.0 { (value / most).clamp(0.0, 1.0) } else { 0.0 };
    TOP + (1.0 - share) * (HEIGHT - TOP - BOTTOM)
}

/// Returns the value of the upper line: the smallest one above all values with exact labels at all lines. Zero if all values
/// are zero, so that the plot has only its axis.
fn upper(most: f64) -> f64 {
    if most <= 0.0 {
        return 0.0;
    }
    let lines = f64::from(LINES);
    let least = (most / lines).max(f64::MIN_POSITIVE);
    let power = 10_f64.powf(least.log10().floor());
    let step = STEPS.iter().map(|it| it * power).find(|it| *it >= least * (1.0 - 1e-9));
    step.unwrap_or(least) * lines
}

/// Returns a value with at most four digits and its unit of thousands or millions.
fn number(value: f64) -> String {
    let (value, unit) = match value {
        it if it >= 1e6 => (it / 1e6, "M"),
        it if it >= 1e4 => (it / 1e3, "k"),
        it => (it, ""),
    };
    let digits = match value {
        it if it >= 100.0 => 0,
        it if it >= 1.0 => 2,
        it if it >= 0.01 => 4,
        _ => 6,
    };
    let text = format!("{value:.digits$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

fn frame(description: &str, most: f64, axis: &Axis, content: &Markup) -> Markup {
    let lines = (1..=LINES).filter(|_| most > 0.0);
    let lines = lines.map(|it| most * f64::from(it) / f64::from(LINES));
    html! {
        svg.plot viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(description) {
            title { (description) }
            @for value in lines {
                line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(y(value, most)) y2=(y(value, most)) {}
                text.label x=(LEFT - 6.0) y=(y(value, most) + 4.0) text-anchor="end" { (number(value)) }
            }
            line.axis x1=(LEFT) x2=(WIDTH - RIGHT) y1=(HEIGHT - BOTTOM) y2=(HEIGHT - BOTTOM) {}
            text.label x=(LEFT) y=(HEIGHT - 6.0) { (axis.begin) }
            text.label x=(WIDTH - RIGHT) y=(HEIGHT - 6.0) text-anchor="end" { (axis.end) }
            text.label x=(LEFT - 6.0) y=(HEIGHT - BOTTOM) text-anchor="end" { (axis.unit) }
            (content)
        }
    }
}

/// Returns stacked bars; `count` is the number of bars that fit side by side.
#[must_use]
pub fn bars(description: &str, bars: &[Bar], count: u32, axis: &Axis) -> Markup {
    let sum = |it: &Bar| it.parts.iter().map(|(_, value)| value).sum::<f64>();
    // Bars count, so the lines are whole numbers.
    let most = bars.iter().map(sum).fold(f64::from(LINES), f64::max);
    let most =
        axis.most.unwrap_or_else(|| (upper(most) / f64::from(LINES)).ceil() * f64::from(LINES));
    let width = ((WIDTH - LEFT - RIGHT) / f64::from(count.max(1)) - 1.0).max(1.0);
    let content = html! {
        @for bar in bars {
            g {
                title { (bar.title) }
                @for (class, low, high) in stacked(&bar.parts) {
                    rect class=(class) x=(x(bar.at)) width=(width) y=(y(high, most))
                        height=(y(low, most) - y(high, most)) {}
                }
            }
        }
    };
    frame(description, most, axis, &content)
}

fn stacked(parts: &BarParts) -> Vec<(&'static str, f64, f64)> {
    let mut low = 0.0;
    let part = |(class, value): &(&'static str, f64)| {
        let from = low;
        low += value;
        (*class, from, low)
    };
    parts.iter().map(part).filter(|(_, low, high)| high > low).collect()
}

/// Returns lines of one unit, with marks at the upper edge.
#[must_use]
pub fn lines(description: &str, lines: &[PlotLine], marks: &[PlotMark], axis: &Axis) -> Markup {
    let values = lines.iter().flat_map(|it| &it.points).map(|(_, value)| *value);
    let most = axis.most.unwrap_or_else(|| upper(values.fold(0.0, f64::max)));
    let content = html! {
        @for line in lines {
            polyline class=(format!("line {}", line.class)) points=(points(line, most)) {}
            @for (at, value) in &line.points {
                circle class=(line.class) cx=(x(*at)) cy=(y(*value, most)) r="2.5" {}
            }
        }
        @for mark in marks {
            g { title { (mark.title) }
                rect class=(mark.class) x=(x(mark.at) - 1.5) width="3" y="2" height="10" {}
            }
        }
    };
    frame(description, most, axis, &content)
}

/// Returns lanes, one above the other.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "heights of a plot")]
pub fn lanes(description: &str, lanes: &[Lane], axis: &Axis) -> Markup {
    let bottom = lanes.len() as f64 * LANE + TOP;
    let x = |at: f64| NAMES + at.clamp(0.0, 1.0) * (WIDTH - NAMES - RIGHT);
    let height = bottom + BOTTOM;
    html! {
        svg class="plot lanes" viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-label=(description) {
            title { (description) }
            line.axis x1=(NAMES) x2=(WIDTH - RIGHT) y1=(bottom) y2=(bottom) {}
            text.label x=(NAMES) y=(height - 6.0) { (axis.begin) }
            text.label x=(WIDTH - RIGHT) y=(height - 6.0) text-anchor="end" { (axis.end) }
            @for (number, lane) in lanes.iter().enumerate() {
                @let top = number as f64 * LANE + TOP;
                text.label x=(NAMES - 6.0) y=(top + 12.0) text-anchor="end" {
                    (lane.name.chars().take(NAME_CHARS_MAX).collect::<String>())
                }
                rect class=(lane.class) x=(x(lane.from)) width=((x(lane.to) - x(lane.from)).max(3.0)) y=(top)
                    height=(LANE - 6.0) { title { (lane.title) } }
            }
        }
    }
}

fn points(line: &PlotLine, most: f64) -> String {
    let text = |(at, value): &(f64, f64)| format!("{:.1},{:.1}", x(*at), y(*value, most));
    line.points.iter().map(text).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_bar_stand_on_each_other() {
        let parts = vec![("a", 1.0), ("b", 2.0)];
        assert_eq!(stacked(&parts), [("a", 0.0, 1.0), ("b", 1.0, 3.0)]);
        let axis = Axis { begin: "<b>".to_owned(), end: String::new(), unit: "", most: None };
        let bar = Bar { at: 0.5, parts, title: "t".to_owned() };
        let drawn = bars("d", &[bar], 10, &axis).into_string();
        assert!(drawn.contains("&lt;b&gt;") && drawn.matches("<rect").count() == 2, "{drawn}");
        assert!(!drawn.contains("style="), "the content policy forbids styles: {drawn}");
    }

    #[test]
    fn labels_are_the_values_of_their_lines() {
        let all = [0.5, 3.0, 1234.0, 25_000.0, 2_500_000.0, 0.005, 12_500.0, 7.5, 0.0].map(number);
        assert_eq!(all, ["0.5", "3", "1234", "25k", "2.5M", "0.005", "12.5k", "7.5", "0"]);
        for (most, expected) in [
            (3.0, 4.0),
            (4.0, 4.0),
            (4.1, 8.0),
            (9.0, 10.0),
            (100.0, 100.0),
            (9_000.0, 10_000.0),
            (0.0071, 0.008),
            (1.5, 2.0),
        ] {
            let line = upper(most);
            assert!((line - expected).abs() < 1e-9, "{most}: {line}");
        }
        let counted = |parts: BarParts| {
            let bar = Bar { at: 0.0, parts, title: String::new() };
            let axis = Axis { begin: String::new(), end: String::new(), unit: "", most: None };
            bars("d", &[bar], 10, &axis).into_string()
        };
        assert!(counted(vec![("a", 9.0)]).contains(">12<"), "no line is at half a decision");
    }

    #[test]
    fn the_last_bar_ends_at_the_end_of_the_axis() {
        let axis = Axis { begin: String::new(), end: String::new(), unit: "", most: None };
        let bar = |at: f64| Bar { at, parts: vec![("a", 1.0)], title: String::new() };
        let drawn = bars("d", &[bar(0.0), bar(0.9)], 10, &axis).into_string();
        assert!(drawn.contains("x=\"56\" width=\"64.6\""), "{drawn}");
        assert!(drawn.contains("x=\"646.4\" width=\"64.6\""), "{drawn}");
        let percent = Axis { most: Some(100.0), ..axis };
        let line = PlotLine { class: "a", points: vec![(0.0, 20.0), (1.0, 50.0)] };
        let drawn = lines("d", &[line], &[], &percent).into_string();
        assert!(drawn.contains("712.0,84.0"), "half of the height: {drawn}");
        let empty = PlotLine { class: "a", points: vec![(0.0, 0.0), (1.0, 0.0)] };
        let axis = Axis { most: None, ..percent };
        let drawn = lines("d", &[empty], &[], &axis).into_string();
        assert!(!drawn.contains("grid") && drawn.contains("712.0,156.0"), "only the axis: {drawn}");
    }
}
