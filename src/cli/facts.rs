//! `policyd facts`: the reference of facts by subject, or their values in a session.

use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value as Json, json};

use super::{Console, EXIT_BROKEN, EXIT_OK, EXIT_USAGE, FactsArguments, ListFormat, error, pack};
use policyd_app::packs;
use policyd_app::sessions::named::{Session, SessionSelector};
use policyd_app::workspace::project;
use policyd_fact_table::members::{self, Member};
use policyd_fact_table::parts::{Part, PartValue};
use policyd_fact_table::types::{Names, Subject, Type};
use policyd_fact_table::{FactEvaluator, Value};
use policyd_policy::records;
use policyd_record::decision_log::{found_json, masked_parts};
use policyd_record::drawing;
use policyd_record::mask::mask_json;
use policyd_report::fact_pages::{self, FactPage};
use policyd_world::World;

/// Version of the JSON forms.
const FACTS_VERSION: u32 = 1;

/// Prints facts.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &FactsArguments) -> u8 {
    let Some(named) = &arguments.session else {
        return reference(console, arguments);
    };
    let project = project::find(world, None);
    let found = packs::find(world, &project, arguments.policies.as_deref());
    pack::warn_untrusted_packs(console, &found);
    let Some((mut policy, names)) = pack::require_reviewed(world, console, &found) else {
        return EXIT_BROKEN;
    };
    let wanted = SessionSelector { named: Some(named), subagent: arguments.subagent };
    let session = match Session::find(world, &project, &mut policy, wanted) {
        Ok(session) => session,
        Err(error) => return error::report(console, &error),
    };
    let mut evaluator = FactEvaluator::new(Rc::new(session.view.clone()));
    let values = values(&names, &mut evaluator);
    match arguments.format {
        ListFormat::Json => {
            let named = values.iter().map(|(name, found)| (name.clone(), found_json(found)));
            let mut fold = json!(session.view.context.facts);
            mask_json(&mut fold);
            let named: Map<String, Json> = named.collect();
            let all = json!({"version": FACTS_VERSION, "values": named, "fold": fold,
                "notes": session.notes});
            console.print(&format!("{all:#}\n"));
        }
        ListFormat::Text | ListFormat::Compact => {
            for (name, found) in &values {
                console.print(&format!("{name} = {}\n", drawing::value(found)));
            }
            session.notes.iter().for_each(|it| console.eprint(it));
        }
    }
    EXIT_OK
}

/// Prints the reference of a subject, of a fact, of the facts that mention a word, or of all subjects.
fn reference(console: &mut Console<'_>, arguments: &FactsArguments) -> u8 {
    let page = match &arguments.name {
        None => FactPage::Subjects,
        Some(name) => match fact_pages::find(name) {
            Ok(page) => page,
            Err(error) => {
                console.eprint(&error.to_string());
                return EXIT_USAGE;
            }
        },
    };
    console.print(&match arguments.format {
        ListFormat::Json => format!("{:#}\n", reference_json(&page)),
        ListFormat::Text | ListFormat::Compact => fact_pages::to_text(&page, console.screen()),
    });
    EXIT_OK
}

fn reference_json(page: &FactPage) -> Json {
    let row = |it: &Member| {
        let path = format!("{}.{}", it.owner, it.name);
        json!({"owner": it.owner.to_string(), "name": it.name, "signature": it.signature(),
            "type": it.result.to_string(), "doc": it.doc, "example": it.example,
            "values": it.values, "known_at": fact_pages::known_at(&path)})
    };
    let rows: Vec<Json> = fact_pages::facts_of(page).into_iter().map(row).collect();
    let records = records::PLACES.iter();
    let records = records.filter(|it| fact_pages::has_record(page, records::shape(it.2)));
    let records: Vec<Json> =
        records.map(|(file, sections, names)| record_json(file, sections, names)).collect();
    json!({"version": FACTS_VERSION, "facts": rows, "records": records})
}

/// Returns a record as JSON: its name, its fields, and the file and sections of the rules that read it.
fn record_json(file: &str, sections: &[&str], names: &'static LazyLock<Arc<Names>>) -> Json {
    let shape = records::shape(names);
    let fields = shape.fields.iter().map(|it| {
        json!({"name": it.name, "type": it.result.to_string(), "doc": it.doc, "values": it.values})
    });
    json!({"file": file, "sections": sections, "record": shape.name,
        "fields": fields.collect::<Vec<_>>()})
}

/// The value of every fact that has one, by the expression that names it. Of kinds and patterns
/// only those are listed of which there is something.
fn values(names: &Names, evaluator: &mut FactEvaluator) -> Vec<(String, PartValue)> {
    let mut found = Vec::new();
    // `rule` and `outcome` exist only while a stop is judged.
    let unknown = [Subject::Rule.as_type(), Subject::Outcome.as_type()];
    let globals = rows(Type::Global).filter(|it| !unknown.contains(&it.result));
    for global in globals {
        for row in rows(global.result) {
            let name = format!("{}.{}", global.name, row.name);
            match row.params {
                None if row.result.is_shown() => found.push(value(name, evaluator)),
                None => found.extend(fields(&name, row.result, evaluator)),
                // What is read before an evaluation is not known for each name.
                Some(_) if row.is_written_out => {}
                Some([(_, domain)]) => {
                    for known in names.of(*domain).into_iter().flatten() {
                        let call = format!("{name}(\"{known}\")");
                        found.extend(of_kind(&call, row.result, evaluator));
                    }
                }
                Some(_) => {}
            }
        }
    }
    found.extend(names.preferences.iter().map(|it| value(format!("prefs.{it}"), evaluator)));
    for it in &names.probes {
        found.extend(fields(&format!("probes.{it}"), Subject::Probe.as_type(), evaluator));
    }
    found
}

/// What a call names, unless it is nothing.
fn of_kind(call: &str, result: Type, evaluator: &mut FactEvaluator) -> Vec<(String, PartValue)> {
    let counted = if result.is_shown() { call.to_owned() } else { format!("{call}.count") };
    let (name, found) = value(counted, evaluator);
    let nothing = match &found {
        PartValue::Value(Value::Bool(value)) => !value,
        PartValue::Value(Value::Int(value)) => *value == 0,
        PartValue::Value(Value::Text(text)) => text.is_empty(),
        PartValue::Value(Value::Texts(texts)) => texts.is_empty(),
        PartValue::Failed(_) | PartValue::NotReached => false,
    };
    match (nothing, result.is_shown()) {
        (true, _) => Vec::new(),
        (false, true) => vec![(name, found)],
        (false, false) => fields(call, result, evaluator),
    }
}

/// The values of the fields of a handle.
fn fields(name: &str, owner: Type, evaluator: &mut FactEvaluator) -> Vec<(String, PartValue)> {
    let fields = rows(owner).filter(|it| it.params.is_none() && it.result.is_shown());
    fields.map(|it| value(format!("{name}.{}", it.name), evaluator)).collect()
}

fn value(name: String, evaluator: &mut FactEvaluator) -> (String, PartValue) {
    let found = evaluator.eval(&name).map_or_else(PartValue::Failed, PartValue::Value);
    let part = Part { start: 0, end: name.len(), at: 0, found };
    let masked = masked_parts(&[part]).pop().map_or(PartValue::NotReached, |it| it.found);
    (name, masked)
}

fn rows(owner: Type) -> impl Iterator<Item = &'static Member> {
    members::tables().filter(move |it| it.owner == owner)
}
