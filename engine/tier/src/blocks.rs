//! The blocks of files whose bytes are not local: one file of slots, and which block each slot has. A block has
//! eight sectors, which may be fetched one by one: a read of few bytes then fetches few.
//!
//! Eviction is that of 2Q (Johnson and Shasha, *2Q: A Low Overhead High Performance Buffer Management
//! Replacement Algorithm*, VLDB 1994): a block that is fetched for the first time waits in a queue, and leaves
//! it in order; one that is fetched again soon after it left is kept by recency. So a scan displaces only what
//! other scans brought.
//!
//! A block that a guard holds is never evicted, even beyond the limit. A new instance adopts the blocks of the one
//! before, as `kept` has noted them; a sector counts as there from then on, and is verified before it is first read.
//! Does no I/O but to give back space.

use nacre_host::LocalFile;
use nacre_types::hash::{Map, Set};
use nacre_types::{Result, invariant};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// Name of the file of slots.
pub(crate) const BLOCKS: &str = "blocks";

/// The queue of first fetches may have one in this many of the slots before its oldest block leaves first.
const QUEUE_SHARE: usize = 4;

/// Blocks that are read ahead may have one in this many of the slots.
const AHEAD_SHARE: usize = 4;

/// A block: the id of its file, and its number there.
pub(crate) type Key = (u64, u64);

/// Sectors of a block.
pub(crate) const SECTORS: u64 = 8;

/// Some sectors of a block, a bit for each.
pub(crate) type Sectors = u8;

/// All sectors of a block.
const ALL: Sectors = Sectors::MAX;

/// Checksums of the sectors of a block.
pub(crate) type Sums = [u32; SECTORS as usize];

/// The sectors of a block from one up to another.
pub(crate) fn sectors(from: u64, to: u64) -> Sectors {
    debug_assert!(from < to && to <= SECTORS, "a block has no sectors {from} to {to}");
    ((1_u16 << to) - (1 << from)) as Sectors
}

/// The blocks of a run of a file's sectors, and the sectors of each.
pub(crate) fn by_block(run: Range<u64>) -> impl Iterator<Item = (u64, Sectors)> {
    blocks_of(&run, SECTORS).map(move |block| {
        let first = block * SECTORS;
        let (from, to) = (run.start.max(first), run.end.min(first + SECTORS));
        (block, sectors(from - first, to - first))
    })
}

struct Slot {
    key: Key,
    /// Guards and reads that hold it.
    pins: usize,
    /// The sectors whose bytes are in the file of slots.
    filled: Sectors,
    /// The sectors whose bytes were there for the instance before, and are not verified yet.
    kept: Sectors,
    sums: Sums,
    /// Whether it is kept by recency.
    is_hot: bool,
    /// Its place in the order of its queue.
    order: u64,
}

/// The blocks.
pub(crate) struct Blocks {
    block_bytes: u64,
    file: Option<Arc<dyn LocalFile>>,
    notes: Option<Arc<dyn LocalFile>>,
    /// `None` is free.
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    index: Map<Key, usize>,
    /// Unpinned blocks, oldest first: fetched once, and again.
    once: BTreeMap<u64, usize>,
    again: BTreeMap<u64, usize>,
    /// Blocks that have left the queue of first fetches lately.
    left: VecDeque<Key>,
    left_index: Set<Key>,
    next_order: u64,
    /// How many slots have sectors that are not verified yet.
    unverified: usize,
    /// How many slots requests have that read ahead.
    ahead: usize,
    /// How many slots the disk has had space for.
    most: usize,
}

impl Blocks {
    pub fn new(block_bytes: u64) -> Blocks {
        Blocks {
            block_bytes: block_bytes / SECTORS * SECTORS,
            file: None,
            notes: None,
            slots: Vec::new(),
            free: Vec::new(),
            index: Map::default(),
            once: BTreeMap::new(),
            again: BTreeMap::new(),
            left: VecDeque::new(),
            left_index: Set::default(),
            next_order: 0,
            unverified: 0,
            ahead: 0,
            most: usize::MAX,
        }
    }

    /// How many slots the disk has space for, as far as is known.
    pub fn most(&self) -> usize {
        self.most
    }

