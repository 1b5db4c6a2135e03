//! Opening a database: the newest snapshot, the log after it, and nothing else. Segment files that
//! neither names are orphans of work that never committed, and are removed.

use crate::index::hash::table::{HashTable, KeySet};
use crate::maintenance::snapshot;
use crate::record::{self, NewPart, NewSegment, NewTable, Operation, Place};
use crate::segments::bitmap_cache::BitmapCache;
use crate::segments::state::SegmentState;
use crate::store::{
    CatalogState, NextIds, Store, StoreOptions, file_name_of_part, file_name_of_segment,
    file_name_of_table, kind,
};
use crate::table::partition::Partition;
use crate::table::version::Table;
use nacre_host::{Host, number_of_file};
use nacre_log::Log;
use nacre_rowstore::{Change, Node, Version};
use nacre_segment::{BlockCache, Segment};
use nacre_types::hash::Map;
use nacre_types::{
    Error, ErrorKind, Result, TableId, TableSchema, Timestamp, Value, ViewSchema, key,
};
use roaring::RoaringBitmap;
use std::cell::RefCell;
use std::sync::Arc;

/// State while the log is replayed. Segments are only named; files are opened at the end, so that those
/// dropped meanwhile need not exist.
#[derive(Default)]
struct Replay {
    tables: Map<TableId, Replayed>,
    views: Vec<ViewSchema>,
    /// Parts of indexes in files of their own, by table and segment. Some may be of indexes or segments that are gone.
    parts: Map<(TableId, u64), Vec<NewPart>>,
    commit: Timestamp,
    next_segment: u64,
    next_table: TableId,
}

struct Replayed {
    table: Table,
    /// Of each partition: id and deleted rows of its segments, in the order they were added.
    segments: Vec<Vec<(u64, RoaringBitmap)>>,
    /// Hash tables and their partitions. Some may be of indexes or segments that are gone.
    hashes: Vec<(u32, NewTable)>,
}

/// A partition of a table being replayed.
struct ReplayedPartition<'a> {
    table: &'a Table,
    partition: &'a Partition,
    segments: &'a mut Vec<(u64, RoaringBitmap)>,
}

pub(crate) fn open(host: Host, options: StoreOptions) -> Result<Arc<Store>> {
    // Before anything is made: opening would start a new log, and then all segments would be orphans.
    let names = host.store.list()?;
    let has_segments = names.iter().any(|name| number_of_file(kind::SEGMENT, name).is_some());
    if has_segments && !nacre_log::has_log(&names) {
        return Err(Error::corrupt(
            "there are segments, but neither a log nor a snapshot that names them",
        ));
    }
    crate::temporary::remove_left_over(&*host.store, &names)?;
    let replay = RefCell::new(Replay { next_segment: 1, next_table: 1, ..Replay::default() });
    let log = Log::open(
        host.store.clone(),
        Store::log_options(&host, &options),
        &mut |payload| replay.borrow_mut().load(payload),
        &mut |_, payload| replay.borrow_mut().apply(payload),
    )?;
    let mut replay = replay.into_inner();
    let cache = BlockCache::new(options.cache_bytes);
    let bitmaps = BitmapCache::new(Store::bitmap_bytes(&options));
    let mut catalog = CatalogState::default();
    let mut referenced = nacre_types::hash::Set::default();
    let parts = std::mem::take(&mut replay.parts);
    let mut ids: Vec<TableId> = replay.tables.keys().copied().collect();
    ids.sort_unstable();
    for id in ids {
        let Some(replayed) = replay.tables.remove(&id) else { continue };
        let table = Arc::new(replayed.table);
        for (partition, segments) in table.partitions().iter().zip(replayed.segments) {
            let mut states = Vec::with_capacity(segments.len());
            for (id, deleted) in segments {
                let name = file_name_of_segment(id);
                let segment = open_segment(&host, &cache, &table, &name, id)?;
                referenced.insert(name);
                check_deleted(&segment, &deleted)?;
                let state = SegmentState::new(segment, 0, deleted).with_bitmaps(&bitmaps);
                for part in parts.get(&(table.id(), id)).into_iter().flatten() {
                    if table.index(part.index).is_ok() {
                        let name = file_name_of_part(part.file);
                        state.add_parts(&open_file(&host, &cache, &table, &name, part.file)?);
                        referenced.insert(name);
                    }
                }
                check_parts(&table, &state)?;
                states.push(Arc::new(state));
            }
            for state in &states {
                see_row_numbers(&table, partition, state)?;
            }
            partition.update_segments(|list| *list = states);
        }
        for (partition, hashes) in replayed.hashes {
            open_hashes(&host, &cache, &table, partition, hashes, &mut referenced)?;
        }
        table.enter_all()?;
        catalog.by_name.insert(table.schema().name.to_ascii_lowercase(), table.clone());
        catalog.by_id.insert(table.id(), table);
    }
    catalog.views = replay
        .views
        .drain(..)
        .map(|view| (view.name.to_ascii_lowercase(), Arc::new(view)))
        .collect();
    for name in host.store.list()? {
        let kinds = [kind::SEGMENT, kind::HASHES, kind::PART];
        let is_ours = kinds.iter().any(|kind| number_of_file(kind, &name).is_some());
        if is_ours && !referenced.contains(&name) {
            // The number may be used again; a file of that name must not be in the way.
            host.store.remove(&name)?;
        }
    }
    let next =
        NextIds { commit: replay.commit, segment: replay.next_segment, table: replay.next_table };
    Ok(Store::assemble(host, options, log, (cache, bitmaps), catalog, next))
}

