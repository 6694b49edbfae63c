//! Edited files and the findings in their text. An edit counts when the tool is called. It is
//! reverted if its result says that it did not happen.

use policyd_shell::patch;
use std::collections::BTreeSet;

use super::super::compiled::{CompiledContent, CompiledMatchers};
use super::super::record::lenient::Either;
use super::super::record::wire::Input;
use super::super::{EditUndo, EditedFile, Facts, Finding};
use super::{cut, masked_front};
use policyd_base::limits::{
    EVIDENCE_CHARS_MAX, FILE_EDITS_KEPT_MAX, FILES_KEPT_MAX, FINDINGS_KEPT_MAX, NAME_TEXT_MAX,
};
use policyd_yaml::checksum::checksum;
use policyd_yaml::secrets::{MARK, mask};

/// The text that an edit removes from a file and adds to it.
struct EditChange<'a> {
    path: &'a str,
    old: &'a str,
    new: &'a str,
    /// Whether the edit creates or replaces the whole file.
    whole: bool,
}

impl Facts {
    /// Records a call of an edit tool. `text` is the input if it is not an object.
    pub(super) fn edit_call(
        &mut self,
        tool: &str,
        input: &Input<'_>,
        text: &str,
        lens: &CompiledMatchers,
    ) -> Vec<EditUndo> {
        let patch_text = if input.input.is_empty() { text } else { &*input.input };
        let patched = patch::files(patch_text);
        if !patched.is_empty() {
            let mut undos = Vec::new();
            for file in patched.iter().take(FILES_KEPT_MAX) {
                let patch::FilePatch { path, old, new, whole } = file;
                self.change(tool, &EditChange { path, old, new, whole: *whole }, lens, &mut undos);
            }
            return undos;
        }
        let command =
            if let Either::Text(command) = &input.command { command.as_ref() } else { "" };
        let path = if input.file_path.is_empty() { &*input.path } else { &*input.file_path };
        if path.is_empty() || command == "view" {
            return Vec::new();
        }
        let mut undos = Vec::new();
        let mut changes: Vec<EditChange<'_>> = input
            .edits
            .elements()
            .filter_map(Either::one)
            .map(|edit| EditChange {
                path,
                old: &edit.old_string,
                new: &edit.new_string,
                whole: false,
            })
            .collect();
        if changes.is_empty() {
            let whole = !input.content.is_empty()
                || (input.old_string.is_empty() && input.new_string.is_empty());
            let new = if whole { &*input.content } else { &*input.new_string };
            changes.push(EditChange { path, old: &input.old_string, new, whole });
        }
        for change in &changes {
            self.change(tool, change, lens, &mut undos);
        }
        undos
    }

    /// Records files that a command writes. Their content is unknown.
    pub(super) fn written_by_command(
        &mut self,
        tool: &str,
        paths: &[String],
        lens: &CompiledMatchers,
    ) -> Vec<EditUndo> {
        let mut undos = Vec::new();
        for path in paths {
            self.change(
                tool,
                &EditChange { path, old: "", new: "", whole: false },
                lens,
                &mut undos,
            );
        }
        undos
    }

    fn change(
        &mut self,
        tool: &str,
        change: &EditChange<'_>,
        lens: &CompiledMatchers,
        undos: &mut Vec<EditUndo>,
    ) {
        let path = cut(change.path, NAME_TEXT_MAX);
        if !undos.iter().any(|undo| undo.path == path) {
            let before = self.touch(path, tool, lens);
            let path = path.to_owned();
            undos.push(EditUndo { path, before, removed: Vec::new(), whole: false });
        }
        let Some(file) = self.files.last_mut().filter(|file| file.path == path) else { return };
        if let Some(undo) = undos.iter_mut().find(|undo| undo.path == path) {
            file.written += u64::from(change.whole && !undo.whole);
            undo.whole |= change.whole;
        }
        record_change(file, change);
        let kinds = file.kinds.clone();
        let removed = self.remove_findings(path, change, lens);
        let known: BTreeSet<String> = removed.iter().map(|it| it.excerpt.clone()).collect();
        if let Some(undo) = undos.iter_mut().find(|undo| undo.path == path) {
            undo.removed.extend(removed.into_iter().filter(|finding| finding.seq != self.seq));
        }
        // Text that was in the file before the edit is not the agent's work.
        let inherited = |excerpt: &str| {
            !known.contains(excerpt) && change.old.lines().any(|line| excerpt_of(line) == excerpt)
        };
        self.add_findings(path, &kinds, change.new, inherited, lens);
    }

    /// Counts one edit of a file, moves the file to the end, and returns its previous state.
    fn touch(&mut self, path: &str, tool: &str, lens: &CompiledMatchers) -> Option<EditedFile> {
        let known = self.files.iter().position(|file| file.path == path);
        let before = known.map(|index| self.files.remove(index));
        let mut file = before.clone().unwrap_or_else(|| EditedFile {
            path: path.to_owned(),
            first_seq: self.seq,
            kinds: lens.file_kinds(path),
            ..EditedFile::default()
        });
        file.edits += 1;
        file.last_seq = self.seq;
        super::push_bounded(&mut file.edited_at, self.seq, FILE_EDITS_KEPT_MAX);
        tool.clone_into(&mut file.tool);
        super::push_bounded(&mut self.files, file, FILES_KEPT_MAX);
        before
    }

