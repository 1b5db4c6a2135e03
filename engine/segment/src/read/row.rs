//! Reading one row: cached blocks are read in place, under one pin for all columns.
//!
//! The cost of a row is cache misses: each column leads from slot to page to block head to value,
//! every step a dependent load. Columns are independent, so each step is done for all columns
//! before the next, and their misses overlap.

use super::cache::{Page, Pages, Purpose};
use super::opened::Opened;
use nacre_column::block::Block;
use nacre_column::{Vector, VectorBuilder};
use nacre_types::limits::BLOCK_ROWS;
use nacre_types::{Error, Result, Value};

/// Number of columns read together.
const TOGETHER: usize = 8;

/// The pinned pages of a block: its own and, if it is dictionary-coded, that of its dictionary.
pub(super) type Pinned<'a> = (&'a Page, Option<&'a Page>);

impl Opened {
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
        if row >= self.rows() {
            return Err(Error::corrupt(format!("segment {} has no row {row}", self.name())));
        }
        let before = out.len();
        // Documents are put together afterwards: that takes a pin of its own.
        let of_blocks = |at| self.column_index(id(at)).filter(|at| self.documents(*at).is_none());
        for start in (0..count).step_by(TOGETHER) {
            let mut columns = [None; TOGETHER];
            let columns = &mut columns[..TOGETHER.min(count - start)];
            (start..).zip(&mut *columns).for_each(|(at, column)| *column = of_blocks(at));
            if !self.values_in_memory(row, columns, start, absent, out)? {
                // One read for all that are left.
                let columns: Vec<Option<usize>> = (start..count).map(of_blocks).collect();
                self.values_from_file(row, &columns, start, absent, out)?;
                break;
            }
        }
        debug_assert_eq!(out.len(), before + count, "values of a row");
        if self.has_documents {
            for at in 0..count {
                let documents = self.column_index(id(at)).and_then(|at| self.documents(at));
                if let Some(documents) = documents {
                    out[before + at] = documents.get(row)?;
                }
            }
        }
        Ok(())
    }

    /// Appends the values of up to [`TOGETHER`] columns. If one of their blocks is not cached,
    /// appends nothing and returns `false`.
    fn values_in_memory(
        &self,
        row: usize,
        columns: &[Option<usize>],
        start: usize,
        absent: &dyn Fn(usize) -> Value,
        out: &mut Vec<Value>,
    ) -> Result<bool> {
        let (block, row) = (row / BLOCK_ROWS, row % BLOCK_ROWS);
        debug_assert!(columns.len() <= TOGETHER, "{} columns together", columns.len());
        let pages = self.slots.pin();
        let mut pinned = [None; TOGETHER];
        for (pinned, column) in pinned.iter_mut().zip(columns) {
            if let Some(column) = column {
                *pinned = self.pinned(&pages, *column, block);
                if pinned.is_none() {
                    return Ok(false);
                }
            }
        }
        let mut opened = [const { None }; TOGETHER];
        for ((opened, pinned), column) in opened.iter_mut().zip(pinned).zip(columns) {
            if let (Some(pinned), Some(column)) = (pinned, column) {
                let located = |error| self.locate_block(error, *column, block);
                *opened =
                    Some((*column, self.open_pinned(pinned, *column, block).map_err(located)?));
            }
        }
        opened.iter().flatten().for_each(|(_, view)| view.touch(row));
        for (at, opened) in (start..).zip(&opened[..columns.len()]) {
            out.push(match opened {
                None => absent(at),
                Some((column, view)) => {
                    let value = view
                        .get(row)
                        .map(|scalar| scalar.into_value(self.columns[*column].meta.data_type));
                    value.map_err(|error| self.locate_block(error, *column, block))?
                }
            });
        }
        Ok(true)
    }

    /// Prefetches the block heads of the first columns, if cached.
    pub(crate) fn touch(&self, block: usize) {
        let pages = self.slots.pin();
        let heads = (0..self.columns.len().min(TOGETHER))
            .filter_map(|column| pages.peek(column, block)?.bytes.first());
        std::hint::black_box(heads.fold(0, |touched, byte| touched ^ byte));
    }

    /// Decodes a few ascending rows, one by one.
    pub(crate) fn take_few(&self, column: usize, rows: &[u32]) -> Result<Vector> {
        debug_assert!(rows.is_sorted(), "rows to take do not ascend");
        let block_of = |row: &u32| *row as usize / BLOCK_ROWS;
        let push = |view: &Block<'_>, run: &[u32], out: &mut VectorBuilder| {
            run.iter().try_for_each(|row| view.push_to(*row as usize % BLOCK_ROWS, out))
        };
        let mut out = VectorBuilder::new(self.columns[column].meta.data_type);
        let mut left = rows;
        {
            let pages = self.slots.pin();
            for run in rows.chunk_by(|a, b| block_of(a) == block_of(b)) {
                let block = block_of(&run[0]);
                let Some(pinned) = self.pinned(&pages, column, block) else { break };
                let pushed = self
                    .open_pinned(pinned, column, block)
                    .and_then(|view| push(&view, run, &mut out));
                pushed.map_err(|error| self.locate_block(error, column, block))?;
                left = &left[run.len()..];
            }
        }
        let runs = || left.chunk_by(|a, b| block_of(a) == block_of(b));
        if !left.is_empty() {
            // Loads all missing blocks in one read.
            self.load(&runs().map(|run| (column, block_of(&run[0]))).collect::<Vec<_>>())?;
        }
        for run in runs() {
            let block = block_of(&run[0]);
            self.with_block(column, block, Purpose::Point, |view| push(view, run, &mut out))?;
        }
        debug_assert_eq!(out.len(), rows.len(), "rows taken one by one");
        Ok(out.finish())
    }

    /// Reads a block, pinned if cached: `read` must not read another block, because a second pin
    /// could wait for an eviction that waits for the first.
    #[inline]
    pub(crate) fn look<T>(
        &self,
        column: usize,
        block: usize,
        read: impl FnOnce(&Block<'_>) -> Result<T>,
    ) -> Result<T> {
        if block < self.columns[column].blocks() {
            let pages = self.slots.pin();
            if let Some(pinned) = self.pinned(&pages, column, block) {
                let result = self.open_pinned(pinned, column, block).and_then(|view| read(&view));
                return result.map_err(|error| self.locate_block(error, column, block));
            }
        }
        self.with_block(column, block, Purpose::Point, read)
    }

    /// The pages of a block, if cached.
    #[inline]
    pub(super) fn pinned<'a>(
        &self,
        pages: &'a Pages,
        column: usize,
        block: usize,
    ) -> Option<Pinned<'a>> {
        let entry = &self.columns[column];
        let dictionary = match entry.encodings[block].shares() {
            true => Some(&**pages.get(column, entry.blocks())?),
            false => None,
        };
        Some((pages.get(column, block)?, dictionary))
    }

    #[inline]
    pub(super) fn open_pinned<'a>(
        &self,
        (page, dictionary): Pinned<'a>,
        column: usize,
        block: usize,
    ) -> Result<Block<'a>> {
        self.open_bytes(
            &page.bytes,
            dictionary.map(|page| (&*page.bytes, &page.decoded)),
            column,
            block,
        )
    }
}
