//! Applies records: to nothing when a database is opened, and to what its readers see when it
//! follows a log. One code path for both.
//!
//! Rows change at once, as versions that are newer than what any reader sees. What becomes of tables,
//! segments and other files is only collected, and takes effect when all records are applied
//! ([`install`](crate::recovery::install)). Files are opened only then, so those that a later record
//! drops need not exist any more.

use crate::catalog::registry::Catalog;
use crate::record::{
    self, Description, Image, Indexes, NewPart, NewSegment, NewTable, NextIds, Operation, Place,
    Rules,
};
use crate::recovery::partition::{ReplayedPartition, SegmentChanges, Touched};
use crate::table::sharding::partition_count;
use crate::table::version::Table;
use nacre_types::hash::{Map, Set};
use nacre_types::sorted::SortedMap;
use nacre_types::{
    Error, PhysicalType, Result, TableId, TableSchema, Timestamp, ViewSchema, invariant,
};
use std::sync::Arc;

/// Commits, files and tables are numbered from 1 up. A log that names a greater number than this is
/// damaged: nothing could be numbered after it.
const MAX_NUMBER: u64 = i64::MAX as u64;

/// What records change.
pub(super) struct Replay {
    /// What readers see; `None` while the database is being opened.
    base: Option<Arc<Catalog>>,
    tables: SortedMap<TableId, ReplayedTable>,
    /// Tables of the base that are dropped.
    dropped: SortedMap<TableId, Arc<Table>>,
    /// By lower-case name; `None` for views that are dropped.
    views: SortedMap<String, Option<ViewSchema>>,
    /// Separate index parts, by table and segment. The index or segment of some may be gone.
    parts: Map<(TableId, u64), Vec<NewPart>>,
    /// Descriptions of files, by number. The files of some may be gone.
    files: Map<u64, (Place, Description)>,
    next: NextIds,
    /// The next free number of a file in the snapshot that was loaded.
    at_snapshot: u64,
}

/// A table to which records are applied.
pub(super) struct ReplayedTable {
    pub table: Arc<Table>,
    /// The version that readers see; `None` if they do not see the table yet.
    pub base: Option<Arc<Table>>,
    /// By partition.
    pub segments: Vec<SegmentChanges>,
    /// New hash tables and their partitions. The index or segments of some may be gone.
    pub hashes: Vec<(u32, NewTable)>,
    /// Hash tables of the base that are dropped.
    pub dropped_hashes: Set<u64>,
    /// Rows of a table that readers see.
    pub touched: Touched,
}

impl Replay {
    /// Starts without any state.
    pub fn new() -> Replay {
        Replay::with_base(None, NextIds { commit: 0, segment: 1, table: 1 })
    }

    /// Starts from what readers see, after commit `next.commit`.
    pub fn after(base: &Arc<Catalog>, next: NextIds) -> Replay {
        Replay::with_base(Some(base.clone()), next)
    }

    fn with_base(base: Option<Arc<Catalog>>, next: NextIds) -> Replay {
        Replay {
            base,
            tables: SortedMap::new(),
            dropped: SortedMap::new(),
            views: SortedMap::new(),
            parts: Map::default(),
            files: Map::default(),
            at_snapshot: next.segment,
            next,
        }
    }

