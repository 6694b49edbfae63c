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

impl Unit {
    /// Whether it is a blank as it was written: the grammar takes two words for one behind some signs (`''- b`).
    pub(super) fn is_blank(&self) -> bool {
        matches!(self, Self::Char(c, Kind::Plain) if blank(*c))
    }

    /// Whether it is this character, as it was written.
    fn is(&self, wanted: char) -> bool {
        matches!(self, Self::Char(c, Kind::Plain) if *c == wanted)
    }
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

/// What makes a word of nothing: quotes.
pub(super) const EMPTY: Unit = Unit::Char('\u{0}', Kind::Quoted);

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

/// Puts the values of a list into a word, each as a word of its own.
pub(super) fn put_all(values: Vec<Text>, kind: Kind, out: &mut Vec<Unit>) {
    for (at, value) in values.into_iter().enumerate() {
        if at > 0 {
            out.push(Unit::Break);
        }
        if kind == Kind::Quoted {
            out.push(EMPTY);
        }
        put(value, kind, out);
    }
}

/// The characters of a text that means nothing to the shell.
pub(super) fn quoted(text: &str, out: &mut Vec<Unit>) {
    out.extend(text.chars().map(|c| Unit::Char(c, Kind::Quoted)));
}

/// What stands between two pieces of one word.
pub(super) fn between(gap: &str, kind: Kind, out: &mut Vec<Unit>) {
    if kind == Kind::Plain {
        plain(gap, out);
    } else {
        out.extend(gap.replace("\\\n", "").chars().map(|c| Unit::Char(c, kind)));
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
fn add(unit: &Unit, text: &mut Text) {
    match unit {
        Unit::Char('\u{0}', _) => text.quoted_home |= text.text.is_empty(),
        Unit::Char(c, kind) => {
            if text.text.is_empty() {
                text.quoted_home = *c == '~' && (text.quoted_home || *kind == Kind::Quoted);
            }
            text.glob |= *kind != Kind::Quoted && matches!(c, '*' | '?' | '[');
            text.push(*c);
        }
        Unit::Unknown(part) => text.append(part),
        Unit::Break => text.push(' '),
    }
}

/// The one text that units are where nothing is split.
pub(super) fn whole(units: &[Unit]) -> Text {
    let mut text = Text::default();
    units.iter().for_each(|it| add(it, &mut text));
    text
}

/// Whether a character parts words.
pub(super) const fn blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n')
}

/// Splits a word where the shell does.
pub(super) fn split(units: &[Unit], words: &mut Vec<Text>) {
    let (mut text, mut any) = (Text::default(), false);
    for unit in units {
        let ends = match unit {
            Unit::Char(c, Kind::Value) => blank(*c),
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
            any |= !matches!(unit, Unit::Unknown(part) if part.text.is_empty());
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

/// The words that the first brace stands for which stands for any.
fn one_brace(units: &[Unit]) -> Option<Vec<Vec<Unit>>> {
    let opens = (0..units.len()).filter(|at| units.get(*at).is_some_and(|it| it.is('{')));
    opens.take(BRACES_MAX).find_map(|open| {
        let (before, inside) = (units.get(..open)?, units.get(open + 1..)?);
        let (items, close) = items(inside)?;
        let after = inside.get(close + 1..)?;
        Some(items.into_iter().map(|it| [before, &it, after].concat()).collect())
    })
}

/// What a brace stands for, and where it closes; nothing where it closes nowhere, or stands for itself.
fn items(inside: &[Unit]) -> Option<(Vec<Vec<Unit>>, usize)> {
    if inside.first().is_some_and(|it| it.is('}')) {
        return None;
    }
    let (mut depth, mut from) = (0_usize, 0);
    let mut items: Vec<&[Unit]> = Vec::new();
    for (at, unit) in inside.iter().enumerate() {
        if unit.is('{') {
            depth += 1;
        } else if depth > 0 && unit.is('}') {
            depth -= 1;
        } else if depth == 0 && unit.is(',') {
            items.push(inside.get(from..at)?);
            from = at + 1;
        } else if unit.is('}') {
            let last = inside.get(from..at)?;
            if !items.is_empty() {
                items.push(last);
                return Some((items.into_iter().map(<[Unit]>::to_vec).collect(), at));
            }
            let plain =
                |it: &Unit| if let Unit::Char(c, Kind::Plain) = it { Some(*c) } else { None };
            let range =
                last.iter().map(plain).collect::<Option<String>>().and_then(|it| range(&it));
            // Without a list in it, it closes nothing.
            if let Some(range) = range {
                let quoted =
                    |it: &String| it.chars().map(|c| Unit::Char(c, Kind::Quoted)).collect();
                return Some((range.iter().map(quoted).collect(), at));
            }
        }
    }
    None
}

/// The words that `1..3`, `c..a` and `01..9..2` stand for.
fn range(text: &str) -> Option<Vec<String>> {
    let (start, rest) = text.split_once("..")?;
    let (end, step) = rest.split_once("..").unwrap_or((rest, "1"));
    let step = step.parse::<i64>().ok()?.unsigned_abs().max(1);
    let steps = |from: i64, to: i64| {
        let each = usize::try_from(step).unwrap_or(usize::MAX);
        let up = (from..=to).step_by(each).take(BRACES_MAX);
        let down = (to..=from).rev().step_by(each).take(BRACES_MAX);
        up.chain(down.filter(move |_| from > to)).collect::<Vec<i64>>()
    };
    if let (Ok(from), Ok(to)) = (start.parse::<i64>(), end.parse::<i64>()) {
        let padded = [start, end].iter().any(|it| {
            let digits = it.trim_start_matches(['-', '+']);
            digits.len() > 1 && digits.starts_with('0')
        });
        let width = if padded { start.len().max(end.len()) } else { 0 };
        // A format cannot pad further.
        let width = width.min(usize::from(u16::MAX));
        return Some(steps(from, to).iter().map(|it| format!("{it:0width$}")).collect());
    }
    let one = |it: &str| it.chars().next().filter(|c| c.is_ascii_alphabetic() && it.len() == 1);
    let (from, to) = (one(start)?, one(end)?);
    let letter = |it: i64| u8::try_from(it).ok().map(|it| char::from(it).to_string());
    steps(i64::from(u32::from(from)), i64::from(u32::from(to))).into_iter().map(letter).collect()
}
