//! A growing column: what joins, sorts and `CASE` collect rows in before they pick from them by position.
//!
//! Stays dictionary-coded as long as everything appended shares one dictionary, and is flat otherwise.

use crate::expr::Rows;
use nacre_column::{Batch, Bitmap, BytesColumn, Form, Values, Vector};
use nacre_types::{DataType, Error, PhysicalType, Result};
use std::sync::Arc;

/// Position that stands for a row of nulls in [`ColumnStore::take`].
pub(crate) const NO_ROW: u32 = u32::MAX;

/// One growing column.
pub(crate) struct ColumnStore {
    data_type: DataType,
    values: Values,
    /// When there, `values` is empty and the rows are these codes.
    dictionary: Option<(Vec<u32>, Arc<Values>)>,
    validity: Option<Bitmap>,
    len: usize,
}

impl ColumnStore {
    /// An empty column.
    pub fn new(data_type: DataType) -> ColumnStore {
        ColumnStore { data_type, values: Values::empty(data_type.physical()), dictionary: None, validity: None, len: 0 }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Estimated bytes held.
    pub fn memory_bytes(&self) -> usize {
        let values = match &self.values {
            Values::Bool(v) => v.capacity(),
            Values::I64(v) => v.capacity() * 8,
            Values::I128(v) => v.capacity() * 16,
            Values::F64(v) => v.capacity() * 8,
            Values::Bytes(v) => v.data.capacity() + v.offsets.capacity() * 4,
        };
        let codes = self.dictionary.as_ref().map_or(0, |(codes, _)| codes.capacity() * 4);
        values + codes + self.validity.as_ref().map_or(0, |v| v.words().len() * 8)
    }

    /// Appends these rows of a vector of the column's physical type.
    pub fn append(&mut self, vector: &Vector, rows: Rows<'_>) -> Result<()> {
        let added = rows.count();
        if added == 0 {
            // The dictionary of no rows is nobody's.
            return Ok(());
        }
        self.append_validity(vector, rows);
        if let Form::Dictionary { codes, values } = vector.form()
            && (self.len == 0 || self.dictionary.as_ref().is_some_and(|(_, own)| Arc::ptr_eq(own, values)))
        {
            let own = &mut self.dictionary.get_or_insert_with(|| (Vec::new(), values.clone())).0;
            match rows.selection {
                None => own.extend_from_slice(codes),
                Some(selection) => own.extend(selection.iter().map(|i| codes[*i as usize])),
            }
            self.len += added;
            return Ok(());
        }
        if let Some((codes, values)) = self.dictionary.take() {
            extend(&mut self.values, &values, codes.into_iter())?;
        }
        match (vector.form(), rows.selection) {
            (Form::Flat(values), None) => extend_all(&mut self.values, values)?,
            (Form::Flat(values), Some(s)) => extend(&mut self.values, values, s.iter().copied())?,
            (Form::Constant(values), _) => extend(&mut self.values, values, std::iter::repeat_n(0, added))?,
            (Form::Dictionary { codes, values }, None) => extend(&mut self.values, values, codes.iter().copied())?,
            (Form::Dictionary { codes, values }, Some(s)) => {
                extend(&mut self.values, values, s.iter().map(|i| codes[*i as usize]))?;
            }
        }
        self.len += added;
        debug_assert_eq!(self.values.len(), self.len);
        Ok(())
    }

    fn append_validity(&mut self, vector: &Vector, rows: Rows<'_>) {
        match vector.validity() {
            None => {
                if let Some(own) = &mut self.validity {
                    (0..rows.count()).for_each(|_| own.push(true));
                }
            }
            Some(theirs) => {
                let len = self.len;
                let own = self.validity.get_or_insert_with(|| Bitmap::filled(len, true));
                rows.iter().for_each(|i| own.push(theirs.get(i)));
            }
        }
    }

    /// Rows at these positions, in this order.
    pub fn take(&self, positions: &[u32]) -> Vector {
        let validity = self.validity.as_ref().map(|v| {
            let mut out = Bitmap::filled(positions.len(), true);
            for (at, p) in positions.iter().enumerate() {
                if !v.get(*p as usize) {
                    out.set(at, false);
                }
            }
            out
        });
        match &self.dictionary {
            Some((codes, values)) => {
                let codes = positions.iter().map(|p| codes[*p as usize]).collect();
                Vector::dictionary(self.data_type, codes, values.clone(), validity)
            }
            None => Vector::new(self.data_type, self.values.take(positions.iter().copied()), validity),
        }
    }

    /// Like [`ColumnStore::take`]; a position of [`NO_ROW`] gives null.
    pub fn take_or_null(&self, positions: &[u32]) -> Vector {
        if !positions.contains(&NO_ROW) {
            return self.take(positions);
        }
        if self.len == 0 {
            return Vector::constant(self.data_type, &nacre_types::Value::Null, positions.len());
        }
        let mut validity = Bitmap::filled(positions.len(), true);
        let mut clamped = Vec::with_capacity(positions.len());
        for (at, p) in positions.iter().enumerate() {
            if *p == NO_ROW {
                validity.set(at, false);
            }
            clamped.push(if *p == NO_ROW { 0 } else { *p });
        }
        crate::expr::mask(self.take(&clamped), &validity)
    }

    /// Keeps only the rows at these positions, in this order.
    pub fn retain(&mut self, positions: &[u32]) {
        let kept = self.take(positions);
        let mut fresh = ColumnStore::new(self.data_type);
        // Appending what fitted before cannot pass the limit now.
        if fresh.append(&kept, Rows::all(kept.len())).is_ok() {
            *self = fresh;
        }
    }
}

fn extend_all(out: &mut Values, from: &Values) -> Result<()> {
    match (out, from) {
        (Values::Bool(out), Values::Bool(from)) => out.extend_from_slice(from),
        (Values::I64(out), Values::I64(from)) => out.extend_from_slice(from),
        (Values::I128(out), Values::I128(from)) => out.extend_from_slice(from),
        (Values::F64(out), Values::F64(from)) => out.extend_from_slice(from),
        (out, from) => return extend(out, from, 0..from.len() as u32),
    }
    Ok(())
}

fn extend(out: &mut Values, from: &Values, positions: impl Iterator<Item = u32>) -> Result<()> {
    match (out, from) {
        (Values::Bool(out), Values::Bool(from)) => out.extend(positions.map(|i| from[i as usize])),
        (Values::I64(out), Values::I64(from)) => out.extend(positions.map(|i| from[i as usize])),
        (Values::I128(out), Values::I128(from)) => out.extend(positions.map(|i| from[i as usize])),
        (Values::F64(out), Values::F64(from)) => out.extend(positions.map(|i| from[i as usize])),
        (Values::Bytes(out), Values::Bytes(from)) => {
            positions.for_each(|i| out.push(from.get(i as usize)));
            check_offsets(out)?;
        }
        (out, from) => return Err(mismatch(out.physical(), from.physical())),
    }
    Ok(())
}

// Offsets are 32-bit: a column that wrapped is caught by its last offset being short of its data.
fn check_offsets(column: &BytesColumn) -> Result<()> {
    if column.data.len() > u32::MAX as usize {
        return Err(Error::limit("more than 4 GiB of text in one column of an operator"));
    }
    Ok(())
}

#[cold]
fn mismatch(own: PhysicalType, theirs: PhysicalType) -> Error {
    Error::type_error(format!("a column of {own:?} was given values of {theirs:?}"))
}

/// Growing columns of one length.
pub(crate) struct RowStore {
    columns: Vec<ColumnStore>,
    rows: usize,
}

impl RowStore {
    /// No rows of columns of these types.
    pub fn new(types: &[DataType]) -> RowStore {
        RowStore { columns: types.iter().map(|t| ColumnStore::new(*t)).collect(), rows: 0 }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Appends these rows of a batch.
    pub fn append(&mut self, batch: &Batch, rows: Rows<'_>) -> Result<()> {
        if self.rows + rows.count() >= NO_ROW as usize {
            return Err(Error::limit("more than 4,294,967,294 rows in one operator"));
        }
        for (own, column) in self.columns.iter_mut().zip(&batch.columns) {
            own.append(column, rows)?;
        }
        self.rows += rows.count();
        Ok(())
    }

    /// Estimated bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.columns.iter().map(ColumnStore::memory_bytes).sum()
    }

