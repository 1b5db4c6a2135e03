//! The rows in memory whose keys a load has, and their locks.
//!
//! All rows in memory are looked at once, afterwards only those that transactions have locked since
//! ([`Journal`]). A row or value that the load has too is locked by the load itself until the load
//! ends. So what was found out about it stays true, however long other rows are waited for.

use crate::index::definition::Index;
use crate::index::entries::each_entry;
use crate::index::range::successor;
use crate::load::comparison::duplicate;
use crate::load::loaded::{Load, OnDuplicate};
use crate::load::staged::{LoadedRow, Staged};
use crate::record::KeySet;
use crate::table::journal::{Journal, TakenLock};
use crate::table::version::Table;
use nacre_rowstore::{Blocker, Change, Key, LockError, Node, Owner, Rowstore};
use nacre_types::hash::Map;
use nacre_types::walked::{self, Path};
use nacre_types::{IndexId, Result, invariant, key, limits};
use roaring::RoaringBitmap;
use std::collections::VecDeque;
use std::sync::Arc;

/// The rows in memory whose keys a load has.
pub(super) struct Watch {
    table: Arc<Table>,
    owner: Arc<Owner>,
    /// By partition and key.
    rows: Map<(u32, Key), WatchedRow>,
    /// Claimed values, with the nodes of their locks.
    values: Map<(IndexId, Key), Option<Arc<Node>>>,
    /// What is to be locked, in the order it was met.
    wanted: Vec<Wanted>,
    /// Rows locked by others, which may get a value that the load has.
    carried: Map<(u32, Key), Arc<Node>>,
    /// What is to be looked at, in order. It stays here until that has succeeded.
    noticed: VecDeque<TakenLock>,
    /// Whether all rows in memory are to be looked at.
    must_scan: bool,
    /// By file: rows that are skipped because of a row in memory.
    skipped: Vec<RoaringBitmap>,
}

/// A row, or the place of one, with a key that the load has.
#[derive(Default)]
pub(super) struct WatchedRow {
    /// Its node, once the load has locked it.
    node: Option<Arc<Node>>,
    /// The rows of the load with its primary key.
    same: Vec<LoadedRow>,
    /// Whether it had another unique key of the load when it was locked.
    has_value: bool,
}

#[derive(Clone)]
enum Wanted {
    Row(u32, Key),
    Value(IndexId, Key),
}

/// A lock that was asked for.
enum Asked {
    Locked(Arc<Node>),
    /// There is no node.
    Missing,
    Held(Blocker),
}

impl Watch {
    /// Watches nothing.
    pub fn new(table: &Arc<Table>, owner: Arc<Owner>, files: usize) -> Watch {
        Watch {
            table: table.clone(),
            owner,
            rows: Map::default(),
            values: Map::default(),
            wanted: Vec::new(),
            carried: Map::default(),
            noticed: VecDeque::new(),
            must_scan: true,
            skipped: vec![RoaringBitmap::new(); files],
        }
    }

    /// The owner of its locks.
    pub fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    /// The number of rows and values that must be locked, or looked at again because others have locked them or
    /// because that has failed.
    pub fn carried(&self) -> usize {
        match self.must_scan {
            true => usize::MAX,
            false => self.carried.len() + self.noticed.len() + self.wanted.len(),
        }
    }

    /// Rows of a file that are skipped because of a row in memory.
    pub fn skipped(&self, file: usize) -> &RoaringBitmap {
        &self.skipped[file]
    }

    /// The rows in memory with keys of the load, by partition, in no order, with the rows of the
    /// load that have their primary keys.
    pub fn met(&self) -> impl Iterator<Item = (u32, &Arc<Node>, &[LoadedRow])> {
        let is_met = |row: &WatchedRow| row.has_value || !row.same.is_empty();
        self.rows.iter().filter(move |(_, row)| is_met(row)).filter_map(|((partition, _), row)| {
            Some((*partition, row.node.as_ref()?, row.same.as_slice()))
        })
    }

    /// Looks at all rows in memory and all claimed values.
    fn scan(&mut self, staged: &Staged) -> Result<()> {
        let table = self.table.clone();
        // Claims first: a value is claimed until its row has it.
        for index in table.unique_indexes() {
            let mut after: Option<Key> = None;
            let mut claims = Vec::new();
            loop {
                claims.clear();
                index.claims().range_after(after.as_deref(), limits::BLOCK_ROWS, &mut claims);
                let Some(last) = claims.last() else { break };
                after = Some(last.key().clone());
                for claim in claims.iter().filter(|claim| claim.is_locked()) {
                    self.meet_value(staged, index, claim.key())?;
                }
            }
        }
        for partition in table.partitions() {
            partition.try_each_node(|node| self.meet_row(staged, partition.number(), node))?;
        }
        Ok(())
    }

