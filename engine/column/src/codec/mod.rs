//! Integer codecs: small compressed blocks of ascending 32-bit numbers behind one trait (Lemire and
//! Rupp, *Upscaledb: Efficient Integer-Key Compression in a Key-Value Store Using SIMD Instructions*,
//! Information Systems 2017). `docs/decisions/0009-integer-codecs.md` says which one is used where,
//! and why.
//!
//! A block is a head of 12 bytes (number of values `u16`, width in bits `u8`, zero `u8`, least value
//! `u32`, greatest value `u32`), then what the codec makes of the values. Nothing in a block names its
//! codec: an owner of many blocks keeps the codec once.
//!
//! A block has no fixed number of values: [`Codec::insert`] tries whether one more fits. A deletion may
//! need more bytes than there were where differences are packed: 1 to 8 takes one bit each, without the
//! 4 two bits each. So both changes are given the room there is and may return [`BlockChange::NoRoom`]; the
//! caller then splits the block ([`Codec::split`]) or finds more room. Bytes are untrusted.

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
