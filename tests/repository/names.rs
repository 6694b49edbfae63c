//! Names of the source text: types that were renamed, types named by a participle or twice, parameters without a name,
//! errors without a type, and public items without documentation. Existing violations are listed in
//! `names_baseline.txt`; a count may only shrink. `POLICYD_REGEN=1 cargo test --test repository names` updates it.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::LazyLock;

use regex::Regex;

use super::language::{files, root};

/// Former names of types. Their successors are in the glossary of the house style, and say what the value is.
const FORMER: &str = "Ability Answer Answered Around Ask At Bench Besides Bound Broken Carrier Circumstances \
    Claims CompiledLens Consideration Deed Deeds Deferred Desk Ears Fallback Familiar \
    FencedWorld FileUse Fitted Fitting Forgotten Form Found Gathered Gauge GuardLimits \
    GuardState Guarding Happens Heard Held Judging Kept KeptPattern Kin Knowledge Known Ladder \
    Learned Lens Limit ListPlace Look Looked Mark Metering Moment Named Odds Paint Pairs Panel \
    PassedOver Piece Place PlaceGlobs Plain Put Queued Reacting Read Reading Ready Real \
    Recognised Remembered Renewal Ruling Rung Said Seat Seen Settings Sign Situation Sought \
    Spoken Standing Stands Stopping Surroundings Switched Switches Taken Teller Term Test Then \
    ToKeep Told Trail Until Use Verb Waiting Waits Wanted Watch Way Which Whose Words Written";
/// Words that end like a participle and are nouns.
const NOUNS: &[&str] =
    &["Embedding", "Finding", "Mapping", "Recording", "Setting", "Settings", "String", "Warning"];
/// Documentation that repeats the name of what it documents.
const EMPTY: &str =
    r"(?m)^\s*/// (Its [a-z]+|Id|Name|Title|When|Why|Who|Where|The same|What it is)\.$";

static DEFINITION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?m)^\s*(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait|union) (\w+)|^(?:pub(?:\([^)]*\))? )?type (\w+)")
        .unwrap()
});
static PARTICIPLE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\w(ing|ed)$").unwrap());
static TEXT_ERROR: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"Result<(?:[^<>;{]|<(?:[^<>]|<[^<>]*>)*>)*, String>").unwrap());
/// A parameter that takes a tuple apart, or has one for a type: `(one, other): (A, B)`, `pair: &(A, B)`.
static TUPLE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\s*(?:\(.*\)|(?:mut )?\w+)\s*:\s*&?(?:'\w+ )?(?:mut )?\(").unwrap()
});
static FUNCTION: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\bfn \w+").unwrap());
static EMPTY_DOC: LazyLock<Regex> = LazyLock::new(|| Regex::new(EMPTY).unwrap());
static PUBLIC: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^\s*pub (?:const |async |unsafe )*(?:struct|enum|trait|union|type|fn|static|const) ",
    )
    .unwrap()
});

/// Number of violations by kind and name.
type Counts = BTreeMap<(String, String), usize>;

/// Source text by path, without tests.
fn sources() -> BTreeMap<String, String> {
    let paths = files("src", "rs").into_iter();
    paths
        .filter_map(|path| {
            let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
            let text = fs::read_to_string(path).unwrap();
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap().to_owned();
            let is_test = name.ends_with("/tests.rs") || name.contains("/tests/");
            (!is_test).then_some((name, code))
        })
        .collect()
}

/// Names of the types that a text defines.
fn types(code: &str) -> impl Iterator<Item = &str> {
    DEFINITION.captures_iter(code).map(|it| it.get(1).or(it.get(2)).unwrap().as_str())
}

/// Parameters of a function, by the text behind its name.
fn parameters(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let (mut depth, mut angle, mut from, mut found) = (0_i32, 0_i32, 0, vec![]);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'<' => angle += 1,
            b'>' if at > 0 && bytes[at - 1] != b'-' => angle -= 1,
            b'(' if depth == 0 && angle > 0 => {} // bounds of type parameters
            b'(' | b'[' | b'{' => {
                depth += 1;
                if depth == 1 {
                    from = at + 1;
                }
            }
            b')' | b']' | b'}' if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    found.push(&text[from..at]);
                    break;
                }
            }
            b',' if depth == 1 && angle == 0 => {
                found.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    found
}

fn tuple_parameters(code: &str) -> usize {
    let functions = FUNCTION.find_iter(code).map(|it| parameters(&code[it.end()..]));
    functions.flatten().filter(|it| TUPLE.is_match(it)).count()
}

/// Lines of public items, fields and variants aside, that have no documentation.
fn undocumented(code: &str) -> Vec<usize> {
    let lines: Vec<&str> = code.lines().collect();
    let is_documented = |at: usize| {
        // An attribute of several lines ends with `)]`, and has no empty line within.
        let above = lines[..at].iter().rev().take_while(|it| !it.trim().is_empty());
        let above = above.take_while(|it| !it.ends_with('}') && !it.ends_with(';'));
        above.into_iter().any(|it| it.trim_start().starts_with("///"))
    };
    let items = lines.iter().enumerate().filter(|(_, it)| PUBLIC.is_match(it));
    items.filter(|(at, _)| !is_documented(*at)).map(|(at, _)| at + 1).collect()
}

