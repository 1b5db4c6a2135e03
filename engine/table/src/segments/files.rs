//! Files in the format of segments: writing them some blocks at a time, syncing, opening and
//! removing them.

use crate::layout::bounds::add_described_bounds_of;
use crate::layout::columns::ROW_NUMBER_COLUMN;
use crate::record::Description;
use crate::segments::bitmap_cache::BitmapCache;
use crate::segments::names::FileKind;
use nacre_host::{LocalFile, LocalStore};
use nacre_log::Log;
use nacre_segment::{
    BlockCache, CheckColumns, FileSource, Identity, Segment, SegmentBuilder, SegmentWriter,
};
use nacre_types::{Error, ErrorKind, Result, TableId, TableSchema, invariant};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Columns of a table whose bounds the description of a segment has, so that it stays short. Those of
/// keys of indexes come on top.
const DESCRIBED_COLUMNS: usize = 64;

/// Approximate number of blocks to encode per step.
const WRITE_BLOCKS: usize = 16;

/// Creates files: holds the local store, the caches in front of it, and the next free number.
pub(crate) struct SegmentFiles {
    store: Arc<dyn LocalStore>,
    log: Arc<Log>,
    cache: Arc<BlockCache>,
    bitmaps: Arc<BitmapCache>,
    next: AtomicU64,
    /// The next free number when the newest snapshot was taken.
    at_snapshot: AtomicU64,
}

impl SegmentFiles {
    /// Files in `store`. Numbers from `next` on are free; those from `at_snapshot` on were when the newest
    /// snapshot was taken.
    pub fn new(
        store: Arc<dyn LocalStore>,
        log: Arc<Log>,
        cache: Arc<BlockCache>,
        bitmaps: Arc<BitmapCache>,
        next: u64,
        at_snapshot: u64,
    ) -> SegmentFiles {
        debug_assert!(at_snapshot <= next, "a snapshot knows of files from {next} on");
        let (next, at_snapshot) = (AtomicU64::new(next), AtomicU64::new(at_snapshot));
        SegmentFiles { store, log, cache, bitmaps, next, at_snapshot }
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

    /// How many numbers were taken since the newest snapshot.
    pub fn taken_since_snapshot(&self) -> u64 {
        let at_snapshot = self.at_snapshot.load(Ordering::Relaxed);
        debug_assert!(at_snapshot <= self.next_number(), "a snapshot has file {at_snapshot}");
        self.next_number().saturating_sub(at_snapshot)
    }

    /// Notes that the newest snapshot was taken when numbers from `next` on were free.
    pub fn note_snapshot(&self, next: u64) {
        debug_assert!(next <= self.next_number(), "a snapshot has file {next}, which is free");
        self.at_snapshot.store(next, Ordering::Relaxed);
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

    /// A file of a table as the log describes it; `None` if it must be read to know enough of it.
    /// The first read fails with `corrupt` if it is another file, and with what `check` finds. It is
    /// opened then, but at once if another instance may remove it: an open file can still be read.
    ///
    /// # Errors
    /// `corrupt` if a file that is opened at once is missing.
    pub fn described(
        &self,
        description: &Description,
        table: &TableSchema,
        check: &Arc<CheckColumns>,
    ) -> Result<Option<Arc<Segment>>> {
        let Some(known) = description.known() else { return Ok(None) };
        let name = description.kind.name(description.number);
        let identity = self.identity(table.id, description.number);
        let source = match self.log.is_read_only() {
            true => FileSource::Open(self.open_file(&name, table)?),
            false => FileSource::Named(self.store.clone()),
        };
        let (cache, check) = (self.cache.clone(), check.clone());
        let file = Segment::described(source, &name, known, identity, cache, check);
        debug_assert!(description.kind.number(file.name()) == Some(file.id()), "file {name}");
        Ok(Some(Arc::new(file)))
    }

    fn open_file(&self, name: &str, table: &TableSchema) -> Result<Arc<dyn LocalFile>> {
        self.store.open(name).map_err(|error| match error.kind() {
            ErrorKind::NotFound => missing(name, table),
            _ => error,
        })
    }

    /// Opens a file of a table that the log names. `corrupt` if it is missing or another file.
    pub fn open(&self, kind: FileKind, number: u64, table: &TableSchema) -> Result<Arc<Segment>> {
        debug_assert!(FileKind::LOGGED.contains(&kind), "the log names no file of kind {kind:?}");
        let name = kind.name(number);
        let file = self.open_file(&name, table)?;
        let file = Segment::open(file, &name, number, self.cache.clone())?;
        file.check_identity(&self.identity(table.id, number))?;
        Ok(Arc::new(with_known(kind, file)?))
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
        Ok(SegmentFile { kind, number, rows, file: self.store.create(&name)?, name, writer })
    }

    /// Notes that the log may name files from here on.
    pub fn note_named<'a>(&self, files: impl Iterator<Item = &'a Arc<Segment>>) {
        files.for_each(|file| self.store.note_named(file.name()));
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

/// The error for a file that the log names and that is not there.
pub(crate) fn missing(name: &str, table: &TableSchema) -> Error {
    let table = &table.name;
    Error::corrupt(format!("segment {name} of table {table} is missing"))
}

/// Remembers what the description of a file needs of its footer: bounds of columns, and the highest
/// hidden row number of a segment.
fn with_known(kind: FileKind, file: Segment) -> Result<Segment> {
    let mut left = DESCRIBED_COLUMNS;
    let file =
        file.with_bounds_of(|column, bounds| add_described_bounds_of(column, &mut left, bounds))?;
    if kind == FileKind::Segment { file.with_greatest_of(ROW_NUMBER_COLUMN) } else { Ok(file) }
}

/// A file being written. No record names it yet: if left behind, it is an orphan that the next
/// start removes.
struct SegmentFile {
    kind: FileKind,
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
        let segment = with_known(self.kind, segment)?;
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

    /// Takes the files that are complete. They are their caller's to remove unless a record names them.
    pub fn take_complete(&mut self) -> Vec<Arc<Segment>> {
        std::mem::take(&mut self.files)
    }

    /// Called once the log may name the files: they must no longer be removed.
    pub fn are_named(&mut self, files: &SegmentFiles) {
        invariant!(self.writing.is_none(), "a record names files that are not complete");
        files.note_named(self.files.iter());
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
