//! Which excuses stand in the agent's last text, and against which of them what happened speaks.
//! Lives here: looking, cheapest first. What is looked for is in `policy::rationalizations`.

use std::rc::Rc;

use crate::pairs::Searched;
use crate::policy::rationalizations::{Rationalization, Rationalizations};
use crate::policy::{Expression, Policy};
use crate::script::Evaluator;
use crate::script::context::{Context, Excuse};
use crate::script::pattern::Sought;
use crate::script::prose::{self, Prose};

/// An entry of the table, and the sentence it was found in.
#[derive(Debug, Clone, PartialEq)]
pub struct Match<'t> {
    /// The entry.
    pub entry: &'t Rationalization,
    /// The sentence, code and quotes cut out.
    pub sentence: String,
}

/// The entries that a text matches, in their order, each with its first sentence. Code, what is
/// quoted, questions and what others are said to have said do not count.
#[must_use]
pub fn matches<'t>(table: &'t Rationalizations, sought: &Sought, text: &str) -> Vec<Match<'t>> {
    let own = prose::own_words(text);
    let lower = own.to_lowercase();
    let (lower, said) = (Searched::new(&lower), Prose::new(&own));
    let counts = |sentence: &str| {
        !prose::is_question(sentence) && !sought.others.iter().any(|it| it.is_match(sentence))
    };
    let mut found = Vec::new();
    for (number, row) in table.entries.iter().enumerate() {
        if lower.holds_one(&row.words) {
            let entry: &Rationalization = &row.entry;
            let pattern = sought.row(number, || entry.pattern.clone());
            if let Some(sentence) = pattern.and_then(|it| it.quote_where(&said, counts)) {
                found.push(Match { entry, sentence: sentence.trim().to_owned() });
            }
        }
    }
    found
}

/// What a table looks for.
#[must_use]
pub fn sought(table: &Rationalizations) -> Sought {
    Sought::new(&table.unless, table.entries.len())
}

/// Learns, once, which excuses the agent's last text holds; expressions see them from then on.
pub fn learn(policy: &Policy, context: &Context, evaluator: &mut Evaluator) {
    if context.learned.borrow().rationalizations.is_none() {
        // While they are looked for there are none yet.
        let found = find(policy, context, evaluator);
        context.learned.borrow_mut().rationalizations = Some(Rc::new(found));
    }
}

fn find(policy: &Policy, context: &Context, evaluator: &mut Evaluator) -> Vec<Excuse> {
    let (words, said) = (policy.rationalization_words.as_str(), context.last_message.as_str());
    // The table stays as it was encoded while no word of it was said.
    if words.is_empty() || !Searched::new(&said.to_lowercase()).holds_one(words) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let table = &policy.rationalizations;
    let sought = context.sought.get_or_init(|| sought(table));
    for Match { entry, sentence } in matches(table, sought, said) {
        let counts = entry.when.as_ref().is_none_or(|it| holds(evaluator, it));
        if counts {
            let proof = entry.blocking.as_ref().filter(|it| !it.words_only);
            found.push(Excuse {
                name: entry.id.clone(),
                family: entry.family.clone(),
                quote: sentence,
                wrong: entry.wrong.clone(),
                action: entry.action.clone(),
                proven: proof.is_some_and(|it| holds(evaluator, it)),
            });
        }
    }
    found
}

/// What cannot be evaluated accuses nobody.
fn holds(evaluator: &mut Evaluator, condition: &Expression) -> bool {
    evaluator.eval_bool(condition).unwrap_or(false)
}
