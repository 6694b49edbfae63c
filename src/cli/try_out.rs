//! `policyd try`: one expression on the facts of a session, or of none, with the value of each part.

mod prompt;

use std::io::Read as _;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EXIT_USAGE, ListFormat, TryArguments, check, error,
    pack,
};
use policyd_app::packs::{self, trial_rule};
use policyd_app::sessions::named::{Session, SessionSelector};
use policyd_app::workspace::project;
use policyd_base::limits::EXPRESSION_BYTES_MAX;
use policyd_fact_table::FactEvaluator;
use policyd_fact_table::check::{TypeFinding, check};
use policyd_fact_table::clock_facts;
use policyd_fact_table::completion::{Candidate, candidates};
use policyd_fact_table::parts::{Part, PartValue};
use policyd_fact_table::types::{Names, Type};
use policyd_policy::load::Pack;
use policyd_record::decision_log::{found_json, masked_parts};
use policyd_record::drawing;
use policyd_record::mask::MARK;
use policyd_report::diagnostics::{self, Style};
use policyd_world::World;
use policyd_yaml::time::Timestamp;
use policyd_yaml::{Diagnostic, Node, Source};

/// Version of the JSON form.
const TRY_VERSION: u32 = 1;

/// Tries an expression: exit 1 where it is wrong or has no value. Without one, a user at a terminal gets a prompt.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &TryArguments) -> u8 {
    let named = arguments.session.as_deref();
    if arguments.expression.is_none() && console.stdin_is_tty && console.stdout_is_tty {
        return match Trial::load(world, console, arguments, named) {
            Ok(trial) => prompt::run(world, console, arguments, trial),
            Err(code) => code,
        };
    }
    let Some(expression) = expression(console, arguments) else { return EXIT_USAGE };
    match Trial::load(world, console, arguments, named) {
        Ok(trial) => trial.answer(console, arguments.format, &expression),
        Err(code) => code,
    }
}

/// What expressions are tried on: a pack, and a session of it.
struct Trial {
    pack: Pack,
    names: Arc<Names>,
    session: Session,
    now: Timestamp,
}

impl Trial {
    /// Loads the pack, and the named session or an empty one.
    ///
    /// # Errors
    /// The exit code, if the pack or the session cannot be read. The reason was reported.
    fn load(
        world: &dyn World,
        console: &mut Console<'_>,
        arguments: &TryArguments,
        named: Option<&str>,
    ) -> Result<Self, u8> {
        let project = project::find(world, None);
        let found = packs::find(world, &project, arguments.policies.as_deref());
        pack::warn_untrusted_packs(console, &found);
        let reviewed = pack::require_reviewed(world, console, &found);
        let (mut policy, names) = reviewed.ok_or(EXIT_BROKEN)?;
        policy.zones = clock_facts::all_zones();
        let wanted = SessionSelector { named, subagent: false };
        let session = Session::find(world, &project, &mut policy, wanted)
            .map_err(|error| error::report(console, &error))?;
        Ok(Self { pack: found.pack().into_owned(), names, session, now: world.now() })
    }

