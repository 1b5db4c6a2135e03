//! A segment file on its way: encoded and written some blocks at a time, then synced and opened.

use crate::store::{Store, file_name_of_segment};
use nacre_host::LocalFile;
use nacre_segment::{Segment, SegmentBuilder, SegmentWriter};
use nacre_types::Result;
use std::sync::Arc;

/// Blocks of one column that a step encodes.
const WRITE_BLOCKS: usize = 16;

/// A file being written. Nothing names it yet: left behind, it is an orphan that the next start removes.
pub(crate) struct SegmentFile {
    id: u64,
    name: String,
    file: Arc<dyn LocalFile>,
    writer: SegmentWriter,
}

impl SegmentFile {
    /// Makes the file.
    pub fn begin(store: &Store, builder: SegmentBuilder) -> Result<SegmentFile> {
        SegmentFile::begin_named(store, builder, file_name_of_segment)
    }

    /// The same under another kind of name.
    pub fn begin_named(
        store: &Store,
        builder: SegmentBuilder,
        name: fn(u64) -> String,
    ) -> Result<SegmentFile> {
        let writer = builder.into_writer()?;
        let id = store.next_segment_id();
        let name = name(id);
        Ok(SegmentFile { id, file: store.host.store.create(&name)?, name, writer })
    }

    /// Writes some blocks; answers the segment once it is complete and synced.
    pub fn step(&mut self, store: &Store) -> Result<Option<Arc<Segment>>> {
        if self.writer.step(&*self.file, WRITE_BLOCKS)?.is_none() {
            return Ok(None);
        }
        self.file.sync()?;
        let segment = Segment::open(self.file.clone(), &self.name, self.id, store.cache.clone())?;
        Ok(Some(Arc::new(segment)))
    }

    /// Removes the file.
    pub fn abandon(self, store: &Store) {
        drop(self.file);
        store.remove_file(&self.name);
    }
}

/// The files that a piece of house-keeping makes, one after the other, until a record names them.
#[derive(Default)]
pub(crate) struct NewFiles {
    writing: Option<SegmentFile>,
    files: Vec<Arc<Segment>>,
}

impl NewFiles {
    /// Begins the next file; the one before must be complete.
    pub fn begin(
        &mut self,
        store: &Store,
        builder: SegmentBuilder,
        name: fn(u64) -> String,
    ) -> Result<()> {
        self.writing = Some(SegmentFile::begin_named(store, builder, name)?);
        Ok(())
    }

    /// Whether a file is not complete yet.
    pub fn is_writing(&self) -> bool {
        self.writing.is_some()
    }

    /// Goes on with the file that is not complete, if there is one; answers whether there was.
    pub fn step(&mut self, store: &Store) -> Result<bool> {
        let Some(writing) = &mut self.writing else { return Ok(false) };
        if let Some(file) = writing.step(store)? {
            self.writing = None;
            self.files.push(file);
        }
        Ok(true)
    }

    /// Those that are complete and synced.
    pub fn complete(&self) -> &[Arc<Segment>] {
        &self.files
    }

    /// The log may name them from here on, so they are not to be removed.
    pub fn are_named(&mut self) {
        self.files.clear();
    }

    /// Removes all of them.
    pub fn abandon(&mut self, store: &Store) {
        if let Some(writing) = self.writing.take() {
            writing.abandon(store);
        }
        self.files.drain(..).for_each(|file| store.remove_file(file.name()));
    }
}

impl Store {
    /// Writes a segment file and syncs it. The caller removes it when its commit fails.
    pub(crate) fn write_segment(&self, builder: SegmentBuilder) -> Result<Arc<Segment>> {
        let mut file = SegmentFile::begin(self, builder)?;
        loop {
            match file.step(self) {
                Ok(None) => {}
                Ok(Some(segment)) => return Ok(segment),
                Err(error) => {
                    file.abandon(self);
                    return Err(error);
                }
            }
        }
    }
}
