//! The names of a pack that cases may use: whatever else a case names is a typo.

use crate::facts::glob::word_matches;
use crate::policy::Policy;
use crate::policy::review::Meant;
use crate::source::node::Node;
use crate::source::{Diagnostic, suggest};

/// Names by what they are names of.
#[derive(Debug, Clone, Default)]
pub struct Known {
    pub(super) considerations: Vec<String>,
    pub(super) session_types: Vec<String>,
    pub(super) preferences: Vec<String>,
    /// Probes, and whether each is switched on.
    pub(super) probes: Vec<(String, bool)>,
    /// Breakers; what holds a `*` stands for many.
    pub(super) breakers: Vec<String>,
    pub(super) voices: Vec<String>,
    pub(super) tables: Vec<String>,
    pub(super) signals: Vec<String>,
    pub(super) classes: Vec<String>,
    pub(super) guards: Vec<String>,
}

impl Known {
    /// The names of a pack.
    #[must_use]
    pub fn of(policy: &Policy) -> Self {
        let choices = policy.messages.values().flatten();
        let mut voices: Vec<String> = choices.filter_map(|it| it.voice.clone()).collect();
        voices.push(policy.settings.voice.clone());
        voices.sort();
        voices.dedup();
        let told = policy.reactions.iter().filter_map(|it| {
            let (before, _) = it.breaker.split_once("${")?;
            Some(format!("{before}*"))
        });
        Self {
            considerations: policy.considerations.iter().map(|it| it.id.clone()).collect(),
            session_types: policy.session_types.iter().map(|it| it.id.clone()).collect(),
            preferences: policy.preferences.iter().map(|it| it.id.clone()).collect(),
            probes: policy.probes.iter().map(|it| (it.id.clone(), it.enabled)).collect(),
            breakers: policy.breaker_names().into_iter().chain(told).collect(),
            voices,
            tables: policy.tables.iter().map(|it| it.id.clone()).collect(),
            signals: policy.signals.kinds.iter().map(|it| it.id.clone()).collect(),
            guards: policy.guards.rules.iter().map(|it| it.id.clone()).collect(),
            classes: policy.failures.classes.iter().map(|it| it.id.clone()).collect(),
        }
    }

    /// The same of a pack that somebody looks closer at, as far as that knows them.
    #[must_use]
    pub fn of_meant(meant: &Meant) -> Self {
        let texts = |ids: &mut dyn Iterator<Item = &str>| ids.map(str::to_owned).collect();
        let ids = |file| texts(&mut meant.ids_of(file));
        Self {
            considerations: ids("considerations.yaml"),
            session_types: ids("session_types.yaml"),
            preferences: ids("preferences.yaml"),
            probes: meant.all_probes().map(|(id, on)| (id.to_owned(), on)).collect(),
            // Which of them somebody looks at is known where the pack is loaded.
            breakers: vec!["*".to_owned()],
            voices: texts(&mut meant.voices().chain([meant.settings.voice.as_str()])),
            tables: ids("tables.yaml"),
            signals: texts(&mut meant.ids("signals.yaml", "signals")),
            guards: texts(&mut meant.guards()),
            classes: texts(&mut meant.ids("failures.yaml", "classes")),
        }
    }

    pub(super) fn probe_ids(&self) -> Vec<String> {
        self.probes.iter().map(|(id, _)| id.clone()).collect()
    }

    /// What a case can switch on.
    pub(super) fn switched_on(&self) -> Vec<String> {
        self.considerations.iter().cloned().chain(self.probe_ids()).collect()
    }

    /// What a case can switch off: guards that the pack switches off are not there.
    pub(super) fn switched_off(&self) -> Vec<String> {
        self.switched_on().into_iter().chain(self.guards.iter().cloned()).collect()
    }
}

/// Complains about a name that is none of the known ones and fits none of their globs.
pub(super) fn check_name(
    node: &Node,
    (what, code): (&str, &'static str),
    known: &[String],
    findings: &mut Vec<Diagnostic>,
) {
    let name = node.text().unwrap_or_default();
    if known.iter().any(|it| it == name || (it.contains('*') && word_matches(it, name))) {
        return;
    }
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let message = format!("there is no {what} `{name}` in this pack");
    let finding = Diagnostic::error(code, node.span.clone(), message);
    findings.push(match suggest::did_you_mean(name, &known) {
        Some(help) => finding.with_help(help),
        None => finding,
    });
}
