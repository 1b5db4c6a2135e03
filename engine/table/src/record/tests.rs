//! Records round-trip, and damaged ones never crash the reader.

use crate::record::*;
use crate::segments::names::FileKind;
use nacre_segment::{BoundsOfColumns, ColumnBounds, OrderBounds};
use nacre_types::{
    CheckConstraint, Column, ColumnRule, DataType, ForeignKey, IndexKind, IndexSchema, KeyColumns,
    ReferentialAction, ShardKey, TableSchema, Value, ViewSchema,
};
use roaring::RoaringBitmap;
use std::sync::Arc;

fn schema() -> TableSchema {
    let column = |id, name: &str, data_type, default| Column {
        id,
        name: name.into(),
        data_type,
        nullable: true,
        default,
        rule: ColumnRule::Constant,
    };
    TableSchema {
        id: 7,
        name: "t".into(),
        columns: vec![
            column(1, "a", DataType::Int32, Value::Int(-4)),
            column(2, "b", DataType::Text { max_chars: Some(3) }, Value::Null),
            column(5, "c", DataType::Decimal { precision: 20, scale: 2 }, Value::Null),
        ],
        primary_key: Some(KeyColumns { name: "PRIMARY".into(), columns: vec![0, 1] }),
        sort_key: Some(KeyColumns { name: "SORT".into(), columns: vec![1] }),
        shard_key: Some(ShardKey { columns: vec![1], partitions: 3 }),
        next_column_id: 9,
        version: 3,
        ..TableSchema::default()
    }
}

fn indexed() -> TableSchema {
    let index = |id, name: &str, columns: &[u32], unique, kind| IndexSchema {
        id,
        name: name.into(),
        columns: columns.to_vec(),
        unique,
        kind,
    };
    let indexes = vec![
        index(3, "by_b", &[2], true, IndexKind::Hash),
        index(5, "by_c", &[5, 1], false, IndexKind::BTree),
    ];
    TableSchema { indexes, next_index_id: 6, ..schema() }
}

fn view() -> ViewSchema {
    ViewSchema {
        name: "v".into(),
        columns: vec!["a".into()],
        statement: "create view v as select 1 as a".into(),
    }
}

fn hash_table() -> NewTable {
    NewTable { keys: KeySet::Index(5), files: vec![7, 300], segments: vec![1, 3] }
}

fn description() -> Description {
    let mut bounds = BoundsOfColumns::default();
    bounds.push(ColumnBounds { column: 2, nulls: 3, low: b"\x01a", high: b"\x01b" });
    bounds.push(ColumnBounds { column: u32::MAX, nulls: 0, low: b"", high: b"\x01" });
    Description {
        kind: FileKind::Segment,
        number: 3,
        bytes: 5_000,
        footer_checksum: 77,
        rows: 40,
        order_bounds: Some(Arc::new(OrderBounds { first: vec![1, 2], last: vec![1, 2, 3] })),
        highest_row_number: Some(300),
        run: Some(RunPlace { number: 2, level: 5 }),
        contents: Some(super::description::Contents {
            raw_bytes: 90_000,
            columns: [1, 2, u32::MAX].into(),
            bounds: Arc::new(bounds),
        }),
    }
}

fn range() -> FlushedRange {
    let (after, to) = (Some(b"a".to_vec()), b"xy".to_vec());
    FlushedRange { after, to, upto: 40, except: vec![b"x".to_vec()] }
}

fn sample() -> Vec<u8> {
    let place = Place { table: 7, partition: 2 };
    let mut out = begin(0);
    stamp(&mut out, 42);
    create_table(&mut out, &schema()).unwrap();
    put(&mut out, place, b"key", b"row");
    delete(&mut out, place, b"key");
    move_row(&mut out, place, 3, 9, b"k", b"r");
    let deleted = RoaringBitmap::from_iter([1, 5]);
    flush_range(&mut out, place, &range(), &NewSegment { id: 1, deleted: deleted.clone() })
        .unwrap();
    add_segments(&mut out, place, &[NewSegment { id: 2, deleted: RoaringBitmap::new() }]).unwrap();
    delete_rows(&mut out, place, 2, &deleted).unwrap();
    merge(&mut out, place, &[1, 2], &[NewSegment { id: 3, deleted: RoaringBitmap::new() }])
        .unwrap();
    alter_table(&mut out, &schema()).unwrap();
    truncate(&mut out, 7);
    drop_table(&mut out, 7);
    create_view(&mut out, &view());
    drop_view(&mut out, "v");
    alter_table(&mut out, &indexed()).unwrap();
    add_part(&mut out, place, NewPart { segment: 3, index: 5, file: 9 });
    set_tables(&mut out, place, &[4, 5], Some(&hash_table()));
    set_tables(&mut out, place, &[7], None);
    describe(&mut out, place, &description());
    let undescribed = Description {
        kind: FileKind::Part,
        order_bounds: None,
        highest_row_number: None,
        run: None,
        contents: None,
        ..description()
    };
    describe(&mut out, place, &undescribed);
    out
}

