//! A growing column, in which joins, sorts and `CASE` collect values before taking them by
//! position.
//!
//! It stays dictionary-coded while everything appended shares one dictionary, and is flat
//! otherwise.

use super::limits::{MOST_TEXT_BYTES, NO_ROW};
use nacre_column::{Bitmap, BytesColumn, Form, Values, Vector};
use nacre_function::vector::room::too_much_text;
use nacre_function::vector::rows::ActiveRows;
use nacre_function::vector::validity::mask;
use nacre_types::{DataType, Error, PhysicalType, Result, Value, invariant};
use std::sync::Arc;

/// One growing column.
pub struct ColumnBuffer {
    data_type: DataType,
    /// The most bytes of text it may hold.
    most_bytes: usize,
    values: Values,
    /// The codes of all rows and their dictionary; `values` is empty then.
    dictionary: Option<(Vec<u32>, Arc<Values>)>,
    validity: Option<Bitmap>,
    len: usize,
}

impl ColumnBuffer {
    /// An empty column.
    pub fn new(data_type: DataType) -> ColumnBuffer {
        ColumnBuffer::within(data_type, MOST_TEXT_BYTES)
    }

    /// An empty column with room for this many bytes of text.
    pub fn within(data_type: DataType, most_bytes: usize) -> ColumnBuffer {
        let values = Values::empty(data_type.physical());
        ColumnBuffer { data_type, most_bytes, values, dictionary: None, validity: None, len: 0 }
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
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

    /// Appends these rows of a vector of the column's physical type. `limit` when there is no room
    /// for their texts; the column is unusable then.
    pub fn append(&mut self, vector: &Vector, rows: ActiveRows<'_>) -> Result<()> {
        let added = rows.count();
        if added == 0 {
            // An empty input must not fix the dictionary.
            return Ok(());
        }
        self.append_validity(vector, rows);
        if let Form::Dictionary { codes, values } = vector.form()
            && (self.len == 0
                || self.dictionary.as_ref().is_some_and(|(_, own)| Arc::ptr_eq(own, values)))
        {
            let own = &mut self.dictionary.get_or_insert_with(|| (Vec::new(), values.clone())).0;
            match rows.selection {
                None => own.extend_from_slice(codes),
                Some(selection) => own.extend(selection.iter().map(|i| codes[*i as usize])),
            }
            self.len += added;
            return Ok(());
        }
        let (own, most) = (&mut self.values, self.most_bytes);
        if let Some((codes, values)) = self.dictionary.take() {
            extend(own, &values, codes.iter().copied(), most)?;
        }
        match (vector.form(), rows.selection) {
            (Form::Flat(values), None) => extend_all(own, values, most)?,
            (Form::Flat(values), Some(s)) => extend(own, values, s.iter().copied(), most)?,
            (Form::Constant(values), _) => {
                extend(own, values, std::iter::repeat_n(0, added), most)?
            }
            (Form::Dictionary { codes, values }, None) => {
                extend(own, values, codes.iter().copied(), most)?
            }
            (Form::Dictionary { codes, values }, Some(s)) => {
                extend(own, values, s.iter().map(|i| codes[*i as usize]), most)?;
            }
        }
        self.len += added;
        debug_assert_eq!(self.values.len(), self.len, "every row has a value");
        Ok(())
    }

    fn append_validity(&mut self, vector: &Vector, rows: ActiveRows<'_>) {
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
            None => {
                Vector::new(self.data_type, self.values.take(positions.iter().copied()), validity)
            }
        }
    }

    /// Like [`ColumnBuffer::take`], with null at positions of [`NO_ROW`].
    pub fn take_or_null(&self, positions: &[u32]) -> Vector {
        if !positions.contains(&NO_ROW) {
            return self.take(positions);
        }
        if self.len == 0 {
            return Vector::constant(self.data_type, &Value::Null, positions.len());
        }
        if let (Values::Bytes(texts), None) = (&self.values, &self.dictionary) {
            return self.texts_or_null(texts, positions);
        }
        let mut validity = Bitmap::filled(positions.len(), true);
        let mut clamped = Vec::with_capacity(positions.len());
        for (at, p) in positions.iter().enumerate() {
            if *p == NO_ROW {
                validity.set(at, false);
            }
            clamped.push(if *p == NO_ROW { 0 } else { *p });
        }
        mask(self.take(&clamped), &validity)
    }

    /// Takes texts; no bytes are copied for a null.
    fn texts_or_null(&self, texts: &BytesColumn, positions: &[u32]) -> Vector {
        let mut validity = Bitmap::filled(positions.len(), true);
        let mut out = BytesColumn::default();
        out.offsets.reserve(positions.len());
        for (at, p) in positions.iter().enumerate() {
            if *p == NO_ROW || self.validity.as_ref().is_some_and(|v| !v.get(*p as usize)) {
                validity.set(at, false);
                out.push(&[]);
            } else {
                out.push(texts.get(*p as usize));
            }
        }
        Vector::new(self.data_type, Values::Bytes(out), Some(validity))
    }

    /// The texts that taking rows copies; `None` where it copies codes.
    pub(super) fn copied_texts(&self) -> Option<&BytesColumn> {
        match &self.values {
            Values::Bytes(texts) if self.dictionary.is_none() => Some(texts),
            _ => None,
        }
    }

    /// Keeps only the rows at these positions, in this order.
    pub fn retain(&mut self, positions: &[u32]) {
        let kept = self.take(positions);
        let mut fresh = ColumnBuffer::new(self.data_type);
        let appended = fresh.append(&kept, ActiveRows::all(kept.len()));
        invariant!(appended.is_ok(), "part of a column fits where all of it did");
        *self = fresh;
    }
}

