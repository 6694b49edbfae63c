//! Parts that all pages share: those of the dashboard, and the morning report as one file.

use maud::{Markup, html};

/// Style sheet of all pages.
pub const STYLE: &str = include_str!("style.css");

/// Returns a table that scrolls by itself on a narrow screen.
#[must_use]
pub fn table(label: &str, headings: &[&str], rows: &Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            table {
                thead { tr { @for it in headings { th scope="col" { (it) } } } }
                tbody { (rows) }
            }
        }
    }
}

/// Returns the legend of a plot: the classes of its parts with their names.
#[must_use]
pub fn legend(parts: &[(&str, &str)]) -> Markup {
    html! { figcaption { ul.legend { @for (class, name) in parts {
        li { span class=(format!("key {class}")) {} (name) }
    } } } }
}
