//! What the log holds: the redo records of table storage. This file and `snapshot.rs` are the only
//! places that define these bytes; `docs/FORMAT.md` describes them.
//!
//! A record is a commit timestamp and the operations of one commit, applied in order.

mod hashes;
mod indexes;

pub(crate) use hashes::{NewTable, put_table, read_table as read_hash_table};
pub(crate) use indexes::{Indexes, NewPart, put_indexes, put_part, read_indexes, read_part};
use nacre_types::bytes::{Reader, Write};
use nacre_types::{
    Column, Error, KeyColumns, Result, ShardKey, TableId, TableSchema, Timestamp, Value,
    ViewSchema, key, limits, type_code,
};
use roaring::RoaringBitmap;

/// A segment as named by a record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NewSegment {
    pub id: u64,
    pub deleted: RoaringBitmap,
}

/// A partition of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub table: TableId,
    pub partition: u32,
}

/// One redo operation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operation {
    /// The row of a key is now this, in the rowstore.
    Put { place: Place, key: Vec<u8>, row: Vec<u8> },
    /// The key has no row in the rowstore any more, and none in a segment.
    Delete { place: Place, key: Vec<u8> },
    /// Row `row` of a segment lives in the rowstore from now on.
    Move { place: Place, segment: u64, row: u32, key: Vec<u8>, data: Vec<u8> },
    /// Rowstore rows committed up to `upto`, but for the keys in `except`, are now in these segments.
    Flush { place: Place, upto: Timestamp, segments: Vec<NewSegment>, except: Vec<Vec<u8>> },
    /// A bulk load's segments.
    AddSegments { place: Place, segments: Vec<NewSegment> },
    /// Rows of a segment are deleted.
    DeleteRows { place: Place, segment: u64, rows: RoaringBitmap },
    /// Segments are replaced by others with the same rows.
    Merge { place: Place, dropped: Vec<u64>, added: Vec<NewSegment> },
    /// A new, empty table.
    CreateTable { schema: TableSchema },
    /// The table and all it holds is gone.
    DropTable { table: TableId },
    /// A new view, in the place of one of that name if there is one.
    CreateView { view: ViewSchema },
    /// The view is gone.
    DropView { name: String },
    /// A table has this schema from now on.
    AlterTable { schema: TableSchema },
    /// A table has no rows any more.
    Truncate { table: TableId },
    /// A table has these indexes from now on.
    SetIndexes { table: TableId, indexes: Indexes },
    /// The part of an index for one segment is in a file of its own.
    AddPart { place: Place, part: NewPart },
    /// Hash tables of an index are replaced by one, or go.
    SetTables { place: Place, dropped: Vec<u64>, added: Option<NewTable> },
}

/// Starts a record.
pub(crate) fn begin(commit: Timestamp) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    out.put_u64(commit);
    out
}

/// Overwrites the timestamp of a record that was prepared before it was known.
pub(crate) fn stamp(record: &mut [u8], commit: Timestamp) {
    if let Some(slot) = record.get_mut(..8) {
        slot.copy_from_slice(&commit.to_le_bytes());
    }
}

pub(crate) fn put(out: &mut Vec<u8>, place: Place, key: &[u8], row: &[u8]) {
    out.put_u8(1);
    put_place(out, place);
    out.put_bytes(key);
    out.put_bytes(row);
}

pub(crate) fn delete(out: &mut Vec<u8>, place: Place, key: &[u8]) {
    out.put_u8(2);
    put_place(out, place);
    out.put_bytes(key);
}

pub(crate) fn move_row(
    out: &mut Vec<u8>,
    place: Place,
    segment: u64,
    row: u32,
    key: &[u8],
    data: &[u8],
) {
    out.put_u8(3);
    put_place(out, place);
    out.put_varint(segment);
    out.put_varint(row as u64);
    out.put_bytes(key);
    out.put_bytes(data);
}

pub(crate) fn flush(
    out: &mut Vec<u8>,
    place: Place,
    upto: Timestamp,
    segments: &[NewSegment],
    except: &[Vec<u8>],
) -> Result<()> {
    out.put_u8(4);
    put_place(out, place);
    out.put_u64(upto);
    put_segments(out, segments)?;
    out.put_varint(except.len() as u64);
    except.iter().for_each(|key| out.put_bytes(key));
    Ok(())
}

pub(crate) fn add_segments(out: &mut Vec<u8>, place: Place, segments: &[NewSegment]) -> Result<()> {
    out.put_u8(5);
    put_place(out, place);
    put_segments(out, segments)
}

