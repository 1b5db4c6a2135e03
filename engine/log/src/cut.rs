//! Finds where a log can be cut: the end of the last record at a position or before it.

use crate::format::{FILE_HEADER_BYTES, FileHeader, FileKind, RECORD_HEADER_BYTES, RecordHeader};
use crate::position::Lsn;
use crate::reader::WindowReader;
use nacre_host::{LocalFile, LocalStore};
use nacre_types::{Error, Result, invariant};

/// The end of the last record of a chunk that ends at a position or before it; the chunk's start if none does.
///
/// # Errors
/// `corrupt` if the file is not the chunk that starts there, or ends earlier than the records do; those of the
/// host's files.
pub fn end_of_records(file: &dyn LocalFile, start: Lsn, at_most: Lsn) -> Result<Lsn> {
    invariant!(start <= at_most, "a log is cut at {at_most}, before the chunk at {start}");
    let name = FileKind::Chunk.name(start);
    let mut reader = WindowReader::new(file)?;
    let head = reader.bytes(0, FILE_HEADER_BYTES)?;
    let head = head.ok_or_else(|| Error::corrupt(format!("{name} ends in its header")))?;
    let id = FileHeader::decode(FileKind::Chunk, head, &name)?.database_id;
    let mut end = start;
    loop {
        let offset = FILE_HEADER_BYTES as u64 + (end - start);
        let head = reader.bytes(offset, RECORD_HEADER_BYTES)?.and_then(<[u8]>::first_chunk);
        let Some(header) = head.and_then(|head| RecordHeader::decode(head, end, id)) else {
            return Ok(end);
        };
        let next = end + RECORD_HEADER_BYTES as u64 + u64::from(header.length);
        if next > at_most {
            return Ok(end);
        }
        debug_assert!(end < next, "a record at {end} of no bytes");
        end = next;
    }
}

/// Whether a log has a record after a position, among the chunks in a store. A store without the chunk that has the
/// position has.
///
/// # Errors
/// `corrupt` if the chunk that has the position is not one; those of the host's files.
pub fn goes_on_after(store: &dyn LocalStore, position: Lsn) -> Result<bool> {
    let names = store.list()?;
    let starts = names.iter().filter_map(|name| FileKind::Chunk.parse(name));
    let Some(start) = starts.filter(|start| *start <= position).max() else { return Ok(true) };
    let name = FileKind::Chunk.name(start);
    let file = store.open(&name)?;
    let mut reader = WindowReader::new(&*file)?;
    let Some(head) = reader.bytes(0, FILE_HEADER_BYTES)? else { return Ok(false) };
    let id = FileHeader::decode(FileKind::Chunk, head, &name)?.database_id;
    let offset = FILE_HEADER_BYTES as u64 + (position - start);
    let head = reader.bytes(offset, RECORD_HEADER_BYTES)?.and_then(<[u8]>::first_chunk);
    Ok(head.is_some_and(|head| RecordHeader::decode(head, position, id).is_some()))
}

#[cfg(test)]
#[cfg(not(feature = "loom"))]
mod tests {
    use super::*;
    use crate::{Log, LogOptions};
    use nacre_host::memory::MemoryStore;
    use std::sync::Arc;

    #[test]
    fn a_log_is_cut_between_two_records() {
        let store = Arc::new(MemoryStore::new());
        let options = LogOptions { database_id: 7, ..LogOptions::default() };
        let log = Log::open(store.clone(), options, &mut |_| Ok(()), &mut |_, _| Ok(())).unwrap();
        let mut ends = vec![0];
        for size in [1, 500, 0, 70_000, 3] {
            ends.push(log.append(&vec![9; size]).unwrap());
        }
        log.sync(log.position()).unwrap();
        let file = store.open(&crate::chunk_name(0)).unwrap();
        for at in (0..=log.position()).step_by(97).chain(ends.clone()) {
            let end = end_of_records(&*file, 0, at).unwrap();
            assert_eq!(Some(&end), ends.iter().rfind(|end| **end <= at), "cut at {at}");
            let is_inner = ends.contains(&at) && at < log.position();
            assert_eq!(goes_on_after(&*store, at).unwrap(), is_inner, "after {at}");
        }
    }
}
