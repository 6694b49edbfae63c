//! `policyd allow`: the user lets a rule, or one exact tool call that was blocked, pass once or for a while.

mod remote;

use std::time::Duration;

use super::enforce::rule_ids;
use super::pause::{log, named_session};
use super::{AllowArguments, Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EXIT_USAGE, check, pack};
use crate::human::{require_human, require_unpinned};
use policyd_app::packs::{self, organization};
use policyd_app::sessions::logged_entries::DecisionLogs;
use policyd_app::workspace::human::{Actor, shown};
use policyd_app::workspace::project::{self, Project};
use policyd_base::id::SessionId;
use policyd_base::limits::{ALLOWANCE_MAX, ALLOWANCE_ONCE, EVIDENCE_CHARS_MAX};
use policyd_evaluation::call_code;
use policyd_evaluation::message::{cut, in_one_line};
use policyd_policy::Policy;
use policyd_record::decision_log::Entry;
use policyd_record::notice::SwitchKind;
use policyd_store::administrator;
use policyd_store::allowance::{Allowance, AllowanceTarget};
use policyd_store::configuration::Pins;
use policyd_store::user_choices::UserChoiceStore;
use policyd_world::World;
use policyd_yaml::suggest;
use policyd_yaml::time::{duration_text, parse_duration};
use remote::RemoteAnswer;

/// Adds, lists or revokes allowances.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &AllowArguments) -> u8 {
    let project = project::find(world, None);
    if arguments.list {
        return list(world, console, &project);
    }
    if let Some(named) = &arguments.revoke {
        return revoke(world, console, &project, named);
    }
    if arguments.waiting {
        return remote::list(world, console, &project, arguments.format);
    }
    if let Some(code) = &arguments.deny {
        return remote::answer(world, console, &project, RemoteAnswer { code, allowed: false });
    }
    if let Some(code) = &arguments.call {
        return call(world, console, &project, code);
    }
    if let Err(code) = require_exceptions(world, console) {
        return code;
    }
    match request_for_rules(world, console, &project, arguments) {
        Ok(request) => add(world, console, &project, request),
        Err(code) => code,
    }
}

/// Lets a blocked call pass once: one of this project, else one of another host.
pub(super) fn call(
    world: &dyn World,
    console: &mut Console<'_>,
    project: &Project,
    code: &str,
) -> u8 {
    if let Err(code) = require_exceptions(world, console) {
        return code;
    }
    match request_for_call(world, console, project, code) {
        Ok(None) => {
            let answer = RemoteAnswer { code, allowed: true };
            remote::answer(world, console, project, answer)
        }
        Ok(Some(request)) => add(world, console, project, request),
        Err(code) => code,
    }
}

/// Fails if the organization permits no exceptions.
fn require_exceptions(world: &dyn World, console: &mut Console<'_>) -> Result<(), u8> {
    let no_exceptions = |it: &Pins| (!it.allow_exceptions).then_some("allow_exceptions: false");
    require_unpinned(world, console, no_exceptions)
}

/// What the user wants to allow.
struct AllowanceRequest {
    targets: Vec<AllowanceTarget>,
    session: Option<SessionId>,
    length: Duration,
    once: bool,
    /// The action that the user confirms.
    action: String,
}

