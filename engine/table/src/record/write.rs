//! Writes records: a timestamp, which may be set later, and operations appended one by one.

use crate::record::description::{Description, put_description};
use crate::record::fields::{put_bitmap, put_place, put_segments};
use crate::record::hashes::{NewTable, put_hash_table, put_numbers};
use crate::record::indexes::{Indexes, NewPart, put_indexes, put_part};
use crate::record::operation::{FlushedRange, NewSegment, Operation, Place, tag};
use crate::record::read::read_operation;
use crate::record::rules::{Rules, put_counter, put_rules};
use crate::record::schema::{put_schema, put_view};
use nacre_types::bytes::{Reader, Write};
use nacre_types::{Result, TableId, TableSchema, Timestamp, ViewSchema, invariant};
use roaring::RoaringBitmap;

/// Length of the timestamp at the start of a record.
const TIMESTAMP_BYTES: usize = size_of::<Timestamp>();

/// Whether the last operation of a record, from `start` on, reads back as one that `is` accepts.
fn reads_back(record: &[u8], start: usize, is: impl FnOnce(&Operation) -> bool) -> bool {
    let mut reader = Reader::new(&record[start..], "log record");
    read_operation(&mut reader).is_ok_and(|read| is(&read)) && reader.remaining() == 0
}

/// Starts a record.
pub(crate) fn begin(commit: Timestamp) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    out.put_u64(commit);
    debug_assert!(
        timestamp(&out) == Some(commit),
        "the commit {commit} of a record does not read back"
    );
    out
}

/// Overwrites the timestamp of a record prepared before its commit was assigned one.
pub(crate) fn stamp(record: &mut [u8], commit: Timestamp) {
    invariant!(record.len() >= TIMESTAMP_BYTES, "a record of {} bytes", record.len());
    record[..TIMESTAMP_BYTES].copy_from_slice(&commit.to_le_bytes());
    debug_assert!(timestamp(record) == Some(commit), "a record is not stamped {commit}");
}

/// The timestamp of a record; `None` if it is too short to have one.
pub(crate) fn timestamp(record: &[u8]) -> Option<Timestamp> {
    record.first_chunk().map(|bytes| Timestamp::from_le_bytes(*bytes))
}

pub(crate) fn put(out: &mut Vec<u8>, place: Place, key: &[u8], row: &[u8]) {
    debug_assert!(!key.is_empty() && !row.is_empty(), "a row or its key is empty");
    let start = out.len();
    out.put_u8(tag::PUT);
    put_place(out, place);
    out.put_bytes(key);
    out.put_bytes(row);
    debug_assert!(
        reads_back(out, start, |read| matches!(read,
            Operation::Put { place: p, key: k, row: r } if *p == place && k == key && r == row)),
        "a row does not read back"
    );
}

pub(crate) fn delete(out: &mut Vec<u8>, place: Place, key: &[u8]) {
    debug_assert!(!key.is_empty(), "the key of a deleted row is empty");
    let start = out.len();
    out.put_u8(tag::DELETE);
    put_place(out, place);
    out.put_bytes(key);
    debug_assert!(
        reads_back(out, start, |read| matches!(read,
            Operation::Delete { place: p, key: k } if *p == place && k == key)),
        "a deleted key does not read back"
    );
}

pub(crate) fn move_row(
    out: &mut Vec<u8>,
    place: Place,
    segment: u64,
    row: u32,
    key: &[u8],
    data: &[u8],
) {
    debug_assert!(!key.is_empty() && !data.is_empty(), "a moved row or its key is empty");
    let start = out.len();
    out.put_u8(tag::MOVE);
    put_place(out, place);
    out.put_varint(segment);
    out.put_varint(row as u64);
    out.put_bytes(key);
    out.put_bytes(data);
    debug_assert!(
        reads_back(out, start, |read| matches!(read,
            Operation::Move { segment: s, row: r, key: k, data: d, .. }
                if *s == segment && *r == row && k == key && d == data)),
        "a move does not read back"
    );
}

