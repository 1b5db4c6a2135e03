//! The test suite of `LocalStore` and `LocalFile`.

use crate::expect_error;
use nacre_host::{ErrorKind, LOCK_FILE, LocalFile, LocalStore, ReadRange};
use std::sync::Arc;

/// Runs the whole suite. `make` must return an empty store each time.
pub fn check_local_store(make: impl Fn() -> Arc<dyn LocalStore>) {
    let suite: &[fn(&dyn LocalStore)] = &[
        create_open_remove_list,
        names,
        write_and_read_back,
        batched_reads,
        read_past_the_end_is_corrupt,
        sparse_write_reads_zeroes,
        truncate_shortens_and_extends,
        overwrite_in_place,
        sync_succeeds_at_any_time,
        long_batches_of_reads,
        write_synced_is_write_and_sync,
        handles_see_each_other,
        many_files,
    ];
    for check in suite {
        check(make().as_ref());
    }
    concurrent_reads(make().as_ref());
    concurrent_files(make().as_ref());
}

/// For stores that outlive their handle. `reopen` must return the same store as a new process would
/// see it after the old process, whose handle is dropped first, has ended.
pub fn check_local_store_reopen(
    first: Arc<dyn LocalStore>,
    reopen: impl FnOnce() -> Arc<dyn LocalStore>,
) {
    let kept = first.create("kept").unwrap();
    kept.write(0, b"before the end").unwrap();
    kept.sync().unwrap();
    first.create("empty").unwrap().sync().unwrap();
    let gone = first.create("gone").unwrap();
    gone.sync().unwrap();
    first.remove("gone").unwrap();
    drop((kept, gone, first));

    let second = reopen();
    assert_eq!(sorted_list(second.as_ref()), ["empty", "kept"], "files after reopening");
    let kept = second.open("kept").unwrap();
    assert_eq!(read(kept.as_ref(), 0, 14), b"before the end", "bytes after reopening");
    kept.write(14, b", and after").unwrap();
    kept.sync().unwrap();
    assert_eq!(kept.len().unwrap(), 25, "a reopened file can be written");
}

fn sorted_list(store: &dyn LocalStore) -> Vec<String> {
    let mut names = store.list().unwrap();
    names.sort();
    names
}

#[track_caller]
fn read(file: &dyn LocalFile, offset: u64, count: usize) -> Vec<u8> {
    let mut buffer = vec![0xee; count];
    file.read(&mut [ReadRange { offset, buffer: &mut buffer }]).unwrap();
    buffer
}

/// Bytes that differ between nearby offsets, so that a shift is detected.
fn pattern(count: usize, seed: u8) -> Vec<u8> {
    (0..count).map(|i| (i as u8).wrapping_mul(31) ^ (i >> 8) as u8 ^ seed).collect()
}

fn create_open_remove_list(store: &dyn LocalStore) {
    assert!(store.list().unwrap().is_empty(), "a new store lists nothing, its own lock neither");
    expect_error(store.open("a"), ErrorKind::NotFound, "open of a missing file");
    expect_error(store.remove("a"), ErrorKind::NotFound, "remove of a missing file");
    let a = store.create("a").unwrap();
    assert!(a.is_empty().unwrap(), "a new file is empty");
    a.write(0, b"content").unwrap();
    expect_error(store.create("a"), ErrorKind::AlreadyExists, "create over an existing file");
    assert_eq!(store.open("a").unwrap().len().unwrap(), 7, "the failed create left the file alone");
    store.create("b").unwrap();
    assert_eq!(sorted_list(store), ["a", "b"]);
    store.remove("a").unwrap();
    assert_eq!(sorted_list(store), ["b"]);
    expect_error(store.open("a"), ErrorKind::NotFound, "open of a removed file");
    assert!(store.create("a").unwrap().is_empty().unwrap(), "a file made again is empty");
}

fn names(store: &dyn LocalStore) {
    let longest = "x".repeat(64);
    let good = ["a", "Z9", "log-00000000000000ff", "seg_1.tmp", "a.b", "-", "_", longest.as_str()];
    for name in good {
        store.create(name).unwrap_or_else(|e| panic!("{name:?} is a possible name: {e}"));
        store.open(name).unwrap();
    }
    assert_eq!(store.list().unwrap().len(), good.len(), "every name is listed");
    let too_long = "x".repeat(65);
    for name in [
        "", ".", "..", ".hidden", "a/b", "../a", "a\\b", "a b", "ä", "a\0", "a:b", LOCK_FILE,
        &too_long,
    ] {
        expect_error(store.create(name), ErrorKind::Io, &format!("create of {name:?}"));
        expect_error(store.open(name), ErrorKind::Io, &format!("open of {name:?}"));
        expect_error(store.remove(name), ErrorKind::Io, &format!("remove of {name:?}"));
    }
    assert_eq!(store.list().unwrap().len(), good.len(), "refused names leave nothing behind");
}

