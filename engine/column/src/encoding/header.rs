//! The eight-byte header of every block: encoding (`u8`), flags (`u8`), two zero bytes, number of
//! rows (`u32`).

use super::read::{array_at, corrupt};
use nacre_types::bytes::Write;
use nacre_types::{Result, invariant};

/// Length of a header in bytes. A multiple of 8, so that the body stays aligned.
pub(crate) const HEADER_BYTES: usize = 8;
const _: () = assert!(HEADER_BYTES.is_multiple_of(8));
/// Flag: a validity bitmap follows.
pub(crate) const HAS_VALIDITY: u8 = 1;
/// Flag: every row is null and nothing follows.
pub(crate) const ALL_NULL: u8 = 2;

/// Starts a block with a header.
pub(crate) fn write(encoding: u8, flags: u8, rows: usize) -> Vec<u8> {
    invariant!(flags <= ALL_NULL, "block header with the flags {flags}");
    invariant!(rows <= u32::MAX as usize, "block header with {rows} rows");
    let mut out = Vec::with_capacity(HEADER_BYTES);
    out.extend_from_slice(&[encoding, flags, 0, 0]);
    out.put_u32(rows as u32);
    debug_assert_eq!(out.len(), HEADER_BYTES, "length of a block header");
    out
}

/// Checks the header against the directory's description of the block; returns its flags.
pub(crate) fn read(bytes: &[u8], encoding: u8, rows: usize) -> Result<u8> {
    let [kind, flags, 0, 0, r0, r1, r2, r3] =
        array_at::<HEADER_BYTES>(bytes, 0, "block header ends early")?
    else {
        return Err(corrupt("reserved bytes of the block header are not zero"));
    };
    if kind != encoding || u32::from_le_bytes([r0, r1, r2, r3]) as usize != rows {
        return Err(corrupt("block header disagrees with the directory"));
    }
    Ok(flags)
}
