//! The characters of a shell word, each with how it came there, and the words that they make: braces put out, split
//! where the shell splits. What a node of the grammar comes to stands in `expand`.

use super::value::Text;

/// One character of a word, or a part of it that cannot be known.
#[derive(Debug, Clone)]
pub(super) enum Unit {
    Char(char, Kind),
    /// Something that cannot be known, with the programs that it comes from.
    Unknown(Text),
    /// The end of one item of a list such as `"$@"`.
    Break,
}

/// How a character came into a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// As it was written, outside of quotes.
    Plain,
    /// In quotes: it means nothing to the shell.
    Quoted,
    /// Out of a value outside of quotes: blanks split there, and patterns hold.
    Value,
}

/// Words that braces may make of one.
const BRACES_MAX: usize = 32;

/// Puts a value into a word.
pub(super) fn put(value: Text, kind: Kind, out: &mut Vec<Unit>) {
    let kind = if kind == Kind::Quoted { Kind::Quoted } else { Kind::Value };
    let known = value.known_part();
    out.extend(known.chars().map(|c| Unit::Char(c, kind)));
    if !value.is_known() || !value.from.is_empty() {
        out.push(Unit::Unknown(value.tail(known.len())));
    }
}

/// The characters of a plain word, its backslashes taken off.
pub(super) fn plain(raw: &str, out: &mut Vec<Unit>) {
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('\n') => {}
                Some(next) => out.push(Unit::Char(next, Kind::Quoted)),
                None => out.push(Unit::Char('\\', Kind::Quoted)),
            },
            c => out.push(Unit::Char(c, Kind::Plain)),
        }
    }
}

/// Adds a unit to a text.
pub(super) fn add(unit: &Unit, text: &mut Text) {
    match unit {
        Unit::Char('\u{0}', _) => {}
        Unit::Char(c, kind) => {
            text.quoted_home |= text.text.is_empty() && *c == '~' && *kind == Kind::Quoted;
            text.glob |= *kind != Kind::Quoted && matches!(c, '*' | '?' | '[');
            text.push(*c);
        }
        Unit::Unknown(part) => text.append(part),
        Unit::Break => text.push(' '),
    }
}

/// Splits a word where the shell does.
pub(super) fn split(units: &[Unit], words: &mut Vec<Text>) {
    let (mut text, mut any) = (Text::default(), false);
    for unit in units {
        let ends = match unit {
            Unit::Char(c, Kind::Value) => c.is_whitespace(),
            Unit::Break => true,
            Unit::Char(..) | Unit::Unknown(_) => false,
        };
        if ends {
            if any {
                words.push(std::mem::take(&mut text));
            }
            any = false;
        } else {
            add(unit, &mut text);
            any = true;
        }
    }
    if any {
        words.push(text);
    }
}

/// The words that `{a,b}` and `{1..3}` stand for.
pub(super) fn braces(units: Vec<Unit>) -> Vec<Vec<Unit>> {
    let mut open = vec![units];
    let mut done = Vec::new();
    while let Some(units) = open.pop() {
        let made = if open.len() + done.len() < BRACES_MAX { one_brace(&units) } else { None };
        match made {
            Some(made) => open.extend(made.into_iter().rev()),
            None => done.push(units),
        }
    }
    done
}

/// The words that the first innermost brace stands for.
fn one_brace(units: &[Unit]) -> Option<Vec<Vec<Unit>>> {
    let is = |unit: &Unit, wanted: char| matches!(unit, Unit::Char(c, Kind::Plain) if *c == wanted);
    let mut from = 0;
    loop {
        let close = from + units.get(from..)?.iter().position(|it| is(it, '}'))?;
        let open = units.get(..close)?.iter().rposition(|it| is(it, '{'));
        from = close + 1;
        let Some(open) = open else { continue };
        let (before, inside) = (units.get(..open)?, units.get(open + 1..close)?);
        let after = units.get(close + 1..)?;
        let items: Vec<Vec<Unit>> = if inside.iter().any(|it| is(it, ',')) {
            inside.split(|it| is(it, ',')).map(<[Unit]>::to_vec).collect()
        } else {
            let text: String = inside
                .iter()
                .filter_map(|it| if let Unit::Char(c, Kind::Plain) = it { Some(*c) } else { None })
                .collect();
            match range(&text) {
                Some(items) => items
                    .iter()
                    .map(|it| it.chars().map(|c| Unit::Char(c, Kind::Quoted)).collect())
                    .collect(),
                None => continue,
            }
        };
        return Some(items.into_iter().map(|it| [before, &it, after].concat()).collect());
    }
}

fn range(text: &str) -> Option<Vec<String>> {
    let (start, end) = text.split_once("..")?;
    if let (Ok(start), Ok(end)) = (start.parse::<i64>(), end.parse::<i64>()) {
        let most = i64::try_from(BRACES_MAX).unwrap_or(i64::MAX);
        return Some(
            (start..=end.min(start.saturating_add(most))).map(|it| it.to_string()).collect(),
        );
    }
    let one = |it: &str| it.chars().next().filter(|c| c.is_ascii_alphabetic() && it.len() == 1);
    Some((one(start)?..=one(end)?).map(String::from).collect())
}
