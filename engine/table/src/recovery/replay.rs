//! Replays the log: reconstructs tables, views, rows in memory and segment lists from the snapshot
//! and the records. Segment files are opened only at the end, so files dropped meanwhile need not
//! exist.

use crate::record::{
    self, Description, FlushedRange, Image, Indexes, NewPart, NewSegment, NewTable, NextIds,
    Operation, Place,
};
use crate::recovery::listed::Listed;
use crate::table::partition::Partition;
use crate::table::sharding::partition_count;
use crate::table::version::Table;
use nacre_rowstore::{Change, Node, Version};
use nacre_types::hash::{Map, Set};
use nacre_types::{
    Error, PhysicalType, Result, TableId, TableSchema, Timestamp, Value, ViewSchema, invariant, key,
};
use roaring::RoaringBitmap;

/// Commits, files and tables are numbered from 1 up. A log that names a greater number than this is
/// damaged: nothing could be numbered after it.
const MAX_NUMBER: u64 = i64::MAX as u64;

/// The state of a replay.
pub(super) struct Replay {
    tables: Map<TableId, ReplayedTable>,
    views: Vec<ViewSchema>,
    /// Separate index parts, by table and segment. The index or segment of some may be gone.
    parts: Map<(TableId, u64), Vec<NewPart>>,
    /// Descriptions of files, by number. The files of some may be gone.
    files: Map<u64, (Place, Description)>,
    next: NextIds,
}

/// A table after the replay.
pub(super) struct ReplayedTable {
    pub table: Table,
    /// For each partition, its segments.
    pub segments: Vec<Listed>,
    /// Hash tables and their partitions. The index or segments of some may be gone.
    pub hashes: Vec<(u32, NewTable)>,
}

/// The result of a replay.
pub(super) struct Replayed {
    /// Ascending by id.
    pub tables: Vec<ReplayedTable>,
    pub views: Vec<ViewSchema>,
    /// Separate index parts, by table and segment.
    pub parts: Map<(TableId, u64), Vec<NewPart>>,
    /// Descriptions of files, by number. Files named before files were described have none.
    pub files: Map<u64, (Place, Description)>,
    pub next: NextIds,
}

/// A partition of a table being replayed.
struct ReplayedPartition<'a> {
    table: &'a Table,
    partition: &'a Partition,
    segments: &'a mut Listed,
}

impl Replay {
    /// Starts without any state.
    pub fn new() -> Replay {
        Replay {
            tables: Map::default(),
            views: Vec::new(),
            parts: Map::default(),
            files: Map::default(),
            next: NextIds { commit: 0, segment: 1, table: 1 },
        }
    }

    /// Ends the replay.
    pub fn finish(self) -> Replayed {
        let mut tables: Vec<ReplayedTable> = self.tables.into_values().collect();
        tables.sort_unstable_by_key(|replayed| replayed.table.id());
        debug_assert!(
            tables.iter().all(|replayed| replayed.table.id() < self.next.table),
            "a table has an id that is free"
        );
        debug_assert!(
            self.files.iter().all(|(number, (_, file))| {
                file.number == *number && *number < self.next.segment
            }),
            "a file is described under another number, or one that is free"
        );
        debug_assert!(
            self.parts.values().flatten().all(|part| part.file < self.next.segment),
            "an index part has a number that is free"
        );
        debug_assert!(
            tables.is_sorted_by(|a, b| a.table.id() < b.table.id()),
            "two tables have one id"
        );
        Replayed {
            tables,
            views: self.views,
            parts: self.parts,
            files: self.files,
            next: self.next,
        }
    }

