//! Writes large files at the pace of the drive.
//!
//! The system keeps written bytes in memory until a sync, which then writes many megabytes at once; a sync of
//! another file, such as the log's, waits behind them. So a piece of a growing file is given to the drive as
//! soon as it is there, and the piece before is waited for: at most two are on their way.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a piece.
const PIECE_BYTES: u64 = 1 << 20;

/// How far a file is given to the drive.
#[derive(Default)]
pub(crate) struct Pace {
    /// Before this byte everything was given to the drive.
    given: AtomicU64,
    /// Before this byte everything was waited for.
    waited: AtomicU64,
}

impl Pace {
    /// To be called after a write that ends at byte `end`.
    ///
    /// Errors: those of writing. The file cannot be relied on after one, as after a failed sync.
    pub fn wrote(&self, file: &File, end: u64) -> io::Result<()> {
        let Some((now, before)) = self.due(end) else { return Ok(()) };
        give(file, now, libc::SYNC_FILE_RANGE_WRITE)?;
        let wait = libc::SYNC_FILE_RANGE_WAIT_BEFORE
            | libc::SYNC_FILE_RANGE_WRITE
            | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        if before.is_empty() { Ok(()) } else { give(file, before, wait) }
    }

    /// The file is `len` bytes long now.
    pub fn truncated(&self, len: u64) {
        self.given.fetch_min(len, Ordering::AcqRel);
        self.waited.fetch_min(len, Ordering::AcqRel);
    }

    /// The bytes to give to the drive, and those to wait for.
    fn due(&self, end: u64) -> Option<(Range<u64>, Range<u64>)> {
        let given = self.given.load(Ordering::Acquire);
        if end < given.saturating_add(PIECE_BYTES) {
            return None;
        }
        // Another thread that writes the same file may have been first.
        self.given.compare_exchange(given, end, Ordering::AcqRel, Ordering::Acquire).ok()?;
        let waited = self.waited.swap(given, Ordering::AcqRel);
        Some((given..end, waited.min(given)..given))
    }
}

fn give(file: &File, bytes: Range<u64>, flags: libc::c_uint) -> io::Result<()> {
    let (Ok(start), Ok(len)) = (bytes.start.try_into(), (bytes.end - bytes.start).try_into())
    else {
        return Ok(());
    };
    // SAFETY: the call takes numbers only, and the descriptor is open.
    if unsafe { libc::sync_file_range(file.as_raw_fd(), start, len, flags) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        // What a later sync of this descriptor would not tell any more.
        Some(libc::EIO | libc::ENOSPC | libc::EDQUOT) => Err(error),
        // Some file systems do not have it, and nothing depends on it.
        _ => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_given_and_the_one_before_waited_for() {
        let pace = Pace::default();
        assert_eq!(pace.due(PIECE_BYTES - 1), None);
        assert_eq!(pace.due(PIECE_BYTES + 5), Some((0..PIECE_BYTES + 5, 0..0)));
        assert_eq!(pace.due(2 * PIECE_BYTES), None);
        let second = PIECE_BYTES + 5..3 * PIECE_BYTES;
        assert_eq!(pace.due(3 * PIECE_BYTES), Some((second.clone(), 0..PIECE_BYTES + 5)));
        pace.truncated(10);
        assert_eq!(pace.due(PIECE_BYTES), None);
        assert_eq!(pace.due(PIECE_BYTES + 10), Some((10..PIECE_BYTES + 10, 10..10)));
    }

    #[test]
    fn a_file_is_written_as_without() {
        let path = std::env::temp_dir().join(format!("nacre-pace-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        let pace = Pace::default();
        let bytes: Vec<u8> = (0..5 * PIECE_BYTES).map(|at| (at / 1_000) as u8).collect();
        for (at, part) in bytes.chunks(300_000).enumerate() {
            std::os::unix::fs::FileExt::write_all_at(&file, part, at as u64 * 300_000).unwrap();
            pace.wrote(&file, (at * 300_000 + part.len()) as u64).unwrap();
        }
        assert!(std::fs::read(&path).unwrap() == bytes);
        assert!(pace.waited.load(Ordering::Acquire) >= 3 * PIECE_BYTES);
        std::fs::remove_file(&path).unwrap();
    }
}