    fn remove_findings(
        &mut self,
        path: &str,
        change: &EditChange<'_>,
        lens: &CompiledMatchers,
    ) -> Vec<Finding> {
        let gone = |finding: &mut Finding| {
            finding.path == path
                && (change.whole
                    || holds_excerpt(change.old, &finding.excerpt)
                    || mended(finding, change, lens))
        };
        self.findings.extract_if(.., gone).collect()
    }

    fn add_findings(
        &mut self,
        path: &str,
        kinds: &BTreeSet<String>,
        text: &str,
        inherited: impl Fn(&str) -> bool,
        lens: &CompiledMatchers,
    ) {
        if text.is_empty() {
            return;
        }
        for pattern in lens.contents().iter().filter(|pattern| pattern.applies_to(kinds)) {
            for line in pattern.lines(text).into_iter().take(FINDINGS_KEPT_MAX) {
                let excerpt = excerpt_of(line);
                if inherited(&excerpt) {
                    continue;
                }
                let (pattern, path) = (pattern.name.clone(), path.to_owned());
                let finding = Finding { pattern, path, excerpt, seq: self.seq };
                keep_finding(&mut self.findings, finding);
            }
        }
    }

    /// Reverts an edit that did not happen.
    pub(super) fn retract(&mut self, undo: EditUndo, seq: u64) {
        self.findings.retain(|finding| finding.path != undo.path || finding.seq != seq);
        for finding in undo.removed {
            keep_finding(&mut self.findings, finding);
        }
        self.findings.sort_by_key(|finding| finding.seq);
        // Later calls stored a state that includes this edit.
        let later = self.pending.iter_mut().filter(|it| it.seq > seq);
        for other in later.flat_map(|it| &mut it.edited).filter(|it| it.path == undo.path) {
            other.removed.retain(|it| it.path != undo.path || it.seq != seq);
            other.before = match other.before.take() {
                Some(before) if before.last_seq == seq => undo.before.clone(),
                before => before.map(|it| without_one(it, undo.whole)),
            };
        }
        let Some(index) = self.files.iter().position(|file| file.path == undo.path) else { return };
        let file = self.files.remove(index);
        let restored = match undo.before {
            None if file.edits <= 1 => return,
            Some(before) if file.last_seq == seq => before,
            None | Some(_) => without_one(file, undo.whole),
        };
        let place = self.files.partition_point(|file| file.last_seq <= restored.last_seq);
        self.files.insert(place, restored);
    }
}

/// Records what an edit changed. An edit that is the opposite of the one before removes it.
fn record_change(file: &mut EditedFile, change: &EditChange<'_>) {
    let hash = |text: &str| u64::from_le_bytes(checksum(&[text.as_bytes()]));
    let is_known = !change.whole && (!change.old.is_empty() || !change.new.is_empty());
    let (old, new) = if is_known { (hash(change.old), hash(change.new)) } else { UNKNOWN_CHANGE };
    if is_known && (old == new || file.open_changes.last() == Some(&(new, old))) {
        if old != new {
            file.open_changes.pop();
        }
        return;
    }
    if file.open_changes.len() >= FILE_EDITS_KEPT_MAX {
        file.open_changes = vec![UNKNOWN_CHANGE];
    }
    file.open_changes.push((old, new));
}

/// A change whose texts are not known. No later edit is its opposite.
const UNKNOWN_CHANGE: (u64, u64) = (0, 0);

/// Returns the stored part of the line of a finding.
fn excerpt_of(line: &str) -> String {
    masked_front(line.trim(), EVIDENCE_CHARS_MAX)
}

/// Returns whether a text contains the line of a finding.
fn holds_excerpt(text: &str, excerpt: &str) -> bool {
    text.contains(excerpt)
        || (excerpt.contains(MARK) && text.lines().any(|line| excerpt_of(line) == excerpt))
}

/// Removes one edit from a file's counters. `whole` says whether the edit replaced the file. Other
/// counters can stem from later edits.
fn without_one(file: EditedFile, whole: bool) -> EditedFile {
    let edits = file.edits.saturating_sub(1).max(1);
    // Which of the changes did not happen is not known.
    let open_changes = vec![UNKNOWN_CHANGE];
    EditedFile {
        edits,
        written: file.written.saturating_sub(u64::from(whole)),
        open_changes,
        ..file
    }
}

/// Appends a finding. Above the bound, the oldest finding of the same pattern is removed, so that a
/// frequent pattern does not displace a rare one.
fn keep_finding(findings: &mut Vec<Finding>, finding: Finding) {
    let same = |it: &Finding| it.pattern == finding.pattern;
    if findings.iter().filter(|it| same(it)).count() >= FINDINGS_KEPT_MAX
        && let Some(oldest) = findings.iter().position(same)
    {
        findings.remove(oldest);
    }
    findings.push(finding);
}

/// Returns whether an edit inside the line of a finding removes the finding.
fn mended(finding: &Finding, change: &EditChange<'_>, lens: &CompiledMatchers) -> bool {
    let (old, new) = (mask(change.old.trim()).0, mask(change.new.trim()).0);
    let old = old.as_ref();
    if old.is_empty() || old.contains('\n') || !finding.excerpt.contains(old) {
        return false;
    }
    let pattern = lens.contents().iter().find(|pattern| pattern.name == finding.pattern);
    let is_found = |pattern: &&CompiledContent, line: &str| !pattern.lines(line).is_empty();
    let Some(pattern) = pattern.filter(|it| is_found(it, &finding.excerpt)) else {
        // The pattern matched inside a secret, which is gone.
        return pattern.is_some_and(|it| old.contains(MARK) && !is_found(&it, change.new));
    };
    !is_found(&pattern, &finding.excerpt.replacen(old, &new, 1))
}