    /// Loads a snapshot.
    pub fn load(&mut self, payload: &[u8]) -> Result<()> {
        invariant!(
            self.tables.is_empty() && self.next.commit == 0,
            "a snapshot is loaded after commit {}",
            self.next.commit
        );
        let image = Image::decode(payload)?;
        self.next = image.next;
        check_commit(self.next.commit)?;
        self.see_file(self.next.segment.saturating_sub(1))?;
        self.views = image.views;
        let newest = self.next.commit;
        let mut indexes: Map<TableId, Indexes> = image.indexes.into_iter().collect();
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
                replayed.see_row_count(image.next_row_number.saturating_sub(1))?;
                for row in image.rows {
                    if row.commit > newest {
                        return Err(Error::corrupt(format!(
                            "snapshot: a row of commit {} in a snapshot of commit {newest}",
                            row.commit
                        )));
                    }
                    replayed.put(&row.key, row.commit, row.row)?;
                }
                let ids: Vec<u64> = image.segments.iter().map(|(id, _)| *id).collect();
                *replayed.segments = Listed::default();
                replayed.segments.add(image.segments);
                ids.into_iter().try_for_each(|id| self.see_file(id))?;
            }
        }
        for (place, part) in image.parts {
            self.partition(place)?.segment(part.segment)?;
            self.add_part(place, part)?;
        }
        for (place, hashes) in image.hashes {
            self.set_hashes(place, &[], Some(hashes))?;
        }
        image.files.into_iter().try_for_each(|(place, file)| self.describe(place, file))
    }

    fn create(&mut self, schema: TableSchema) -> Result<()> {
        let id = schema.id;
        let Some(above) = id.checked_add(1) else {
            return Err(Error::corrupt(format!("log: table {id} is out of range")));
        };
        self.next.table = self.next.table.max(above);
        let table = Table::new(schema);
        let segments = table.partitions().iter().map(|_| Listed::default()).collect();
        let replayed = ReplayedTable { table, segments, hashes: Vec::new() };
        if self.tables.insert(id, replayed).is_some() {
            return Err(Error::corrupt(format!("log: table {id} is created twice")));
        }
        Ok(())
    }

    fn partition(&mut self, place: Place) -> Result<ReplayedPartition<'_>> {
        let Place { table: id, partition: number } = place;
        let ReplayedTable { table, segments, .. } = self.table(id)?;
        match (table.partitions().get(number as usize), segments.get_mut(number as usize)) {
            (Some(partition), Some(segments)) => {
                debug_assert!(
                    partition.number() == number,
                    "partition {number} has another number"
                );
                Ok(ReplayedPartition { table, partition, segments })
            }
            _ => Err(Error::corrupt(format!("log: table {id} has no partition {number}"))),
        }
    }

    fn table(&mut self, id: TableId) -> Result<&mut ReplayedTable> {
        self.tables
            .get_mut(&id)
            .ok_or_else(|| Error::corrupt(format!("log: table {id} is unknown")))
    }

    /// Applies a record.
    pub fn apply(&mut self, payload: &[u8]) -> Result<()> {
        let (commit, operations) = record::decode(payload)?;
        if commit <= self.next.commit {
            return Err(Error::corrupt(format!(
                "log: commit {commit} follows commit {}",
                self.next.commit
            )));
        }
        check_commit(commit)?;
        self.next.commit = commit;
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
                    self.see_segments(&segments)?;
                    check_upto(upto, commit)?;
                    self.partition(place)?.flush(commit, upto, segments, &except);
                }
                Operation::FlushRange { place, range, segment } => {
                    self.see_file(segment.id)?;
                    check_upto(range.upto, commit)?;
                    self.partition(place)?.flush_range(commit, &range, segment);
                }
                Operation::AddSegments { place, segments } => {
                    self.see_segments(&segments)?;
                    self.partition(place)?.segments.add_new(segments);
                }
                Operation::DeleteRows { place, segment, rows } => {
                    *self.partition(place)?.segment(segment)? |= rows
                }
                Operation::Merge { place, dropped, added } => {
                    self.see_segments(&added)?;
                    let segments = self.partition(place)?.segments;
                    segments.remove(&dropped);
                    segments.add_new(added);
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
                    replayed.alter(schema)?;
                }
                Operation::SetIndexes { table, indexes } => {
                    let replayed = self.table(table)?;
                    let schema = indexes.put_into((**replayed.table.schema()).clone())?;
                    replayed.alter(schema)?;
                }
                Operation::AddPart { place, part } => {
                    self.partition(place)?.segment(part.segment)?;
                    self.add_part(place, part)?;
                }
                Operation::SetTables { place, dropped, added } => {
                    self.set_hashes(place, &dropped, added)?
                }
                Operation::Describe { place, description } => self.describe(place, description)?,
                Operation::Truncate { table } => {
                    let replayed = self.table(table)?;
                    replayed.table = Table::emptied(&replayed.table, 0);
                    replayed.segments.fill_with(Listed::default);
                    replayed.hashes.clear();
                }
            }
        }
        Ok(())
    }

    /// Notes the description of a file. Files never change, so two descriptions of one agree in
    /// everything but its run, of which the last one counts.
    fn describe(&mut self, place: Place, description: Description) -> Result<()> {
        self.partition(place)?;
        self.see_file(description.number)?;
        if let Some(run) = description.run {
            self.see_file(run.number)?;
        }
        let number = description.number;
        match self.files.insert(number, (place, description.clone())) {
            Some((other, known)) if other != place || !known.is_of_same_file(&description) => {
                Err(Error::corrupt(format!("log: file {number} is described in two ways")))
            }
            _ => Ok(()),
        }
    }

    fn set_hashes(&mut self, place: Place, dropped: &[u64], added: Option<NewTable>) -> Result<()> {
        self.partition(place)?;
        for file in added.iter().flat_map(|added| &added.files) {
            self.see_file(*file)?;
        }
        let hashes = &mut self.table(place.table)?.hashes;
        hashes.retain(|(_, known)| !known.files.first().is_some_and(|id| dropped.contains(id)));
        hashes.extend(added.map(|added| (place.partition, added)));
        Ok(())
    }

    fn add_part(&mut self, place: Place, part: NewPart) -> Result<()> {
        self.see_file(part.file)?;
        let parts = self.parts.entry((place.table, part.segment)).or_default();
        if !parts.contains(&part) {
            parts.push(part);
        }
        Ok(())
    }

    fn drop_view(&mut self, name: &str) {
        self.views.retain(|view| !view.name.eq_ignore_ascii_case(name));
    }

    fn see_segments(&mut self, segments: &[NewSegment]) -> Result<()> {
        segments.iter().try_for_each(|segment| self.see_file(segment.id))
    }

    /// Notes that the number of a file is taken.
    fn see_file(&mut self, number: u64) -> Result<()> {
        if number > MAX_NUMBER {
            return Err(Error::corrupt(format!("log: file {number} is out of range")));
        }
        self.next.segment = self.next.segment.max(number + 1);
        Ok(())
    }
}

