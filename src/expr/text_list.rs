//! Lists of texts as arguments of facts: globs, options, names. Most are written out in the expression, so that one
//! list serves all evaluations of it, and what a fact prepares from it is prepared once.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use rhai::Dynamic;
use serde::{Deserialize, Serialize};

use super::FactError;

/// A list of texts; cloning it copies a pointer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub struct TextList(Arc<TextListContent>);

#[derive(Debug)]
struct TextListContent {
    texts: Vec<String>,
    /// What a fact prepared from the texts, such as globs.
    prepared: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl PartialEq for TextList {
    fn eq(&self, other: &Self) -> bool {
        self.texts() == other.texts()
    }
}

impl From<Vec<String>> for TextList {
    fn from(texts: Vec<String>) -> Self {
        Self(Arc::new(TextListContent { texts, prepared: OnceLock::new() }))
    }
}

impl From<TextList> for Vec<String> {
    fn from(list: TextList) -> Self {
        list.texts().to_vec()
    }
}

impl TextList {
    /// The texts.
    #[must_use]
    pub fn texts(&self) -> &[String] {
        &self.0.texts
    }

    /// Returns what `prepare` makes of the texts, and keeps it for the next evaluation. If something of another type
    /// is kept already, the texts are prepared again.
    #[must_use]
    pub fn prepared<T: Any + Send + Sync>(&self, prepare: impl Fn(&[String]) -> T) -> Arc<T> {
        let known = self.0.prepared.get_or_init(|| Arc::new(prepare(self.texts())));
        Arc::clone(known).downcast().unwrap_or_else(|_| Arc::new(prepare(self.texts())))
    }

    /// Whether a text is one of them.
    #[must_use]
    pub fn has(&self, text: &str) -> bool {
        self.texts().iter().any(|it| it == text)
    }
}

/// The list that an argument is: of the engine's texts, or one that was kept.
///
/// # Errors
/// The argument is missing, or is not a list of texts.
pub fn list(args: &[Dynamic]) -> Result<TextList, FactError> {
    let value = args.first().ok_or("an argument is missing")?;
    if let Some(kept) = value.read_lock::<TextList>() {
        return Ok(kept.clone());
    }
    let items =
        value.clone().into_array().map_err(|found| format!("expected a list, found {found}"))?;
    let text = |it: Dynamic| it.into_string().map_err(|it| format!("expected text, found {it}"));
    Ok(items.into_iter().map(text).collect::<Result<Vec<_>, _>>()?.into())
}
