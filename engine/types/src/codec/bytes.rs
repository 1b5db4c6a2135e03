//! Little-endian reading and writing of the stored formats. Reads are bounds-checked and return
//! `corrupt` errors.

use crate::{Error, Result};

/// Appends fixed-width and length-prefixed fields to a buffer.
pub trait Write {
    /// One byte.
    fn put_u8(&mut self, v: u8);
    /// Two bytes, little-endian.
    fn put_u16(&mut self, v: u16);
    /// Four bytes, little-endian.
    fn put_u32(&mut self, v: u32);
    /// Eight bytes, little-endian.
    fn put_u64(&mut self, v: u64);
    /// Sixteen bytes, little-endian.
    fn put_i128(&mut self, v: i128);
    /// LEB128, one to ten bytes.
    fn put_varint(&mut self, v: u64);
    /// A varint length, then the bytes.
    fn put_bytes(&mut self, v: &[u8]);
}

impl Write for Vec<u8> {
    fn put_u8(&mut self, v: u8) {
        self.push(v);
    }
    fn put_u16(&mut self, v: u16) {
        self.extend_from_slice(&v.to_le_bytes());
    }
    fn put_u32(&mut self, v: u32) {
        self.extend_from_slice(&v.to_le_bytes());
    }
    fn put_u64(&mut self, v: u64) {
        self.extend_from_slice(&v.to_le_bytes());
    }
    fn put_i128(&mut self, v: i128) {
        self.extend_from_slice(&v.to_le_bytes());
    }
    fn put_varint(&mut self, mut v: u64) {
        while v >= 0x80 {
            self.push((v as u8) | 0x80);
            v >>= 7;
        }
        self.push(v as u8);
    }
    fn put_bytes(&mut self, v: &[u8]) {
        self.put_varint(v.len() as u64);
        self.extend_from_slice(v);
    }
}

/// Reads fields written by [`Write`].
#[derive(Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    what: &'static str,
}

impl<'a> Reader<'a> {
    /// Starts at the front of `bytes`; `what` names them in errors.
    pub fn new(bytes: &'a [u8], what: &'static str) -> Reader<'a> {
        Reader { bytes, at: 0, what }
    }

    /// Bytes consumed so far.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Bytes left.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Builds a `corrupt` error that names the bytes being read and the offset.
    #[cold]
    pub fn corrupt(&self, why: &str) -> Error {
        Error::corrupt(format!("{}: {why} at byte {}", self.what, self.at))
    }

    /// Takes the next `n` bytes.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        match self.bytes.get(self.at..).and_then(|rest| rest.get(..n)) {
            Some(slice) => {
                self.at += n;
                Ok(slice)
            }
            None => Err(self.corrupt("ends early")),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }
    /// Two bytes.
    pub fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }
    /// Four bytes.
    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }
    /// Eight bytes.
    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }
    /// Sixteen bytes.
    pub fn i128(&mut self) -> Result<i128> {
        Ok(i128::from_le_bytes(self.array()?))
    }
    /// LEB128.
    pub fn varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            if shift == 63 && byte > 1 {
                break;
            }
            value |= ((byte & 0x7f) as u64) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.corrupt("varint too long"))
    }
    /// A varint that must be at most `max`.
    pub fn count(&mut self, max: usize) -> Result<usize> {
        match usize::try_from(self.varint()?) {
            Ok(n) if n <= max => Ok(n),
            _ => Err(self.corrupt("count too large")),
        }
    }
    /// A varint length, then the bytes.
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let n = self.count(self.remaining())?;
        self.take(n)
    }
    /// Length-prefixed UTF-8.
    pub fn text(&mut self) -> Result<&'a str> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).map_err(|_| self.corrupt("not UTF-8"))
    }
    /// Returns an error unless everything was read.
    pub fn finish(&self) -> Result<()> {
        if self.remaining() == 0 { Ok(()) } else { Err(self.corrupt("trailing bytes")) }
    }
}