/// Writes one commit of a flush: the rows of a key range, in one segment.
pub(crate) fn flush_range(
    out: &mut Vec<u8>,
    place: Place,
    range: &FlushedRange,
    segment: &NewSegment,
) -> Result<()> {
    invariant!(
        !range.to.is_empty() && range.after.as_ref().is_none_or(|after| *after < range.to),
        "a flush of a range without keys"
    );
    debug_assert!(
        range.except.is_sorted_by(|a, b| a < b) && range.except.iter().all(|k| range.contains(k)),
        "a flush of a range names rows that are not in it, or names one twice"
    );
    let start = out.len();
    out.put_u8(tag::FLUSH_RANGE);
    put_place(out, place);
    out.put_u64(range.upto);
    // No key is empty.
    out.put_bytes(range.after.as_deref().unwrap_or(&[]));
    out.put_bytes(&range.to);
    out.put_varint(segment.id);
    put_bitmap(out, &segment.deleted)?;
    out.put_varint(range.except.len() as u64);
    range.except.iter().for_each(|key| out.put_bytes(key));
    debug_assert!(
        reads_back(out, start, |read| matches!(read,
            Operation::FlushRange { place: p, range: r, segment: s }
                if *p == place && r == range && s == segment)),
        "a flush of a range does not read back"
    );
    Ok(())
}

pub(crate) fn add_segments(out: &mut Vec<u8>, place: Place, segments: &[NewSegment]) -> Result<()> {
    debug_assert!(!segments.is_empty(), "a load of no segment");
    let start = out.len();
    out.put_u8(tag::ADD_SEGMENTS);
    put_place(out, place);
    put_segments(out, segments)?;
    debug_assert!(
        reads_back(out, start, |read| matches!(read,
            Operation::AddSegments { place: p, segments: s } if *p == place && s == segments)),
        "the segments of a load do not read back"
    );
    Ok(())
}

pub(crate) fn delete_rows(
    out: &mut Vec<u8>,
    place: Place,
    segment: u64,
    rows: &RoaringBitmap,
) -> Result<()> {
    debug_assert!(!rows.is_empty(), "no row of segment {segment} is deleted");
    let start = out.len();
    out.put_u8(tag::DELETE_ROWS);
    put_place(out, place);
    out.put_varint(segment);
    put_bitmap(out, rows)?;
    debug_assert!(
        reads_back(out, start, |read| matches!(read,
            Operation::DeleteRows { place: p, segment: s, rows: r }
                if *p == place && *s == segment && r == rows)),
        "deleted rows of segment {segment} do not read back"
    );
    Ok(())
}

pub(crate) fn create_table(out: &mut Vec<u8>, schema: &TableSchema) -> Result<()> {
    invariant!(schema.id > 0, "table {} is logged without an id", schema.name);
    out.put_u8(tag::CREATE_TABLE);
    put_schema(out, schema)?;
    set_indexes(out, schema);
    set_rules(out, schema);
    Ok(())
}

pub(crate) fn drop_table(out: &mut Vec<u8>, table: TableId) {
    let start = out.len();
    out.put_u8(tag::DROP_TABLE);
    out.put_varint(table as u64);
    debug_assert!(
        reads_back(out, start, |read| *read == Operation::DropTable { table }),
        "the drop of table {table} does not read back"
    );
}

pub(crate) fn alter_table(out: &mut Vec<u8>, schema: &TableSchema) -> Result<()> {
    debug_assert!(schema.id > 0, "table {} is logged without an id", schema.name);
    out.put_u8(tag::ALTER_TABLE);
    put_schema(out, schema)?;
    set_indexes(out, schema);
    set_rules(out, schema);
    Ok(())
}

/// Writes nothing for a table that never had an index.
fn set_indexes(out: &mut Vec<u8>, schema: &TableSchema) {
    if let Some(indexes) = Indexes::of(schema) {
        let start = out.len();
        out.put_u8(tag::SET_INDEXES);
        out.put_varint(schema.id as u64);
        put_indexes(out, &indexes);
        debug_assert!(
            reads_back(out, start, |read| matches!(read,
                Operation::SetIndexes { table, indexes: i } if *table == schema.id && *i == indexes)),
            "the indexes of table {} do not read back",
            schema.name
        );
    }
}

/// Writes nothing for a table without rules.
fn set_rules(out: &mut Vec<u8>, schema: &TableSchema) {
    if let Some(rules) = Rules::of(schema, schema.next_identity) {
        let start = out.len();
        out.put_u8(tag::SET_RULES);
        out.put_varint(schema.id as u64);
        put_rules(out, &rules);
        debug_assert!(
            reads_back(out, start, |read| matches!(read,
                Operation::SetRules { table, rules: r } if *table == schema.id && *r == rules)),
            "the rules of table {} do not read back",
            schema.name
        );
    }
}

