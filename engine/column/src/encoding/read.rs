//! Bounds-checked reads of untrusted bytes. Every failure is an error of kind `corrupt`.

use nacre_types::{Error, Result};

#[cold]
pub(crate) fn corrupt(what: &str) -> Error {
    Error::corrupt(what)
}

/// `bytes[start..start + len]`.
#[inline]
pub(crate) fn slice<'a>(bytes: &'a [u8], start: usize, len: usize, what: &str) -> Result<&'a [u8]> {
    match bytes.get(start..).and_then(|rest| rest.get(..len)) {
        Some(slice) => Ok(slice),
        None => Err(corrupt(what)),
    }
}

/// `N` bytes from `at`.
#[inline]
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize, what: &str) -> Result<[u8; N]> {
    match bytes.get(at..).and_then(|rest| rest.first_chunk::<N>()) {
        Some(array) => Ok(*array),
        None => Err(corrupt(what)),
    }
}

/// A little-endian `u32` at `at`.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize, what: &str) -> Result<usize> {
    Ok(u32::from_le_bytes(array_at(bytes, at, what)?) as usize)
}
