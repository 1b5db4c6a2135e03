//! A user transaction under snapshot isolation: reads at its snapshot plus its own changes, locks
//! the rows it writes; the first committer wins.
//!
//! A row in a segment is first moved to the rowstore by a separate commit that is invisible to
//! readers, then locked and changed like any other row. Source: Prout et al., *Cloud-Native
//! Transactions and Analytics in SingleStore*, SIGMOD 2022, section 4.2.

use crate::environment::Environment;
use crate::load::bulk_update::BulkUpdate;
use crate::read::equal::{self, Equal, FoundRows};
use crate::read::view::{RowLocator, TableView};
use crate::segments::state::SegmentState;
use crate::table::row_key::RowKey;
use crate::table::version::Table;
use crate::transaction::claiming::{self, SeenRows};
use crate::transaction::core::Core;
use crate::transaction::key_changes::{self, FollowedKey, KeyChanges};
use crate::transaction::manager::TransactionManager;
use crate::transaction::step::Rekeyed;
use crate::transaction::temporary_tables::TemporaryTables;
use crate::transaction::{changes, ddl, keyed, references, rekey, unique};
use nacre_column::Batch;
use nacre_rowstore::{Blocker, Owner};
use nacre_types::{
    IndexId, IndexSchema, Result, TableId, TableSchema, Timestamp, Value, ViewSchema, invariant,
};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// A point in a transaction to roll back to; by default its beginning.
#[derive(Clone, Copy, Debug, Default)]
pub struct Savepoint(usize);

/// A transaction. Dropping it rolls it back.
pub struct Transaction(Core);

impl Transaction {
    /// Begins at the newest visible commit.
    pub(crate) fn begin(manager: &Arc<TransactionManager>) -> Result<Transaction> {
        manager.commits().check_open()?;
        Ok(Transaction(Core::begin(manager)))
    }

    /// Begins a second transaction on the same snapshot, which stays in use even if this one ends
    /// first. It sees no changes of this transaction: if [`Transaction::has_writes`], read in this
    /// one instead.
    pub fn reader(&self) -> Transaction {
        Transaction(self.0.reader())
    }

    /// Lets it see and change the temporary tables of a session, before it does anything else.
    pub fn with_temporary(mut self, temporary: &Arc<TemporaryTables>) -> Transaction {
        self.0.set_temporary(temporary.clone());
        self
    }

    /// Host services for statement execution.
    pub fn environment(&self) -> &Environment {
        self.0.manager().environment()
    }

    /// `closed` once the database is closed.
    pub fn check_open(&self) -> Result<()> {
        self.0.commits().check_open()
    }

    /// Its snapshot.
    pub fn snapshot(&self) -> Timestamp {
        self.0.at()
    }

    /// The transaction as an owner of row locks.
    pub fn owner(&self) -> &Arc<Owner> {
        self.0.writes().owner()
    }

    /// Whether it has changed or locked anything.
    pub fn has_writes(&self) -> bool {
        !self.0.writes().is_empty()
    }

    /// Takes the holder of the row lock on which the last write failed with
    /// [`LockTimeout`](nacre_types::ErrorKind::LockTimeout).
    pub fn take_blocker(&mut self) -> Option<Blocker> {
        self.0.writes_mut().take_blocker()
    }

    /// Whether it has changed the catalog.
    pub fn changes_catalog(&self) -> bool {
        !self.0.writes().catalog().is_empty()
    }

    /// A table by name, as the transaction sees it.
    pub fn table(&self, name: &str) -> Option<Arc<Table>> {
        ddl::table(&self.0, name)
    }

    /// A table by id, as the transaction sees it.
    pub fn table_by_id(&self, id: TableId) -> Option<Arc<Table>> {
        ddl::table_by_id(&self.0, id)
    }

    /// Names of the tables that the transaction sees.
    pub fn table_names(&self) -> Vec<String> {
        ddl::table_names(&self.0)
    }

    /// A view by name, as the transaction sees it.
    pub fn view_named(&self, name: &str) -> Option<Arc<ViewSchema>> {
        ddl::view(&self.0, name)
    }

    /// All views that the transaction sees, by name.
    pub fn views(&self) -> Vec<Arc<ViewSchema>> {
        ddl::views(&self.0)
    }