/// Writes how far the counter of a table's identity column has come.
pub(crate) fn advance(out: &mut Vec<u8>, table: TableId, next: i64) {
    debug_assert!(next > 0, "the counter of table {table} gives {next} next");
    let start = out.len();
    out.put_u8(tag::ADVANCE);
    out.put_varint(table as u64);
    put_counter(out, next);
    debug_assert!(
        reads_back(out, start, |read| *read == Operation::Advance { table, next }),
        "the counter of table {table} does not read back"
    );
}

pub(crate) fn add_part(out: &mut Vec<u8>, place: Place, part: NewPart) {
    let start = out.len();
    out.put_u8(tag::ADD_PART);
    put_place(out, place);
    put_part(out, part);
    debug_assert!(
        reads_back(out, start, |read| *read == Operation::AddPart { place, part }),
        "an index part does not read back"
    );
}

pub(crate) fn set_tables(
    out: &mut Vec<u8>,
    place: Place,
    dropped: &[u64],
    added: Option<&NewTable>,
) {
    invariant!(!dropped.is_empty() || added.is_some(), "hash tables are replaced without a change");
    let start = out.len();
    out.put_u8(tag::SET_TABLES);
    put_place(out, place);
    put_numbers(out, dropped);
    out.put_u8(added.is_some() as u8);
    if let Some(added) = added {
        put_hash_table(out, added);
    }
    debug_assert!(
        reads_back(out, start, |read| matches!(read,
            Operation::SetTables { place: p, dropped: d, added: a }
                if *p == place && d == dropped && a.as_ref() == added)),
        "hash tables do not read back"
    );
}

/// Describes a file that another operation of the record names.
pub(crate) fn describe(out: &mut Vec<u8>, place: Place, description: &Description) {
    let start = out.len();
    out.put_u8(tag::DESCRIBE);
    put_place(out, place);
    put_description(out, description);
    debug_assert!(
        reads_back(out, start, |read| matches!(read,
            Operation::Describe { place: p, description: d } if *p == place && d == description)),
        "the description of file {} does not read back",
        description.number
    );
}

pub(crate) fn truncate(out: &mut Vec<u8>, table: TableId) {
    let start = out.len();
    out.put_u8(tag::TRUNCATE);
    out.put_varint(table as u64);
    debug_assert!(
        reads_back(out, start, |read| *read == Operation::Truncate { table }),
        "the truncation of table {table} does not read back"
    );
}

pub(crate) fn create_view(out: &mut Vec<u8>, view: &ViewSchema) {
    let start = out.len();
    out.put_u8(tag::CREATE_VIEW);
    put_view(out, view);
    debug_assert!(
        reads_back(
            out,
            start,
            |read| matches!(read, Operation::CreateView { view: v } if v == view)
        ),
        "the creation of view {} does not read back",
        view.name
    );
}

pub(crate) fn drop_view(out: &mut Vec<u8>, name: &str) {
    let start = out.len();
    out.put_u8(tag::DROP_VIEW);
    out.put_bytes(name.as_bytes());
    debug_assert!(
        reads_back(out, start, |read| matches!(read, Operation::DropView { name: n } if n == name)),
        "the drop of view {name} does not read back"
    );
}

pub(crate) fn merge(
    out: &mut Vec<u8>,
    place: Place,
    dropped: &[u64],
    added: &[NewSegment],
) -> Result<()> {
    invariant!(!dropped.is_empty() || !added.is_empty(), "a merge of no segment");
    invariant!(
        added.iter().all(|new| !dropped.contains(&new.id)),
        "a merge drops a segment that it adds"
    );
    let start = out.len();
    out.put_u8(tag::MERGE);
    put_place(out, place);
    out.put_varint(dropped.len() as u64);
    dropped.iter().for_each(|id| out.put_varint(*id));
    put_segments(out, added)?;
    debug_assert!(
        reads_back(out, start, |read| matches!(read,
            Operation::Merge { place: p, dropped: d, added: a }
                if *p == place && d == dropped && a == added)),
        "a merge does not read back"
    );
    Ok(())
}