    /// How many slots have a block.
    pub fn taken(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Notes, for as long as the store is open, that the disk has no space for more slots than are taken. Returns
    /// `false` if that was known.
    pub fn note_full(&mut self) -> bool {
        let is_news = self.taken() < self.most;
        self.most = self.most.min(self.taken());
        is_news
    }

    /// Whether the disk was full.
    pub fn is_full(&self) -> bool {
        self.most < usize::MAX
    }

    /// Bytes of a block.
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// Bytes of a sector.
    pub fn sector_bytes(&self) -> u64 {
        self.block_bytes / SECTORS
    }

    /// Bytes of the file of slots.
    pub fn bytes(&self) -> u64 {
        self.slots.len() as u64 * self.block_bytes
    }

    /// How many blocks are there.
    #[cfg(test)]
    pub fn filled(&self) -> usize {
        self.slots.iter().flatten().filter(|slot| slot.filled == ALL).count()
    }

    /// The file of slots, if it was needed already.
    pub fn file(&self) -> Option<Arc<dyn LocalFile>> {
        self.file.clone()
    }

    /// Sets the file of slots, unless another thread has.
    pub fn set_file(&mut self, file: Arc<dyn LocalFile>) -> Arc<dyn LocalFile> {
        self.file.get_or_insert(file).clone()
    }

    /// The file that notes what slots have, if it was needed already.
    pub fn notes(&self) -> Option<Arc<dyn LocalFile>> {
        self.notes.clone()
    }

    /// Sets that file, unless another thread has.
    pub fn set_notes(&mut self, file: Arc<dyn LocalFile>) -> Arc<dyn LocalFile> {
        self.notes.get_or_insert(file).clone()
    }

    /// Takes over a block of the instance before, and the checksums of the sectors that are there; the next slot is
    /// free if it has none. Afterwards slots are taken in the order of the file.
    pub fn adopt(&mut self, found: Option<(Key, Sectors, Sums, bool)>) {
        let at = self.slots.len();
        let new = found.filter(|(key, ..)| !self.index.contains_key(key));
        self.slots.push(None);
        let Some((key, kept, sums, is_hot)) = new else {
            self.free.push(at);
            return;
        };
        self.slots[at] = Some(Slot { key, pins: 1, filled: 0, kept, sums, is_hot, order: 0 });
        self.index.insert(key, at);
        self.unverified += 1;
        self.unpin(at);
    }

    /// Pins the blocks of a file that have unverified sectors: the slot, those sectors, and their checksums.
    pub fn pin_unverified(
        &mut self,
        file: u64,
        blocks: impl Iterator<Item = u64>,
    ) -> Vec<(u64, usize, Sectors, Sums)> {
        let mut pinned = Vec::new();
        if self.unverified == 0 {
            return pinned;
        }
        for number in blocks {
            let at = self.index.get(&(file, number)).copied();
            if let Some(at) = at
                && let Some(Slot { kept: 1.., .. }) = &self.slots[at]
            {
                let at = self.pin_slot(at);
                let slot = self.slots[at].as_ref();
                pinned.extend(slot.map(|slot| (number, at, slot.kept, slot.sums)));
            }
        }
        pinned
    }

    /// Notes which sectors of a slot are what they were, of those that were looked at.
    pub fn verify(&mut self, at: usize, looked: Sectors, right: Sectors) {
        let Some(slot) = self.slots[at].as_mut() else { return };
        // Another may have been faster.
        let of_it = looked & slot.kept;
        slot.filled |= right & of_it;
        slot.kept &= !looked;
        if of_it != 0 && slot.kept == 0 {
            self.unverified -= 1;
        }
    }

    /// What is to be noted of a slot, which a pin holds: its block, the sectors, their checksums, and whether it is
    /// kept by recency.
    pub fn noted(&self, at: usize) -> Option<(Key, Sectors, Sums, bool)> {
        let slot = self.slots[at].as_ref()?;
        Some((slot.key, slot.filled | slot.kept, slot.sums, slot.is_hot))
    }

    /// Pins a block of which some sectors are there and verified, and returns its slot.
    pub fn pin(&mut self, key: Key, sectors: Sectors) -> Option<usize> {
        let at = *self.index.get(&key)?;
        let is_there = self.slots[at].as_ref().is_some_and(|slot| sectors & !slot.filled == 0);
        is_there.then(|| self.pin_slot(at))
    }

    fn pin_slot(&mut self, at: usize) -> usize {
        if let Some(slot) = self.slots[at].as_mut() {
            slot.pins += 1;
            let order = slot.order;
            if slot.is_hot {
                self.again.remove(&order)
            } else {
                self.once.remove(&order)
            };
        }
        at
    }

    /// Takes a slot for a block of which some sectors are not there, and pins it; the block's own, if it has one:
    /// fetches of the same sector write the same bytes. Evicts others to stay within a number of slots, if it
    /// can. `None` if the sectors are there.
    pub fn reserve(&mut self, key: Key, sectors: Sectors, most: usize) -> Option<usize> {
        if let Some(at) = self.index.get(&key).copied() {
            return (self.lacks(key, sectors) != 0).then(|| self.pin_slot(at));
        }
        let is_hot = self.left_index.remove(&key);
        while self.taken() >= most.max(1) && self.evict_one() {}
        let (sums, order) = (Sums::default(), 0);
        let slot = Slot { key, pins: 1, filled: 0, kept: 0, sums, is_hot, order };
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                self.slots.push(None);
                self.slots.len() - 1
            }
        };
        invariant!(self.slots[at].is_none(), "slot {at} is given to two blocks");
        self.slots[at] = Some(slot);
        self.index.insert(key, at);
        Some(at)
    }

    fn slot(&self, key: Key) -> Option<&Slot> {
        self.slots[*self.index.get(&key)?].as_ref()
    }

    /// Those of some sectors of a block that are not there.
    pub fn lacks(&self, key: Key, sectors: Sectors) -> Sectors {
        sectors & !self.slot(key).map_or(0, |slot| slot.filled | slot.kept)
    }

    /// Whether a block is there with all sectors, or may be on its way.
    pub fn has(&self, key: Key) -> bool {
        self.slot(key).is_some_and(|slot| slot.filled | slot.kept == ALL || slot.pins > 0)
    }

    /// Like [`Blocks::reserve`], for a block that nothing needs yet. `None` if it would have to displace one that
    /// is kept by recency, or if too many slots are for such blocks.
    pub fn reserve_ahead(&mut self, key: Key, most: usize) -> Option<usize> {
        debug_assert!(!self.has(key), "block {key:?} is read ahead although it is there");
        let used = self.taken();
        let has_room = used < most || !self.once.is_empty() && self.evicts_once();
        if self.ahead >= most / AHEAD_SHARE || used > most || !has_room {
            return None;
        }
        self.ahead += 1;
        self.reserve(key, ALL, most)
    }

    /// Notes that a number of slots no longer belong to requests that read ahead.
    pub fn end_ahead(&mut self, slots: usize) {
        invariant!(slots <= self.ahead, "{slots} slots of {} are given back", self.ahead);
        self.ahead -= slots;
    }

    /// Notes that the bytes of some sectors of a slot are there, and their checksums.
    pub fn fill(&mut self, at: usize, filled: Sectors, sums: &Sums) {
        let slot = self.slots[at].as_mut();
        invariant!(slot.is_some(), "slot {at} is filled and has no block");
        let Some(slot) = slot else { return };
        slot.filled |= filled;
        for number in (0..SECTORS).filter(|number| filled & sectors(*number, number + 1) != 0) {
            slot.sums[number as usize] = sums[number as usize];
        }
    }

    /// Gives a pin back. A slot that was not filled becomes free.
    pub fn unpin(&mut self, at: usize) {
        let Some(slot) = self.slots[at].as_mut() else { return };
        invariant!(slot.pins > 0, "slot {at} is unpinned more often than pinned");
        slot.pins -= 1;
        if slot.pins > 0 {
            return;
        }
        if slot.filled | slot.kept == 0 {
            self.release(at);
            return;
        }
        // The first queue keeps its order.
        if slot.is_hot || slot.order == 0 {
            self.next_order += 1;
            slot.order = self.next_order;
        }
        let (order, is_hot) = (slot.order, slot.is_hot);
        if is_hot {
            self.again.insert(order, at)
        } else {
            self.once.insert(order, at)
        };
    }

    /// Forgets the blocks of a file that is gone.
    pub fn forget(&mut self, file: u64) {
        let of_file: Vec<usize> =
            self.index.iter().filter(|(key, _)| key.0 == file).map(|(_, at)| *at).collect();
        for at in of_file {
            match self.slots[at].as_mut() {
                // Becomes free with its last pin; nothing finds it any more.
                Some(slot) if slot.pins > 0 => {
                    self.unverified -= usize::from(slot.kept != 0);
                    (slot.filled, slot.kept) = (0, 0);
                    self.index.remove(&slot.key);
                }
                _ => self.release(at),
            }
        }
    }

    /// Evicts blocks until at most this number of slots is left, but for pinned ones, and gives their space
    /// back at the end of the file.
    pub fn shrink(&mut self, most: usize) -> Result<()> {
        let before = self.slots.len();
        while self.slots.len() > most {
            let at = self.slots.len() - 1;
            match &self.slots[at] {
                Some(slot) if slot.pins > 0 => break,
                Some(_) => self.release(at),
                None => {}
            }
            self.slots.pop();
        }
        let count = self.slots.len();
        self.free.retain(|at| *at < count);
        match &self.file {
            Some(file) if count < before => file.truncate(count as u64 * self.block_bytes),
            _ => Ok(()),
        }
    }

    /// Whether the next block to leave is one that was fetched once, if there is one.
    fn evicts_once(&self) -> bool {
        self.once.len() * QUEUE_SHARE > self.slots.len() || self.again.is_empty()
    }

    /// Evicts a block that nothing holds. Returns `false` if there is none.
    fn evict_one(&mut self) -> bool {
        let queue = if self.evicts_once() { &self.once } else { &self.again };
        let oldest = queue.first_key_value().or_else(|| self.once.first_key_value());
        let Some((_, at)) = oldest else { return false };
        let at = *at;
        if let Some(slot) = &self.slots[at]
            && !slot.is_hot
            && self.left_index.insert(slot.key)
        {
            self.left.push_back(slot.key);
            if self.left.len() > self.slots.len()
                && let Some(forgotten) = self.left.pop_front()
            {
                self.left_index.remove(&forgotten);
            }
        }
        self.release(at);
        true
    }

    /// Makes a slot free.
    fn release(&mut self, at: usize) {
        let Some(slot) = self.slots[at].take() else { return };
        invariant!(slot.pins == 0, "slot {at} is freed while {} hold it", slot.pins);
        self.unverified -= usize::from(slot.kept != 0);
        if slot.is_hot {
            self.again.remove(&slot.order)
        } else {
            self.once.remove(&slot.order)
        };
        if self.index.get(&slot.key) == Some(&at) {
            self.index.remove(&slot.key);
        }
        self.free.push(at);
    }
}

