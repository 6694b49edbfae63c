//! What some programs print, where it can be told without running them: `echo`, `printf`, `base64 -d`.

use super::Invocation;
use super::each::{looked_for, named_below};
use super::place::Surroundings;
use super::value::Text;

/// Programs that pass lines on, or leave some out.
const FILTERS: [&str; 9] = ["grep", "egrep", "rg", "head", "tail", "sort", "uniq", "tac", "shuf"];

/// The text that a program prints, where it is known. `written` tells what the line wrote into a file.
pub(super) fn text(
    program: &Invocation,
    around: &Surroundings,
    written: impl Fn(&Text) -> Option<String>,
) -> Option<String> {
    let args: Vec<Text> =
        program.args.iter().map(|it| it.clone().with_home(&around.home)).collect();
    let args: Option<Vec<&str>> = args.iter().map(Text::all).collect();
    let operands = || program.args.iter().filter(|it| !it.text.starts_with('-') || it.text == "-");
    match program.name.as_str() {
        "mktemp" => Some(format!("{}/mktemp.XXXXXX\n", around.temporary.first()?)),
        "pwd" => Some(format!("{}\n", program.folder.as_ref()?)),
        "echo" => Some(echo(&args?)),
        "printf" => printf(&args?),
        "true" | ":" | "cd" | "export" | "set" | "mkdir" | "touch" | "sleep" => Some(String::new()),
        "git" if args.as_deref() == Some(&["rev-parse", "--show-toplevel"]) => {
            Some(format!("{}\n", around.project))
        }
        "cat" => {
            let files: Vec<&Text> = operands().collect();
            match files.as_slice() {
                [] => program.input.text.clone(),
                [one] if one.text == "-" => program.input.text.clone(),
                files => files
                    .iter()
                    .map(|it| written(it))
                    .collect::<Option<Vec<_>>>()
                    .map(|it| it.concat()),
            }
        }
        "tee" => program.input.text.clone(),
        "base64" if args.as_ref()?.iter().any(|it| matches!(*it, "-d" | "-D" | "--decode")) => {
            base64(program.input.text.as_deref()?)
        }
        "xxd" if args.as_ref()?.iter().any(|it| it.starts_with("-r")) => {
            hex(program.input.text.as_deref()?)
        }
        "rev" => {
            let text = program.input.text.as_deref()?;
            let lines: Vec<String> = text.lines().map(|it| it.chars().rev().collect()).collect();
            Some(lines.join("\n"))
        }
        "dirname" => {
            let path = operands().next()?.all()?;
            Some(path.trim_end_matches('/').rsplit_once('/').map_or(".", |it| it.0).to_owned())
        }
        "which" => found(&args?),
        "command" if args.as_ref()?.first() == Some(&"-v") => found(&args?),
        "type" if args.as_ref()?.iter().any(|it| matches!(*it, "-p" | "-P")) => found(&args?),
        // Whether the path is a link is asked of the disk, where the path is used.
        "readlink" | "realpath" => {
            let path = around.known_place(operands().next()?.all()?, program.folder.as_deref());
            Some(format!("{}\n", path.absolute?))
        }
        "basename" => Some(operands().next()?.all()?.rsplit('/').next()?.to_owned()),
        _ => None,
    }
}

/// The files whose names it prints: something below the folder that all lie in, then what it looks for.
pub(super) fn files(program: &Invocation) -> Vec<Text> {
    let tests = ["-name", "-iname", "-path", "-ipath", "-regex", "-iregex", "-newer", "-empty"];
    match program.name.as_str() {
        // Without a test it names its root, too.
        "find" => match roots(&program.args).as_slice() {
            [root] if program.args.iter().any(|it| tests.contains(&it.text.as_str())) => {
                let names = looked_for(&program.args);
                let named = names.iter().filter_map(|it| named_below(root, it));
                std::iter::once(root.below()).chain(named).collect()
            }
            _ => Vec::new(),
        },
        name if FILTERS.contains(&name) => program.input.files.clone(),
        _ => Vec::new(),
    }
}

/// The folders that `find` looks in.
pub(super) fn roots(args: &[Text]) -> Vec<Text> {
    let before = args.iter().skip_while(|it| matches!(it.text.as_str(), "-H" | "-L" | "-P"));
    let is_test = |it: &Text| it.text.starts_with(['-', '(', '!']);
    let roots: Vec<Text> = before.take_while(|it| !is_test(it)).cloned().collect();
    if roots.is_empty() { vec![Text::known(".")] } else { roots }
}

/// The path of each program that `which` looks for. Where a program is installed is not known from the line:
/// a folder of the system is assumed.
fn found(args: &[&str]) -> Option<String> {
    let names = args.iter().filter(|it| !it.starts_with('-'));
    let paths: String =
        names
            .map(|it| {
                if it.contains('/') { format!("{it}\n") } else { format!("/usr/local/bin/{it}\n") }
            })
            .collect();
    Some(paths).filter(|it| !it.is_empty())
}

fn echo(args: &[&str]) -> String {
    let is_option = |it: &&&str| {
        it.len() > 1
            && it.strip_prefix('-').is_some_and(|it| it.bytes().all(|b| b"neE".contains(&b)))
    };
    let options: Vec<&&str> = args.iter().take_while(is_option).collect();
    let has = |c: char| options.iter().any(|it| it.contains(c));
    let text = args.get(options.len()..).unwrap_or_default().join(" ");
    let text = if has('e') { escaped(&text) } else { text };
    if has('n') { text } else { format!("{text}\n") }
}

fn printf(args: &[&str]) -> Option<String> {
    let args = args.strip_prefix(&["--"]).unwrap_or(args);
    let (format, values) = args.split_first()?;
    let mut values = values.iter();
    let mut out = String::new();
    loop {
        let left = values.len();
        let mut rest = *format;
        while let Some((before, after)) = rest.split_once('%') {
            out.push_str(&escaped(before));
            let mut chars = after.chars();
            let kind = chars.next()?;
            rest = chars.as_str();
            match kind {
                '%' => out.push('%'),
                's' | 'd' | 'i' => out.push_str(values.next().copied().unwrap_or_default()),
                'b' => out.push_str(&escaped(values.next().copied().unwrap_or_default())),
                _ => return None,
            }
        }
        out.push_str(&escaped(rest));
        if values.len() == 0 || values.len() == left {
            break;
        }
    }
    Some(out)
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    super::super::shell::word::unescape_ansi(text, &mut out);
    out
}

fn base64(text: &str) -> Option<String> {
    let mut bits = 0_u32;
    let (mut held, mut out) = (0_u32, Vec::new());
    for byte in text.bytes().filter(|b| !b.is_ascii_whitespace() && *b != b'=') {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push(u8::try_from((bits >> held) & 0xff).unwrap_or_default());
        }
    }
    String::from_utf8(out).ok()
}

fn hex(text: &str) -> Option<String> {
    let digits: Vec<u32> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16))
        .collect::<Option<_>>()?;
    let bytes: Option<Vec<u8>> = digits
        .chunks(2)
        .map(|it| match it {
            [high, low] => u8::try_from(high * 16 + low).ok(),
            _ => None,
        })
        .collect();
    String::from_utf8(bytes?).ok()
}
