//! The frame of each page, and the parts that several pages use.

use std::fmt::Write as _;

use maud::{DOCTYPE, Markup, html};

use super::view::PageView;
use policyd_record::paint::TextColor;
use policyd_report::overview::age;
use policyd_yaml::time::Timestamp;

/// The page that evaluates rules of the user. Its form changes nothing, so a read-only dashboard has it, too.
pub(crate) const PLAYGROUND: &str = "/playground";

/// Parts of the dashboard that are loaded again when something changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageSection {
    Projects,
    Decisions,
    Rules,
    Breakers,
    Waiting,
    Runs,
}

/// The menu.
const SECTIONS: [(Option<PageSection>, &str, &str); 7] = [
    (Some(PageSection::Projects), "/", "Projects"),
    (Some(PageSection::Decisions), "/decisions", "Decisions"),
    (Some(PageSection::Rules), "/rules", "Rules"),
    (Some(PageSection::Breakers), "/breakers", "Breakers"),
    (Some(PageSection::Waiting), "/waiting", "Waiting"),
    (Some(PageSection::Runs), "/runs", "Runs"),
    (None, PLAYGROUND, "Playground"),
];

fn head(title: &str, more: &Markup) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) }
            link rel="icon" href="/icon.svg" type="image/svg+xml";
            link rel="stylesheet" href="/style.css";
            (more)
        }
    }
}

/// Returns a whole page.
pub(super) fn page(
    view: &PageView<'_>,
    section: PageSection,
    title: &str,
    body: &Markup,
) -> String {
    let snapshot = view.snapshot;
    let waiting: usize = snapshot.rows.iter().map(|it| it.waiting_items().len()).sum();
    let script = html! { script src="/live.js" defer {} };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(&format!("{title} · policyd"), &script))
            body {
                a.skip href="#main" { "Skip to the content" }
                header {
                    a.brand href="/" { "policyd" }
                    nav aria-label="Sections" {
                        @for (it, path, name) in SECTIONS {
                            a href=(path) aria-current=[(it == Some(section)).then_some("page")] {
                                (name)
                                @if it == Some(PageSection::Waiting) && waiting > 0 {
                                    " " span.count { (waiting) span.hidden { " waiting for you" } }
                                }
                            }
                        }
                    }
                    p.live role="status" id="live" { @if view.is_read_only { "Read-only" } }
                }
                main id="main" tabindex="-1" data-number=(snapshot.number) {
                    h1 { (title) }
                    @if !snapshot.is_complete {
                        p.notice { "The logs are being read: " (snapshot.indexed) " decisions so far." }
                    }
                    @for problem in &snapshot.problems { p.problem { (problem) } }
                    (body)
                }
            }
        }
    };
    page.into_string()
}

/// Returns the sentence of a page that shows no item. While projects are read, whether one exists is unknown.
pub(super) fn nothing(view: &PageView<'_>, text: &str) -> Markup {
    let is_read = view.snapshot.is_complete;
    html! { p { @if is_read { (text) } @else { "The projects are still being read." } } }
}

/// Returns a page with one sentence and no menu.
pub(crate) fn plain(title: &str, text: &str) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(title, &html! {}))
            body { main id="main" { h1 { (title) } p { (text) } } }
        }
    };
    page.into_string()
}

/// Returns the page that shows the result of an action.
pub(crate) fn result(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(&format!("{title} · policyd"), &html! {}))
            body {
                header { a.brand href="/" { "policyd" } nav aria-label="Sections" {
                    @for (_, path, name) in SECTIONS { a href=(path) { (name) } }
                } }
                main id="main" { h1 { (title) } (body) }
            }
        }
    };
    page.into_string()
}

/// Returns the page that a link opens; it goes on to the overview.
pub(crate) fn opened() -> String {
    let refresh = html! { meta http-equiv="refresh" content="0; url=/"; };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head("policyd", &refresh))
            body { main id="main" { h1 { "policyd" } p { a href="/" { "Open the dashboard" } } } }
        }
    };
    page.into_string()
}

/// Returns an address with fields.
pub(super) fn address(path: &str, fields: &[(&str, &str)]) -> String {
    let mut text = path.to_owned();
    let given = fields.iter().filter(|(_, value)| !value.is_empty());
    for (number, (name, value)) in given.enumerate() {
        text.push(if number == 0 { '?' } else { '&' });
        text.push_str(name);
        text.push('=');
        for byte in value.bytes() {
            if byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte) {
                text.push(char::from(byte));
            } else {
                // Writing to a string does not fail.
                let _written = write!(text, "%{byte:02X}");
            }
        }
    }
    text
}

