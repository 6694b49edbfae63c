//! What trust in a pack grants: commands that it may run, and what it weakens of the built-in pack.
//! What changed since the user trusted the pack. The two policies are compared as they are after loading, so every way to
//! write a change is seen.

use policyd_base::text::counted;
use policyd_facts::pattern::CommandPattern;
use policyd_facts::shell::quote;
use policyd_policy::guards::{Guard, GuardAction, OnUnknown};
use policyd_policy::{
    Check, EnforcementMode, Expression, Mode, OnError, OnSaveFailure, Policy, Severity,
    SourceLocation,
};
use policyd_record::paint::on_one_line;

/// Rules of one kind that are named.
const RULES_SHOWN: usize = 20;

/// Whose rules the rules of a pack are compared with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ComparedRules {
    /// The rules of the built-in pack.
    BuiltIn,
    /// The rules of the same pack when the user trusted it.
    Trusted,
}

impl ComparedRules {
    /// Returns the words before the kind of a rule.
    const fn article(self) -> &'static str {
        match self {
            Self::BuiltIn => "the built-in ",
            Self::Trusted => "the ",
        }
    }

    /// Returns the first word about a rule that the pack does not have.
    const fn without(self) -> &'static str {
        match self {
            Self::BuiltIn => "off     ",
            Self::Trusted => "removed ",
        }
    }
}

/// Lists what a pack may do that the built-in one does not, one line each, control characters
/// escaped: weaker rules first. `builtin` is the policy of the built-in pack.
pub fn list(policy: &Policy, builtin: &Policy) -> Vec<String> {
    let mut lines = weaker(policy, builtin, ComparedRules::BuiltIn);
    if lines.is_empty() {
        lines.push("grants   no commands, and no weaker guards or checks".to_owned());
    }
    lines.extend(contents(policy, builtin));
    lines.iter().map(|it| on_one_line(it)).collect()
}

/// Lists which rules, settings, and commands of a pack differ from the version that the user trusted, one line
/// each, control characters escaped: weaker rules first.
pub fn changes(policy: &Policy, trusted: &Policy) -> Vec<String> {
    let mut lines = weaker(policy, trusted, ComparedRules::Trusted);
    lines.extend(added(policy, trusted).iter().map(AddedRule::line));
    lines.iter().map(|it| on_one_line(it)).collect()
}

fn weaker(policy: &Policy, base: &Policy, compared: ComparedRules) -> Vec<String> {
    let mut lines = Vec::new();
    guards(policy, base, compared, &mut lines);
    considerations(policy, base, compared, &mut lines);
    settings(policy, base, &mut lines);
    let commands = commands(policy, base);
    if !commands.is_empty() {
        lines.extend(commands);
        lines.push(
            "note     files of the repository that these commands read or run count as they are \
             when a command runs, not as they are now"
                .to_owned(),
        );
    }
    lines
}

/// A rule that the other pack does not have.
struct AddedRule<'p> {
    kind: &'static str,
    id: &'p str,
    effect: &'static str,
    place: &'p SourceLocation,
}

impl AddedRule<'_> {
    fn line(&self) -> String {
        let Self { kind, id, effect, place } = self;
        format!("added    the {kind} {id}: {effect} ({place})")
    }
}

/// Returns the rules that another policy does not have. Guards that allow are among what weakens.
fn added<'p>(policy: &'p Policy, base: &Policy) -> Vec<AddedRule<'p>> {
    let guards = policy.guards.rules.iter().filter(|it| it.body.verb != GuardAction::Allow);
    let guards = guards.map(|it| AddedRule {
        kind: "guard",
        id: &it.id,
        effect: it.body.verb.as_str(),
        place: &it.body.place,
    });
    let checks = policy.considerations.iter().filter(|it| it.enabled);
    let checks = checks.map(|it| AddedRule {
        kind: "check",
        id: &it.id,
        effect: match it.severity {
            Severity::Blocker => "block",
            Severity::Warning => "warn",
        },
        place: &it.place,
    });
    guards.chain(checks).filter(|it| base.rule_id(it.id).is_none()).collect()
}

