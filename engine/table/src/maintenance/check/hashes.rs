//! Checks hash tables: their files, and their entries against the keys of the segments they cover.

use crate::index::hash::reader::{KeyPlace, SegmentKeys, TableReader};
use crate::index::hash::table::{HashTable, POSITION_BITS, unpack};
use crate::maintenance::check::findings::Findings;
use crate::record::KeySet;
use crate::table::segment_list::SegmentList;
use crate::table::version::Table;
use nacre_types::Result;
use std::sync::Arc;

/// How far a hash table was checked.
pub(super) struct CheckedHashes {
    hashes: Arc<HashTable>,
    /// What it is called in findings.
    place: String,
    /// Number of files verified.
    verified: usize,
    reader: TableReader,
    /// By segment.
    entries: Vec<Vec<u64>>,
    /// The position of the segment whose keys are compared next.
    segment: usize,
    /// Those of its keys that were read.
    keys: Option<SegmentKeys>,
}

impl CheckedHashes {
    /// Nothing checked.
    pub fn new(table: &Table, hashes: &Arc<HashTable>) -> CheckedHashes {
        let name = match hashes.keys() {
            KeySet::Primary => "primary key".to_string(),
            KeySet::Index(id) => {
                table.index(id).map_or_else(|_| id.to_string(), |index| index.name().to_string())
            }
        };
        let (table, id) = (&table.schema().name, hashes.id());
        let segments = hashes.segments().len();
        CheckedHashes {
            hashes: hashes.clone(),
            place: format!("table {table}: hash table {id:016x} of {name}"),
            verified: 0,
            reader: TableReader::new(hashes.clone(), (0..segments).map(Some).collect()),
            entries: vec![Vec::new(); segments],
            segment: 0,
            keys: None,
        }
    }

    /// Verifies the next file, or compares the entries with the keys of the next segment; returns
    /// whether there is more. `list` is that of its partition. Fails if it met absent bytes.
    pub fn step(
        &mut self,
        table: &Table,
        list: &SegmentList,
        findings: &mut Findings,
    ) -> Result<bool> {
        // The files of one that was replaced may be gone by now.
        if !list.tables().iter().any(|listed| Arc::ptr_eq(listed, &self.hashes)) {
            return Ok(false);
        }
        if let Some(file) = self.hashes.files().get(self.verified) {
            let is_damaged = findings.verify(&self.place, file)?;
            self.verified += 1;
            return Ok(!is_damaged);
        }
        if self.segment == self.hashes.segments().len() {
            return Ok(false);
        }
        match self.compare(table, list) {
            Ok(None) => {}
            Ok(Some(finding)) => findings.add(format!("{}: {finding}", self.place)),
            Err(error) => return findings.check(&self.place, Err(error)).map(|()| false),
        }
        (self.segment, self.keys) = (self.segment + 1, None);
        debug_assert!(
            self.segment <= self.entries.len(),
            "{}: more segments than it covers are compared",
            self.place
        );
        Ok(true)
    }

    /// Checks that a segment, if it remains, has exactly its entries, and that all entries are in
    /// order. What was read before a miss is not read again.
    fn compare(&mut self, table: &Table, list: &SegmentList) -> Result<Option<String>> {
        self.read_entries()?;
        let id = self.hashes.segments()[self.segment];
        let Some(state) = list.iter().find(|state| state.id() == id && state.is_current()) else {
            return Ok(None);
        };
        let keys = match &mut self.keys {
            Some(keys) => keys,
            none => match KeyPlace::find(table.layout(), self.hashes.keys(), state)? {
                Some(place) => none.insert(SegmentKeys::new(place)),
                None => return Ok(Some(format!("segment {id} has no index part"))),
            },
        };
        while !keys.is_read() {
            keys.read_block()?;
        }
        let (mut hashes, mut positions) = (Vec::new(), Vec::new());
        while keys.take(&mut hashes, &mut positions) {}
        let expected = hashes.iter().zip(&positions);
        let expected = expected.map(|(hash, at)| (*hash as u64) << POSITION_BITS | *at as u64);
        let mut found = std::mem::take(&mut self.entries[self.segment]);
        found.sort_unstable();
        let is_same = found.into_iter().eq(expected);
        Ok((!is_same).then(|| format!("its entries do not match the keys of segment {id}")))
    }

    fn read_entries(&mut self) -> Result<()> {
        loop {
            while self.reader.is_empty() {
                self.reader.read_block()?;
            }
            let Some((hash, entry)) = self.reader.peek() else { return Ok(()) };
            let (segment, position) = unpack(entry);
            self.entries[segment].push((hash as u64) << POSITION_BITS | u64::from(position));
            self.reader.advance();
        }
    }
}
