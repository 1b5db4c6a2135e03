//! Where the blocks are that are loaded together.

use super::address::BlockAddress;
use super::opened::Opened;
use nacre_types::{Error, Missing, Result};
use std::ops::Range;

/// The ranges of places in ascending order, those that touch as one.
pub(crate) fn joined(places: Vec<BlockAddress>) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for place in places {
        let end = place.offset + place.length as u64;
        match ranges.last_mut() {
            Some(last) if place.offset <= last.end => last.end = last.end.max(end),
            _ => ranges.push(place.offset..end),
        }
    }
    debug_assert!(
        ranges.windows(2).all(|pair| pair[0].end < pair[1].start),
        "ranges of blocks are joined"
    );
    ranges
}

impl Opened {
    /// Where blocks are, given as (column, block), with their dictionaries and documents.
    pub(super) fn places(&self, column_blocks: &[(usize, usize)]) -> Vec<BlockAddress> {
        let mut places = Vec::new();
        for &(column, block) in column_blocks {
            debug_assert!(column < self.columns.len(), "column {column} of {}", self.name());
            if block < self.blocks() {
                self.put_places(column, block, &mut places);
                if let Some(documents) = self.documents(column) {
                    documents.put_places(block, &mut places);
                }
            }
        }
        places
    }

    /// Appends where a block is, and the dictionary that it takes.
    pub(super) fn put_places(&self, column: usize, block: usize, out: &mut Vec<BlockAddress>) {
        out.extend(self.dictionary_address(column, block));
        out.push(self.block_address(column, block));
    }

    /// Fails with the absent bytes of blocks, given as (column, block), that are not cached. Reads none.
    pub fn check_there(&self, column_blocks: &[(usize, usize)]) -> Result<()> {
        let places = self.uncached(self.places(column_blocks));
        self.check_ranges_there(&joined(places))
    }

    /// Fails with the absent bytes of ranges, which ascend and do not touch.
    pub(crate) fn check_ranges_there(&self, ranges: &[Range<u64>]) -> Result<()> {
        let absent = self.file().absent(ranges);
        if absent.is_empty() {
            return Ok(());
        }
        let file = self.name().into();
        Err(Error::not_resident(Missing { file, ranges: absent }))
    }

    /// Loads those that are not cached, with one call.
    pub(super) fn load_uncached(&self, places: Vec<BlockAddress>) -> Result<()> {
        self.load_addresses(&self.uncached(places)).map(drop)
    }

    /// Those that are not cached, each once, by their offsets.
    pub(super) fn uncached(&self, mut places: Vec<BlockAddress>) -> Vec<BlockAddress> {
        places.retain(|place| !self.slots.has(place.column, place.index));
        places.sort_unstable_by_key(|place| place.offset);
        places.dedup_by_key(|place| (place.offset, place.column, place.index));
        debug_assert!(
            places.is_sorted_by_key(|place| place.offset),
            "blocks to load are out of order"
        );
        places
    }
}
