//! Reads the footer of a file; magic, version, trailer and checksum are checked first.

use crate::footer::{self, Footer, MAGIC, TRAILER_BYTES, version_of};
use nacre_host::{LocalFile, ReadRange, waits};
use nacre_types::bytes::Reader;
use nacre_types::checksum::checksum;
use nacre_types::{Error, Result};

/// Bytes first read from the end of a file: nearly always the whole footer.
const TAIL_BYTES: u64 = 64 << 10;

/// Reads the footer of a file of `bytes` bytes, and returns it with its checksum.
pub(super) fn read_footer(file: &dyn LocalFile, bytes: u64) -> Result<(Footer, u64)> {
    let shortest = (MAGIC.len() + TRAILER_BYTES) as u64;
    if bytes < shortest {
        return Err(Error::corrupt(format!(
            "file has {bytes} bytes, fewer than the shortest segment has"
        )));
    }
    let mut head = MAGIC;
    let mut tail = vec![0; bytes.min(TAIL_BYTES) as usize];
    let tail_offset = bytes - tail.len() as u64;
    waits::read(|| {
        file.read(&mut [
            ReadRange { offset: 0, buffer: &mut head },
            ReadRange { offset: tail_offset, buffer: &mut tail },
        ])
    })?;
    debug_assert!(tail.len() >= TRAILER_BYTES, "a tail of {} bytes", tail.len());
    let (rest, trailer) = tail.split_at(tail.len() - TRAILER_BYTES);
    let mut reader = Reader::new(trailer, "trailer");
    let (offset, length, expected) = (reader.u64()?, reader.u64()?, reader.u64()?);
    let version = version_of(&head, "first")?;
    if version_of(reader.take(MAGIC.len())?, "last")? != version {
        return Err(Error::corrupt("first and last bytes name different format versions"));
    }
    let end = bytes - TRAILER_BYTES as u64;
    if offset < MAGIC.len() as u64 || offset.checked_add(length) != Some(end) {
        return Err(Error::corrupt("trailer: footer does not end where the trailer starts"));
    }
    let long;
    let footer = match offset.checked_sub(tail_offset) {
        Some(at) => &rest[at as usize..],
        None => {
            debug_assert!(offset + length <= bytes, "a footer beyond the end of its file");
            let mut buffer = vec![0; length as usize];
            waits::read(|| file.read(&mut [ReadRange { offset, buffer: &mut buffer }]))?;
            long = buffer;
            &long[..]
        }
    };
    if checksum(footer) != expected {
        return Err(Error::corrupt(format!("footer at byte {offset}: checksum does not match")));
    }
    Ok((footer::decode(footer, offset, version)?, expected))
}
