//! Opens a database from the newest snapshot and the log after it: to write it, or only to read it,
//! beside an instance that writes it.

use crate::catalog::contents::Contents;
use crate::options::StoreOptions;
use crate::record::NextIds;
use crate::recovery::follow::{Follow, read_on};
use crate::recovery::install::{Moment, contents_after, enter_rows, install};
use crate::recovery::opened::{Opened, open_files};
use crate::recovery::replay::Replay;
use crate::segments::bitmap_cache::BitmapCache;
use crate::segments::files::SegmentFiles;
use crate::segments::garbage::Garbage;
use crate::segments::names::FileKind;
use crate::table::agenda::Agenda;
use crate::temporary;
use nacre_host::{Host, LocalStore};
use nacre_log::{Log, LogReader};
use nacre_segment::BlockCache;
use nacre_types::hash::Set;
use nacre_types::{Error, Reason, Result};
use std::cell::RefCell;
use std::sync::Arc;

/// The initial state of a store.
pub(crate) struct Recovered {
    pub log: Arc<Log>,
    pub files: SegmentFiles,
    pub contents: Contents,
    pub next: NextIds,
    /// For a database that is only read: how it follows its writer.
    pub follow: Option<Follow>,
}

/// How often opening a database beside its writer starts again because the writer has removed what
/// was to be read next. Each time, the writer has written a whole snapshot meanwhile.
const ATTEMPTS: usize = 8;

/// Recovers the database in the host's store, or creates an empty one.
pub(crate) fn open(host: &Host, options: &StoreOptions) -> Result<Recovered> {
    if options.read_only {
        return open_beside(host, options);
    }
    let store = &host.store;
    // Checked before anything is created: opening would start a new log, and all segments would
    // then be orphans.
    let names = store.list()?;
    let has_segments = names.iter().any(|name| FileKind::Segment.number(name).is_some());
    if has_segments && !nacre_log::has_log(&names) {
        return Err(Error::corrupt("segments exist, but no log or snapshot names them"));
    }
    temporary::remove_left_over(&**store, &names)?;
    let replay = RefCell::new(Replay::new());
    let log = Log::open_listed(
        store.clone(),
        &names,
        options.log_options(host),
        &mut |payload| replay.borrow_mut().load(payload),
        &mut |_, payload| replay.borrow_mut().apply(payload),
    )?;
    let (replay, log) = (replay.into_inner(), Arc::new(log));
    let files = segment_files(store, &log, options, &replay);
    let there: Set<_> = names.iter().filter_map(|name| FileKind::of_logged(name)).collect();
    let mut opened = open_files(&replay, &files, Some(&there), options, 0)?;
    let named = std::mem::take(&mut opened.files);
    let contents = start(&replay, opened, options)?;
    remove_orphans(&**store, there.difference(&named))?;
    Ok(Recovered { log, files, contents, next: replay.next(), follow: None })
}

/// Opens the database in the host's store beside an instance that may be writing it. Writes
/// nothing.
fn open_beside(host: &Host, options: &StoreOptions) -> Result<Recovered> {
    let mut attempt = 1;
    loop {
        match try_beside(host, options) {
            Err(error) if error.reason() == Some(Reason::LogGone) && attempt < ATTEMPTS => {
                attempt += 1;
            }
            outcome => return outcome,
        }
    }
}

fn try_beside(host: &Host, options: &StoreOptions) -> Result<Recovered> {
    let store = &host.store;
    let mut replay = Replay::new();
    let mut reader = LogReader::beside(store.clone(), &mut |payload| replay.load(payload))?;
    read_on(&mut reader, &mut replay)?;
    let log = Arc::new(Log::read_only(store.clone(), reader.database_id(), reader.position()));
    let mut files = segment_files(store, &log, options, &replay);
    let opened = loop {
        match open_files(&replay, &files, None, options, 0) {
            // A later record may have dropped a file that is gone.
            Err(error) if !read_on(&mut reader, &mut replay)? => return Err(error),
            Err(_) => files = segment_files(store, &log, options, &replay),
            Ok(opened) => break opened,
        }
    };
    let contents = start(&replay, opened, options)?;
    log.follow_to(reader.position());
    let (next, follow) = (replay.next(), Some(Follow::new(reader)));
    Ok(Recovered { log, files, contents, next, follow })
}

fn segment_files(
    store: &Arc<dyn LocalStore>,
    log: &Arc<Log>,
    options: &StoreOptions,
    replay: &Replay,
) -> SegmentFiles {
    let cache = BlockCache::with_footers(options.cache_bytes, options.metadata_bytes);
    let bitmaps = BitmapCache::new(options.bitmap_bytes);
    let (next, at_snapshot) = (replay.next().segment, replay.at_snapshot());
    SegmentFiles::new(store.clone(), log.clone(), cache, bitmaps, next, at_snapshot)
}

/// The catalog with the contents that the log describes.
fn start(replay: &Replay, opened: Opened, options: &StoreOptions) -> Result<Contents> {
    replay.check();
    let empty = Contents::new(Agenda::new(options.flush_bytes), options.rules);
    enter_rows(replay, options.rules)?;
    let moment = Moment { at: 0, oldest: 0 };
    install(replay, opened, &Garbage::default(), moment);
    contents_after(&empty, replay, moment.at)
}

/// Removes files that neither the log nor the snapshot names, because their numbers may be reused.
fn remove_orphans<'a>(
    store: &dyn LocalStore,
    orphans: impl Iterator<Item = &'a (FileKind, u64)>,
) -> Result<()> {
    for (kind, number) in orphans {
        debug_assert!(FileKind::LOGGED.contains(kind), "file {number} of kind {kind:?}");
        store.remove(&kind.name(*number))?;
    }
    Ok(())
}
