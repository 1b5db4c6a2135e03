//! Searches against a model that compares encoded keys.

use super::*;

fn check_search(
    specs: &[ColumnSpec],
    mut rows: Vec<Vec<Value>>,
    keys: &[usize],
    probes: &[Vec<Value>],
) {
    let encoded = |key: &[Value]| {
        let mut out = Vec::new();
        key.iter()
            .zip(keys)
            .for_each(|(v, c)| key::encode(&mut out, specs[*c].data_type, v).unwrap());
        out
    };
    let key_of = |row: &Vec<Value>| keys.iter().map(|c| row[*c].clone()).collect::<Vec<_>>();
    rows.sort_by_cached_key(|row| encoded(&key_of(row)));
    let sorted: Vec<Vec<u8>> = rows.iter().map(|row| encoded(&key_of(row))).collect();
    let segment = segment(specs, &rows);
    let own = (0..rows.len()).step_by(37).map(|row| key_of(&rows[row]));
    for probe in own.chain(probes.iter().cloned()) {
        for columns in 0..=keys.len() {
            let prefix = encoded(&probe[..columns]);
            let expected = sorted.partition_point(|row| row[..] < prefix[..]);
            assert_eq!(
                segment.lower_bound(keys, &probe[..columns]).unwrap(),
                expected,
                "{probe:?} {columns}"
            );
            let end = expected + sorted[expected..].partition_point(|row| row.starts_with(&prefix));
            let range = segment.equal_range(keys, &probe[..columns]).unwrap();
            assert_eq!(range, (expected, end), "{probe:?} {columns}");
        }
        let expected = sorted.binary_search(&encoded(&probe)).ok().map(|row| {
            sorted[..row].iter().rposition(|k| *k < sorted[row]).map_or(0, |before| before + 1)
        });
        assert_eq!(segment.search(keys, &probe).unwrap(), expected, "{probe:?}");
    }
    assert!(segment.lower_bound(keys, &[Value::Boolean(true)]).is_err() || rows.is_empty());
}

#[test]
fn search_finds_what_a_model_finds() {
    let ints = |n: i64| Value::Int(n);
    let one = [spec(1, DataType::Int64, true)];
    let probes: Vec<Vec<Value>> =
        (-3..60).map(|n| vec![ints(n * 1000)]).chain([vec![Value::Null]]).collect();
    for count in [0, 1, BLOCK_ROWS, BLOCK_ROWS + 1, 20_000] {
        check_search(&one, (0..count).map(|n| vec![ints(n as i64 * 2)]).collect(), &[0], &probes);
    }
    // Many nulls, and runs of equal keys over several blocks.
    let value = |n: usize| if n < 9000 { Value::Null } else { ints((n / 6000) as i64 * 1000) };
    check_search(&one, (0..30_000).map(|n| vec![value(n)]).collect(), &[0], &probes);
    // Dense keys, where the estimate is exact, and keys that grow ever faster, where it is as wrong
    // as possible.
    let near: Vec<Vec<Value>> =
        (19_990..20_020).chain(4_090..4_100).map(|n| vec![ints(n)]).collect();
    check_search(&one, (0..20_000).map(|n| vec![ints(n)]).collect(), &[0], &near);
    let steep = |n: usize| if n == 0 { i64::MIN } else { (n as i64).pow(4) - (1 << 56) };
    let far: Vec<Vec<Value>> = (0..14_000)
        .step_by(173)
        .flat_map(|n| [steep(n) - (n > 0) as i64, steep(n)])
        .chain([i64::MAX, 0])
        .map(|n| vec![ints(n)])
        .collect();
    check_search(&one, (0..14_000).map(|n| vec![ints(steep(n))]).collect(), &[0], &far);
    // Text after an integer, key columns not first in the file, and a separate key order.
    let three = [
        spec(1, DataType::Float64, false),
        spec(2, DataType::TEXT, true),
        spec(3, DataType::Int32, false),
    ];
    let long = "é".repeat(20);
    let row = |n: usize| {
        let r = pseudo(n);
        let name = match r % 5 {
            0 => Value::Null,
            1 => text(format!("{long}{}", r % 7)),
            2 => text("\u{10ffff}".repeat((r % 12) as usize)),
            _ => text(format!("{:x}", r % 5000)),
        };
        vec![Value::Float(n as f64), name, ints((r >> 32) as i64 % 3)]
    };
    let probes: Vec<Vec<Value>> = (0..60)
        .map(|n| {
            vec![
                ints(n % 5 - 1),
                if n % 4 == 0 { Value::Null } else { text(format!("{:x}", n * 97)) },
            ]
        })
        .chain([
            vec![ints(1), text(&long)],
            vec![ints(1), text(format!("{long}3"))],
            vec![ints(2), text("\u{10ffff}")],
        ])
        .collect();
    check_search(&three, (0..20_000).map(row).collect(), &[2, 1], &probes);
    let by_text: Vec<Vec<Value>> =
        probes.iter().map(|p| vec![p[1].clone(), p[0].clone()]).collect();
    check_search(&three, (0..20_000).map(row).collect(), &[1, 2], &by_text);
}

#[test]
fn interpolation_finds_numbers_of_any_distribution() {
    let shapes: [&dyn Fn(usize) -> i64; 5] = [
        &|n| (pseudo(n) >> 24) as i64,
        &|n| (n as i64).pow(3),
        &|n| (n / 1_500) as i64 * 7,
        &|_| 5,
        &|n| {
            if n < 9_000 { i64::MIN + n as i64 } else { i64::MAX - 20_000 + n as i64 }
        },
    ];
    for (shape, value_of) in shapes.iter().enumerate() {
        for rows in [0, 1, 100, 4_096, 4_097, 10_000] {
            let mut values: Vec<i64> = (0..rows).map(value_of).collect();
            values.sort_unstable();
            let mut builder = SegmentBuilder::new(vec![spec(1, DataType::Int64, false)]);
            let column = Arc::new(Vector::new(DataType::Int64, Values::I64(values.clone()), None));
            builder.push(&Batch::new(vec![column], rows));
            let file = MemoryStore::new().create("s").unwrap();
            builder.write(&*file).unwrap();
            let segment = Segment::open(file, "s", 1, BlockCache::new(1 << 20)).unwrap();
            let known = (0..rows).step_by(37).map(|row| values[row]);
            for wanted in known.flat_map(|v| [v, v.saturating_sub(1), v.saturating_add(1)]).chain([
                0,
                -1,
                i64::MAX,
            ]) {
                let first = values.partition_point(|v| *v < wanted);
                let expected = (values.get(first) == Some(&wanted)).then_some(first);
                assert_eq!(
                    segment.find_even(0, wanted).unwrap(),
                    expected,
                    "shape {shape}, {rows} rows, {wanted}"
                );
            }
        }
    }
}
