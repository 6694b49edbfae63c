//! Distributes work to the cores of the machine. Results are in the order of the work. A panic continues in the caller, so
//! that no result is missing unnoticed.
//!
//! Contains: two functions over one pool of threads. Does not contain: the work. Hooks do not use it.
//!
//! ```
//! let lengths = policyd_cores::on_all(2, &["a", "bcd"], |it| it.len());
//! assert_eq!(lengths, [1, 3]);
//! ```

use std::sync::OnceLock;

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Runs two functions, each on its own core if there are two, and returns their results.
pub fn both<A: Send, B: Send>(
    cores: usize,
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B + Send,
) -> (A, B) {
    match threads(cores) {
        Some(threads) => threads.join(one, other),
        None => (one(), other()),
    }
}

/// Applies `work` to each item; a free thread takes the next item.
pub fn on_all<T: Sync, R: Send>(
    cores: usize,
    items: &[T],
    work: impl Fn(&T) -> R + Sync + Send,
) -> Vec<R> {
    match threads(if items.len() < 2 { 1 } else { cores }) {
        Some(threads) => threads.install(|| items.par_iter().with_max_len(1).map(work).collect()),
        None => items.iter().map(work).collect(),
    }
}

/// Returns one thread per core, created once. `None` for one core, and if the system grants no threads: then the caller does
/// the work.
fn threads(wanted: usize) -> Option<&'static ThreadPool> {
    static THREADS: OnceLock<Option<ThreadPool>> = OnceLock::new();
    let make = || ThreadPoolBuilder::new().num_threads(wanted).build().ok();
    if wanted < 2 { None } else { THREADS.get_or_init(make).as_ref() }
}

#[cfg(test)]
mod tests {
    use super::{both, on_all};

    #[test]
    fn two_functions_return_their_results() {
        for cores in [1, 2] {
            assert_eq!(both(cores, || 1, || "two"), (1, "two"));
            let failing = std::panic::catch_unwind(|| both(cores, || 1, || panic!("it fails")));
            assert!(failing.is_err());
        }
    }

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<usize> = (0..1000).collect();
        let doubled: Vec<usize> = items.iter().map(|it| it * 2).collect();
        assert_eq!(on_all(4, &items, |it| it * 2), doubled);
        assert!(on_all(4, &[] as &[usize], |it| *it).is_empty());
    }

    #[test]
    fn the_caller_does_a_single_piece_of_work() {
        let own = std::thread::current().id();
        let thread = |_: &()| std::thread::current().id();
        assert_eq!(on_all(4, &[()], thread), [own]);
        assert_eq!(on_all(1, &[(), ()], thread), [own, own]);
    }

    #[test]
    fn a_panic_of_a_thread_reaches_the_caller() {
        let items: Vec<usize> = (0..100).collect();
        let work = |it: &usize| assert!(*it != 77, "the one that fails");
        let outcome = std::panic::catch_unwind(|| on_all(4, &items, work));
        assert!(outcome.is_err());
    }
}
