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

/// A walk over the keys of several files, in steps.
pub(crate) struct Repeated {
    walks: Vec<KeyWalk>,
    /// How many of them have their first keys.
    begun: usize,
    /// Files with keys left, by their next key.
    heap: Vec<usize>,
    /// Whether the next key of the heap's first file has been taken.
    is_taken: bool,
    /// The places of the last key.
    group: Vec<KeyPlace>,
    last: Last,
}

impl Repeated {
    /// Begins to walk the keys of these files.
    pub fn new(files: &[SortedKeys<'_>]) -> Repeated {
        let as_integers = files.iter().all(SortedKeys::is_integer);
        let is_many = files.iter().map(SortedKeys::len).sum::<usize>() > WHOLE_KEYS;
        let walk = |keys: &SortedKeys<'_>| {
            let walk = KeyWalk::new(keys, 0..keys.len(), as_integers);
            if is_many { walk.in_blocks() } else { walk }
        };
        Repeated {
            walks: files.iter().map(walk).collect(),
            begun: 0,
            heap: Vec::with_capacity(files.len()),
            is_taken: false,
            group: Vec::new(),
            last: Last::default(),
        }
    }

    /// Walks over at most `some` keys, or begins with a file, and calls `found` with the places of
    /// each key without nulls that occurs more than once, in key order. Places of one key are in the
    /// order of files and positions. Returns whether there are more. Can be called again, with the
    /// same files, after a read of absent bytes.
    pub fn step(
        &mut self,
        files: &[SortedKeys<'_>],
        some: usize,
        found: &mut dyn FnMut(&[KeyPlace]) -> Result<()>,
    ) -> Result<bool> {
        debug_assert!(files.len() == self.walks.len(), "other files are walked than before");
        if let Some(walk) = self.walks.get_mut(self.begun) {
            if walk.fill(&files[self.begun])? {
                self.heap.push(self.begun);
            }
            self.begun += 1;
            if self.begun == self.walks.len() {
                let all = 0..self.heap.len();
                all.rev().for_each(|at| sift_down(&mut self.heap, at, &self.walks));
            }
            return Ok(true);
        }
        for _ in 0..some {
            if self.is_taken {
                self.advance(files)?;
            }
            let Some(file) = self.heap.first().copied() else {
                report(&self.group, found)?;
                self.group.clear();
                return Ok(false);
            };
            let (key, position) = self.walks[file].key();
            if !self.last.is(key) {
                report(&self.group, found)?;
                self.group.clear();
                self.last.set(key);
            }
            self.group.push(KeyPlace { file, position });
            self.walks[file].at += 1;
            self.is_taken = true;
        }
        Ok(true)
    }

    /// Puts the heap's first file at the place of its next key.
    fn advance(&mut self, files: &[SortedKeys<'_>]) -> Result<()> {
        let first = self.heap[0];
        if !self.walks[first].fill(&files[first])? {
            self.heap.swap_remove(0);
        }
        sift_down(&mut self.heap, 0, &self.walks);
        self.is_taken = false;
        Ok(())
    }
}

fn report(group: &[KeyPlace], found: &mut dyn FnMut(&[KeyPlace]) -> Result<()>) -> Result<()> {
    debug_assert!(
        group.is_sorted_by_key(|place| (place.file, place.position)),
        "places of a key are out of order: {group:?}"
    );
    if group.len() > 1 { found(group) } else { Ok(()) }
}

/// Restores the order of a heap of files below one that may be too great.
fn sift_down(heap: &mut [usize], mut at: usize, walks: &[KeyWalk]) {
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
