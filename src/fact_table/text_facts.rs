//! Facts about the texts of files: those that a tool call changes, as they are and as they will be, and those of the
//! project. Of a long file only the beginning is read.
//!
//! INVARIANT: a question that the part which was not read could answer otherwise has no value.

use std::rc::Rc;

use rhai::{Dynamic, ImmutableString};

use super::FactError;
use super::context::{ContextPart, Object};
use super::dynamic::{count, text_argument};
use super::row::{FactRow, field, method, number};
pub use super::snapshots::{ChangedText, DiskFacts, KnownText, PathState, ReadText};
use super::types::{Domain, Evidence::Structure, Subject, TextMatch, Type, Unit};
use policyd_base::limits::FILE_HEADER_LINES;
use policyd_expr::pattern::prose_regex;

/// The parameter of a function that compares a text.
const fn text(compared: TextMatch) -> [(Type, Domain); 1] {
    [(Type::Text, Domain::Text(compared))]
}

/// Rows of texts of files.
pub(super) const ROWS: &[FactRow] = &[
    method(
        Subject::FileTexts,
        "contains",
        &const { text(TextMatch::Part) },
        (Type::Bool, Structure),
        [
            "Whether one of them contains a text, case counted.",
            "action.before.contains(\"DO NOT EDIT\")",
        ],
        |it, args| {
            let part = text_argument(args, 0)?;
            any(it, |text| text.settled(text.text.contains(part.as_str())))
        },
    ),
    method(
        Subject::FileTexts,
        "starts_with",
        &const { text(TextMatch::Beginning) },
        (Type::Bool, Structure),
        ["Whether one of them starts with a text.", "action.before.starts_with(\"#!\")"],
        |it, args| {
            let start = text_argument(args, 0)?;
            any(it, |text| match text.text.starts_with(start.as_str()) {
                false if text.text.len() < start.len() => text.settled(false),
                found => Some(found),
            })
        },
    ),
    method(
        Subject::FileTexts,
        "ends_with",
        &const { text(TextMatch::End) },
        (Type::Bool, Structure),
        ["Whether one of them ends with a text.", "action.after.ends_with(\"\\n\")"],
        |it, args| {
            let end = text_argument(args, 0)?;
            any(it, |text| text.is_whole.then(|| text.text.ends_with(end.as_str())))
        },
    ),
    method(
        Subject::FileTexts,
        "matches",
        &[(Type::Text, Domain::Regex)],
        (Type::Bool, Structure),
        [
            "Whether a regex matches somewhere in one of them, case not counted.",
            "action.before.matches(\"^// Code generated .* DO NOT EDIT\")",
        ],
        |it, args| {
            let regex = text_argument(args, 0)?;
            any(it, |text| matches(text, &regex))
        },
    ),
    method(
        Subject::FileTexts,
        "all_match",
        &[(Type::Text, Domain::Regex)],
        (Type::Bool, Structure),
        [
            "Whether a regex matches somewhere in each of them, case not counted. True without a file.",
            "action.after.all_match(\"SPDX-License-Identifier:\")",
        ],
        |it, args| {
            let regex = text_argument(args, 0)?;
            let lacks = any(it, |text| matches(text, &regex).map(|it| !it))?;
            Ok((!lacks.as_bool().unwrap_or_default()).into())
        },
    ),
    field(
        Subject::FileTexts,
        "header",
        Subject::FileTexts.as_type(),
        Structure,
        ["Their first 20 lines.", "action.before.header.contains(\"DO NOT EDIT\")"],
        |it, _| {
            let headers =
                texts(it)?.iter().map(|it| it.as_ref().map(header).map_err(Clone::clone)).collect();
            Ok(it.part(ContextPart::Texts(headers)))
        },
    ),
    field(
        Subject::FileTexts,
        "empty",
        Type::Bool,
        Structure,
        ["Whether they have no text. A file that does not exist has none.", "!action.before.empty"],
        |it, _| {
            let holds = any(it, |text| Some(!text.text.is_empty()))?;
            Ok((!holds.as_bool().unwrap_or_default()).into())
        },
    ),
    number(
        Subject::FileTexts,
        "lines",
        Unit::Count,
        Structure,
        [
            "How many lines they have together.",
            "action.before.lines > 1000 && action.after.lines < 100",
        ],
        |it, _| {
            let mut sum = 0_u64;
            for text in texts(it)?.iter() {
                let known = known(text)?;
                sum =
                    sum.saturating_add(known.lines.ok_or("a file is too long to count its lines")?);
            }
            Ok(count(sum))
        },
    ),
    field(
        Subject::FileTexts,
        "text",
        Type::Text,
        Structure,
        ["The text; those of several files are joined.", "action.before.text.trim() == \"\""],
        |it, _| {
            let mut whole: Vec<Rc<str>> = Vec::new();
            for text in texts(it)?.iter() {
                let known = known(text)?;
                if !known.is_whole {
                    return Err(TOO_LONG.into());
                }
                whole.push(Rc::clone(&known.text));
            }
            Ok(ImmutableString::from(whole.join("\n")).into())
        },
    ),
];

/// Why a question about a long file has no answer.
const TOO_LONG: &str = "a file is too long to be read to its end";

impl KnownText {
    /// Returns an answer if the part of the text that was not read cannot change it: a part was found, or all was read.
    fn settled(&self, found: bool) -> Option<bool> {
        (found || self.is_whole).then_some(found)
    }
}

/// Returns the first lines of a text.
fn header(text: &KnownText) -> KnownText {
    let end = text.text.match_indices('\n').nth(FILE_HEADER_LINES - 1).map(|it| it.0 + 1);
    match end.and_then(|it| text.text.get(..it)) {
        Some(lines) => KnownText::whole(lines),
        None => text.clone(),
    }
}

/// Returns whether a regex matches. In the beginning of a text, a match that reaches its end may be none.
fn matches(text: &KnownText, regex: &str) -> Option<bool> {
    let regex = prose_regex(regex);
    if text.is_whole {
        return Some(regex.is_match(&text.text));
    }
    let end = regex.first_match(&text.text)?.end;
    (end < text.text.len()).then_some(true)
}

/// Returns the texts of a part of the context.
fn texts(it: &Object) -> Result<Rc<[ReadText]>, FactError> {
    if let ContextPart::Texts(texts) = &it.part { Ok(Rc::clone(texts)) } else { Ok(Rc::from([])) }
}

fn known(text: &ReadText) -> Result<&KnownText, FactError> {
    text.as_ref().map_err(Clone::clone)
}

/// Whether something is true of one of the texts. If it is true of none, one that is not known leaves the question open.
fn any(it: &Object, holds: impl Fn(&KnownText) -> Option<bool>) -> Result<Dynamic, FactError> {
    let mut unknown = None;
    for text in texts(it)?.iter() {
        match text.as_ref().map(&holds) {
            Ok(Some(true)) => return Ok(true.into()),
            Ok(Some(false)) => {}
            Ok(None) => unknown = unknown.or(Some(TOO_LONG.into())),
            Err(why) => unknown = unknown.or(Some(why.clone())),
        }
    }
    match unknown {
        Some(why) => Err(why),
        None => Ok(false.into()),
    }
}
