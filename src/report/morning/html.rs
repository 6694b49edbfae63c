//! The morning report as one HTML file: styles and plots are in it, and it has no scripts.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{ReportPart, ReportSection, ReportTable};
use crate::html::{STYLE, table};
use policyd_record::table::Align;

/// Nothing is loaded from elsewhere.
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// Returns the page.
pub(super) fn page(title: &str, sections: &[ReportSection]) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(CONTENT_POLICY);
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    h1 { (title) }
                    @for it in sections {
                        section {
                            @if !it.title.is_empty() { h2 { (it.title) } }
                            @for part in &it.parts { (part_of(it.title, part)) }
                        }
                    }
                }
            }
        }
    };
    page.into_string()
}

fn part_of(title: &str, part: &ReportPart) -> Markup {
    match part {
        ReportPart::Text(text) => html! { p { (text) } },
        ReportPart::Numbers(numbers) => html! {
            ul.tiles { @for (name, value) in numbers {
                li.tile { span.number { (value) } (name) }
            } }
        },
        ReportPart::Table(it) => rows(title, it),
        ReportPart::Plot(it) => it.clone(),
    }
}

fn rows(title: &str, it: &ReportTable) -> Markup {
    let headings = it.columns.iter().map(|(name, _)| if name.is_empty() { "detail" } else { name });
    let class = |align: Align| match align {
        Align::Left => None,
        Align::Right => Some("number"),
    };
    let rows = html! {
        @for row in &it.rows { tr {
            @for (text, (_, align)) in row.iter().zip(&it.columns) { td class=[class(*align)] { (text) } }
        } }
    };
    table(title, &headings.collect::<Vec<_>>(), &rows)
}
