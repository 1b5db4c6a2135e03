//! Where the bytes of a segment are: which ranges of the file its columns take, and what of them is on the local
//! disk and in memory.

use super::address::BlockAddress;
use super::opened::Opened;
use super::places::joined;
use super::segment::Segment;
use nacre_host::waits;
use nacre_types::{Missing, Result};
use std::ops::Range;

/// Bytes of a part of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResidentBytes {
    /// In all.
    pub bytes: u64,
    /// On the local disk.
    pub local: u64,
    /// In memory, as cached blocks.
    pub memory: u64,
}

impl std::ops::AddAssign for ResidentBytes {
    fn add_assign(&mut self, other: ResidentBytes) {
        self.bytes += other.bytes;
        self.local += other.local;
        self.memory += other.memory;
    }
}

/// Dictionaries of up to this many bytes are fetched with what tells where rows are.
const SHORT_DICTIONARY: usize = 64 << 10;

/// Bytes of ranges.
fn sum(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

impl Opened {
    /// Where columns are, in ascending order; of these blocks if they are given. Documents are there as a whole:
    /// the blocks of their elements are not those of the rows.
    fn all_places(&self, columns: &[usize], blocks: Option<&[usize]>) -> Vec<BlockAddress> {
        let mut places = Vec::new();
        for (part, entry) in self.columns.iter().enumerate() {
            let column = entry.part.map_or(part, |part| part.parent);
            if !columns.contains(&column) {
                continue;
            }
            let is_whole = entry.part.is_some() || self.columns[column].document.is_some();
            let is_wanted = |block: &usize| is_whole || blocks.is_none_or(|b| b.contains(block));
            for block in (0..entry.blocks()).filter(is_wanted) {
                self.put_places(part, block, &mut places);
            }
            places.extend(self.outline_address(part));
        }
        places.sort_unstable_by_key(|place| place.offset);
        places.dedup_by_key(|place| (place.offset, place.column, place.index));
        places
    }
}

impl Segment {
    /// The ranges of the file that columns take, ascending; of these blocks, if they are given, or of all. Only
    /// reads the footer.
    pub fn ranges(&self, columns: &[usize], blocks: Option<&[usize]>) -> Result<Vec<Range<u64>>> {
        Ok(joined(self.opened()?.all_places(columns, blocks)))
    }

    /// The ranges of the file that looking a row up by columns takes, but for the row itself: the columns, and what
    /// tells where the others have a row. Only reads the footer.
    pub fn lookup_ranges(&self, columns: &[usize]) -> Result<Vec<Range<u64>>> {
        let opened = self.opened()?;
        let mut places = opened.all_places(columns, None);
        for column in 0..opened.columns.len() {
            places.extend(opened.outline_address(column));
            let mut blocks = 0..opened.columns[column].blocks();
            let dictionary = blocks.find_map(|at| opened.dictionary_address(column, at));
            places.extend(dictionary.filter(|place| place.length <= SHORT_DICTIONARY));
        }
        places.sort_unstable_by_key(|place| place.offset);
        debug_assert!(
            places.iter().all(|place| place.offset + place.length as u64 <= self.bytes()),
            "places beyond the end of {}",
            self.name()
        );
        Ok(joined(places))
    }

    /// The parts of ranges of the file that are not on the local disk. Reads nothing.
    pub fn absent(&self, ranges: &[Range<u64>]) -> Result<Option<Missing>> {
        debug_assert!(
            ranges.iter().all(|range| range.end <= self.bytes()),
            "ranges beyond the end of {}",
            self.name()
        );
        let absent = self.file()?.absent(ranges);
        let file = self.name().into();
        Ok((!absent.is_empty()).then_some(Missing { file, ranges: absent }))
    }

    /// Where the bytes of columns are; `None` if the footer is not here.
    ///
    /// # Errors
    /// Those of reading a footer that is here.
    pub fn resident(&self, columns: &[usize]) -> Result<Option<ResidentBytes>> {
        let opened = match waits::not_waiting(|| self.opened()) {
            Err(error) if error.missing().is_some() => return Ok(None),
            opened => opened?,
        };
        let places = opened.all_places(columns, None);
        let in_memory = |place: &&BlockAddress| opened.slots.has(place.column, place.index);
        let memory = places.iter().filter(in_memory).map(|place| place.length as u64).sum();
        let ranges = joined(places);
        let absent = opened.file().absent(&ranges);
        let bytes = sum(&ranges);
        Ok(Some(ResidentBytes { bytes, local: bytes - sum(&absent), memory }))
    }

    /// Where the bytes of the file are. Reads nothing.
    pub fn whole_resident(&self) -> Result<ResidentBytes> {
        let bytes = self.bytes();
        let absent = self.file()?.absent(std::slice::from_ref(&(0..bytes)));
        Ok(ResidentBytes { bytes, local: bytes - sum(&absent), memory: 0 })
    }
}
