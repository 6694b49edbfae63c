//! What is fuzzed: one function for each kind of text that comes from outside, which fails where a
//! promise is broken. `tests/fuzz/main.rs` runs them over the corpus, cargo-fuzz over what it finds.

mod expression;
mod machine;
mod pack;
mod payload;
mod settings;
mod shell;
mod stored;
mod template;
mod transcript;
mod yaml;

/// Fails where what was promised about any such text does not hold.
type Promise = fn(&[u8]);

/// Name of each folder of the corpus, and what must hold for anything like what is in it.
pub(crate) const TARGETS: [(&str, Promise); 9] = [
    ("payload", payload::run),
    ("pack", pack::run),
    ("expression", expression::run),
    ("template", template::run),
    ("shell", shell::run),
    ("transcript", transcript::run),
    ("stored", stored::run),
    ("settings", settings::run),
    ("yaml", yaml::run),
];

/// Fails where a promise is broken.
pub(crate) fn run(name: &str, data: &[u8]) {
    TARGETS.iter().filter(|it| it.0 == name).for_each(|it| it.1(data));
}

/// Cuts the first line off: it says which file, event or client is meant.
fn headed(data: &[u8]) -> Option<(&str, &[u8])> {
    let end = data.iter().position(|it| *it == b'\n')?;
    let (head, rest) = data.split_at(end);
    Some((std::str::from_utf8(head).ok()?, rest.get(1..)?))
}
