//! The encoding of table schemas and views.

use crate::record::fields::read_table;
use nacre_types::bytes::{Reader, Write};
use nacre_types::{
    Column, ColumnRule, Error, KeyColumns, Result, ShardKey, TableSchema, ViewSchema, key, limits,
    type_code,
};

pub(crate) fn put_schema(out: &mut Vec<u8>, schema: &TableSchema) -> Result<()> {
    if schema.next_column_id > limits::MAX_COLUMN_ID {
        return Err(Error::limit(format!(
            "table {} has had more than {} columns",
            schema.name,
            limits::MAX_COLUMN_ID
        ))
        .with_hint("copy it into a new table"));
    }
    let start = out.len();
    write_schema(out, schema)?;
    debug_assert!(
        read_schema(&mut Reader::new(&out[start..], "schema")).is_ok_and(|read| {
            // Default values are not compared: NaN does not equal itself.
            let columns = |schema: &TableSchema| -> Vec<_> {
                schema.columns.iter().map(|c| (c.id, c.data_type, c.nullable)).collect()
            };
            read.id == schema.id && read.name == schema.name && columns(&read) == columns(schema)
        }),
        "the schema of table {} does not read back",
        schema.name
    );
    Ok(())
}

fn write_schema(out: &mut Vec<u8>, schema: &TableSchema) -> Result<()> {
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
    debug_assert!(
        [&schema.primary_key, &schema.sort_key]
            .into_iter()
            .flatten()
            .all(|key| key.columns.iter().all(|at| *at < schema.columns.len())),
        "a key of table {} has a column that the table does not have",
        schema.name
    );
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

fn read_column_id(reader: &mut Reader<'_>) -> Result<u32> {
    Ok(reader.count(limits::MAX_COLUMN_ID as usize)? as u32)
}

/// Fails if two columns have one id.
fn check_ids(reader: &Reader<'_>, columns: &[Column]) -> Result<()> {
    let mut ids: Vec<u32> = columns.iter().map(|column| column.id).collect();
    ids.sort_unstable();
    match ids.is_sorted_by(|a, b| a < b) {
        true => Ok(()),
        false => Err(reader.corrupt("two columns with one id")),
    }
}

pub(crate) fn read_schema(reader: &mut Reader<'_>) -> Result<TableSchema> {
    let id = read_table(reader)?;
    let name = reader.text()?.to_string();
    let count = reader.count(limits::MAX_COLUMNS)?;
    let mut columns = Vec::with_capacity(count);
    for _ in 0..count {
        let id = read_column_id(reader)?;
        let name = reader.text()?.to_string();
        let data_type = type_code::get_in_record(reader)?;
        let nullable = reader.u8()? != 0;
        let default = key::decode(reader.bytes()?, &[data_type])?.pop();
        let default = default.ok_or_else(|| reader.corrupt("a column without a default"))?;
        let rule = ColumnRule::Constant;
        columns.push(Column { id, name, data_type, nullable, default, rule });
    }
    check_ids(reader, &columns)?;
    let primary_key = read_key(reader, columns.len())?;
    if primary_key.as_ref().is_some_and(|key| key.columns.is_empty()) {
        return Err(reader.corrupt("a primary key of no columns"));
    }
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
    let next_column_id = read_column_id(reader)?;
    let version = reader.u16()?;
    let keys = TableSchema { primary_key, sort_key, shard_key, ..TableSchema::default() };
    let schema = TableSchema { id, name, columns, next_column_id, version, ..keys };
    schema.check_shard_key().map_err(|e| reader.corrupt(e.message()))?;
    Ok(schema)
}

pub(crate) fn put_view(out: &mut Vec<u8>, view: &ViewSchema) {
    let start = out.len();
    out.put_bytes(view.name.as_bytes());
    out.put_varint(view.columns.len() as u64);
    view.columns.iter().for_each(|name| out.put_bytes(name.as_bytes()));
    out.put_bytes(view.statement.as_bytes());
    debug_assert!(
        read_view(&mut Reader::new(&out[start..], "view")).is_ok_and(|read| read == *view),
        "view {} does not read back",
        view.name
    );
}

pub(crate) fn read_view(reader: &mut Reader<'_>) -> Result<ViewSchema> {
    let name = reader.text()?.to_string();
    let count = reader.count(limits::MAX_COLUMNS)?;
    let columns = (0..count).map(|_| Ok(reader.text()?.to_string())).collect::<Result<_>>()?;
    Ok(ViewSchema { name, columns, statement: reader.text()?.to_string() })
}