/// Returns what a pack contains beside changes of built-in rules: the ids of its rules, by kind.
fn contents(policy: &Policy, builtin: &Policy) -> Option<String> {
    let rules = added(policy, builtin);
    let of_kind = |kind: &str| {
        let ids: Vec<&str> = rules.iter().filter(|it| it.kind == kind).map(|it| it.id).collect();
        let shown = ids.get(..RULES_SHOWN.min(ids.len())).unwrap_or_default().join(", ");
        let more = match ids.len().saturating_sub(RULES_SHOWN) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        (!ids.is_empty()).then(|| format!("{}: {shown}{more}", counted(ids.len(), kind)))
    };
    let parts: Vec<String> = ["guard", "check"].into_iter().filter_map(of_kind).collect();
    (!parts.is_empty()).then(|| format!("adds     {}", parts.join("; ")))
}

/// Commands of probes and channels that are not the built-in pack's.
fn commands(policy: &Policy, builtin: &Policy) -> Vec<String> {
    let probes = policy.probes.iter().filter(|it| it.enabled);
    let probes = probes.filter(|it| {
        let same = |own: &&policyd_policy::Probe| own.id == it.id && own.command == it.command;
        builtin.probes.iter().find(same).is_none_or(|own| own.stdin != it.stdin)
    });
    let probes = probes.map(|it| ("probe", it.id.as_str(), &it.command));
    let channels = policy.escalation.channels.iter().filter(|it| !it.command.is_empty());
    let channels = channels.filter(|it| !builtin.escalation.channels.contains(it));
    let channels = channels.map(|it| ("channel", it.id.as_str(), &it.command));
    let line = |(kind, id, command): (&str, &str, &Vec<String>)| {
        let words: Vec<String> = command.iter().map(|it| quote(it)).collect();
        format!("may run  {kind} {id}: {}", words.join(" "))
    };
    probes.chain(channels).map(line).collect()
}

fn settings(policy: &Policy, builtin: &Policy, lines: &mut Vec<String>) {
    let (own, base) = (&policy.settings, &builtin.settings);
    let mut say = |text: String| lines.push(format!("setting  {text}"));
    if base.enabled && !own.enabled {
        say("enabled: false: policyd evaluates nothing in this project".to_owned());
    }
    match own.mode.filter(|_| own.mode != base.mode) {
        Some(EnforcementMode::Observe) => {
            say("mode: observe: no rule blocks in this project".to_owned());
        }
        Some(EnforcementMode::Enforce) => {
            say("mode: enforce: rules block although you observe".to_owned());
        }
        None => {}
    }
    if own.on_error != base.on_error {
        say(format!("on_error: {}", on_error(own.on_error)));
    }
    if own.when_forgotten != base.when_forgotten {
        let word = match own.when_forgotten {
            OnSaveFailure::Allow => "allow",
            OnSaveFailure::Block => "block",
        };
        say(format!("when_forgotten: {word}"));
    }
    if own.guard != base.guard {
        say("other limits for the blocks of a stop".to_owned());
    }
    let types = |it: &Policy| -> Vec<(String, String)> {
        it.session_types.iter().map(|it| (it.id.clone(), it.when.text.clone())).collect()
    };
    if types(policy) != types(builtin) {
        say("other session types, which decide what checks apply".to_owned());
    }
    if policy.guards.knowledge != builtin.guards.knowledge {
        say("another vocabulary, which decides how guards read commands".to_owned());
    }
}

