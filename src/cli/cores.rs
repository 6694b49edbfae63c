//! Work shared out to all cores of the machine, with what comes out in the order of what went in.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What `work` makes of each item. Whoever is free takes the next one; a panic in `work` goes on in
/// the caller, for what is missing then must not look like nothing.
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
            made.extend(helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        made
    });
    made.sort_unstable_by_key(|(at, _)| *at);
    made.into_iter().map(|(_, it)| it).collect()
}

#[cfg(test)]
mod tests {
    use super::on_all;

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
