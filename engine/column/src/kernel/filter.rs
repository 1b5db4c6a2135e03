//! Comparing a vector with a constant, into a selection.
//!
//! Null rows are never selected. Floats compare in SQL's total order: `-0 = 0`, NaN equals
//! itself and is greater than every number. Every ordered comparison of a fixed-width type is
//! turned into one inclusive range test over integers, so that there is one loop a width instead
//! of one an operator.

use crate::{BytesColumn, Form, Selection, Values, Vector};
use nacre_types::{Value, key};
use std::cmp::Ordering;

/// A comparison operator; the vector's value is on the left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// Whether a left side that orders like this to the right side passes.
    #[inline]
    pub fn accepts(self, ordering: Ordering) -> bool {
        match self {
            Comparison::Equal => ordering.is_eq(),
            Comparison::NotEqual => ordering.is_ne(),
            Comparison::Less => ordering.is_lt(),
            Comparison::LessOrEqual => ordering.is_le(),
            Comparison::Greater => ordering.is_gt(),
            Comparison::GreaterOrEqual => ordering.is_ge(),
        }
    }

    /// The operator with its sides exchanged: `a op b` is `b op.swapped() a`.
    pub fn swapped(self) -> Comparison {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
            same => same,
        }
    }
}

/// Rows of `vector` (of `selection`, when given) that compare so to `constant`, ascending.
///
/// `constant` must be null (nothing is selected) or of the vector's data type; an integer may be
/// outside the range of the type.
pub fn filter_compare(vector: &Vector, op: Comparison, constant: &Value, selection: Option<&[u32]>) -> Selection {
    if constant.is_null() {
        return Selection::new();
    }
    let mut out = match vector.form() {
        Form::Flat(values) => compare_flat(values, op, constant, selection),
        Form::Constant(one) => match (compare_flat(one, op, constant, None).is_empty(), selection) {
            (true, _) => Selection::new(),
            (false, Some(selection)) => selection.to_vec(),
            (false, None) => (0..vector.len() as u32).collect(),
        },
        Form::Dictionary { codes, values } => {
            // The predicate runs once a distinct value, then the codes look its answer up.
            let mut passes = vec![false; values.len()];
            for code in compare_flat(values, op, constant, None) {
                passes[code as usize] = true;
            }
            select(codes, selection, |code| passes[code as usize])
        }
    };
    if let Some(validity) = vector.validity() {
        out.retain(|row| validity.get(*row as usize));
    }
    out
}

fn compare_flat(values: &Values, op: Comparison, constant: &Value, selection: Option<&[u32]>) -> Selection {
    match values {
        Values::I64(v) => match key::integer(constant) {
            Some(c) => match bounds(op, c, i64::MIN as i128, i64::MAX as i128) {
                Some((low, high, inside)) => {
                    let (low, span) = (low as i64, (high - low) as u64);
                    select(v, selection, |x| ((x.wrapping_sub(low) as u64) <= span) == inside)
                }
                None => Selection::new(),
            },
            None => mismatch(),
        },
        Values::I128(v) => match key::integer(constant) {
            Some(c) => match bounds(op, c, i128::MIN, i128::MAX) {
                Some((low, high, inside)) => select(v, selection, |x| (low <= x && x <= high) == inside),
                None => Selection::new(),
            },
            None => mismatch(),
        },
        Values::F64(v) => match constant {
            // The order of the mapped integers is the order of the doubles.
            Value::Float(c) => match bounds(op, key::order_f64(*c) as i128, 0, u64::MAX as i128) {
                Some((low, high, inside)) => {
                    let (low, span) = (low as u64, (high - low) as u64);
                    select(v, selection, |x| (key::order_f64(x).wrapping_sub(low) <= span) == inside)
                }
                None => Selection::new(),
            },
            _ => mismatch(),
        },
        Values::Bool(v) => match constant {
            Value::Boolean(c) => {
                let pass = [op.accepts(false.cmp(c)), op.accepts(true.cmp(c))];
                select(v, selection, |x| pass[x as usize])
            }
            _ => mismatch(),
        },
        Values::Bytes(v) => match constant {
            Value::Text(c) | Value::Json(c) => compare_bytes(v, op, c.as_bytes(), selection),
            Value::Binary(c) => compare_bytes(v, op, c, selection),
            _ => mismatch(),
        },
    }
}

// A constant of another type is a broken invariant of the caller.
#[cold]
fn mismatch() -> Selection {
    debug_assert!(false, "constant does not have the vector's type");
    Selection::new()
}

/// The inclusive range that passes (or, when the flag is false, everything outside it); `None`
/// when nothing can pass.
fn bounds(op: Comparison, c: i128, min: i128, max: i128) -> Option<(i128, i128, bool)> {
    let (low, high, inside) = match op {
        Comparison::Equal => (c, c, true),
        Comparison::NotEqual if c < min || c > max => (min, max, true),
        Comparison::NotEqual => (c, c, false),
        Comparison::Less => (min, c.checked_sub(1)?, true),
        Comparison::LessOrEqual => (min, c, true),
        Comparison::Greater => (c.checked_add(1)?, max, true),
        Comparison::GreaterOrEqual => (c, max, true),
    };
    let (low, high) = (low.max(min), high.min(max));
    (low <= high).then_some((low, high, inside))
}

