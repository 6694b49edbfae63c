//! Plots of the morning report, as inline SVG. Colors are classes of the page, so that they follow its scheme.

use super::super::xml::escaped;
use policyd_yaml::time::Timestamp;

/// Size of a plot, in units of its view box.
const WIDTH: i64 = 720;
/// Width of the names at the left.
const NAMES: i64 = 120;
/// Height of the area of bars.
const HEIGHT: i64 = 120;
/// Height of a lane.
const LANE: i64 = 22;
/// Height of the labels below.
const LABELS: i64 = 20;
/// Characters of a name at the left.
const NAME_CHARS_MAX: usize = 16;

/// A plot.
pub(super) enum Plot {
    Bars(Bars),
    Lanes(Lanes),
}

/// Two numbers over time, one above the other.
pub(super) struct Bars {
    /// Blocked and released decisions.
    pub(super) bars: Vec<[u64; 2]>,
    /// Labels of the time axis: start, middle, end.
    pub(super) ticks: [String; 3],
}

/// Runs over time, a lane each.
pub(super) struct Lanes {
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
    pub(super) lanes: Vec<Lane>,
    pub(super) ticks: [String; 3],
}

/// A run.
pub(super) struct Lane {
    pub(super) name: String,
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    /// Whether it is complete.
    pub(super) is_good: bool,
    /// What a pointer shows.
    pub(super) text: String,
}

impl Plot {
    /// Returns the plot as an SVG element.
    pub(super) fn svg(&self) -> String {
        match self {
            Self::Bars(it) => it.svg(),
            Self::Lanes(it) => it.svg(),
        }
    }
}

impl Bars {
    fn svg(&self) -> String {
        let height = |it: &[u64; 2]| it.iter().fold(0_u64, |sum, it| sum.saturating_add(*it));
        let most = self.bars.iter().map(height).max().unwrap_or(0).max(1);
        let scaled = |number: u64| {
            let number = u128::from(number) * u128::from(HEIGHT.unsigned_abs());
            i64::try_from(number.checked_div(u128::from(most)).unwrap_or(0)).unwrap_or(HEIGHT)
        };
        let count = i64::try_from(self.bars.len()).unwrap_or(1).max(1);
        let step = (WIDTH - NAMES).checked_div(count).unwrap_or(1);
        let mut inside = axis(HEIGHT + 10, &self.ticks);
        inside.push_str(&text(NAMES - 8, 16, "end", &most.to_string()));
        inside.push_str(&text(NAMES - 8, HEIGHT + 10, "end", "0"));
        for (number, bar) in (0_i64..).zip(&self.bars) {
            let [blocked, released] = *bar;
            let x = NAMES + number * step + 1;
            let (low, high) = (scaled(blocked), scaled(released));
            let rect = |class: &str, y: i64, height: i64| {
                let width = step - 2;
                format!(
                    "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" \
                     height=\"{height}\" rx=\"1\"/>"
                )
            };
            if blocked + released == 0 {
                continue;
            }
            // Two units between the parts keep them apart without color.
            let top = HEIGHT + 10 - low;
            let gap = if low > 0 && high > 2 { 2 } else { 0 };
            inside.push_str(&format!(
                "<g><title>{blocked} blocked, {released} released</title>{}{}</g>",
                rect("blocked", top, low),
                rect("released", top - high, high - gap)
            ));
        }
        let legend = "<p class=\"legend\"><span class=\"key blocked\"></span>blocked \
                      <span class=\"key released\"></span>released by the block limit</p>\n";
        let label = "Blocked and released decisions over time";
        format!("{legend}{}", element(HEIGHT + 10 + LABELS, label, &inside))
    }
}

impl Lanes {
    fn svg(&self) -> String {
        let length = self.end.millis().saturating_sub(self.start.millis()).max(1);
        let x = |at: Timestamp| {
            let since = at.millis().saturating_sub(self.start.millis()).clamp(0, length);
            NAMES + since.saturating_mul(WIDTH - NAMES).checked_div(length).unwrap_or(0)
        };
        let count = i64::try_from(self.lanes.len()).unwrap_or(0);
        let height = count * LANE + 4;
        let mut inside = axis(height, &self.ticks);
        for (number, lane) in (0_i64..).zip(&self.lanes) {
            let (from, to, top) = (x(lane.from), x(lane.to), number * LANE + 4);
            let name: String = lane.name.chars().take(NAME_CHARS_MAX).collect();
            inside.push_str(&text(NAMES - 8, top + 12, "end", &name));
            let class = if lane.is_good { "good" } else { "bad" };
            inside.push_str(&format!(
                "<rect class=\"{class}\" x=\"{from}\" y=\"{top}\" width=\"{}\" height=\"{}\" \
                 rx=\"2\"><title>{}</title></rect>",
                (to - from).max(3),
                LANE - 6,
                escaped(&lane.text)
            ));
        }
        let legend = "<p class=\"legend\"><span class=\"key good\"></span>complete \
                      <span class=\"key bad\"></span>ended otherwise</p>\n";
        format!("{legend}{}", element(height + LABELS, "Runs over time", &inside))
    }
}

fn element(height: i64, label: &str, inside: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{label}\">{inside}</svg>\n"
    )
}

/// The line below a plot, with the labels of the time.
fn axis(y: i64, ticks: &[String; 3]) -> String {
    let [start, middle, end] = ticks;
    let line =
        format!("<line class=\"axis\" x1=\"{NAMES}\" y1=\"{y}\" x2=\"{WIDTH}\" y2=\"{y}\"/>");
    [
        line,
        text(NAMES, y + 15, "start", start),
        text((NAMES + WIDTH).checked_div(2).unwrap_or(NAMES), y + 15, "middle", middle),
        text(WIDTH, y + 15, "end", end),
    ]
    .concat()
}

fn text(x: i64, y: i64, anchor: &str, text: &str) -> String {
    format!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{}</text>", escaped(text))
}