    /// Checks what the records say as a whole.
    pub fn check(&self) {
        debug_assert!(
            self.tables.keys().all(|table| *table < self.next.table),
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
    }

    /// The tables that the records create or change, ascending by id.
    pub fn tables(&self) -> impl Iterator<Item = &ReplayedTable> {
        self.tables.values()
    }

    /// The tables that the records drop, as readers see them.
    pub fn dropped(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.dropped.values()
    }

    /// The views that the records create or replace, and the names of those that they drop.
    pub fn views(&self) -> impl Iterator<Item = (&str, Option<&ViewSchema>)> {
        self.views.iter().map(|(name, view)| (&**name, view.as_ref()))
    }

    /// Whether the records change tables as a catalog shows them, or views.
    pub fn changes_catalog(&self) -> bool {
        let is_changed = |replayed: &ReplayedTable| {
            !replayed.base.as_ref().is_some_and(|base| Arc::ptr_eq(base, &replayed.table))
        };
        !self.dropped.is_empty() || !self.views.is_empty() || self.tables().any(is_changed)
    }

    /// The tables that readers see in another version from the last commit on.
    pub fn altered(&self) -> impl Iterator<Item = TableId> {
        let is_altered = |(id, replayed): (&TableId, &ReplayedTable)| {
            let base = replayed.base.as_ref()?;
            (!Arc::ptr_eq(base, &replayed.table)).then_some(*id)
        };
        self.tables.iter().filter_map(is_altered)
    }

    /// New separate index parts of a segment.
    pub fn parts_of(&self, table: &Table, segment: u64) -> &[NewPart] {
        self.parts.get(&(table.id(), segment)).map_or(&[], Vec::as_slice)
    }

    /// New separate index parts of all segments of a table, by segment.
    pub fn parts(&self, table: &Table) -> impl Iterator<Item = (u64, &[NewPart])> {
        let id = table.id();
        let own = self.parts.iter().filter(move |((table, _), _)| *table == id);
        own.map(|((_, segment), parts)| (*segment, parts.as_slice()))
    }

    /// The description of a file and its partition. Files named before files were described have
    /// none.
    pub fn described(&self, number: u64) -> Option<&(Place, Description)> {
        self.files.get(&number)
    }

    /// The segments that the records put into a run, whether they are new or not, by partition.
    /// Only of tables that readers see.
    pub fn placed(&self) -> Map<Place, Vec<&Description>> {
        let is_seen = |place: &Place| {
            self.tables.get(&place.table).is_some_and(|replayed| replayed.base.is_some())
        };
        let mut placed: Map<Place, Vec<&Description>> = Map::default();
        for (place, file) in self.files.values() {
            if file.run.is_some() && is_seen(place) {
                placed.entry(*place).or_default().push(file);
            }
        }
        placed
    }

    /// Takes the rows of tables that readers see.
    pub fn take_touched(&mut self) -> Vec<(TableId, Touched)> {
        let take = |(id, replayed): (&TableId, &mut ReplayedTable)| {
            (*id, std::mem::take(&mut replayed.touched))
        };
        self.tables.iter_mut().map(take).filter(|(_, rows)| !rows.is_empty()).collect()
    }

    /// The next free ids, and the last commit.
    pub fn next(&self) -> NextIds {
        self.next
    }

    /// The next free number of a file in the snapshot that was loaded; the first one without a snapshot.
    pub fn at_snapshot(&self) -> u64 {
        debug_assert!(self.at_snapshot <= self.next.segment, "files of a snapshot are free");
        self.at_snapshot
    }

    /// Loads a snapshot.
    pub fn load(&mut self, payload: &[u8]) -> Result<()> {
        invariant!(
            self.base.is_none() && self.tables.is_empty() && self.next.commit == 0,
            "a snapshot is loaded after commit {}",
            self.next.commit
        );
        let image = Image::decode(payload)?;
        self.next = image.next;
        self.at_snapshot = image.next.segment;
        self.load_image(image)
    }

    /// Loads a snapshot in place of what readers see: its tables, each as if it was emptied, altered and filled
    /// again, and no others. Does nothing if readers see its commit.
    ///
    /// # Errors
    /// `corrupt` if readers see a later commit, or if it contradicts what they see.
    pub fn load_again(&mut self, payload: &[u8]) -> Result<()> {
        let image = Image::decode(payload)?;
        let (seen, loaded) = (self.next, image.next);
        if loaded.commit < seen.commit {
            return Err(Error::corrupt(format!(
                "snapshot: it is of commit {}, before commit {}",
                loaded.commit, seen.commit
            )));
        }
        if loaded.commit == seen.commit {
            return Ok(());
        }
        invariant!(self.tables.is_empty(), "records after commit {} are lost", seen.commit);
        self.next = NextIds {
            commit: loaded.commit,
            segment: loaded.segment.max(seen.segment),
            table: loaded.table.max(seen.table),
        };
        let kept: Set<TableId> = image.tables.iter().map(|table| table.schema.id).collect();
        let base = self.base.clone();
        for table in base.iter().flat_map(|base| base.tables()) {
            if !kept.contains(&table.id()) {
                self.drop_table(table.id())?;
            }
        }
        for view in base.iter().flat_map(|base| base.views()) {
            self.views.insert(view.name.to_ascii_lowercase(), None);
        }
        self.load_image(image)
    }

    fn load_image(&mut self, image: Image) -> Result<()> {
        check_commit(self.next.commit)?;
        self.see_file(self.next.segment.saturating_sub(1))?;
        for view in image.views {
            self.set_view(view)?;
        }
        let newest = self.next.commit;
        let mut indexes: Map<TableId, Indexes> = image.indexes.into_iter().collect();
        let mut rules: Map<TableId, Rules> = image.rules.into_iter().collect();
        for table in image.tables {
            let id = table.schema.id;
            let schema = match indexes.remove(&id) {
                Some(indexes) => indexes.put_into(table.schema)?,
                None => table.schema,
            };
            let schema = match rules.remove(&id) {
                Some(rules) => rules.put_into(schema)?,
                None => schema,
            };
            self.begin(schema, newest)?;
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
                for (id, deleted) in image.segments {
                    replayed.add(id, deleted)?;
                }
                ids.into_iter().try_for_each(|id| self.see_file(id))?;
            }
        }
        for (place, part) in image.parts {
            self.partition(place)?.check_segment(part.segment)?;
            self.add_part(place, part)?;
        }
        for (place, hashes) in image.hashes {
            self.set_hashes(place, &[], Some(hashes))?;
        }
        image.files.into_iter().try_for_each(|(place, file)| self.describe(place, file))
    }

