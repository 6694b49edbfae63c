//! Work shared out to all cores of the machine, with what comes out in the order of what went in. A panic
//! goes on in the caller, for what is missing then must not look like nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};

/// What both make, each on a core of its own where there are two.
pub(super) fn both<A, B: Send>(
    cores: usize,
    here: impl FnOnce() -> A,
    there: impl FnOnce() -> B + Send,
) -> (A, B) {
    if cores < 2 {
        return (here(), there());
    }
    thread::scope(|scope| {
        let there = scope.spawn(there);
        (here(), joined(there))
    })
}

/// What `work` makes of each item. Whoever is free takes the next one.
pub(super) fn on_all<T: Sync, R: Send>(
    cores: usize,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take = || {
        let mut made = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return made };
            made.push((at, work(item)));
        }
    };
    let helpers = cores.min(items.len()).saturating_sub(1);
    let mut made = thread::scope(|scope| {
        let helpers: Vec<_> = (0..helpers).map(|_| scope.spawn(take)).collect();
        let mut made = take();
        for helper in helpers {
            made.extend(joined(helper));
        }
        made
    });
    made.sort_unstable_by_key(|(at, _)| *at);
    made.into_iter().map(|(_, it)| it).collect()
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
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
    fn a_panic_in_any_thread_is_heard() {
        let items: Vec<usize> = (0..100).collect();
        let work = |it: &usize| assert!(*it != 77, "the one that fails");
        let outcome = std::panic::catch_unwind(|| on_all(4, &items, work));
        assert!(outcome.is_err());
    }
}