    /// Rows at these positions; of nulls at [`NO_ROW`].
    pub fn take(&self, positions: &[u32]) -> Vec<Arc<Vector>> {
        self.columns.iter().map(|c| Arc::new(c.take_or_null(positions))).collect()
    }

    /// Keeps only the rows at these positions, in this order.
    pub fn retain(&mut self, positions: &[u32]) {
        self.columns.iter_mut().for_each(|c| c.retain(positions));
        self.rows = positions.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_types::Value;

    fn coded(texts: &[&str]) -> Vector {
        let values: Vec<Value> = texts.iter().map(|text| Value::Text((*text).into())).collect();
        let flat = Vector::from_values(DataType::TEXT, &values);
        let Form::Flat(values) = flat.form() else { panic!("{flat:?}") };
        Vector::dictionary(DataType::TEXT, (0..texts.len() as u32).collect(), Arc::new(values.clone()), None)
    }

    #[test]
    fn the_dictionary_of_no_rows_decides_nothing() {
        let mut store = ColumnStore::new(DataType::TEXT);
        store.append(&coded(&["a", "b"]), Rows { len: 2, selection: Some(&[]) }).unwrap();
        store.append(&coded(&["x", "y"]), Rows::all(2)).unwrap();
        let taken = store.take(&[1, 0]);
        assert_eq!([taken.value(0), taken.value(1)], [Value::Text("y".into()), Value::Text("x".into())]);
    }
}
