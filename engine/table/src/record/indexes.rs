//! The encoding of a table's indexes and index parts.

use nacre_types::bytes::{Reader, Write};
use nacre_types::{
    Column, ColumnRule, Error, IndexId, IndexKind, IndexSchema, Result, TableSchema, invariant,
    limits, type_code,
};

/// The bit of an index's kind that marks it unique.
const UNIQUE: u8 = 1;
/// The bit of an index's kind that marks it as one with computed columns, which follow it.
const COMPUTED: u8 = 128;
/// The bit of a computed column whose expression may fail.
const MAY_FAIL: u8 = 1;

/// The indexes of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Indexes {
    pub next_id: IndexId,
    pub list: Vec<IndexSchema>,
    /// The computed columns of the indexes, in the order of their first use.
    pub computed: Vec<Column>,
}

impl Indexes {
    pub fn of(schema: &TableSchema) -> Option<Indexes> {
        let has_had = !schema.indexes.is_empty() || schema.next_index_id > 0;
        let mut computed: Vec<Column> = Vec::new();
        for id in schema.indexes.iter().flat_map(|index| &index.columns) {
            if computed.iter().all(|known| known.id != *id) {
                computed.extend(schema.computed.iter().find(|column| column.id == *id).cloned());
            }
        }
        debug_assert!(
            computed.len() == schema.computed.len(),
            "a computed column of table {} is in no index",
            schema.name
        );
        let (next_id, list) = (schema.next_index_id, schema.indexes.clone());
        has_had.then_some(Indexes { next_id, list, computed })
    }

    /// Returns the schema with these indexes.
    pub fn put_into(self, schema: TableSchema) -> Result<TableSchema> {
        let Indexes { next_id: next_index_id, list: indexes, computed } = self;
        if computed.iter().any(|column| schema.column_position(column.id).is_some()) {
            let name = &schema.name;
            return Err(Error::corrupt(format!("table {name}: a column is computed and stored")));
        }
        let schema = TableSchema { indexes, next_index_id, computed, ..schema };
        match schema.check_indexes() {
            Ok(()) => Ok(schema),
            Err(error) => {
                Err(Error::corrupt(format!("table {}: {}", schema.name, error.message())))
            }
        }
    }
}

/// A separate index part of one segment, as a record names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewPart {
    pub segment: u64,
    pub index: IndexId,
    /// Number of the file.
    pub file: u64,
}

pub(crate) fn put_part(out: &mut Vec<u8>, part: NewPart) {
    debug_assert!(part.file != part.segment, "a part in its segment's file is logged");
    let start = out.len();
    out.put_varint(part.segment);
    out.put_varint(part.index as u64);
    out.put_varint(part.file);
    debug_assert!(
        read_part(&mut Reader::new(&out[start..], "part")).is_ok_and(|read| read == part),
        "the index part in file {} does not read back",
        part.file
    );
}

pub(crate) fn read_part(reader: &mut Reader<'_>) -> Result<NewPart> {
    Ok(NewPart {
        segment: reader.varint()?,
        index: read_u32(reader, "index id")?,
        file: reader.varint()?,
    })
}

pub(crate) fn put_indexes(out: &mut Vec<u8>, indexes: &Indexes) {
    let start = out.len();
    invariant!(
        indexes.next_id <= limits::MAX_INDEX_ID,
        "the next index has id {}",
        indexes.next_id
    );
    out.put_varint(indexes.next_id as u64);
    out.put_varint(indexes.list.len() as u64);
    for index in &indexes.list {
        out.put_varint(index.id as u64);
        out.put_bytes(index.name.as_bytes());
        let traits = index.kind.traits();
        invariant!(
            traits.code & UNIQUE == 0 && (traits.keyword.is_some() || !index.unique),
            "index {} of kind {:?} cannot be stored",
            index.name,
            index.kind
        );
        let own = || indexes.computed.iter().filter(|column| index.columns.contains(&column.id));
        let is_computed = own().next().is_some();
        let flags = if index.unique { UNIQUE } else { 0 } | if is_computed { COMPUTED } else { 0 };
        out.put_u8(traits.code | flags);
        out.put_varint(index.columns.len() as u64);
        index.columns.iter().for_each(|id| out.put_varint(*id as u64));
        if is_computed {
            out.put_varint(own().count() as u64);
            own().for_each(|column| put_computed(out, column));
        }
    }
    debug_assert!(
        read_indexes(&mut Reader::new(&out[start..], "indexes")).is_ok_and(|read| read == *indexes),
        "the indexes of a table do not read back"
    );
}

pub(crate) fn read_indexes(reader: &mut Reader<'_>) -> Result<Indexes> {
    let next_id = read_u32(reader, "index id")?;
    if next_id > limits::MAX_INDEX_ID {
        return Err(reader.corrupt("the next index id is too large"));
    }
    let count = reader.count(limits::MAX_INDEXES)?;
    let (mut list, mut computed) = (Vec::with_capacity(count), Vec::<Column>::new());
    for _ in 0..count {
        let id = read_u32(reader, "index id")?;
        let name = reader.text()?.to_string();
        let flags = reader.u8()?;
        let unique = flags & UNIQUE != 0;
        let kind = IndexKind::of_code(flags & !(UNIQUE | COMPUTED))
            .filter(|kind| kind.traits().keyword.is_some() || !unique)
            .ok_or_else(|| reader.corrupt("unknown kind of index"))?;
        let columns = reader.count(limits::MAX_INDEX_COLUMNS)?;
        let columns: Vec<u32> =
            (0..columns).map(|_| read_u32(reader, "column id")).collect::<Result<_>>()?;
        let own = if flags & COMPUTED != 0 { reader.count(columns.len())? } else { 0 };
        for _ in 0..own {
            let column = read_computed(reader)?;
            match computed.iter().find(|known| known.id == column.id) {
                None => computed.push(column),
                Some(known) if *known == column => {}
                Some(_) => return Err(reader.corrupt("two computed columns with one id")),
            }
        }
        list.push(IndexSchema { id, name, columns, unique, kind });
    }
    Ok(Indexes { next_id, list, computed })
}

fn put_computed(out: &mut Vec<u8>, column: &Column) {
    debug_assert!(
        matches!(column.rule, ColumnRule::Computed { .. }),
        "column {} is stored as a computed one",
        column.name
    );
    out.put_varint(column.id as u64);
    type_code::put_in_record(out, column.data_type);
    out.put_u8(if column.may_fail() { MAY_FAIL } else { 0 });
    out.put_bytes(column.name.as_bytes());
}

fn read_computed(reader: &mut Reader<'_>) -> Result<Column> {
    let id = reader.count(limits::MAX_COLUMN_ID as usize)? as u32;
    let data_type = type_code::get_in_record(reader)?;
    let may_fail = match reader.u8()? {
        0 => false,
        MAY_FAIL => true,
        _ => return Err(reader.corrupt("unknown kind of computed column")),
    };
    Ok(Column::computed(id, data_type, reader.text()?, may_fail))
}

fn read_u32(reader: &mut Reader<'_>, what: &str) -> Result<u32> {
    u32::try_from(reader.varint()?).map_err(|_| reader.corrupt(what))
}