pub(crate) fn delete_rows(
    out: &mut Vec<u8>,
    place: Place,
    segment: u64,
    rows: &RoaringBitmap,
) -> Result<()> {
    out.put_u8(6);
    put_place(out, place);
    out.put_varint(segment);
    put_bitmap(out, rows)
}

pub(crate) fn create_table(out: &mut Vec<u8>, schema: &TableSchema) -> Result<()> {
    out.put_u8(7);
    put_schema(out, schema)?;
    set_indexes(out, schema);
    Ok(())
}

pub(crate) fn drop_table(out: &mut Vec<u8>, table: TableId) {
    out.put_u8(8);
    out.put_varint(table as u64);
}

pub(crate) fn alter_table(out: &mut Vec<u8>, schema: &TableSchema) -> Result<()> {
    out.put_u8(10);
    put_schema(out, schema)?;
    set_indexes(out, schema);
    Ok(())
}

/// Nothing for a table that never had an index.
fn set_indexes(out: &mut Vec<u8>, schema: &TableSchema) {
    if let Some(indexes) = Indexes::of(schema) {
        out.put_u8(12);
        out.put_varint(schema.id as u64);
        put_indexes(out, &indexes);
    }
}

pub(crate) fn add_part(out: &mut Vec<u8>, place: Place, part: NewPart) {
    out.put_u8(13);
    put_place(out, place);
    put_part(out, part);
}

pub(crate) fn set_tables(
    out: &mut Vec<u8>,
    place: Place,
    dropped: &[u64],
    added: Option<&NewTable>,
) {
    out.put_u8(14);
    put_place(out, place);
    hashes::put_numbers(out, dropped);
    out.put_u8(added.is_some() as u8);
    if let Some(added) = added {
        put_table(out, added);
    }
}

pub(crate) fn truncate(out: &mut Vec<u8>, table: TableId) {
    out.put_u8(11);
    out.put_varint(table as u64);
}

pub(crate) fn create_view(out: &mut Vec<u8>, view: &ViewSchema) {
    out.put_u8(20);
    put_view(out, view);
}

pub(crate) fn drop_view(out: &mut Vec<u8>, name: &str) {
    out.put_u8(21);
    out.put_bytes(name.as_bytes());
}

pub(crate) fn put_view(out: &mut Vec<u8>, view: &ViewSchema) {
    out.put_bytes(view.name.as_bytes());
    out.put_varint(view.columns.len() as u64);
    view.columns.iter().for_each(|name| out.put_bytes(name.as_bytes()));
    out.put_bytes(view.statement.as_bytes());
}

pub(crate) fn read_view(reader: &mut Reader<'_>) -> Result<ViewSchema> {
    let name = reader.text()?.to_string();
    let count = reader.count(limits::MAX_COLUMNS)?;
    let columns = (0..count).map(|_| Ok(reader.text()?.to_string())).collect::<Result<_>>()?;
    Ok(ViewSchema { name, columns, statement: reader.text()?.to_string() })
}

pub(crate) fn merge(
    out: &mut Vec<u8>,
    place: Place,
    dropped: &[u64],
    added: &[NewSegment],
) -> Result<()> {
    out.put_u8(9);
    put_place(out, place);
    out.put_varint(dropped.len() as u64);
    dropped.iter().for_each(|id| out.put_varint(*id));
    put_segments(out, added)
}

pub(crate) fn put_place(out: &mut Vec<u8>, place: Place) {
    out.put_varint(place.table as u64);
    out.put_varint(place.partition as u64);
}

fn put_segments(out: &mut Vec<u8>, segments: &[NewSegment]) -> Result<()> {
    out.put_varint(segments.len() as u64);
    for segment in segments {
        out.put_varint(segment.id);
        put_bitmap(out, &segment.deleted)?;
    }
    Ok(())
}

/// Length-prefixed, in Roaring's portable format.
pub(crate) fn put_bitmap(out: &mut Vec<u8>, bitmap: &RoaringBitmap) -> Result<()> {
    let mut bytes = Vec::with_capacity(bitmap.serialized_size());
    bitmap.serialize_into(&mut bytes).map_err(|e| Error::limit(format!("delete bitmap: {e}")))?;
    out.put_bytes(&bytes);
    Ok(())
}

pub(crate) fn read_bitmap(reader: &mut Reader<'_>) -> Result<RoaringBitmap> {
    let bytes = reader.bytes()?;
    RoaringBitmap::deserialize_from(bytes).map_err(|_| reader.corrupt("bad bitmap"))
}