fn write_and_read_back(store: &dyn LocalStore) {
    let file = store.create("f").unwrap();
    let bytes = pattern(200_000, 1);
    file.write(0, &bytes).unwrap();
    assert_eq!(file.len().unwrap(), 200_000);
    assert!(read(file.as_ref(), 0, 200_000) == bytes, "all bytes come back");
    assert!(
        read(file.as_ref(), 4095, 3) == bytes[4095..4098],
        "a few bytes across a page boundary"
    );
    file.write(200_000, &bytes[..10]).unwrap();
    assert_eq!(file.len().unwrap(), 200_010, "a write at the end appends");
    file.write(500_000, b"").unwrap();
    assert_eq!(file.len().unwrap(), 200_010, "an empty write changes nothing");
}

fn batched_reads(store: &dyn LocalStore) {
    let file = store.create("f").unwrap();
    let bytes = pattern(10_000, 2);
    file.write(0, &bytes).unwrap();
    let places =
        [(9_000usize, 1_000usize), (0, 1), (5_000, 500), (4_900, 300), (10_000, 0), (0, 10_000)];
    let mut buffers: Vec<Vec<u8>> = places.iter().map(|(_, count)| vec![0; *count]).collect();
    let mut ranges: Vec<ReadRange<'_>> = places
        .iter()
        .zip(&mut buffers)
        .map(|((offset, _), buffer)| ReadRange { offset: *offset as u64, buffer })
        .collect();
    file.read(&mut ranges).unwrap();
    for ((offset, count), buffer) in places.iter().zip(&buffers) {
        assert!(
            bytes[*offset..offset + count] == **buffer,
            "range at {offset} of a batch out of order and overlapping"
        );
    }
    file.read(&mut []).unwrap();
}

fn read_past_the_end_is_corrupt(store: &dyn LocalStore) {
    let file = store.create("f").unwrap();
    file.write(0, b"0123456789").unwrap();
    for (offset, count) in [(0, 11), (9, 2), (10, 1), (11, 1), (1 << 40, 8), (u64::MAX, 8)] {
        let mut buffer = vec![0; count];
        let result = file.read(&mut [ReadRange { offset, buffer: &mut buffer }]);
        expect_error(
            result,
            ErrorKind::Corrupt,
            &format!("read of {count} bytes at {offset} of 10"),
        );
    }
    let (mut inside, mut outside) = ([0; 4], [0; 4]);
    let result = file.read(&mut [
        ReadRange { offset: 0, buffer: &mut inside },
        ReadRange { offset: 8, buffer: &mut outside },
    ]);
    expect_error(result, ErrorKind::Corrupt, "a batch of which one range is past the end");
    assert_eq!(
        read(file.as_ref(), 0, 10),
        b"0123456789",
        "the file is readable after a failed read"
    );
}

fn sparse_write_reads_zeroes(store: &dyn LocalStore) {
    let file = store.create("f").unwrap();
    file.write(100_000, b"end").unwrap();
    assert_eq!(file.len().unwrap(), 100_003);
    assert!(read(file.as_ref(), 0, 100_000).iter().all(|b| *b == 0), "a hole reads as zeroes");
    assert_eq!(read(file.as_ref(), 100_000, 3), b"end");
}

fn truncate_shortens_and_extends(store: &dyn LocalStore) {
    let file = store.create("f").unwrap();
    file.write(0, &pattern(10_000, 3)).unwrap();
    file.truncate(5_000).unwrap();
    assert_eq!(file.len().unwrap(), 5_000);
    file.truncate(5_000).unwrap();
    file.truncate(8_000).unwrap();
    assert_eq!(file.len().unwrap(), 8_000);
    assert!(
        read(file.as_ref(), 0, 5_000) == pattern(10_000, 3)[..5_000],
        "what was kept is unchanged"
    );
    assert!(
        read(file.as_ref(), 5_000, 3_000).iter().all(|b| *b == 0),
        "what was cut does not come back"
    );
    file.truncate(0).unwrap();
    assert!(file.is_empty().unwrap());
    file.write(3, b"x").unwrap();
    assert_eq!(
        read(file.as_ref(), 0, 4),
        b"\0\0\0x",
        "what was cut does not come back by a later write"
    );
}

fn overwrite_in_place(store: &dyn LocalStore) {
    let file = store.create("f").unwrap();
    file.write(0, b"aaaaaaaaaa").unwrap();
    file.write(3, b"bbb").unwrap();
    file.write(8, b"cccc").unwrap();
    assert_eq!(read(file.as_ref(), 0, 12), b"aaabbbaacccc");
}

fn sync_succeeds_at_any_time(store: &dyn LocalStore) {
    let file = store.create("f").unwrap();
    file.sync().unwrap();
    file.sync().unwrap();
    file.write(0, b"x").unwrap();
    file.sync().unwrap();
    file.truncate(0).unwrap();
    file.sync().unwrap();
    store.open("f").unwrap().sync().unwrap();
}

