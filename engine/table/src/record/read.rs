//! Reads records.

use crate::record::description::read_description;
use crate::record::fields::{read_bitmap, read_place, read_segments, read_table};
use crate::record::hashes::{read_hash_table, read_numbers};
use crate::record::indexes::{read_indexes, read_part};
use crate::record::operation::{FlushedRange, NewSegment, Operation, tag};
use crate::record::rules::{read_counter, read_rules};
use crate::record::schema::{read_schema, read_view};
use nacre_types::bytes::Reader;
use nacre_types::{Result, Timestamp};

/// Decodes a record into its timestamp and operations.
pub(crate) fn decode(payload: &[u8]) -> Result<(Timestamp, Vec<Operation>)> {
    let mut reader = Reader::new(payload, "log record");
    let reader = &mut reader;
    let commit = reader.u64()?;
    let mut operations = Vec::new();
    while reader.remaining() > 0 {
        operations.push(read_operation(reader)?);
    }
    Ok((commit, operations))
}

/// Decodes the next operation of a record.
pub(super) fn read_operation(reader: &mut Reader<'_>) -> Result<Operation> {
    Ok(match reader.u8()? {
        tag::PUT => Operation::Put {
            place: read_place(reader)?,
            key: reader.bytes()?.to_vec(),
            row: reader.bytes()?.to_vec(),
        },
        tag::DELETE => {
            Operation::Delete { place: read_place(reader)?, key: reader.bytes()?.to_vec() }
        }
        tag::MOVE => Operation::Move {
            place: read_place(reader)?,
            segment: reader.varint()?,
            row: u32::try_from(reader.varint()?).map_err(|_| reader.corrupt("row number"))?,
            key: reader.bytes()?.to_vec(),
            data: reader.bytes()?.to_vec(),
        },
        tag::FLUSH => {
            let place = read_place(reader)?;
            let upto = reader.u64()?;
            let segments = read_segments(reader)?;
            Operation::Flush { place, upto, segments, except: read_keys(reader)? }
        }
        tag::FLUSH_RANGE => {
            let place = read_place(reader)?;
            let upto = reader.u64()?;
            let after = Some(reader.bytes()?.to_vec()).filter(|key| !key.is_empty());
            let to = reader.bytes()?.to_vec();
            if after.as_ref().is_some_and(|after| *after >= to) || to.is_empty() {
                return Err(reader.corrupt("range without keys"));
            }
            let segment = NewSegment { id: reader.varint()?, deleted: read_bitmap(reader)? };
            let range = FlushedRange { after, to, upto, except: read_keys(reader)? };
            Operation::FlushRange { place, range, segment }
        }
        tag::ADD_SEGMENTS => {
            Operation::AddSegments { place: read_place(reader)?, segments: read_segments(reader)? }
        }
        tag::DELETE_ROWS => Operation::DeleteRows {
            place: read_place(reader)?,
            segment: reader.varint()?,
            rows: read_bitmap(reader)?,
        },
        tag::CREATE_TABLE => Operation::CreateTable { schema: read_schema(reader)? },
        tag::DROP_TABLE => Operation::DropTable { table: read_table(reader)? },
        tag::MERGE => {
            let place = read_place(reader)?;
            let count = reader.count(reader.remaining())?;
            let dropped = (0..count).map(|_| reader.varint()).collect::<Result<Vec<_>>>()?;
            Operation::Merge { place, dropped, added: read_segments(reader)? }
        }
        tag::CREATE_VIEW => Operation::CreateView { view: read_view(reader)? },
        tag::DROP_VIEW => Operation::DropView { name: reader.text()?.to_string() },
        tag::ALTER_TABLE => Operation::AlterTable { schema: read_schema(reader)? },
        tag::TRUNCATE => Operation::Truncate { table: read_table(reader)? },
        tag::SET_INDEXES => {
            Operation::SetIndexes { table: read_table(reader)?, indexes: read_indexes(reader)? }
        }
        tag::SET_RULES => {
            Operation::SetRules { table: read_table(reader)?, rules: read_rules(reader)? }
        }
        tag::ADVANCE => {
            Operation::Advance { table: read_table(reader)?, next: read_counter(reader)? }
        }
        tag::ADD_PART => {
            Operation::AddPart { place: read_place(reader)?, part: read_part(reader)? }
        }
        tag::SET_TABLES => {
            let place = read_place(reader)?;
            let dropped = read_numbers(reader)?;
            let added = match reader.u8()? {
                0 => None,
                tag::PUT => Some(read_hash_table(reader)?),
                _ => return Err(reader.corrupt("bad tag of a hash table")),
            };
            Operation::SetTables { place, dropped, added }
        }
        tag::DESCRIBE => Operation::Describe {
            place: read_place(reader)?,
            description: read_description(reader)?,
        },
        _ => return Err(reader.corrupt("unknown operation")),
    })
}

/// Reads a count and as many keys.
fn read_keys(reader: &mut Reader<'_>) -> Result<Vec<Vec<u8>>> {
    let count = reader.count(reader.remaining())?;
    (0..count).map(|_| Ok(reader.bytes()?.to_vec())).collect()
}
