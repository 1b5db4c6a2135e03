//! Which files a statement reads of a database that was just opened: those with rows that may match, as
//! the log describes their bounds.

use nacre_native::{block_on, memory_host};
use nacre_session_tests::{rows, run};
use nacre_testing::{Call, Watched};
use nacredb::host::memory::MemoryStore;
use nacredb::{Database, Host, Options};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// Names of the segments that were read.
type Read = Arc<Mutex<BTreeSet<String>>>;

fn open(files: &Arc<MemoryStore>) -> (Database, Read) {
    let read = Read::default();
    let noted = read.clone();
    let store = Watched::new(files.clone(), move |name, call| {
        if matches!(call, Call::Read { .. }) && name.starts_with("seg-") {
            noted.lock().unwrap().insert(name.to_string());
        }
        Ok(())
    });
    let host = Host { store, ..memory_host() };
    let options = Options { segment_rows: 100, ..Options::default() };
    (block_on(Database::open(host, options)).unwrap(), read)
}

#[test]
fn a_filter_reads_only_segments_that_may_have_its_rows() {
    let files = Arc::new(MemoryStore::new());
    {
        let (db, _) = open(&files);
        let mut session = db.session();
        run(
            &mut session,
            "create table t (id bigint primary key, day date, name text, note text, n double)",
        )
        .unwrap();
        run(
            &mut session,
            "insert into t select i, date '2026-01-01' + cast(i / 10 as int), \
             concat('name ', lpad(cast(i as text), 5, '0')), \
             case when i between 300 and 305 then 'x' end, i / 8.0 \
             from generate_series(0, 3999) as g(i); optimize table t full",
        )
        .unwrap();
        block_on(db.close()).unwrap();
    }
    for (filter, count, most) in [
        ("day = date '2026-02-10'", 10, 1),
        ("name between 'name 01000' and 'name 01150'", 151, 2),
        ("note is not null", 6, 1),
        ("note = 'x'", 6, 1),
        ("n > 499.8", 1, 1),
        ("n < 0", 0, 0),
        ("day = date '2026-02-10' or id = 3999", 11, 2),
    ] {
        let (db, read) = open(&files);
        // An estimate may read some segments, of which these are none.
        let mut session = db.session();
        run(&mut session, &format!("explain select count(*) from t where {filter}")).unwrap();
        let estimated = std::mem::take(&mut *read.lock().unwrap());
        assert!(estimated.len() <= 16, "{filter}: estimates read {} of 40", estimated.len());
        let found = rows(&mut session, &format!("select count(*) from t where {filter}")).unwrap();
        assert_eq!(found, [count.to_string()], "{filter}");
        let read: Vec<String> = read.lock().unwrap().iter().cloned().collect();
        assert!(read.len() <= most, "{filter}: {read:?}");
    }
}
