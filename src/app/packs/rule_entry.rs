//! The entry of a rule in the text of a file: written, changed, or removed, while the rest of the file stays.

use std::sync::Arc;

use super::pack_change::line_end;
use super::rule_change::{OverriddenRule, OverrideOwner, RuleSwitch};
use policyd_yaml::node::{Node, NodeKind};
use policyd_yaml::{Source, yaml};

/// Keys of an entry that only disables or softens a rule.
const OWN_KEYS: [&str; 5] = ["id", "override", "enabled", "mode", "reason"];

/// Which keys an entry states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKeys {
    /// Those that differ from the usual values.
    Fewest,
    /// `enabled` and `mode`, because a pack below states other values.
    All,
}

/// What the file must say of a rule.
#[derive(Debug, Clone, Copy)]
pub(super) struct RuleEntry<'a> {
    pub(super) id: &'a str,
    pub(super) switch: RuleSwitch,
    pub(super) reason: Option<&'a str>,
    pub(super) keys: EntryKeys,
}

impl RuleEntry<'_> {
    /// Whether a file has the entry of a rule with one of these names.
    pub(super) fn is_in(source: &Arc<Source>, names: &[&str]) -> bool {
        if !names.iter().any(|it| source.text.contains(it)) {
            return false;
        }
        yaml::parse(source).0.is_some_and(|it| find(&it, names).is_some())
    }

    /// Returns the overrides of a file.
    pub(super) fn overrides_in(source: &Arc<Source>, owner: OverrideOwner) -> Vec<OverriddenRule> {
        let root = yaml::parse(source).0;
        let items = root.as_ref().and_then(Node::items).unwrap_or_default();
        let is_off = |it: &Node| it.get("enabled").and_then(Node::bool) == Some(false);
        let is_override = |it: &Node| it.get("override").and_then(Node::bool) == Some(true);
        let overrides = items.iter().filter(|it| is_override(it) || is_off(it));
        let row = |it: &Node| {
            let text = |key: &str| it.get(key).and_then(Node::text).unwrap_or_default();
            let has_other = it
                .entries()
                .unwrap_or_default()
                .iter()
                .any(|(key, _)| !key.text().is_some_and(|it| OWN_KEYS.contains(&it)));
            let state = match (it.get("enabled").and_then(Node::bool), text("mode")) {
                (Some(false), _) => "off",
                _ if has_other => "changed",
                (_, "warn") => "warn",
                (_, "shadow") => "observe",
                _ => "on",
            };
            let place = it.get("id").unwrap_or(it).span.place();
            let reason = match it.get("enabled").filter(|_| !is_override(it)) {
                Some(enabled) => {
                    let is_flow = it.span.text().starts_with('{');
                    let end = if is_flow { it.span.end } else { enabled.span.end };
                    comment_after(&source.text, end).to_owned()
                }
                None => text("reason").trim().to_owned(),
            };
            OverriddenRule { id: text("id").to_owned(), state, reason, place, owner }
        };
        overrides.map(row).collect()
    }

    /// Returns the values of `enabled` and `mode`, where the entry states them.
    fn values(&self) -> [(&'static str, Option<&'static str>); 2] {
        let all = self.keys == EntryKeys::All;
        let mode = match self.switch {
            RuleSwitch::Off => None,
            RuleSwitch::Warn => Some("warn"),
            RuleSwitch::Observe => Some("shadow"),
            RuleSwitch::On => all.then_some("enforce"),
        };
        let enabled = match self.switch {
            RuleSwitch::Off => Some("false"),
            RuleSwitch::Warn | RuleSwitch::Observe | RuleSwitch::On => all.then_some("true"),
        };
        [("enabled", enabled), ("mode", mode)]
    }

    /// Returns the override in one line.
    pub(super) fn line(&self) -> String {
        let usual = format!("set with `policyd rule {}`", self.switch.name());
        let reason =
            self.reason.map_or(usual, |it| it.split_whitespace().collect::<Vec<_>>().join(" "));
        let reason = serde_json::Value::from(reason);
        let keys = self.values().into_iter();
        let keys = keys.filter_map(|(key, value)| Some(format!("{key}: {}, ", value?)));
        let keys: String = keys.collect();
        format!("- {{id: {}, override: true, {keys}reason: {reason}}}\n", self.id)
    }

    /// Whether the rule needs no override.
    fn is_default(&self) -> bool {
        self.switch == RuleSwitch::On && self.keys == EntryKeys::Fewest
    }

    /// Returns the text of a file with the entry. `names` are the id and the earlier ids. `None` if the file has a form
    /// that this does not edit.
    pub(super) fn put_into(&self, text: &str, names: &[&str]) -> Option<String> {
        // A file from Windows keeps its line ends.
        let unix = text.replace("\r\n", "\n");
        if unix.len() < text.len() && !unix.contains('\r') {
            return Some(self.put_into_lines(&unix, names)?.replace('\n', "\r\n"));
        }
        self.put_into_lines(text, names)
    }

    fn put_into_lines(&self, text: &str, names: &[&str]) -> Option<String> {
        let source = Arc::new(Source { name: "rules".to_owned(), text: text.to_owned() });
        let Some(root) = yaml::parse(&source).0 else {
            let line = if self.is_default() { String::new() } else { self.line() };
            return Some(format!("{}{line}", with_line_end(text)));
        };
        let items = root.items()?;
        if root.span.text().starts_with('[') {
            return None;
        }
        let Some(entry) = find(&root, names) else {
            let indent = items.first().map_or(0, |it| it.span.line_column().1.saturating_sub(3));
            let line = if self.is_default() { String::new() } else { self.line() };
            let indent = if line.is_empty() { String::new() } else { " ".repeat(indent) };
            return Some(format!("{}{indent}{line}", with_line_end(text)));
        };
        if is_plain_override(entry) {
            self.replaced(text, entry)
        } else {
            self.changed(text, entry)
        }
    }

    /// Replaces an entry that only disables or softens the rule.
    fn replaced(&self, text: &str, entry: &Node) -> Option<String> {
        let start = text.get(..entry.span.start)?.rfind('\n').map_or(0, |it| it.saturating_add(1));
        let end = line_end(text, entry.span.end).saturating_add(1).min(text.len());
        let lead = text.get(start..entry.span.start)?;
        let line = if self.is_default() {
            String::new()
        } else {
            format!("{}{}", lead.split('-').next()?, self.line())
        };
        Some(format!("{}{line}{}", text.get(..start)?, text.get(end..)?))
    }

    /// Sets the keys of an entry that also says other things.
    fn changed(&self, text: &str, entry: &Node) -> Option<String> {
        let mut edits: Vec<(usize, usize, String)> = Vec::new();
        let NodeKind::Map(entries) = &entry.kind else { return None };
        let (id, id_value) = entries.first()?;
        let is_flow = entry.span.text().starts_with('{');
        let reason = self.reason.map(|it| it.split_whitespace().collect::<Vec<_>>().join(" "));
        // An own rule has no key for the reason.
        let comment = match (&reason, entry.get("reason")) {
            (Some(reason), Some(old)) => {
                let reason = serde_json::Value::from(reason.as_str()).to_string();
                edits.push((old.span.start, old.span.end, reason));
                String::new()
            }
            (Some(reason), None) => format!("  # {reason}"),
            (None, _) => String::new(),
        };
        for (key, value) in self.values() {
            let usual = if key == "enabled" { "true" } else { "enforce" };
            match (entry.get(key), value) {
                (Some(_), None) if key == "mode" && self.switch == RuleSwitch::Off => {}
                // The line of the first key begins the entry.
                (Some(old), None) if !is_flow && id.text() != Some(key) => {
                    let start = text.get(..old.span.start)?.rfind('\n')?;
                    edits.push((start, line_end(text, old.span.end), String::new()));
                }
                (Some(old), Some(value)) if !is_flow && !comment.is_empty() => {
                    let end = line_end(text, old.span.end);
                    edits.push((old.span.start, end, format!("{value}{comment}")));
                }
                (Some(old), value) => {
                    let new = value.unwrap_or(usual).to_owned();
                    edits.push((old.span.start, old.span.end, new));
                }
                (None, None) => {}
                (None, Some(value)) if is_flow => {
                    let at = id_value.span.end;
                    edits.push((at, at, format!(", {key}: {value}")));
                }
                (None, Some(value)) => {
                    let at = line_end(text, id_value.span.end);
                    let indent = " ".repeat(id.span.line_column().1.saturating_sub(1));
                    edits.push((at, at, format!("\n{indent}{key}: {value}{comment}")));
                }
            }
        }
        if is_flow && !comment.is_empty() {
            let (end, rest) = (line_end(text, entry.span.end), text.get(entry.span.end..)?);
            let rest = rest.lines().next().unwrap_or_default().trim_start();
            if rest.is_empty() || rest.starts_with('#') {
                edits.push((entry.span.end, end, comment));
            }
        }
        edits.sort_by_key(|(start, ..)| std::cmp::Reverse(*start));
        let mut text = text.to_owned();
        for (start, end, new) in edits {
            text = format!("{}{new}{}", text.get(..start)?, text.get(end..)?);
        }
        Some(text)
    }
}

