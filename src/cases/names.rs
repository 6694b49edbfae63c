//! Names of a pack that cases can use. Any other name in a case is an error.

use std::collections::{BTreeMap, BTreeSet};

use policyd_facts::glob::word_matches;
use policyd_policy::Policy;
use policyd_policy::review::Meant;
use policyd_yaml::Diagnostic;
use policyd_yaml::node::Node;

/// The voice of texts that state no voice.
const PLAIN_VOICE: &str = "plain";

/// Names of a pack, by type.
#[derive(Debug, Clone, Default)]
pub struct NameTable {
    pub(super) considerations: Vec<String>,
    pub(super) session_types: Vec<String>,
    pub(super) preferences: Vec<String>,
    /// Probes, and whether each is enabled.
    pub(super) probes: Vec<(String, bool)>,
    /// Breakers. A name with `*` is a glob.
    pub(super) breakers: Vec<String>,
    pub(super) voices: Vec<String>,
    pub(super) tables: Vec<String>,
    pub(super) signals: Vec<String>,
    pub(super) classes: Vec<String>,
    pub(super) guards: Vec<String>,
    /// Guards and checks that the pack disables.
    pub(super) disabled: Vec<String>,
    pub(super) classes_of_commands: Vec<String>,
    /// Earlier ids of checks and guards, each with the present one.
    former: BTreeMap<String, String>,
}

impl NameTable {
    /// Collects the names of a pack.
    #[must_use]
    pub fn of(policy: &Policy) -> Self {
        let choices = policy.messages.values().flatten();
        let mut voices: Vec<String> = choices.filter_map(|it| it.voice.clone()).collect();
        voices.extend([policy.settings.voice.clone(), PLAIN_VOICE.to_owned()]);
        voices.sort();
        voices.dedup();
        let told = policy.reactions.iter().filter_map(|reaction| {
            let (before, _) = reaction.breaker.split_once("${")?;
            Some(format!("{before}*"))
        });
        let guards = policy.guards.rules.iter().map(|it| it.id.clone());
        let off = policy.considerations.iter().filter(|it| !it.enabled).map(|it| it.id.clone());
        let former = policy.former_ids().map(|(former, id)| (former.to_owned(), id.to_owned()));
        Self {
            former: former.collect(),
            classes_of_commands: policy.lens.commands.iter().map(|it| it.name.clone()).collect(),
            considerations: policy.considerations.iter().map(|it| it.id.clone()).collect(),
            session_types: policy.session_types.iter().map(|it| it.id.clone()).collect(),
            preferences: policy.preferences.iter().map(|it| it.id.clone()).collect(),
            probes: policy.probes.iter().map(|it| (it.id.clone(), it.enabled)).collect(),
            breakers: policy.breaker_names().into_iter().chain(told).collect(),
            voices,
            tables: policy.tables.iter().map(|it| it.id.clone()).collect(),
            signals: policy.signals.kinds.iter().map(|it| it.id.clone()).collect(),
            guards: guards.chain(policy.guards.disabled.iter().cloned()).collect(),
            disabled: policy.guards.disabled.iter().cloned().chain(off).collect(),
            classes: policy.failures.classes.iter().map(|it| it.id.clone()).collect(),
        }
    }

    /// Collects the names of a pack for lint, as far as they are known.
    #[must_use]
    pub fn of_meant(meant: &Meant) -> Self {
        let texts = |ids: &mut dyn Iterator<Item = &str>| ids.map(str::to_owned).collect();
        let ids = |file| texts(&mut meant.ids_of(file));
        let voices = meant.voices().chain([meant.settings.voice.as_str(), PLAIN_VOICE]);
        let voices: BTreeSet<&str> = voices.collect();
        let voices = voices.into_iter().map(str::to_owned).collect();
        let former = ["considerations.yaml", "guards.yaml"].into_iter();
        let former = former.flat_map(|file| meant.former_ids_of(file));
        Self {
            former: former.map(|(former, id)| (former.to_owned(), id.to_owned())).collect(),
            classes_of_commands: meant.command_classes().map(str::to_owned).collect(),
            considerations: ids("considerations.yaml"),
            session_types: ids("session_types.yaml"),
            preferences: ids("preferences.yaml"),
            probes: meant.all_probes().map(|(id, on)| (id.to_owned(), on)).collect(),
            // The names of breakers are known only after the pack is loaded.
            breakers: vec!["*".to_owned()],
            voices,
            tables: ids("tables.yaml"),
            signals: texts(&mut meant.ids("signals.yaml", "signals")),
            guards: ids("guards.yaml"),
            disabled: texts(&mut meant.disabled_guards()),
            classes: texts(&mut meant.ids("failures.yaml", "classes")),
        }
    }

