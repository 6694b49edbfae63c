//! shell (being written)
