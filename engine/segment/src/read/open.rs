//! Reads the footer of a file; magic, version, trailer and checksum are checked first.

use nacre_format::footer::{self, Footer, MAGIC, TRAILER_BYTES, version_of};
use nacre_host::{LocalFile, ReadRange, waits};
use nacre_types::bytes::Reader;
use nacre_types::checksum::checksum;
use nacre_types::{Error, Result};

/// Most bytes first read from the end of a file: nearly always the whole footer.
const TAIL_BYTES: u64 = 64 << 10;
/// Bytes of a footer without its columns, and more for sub-columns.
const HEAD_BYTES: u64 = 16 << 10;
/// Bytes in a footer for a block of a column, on average, in nearly all files.
const BLOCK_BYTES: u64 = 64;
/// Most bytes first read of a file about which more is known.
const LONGEST_TAIL_BYTES: u64 = 512 << 10;

/// How a footer is read.
pub(super) struct FooterRead {
    /// Bytes first read from the end of the file.
    tail_bytes: u64,
    /// Whether the first bytes of the file are compared even if they have to be fetched.
    fetches_start: bool,
}

impl FooterRead {
    /// All of it.
    pub fn whole() -> FooterRead {
        FooterRead { tail_bytes: TAIL_BYTES, fetches_start: true }
    }

    /// As little as it takes, of a file with these numbers of blocks and columns.
    pub fn lean(blocks: usize, columns: usize) -> FooterRead {
        let tail_bytes = HEAD_BYTES + (blocks * columns) as u64 * BLOCK_BYTES;
        FooterRead { tail_bytes: tail_bytes.min(LONGEST_TAIL_BYTES), fetches_start: false }
    }
}

/// Reads the footer of a file of `bytes` bytes, and returns it with its checksum.
pub(super) fn read_footer(
    file: &dyn LocalFile,
    bytes: u64,
    how: &FooterRead,
) -> Result<(Footer, u64)> {
    let shortest = (MAGIC.len() + TRAILER_BYTES) as u64;
    if bytes < shortest {
        return Err(Error::corrupt(format!(
            "file has {bytes} bytes, fewer than the shortest segment has"
        )));
    }
    let mut head = MAGIC;
    let mut tail = vec![0; bytes.min(how.tail_bytes) as usize];
    let tail_offset = bytes - tail.len() as u64;
    let start = 0..MAGIC.len() as u64;
    let has_head = how.fetches_start || file.absent(std::slice::from_ref(&start)).is_empty();
    waits::read(|| {
        let mut ranges = vec![ReadRange { offset: tail_offset, buffer: &mut tail }];
        if has_head {
            ranges.push(ReadRange { offset: 0, buffer: &mut head });
        }
        file.read(&mut ranges)
    })?;
    debug_assert!(tail.len() >= TRAILER_BYTES, "a tail of {} bytes", tail.len());
    let (rest, trailer) = tail.split_at(tail.len() - TRAILER_BYTES);
    let mut reader = Reader::new(trailer, "trailer");
    let (offset, length, expected) = (reader.u64()?, reader.u64()?, reader.u64()?);
    let first = has_head.then(|| version_of(&head, "first")).transpose()?;
    let version = version_of(reader.take(MAGIC.len())?, "last")?;
    if first.is_some_and(|first| first != version) {
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
