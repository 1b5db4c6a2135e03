//! Finds the keys that several sorted files hold more than once together, in one walk over all of
//! them.
//!
//! A heap holds the files by their next key, so each key costs a few comparisons however many files
//! there are. Each file is read once, a block at a time.

use crate::layout::sorted_keys::SortedKeys;
use crate::load::key_walk::{KeyWalk, WalkedKey};
use nacre_types::Result;

/// Keys that may be held in memory at once, of files whose rows are not in key order.
const WHOLE_KEYS: usize = if cfg!(test) { 4_096 } else { 4 << 20 };

/// A key of one of several files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyPlace {
    /// The number of the file.
    pub file: usize,
    /// The key's position in the file's order.
    pub position: usize,
}

/// Calls `found` with the places of each key without nulls that occurs more than once, in key
/// order. Places of one key are in the order of files and positions.
pub(crate) fn each_repeated(
    files: &[SortedKeys<'_>],
    found: &mut dyn FnMut(&[KeyPlace]) -> Result<()>,
) -> Result<()> {
    let as_integers = files.iter().all(SortedKeys::is_integer);
    let is_many = files.iter().map(SortedKeys::len).sum::<usize>() > WHOLE_KEYS;
    let walk = |keys| {
        let walk = KeyWalk::new(keys, 0..keys.len(), as_integers);
        if is_many { walk.in_blocks() } else { walk }
    };
    let mut walks: Vec<KeyWalk<'_>> = files.iter().map(walk).collect();
    let mut heap = Vec::with_capacity(walks.len());
    for (file, walk) in walks.iter_mut().enumerate() {
        if walk.fill()? {
            heap.push(file);
        }
    }
    (0..heap.len()).rev().for_each(|at| sift_down(&mut heap, at, &walks));
    let (mut group, mut last) = (Vec::new(), Last::default());
    while let Some(file) = heap.first().copied() {
        let (key, position) = walks[file].key();
        if !last.is(key) {
            report(&group, found)?;
            group.clear();
            last.set(key);
        }
        group.push(KeyPlace { file, position });
        walks[file].at += 1;
        if !walks[file].fill()? {
            heap.swap_remove(0);
        }
        sift_down(&mut heap, 0, &walks);
    }
    report(&group, found)
}

fn report(group: &[KeyPlace], found: &mut dyn FnMut(&[KeyPlace]) -> Result<()>) -> Result<()> {
    debug_assert!(
        group.is_sorted_by_key(|place| (place.file, place.position)),
        "places of a key are out of order: {group:?}"
    );
    if group.len() > 1 { found(group) } else { Ok(()) }
}

/// Restores the order of a heap of files below one that may be too great.
fn sift_down(heap: &mut [usize], mut at: usize, walks: &[KeyWalk<'_>]) {
    let is_less = |a: usize, b: usize| (walks[a].key().0, a) < (walks[b].key().0, b);
    loop {
        let children = (2 * at + 1..2 * at + 3).filter(|child| *child < heap.len());
        let least = children.reduce(|a, b| if is_less(heap[b], heap[a]) { b } else { a });
        match least.filter(|child| is_less(heap[*child], heap[at])) {
            Some(child) => heap.swap(at, child),
            None => return,
        }
        at = least.unwrap_or(at);
    }
}

/// The last key of a walk.
#[derive(Default)]
struct Last {
    is_set: bool,
    integer: i64,
    encoded: Vec<u8>,
}

impl Last {
    fn is(&self, key: WalkedKey<'_>) -> bool {
        self.is_set
            && match key {
                WalkedKey::Integer(key) => self.integer == key,
                WalkedKey::Encoded(key) => self.encoded == key,
            }
    }

    fn set(&mut self, key: WalkedKey<'_>) {
        match key {
            WalkedKey::Integer(key) => {
                debug_assert!(!self.is_set || self.integer < key, "key {key} comes too late");
                self.integer = key;
            }
            WalkedKey::Encoded(key) => {
                debug_assert!(!self.is_set || *self.encoded < *key, "a key comes too late");
                self.encoded.clear();
                self.encoded.extend_from_slice(key);
            }
        }
        self.is_set = true;
    }
}
