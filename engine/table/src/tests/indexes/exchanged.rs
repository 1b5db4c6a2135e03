//! Valid files in the places of other valid files: of the same database, of another version of the
//! same file, and of another database.

use super::*;
use crate::tests::access::write_snapshot;
use nacre_host::{LocalStore, ReadRange};

const ROWS: i64 = 400;

/// A database with segments, separate index parts and hash tables, of rows that depend on `seed`.
fn filled(seed: i64, snapshot: bool) -> (Arc<MemoryStore>, StoreOptions) {
    let options = StoreOptions { segment_rows: 100, merge_from: 99, hash_from: 1.5, ..options() };
    let files = Arc::new(MemoryStore::new());
    let store = Store::open(host(&files), options.clone()).unwrap();
    let mut shape = schema(true);
    shape.indexes.truncate(1);
    let table = store.create_table(shape).unwrap();
    for round in 0..4 {
        let items: Vec<Item> = (0..ROWS / 4)
            .map(|i| round + i * 4)
            .map(|i| item(i, i, &format!("t{i}"), (i + seed) % 10))
            .collect();
        insert(&store, &items).unwrap();
        store.flush(&table).unwrap();
    }
    store.create_index(&table, index("by_n", &[4], false)).unwrap();
    while store.maintain().unwrap() {}
    if snapshot {
        write_snapshot(&store).unwrap();
    }
    drop(store);
    // Removes the files that are not named any more.
    Store::open(host(&files), options.clone()).unwrap();
    (files, options)
}

fn bytes_of(files: &MemoryStore, name: &str) -> Vec<u8> {
    let file = files.open(name).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read(&mut [ReadRange { offset: 0, buffer: &mut bytes }]).unwrap();
    bytes
}

fn put(files: &MemoryStore, name: &str, bytes: &[u8]) {
    let _ = files.remove(name);
    files.create(name).unwrap().write(0, bytes).unwrap();
}

fn copy(files: &MemoryStore) -> Arc<MemoryStore> {
    let new = MemoryStore::new();
    files.list().unwrap().iter().for_each(|name| put(&new, name, &bytes_of(files, name)));
    Arc::new(new)
}

/// The files that the log names.
fn named(files: &MemoryStore) -> Vec<String> {
    let mut names = files.list().unwrap();
    names.retain(|n| ["seg-", "idx-", "hsh-"].iter().any(|prefix| n.starts_with(prefix)));
    names.sort();
    for prefix in ["seg-", "idx-", "hsh-"] {
        assert!(names.iter().any(|n| n.starts_with(prefix)), "no {prefix} in {names:?}");
    }
    names
}

/// Reads every row of the table `t`, by scan, by key and by index.
fn read_all(store: &Arc<Store>) -> nacre_types::Result<()> {
    let table = store.table("t").expect("the table");
    let view = store.begin()?.view(&table);
    for SegmentView { segment, columns, .. } in view.segments() {
        for column in columns.iter().flatten() {
            segment.decode(*column, 0, segment.rows())?;
        }
    }
    for value in (0..ROWS).map(Value::Int) {
        store.get(&table, std::slice::from_ref(&value), &[0])?;
        for index in &table.schema().indexes {
            view.probe_index(index.id, &KeyRange::equal(vec![value.clone()]))?;
        }
    }
    Ok(())
}

/// The first read of the file and `check` tell that it is another one.
#[track_caller]
fn refuse(files: &Arc<MemoryStore>, options: &StoreOptions, parts: &[&str]) {
    let store = Store::open(host(files), options.clone()).unwrap();
    let error = read_all(&store).expect_err("all rows are read");
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    let findings = store.check().unwrap();
    for part in parts {
        assert!(error.message().contains(part), "{error} does not say {part}");
        assert!(findings.iter().any(|f| f.contains(part)), "{findings:?} do not say {part}");
    }
}

#[test]
fn a_file_in_the_place_of_another_is_corrupt() {
    for snapshot in [false, true] {
        let (files, options) = filled(0, snapshot);
        let names = named(&files);
        let number = |name: &String| {
            format!("file {} of table", u64::from_str_radix(&name[4..], 16).unwrap())
        };
        for place in &names {
            for other in names.iter().filter(|other| *other != place) {
                let exchanged = copy(&files);
                put(&exchanged, place, &bytes_of(&files, other));
                let (own, found) = (number(place), number(other));
                refuse(&exchanged, &options, &[place, &own, &found]);
            }
        }
    }
}

#[test]
fn another_version_of_a_file_is_corrupt() {
    let ((files, options), (others, _)) = (filled(0, true), filled(3, true));
    assert_eq!(named(&files), named(&others));
    let mut differ = 0;
    for name in named(&files) {
        let (own, other) = (bytes_of(&files, &name), bytes_of(&others, &name));
        if own != other {
            let exchanged = copy(&files);
            put(&exchanged, &name, &other);
            refuse(&exchanged, &options, &[&name, "footer checksum", "the log names"]);
            differ += 1;
        }
    }
    assert!(differ > 3, "only {differ} files differ");
}
