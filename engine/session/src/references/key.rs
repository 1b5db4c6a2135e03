//! A foreign key with the tables that it connects, and the rows that have or refer to given keys.

use crate::boxed::Boxed;
use crate::execution::Execution;
use crate::statement::{HeldTargets, LocatedRows, locate};
use nacre_column::Batch;
use nacre_exec::build;
use nacre_operator::Reservation;
use nacre_sql::expr::ExprKind;
use nacre_sql::{Expr, Plan};
use nacre_table::{FollowedKey, Table, Transaction};
use nacre_types::hash::Set;
use nacre_types::{
    DataType, Error, ForeignKey, Result, TableId, TableSchema, Value, key, reference_type,
};
use std::sync::Arc;

/// Keys that are looked for by one scan.
const AT_ONCE: usize = 1 << 16;
/// Keys that are looked up one by one.
const FEW: usize = 64;

/// Estimated bytes of a key beside its values: in the sets that have it while rows are looked for, and as a lock.
const KEY_BYTES: usize = 160;

/// A foreign key, and the tables that it connects.
#[derive(Clone)]
pub(super) struct Reference {
    pub child: Arc<Table>,
    pub parent: Arc<Table>,
    pub key: ForeignKey,
    /// Types as which its values are compared.
    types: Vec<DataType>,
    /// Positions of its columns.
    pub columns: Vec<usize>,
    /// Positions of the columns that it refers to.
    parent_columns: Vec<usize>,
}

/// Encoded values of keys.
pub(super) type Keys = Set<Vec<u8>>;

/// Counts keys in the memory of statements, until the reservation is dropped.
///
/// Errors: `limit` if they exceed the statement's memory.
pub(super) fn reserved(
    keys: &Keys,
    transaction: &Transaction,
    execution: &Execution<'_>,
) -> Result<Reservation> {
    let mut held = Reservation::default();
    let bytes = keys.iter().map(|key| key.len() + KEY_BYTES).sum();
    execution.context(transaction).reserve(&mut held, "the keys of rows", bytes)?;
    Ok(held)
}

impl Reference {
    pub fn new(child: Arc<Table>, parent: Arc<Table>, key: &ForeignKey) -> Result<Reference> {
        let lacking = || {
            let (key, table) = (&key.name, &child.schema().name);
            Error::corrupt(format!("foreign key {key} of table {table} lacks a column"))
        };
        let columns = child.schema().positions(&key.columns).ok_or_else(lacking)?;
        let parent_columns = parent.schema().positions(&key.parent_columns).ok_or_else(lacking)?;
        let of = |at: &usize| reference_type(parent.schema().columns[*at].data_type);
        let types = parent_columns.iter().map(of).collect();
        Ok(Reference { child, parent, key: key.clone(), types, columns, parent_columns })
    }

    /// The foreign keys of a table, as a transaction sees it.
    pub fn of_child(transaction: &Transaction, child: &Arc<Table>) -> Result<Vec<Reference>> {
        let mut all = Vec::new();
        for key in &child.schema().foreign_keys {
            let parent = child.schema().parent_of(key);
            let parent = transaction.table_by_id(parent).ok_or_else(|| gone(child, parent))?;
            all.push(Reference::new(child.clone(), parent, key)?);
        }
        Ok(all)
    }

    /// The foreign keys that refer to rows of a table, as a transaction sees it.
    pub fn of_parent(transaction: &Transaction, parent: &Arc<Table>) -> Result<Vec<Reference>> {
        let schema = parent.schema();
        let mut all = Vec::new();
        for child in schema.referenced_by.iter().chain([&schema.id]) {
            let child = transaction.table_by_id(*child).ok_or_else(|| gone(parent, *child))?;
            for key in child.schema().keys_to(schema.id) {
                all.push(Reference::new(child.clone(), parent.clone(), key)?);
            }
        }
        Ok(all)
    }

    /// Its own columns, to be followed.
    pub fn followed(&self) -> FollowedKey {
        let (columns, types) = (self.key.columns.clone(), self.types.clone());
        FollowedKey { table: self.child.schema().id, columns, types }
    }

    /// The columns that it refers to, to be followed.
    pub fn followed_parent(&self) -> FollowedKey {
        let (columns, types) = (self.key.parent_columns.clone(), self.types.clone());
        FollowedKey { table: self.parent.schema().id, columns, types }
    }

    fn encode(&self, row: &[Value], columns: &[usize]) -> Result<Option<Vec<u8>>> {
        let mut encoded = Vec::new();
        for (at, data_type) in columns.iter().zip(&self.types) {
            match &row[*at] {
                Value::Null => return Ok(None),
                value => key::append(&mut encoded, *data_type, value)?,
            }
        }
        Ok(Some(encoded))
    }