    /// Creates an empty table, which others see once the transaction has committed. `replace` drops
    /// a table that has the name.
    pub fn create_table(&mut self, schema: TableSchema, replace: bool) -> Result<Arc<Table>> {
        ddl::create_table(&mut self.0, schema, replace)
    }

    /// Drops a table. `conflict` if another transaction has changed it since this one began, now or
    /// when it commits.
    pub fn drop_table(&mut self, table: &Arc<Table>) -> Result<()> {
        ddl::drop_table(&mut self.0, table)
    }

    /// Changes the schema of a table. `conflict` if another transaction has changed it since this one
    /// began, now or when it commits; `constraint` if a row does not satisfy it, now or then.
    pub fn alter_table(&mut self, table: &Arc<Table>, changed: TableSchema) -> Result<Arc<Table>> {
        ddl::alter(&mut self.0, table, changed)
    }

    /// Creates an index of a table, as [`Transaction::alter_table`] changes one.
    pub fn create_index(&mut self, table: &Arc<Table>, index: IndexSchema) -> Result<Arc<Table>> {
        ddl::create_index(&mut self.0, table, index)
    }

    /// Drops an index of a table, as [`Transaction::alter_table`] changes one.
    pub fn drop_index(&mut self, table: &Arc<Table>, name: &str) -> Result<Arc<Table>> {
        ddl::drop_index(&mut self.0, table, name)
    }

    /// Removes all rows of a table, and those that others have added when the transaction commits.
    pub fn truncate(&mut self, table: &Arc<Table>) -> Result<()> {
        ddl::truncate(&mut self.0, table)
    }

    /// Creates a view. `replace` allows it to replace another.
    pub fn create_view(&mut self, view: ViewSchema, replace: bool) -> Result<()> {
        ddl::create_view(&mut self.0, view, replace)
    }

    /// Drops a view.
    pub fn drop_view(&mut self, name: &str) -> Result<()> {
        ddl::drop_view(&mut self.0, name)
    }

    /// The table with this schema, as the transaction sees it. `not_found` if it does not exist,
    /// `conflict` if its columns, indexes or name are different: bind the statement again.
    pub fn table_of(&self, schema: &TableSchema) -> Result<Arc<Table>> {
        ddl::table_of(&self.0, schema)
    }

    /// The table as this transaction sees it.
    pub fn view(&self, table: &Arc<Table>) -> TableView {
        let writes = self.0.writes();
        let hidden = writes.hidden().of_table(table);
        TableView::new(table, self.owner(), self.0.guard(), hidden, |partition| {
            match writes.own_segments() {
                Some(own) => own.list(table, partition),
                None => partition.segments(),
            }
        })
    }

    /// The row of a key, projected; `None` if there is none. `key` holds the primary key values in
    /// key order.
    pub fn get(
        &self,
        table: &Arc<Table>,
        key: &[Value],
        projection: &[usize],
    ) -> Result<Option<Vec<Value>>> {
        debug_assert!(table.key_columns().is_some(), "table {} has no key", table.schema().name);
        let encoded = table.layout().encode_wanted_key(key)?;
        match self.0.find(table, key, &encoded)? {
            Some((_, found)) => found.values(table, projection).map(Some),
            None => Ok(None),
        }
    }

    /// The location and values of the row with a key.
    pub fn locate(
        &self,
        table: &Arc<Table>,
        key: &[Value],
    ) -> Result<Option<(RowLocator, Vec<Value>)>> {
        changes::locate(&self.0, table, key)
    }

    /// The location and values of the visible row with these values in all columns of an index; the
    /// first one if the index is not unique. Nulls never match.
    pub fn locate_unique(
        &self,
        table: &Arc<Table>,
        index: IndexId,
        values: &[Value],
    ) -> Result<Option<(RowLocator, Vec<Value>)>> {
        unique::locate(&self.0, table, index, values)
    }

    /// The visible rows that have the same primary key, or one of the same unique values, as a row to
    /// be written, each once.
    pub fn conflicting(&self, table: &Arc<Table>, row: &[Value]) -> Result<Vec<RowLocator>> {
        changes::conflicting(&self.0, table, row)
    }

