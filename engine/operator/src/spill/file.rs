//! Allocates ranges of a statement's temporary file. Freed ranges are reused, so the file is about
//! as large as its contents at any time.

use nacre_table::TemporaryFile;
use nacre_types::checksum::checksum;
use nacre_types::sorted::SortedMap;
use nacre_types::{Error, Result};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Alignment of ranges.
const PAGE_BYTES: u64 = 4096;

/// A statement's temporary file. Shared between threads.
#[derive(Debug)]
pub struct SpillFile {
    file: TemporaryFile,
    space: Mutex<Space>,
}

/// Pages in use and free.
#[derive(Debug, Default)]
struct Space {
    end: u64,
    /// Lengths of free ranges before the end, by offset; no two are adjacent.
    free: SortedMap<u64, u64>,
}

/// A range of the file with its checksum.
pub(super) struct Range {
    offset: u64,
    len: usize,
    checksum: u64,
}

fn pages(len: usize) -> u64 {
    (len as u64).next_multiple_of(PAGE_BYTES)
}

impl Space {
    fn take(&mut self, len: u64) -> u64 {
        let found = self.free.iter().find(|(_, free)| **free >= len).map(|(at, free)| (*at, *free));
        match found {
            Some((at, free)) => {
                self.free.remove(&at);
                if free > len {
                    self.free.insert(at + len, free - len);
                }
                at
            }
            None => {
                self.end += len;
                self.end - len
            }
        }
    }

    fn give(&mut self, mut at: u64, mut len: u64) {
        debug_assert!(
            len > 0 && at + len <= self.end && !self.free.contains_key(&at),
            "a range is freed once"
        );
        let before = self.free.range(..at).next_back().map(|(at, free)| (*at, *free));
        if let Some((before, free)) = before
            && before + free == at
        {
            self.free.remove(&before);
            (at, len) = (before, len + free);
        }
        if let Some(free) = self.free.remove(&(at + len)) {
            len += free;
        }
        if at + len == self.end {
            self.end = at;
        } else {
            self.free.insert(at, len);
        }
    }
}

impl SpillFile {
    pub fn new(file: TemporaryFile) -> SpillFile {
        SpillFile { file, space: Mutex::default() }
    }

    fn space(&self) -> MutexGuard<'_, Space> {
        self.space.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes bytes to a free range.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<Range> {
        let offset = self.space().take(pages(bytes.len()));
        let range = Range { offset, len: bytes.len(), checksum: checksum(bytes) };
        match self.file.write(offset, bytes) {
            Ok(()) => Ok(range),
            Err(error) => {
                self.free(&range);
                Err(error.context("spilling rows that do not fit in memory"))
            }
        }
    }

    /// Reads the bytes of a range; `corrupt` if they differ from what was written.
    pub(super) fn read(&self, range: &Range) -> Result<Vec<u8>> {
        let mut bytes = vec![0; range.len];
        self.file.read(range.offset, &mut bytes)?;
        if checksum(&bytes) != range.checksum {
            return Err(Error::corrupt(format!(
                "temporary file {} at byte {}",
                self.file.name(),
                range.offset
            )));
        }
        Ok(bytes)
    }

    /// Frees a range, which must not be read again.
    pub(super) fn free(&self, range: &Range) {
        self.space().give(range.offset, pages(range.len));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_space_is_reused() {
        let mut space = Space::default();
        let ranges: Vec<u64> = (0..10).map(|_| space.take(PAGE_BYTES)).collect();
        assert_eq!(space.end, 10 * PAGE_BYTES);
        for at in [3, 5, 4] {
            space.give(ranges[at], PAGE_BYTES);
        }
        assert_eq!(space.free.len(), 1);
        assert_eq!(space.take(2 * PAGE_BYTES), ranges[3]);
        assert_eq!(space.take(2 * PAGE_BYTES), 10 * PAGE_BYTES);
        assert_eq!(space.take(PAGE_BYTES), ranges[5]);
        for at in [0, 1, 2, 5, 6, 7, 8, 9] {
            space.give(ranges[at], PAGE_BYTES);
        }
        space.give(10 * PAGE_BYTES, 2 * PAGE_BYTES);
        space.give(ranges[3], 2 * PAGE_BYTES);
        assert_eq!((space.end, space.free.len()), (0, 0));
    }
}