fn guards(policy: &Policy, builtin: &Policy, compared: ComparedRules, lines: &mut Vec<String>) {
    let (word, article) = (compared.without(), compared.article());
    let own = |id: &str| {
        let id = policy.rule_id(id)?;
        policy.guards.rules.iter().find(|it| it.id == id)
    };
    let mut sets: Vec<&str> = Vec::new();
    for it in builtin.guards.rules.iter() {
        if !sets.contains(&it.set.as_str()) {
            sets.push(&it.set);
        }
    }
    for set in sets {
        let rules: Vec<&Guard> = builtin.guards.rules.iter().filter(|it| it.set == set).collect();
        let missing: Vec<&Guard> =
            rules.iter().filter(|it| own(&it.id).is_none()).copied().collect();
        if missing.len() == rules.len() && rules.len() > 1 {
            let number = rules.len();
            lines.push(format!("{word} {article}guard set {set} with its {number} guards"));
        } else {
            let off = |it: &&Guard| format!("{word} {article}guard {} ({set})", it.id);
            lines.extend(missing.iter().map(off));
        }
    }
    for it in policy.guards.rules.iter() {
        let base = builtin.rule_id(&it.id);
        match builtin.guards.rules.iter().find(|other| Some(other.id.as_str()) == base) {
            Some(base) => lines.extend(weaker_guard(it, base, article)),
            None => lines.extend(allows(it)),
        }
    }
}

/// What is weaker in a guard than in another one of the same id, or else that it is changed.
fn weaker_guard(own: &Guard, base: &Guard, article: &str) -> Option<String> {
    let (id, place) = (&own.id, &own.body.place);
    let mut weaker = Vec::new();
    if strength(own.body.verb) < strength(base.body.verb) {
        weaker.push(format!("{} becomes {}", base.body.verb.as_str(), own.body.verb.as_str()));
    }
    if own.body.unattended.is_none() && base.body.unattended.is_some() {
        weaker.push("asks although no user is present".to_owned());
    }
    weaker.extend(weaker_mode(own.mode, base.mode));
    weaker.extend(expires(own.expires_millis, base.expires_millis));
    if own.body.on_error < base.body.on_error {
        weaker.push(format!("on_error becomes {}", fallback(own.body.on_error)));
    }
    if !weaker.is_empty() {
        return Some(format!("weaker   {article}guard {id}: {} ({place})", weaker.join(", ")));
    }
    let patterns = |it: &Guard| -> Vec<String> {
        it.commands.iter().map(|it| it.as_str().to_owned()).collect()
    };
    let changed = [
        ("unless", same(&own.body.unless, &base.body.unless)),
        ("when", same(&own.body.when, &base.body.when)),
        ("commands", patterns(own) == patterns(base)),
        ("tools", own.tools == base.tools),
        ("on", own.on == base.on),
        ("decision", own.body.verb == base.body.verb),
        ("updated_input", own.body.updated_input == base.body.updated_input),
    ];
    let changed: Vec<&str> =
        changed.into_iter().filter(|(_, same)| !same).map(|(key, _)| key).collect();
    let what = changed.join(", ");
    (!changed.is_empty()).then(|| format!("changed  {article}guard {id}: {what} ({place})"))
}

/// What a guard of the pack itself lets pass without a question.
fn allows(it: &Guard) -> Option<String> {
    if it.body.verb != GuardAction::Allow {
        return None;
    }
    let commands: Vec<&str> = it.commands.iter().map(CommandPattern::as_str).collect();
    let what = match (commands.as_slice(), it.tools.as_slice()) {
        ([], []) => "every tool".to_owned(),
        ([], tools) => format!("the tools {}", tools.join(", ")),
        (commands, _) => format!("`{}`", commands.join("`, `")),
    };
    let (id, place) = (&it.id, &it.body.place);
    Some(format!("allows   guard {id}: {what} without a question to the user ({place})"))
}

