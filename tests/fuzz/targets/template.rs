//! A template: its pieces lie where they say, and put together again they are the template.

use policyd::expr::template::{TemplatePart, pieces};

pub(super) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(pieces) = pieces(text) else { return };
    let mut again = String::new();
    for piece in pieces {
        match piece {
            TemplatePart::Text("${") => again.push_str("$${"),
            TemplatePart::Text(plain) => again.push_str(plain),
            TemplatePart::Hole { expression, start } => {
                assert_eq!(text.get(start..start + expression.len()), Some(expression));
                again.push_str("${");
                again.push_str(expression);
                again.push('}');
            }
        }
    }
    assert_eq!(again, text);
}
