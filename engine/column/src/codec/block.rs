//! The block of integers that all codecs share: its head, and the trait to read and change it.

use nacre_types::bytes::Write;
use nacre_types::{Error, Result, invariant};

pub(super) const HEAD_BYTES: usize = 12;
pub(super) const ENDS_EARLY: &str = "block of integers ends early";

/// The outcome of changing a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockChange {
    /// The block is changed.
    Done,
    /// The value to delete is absent.
    Absent,
    /// The block would become too long or have too many values; it is unchanged.
    NoRoom,
}

/// Compresses up to [`Codec::capacity`] ascending numbers, which may repeat, into a block.
pub trait Codec: Sync {
    /// Name in benchmarks.
    fn name(&self) -> &'static str;

    /// Maximum number of values in a block.
    fn capacity(&self) -> usize;

    /// Compresses ascending values, at most [`Codec::capacity`] of them.
    fn compress(&self, values: &[u32]) -> Vec<u8>;

    /// Appends all values.
    fn uncompress(&self, block: &[u8], out: &mut Vec<u32>) -> Result<()>;

    /// The value at a position, which must be in range.
    fn get(&self, block: &[u8], at: usize) -> Result<u32>;

    /// The position of the first value not below `value`; the number of values if all are below.
    /// Decodes no further than that.
    fn lower_bound(&self, block: &[u8], value: u32) -> Result<usize>;

    /// The sum of all values, without decoding them one by one if the codec supports it.
    fn sum(&self, block: &[u8]) -> Result<u64>;

    /// Number of values.
    fn len(&self, block: &[u8]) -> Result<usize> {
        Ok(Head::read(block)?.0.count)
    }

    /// The smallest value.
    fn min(&self, block: &[u8]) -> Result<Option<u32>> {
        let (head, _) = Head::read(block)?;
        Ok((head.count > 0).then_some(head.low))
    }

    /// The largest value.
    fn max(&self, block: &[u8]) -> Result<Option<u32>> {
        let (head, _) = Head::read(block)?;
        Ok((head.count > 0).then_some(head.high))
    }

    /// Appends a value that is not below the largest, if the block stays within `room` bytes.
    /// Changes only the end of the block, unless the codec needs another width.
    fn append(&self, block: &mut Vec<u8>, value: u32, room: usize) -> Result<BlockChange>;

    /// Inserts a value in order, before equal ones, if the block stays within `room` bytes.
    fn insert(&self, block: &mut Vec<u8>, value: u32, room: usize) -> Result<BlockChange> {
        let mut values = decoded(self, block)?;
        if values.len() >= self.capacity() {
            return Ok(BlockChange::NoRoom);
        }
        values.insert(values.partition_point(|v| *v < value), value);
        debug_assert!(values.is_sorted(), "values with {value} inserted do not ascend");
        Ok(replace(block, self.compress(&values), room))
    }

    /// Removes one occurrence of a value. The block may grow.
    fn delete(&self, block: &mut Vec<u8>, value: u32, room: usize) -> Result<BlockChange> {
        let at = self.lower_bound(block, value)?;
        if at >= self.len(block)? || self.get(block, at)? != value {
            return Ok(BlockChange::Absent);
        }
        let mut values = decoded(self, block)?;
        let removed = values.remove(at);
        debug_assert_eq!(removed, value, "value deleted at {at}");
        Ok(replace(block, self.compress(&values), room))
    }

    /// Splits the block into two of half the values each, the lower half first.
    fn split(&self, block: &[u8]) -> Result<(Vec<u8>, Vec<u8>)> {
        let values = decoded(self, block)?;
        let (low, high) = values.split_at(values.len() / 2);
        debug_assert!(low.last() <= high.first(), "halves of a block overlap");
        Ok((self.compress(low), self.compress(high)))
    }
}