    /// Looks at what was locked since the last call, or at everything if that is the first one, and at
    /// rows that others held locked then, unless none of these `can_commit` since. After an error the
    /// next call continues.
    pub fn follow(&mut self, staged: &Staged, journal: &Journal, can_commit: bool) -> Result<()> {
        self.scan_if_due(staged)?;
        if can_commit {
            let carried = std::mem::take(&mut self.carried).into_iter();
            let carried = carried.map(|((partition, _), node)| TakenLock::Row { partition, node });
            self.noticed.extend(carried);
        }
        self.look_at_noticed(staged)?;
        match journal.take() {
            Some(taken) => {
                if !taken.is_empty() {
                    walked::walk(Path::LoadMeets);
                }
                self.noticed.extend(taken);
            }
            None => self.must_scan = true,
        }
        self.look_at_noticed(staged)?;
        self.scan_if_due(staged)
    }

    fn scan_if_due(&mut self, staged: &Staged) -> Result<()> {
        if self.must_scan {
            self.scan(staged)?;
            self.must_scan = false;
        }
        Ok(())
    }

    fn look_at_noticed(&mut self, staged: &Staged) -> Result<()> {
        while let Some(lock) = self.noticed.front().cloned() {
            match lock {
                TakenLock::Row { partition, node } => self.meet_row(staged, partition, &node)?,
                TakenLock::Value { index, node } => {
                    let table = self.table.clone();
                    // Another transaction may have added an index. If that is committed first, the load
                    // fails; otherwise it verifies what was loaded.
                    if table.has_index(index) {
                        self.meet_value(staged, table.index(index)?, node.key())?;
                    }
                }
            }
            self.noticed.pop_front();
        }
        Ok(())
    }

    fn meet_row(&mut self, staged: &Staged, partition: u32, node: &Arc<Node>) -> Result<()> {
        let table = self.table.clone();
        let place = (partition, node.key().clone());
        match self.rows.get(&place) {
            // Locked before its values were known, if it was on its way to memory.
            Some(known) if known.node.is_some() || known.same.is_empty() => {}
            Some(_) => self.wanted.push(Wanted::Row(partition, place.1.clone())),
            None => {
                let same = staged.with_key(&table, partition, node.key())?;
                if !same.is_empty() {
                    self.wanted.push(Wanted::Row(partition, place.1.clone()));
                    let row = WatchedRow { same, ..WatchedRow::default() };
                    self.rows.insert(place.clone(), row);
                }
            }
        }
        if !table.has_unique_index() {
            return Ok(());
        }
        // Read before the row: its holder may change it up to the moment it lets go.
        let is_locked = node.is_locked() && !node.is_locked_by(&self.owner);
        if let Some(Change::Put(row)) = node.newest().map(|version| version.change) {
            let row = table.layout().upgrade(row)?;
            for index in table.unique_indexes() {
                let value = index.key_of(table.layout(), &row)?;
                self.meet_value(staged, index, &value)?;
            }
        }
        if is_locked {
            self.carried.insert(place, node.clone());
        }
        Ok(())
    }

    fn meet_value(&mut self, staged: &Staged, index: &Index, value: &[u8]) -> Result<()> {
        if index.may_repeat(value) {
            return Ok(());
        }
        let place = (index.id(), Key::from(value));
        if !self.values.contains_key(&place) {
            if staged.with_value(&self.table, index, value)?.is_empty() {
                return Ok(());
            }
            self.values.insert(place.clone(), None);
        }
        self.wanted.push(Wanted::Value(place.0, place.1));
        Ok(())
    }

    /// Locks what was met, and finds out what it means for the load. Returns the holder of a lock
    /// to wait for, after which this is to be called again; so it can be after an error of reading.
    pub fn lock(&mut self, load: Load<'_>, staged: &Staged) -> Result<Option<Blocker>> {
        while let Some(wanted) = self.wanted.pop() {
            let asked = match &wanted {
                Wanted::Row(partition, key) => self.lock_row(load, *partition, key),
                Wanted::Value(index, key) => self.lock_value(load, staged, *index, key),
            };
            if !matches!(asked, Ok(None)) {
                self.wanted.push(wanted);
                return asked;
            }
        }
        Ok(None)
    }

