//! Protocols of the callers: their JSON in, neutral events out; outcomes in, their JSON out.
//! Lives here: what crosses the wire. A caller's protocol is one file.

pub mod claude_code;
