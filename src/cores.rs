//! Work shared out to all cores of the machine, with what comes out in the order of what went in. A panic
//! goes on in the caller, for what is missing then must not look like nothing.

use std::sync::OnceLock;

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// What both make, each on a core of its own where there are two.
pub(crate) fn both<A: Send, B: Send>(
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
pub(crate) fn on_all<T: Sync, R: Send>(
    cores: usize,
    items: &[T],
    work: impl Fn(&T) -> R + Sync + Send,
) -> Vec<R> {
    match threads(if items.len() < 2 { 1 } else { cores }) {
        Some(threads) => threads.install(|| items.par_iter().with_max_len(1).map(work).collect()),
        None => items.iter().map(work).collect(),
    }
}

/// A thread for each core, made once; none for one core, and where the system grants no threads: then the work
/// is done by the caller.
fn threads(wanted: usize) -> Option<&'static ThreadPool> {
    static THREADS: OnceLock<Option<ThreadPool>> = OnceLock::new();
    let make = || ThreadPoolBuilder::new().num_threads(wanted).build().ok();
    if wanted < 2 { None } else { THREADS.get_or_init(make).as_ref() }
}

#[cfg(test)]
mod tests {
    use super::{both, on_all};

    #[test]
    fn two_pieces_of_work_come_out_as_they_went_in() {
        for cores in [1, 2] {
            assert_eq!(both(cores, || 1, || "two"), (1, "two"));
            let failing = std::panic::catch_unwind(|| both(cores, || 1, || panic!("it fails")));
            assert!(failing.is_err());
        }
    }

    #[test]
    fn what_comes_out_stands_where_it_went_in() {
        let items: Vec<usize> = (0..1000).collect();
        let doubled: Vec<usize> = items.iter().map(|it| it * 2).collect();
        assert_eq!(on_all(4, &items, |it| it * 2), doubled);
        assert!(on_all(4, &[] as &[usize], |it| *it).is_empty());
    }

    #[test]
    fn whoever_has_one_thing_to_do_does_it() {
        let own = std::thread::current().id();
        let by_whom = |_: &()| std::thread::current().id();
        assert_eq!(on_all(4, &[()], by_whom), [own]);
        assert_eq!(on_all(1, &[(), ()], by_whom), [own, own]);
    }

    #[test]
    fn a_panic_in_any_thread_is_heard() {
        let items: Vec<usize> = (0..100).collect();
        let work = |it: &usize| assert!(*it != 77, "the one that fails");
        let outcome = std::panic::catch_unwind(|| on_all(4, &items, work));
        assert!(outcome.is_err());
    }
}
