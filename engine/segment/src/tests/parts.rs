//! Rows read by parts of blocks: their values, what is read for them, damage, and when a block is
//! loaded instead.

use super::*;
use nacre_format::outline::WHOLE_BYTES;
use nacre_types::Error;
use std::sync::Mutex;

/// Offset and length of a range.
type Place = (u64, usize);

/// A file that records the ranges that are read.
struct Recorded {
    file: Arc<dyn LocalFile>,
    read: Mutex<Vec<Vec<Place>>>,
}

impl Recorded {
    fn new(file: Arc<dyn LocalFile>) -> Arc<Recorded> {
        Arc::new(Recorded { file, read: Mutex::default() })
    }

    /// The calls since the last time, each with its ranges.
    fn calls(&self) -> Vec<Vec<Place>> {
        std::mem::take(&mut self.read.lock().unwrap())
    }
}

impl LocalFile for Recorded {
    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn read(&self, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        let places = ranges.iter().map(|range| (range.offset, range.buffer.len())).collect();
        self.read.lock().unwrap().push(places);
        self.file.read(ranges)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file.write(offset, bytes)
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.file.truncate(len)
    }

    fn sync(&self) -> Result<()> {
        self.file.sync()
    }
}

/// A row, by all columns.
fn values(segment: &Segment, row: usize) -> Result<Vec<Value>> {
    let ids = segment.column_ids().to_vec();
    let mut out = Vec::new();
    segment.values(row, ids.len(), &|at| ids[at], &|_| Value::Null, &mut out)?;
    Ok(out)
}

const ROWS: usize = BLOCK_ROWS * 3 + 777;

fn rows() -> Vec<Vec<Value>> {
    (0..ROWS).map(all_row).collect()
}

/// A segment whose cache holds `limit` bytes.
fn open_with(file: Arc<dyn LocalFile>, limit: usize) -> (Segment, Arc<BlockCache>) {
    let cache = BlockCache::new(limit);
    (Segment::open(file, "7.seg", 7, cache.clone()).unwrap(), cache)
}

#[test]
fn every_row_is_read_by_parts() {
    let rows = rows();
    let file = Recorded::new(write(&all_specs(), &rows, 1000));
    for limit in [0, 100_000] {
        let (segment, cache) = open_with(file.clone(), limit);
        for row in (0..rows.len()).step_by(37).chain([rows.len() - 1]) {
            assert_eq!(values(&segment, row).unwrap(), rows[row], "row {row}");
            assert!(cache.memory_bytes() <= limit);
        }
        assert!(values(&segment, rows.len()).is_err());
    }
}

#[test]
fn a_row_takes_a_small_part_of_its_blocks() {
    let rows = rows();
    let file = Recorded::new(write(&all_specs(), &rows, 1000));
    let (segment, cache) = open_with(file.clone(), 180_000);
    // Fills the cache with dictionaries, outlines and, last, some blocks.
    (0..4).for_each(|_| drop(values(&segment, 9).unwrap()));
    segment.decode(10, 0, BLOCK_ROWS).unwrap();
    file.calls();
    let before = cache.read_bytes();
    let row = BLOCK_ROWS * 2 + 100;
    assert_eq!(values(&segment, row).unwrap(), rows[row]);
    let calls = file.calls();
    let read: usize = calls.iter().flatten().map(|(_, length)| length).sum();
    let opened = segment.opened().unwrap();
    let whole: usize = (0..rows[0].len()).map(|c| opened.block_address(c, 2).length).sum();
    assert_eq!(cache.read_bytes() - before, read as u64);
    assert!(read * 4 < whole, "{read} of {whole} bytes were read: {calls:?}");
    assert!(calls.iter().flatten().all(|(_, length)| *length <= WHOLE_BYTES), "{calls:?}");
    assert!(cache.memory_bytes() <= 180_000);
    // Rounds of parts, after the read of dictionaries and outlines.
    assert!(
        calls.iter().filter(|call| call.iter().all(|place| place.1 <= WHOLE_BYTES)).count() <= 4
    );
}

