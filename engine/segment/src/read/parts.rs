//! Reading a row of blocks that are not cached, without loading all of them.
//!
//! A row takes a few hundred bytes of a block of tens of kilobytes. If the cache has no room, and
//! the block is not read often, only the parts of it that the row takes are read and verified, and
//! nothing is cached: see `docs/decisions/0040-parts-of-blocks.md`. The parts are put at their place
//! among bytes that are zero otherwise, and decoded there.

use super::address::BlockAddress;
use super::cache::{Page, Pages, Purpose};
use super::opened::Opened;
use nacre_format::outline::{PART_BYTES, Stub, WHOLE_BYTES};
use nacre_host::ReadRange;
use nacre_host::fetched::Misses;
use nacre_types::limits::BLOCK_ROWS;
use nacre_types::{Error, Result, Value};
use std::ops::Range;
use std::sync::Arc;

/// Absent blocks of up to this many bytes are fetched whole: their parts would be most of it, and take another wait.
const FAR_BYTES: usize = 16 << 10;

/// A block of which parts are read.
struct PartialBlock {
    place: BlockAddress,
    /// The outline of its column; `None` if the block is a single part.
    outline: Option<Arc<Page>>,
    dictionary: Option<Arc<Page>>,
    /// Where its bytes start in the buffer.
    start: usize,
    /// The parts that were read.
    read: Vec<usize>,
}

impl Opened {
    /// Appends the values of columns, some of whose blocks are not cached. The first one is number
    /// `start` of the row.
    pub(super) fn values_from_file(
        &self,
        row: usize,
        columns: &[Option<usize>],
        start: usize,
        absent: &dyn Fn(usize) -> Value,
        out: &mut Vec<Value>,
    ) -> Result<()> {
        let block = row / BLOCK_ROWS;
        debug_assert!(
            columns.iter().flatten().all(|column| row < self.columns[*column].rows),
            "row {row} of shorter columns"
        );
        let by_parts = self.choose(columns, block);
        // One read of all whole blocks, dictionaries and outlines.
        let mut places = Vec::new();
        for (column, by_parts) in columns.iter().zip(&by_parts) {
            if let Some(column) = *column {
                places.extend(self.dictionary_address(column, block));
                match by_parts {
                    true => places.extend(self.outline_of(column, block)),
                    false => places.push(self.block_address(column, block)),
                }
            }
        }
        // What is absent of whole blocks and of the parts that are known by now is fetched at once.
        let mut misses = Misses::default();
        misses.note(self.load_uncached(places))?;
        let mut partial = Vec::new();
        let mut bytes = 0;
        for (column, by_parts) in columns.iter().zip(&by_parts) {
            if let Some(column) = column.filter(|_| *by_parts)
                && let Some(Some(one)) = misses.note(self.partial(column, block, bytes))?
            {
                bytes += one.place.length;
                partial.push(one);
            }
        }
        let mut buffer = self.cache().scratch().take(bytes);
        misses.note(self.read_parts(row, &mut partial, &mut buffer))?;
        misses.end()?;
        let mut read = partial.iter();
        let mut next = read.next();
        for (at, column) in (start..).zip(columns) {
            out.push(match (column, next) {
                (None, _) => absent(at),
                (Some(column), Some(one)) if one.place.column == *column => {
                    next = read.next();
                    self.value_of_parts(one, row, &buffer)?
                }
                (Some(column), _) => self.get_in_block(*column, row)?,
            });
        }
        debug_assert!(next.is_none(), "parts of a block were read for nothing");
        for one in &partial {
            self.clear(one, &mut buffer)?;
        }
        self.cache().scratch().give_back(buffer);
        Ok(())
    }

    /// Which of the columns are read by parts, although they could be loaded.
    fn choose(&self, columns: &[Option<usize>], block: usize) -> Vec<bool> {
        let mut by_parts = vec![false; columns.len()];
        let pages = self.slots.pin();
        let (mut loaded, mut passed) = (0, 0);
        for (by_parts, column) in by_parts.iter_mut().zip(columns) {
            let Some(column) = *column else { continue };
            let length = self.columns[column].lengths[block] as usize;
            if pages.peek(column, block).is_some() {
                continue;
            }
            *by_parts = (length <= WHOLE_BYTES || self.columns[column].outline.is_some())
                && self.cache().prefers_parts(&pages, column, block, loaded + length)
                || length > FAR_BYTES && self.is_far(&pages, column, block);
            *if *by_parts { &mut passed } else { &mut loaded } += length;
        }
        self.cache().pass(passed);
        by_parts
    }

