//! The allocator of the hook program: its first blocks come from one region of the program, one after the other, and
//! all later ones from the system.
//!
//! A hook allocates some thousand blocks and ends. The region is a part of the program's zeroed memory, so no call of the
//! system reserves it, and one call brings in the pages that a tool call needs. The last block of the region grows in
//! place and can be returned; other blocks stay until the process ends. Their sum is limited by the region.
//!
//! Contains: the allocator, and the `unsafe` code that it needs. Does not contain: any decision about which program uses
//! it.
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: policyd_arena::Arena = policyd_arena::Arena::new();
//!
//! let mut text = String::from("one block");
//! text.push_str(" grows in place");
//! assert_eq!(text, "one block grows in place");
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Size of the region.
const REGION_BYTES: usize = 1024 * 1024;
/// Part of the region that is brought in before its first use: a tool call needs about as much.
#[cfg(target_os = "linux")]
const POPULATED_BYTES: usize = 256 * 1024;

/// Alignment of the region.
const REGION_ALIGN: usize = 4096;

/// Memory for blocks.
#[repr(C, align(4096))]
struct Region(UnsafeCell<[u8; REGION_BYTES]>);

/// The allocator. A program has at most one.
pub struct Arena {
    region: Region,
    /// Where the next block begins. Blocks never overlap, because only this number gives them their places.
    next: AtomicUsize,
}

// SAFETY: threads share the region only through blocks, and `next` gives each byte to one block.
unsafe impl Sync for Arena {}

impl Arena {
    /// An allocator without blocks.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a static needs a constant function")]
    pub const fn new() -> Self {
        Self { region: Region(UnsafeCell::new([0; REGION_BYTES])), next: AtomicUsize::new(0) }
    }

    fn start(&self) -> *mut u8 {
        self.region.0.get().cast()
    }

    /// Returns the position of a block in the region. `None` for a block of the system.
    fn position(&self, block: *mut u8) -> Option<usize> {
        let position = block.addr().wrapping_sub(self.start().addr());
        (position < REGION_BYTES).then_some(position)
    }

