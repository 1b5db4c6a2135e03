//! A segment: what the log says about it, and its footer and file from the first use on.
//!
//! Everything except a few numbers is in the footer, so most methods may read the file and fail.
//! The first read also verifies that the file is the one that was described.

use super::cache::{BlockCache, FooterCell, Pinned, Weigh};
use super::open::FooterRead;
use super::opened::Opened;
use nacre_column::kernel::{Pattern, Predicate};
use nacre_column::{Bitmap, Scalar, Vector};
use nacre_format::column::{ColumnMeta, PathMeta, Zone};
use nacre_format::footer::{block_count, block_rows};
use nacre_format::identity::{BoundsOfColumns, Identity, Known, OrderBounds};
use nacre_host::{Ahead, LocalFile, LocalStore};
use nacre_types::limits::MAX_SEGMENT_ROWS;
use nacre_types::{Error, ErrorKind, Result, Value};
use std::ops::Deref;
use std::sync::Arc;

/// An immutable columnar file of rows.
pub struct Segment {
    name: Arc<str>,
    id: u64,
    known: Known,
    source: FileSource,
    /// What the file is compared with when its footer is read; `None` if nothing describes it.
    expected: Option<Expected>,
    cache: Arc<BlockCache>,
    footer: Arc<FooterCell<Opened>>,
}

/// Checks a footer that was just read, given the name of the file and the columns.
pub type CheckColumns = dyn Fn(&str, &[ColumnMeta]) -> Result<()> + Send + Sync;

/// Where the file comes from.
pub enum FileSource {
    /// It is open, and stays open.
    Open(Arc<dyn LocalFile>),
    /// It is opened when it is first read, and closed when its footer is evicted.
    Named(Arc<dyn LocalStore>),
}

/// What must be found in the file.
struct Expected {
    identity: Identity,
    check: Arc<CheckColumns>,
}

/// The columns of a segment, whose footer stays in memory meanwhile.
pub struct Columns<'a>(Pinned<'a, Opened>);

impl Deref for Columns<'_> {
    type Target = [ColumnMeta];

    fn deref(&self) -> &[ColumnMeta] {
        self.0.columns()
    }
}

impl Segment {
    /// Opens a segment file and reads its footer: checks magic, version, and the footer with its
    /// checksum, in one read unless the footer is very long. `name` is for error messages; `id` is
    /// what [`Segment::id`] returns.
    pub fn open(
        file: Arc<dyn LocalFile>,
        name: &str,
        id: u64,
        cache: Arc<BlockCache>,
    ) -> Result<Segment> {
        let name: Arc<str> = name.into();
        let footer = Arc::<FooterCell<Opened>>::default();
        let known = {
            let opened = footer.pin(cache.footers(), || {
                Opened::read(file.clone(), &name, &cache, &FooterRead::whole())
            })?;
            opened.known()
        };
        let source = FileSource::Open(file);
        Ok(Segment { name, id, known, source, expected: None, cache, footer })
    }

    /// A segment of which this is known. Reads nothing: the first read compares the file with
    /// `known` and `identity`, and calls `check`.
    pub fn described(
        source: FileSource,
        name: &str,
        known: Known,
        identity: Identity,
        cache: Arc<BlockCache>,
        check: Arc<CheckColumns>,
    ) -> Segment {
        debug_assert!(known.rows <= MAX_SEGMENT_ROWS, "{name} has {} rows", known.rows);
        debug_assert!(known.greatest.is_none() || known.rows > 0, "the greatest of no rows");
        let footer = Arc::<FooterCell<Opened>>::default();
        let (name, id) = (name.into(), identity.number);
        let expected = Some(Expected { identity, check });
        Segment { name, id, known, source, expected, cache, footer }
    }

    /// Remembers the greatest value of a column of integers not below 0, if it has that column.
    pub fn with_greatest_of(mut self, id: u32) -> Result<Segment> {
        if let Some(at) = self.column_index(id) {
            let greatest = self.columns()?.get(at).and_then(|column| match column.max {
                Value::Int(greatest) => u64::try_from(greatest).ok(),
                _ => None,
            });
            self.known.greatest = greatest;
        }
        Ok(self)
    }

    /// Remembers the bounds of the columns for which `add` adds any.
    pub fn with_bounds_of(
        mut self,
        mut add: impl FnMut(&ColumnMeta, &mut BoundsOfColumns),
    ) -> Result<Segment> {
        let mut found = BoundsOfColumns::default();
        self.columns()?.iter().for_each(|column| add(column, &mut found));
        debug_assert!(
            found.iter().all(|one| self.known.columns.contains(&one.column)),
            "{} remembers bounds of a column that it does not have",
            self.name
        );
        self.known.bounds = Arc::new(found);
        Ok(self)
    }