/// A flush moves rows of earlier commits.
fn check_upto(upto: Timestamp, commit: Timestamp) -> Result<()> {
    match upto < commit {
        true => Ok(()),
        false => {
            Err(Error::corrupt(format!("log: commit {commit} flushes rows up to commit {upto}")))
        }
    }
}

fn check_commit(commit: Timestamp) -> Result<()> {
    match commit > MAX_NUMBER {
        true => Err(Error::corrupt(format!("log: commit {commit} is out of range"))),
        false => Ok(()),
    }
}

/// Rejects a key that occurs twice in one record: a move and a write of a row are separate commits.
fn is_later(node: &Node, commit: Timestamp) -> Result<()> {
    match node.newest() {
        Some(newest) if newest.commit >= commit => {
            Err(Error::corrupt("log: a key is written twice in one commit"))
        }
        _ => Ok(()),
    }
}

/// Ids and physical types of the columns of the primary key and of the shard key, which no change of
/// the schema changes.
fn keys_of(schema: &TableSchema) -> [Option<Vec<(u32, PhysicalType)>>; 2] {
    let column = |at: &usize| (schema.columns[*at].id, schema.columns[*at].data_type.physical());
    let primary = schema.primary_key.as_ref().map(|key| &key.columns);
    let shard = schema.shard_key.as_ref().map(|key| &key.columns);
    [primary, shard].map(|columns| columns.map(|columns| columns.iter().map(column).collect()))
}