    /// The visible rows with some values; `None` if there are too many.
    pub fn equal(&self, table: &Arc<Table>, equal: &Equal<'_>) -> Result<Option<Vec<FoundRows>>> {
        self.0.read(table, |reader| equal::find(table, equal, reader))
    }

    /// Inserts rows given in table order. Fails on the first existing key; the caller then rolls
    /// back to its savepoint.
    pub fn insert(&mut self, table: &Arc<Table>, batch: &Batch) -> Result<u64> {
        changes::insert(&mut self.0, table, batch)
    }

    /// Inserts one row given in table order.
    pub fn insert_row(&mut self, table: &Arc<Table>, values: &[Value]) -> Result<()> {
        changes::insert_row(&mut self.0, table, values)
    }

    /// Inserts a row whose key this transaction does not see. If the key or a unique value is
    /// taken, another transaction was faster: a `conflict`, which a retry resolves.
    pub fn insert_absent(&mut self, table: &Arc<Table>, values: &[Value]) -> Result<()> {
        changes::insert_absent(&mut self.0, table, values)
    }

    /// Replaces one row by another with the same key, given in table order.
    pub fn update_row(
        &mut self,
        table: &Arc<Table>,
        locator: &RowLocator,
        values: &[Value],
    ) -> Result<()> {
        changes::update_row(&mut self.0, table, locator, values)
    }

    /// Replaces rows. `new_rows` holds whole rows in table order, one per locator. A row's key and
    /// partition may change.
    pub fn update(
        &mut self,
        table: &Arc<Table>,
        locators: &[RowLocator],
        new_rows: &Batch,
    ) -> Result<u64> {
        changes::update(&mut self.0, table, locators, new_rows)
    }

    /// Like [`Transaction::update`], for rows whose current content the caller has already read in
    /// this transaction, so that moving them need not read it again.
    pub fn update_seen(
        &mut self,
        table: &Arc<Table>,
        locators: &[RowLocator],
        seen: &[&[Value]],
        new_rows: Vec<Vec<Value>>,
    ) -> Result<u64> {
        changes::update_seen(&mut self.0, table, locators, seen, new_rows)
    }

    /// Writes rows under distinct primary keys. `decide` receives the existing rows of the keys and
    /// returns the new row of each key: for a free key the row that the key was derived from, for
    /// an existing key any row with that key, or `None` to leave it unchanged and release its lock.
    /// An invisible change by another transaction is a `conflict`.
    pub fn write_keys(
        &mut self,
        table: &Arc<Table>,
        keys: &[RowKey],
        decide: impl FnOnce(&Transaction, &[Option<Vec<Value>>]) -> Result<Vec<Option<Vec<Value>>>>,
    ) -> Result<()> {
        self.0.check_writes(table)?;
        debug_assert!(table.key_columns().is_some(), "table {} has no key", table.schema().name);
        let locked = keyed::lock(&mut self.0, table, keys);
        let decided = locked.olds().and_then(|olds| decide(self, olds));
        keyed::write(&mut self.0, table, locked, decided)
    }

    /// Deletes rows.
    pub fn delete(&mut self, table: &Arc<Table>, locators: &[RowLocator]) -> Result<u64> {
        changes::delete(&mut self.0, table, locators)
    }

    /// Deletes rows of a segment, as [`RowLocator::Segment`] names them, together: a bit for each
    /// instead of a copy in memory.
    pub fn delete_together(
        &mut self,
        table: &Arc<Table>,
        partition: u32,
        segment: u64,
        rows: &RoaringBitmap,
    ) -> Result<u64> {
        claiming::delete(&mut self.0, table, SeenRows { partition, segment, rows })
    }

    /// The segments that it has written.
    pub(crate) fn own_segments(&self) -> Vec<Arc<SegmentState>> {
        self.0.writes().own_segments().map(|own| own.states()).unwrap_or_default()
    }

    /// Claims the rows of a segment, given with its partition, that an update has written anew.
    pub fn replace_together(&mut self, update: &mut BulkUpdate, place: (u32, u64)) -> Result<()> {
        claiming::replace(&mut self.0, update, place)
    }

    /// Reserves the new keys of an update, whose old rows are all claimed or deleted. `constraint` if
    /// another row has one of them.
    pub fn reserve_keys(&mut self, update: &mut BulkUpdate) -> Result<()> {
        rekey::reserve(&mut self.0, update)
    }