fn considerations(
    policy: &Policy,
    builtin: &Policy,
    compared: ComparedRules,
    lines: &mut Vec<String>,
) {
    let (word, article) = (compared.without(), compared.article());
    let own = |id: &str| {
        let id = policy.rule_id(id)?;
        policy.considerations.iter().find(|it| it.id == id)
    };
    let base: Vec<&Check> = builtin.considerations.iter().filter(|it| it.enabled).collect();
    let off: Vec<&str> = base
        .iter()
        .filter(|it| own(&it.id).is_none_or(|own| !own.enabled))
        .map(|it| it.id.as_str())
        .collect();
    if off.len() == base.len() && !off.is_empty() {
        let whose = if compared == ComparedRules::BuiltIn { "built-in checks" } else { "checks" };
        lines.push(format!("{word} all {} {whose}", off.len()));
    } else {
        lines.extend(off.iter().map(|it| format!("{word} {article}check {it}")));
    }
    for base in base {
        let changed =
            own(&base.id).filter(|it| it.enabled).and_then(|it| weaker_check(it, base, article));
        lines.extend(changed);
    }
}

/// What is weaker in a check than in another one of the same id, or else that it is changed.
fn weaker_check(own: &Check, base: &Check, article: &str) -> Option<String> {
    let (id, place) = (&own.id, &own.place);
    let mut weaker = Vec::new();
    if own.severity == Severity::Warning && base.severity == Severity::Blocker {
        weaker.push("blocker becomes warning".to_owned());
    }
    weaker.extend(weaker_mode(own.mode, base.mode));
    weaker.extend(expires(own.expires_millis, base.expires_millis));
    if own.on_error != base.on_error && own.on_error != OnError::Block {
        weaker.push(format!("on_error becomes {}", on_error(own.on_error)));
    }
    if !weaker.is_empty() {
        return Some(format!("weaker   {article}check {id}: {} ({place})", weaker.join(", ")));
    }
    let (own_body, base_body) = (&own.check.body, &base.check.body);
    let changed = [
        ("when", same(&own.when, &base.when) && same(&own.check.when, &base.check.when)),
        ("satisfied", own_body.satisfied.text == base_body.satisfied.text),
        ("blocking", same(&own_body.blocking, &base_body.blocking)),
        ("session types", own.session_types == base.session_types),
        ("on", own.on == base.on),
    ];
    let changed: Vec<&str> =
        changed.into_iter().filter(|(_, same)| !same).map(|(key, _)| key).collect();
    let what = changed.join(", ");
    (!changed.is_empty()).then(|| format!("changed  {article}check {id}: {what} ({place})"))
}

fn same(one: &Option<Expression>, other: &Option<Expression>) -> bool {
    one.as_ref().map(|it| &it.text) == other.as_ref().map(|it| &it.text)
}

/// How much a guard keeps from happening.
const fn strength(verb: GuardAction) -> u8 {
    match verb {
        GuardAction::Allow | GuardAction::Remember => 0,
        GuardAction::Warn | GuardAction::Context => 1,
        GuardAction::Mask => 2,
        GuardAction::Ask | GuardAction::Defer => 3,
        GuardAction::Block | GuardAction::Halt => 4,
    }
}

fn weaker_mode(own: Mode, base: Mode) -> Option<String> {
    let rank = |mode| match mode {
        Mode::Enforce => (2, "enforce"),
        Mode::Warn => (1, "warn"),
        Mode::Shadow => (0, "shadow"),
    };
    let ((own, word), (base, _)) = (rank(own), rank(base));
    (own < base).then(|| format!("mode becomes {word}"))
}

fn expires(own: Option<i64>, base: Option<i64>) -> Option<String> {
    let is_shorter = own.is_some_and(|own| base.is_none_or(|base| own < base));
    is_shorter.then(|| "it expires".to_owned())
}

const fn on_error(it: OnError) -> &'static str {
    match it {
        OnError::Allow => "allow",
        OnError::Warn => "warn",
        OnError::Block => "block",
    }
}

const fn fallback(it: OnUnknown) -> &'static str {
    match it {
        OnUnknown::Allow => "allow",
        OnUnknown::Warn => "warn",
        OnUnknown::Ask => "ask",
        OnUnknown::Block => "deny",
    }
}
