//! Failing tasks: the dead-letter queue, escalations to humans, and reactions to events.

mod dead_letter;
mod escalation;
mod reactions;

pub(super) use dead_letter::DEAD_LETTER;
pub use dead_letter::{Alarm, DeadLetter, Enter, Review, ReviewAction};
pub(super) use escalation::ESCALATION;
pub use escalation::{Channel, EscalationPolicy, Trigger};
pub(super) use reactions::REACTION;
pub use reactions::{Reaction, ReactionSignal, ReactionTask};