/// All values, verified before they are compressed again: they ascend, and their bounds match the
/// head.
pub(super) fn decoded<C: Codec + ?Sized>(codec: &C, block: &[u8]) -> Result<Vec<u32>> {
    let mut values = Vec::with_capacity(codec.capacity());
    codec.uncompress(block, &mut values)?;
    let bounds = (codec.min(block)?, codec.max(block)?);
    match values.is_sorted() && bounds == (values.first().copied(), values.last().copied()) {
        true => Ok(values),
        false => Err(corrupt("values of a block of integers do not ascend")),
    }
}

pub(super) fn replace(block: &mut Vec<u8>, new: Vec<u8>, room: usize) -> BlockChange {
    debug_assert!(Head::read(&new).is_ok(), "a compressed block without a head");
    if new.len() > room {
        return BlockChange::NoRoom;
    }
    *block = new;
    BlockChange::Done
}

/// The head of every block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub count: usize,
    pub width: u32,
    pub low: u32,
    pub high: u32,
}

impl Head {
    /// The head for ascending values.
    pub fn of(values: &[u32], width: u32) -> Head {
        debug_assert!(values.is_sorted(), "values to compress do not ascend");
        debug_assert!(width <= 32, "a width of {width} bits");
        // An empty block has bounds 0.
        let (low, high) =
            (values.first().copied().unwrap_or(0), values.last().copied().unwrap_or(0));
        Head { count: values.len(), width, low, high }
    }

    /// Reads the head; returns it with the remaining bytes.
    pub fn read(block: &[u8]) -> Result<(Head, &[u8])> {
        let Some((&[c0, c1, width, 0, l0, l1, l2, l3, h0, h1, h2, h3], rest)) =
            block.split_first_chunk::<HEAD_BYTES>()
        else {
            return Err(corrupt(if block.len() < HEAD_BYTES {
                ENDS_EARLY
            } else {
                "block of integers has no head"
            }));
        };
        let count = u16::from_le_bytes([c0, c1]) as usize;
        let (low, high) =
            (u32::from_le_bytes([l0, l1, l2, l3]), u32::from_le_bytes([h0, h1, h2, h3]));
        if width > 32 || low > high {
            return Err(corrupt("impossible bounds of a block of integers"));
        }
        Ok((Head { count, width: width as u32, low, high }, rest))
    }

    /// Starts a block with this head, with room for `reserve` more bytes.
    pub fn start(self, reserve: usize) -> Vec<u8> {
        let Head { count, width, low, high } = self;
        invariant!(count <= u16::MAX as usize, "a block of {count} integers");
        invariant!(width <= 32, "a block with a width of {width} bits");
        invariant!(low <= high, "a block of integers from {low} to {high}");
        let mut out = Vec::with_capacity(HEAD_BYTES + reserve);
        out.put_u16(count as u16);
        out.extend_from_slice(&[width as u8, 0]);
        out.put_u32(low);
        out.put_u32(high);
        debug_assert_eq!(out.len(), HEAD_BYTES, "length of the head of a block of integers");
        out
    }

    /// Replaces the head of a block.
    pub fn put(self, block: &mut [u8]) -> Result<()> {
        invariant!(block.len() >= HEAD_BYTES, "a block of {} bytes has no head", block.len());
        if self.low > self.high {
            return Err(corrupt("impossible bounds of a block of integers"));
        }
        block[..HEAD_BYTES].copy_from_slice(&self.start(0));
        Ok(())
    }

    /// The head after appending one value. A value below the greatest is `corrupt`: callers compare
    /// it with bounds that they read from the block.
    pub fn appended(self, value: u32) -> Result<Head> {
        let low = if self.count == 0 { value } else { self.low };
        if self.count > 0 && value < self.high {
            return Err(corrupt("appended integer below the greatest of its block"));
        }
        Ok(Head { count: self.count + 1, low, high: value, ..self })
    }

    /// Fails if a block claims more values than its codec allows.
    pub fn at_most(self, capacity: usize) -> Result<Head> {
        if self.count > capacity {
            Err(corrupt("block of integers has too many values"))
        } else {
            Ok(self)
        }
    }
}

#[cold]
pub(super) fn corrupt(what: &str) -> Error {
    Error::corrupt(what)
}

#[cold]
pub(super) fn out_of_range() -> Error {
    corrupt("position outside its block of integers")
}