    /// Returns the present id of the check or the guard that a node names. Reports a name that is not known.
    pub(super) fn rule<'n>(
        &'n self,
        node: &'n Node,
        kind: NameKind<'_>,
        known: &[String],
        findings: &mut Vec<Diagnostic>,
    ) -> &'n str {
        let name = node.text().unwrap_or_default();
        self.former.get(name).map_or_else(
            || {
                check_names(Some(node), kind, known, findings);
                name
            },
            String::as_str,
        )
    }

    /// Returns the present ids of the rules that a list names. Reports names that are not known.
    pub(super) fn rules(
        &self,
        list: Option<&Node>,
        kind: NameKind<'_>,
        known: &[String],
        findings: &mut Vec<Diagnostic>,
    ) -> Vec<String> {
        let items = list.and_then(Node::items).unwrap_or_default().iter();
        items.map(|it| self.rule(it, kind, known, findings).to_owned()).collect()
    }

    pub(super) fn probe_ids(&self) -> Vec<String> {
        self.probes.iter().map(|(id, _)| id.clone()).collect()
    }

    /// Returns the names that a case can enable.
    pub(super) fn switched_on(&self) -> Vec<String> {
        self.considerations.iter().cloned().chain(self.probe_ids()).collect()
    }

    /// Returns why a case cannot be played: it expects something of a rule that the pack disables, and does not enable it.
    pub(super) fn skip_reason(&self, case: &Node) -> Option<String> {
        let steps = case.get("steps").and_then(Node::items).unwrap_or_default();
        let parts = || std::iter::once(case).chain(steps);
        let enabled = parts().filter_map(|it| it.get("given")?.get("pack")?.get("enable"));
        let enabled: Vec<&str> =
            enabled.flat_map(Node::one_or_items).filter_map(Node::text).collect();
        let expected = parts().filter_map(|it| it.get("expect"));
        let named = expected.flat_map(|it| {
            let keys = ["guards", "considerations"].into_iter().filter_map(|key| it.get(key));
            let keys = keys.flat_map(|rules| rules.entries().unwrap_or_default());
            let decided = it.get("decided_by").map(Node::one_or_items).unwrap_or_default();
            let is_skipped = |it: &Node| {
                it.says("skipped") || it.get("status").is_some_and(|it| it.says("skipped"))
            };
            let rules = keys.filter(move |(_, wanted)| !is_skipped(wanted)).map(|(id, _)| id);
            rules.chain(decided).filter_map(Node::text)
        });
        let present = named.map(|it| self.former.get(it).map_or(it, String::as_str));
        let mut off = present.filter(|it| self.disabled.iter().any(|id| id == it));
        let rule = off.find(|it| !enabled.contains(it))?;
        Some(format!("the pack disables `{rule}`"))
    }

    /// Returns the names that a case can disable.
    pub(super) fn switched_off(&self) -> Vec<String> {
        self.switched_on().into_iter().chain(self.guards.iter().cloned()).collect()
    }
}

/// Kind of a name: how a finding calls it, and the code of the finding.
#[derive(Debug, Clone, Copy)]
pub(super) struct NameKind<'a> {
    pub(super) noun: &'a str,
    pub(super) code: &'static str,
}

impl NameKind<'static> {
    pub(super) const BREAKER: Self = Self { noun: "breaker", code: "unknown-breaker" };
    pub(super) const EVENT: Self = Self { noun: "event", code: "unknown-name" };
    pub(super) const GUARD: Self = Self { noun: "guard", code: "unknown-name" };
    pub(super) const PREFERENCE: Self = Self { noun: "preference", code: "unknown-preference" };
    pub(super) const PROBE: Self = Self { noun: "probe", code: "unknown-probe" };
}

/// Reports names that are neither known nor match a known glob: a text, the items of a list, or the keys of a map.
pub(super) fn check_names(
    names: Option<&Node>,
    kind: NameKind<'_>,
    known: &[impl AsRef<str>],
    findings: &mut Vec<Diagnostic>,
) {
    let Some(node) = names else { return };
    if let Some(entries) = node.entries() {
        entries.iter().for_each(|(key, _)| check_names(Some(key), kind, known, findings));
        return;
    }
    for node in node.one_or_items() {
        let name = node.text().unwrap_or_default();
        let mut names = known.iter().map(AsRef::as_ref);
        if names.any(|it| it == name || (it.contains('*') && word_matches(it, name))) {
            continue;
        }
        let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
        let message = format!("unknown {} `{name}`", kind.noun);
        let finding = Diagnostic::error(kind.code, node.span.clone(), message);
        findings.push(finding.with_meant(name, &known));
    }
}
