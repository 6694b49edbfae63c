//! cursor (being written)
