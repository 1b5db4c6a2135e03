//! Compares predicates with tests of single values, over every type and form.

use super::*;
use crate::Scalar;
use crate::{Bitmap, Vector};
use nacre_types::{DataType, PhysicalType, Value, key};
use std::cmp::Ordering;
use std::sync::Arc;

/// SQL order of two values of one type.
fn order(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Boolean(a), Value::Boolean(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => key::order_f64(*a).cmp(&key::order_f64(*b)),
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        (a, b) => key::integer(a).unwrap().cmp(&key::integer(b).unwrap()),
    }
}

fn check(vector: &Vector, constants: &[Value]) {
    let physical = vector.data_type().physical();
    let assert = |predicate: &Predicate, passes: &dyn Fn(&Value) -> bool, what: &str| {
        let bits = filter(vector, predicate);
        assert_eq!(bits.len(), vector.len());
        for row in 0..vector.len() {
            let value = vector.value(row);
            let expected = !value.is_null() && passes(&value);
            assert_eq!(bits.get(row), expected, "{what} {constants:?}: {value:?} by {predicate:?}");
            let flat = Vector::from_values(vector.data_type(), [&value]);
            let scalar = if value.is_null() {
                Scalar::Null
            } else {
                Scalar::at(&flat.flat(), 0).into_owned()
            };
            assert_eq!(predicate.accepts(&scalar), expected, "{what}: {value:?}");
        }
    };
    for constant in constants {
        for op in Comparison::ALL {
            let predicate = Predicate::compare(physical, op, constant).unwrap();
            let passes = |v: &Value| !constant.is_null() && op.accepts(order(v, constant));
            assert(&predicate, &passes, &format!("{op:?} {constant:?}"));
            if !constant.is_null() {
                assert(&predicate.clone().not(), &|v| !passes(v), "not");
                assert_eq!(predicate.clone().not().not(), predicate);
            }
            for other in constants.iter().filter(|c| !c.is_null() && !constant.is_null()) {
                for more in Comparison::ALL {
                    let second = Predicate::compare(physical, more, other).unwrap();
                    let both = predicate.clone().and(&second);
                    assert(&both, &|v| passes(v) && more.accepts(order(v, other)), "and");
                    let either = predicate.clone().or(&second);
                    assert(&either, &|v| passes(v) || more.accepts(order(v, other)), "or");
                }
            }
        }
    }
    let list = Predicate::any_of(physical, constants).unwrap();
    let among = |v: &Value| constants.iter().any(|c| !c.is_null() && order(v, c).is_eq());
    assert(&list, &among, "in");
    assert(&list.clone().not(), &|v| !among(v), "not in");
    for constant in constants {
        if let Value::Text(prefix) = constant {
            let passes = |v: &Value| matches!(v, Value::Text(v) if v.starts_with(prefix));
            assert(&Predicate::starts_with(prefix.as_bytes()), &passes, "starts with");
        }
    }
    let nothing = list.clone().and(&list.clone().not());
    assert!(nothing.is_nothing() && !nothing.is_everything());
    let all = list.clone().or(&list.not());
    assert!(all.is_everything() && all == nothing.not());
    assert(&all, &|_| true, "everything");
}

fn check_all(data_type: DataType, values: &[Value], more_constants: &[Value]) {
    let with_null: Vec<Value> =
        values.iter().cloned().chain([Value::Null]).chain(values.iter().cloned()).collect();
    let constants: Vec<Value> =
        values.iter().chain(more_constants).cloned().chain([Value::Null]).collect();
    check(&Vector::from_values(data_type, values), &constants);
    check(&Vector::from_values(data_type, &with_null), &constants);
    // Long enough for whole groups of 64.
    let many: Vec<Value> = with_null.iter().cycle().take(200).cloned().collect();
    check(&Vector::from_values(data_type, &many), &constants);
    check(&Vector::constant(data_type, &values[0], 5), &constants);
    check(&Vector::constant(data_type, &Value::Null, 5), &constants);
    check(&Vector::from_values(data_type, &[]), &constants);
    let distinct = Arc::new(Vector::from_values(data_type, values).flat().into_owned());
    let codes: Vec<u32> = (0..40).map(|i| (i * 7) % values.len() as u32).collect();
    let mut validity = Bitmap::filled(40, true);
    validity.set(11, false);
    check(&Vector::dictionary(data_type, codes, distinct, Some(validity)), &constants);
}

