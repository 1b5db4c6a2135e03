//! Integer codecs: one family of small compressed blocks of ascending 32-bit numbers behind one trait,
//! after Lemire and Rupp ("Upscaledb: Efficient integer-key compression in a key-value store using
//! SIMD instructions", 2017). `docs/decisions/0009-integer-codecs.md` says which is used where, and why.
//!
//! A block is a head of 12 bytes (number of values `u16`, width in bits `u8`, zero `u8`, least value
//! `u32`, greatest value `u32`), then what the codec makes of the values. Blocks belong to their
//! codec: nothing in them says which one it was. Whoever keeps many of them keeps the codec once.
//!
//! A block has no fixed number of values: whether one more fits is tried ([`Codec::insert`]). Deleting
//! may need more bytes than were there, where differences are packed: 1 to 8 take one bit each, without
//! the 4 they take two. So both changes name the room there is and may answer [`Change::NoRoom`],
//! upon which the caller splits the block ([`Codec::split`]) or finds more room. Bytes are untrusted.

mod bp128;
mod frame;
pub mod postings;
mod stream_vbyte;
mod variable_byte;

#[cfg(test)]
mod conformance;

pub use bp128::Bp128;
pub use frame::{FrameOfReference, SimdFrameOfReference};
pub use stream_vbyte::StreamVByte;
pub use variable_byte::VariableByte;

use nacre_types::bytes::Write;
use nacre_types::{Error, Result};

const HEAD_BYTES: usize = 12;
const ENDS_EARLY: &str = "block of integers ends early";

/// Every codec, for suites and measurements.
pub const CODECS: [&dyn Codec; 5] =
    [&VariableByte, &StreamVByte, &FrameOfReference::NEW, &SimdFrameOfReference::NEW, &Bp128];

/// What became of a change to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is made.
    Done,
    /// The value to be deleted is not there.
    Absent,
    /// The block would be too long, or have too many values; it is as it was.
    NoRoom,
}

/// A way to compress up to [`Codec::capacity`] ascending numbers, repeated ones included, into a block.
pub trait Codec: Sync {
    /// As measurements show it.
    fn name(&self) -> &'static str;

    /// Values of one block at most.
    fn capacity(&self) -> usize;

    /// The block of some ascending values, at most as many as the capacity.
    fn compress(&self, values: &[u32]) -> Vec<u8>;

    /// Appends all values.
    fn uncompress(&self, block: &[u8], out: &mut Vec<u32>) -> Result<()>;

    /// The value at a position, which must exist.
    fn get(&self, block: &[u8], at: usize) -> Result<u32>;

    /// The position of the first value that is not below `value`; the number of values if all are.
    /// Decodes no more than it passes.
    fn lower_bound(&self, block: &[u8], value: u32) -> Result<usize>;

    /// Sum of all values, without making them one by one where the codec can.
    fn sum(&self, block: &[u8]) -> Result<u64>;

    /// Number of values.
    fn len(&self, block: &[u8]) -> Result<usize> {
        Ok(Head::read(block)?.0.count)
    }

    /// The least value.
    fn min(&self, block: &[u8]) -> Result<Option<u32>> {
        let (head, _) = Head::read(block)?;
        Ok((head.count > 0).then_some(head.low))
    }

    /// The greatest value.
    fn max(&self, block: &[u8]) -> Result<Option<u32>> {
        let (head, _) = Head::read(block)?;
        Ok((head.count > 0).then_some(head.high))
    }

    /// Adds a value that is not below the greatest one, if the block stays within `room` bytes. Touches
    /// the end of the block only, unless the codec must change its width.
    fn append(&self, block: &mut Vec<u8>, value: u32, room: usize) -> Result<Change>;

    /// Adds a value where it belongs, before equal ones, if the block stays within `room` bytes.
    fn insert(&self, block: &mut Vec<u8>, value: u32, room: usize) -> Result<Change> {
        let mut values = decoded(self, block)?;
        if values.len() >= self.capacity() {
            return Ok(Change::NoRoom);
        }
        values.insert(values.partition_point(|v| *v < value), value);
        Ok(replace(block, self.compress(&values), room))
    }

    /// Removes one occurrence of a value. May need more bytes than the block has.
    fn delete(&self, block: &mut Vec<u8>, value: u32, room: usize) -> Result<Change> {
        let at = self.lower_bound(block, value)?;
        if at >= self.len(block)? || self.get(block, at)? != value {
            return Ok(Change::Absent);
        }
        let mut values = decoded(self, block)?;
        values.remove(at);
        Ok(replace(block, self.compress(&values), room))
    }

    /// Two blocks of half the values each, the lower ones first.
    fn split(&self, block: &[u8]) -> Result<(Vec<u8>, Vec<u8>)> {
        let values = decoded(self, block)?;
        let (low, high) = values.split_at(values.len() / 2);
        Ok((self.compress(low), self.compress(high)))
    }
}

/// All values, as they must be to be compressed again: ascending, within the bounds of the head.
fn decoded<C: Codec + ?Sized>(codec: &C, block: &[u8]) -> Result<Vec<u32>> {
    let mut values = Vec::with_capacity(codec.capacity());
    codec.uncompress(block, &mut values)?;
    let bounds = (codec.min(block)?, codec.max(block)?);
    match values.is_sorted() && bounds == (values.first().copied(), values.last().copied()) {
        true => Ok(values),
        false => Err(corrupt("block of integers is not in order")),
    }
}

fn replace(block: &mut Vec<u8>, new: Vec<u8>, room: usize) -> Change {
    if new.len() > room {
        return Change::NoRoom;
    }
    *block = new;
    Change::Done
}

/// What every block begins with.
#[derive(Clone, Copy, Debug)]
struct Head {
    count: usize,
    width: u32,
    low: u32,
    high: u32,
}

impl Head {
    /// Of ascending values.
    fn of(values: &[u32], width: u32) -> Head {
        debug_assert!(values.is_sorted());
        let (low, high) =
            (values.first().copied().unwrap_or(0), values.last().copied().unwrap_or(0));
        Head { count: values.len(), width, low, high }
    }

    fn read(block: &[u8]) -> Result<(Head, &[u8])> {
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
            return Err(corrupt("block of integers with impossible bounds"));
        }
        Ok((Head { count, width: width as u32, low, high }, rest))
    }

    fn start(self, reserve: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEAD_BYTES + reserve);
        out.put_u16(self.count as u16);
        out.extend_from_slice(&[self.width as u8, 0]);
        out.put_u32(self.low);
        out.put_u32(self.high);
        out
    }

    /// Replaces the head of a block that has one.
    fn put(self, block: &mut [u8]) {
        if let Some(head) = block.get_mut(..HEAD_BYTES) {
            head.copy_from_slice(&self.start(0));
        }
    }

    /// With one more value at the end.
    fn appended(self, value: u32) -> Head {
        let low = if self.count == 0 { value } else { self.low };
        Head { count: self.count + 1, low, high: value, ..self }
    }

    /// Fails where a block claims more values than its codec puts in one.
    fn at_most(self, capacity: usize) -> Result<Head> {
        if self.count > capacity {
            Err(corrupt("block of integers has too many values"))
        } else {
            Ok(self)
        }
    }
}

#[cold]
fn corrupt(what: &str) -> Error {
    Error::corrupt(what)
}

#[cold]
fn out_of_range() -> Error {
    corrupt("position outside its block of integers")
}
