//! Rows of a table that are found by name. A row is decoded when a lookup finds it.
//!
//! A hook looks for the rows of one or two programs in tables of hundreds of programs.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::OnceLock;

use serde::de::DeserializeOwned;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::deferred::{Lazy, SharedBytes};

/// Characters that make a name a pattern.
const WILD: [char; 3] = ['*', '?', '{'];
/// Bytes of the end of one row in [`Rows`].
const END_BYTES: usize = 4;

/// The names of a row.
pub trait RowNames {
    /// Returns the names under which the row is found. A name with `*`, `?`, or `{` is a pattern.
    fn names(&self) -> Vec<Cow<'_, str>>;
}

/// Names, each with the numbers of its rows.
///
/// The names stay encoded: one line for each, with the name, a tab, and the numbers. First the plain names, then the
/// patterns, both sorted. A lookup searches the bytes for the line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameIndex {
    lines: SharedBytes,
    /// Start of the patterns in `lines`.
    patterns: usize,
}

impl NameIndex {
    /// Returns the numbers of the rows that a name can have, each once and in order. A pattern counts if the name begins
    /// as the pattern does; the caller compares the rest.
    #[must_use]
    pub fn rows(&self, name: &str) -> Vec<usize> {
        let exact = self.exact(name).into_iter();
        let alike = self.patterns().filter(|(pattern, _)| begins_as(name, pattern));
        let mut rows: Vec<usize> = exact.chain(alike.map(|it| it.1)).flat_map(numbers).collect();
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    /// Returns whether a name is listed as it is, or begins as a pattern for which `matches` is true.
    #[must_use]
    pub fn has(&self, name: &str, matches: impl Fn(&str) -> bool) -> bool {
        let mut alike = self.patterns().filter(|(pattern, _)| begins_as(name, pattern));
        self.exact(name).is_some() || alike.any(|(pattern, _)| matches(pattern))
    }

    /// Returns all names and patterns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        lines(&self.lines).map(|it| it.0)
    }

    /// Returns the numbers in the line of a plain name.
    fn exact(&self, name: &str) -> Option<&str> {
        let plain = self.lines.get(..self.patterns)?;
        let (mut low, mut high) = (0, plain.len());
        while low < high {
            let middle = low.midpoint(high);
            let start = memchr::memrchr(b'\n', plain.get(low..middle)?);
            let start = start.map_or(low, |it| low.saturating_add(it).saturating_add(1));
            let rest = plain.get(start..high)?;
            let line = rest.get(..memchr::memchr(b'\n', rest)?)?;
            let (found, rows) = line.split_at_checked(memchr::memchr(b'\t', line)?)?;
            match found.cmp(name.as_bytes()) {
                Ordering::Less => low = start.saturating_add(line.len()).saturating_add(1),
                Ordering::Greater => high = start,
                Ordering::Equal => return std::str::from_utf8(rows.get(1..)?).ok(),
            }
        }
        None
    }

    fn patterns(&self) -> impl Iterator<Item = (&str, &str)> {
        lines(self.lines.get(self.patterns..).unwrap_or_default())
    }
}

impl FromIterator<(String, usize)> for NameIndex {
    fn from_iter<I: IntoIterator<Item = (String, usize)>>(names: I) -> Self {
        let mut plain: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut wild = plain.clone();
        for (name, row) in names {
            let into = if name.is_empty() || name.contains(WILD) { &mut wild } else { &mut plain };
            into.entry(name).or_default().push(row);
        }
        let line = |text: String, (name, rows): (String, Vec<usize>)| {
            let rows: Vec<String> = rows.iter().map(usize::to_string).collect();
            text + &name + "\t" + &rows.join(" ") + "\n"
        };
        let text = plain.into_iter().fold(String::new(), line);
        let patterns = text.len();
        Self { lines: wild.into_iter().fold(text, line).into_bytes().into(), patterns }
    }
}

/// Returns the lines of an index, each as a name and numbers.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (&str, &str)> {
    let lines = std::str::from_utf8(bytes).unwrap_or_default().lines();
    lines.filter_map(|line| line.split_once('\t'))
}

/// Returns the numbers in a line.
fn numbers(text: &str) -> impl Iterator<Item = usize> {
    text.split(' ').filter_map(|it| it.parse().ok())
}

/// Returns whether a name begins with the text before the first special character of a pattern.
fn begins_as(name: &str, pattern: &str) -> bool {
    let mut letters = name.bytes();
    let mut plain = pattern.bytes().take_while(|it| !WILD.contains(&char::from(*it)));
    plain.all(|it| letters.next() == Some(it))
}