#[test]
fn predicates_agree_with_values() {
    let ints = [i64::MIN, -7, -1, 0, 5, 6, 9, i64::MAX].map(Value::Int);
    check_all(DataType::Int64, &ints, &[Value::UInt(u64::MAX), Value::Int(3)]);
    check_all(
        DataType::UInt64,
        &[0, 7, u64::MAX].map(Value::UInt),
        &[Value::Int(-1), Value::Int(8)],
    );
    let wide = DataType::Decimal { precision: 38, scale: 0 };
    let decimal = |unscaled| Value::Decimal { unscaled, scale: 0 };
    check_all(wide, &[i128::MIN, -3, 4, 9, 17, 30, i128::MAX].map(decimal), &[decimal(0)]);
    let floats = [f64::NEG_INFINITY, -2.5, -0.0, 1.0, f64::INFINITY, f64::NAN].map(Value::Float);
    check_all(DataType::Float64, &floats, &[Value::Float(0.0), Value::Float(1e300)]);
    check_all(DataType::Boolean, &[false, true].map(Value::Boolean), &[]);
    let texts = ["", "a", "a\0", "ab", "b", "é"].map(|s| Value::Text(s.into()));
    check_all(DataType::TEXT, &texts, &[Value::Text("aa".into())]);
}

#[test]
fn prefixes_end_where_a_byte_overflows() {
    let accepts = |prefix: &[u8], value: &[u8]| {
        Predicate::starts_with(prefix).accepts(&Scalar::Bytes(value.into()))
    };
    for (prefix, inside, outside) in [
        (&[1, 255][..], &[1, 255, 255][..], &[2][..]),
        (&[255, 255], &[255, 255, 0], &[255, 254]),
        (&[1, 2], &[1, 2], &[1, 3]),
    ] {
        assert!(accepts(prefix, inside) && !accepts(prefix, outside), "{prefix:?}");
    }
    assert!(Predicate::starts_with(&[]).is_everything());
}

#[test]
fn a_dictionary_longer_than_its_rows_is_not_tested_whole() {
    let values: Vec<Value> = (0..100).map(Value::Int).collect();
    let distinct = Arc::new(Vector::from_values(DataType::Int64, &values).flat().into_owned());
    let vector = Vector::dictionary(DataType::Int64, vec![99, 3, 50], distinct, None);
    check(&vector, &[Value::Int(50), Value::Null]);
}

#[test]
fn constants_of_another_type_have_no_predicate() {
    let physical = DataType::Int64.physical();
    assert_eq!(Predicate::compare(physical, Comparison::Less, &Value::Text("1".into())), None);
    assert_eq!(Predicate::any_of(physical, &[Value::Int(1), Value::Float(1.0)]), None);
    assert_eq!(
        Predicate::compare(DataType::TEXT.physical(), Comparison::Less, &Value::Int(1)),
        None
    );
}

#[test]
fn a_predicate_of_doubles_finds_integers() {
    let integers = [i64::MIN, i64::MIN + 1, -3, -1, 0, 1, 2, 1 << 53, (1 << 53) + 1, i64::MAX];
    let doubles = [-1e300, -9.3e18, -1.0, -0.5, -0.0, 0.0, 1.0, 1.5, 9007199254740992.0, 9.3e18];
    for bound in doubles {
        for op in Comparison::ALL {
            let constant = Value::Float(bound);
            let of_doubles = Predicate::compare(PhysicalType::F64, op, &constant).unwrap();
            let of_integers = of_doubles.of_integers();
            for integer in integers {
                let expected = of_doubles.accepts(&Scalar::F64(integer as f64));
                assert_eq!(
                    of_integers.accepts(&Scalar::I64(integer)),
                    expected,
                    "{integer} {op:?} {bound}"
                );
            }
        }
    }
}
