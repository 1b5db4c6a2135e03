//! A version of a table, between two schema changes: its layout, partitions and indexes, and the
//! commits between which it is the newest version.
//!
//! The schema of a [`Table`] never changes. The newest version refers to the previous one while a
//! snapshot may need it, so a transaction keeps the schema and, after `TRUNCATE`, the rows of its
//! snapshot. Altered versions share their partitions; a truncated table gets new ones. The key
//! alone determines a row's partition.

use crate::index::definition::Index;
use crate::index::indexes::{Indexes, Sweep};
use crate::layout::rows::key_of;
use crate::layout::table_layout::TableLayout;
use crate::record::Place;
use crate::segments::state::{FOREVER, SegmentState};
use crate::table::common::Common;
use crate::table::gate::Gate;
use crate::table::journal::Journals;
use crate::table::lifetime::Lifetime;
use crate::table::partition::Partition;
use crate::table::reference_locks::ReferenceLocks;
use crate::table::reservations::Reservations;
use crate::table::row_key::RowKey;
use crate::table::row_source::RowSource;
use crate::table::run::RunSegments;
use crate::table::sharding::{Sharding, Share, partition_count};
use crate::table::statistics::{ColumnSummary, RunSummary};
use nacre_column::Batch;
use nacre_rowstore::{Change, Node, Row};
use nacre_segment::SegmentBuilder;
use nacre_types::{Error, IndexId, Result, TableId, TableSchema, Timestamp, Value, invariant};
use std::sync::{Arc, PoisonError, RwLock};

/// One version of a table.
pub struct Table {
    layout: TableLayout,
    sharding: Sharding,
    /// At least one.
    partitions: Arc<Vec<Partition>>,
    indexes: Indexes,
    lifetime: Lifetime,
    previous: Previous,
    common: Arc<Common>,
    row_source: RowSource,
}

/// The previous version, while a snapshot may need it.
#[derive(Default)]
struct Previous(RwLock<Option<Arc<Table>>>);

impl Drop for Previous {
    /// Drops versions iteratively: recursion could be as deep as the number of changes made while a
    /// reader held the oldest version.
    fn drop(&mut self) {
        let take = |previous: &mut Previous| {
            previous.0.get_mut().unwrap_or_else(PoisonError::into_inner).take()
        };
        let mut next = take(self);
        while let Some(mut table) = next.and_then(Arc::into_inner) {
            next = take(&mut table.previous);
        }
    }
}

impl Table {
    /// Creates a table with new, empty partitions.
    pub(crate) fn new(schema: TableSchema) -> Table {
        let count = partition_count(&schema);
        let partitions = (0..count).map(|number| Partition::new(number, count)).collect();
        Table {
            row_source: RowSource::default().of_version(&schema),
            sharding: Sharding::new(&schema),
            indexes: Indexes::new(&schema, count as usize, None),
            partitions: Arc::new(partitions),
            layout: TableLayout::new(schema),
            lifetime: Lifetime::new(0, 0),
            previous: Previous::default(),
            common: Arc::default(),
        }
    }

    /// Creates the version for a commit that changes the schema. It shares the partitions.
    pub(crate) fn altered(old: &Table, schema: TableSchema, since: Timestamp) -> Table {
        invariant!(
            partition_count(&schema) as usize == old.partitions.len(),
            "table {} changes its number of partitions",
            schema.name
        );
        invariant!(schema.id == old.id(), "table {} gets the id {}", old.id(), schema.id);
        debug_assert!(
            since == 0 || since >= old.since(),
            "a version of commit {since} follows one of commit {}",
            old.since()
        );
        Table {
            row_source: old.row_source.of_version(&schema),
            sharding: Sharding::new(&schema),
            indexes: Indexes::new(&schema, old.partitions.len(), Some(&old.indexes)),
            layout: old.layout.altered(schema),
            partitions: old.partitions.clone(),
            lifetime: Lifetime::new(since, old.created()),
            previous: Previous::default(),
            common: old.common.clone(),
        }
    }

    /// Creates the version for a commit that removes all rows. Its partitions are new and empty,
    /// but continue the numbering of rows.
    pub(crate) fn emptied(old: &Table, since: Timestamp) -> Table {
        debug_assert!(since >= old.since(), "a version of {since} follows one of {}", old.since());
        let new = Table::new((**old.schema()).clone());
        invariant!(
            new.partitions.len() == old.partitions.len(),
            "table {} changes its number of partitions",
            old.schema().name
        );
        new.continue_row_numbers(old);
        let row_source = old.row_source.of_version(new.schema());
        Table { lifetime: Lifetime::new(since, old.created()), row_source, ..new }
    }

