//! Damaged and foreign bytes: every flip and every cut is detected, and the error names the place.

use super::*;

/// Reads the whole segment, as text for comparison.
fn read_all(file: Arc<dyn LocalFile>) -> Result<Vec<String>> {
    let segment = open(file)?;
    let mut all = Vec::new();
    for (column, meta) in segment.columns().unwrap().iter().enumerate() {
        all.push(format!("{meta:?}"));
        for block in 0..segment.blocks() {
            let rows = segment.block_rows(block);
            all.push(format!("{:?}", segment.zone(column, block).unwrap()));
            let vector = segment.decode(column, block * BLOCK_ROWS, rows)?;
            all.extend((0..rows).map(|row| format!("{:?}", vector.value(row))));
        }
    }
    Ok(all)
}

fn bytes_of(file: &dyn LocalFile) -> Vec<u8> {
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read(&mut [ReadRange { offset: 0, buffer: &mut bytes }]).unwrap();
    bytes
}

fn file_of(bytes: &[u8]) -> Arc<dyn LocalFile> {
    let file = MemoryStore::new().create("s").unwrap();
    file.write(0, bytes).unwrap();
    file
}

/// Segments to damage: every type, and shredded documents.
fn files() -> [Arc<dyn LocalFile>; 2] {
    let rows: Vec<Vec<Value>> = (0..40).map(all_row).collect();
    let documents = write(&documents::specs(), &documents::rows(60), 1000);
    let metas = open(documents.clone()).unwrap();
    assert_eq!(metas.columns().unwrap()[1].encoding, "shredded");
    [write(&all_specs(), &rows, 1000), documents]
}

#[test]
fn every_flipped_byte_is_found_or_harmless() {
    files().into_iter().for_each(flip_every_byte);
}

fn flip_every_byte(file: Arc<dyn LocalFile>) {
    let whole = read_all(file.clone()).unwrap();
    let bytes = bytes_of(&*file);
    let mut harmless = 0;
    for at in 0..bytes.len() {
        for mask in [0x01, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= mask;
            match read_all(file_of(&damaged)) {
                Ok(same) => {
                    assert_eq!(same, whole, "byte {at}");
                    harmless += 1;
                }
                Err(error) => {
                    assert!(
                        matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported),
                        "{error}"
                    );
                    assert!(error.message().contains("segment 7.seg"), "{error}");
                }
            }
        }
    }
    assert!(harmless < bytes.len() / 8, "only padding is harmless: {harmless} of {}", bytes.len());
}

/// A segment with a filter of a number and a text, and the hash of each row's key.
fn with_filter(rows: i64) -> (Arc<dyn LocalFile>, Vec<u64>) {
    let spec = |id, data_type| ColumnSpec { id, data_type, nullable: false };
    let specs = [spec(1, DataType::Int64), spec(2, DataType::TEXT)];
    let rows: Vec<Vec<Value>> =
        (0..rows).map(|row| vec![Value::Int(row * 3), text(format!("t{row}"))]).collect();
    let hash = |row: &Vec<Value>| {
        let mut key = Vec::new();
        specs.iter().zip(row).for_each(|(spec, value)| {
            nacre_types::key::append(&mut key, spec.data_type, value).unwrap()
        });
        nacre_types::hash::hash_bytes(&key)
    };
    let hashes = rows.iter().map(hash).collect();
    let mut builder = SegmentBuilder::new(specs.to_vec()).with_key_filter(vec![0, 1], 9);
    batches(&specs, &rows, 1000).iter().for_each(|batch| builder.push(batch));
    assert_eq!(builder.values(&[1, 0], 0), [text("t0"), Value::Int(0)]);
    let file = MemoryStore::new().create("s").unwrap();
    builder.write(&*file).unwrap();
    (file, hashes)
}

#[test]
fn a_filter_of_keys_finds_every_key_and_few_others() {
    for rows in [1, 100, 4_096, 10_000] {
        let (file, hashes) = with_filter(rows);
        let segment = open(file).unwrap();
        let filter = segment.column_index(9).unwrap();
        assert_eq!(segment.columns().unwrap()[filter].data_type, DataType::UInt16);
        assert!(hashes.iter().all(|hash| segment.may_have(filter, *hash).unwrap()));
        let absent = (0..2_000u64)
            .filter(|n| segment.may_have(filter, nacre_types::hash::hash_u64(*n)).unwrap());
        let passed = absent.count();
        assert!(passed < 40, "{passed} of 2000 beside {rows}");
        assert_eq!(segment.verify().len(), 0);
    }
}

#[test]
fn a_damaged_filter_hides_no_key() {
    let (file, hashes) = with_filter(100);
    let bytes = bytes_of(&*file);
    let mut found = 0;
    for at in 0..bytes.len() {
        for mask in [0x01, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= mask;
            let Ok(segment) = open(file_of(&damaged)) else { continue };
            let filter = segment.column_index(9).unwrap();
            match segment.may_have(filter, hashes[at % 100]) {
                Ok(may_have) => assert!(may_have, "byte {at}"),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                    assert!(error.message().contains("segment 7.seg, column 9"), "{error}");
                    found += 1;
                }
            }
        }
    }
    // Two bytes per row.
    assert!(found >= 600, "{found}");
}

