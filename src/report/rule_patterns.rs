//! Patterns that the conditions of a check search for: those of the classes of the vocabulary that they name.

use policyd_policy::{Check, Policy};

/// A class of the vocabulary, with what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassPatterns {
    /// The word for its members: `commands`.
    pub noun: &'static str,
    /// Name of the class: `test`.
    pub name: String,
    /// Command patterns, phrases, and regexes, in the order of the pack.
    pub patterns: Vec<String>,
}

/// Returns the patterns of each class that the conditions of a check name, in the order of their first use.
#[must_use]
pub fn of(check: &Check, policy: &Policy) -> Vec<ClassPatterns> {
    let body = &*check.check.body;
    let conditions = [&check.when, &check.check.when, &body.blocking].into_iter().flatten();
    let conditions = conditions.chain([&body.satisfied]);
    let mut found: Vec<ClassPatterns> = Vec::new();
    for class in conditions.flat_map(|it| classes(&it.text, policy)) {
        if !class.patterns.is_empty() && !found.contains(&class) {
            found.push(class);
        }
    }
    found
}

fn classes(expression: &str, policy: &Policy) -> Vec<ClassPatterns> {
    let (commands, contents) = (&policy.lens.commands, &policy.lens.contents);
    let class = |noun: &'static str, name: &str, patterns: &mut dyn Iterator<Item = &String>| {
        let patterns = patterns.cloned().collect();
        ClassPatterns { noun, name: name.to_owned(), patterns }
    };
    let of_command = |name: &str| {
        let kinds = commands.iter().filter(|it| it.name == name);
        class("commands", name, &mut kinds.flat_map(|it| &it.programs))
    };
    let of_content = |name: &str| {
        let rows = contents.iter().filter(|it| it.name == name);
        class("edited text", name, &mut rows.flat_map(|it| &it.regexes))
    };
    let of_text = |name: &str| {
        let source = policy.texts.get(name).map(|it| it.source());
        let phrases = source.iter().flat_map(|it| it.phrases.iter().chain(&it.regexes));
        class("messages", name, &mut phrases.clone())
    };
    let commands = named(expression, "commands.kind").into_iter().map(of_command);
    let contents = named(expression, "files.findings").into_iter().map(of_content);
    let texts = named(expression, "patterns.").into_iter().map(of_text);
    commands.chain(contents).chain(texts).collect()
}

/// Returns the names in the calls `reader("name")`. A reader that ends with a dot is any function behind it.
fn named<'e>(expression: &'e str, reader: &str) -> Vec<&'e str> {
    let calls = expression.match_indices(reader);
    let name = |at: usize| {
        let rest = expression.get(at.saturating_add(reader.len())..)?;
        let rest = rest.trim_start_matches(|c: char| c.is_ascii_lowercase() || c == '_');
        let rest = rest.trim_start().strip_prefix('(')?.trim_start().strip_prefix('"')?;
        rest.split_once('"').map(|(name, _)| name)
    };
    calls.filter_map(|(at, _)| name(at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_policy::{builtin, load};

    fn patterns(check: &str) -> Vec<(&'static str, String, usize)> {
        let policy = load::load(&builtin::pack(), &builtin::pack()).policy.unwrap();
        let check = policy.considerations.iter().find(|it| it.id == check).unwrap();
        let found = of(check, &policy).into_iter();
        found.map(|it| (it.noun, it.name, it.patterns.len())).collect()
    }

    #[test]
    fn the_classes_of_a_check_are_found_in_its_conditions() {
        let stubs = patterns("no_stubs");
        assert!(
            matches!(stubs.as_slice(), [("edited text", name, 5..)] if name == "stub"),
            "{stubs:?}"
        );
        let tests = patterns("local_testing");
        assert!(tests.iter().any(|(noun, name, _)| *noun == "commands" && name == "test"));
        assert!(patterns("next_steps").iter().any(|(noun, ..)| *noun == "messages"));
        assert_eq!(patterns("work_visible"), []);
    }

    #[test]
    fn a_name_is_read_with_white_space_around_it() {
        assert_eq!(named("a.b( \"x\" ) && a.b(\"y\").c > 0", "a.b"), ["x", "y"]);
        assert_eq!(named("patterns.in_message(\"x\")", "patterns."), ["x"]);
    }
}
