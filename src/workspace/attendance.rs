//! Whether a user is present at a hook call: what the client states by its payload, by variables, or by the arguments
//! with which it was started. Unknown is attended.

use super::human;
use policyd_facts::event::Event;
use policyd_harness::Harness;
use policyd_world::World;

/// Whether a user is present, as far as the client states it.
pub fn is_attended(world: &dyn World, client: &Harness, event: &Event) -> bool {
    let signs = &client.absence;
    if let Some(attended) = event.attended {
        return attended;
    }
    let is_stated = |(name, value): &(&str, &str)| world.env(name).as_deref() == Some(*value);
    if signs.variables.iter().any(is_stated) {
        return false;
    }
    if signs.commands.is_empty() && signs.options.is_empty() {
        return true;
    }
    // The innermost processes of the client: it can start itself again, and another client can have started it.
    let ancestors = world.ancestors();
    let outer = ancestors.iter().skip_while(|it| !human::is_process_of(it, client));
    let mut own = outer.take_while(|it| human::is_process_of(it, client));
    !own.any(|it| signs.are_in(human::arguments(it)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_base::id::SessionId;
    use policyd_facts::event::EventKind;
    use policyd_harness::{self as harness, claude_code};
    use policyd_world::Ancestor;
    use policyd_world::fake::FakeWorld;

    fn event(attended: Option<bool>) -> Event {
        let session = SessionId::sanitize("s");
        Event { attended, ..Event::of(EventKind::Stop, session) }
    }

    fn process(line: &str) -> Ancestor {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let program = arguments.first().cloned().unwrap_or_default();
        Ancestor { pid: 7, program, arguments, variables: Vec::new() }
    }

    fn started(client: &str, lines: &[&str]) -> bool {
        let world = FakeWorld::new();
        world.set_ancestors(lines.iter().map(|it| process(it)).collect());
        is_attended(&world, harness::find(client).unwrap(), &event(None))
    }

    #[test]
    fn the_arguments_of_the_innermost_client_decide() {
        for (client, lines, expected) in [
            ("codex", &["/bin/sh -lc x", "/opt/codex exec --json", "/bin/zsh"][..], false),
            ("codex", &["sh", "/opt/codex", "node /x/@openai/codex/bin/codex.js exec"], false),
            ("codex", &["sh", "/opt/codex resume"], true),
            ("codex", &["sh", "/opt/codex", "bash", "/opt/codex exec x"], true),
            ("codex", &["sh", "/opt/codex exec x", "bash", "/opt/codex"], false),
            ("codex", &["sh", "gemini -p x"], true),
            ("codex", &[], true),
            ("gemini", &["sh", "node --no-warnings /usr/local/bin/gemini -p x"], false),
            ("gemini", &["sh", "node -p /usr/local/bin/gemini"], true),
            ("copilot", &["sh", "/usr/local/bin/copilot -p x"], false),
        ] {
            assert_eq!(started(client, lines), expected, "{client} {lines:?}");
        }
    }

    #[test]
    fn a_variable_or_the_payload_states_it() {
        let world = FakeWorld::new();
        assert!(is_attended(&world, &claude_code::HARNESS, &event(None)));
        assert!(!is_attended(&world, &claude_code::HARNESS, &event(Some(false))));
        world.set_env("CLAUDE_CODE_ENTRYPOINT", "cli");
        assert!(is_attended(&world, &claude_code::HARNESS, &event(None)));
        world.set_env("CLAUDE_CODE_ENTRYPOINT", "sdk-cli");
        assert!(!is_attended(&world, &claude_code::HARNESS, &event(None)));
        assert!(started("codex", &[]), "a variable of another client states nothing");
    }
}
