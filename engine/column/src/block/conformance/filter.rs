//! Conformance tests of filters: the result of every encoding equals a test of each decoded value.
//! Includes columns of 2^20 rows, in blocks as a segment stores them.

use super::*;
use crate::Scalar;
use crate::kernel::{Comparison, Pattern, Predicate};
use nacre_types::limits::BLOCK_ROWS;

/// Constants taken from the data, and their neighbours.
fn constants(data_type: DataType, expected: &Vector, random: &mut Random) -> Vec<Value> {
    let physical = data_type.physical();
    let mut out = Vec::new();
    for _ in 0..2 {
        let value = expected.value(random.below(expected.len() as u64) as usize);
        if value.is_null() {
            continue;
        }
        if let Some(n) = nacre_types::key::integer(&value)
            && physical == nacre_types::PhysicalType::I64
        {
            out.push(Value::Int((n as i64).wrapping_add(1)));
        }
        if let Value::Text(text) = &value {
            out.push(Value::Text(text.chars().take(5).collect::<String>()));
        }
        out.push(value);
    }
    out
}

fn predicates(data_type: DataType, expected: &Vector, random: &mut Random) -> Vec<Predicate> {
    let physical = data_type.physical();
    let constants = constants(data_type, expected, random);
    let compare = |op, constant| Predicate::compare(physical, op, constant).unwrap();
    let mut out = vec![Predicate::nothing(physical), Predicate::nothing(physical).not()];
    for constant in &constants {
        out.extend(Comparison::ALL.map(|op| compare(op, constant)));
    }
    if let [low, .., high] = &constants[..] {
        let between =
            compare(Comparison::GreaterOrEqual, low).and(&compare(Comparison::LessOrEqual, high));
        out.extend([between.clone(), between.not()]);
    }
    let several: Vec<Value> =
        (0..9).map(|_| expected.value(random.below(expected.len() as u64) as usize)).collect();
    for list in [&constants[..], &several] {
        let list = Predicate::any_of(physical, list).unwrap();
        out.extend([list.clone(), list.not()]);
    }
    out
}

fn assert_bits(bits: &Bitmap, predicate: &Predicate, passes: &[bool], what: &str) {
    assert_eq!(bits.len(), passes.len(), "{what}");
    for (row, pass) in passes.iter().enumerate() {
        assert_eq!(bits.get(row), *pass, "{what}: row {row} by {predicate:?}");
    }
}

/// Expected result: tests each value on its own.
fn passes(predicate: &Predicate, expected: &Vector) -> Vec<bool> {
    let flat = expected.flat();
    let one = |row| !expected.is_null(row) && predicate.accepts(&Scalar::at(&flat, row));
    (0..expected.len()).map(one).collect()
}

/// Checks filters on a block of these values.
pub(super) fn check(
    block: &Encoded,
    data_type: DataType,
    expected: &Vector,
    random: &mut Random,
    what: &str,
) {
    let rows = expected.len();
    let start = random.below(rows as u64) as usize;
    for predicate in predicates(data_type, expected, random) {
        // Long columns are slow: run a random quarter of the tests on each.
        if rows > 100 && random.below(4) > 0 {
            continue;
        }
        let passes = passes(&predicate, expected);
        for (start, len) in
            [(0, rows), (start, rows - start), (start, (rows - start).min(70)), (rows, 0)]
        {
            let bits =
                block.read(data_type, rows, |b| b.filter(&predicate, start, len)).unwrap().unwrap();
            assert_bits(
                &bits,
                &predicate,
                &passes[start..start + len],
                &format!("{what} filter {start}+{len}"),
            );
        }
    }
    check_patterns(block, data_type, expected, random, what);
    let all = Predicate::nothing(data_type.physical()).not();
    assert!(block.read(data_type, rows, |b| b.filter(&all, 1, rows).is_err()).unwrap());
}