/// All violations, by the check and what it found: a name, or a file.
fn violations(sources: &BTreeMap<String, String>) -> Counts {
    let former: BTreeSet<&str> = FORMER.split_whitespace().collect();
    let (mut counts, mut defined) = (Counts::new(), BTreeMap::<&str, usize>::new());
    // Two definitions in one file are alternatives of `cfg`, as those of this directory are.
    let is_alternative = |path: &str| path.ends_with("system/windows.rs");
    let of_file = |code| types(code).collect::<BTreeSet<&str>>();
    let mut add = |check: &str, found: &str, count: usize| {
        if count > 0 {
            *counts.entry((check.to_owned(), found.to_owned())).or_default() += count;
        }
    };
    for (path, code) in sources {
        for name in of_file(code).into_iter().filter(|_| !is_alternative(path)) {
            *defined.entry(name).or_default() += 1;
        }
        add("error-without-type", path, TEXT_ERROR.find_iter(code).count());
        add("tuple-parameter", path, tuple_parameters(code));
        add("empty-documentation", path, EMPTY_DOC.find_iter(code).count());
        add("undocumented", path, undocumented(code).len());
    }
    for (name, count) in defined {
        add("type-defined-again", name, count - 1);
        add("former-type", name, if former.contains(name) { count } else { 0 });
        let is_participle = PARTICIPLE.is_match(name) && !NOUNS.iter().any(|it| name.ends_with(it));
        add("participle-type", name, if is_participle { count } else { 0 });
    }
    counts
}

fn parse_baseline(text: &str) -> Counts {
    let rows = text.lines().map(|it| it.split(' ').collect::<Vec<_>>());
    rows.map(|it| ((it[0].to_owned(), it[1].to_owned()), it[2].parse().unwrap())).collect()
}

/// Names whose count differs from the baseline: more hits, or a stale line.
fn differences(found: &Counts, baseline: &Counts) -> Vec<(String, String, usize, usize)> {
    let keys: BTreeSet<_> = found.keys().chain(baseline.keys()).collect();
    let count = |counts: &Counts, key| counts.get(key).copied().unwrap_or(0);
    let rows = keys.into_iter().map(|key| (key, count(found, key), count(baseline, key)));
    rows.filter(|(_, now, before)| now != before)
        .map(|((path, word), now, before)| (path.clone(), word.clone(), now, before))
        .collect()
}

#[test]
fn names_follow_the_house_language() {
    let counts = violations(&sources());
    let path = root().join("tests/repository/names_baseline.txt");
    if std::env::var_os("POLICYD_REGEN").is_some() {
        let rows =
            counts.iter().map(|((check, found), count)| format!("{check} {found} {count}\n"));
        fs::write(&path, rows.collect::<String>()).unwrap();
    }
    let baseline = parse_baseline(&fs::read_to_string(&path).unwrap_or_default());
    let wrong: Vec<_> = differences(&counts, &baseline)
        .into_iter()
        .map(|(check, found, now, before)| {
            format!("{check}: {found}: {now}, {before} in the baseline")
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "\n{}\n\nGive new types a noun that no other type has, parameters a name or a struct, errors an enum, and public \
         items a sentence. If counts shrank, update the baseline:\n  \
         POLICYD_REGEN=1 cargo test --test repository names\n",
        wrong.join("\n")
    );
}

#[test]
fn each_kind_of_name_is_found() {
    let code = "/// Its id.\n#[derive(\n    Debug,\n)]\npub struct Told;\n\npub enum Found {}\nimpl X {\n    \
                type Item = u8;\n    fn f<F: Fn(u8) -> u8>(&self, (a, b): (u8, u8), c: &[(u8, u8)]) -> Result<Vec<u8>, \
                String> {}\n    /// Sums.\n    pub fn g(pair: &(u8, u8), one: u8) -> (u8, u8) {}\n}\npub type Guarded = u8;\n";
    let files = [("x.rs", code), ("y.rs", "enum Found {}\n")];
    let counts = violations(&files.map(|(path, code)| (path.to_owned(), code.to_owned())).into());
    let found: Vec<_> = counts.iter().map(|(it, n)| (it.0.as_str(), it.1.as_str(), *n)).collect();
    let expected = [
        ("empty-documentation", "x.rs", 1),
        ("error-without-type", "x.rs", 1),
        ("former-type", "Found", 2),
        ("former-type", "Told", 1),
        ("participle-type", "Guarded", 1),
        ("tuple-parameter", "x.rs", 2),
        ("type-defined-again", "Found", 1),
        ("undocumented", "x.rs", 2),
    ];
    assert_eq!(found, expected);
    assert_eq!(differences(&counts, &counts), []);
    assert_eq!(differences(&counts, &Counts::new()).len(), expected.len());
    let stale = parse_baseline("former-type Told 2\ntuple-parameter y.rs 1\n");
    let stale = differences(&Counts::new(), &stale);
    assert_eq!(stale.iter().map(|it| (it.2, it.3)).collect::<Vec<_>>(), [(0, 2), (0, 1)]);
    let former: Vec<_> = FORMER.split_whitespace().collect();
    assert!(former.is_sorted() && NOUNS.is_sorted(), "sort the lists");
}