    /// Whether the bytes of a block are not on the local disk, but its outline is: its parts are few bytes to fetch.
    fn is_far(&self, pages: &Pages, column: usize, block: usize) -> bool {
        let Some(outline) = self.outline_address(column) else { return false };
        debug_assert!(block < outline.index, "an outline in the place of block {block}");
        let is_absent = |place: &BlockAddress| {
            let range = place.offset..place.offset + place.length as u64;
            !self.file().absent(&[range]).is_empty()
        };
        is_absent(&self.block_address(column, block))
            && (pages.peek(column, outline.index).is_some() || !is_absent(&outline))
    }

    /// Where a column's outline is, if it has one.
    pub(crate) fn outline_address(&self, column: usize) -> Option<BlockAddress> {
        self.columns[column].outline.map(|outline| BlockAddress {
            column,
            index: self.columns[column].blocks() + 1,
            offset: outline.offset,
            length: outline.length as usize,
            checksum: outline.checksum,
        })
    }

    /// The outline that is needed to read a block by parts; `None` if the block is one part.
    fn outline_of(&self, column: usize, block: usize) -> Option<BlockAddress> {
        let length = self.columns[column].lengths[block] as usize;
        debug_assert!(length > 0, "a block without bytes");
        self.outline_address(column).filter(|_| length > WHOLE_BYTES)
    }

    /// Gets what it takes to read a block by parts; `None` if it is only read as a whole.
    fn partial(&self, column: usize, block: usize, start: usize) -> Result<Option<PartialBlock>> {
        let place = self.block_address(column, block);
        debug_assert!(place.index == block, "block {block} at {}", place.index);
        let page = |place| self.page(&place, Purpose::Point);
        let outline = self.outline_of(column, block).map(page).transpose()?;
        if let Some(page) = &outline
            && self.stub(&place, &page.bytes)?.is_none()
        {
            return Ok(None);
        }
        let dictionary = self.dictionary_address(column, block).map(page).transpose()?;
        Ok(Some(PartialBlock { place, outline, dictionary, start, read: Vec::new() }))
    }