    /// Prints the value of an expression, or what is wrong with it. Returns the exit code.
    fn answer(&self, console: &mut Console<'_>, format: ListFormat, expression: &str) -> u8 {
        let typed = check(expression, &*self.names);
        if !typed.findings.is_empty() || !typed.result.is_shown() {
            return wrong(console, format, expression, &typed.findings, &self.names);
        }
        let source =
            Arc::new(Source { name: "expression".to_owned(), text: expression.to_owned() });
        // Lint would report a value that is not a condition, but a user may try any expression.
        let is_condition = typed.result == Type::Bool && !matches!(expression, "true" | "false");
        let slips = match is_condition {
            true => trial_rule::findings(&self.pack, expression, &source, self.now),
            false => Vec::new(),
        };
        let mut evaluator = FactEvaluator::new(Rc::new(self.session.view.clone()));
        let parts = masked_parts(&evaluator.explain(expression));
        let value = parts.last().map(|it| it.found.clone());
        console.print(&match format {
            ListFormat::Json => {
                let value = json!({
                    "version": TRY_VERSION,
                    "expression": expression,
                    "type": typed.result.to_string(),
                    "value": value.as_ref().map(found_json),
                    "parts": parts.iter().map(|it| part_json(it, expression)).collect::<Vec<_>>(),
                    "findings": diagnostics::render_json(&slips),
                    "notes": self.session.notes,
                });
                format!("{value:#}\n")
            }
            ListFormat::Compact => value.as_ref().map(|it| format!("{it}\n")).unwrap_or_default(),
            ListFormat::Text => {
                let drawn = drawing::draw(expression, &parts);
                let masked = drawn.contains(MARK).then(|| format!("\n{MARK} replaces a secret\n"));
                let slips = match slips.as_slice() {
                    [] => String::new(),
                    some => format!(
                        "\n{}",
                        diagnostics::render_text(some, Style { color: console.color() })
                    ),
                };
                format!("{drawn}{}{slips}", masked.unwrap_or_default())
            }
        });
        if format == ListFormat::Text {
            self.session.notes.iter().for_each(|it| console.eprint(it));
        }
        if matches!(value, Some(PartValue::Value(_))) { EXIT_OK } else { EXIT_FOUND }
    }
}

/// The expression of the command line, else of standard input.
fn expression(console: &mut Console<'_>, arguments: &TryArguments) -> Option<String> {
    let text = match arguments.expression.as_deref().filter(|it| *it != "-") {
        Some(text) => text.to_owned(),
        None => {
            let bound = u64::try_from(EXPRESSION_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
            let mut bytes = Vec::new();
            // What could be read is tried.
            drop((&mut *console.stdin).take(bound).read_to_end(&mut bytes));
            String::from_utf8_lossy(&bytes).into_owned()
        }
    };
    let text = text.trim().to_owned();
    if text.is_empty() {
        console
            .eprint("no expression given\nhelp: pass one, such as `policyd try 'files.count > 3'`");
        return None;
    }
    Some(text)
}

/// What is wrong with an expression, as lint shows it, and the names that could be meant.
fn wrong(
    console: &mut Console<'_>,
    format: ListFormat,
    expression: &str,
    findings: &[TypeFinding],
    names: &Names,
) -> u8 {
    let source = Arc::new(Source { name: "expression".to_owned(), text: expression.to_owned() });
    let node = Node::verbatim(&source);
    let findings: Vec<Diagnostic> = findings.iter().map(|it| it.within(&node, 0)).collect();
    let candidates = candidates(expression, names);
    console.print(&match format {
        ListFormat::Json => {
            let candidate = |it: &Candidate| json!({"name": it.name, "type": it.result.to_string(), "doc": it.doc});
            let value = json!({
                "version": TRY_VERSION,
                "expression": expression,
                "findings": diagnostics::render_json(&findings),
                "candidates": candidates.iter().map(candidate).collect::<Vec<_>>(),
            });
            format!("{value:#}\n")
        }
        ListFormat::Compact => diagnostics::render_compact(&findings),
        ListFormat::Text => {
            let style = Style { color: console.color() };
            let named = listed(&candidates, findings.is_empty());
            let hint = check::hint(expression).map_or_else(String::new, |it| format!("{it}\n"));
            format!("{}{named}{hint}", diagnostics::render_text(&findings, style))
        }
    });
    EXIT_FOUND
}

/// Lists the names that can complete the expression. `complete`: only such a name is missing.
fn listed(candidates: &[Candidate], complete: bool) -> String {
    let Some(width) = candidates.iter().map(|it| it.name.chars().count()).max() else {
        return String::new();
    };
    let title =
        if complete { "this has no value of its own; its members:" } else { "\npossible names:" };
    let mut text = format!("{title}\n");
    for it in candidates {
        let line = format!("  {:width$}  {:14} {}", it.name, it.result.to_string(), it.doc);
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn part_json(part: &Part, expression: &str) -> Value {
    json!({
        "expression": expression.get(part.start..part.end),
        "value": found_json(&part.found),
        "reached": part.found != PartValue::NotReached,
        "start": part.start,
        "end": part.end,
    })
}