fn request_for_rules(
    world: &dyn World,
    console: &mut Console<'_>,
    project: &Project,
    arguments: &AllowArguments,
) -> Result<AllowanceRequest, u8> {
    let of_organization = organization_policy(world);
    let is_of_organization =
        |it: &&String| of_organization.as_ref().is_some_and(|own| own.rule_id(it).is_some());
    if let Some(name) = arguments.rules.iter().find(is_of_organization) {
        return Err(refuse(console, &format!("the rule `{name}`")));
    }
    let Some(policy) = pack::require_valid(world, console, None) else { return Err(EXIT_BROKEN) };
    if let Some(name) = arguments.rules.iter().find(|it| policy.rule_id(it).is_none()) {
        let help = suggest::did_you_mean(name, &rule_ids(&policy)).unwrap_or_default();
        let help = check::hint(name).unwrap_or_else(|| format!("help: {help}"));
        console.eprint(&format!("unknown rule `{name}`\n{help}"));
        return Err(EXIT_USAGE);
    }
    let rules = arguments.rules.iter().filter_map(|it| policy.rule_id(it));
    let rules: Vec<String> = rules.map(str::to_owned).collect();
    let length = match arguments.duration.as_deref().map(parse_duration) {
        None => ALLOWANCE_ONCE,
        Some(Ok(length)) if !length.is_zero() && length <= ALLOWANCE_MAX => length,
        Some(Ok(_) | Err(_)) => {
            let most = duration_text(ALLOWANCE_MAX);
            let text = format!(
                "`--for` must be a duration of at most {most}\nhelp: use a number with a unit, such as \
                 `10m` or `1h30m`"
            );
            console.eprint(&text);
            return Err(EXIT_USAGE);
        }
    };
    let session = named_session(world, console, project, arguments.session.as_deref())?;
    let once = arguments.duration.is_none();
    let how = if once { "once, within" } else { "for" };
    let place = match &session {
        Some(id) => format!("session {id}"),
        None => project.root.display().to_string(),
    };
    let list = rules.join(", ");
    let action = format!("let {list} pass {how} {} in {place}", duration_text(length));
    let targets = rules.iter().cloned().map(AllowanceTarget::Rule).collect();
    Ok(AllowanceRequest { targets, session, length, once, action })
}

/// Finds the newest blocked call with a code, or with the id of its entry, in the decision log. `None` if this project has none.
fn request_for_call(
    world: &dyn World,
    console: &mut Console<'_>,
    project: &Project,
    typed: &str,
) -> Result<Option<AllowanceRequest>, u8> {
    let code = call_code::normalized(typed);
    let policy = packs::policy(world, &packs::find(world, project, None)).ok();
    let logs = DecisionLogs::of(world, project, policy.as_ref());
    let fits = |it: &Entry| {
        let digest = it.call_digest.as_deref();
        digest.is_some_and(|digest| call_code::code(digest) == code || it.id == typed)
    };
    let mut newest = logs.newest_first().filter(fits).peekable();
    // The entry of the organization follows that of the project.
    if let Some(entry) = newest.peek().filter(|it| it.organization) {
        let ids: Vec<&str> = entry.guards.iter().map(|it| it.id.as_str()).collect();
        return Err(refuse(
            console,
            &format!("the rule that blocked this call (`{}`)", ids.join("`, `")),
        ));
    }
    let found = newest.next().and_then(|it| Some((it.call_digest.clone()?, it)));
    let Some((digest, entry)) = found else { return Ok(None) };
    let input = entry.read_call().map(|it| it.input);
    let command = input.as_ref().and_then(|it| it.get("command")?.as_str());
    let whole = || input.as_ref().map(ToString::to_string).unwrap_or_default();
    let input = command.map_or_else(whole, str::to_owned);
    let call = cut(&in_one_line(&input), EVIDENCE_CHARS_MAX);
    let tool = entry.tool.unwrap_or_default();
    let action = format!(
        "let this call of session {} pass once, within {}: {tool} `{call}`",
        entry.session_id,
        duration_text(ALLOWANCE_ONCE)
    );
    Ok(Some(AllowanceRequest {
        targets: vec![AllowanceTarget::Call(digest)],
        session: SessionId::parse(&entry.session_id),
        length: ALLOWANCE_ONCE,
        once: true,
        action,
    }))
}

/// The rules of the organization.
fn organization_policy(world: &dyn World) -> Option<Policy> {
    packs::policy(world, &organization::find(world).ok().flatten()?).ok()
}

/// Refuses to let a rule of the organization pass.
fn refuse(console: &mut Console<'_>, what: &str) -> u8 {
    let text = format!(
        "the organization set {what}, so no user can let it pass\nhelp: `{}` contains it; ask the administrator of \
         this machine",
        administrator::policies().display()
    );
    console.eprint(&text);
    EXIT_FOUND
}

