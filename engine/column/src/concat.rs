//! Concatenation of vectors of one type.

use crate::{Bitmap, BytesColumn, Form, Values, Vector};
use nacre_types::{DataType, PhysicalType, invariant};
use std::sync::Arc;

impl Values {
    /// Appends values of the same physical type.
    pub fn append(&mut self, other: &Values) {
        match (self, other) {
            (Values::Bool(a), Values::Bool(b)) => a.extend_from_slice(b),
            (Values::I64(a), Values::I64(b)) => a.extend_from_slice(b),
            (Values::I128(a), Values::I128(b)) => a.extend_from_slice(b),
            (Values::F64(a), Values::F64(b)) => a.extend_from_slice(b),
            (Values::Bytes(a), Values::Bytes(b)) => a.append(b, 0, b.len()),
            (to, from) => {
                let (to, from) = (to.physical(), from.physical());
                invariant!(to == from, "{from:?} values appended to {to:?} values");
            }
        }
    }
}

impl BytesColumn {
    /// Appends `len` values of another column, starting at `start`. The caller checks that the
    /// column stays below 4 GiB: past that, offsets wrap.
    pub fn append(&mut self, other: &BytesColumn, start: usize, len: usize) {
        debug_assert!(start + len <= other.len(), "values {start}+{len} of {}", other.len());
        let (from, to) = (other.offsets[start], other.offsets[start + len]);
        let shift = (self.data.len() as u32).wrapping_sub(from);
        self.data.extend_from_slice(&other.data[from as usize..to as usize]);
        self.offsets.extend(
            other.offsets[start + 1..=start + len].iter().map(|offset| offset.wrapping_add(shift)),
        );
        debug_assert_eq!(
            self.offsets.last().copied(),
            Some(self.data.len() as u32),
            "the last offset of appended text"
        );
    }
}

impl Vector {
    /// Concatenates vectors of one type. The result stays dictionary-coded if all parts share one
    /// dictionary.
    pub fn concat(data_type: DataType, mut parts: Vec<Vector>) -> Vector {
        if parts.len() == 1
            && let Some(only) = parts.pop()
        {
            return only;
        }
        debug_assert!(
            parts.iter().all(|part| part.data_type().physical() == data_type.physical()),
            "parts of another physical type than {data_type}"
        );
        let len = parts.iter().map(Vector::len).sum();
        let validity = parts.iter().any(|part| part.validity().is_some()).then(|| {
            let mut bits = Bitmap::default();
            parts
                .iter()
                .for_each(|part| (0..part.len()).for_each(|row| bits.push(!part.is_null(row))));
            bits
        });
        let shared = parts.first().and_then(|part| match part.form() {
            Form::Dictionary { values, .. } => Some(values.clone()),
            _ => None,
        });
        let same = |values: &Arc<Values>| {
            shared.as_ref().is_some_and(|shared| Arc::ptr_eq(shared, values))
        };
        if let Some(shared) = &shared
            && parts
                .iter()
                .all(|part| matches!(part.form(), Form::Dictionary { values, .. } if same(values)))
        {
            let mut all = Vec::with_capacity(len);
            for part in &parts {
                if let Form::Dictionary { codes, .. } = part.form() {
                    all.extend_from_slice(codes);
                }
            }
            return Vector::from_form(
                data_type,
                Form::Dictionary { codes: all, values: shared.clone() },
                validity,
                len,
            );
        }
        if data_type.physical() == PhysicalType::Bytes {
            let bytes = parts.iter().map(Vector::flat_bytes).fold(0, usize::saturating_add);
            invariant!(bytes <= u32::MAX as usize, "{bytes} bytes of text in one vector");
        }
        let mut values = Values::empty(data_type.physical());
        parts.iter().for_each(|part| values.append(&part.flat()));
        Vector::from_form(data_type, Form::Flat(values), validity, len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_types::Value;

    #[test]
    fn parts_of_all_forms_join() {
        let text = |s: &str| Value::Text(s.into());
        let flat = Vector::from_values(DataType::TEXT, &[text("a"), Value::Null, text("ccc")]);
        let constant = Vector::constant(DataType::TEXT, &text("x"), 2);
        let words = Arc::new(
            Vector::from_values(DataType::TEXT, &[text("p"), text("q")]).flat().into_owned(),
        );
        let coded = Vector::dictionary(DataType::TEXT, vec![1, 0, 1], words, None);
        let nulls = Vector::constant(DataType::TEXT, &Value::Null, 1);
        for parts in [
            vec![flat.clone(), constant, coded.clone(), nulls],
            vec![coded.clone(), coded],
            vec![flat],
            vec![],
        ] {
            let expected: Vec<Value> =
                parts.iter().flat_map(|p| (0..p.len()).map(|row| p.value(row))).collect();
            let all = Vector::concat(DataType::TEXT, parts);
            assert_eq!((0..all.len()).map(|row| all.value(row)).collect::<Vec<_>>(), expected);
        }
    }
}
