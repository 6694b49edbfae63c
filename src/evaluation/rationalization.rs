//! Finds rationalizations in the agent's last text, and decides which of them the facts contradict.
//!
//! Contains: the search, cheapest test first. Does not contain: the table
//! (`policy::rationalizations`).

use std::rc::Rc;

use policyd_fact_table::FactEvaluator;
use policyd_fact_table::context::{Context, Excuse};
use policyd_fact_table::excuse_facts::RationalizationMatcher;
use policyd_fact_table::prose::{self, Prose};
use policyd_policy::rationalizations::{Rationalization, Rationalizations};
use policyd_policy::{Expression, Policy};
use policyd_yaml::pairs::FilteredText;

/// An entry of the table with the sentence that matches it.
#[derive(Debug, Clone, PartialEq)]
pub struct Match<'t> {
    pub entry: &'t Rationalization,
    /// The sentence, without code and quotes.
    pub sentence: String,
}

/// Returns the entries that a text matches, in order, each with its first sentence. Code,
/// quotations, questions and reported speech do not count.
#[must_use]
pub fn matches<'t>(
    table: &'t Rationalizations,
    sought: &RationalizationMatcher,
    text: &str,
) -> Vec<Match<'t>> {
    let own = prose::own_words(text);
    let lower = own.to_lowercase();
    let (lower, said) = (FilteredText::new(&lower), Prose::new(&own));
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

/// Compiles the matcher of a table.
#[must_use]
pub fn sought(table: &Rationalizations) -> RationalizationMatcher {
    RationalizationMatcher::new(&table.unless, table.entries.len())
}

/// Searches the agent's last text, and shows the result to expressions. During the search they read none.
pub fn search(
    policy: &Policy,
    context: &Context,
    evaluator: &mut FactEvaluator,
) -> Rc<Vec<Excuse>> {
    let found = Rc::new(find(policy, context, evaluator));
    evaluator.change(|it| it.excuses = Some(Rc::clone(&found)));
    found
}

fn find(policy: &Policy, context: &Context, evaluator: &mut FactEvaluator) -> Vec<Excuse> {
    let (words, said) = (policy.rationalization_words.as_str(), context.last_message.as_str());
    // The table stays encoded if the text contains none of its words.
    if words.is_empty() || !FilteredText::new(&said.to_lowercase()).holds_one(words) {
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

/// Returns whether a condition is true. A condition that cannot be evaluated counts as false.
fn holds(evaluator: &mut FactEvaluator, condition: &Expression) -> bool {
    evaluator.eval_bool(condition).unwrap_or(false)
}