fn extend_all(out: &mut Values, from: &Values, most: usize) -> Result<()> {
    match (out, from) {
        (Values::Bool(out), Values::Bool(from)) => out.extend_from_slice(from),
        (Values::I64(out), Values::I64(from)) => out.extend_from_slice(from),
        (Values::I128(out), Values::I128(from)) => out.extend_from_slice(from),
        (Values::F64(out), Values::F64(from)) => out.extend_from_slice(from),
        (out, from) => return extend(out, from, 0..from.len() as u32, most),
    }
    Ok(())
}

fn extend(
    out: &mut Values,
    from: &Values,
    positions: impl ExactSizeIterator<Item = u32> + Clone,
    most: usize,
) -> Result<()> {
    match (out, from) {
        (Values::Bool(out), Values::Bool(from)) => out.extend(positions.map(|i| from[i as usize])),
        (Values::I64(out), Values::I64(from)) => out.extend(positions.map(|i| from[i as usize])),
        (Values::I128(out), Values::I128(from)) => out.extend(positions.map(|i| from[i as usize])),
        (Values::F64(out), Values::F64(from)) => out.extend(positions.map(|i| from[i as usize])),
        (Values::Bytes(out), Values::Bytes(from)) => {
            if !fit(from, positions.clone(), most.saturating_sub(out.data.len())) {
                return Err(too_much_text(most));
            }
            positions.for_each(|i| out.push(from.get(i as usize)));
        }
        (out, from) => return Err(mismatch(out.physical(), from.physical())),
    }
    Ok(())
}

/// Whether the texts at these positions fit in `room` bytes.
pub fn fit(
    texts: &BytesColumn,
    positions: impl ExactSizeIterator<Item = u32>,
    room: usize,
) -> bool {
    // Their sum may be more than an address on 32-bit targets.
    texts.data.len().saturating_mul(positions.len()) <= room
        || positions.map(|i| texts.get(i as usize).len() as u64).sum::<u64>() <= room as u64
}

#[cold]
fn mismatch(own: PhysicalType, theirs: PhysicalType) -> Error {
    Error::type_error(format!("a column of {own:?} cannot hold values of {theirs:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coded(texts: &[&str]) -> Vector {
        let values: Vec<Value> = texts.iter().map(|text| Value::Text((*text).into())).collect();
        let flat = Vector::from_values(DataType::TEXT, &values);
        let Form::Flat(values) = flat.form() else { panic!("{flat:?}") };
        Vector::dictionary(
            DataType::TEXT,
            (0..texts.len() as u32).collect(),
            Arc::new(values.clone()),
            None,
        )
    }

    fn long(values: usize, bytes: usize) -> Values {
        let text = Value::Text("x".repeat(bytes));
        Vector::from_values(DataType::TEXT, std::iter::repeat_n(&text, values)).flat().into_owned()
    }

    #[test]
    fn texts_without_room_are_refused_before_they_are_copied() {
        let texts = DataType::TEXT;
        let constant = Vector::from_form(texts, Form::Constant(long(1, 100_000)), None, 1000);
        let coded = Vector::dictionary(texts, vec![0; 1000], Arc::new(long(1, 100_000)), None);
        let flat = Vector::new(texts, long(50, 100_000), None);
        for vector in [&constant, &coded, &flat] {
            let mut store = ColumnBuffer::new(texts);
            let most = MOST_TEXT_BYTES / 100_000;
            let some: Vec<u32> = (0..most.min(vector.len()) as u32).collect();
            store.append(&flat, ActiveRows::all(50).narrowed(&[0])).unwrap();
            store.append(vector, ActiveRows::all(vector.len()).narrowed(&some[1..])).unwrap();
            let error = store.append(&constant, ActiveRows::all(1000)).unwrap_err();
            assert_eq!(error.kind(), nacre_types::ErrorKind::Limit);
            assert!(store.memory_bytes() <= 2 * MOST_TEXT_BYTES);
        }
        // Codes of a shared dictionary take no room until they are decoded.
        let mut store = ColumnBuffer::new(texts);
        store.append(&coded, ActiveRows::all(1000)).unwrap();
        assert_eq!(
            store.append(&flat, ActiveRows::all(50)).unwrap_err().kind(),
            nacre_types::ErrorKind::Limit
        );
    }

    #[test]
    fn a_null_for_a_missing_row_copies_nothing() {
        let mut store = ColumnBuffer::new(DataType::TEXT);
        store
            .append(&Vector::new(DataType::TEXT, long(1, 1000), None), ActiveRows::all(1))
            .unwrap();
        let taken = store.take_or_null(&[NO_ROW, 0, NO_ROW]);
        assert_eq!([taken.value(0), taken.value(2)], [Value::Null, Value::Null]);
        assert_eq!((taken.value(1), taken.flat_bytes()), (Value::Text("x".repeat(1000)), 1000));
    }

    #[test]
    fn an_empty_input_does_not_fix_the_dictionary() {
        let mut store = ColumnBuffer::new(DataType::TEXT);
        store.append(&coded(&["a", "b"]), ActiveRows { len: 2, selection: Some(&[]) }).unwrap();
        store.append(&coded(&["x", "y"]), ActiveRows::all(2)).unwrap();
        let taken = store.take(&[1, 0]);
        assert_eq!(
            [taken.value(0), taken.value(1)],
            [Value::Text("y".into()), Value::Text("x".into())]
        );
    }
}