    /// Locks the row of a primary key that the load has.
    fn lock_row(&mut self, load: Load<'_>, partition: u32, key: &Key) -> Result<Option<Blocker>> {
        let table = self.table.clone();
        let row = self.rows.entry((partition, key.clone())).or_default();
        if row.node.is_some() {
            return Ok(None);
        }
        let find = || table.partition(partition).rowstore().get(key);
        let node = match ask(find, &self.owner) {
            Asked::Locked(node) => node,
            // Should it be there again, it was locked again.
            Asked::Missing => return Ok(None),
            Asked::Held(blocker) => return Ok(Some(blocker)),
        };
        row.node = Some(node.clone());
        if !matches!(node.newest().map(|version| version.change), Some(Change::Put(_))) {
            return Ok(None);
        }
        match load.on_duplicate {
            OnDuplicate::Error if !row.same.is_empty() => {
                let values = key::decode(key, &table.layout().key_types())?;
                Err(table.layout().duplicate(&values))
            }
            OnDuplicate::Skip => {
                for LoadedRow { file, row } in &row.same {
                    self.skipped[*file].insert(*row);
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// Claims a value that the load has, and locks the row in memory that has it.
    fn lock_value(
        &mut self,
        load: Load<'_>,
        staged: &Staged,
        id: IndexId,
        value: &Key,
    ) -> Result<Option<Blocker>> {
        let table = self.table.clone();
        let index = table.index(id)?;
        let claim = self.values.entry((id, value.clone())).or_default();
        if claim.is_none() {
            match ask(|| Some(index.claims().get_or_insert(value)), &self.owner) {
                Asked::Locked(node) => *claim = Some(node),
                Asked::Held(blocker) => return Ok(Some(blocker)),
                Asked::Missing => invariant!(false, "a node that was inserted is missing"),
            }
        }
        for (partition, key) in rows_with(&table, index, value)? {
            if !has_value(&table, index, partition, &key, value)? {
                continue;
            }
            let place = (partition, key.clone());
            if !self.rows.contains_key(&place) {
                let same = staged.with_key(&table, partition, &key)?;
                self.rows.insert(place.clone(), WatchedRow { same, ..WatchedRow::default() });
            }
            if let Some(blocker) = self.lock_row(load, partition, &key)? {
                return Ok(Some(blocker));
            }
            // It may have lost the value before it was locked.
            if !has_value(&table, index, partition, &key, value)? {
                continue;
            }
            self.rows.entry(place).or_default().has_value = true;
            match load.on_duplicate {
                OnDuplicate::Error => {
                    let values = key::decode(value, index.types())?;
                    return Err(duplicate(&table, KeySet::Index(id), &values)?);
                }
                OnDuplicate::Skip => {
                    for LoadedRow { file, row } in staged.with_value(&table, index, value)? {
                        self.skipped[file].insert(row);
                    }
                }
                OnDuplicate::Replace => {}
            }
        }
        Ok(None)
    }

    /// Releases all locks, for others that wait for them, and forgets what was found out under
    /// them.
    pub fn let_go(&mut self) {
        self.release();
        self.skipped.iter_mut().for_each(RoaringBitmap::clear);
        self.wanted.clear();
        let rows = self.rows.keys().map(|(partition, key)| Wanted::Row(*partition, key.clone()));
        let values = self.values.keys().map(|(index, key)| Wanted::Value(*index, key.clone()));
        self.wanted.extend(rows.chain(values));
        self.owner.gave_back();
    }

    fn release(&mut self) {
        for ((partition, _), row) in &mut self.rows {
            row.has_value = false;
            let Some(node) = row.node.take() else { continue };
            debug_assert!(node.is_locked_by(&self.owner), "a load releases another's row lock");
            node.unlock();
            self.table.partition(*partition).note_released();
            if node.newest().is_none() {
                self.table.collect_row(self.table.partition(*partition), &node, 0);
            }
        }
        for ((index, _), claim) in &mut self.values {
            let Some(node) = claim.take() else { continue };
            debug_assert!(node.is_locked_by(&self.owner), "a load releases another's claim");
            node.unlock();
            // A table that was altered may lack the index, whose values no row then claims.
            if let Ok(index) = self.table.index(*index) {
                index.claims().collect(&node, 0);
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.release();
        self.owner.end();
    }
}

/// Locks a node, if there is one.
fn ask(find: impl Fn() -> Option<Arc<Node>>, owner: &Arc<Owner>) -> Asked {
    loop {
        let Some(node) = find() else { return Asked::Missing };
        match node.lock(owner) {
            Ok(_) => {
                debug_assert!(node.is_locked_by(owner), "a load does not hold a lock it has taken");
                return Asked::Locked(node);
            }
            Err(LockError::Dead) => std::hint::spin_loop(),
            Err(LockError::Held(blocker)) => return Asked::Held(blocker),
        }
    }
}

/// Partitions and keys of the rows in memory that have, or recently had, a value.
fn rows_with(table: &Table, index: &Index, value: &[u8]) -> Result<Vec<(u32, Key)>> {
    let mut rows = Vec::new();
    let end = successor(value.to_vec());
    for partition in table.partitions() {
        each_entry(index, partition.number(), value, end.as_deref(), |entry| {
            rows.push((partition.number(), Key::from(entry.row_key())));
            Ok(())
        })?;
    }
    Ok(rows)
}

/// Whether the newest version of a row in memory has a value.
fn has_value(
    table: &Table,
    index: &Index,
    partition: u32,
    key: &[u8],
    value: &[u8],
) -> Result<bool> {
    let rowstore: &Rowstore = table.partition(partition).rowstore();
    match rowstore.get(key).and_then(|node| node.newest()).map(|version| version.change) {
        Some(Change::Put(row)) => table.has_key(index, &row, value),
        _ => Ok(false),
    }
}
