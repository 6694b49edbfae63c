//! What both benchmarks measure against, and with.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// Line ends of a file, read as the program reads it.
pub(crate) fn newlines(path: &Path) -> usize {
    let mut file = File::open(path).unwrap();
    let mut buffer = vec![0; 256 * 1024];
    let mut found = 0;
    loop {
        match file.read(&mut buffer).unwrap() {
            0 => return found,
            count => found += memchr::memchr_iter(b'\n', buffer.get(..count).unwrap()).count(),
        }
    }
}

/// The middle one, in seconds.
pub(crate) fn median(took: &mut [Duration]) -> f64 {
    took.sort();
    took.get(took.len() / 2).unwrap().as_secs_f64()
}
