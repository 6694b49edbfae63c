//! Templates: text with `${expression}` placeholders. `$${` is an escaped `${`.

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

/// Fills the holes. A hole that cannot be evaluated shows why instead of its value.
#[must_use]
pub fn render<H: Handle>(template: &str, evaluator: &mut Evaluator<H>) -> String {
    let shown = |error: ScriptError| Ok(format!("<{}>", error.message));
    fill(template, evaluator, shown).unwrap_or_default()
}

/// Fills the holes.
///
/// # Errors
/// The error of the first hole that cannot be evaluated.
pub fn render_known<H: Handle>(
    template: &str,
    evaluator: &mut Evaluator<H>,
) -> Result<String, ScriptError> {
    fill(template, evaluator, Err)
}

fn fill<H: Handle>(
    template: &str,
    evaluator: &mut Evaluator<H>,
    failed: impl Fn(ScriptError) -> Result<String, ScriptError>,
) -> Result<String, ScriptError> {
    let Ok(pieces) = pieces(template) else { return Ok(template.to_owned()) };
    evaluator.watch.iter().for_each(|it| it.rendered(template));
    let mut text = String::with_capacity(template.len());
    for piece in pieces {
        match piece {
            TemplatePart::Text(plain) => text.push_str(plain),
            TemplatePart::Hole { expression, .. } => match evaluator.eval(expression) {
                Ok(value) => text.push_str(&value.to_string()),
                Err(error) => text.push_str(&failed(error)?),
            },
        }
    }
    Ok(text)
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
    fn an_open_hole_is_an_error_at_its_place() {
        assert_eq!(pieces("ab ${x"), Err(3));
        assert_eq!(pieces("plain").unwrap(), [TemplatePart::Text("plain")]);
    }
}
