//! One row of the table of facts. May not live here: the table.

use policyd_expr::table::{COUNTS, Member};
use rhai::Dynamic;

use super::FactError;
use super::context::{ContextPart, Object};
use super::events::FactEvents;
use super::fact_source::FactSource;
use super::invariant::Invariant;
use super::types::{Domain, Evidence, PackName, Subject, TextForm, Type, Unit};
use policyd_facts::call::CallEffects;

/// Runs a member on an object of its owner's type.
pub(super) type FactFunction = fn(&Object, &[Dynamic]) -> Result<Dynamic, FactError>;

/// A row of the table.
#[derive(Debug)]
pub(super) struct FactRow {
    /// What the language knows of it.
    pub member: Member,
    /// What it does; `None` for global names.
    pub run: Option<FactFunction>,
    /// Where its value comes from; `None` for a member that comes from where its owner does.
    pub source: Option<FactSource>,
    /// The effects that it asks about: it is false if the call has none of them.
    pub effects: Option<CallEffects>,
    /// The events at which clients report it; `None` for a member that is reported when its owner is.
    pub events: Option<&'static FactEvents>,
    /// What is always true of it and of other members.
    pub invariants: &'static [Invariant],
    /// The part of the context that a global name is; `None` for members.
    pub global: Option<Global>,
}

/// A global name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Global {
    /// The part of the context.
    pub part: fn() -> ContextPart,
    /// Whether a later step of an evaluation can change its values.
    pub changes: bool,
}

/// A field.
pub(super) const fn field(
    owner: Subject,
    name: &'static str,
    result: Type,
    evidence: Evidence,
    doc: [&'static str; 2],
    run: FactFunction,
) -> FactRow {
    let row = method(owner, name, &[], (result, evidence), doc, run);
    FactRow { member: Member { params: None, ..row.member }, ..row }
}

/// A method with its parameters.
pub(super) const fn method(
    owner: Subject,
    name: &'static str,
    params: &'static [(Type, Domain)],
    result: (Type, Evidence),
    doc: [&'static str; 2],
    run: FactFunction,
) -> FactRow {
    let ([doc, example], (result, evidence)) = (doc, result);
    let member = Member {
        owner: owner.as_type(),
        name,
        params: Some(params),
        result,
        evidence,
        doc,
        example,
        values: &[],
        form: TextForm::Any,
        range: COUNTS,
        unit: None,
        ids: None,
        is_written_out: false,
    };
    FactRow {
        member,
        run: Some(run),
        source: None,
        effects: None,
        events: None,
        invariants: &[],
        global: None,
    }
}

/// A field that is a number.
pub(super) const fn number(
    owner: Subject,
    name: &'static str,
    unit: Unit,
    evidence: Evidence,
    doc: [&'static str; 2],
    run: FactFunction,
) -> FactRow {
    let result = if matches!(unit, Unit::Dollars) { Type::Decimal } else { Type::Int };
    field(owner, name, result, evidence, doc, run).of_unit(unit)
}

/// Whether a row says all that must be said: a number has a unit, and a fact of the event has the events that report it.
pub(super) const fn is_complete(row: &FactRow) -> bool {
    let is_number = matches!(row.member.result, Type::Int | Type::Decimal);
    let is_of_event =
        matches!(row.member.owner, Type::Object(it) if it.number == Subject::Event as u8);
    is_number == row.member.unit.is_some() && (!is_of_event || row.events.is_some())
}

impl FactRow {
    /// The same member, which clients report at these events.
    pub(super) const fn at(self, events: &'static FactEvents) -> Self {
        Self { events: Some(events), ..self }
    }

    /// The same member, of which these are always true.
    pub(super) const fn always(self, invariants: &'static [Invariant]) -> Self {
        Self { invariants, ..self }
    }

    /// The same member, whose value, texts, items, or argument are names of this kind.
    pub(super) const fn of_ids(self, ids: PackName) -> Self {
        Self { member: Member { ids: Some(ids.as_kind()), ..self.member }, ..self }
    }

    /// The same member, whose number counts this.
    pub(super) const fn of_unit(self, unit: Unit) -> Self {
        Self { member: Member { unit: Some(unit), ..self.member }, ..self }
    }

    /// The same member, whose argument must be a constant.
    pub(super) const fn written_out(self) -> Self {
        Self { member: Member { is_written_out: true, ..self.member }, ..self }
    }

    /// The same member from another source than its owner.
    pub(super) const fn from(self, source: FactSource) -> Self {
        Self { source: Some(source), ..self }
    }

    /// The same member, which is false if the call has none of these effects.
    pub(super) const fn effect(self, effects: CallEffects) -> Self {
        Self { effects: Some(effects), ..self }
    }

    /// The same member with the closed set of its values.
    pub(super) const fn with_values(self, values: &'static [&'static str]) -> Self {
        Self { member: Member { values, ..self.member }, ..self }
    }

    /// The same member with the bounds of its number.
    pub(super) const fn with_range(self, range: (i64, i64)) -> Self {
        Self { member: Member { range, ..self.member }, ..self }
    }

    /// The same member with the form of its text.
    pub(super) const fn of_form(self, form: TextForm) -> Self {
        Self { member: Member { form, ..self.member }, ..self }
    }
}
