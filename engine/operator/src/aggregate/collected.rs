//! Aggregates that need all rows of a group at once. Rows are collected, then sorted and aggregated
//! group by group.

use crate::buffer::ColumnBuffer;
use crate::buffer::limits::{MAX_ROWS, MOST_TEXT_BYTES};
use crate::sort::SortKeys;
use nacre_column::{Vector, VectorBuilder};
use nacre_function::entry::aggregate::Collection;
use nacre_function::vector::groups::Groups;
use nacre_function::vector::room::Room;
use nacre_function::vector::rows::ActiveRows;
use nacre_sql::expr::Aggregate;
use nacre_sql::plan::SortKey;
use nacre_types::{DataType, Error, Result, Value};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// The rows of one aggregate for all groups.
pub struct Collected {
    compute: fn(&Collection<'_>) -> Result<Value>,
    /// The argument whose null excludes a row.
    deciding: usize,
    data_type: DataType,
    /// Arguments, then sort keys.
    columns: Vec<ColumnBuffer>,
    /// Number of argument columns.
    arguments: usize,
    /// The group of each row.
    groups: Vec<u32>,
    keys: Vec<SortKey>,
    /// Built when results are first read; discarded when rows are added.
    members: OnceLock<Members>,
}

/// The rows of each group, in input order.
struct Members {
    starts: Vec<u32>,
    rows: Vec<u32>,
}

impl Members {
    fn new(groups: &[u32]) -> Members {
        let count = groups.iter().max().map_or(0, |group| *group as usize + 1);
        // The position of each group's next row; afterwards, the start of the following group.
        let mut starts = vec![0; count + 1];
        groups.iter().for_each(|group| starts[*group as usize + 1] += 1);
        (1..=count).for_each(|group| starts[group] += starts[group - 1]);
        let mut next = starts.clone();
        let mut rows = vec![0; groups.len()];
        for (row, group) in groups.iter().enumerate() {
            let next = &mut next[*group as usize];
            rows[*next as usize] = row as u32;
            *next += 1;
        }
        Members { starts, rows }
    }

    fn of(&self, group: usize) -> &[u32] {
        match (self.starts.get(group), self.starts.get(group + 1)) {
            (Some(start), Some(end)) => &self.rows[*start as usize..*end as usize],
            _ => &[],
        }
    }
}

impl Collected {
    /// No rows yet.
    pub fn new(
        spec: &Aggregate,
        deciding: usize,
        compute: fn(&Collection<'_>) -> Result<Value>,
    ) -> Collected {
        let keys = spec.order.iter().map(|key| &key.expr);
        let columns =
            spec.args.iter().chain(keys).map(|expr| ColumnBuffer::new(expr.data_type)).collect();
        Collected {
            compute,
            deciding,
            data_type: spec.data_type,
            columns,
            arguments: spec.args.len(),
            groups: Vec::new(),
            keys: spec.order.clone(),
            members: OnceLock::new(),
        }
    }

    /// Estimated bytes held.
    pub fn memory_bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(ColumnBuffer::memory_bytes).sum();
        columns + self.groups.capacity() * 4
    }

    /// Adds rows: arguments, then sort keys.
    pub fn update(
        &mut self,
        args: &[Arc<Vector>],
        rows: ActiveRows<'_>,
        groups: Groups<'_>,
    ) -> Result<()> {
        let counts = |row: &usize| args.get(self.deciding).is_none_or(|arg| !arg.is_null(*row));
        let kept: Vec<u32> = rows.iter().filter(counts).map(|row| row as u32).collect();
        self.members.take();
        self.groups.extend(kept.iter().map(|row| groups.of(*row as usize) as u32));
        if self.groups.len() > MAX_ROWS {
            return Err(Error::limit(format!("more than {MAX_ROWS} rows in one aggregate")));
        }
        for (column, arg) in self.columns.iter_mut().zip(args) {
            column.append(arg, rows.narrowed(&kept))?;
        }
        Ok(())
    }

    /// The results of some groups.
    pub fn finish(&self, groups: Range<usize>) -> Result<Vector> {
        let members = self.members.get_or_init(|| Members::new(&self.groups));
        let mut out = VectorBuilder::new(self.data_type);
        let mut room = Room::new(MOST_TEXT_BYTES);
        for rows in groups.map(|group| members.of(group)) {
            let value = if rows.is_empty() { Value::Null } else { self.of_group(rows)? };
            room.take_value(&value)?;
            out.push(&value);
        }
        Ok(out.finish())
    }

    fn of_group(&self, rows: &[u32]) -> Result<Value> {
        let columns: Vec<Vector> = self.columns.iter().map(|column| column.take(rows)).collect();
        let (args, keys) = columns.split_at(self.arguments);
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        if !self.keys.is_empty() {
            let vectors: Vec<Arc<Vector>> = keys.iter().map(|key| Arc::new(key.clone())).collect();
            let mut sort = SortKeys::new(&self.keys);
            sort.append(&self.keys, &vectors, ActiveRows::all(rows.len()));
            order = sort.order(usize::MAX);
        }
        (self.compute)(&Collection { args, order: &order, data_type: self.data_type })
    }
}