/// Opens a hash table, unless it is of an index that is gone: then its files are left to be removed.
fn open_hashes(
    host: &Host,
    cache: &Arc<BlockCache>,
    table: &Table,
    partition: u32,
    hashes: NewTable,
    referenced: &mut nacre_types::hash::Set<String>,
) -> Result<()> {
    if let KeySet::Index(id) = hashes.keys
        && table.index(id).is_err()
    {
        return Ok(());
    }
    let mut files = Vec::with_capacity(hashes.files.len());
    for id in hashes.files {
        let name = file_name_of_table(id);
        files.push(open_file(host, cache, table, &name, id)?);
        referenced.insert(name);
    }
    let made = Arc::new(HashTable::new(hashes.keys, files, hashes.segments)?);
    table.partition(partition).update_tables(|tables| tables.push(made));
    Ok(())
}

/// Checks that what indexes have of a segment is theirs.
fn check_parts(table: &Table, state: &SegmentState) -> Result<()> {
    for index in table.indexes() {
        if let Some(part) = state.part(index.schema.id) {
            part.check(index, state.segment.rows())?;
        }
    }
    Ok(())
}

fn open_file(
    host: &Host,
    cache: &Arc<BlockCache>,
    table: &Table,
    name: &str,
    id: u64,
) -> Result<Arc<Segment>> {
    let file = host.store.open(name).map_err(|e| match e.kind() {
        ErrorKind::NotFound => {
            Error::corrupt(format!("segment {name} of table {} is missing", table.schema().name))
        }
        _ => e,
    })?;
    Ok(Arc::new(Segment::open(file, name, id, cache.clone())?))
}

fn open_segment(
    host: &Host,
    cache: &Arc<BlockCache>,
    table: &Table,
    name: &str,
    id: u64,
) -> Result<Arc<Segment>> {
    let segment = open_file(host, cache, table, name, id)?;
    for column in table.segment_columns() {
        let Some(index) = segment.column_index(column.id) else { continue };
        let stored = segment.columns()[index].data_type;
        if stored.physical() != column.data_type.physical() {
            return Err(Error::corrupt(format!(
                "segment {name}: column {} is {stored}, table {} says {}",
                column.id,
                table.schema().name,
                column.data_type
            )));
        }
    }
    Ok(segment)
}

fn check_deleted(segment: &Segment, deleted: &RoaringBitmap) -> Result<()> {
    match deleted.max() {
        Some(row) if row as usize >= segment.rows() => Err(Error::corrupt(format!(
            "segment {}: deleted row {row} of {} rows",
            segment.name(),
            segment.rows()
        ))),
        _ => Ok(()),
    }
}

fn see_row_numbers(table: &Table, partition: &Partition, state: &SegmentState) -> Result<()> {
    if table.key_columns().is_some() {
        return Ok(());
    }
    let column = table.segment_key_columns(state)?;
    if let Some(Value::Int(highest)) =
        column.first().and_then(|c| state.segment.columns().get(*c)).map(|c| &c.max)
    {
        partition.saw_row_number(*highest as u64);
    }
    Ok(())
}

