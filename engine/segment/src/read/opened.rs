//! An opened segment: the footer in memory, blocks through the cache.
//!
//! A block's checksum is verified when it is loaded, and every error names file, column, block and
//! byte. All methods may run concurrently.

use super::address::{BlockAddress, coalesced};
use super::cache::{BlockCache, Page, Purpose, SLOT_BYTES, Slots, Weigh};
use super::open::{FooterRead, read_footer};
use nacre_column::Scalar;
use nacre_column::kernel::{self, Pattern, Predicate};
use nacre_column::{Bitmap, Values, Vector};
use nacre_format::column::{ColumnMeta, Zone};
use nacre_format::footer::{self, ColumnEntry, Footer, FooterHead, block_rows};
use nacre_format::identity::{Identity, Known};
use nacre_host::{Ahead, LocalFile, ReadRange, waits};
use nacre_types::checksum::checksum;
use nacre_types::limits::BLOCK_ROWS;
use nacre_types::{Error, Result, Value};
use std::cmp::Ordering;
use std::sync::Arc;

/// Number of rows per block below which they are read one by one.
const SPARSE: usize = 8;

/// Documents are read one by one if at most one in this many is wanted.
pub(super) const DOCUMENT_ONE_IN: usize = 4;

/// A segment whose footer is in memory: what [`Segment`](super::Segment) reads through.
pub(crate) struct Opened {
    file: Arc<dyn LocalFile>,
    name: Arc<str>,
    rows: usize,
    bytes: u64,
    footer_checksum: u64,
    head: FooterHead,
    /// The columns in file order, then the sub-columns of all of them.
    pub(crate) columns: Vec<ColumnEntry>,
    /// Of the columns only.
    metas: Vec<ColumnMeta>,
    /// Whether a column is one of documents.
    pub(super) has_documents: bool,
    /// The ids of the columns, contiguous because every lookup of a value searches them.
    ids: Vec<u32>,
    cache: Arc<BlockCache>,
    pub(crate) slots: Arc<Slots>,
}

impl Opened {
    /// Reads the footer of a file: checks magic, version, and the footer with its checksum, in one
    /// read unless the footer is very long. `name` is for error messages.
    pub(super) fn read(
        file: Arc<dyn LocalFile>,
        name: &Arc<str>,
        cache: &Arc<BlockCache>,
        how: &FooterRead,
    ) -> Result<Opened> {
        let located = |error: Error| error.context(format!("segment {name}"));
        let bytes = file.len().map_err(located)?;
        let (Footer { rows, head, columns }, footer_checksum) =
            read_footer(&*file, bytes, how).map_err(located)?;
        let slots = Slots::new(columns.iter().map(ColumnEntry::blocks), cache.hit_counter());
        let whole = columns.iter().filter(|column| column.part.is_none());
        let metas: Vec<ColumnMeta> = whole.map(|c| c.meta.clone()).collect();
        let ids = metas.iter().map(|c| c.id).collect();
        let has_documents = columns.iter().any(|column| column.document.is_some());
        columns.iter().for_each(ColumnEntry::assert_complete);
        Ok(Opened {
            file,
            name: name.clone(),
            rows,
            bytes,
            footer_checksum,
            head,
            columns,
            metas,
            has_documents,
            ids,
            cache: cache.clone(),
            slots,
        })
    }

    /// Reads ranges of the file: the only place where blocks come from.
    pub fn fetch(&self, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        debug_assert!(
            ranges.iter().all(|range| range.offset < self.bytes && !range.buffer.is_empty()),
            "ranges to read are in the file"
        );
        waits::read(|| self.file.read(ranges))
    }

    /// The file.
    pub(super) fn file(&self) -> &Arc<dyn LocalFile> {
        &self.file
    }

    /// The name for error messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Checks that it is the file that it is taken for. A file of format version 1 has no identity
    /// and is taken for any.
    pub fn check_identity(&self, expected: &Identity) -> Result<()> {
        match &self.head.identity {
            Some(own) if own != expected => Err(Error::corrupt(format!(
                "segment {}: the file is {own}, not {expected}",
                self.name
            ))),
            _ => Ok(()),
        }
    }