    /// Gives out no number of a row that the partitions of another version have given out.
    pub(crate) fn continue_row_numbers(&self, old: &Table) {
        debug_assert!(!self.shares_partitions(old), "partitions follow themselves");
        for (old, new) in old.partitions.iter().zip(self.partitions.iter()) {
            new.saw_row_numbers(old.next_row_number().saturating_sub(1));
        }
    }

    /// The commit that created the table, in any version; 0 if it predates the opening of the
    /// database.
    pub(crate) fn created(&self) -> Timestamp {
        self.lifetime.created()
    }

    /// Sets the commit that creates the table.
    pub(crate) fn created_by(&self, commit: Timestamp) {
        invariant!(self.created() == 0, "table {} is created twice", self.schema().name);
        self.lifetime.created_by(commit);
    }

    /// The commit that created this version; 0 if it predates the opening of the database.
    pub(crate) fn since(&self) -> Timestamp {
        self.lifetime.since()
    }

    /// Sets the commit that creates this version, which a transaction has made before.
    pub(crate) fn begin_at(&self, commit: Timestamp) {
        self.lifetime.begin_at(commit);
    }

    /// Numbers what a changed schema adds to this version's, as no other change of the table does.
    pub(crate) fn number(&self, changed: TableSchema) -> Result<TableSchema> {
        debug_assert!(changed.id == self.id(), "the schema of another table is numbered");
        self.common.number(changed, self.schema())
    }

