//! Plots as SVG in the page. Colors are classes of the style sheet, because the content policy forbids styles in the
//! page. Each plot has a description, and its page has a table with the same numbers.

use maud::{Markup, html};

/// Size of a plot in units of its view box.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 180.0;
/// Space for labels.
const LEFT: f64 = 56.0;
const BOTTOM: f64 = 24.0;
const TOP: f64 = 12.0;
/// Horizontal lines besides the axis.
const LINES: u32 = 3;

/// Parts of a stacked bar: class and number.
pub(super) type BarParts = Vec<(&'static str, f64)>;

/// A bar over a moment.
pub(super) struct Bar {
    /// Position, from 0 at the left to 1.
    pub(super) at: f64,
    /// Parts from the bottom up.
    pub(super) parts: BarParts,
    /// What a reader sees who points at it.
    pub(super) title: String,
}

/// A line through points, each from 0 to 1 in x, and a value in y.
pub(super) struct PlotLine {
    pub(super) class: &'static str,
    pub(super) points: Vec<(f64, f64)>,
}

/// A mark at the upper edge.
pub(super) struct PlotMark {
    pub(super) class: &'static str,
    pub(super) at: f64,
    pub(super) title: String,
}

/// Names at the ends of the horizontal axis.
pub(super) struct Axis {
    pub(super) begin: String,
    pub(super) end: String,
    /// Unit of the vertical axis.
    pub(super) unit: &'static str,
}

fn x(at: f64) -> f64 {
    LEFT + at.clamp(0.0, 1.0) * (WIDTH - LEFT - 8.0)
}

fn y(value: f64, most: f64) -> f64 {
    let share = if most > 0.0 { (value / most).clamp(0.0, 1.0) } else { 0.0 };
    TOP + (1.0 - share) * (HEIGHT - TOP - BOTTOM)
}

fn number(value: f64) -> String {
    match value {
        it if it >= 1e6 => format!("{:.1}M", it / 1e6),
        it if it >= 1e4 => format!("{:.0}k", it / 1e3),
        it if it >= 10.0 || it == it.trunc() => format!("{it:.0}"),
        it => format!("{it:.2}"),
    }
}

fn frame(description: &str, most: f64, axis: &Axis, content: &Markup) -> Markup {
    let lines = (1..=LINES).map(|it| most * f64::from(it) / f64::from(LINES));
    html! {
        svg.plot viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(description) {
            title { (description) }
            @for value in lines {
                line.grid x1=(LEFT) x2=(WIDTH) y1=(y(value, most)) y2=(y(value, most)) {}
                text.label x=(LEFT - 6.0) y=(y(value, most) + 4.0) text-anchor="end" { (number(value)) }
            }
            line.axis x1=(LEFT) x2=(WIDTH) y1=(HEIGHT - BOTTOM) y2=(HEIGHT - BOTTOM) {}
            text.label x=(LEFT) y=(HEIGHT - 6.0) { (axis.begin) }
            text.label x=(WIDTH) y=(HEIGHT - 6.0) text-anchor="end" { (axis.end) }
            text.label x=(LEFT - 6.0) y=(HEIGHT - BOTTOM) text-anchor="end" { (axis.unit) }
            (content)
        }
    }
}

/// Returns stacked bars; `count` is the number of bars that fit side by side.
pub(super) fn bars(description: &str, bars: &[Bar], count: u32, axis: &Axis) -> Markup {
    let sum = |it: &Bar| it.parts.iter().map(|(_, value)| value).sum::<f64>();
    // Whole numbers at the lines.
    let lines = f64::from(LINES);
    let most = (bars.iter().map(sum).fold(1.0, f64::max) / lines).ceil() * lines;
    let width = ((WIDTH - LEFT) / f64::from(count.max(1)) - 1.0).max(1.0);
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
    parts.iter().map(part).collect()
}

/// Returns lines of one unit, with marks at the upper edge.
pub(super) fn lines(
    description: &str,
    lines: &[PlotLine],
    marks: &[PlotMark],
    axis: &Axis,
) -> Markup {
    let values = lines.iter().flat_map(|it| &it.points).map(|(_, value)| *value);
    let most = values.fold(f64::MIN_POSITIVE, f64::max);
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
        let axis = Axis { begin: "<b>".to_owned(), end: String::new(), unit: "" };
        let bar = Bar { at: 0.5, parts, title: "t".to_owned() };
        let drawn = bars("d", &[bar], 10, &axis).into_string();
        assert!(drawn.contains("&lt;b&gt;") && drawn.matches("<rect").count() == 2, "{drawn}");
        assert!(!drawn.contains("style="), "the content policy forbids styles: {drawn}");
    }

    #[test]
    fn values_have_few_digits() {
        let all = [0.5, 3.0, 1234.0, 25_000.0, 2_500_000.0].map(number);
        assert_eq!(all, ["0.50", "3", "1234", "25k", "2.5M"]);
    }
}