    /// Takes the place of a block. `None` if the region has no room for it.
    fn take(&self, layout: Layout) -> Option<usize> {
        if layout.align() > REGION_ALIGN {
            return None;
        }
        let place = |next: usize| next.checked_next_multiple_of(layout.align());
        let end =
            |next: usize| place(next)?.checked_add(layout.size()).filter(|it| *it <= REGION_BYTES);
        let taken = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, end).ok()?;
        if taken == 0 {
            self.bring_in();
        }
        place(taken)
    }

    /// Brings the first pages in by one call. Without it, each page costs a fault.
    fn bring_in(&self) {
        #[cfg(target_os = "linux")]
        // SAFETY: the pages belong to the region, and bringing them in does not change them.
        let _unsupported = unsafe {
            libc::madvise(self.start().cast(), POPULATED_BYTES, libc::MADV_POPULATE_WRITE)
        };
    }

    /// Moves the end of the last block. `false` if the block is not the last one, or has no room.
    fn resize_last(&self, position: usize, size: usize, new_size: usize) -> bool {
        let end = position.saturating_add(new_size);
        end <= REGION_BYTES
            && self
                .next
                .compare_exchange(position + size, end, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}

// SAFETY: a block of the region has the size and the alignment of its layout, overlaps no other block, and stays valid
// until it is returned. All other blocks are those of the system.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match self.take(layout) {
            // SAFETY: `take` returns positions inside of the region only.
            Some(position) => unsafe { self.start().add(position) },
            // SAFETY: the caller keeps the rules of `GlobalAlloc`.
            None => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match self.position(block) {
            Some(position) => {
                self.resize_last(position, layout.size(), 0);
            }
            // SAFETY: the block is of the system, and the caller keeps the rules.
            None => unsafe { System.dealloc(block, layout) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let Some(position) = self.position(block) else {
            // SAFETY: the block is of the system, and the caller keeps the rules.
            return unsafe { System.realloc(block, layout, new_size) };
        };
        if self.resize_last(position, layout.size(), new_size) {
            return block;
        }
        // SAFETY: the caller guarantees that the new size is valid for this alignment.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        // SAFETY: the new layout has a size, as the caller guarantees.
        let new_block = unsafe { self.alloc(new_layout) };
        if !new_block.is_null() {
            let kept = layout.size().min(new_size);
            // SAFETY: both blocks have at least this size and do not overlap.
            unsafe { ptr::copy_nonoverlapping(block, new_block, kept) };
        }
        new_block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Works as vectors do: blocks of many sizes grow, shrink, and end in another order than they began.
    fn work(arena: &Arena, seed: usize) {
        let mut blocks: Vec<(*mut u8, Layout, u8)> = Vec::new();
        let mut state = seed;
        for step in 0..4000_usize {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let dice = state >> 33;
            let align = 1 << (dice % 7);
            let layout = Layout::from_size_align(1 + dice % 700, align).unwrap();
            let mark = u8::try_from(step % 251).unwrap();
            match dice % 3 {
                0 if !blocks.is_empty() => {
                    let (block, layout, mark) = blocks.swap_remove(dice % blocks.len());
                    check(block, layout, mark);
                    // SAFETY: the block is from this allocator, with this layout.
                    unsafe { arena.dealloc(block, layout) };
                }
                1 if !blocks.is_empty() => {
                    let last = blocks.len() - 1;
                    let (block, old, mark) = blocks[last];
                    let new = Layout::from_size_align(layout.size(), old.align()).unwrap();
                    // SAFETY: the block is from this allocator, with this layout.
                    let block = unsafe { arena.realloc(block, old, new.size()) };
                    let kept =
                        Layout::from_size_align(old.size().min(new.size()), old.align()).unwrap();
                    check(block, kept, mark);
                    fill(block, new, mark);
                    blocks[last] = (block, new, mark);
                }
                _ => {
                    // SAFETY: the size is not zero.
                    let block = unsafe { arena.alloc(layout) };
                    assert_eq!(block.addr() % layout.align(), 0);
                    fill(block, layout, mark);
                    blocks.push((block, layout, mark));
                }
            }
        }
        for (block, layout, mark) in blocks {
            check(block, layout, mark);
            // SAFETY: the block is from this allocator, with this layout.
            unsafe { arena.dealloc(block, layout) };
        }
    }

    fn fill(block: *mut u8, layout: Layout, mark: u8) {
        // SAFETY: the block has this size.
        unsafe { block.write_bytes(mark, layout.size()) };
    }

    fn check(block: *mut u8, layout: Layout, mark: u8) {
        // SAFETY: the block has this size, and was filled.
        let bytes = unsafe { std::slice::from_raw_parts(block, layout.size()) };
        assert!(bytes.iter().all(|it| *it == mark), "another block wrote here");
    }

    #[test]
    fn blocks_of_several_threads_keep_their_bytes_inside_and_outside_of_the_region() {
        // Too large for a stack.
        static ARENA: Arena = Arena::new();
        let arena = &ARENA;
        std::thread::scope(|scope| {
            (0..4).for_each(|seed| drop(scope.spawn(move || work(arena, seed))));
        });
        assert!(arena.next.load(Ordering::Relaxed) > REGION_BYTES - 1000, "the region was used up");
    }

    #[test]
    fn the_last_block_grows_in_place_and_is_returned() {
        // Too large for a stack.
        static ARENA: Arena = Arena::new();
        let arena = &ARENA;
        let layout = Layout::from_size_align(10, 8).unwrap();
        // SAFETY: the size is not zero.
        let block = unsafe { arena.alloc(layout) };
        // SAFETY: the block is from this allocator, with this layout.
        let grown = unsafe { arena.realloc(block, layout, 5000) };
        assert_eq!(grown, block);
        let layout = Layout::from_size_align(5000, 8).unwrap();
        // SAFETY: as above.
        unsafe { arena.dealloc(grown, layout) };
        assert_eq!(arena.next.load(Ordering::Relaxed), 0);
        let large = Layout::from_size_align(REGION_BYTES + 1, 8).unwrap();
        // SAFETY: the size is not zero.
        let block = unsafe { arena.alloc(large) };
        assert_eq!(arena.position(block), None, "it is of the system");
        // SAFETY: as above.
        unsafe { arena.dealloc(block, large) };
    }
}