fn long_batches_of_reads(store: &dyn LocalStore) {
    let file = store.create("f").unwrap();
    let bytes = pattern(300_000, 5);
    file.write(0, &bytes).unwrap();
    let places: Vec<(usize, usize)> =
        (0..400).map(|i| ((i * 7919) % 290_000, i * 13 % 3_000)).collect();
    let mut buffers: Vec<Vec<u8>> = places.iter().map(|(_, count)| vec![0xee; *count]).collect();
    let ranges = |buffers: &mut [Vec<u8>], file: &dyn LocalFile| {
        let places = places.iter().zip(buffers);
        let mut ranges: Vec<_> = places
            .map(|((offset, _), buffer)| ReadRange { offset: *offset as u64, buffer })
            .collect();
        file.read(&mut ranges)
    };
    ranges(&mut buffers, file.as_ref()).unwrap();
    for ((offset, count), buffer) in places.iter().zip(&buffers) {
        assert!(
            bytes[*offset..offset + count] == **buffer,
            "range of {count} bytes at {offset} of a long batch"
        );
    }
    file.truncate(200_000).unwrap();
    expect_error(
        ranges(&mut buffers, file.as_ref()),
        ErrorKind::Corrupt,
        "a long batch that reaches past the end",
    );
}

fn write_synced_is_write_and_sync(store: &dyn LocalStore) {
    let file = store.create("f").unwrap();
    let bytes = pattern(100_000, 6);
    file.write_synced(0, &bytes[..10]).unwrap();
    file.write(10, &bytes[10..20]).unwrap();
    file.write_synced(20, &bytes[20..]).unwrap();
    file.write_synced(0, b"").unwrap();
    file.write_synced(100_010, b"end").unwrap();
    assert!(read(file.as_ref(), 0, 100_000) == bytes, "all bytes come back");
    assert_eq!(
        read(file.as_ref(), 100_000, 13),
        b"\0\0\0\0\0\0\0\0\0\0end",
        "a hole reads as zeroes"
    );
    file.write_synced(5, &bytes[..3]).unwrap();
    assert!(read(file.as_ref(), 5, 3) == bytes[..3], "a write in place");
}

fn handles_see_each_other(store: &dyn LocalStore) {
    let first = store.create("f").unwrap();
    let second = store.open("f").unwrap();
    first.write(0, b"one").unwrap();
    assert_eq!(
        read(second.as_ref(), 0, 3),
        b"one",
        "a write is seen through another handle before any sync"
    );
    second.write(3, b"two").unwrap();
    assert_eq!(read(first.as_ref(), 0, 6), b"onetwo");
    first.truncate(1).unwrap();
    assert_eq!(second.len().unwrap(), 1);
}

fn many_files(store: &dyn LocalStore) {
    let files: Vec<_> = (0..200).map(|i| (i, store.create(&format!("f{i}")).unwrap())).collect();
    for (i, file) in &files {
        file.write(0, format!("number {i}").as_bytes()).unwrap();
    }
    for (i, file) in &files {
        let text = format!("number {i}");
        assert_eq!(read(file.as_ref(), 0, text.len()), text.as_bytes(), "200 files open at once");
    }
    assert_eq!(store.list().unwrap().len(), 200);
}

fn concurrent_reads(store: &dyn LocalStore) {
    let file = store.create("f").unwrap();
    let bytes = pattern(1 << 20, 4);
    file.write(0, &bytes).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4usize {
            let (file, bytes) = (&file, &bytes);
            scope.spawn(move || {
                for i in 0..200usize {
                    let offset = (i * 7919 + thread * 104_729) % (bytes.len() - 5_000);
                    let got = read(file.as_ref(), offset as u64, 5_000);
                    assert!(
                        got == bytes[offset..offset + 5_000],
                        "threads read one handle without disturbing each other"
                    );
                }
            });
        }
        // A writer beyond the ranges being read must not disturb the readers either.
        scope.spawn(|| (0..50).for_each(|i| file.write((1 << 20) + i * 100, &[7; 100]).unwrap()));
    });
}

fn concurrent_files(store: &dyn LocalStore) {
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for i in 0..20 {
                    let name = format!("t{thread}-{i}");
                    let file = store.create(&name).unwrap();
                    file.write(0, name.as_bytes()).unwrap();
                    file.sync().unwrap();
                    assert_eq!(
                        read(store.open(&name).unwrap().as_ref(), 0, name.len()),
                        name.as_bytes()
                    );
                    if i % 2 == 0 {
                        store.remove(&name).unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(
        store.list().unwrap().len(),
        40,
        "threads create and remove files without disturbing each other"
    );
}

#[test]
fn memory_store() {
    check_local_store(|| Arc::new(nacre_host::memory::MemoryStore::new()));
}