fn compare_bytes(values: &BytesColumn, op: Comparison, c: &[u8], selection: Option<&[u32]>) -> Selection {
    let test = |row: usize| match op {
        Comparison::Equal => values.get(row) == c,
        Comparison::NotEqual => values.get(row) != c,
        _ => op.accepts(values.get(row).cmp(c)),
    };
    match selection {
        Some(selection) => selection.iter().copied().filter(|row| test(*row as usize)).collect(),
        None => (0..values.len() as u32).filter(|row| test(*row as usize)).collect(),
    }
}

/// Rows that pass. Writes every candidate and advances by the test's outcome, so that there is no
/// branch to mispredict.
#[inline]
fn select<T: Copy>(values: &[T], selection: Option<&[u32]>, test: impl Fn(T) -> bool) -> Selection {
    let mut count = 0;
    let mut out;
    match selection {
        Some(selection) => {
            out = vec![0; selection.len()];
            for &row in selection {
                out[count] = row;
                count += test(values[row as usize]) as usize;
            }
        }
        None => {
            out = vec![0; values.len()];
            for (row, &value) in values.iter().enumerate() {
                out[count] = row as u32;
                count += test(value) as usize;
            }
        }
    }
    out.truncate(count);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_types::DataType;
    use std::sync::Arc;

    const OPS: [Comparison; 6] = [
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::Less,
        Comparison::LessOrEqual,
        Comparison::Greater,
        Comparison::GreaterOrEqual,
    ];

    /// The order of two values of one type, as SQL has it.
    fn order(a: &Value, b: &Value) -> Ordering {
        match (a, b) {
            (Value::Boolean(a), Value::Boolean(b)) => a.cmp(b),
            (Value::Float(a), Value::Float(b)) => key::order_f64(*a).cmp(&key::order_f64(*b)),
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            (a, b) => key::integer(a).unwrap().cmp(&key::integer(b).unwrap()),
        }
    }

    fn check(vector: &Vector, constant: &Value) {
        let some: Vec<u32> = (0..vector.len() as u32).filter(|row| row % 3 != 1).collect();
        for op in OPS {
            let passes = |row: &u32| {
                let value = vector.value(*row as usize);
                !value.is_null() && !constant.is_null() && op.accepts(order(&value, constant))
            };
            let all: Vec<u32> = (0..vector.len() as u32).filter(passes).collect();
            assert_eq!(filter_compare(vector, op, constant, None), all, "{vector:?} {op:?} {constant:?}");
            let narrowed: Vec<u32> = some.iter().copied().filter(passes).collect();
            assert_eq!(filter_compare(vector, op, constant, Some(&some)), narrowed, "{vector:?} {op:?} {constant:?}");
        }
    }

    fn check_all(data_type: DataType, values: &[Value], more_constants: &[Value]) {
        let with_null: Vec<Value> = values.iter().cloned().chain([Value::Null]).chain(values.iter().cloned()).collect();
        for constant in values.iter().chain(more_constants).chain([&Value::Null]) {
            check(&Vector::from_values(data_type, values), constant);
            check(&Vector::from_values(data_type, &with_null), constant);
            check(&Vector::constant(data_type, &values[0], 5), constant);
            check(&Vector::constant(data_type, &Value::Null, 5), constant);
            check(&Vector::from_values(data_type, &[]), constant);
            let distinct = Arc::new(Vector::from_values(data_type, values).flat().into_owned());
            let codes: Vec<u32> = (0..40).map(|i| (i * 7) % values.len() as u32).collect();
            let mut validity = crate::Bitmap::filled(40, true);
            validity.set(11, false);
            check(&Vector::dictionary(data_type, codes, distinct, Some(validity)), constant);
        }
    }

    #[test]
    fn comparisons_agree_with_values() {
        let ints = [i64::MIN, -1, 0, 5, i64::MAX].map(Value::Int);
        check_all(DataType::Int64, &ints, &[Value::UInt(u64::MAX), Value::Int(3)]);
        check_all(DataType::UInt64, &[0, 7, u64::MAX].map(Value::UInt), &[Value::Int(-1), Value::Int(8)]);
        let wide = DataType::Decimal { precision: 38, scale: 0 };
        let decimal = |unscaled| Value::Decimal { unscaled, scale: 0 };
        check_all(wide, &[i128::MIN, -3, 4, i128::MAX].map(decimal), &[decimal(0)]);
        let floats = [f64::NEG_INFINITY, -2.5, -0.0, 1.0, f64::INFINITY, f64::NAN].map(Value::Float);
        check_all(DataType::Float64, &floats, &[Value::Float(0.0), Value::Float(1e300)]);
        check_all(DataType::Boolean, &[false, true].map(Value::Boolean), &[]);
        check_all(
            DataType::TEXT,
            &["", "a", "ab", "b", "é"].map(|s| Value::Text(s.into())),
            &[Value::Text("aa".into())],
        );
    }
}