impl Replay {
    fn load(&mut self, payload: &[u8]) -> Result<()> {
        let image = snapshot::decode(payload)?;
        self.commit = image.next.commit;
        self.next_segment = image.next.segment;
        self.next_table = image.next.table;
        self.views = image.views;
        let mut indexes: Map<TableId, record::Indexes> = image.indexes.into_iter().collect();
        for table in image.tables {
            let id = table.schema.id;
            let schema = match indexes.remove(&id) {
                Some(indexes) => indexes.put_into(table.schema)?,
                None => table.schema,
            };
            self.create(schema)?;
            let known = self.tables.get(&id).map_or(0, |t| t.segments.len());
            if table.partitions.len() != known {
                return Err(Error::corrupt(format!(
                    "snapshot: table {id} has {} partitions, its schema says {known}",
                    table.partitions.len()
                )));
            }
            for (number, image) in table.partitions.into_iter().enumerate() {
                let mut replayed = self.partition(Place { table: id, partition: number as u32 })?;
                *replayed.segments = image.segments;
                replayed.partition.saw_row_numbers(image.next_row_number.saturating_sub(1));
                for (key, commit, row) in image.rows {
                    replayed.put(&key, commit, row)?;
                }
            }
        }
        for (place, part) in image.parts {
            self.partition(place)?.segment(part.segment)?;
            self.add_part(place, part);
        }
        for (place, hashes) in image.hashes {
            self.set_hashes(place, &[], Some(hashes))?;
        }
        Ok(())
    }

    fn create(&mut self, schema: TableSchema) -> Result<()> {
        let id = schema.id;
        self.next_table = self.next_table.max(id.saturating_add(1));
        let table = Table::new(schema);
        let segments = table.partitions().iter().map(|_| Vec::new()).collect();
        let replayed = Replayed { table, segments, hashes: Vec::new() };
        if self.tables.insert(id, replayed).is_some() {
            return Err(Error::corrupt(format!("log: table {id} is created twice")));
        }
        Ok(())
    }

    fn partition(&mut self, place: Place) -> Result<ReplayedPartition<'_>> {
        let Place { table: id, partition: number } = place;
        let Replayed { table, segments, .. } = self.table(id)?;
        match (table.partitions().get(number as usize), segments.get_mut(number as usize)) {
            (Some(partition), Some(segments)) => {
                Ok(ReplayedPartition { table, partition, segments })
            }
            _ => Err(Error::corrupt(format!("log: table {id} has no partition {number}"))),
        }
    }

    fn table(&mut self, id: TableId) -> Result<&mut Replayed> {
        self.tables
            .get_mut(&id)
            .ok_or_else(|| Error::corrupt(format!("log: table {id} is not known")))
    }

    fn apply(&mut self, payload: &[u8]) -> Result<()> {
        let (commit, operations) = record::decode(payload)?;
        if commit <= self.commit {
            return Err(Error::corrupt(format!(
                "log: commit {commit} after commit {}",
                self.commit
            )));
        }
        self.commit = commit;
        for operation in operations {
            match operation {
                Operation::Put { place, key, row } => {
                    self.partition(place)?.put(&key, commit, row)?
                }
                Operation::Delete { place, key } => self.partition(place)?.remove(&key, commit)?,
                Operation::Move { place, segment, row, key, data } => {
                    let mut replayed = self.partition(place)?;
                    replayed.segment(segment)?.insert(row);
                    replayed.put(&key, commit, data)?;
                }
                Operation::Flush { place, upto, segments, except } => {
                    self.see_segments(&segments);
                    if upto >= commit {
                        return Err(Error::corrupt(format!(
                            "log: commit {commit} flushes rows up to commit {upto}"
                        )));
                    }
                    self.partition(place)?.flush(commit, upto, segments, &except);
                }
                Operation::AddSegments { place, segments } => {
                    self.see_segments(&segments);
                    let added = segments.into_iter().map(|s| (s.id, s.deleted));
                    self.partition(place)?.segments.extend(added);
                }
                Operation::DeleteRows { place, segment, rows } => {
                    *self.partition(place)?.segment(segment)? |= rows
                }
                Operation::Merge { place, dropped, added } => {
                    self.see_segments(&added);
                    let segments = self.partition(place)?.segments;
                    segments.retain(|(id, _)| !dropped.contains(id));
                    segments.extend(added.into_iter().map(|s| (s.id, s.deleted)));
                }
                Operation::CreateTable { schema } => self.create(schema)?,
                Operation::CreateView { view } => {
                    self.drop_view(&view.name);
                    self.views.push(view);
                }
                Operation::DropView { name } => self.drop_view(&name),
                Operation::DropTable { table } => {
                    self.table(table)?;
                    self.tables.remove(&table);
                }
                Operation::AlterTable { schema } => {
                    let replayed = self.table(schema.id)?;
                    replayed.table = Table::altered(&replayed.table, schema, 0);
                }
                Operation::SetIndexes { table, indexes } => {
                    let replayed = self.table(table)?;
                    let schema = indexes.put_into((**replayed.table.schema()).clone())?;
                    replayed.table = Table::altered(&replayed.table, schema, 0);
                }
                Operation::AddPart { place, part } => {
                    self.partition(place)?.segment(part.segment)?;
                    self.add_part(place, part);
                }
                Operation::SetTables { place, dropped, added } => {
                    self.set_hashes(place, &dropped, added)?
                }
                Operation::Truncate { table } => {
                    let replayed = self.table(table)?;
                    replayed.table = Table::emptied(&replayed.table, 0);
                    replayed.segments.iter_mut().for_each(Vec::clear);
                    replayed.hashes.clear();
                }
            }
        }
        Ok(())
    }

    fn set_hashes(&mut self, place: Place, dropped: &[u64], added: Option<NewTable>) -> Result<()> {
        self.partition(place)?;
        for file in added.iter().flat_map(|added| &added.files) {
            self.next_segment = self.next_segment.max(file.saturating_add(1));
        }
        let hashes = &mut self.table(place.table)?.hashes;
        hashes.retain(|(_, known)| !known.files.first().is_some_and(|id| dropped.contains(id)));
        hashes.extend(added.map(|added| (place.partition, added)));
        Ok(())
    }

    fn add_part(&mut self, place: Place, part: NewPart) {
        self.next_segment = self.next_segment.max(part.file.saturating_add(1));
        let parts = self.parts.entry((place.table, part.segment)).or_default();
        if !parts.contains(&part) {
            parts.push(part);
        }
    }

    fn drop_view(&mut self, name: &str) {
        self.views.retain(|view| !view.name.eq_ignore_ascii_case(name));
    }

    fn see_segments(&mut self, segments: &[NewSegment]) {
        for segment in segments {
            self.next_segment = self.next_segment.max(segment.id.saturating_add(1));
        }
    }
}

