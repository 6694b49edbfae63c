//! Questions for one of several things, as one question for each of them.

use crate::script::tree::{Form, Term};

/// Functions that hold where one of the texts of their list does.
#[rustfmt::skip]
const ANY_OF: [&str; 12] = [
    ".has(", ".names(", ".any(", ".any_in(", ".sets(", ".reads(", ".writes(", ".deletes(",
    ".changes(", ".touches(", ".fed_by(", ".wrapped_by(",
];

/// The same condition, with each question about one of several texts as a question about each of them:
/// `program.has(["-f", "--force"])` follows from `program.has(["-f"])`.
pub(in crate::lint) fn one_by_one(term: &Term) -> Term {
    let all = |items: &[Term]| items.iter().map(one_by_one).collect::<Vec<_>>();
    let form = match &term.form {
        Form::And(items) => Form::And(all(items)),
        Form::Or(items) => Form::Or(all(items)),
        Form::Not(inner) => Form::Not(Box::new(one_by_one(inner))),
        Form::Fact(path, arguments) => match asked_each(path, arguments) {
            Some(each) => Form::Or(each.map(|form| Term { form, ..term.clone() }).collect()),
            None => term.form.clone(),
        },
        other @ (Form::Compare(..)
        | Form::In(..)
        | Form::Arithmetic(..)
        | Form::Bool(_)
        | Form::Int(_)
        | Form::Decimal(_)
        | Form::Text(_)
        | Form::List(_)
        | Form::Negative(_)
        | Form::Member(..)
        | Form::If(_)
        | Form::Other(..)) => other.clone(),
    };
    Term { form, ..term.clone() }
}

/// The question about each text of a list, where a path ends in one about any of them.
fn asked_each<'t>(path: &'t str, arguments: &'t [Term]) -> Option<impl Iterator<Item = Form> + 't> {
    let [Term { form: Form::List(items), .. }] = arguments else { return None };
    let (call, _) = path.split_once('[').filter(|_| items.len() > 1 && path.ends_with("])"))?;
    ANY_OF.iter().any(|it| call.ends_with(it)).then(|| {
        items
            .iter()
            .map(move |it| Form::Fact(format!("{call}[{}])", it.canonical()).into(), Vec::new()))
    })
}