    /// Pins the footer, reading it if it is not in memory.
    #[inline]
    pub(crate) fn opened(&self) -> Result<Pinned<'_, Opened>> {
        self.footer.pin(self.cache.footers(), || {
            let Known { columns, .. } = &self.known;
            self.read_footer(&FooterRead::lean(self.blocks(), columns.len()))
        })
    }

    /// Opens the file and reads the footer.
    #[cold]
    fn read_footer(&self, how: &FooterRead) -> Result<Opened> {
        let opened = Opened::read(self.open_file()?, &self.name, &self.cache, how)?;
        if let Some(Expected { identity, check }) = &self.expected {
            opened.check_identity(identity)?;
            self.check_known(&opened.known())?;
            check(&self.name, opened.columns())?;
        }
        Ok(opened)
    }

    /// The file: that of the footer, if it is in memory.
    pub(super) fn file(&self) -> Result<Arc<dyn LocalFile>> {
        let known = self.footer.peek().map(|opened| opened.file().clone());
        known.map_or_else(|| self.open_file(), Ok)
    }

    fn open_file(&self) -> Result<Arc<dyn LocalFile>> {
        match &self.source {
            FileSource::Open(file) => Ok(file.clone()),
            FileSource::Named(store) => store.open(&self.name).map_err(|error| {
                let name = &self.name;
                match error.kind() {
                    ErrorKind::NotFound => Error::corrupt(format!("segment {name} is missing")),
                    _ => error.context(format!("segment {name}")),
                }
            }),
        }
    }

    /// Fails with `corrupt`, with both descriptions, unless the file is the one described.
    fn check_known(&self, found: &Known) -> Result<()> {
        let known = &self.known;
        debug_assert!(known.rows <= MAX_SEGMENT_ROWS, "rows of a segment");
        match known.is_of_same_file(found) {
            true => Ok(()),
            false => Err(Error::corrupt(format!(
                "segment {}: the file has {found}, the log names one with {known}",
                self.name
            ))),
        }
    }

    /// Reads the footer now, unless it is in memory.
    ///
    /// # Errors
    /// `corrupt` for a file that is damaged, missing, or another one.
    pub fn ensure_opened(&self) -> Result<()> {
        self.opened().map(drop)
    }

    /// Whether its footer is in memory.
    pub fn is_opened(&self) -> bool {
        self.footer.peek().is_some()
    }

    /// The id passed to [`Segment::open`], or its number.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The name of its file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is known of it without its footer.
    pub fn known(&self) -> &Known {
        &self.known
    }

    /// Checks that it is the file that it is taken for. A file of format version 1 has no identity
    /// and is taken for any.
    ///
    /// # Errors
    /// `corrupt`, with both identities.
    pub fn check_identity(&self, expected: &Identity) -> Result<()> {
        self.opened()?.check_identity(expected)
    }

    /// Bounds of its rows in the order in which they were written; `None` if it does not say.
    pub fn order_bounds(&self) -> Option<&Arc<OrderBounds>> {
        self.known.order_bounds.as_ref()
    }

    /// Checksum of the footer, which has the checksums of everything else.
    pub fn footer_checksum(&self) -> u64 {
        self.known.footer_checksum
    }

    /// Number of rows.
    #[inline]
    pub fn rows(&self) -> usize {
        self.known.rows
    }

    /// Uncompressed size of its values, in bytes.
    pub fn raw_bytes(&self) -> u64 {
        self.known.raw_bytes
    }

    /// Length of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.known.bytes
    }

    /// Number of blocks in every column.
    pub fn blocks(&self) -> usize {
        block_count(self.known.rows)
    }

    /// Number of rows in a block: [`BLOCK_ROWS`](nacre_types::limits::BLOCK_ROWS) in all but the
    /// last.
    pub fn block_rows(&self, block: usize) -> usize {
        debug_assert!(block < self.blocks(), "rows of block {block} of {}", self.blocks());
        block_rows(self.known.rows, block)
    }

    /// Estimated memory of the footer, in bytes; 0 if it is not in memory. Blocks belong to the
    /// cache and are not counted.
    pub fn memory_bytes(&self) -> usize {
        self.footer.peek().map_or(0, |opened| opened.memory_bytes())
    }

    /// Estimated memory of the handle, which is there without the footer, in bytes.
    pub fn handle_bytes(&self) -> usize {
        let Known { order_bounds, columns, bounds, .. } = &self.known;
        let of_rows = order_bounds.as_ref().map_or(0, |b| b.first.len() + b.last.len());
        size_of::<Segment>()
            + self.name.len()
            + of_rows
            + columns.len() * size_of::<u32>()
            + bounds.memory_bytes()
    }

    /// Drops its cached blocks, its footer and its open file, unless they are in use. A later read
    /// loads them again.
    pub fn forget_blocks(&self) {
        self.footer.close();
    }

    /// The columns, in file order. Do not wait while holding them.
    pub fn columns(&self) -> Result<Columns<'_>> {
        self.opened().map(Columns)
    }

    /// Size in the file in bytes of a column, with its sub-columns, or of a sub-column.
    pub fn column_bytes(&self, column: usize) -> Result<u64> {
        let opened = self.opened()?;
        debug_assert!(self.has_columns(&[column]), "bytes of column {column} of {}", self.name);
        let whole = opened.columns().get(column).map(|meta| meta.bytes);
        Ok(whole.unwrap_or_else(|| opened.columns[column].meta.bytes))
    }

    /// The sub-columns of a column of JSON; none if it is stored as text.
    pub fn paths(&self, column: usize) -> Result<Vec<PathMeta>> {
        debug_assert!(self.has_columns(&[column]), "column {column} of {}", self.name);
        Ok(self.opened()?.paths(column))
    }

    /// Whether the file has columns at these positions, or sub-columns that were found by a path.
    fn has_columns(&self, columns: &[usize]) -> bool {
        let all = self.footer.peek().map_or(usize::MAX, |opened| opened.columns.len());
        columns.iter().all(|column| *column < all.max(self.known.columns.len()))
    }

    /// Position of the column with this id.
    pub fn column_index(&self, id: u32) -> Option<usize> {
        self.known.columns.iter().position(|known| *known == id)
    }

    /// Ids of the columns, in file order.
    pub fn column_ids(&self) -> &[u32] {
        &self.known.columns
    }

    /// Number of values in a column's dictionary, if it has one.
    pub fn dictionary_values(&self, column: usize) -> Result<Option<usize>> {
        debug_assert!(self.has_columns(&[column]), "column {column} of {}", self.name);
        Ok(self.opened()?.dictionary_values(column))
    }

    /// Bounds and null count of a block.
    pub fn zone(&self, column: usize, block: usize) -> Result<Zone> {
        debug_assert!(self.has_columns(&[column]), "column {column} of {}", self.name);
        Ok(self.opened()?.zone(column, block))
    }

    /// Decodes one value and nothing else.
    pub fn get(&self, column: usize, row: usize) -> Result<Value> {
        debug_assert!(self.has_columns(&[column]), "column {column} of {}", self.name);
        self.opened()?.get(column, row)
    }

    /// Passes a few rows of a column to `see` in order, without copying them out of their blocks.
    pub fn each(
        &self,
        column: usize,
        start: usize,
        count: usize,
        see: &mut dyn FnMut(Scalar<'_>) -> Result<()>,
    ) -> Result<()> {
        debug_assert!(self.has_columns(&[column]), "column {column} of {}", self.name);
        self.opened()?.each(column, start, count, see)
    }

    /// Retains those of the ascending `rows` whose value equals `value` in key order. `value` must
    /// have the column's type. Seeks each row.
    pub fn retain_equal(&self, column: usize, value: &Value, rows: &mut Vec<u32>) -> Result<()> {
        debug_assert!(self.has_columns(&[column]), "column {column} of {}", self.name);
        self.opened()?.retain_equal(column, value, rows)
    }

    /// Decodes the rows at ascending positions, which may repeat. Seeks them if few rows of a block
    /// are wanted.
    pub fn take(&self, column: usize, rows: &[u32]) -> Result<Vector> {
        debug_assert!(self.has_columns(&[column]), "column {column} of {}", self.name);
        self.opened()?.take(column, rows)
    }

    /// Like [`Segment::take`], for a scan that visits every block in turn: keeps no block cached
    /// longer than [`Segment::decode`] does.
    pub fn take_in_scan(&self, column: usize, rows: &[u32]) -> Result<Vector> {
        debug_assert!(self.has_columns(&[column]), "column {column} of {}", self.name);
        self.opened()?.take_in_scan(column, rows)
    }

    /// Rows of a block are read one by one if at most one in this many is wanted.
    pub fn seek_one_in(&self, column: usize, block: usize) -> Result<usize> {
        debug_assert!(self.has_columns(&[column]), "column {column} of {}", self.name);
        self.opened()?.seek_one_in(column, block)
    }

    /// Decodes a range of rows, in dictionary or constant form if the block has one. Intended for
    /// ranges inside one block: one that spans several costs a copy.
    pub fn decode(&self, column: usize, start: usize, len: usize) -> Result<Vector> {
        debug_assert!(self.has_columns(&[column]), "column {column} of {}", self.name);
        self.opened()?.decode(column, start, len)
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
        debug_assert!(self.has_columns(&[column]), "column {column} of {}", self.name);
        self.opened()?.filter(column, predicate, start, len)
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
        debug_assert!(self.has_columns(&[column]), "column {column} of {}", self.name);
        self.opened()?.matches(column, pattern, start, rows)
    }

    /// Loads blocks, given as (column, block), and their dictionaries into the cache: in one call
    /// to the store, neighbours as one range. A scan calls this ahead of decoding.
    pub fn load(&self, column_blocks: &[(usize, usize)]) -> Result<()> {
        debug_assert!(
            column_blocks.iter().all(|(column, _)| self.has_columns(&[*column])),
            "blocks {column_blocks:?} of {}",
            self.name
        );
        self.opened()?.load(column_blocks)
    }

    /// Fails with the absent bytes of blocks, given as (column, block), that are not cached. Reads none of them.
    pub fn check_there(&self, column_blocks: &[(usize, usize)]) -> Result<()> {
        debug_assert!(
            column_blocks.iter().all(|(column, _)| self.has_columns(&[*column])),
            "blocks {column_blocks:?} of {}",
            self.name
        );
        self.opened()?.check_there(column_blocks)
    }

    /// Lets the store fetch blocks, given as (column, block), that a scan will read, where they are absent. Does
    /// not wait. Returns their bytes.
    pub fn read_ahead(&self, column_blocks: &[(usize, usize)]) -> Result<(u64, Ahead)> {
        debug_assert!(
            column_blocks.iter().all(|(column, _)| self.has_columns(&[*column])),
            "blocks {column_blocks:?} of {}",
            self.name
        );
        Ok(self.opened()?.read_ahead(column_blocks))
    }

    /// Appends the values of `count` columns in a row. `id` returns the id of each column, by its
    /// index, and `absent` the value of a column missing from the file.
    pub fn values(
        &self,
        row: usize,
        count: usize,
        id: &dyn Fn(usize) -> u32,
        absent: &dyn Fn(usize) -> Value,
        out: &mut Vec<Value>,
    ) -> Result<()> {
        self.opened()?.values(row, count, id, absent, out)
    }

    /// Whether a key may be in the segment, by the filter in column `filter`; `false` is certain.
    /// `hash` is [`hash_bytes`](nacre_types::hash::hash_bytes) of the encoded key
    /// ([`nacre_types::key`]), which has no null.
    pub fn may_have(&self, filter: usize, hash: u64) -> Result<bool> {
        debug_assert!(self.has_columns(&[filter]), "filter {filter} of {}", self.name);
        self.opened()?.may_have(filter, hash)
    }

    /// Finds the row with exactly this key; the first one of several. The file must be sorted
    /// ascending by `key_columns`.
    pub fn search(&self, key_columns: &[usize], key: &[Value]) -> Result<Option<usize>> {
        debug_assert!(self.has_columns(key_columns), "columns {key_columns:?} of {}", self.name);
        self.opened()?.search(key_columns, key)
    }

    /// Like [`Segment::search`], for callers that read the row next: also prefetches its other
    /// columns.
    pub fn search_to_read(&self, key_columns: &[usize], key: &[Value]) -> Result<Option<usize>> {
        debug_assert!(self.has_columns(key_columns), "columns {key_columns:?} of {}", self.name);
        self.opened()?.search_to_read(key_columns, key)
    }

    /// The only block that may have a key, as far as the zone maps tell; `None` if there are several. The file
    /// must be sorted ascending by `key_columns`.
    pub fn block_of(&self, key_columns: &[usize], key: &[Value]) -> Result<Option<usize>> {
        debug_assert!(self.has_columns(key_columns), "columns {key_columns:?} of {}", self.name);
        self.opened()?.block_of(key_columns, key)
    }

    /// Finds the first row whose key is not below `key_prefix`, comparing only the columns of the
    /// prefix; the number of rows if there is none. The file must be sorted ascending by
    /// `key_columns`.
    pub fn lower_bound(&self, key_columns: &[usize], key_prefix: &[Value]) -> Result<usize> {
        debug_assert!(self.has_columns(key_columns), "columns {key_columns:?} of {}", self.name);
        self.opened()?.lower_bound(key_columns, key_prefix)
    }

    /// Finds the rows whose key starts with `key_prefix`: the first, and the one after the last.
    /// The file must be sorted ascending by `key_columns`.
    pub fn equal_range(
        &self,
        key_columns: &[usize],
        key_prefix: &[Value],
    ) -> Result<(usize, usize)> {
        debug_assert!(self.has_columns(key_columns), "columns {key_columns:?} of {}", self.name);
        self.opened()?.equal_range(key_columns, key_prefix)
    }

    /// Whether a row has this key, comparing only the columns of the key. `false` past the last
    /// row.
    pub fn is_key(&self, row: usize, key_columns: &[usize], key: &[Value]) -> Result<bool> {
        debug_assert!(self.has_columns(key_columns), "columns {key_columns:?} of {}", self.name);
        self.opened()?.is_key(row, key_columns, key)
    }

    /// Finds the first row, from `from` on, whose key is above all keys with this prefix, comparing
    /// only the columns of the prefix; the number of rows if there is none. No key before `from`
    /// may be above the prefix, and the file must be sorted ascending by `key_columns`. Gallops
    /// from `from`.
    pub fn upper_bound(
        &self,
        key_columns: &[usize],
        key_prefix: &[Value],
        from: usize,
    ) -> Result<usize> {
        debug_assert!(self.has_columns(key_columns), "columns {key_columns:?} of {}", self.name);
        self.opened()?.upper_bound(key_columns, key_prefix, from)
    }

    /// Finds the first row with a value in an ascending column of 64-bit integers without nulls.
    pub fn find_even(&self, column: usize, value: i64) -> Result<Option<usize>> {
        debug_assert!(self.has_columns(&[column]), "column {column} of {}", self.name);
        self.opened()?.find_even(column, value)
    }

    /// Finds the row with exactly this key. `order` is the column of row numbers in key order.
    pub fn search_in_order(
        &self,
        order: usize,
        key_columns: &[usize],
        key: &[Value],
    ) -> Result<Option<usize>> {
        debug_assert!(self.has_columns(&[order]), "column {order} of {}", self.name);
        debug_assert!(self.has_columns(key_columns), "columns {key_columns:?} of {}", self.name);
        self.opened()?.search_in_order(order, key_columns, key)
    }

    /// Finds the first position in key order whose key is not below this one; the number of rows if
    /// there is none.
    pub fn lower_bound_in_order(
        &self,
        order: usize,
        key_columns: &[usize],
        key: &[Value],
    ) -> Result<usize> {
        debug_assert!(self.has_columns(&[order]), "column {order} of {}", self.name);
        debug_assert!(self.has_columns(key_columns), "columns {key_columns:?} of {}", self.name);
        self.opened()?.lower_bound_in_order(order, key_columns, key)
    }

    /// The row at a position in key order.
    pub fn row_in_order(&self, order: usize, at: usize) -> Result<usize> {
        debug_assert!(self.has_columns(&[order]), "column {order} of {}", self.name);
        self.opened()?.row_in_order(order, at)
    }

    /// Whether the bounds of the first key column exclude a key.
    pub fn is_outside(&self, key_columns: &[usize], key: &[Value]) -> Result<bool> {
        debug_assert!(self.has_columns(key_columns), "columns {key_columns:?} of {}", self.name);
        Ok(self.opened()?.is_outside(key_columns, key))
    }

    /// How many of some keys have every value within the bounds of its key column.
    pub fn count_inside(&self, key_columns: &[usize], keys: &[&[Value]]) -> Result<usize> {
        debug_assert!(self.has_columns(key_columns), "columns {key_columns:?} of {}", self.name);
        debug_assert!(
            keys.iter().all(|key| key.len() == key_columns.len()),
            "a key has not {} values",
            key_columns.len()
        );
        let opened = self.opened()?;
        let is_outside = |(at, value): (&usize, &Value)| {
            opened.is_outside(std::slice::from_ref(at), std::slice::from_ref(value))
        };
        Ok(keys.iter().filter(|key| !key_columns.iter().zip(**key).any(is_outside)).count())
    }

    /// Reads the footer and every block from the file, bypassing the cache; verifies checksums,
    /// decodes everything, and compares zone maps with the values. Each error names file, column,
    /// block and byte.
    pub fn verify(&self) -> Vec<Error> {
        match self.read_footer(&FooterRead::whole()) {
            Ok(opened) => opened.verify(),
            Err(error) => vec![error],
        }
    }
}
