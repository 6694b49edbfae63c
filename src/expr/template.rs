//! Templates: text with `${expression}` placeholders. `$${` is an escaped `${`.

use std::borrow::Cow;

use super::Evaluator;
use super::ScriptError;
use super::table::Handle;

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplatePart<'t> {
    /// Text as it is.
    Text(&'t str),
    /// An expression, and where it starts in the template.
    Hole {
        /// The expression between the braces.
        expression: &'t str,
        /// Byte offset of the expression.
        start: usize,
    },
}

/// Cuts a template into pieces.
///
/// # Errors
/// The byte offset of a hole that is not closed.
pub fn pieces(template: &str) -> Result<Vec<TemplatePart<'_>>, usize> {
    let mut found = Vec::new();
    let mut at = 0_usize;
    while let Some(open) = template.get(at..).and_then(|rest| rest.find("${")) {
        let open = at.saturating_add(open);
        let escaped = template.get(..open).is_some_and(|before| before.ends_with('$'));
        let text_end = if escaped { open.saturating_sub(1) } else { open };
        found.extend(template.get(at..text_end).map(TemplatePart::Text));
        if escaped {
            found.push(TemplatePart::Text("${"));
            at = open.saturating_add(2);
            continue;
        }
        let start = open.saturating_add(2);
        let length = template.get(start..).and_then(closing_brace).ok_or(open)?;
        let end = start.saturating_add(length);
        found.extend(
            template.get(start..end).map(|expression| TemplatePart::Hole { expression, start }),
        );
        at = end.saturating_add(1);
    }
    found.extend(template.get(at..).map(TemplatePart::Text));
    found.retain(|it| *it != TemplatePart::Text(""));
    Ok(found)
}

/// Offset of the brace that closes a hole; braces inside strings and blocks do not.
fn closing_brace(rest: &str) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, c) in rest.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '{' => depth = depth.saturating_add(1),
            '}' if depth == 0 => return Some(at),
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// Fills the holes of a message. A hole that cannot be evaluated shows why instead of its value.
#[must_use]
pub fn render<H: Handle>(template: &str, evaluator: &mut Evaluator<H>) -> String {
    let shown = |error: ScriptError| Ok(format!("<{}>", error.message));
    fill(template, evaluator, printable, shown).unwrap_or_default()
}

/// Fills the holes of a text that a program reads, as [`render`] does, with the values as they are.
#[must_use]
pub fn render_exactly<H: Handle>(template: &str, evaluator: &mut Evaluator<H>) -> String {
    let shown = |error: ScriptError| Ok(format!("<{}>", error.message));
    fill(template, evaluator, |it| it.into(), shown).unwrap_or_default()
}

/// Fills the holes of a message.
///
/// # Errors
/// The error of the first hole that cannot be evaluated.
pub fn render_known<H: Handle>(
    template: &str,
    evaluator: &mut Evaluator<H>,
) -> Result<String, ScriptError> {
    fill(template, evaluator, printable, Err)
}

fn fill<H: Handle>(
    template: &str,
    evaluator: &mut Evaluator<H>,
    shown: impl Fn(&str) -> Cow<'_, str>,
    failed: impl Fn(ScriptError) -> Result<String, ScriptError>,
) -> Result<String, ScriptError> {
    let Ok(pieces) = pieces(template) else { return Ok(template.to_owned()) };
    evaluator.watch.iter().for_each(|it| it.rendered(template));
    let mut text = String::with_capacity(template.len());
    for piece in pieces {
        match piece {
            TemplatePart::Text(plain) => text.push_str(plain),
            TemplatePart::Hole { expression, .. } => match evaluator.eval(expression) {
                Ok(value) => text.push_str(&shown(&value.to_string())),
                Err(error) => text.push_str(&failed(error)?),
            },
        }
    }
    Ok(text)
}

/// Escapes what would change how the rest of a message is shown: control characters but line breaks, and characters that
/// are invisible or turn the direction of a text. A value can be text of an agent, and the message a question to the user.
fn printable(value: &str) -> Cow<'_, str> {
    let hides = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    if !value.contains(hides) {
        return value.into();
    }
    let escaped = |c: char| match hides(c) {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    value.chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_cut_out_with_strings_and_blocks_inside() {
        let template = r#"a ${f("}")} $${b} ${if x { "1" } else { "2" }}!"#;
        let holes: Vec<_> = pieces(template)
            .unwrap()
            .into_iter()
            .filter_map(|it| {
                if let TemplatePart::Hole { expression, .. } = it { Some(expression) } else { None }
            })
            .collect();
        assert_eq!(holes, [r#"f("}")"#, r#"if x { "1" } else { "2" }"#]);
    }

    #[test]
    fn a_value_does_not_change_how_its_message_is_shown() {
        assert_eq!(printable("a\n\tb é"), "a\n\tb é");
        assert_eq!(printable("\u{1b}[2K\rsafe \u{202e}x"), r"\u{1b}[2K\rsafe \u{202e}x");
    }

    #[test]
    fn an_open_hole_is_an_error_at_its_place() {
        assert_eq!(pieces("ab ${x"), Err(3));
        assert_eq!(pieces("plain").unwrap(), [TemplatePart::Text("plain")]);
    }
}