#[test]
fn a_block_that_is_read_often_is_loaded() {
    let rows = rows();
    let file = Recorded::new(write(&all_specs(), &rows, 1000));
    let (segment, _) = open_with(file.clone(), 4 << 20);
    // There is room: blocks are loaded at once.
    values(&segment, 5).unwrap();
    file.calls();
    assert_eq!(values(&segment, 6).unwrap(), rows[6]);
    assert_eq!(file.calls().len(), 0);
    let (segment, cache) = open_with(file.clone(), 650_000);
    (0..2 * BLOCK_ROWS).step_by(64).for_each(|row| drop(values(&segment, row).unwrap()));
    let row = BLOCK_ROWS * 2;
    file.calls();
    let reads: Vec<usize> = (0..40)
        .map(|at| {
            assert_eq!(values(&segment, row + at).unwrap(), rows[row + at]);
            file.calls().iter().flatten().map(|(_, length)| length).sum()
        })
        .collect();
    assert!(cache.memory_bytes() <= 650_000);
    assert!(reads[..4].iter().all(|bytes| (1..60_000).contains(bytes)), "{reads:?}");
    assert!(reads[7..12].iter().any(|bytes| *bytes > 100_000), "{reads:?}");
    assert!(reads[20..].iter().all(|bytes| *bytes == 0), "{reads:?}");
}

#[test]
fn every_byte_that_is_read_by_parts_is_verified() {
    let rows = rows();
    let recorded = Recorded::new(write(&all_specs(), &rows, 1000));
    let row = BLOCK_ROWS + 2_345;
    let (segment, _) = open_with(recorded.clone(), 0);
    recorded.calls();
    assert_eq!(values(&segment, row).unwrap(), rows[row]);
    let places: Vec<Place> = recorded.calls().into_iter().flatten().collect();
    let mut bytes = vec![0; recorded.len().unwrap() as usize];
    recorded.read(&mut [ReadRange { offset: 0, buffer: &mut bytes }]).unwrap();
    let mut found = 0;
    for (offset, length) in places {
        for at in (offset..offset + length as u64).step_by(61).chain([offset + length as u64 - 1]) {
            recorded.write(at, &[bytes[at as usize] ^ 0x10]).unwrap();
            let error: Error = values(&segment, row).expect_err("damage is found");
            assert_eq!(error.kind(), ErrorKind::Corrupt, "byte {at}: {error}");
            assert!(error.message().contains("segment 7.seg, column"), "{error}");
            recorded.write(at, &[bytes[at as usize]]).unwrap();
            found += 1;
        }
    }
    assert!(found > 300, "{found}");
    assert_eq!(values(&segment, row).unwrap(), rows[row]);
}

#[test]
fn a_check_reads_outlines() {
    let file = write(&all_specs(), &rows(), 1000);
    let segment = open(file.clone()).unwrap();
    let opened = segment.opened().unwrap();
    let places: Vec<_> = (0..17).filter_map(|column| opened.outline_address(column)).collect();
    assert!(places.len() >= 8, "{} columns have outlines", places.len());
    let bytes: usize = places.iter().map(|place| place.length).sum();
    assert!(bytes as u64 * 100 < segment.bytes(), "{bytes} of {}", segment.bytes());
    for place in places {
        let mut byte = [0];
        file.read(&mut [ReadRange { offset: place.offset + 30, buffer: &mut byte }]).unwrap();
        file.write(place.offset + 30, &[byte[0] ^ 4]).unwrap();
        let errors = segment.verify();
        assert_eq!(errors.len(), 1, "{errors:?}");
        let expected = format!("outline at byte {}: checksum does not match", place.offset);
        assert!(errors[0].message().ends_with(&expected), "{}", errors[0]);
        file.write(place.offset + 30, &byte).unwrap();
    }
}