/// Refuses the same key twice in one record: a move and a write cannot share a commit.
fn is_later(node: &Node, commit: Timestamp) -> Result<()> {
    match node.newest() {
        Some(newest) if newest.commit >= commit => {
            Err(Error::corrupt("log: a key is written twice in one commit"))
        }
        _ => Ok(()),
    }
}

impl ReplayedPartition<'_> {
    fn segment(&mut self, id: u64) -> Result<&mut RoaringBitmap> {
        let name = &self.table.schema().name;
        match self.segments.iter_mut().find(|(known, _)| *known == id) {
            Some((_, deleted)) => Ok(deleted),
            None => Err(Error::corrupt(format!("log: table {name} has no segment {id}"))),
        }
    }

    fn put(&mut self, key: &[u8], commit: Timestamp, row: Vec<u8>) -> Result<()> {
        self.table.validate_row(&row)?;
        let values = key::decode(key, &self.table.key_types())?;
        if self.table.partition_of(key).number() != self.partition.number() {
            let (name, number) = (&self.table.schema().name, self.partition.number());
            return Err(Error::corrupt(format!(
                "log: a row of table {name} is not of partition {number}"
            )));
        }
        if self.table.key_columns().is_none()
            && let Some(Value::Int(number)) = values.first()
        {
            self.partition.saw_row_number(*number as u64);
        }
        let node = self.partition.rowstore.get_or_insert(key);
        is_later(&node, commit)?;
        node.push_version(Version { commit, content: commit, change: Change::Put(row.into()) });
        self.partition.rowstore.collect(&node, commit);
        Ok(())
    }

    fn remove(&mut self, key: &[u8], commit: Timestamp) -> Result<()> {
        if let Some(node) = self.partition.rowstore.get(key) {
            is_later(&node, commit)?;
            node.push_version(Version { commit, content: commit, change: Change::Delete });
            self.partition.rowstore.collect(&node, commit);
        }
        Ok(())
    }

    fn flush(
        &mut self,
        commit: Timestamp,
        upto: Timestamp,
        segments: Vec<NewSegment>,
        except: &[Vec<u8>],
    ) {
        let except: nacre_types::hash::Set<&[u8]> = except.iter().map(Vec::as_slice).collect();
        let mut nodes = Vec::new();
        self.partition.rowstore.range_after(None, usize::MAX, &mut nodes);
        for node in nodes {
            if let Some(newest) = node.newest()
                && newest.commit <= upto
                && !except.contains(&**node.key())
                && node.flush(commit, newest.commit)
            {
                self.partition.rowstore.collect(&node, commit);
            }
        }
        self.segments.extend(segments.into_iter().map(|s| (s.id, s.deleted)));
    }
}