impl ReplayedTable {
    fn alter(&mut self, schema: TableSchema) -> Result<()> {
        if partition_count(&schema) as usize != self.table.partitions().len() {
            let name = &schema.name;
            return Err(Error::corrupt(format!(
                "log: table {name} changes its number of partitions"
            )));
        }
        let (before, after) = (self.table.schema().version, schema.version);
        if after < before {
            let name = &schema.name;
            return Err(Error::corrupt(format!(
                "log: the schema version of table {name} decreases from {before} to {after}"
            )));
        }
        if keys_of(&schema) != keys_of(self.table.schema()) {
            let name = &schema.name;
            return Err(Error::corrupt(format!("log: table {name} changes its key")));
        }
        debug_assert!(schema.id == self.table.id(), "table {} gets another id", schema.name);
        self.table = Table::altered(&self.table, schema, 0);
        invariant!(
            self.segments.len() == self.table.partitions().len(),
            "an altered table has {} partitions, and segments of {}",
            self.table.partitions().len(),
            self.segments.len()
        );
        Ok(())
    }
}

impl ReplayedPartition<'_> {
    fn segment(&mut self, id: u64) -> Result<&mut RoaringBitmap> {
        let name = &self.table.schema().name;
        match self.segments.deleted(id) {
            Some(deleted) => Ok(deleted),
            None => Err(Error::corrupt(format!("log: table {name} has no segment {id}"))),
        }
    }

    /// Notes how many hidden row numbers were given out.
    fn see_row_count(&mut self, count: u64) -> Result<()> {
        if !self.partition.may_have_given_out(count) {
            let name = &self.table.schema().name;
            return Err(Error::corrupt(format!("log: {count} rows were numbered in table {name}")));
        }
        self.partition.saw_row_numbers(count);
        Ok(())
    }

    fn put(&mut self, key: &[u8], commit: Timestamp, row: Vec<u8>) -> Result<()> {
        self.table.layout().validate_row(&row)?;
        let values = key::decode(key, &self.table.layout().key_types())?;
        if self.table.partition_of(key).number() != self.partition.number() {
            let (name, number) = (&self.table.schema().name, self.partition.number());
            return Err(Error::corrupt(format!(
                "log: a row of table {name} does not belong to partition {number}"
            )));
        }
        match values.first() {
            _ if self.table.key_columns().is_some() => {}
            Some(Value::Int(number)) => self.partition.saw_row_number(*number)?,
            _ => return Err(Error::corrupt("log: a row without a number")),
        }
        let node = self.partition.rowstore().get_or_insert(key);
        is_later(&node, commit)?;
        node.push_version(Version { commit, content: commit, change: Change::Put(row.into()) });
        debug_assert!(
            node.newest().is_some_and(|newest| newest.commit == commit),
            "a replayed row is not the newest"
        );
        self.partition.rowstore().collect(&node, commit);
        Ok(())
    }

    fn remove(&mut self, key: &[u8], commit: Timestamp) -> Result<()> {
        if let Some(node) = self.partition.rowstore().get(key) {
            is_later(&node, commit)?;
            node.push_version(Version { commit, content: commit, change: Change::Delete });
            debug_assert!(
                node.newest().is_some_and(|newest| newest.commit == commit),
                "a replayed deletion is not the newest"
            );
            self.partition.rowstore().collect(&node, commit);
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
        debug_assert!(upto < commit, "commit {commit} flushes rows up to commit {upto}");
        let except: Set<&[u8]> = except.iter().map(Vec::as_slice).collect();
        self.partition.each_node(|node| {
            if !except.contains(&**node.key()) {
                self.flush_row(node, commit, upto);
            }
        });
        self.segments.add_new(segments);
    }

    /// Repeats one commit of a flush.
    fn flush_range(&mut self, commit: Timestamp, range: &FlushedRange, segment: NewSegment) {
        let except: Set<&[u8]> = range.except.iter().map(Vec::as_slice).collect();
        debug_assert!(range.upto < commit, "commit {commit} flushes rows up to {}", range.upto);
        let after = range.after.as_deref();
        self.partition.each_node_until(after, Some(&range.to), |node| {
            debug_assert!(range.contains(node.key()), "a row outside its range is flushed");
            if !except.contains(&**node.key()) {
                self.flush_row(node, commit, range.upto);
            }
        });
        self.segments.add_new([segment]);
    }

    /// Removes a row that a flush has moved, if it is old enough.
    fn flush_row(&self, node: &Node, commit: Timestamp, upto: Timestamp) {
        if let Some(newest) = node.newest()
            && newest.commit <= upto
            && node.flush(commit, newest.commit)
        {
            self.partition.rowstore().collect(node, commit);
        }
    }
}
