//! Reads and writes at an offset of a file.

use std::fs::File;
use std::io;

/// Fills a buffer from an offset on. Errors: `UnexpectedEof` if the file ends before.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset);
    #[cfg(not(unix))]
    return io::Read::read_exact(&mut positioned(file, offset)?, buffer);
}

/// Writes all bytes at an offset.
pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::write_all_at(file, bytes, offset);
    #[cfg(not(unix))]
    return io::Write::write_all(&mut positioned(file, offset)?, bytes);
}

/// The file at an offset. There is one thread, and nothing else uses the position of a file.
#[cfg(not(unix))]
fn positioned(mut file: &File, offset: u64) -> io::Result<&File> {
    io::Seek::seek(&mut file, io::SeekFrom::Start(offset))?;
    Ok(file)
}
