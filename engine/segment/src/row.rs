//! One row: blocks that are in memory are read where they lie, under one pin for all of its columns.
//!
//! What a row costs is waiting for memory: each column has a slot, a page, a block's head and a place inside it, each
//! found through the one before. Columns do not depend on each other, so each of these steps is done for all of them
//! before the next, and the processor waits for all columns at once.

use crate::cache::{Page, Pages};
use crate::segment::Segment;
use nacre_column::block::Block;
use nacre_column::encoding::Encoding;
use nacre_column::{Vector, VectorBuilder};
use nacre_types::limits::BLOCK_ROWS;
use nacre_types::{Error, Result, Value};

/// Columns that are looked at together.
const TOGETHER: usize = 8;

/// The pages of a block: its own and, if it needs one, its dictionary's.
type Pinned<'a> = (&'a Page, Option<&'a Page>);

impl Segment {
    /// Appends a row's values of `count` columns; `id` says which, by their place among them, and `absent` what the value
    /// is of one that the file does not have. Decodes nothing else than it must.
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
        for start in (0..count).step_by(TOGETHER) {
            let mut columns = [None; TOGETHER];
            let columns = &mut columns[..TOGETHER.min(count - start)];
            (start..)
                .zip(&mut *columns)
                .for_each(|(at, column)| *column = self.column_index(id(at)));
            if !self.values_in_memory(row, columns, start, absent, out)? {
                let missing: Vec<(usize, usize)> =
                    columns.iter().flatten().map(|c| (*c, row / BLOCK_ROWS)).collect();
                self.load(&missing)?;
                for (at, column) in (start..).zip(&*columns) {
                    out.push(
                        column.map_or_else(|| Ok(absent(at)), |column| self.get(column, row))?,
                    );
                }
            }
        }
        Ok(())
    }

    /// At most [`TOGETHER`] columns, unless a block of theirs is not in memory.
    fn values_in_memory(
        &self,
        row: usize,
        columns: &[Option<usize>],
        start: usize,
        absent: &dyn Fn(usize) -> Value,
        out: &mut Vec<Value>,
    ) -> Result<bool> {
        let (block, row) = (row / BLOCK_ROWS, row % BLOCK_ROWS);
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

    /// Makes memory bring the heads of a block of the first columns, as far as they are in memory, in the time until they
    /// are read.
    pub(crate) fn touch(&self, block: usize) {
        let pages = self.slots.pin();
        let heads = (0..self.columns.len().min(TOGETHER))
            .filter_map(|column| pages.get(column, block)?.bytes.first());
        std::hint::black_box(heads.fold(0, |touched, byte| touched ^ byte));
    }

    /// Some rows, which ascend, one by one.
    pub(crate) fn take_few(&self, column: usize, rows: &[u32]) -> Result<Vector> {
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
            // What is missing comes in one read.
            self.load(&runs().map(|run| (column, block_of(&run[0]))).collect::<Vec<_>>())?;
        }
        for run in runs() {
            self.with_block(column, block_of(&run[0]), |view| push(view, run, &mut out))?;
        }
        Ok(out.finish())
    }

    /// Looks into a block, which stays pinned meanwhile if it is in memory: `read` must not look into another.
    #[inline]
    pub(crate) fn look<T>(
        &self,
        column: usize,
        block: usize,
        read: impl FnOnce(&Block<'_>) -> Result<T>,
    ) -> Result<T> {
        if block < self.blocks() {
            let pages = self.slots.pin();
            if let Some(pinned) = self.pinned(&pages, column, block) {
                let result = self.open_pinned(pinned, column, block).and_then(|view| read(&view));
                return result.map_err(|error| self.locate_block(error, column, block));
            }
        }
        self.with_block(column, block, read)
    }

    #[inline]
    fn pinned<'a>(&self, pages: &'a Pages, column: usize, block: usize) -> Option<Pinned<'a>> {
        let dictionary = match self.columns[column].encodings[block] {
            Encoding::Dictionary => Some(&**pages.get(column, self.blocks())?),
            _ => None,
        };
        Some((pages.get(column, block)?, dictionary))
    }

    #[inline]
    fn open_pinned<'a>(
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
