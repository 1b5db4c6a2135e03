//! A foreign key with the tables that it connects, and the rows that have or refer to given keys.

use crate::execution::Execution;
use crate::statement::{HeldTargets, LocatedRows, locate};
use nacre_column::Batch;
use nacre_exec::build;
use nacre_sql::expr::{BinaryOp, ExprKind};
use nacre_sql::{Expr, Plan};
use nacre_table::{FollowedKey, Table, Transaction};
use nacre_types::hash::{Map, Set};
use nacre_types::{
    DataType, Error, ForeignKey, Result, TableId, TableSchema, Value, key, reference_type,
};
use std::sync::Arc;

/// Keys that are looked for by one scan.
const AT_ONCE: usize = 1 << 16;
/// Keys that are looked up one by one.
const FEW: usize = 64;

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
        let columns = &self.parent_columns;
        let found = |key: Vec<u8>| {
            missing.remove(&key);
            true
        };
        self.scan(&self.parent, columns, keys, (transaction, execution), found).await?;
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
        let found = |key: Vec<u8>| {
            first.get_or_insert(key);
            rows += 1;
            rows < most
        };
        self.scan(&self.child, &self.columns, keys, (transaction, execution), found).await?;
        Ok((rows, first))
    }

    /// Calls `found` with the keys of rows of a table, of some keys, until it answers `false`.
    async fn scan(
        &self,
        table: &Table,
        columns: &[usize],
        keys: &Keys,
        (transaction, execution): (&Transaction, &Execution<'_>),
        mut found: impl FnMut(Vec<u8>) -> bool,
    ) -> Result<()> {
        let context = execution.context(transaction);
        let all: Vec<usize> = (0..columns.len()).collect();
        for keys in in_parts(keys) {
            let filters = self.filters(table.schema(), (&all, columns), &keys)?;
            let plan = scan_of(table.schema(), columns.to_vec(), filters);
            let mut waits = execution.waits();
            let mut operator = waits.call(|| build(&plan, &context)).await?;
            while let Some(batch) = waits.next(&mut *operator, &context).await? {
                let batch = batch.compact();
                for row in 0..batch.rows {
                    let key = self.encode(&batch.row(row), &all)?;
                    if let Some(key) = key.filter(|key| keys.contains(key))
                        && !found(key)
                    {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Every key that rows of the child refer to.
    pub async fn all(&self, transaction: &Transaction, execution: &Execution<'_>) -> Result<Keys> {
        let context = execution.context(transaction);
        let plan = scan_of(self.child.schema(), self.columns.clone(), Vec::new());
        let columns: Vec<usize> = (0..self.columns.len()).collect();
        let (mut waits, mut keys) = (execution.waits(), Keys::default());
        let mut operator = waits.call(|| build(&plan, &context)).await?;
        while let Some(batch) = waits.next(&mut *operator, &context).await? {
            let batch = batch.compact();
            for row in 0..batch.rows {
                keys.extend(self.encode(&batch.row(row), &columns)?);
            }
        }
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
        for keys in in_parts(keys) {
            let filters =
                self.filters(self.child.schema(), (&self.columns, &self.columns), &keys)?;
            let plan = scan_of(self.child.schema(), (0..width).collect(), filters);
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
        let rows = keys.iter().map(|key| self.decode(key)).collect::<Result<Vec<_>>>()?;
        let condition = |n: usize, values: Map<Vec<u8>, Value>| {
            let data_type = schema.columns[columns[n]].data_type;
            let column = Expr::column(places[n], data_type);
            let literal = |value| Expr::literal(value, data_type);
            let mut list: Vec<Expr> = values.into_values().map(literal).collect();
            let kind = match list.pop() {
                Some(only) if list.is_empty() => ExprKind::Binary {
                    op: BinaryOp::Equal,
                    left: Box::new(column),
                    right: Box::new(only),
                },
                last => {
                    list.extend(last);
                    ExprKind::InList { arg: Box::new(column), list, negated: false }
                }
            };
            Expr { kind, data_type: DataType::Boolean }
        };
        let mut of_columns = Vec::with_capacity(columns.len());
        for (n, data_type) in self.types.iter().enumerate() {
            let mut values: Map<Vec<u8>, Value> = Map::default();
            for row in &rows {
                let mut encoded = Vec::new();
                key::append(&mut encoded, *data_type, &row[n])?;
                values.insert(encoded, row[n].clone());
            }
            of_columns.push((n, values));
        }
        if rows.len() > 1 {
            // The column with the most values says most; all of them together would be looked up in each
            // combination.
            of_columns.sort_by_key(|(_, values)| std::cmp::Reverse(values.len()));
            of_columns.truncate(1);
        }
        Ok(of_columns.into_iter().map(|(n, values)| condition(n, values)).collect())
    }
}

fn scan_of(schema: &Arc<TableSchema>, projection: Vec<usize>, filters: Vec<Expr>) -> Plan {
    Plan::filtered_scan(schema.clone(), projection, filters)
}

/// Keys in parts that are looked for together, in their order.
fn in_parts(keys: &Keys) -> Vec<Keys> {
    if keys.len() <= AT_ONCE {
        return vec![keys.clone()];
    }
    let mut sorted: Vec<&Vec<u8>> = keys.iter().collect();
    sorted.sort_unstable();
    sorted.chunks(AT_ONCE).map(|part| part.iter().copied().cloned().collect()).collect()
}

fn gone(table: &Table, other: TableId) -> Error {
    let name = &table.schema().name;
    Error::corrupt(format!("table {name} and table {other}, which is missing, refer to each other"))
}