    /// The key that a row of the parent has; `None` if it has none.
    pub fn key_of_parent(&self, row: &[Value]) -> Result<Option<Vec<u8>>> {
        self.encode(row, &self.parent_columns)
    }

    /// The values of a key.
    pub fn decode(&self, key: &[u8]) -> Result<Vec<Value>> {
        key::decode(key, &self.types)
    }

    /// What a key is locked as: the columns that have it, and its values.
    pub fn locked(&self, key: &[u8]) -> Vec<u8> {
        let ids = self.key.parent_columns.iter().flat_map(|id| id.to_le_bytes());
        ids.chain(key.iter().copied()).collect()
    }

    /// Those of some keys that no row of the parent has.
    pub async fn missing(
        &self,
        keys: &Keys,
        transaction: &Transaction,
        execution: &Execution<'_>,
    ) -> Result<Keys> {
        let mut missing = Keys::default();
        if keys.len() <= FEW {
            let mut waits = execution.waits();
            for key in keys {
                let values = self.in_key_order(&self.decode(key)?)?;
                let found = || match &values {
                    (None, values) => Ok(transaction.get(&self.parent, values, &[])?.is_some()),
                    (Some(index), values) => {
                        Ok(transaction.locate_unique(&self.parent, *index, values)?.is_some())
                    }
                };
                if !waits.call(found).await? {
                    missing.insert(key.clone());
                }
            }
            return Ok(missing);
        }
        missing.clone_from(keys);
        let mut found = |key: Vec<u8>| {
            missing.remove(&key);
            true
        };
        let means = (transaction, execution);
        self.scan(&self.parent, &self.parent_columns, Some(keys), means, &mut found).await?;
        Ok(missing)
    }

    /// The values of a key in the order of the parent's primary key, or of the unique index that has them.
    fn in_key_order(&self, values: &[Value]) -> Result<(Option<u32>, Vec<Value>)> {
        let schema = self.parent.schema();
        let is_same = |set: &[usize]| {
            set.len() == self.parent_columns.len()
                && set.iter().all(|at| self.parent_columns.contains(at))
        };
        let ordered = |set: &[usize]| -> Vec<Value> {
            let place = |at: &usize| self.parent_columns.iter().position(|known| known == at);
            set.iter().filter_map(place).map(|at| values[at].clone()).collect()
        };
        if let Some(primary) = schema.primary_key.as_ref().filter(|key| is_same(&key.columns)) {
            return Ok((None, ordered(&primary.columns)));
        }
        let unique = schema.indexes.iter().filter(|index| index.unique);
        let found = unique.filter_map(|index| Some((index.id, schema.index_positions(index)?)));
        let mut found = found.filter(|(_, set)| is_same(set));
        match found.next() {
            Some((id, set)) => Ok((Some(id), ordered(&set))),
            None => {
                let (key, table) = (&self.key.name, &schema.name);
                Err(Error::corrupt(format!("no key of table {table} has what {key} refers to")))
            }
        }
    }

    /// How many rows of the child refer to keys, and one of these keys. Stops after `most` rows.
    pub async fn referring(
        &self,
        keys: &Keys,
        most: u64,
        transaction: &Transaction,
        execution: &Execution<'_>,
    ) -> Result<(u64, Option<Vec<u8>>)> {
        let (mut rows, mut first) = (0, None);
        let mut found = |key: Vec<u8>| {
            first.get_or_insert(key);
            rows += 1;
            rows < most
        };
        let means = (transaction, execution);
        self.scan(&self.child, &self.columns, Some(keys), means, &mut found).await?;
        Ok((rows, first))
    }

