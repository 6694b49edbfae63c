//! Whose pack a rule comes from, as the user reads it.

use policyd_policy::builtin;

/// Whose pack it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PackLayer {
    /// The pack in the program.
    #[default]
    BuiltIn,
    /// The pack of the machine's administrator. Nothing else weakens it.
    Organization,
    /// The pack in the user's configuration.
    User,
    /// The pack of the project.
    Project,
    /// A directory that an option or a variable names.
    Named,
}

/// Whose packs the rules of a policy come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackLayers {
    /// Whose pack it is.
    pub own: PackLayer,
    /// Directory of the user's pack beneath the pack of a project.
    pub user: Option<String>,
}

impl PackLayers {
    /// Returns the layer of a rule in a file.
    #[must_use]
    pub fn of_rule(&self, file: &str) -> PackLayer {
        let user = self.user.as_deref().and_then(|it| file.strip_prefix(it));
        match user.is_some_and(|it| it.starts_with(['/', '\\'])) {
            true => PackLayer::User,
            false => self.own.of_rule(file),
        }
    }
}

impl PackLayer {
    /// Returns the word that the user reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::Organization => "organization",
            Self::User => "user",
            Self::Project => "project",
            Self::Named => "named directory",
        }
    }

    /// Returns the layer of a rule in a file: packs contain the rules of the built-in pack, too.
    #[must_use]
    pub fn of_rule(self, file: &str) -> Self {
        if builtin::has(file) { Self::BuiltIn } else { self }
    }
}
