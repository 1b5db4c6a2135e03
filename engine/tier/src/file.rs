//! An open file of the store: forwards calls to the local file, and notes what is written and synced. Once the
//! local bytes have left, it reads blocks.

use crate::ahead;
use crate::entry::{Entry, Handle, Kind, Meta};
use crate::evict::with_space;
use crate::fetch;
use crate::shared::Shared;
use nacre_host::{Ahead, LocalFile, ReadRange, Result};
use nacre_types::{Error, invariant};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// An open file.
pub(crate) struct TierFile {
    pub shared: Arc<Shared>,
    pub entry: Arc<Entry>,
    pub handle: Arc<Handle>,
}

impl TierFile {
    /// The local file. Its lock is not kept: a file is written only before it may leave.
    fn written_here(&self) -> Result<Arc<dyn LocalFile>> {
        if matches!(self.entry.kind, Kind::Chunk(_)) {
            self.shared.check_fence()?;
        }
        let file = self.handle.file().clone();
        file.ok_or_else(|| {
            Error::io(format!("{} is written after it was uploaded", self.entry.name))
        })
    }

    /// Notes a write.
    fn note_written(&self, offset: u64, bytes: &[u8]) {
        let mut meta = self.entry.meta();
        // Recovery writes the same snapshot again.
        invariant!(
            meta.blob.is_none() || self.entry.kind != Kind::Data,
            "{} is written after it was uploaded",
            self.entry.name
        );
        meta.is_dirty = true;
        // The log reserves space by zeroes, and no record consists of them.
        let is_reserve =
            matches!(self.entry.kind, Kind::Chunk(_)) && bytes.iter().all(|byte| *byte == 0);
        if !is_reserve {
            meta.written = meta.written.max(offset + bytes.len() as u64);
        }
    }

    /// Notes that a sync has returned, which began when this much was written.
    ///
    /// # Errors
    /// `in_use` if a newer writer was met: nothing is acknowledged any more.
    fn note_synced(&self, written: u64) -> Result<()> {
        let mut state = self.shared.state();
        let is_chunk = matches!(self.entry.kind, Kind::Chunk(_));
        if is_chunk {
            self.shared.check_fence()?;
        }
        let mut meta = self.entry.meta();
        let Meta { synced, is_dirty, written: now, .. } = &mut *meta;
        *is_dirty &= *now != written;
        let has_grown = *synced < written;
        if has_grown {
            self.shared.unsent.fetch_add(written - *synced, Ordering::Relaxed);
            *synced = written;
        }
        drop(meta);
        if is_chunk && has_grown {
            state.syncs += 1;
            self.shared.note_change(&mut state);
        }
        Ok(())
    }
}

impl LocalFile for TierFile {
    fn len(&self) -> Result<u64> {
        match &*self.handle.file() {
            Some(file) => file.len(),
            None => Ok(self.entry.meta().blob.map_or(0, |blob| blob.len)),
        }
    }

    fn read(&self, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        self.entry.use_at(self.shared.tick());
        // Held until the read ends: the bytes do not leave meanwhile.
        let file = self.handle.file();
        if let Some(file) = &*file {
            return file.read(ranges);
        }
        drop(file);
        fetch::read(&self.shared, &self.entry, ranges)
    }

    fn read_ahead(&self, ranges: &[Range<u64>]) -> Ahead {
        let is_here = self.handle.file().is_some();
        if is_here { Ahead::Nothing } else { ahead::begin(&self.shared, &self.entry, ranges) }
    }

    fn absent(&self, ranges: &[Range<u64>]) -> Vec<Range<u64>> {
        let is_here = self.handle.file().is_some();
        if is_here { Vec::new() } else { fetch::absent(&self.shared, &self.entry, ranges) }
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let file = self.written_here()?;
        with_space(&self.shared, || file.write(offset, bytes))?;
        self.note_written(offset, bytes);
        Ok(())
    }

    fn truncate(&self, len: u64) -> Result<()> {
        let file = self.written_here()?;
        with_space(&self.shared, || file.truncate(len))?;
        let mut meta = self.entry.meta();
        (meta.written, meta.synced) = (len, meta.synced.min(len));
        meta.is_dirty = true;
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        let file = self.written_here()?;
        let written = self.entry.meta().written;
        file.sync()?;
        self.note_synced(written)
    }

    fn note_durable(&self) -> Result<()> {
        let written = self.entry.meta().written;
        self.note_synced(written)
    }

    fn write_synced(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let file = self.written_here()?;
        // Not again if the disk is full: after a sync that failed, earlier writes may be lost.
        file.write_synced(offset, bytes)?;
        self.note_written(offset, bytes);
        let written = self.entry.meta().written;
        self.note_synced(written)
    }
}
