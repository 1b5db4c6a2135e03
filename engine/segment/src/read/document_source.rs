//! Where the values of a document come from: blocks in the cache, blocks that are loaded, or decoded
//! rows.

use super::cache::{Pages, Purpose};
use super::opened::Opened;
use nacre_column::block::Block;
use nacre_column::{Form, Scalar, Vector};
use nacre_format::document::Source;
use nacre_types::limits::BLOCK_ROWS;
use nacre_types::{Error, Result};
use std::cell::{Cell, RefCell};

/// Blocks of a document that stay open while it is put together: elements of an array are read from
/// one block after the other, and then again.
const OPEN_BLOCKS: usize = 32;

/// Blocks in the cache.
pub(super) struct Cached<'a> {
    opened: &'a Opened,
    pages: &'a Pages,
    /// The first sub-column.
    first: usize,
    /// Opened blocks: column, number and block, in the place of the column.
    open: RefCell<Vec<Option<(usize, usize, Block<'a>)>>>,
    /// Whether a block was not there.
    missed: Cell<bool>,
}

impl<'a> Cached<'a> {
    /// The cached blocks of `count` sub-columns.
    pub fn new(opened: &'a Opened, pages: &'a Pages, first: usize, count: usize) -> Cached<'a> {
        debug_assert!(first + count <= opened.columns.len(), "sub-columns {first}+{count}");
        let open = (0..count.min(OPEN_BLOCKS)).map(|_| None).collect();
        Cached { opened, pages, first, open: RefCell::new(open), missed: Cell::new(false) }
    }

    /// Whether a block was not there.
    pub fn missed(&self) -> bool {
        self.missed.get()
    }

    /// The value in a row of any column.
    pub fn value(&self, column: usize, row: usize) -> Result<Scalar<'a>> {
        self.block(column, row / BLOCK_ROWS)?.get(row % BLOCK_ROWS)
    }

    fn block(&self, column: usize, block: usize) -> Result<Block<'a>> {
        let inside = block < self.opened.columns[column].blocks();
        let pinned = inside.then(|| self.opened.pinned(self.pages, column, block)).flatten();
        match pinned {
            Some(pinned) => self.opened.open_pinned(pinned, column, block),
            None => {
                self.missed.set(true);
                Err(Error::corrupt("a block that is not in memory"))
            }
        }
    }
}

impl Source for Cached<'_> {
    fn get(&self, column: usize, row: usize) -> Result<Scalar<'_>> {
        let block = row / BLOCK_ROWS;
        let mut open = self.open.borrow_mut();
        let place = column % OPEN_BLOCKS;
        if let Some((of, number, view)) = &open[place]
            && (*of, *number) == (column, block)
        {
            return view.get(row % BLOCK_ROWS);
        }
        let view = self.block(self.first + column, block)?;
        let value = view.get(row % BLOCK_ROWS);
        open[place] = Some((column, block, view));
        value
    }
}

/// Blocks that are loaded where they are not in the cache.
pub(super) struct Loaded<'a> {
    pub opened: &'a Opened,
    /// The first sub-column.
    pub first: usize,
}

impl Source for Loaded<'_> {
    fn get(&self, column: usize, row: usize) -> Result<Scalar<'_>> {
        let block = row / BLOCK_ROWS;
        self.opened.with_block(self.first + column, block, Purpose::Scan, |block| {
            block.get(row % BLOCK_ROWS).map(Scalar::into_owned)
        })
    }
}

/// Sub-columns decoded for a range of rows each, with the first of them.
pub(super) struct Decoded(pub Vec<(usize, Vector)>);

impl Source for Decoded {
    #[inline]
    fn get(&self, column: usize, row: usize) -> Result<Scalar<'_>> {
        let (first, vector) = &self.0[column];
        let row = row.checked_sub(*first).filter(|row| *row < vector.len());
        let row = row.ok_or_else(|| Error::corrupt("elements of another array"))?;
        if vector.is_null(row) {
            return Ok(Scalar::Null);
        }
        Ok(match vector.form() {
            Form::Flat(values) => Scalar::at(values, row),
            Form::Constant(value) => Scalar::at(value, 0),
            Form::Dictionary { codes, values } => Scalar::at(values, codes[row] as usize),
        })
    }
}
