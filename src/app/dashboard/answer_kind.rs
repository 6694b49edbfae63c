//! The kinds of answers that a human gives with a form.

use policyd_report::overview::WaitingKind;

/// What a human answers with a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerKind {
    Escalation,
    /// A signal of this host.
    Signal,
    /// A signal of another host of the shared store.
    RemoteSignal,
    /// A blocked tool call of any host.
    Call,
}

impl AnswerKind {
    /// Returns the name in a form.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Escalation => "escalation",
            Self::Signal => "signal",
            Self::RemoteSignal => "remote_signal",
            Self::Call => "call",
        }
    }

    /// Whether the answer has a text. The answer to a call is only yes or no.
    pub(super) const fn has_text(self) -> bool {
        !matches!(self, Self::Call)
    }

    /// Returns the form that answers an item of the inbox. Items without a question have other forms.
    pub(super) const fn of(kind: WaitingKind) -> Self {
        match kind {
            WaitingKind::Signal => Self::Signal,
            WaitingKind::RemoteSignal => Self::RemoteSignal,
            WaitingKind::Call => Self::Call,
            WaitingKind::Question
            | WaitingKind::DeadLetter
            | WaitingKind::LocalCall
            | WaitingKind::Breaker
            | WaitingKind::UnverifiedRun
            | WaitingKind::Run => Self::Escalation,
        }
    }

    /// Returns the kind with a name.
    pub(super) fn find(name: &str) -> Option<Self> {
        [Self::Escalation, Self::Signal, Self::RemoteSignal, Self::Call]
            .into_iter()
            .find(|it| it.as_str() == name)
    }
}