#[test]
fn records_round_trip() {
    let (commit, operations) = decode(&sample()).unwrap();
    assert_eq!(commit, 42);
    assert_eq!(operations.len(), 20);
    let Operation::SetIndexes { table: 7, indexes } = &operations[14] else {
        panic!("{:?}", operations[14])
    };
    assert_eq!(indexes.clone().put_into(schema()).unwrap(), indexed());
    let part = NewPart { segment: 3, index: 5, file: 9 };
    assert_eq!(
        operations[15],
        Operation::AddPart { place: Place { table: 7, partition: 2 }, part }
    );
    let place = Place { table: 7, partition: 2 };
    let set = Operation::SetTables { place, dropped: vec![4, 5], added: Some(hash_table()) };
    assert_eq!(operations[16], set);
    assert_eq!(operations[17], Operation::SetTables { place, dropped: vec![7], added: None });
    let described = Operation::Describe { place, description: description() };
    assert_eq!(operations[18], described);
    assert_eq!(operations[11], Operation::CreateView { view: view() });
    assert_eq!(operations[0], Operation::CreateTable { schema: schema() });
    assert!(matches!(
        &operations[3],
        Operation::Move { row: 9, segment: 3, place: Place { table: 7, partition: 2 }, .. }
    ));
    assert!(matches!(
        &operations[4],
        Operation::FlushRange { range: found, segment, .. }
            if *found == range() && segment.deleted.len() == 2
    ));
}

#[test]
fn rules_round_trip_and_name_a_newer_version() {
    let mut ruled = schema();
    let rules = [
        ColumnRule::Default("now()".into()),
        ColumnRule::Generated { expression: "a + 1".into(), stored: true },
        ColumnRule::Identity { always: true },
    ];
    for (column, rule) in ruled.columns.iter_mut().zip(rules) {
        column.rule = rule;
    }
    ruled.checks.push(CheckConstraint { name: "c".into(), expression: "a > 0".into() });
    ruled.next_identity = 300;
    ruled.foreign_keys.push(ForeignKey {
        name: "f".into(),
        columns: vec![ruled.columns[1].id, ruled.columns[0].id],
        parent: 0,
        parent_columns: vec![3, 300],
        on_delete: ReferentialAction::Cascade,
        on_update: ReferentialAction::SetDefault,
        is_deferred: true,
    });
    ruled.referenced_by = vec![5, 1_000];
    let mut out = begin(42);
    create_table(&mut out, &ruled).unwrap();
    advance(&mut out, 7, 1 << 40);
    let (_, operations) = decode(&out).unwrap();
    let [Operation::CreateTable { .. }, Operation::SetRules { table: 7, rules }, last] =
        &operations[..]
    else {
        panic!("{operations:?}")
    };
    assert_eq!(rules.clone().put_into(schema()).unwrap(), ruled);
    assert_eq!(*last, Operation::Advance { table: 7, next: 1 << 40 });
    for column in [2, 5, 9] {
        let known = rules.columns.iter().any(|(id, _)| *id == column);
        assert_eq!(known, column != 9);
    }
    // The version follows the tag and the table.
    let mut newer = begin(42);
    newer.extend([17, 7, 3]);
    assert_eq!(decode(&newer).unwrap_err().kind(), nacre_types::ErrorKind::Unsupported);
    let mut plain = ruled.clone();
    (plain.foreign_keys, plain.referenced_by) = (Vec::new(), Vec::new());
    let mut out = begin(42);
    create_table(&mut out, &plain).unwrap();
    let (_, operations) = decode(&out).unwrap();
    let Operation::SetRules { rules: without, .. } = &operations[1] else { panic!() };
    assert_eq!(without.clone().put_into(schema()).unwrap(), plain);
    assert!(out.windows(3).any(|bytes| bytes == [17, 7, 1]), "an older build reads it");
    let mut elsewhere = rules.clone();
    elsewhere.foreign_keys[0].columns = vec![99];
    assert_eq!(elsewhere.put_into(schema()).unwrap_err().kind(), nacre_types::ErrorKind::Corrupt);
    let unknown = Rules { columns: vec![(99, ColumnRule::Constant)], ..rules.clone() };
    assert_eq!(unknown.put_into(schema()).unwrap_err().kind(), nacre_types::ErrorKind::Corrupt);
}

/// Flushes were one record over all keys before they went slice by slice.
#[test]
fn a_flush_of_an_older_version_is_read() {
    let mut out = begin(42);
    out.extend([4, 7, 2]);
    out.extend(40u64.to_le_bytes());
    let none = RoaringBitmap::new();
    out.extend([1, 3, none.serialized_size() as u8]);
    none.serialize_into(&mut out).unwrap();
    out.extend([1, 1, b'x']);
    let flush = Operation::Flush {
        place: Place { table: 7, partition: 2 },
        upto: 40,
        segments: vec![NewSegment { id: 3, deleted: none }],
        except: vec![b"x".to_vec()],
    };
    assert_eq!(decode(&out).unwrap(), (42, vec![flush]));
}

#[test]
fn a_range_without_keys_is_corrupt() {
    for (after, to) in [(&b"a"[..], &b"a"[..]), (b"b", b"a"), (b"", b"")] {
        let mut out = begin(42);
        out.extend([16, 7, 2]);
        out.extend(40u64.to_le_bytes());
        out.push(after.len() as u8);
        out.extend(after);
        out.push(to.len() as u8);
        out.extend(to);
        assert_eq!(decode(&out).unwrap_err().kind(), nacre_types::ErrorKind::Corrupt);
    }
}

#[test]
fn damaged_records_are_errors_or_other_records_but_never_panics() {
    let good = sample();
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            let _ = decode(&bad);
        }
        if decode(&good[..at]).is_ok() {
            // A cut between operations yields a valid, shorter record; only the log's checksum
            // detects it.
            assert!(at >= 8);
        }
    }
}
