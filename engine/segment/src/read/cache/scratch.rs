//! Memory to decode parts of blocks in, reused so that it need not be cleared for each row.

use std::sync::{Mutex, PoisonError};

/// Number of buffers kept: one for each reader at a time.
const KEPT: usize = 4;
/// Maximum size of a buffer that is kept, in bytes.
const KEPT_BYTES: usize = 1 << 20;

/// Buffers whose bytes are all zero. They take at most 4 MiB.
#[derive(Default)]
pub(crate) struct Scratch(Mutex<Vec<Vec<u8>>>);

impl Scratch {
    /// A buffer of at least this many bytes, all zero.
    pub fn take(&self, bytes: usize) -> Vec<u8> {
        let mut buffer = self.buffers(Vec::pop).unwrap_or_default();
        if buffer.len() < bytes {
            buffer.resize(bytes, 0);
        }
        debug_assert!(buffer.iter().all(|byte| *byte == 0), "a buffer that is not clear");
        buffer
    }

    /// Takes back a buffer, all of whose bytes are zero again.
    pub fn give_back(&self, buffer: Vec<u8>) {
        debug_assert!(buffer.iter().all(|byte| *byte == 0), "a buffer that is not clear");
        if buffer.capacity() <= KEPT_BYTES {
            self.buffers(|kept| {
                if kept.len() < KEPT {
                    kept.push(buffer);
                }
            });
        }
    }

    fn buffers<T>(&self, work: impl FnOnce(&mut Vec<Vec<u8>>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
