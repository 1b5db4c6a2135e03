//! One row by its primary key.

use super::spec::ScanSpec;
use nacre_column::{Batch, Vector};
use nacre_operator::context::Context;
use nacre_operator::expr;
use nacre_operator::operator::protocol::{LocatingOperator, Operator};
use nacre_sql::expr::Expr;
use nacre_sql::{ScanOutput, equalities};
use nacre_table::{RowLocator, Table};
use nacre_types::{Result, TableSchema, Value};
use std::sync::Arc;

/// The values of the primary key, if the filters fix all its columns. `None` also for a scan that
/// computes parts of documents, which the optimizer leaves to others where the key is fixed.
pub(super) fn point_key(spec: ScanSpec<'_>, context: &Context<'_>) -> Option<Vec<Value>> {
    let ScanSpec { schema, projection, paths, filters, .. } = spec;
    let key = schema.primary_key.as_ref().filter(|_| paths.is_empty())?;
    key_values(schema, &key.columns, projection, filters, context)
}

/// The only partition with matching rows, if the filters fix every column of the shard key.
pub(super) fn only_partition(
    table: &Table,
    projection: &[usize],
    filters: &[Expr],
    context: &Context<'_>,
) -> Option<u32> {
    let schema = table.schema();
    let shard =
        schema.shard_key.as_ref().filter(|key| key.partitions > 1 && !key.columns.is_empty())?;
    // A null key matches no row in any partition; the filter rejects them all.
    let values = key_values(schema, &shard.columns, projection, filters, context)?;
    table.partition_of_values(&values).ok()
}

/// The constants that the filters compare the key columns with: for each column the first that fits
/// it. Also `None` if none fits, or one before it cannot be computed: the scan then compares it, or
/// raises its error, row by row.
fn key_values(
    schema: &TableSchema,
    columns: &[usize],
    projection: &[usize],
    filters: &[Expr],
    context: &Context<'_>,
) -> Option<Vec<Value>> {
    let output = ScanOutput { table: schema, projection, keys: &[] };
    let equalities = equalities(output, filters);
    let value = |column: &usize| {
        for expr in equalities.values(*column) {
            let value = expr::evaluate_constant(expr, context).ok()?;
            if value.is_null() || schema.columns[*column].check(&value).is_ok() {
                return Some(value);
            }
        }
        None
    };
    columns.iter().map(value).collect()
}

/// Looks up one key, once.
pub(super) struct PointRead {
    table: Arc<Table>,
    key: Option<Vec<Value>>,
    projection: Vec<usize>,
    filters: Vec<Expr>,
}

impl PointRead {
    pub fn new(
        table: Arc<Table>,
        key: Vec<Value>,
        projection: &[usize],
        filters: &[Expr],
    ) -> PointRead {
        PointRead {
            table,
            key: Some(key),
            projection: projection.to_vec(),
            filters: filters.to_vec(),
        }
    }

    /// Looks up the key with `find` until that has succeeded once; not when a part of it is null,
    /// because null equals nothing.
    fn look_up<T>(
        &mut self,
        context: &Context<'_>,
        find: impl FnOnce(&PointRead, &[Value]) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        context.check_cancelled()?;
        let usable = self.key.as_ref().filter(|key| !key.iter().any(Value::is_null));
        let Some(key) = usable else { return Ok(None) };
        let found = find(self, key)?;
        self.key = None;
        context.statistics.point_reads.add(1);
        Ok(found)
    }

    /// The row as a batch, if it passes the filters: they may test more than the key.
    fn batch(&self, row: &[Value], context: &Context<'_>) -> Result<Option<Batch>> {
        context.statistics.rows_read.add(1);
        let schema = self.table.schema();
        let columns: Vec<Arc<Vector>> = (self.projection.iter().zip(row))
            .map(|(position, value)| {
                Arc::new(Vector::from_values(schema.columns[*position].data_type, [value]))
            })
            .collect();
        // A seek decodes the row's values and no others.
        context.statistics.bytes_read.add(columns.iter().map(|c| c.memory_bytes()).sum());
        let batch = Batch::new(columns, 1);
        let passed = expr::filter(&self.filters, &batch, context)?;
        Ok((!passed.is_empty()).then_some(batch))
    }
}

impl Operator for PointRead {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        let row = self.look_up(context, |point, key| {
            context.transaction.get(&point.table, key, &point.projection)
        })?;
        row.map_or(Ok(None), |row| self.batch(&row, context))
    }
}

/// Like [`PointRead`], with a locator.
pub(super) struct LocatingPoint(pub PointRead);

impl LocatingOperator for LocatingPoint {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<(Batch, Vec<RowLocator>)>> {
        let found =
            self.0.look_up(context, |point, key| context.transaction.locate(&point.table, key))?;
        let Some((locator, row)) = found else { return Ok(None) };
        let row: Vec<Value> = self.0.projection.iter().map(|c| row[*c].clone()).collect();
        Ok(self.0.batch(&row, context)?.map(|batch| (batch, vec![locator])))
    }
}