    /// Begins with a table of a snapshot.
    fn begin(&mut self, schema: TableSchema, commit: Timestamp) -> Result<()> {
        let is_seen = |base: &Arc<Catalog>| base.table_by_id(schema.id).is_ok();
        if !self.base.as_ref().is_some_and(is_seen) {
            return self.create(schema);
        }
        let replayed = self.table(schema.id)?;
        replayed.truncate(commit);
        replayed.alter(schema, commit)
    }

    fn create(&mut self, schema: TableSchema) -> Result<()> {
        let id = schema.id;
        if schema.is_temporary() {
            return Err(Error::corrupt(format!("log: table {id} is out of range")));
        }
        self.next.table = self.next.table.max(id + 1);
        let is_in_base = self.base.as_ref().is_some_and(|base| base.table_by_id(id).is_ok());
        if is_in_base || self.tables.contains_key(&id) {
            return Err(Error::corrupt(format!("log: table {id} is created twice")));
        }
        self.tables.insert(id, ReplayedTable::new(Arc::new(Table::new(schema)), None));
        Ok(())
    }

    fn partition(&mut self, place: Place) -> Result<ReplayedPartition<'_>> {
        let Place { table: id, partition: number } = place;
        let ReplayedTable { table, base, segments, touched, .. } = self.table(id)?;
        match (table.partitions().get(number as usize), segments.get_mut(number as usize)) {
            (Some(partition), Some(segments)) => {
                debug_assert!(
                    partition.number() == number,
                    "partition {number} has another number"
                );
                // Readers do not see the partitions of a table that was truncated.
                let is_seen = base.as_ref().is_some_and(|base| base.shares_partitions(table));
                let touched = is_seen.then_some(touched);
                Ok(ReplayedPartition { table, partition, segments, touched })
            }
            _ => Err(Error::corrupt(format!("log: table {id} has no partition {number}"))),
        }
    }

    fn table(&mut self, id: TableId) -> Result<&mut ReplayedTable> {
        let unknown = || Error::corrupt(format!("log: table {id} is unknown"));
        if !self.tables.contains_key(&id) && !self.dropped.contains_key(&id) {
            let base = self.base.as_ref().ok_or_else(unknown)?;
            let table = base.table_by_id(id).map_err(|_| unknown())?;
            self.tables.insert(id, ReplayedTable::new(table.clone(), Some(table)));
        }
        self.tables.get_mut(&id).ok_or_else(unknown)
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
                    self.partition(place)?.flush(commit, upto, segments, &except)?;
                }
                Operation::FlushRange { place, range, segment } => {
                    self.see_file(segment.id)?;
                    check_upto(range.upto, commit)?;
                    self.partition(place)?.flush_range(commit, &range, segment)?;
                }
                Operation::AddSegments { place, segments } => {
                    self.see_segments(&segments)?;
                    self.partition(place)?.add_all(segments)?;
                }
                Operation::DeleteRows { place, segment, rows } => {
                    *self.partition(place)?.segment(segment)? |= rows
                }
                Operation::Merge { place, dropped, added } => {
                    self.see_segments(&added)?;
                    let mut replayed = self.partition(place)?;
                    replayed.drop_all(&dropped);
                    replayed.add_all(added)?;
                }
                Operation::CreateTable { schema } => self.create(schema)?,
                Operation::CreateView { view } => {
                    self.views.insert(view.name.to_ascii_lowercase(), Some(view));
                }
                Operation::DropView { name } => {
                    self.views.insert(name.to_ascii_lowercase(), None);
                }
                Operation::DropTable { table } => self.drop_table(table)?,
                Operation::AlterTable { schema } => {
                    let replayed = self.table(schema.id)?;
                    replayed.alter(schema, commit)?;
                }
                Operation::SetIndexes { table, indexes } => {
                    let replayed = self.table(table)?;
                    let schema = indexes.put_into((**replayed.table.schema()).clone())?;
                    replayed.alter(schema, commit)?;
                }
                Operation::SetRules { table, rules } => {
                    let replayed = self.table(table)?;
                    let schema = rules.put_into((**replayed.table.schema()).clone())?;
                    replayed.alter(schema, commit)?;
                }
                Operation::Advance { table, next } => {
                    self.table(table)?.table.row_source().counter.start_at(next)
                }
                Operation::AddPart { place, part } => {
                    self.partition(place)?.check_segment(part.segment)?;
                    self.add_part(place, part)?;
                }
                Operation::SetTables { place, dropped, added } => {
                    self.set_hashes(place, &dropped, added)?
                }
                Operation::Describe { place, description } => self.describe(place, description)?,
                Operation::Truncate { table } => self.table(table)?.truncate(commit),
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
        let is_other = |(other, known): &(Place, Description)| {
            *other != place || !known.is_of_same_file(&description)
        };
        if self.files.get(&number).is_some_and(is_other) {
            return Err(Error::corrupt(format!("log: file {number} is described in two ways")));
        }
        self.files.insert(number, (place, description));
        Ok(())
    }

    fn set_hashes(&mut self, place: Place, dropped: &[u64], added: Option<NewTable>) -> Result<()> {
        self.partition(place)?;
        for file in added.iter().flat_map(|added| &added.files) {
            self.see_file(*file)?;
        }
        let table = self.table(place.table)?;
        let is_dropped =
            |known: &NewTable| known.files.first().is_some_and(|id| dropped.contains(id));
        table.hashes.retain(|(_, known)| !is_dropped(known));
        table.dropped_hashes.extend(dropped);
        table.hashes.extend(added.map(|added| (place.partition, added)));
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

    fn drop_table(&mut self, id: TableId) -> Result<()> {
        self.table(id)?;
        if let Some(base) = self.tables.remove(&id).and_then(|replayed| replayed.base) {
            self.dropped.insert(id, base);
        }
        Ok(())
    }

    /// Adds a view of a snapshot.
    fn set_view(&mut self, view: ViewSchema) -> Result<()> {
        let name = view.name.to_ascii_lowercase();
        match self.views.insert(name, Some(view)).flatten() {
            None => Ok(()),
            Some(twice) => {
                let name = twice.name;
                Err(Error::corrupt(format!("snapshot: view {name} is listed twice")))
            }
        }
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

/// Ids and physical types of the columns of the primary key and of the shard key, which no change of
/// the schema changes.
fn keys_of(schema: &TableSchema) -> [Option<Vec<(u32, PhysicalType)>>; 2] {
    let column = |at: &usize| (schema.columns[*at].id, schema.columns[*at].data_type.physical());
    let primary = schema.primary_key.as_ref().map(|key| &key.columns);
    let shard = schema.shard_key.as_ref().map(|key| &key.columns);
    [primary, shard].map(|columns| columns.map(|columns| columns.iter().map(column).collect()))
}

impl ReplayedTable {
    fn new(table: Arc<Table>, base: Option<Arc<Table>>) -> ReplayedTable {
        let segments = table.partitions().iter().map(|_| SegmentChanges::default()).collect();
        ReplayedTable {
            table,
            base,
            segments,
            hashes: Vec::new(),
            dropped_hashes: Set::default(),
            touched: Touched::new(),
        }
    }

    /// The timestamp of a version that a commit makes: before all snapshots if readers see no
    /// earlier version.
    fn since(&self, commit: Timestamp) -> Timestamp {
        if self.base.is_some() { commit } else { 0 }
    }

    fn truncate(&mut self, commit: Timestamp) {
        self.table = Arc::new(Table::emptied(&self.table, self.since(commit)));
        self.segments.fill_with(SegmentChanges::default);
        self.hashes.clear();
    }

    fn alter(&mut self, schema: TableSchema, commit: Timestamp) -> Result<()> {
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
        self.table = Arc::new(Table::altered(&self.table, schema, self.since(commit)));
        invariant!(
            self.segments.len() == self.table.partitions().len(),
            "an altered table has {} partitions, and segments of {}",
            self.table.partitions().len(),
            self.segments.len()
        );
        Ok(())
    }
}
