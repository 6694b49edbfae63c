//! White space of expressions. Only blanks within a line change, so no token, comment, or line of a scalar is lost.

use std::ops::Range;

use super::view::PackView;
use policyd_fact_table::spacing::spacing_mistakes;
use policyd_lint::Subject;
use policyd_yaml::time::Timestamp;

/// Returns the changes that format the expressions of a file: bytes of the file, and the white space there.
#[must_use]
pub fn changes(view: &PackView, name: &str, now: Timestamp) -> Vec<(Range<usize>, &'static str)> {
    let subject = Subject::new(&view.pack, &view.reviewed, now);
    let sites = subject.sites.iter().filter(|it| it.node.span.source.name == name);
    let mut found: Vec<(Range<usize>, &'static str)> = sites
        .flat_map(|site| {
            spacing_mistakes(site.text).into_iter().filter_map(|it| {
                let span = site.span(&it.range);
                // A line break of a plain or folded scalar is a blank in its text.
                let is_same = span.text() == site.part(&it.range);
                is_same.then_some((span.start..span.end, it.wanted))
            })
        })
        .collect();
    found.sort_by_key(|(range, _)| (range.start, range.end));
    found.dedup();
    found
}