    /// Takes over the new rows of an update, whose old rows are all claimed or deleted, and whose new
    /// keys are reserved. Returns their number.
    pub fn add_updated(&mut self, update: BulkUpdate) -> u64 {
        let rows = update.rows();
        self.0.writes_mut().add(update);
        rows
    }

    /// Locks rows until the transaction ends, without changing them.
    pub fn lock(&mut self, table: &Arc<Table>, locators: &[RowLocator]) -> Result<()> {
        changes::lock(&mut self.0, table, locators)
    }

    /// Whether it has written, since a savepoint, rows that refer to others or may be referred to.
    pub fn touches_references(&self, since: Savepoint) -> bool {
        references::touched(&self.0, since.0).next().is_some()
    }

    /// The tables whose rows it has written since a savepoint, of those that refer to others or are referred
    /// to, as the transaction sees them.
    pub fn referring_tables(&self, since: Savepoint) -> Vec<Arc<Table>> {
        references::tables(&self.0, since.0)
    }

    /// The keys that it has added and removed since a savepoint, in the order of `keys`.
    pub fn key_changes(&self, since: Savepoint, keys: &[FollowedKey]) -> Result<Vec<KeyChanges>> {
        key_changes::since(&self.0, since.0, keys)
    }

    /// Notes rows that have got other keys: [`KeyChanges`] does not say which one became which.
    pub fn note_rekeyed(&mut self, table: &Table, rows: Vec<Rekeyed>) {
        self.0.writes_mut().note_rekeyed(table.id(), rows);
    }

    /// The rows of a table that were noted since a savepoint as having got other keys.
    pub fn rekeyed(&self, since: Savepoint, table: TableId) -> impl Iterator<Item = &Rekeyed> {
        references::rekeyed(&self.0, since.0, table)
    }

    /// Locks keys of a table that rows refer to, until the transaction ends: together with others that do
    /// so, or alone. All keys of the table if there are very many.
    ///
    /// Errors: `lock_timeout` with a blocker.
    pub fn lock_references(
        &mut self,
        table: &Table,
        keys: Vec<Vec<u8>>,
        is_alone: bool,
    ) -> Result<()> {
        references::lock(&mut self.0, table, keys, is_alone)
    }

    /// Whether others have committed changes of a table that this transaction does not see.
    pub fn is_behind(&self, table: &Table) -> bool {
        table.changed().max(table.cleared()) > self.0.at()
    }

    /// Begins a transaction that sees the newest commit, and no changes of this one.
    pub fn newest(&self) -> Result<Transaction> {
        Transaction::begin(&self.0.shared_manager())
    }

    /// Returns a point to roll back to.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint(self.0.writes().len())
    }

    /// Counts what was written since the last call among the bytes of the rowstores, for the answers
    /// to other writes. A commit does so by itself.
    pub fn count_writes(&mut self) {
        self.0.writes_mut().count();
    }

    /// Undoes all writes since the savepoint and releases the locks they took.
    pub fn rollback_to(&mut self, savepoint: Savepoint) {
        invariant!(
            savepoint.0 <= self.0.writes().len(),
            "a savepoint of {} writes in a transaction of {}",
            savepoint.0,
            self.0.writes().len()
        );
        self.0.writes_mut().roll_back_to(savepoint.0);
        debug_assert!(
            self.0.writes().len() == savepoint.0,
            "{} writes are left at a savepoint of {}",
            self.0.writes().len(),
            savepoint.0
        );
    }

    /// Makes all changes durable and visible, or none. After an `io` error the log is poisoned and
    /// the outcome is unknown until the database is opened again.
    pub fn commit(self) -> Result<()> {
        self.0.commit()
    }

    /// Verifies the rows that others have committed to tables that this transaction has altered, so that its
    /// commit need not. To be called right before it where bytes may be absent, for which a commit
    /// cannot wait: once it succeeds, others that change these tables wait for the commit.
    ///
    /// Errors: `constraint`; those of absent bytes.
    pub fn verify_changed(&mut self) -> Result<()> {
        self.0.verify_changed()
    }

    /// Undoes everything.
    pub fn rollback(self) {
        drop(self);
    }
}