/// Rows that are found by their names.
///
/// In a compiled pack the rows stay encoded until a lookup finds them.
#[derive(Debug, Clone)]
pub struct Rows<T> {
    index: NameIndex,
    /// End of each row in `encoded`, four bytes each.
    ends: SharedBytes,
    /// The encoded rows. Empty if the rows were never encoded.
    encoded: SharedBytes,
    /// Number of rows.
    count: usize,
    /// The decoded rows, with a place for each row.
    decoded: OnceLock<Box<[OnceLock<Box<T>>]>>,
}

/// The serialized form of [`Rows`].
#[derive(Serialize, Deserialize)]
struct StoredRows {
    index: NameIndex,
    ends: SharedBytes,
    encoded: SharedBytes,
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        let index = NameIndex::default();
        let (ends, encoded) = (SharedBytes::default(), SharedBytes::default());
        Self { index, ends, encoded, count: 0, decoded: OnceLock::new() }
    }
}

impl<T: DeserializeOwned + Default> Rows<T> {
    /// Returns all rows in order. Decodes them.
    pub fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        (0..self.count).filter_map(|at| self.row(at))
    }

    /// Returns the rows that a name can have, in order. Decodes only these. The caller compares the names of the rows
    /// that are patterns.
    pub fn named<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a T> + use<'a, T> {
        self.index.rows(name).into_iter().filter_map(|at| self.row(at))
    }

    /// Returns the rows that one of some names can have, each once and in order. Decodes only these.
    pub fn named_any<'n>(
        &self,
        names: impl IntoIterator<Item = &'n str>,
    ) -> impl Iterator<Item = &T> {
        let rows: BTreeSet<usize> = names.into_iter().flat_map(|it| self.index.rows(it)).collect();
        rows.into_iter().filter_map(|at| self.row(at))
    }

    /// Changes the rows, which decodes them. Lookups use their new names. Rows are moved and not cloned, because coverage
    /// knows an expression by the address of its text.
    pub fn change<R>(&mut self, change: impl FnOnce(&mut Vec<T>) -> R) -> R
    where
        T: RowNames,
    {
        self.iter().for_each(drop);
        let decoded = self.decoded.take().unwrap_or_default().into_iter();
        let mut rows: Vec<T> = decoded.filter_map(|it| it.into_inner().map(|row| *row)).collect();
        let changed = change(&mut rows);
        *self = rows.into();
        changed
    }

    /// Returns the index of the names.
    #[must_use]
    pub const fn index(&self) -> &NameIndex {
        &self.index
    }

    /// Returns the number of rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Returns whether the table has no row.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn row(&self, at: usize) -> Option<&T> {
        let places = || (0..self.count).map(|_| OnceLock::new()).collect();
        let place = self.decoded.get_or_init(places).get(at)?;
        let decode =
            || Box::new(self.part(at).and_then(|it| self.encoded.decode(it)).unwrap_or_default());
        Some(place.get_or_init(decode))
    }

    /// Returns the bytes of a row in `encoded`.
    fn part(&self, at: usize) -> Option<Range<usize>> {
        let start = at.checked_sub(1).map_or(Some(0), |before| self.end(before))?;
        Some(start..self.end(at)?)
    }

    fn end(&self, at: usize) -> Option<usize> {
        let bytes = self.ends.get(at.checked_mul(END_BYTES)?..)?.first_chunk::<END_BYTES>()?;
        usize::try_from(u32::from_le_bytes(*bytes)).ok()
    }
}

impl<T: RowNames> From<Vec<T>> for Rows<T> {
    fn from(rows: Vec<T>) -> Self {
        let names = |(at, row): (usize, &'_ T)| -> Vec<(String, usize)> {
            row.names().into_iter().map(|it| (it.into_owned(), at)).collect()
        };
        let index = rows.iter().enumerate().flat_map(names).collect();
        let count = rows.len();
        let decoded = rows.into_iter().map(|it| OnceLock::from(Box::new(it))).collect::<Box<[_]>>();
        Self { index, count, decoded: OnceLock::from(decoded), ..Self::default() }
    }
}

impl<T: RowNames> From<Vec<T>> for Lazy<Rows<T>> {
    fn from(rows: Vec<T>) -> Self {
        Rows::from(rows).into()
    }
}

impl<T: DeserializeOwned + Default + PartialEq> PartialEq for Rows<T> {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count && self.iter().eq(other.iter())
    }
}

impl<T: DeserializeOwned + Default + Eq> Eq for Rows<T> {}

impl<T: Serialize + DeserializeOwned + Default> Serialize for Rows<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (mut ends, mut encoded) = (Vec::new(), Vec::new());
        for row in self.iter() {
            encoded = postcard::to_extend(row, encoded).map_err(S::Error::custom)?;
            let end = u32::try_from(encoded.len()).map_err(S::Error::custom)?;
            ends.extend_from_slice(&end.to_le_bytes());
        }
        let index = self.index.clone();
        StoredRows { index, ends: ends.into(), encoded: encoded.into() }.serialize(to)
    }
}

