//! Lists of texts as facts are asked about them: globs, options, names. Most are written out in the
//! expression, so that one list serves all evaluations of it, and its globs are prepared once.

use super::FactError;
use std::sync::{Arc, OnceLock};

use rhai::Dynamic;
use serde::{Deserialize, Serialize};

use crate::facts::call::PathMatchers;

/// A list of texts; cloning it copies a pointer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub(super) struct TextList(Arc<Written>);

#[derive(Debug)]
struct Written {
    texts: Vec<String>,
    globs: OnceLock<PathMatchers>,
}

impl PartialEq for TextList {
    fn eq(&self, other: &Self) -> bool {
        self.texts() == other.texts()
    }
}

impl From<Vec<String>> for TextList {
    fn from(texts: Vec<String>) -> Self {
        Self(Arc::new(Written { texts, globs: OnceLock::new() }))
    }
}

impl From<TextList> for Vec<String> {
    fn from(list: TextList) -> Self {
        list.texts().to_vec()
    }
}

impl TextList {
    /// The texts.
    pub(super) fn texts(&self) -> &[String] {
        &self.0.texts
    }

    /// The texts as globs over places; prepared when they are first held against something.
    pub(super) fn globs(&self) -> &PathMatchers {
        let texts = || self.texts().iter().map(String::as_str);
        self.0.globs.get_or_init(|| PathMatchers::new(texts()))
    }

    /// Whether a text is one of them.
    pub(super) fn has(&self, text: &str) -> bool {
        self.texts().iter().any(|it| it == text)
    }
}

/// The list that an argument is: of the engine's texts, or one that was kept.
pub(super) fn list(args: &[Dynamic]) -> Result<TextList, FactError> {
    let value = args.first().ok_or("an argument is missing")?;
    if let Some(kept) = value.read_lock::<TextList>() {
        return Ok(kept.clone());
    }
    let items =
        value.clone().into_array().map_err(|found| format!("expected a list, found {found}"))?;
    let text = |it: Dynamic| it.into_string().map_err(|it| format!("expected text, found {it}"));
    Ok(items.into_iter().map(text).collect::<Result<Vec<_>, _>>()?.into())
}
