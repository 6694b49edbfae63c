//! The morning report as one HTML file: styles and plots are in it, and it has no scripts.

use super::super::xml::escaped;
use super::{ReportPart, ReportSection, ReportTable};
use policyd_record::table::Align;

/// Colors have a contrast of at least 4.5 to 1 for text, and of 3 to 1 for plots, in both schemes.
const STYLE: &str = "
:root { color-scheme: light dark; --page: #fcfcfb; --text: #1f2328; --dim: #59636e; --line: #d1d9e0;
  --card: #f3f4f6; --blocked: #b3391f; --released: #9a6700; --good: #1a7f4b; --bad: #b3391f; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14171c; --text: #e6e9ee; --dim: #9aa4b0; --line: #333b45; --card: #1d2229;
    --blocked: #ff8f73; --released: #e3b341; --good: #5fd08f; --bad: #ff8f73; }
}
* { box-sizing: border-box; }
body { background: var(--page); color: var(--text); font: 15px/1.5 system-ui, sans-serif; margin: 0 auto;
  max-width: 60rem; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.35rem; font-weight: 600; }
h2 { border-top: 1px solid var(--line); font-size: 1.05rem; font-weight: 600; margin: 2rem 0 .5rem;
  padding-top: 1rem; }
dl { display: grid; gap: .5rem; grid-template-columns: repeat(auto-fill, minmax(10rem, 1fr)); margin: 1rem 0; }
dl div { background: var(--card); border-radius: .4rem; padding: .5rem .75rem; }
dt { color: var(--dim); font-size: .85rem; }
dd { font-size: 1.4rem; font-variant-numeric: tabular-nums; font-weight: 600; margin: 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: .5rem 0; width: 100%; }
th { color: var(--dim); font-size: .85rem; font-weight: 500; text-align: left; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .75rem .3rem 0; vertical-align: top; }
.number { font-variant-numeric: tabular-nums; text-align: right; }
svg { display: block; height: auto; margin: .5rem 0 1rem; max-width: 100%; width: 100%; }
svg text { fill: var(--dim); font: 11px system-ui, sans-serif; }
.axis { stroke: var(--line); }
.blocked { background: var(--blocked); fill: var(--blocked); }
.released { background: var(--released); fill: var(--released); }
.good { background: var(--good); fill: var(--good); }
.bad { background: var(--bad); fill: var(--bad); }
.legend { color: var(--dim); font-size: .85rem; margin: .5rem 0 0; }
.key { border-radius: 2px; display: inline-block; height: .7em; margin: 0 .35em 0 .75em; width: .7em; }
.key:first-child { margin-left: 0; }
";

/// Returns the page.
pub(super) fn page(title: &str, sections: &[ReportSection]) -> String {
    let title = escaped(title);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <main>\n<h1>{title}</h1>\n"
    );
    for section in sections {
        out.push_str("<section>\n");
        if !section.title.is_empty() {
            out.push_str(&format!("<h2>{}</h2>\n", escaped(section.title)));
        }
        for part in &section.parts {
            match part {
                ReportPart::Text(text) => out.push_str(&format!("<p>{}</p>\n", escaped(text))),
                ReportPart::Numbers(numbers) => out.push_str(&tiles(numbers)),
                ReportPart::Table(it) => out.push_str(&table(it)),
                ReportPart::Plot(it) => out.push_str(&it.svg()),
            }
        }
        out.push_str("</section>\n");
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn tiles(numbers: &[(String, String)]) -> String {
    let tile = |(name, value): &(String, String)| {
        format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(name), escaped(value))
    };
    format!("<dl>\n{}</dl>\n", numbers.iter().map(tile).collect::<String>())
}

fn table(it: &ReportTable) -> String {
    let class = |align: Align| match align {
        Align::Left => "",
        Align::Right => " class=\"number\"",
    };
    let head = it.columns.iter().map(|(name, align)| {
        let name = if name.is_empty() { "detail" } else { name };
        format!("<th scope=\"col\"{}>{}</th>", class(*align), escaped(name))
    });
    let head: String = head.collect();
    let row = |cells: &Vec<String>| {
        let cells = cells.iter().zip(&it.columns);
        let cells: String = cells
            .map(|(text, (_, align))| format!("<td{}>{}</td>", class(*align), escaped(text)))
            .collect();
        format!("<tr>{cells}</tr>\n")
    };
    let rows: String = it.rows.iter().map(row).collect();
    format!(
        "<div class=\"scroll\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n\
         </table></div>\n"
    )
}