    /// What can be known of it without its footer.
    pub fn known(&self) -> Known {
        Known {
            rows: self.rows,
            bytes: self.bytes,
            footer_checksum: self.footer_checksum,
            raw_bytes: self.raw_bytes(),
            order_bounds: self.head.order_bounds.clone().map(Arc::new),
            columns: self.ids.as_slice().into(),
            bounds: Arc::default(),
            greatest: None,
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Uncompressed size of its values, in bytes.
    pub fn raw_bytes(&self) -> u64 {
        self.columns.iter().map(|column| column.meta.raw_bytes).sum()
    }

    /// The columns, in file order.
    pub fn columns(&self) -> &[ColumnMeta] {
        &self.metas
    }

    /// Position of the column with this id.
    pub fn column_index(&self, id: u32) -> Option<usize> {
        self.ids.iter().position(|known| *known == id)
    }

    /// Number of values in a column's dictionary, if it has one.
    pub fn dictionary_values(&self, column: usize) -> Option<usize> {
        self.columns[column].dictionary.map(|d| d.values as usize)
    }

    /// Number of blocks in every column that is no sub-column.
    pub fn blocks(&self) -> usize {
        footer::block_count(self.rows)
    }

    /// Bounds and null count of a block.
    pub fn zone(&self, column: usize, block: usize) -> Zone {
        let entry = &self.columns[column];
        debug_assert!(block < entry.blocks(), "zone of block {block} of {}", entry.blocks());
        let null_count = entry.nulls[block] as u32;
        let (min, max) = match null_count as usize == entry.block_rows(block) {
            true => (Value::Null, Value::Null),
            false => entry.bounds.values(entry.meta.data_type, block),
        };
        Zone { min, max, null_count, exact: entry.bounds.exact.get(block) }
    }

    /// Number of rows in a block: [`BLOCK_ROWS`] in all but the last.
    pub fn block_rows(&self, block: usize) -> usize {
        debug_assert!(block < self.blocks(), "rows of block {block} of {}", self.blocks());
        block_rows(self.rows, block)
    }

    /// Decodes one value and nothing else.
    pub fn get(&self, column: usize, row: usize) -> Result<Value> {
        if let Some(documents) = self.documents(column) {
            return documents.get(row);
        }
        self.get_in_block(column, row)
    }

    /// Decodes one value of a block and nothing else.
    pub(super) fn get_in_block(&self, column: usize, row: usize) -> Result<Value> {
        let data_type = self.columns[column].meta.data_type;
        self.look(column, row / BLOCK_ROWS, |block| {
            block.get(row % BLOCK_ROWS).map(|scalar| scalar.into_value(data_type))
        })
    }

    /// Passes a few rows of a column to `see` in order, without copying them out of their blocks.
    pub fn each(
        &self,
        column: usize,
        start: usize,
        count: usize,
        see: &mut dyn FnMut(Scalar<'_>) -> Result<()>,
    ) -> Result<()> {
        debug_assert!(start + count <= self.rows, "rows {start}+{count} of {}", self.rows);
        if let Some(documents) = self.documents(column) {
            let see = &mut |row| see(documents.scalar(row)?);
            return (start..start + count).try_for_each(see);
        }
        let (mut at, end) = (start, start + count);
        while at < end {
            let stop = (at / BLOCK_ROWS * BLOCK_ROWS + BLOCK_ROWS).min(end);
            self.with_block(column, at / BLOCK_ROWS, Purpose::Point, |block| {
                (at..stop).try_for_each(|row| see(block.get(row % BLOCK_ROWS)?))
            })?;
            at = stop;
        }
        Ok(())
    }

    /// Retains those of the ascending `rows` whose value equals `value` in key order. `value` must
    /// have the column's type. Seeks each row.
    pub fn retain_equal(&self, column: usize, value: &Value, rows: &mut Vec<u32>) -> Result<()> {
        debug_assert!(rows.is_sorted(), "rows to filter do not ascend");
        if let Some(documents) = self.documents(column) {
            return documents.retain_equal(value, rows);
        }
        let mut kept = 0;
        let mut at = 0;
        while at < rows.len() {
            let block = rows[at] as usize / BLOCK_ROWS;
            at = self.look(column, block, |view| {
                while at < rows.len() && rows[at] as usize / BLOCK_ROWS == block {
                    if view.compare(rows[at] as usize % BLOCK_ROWS, value)? == Some(Ordering::Equal)
                    {
                        rows[kept] = rows[at];
                        kept += 1;
                    }
                    at += 1;
                }
                Ok(at)
            })?;
        }
        debug_assert!(kept <= rows.len(), "{kept} rows kept of {}", rows.len());
        rows.truncate(kept);
        Ok(())
    }

    /// Decodes the rows at ascending positions, which may repeat. Seeks them if few rows of a block
    /// are wanted.
    pub fn take(&self, column: usize, rows: &[u32]) -> Result<Vector> {
        self.take_for(Purpose::Point, column, rows)
    }

    /// Like [`Opened::take`], for a scan that visits every block in turn: keeps no block cached
    /// longer than [`Opened::decode`] does.
    pub fn take_in_scan(&self, column: usize, rows: &[u32]) -> Result<Vector> {
        self.take_for(Purpose::Scan, column, rows)
    }

    fn take_for(&self, purpose: Purpose, column: usize, rows: &[u32]) -> Result<Vector> {
        debug_assert!(rows.is_sorted(), "rows to take do not ascend");
        if rows.last().is_some_and(|last| *last as usize >= self.columns[column].rows) {
            return Err(Error::corrupt(format!(
                "segment {} has fewer rows than were asked for",
                self.name
            )));
        }
        match self.documents(column) {
            Some(documents) => documents.take(rows),
            None => self.take_blocks(purpose, column, rows),
        }
    }

    /// Takes what the blocks of a column have.
    pub(super) fn take_blocks(
        &self,
        purpose: Purpose,
        column: usize,
        rows: &[u32],
    ) -> Result<Vector> {
        let block_of = |row: &u32| *row as usize / BLOCK_ROWS;
        let runs = || rows.chunk_by(|a, b| block_of(a) == block_of(b));
        let data_type = self.columns[column].meta.data_type;
        let blocks = runs().count();
        if blocks > 1 && rows.len() < blocks * SPARSE {
            return self.take_few(column, rows);
        }
        let mut loaded = blocks < 2;
        let mut held_of = |block: usize| match self.cached(column, block, purpose) {
            Some(held) => Ok(held),
            None => {
                // Loads all missing blocks in one read.
                if !std::mem::replace(&mut loaded, true) {
                    self.load(&runs().map(|run| (column, block_of(&run[0]))).collect::<Vec<_>>())?;
                }
                self.held(column, block, purpose)
            }
        };
        let mut parts = Vec::with_capacity(blocks);
        for run in runs() {
            let index = block_of(&run[0]);
            let held = held_of(index)?;
            let inside: Vec<u32> = run.iter().map(|row| row % BLOCK_ROWS as u32).collect();
            let part = self.open_block(&held, column, index).and_then(|block| block.take(&inside));
            parts.push(part.map_err(|error| self.locate_block(error, column, index))?);
        }
        let taken = Vector::concat(data_type, parts);
        debug_assert_eq!(taken.len(), rows.len(), "rows taken");
        Ok(taken)
    }

    /// Rows of a block are read one by one if at most one in this many is wanted.
    pub fn seek_one_in(&self, column: usize, block: usize) -> Result<usize> {
        let entry = &self.columns[column];
        match entry.encodings.get(block) {
            Some(_) if entry.document.is_some() => Ok(DOCUMENT_ONE_IN),
            Some(encoding) => Ok(encoding.seek_one_in()),
            None => Err(Error::corrupt(format!("segment {} has no block {block}", self.name))),
        }
    }

    /// Returns the end of a range of rows, which must be within the column.
    fn end_of(&self, column: usize, start: usize, len: usize) -> Result<usize> {
        match start.checked_add(len) {
            Some(end) if end <= self.columns[column].rows => Ok(end),
            _ => Err(Error::corrupt(format!("segment {} has no rows {start}+{len}", self.name))),
        }
    }

    /// Decodes a range of rows, in dictionary or constant form if the block has one. Intended for
    /// ranges inside one block: one that spans several costs a copy.
    pub fn decode(&self, column: usize, start: usize, len: usize) -> Result<Vector> {
        let end = self.end_of(column, start, len)?;
        match self.documents(column) {
            Some(documents) => documents.decode(start, len),
            None => self.decode_blocks(column, start, end),
        }
    }

    /// Decodes what the blocks of a column have.
    pub(super) fn decode_blocks(&self, column: usize, start: usize, end: usize) -> Result<Vector> {
        let mut parts = Vec::new();
        let mut at = start;
        while at < end {
            let n = (BLOCK_ROWS - at % BLOCK_ROWS).min(end - at);
            parts.push(self.with_block(column, at / BLOCK_ROWS, Purpose::Scan, |block| {
                block.decode(at % BLOCK_ROWS, n)
            })?);
            at += n;
        }
        let decoded = Vector::concat(self.columns[column].meta.data_type, parts);
        debug_assert_eq!(decoded.len(), end - start, "rows decoded");
        Ok(decoded)
    }

    /// Tests a range of rows against a predicate of the column's physical type, on encoded values
    /// if the encoding supports it. Intended for ranges inside one block.
    pub fn filter(
        &self,
        column: usize,
        predicate: &Predicate,
        start: usize,
        len: usize,
    ) -> Result<Bitmap> {
        let end = self.end_of(column, start, len)?;
        debug_assert_eq!(
            predicate.physical(),
            self.columns[column].meta.data_type.physical(),
            "physical type of a filter and its column"
        );
        if let Some(documents) = self.documents(column) {
            return Ok(kernel::filter(&documents.decode(start, len)?, predicate));
        }
        let mut out: Option<Bitmap> = None;
        let mut at = start;
        while at < end {
            let n = (BLOCK_ROWS - at % BLOCK_ROWS).min(end - at);
            let part = self.with_block(column, at / BLOCK_ROWS, Purpose::Scan, |block| {
                block.filter(predicate, at % BLOCK_ROWS, n)
            })?;
            match &mut out {
                None => out = Some(part),
                Some(out) => part.words().iter().enumerate().for_each(|(word, bits)| {
                    out.extend_bits(*bits, 64.min(n - word * 64));
                }),
            }
            at += n;
        }
        // An empty range has no bits.
        let out = out.unwrap_or_default();
        debug_assert_eq!(out.len(), len, "bits of a filtered range");
        Ok(out)
    }

    /// Those of `rows`, whose first bit is row `start`, that are not null and pass a pattern;
    /// `None` if the encoding of their block tests decoded text only, or if they are in several
    /// blocks.
    pub fn matches(
        &self,
        column: usize,
        pattern: &Pattern,
        start: usize,
        rows: &Bitmap,
    ) -> Result<Option<Bitmap>> {
        let end = self.end_of(column, start, rows.len())?;
        let block = start / BLOCK_ROWS;
        if end > (block + 1) * BLOCK_ROWS || self.documents(column).is_some() {
            return Ok(None);
        }
        self.with_block(column, block, Purpose::Scan, |block| {
            block.matches(pattern, start % BLOCK_ROWS, rows)
        })
    }

    /// Loads blocks, given as (column, block), and their dictionaries into the cache: in one call
    /// to the store, neighbours as one range. A scan calls this ahead of decoding.
    pub fn load(&self, column_blocks: &[(usize, usize)]) -> Result<()> {
        self.load_uncached(self.places(column_blocks))?;
        for &(column, block) in column_blocks {
            if let Some(documents) = self.documents(column).filter(|_| block < self.blocks()) {
                let start = block * BLOCK_ROWS;
                documents.load(start..start + self.block_rows(block))?;
            }
        }
        Ok(())
    }

    /// Lets the store fetch blocks that a scan will read, if they are absent and not cached. Returns their bytes.
    pub fn read_ahead(&self, column_blocks: &[(usize, usize)]) -> (u64, Ahead) {
        let places = self.uncached(self.places(column_blocks));
        let ranges = places.iter().map(|place| place.offset..place.offset + place.length as u64);
        let ranges: Vec<_> = ranges.collect();
        debug_assert!(
            ranges.iter().all(|range| range.end <= self.bytes),
            "ranges to read ahead are in the file"
        );
        let bytes = ranges.iter().map(|range| range.end - range.start).sum();
        (bytes, self.file.read_ahead(&ranges))
    }

    pub(crate) fn block_address(&self, column: usize, block: usize) -> BlockAddress {
        let entry = &self.columns[column];
        debug_assert!(block < entry.blocks(), "address of block {block} of {}", entry.blocks());
        BlockAddress {
            column,
            index: block,
            offset: entry.offsets[block],
            length: entry.lengths[block] as usize,
            checksum: entry.checksums[block],
        }
    }

    pub(crate) fn dictionary_address(&self, column: usize, block: usize) -> Option<BlockAddress> {
        let entry = &self.columns[column];
        let dictionary = entry.dictionary.filter(|_| entry.encodings[block].shares())?;
        Some(BlockAddress {
            column,
            index: entry.blocks(),
            offset: dictionary.offset,
            length: dictionary.length as usize,
            checksum: dictionary.checksum,
        })
    }

    /// A page, loaded if not cached.
    pub(super) fn page(&self, place: &BlockAddress, purpose: Purpose) -> Result<Arc<Page>> {
        let cached = self.slots.get(place.column, place.index, purpose);
        let page = match cached {
            Some(page) => Some(page),
            None => self.load_addresses(std::slice::from_ref(place))?.pop(),
        };
        page.ok_or_else(|| self.locate(Error::corrupt("block was not loaded"), place))
    }

    pub(super) fn cache(&self) -> &BlockCache {
        &self.cache
    }

    /// Reads uncached blocks, in ascending order of their offsets, and caches them.
    pub(super) fn load_addresses(&self, addresses: &[BlockAddress]) -> Result<Vec<Arc<Page>>> {
        debug_assert!(
            addresses.is_sorted_by_key(|address| address.offset),
            "offsets to load ascend"
        );
        if addresses.is_empty() {
            return Ok(Vec::new());
        }
        let mut runs = coalesced(addresses);
        let mut ranges: Vec<ReadRange<'_>> = runs
            .iter_mut()
            .map(|(offset, buffer, _)| ReadRange { offset: *offset, buffer })
            .collect();
        if let Err(error) = self.fetch(&mut ranges) {
            return Err(match addresses.first() {
                Some(address) => self.locate(error, address),
                None => error,
            });
        }
        let mut pages = Vec::with_capacity(addresses.len());
        for (offset, buffer, run) in runs {
            self.cache.count_read(buffer.len());
            if let [only] = run {
                pages.push(self.keep(only, buffer.into_boxed_slice())?);
                continue;
            }
            for address in run {
                let at = (address.offset - offset) as usize;
                pages.push(self.keep(address, buffer[at..at + address.length].into())?);
            }
        }
        debug_assert_eq!(pages.len(), addresses.len(), "pages of the blocks that were loaded");
        Ok(pages)
    }

    /// Verifies the bytes of a block and caches them.
    fn keep(&self, place: &BlockAddress, bytes: Box<[u8]>) -> Result<Arc<Page>> {
        self.check(place, &bytes)?;
        // A dictionary is later decoded and kept with its bytes.
        let is_dictionary = place.index == self.columns[place.column].blocks();
        let size = bytes.len() * if is_dictionary { 2 } else { 1 };
        Ok(self.cache.insert(
            &self.slots,
            place.column,
            place.index,
            Arc::new(Page::new(bytes)),
            size,
        ))
    }

    /// Verifies length and checksum of a block.
    pub(crate) fn check(&self, place: &BlockAddress, bytes: &[u8]) -> Result<()> {
        debug_assert_eq!(bytes.len(), place.length, "bytes of a block");
        match checksum(bytes) == place.checksum {
            true => Ok(()),
            false => Err(self.locate(Error::corrupt("checksum does not match"), place)),
        }
    }

    /// Adds the location to an error.
    #[cold]
    pub(crate) fn locate(&self, error: Error, place: &BlockAddress) -> Error {
        let entry = &self.columns[place.column];
        let id = entry.meta.id;
        let what = match place.index.checked_sub(entry.blocks()) {
            Some(0) => "dictionary block".to_string(),
            Some(_) => "outline".to_string(),
            None => format!("block {}", place.index),
        };
        let part = entry.part.map_or(String::new(), |part| self.part_name(part));
        error.context(format!(
            "segment {}, column {id}{part}, {what} at byte {}",
            self.name, place.offset
        ))
    }

    /// Adds the block to an error.
    #[cold]
    pub(crate) fn locate_block(&self, error: Error, column: usize, block: usize) -> Error {
        self.locate(error, &self.block_address(column, block))
    }
}

impl Weigh for Opened {
    /// An estimate. Blocks belong to the cache and are not counted.
    fn memory_bytes(&self) -> usize {
        let values = |v: &Values| match v {
            Values::Bytes(v) => v.offsets.len() * 4 + v.data.len(),
            Values::I128(v) => v.len() * 16,
            Values::Bool(v) => v.len(),
            other => other.len() * 8,
        };
        // Per block: a cache slot, once used, and an entry in each array of the directory.
        let column = |c: &ColumnEntry| {
            c.offsets.len() * (SLOT_BYTES + 23) + values(&c.bounds.min) + values(&c.bounds.max)
        };
        let document = |c: &ColumnEntry| c.document.as_ref().map_or(0, |d| d.schema.memory_bytes());
        self.columns.iter().map(|c| column(c) + document(c) + size_of::<ColumnEntry>()).sum()
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.cache.forget(&self.slots);
    }
}