    pub(super) fn stub<'a>(
        &self,
        place: &BlockAddress,
        outline: &'a [u8],
    ) -> Result<Option<Stub<'a>>> {
        Stub::find(outline, self.columns[place.column].blocks(), place.index, place.length)
            .map_err(|error| self.locate(error, place))
    }

    /// Reads the parts that a row takes, with one call for all blocks while more are wanted.
    fn read_parts(&self, row: usize, blocks: &mut [PartialBlock], buffer: &mut [u8]) -> Result<()> {
        for one in &*blocks {
            if let Some(outline) = &one.outline
                && let Some(stub) = self.stub(&one.place, &outline.bytes)?
            {
                let block = &mut buffer[one.start..one.start + one.place.length];
                stub.fill(block).map_err(|error| self.locate(error, &one.place))?;
            }
        }
        loop {
            let mut wanted: Vec<(usize, Range<usize>)> = Vec::new();
            for (index, one) in blocks.iter_mut().enumerate() {
                let parts = self.wanted(one, row, buffer)?;
                for run in parts.chunk_by(|a, b| a + 1 == *b) {
                    let end = (run[run.len() - 1] + 1) * one.part_bytes();
                    wanted.push((index, run[0] * one.part_bytes()..end.min(one.place.length)));
                }
                one.read.extend(parts);
            }
            if wanted.is_empty() {
                return Ok(());
            }
            self.read_wanted(blocks, &wanted, buffer)?;
        }
    }

    /// The parts that a row takes as far as they are known, without those that were read.
    fn wanted(&self, one: &PartialBlock, row: usize, buffer: &[u8]) -> Result<Vec<usize>> {
        if one.outline.is_none() {
            return Ok(if one.read.is_empty() { vec![0] } else { Vec::new() });
        }
        let bytes = one.bytes(buffer);
        debug_assert!(bytes.len() > WHOLE_BYTES, "{} bytes are one part", bytes.len());
        let mut parts = Vec::new();
        let block = self.open_partial(one, bytes)?;
        block.parts(row % BLOCK_ROWS, &mut |slice| {
            let start = (slice.as_ptr() as usize).wrapping_sub(bytes.as_ptr() as usize);
            if !slice.is_empty() && start < bytes.len() {
                parts.extend(start / PART_BYTES..=(start + slice.len() - 1) / PART_BYTES);
            }
        });
        parts.sort_unstable();
        parts.dedup();
        parts.retain(|part| !one.read.contains(part));
        Ok(parts)
    }

    /// Reads ranges of blocks, in ascending order of their place in the buffer, and verifies them.
    fn read_wanted(
        &self,
        blocks: &[PartialBlock],
        wanted: &[(usize, Range<usize>)],
        buffer: &mut [u8],
    ) -> Result<()> {
        debug_assert!(!wanted.is_empty(), "a read of no parts");
        let mut ranges = Vec::with_capacity(wanted.len());
        let (mut rest, mut passed) = (&mut *buffer, 0);
        for (index, range) in wanted {
            let one = &blocks[*index];
            let start = one.start + range.start;
            debug_assert!(start >= passed, "ranges of a buffer overlap");
            let (_, after) = rest.split_at_mut(start - passed);
            let (bytes, after) = after.split_at_mut(range.len());
            let offset = one.place.offset + range.start as u64;
            ranges.push(ReadRange { offset, buffer: bytes });
            (rest, passed) = (after, start + range.len());
        }
        if let Err(error) = self.fetch(&mut ranges) {
            return Err(match wanted.first() {
                Some((index, _)) => self.locate(error, &blocks[*index].place),
                None => error,
            });
        }
        for (index, range) in wanted {
            let one = &blocks[*index];
            let bytes = &one.bytes(buffer)[range.clone()];
            self.cache().count_read(bytes.len());
            match &one.outline {
                None => self.check(&one.place, bytes)?,
                Some(outline) => {
                    let stub = self.stub(&one.place, &outline.bytes)?;
                    if !stub.is_some_and(|stub| stub.verify(range.start / PART_BYTES, bytes)) {
                        let error = Error::corrupt("checksum of a part does not match");
                        return Err(self.locate(error, &one.place));
                    }
                }
            }
        }
        Ok(())
    }

    /// Opens a block of which parts were read.
    fn open_partial<'a>(
        &self,
        one: &'a PartialBlock,
        bytes: &'a [u8],
    ) -> Result<nacre_column::block::Block<'a>> {
        let dictionary = one.dictionary.as_ref().map(|page| (&*page.bytes, &page.decoded));
        self.open_bytes(bytes, dictionary, one.place.column, one.place.index)
            .map_err(|error| self.locate(error, &one.place))
    }

    /// Whether everything was read that a row takes.
    fn has_parts(&self, one: &PartialBlock, row: usize, buffer: &[u8]) -> bool {
        self.wanted(one, row, buffer).is_ok_and(|parts| parts.is_empty())
    }

    fn value_of_parts(&self, one: &PartialBlock, row: usize, buffer: &[u8]) -> Result<Value> {
        debug_assert!(self.has_parts(one, row, buffer), "a value without its parts");
        let data_type = self.columns[one.place.column].meta.data_type;
        let block = self.open_partial(one, one.bytes(buffer))?;
        let value = block.get(row % BLOCK_ROWS).map(|scalar| scalar.into_value(data_type));
        value.map_err(|error| self.locate(error, &one.place))
    }

    /// Sets everything that was put into the buffer for a block to zero.
    fn clear(&self, one: &PartialBlock, buffer: &mut [u8]) -> Result<()> {
        let block = &mut buffer[one.start..one.start + one.place.length];
        for part in &one.read {
            let start = part * one.part_bytes();
            debug_assert!(start < block.len(), "part {part} of {} bytes", block.len());
            let end = (start + one.part_bytes()).min(block.len());
            block[start..end].fill(0);
        }
        if let Some(outline) = &one.outline
            && let Some(stub) = self.stub(&one.place, &outline.bytes)?
        {
            stub.clear(block)?;
        }
        Ok(())
    }
}

impl PartialBlock {
    fn bytes<'a>(&self, buffer: &'a [u8]) -> &'a [u8] {
        &buffer[self.start..self.start + self.place.length]
    }

    fn part_bytes(&self) -> usize {
        match self.outline {
            Some(_) => PART_BYTES,
            None => self.place.length,
        }
    }
}