#[test]
fn every_cut_is_found() {
    let rows: Vec<Vec<Value>> = (0..40).map(all_row).collect();
    let bytes = bytes_of(&*write(&all_specs(), &rows, 1000));
    for cut in 0..bytes.len() {
        assert_eq!(
            open(file_of(&bytes[..cut])).err().map(|e| e.kind()),
            Some(ErrorKind::Corrupt),
            "cut at {cut}"
        );
    }
}

#[test]
fn a_damaged_footer_with_a_right_checksum_does_not_panic() {
    files().iter().for_each(|file| damage_the_footer(&bytes_of(&**file)));
}

fn damage_the_footer(bytes: &[u8]) {
    let trailer = bytes.len() - 32;
    let offset = u64::from_le_bytes(bytes[trailer..trailer + 8].try_into().unwrap()) as usize;
    for at in offset..trailer {
        for change in [1, 0x80, 0xff] {
            let mut damaged = bytes.to_vec();
            damaged[at] ^= change;
            let sum = nacre_types::checksum::checksum(&damaged[offset..trailer]);
            damaged[trailer + 16..trailer + 24].copy_from_slice(&sum.to_le_bytes());
            let _ = read_all(file_of(&damaged));
            if let Ok(segment) = open(file_of(&damaged)) {
                segment.verify();
            }
        }
    }
}

/// Replaces the footer's first occurrence of some bytes, and its checksum.
fn forged(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let trailer = bytes.len() - 32;
    let offset = u64::from_le_bytes(bytes[trailer..trailer + 8].try_into().unwrap()) as usize;
    let at = bytes[offset..].windows(from.len()).position(|part| part == from).unwrap() + offset;
    bytes[at..at + to.len()].copy_from_slice(to);
    let sum = nacre_types::checksum::checksum(&bytes[offset..trailer]);
    bytes[trailer + 16..trailer + 24].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[test]
fn blocks_out_of_order_and_empty_blocks_are_corrupt() {
    let rows: Vec<Vec<Value>> =
        (0..BLOCK_ROWS as i64 + 10).map(|row| vec![Value::Int(row * row)]).collect();
    let file = write(&[spec(1, DataType::Int64, false)], &rows, 1000);
    let bytes = bytes_of(&*file);
    let segment = open(file).unwrap();
    let places = [0, 1].map(|block| segment.opened().unwrap().block_address(0, block));
    let [first, second] = places.map(|place| place.offset.to_le_bytes());
    let length = (places[0].length as u32).to_le_bytes();
    for (from, to) in [
        ([first, second].concat(), [second, first].concat()),
        ([first, second].concat(), [first, first].concat()),
        ([&second[..], &length].concat(), [&second[..], &[0; 4]].concat()),
    ] {
        let opened = open(file_of(&forged(&bytes, &from, &to)));
        assert_eq!(opened.err().map(|error| error.kind()), Some(ErrorKind::Corrupt), "{to:?}");
    }
}

#[test]
fn errors_name_block_and_byte() {
    let rows: Vec<Vec<Value>> = (0..BLOCK_ROWS + 10).map(all_row).collect();
    let file = write(&all_specs(), &rows, 1000);
    let segment = open(file.clone()).unwrap();
    let place = segment.opened().unwrap().block_address(2, 1);
    let mut byte = [0];
    file.read(&mut [ReadRange { offset: place.offset + 20, buffer: &mut byte }]).unwrap();
    file.write(place.offset + 20, &[byte[0] ^ 4]).unwrap();
    let message = format!(
        "corrupt: segment 7.seg, column 12, block 1 at byte {}: checksum does not match",
        place.offset
    );
    assert_eq!(segment.get(2, BLOCK_ROWS + 1).unwrap_err().to_string(), message);
    assert_eq!(segment.verify().iter().map(|e| e.to_string()).collect::<Vec<_>>(), vec![message]);
    assert!(segment.get(2, 0).is_ok(), "other blocks stay readable");
}

#[test]
fn a_newer_version_is_unsupported() {
    let mut bytes = bytes_of(&*write(&all_specs(), &[], 1000));
    let last = bytes.len() - 1;
    (bytes[7], bytes[last]) = (9, 9);
    let error = open(file_of(&bytes)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("version 9"), "{error}");
}

#[test]
fn a_long_footer_takes_a_second_read() {
    let specs: Vec<ColumnSpec> = (0..3000).map(|id| spec(id, DataType::Int32, false)).collect();
    let rows: Vec<Vec<Value>> =
        (0..3).map(|row| (0..3000).map(|c| Value::Int(row * c)).collect()).collect();
    let segment = segment(&specs, &rows);
    assert!(segment.bytes() > 200_000);
    assert_eq!(segment.get(2999, 2).unwrap(), Value::Int(5998));
}
