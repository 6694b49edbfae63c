//! The settings files of clients, edited as texts: hook lines of policyd put in, taken out and found.
//! What is not policyd's stays as it is, byte for byte.

use std::path::Path;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstObject, CstRootNode};
use jsonc_parser::errors::ParseError;
use serde_json::Value;

use super::places::{FailureSetting, SettingsFormat, SettingsShape};
use policyd_harness as harness;

/// Why a settings file cannot be edited. Lines and columns count from 1.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("line {line}, column {column}: not JSON: {0}", line = .0.line(), column = .0.column())]
    NotJson(#[from] serde_json::Error),
    /// The file is not JSON with comments.
    #[error(
        "line {line}, column {column}: {kind}",
        line = .0.line_display(), column = .0.column_display(), kind = .0.kind()
    )]
    NotJsonc(#[from] ParseError),
    /// A value does not have the shape that the client reads.
    #[error("line {line}: `{name}` is not {expected}")]
    Shape { line: usize, name: String, expected: &'static str },
}

/// A hook line in a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsLine {
    /// The event, in the client's words.
    pub event: String,
    /// The command with its arguments.
    pub command: String,
    /// Whether it calls policyd.
    pub ours: bool,
    /// Whether a failure of the hook blocks.
    pub closed: bool,
}

/// Puts a hook line at each event, and takes out those of policyd at others.
///
/// # Errors
/// [`SettingsError`] with the location of the invalid part.
pub fn insert_hooks(
    text: &str,
    form: SettingsFormat,
    wanted: &[(&str, Value)],
) -> Result<String, SettingsError> {
    let (root, value) = read(text, form)?;
    let top = root.object_value_or_set();
    if form.shape == SettingsShape::Flat && value.get("version").is_none() {
        top.insert(0, "version", CstInputValue::Number("1".to_owned()));
    }
    let hooks = top.object_value_or_set("hooks");
    for property in hooks.properties() {
        let name = property.decoded_name().unwrap_or_default();
        let line = wanted.iter().find(|(event, _)| *event == name).map(|(_, line)| line);
        if let Some(list) = property.array_value()
            && !stands(&list, form.shape, line)
        {
            take_out_of(&list, form.shape);
            if list.elements().is_empty() && line.is_none() {
                property.remove();
            }
        }
    }
    for (event, line) in wanted {
        let list = hooks.array_value_or_set(event);
        if !stands(&list, form.shape, Some(line)) {
            list.ensure_multiline();
            let entry = match form.shape {
                SettingsShape::Flat => line.clone(),
                SettingsShape::Grouped => serde_json::json!({"hooks": [line]}),
            };
            list.append(input(&entry));
        }
    }
    Ok(ended(&root))
}

/// Takes out every hook line of policyd, and what is empty then.
///
/// # Errors
/// [`SettingsError`] with the location of the invalid part.
pub fn remove_hooks(text: &str, form: SettingsFormat) -> Result<String, SettingsError> {
    let (root, _) = read(text, form)?;
    let Some(top) = root.object_value() else { return Ok(text.to_owned()) };
    let Some(hooks) = top.object_value("hooks") else { return Ok(text.to_owned()) };
    let mut changed = false;
    for property in hooks.properties() {
        if let Some(list) = property.array_value()
            && take_out_of(&list, form.shape)
        {
            changed = true;
            if list.elements().is_empty() {
                property.remove();
            }
        }
    }
    if changed && hooks.properties().is_empty() {
        top.get("hooks").into_iter().for_each(|it| it.remove());
    }
    Ok(if changed { ended(&root) } else { text.to_owned() })
}

/// A text without its blanks and commas, those in strings and comments kept; and how many comments it
/// has.
pub fn without_blanks(text: &str) -> (String, usize) {
    let (mut kept, mut comments) = (String::with_capacity(text.len()), 0_usize);
    let mut rest = text.chars().peekable();
    while let Some(it) = rest.next() {
        match (it, rest.peek()) {
            ('"', _) => {
                kept.push(it);
                while let Some(inner) = rest.next() {
                    kept.push(inner);
                    match inner {
                        '"' => break,
                        '\\' => kept.extend(rest.next()),
                        _ => {}
                    }
                }
            }
            ('/', Some('/')) => {
                comments = comments.saturating_add(1);
                kept.push(it);
                kept.extend(rest.by_ref().take_while(|it| *it != '\n' && *it != '\r'));
                kept.push('\n');
            }
            ('/', Some('*')) => {
                comments = comments.saturating_add(1);
                kept.push(it);
                let mut before = ' ';
                kept.extend(rest.next());
                for inner in rest.by_ref() {
                    kept.push(inner);
                    if (before, inner) == ('*', '/') {
                        break;
                    }
                    before = inner;
                }
            }
            _ if it.is_whitespace() || it == ',' => {}
            _ => kept.push(it),
        }
    }
    (kept, comments)
}

/// Every hook line of a file.
///
/// # Errors
/// [`SettingsError`] with the location of the invalid part.
pub fn lines(text: &str, form: SettingsFormat) -> Result<Vec<SettingsLine>, SettingsError> {
    let (_, value) = read(text, form)?;
    let mut found = Vec::new();
    let events = value.get("hooks").and_then(Value::as_object);
    for (event, entries) in events.into_iter().flatten() {
        for entry in entries.as_array().into_iter().flatten() {
            let inner = entry.get("hooks").and_then(Value::as_array);
            let handlers = inner.map_or_else(|| std::slice::from_ref(entry), Vec::as_slice);
            found.extend(handlers.iter().map(|it| SettingsLine {
                event: event.clone(),
                command: command(it),
                ours: is_ours(it),
                closed: FailureSetting::is_in(it),
            }));
        }
    }
    Ok(found)
}

