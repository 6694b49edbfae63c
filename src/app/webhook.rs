//! Signatures of webhooks, of the alerts that policyd sends and of the replies that it accepts: HMAC-SHA-256 over
//! `{id}.{timestamp}.{body}`, with the text of a file as the key.

use std::time::Duration;

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

use policyd_record::alert::base64;
use policyd_yaml::time::Timestamp;

/// Header with the id of a message.
pub const ID: &str = "webhook-id";
/// Header with the time of a message, in seconds since 1970.
pub const TIMESTAMP: &str = "webhook-timestamp";
/// Header with the signatures of a message, separated by blanks.
pub const SIGNATURE: &str = "webhook-signature";

/// Largest difference between the clock of a sender and that of this machine.
const CLOCK_DIFFERENCE_MAX: Duration = Duration::from_secs(5 * 60);

/// A signed message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignedMessage {
    pub id: String,
    pub timestamp: String,
    pub signature: String,
    pub body: String,
}

/// Why a message is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    #[error("the signature is not valid")]
    Invalid,
    #[error("the message is older or newer than 5 minutes")]
    Time,
}

/// Returns the signature of a message.
pub fn sign(key: &str, id: &str, timestamp: &str, body: &str) -> String {
    // HMAC takes a key of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key.as_bytes()) else { return String::new() };
    mac.update(format!("{id}.{timestamp}.{body}").as_bytes());
    format!("v1,{}", base64(&mac.finalize().into_bytes()))
}

impl SignedMessage {
    /// Verifies the signature and the time.
    ///
    /// # Errors
    /// [`SignatureError`] if no signature was made with the key, or the message could be a copy of an old one.
    pub fn verify(&self, key: &str, now: Timestamp) -> Result<(), SignatureError> {
        // Digests are compared, so the duration of a comparison tells nothing.
        let expected = Sha256::digest(sign(key, &self.id, &self.timestamp, &self.body));
        let mut signatures = self.signature.split_ascii_whitespace();
        if key.is_empty() || !signatures.any(|it| Sha256::digest(it) == expected) {
            return Err(SignatureError::Invalid);
        }
        let seconds = self.timestamp.parse::<i64>().map_err(|_| SignatureError::Time)?;
        let sent = Timestamp::from_millis(seconds.saturating_mul(1_000));
        let difference = now.since(sent).max(sent.since(now));
        if difference > CLOCK_DIFFERENCE_MAX { Err(SignatureError::Time) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fresh_message_with_the_key_is_accepted() {
        let now = Timestamp::from_millis(1_800_000_000_000);
        let message = |key: &str, timestamp: &str| SignedMessage {
            id: "m1".to_owned(),
            timestamp: timestamp.to_owned(),
            signature: format!("v1,other {}", sign(key, "m1", timestamp, "{}")),
            body: "{}".to_owned(),
        };
        assert_eq!(message("key", "1800000000").verify("key", now), Ok(()));
        assert_eq!(message("key", "1800000299").verify("key", now), Ok(()));
        for time in ["1799999699", "1800000301", "-9999999999999999999", "x"] {
            assert_eq!(
                message("key", time).verify("key", now),
                Err(SignatureError::Time),
                "{time}"
            );
        }
        let invalid = Err(SignatureError::Invalid);
        assert_eq!(message("other", "1800000000").verify("key", now), invalid);
        assert_eq!(message("", "1800000000").verify("", now), invalid, "no key");
        let changed = SignedMessage { body: "{ }".to_owned(), ..message("key", "1800000000") };
        assert_eq!(changed.verify("key", now), invalid);
    }

    #[test]
    fn the_signature_is_that_of_standard_webhooks() {
        // The same as: printf %s m1.1.{} | openssl dgst -sha256 -hmac key -binary | base64
        assert_eq!(sign("key", "m1", "1", "{}"), "v1,hJWUDO89xT3+/WuVf3h1ZN257tvaQULfN1ovYvfrIlo=");
    }
}