/// The numbers of the blocks that a range of bytes needs.
pub(crate) fn blocks_of(range: &Range<u64>, block_bytes: u64) -> Range<u64> {
    range.start / block_bytes..range.end.div_ceil(block_bytes)
}

/// Ranges in order, those that are not more than `gap` apart as one.
pub(crate) fn merged(ranges: impl Iterator<Item = Range<u64>>, gap: u64) -> Vec<Range<u64>> {
    let mut sorted: Vec<Range<u64>> = ranges.filter(|range| !range.is_empty()).collect();
    sorted.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in sorted {
        match merged.last_mut() {
            Some(last) if range.start <= last.end + gap => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    debug_assert!(
        merged.windows(2).all(|pair| pair[0].end < pair[1].start),
        "two requests have the same block"
    );
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUMS: Sums = [7; SECTORS as usize];

    fn read(blocks: &mut Blocks, key: Key, most: usize) -> bool {
        if let Some(at) = blocks.pin(key, ALL) {
            blocks.unpin(at);
            return true;
        }
        let at = blocks.reserve(key, ALL, most).unwrap();
        blocks.fill(at, ALL, &SUMS);
        blocks.unpin(at);
        false
    }

    #[test]
    fn a_scan_does_not_displace_what_is_read_again() {
        let (mut blocks, most) = (Blocks::new(512), 40);
        // Read again after they left the queue.
        for round in 0..6 {
            for block in 0..10 {
                read(&mut blocks, (1, block), most);
            }
            for block in 0..40 {
                read(&mut blocks, (2, round * 40 + block), most);
            }
        }
        for block in 0..10_000 {
            read(&mut blocks, (3, block), most);
        }
        assert!((0..10).all(|block| read(&mut blocks, (1, block), most)), "the hot blocks stay");
        assert_eq!(blocks.bytes(), 40 * 512);
        assert_eq!(blocks.filled(), 40);
    }

    #[test]
    fn pinned_blocks_stay_and_may_exceed_the_limit() {
        let mut blocks = Blocks::new(512);
        let held: Vec<usize> =
            (0..9).map(|block| blocks.reserve((1, block), ALL, 4).unwrap()).collect();
        held.iter().for_each(|at| blocks.fill(*at, ALL, &SUMS));
        assert_eq!(blocks.bytes(), 9 * 512);
        assert!(blocks.pin((1, 8), ALL).is_some());
        held.iter().for_each(|at| blocks.unpin(*at));
        blocks.shrink(4).unwrap();
        assert_eq!(blocks.bytes(), 9 * 512, "the last slot is pinned");
        blocks.unpin(held[8]);
        blocks.shrink(4).unwrap();
        assert_eq!(blocks.bytes(), 4 * 512);
        assert!(blocks.pin((1, 8), ALL).is_none() && blocks.pin((1, 0), ALL).is_some());
    }

    #[test]
    fn blocks_of_a_file_that_is_gone_are_forgotten() {
        let mut blocks = Blocks::new(512);
        assert!(!read(&mut blocks, (1, 0), 4) && read(&mut blocks, (1, 0), 4));
        let at = blocks.pin((1, 0), ALL).unwrap();
        blocks.forget(1);
        assert!(blocks.pin((1, 0), ALL).is_none());
        assert!(!read(&mut blocks, (1, 0), 4), "it has another slot");
        blocks.unpin(at);
        assert_eq!(blocks.filled(), 1);
        // A fetch that failed.
        let at = blocks.reserve((1, 7), ALL, 4).unwrap();
        assert!(blocks.pin((1, 7), ALL).is_none());
        assert_eq!(blocks.reserve((1, 7), ALL, 4), Some(at), "two fetches share a slot");
        blocks.unpin(at);
        blocks.fill(at, ALL, &SUMS);
        blocks.unpin(at);
        assert!(read(&mut blocks, (1, 7), 4));
        let at = blocks.reserve((1, 8), ALL, 4).unwrap();
        blocks.unpin(at);
        assert!(!read(&mut blocks, (1, 8), 4));
    }

    #[test]
    fn sectors_of_a_block_come_by_themselves() {
        let mut blocks = Blocks::new(512);
        assert_eq!(blocks.sector_bytes(), 64);
        assert_eq!(by_block(6..17).collect::<Vec<_>>(), [(0, 0b1100_0000), (1, ALL), (2, 1)]);
        let at = blocks.reserve((1, 0), 0b11, 4).unwrap();
        blocks.fill(at, 0b11, &SUMS);
        blocks.unpin(at);
        assert_eq!(blocks.lacks((1, 0), 0b110), 0b100);
        assert!(blocks.pin((1, 0), 0b110).is_none());
        assert!(blocks.reserve((1, 0), 0b10, 4).is_none(), "it is there");
        assert!(!blocks.has((1, 0)), "reading ahead may bring the rest");
        assert_eq!(blocks.reserve((1, 0), 0b110, 4), Some(at), "a block has one slot");
        assert!(blocks.has((1, 0)), "it may be on its way");
        // A fetch that failed leaves what was there.
        blocks.unpin(at);
        assert_eq!(blocks.pin((1, 0), 0b11), Some(at));
        blocks.fill(at, ALL, &SUMS);
        blocks.unpin(at);
        assert!(blocks.has((1, 0)));
        assert_eq!(blocks.bytes(), 512);
    }

    #[test]
    fn blocks_of_the_instance_before_are_there_once_they_are_verified() {
        let mut blocks = Blocks::new(512);
        blocks.adopt(Some(((1, 0), 0b111, SUMS, true)));
        blocks.adopt(None);
        blocks.adopt(Some(((1, 1), ALL, SUMS, false)));
        blocks.adopt(Some(((1, 1), ALL, SUMS, false)));
        assert_eq!((blocks.taken(), blocks.lacks((1, 0), 0b1010)), (2, 0b1000));
        assert!(blocks.pin((1, 0), 1).is_none(), "it is not verified");
        let pinned = blocks.pin_unverified(1, 0..9);
        assert_eq!(pinned, [(0, 0, 0b111, SUMS), (1, 2, ALL, SUMS)]);
        blocks.verify(0, 0b111, 0b101);
        blocks.verify(2, ALL, 0);
        pinned.iter().for_each(|(_, at, ..)| blocks.unpin(*at));
        assert_eq!(blocks.lacks((1, 0), 0b111), 0b10);
        assert_eq!(blocks.pin((1, 0), 0b101), Some(0));
        assert!(blocks.pin_unverified(1, 0..9).is_empty());
        assert_eq!(
            (blocks.taken(), blocks.bytes()),
            (1, 4 * 512),
            "nothing of the other was right"
        );
        assert_eq!(blocks.noted(0), Some(((1, 0), 0b101, SUMS, true)));
    }
}