    /// Calls `found` with the keys of rows of a table, of some keys, or of all, until it answers `false`.
    fn scan<'a>(
        &'a self,
        table: &'a Table,
        columns: &'a [usize],
        keys: Option<&'a Keys>,
        (transaction, execution): (&'a Transaction, &'a Execution<'_>),
        found: &'a mut dyn FnMut(Vec<u8>) -> bool,
    ) -> Boxed<'a, ()> {
        Box::pin(async move {
            let context = execution.context(transaction);
            let all: Vec<usize> = (0..columns.len()).collect();
            for keys in in_parts(keys) {
                let filters = match &keys {
                    Some(keys) => self.filters(table.schema(), (&all, columns), keys)?,
                    None => Vec::new(),
                };
                let plan = Plan::filtered_scan(table.schema().clone(), columns.to_vec(), filters);
                let mut waits = execution.waits();
                let mut operator = waits.call(|| build(&plan, &context)).await?;
                while let Some(batch) = waits.next(&mut *operator, &context).await? {
                    let batch = batch.compact();
                    for row in 0..batch.rows {
                        let key = self.encode(&batch.row(row), &all)?;
                        if let Some(key) = key
                            && keys.as_ref().is_none_or(|keys| keys.contains(&key))
                            && !found(key)
                        {
                            return Ok(());
                        }
                    }
                }
            }
            Ok(())
        })
    }

    /// Every key that rows of the child refer to.
    pub async fn all(&self, transaction: &Transaction, execution: &Execution<'_>) -> Result<Keys> {
        let mut keys = Keys::default();
        let mut found = |key: Vec<u8>| {
            keys.insert(key);
            true
        };
        let means = (transaction, execution);
        self.scan(&self.child, &self.columns, None, means, &mut found).await?;
        Ok(keys)
    }

    /// The rows of the child that refer to keys, each with its key.
    pub async fn rows(
        &self,
        keys: &Keys,
        transaction: &Transaction,
        execution: &Execution<'_>,
    ) -> Result<Vec<(LocatedRows, Vec<Vec<u8>>)>> {
        let context = execution.context(transaction);
        let mut all = Vec::new();
        let width = self.child.schema().columns.len();
        for keys in in_parts(Some(keys)).into_iter().flatten() {
            let filters =
                self.filters(self.child.schema(), (&self.columns, &self.columns), &keys)?;
            let schema = self.child.schema().clone();
            let plan = Plan::filtered_scan(schema, (0..width).collect(), filters);
            let mut found: HeldTargets = locate(&plan, &context, execution.waits()).await?;
            for LocatedRows { rows, locators } in found.take() {
                let rows = rows.compact();
                let (mut picked, mut known) = (Vec::new(), Vec::new());
                for row in 0..rows.rows {
                    let key = self.encode(&rows.row(row), &self.columns)?;
                    if let Some(key) = key.filter(|key| keys.contains(key)) {
                        picked.push(row as u32);
                        known.push(key);
                    }
                }
                let locators = picked.iter().map(|row| locators[*row as usize].clone()).collect();
                let rows = Batch { selection: Some(picked), ..rows }.compact();
                all.push((LocatedRows { rows, locators }, known));
            }
        }
        Ok(all)
    }

    /// Conditions that rows with some keys satisfy, of the columns of a scan at these places. Others may
    /// satisfy them too.
    fn filters(
        &self,
        schema: &TableSchema,
        (places, columns): (&[usize], &[usize]),
        keys: &Keys,
    ) -> Result<Vec<Expr>> {
        let mut conditions = Vec::with_capacity(columns.len());
        let mut most = 0;
        for (n, data_type) in self.types.iter().enumerate() {
            // Each value once, encoded.
            let mut values = Keys::default();
            for key in keys {
                let mut encoded = Vec::new();
                key::append(&mut encoded, *data_type, &self.decode(key)?[n])?;
                values.insert(encoded);
            }
            let of = schema.columns[columns[n]].data_type;
            let literal = |value: &Vec<u8>| {
                let value = key::decode(value, &[*data_type])?.pop().unwrap_or(Value::Null);
                Ok(Expr::literal(value, of))
            };
            let list = values.iter().map(literal).collect::<Result<Vec<_>>>()?;
            // The column with the most values says most; all of them together would be looked up in each
            // combination.
            if keys.len() > 1 {
                if list.len() <= most {
                    continue;
                }
                conditions.clear();
            }
            most = list.len();
            let arg = Box::new(Expr::column(places[n], of));
            let kind = ExprKind::InList { arg, list, negated: false };
            conditions.push(Expr { kind, data_type: DataType::Boolean });
        }
        Ok(conditions)
    }
}

/// Keys in parts that are looked for together, in their order; `None` for all there are.
fn in_parts(keys: Option<&Keys>) -> Vec<Option<Keys>> {
    match keys {
        None => vec![None],
        Some(keys) if keys.len() <= AT_ONCE => vec![Some(keys.clone())],
        Some(keys) => {
            let mut sorted: Vec<&Vec<u8>> = keys.iter().collect();
            sorted.sort_unstable();
            let part = |part: &[&Vec<u8>]| Some(part.iter().copied().cloned().collect());
            sorted.chunks(AT_ONCE).map(part).collect()
        }
    }
}

fn gone(table: &Table, other: TableId) -> Error {
    let name = &table.schema().name;
    Error::corrupt(format!("table {name} and table {other}, which is missing, refer to each other"))
}
