//! real (being written)