    pub(crate) fn previous(&self) -> Option<Arc<Table>> {
        self.previous.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_previous(&self, previous: Option<Arc<Table>>) {
        *self.previous.0.write().unwrap_or_else(PoisonError::into_inner) = previous;
    }

    /// Makes this the newest version in place of `old`. Must be called under the commit lock.
    pub(crate) fn replace(&self, old: &Arc<Table>, commit: Timestamp) {
        self.replace_after(old, commit, self.takes_rows_of(old));
    }

    /// Like [`Table::replace`], after other versions that were never the newest: `keeps_writers` if each
    /// of them takes rows written to the one before.
    pub(crate) fn replace_after(&self, old: &Arc<Table>, commit: Timestamp, keeps_writers: bool) {
        invariant!(
            self.since() == commit && self.id() == old.id(),
            "commit {commit} puts a version of commit {} in the place of another",
            self.since()
        );
        debug_assert!(self.previous().is_none(), "a version replaces another twice");
        debug_assert!(
            !keeps_writers || self.takes_rows_of(old),
            "rows of another version of table {} are kept",
            self.schema().name
        );
        old.lifetime.end_at(commit, keeps_writers);
        let mut older = old.previous().filter(|_| !keeps_writers);
        while let Some(version) = older {
            version.lifetime.refuse_writes();
            older = version.previous();
        }
        self.set_previous(Some(old.clone()));
    }

    /// The version at a timestamp; the oldest one available if the table was created later.
    pub(crate) fn version_at(self: &Arc<Self>, at: Timestamp) -> Arc<Table> {
        let mut version = self.clone();
        while version.since() > at {
            match version.previous() {
                Some(previous) => {
                    debug_assert!(
                        previous.since() < version.since() && previous.id() == self.id(),
                        "commit {} made the version before that of commit {}",
                        previous.since(),
                        version.since()
                    );
                    version = previous;
                }
                None => break,
            }
        }
        version
    }

    /// Drops the versions that no snapshot from `oldest` on needs.
    pub(crate) fn forget_versions(self: &Arc<Self>, oldest: Timestamp) {
        if self.previous().is_some() {
            self.version_at(oldest).set_previous(None);
        }
    }

    /// Whether no commit has replaced this version or dropped the table.
    pub(crate) fn is_newest(&self) -> bool {
        self.until() == FOREVER
    }

    /// The commit that replaced this version or dropped the table; the end of time for the newest.
    pub(crate) fn until(&self) -> Timestamp {
        self.lifetime.until()
    }

    /// Whether snapshots at a timestamp see this version, if they see the table.
    pub fn serves(&self, at: Timestamp) -> bool {
        let until = self.until();
        debug_assert!(self.since() < until, "a version of {}..{until}", self.since());
        self.since() <= at && at < until
    }

    /// Drops the table in all versions, of which this is the newest. Must be called under the
    /// commit lock.
    pub(crate) fn drop_at(&self, commit: Timestamp) {
        debug_assert!(!self.is_dropped(), "table {} is dropped twice", self.schema().name);
        self.lifetime.drop_table();
        // Snapshots may hold older versions.
        let mut older = self.previous();
        while let Some(version) = older {
            version.lifetime.drop_table();
            older = version.previous();
        }
        self.lifetime.end_at(commit, false);
    }

    /// Whether the table was dropped.
    pub(crate) fn is_dropped(&self) -> bool {
        self.lifetime.is_dropped()
    }

    /// Fails with a `conflict` if another version has replaced this one, or the table was dropped.
    pub(crate) fn check_newest(&self) -> Result<()> {
        if self.is_newest() { Ok(()) } else { Err(self.superseded()) }
    }

    /// Whether rows written to an older version are valid rows of this one, apart from entries of
    /// new indexes: nothing but indexes was changed between them, and no new one is unique.
    pub(crate) fn takes_rows_of(&self, old: &Table) -> bool {
        let is_known = |index: &Index| old.has_index(index.id());
        old.lifetime.takes_writes()
            && self.shares_partitions(old)
            && self.schema().takes_rows_of(old.schema())
            && self.unique_indexes().all(is_known)
    }

    /// Fails with a `conflict` if no row can be written to this version any more.
    pub(crate) fn check_writes(&self) -> Result<()> {
        if self.lifetime.takes_writes() { Ok(()) } else { Err(self.superseded()) }
    }

    /// The error for using a superseded version.
    pub(crate) fn superseded(&self) -> Error {
        let name = &self.schema().name;
        let change = if self.is_dropped() { "dropped" } else { "altered or truncated" };
        let message = format!("table {name} was {change} by another transaction");
        Error::conflict(message).with_table(name.clone()).with_hint("retry the transaction")
    }

    /// The error for moving rows that another transaction is about to delete.
    pub(crate) fn being_deleted(&self) -> Error {
        let name = &self.schema().name;
        let message = format!("rows of table {name} are being deleted by another transaction");
        let error = Error::conflict(message).with_table(name.clone());
        error.with_hint("retry once that transaction has ended")
    }

    /// Timestamp of the last commit that changed the table, in any version.
    pub(crate) fn changed(&self) -> Timestamp {
        self.common.changed()
    }

    /// Records a commit that changes the table. Must be called under the commit lock.
    pub(crate) fn set_changed(&self, at: Timestamp) {
        self.common.set_changed(at);
    }

    /// Timestamp of the last commit that deleted rows of segments without a node for their keys. A
    /// key that is free now may be taken in an older snapshot.
    pub(crate) fn cleared(&self) -> Timestamp {
        self.common.cleared()
    }

    /// Records such a commit. Must be called under the commit lock, before it deletes the rows.
    pub(crate) fn set_cleared(&self, at: Timestamp) {
        self.common.set_cleared(at);
    }

    /// The journals of loads that are being published.
    pub(crate) fn journals(&self) -> &Arc<Journals> {
        &self.common.journals
    }

    /// Keys that transactions have reserved.
    pub(crate) fn reservations(&self) -> &Arc<Reservations> {
        &self.common.reservations
    }

    /// Locks of the keys that rows refer to.
    pub(crate) fn reference_locks(&self) -> &Arc<ReferenceLocks> {
        &self.common.reference_locks
    }

    /// The gate that each commit which changes the table passes.
    pub(crate) fn gate(&self) -> &Arc<Gate> {
        &self.common.gate
    }

    /// The schema.
    pub fn schema(&self) -> &Arc<TableSchema> {
        self.layout.schema()
    }

    /// Whether it has the name, columns and indexes of a schema.
    pub(crate) fn is_of(&self, schema: &TableSchema) -> bool {
        let known = self.schema();
        let (ids, wanted) = (known.indexes.iter(), schema.indexes.iter());
        // The set of unique keys determines what an upsert does.
        let same_indexes = ids.map(|index| index.id).eq(wanted.map(|index| index.id));
        known.name == schema.name && known.same_columns(schema) && same_indexes
    }

    /// The layout of rows and keys.
    pub(crate) fn layout(&self) -> &TableLayout {
        &self.layout
    }

    pub(crate) fn row_source(&self) -> &RowSource {
        &self.row_source
    }

    /// Whether it is of one session, and in no record and no file.
    pub fn is_temporary(&self) -> bool {
        self.schema().is_temporary()
    }

    /// Its identity, the same for all versions.
    pub(crate) fn id(&self) -> TableId {
        self.schema().id
    }

    /// Positions of the primary key's columns in the table; `None` if rows have hidden numbers.
    pub fn key_columns(&self) -> Option<&[usize]> {
        self.layout.key_columns()
    }

    /// Checks a row to be written, given in table order, and returns its primary key. The table
    /// must have a primary key.
    pub fn row_key(&self, row: &[Value]) -> Result<RowKey> {
        self.check_row(row)?;
        let columns = self.key_columns();
        invariant!(columns.is_some(), "table {} has no primary key", self.schema().name);
        RowKey::new(&self.layout, key_of(columns.unwrap_or(&[]), row))
    }

    /// Its partitions, by number.
    pub fn partitions(&self) -> &[Partition] {
        &self.partitions
    }

    /// The partition with a number that belongs to this table.
    pub(crate) fn partition(&self, number: u32) -> &Partition {
        debug_assert!(
            (number as usize) < self.partitions.len(),
            "partition {number} of {}",
            self.partitions.len()
        );
        &self.partitions[number as usize]
    }

    /// The partition that would hold the row of an encoded key.
    pub(crate) fn partition_of(&self, key: &[u8]) -> &Partition {
        self.partition(self.sharding.of_key(&self.layout, key))
    }

    /// The partition of rows with these shard key values, in shard key order.
    pub fn partition_of_values(&self, values: &[Value]) -> Result<u32> {
        self.sharding.of_values(self.schema(), values)
    }

    /// The partition for a new row of a table without a primary key.
    pub(crate) fn partition_for(&self, row: &[Value]) -> Result<&Partition> {
        Ok(self.partition(self.sharding.of_new_row(self.schema(), row)?))
    }

    /// Whether a row of a table without a primary key may stay in its partition with these values.
    pub(crate) fn may_stay(&self, partition: u32, row: &[Value]) -> Result<bool> {
        self.sharding.may_stay(self.schema(), partition, row)
    }

    /// Splits a compact batch by partition. Rows without a fixed partition stay together.
    pub(crate) fn split(&self, batch: Batch) -> Result<Vec<Share>> {
        self.sharding.split(self.schema(), batch)
    }

    /// Whether both are versions of one table that was not truncated in between.
    pub(crate) fn shares_partitions(&self, other: &Table) -> bool {
        Arc::ptr_eq(&self.partitions, &other.partitions)
    }

    /// Whether a partition is one of its own.
    fn owns(&self, partition: &Partition) -> bool {
        std::ptr::eq(self.partition(partition.number()), partition)
    }

    /// The partition as log records name it.
    pub(crate) fn place(&self, partition: &Partition) -> Place {
        debug_assert!(self.owns(partition), "a partition of another table");
        Place { table: self.id(), partition: partition.number() }
    }

    /// An estimate of the number of rows, which includes deleted versions in memory.
    pub fn row_count_estimate(&self) -> u64 {
        self.partitions.iter().map(Partition::row_count_estimate).sum()
    }

    /// Number of nodes and bytes of all rowstores, including index entries, and the unique values
    /// that open transactions have claimed.
    pub fn rowstore_size(&self) -> (usize, usize) {
        let sizes = self.partitions.iter().map(|partition| {
            let (nodes, bytes) = partition.rowstore_size();
            (nodes, bytes + self.indexes.entry_bytes(partition.number()))
        });
        let claims = (0, self.indexes.claim_bytes());
        sizes.fold(claims, |sum, size| (sum.0 + size.0, sum.1 + size.1))
    }

    /// Whether the rowstore of a partition exceeds its share of `flush_bytes` and a flush may free
    /// some of it.
    pub(crate) fn wants_flush(
        &self,
        partition: &Partition,
        flush_bytes: usize,
        oldest_snapshot: impl Fn() -> Timestamp,
    ) -> bool {
        invariant!(!self.partitions.is_empty(), "table {} has no partition", self.schema().name);
        let limit = flush_bytes / self.partitions.len();
        partition.wants_flush(limit, self.entry_bytes(partition), oldest_snapshot)
    }

    /// All segments that some snapshot may see, by partition.
    pub fn segments(&self) -> Vec<Arc<SegmentState>> {
        self.partitions
            .iter()
            .flat_map(|p| p.segments().iter().cloned().collect::<Vec<_>>())
            .collect()
    }

    /// The sorted runs of its segments, by partition, oldest first.
    pub fn runs(&self) -> Vec<RunSegments> {
        let lists = self.partitions.iter().map(Partition::segments);
        lists
            .flat_map(|list| list.runs().iter().map(|run| run.current()).collect::<Vec<_>>())
            .filter(|run| !run.segments.is_empty())
            .collect()
    }

    /// Starts a segment of this table. Rows must be pushed in the order of
    /// [`TableLayout::encode_order`].
    pub(crate) fn segment_builder(&self) -> SegmentBuilder {
        self.layout.segment_builder(self.indexes().iter().map(Index::order).collect())
    }

    /// Statistics of the column at a position, gathered without reading its values; `None` without
    /// segments.
    pub fn column_summary(&self, position: usize) -> Result<Option<ColumnSummary>> {
        let Some(column) = self.schema().columns.get(position) else { return Ok(None) };
        let mut all = RunSummary::default();
        for partition in self.partitions() {
            for run in partition.segments().runs() {
                all.add(&*run.summary(column)?);
            }
        }
        Ok(all.summary())
    }

    /// Its indexes.
    pub(crate) fn indexes(&self) -> &[Index] {
        self.indexes.all()
    }

    /// The index with an id from some version of the table. `conflict` if this version does not
    /// have it.
    pub(crate) fn index(&self, id: IndexId) -> Result<&Index> {
        self.indexes.get(id).ok_or_else(|| self.superseded())
    }

    /// Whether it has the index with an id.
    pub(crate) fn has_index(&self, id: IndexId) -> bool {
        self.indexes.get(id).is_some()
    }

    /// Whether it has unique indexes besides the primary key.
    pub(crate) fn has_unique_index(&self) -> bool {
        self.unique_indexes().next().is_some()
    }

    /// Its unique indexes besides the primary key.
    pub(crate) fn unique_indexes(&self) -> impl Iterator<Item = &Index> {
        self.indexes().iter().filter(|index| index.is_unique())
    }

    /// Whether a row of any version of the table has this index key. `conflict` if the table was
    /// altered and the row is newer than this version.
    pub(crate) fn has_key(&self, index: &Index, row: &Row, index_key: &[u8]) -> Result<bool> {
        debug_assert!(self.has_index(index.id()), "index {} is of another table", index.name());
        match index.is_key_of(&self.layout, row, index_key) {
            Err(_) if !self.is_newest() => Err(self.superseded()),
            has => has,
        }
    }

    /// Bytes of the index entries of a partition's rowstore.
    pub(crate) fn entry_bytes(&self, partition: &Partition) -> usize {
        debug_assert!(self.owns(partition), "a partition of another table");
        self.indexes.entry_bytes(partition.number())
    }

    /// Build progress of an index: the number of segments with an index part, and of all segments.
    /// Segments without a part are scanned, so queries are correct throughout.
    pub fn index_progress(&self, id: IndexId) -> (usize, usize) {
        let current = self.segments().into_iter().filter(|state| state.is_current());
        current.fold((0, 0), |(done, all), state| {
            (done + usize::from(state.part(id).is_some()), all + 1)
        })
    }

    /// Adds the index entries of a row about to be written. The caller holds its lock.
    pub(crate) fn enter(&self, partition: u32, row_key: &[u8], row: &Row) -> Result<()> {
        debug_assert!(
            self.partition_of(row_key).number() == partition,
            "a row of another partition than {partition} is entered"
        );
        self.indexes.enter(&self.layout, partition, row_key, row)
    }

    /// Removes the index entries of a row whose write was undone. The caller holds its lock.
    pub(crate) fn leave(&self, partition: u32, node: &Node, row: &Row) {
        debug_assert!(node.is_locked(), "entries are taken out of a row that is not locked");
        self.indexes.leave(&self.layout, partition, node, row);
    }

    /// Restores the index entries after a pending change was undone to the one before it. The
    /// caller holds the row's lock.
    pub(crate) fn take_back(
        &self,
        partition: u32,
        node: &Node,
        before: Option<&Change>,
        undone: Option<&Change>,
    ) {
        debug_assert!(node.is_locked(), "entries are restored of a row that is not locked");
        self.indexes.take_back(&self.layout, partition, node, before, undone);
    }

    /// Frees row versions that no snapshot from `oldest` on sees, and index entries that only they
    /// needed.
    pub(crate) fn collect_row(&self, partition: &Partition, node: &Arc<Node>, oldest: Timestamp) {
        debug_assert!(self.owns(partition), "a row in a partition of another table");
        let (number, rowstore) = (partition.number(), partition.rowstore());
        self.indexes.collect_row(&self.layout, number, rowstore, node, oldest);
    }

    /// Removes index entries of a partition's rowstore that no reader needs, among the next
    /// `limit` ones. Returns whether there may be more.
    pub(crate) fn sweep_entries(
        &self,
        partition: &Partition,
        sweep: &mut Sweep,
        limit: usize,
    ) -> bool {
        debug_assert!(self.owns(partition), "a rowstore of another table");
        let rowstore = partition.rowstore();
        self.indexes.sweep(&self.layout, partition.number(), rowstore, sweep, limit)
    }
}
