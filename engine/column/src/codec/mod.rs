//! Integer codecs: small compressed blocks of ascending 32-bit numbers behind one trait (Lemire and
//! Rupp, *Upscaledb: Efficient Integer-Key Compression in a Key-Value Store Using SIMD
//! Instructions*, Information Systems 2017). `docs/decisions/0009-integer-codecs.md` explains the
//! choice of codecs.
//!
//! A block is a head of 12 bytes (number of values `u16`, width in bits `u8`, zero `u8`, smallest
//! value `u32`, largest value `u32`), then the codec's representation of the values. A block does
//! not name its codec: the owner of many blocks stores the codec once.
//!
//! A block has no fixed capacity: [`Codec::insert`] tries whether one more value fits. Deletion can
//! grow a block of packed differences: 1 to 8 takes one bit each, but without the 4 two bits each.
//! Hence both operations take the available room and may return [`BlockChange::NoRoom`]; the caller
//! then splits the block ([`Codec::split`]) or provides more room. Bytes are untrusted.

mod block;
mod bp128;
mod frame;
pub mod postings;
mod stream_vbyte;
mod variable_byte;

#[cfg(test)]
mod conformance;

pub use block::{BlockChange, Codec};
pub use bp128::Bp128;
pub use frame::{FrameOfReference, SimdFrameOfReference};
pub use stream_vbyte::StreamVByte;
pub use variable_byte::VariableByte;

/// Every codec, for test suites and benchmarks.
pub const CODECS: [&dyn Codec; 5] =
    [&VariableByte, &StreamVByte, &FrameOfReference::NEW, &SimdFrameOfReference::NEW, &Bp128];
