//! The encoding of a table's indexes and index parts.

use nacre_types::bytes::{Reader, Write};
use nacre_types::{Error, IndexId, IndexKind, IndexSchema, Result, TableSchema, invariant, limits};

/// The bit of an index's kind that marks it unique.
const UNIQUE: u8 = 1;

/// The indexes of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Indexes {
    pub next_id: IndexId,
    pub list: Vec<IndexSchema>,
}

impl Indexes {
    pub fn of(schema: &TableSchema) -> Option<Indexes> {
        let has_had = !schema.indexes.is_empty() || schema.next_index_id > 0;
        has_had.then(|| Indexes { next_id: schema.next_index_id, list: schema.indexes.clone() })
    }

    /// Returns the schema with these indexes.
    pub fn put_into(self, schema: TableSchema) -> Result<TableSchema> {
        let schema = TableSchema { indexes: self.list, next_index_id: self.next_id, ..schema };
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
        out.put_u8(traits.code | if index.unique { UNIQUE } else { 0 });
        out.put_varint(index.columns.len() as u64);
        index.columns.iter().for_each(|id| out.put_varint(*id as u64));
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
    let mut list = Vec::with_capacity(count);
    for _ in 0..count {
        let id = read_u32(reader, "index id")?;
        let name = reader.text()?.to_string();
        let flags = reader.u8()?;
        let unique = flags & UNIQUE != 0;
        let kind = IndexKind::of_code(flags & !UNIQUE)
            .filter(|kind| kind.traits().keyword.is_some() || !unique)
            .ok_or_else(|| reader.corrupt("unknown kind of index"))?;
        let columns = reader.count(limits::MAX_INDEX_COLUMNS)?;
        let columns = (0..columns).map(|_| read_u32(reader, "column id")).collect::<Result<_>>()?;
        list.push(IndexSchema { id, name, columns, unique, kind });
    }
    Ok(Indexes { next_id, list })
}

fn read_u32(reader: &mut Reader<'_>, what: &str) -> Result<u32> {
    u32::try_from(reader.varint()?).map_err(|_| reader.corrupt(what))
}