impl<'de, T> Deserialize<'de> for Rows<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let StoredRows { index, ends, encoded } = StoredRows::deserialize(from)?;
        let count = ends.len().checked_div(END_BYTES).unwrap_or_default();
        Ok(Self { index, ends, encoded, count, decoded: OnceLock::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deferred::decoded_count;

    #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
    struct Row {
        names: Vec<String>,
        value: u8,
    }

    impl RowNames for Row {
        fn names(&self) -> Vec<Cow<'_, str>> {
            self.names.iter().map(Cow::from).collect()
        }
    }

    fn rows(all: &[&[&str]]) -> Rows<Row> {
        let row = |(names, value): (&&[&str], u8)| Row {
            names: names.iter().map(|it| (*it).to_owned()).collect(),
            value,
        };
        all.iter().zip(0..).map(row).collect::<Vec<_>>().into()
    }

    fn values(rows: &Rows<Row>, name: &str) -> Vec<u8> {
        rows.named(name).map(|it| it.value).collect()
    }

    #[test]
    fn a_row_is_found_by_each_of_its_names_and_by_patterns_that_begin_alike() {
        let rows =
            rows(&[&["git", "gh"], &["g*"], &["git"], &["python*", "git"], &["{a,b}"], &[""]]);
        assert_eq!(values(&rows, "git"), [0, 1, 2, 3, 4, 5]);
        assert_eq!(values(&rows, "gh"), [0, 1, 4, 5]);
        assert_eq!(values(&rows, "python3"), [3, 4, 5]);
        assert_eq!(values(&rows, "python"), [3, 4, 5]);
        assert_eq!(values(&rows, "gi"), [1, 4, 5]);
        for odd in ["", "h", "it", "git\t0", "\ngit", "gh\n"] {
            assert!(!values(&rows, odd).contains(&0), "{odd:?}");
        }
        let both: Vec<u8> = rows.named_any(["git", "gh"]).map(|it| it.value).collect();
        assert_eq!(both, [0, 1, 2, 3, 4, 5]);
        assert_eq!((rows.len(), rows.is_empty()), (6, false));
        assert!(values(&Rows::default(), "git").is_empty());
    }

    #[test]
    fn changed_rows_are_found_by_their_new_names() {
        let mut rows = rows(&[&["git"], &["gh"]]);
        let address = |rows: &Rows<Row>| rows.named("gh").next().map(|it| it.names[0].as_ptr());
        let before = address(&rows);
        rows.change(|all| {
            all.remove(0);
            all.iter_mut().for_each(|it| it.names.push("hub".to_owned()));
        });
        assert_eq!((values(&rows, "git"), values(&rows, "hub"), rows.len()), (vec![], vec![1], 1));
        assert!(before.is_some() && address(&rows) == before, "its texts stay where they are");
    }

    #[test]
    fn an_index_knows_its_names() {
        let rows = rows(&[&["git", "make*"], &["cargo", "*"]]);
        let has = |name: &str| rows.index().has(name, |pattern| pattern != "*");
        assert!(has("git") && has("cargo") && has("make") && has("makedepend"));
        assert!(!has("gi") && !has("mak") && !has(""));
        assert_eq!(rows.index().names().collect::<Vec<_>>(), ["cargo", "git", "*", "make*"]);
    }

    #[test]
    fn only_found_rows_are_decoded() {
        let known = rows(&[&["git"], &["gh"], &["g*"], &["cargo"]]);
        let bytes = postcard::to_stdvec(&known).unwrap();
        let read: Rows<Row> = postcard::from_bytes(&bytes).unwrap();
        let before = decoded_count();
        assert!(values(&read, "npm").is_empty());
        assert_eq!(decoded_count() - before, 0);
        assert_eq!((values(&read, "git"), values(&read, "git")), (vec![0, 2], vec![0, 2]));
        assert_eq!(decoded_count() - before, 2);
        assert_eq!(read, known);
        assert_eq!(postcard::to_stdvec(&read).unwrap(), bytes);
        assert_ne!(read, rows(&[&["git"], &["gh"], &["g*"]]));
    }

    #[test]
    fn damaged_bytes_give_default_rows() {
        let known = rows(&[&["git"], &["gh"]]);
        let index = known.index.clone();
        for ends in [vec![9, 0, 0, 0, 1, 0, 0, 0], vec![0; 8], vec![255; 8], vec![1, 0, 0]] {
            let stored =
                StoredRows { index: index.clone(), ends: ends.into(), encoded: vec![3].into() };
            let bytes = postcard::to_stdvec(&stored).unwrap();
            let read: Rows<Row> = postcard::from_bytes(&bytes).unwrap();
            assert!(values(&read, "git").iter().all(|it| *it == 0));
        }
    }
}
