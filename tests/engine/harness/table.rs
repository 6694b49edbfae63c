//! The table of `src/docs/reference/clients.md`: the responses that each client supports, from the rows.

use policyd::facts::event::EventKind;
use policyd::harness::{Capability, HARNESSES};

const BEGIN: &str = "<!-- harnesses -->\n";
const END: &str = "<!-- /harnesses -->";
const EVENTS: [&str; 7] = [
    "session_start",
    "user_prompt_submit",
    "pre_tool_use",
    "permission_request",
    "post_tool_use",
    "subagent_stop",
    "stop",
];

fn table() -> String {
    let mut text =
        format!("| client, `--harness` | {} |\n", EVENTS.map(|it| format!("`{it}`")).join(" | "));
    text += &format!("|{}\n", "---|".repeat(EVENTS.len() + 1));
    for harness in HARNESSES.iter().rev() {
        let cells = EVENTS.map(|event| {
            let Some(moment) = EventKind::find(event).and_then(|it| harness.moment_of(it)) else {
                return "–".to_owned();
            };
            let can = Capability::ALL.into_iter().filter(|it| moment.can(*it));
            let can: Vec<&str> = can.map(Capability::as_str).collect();
            if can.is_empty() { "nothing".to_owned() } else { can.join(", ") }
        });
        text += &format!("| {}, `{}` | {} |\n", harness.title, harness.name, cells.join(" | "));
    }
    text
}

#[test]
fn the_page_of_clients_shows_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/docs/reference/clients.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (written, after) = rest.split_once(END).unwrap();
    if std::env::var_os("POLICYD_REGEN").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{}{END}{after}", table())).unwrap();
        return;
    }
    assert_eq!(written, table(), "POLICYD_REGEN=1 cargo test --test engine harness writes it anew");
}
