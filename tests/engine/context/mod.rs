//! How full a context is: meters, tiers, what is said, and what is carried over. On simulated machines.

mod hooks;
mod memory;
mod meters;
mod seed;
mod status;
mod steps;
mod summary;
