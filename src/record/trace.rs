//! The trace that a process belongs to, as the variable `TRACEPARENT` names it (W3C Trace Context, version 00).

use sha2::{Digest, Sha256};

use policyd_yaml::checksum::hex;

/// Variable with the trace of the process that started this one.
pub const TRACEPARENT: &str = "TRACEPARENT";

/// A trace and the span in it that is the parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// 32 lowercase hexadecimal digits, not all zero.
    pub trace_id: String,
    /// 16 lowercase hexadecimal digits, not all zero.
    pub span_id: String,
    /// Whether the caller records the trace.
    pub sampled: bool,
}

impl TraceContext {
    /// Parses a value of `TRACEPARENT`. `None` if it is invalid: such a value must be ignored.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('-');
        let (version, trace_id, span_id, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_hex = |it: &str, digits: usize| {
            it.len() == digits
                && it.bytes().all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it))
        };
        let is_id = |it: &str, digits: usize| is_hex(it, digits) && it.bytes().any(|it| it != b'0');
        // A later version may have more parts.
        let is_known =
            is_hex(version, 2) && version != "ff" && (version != "00" || parts.next().is_none());
        let is_valid = is_known && is_id(trace_id, 32) && is_id(span_id, 16) && is_hex(flags, 2);
        let flags = u8::from_str_radix(flags, 16).unwrap_or_default();
        is_valid.then(|| Self {
            trace_id: trace_id.to_owned(),
            span_id: span_id.to_owned(),
            sampled: flags & 1 == 1,
        })
    }

    /// Returns the span of a supervised run from its start or its last resume to its end: in the trace of its caller, else
    /// in a trace of its own. `directory` is the main checkout of the project, `resumes` is the number of its resumes.
    #[must_use]
    pub fn of_run(caller: Option<&Self>, directory: &str, run: &str, resumes: u32) -> Self {
        let digits = |text: &str| hex(&Sha256::digest(text.as_bytes()));
        let whole = format!("{directory}\n{run}");
        let part = if resumes == 0 { whole.clone() } else { format!("{whole}\n{resumes}") };
        let trace_id = || digits(&whole).chars().take(32).collect();
        Self {
            trace_id: caller.map_or_else(trace_id, |it| it.trace_id.clone()),
            span_id: digits(&part).chars().skip(32).take(16).collect(),
            sampled: caller.is_none_or(|it| it.sampled),
        }
    }

    /// Returns the value of `TRACEPARENT`.
    #[must_use]
    pub fn to_text(&self) -> String {
        let flags = u8::from(self.sampled);
        format!("00-{}-{}-{flags:02x}", self.trace_id, self.span_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_values_are_read() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let text = format!("00-{trace}-00f067aa0ba902b7-01");
        let read = TraceContext::parse(&text).unwrap();
        assert_eq!((read.trace_id.as_str(), read.sampled), (trace, true));
        assert_eq!(read.to_text(), text);
        let later = format!("cc-{trace}-00f067aa0ba902b7-00-more");
        assert!(!TraceContext::parse(&later).unwrap().sampled);
        for invalid in [
            String::new(),
            format!("00-{trace}-00f067aa0ba902b7"),
            format!("00-{trace}-00f067aa0ba902b7-01-more"),
            format!("ff-{trace}-00f067aa0ba902b7-01"),
            format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            format!("00-{trace}-{}-01", "0".repeat(16)),
            format!("00-{}-00f067aa0ba902b7-01", trace.to_uppercase()),
        ] {
            assert_eq!(TraceContext::parse(&invalid), None, "{invalid}");
        }
    }
}