/// Returns a time with its age as text.
pub(super) fn moment(at: Timestamp, now: Timestamp) -> Markup {
    let exact = at.to_string();
    html! { time datetime=(exact) title=(exact) { (age(at, now)) } }
}

/// Returns when something was or will be.
pub(super) fn when(at: Timestamp, now: Timestamp) -> Markup {
    let exact = at.to_string();
    html! {
        @if at > now { "in " time datetime=(exact) title=(exact) { (age(now, at)) } }
        @else { (moment(at, now)) " ago" }
    }
}

/// Returns the class of a color.
pub(super) const fn tone(color: TextColor) -> &'static str {
    match color {
        TextColor::Red => "bad",
        TextColor::Yellow => "look",
        TextColor::Green => "good",
        TextColor::Dim => "quiet",
        TextColor::Plain | TextColor::Bold => "plain",
    }
}

/// Returns a word in the color of its meaning.
pub(super) fn badge(word: &str, tone: &str) -> Markup {
    html! { span class=(format!("badge {tone}")) { (word) } }
}

/// Returns the form token as a hidden field.
pub(super) fn form_token(view: &PageView<'_>) -> Markup {
    html! { input type="hidden" name="form_token" value=(view.form_token); }
}

/// Returns a menu of one field of a filter.
pub(super) fn select(
    name: &str,
    label: &str,
    choices: &[(String, String)],
    chosen: &str,
) -> Markup {
    html! {
        label {
            (label) " "
            select name=(name) {
                @for (value, text) in choices {
                    option value=(value) selected[value == chosen] { (text) }
                }
            }
        }
    }
}

/// Returns the menu of projects.
pub(super) fn project_menu(view: &PageView<'_>) -> Markup {
    let mut projects: Vec<(String, String)> =
        view.snapshot.known.keys().map(|it| (it.clone(), view.name(it))).collect();
    projects.sort_by(|one, other| one.1.cmp(&other.1));
    projects.insert(0, (String::new(), "all".to_owned()));
    select("project", "Project", &projects, view.field("project").unwrap_or_default())
}

/// Returns the menu of lengths of time.
pub(super) fn since_menu(view: &PageView<'_>) -> Markup {
    let choices = [
        ("1h", "1 hour"),
        ("24h", "24 hours"),
        ("7d", "7 days"),
        ("30d", "30 days"),
        ("36500d", "all"),
    ];
    let choices = choices.map(|(value, text)| (value.to_owned(), text.to_owned()));
    select("since", "Within", &choices, &view.since().1)
}

/// Returns links to the pages before and after this one.
pub(super) fn pager(path: &str, fields: &[(&str, &str)], page: usize, has_more: bool) -> Markup {
    let to = |page: usize| {
        let number = page.to_string();
        let number = if page == 0 { "" } else { number.as_str() };
        address(path, &[fields, &[("page", number)]].concat())
    };
    html! {
        @if page > 0 || has_more {
            nav.pager aria-label="Pages" {
                @if page > 0 { a rel="prev" href=(to(page.saturating_sub(1))) { "← Newer" } }
                @if has_more { a rel="next" href=(to(page.saturating_add(1))) { "Older →" } }
            }
        }
    }
}

/// Returns text with its line breaks in a fixed width.
pub(super) fn drawing(label: &str, text: &str) -> Markup {
    html! { pre tabindex="0" role="region" aria-label=(label) { (text) } }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::super::live::Snapshot;
    use super::*;

    #[test]
    fn a_page_claims_nothing_while_projects_are_read() {
        let text = |is_complete: bool| {
            let snapshot = Snapshot { is_complete, ..Snapshot::default() };
            let (now, query) = (Timestamp::default(), BTreeMap::new());
            let view = PageView {
                snapshot: &snapshot,
                form_token: "",
                is_read_only: true,
                now,
                query: &query,
            };
            nothing(&view, "Nothing waits for you.").into_string()
        };
        assert_eq!(text(true), "<p>Nothing waits for you.</p>");
        assert_eq!(text(false), "<p>The projects are still being read.</p>");
    }
}