pub(crate) fn put_schema(out: &mut Vec<u8>, schema: &TableSchema) -> Result<()> {
    out.put_varint(schema.id as u64);
    out.put_bytes(schema.name.as_bytes());
    out.put_varint(schema.columns.len() as u64);
    for column in &schema.columns {
        out.put_varint(column.id as u64);
        out.put_bytes(column.name.as_bytes());
        type_code::put_in_record(out, column.data_type);
        out.put_u8(column.nullable as u8);
        let mut default = Vec::new();
        key::append(&mut default, column.data_type, &column.default)?;
        out.put_bytes(&default);
    }
    put_key(out, schema.primary_key.as_ref());
    put_key(out, schema.sort_key.as_ref());
    out.put_varint(schema.shard_key.as_ref().map_or(0, |key| key.partitions as u64));
    if let Some(key) = &schema.shard_key {
        out.put_varint(key.columns.len() as u64);
        key.columns.iter().for_each(|c| out.put_varint(*c as u64));
    }
    out.put_varint(schema.next_column_id as u64);
    out.put_u16(schema.version);
    Ok(())
}

fn put_key(out: &mut Vec<u8>, key: Option<&KeyColumns>) {
    out.put_u8(key.is_some() as u8);
    if let Some(key) = key {
        out.put_bytes(key.name.as_bytes());
        out.put_varint(key.columns.len() as u64);
        key.columns.iter().for_each(|c| out.put_varint(*c as u64));
    }
}

fn read_key(reader: &mut Reader<'_>, columns: usize) -> Result<Option<KeyColumns>> {
    match reader.u8()? {
        0 => return Ok(None),
        1 => {}
        _ => return Err(reader.corrupt("bad key tag")),
    }
    let name = reader.text()?.to_string();
    let count = reader.count(columns)?;
    let columns =
        (0..count).map(|_| reader.count(columns.saturating_sub(1))).collect::<Result<Vec<_>>>()?;
    Ok(Some(KeyColumns { name, columns }))
}

pub(crate) fn read_schema(reader: &mut Reader<'_>) -> Result<TableSchema> {
    let id = read_table(reader)?;
    let name = reader.text()?.to_string();
    let count = reader.count(limits::MAX_COLUMNS)?;
    let mut columns = Vec::with_capacity(count);
    for _ in 0..count {
        let id = u32::try_from(reader.varint()?).map_err(|_| reader.corrupt("column id"))?;
        let name = reader.text()?.to_string();
        let data_type = type_code::get_in_record(reader)?;
        let nullable = reader.u8()? != 0;
        let default = key::decode(reader.bytes()?, &[data_type])?.pop().unwrap_or(Value::Null);
        columns.push(Column { id, name, data_type, nullable, default });
    }
    let primary_key = read_key(reader, columns.len())?;
    let sort_key = read_key(reader, columns.len())?;
    let shard_key = match reader.count(limits::MAX_PARTITIONS)? {
        0 => None,
        partitions => {
            let count = reader.count(columns.len())?;
            let highest = columns.len().saturating_sub(1);
            let columns = (0..count).map(|_| reader.count(highest)).collect::<Result<Vec<_>>>()?;
            Some(ShardKey { columns, partitions: partitions as u32 })
        }
    };
    let next_column_id =
        u32::try_from(reader.varint()?).map_err(|_| reader.corrupt("column id"))?;
    let version = reader.u16()?;
    let keys = TableSchema { primary_key, sort_key, shard_key, ..TableSchema::default() };
    let schema = TableSchema { id, name, columns, next_column_id, version, ..keys };
    schema.check_shard_key().map_err(|e| reader.corrupt(e.message()))?;
    Ok(schema)
}

pub(crate) fn read_table(reader: &mut Reader<'_>) -> Result<TableId> {
    TableId::try_from(reader.varint()?).map_err(|_| reader.corrupt("table id"))
}

pub(crate) fn read_place(reader: &mut Reader<'_>) -> Result<Place> {
    let table = read_table(reader)?;
    let partition = u32::try_from(reader.varint()?).map_err(|_| reader.corrupt("partition"))?;
    Ok(Place { table, partition })
}

fn read_segments(reader: &mut Reader<'_>) -> Result<Vec<NewSegment>> {
    let count = reader.count(reader.remaining())?;
    (0..count)
        .map(|_| Ok(NewSegment { id: reader.varint()?, deleted: read_bitmap(reader)? }))
        .collect()
}

