//! The encoding of index hash tables in the log.

use nacre_types::bytes::{Reader, Write};
use nacre_types::{IndexId, Result, invariant};

/// The keys that a hash table covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum KeySet {
    /// Primary keys, or hidden row numbers. Positions are row numbers.
    Primary,
    /// Keys of an index. Positions are those of its parts.
    Index(IndexId),
}

/// A hash table as a record names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewTable {
    pub keys: KeySet,
    /// Numbers of its files; the first is its own. At least one.
    pub files: Vec<u64>,
    /// The segments it covers.
    pub segments: Vec<u64>,
}

pub(crate) fn put_hash_table(out: &mut Vec<u8>, table: &NewTable) {
    let start = out.len();
    out.put_varint(match table.keys {
        KeySet::Primary => 0,
        KeySet::Index(id) => u64::from(id) + 1,
    });
    invariant!(!table.files.is_empty(), "a hash table without files is logged");
    put_numbers(out, &table.files);
    put_numbers(out, &table.segments);
    debug_assert!(
        read_hash_table(&mut Reader::new(&out[start..], "table")).is_ok_and(|read| read == *table),
        "a hash table does not read back"
    );
}

pub(crate) fn read_hash_table(reader: &mut Reader<'_>) -> Result<NewTable> {
    let keys = match reader.varint()? {
        0 => KeySet::Primary,
        n => KeySet::Index(u32::try_from(n - 1).map_err(|_| reader.corrupt("index id"))?),
    };
    let (files, segments) = (read_numbers(reader)?, read_numbers(reader)?);
    if files.is_empty() {
        return Err(reader.corrupt("a hash table without files"));
    }
    Ok(NewTable { keys, files, segments })
}

pub(crate) fn put_numbers(out: &mut Vec<u8>, numbers: &[u64]) {
    let start = out.len();
    out.put_varint(numbers.len() as u64);
    numbers.iter().for_each(|number| out.put_varint(*number));
    debug_assert!(
        read_numbers(&mut Reader::new(&out[start..], "numbers")).is_ok_and(|read| read == numbers),
        "{} numbers do not read back",
        numbers.len()
    );
}

pub(crate) fn read_numbers(reader: &mut Reader<'_>) -> Result<Vec<u64>> {
    let count = reader.count(reader.remaining())?;
    (0..count).map(|_| reader.varint()).collect()
}
