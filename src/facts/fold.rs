//! fold (being written)