/// Decodes a record into its timestamp and operations.
pub(crate) fn decode(payload: &[u8]) -> Result<(Timestamp, Vec<Operation>)> {
    let mut reader = Reader::new(payload, "log record");
    let reader = &mut reader;
    let commit = reader.u64()?;
    let mut operations = Vec::new();
    while reader.remaining() > 0 {
        operations.push(match reader.u8()? {
            1 => Operation::Put {
                place: read_place(reader)?,
                key: reader.bytes()?.to_vec(),
                row: reader.bytes()?.to_vec(),
            },
            2 => Operation::Delete { place: read_place(reader)?, key: reader.bytes()?.to_vec() },
            3 => Operation::Move {
                place: read_place(reader)?,
                segment: reader.varint()?,
                row: u32::try_from(reader.varint()?).map_err(|_| reader.corrupt("row number"))?,
                key: reader.bytes()?.to_vec(),
                data: reader.bytes()?.to_vec(),
            },
            4 => {
                let place = read_place(reader)?;
                let upto = reader.u64()?;
                let segments = read_segments(reader)?;
                let count = reader.count(reader.remaining())?;
                let except =
                    (0..count).map(|_| Ok(reader.bytes()?.to_vec())).collect::<Result<Vec<_>>>()?;
                Operation::Flush { place, upto, segments, except }
            }
            5 => Operation::AddSegments {
                place: read_place(reader)?,
                segments: read_segments(reader)?,
            },
            6 => Operation::DeleteRows {
                place: read_place(reader)?,
                segment: reader.varint()?,
                rows: read_bitmap(reader)?,
            },
            7 => Operation::CreateTable { schema: read_schema(reader)? },
            8 => Operation::DropTable { table: read_table(reader)? },
            9 => {
                let place = read_place(reader)?;
                let count = reader.count(reader.remaining())?;
                let dropped = (0..count).map(|_| reader.varint()).collect::<Result<Vec<_>>>()?;
                Operation::Merge { place, dropped, added: read_segments(reader)? }
            }
            20 => Operation::CreateView { view: read_view(reader)? },
            21 => Operation::DropView { name: reader.text()?.to_string() },
            10 => Operation::AlterTable { schema: read_schema(reader)? },
            11 => Operation::Truncate { table: read_table(reader)? },
            12 => {
                Operation::SetIndexes { table: read_table(reader)?, indexes: read_indexes(reader)? }
            }
            13 => Operation::AddPart { place: read_place(reader)?, part: read_part(reader)? },
            14 => {
                let place = read_place(reader)?;
                let dropped = hashes::read_numbers(reader)?;
                let added = match reader.u8()? {
                    0 => None,
                    1 => Some(read_hash_table(reader)?),
                    _ => return Err(reader.corrupt("bad tag of a hash table")),
                };
                Operation::SetTables { place, dropped, added }
            }
            _ => return Err(reader.corrupt("unknown operation")),
        });
    }
    Ok((commit, operations))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_types::DataType;
    use nacre_types::{IndexKind, IndexSchema};

    fn schema() -> TableSchema {
        let column = |id, name: &str, data_type, default| Column {
            id,
            name: name.into(),
            data_type,
            nullable: true,
            default,
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
        NewTable {
            keys: crate::index::hash::table::KeySet::Index(5),
            files: vec![7, 300],
            segments: vec![1, 3],
        }
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
        flush(
            &mut out,
            place,
            40,
            &[NewSegment { id: 1, deleted: deleted.clone() }],
            &[b"x".to_vec()],
        )
        .unwrap();
        add_segments(&mut out, place, &[NewSegment { id: 2, deleted: RoaringBitmap::new() }])
            .unwrap();
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
        out
    }

    #[test]
    fn records_round_trip() {
        let (commit, operations) = decode(&sample()).unwrap();
        assert_eq!(commit, 42);
        assert_eq!(operations.len(), 18);
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
        assert_eq!(operations[11], Operation::CreateView { view: view() });
        assert_eq!(operations[0], Operation::CreateTable { schema: schema() });
        assert!(matches!(
            &operations[3],
            Operation::Move { row: 9, segment: 3, place: Place { table: 7, partition: 2 }, .. }
        ));
        assert!(
            matches!(&operations[4], Operation::Flush { upto: 40, except, .. } if except.len() == 1)
        );
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
                // A cut between two operations is a shorter record; the log's checksum is what tells.
                assert!(at >= 8);
            }
        }
    }
}
