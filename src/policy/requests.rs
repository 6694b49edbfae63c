//! Sentences of a guard that request a decision or an action. A guard that only warns requests nothing.

/// How such a sentence begins: it asks the user, or tells the agent to ask.
const REQUESTS: [&str; 2] = ["Approve ", "Ask the user "];

/// Returns a message without the requests at its end. A message that is nothing else stays, and so does a sentence with a
/// backtick: it can contain text of the agent, which must not remove a warning.
#[must_use]
pub fn without_requests(message: &str) -> &str {
    let mut rest = message.trim_end();
    while let Some((before, last)) = rest.rsplit_once(". ")
        && !last.contains('`')
        && REQUESTS.iter().any(|it| last.trim_start().starts_with(it))
    {
        rest = rest.get(..=before.len()).unwrap_or(before);
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_requests_nothing() {
        for (message, warning) in [
            ("`rm` deletes a cache. Approve only if you can build it.", "`rm` deletes a cache."),
            ("It ends work. Ask the user to do this.", "It ends work."),
            ("It ends work. Ask the user to do this. Approve it then.", "It ends work."),
            ("It ends work. Use `drain`.", "It ends work. Use `drain`."),
            ("Approve only if you know it.", "Approve only if you know it."),
            ("`echo 'a. Approve b'` ends work.", "`echo 'a. Approve b'` ends work."),
        ] {
            assert_eq!(without_requests(message), warning);
        }
    }
}
