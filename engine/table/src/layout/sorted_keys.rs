//! The keys of one file in order, searched by position: those of a segment, whose rows may be in a
//! different order, or those of an index part.

use nacre_column::{Values, Vector};
use nacre_segment::Segment;
use nacre_types::{Error, PhysicalType, Result, Value};
use std::ops::Range;

/// The keys of one file in order.
pub(crate) struct SortedKeys<'a> {
    file: &'a Segment,
    /// Positions of the key's columns.
    columns: Vec<usize>,
    /// The column of row numbers in key order, if rows are not in key order.
    order: Option<usize>,
}

impl<'a> SortedKeys<'a> {
    /// The keys in these columns of a file. `order` is the column of row numbers in key order;
    /// `None` if the rows are in key order.
    pub fn new(file: &'a Segment, columns: Vec<usize>, order: Option<usize>) -> SortedKeys<'a> {
        debug_assert!(
            columns.iter().chain(&order).all(|at| *at < file.column_ids().len()),
            "a key column is not among the {} columns of {}",
            file.column_ids().len(),
            file.name()
        );
        SortedKeys { file, columns, order }
    }

    /// The file.
    pub fn file(&self) -> &'a Segment {
        self.file
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.file.rows()
    }

    /// Whether keys are single integers without nulls. `false` if the footer cannot be read: the
    /// keys cannot be read either.
    pub fn is_integer(&self) -> bool {
        let Ok(columns) = self.file.columns() else { return false };
        let is_one = |at: usize| {
            columns[at].data_type.physical() == PhysicalType::I64 && columns[at].null_count == 0
        };
        matches!(self.columns[..], [at] if is_one(at))
    }

    /// The row with the key at a position.
    pub fn row(&self, position: usize) -> Result<u32> {
        debug_assert!(position < self.len(), "key {position} of {}", self.len());
        Ok(match self.order {
            Some(order) => self.file.row_in_order(order, position)? as u32,
            None => position as u32,
        })
    }

    /// The key at a position.
    pub fn at(&self, position: usize) -> Result<Vec<Value>> {
        let row = self.row(position)? as usize;
        self.columns.iter().map(|column| self.file.get(*column, row)).collect()
    }

    /// The first position whose key is not below `key`.
    fn lower(&self, key: &[Value]) -> Result<usize> {
        debug_assert!(
            key.len() <= self.columns.len(),
            "{} values of a key of {} columns",
            key.len(),
            self.columns.len()
        );
        match self.order {
            Some(order) => self.file.lower_bound_in_order(order, &self.columns, key),
            None => self.file.lower_bound(&self.columns, key),
        }
    }

    /// The positions of a key.
    pub fn equal(&self, key: &[Value]) -> Result<Range<usize>> {
        debug_assert!(
            key.len() == self.columns.len(),
            "{} values of a key of {} columns",
            key.len(),
            self.columns.len()
        );
        let Some(order) = self.order else {
            let (start, end) = self.file.equal_range(&self.columns, key)?;
            return Ok(start..end);
        };
        // Only primary keys can differ from the row order, and a primary key is unique.
        let start = self.file.lower_bound_in_order(order, &self.columns, key)?;
        debug_assert!(start <= self.len(), "a key at {start} of {}", self.len());
        if start == self.file.rows() {
            return Ok(start..start);
        }
        let row = self.file.row_in_order(order, start)?;
        let is_there = self.file.is_key(row, &self.columns, key)?;
        Ok(start..start + usize::from(is_there))
    }

    /// Positions of the keys between two keys, both inclusive. May include one position too many.
    pub fn between(&self, first: &[Value], last: &[Value]) -> Result<Range<usize>> {
        let start = self.lower(first)?;
        let end = match self.order {
            Some(_) => (self.lower(last)? + 1).min(self.file.rows()),
            None => self.file.upper_bound(&self.columns, last, self.lower(last)?)?,
        };
        debug_assert!(end <= self.len(), "keys up to {end} of {}", self.len());
        Ok(start..end.max(start))
    }

    /// The key columns of all rows, in row order.
    pub fn decode_rows(&self) -> Result<Vec<Vector>> {
        let rows = self.file.rows();
        self.columns.iter().map(|column| self.file.decode(*column, 0, rows)).collect()
    }

    /// The key columns of `count` keys from a position on. If rows are not in key order, they are
    /// taken from `rows`, the key columns of all rows ([`SortedKeys::decode_rows`]), or read one by
    /// one if that is empty.
    pub fn decode(&self, start: usize, count: usize, rows: &[Vector]) -> Result<Vec<Vector>> {
        debug_assert!(start + count <= self.len(), "{count} keys from {start} of {}", self.len());
        let Some(order) = self.order else {
            return self.columns.iter().map(|at| self.file.decode(*at, start, count)).collect();
        };
        debug_assert!(
            rows.is_empty() || rows.len() == self.columns.len(),
            "{} columns of a key of {}",
            rows.len(),
            self.columns.len()
        );
        let bad = || {
            let name = self.file.name();
            Error::corrupt(format!("segment {name}: the key order refers to a missing row"))
        };
        let order = self.file.decode(order, start, count)?;
        let flat = order.flat();
        let Values::I64(numbers) = &*flat else { return Err(bad()) };
        let number = |row: &i64| {
            u32::try_from(*row).ok().filter(|row| (*row as usize) < self.len()).ok_or_else(bad)
        };
        let numbers: Vec<u32> = numbers.iter().map(number).collect::<Result<_>>()?;
        debug_assert!(numbers.len() == count, "{} of {count} keys are read", numbers.len());
        if !rows.is_empty() {
            return Ok(rows.iter().map(|column| column.take(&numbers)).collect());
        }
        let mut ascending: Vec<u32> = (0..count as u32).collect();
        ascending.sort_by_key(|at| numbers[*at as usize]);
        let taken: Vec<u32> = ascending.iter().map(|at| numbers[*at as usize]).collect();
        let mut back = vec![0; count];
        (0..).zip(&ascending).for_each(|(place, at)| back[*at as usize] = place);
        let column = |at: &usize| Ok(self.file.take(*at, &taken)?.take(&back));
        self.columns.iter().map(column).collect()
    }

    /// Whether rows are not in key order.
    pub fn has_own_order(&self) -> bool {
        self.order.is_some()
    }
}