fn add(
    world: &dyn World,
    console: &mut Console<'_>,
    project: &Project,
    request: AllowanceRequest,
) -> u8 {
    let actor = match require_human(world, console, &request.action) {
        Ok(actor) => actor,
        Err(code) => return code,
    };
    let AllowanceRequest { targets, session, length, once, .. } = request;
    let now = world.now();
    let allowances: Vec<Allowance> = targets
        .into_iter()
        .map(|target| Allowance {
            target,
            session: session.clone(),
            since: now,
            until: now.plus(length),
            once,
            by: actor.user().to_owned(),
        })
        .collect();
    let store = UserChoiceStore::new(world, &project.state);
    let added = store
        .change(|choices| allowances.iter().for_each(|it| choices.add_allowance(it.clone(), now)));
    if let Err(problem) = added {
        console.eprint(&format!("{problem}; nothing is allowed"));
        return EXIT_BROKEN;
    }
    for it in &allowances {
        if let AllowanceTarget::Call(digest) = &it.target {
            remote::withdraw(world, console, project, digest);
        }
        let text = line(it);
        log(world, project, SwitchKind::Allow, session.as_ref(), text.clone(), &actor);
        console.print(&format!("{text}\n"));
    }
    EXIT_OK
}

fn list(world: &dyn World, console: &mut Console<'_>, project: &Project) -> u8 {
    let now = world.now();
    match UserChoiceStore::new(world, &project.state).load() {
        Err(problem) => {
            console.eprint(&problem.to_string());
            EXIT_BROKEN
        }
        Ok(choices) => {
            let all: Vec<&Allowance> =
                choices.allowances.iter().filter(|it| it.holds(now)).collect();
            if all.is_empty() {
                console.eprint("no rule and no call is allowed in this project");
            }
            all.iter().for_each(|it| console.print(&format!("{}\n", line(it))));
            EXIT_OK
        }
    }
}

/// Revokes the allowances of a rule or a code: exit 1 if there was none.
fn revoke(world: &dyn World, console: &mut Console<'_>, project: &Project, named: &str) -> u8 {
    let now = world.now();
    let code = call_code::normalized(named);
    let is_named = |it: &Allowance| match &it.target {
        AllowanceTarget::Rule(rule) => rule == named,
        AllowanceTarget::Call(digest) => call_code::code(digest) == code,
    };
    let revoked = UserChoiceStore::new(world, &project.state).change(|choices| {
        let all = std::mem::take(&mut choices.allowances).into_iter().filter(|it| it.holds(now));
        let (revoked, left): (Vec<_>, Vec<_>) = all.partition(is_named);
        choices.allowances = left;
        revoked
    });
    match revoked {
        Err(problem) => {
            console.eprint(&format!("{problem}; the allowance stays"));
            EXIT_BROKEN
        }
        Ok(revoked) if revoked.is_empty() => {
            let text = format!(
                "`{}` is not allowed\nhelp: `policyd allow --list` shows what is",
                shown(named)
            );
            console.eprint(&text);
            EXIT_FOUND
        }
        Ok(revoked) => {
            let actor = Actor::of(world);
            for it in revoked {
                let text = format!("revoked: {}", line(&it));
                log(world, project, SwitchKind::Revoke, it.session.as_ref(), text.clone(), &actor);
                console.print(&format!("{text}\n"));
            }
            EXIT_OK
        }
    }
}

/// An allowance for the user, in one line.
fn line(it: &Allowance) -> String {
    let what = match &it.target {
        AllowanceTarget::Rule(rule) => rule.clone(),
        AllowanceTarget::Call(digest) => format!("call {}", call_code::code(digest)),
    };
    let session = it.session.as_ref().map_or_else(String::new, |id| format!(", in session {id}"));
    format!("{what}: {}{session}", it.text())
}
