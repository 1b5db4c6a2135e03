//! Making and dropping indexes: a new version of the table, like every change of a schema.
//!
//! An index is there, and answers, from the commit that made it: rows in memory are entered under the commit lock, and
//! segments without a part of it are read as a whole until house-keeping has built one. Whoever wrote to the version
//! before gets `conflict` when he commits, so that no row comes in that the index does not know.

use crate::index::definition::Index;
use crate::index::entries::each_entry;
use crate::maintenance::check::rows::fingerprint;
use crate::read::probe::block_keys;
use crate::store::Store;
use crate::table::version::Table;
use nacre_rowstore::{Change, Node};
use nacre_types::{Error, IndexKind, IndexSchema, Result, TableSchema, Timestamp, limits};
use std::sync::{Arc, PoisonError};

impl Store {
    /// Makes an index, and answers the version of the table that has it. Its id is replaced by a new one. `constraint`
    /// when it is to be unique and two rows have the same values; `conflict` when the table was changed since.
    pub fn create_index(
        self: &Arc<Self>,
        table: &Arc<Table>,
        mut index: IndexSchema,
    ) -> Result<Arc<Table>> {
        self.check_open()?;
        let mut changed: TableSchema = (**table.schema()).clone();
        index.id = changed.take_index_id();
        changed.indexes.push(index);
        changed.check_indexes()?;
        let seen = self.settled_change(table);
        if changed.indexes.last().is_some_and(|index| index.unique) {
            // Without a lock first: nobody waits, and if nobody writes meanwhile that is enough. The snapshot keeps the
            // segments that are read, whoever merges or truncates them.
            let pinned = self.begin()?;
            let trial = Table::altered(table, changed.clone(), 0);
            let outcome = trial.enter_all().and_then(|()| trial.verify_new_indexes(table));
            // Rows that were written meanwhile may have been met twice: then the look under the lock decides. Rows of a
            // table that was truncated meanwhile are none.
            if outcome.is_err() && table.is_newest() && self.settled_change(table) == seen {
                outcome?;
            }
            drop(pinned);
        }
        self.alter(table, changed, Some(seen))
    }

    /// The last commit that changed a table, when none is in the middle of it: while one is, rows may be there already of
    /// which the table does not say so, or the other way round.
    fn settled_change(&self, table: &Table) -> Timestamp {
        let _nobody_commits = self.commit.lock().unwrap_or_else(PoisonError::into_inner);
        table.changed()
    }

    /// Drops an index by name, and answers the version of the table without it. `conflict` when the table was changed
    /// since.
    pub fn drop_index(self: &Arc<Self>, table: &Arc<Table>, name: &str) -> Result<Arc<Table>> {
        self.check_open()?;
        let mut changed: TableSchema = (**table.schema()).clone();
        let before = changed.indexes.len();
        changed.indexes.retain(|index| {
            index.kind == IndexKind::Companion || !index.name.eq_ignore_ascii_case(name)
        });
        if changed.indexes.len() == before {
            return Err(Error::not_found(format!("index {name} of table {}", changed.name))
                .with_sqlstate("42704"));
        }
        self.alter_table(table, changed)
    }
}

impl Table {
    /// Checks that all rows may be in those unique indexes that `old` did not have. Under the commit lock, and after
    /// [`Table::enter_all`], for good.
    pub(crate) fn verify_new_indexes(&self, old: &Table) -> Result<()> {
        let is_new = |index: &&Index| {
            index.schema.unique && old.schema().index_by_id(index.schema.id).is_none()
        };
        self.indexes().iter().filter(is_new).try_for_each(|index| self.verify_unique(index))
    }

    fn verify_unique(&self, index: &Index) -> Result<()> {
        // Two hashes of each key make a false alarm as good as impossible without keeping the keys.
        let mut seen: Vec<(u64, u64)> = Vec::new();
        self.each_index_key(index, &mut |key| {
            if !index.may_repeat(key) {
                seen.push(fingerprint(key));
            }
            Ok(())
        })?;
        seen.sort_unstable();
        let Some(twice) = seen.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
        else {
            return Ok(());
        };
        drop(seen);
        self.each_index_key(index, &mut |key| {
            if fingerprint(key) == twice { Err(index.duplicate(self, key)) } else { Ok(()) }
        })
    }

    /// Visits the index keys of all rows there are as of now.
    fn each_index_key(
        &self,
        index: &Index,
        visit: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        for partition in self.partitions() {
            each_entry(index, partition, &[], None, |entry| {
                let newest = partition
                    .rowstore
                    .get(entry.row_key())
                    .and_then(|node: Arc<Node>| node.newest());
                match newest.map(|version| version.change) {
                    Some(Change::Put(row)) if index.has_key(self, &row, entry.index_key())? => {
                        visit(entry.index_key())
                    }
                    _ => Ok(()),
                }
            })?;
            for state in partition.segments().iter().filter(|state| state.is_current()) {
                let deleted = state.all_deleted();
                for start in (0..state.segment.rows()).step_by(limits::BLOCK_ROWS) {
                    let keys = block_keys(self, index, state, start)?;
                    let live =
                        keys.iter().zip(start as u32..).filter(|(_, row)| !deleted.contains(*row));
                    live.map(|(key, _)| key).try_for_each(|key| visit(key))?;
                }
            }
        }
        Ok(())
    }
}
