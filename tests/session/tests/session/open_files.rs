//! Databases of more segments than files may be open at once.

use nacre_native::{FolderStore, block_on};
use nacre_session_tests::{Folder, memory_host, options, rows, run};
use nacredb::{Database, Host, Options};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const FILES: usize = 12;

/// A database in a folder of which at most [`FILES`] files are open, and segments are small.
fn opened(folder: &Folder, metadata_bytes: usize) -> (Arc<FolderStore>, Database) {
    let store = Arc::new(FolderStore::open(folder.path()).unwrap());
    store.limit_open_files(FILES);
    let host = Host { store: store.clone(), ..memory_host() };
    let options =
        Options { segment_rows: 20, partitions: 1, merge_from: 99, metadata_bytes, ..options() };
    (store, block_on(Database::open(host, options)).unwrap())
}

#[test]
fn queries_and_merges_read_more_files_than_may_be_open() {
    for metadata_bytes in [usize::MAX, 20_000] {
        let folder = Folder::new("open-files");
        {
            let (store, db) = opened(&folder, metadata_bytes);
            let mut session = db.session();
            run(&mut session, "create table t (id int primary key, n int, key (n))").unwrap();
            let values: Vec<String> = (0..2_000).map(|id| format!("({id}, {})", id % 7)).collect();
            run(&mut session, &format!("insert into t values {}", values.join(", "))).unwrap();
            run(&mut session, "optimize table t flush").unwrap();
            assert!(store.open_files() <= FILES + 2, "{}", store.open_files());
            block_on(db.close()).unwrap();
        }
        let (store, db) = opened(&folder, metadata_bytes);
        assert!(store.open_files() <= 4, "{} files are open at once", store.open_files());
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (store, db, is_done) = (&store, &db, &is_done);
            let reader = scope.spawn(move || {
                let mut session = db.session();
                let mut rounds = 0;
                while !is_done.load(Ordering::Relaxed) || rounds < 2 {
                    let sum = rows(&mut session, "select count(*), sum(id) from t").unwrap();
                    assert_eq!(sum, ["2000|1999000"]);
                    let found = rows(&mut session, "select count(*) from t where n = 3").unwrap();
                    assert_eq!(found, ["286"]);
                    for id in (rounds..2_000).step_by(333) {
                        let sql = format!("select n from t where id = {id}");
                        assert_eq!(rows(&mut session, &sql).unwrap(), [(id % 7).to_string()]);
                    }
                    // Files that are written at the moment are open besides.
                    assert!(store.open_files() <= FILES + 8, "{}", store.open_files());
                    rounds += 1;
                }
            });
            run(&mut db.session(), "optimize table t full").unwrap();
            is_done.store(true, Ordering::Relaxed);
            reader.join().unwrap();
        });
        assert_eq!(db.check().unwrap(), Vec::<String>::new());
        assert!(store.open_files() <= FILES + 2, "{}", store.open_files());
    }
}
