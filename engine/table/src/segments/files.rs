//! Files in the format of segments: writing them some blocks at a time, syncing, opening and
//! removing them.

use crate::segments::bitmap_cache::BitmapCache;
use crate::segments::names::FileKind;
use nacre_host::{LocalFile, LocalStore};
use nacre_log::Log;
use nacre_segment::{BlockCache, Identity, Segment, SegmentBuilder, SegmentWriter};
use nacre_types::{Error, ErrorKind, Result, TableId, TableSchema, invariant};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Approximate number of blocks to encode per step.
const WRITE_BLOCKS: usize = 16;

/// Creates files: holds the local store, the caches in front of it, and the next free number.
pub(crate) struct SegmentFiles {
    store: Arc<dyn LocalStore>,
    log: Arc<Log>,
    cache: Arc<BlockCache>,
    bitmaps: Arc<BitmapCache>,
    next: AtomicU64,
}

impl SegmentFiles {
    /// Files in `store`. Numbers from `next` on are free.
    pub fn new(
        store: Arc<dyn LocalStore>,
        log: Arc<Log>,
        cache: Arc<BlockCache>,
        bitmaps: Arc<BitmapCache>,
        next: u64,
    ) -> SegmentFiles {
        SegmentFiles { store, log, cache, bitmaps, next: AtomicU64::new(next) }
    }

    /// The cache of segment blocks.
    pub fn cache(&self) -> &Arc<BlockCache> {
        &self.cache
    }

    /// The cache of delete bitmaps of old snapshots.
    pub fn bitmaps(&self) -> &Arc<BitmapCache> {
        &self.bitmaps
    }

    /// The next free number.
    pub fn next_number(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// Notes that numbers below this one are taken.
    pub fn saw_number(&self, next: u64) {
        self.next.fetch_max(next, Ordering::Relaxed);
    }

    /// Takes a number, for a file or for a run without a new file.
    pub fn take_number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// What a file of this number says that it is.
    fn identity(&self, table: TableId, number: u64) -> Identity {
        Identity { database: self.log.database_id(), table, number }
    }

    /// Opens a file of a table that the log names. `corrupt` if it is missing or another file.
    pub fn open(&self, kind: FileKind, number: u64, table: &TableSchema) -> Result<Arc<Segment>> {
        debug_assert!(FileKind::LOGGED.contains(&kind), "the log names no file of kind {kind:?}");
        let name = kind.name(number);
        let file = self.store.open(&name).map_err(|e| match e.kind() {
            ErrorKind::NotFound => {
                let table = &table.name;
                Error::corrupt(format!("segment {name} of table {table} is missing"))
            }
            _ => e,
        })?;
        let file = Segment::open(file, &name, number, self.cache.clone())?;
        file.check_identity(&self.identity(table.id, number))?;
        Ok(Arc::new(file))
    }

    /// Starts a file.
    fn begin(
        &self,
        builder: SegmentBuilder,
        kind: FileKind,
        table: TableId,
    ) -> Result<SegmentFile> {
        debug_assert!(FileKind::LOGGED.contains(&kind), "the log names no file of kind {kind:?}");
        let rows = builder.rows();
        let number = self.take_number();
        let writer = builder.with_identity(self.identity(table, number)).into_writer()?;
        let name = kind.name(number);
        Ok(SegmentFile { number, rows, file: self.store.create(&name)?, name, writer })
    }

    /// Writes a whole segment of a table and syncs it. The caller removes it if its commit fails.
    pub fn write_segment(&self, builder: SegmentBuilder, table: TableId) -> Result<Arc<Segment>> {
        let mut file = self.begin(builder, FileKind::Segment, table)?;
        loop {
            match file.step(self, usize::MAX) {
                Ok(None) => {}
                Ok(Some(segment)) => return Ok(segment),
                Err(error) => {
                    file.abandon(self);
                    return Err(error);
                }
            }
        }
    }

    /// Removes a file that no record names. If the log has failed, a record may name it after all:
    /// then the file is left to the next start, which can tell.
    pub fn remove_unnamed(&self, name: &str) {
        debug_assert!(
            FileKind::LOGGED.iter().any(|kind| kind.number(name).is_some()),
            "{name} is not a file of the log's"
        );
        if self.log.check_usable().is_err() {
            return;
        }
        if self.store.remove(name).is_err() {
            // No record names it: recovery removes it.
        }
    }

    /// Removes a file that no record and no snapshot needs. A missing file is not an error. The files
    /// of a database that is only read are its writer's to remove.
    pub fn remove(&self, file: &Segment) -> Result<()> {
        debug_assert!(
            FileKind::LOGGED.iter().any(|kind| kind.number(file.name()) == Some(file.id())),
            "file {} is removed as {}",
            file.id(),
            file.name()
        );
        file.forget_blocks();
        if self.log.is_read_only() {
            return Ok(());
        }
        match self.store.remove(file.name()) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }
}

/// A file being written. No record names it yet: if left behind, it is an orphan that the next
/// start removes.
struct SegmentFile {
    number: u64,
    /// Rows pushed to its builder.
    rows: usize,
    name: String,
    file: Arc<dyn LocalFile>,
    writer: SegmentWriter,
}

impl SegmentFile {
    /// Writes about `blocks` blocks; returns the segment once it is complete and synced.
    fn step(&mut self, files: &SegmentFiles, blocks: usize) -> Result<Option<Arc<Segment>>> {
        if self.writer.step(&*self.file, blocks)?.is_none() {
            return Ok(None);
        }
        self.file.sync()?;
        let cache = files.cache.clone();
        let segment = Segment::open(self.file.clone(), &self.name, self.number, cache)?;
        invariant!(
            segment.rows() == self.rows,
            "file {} of {} rows has {}",
            self.name,
            self.rows,
            segment.rows()
        );
        Ok(Some(Arc::new(segment)))
    }

