//! Reads a file front to back through a window. Recovery needs memory for one window or one record,
//! never for a whole file, and never for a length beyond the file's size.

use nacre_host::{LocalFile, ReadRange};
use nacre_types::{Result, invariant};

/// Size of a read, in bytes.
const WINDOW_BYTES: u64 = 1 << 20;

pub(crate) struct WindowReader<'a> {
    file: &'a dyn LocalFile,
    len: u64,
    window: Vec<u8>,
    /// Offset of the window in the file.
    start: u64,
}

impl<'a> WindowReader<'a> {
    pub(crate) fn new(file: &'a dyn LocalFile) -> Result<WindowReader<'a>> {
        Ok(WindowReader { file, len: file.len()?, window: Vec::new(), start: 0 })
    }

    /// Length of the file when it was opened.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Returns exactly `count` bytes at `offset`; `None`, without allocating, if the file ends
    /// earlier.
    pub(crate) fn bytes(&mut self, offset: u64, count: usize) -> Result<Option<&[u8]>> {
        match offset.checked_add(count as u64) {
            Some(end) if end <= self.len => {}
            _ => return Ok(None),
        }
        let available = self.at_least(offset, count)?;
        Ok(available.get(..count))
    }

    /// The buffered bytes from `offset` on: at least `count`, or all up to the end of the file.
    pub(crate) fn at_least(&mut self, offset: u64, count: usize) -> Result<&[u8]> {
        let left = self.len.saturating_sub(offset);
        let wanted = left.min(count as u64) as usize;
        let held = offset
            .checked_sub(self.start)
            .filter(|skip| skip + wanted as u64 <= self.window.len() as u64);
        let skip = match held {
            Some(skip) => skip as usize,
            None => {
                let size = left.min(WINDOW_BYTES.max(wanted as u64)) as usize;
                self.window.resize(size, 0);
                self.start = offset;
                self.file.read(&mut [ReadRange { offset, buffer: &mut self.window }])?;
                0
            }
        };
        debug_assert!(skip + wanted <= self.window.len(), "the window ends before the request");
        debug_assert!(
            self.start + self.window.len() as u64 <= self.len,
            "the window from {} on ends after the file",
            self.start
        );
        Ok(&self.window[skip..])
    }

    /// Whether every byte from `offset` on is zero (true at the end of the file).
    pub(crate) fn is_zero_from(&mut self, mut offset: u64) -> Result<bool> {
        while offset < self.len {
            let bytes = self.at_least(offset, 1)?;
            if bytes.iter().any(|b| *b != 0) {
                return Ok(false);
            }
            invariant!(!bytes.is_empty(), "no bytes at {offset} of a file");
            offset += bytes.len() as u64;
        }
        Ok(true)
    }
}
