//! What `context.yaml` means: which window and which prices a model has, what is said at which tier.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Choice;
use crate::facts::glob::{specificity, word_matches};
use crate::facts::meters::{Meters, Prices, Usage};
use crate::state::context::{Settings, WINDOW};

/// `context.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ContextRules {
    /// Tokens that a model can hold of which nothing else is said.
    pub window: u64,
    /// Windows of variants, by what the names of models end with; the smallest first.
    pub variants: Vec<(String, u64)>,
    /// Models by globs over their names.
    pub models: Vec<(String, Model)>,
    /// The meter and its tiers.
    pub settings: Settings,
    /// What is said when a tier is reached, in the order of the tiers.
    pub say: Vec<(String, Vec<Choice>)>,
    /// Globs over files that hold where the work stands.
    pub notes: Vec<String>,
    /// What whoever summarises the context is told; a template over `context`.
    pub compact: String,
    /// Who asks for a fresh context.
    pub clear_requests: ClearRequests,
    /// How a session may begin that is told the summary of the one before it.
    pub inject: Vec<String>,
    /// Older summaries are not told.
    pub summary_max_age: Duration,
}

/// Which sessions ask for a fresh context.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClearRequests {
    /// None.
    Never,
    /// Those that something drives which can give them one.
    #[default]
    Loop,
    /// All.
    Always,
}

impl ClearRequests {
    /// What a word of `context.yaml` means.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        match name {
            "never" => Some(Self::Never),
            "loop" => Some(Self::Loop),
            "always" => Some(Self::Always),
            _ => None,
        }
    }

    /// Whether a session asks; `driven`: whether something drives it.
    #[must_use]
    pub const fn holds(self, driven: bool) -> bool {
        match self {
            Self::Never => false,
            Self::Loop => driven,
            Self::Always => true,
        }
    }
}

/// What is known of the models that a glob stands for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// Tokens it can hold, where that is said.
    pub window: Option<u64>,
    /// What its tokens cost, where that is said.
    pub prices: Option<Prices>,
}

impl ContextRules {
    /// Tokens that a model can hold. One that `holds` more already is a larger variant of itself.
    #[must_use]
    pub fn window(&self, model: &str, holds: u64) -> u64 {
        let variant = self.variants.iter().find(|(ending, _)| model.ends_with(ending.as_str()));
        if let Some((_, window)) = variant {
            return *window;
        }
        let named = self.known(model, |it| it.window);
        let plain = named.unwrap_or(if self.window == 0 { WINDOW } else { self.window });
        let larger = self.variants.iter().map(|(_, window)| *window);
        let larger = larger.filter(|it| *it > plain && *it >= holds).min();
        larger.filter(|_| holds > plain).unwrap_or(plain)
    }

    /// What the tokens of a model cost, where the pack knows.
    #[must_use]
    pub fn prices(&self, model: &str) -> Option<Prices> {
        self.known(model, |it| it.prices)
    }

    /// What these tokens of a model cost in billionths of a US dollar; 0 where nobody knows.
    #[must_use]
    pub fn cost(&self, model: &str, usage: &Usage) -> u64 {
        self.prices(model).map_or(0, |it| it.cost(usage))
    }

    /// What all that was counted cost.
    #[must_use]
    pub fn spent(&self, meters: &Meters) -> u64 {
        let costs = meters.spent.iter().map(|(model, usage)| self.cost(model, usage));
        costs.fold(0, u64::saturating_add)
    }

    /// Models that were used and of which no price is known.
    #[must_use]
    pub fn unpriced<'m>(&self, meters: &'m Meters) -> Vec<&'m str> {
        let models = meters.spent.keys().map(String::as_str);
        models.filter(|it| self.prices(it).is_none()).collect()
    }

    /// What the most specific glob says that says anything of it.
    fn known<T>(&self, model: &str, look: impl Fn(&Model) -> Option<T>) -> Option<T> {
        let endings = self.variants.iter().map(|(ending, _)| ending.as_str());
        let base = endings.fold(model, |name, ending| name.strip_suffix(ending).unwrap_or(name));
        let said = self.models.iter().filter_map(|(glob, it)| Some((glob, look(it)?)));
        let fitting = said.filter(|(glob, _)| word_matches(glob, base));
        fitting.max_by_key(|(glob, _)| specificity(glob)).map(|(_, it)| it)
    }
}
