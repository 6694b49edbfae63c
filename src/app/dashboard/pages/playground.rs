//! Rules and a situation that the user writes in the browser, and what the rules decide. Nothing is saved.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::super::page_context::PageContext;
use super::layout;
use super::view::PageView;
use crate::cases::playground::{Playground, PlaygroundResult};

/// Rules that the page begins with.
const GUARDS: &str = "\
- id: no_force
  commands: [git]
  when: program.has([\"--force\", \"-f\"])
  decision: block
  message: \"`${program.line}` overwrites the history of the remote. Use `--force-with-lease`.\"
";
/// Situation that the page begins with.
const SITUATION: &str = "\
transcript:
  - user: Push the branch
on: {event: pre_tool_use, command: git push --force origin main}
";

/// Returns the page; `form` are the texts that the user sent.
pub(super) fn page(
    context: &PageContext<'_>,
    view: &PageView<'_>,
    form: Option<&BTreeMap<String, String>>,
) -> String {
    let sent = |name: &str| form.and_then(|it| it.get(name)).map(String::as_str);
    let playground = Playground {
        guards: sent("guards").unwrap_or(GUARDS),
        checks: sent("checks").unwrap_or_default(),
        situation: sent("situation").unwrap_or(SITUATION),
    };
    let result = playground.run(context.world);
    let fields = [
        ("guards", "guards.yaml", playground.guards, 12),
        ("checks", "considerations.yaml", playground.checks, 8),
        ("situation", "Situation: a test case without name and expect", playground.situation, 8),
    ];
    let body = html! {
        p {
            "Write rules and a situation. policyd evaluates them on a simulated machine: no command runs, and nothing is \
             saved."
        }
        form.wide method="post" action="/playground" {
            input type="hidden" name="form_token" value=(view.form_token);
            @for (name, label, text, rows) in fields {
                p {
                    label for=(name) { (label) }
                    br;
                    textarea id=(name) name=(name) rows=(rows) cols="100" spellcheck="false" { "\n" (text) }
                }
            }
            p { button type="submit" { "Evaluate" } }
        }
        (shown(&result))
    };
    // The page is not loaded again when something changes: it would lose what the user wrote.
    layout::result("Playground", &body)
}

fn shown(result: &PlaygroundResult) -> Markup {
    html! {
        @if !result.findings.is_empty() {
            h2 { "Findings" }
            pre tabindex="0" role="region" aria-label="Findings" { (result.findings) }
        }
        @for report in &result.reports {
            h2 { "Decision" }
            pre tabindex="0" role="region" aria-label="Decision" { (report) }
        }
    }
}
