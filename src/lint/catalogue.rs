//! The catalog of lint rules: one row per rule. `rule!` takes the code, name, level, profile, and summary, and the
//! checks that report findings of the rule. The loader reports the findings of rows without checks. The page of a
//! rule is in `docs`.

use super::checks::{
    answers, arithmetic, breakers, cases, changes, clients, events, expressions, failures, globs,
    guards, hygiene, identity, lines, literals, memory, messages, names, near_miss, numbers, odds,
    operands, options, patterns, probes, programs, prose, regexes, rules, safety, session_types,
    structure, supervision, tables, texts, tools, vocabulary,
};
use super::profile::Profile;
use super::rule::{Rule, RuleFn};
use policyd_yaml::Level;

/// No check: `ignore` reports these findings itself, since they are about findings, not about the pack.
const IGNORES: RuleFn = |_, _| {};

macro_rules! rule {
    ($code:literal, $name:literal, $level:ident, $profile:ident, $summary:literal $(, $check:expr)*) => {
        Rule {
            code: $code,
            name: $name,
            level: Level::$level,
            profile: Profile::$profile,
            summary: $summary,
            page: include_str!(concat!("docs/", $code, ".md")),
            checks: &[$($check),*],
        }
    };
}

/// All rules, in the order of their codes.
#[rustfmt::skip]
pub(super) const ROWS: &[Rule] = &[
    rule!("PD001", "yaml-syntax", Error, Default, "The file is not valid YAML."),
    rule!("PD002", "duplicate-key", Error, Default, "A map contains the same key twice."),
    rule!("PD003", "unknown-key", Error, Default, "A key is not part of the format."),
    rule!("PD004", "missing-key", Error, Default, "A required key is missing or has no value."),
    rule!("PD006", "wrong-type", Error, Default, "A key or a value has a type that the format does not accept."),
    rule!("PD007", "unknown-value", Error, Default, "A value is not one of the values that its key accepts."),
    rule!("PD008", "out-of-range", Error, Default, "A number is outside the permitted range."),
    rule!("PD011", "bad-time", Error, Default, "A duration or a date is not valid."),
    rule!("PD013", "unsupported-yaml", Error, Default, "The file uses a feature of YAML that the format does not support."),
    rule!("PD021", "limit-exceeded", Error, Default, "A file, a list, a text or an id exceeds its limit."),
    rule!("PD025", "unknown-file", Error, Default, "The file name is not part of the pack format, so the file is not loaded."),
    rule!("PD026", "unused-file", Warning, Default, "A policy file is empty, or in a directory that policyd does not read.", structure::empty_file, structure::ignored_directory),
    rule!("PD031", "cut-by-comment", Warning, Default, "A `#` starts a comment and cuts off the rest of a text.", structure::cut_by_comment),
    rule!("PD101", "duplicate-id", Error, Default, "Two entries have the same id."),
    rule!("PD106", "unknown-name", Error, Default, "A rule uses a name that is not defined."),
    rule!("PD108", "event-cannot-block", Error, Default, "A rule cannot decide at its events."),
    rule!("PD110", "similar-names", Warning, Default, "Two ids or keys are identical except for case, `-` and `_`.", identity::similar_names),
    rule!("PD111", "id-form", Warning, Default, "An id contains characters that expressions cannot use in a name.", identity::id_form),
    rule!("PD112", "unused-entry", Warning, Default, "No rule uses this entry.", identity::unused_checker, identity::unused_pattern, identity::unused_fact, identity::never_remembered, tables::unused_input),
    rule!("PD116", "missing-reason", Warning, Default, "A rule is weakened, disabled or limited in time and has no `reason`.", changes::loosened_without_reason, changes::expires_without_reason, changes::disabled_without_reason),
    rule!("PD117", "expired", Warning, Default, "A rule has expired, or expires within two weeks.", changes::expired, changes::expires_soon),
    rule!("PD123", "implicit-override", Warning, Default, "An entry replaces an inherited one without `override: true`.", changes::implicit_override),
    rule!("PD124", "incomplete-order", Error, Default, "`order` omits a group that has rules."),
    rule!("PD129", "signal-field", Warning, Default, "A signal is created with an undefined field or without a required one.", names::signal_field),
    rule!("PD132", "bad-name", Error, Default, "The name of a signal or of its field is not permitted."),
    rule!("PD139", "empty-filter", Error, Default, "A guard has an empty filter, so it applies to everything or to nothing.", guards::empty_filter),
    rule!("PD140", "unmatchable-command", Warning, Default, "A command pattern names a word that guards do not see as a program.", programs::wrapper_command, programs::word_as_program, programs::directory_as_program),
    rule!("PD149", "captures-inherited", Warning, Default, "A failure class or session type of the pack captures cases of inherited ones.", failures::overlapping_class, session_types::overlapping_session_type),
    rule!("PD152", "unavailable-source", Error, Default, "A remote pack that the manifest extends cannot be used."),
    rule!("PD201", "expression-syntax", Error, Default, "An expression or a placeholder has a syntax error."),
    rule!("PD202", "unknown-fact", Error, Default, "An expression uses a fact, field, function or operator that does not exist."),
    rule!("PD204", "wrong-arguments", Error, Default, "A function has the wrong number or types of arguments."),
    rule!("PD205", "type-mismatch", Error, Default, "A value has a type that its position does not accept."),
    rule!("PD209", "impossible-value", Error, Default, "A fact is compared with a value that it never has."),
    rule!("PD210", "unavailable-fact", Error, Default, "An expression uses a fact that is not available at this position."),
    rule!("PD213", "division-by-zero", Error, Default, "A number is divided by zero.", arithmetic::division_by_zero),
    rule!("PD214", "mixed-operators", Warning, Default, "`&&` and `||` are mixed without parentheses.", expressions::mixed_operators),
    rule!("PD219", "missing-result", Warning, Default, "A condition reads a probe result that might be missing.", answers::unguarded_probe, answers::disabled_probe),
    rule!("PD223", "pattern-from-text", Warning, Default, "A value from outside of the pack becomes part of a regular expression.", texts::pattern_from_text),
    rule!("PD225", "path-by-prefix", Warning, Default, "A path prefix does not end with `/`, so it also matches other directories.", texts::path_by_prefix),
    rule!("PD230", "unavailable-at-event", Warning, Default, "A rule reads a fact or an event that its events do not have.", events::unavailable_at_event, events::other_event),
    rule!("PD231", "undefined-name", Error, Default, "An expression or a guard uses a name that is not defined.", names::undefined_name, tools::unknown_guard_tool, tools::unknown_tool),
    rule!("PD232", "misspelled-name", Warning, Default, "A name is similar to a known one, so it is probably misspelled.", near_miss::misspelled_name, identity::unmatched_breaker, identity::unknown_voice, programs::misspelled_program, tools::misspelled_input),
    rule!("PD234", "wrong-scale", Warning, Default, "A number or a duration is on the wrong scale.", arithmetic::share_and_percent, arithmetic::position_and_number, numbers::zero_duration, numbers::suspicious_unit),
    rule!("PD235", "unguarded-division", Warning, Default, "A number is divided by a fact that can be zero.", arithmetic::unguarded_division),
    rule!("PD237", "in-text", Warning, Default, "`in` tests for a substring where a list is probably intended.", texts::in_text),
    rule!("PD241", "irrelevant-for-rule", Warning, Default, "A rule tests for something that its tools, programs or session types never have.", odds::irrelevant_for_rule, tools::unsupported_by_tool, guards::no_shell_tool),
    rule!("PD243", "missing-field", Warning, Default, "An expression reads a field that the result of a probe does not have.", answers::field_not_asked, answers::field_of_string),
    rule!("PD244", "program-by-text", Warning, Default, "A guard matches a program by the text of the command line.", lines::program_by_text),
    rule!("PD301", "bad-regex", Error, Default, "A regular expression is not valid."),
    rule!("PD303", "unmatchable-pattern", Error, Default, "A pattern contains a control character, so it cannot match.", patterns::backspace, patterns::ends_in_newline),
    rule!("PD304", "matches-everything", Warning, Default, "A pattern or an argument matches everything.", patterns::matches_everything, texts::empty_argument, vocabulary::common_phrase),
    rule!("PD307", "bad-glob", Error, Default, "A glob is not valid, or cannot match any path.", globs::bad_glob, globs::outside_of_project, globs::glob_cannot_match),
    rule!("PD309", "redundant-item", Warning, Default, "An item of a list is a duplicate or is covered by another one.", patterns::covered_pattern, failures::overlapping_errors, expressions::duplicate_in_list, session_types::redundant_session_type),
    rule!("PD310", "shell-in-pattern", Error, Default, "A command pattern contains shell syntax, so it never matches.", programs::shell_in_pattern),
    rule!("PD313", "never-matches", Warning, Default, "A text is searched for where it never occurs.", operands::invalid_operand, patterns::finds_no_number, vocabulary::unreachable_list_name, texts::relative_path, texts::impossible_letter_case, texts::partial_list_match, lines::not_in_line, options::no_option, prose::unmatchable_phrase, globs::absolute_glob),
    rule!("PD315", "regex-in-literal", Warning, Default, "A literal text is written as a regular expression or a glob.", literals::regex_in_literal),
    rule!("PD319", "deceptive-regex", Warning, Default, "A part of a regular expression has another meaning than it seems to have.", regexes::deceptive_regex, patterns::doubled_backslash),
    rule!("PD405", "text-too-long", Warning, Default, "A text exceeds the length that clients show.", messages::text_too_long),
    rule!("PD406", "foreign-placeholder", Warning, Default, "A text contains a placeholder that policyd does not replace.", messages::foreign_placeholder),
    rule!("PD408", "blocked-guidance", Warning, Default, "The guidance of a check contains a command that a guard blocks.", messages::blocked_guidance),
    rule!("PD504", "contradictory-settings", Warning, Default, "Settings contradict each other or have no effect.", numbers::guard_contradiction, memory::memory_contradiction, failures::invalid_channel_directory, breakers::breaker_contradiction, failures::contradiction, supervision::context_contradiction, supervision::run_contradiction, supervision::signal_contradiction, supervision::goal_missing_from_prompt, failures::abandon_before_escalation),
    rule!("PD601", "constant-condition", Warning, Default, "A condition, or a part of it, is constant or redundant.", rules::never_true, rules::always_true, rules::constant_part, rules::redundant_part),
    rule!("PD606", "no-default-session-type", Warning, Default, "A session can have no type.", session_types::no_default_session_type),
    rule!("PD609", "words-only", Note, Default, "A rule depends only on message text, so it never blocks.", rules::words_only_blocker),
    rule!("PD610", "no-effect", Warning, Default, "A key or an entry has no effect.", rules::blocking_without_effect, rules::does_nothing, messages::message_and_guidance, rules::checker_and_satisfied),
    rule!("PD615", "unreachable-entry", Warning, Default, "An entry never decides because other entries cover every case.", rules::unreachable_rule, messages::unreachable_text, session_types::unreachable_session_type, failures::unreachable_class, guards::shadowed_guard),
    rule!("PD616", "contradictory-conditions", Warning, Default, "Two conditions of a rule contradict each other.", odds::contradictory_conditions, vocabulary::excused_pattern, odds::never_fires),
    rule!("PD621", "guard-always-fires", Warning, Default, "A guard applies to every call, or allows every command of a shell.", guards::guard_always_fires),
    rule!("PD623", "no-text", Warning, Default, "A rule has no text for the agent or user.", guards::guard_without_message, messages::no_guidance),
    rule!("PD700", "broken-case", Error, Default, "A case file contains an error.", cases::broken_case),
    rule!("PD701", "missing-case", Warning, Strict, "No test case makes this rule fire, or none makes it pass.", cases::no_firing_case, cases::no_passing_case),
    rule!("PD705", "bidi-character", Error, Default, "A character changes the display order of text.", hygiene::bidi_character),
    rule!("PD706", "deceptive-character", Warning, Default, "A character is invisible or looks like another one.", hygiene::invisible_character, hygiene::unusual_whitespace, hygiene::confusable_id),
    rule!("PD708", "secret", Error, Default, "A file of the pack contains a possible credential.", hygiene::secret),
    rule!("PD709", "personal-path", Warning, Default, "A rule contains a path in a personal home directory.", hygiene::personal_path),
    rule!("PD710", "suppression-comment", Warning, Default, "A suppression comment is malformed, expired, unused, or without a reason.", IGNORES),
    rule!("PD714", "impossible-case", Warning, Default, "A test case uses a tool, field, program or mode that no client produces.", cases::impossible_case),
    rule!("PD801", "unsafe-setting", Warning, Default, "A setting disables protection, or blocks the agent on an error.", safety::block_on_error, safety::disabled_guard_set),
    rule!("PD805", "unsafe-probe", Warning, Default, "A probe runs a shell, a program of the project, or a command with side effects.", probes::relative_program, probes::shell_probe, probes::writing_probe),
    rule!("PD807", "shell-words", Warning, Default, "A command contains shell syntax, but policyd runs it without a shell.", probes::shell_words),
    rule!("PD811", "not-in-harness", Warning, Default, "The client does not support an event or decision of a rule.", clients::not_in_harness),
];

/// Returns the rule with this code or name.
#[must_use]
pub fn find(code_or_name: &str) -> Option<&'static Rule> {
    let is_named =
        |it: &&Rule| it.name == code_or_name || it.code.eq_ignore_ascii_case(code_or_name);
    ROWS.iter().find(is_named)
}

/// Returns the code of a finding by its name. A name without a row is its own code.
#[must_use]
pub fn code_of(name: &'static str) -> &'static str {
    find(name).map_or(name, |rule| rule.code)
}
