//! Benchmarks that print ratios.
fn main() {}