/// Returns the comment behind a position on its line.
fn comment_after(text: &str, end: usize) -> &str {
    let rest = text.get(end..line_end(text, end)).unwrap_or_default();
    rest.trim().strip_prefix('#').unwrap_or_default().trim()
}

/// Returns the entry with one of these ids.
fn find<'n>(root: &'n Node, names: &[&str]) -> Option<&'n Node> {
    let mut items = root.items()?.iter();
    items.find(|it| it.get("id").and_then(Node::text).is_some_and(|id| names.contains(&id)))
}

/// Whether an entry only disables or softens an inherited rule.
fn is_plain_override(entry: &Node) -> bool {
    let keys = entry.entries().unwrap_or_default();
    let is_own = |key: &Node| key.text().is_some_and(|it| OWN_KEYS.contains(&it));
    entry.get("override").and_then(Node::bool) == Some(true)
        && keys.iter().all(|(key, _)| is_own(key))
}

/// Returns a text that ends with a line end, unless it is empty.
fn with_line_end(text: &str) -> String {
    match text.trim().is_empty() {
        true => String::new(),
        false => format!("{}\n", text.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(text: &str, switch: RuleSwitch, keys: EntryKeys) -> Option<String> {
        RuleEntry { id: "x", switch, reason: Some("why: a \"b\""), keys }
            .put_into(text, &["x", "old"])
    }

    const OFF: &str = "- {id: x, override: true, enabled: false, reason: \"why: a \\\"b\\\"\"}\n";

    #[test]
    fn an_override_is_added_replaced_and_removed() {
        let off = |text| put(text, RuleSwitch::Off, EntryKeys::Fewest).unwrap();
        let on = |text| put(text, RuleSwitch::On, EntryKeys::Fewest).unwrap();
        assert_eq!(off(""), OFF);
        assert_eq!(off("- id: y\n  commands: [y]"), format!("- id: y\n  commands: [y]\n{OFF}"));
        assert_eq!(off("# a\n  - id: y\n"), format!("# a\n  - id: y\n  {OFF}"));
        let warns = "# a\n- {id: x, override: true, mode: warn, reason: r}  # b\n- id: y  # c\n";
        assert_eq!(off(warns), format!("# a\n{OFF}- id: y  # c\n"));
        assert_eq!(on(warns), "# a\n- id: y  # c\n");
        let block = "- id: old\n  override: true\n  mode: warn\n  reason: r\n- id: y\n";
        assert_eq!(off(block), format!("{OFF}- id: y\n"));
        assert_eq!(on(block), "- id: y\n");
        assert_eq!(on(""), "");
        let all = put("", RuleSwitch::On, EntryKeys::All).unwrap();
        assert!(
            all.starts_with("- {id: x, override: true, enabled: true, mode: enforce, "),
            "{all}"
        );
    }

    #[test]
    fn other_keys_of_an_entry_stay() {
        let own = "- id: x  # ours\n  commands: [x]\n  mode: warn\n- id: y\n";
        for (switch, after) in [
            (
                RuleSwitch::Off,
                "- id: x  # ours\n  enabled: false  # why: a \"b\"\n  commands: [x]\n  mode: warn\n- id: y\n",
            ),
            (
                RuleSwitch::Observe,
                "- id: x  # ours\n  commands: [x]\n  mode: shadow  # why: a \"b\"\n- id: y\n",
            ),
            (RuleSwitch::On, "- id: x  # ours\n  commands: [x]\n- id: y\n"),
        ] {
            assert_eq!(put(own, switch, EntryKeys::Fewest).as_deref(), Some(after), "{switch:?}");
        }
        let off = put(own, RuleSwitch::Off, EntryKeys::Fewest).unwrap();
        let on = put(&off, RuleSwitch::On, EntryKeys::Fewest).unwrap();
        assert_eq!(on, "- id: x  # ours\n  commands: [x]\n- id: y\n");
        let first = "- mode: warn\n  id: x\n  commands: [x]\n";
        let on = put(first, RuleSwitch::On, EntryKeys::Fewest).unwrap();
        assert_eq!(on, "- mode: enforce\n  id: x\n  commands: [x]\n");
        let flow = "- {id: x, override: true, enabled: false, decision: ask, reason: r}\n";
        assert_eq!(
            put(flow, RuleSwitch::Warn, EntryKeys::Fewest).as_deref(),
            Some(
                "- {id: x, mode: warn, override: true, enabled: true, decision: ask, reason: \"why: a \\\"b\\\"\"}\n"
            )
        );
        let own = "- {id: x, commands: [x]}\r\n- {id: y}\r\n";
        let off = put(own, RuleSwitch::Off, EntryKeys::Fewest).unwrap();
        let wanted = "- {id: x, enabled: false, commands: [x]}  # why: a \"b\"\r\n- {id: y}\r\n";
        assert_eq!(off, wanted);
        let source = Arc::new(Source { name: "guards.yaml".to_owned(), text: off });
        let listed = RuleEntry::overrides_in(&source, OverrideOwner::Project);
        assert_eq!(
            listed.iter().map(|it| it.reason.as_str()).collect::<Vec<_>>(),
            ["why: a \"b\""]
        );
        assert_eq!(put("[{id: x}]\n", RuleSwitch::Off, EntryKeys::Fewest), None);
        assert_eq!(put("a: b\n", RuleSwitch::Off, EntryKeys::Fewest), None);
    }
}