    /// Removes the file.
    fn abandon(self, files: &SegmentFiles) {
        drop(self.file);
        files.remove_unnamed(&self.name);
    }
}

/// Files written one after the other by a background task, until a record names them.
#[derive(Default)]
pub(crate) struct NewFiles {
    writing: Option<SegmentFile>,
    files: Vec<Arc<Segment>>,
}

impl NewFiles {
    /// Begins the next file, of a table; the one before must be complete.
    pub fn begin(
        &mut self,
        files: &SegmentFiles,
        builder: SegmentBuilder,
        kind: FileKind,
        table: TableId,
    ) -> Result<()> {
        invariant!(self.writing.is_none(), "a file is begun before the last one is complete");
        self.writing = Some(files.begin(builder, kind, table)?);
        Ok(())
    }

    /// Whether there are none, neither complete nor being written.
    pub fn is_empty(&self) -> bool {
        self.writing.is_none() && self.files.is_empty()
    }

    /// Whether a file is not complete yet.
    pub fn is_writing(&self) -> bool {
        self.writing.is_some()
    }

    /// Continues the file that is not complete, if there is one; returns whether there was.
    pub fn step(&mut self, files: &SegmentFiles) -> Result<bool> {
        let Some(writing) = &mut self.writing else { return Ok(false) };
        if let Some(file) = writing.step(files, WRITE_BLOCKS)? {
            self.writing = None;
            debug_assert!(
                self.files.last().is_none_or(|last| last.id() < file.id()),
                "file {} was begun before the one before it",
                file.id()
            );
            self.files.push(file);
        }
        Ok(true)
    }

    /// The files that are complete and synced.
    pub fn complete(&self) -> &[Arc<Segment>] {
        &self.files
    }

    /// Called once the log may name the files: they must no longer be removed.
    pub fn are_named(&mut self) {
        invariant!(self.writing.is_none(), "a record names files that are not complete");
        self.files.clear();
    }

    /// Removes all of them.
    pub fn abandon(&mut self, files: &SegmentFiles) {
        if let Some(writing) = self.writing.take() {
            writing.abandon(files);
        }
        self.files.drain(..).for_each(|file| files.remove_unnamed(file.name()));
    }
}