/// Checks that an encoding either tests no pattern, or finds the rows among some that match.
fn check_patterns(
    block: &Encoded,
    data_type: DataType,
    expected: &Vector,
    random: &mut Random,
    what: &str,
) {
    let rows = expected.len();
    let some = random.below(rows as u64) as usize;
    let (Some(text), true) = (expected.bytes(some), matches!(data_type, DataType::Text { .. }))
    else {
        return;
    };
    let (start, third) = (random.below(rows as u64) as usize, text.len() / 3);
    let (first, middle) = (&text[..third], &text[third..third * 2]);
    let lists: [&[&[u8]]; 4] = [&[b"", middle, b""], &[first, middle, b""], &[b"", first], &[text]];
    for (list, negated) in lists.into_iter().flat_map(|list| [(list, false), (list, true)]) {
        let Some(pattern) = Pattern::new(list, negated) else { continue };
        let wanted =
            Bitmap::of_ones((0..rows - start).map(|at| at as u32).step_by(2), rows - start);
        let read = |b: &Block<'_>| b.matches(&pattern, start, &wanted);
        let Some(found) = block.read(data_type, rows, read).unwrap().unwrap() else { continue };
        for at in 0..rows - start {
            let passes = expected.bytes(start + at).is_some_and(|text| pattern.passes(text));
            let passes = passes && wanted.get(at);
            assert_eq!(found.get(at), passes, "{what}: row {at} from {start} by {list:?}");
        }
    }
}

/// Filters a damaged block.
pub(super) fn survive(block: &Block<'_>, data_type: DataType, rows: usize) {
    let constant = match data_type.physical() {
        nacre_types::PhysicalType::Bool => Value::Boolean(true),
        nacre_types::PhysicalType::F64 => Value::Float(3.5),
        nacre_types::PhysicalType::Bytes => Value::Text("v".into()),
        _ => Value::Int(1_000),
    };
    for op in [Comparison::Less, Comparison::NotEqual] {
        let predicate = Predicate::compare(data_type.physical(), op, &constant).unwrap();
        let _ = block.filter(&predicate, 0, rows);
        let _ = block.filter(&predicate, rows / 3, rows / 3);
    }
    if data_type.physical() == nacre_types::PhysicalType::Bytes {
        let pattern = Pattern::new(&[b"a", b"e", b""], true).unwrap();
        let _ = block.matches(&pattern, rows / 3, &Bitmap::filled(rows / 3, true));
    }
}

#[test]
fn a_million_rows_in_every_encoding() {
    let mut random = Random::new(20);
    for &encoding in Encoding::ALL {
        // The first and the last data set that it can hold: they differ in type, in shape, or in
        // both.
        let held = held_by(encoding, BLOCK_ROWS, &mut random);
        let cases = [held[0], held[held.len() - 1]];
        let mut rows = 0;
        let mut found = 0;
        let mut wanted = 0;
        for part in 0..(1 << 20) / BLOCK_ROWS {
            let (data_type, shape) = cases[part % 2];
            let values = values(data_type, shape, BLOCK_ROWS, &mut random);
            let validity = validity([0, 5][part / 2 % 2], BLOCK_ROWS, &mut random);
            let expected = Vector::new(data_type, values.clone(), validity.clone());
            let what = format!("{} block {part}", encoding.name());
            let block = encoded(encoding, &values, &validity).unwrap();
            let all =
                block.read(data_type, BLOCK_ROWS, |b| b.decode(0, BLOCK_ROWS)).unwrap().unwrap();
            let every: Vec<u32> = (0..BLOCK_ROWS as u32).collect();
            assert_rows(&all, &every, &expected, &what);
            let row = random.below(BLOCK_ROWS as u64) as usize;
            let value = block
                .read(data_type, BLOCK_ROWS, |b| b.get(row).unwrap().to_value(data_type))
                .unwrap();
            assert!(same(&value, &expected.value(row)), "{what} get {row}");
            let constant = expected.value(random.below(BLOCK_ROWS as u64) as usize);
            let predicate =
                Predicate::compare(data_type.physical(), Comparison::LessOrEqual, &constant)
                    .unwrap();
            let bits = block
                .read(data_type, BLOCK_ROWS, |b| b.filter(&predicate, 0, BLOCK_ROWS))
                .unwrap()
                .unwrap();
            found += bits.count_ones();
            wanted += passes(&predicate, &expected).iter().filter(|pass| **pass).count();
            rows += all.len();
        }
        assert_eq!((rows, found), (1 << 20, wanted), "{}", encoding.name());
    }
}