/// Reads a file; an empty one holds an empty object.
fn read(text: &str, form: SettingsFormat) -> Result<(CstRootNode, Value), SettingsError> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    if !form.comments {
        serde_json::from_str::<Value>(text)?;
    }
    let options = ParseOptions {
        allow_comments: form.comments,
        allow_trailing_commas: form.comments,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let root = CstRootNode::parse(text, &options)?;
    let value = root.to_serde_value().unwrap_or_default();
    match misshapen(&value, form.shape) {
        Some((name, expected)) => {
            let quoted = format!("\"{name}\"");
            let line = text.lines().position(|it| it.contains(&quoted)).map_or(1, |it| it + 1);
            Err(SettingsError::Shape { line, name, expected })
        }
        None => Ok((root, value)),
    }
}

/// The first thing that has not the shape its client reads: its name, and what it should be.
fn misshapen(value: &Value, shape: SettingsShape) -> Option<(String, &'static str)> {
    if !value.is_object() {
        return Some(("the file".to_owned(), "an object"));
    }
    let hooks = value.get("hooks")?;
    let Some(events) = hooks.as_object() else {
        return Some(("hooks".to_owned(), "an object"));
    };
    for (event, entries) in events {
        let Some(entries) = entries.as_array() else {
            return Some((event.clone(), "a list"));
        };
        let group = |it: &Value| it.get("hooks").is_some_and(Value::is_array);
        let sound = |it: &Value| it.is_object() && (shape == SettingsShape::Flat || group(it));
        if !entries.iter().all(sound) {
            let should = match shape {
                SettingsShape::Grouped => "a list of groups with `hooks`",
                SettingsShape::Flat => "a list of hook lines",
            };
            return Some((event.clone(), should));
        }
    }
    None
}

/// Returns whether this line is the only line of policyd in the list.
fn stands(list: &CstArray, shape: SettingsShape, line: Option<&Value>) -> bool {
    let entries = list.to_serde_value().unwrap_or_default();
    let entries = entries.as_array().map(Vec::as_slice).unwrap_or_default();
    let handlers = entries.iter().flat_map(|it| match shape {
        SettingsShape::Flat => std::slice::from_ref(it),
        SettingsShape::Grouped => {
            it.get("hooks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
        }
    });
    let ours: Vec<&Value> = handlers.filter(|it| is_ours(it)).collect();
    ours == line.into_iter().collect::<Vec<_>>()
}

/// Takes the lines of policyd out of a list; says whether there were any.
fn take_out_of(list: &CstArray, shape: SettingsShape) -> bool {
    let mut changed = false;
    for element in list.elements() {
        let Some(object) = element.as_object() else { continue };
        let removed = match shape {
            SettingsShape::Flat => is_ours(&object.to_serde_value().unwrap_or_default()),
            SettingsShape::Grouped => take_out_of_group(&object, &mut changed),
        };
        if removed {
            changed = true;
            element.remove();
        }
    }
    changed
}

/// Says whether nothing is left of a group because of it.
fn take_out_of_group(group: &CstObject, changed: &mut bool) -> bool {
    let Some(handlers) = group.array_value("hooks") else { return false };
    let mut taken = false;
    for handler in handlers.elements() {
        if is_ours(&handler.to_serde_value().unwrap_or_default()) {
            taken = true;
            handler.remove();
        }
    }
    *changed |= taken;
    taken && handlers.elements().is_empty()
}

/// The command of a hook line with its arguments.
fn command(handler: &Value) -> String {
    let text = |key: &str| handler.get(key).and_then(Value::as_str);
    let program = ["command", "exec", "bash", "powershell", "url"].iter().find_map(|it| text(it));
    let arguments = handler.get("args").and_then(Value::as_array);
    let arguments = arguments.into_iter().flatten().filter_map(Value::as_str);
    program.into_iter().chain(arguments).collect::<Vec<_>>().join(" ")
}

/// Returns whether policyd owns a hook line: the line calls `policyd`, or has the exact form that policyd installs,
/// since the executable may have been renamed. A renamed executable behind another program
/// (`nice -n 5 pd eval --hook stop`) belongs to the user.
fn is_ours(handler: &Value) -> bool {
    let command = command(handler);
    let Some((program, rest)) = command.split_once(" eval") else { return false };
    let is_alone = handler.get("args").is_some_and(|it| it.get(0) == Some(&"eval".into()))
        || program.starts_with(['"', '\''])
        || !program.contains(' ');
    let program = program.trim_matches(['"', '\'', ' ']);
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    if Path::new(name).file_stem().is_some_and(|it| it == "policyd") {
        return rest.contains("--hook");
    }
    let mut words = rest.split_whitespace();
    is_alone && words.next() == Some("--hook") && words.next().is_some_and(harness::knows_event)
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(all) => CstInputValue::Array(all.iter().map(input).collect()),
        Value::Object(fields) => CstInputValue::Object(
            fields.iter().map(|(name, value)| (name.clone(), input(value))).collect(),
        ),
    }
}

/// The text, with a line end at its end.
fn ended(root: &CstRootNode) -> String {
    let text = root.to_string();
    if text.ends_with('\n') { text } else { format!("{text}\n") }
}
