//! What a stream holds, counted by the allocator: it does not grow with the result. One test, alone in its process.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use nacre_native::block_on;
use nacre_session_tests::{memory, run};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts what is allocated, and the most there was.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn more(bytes: usize) {
    let now = NOW.fetch_add(bytes, Ordering::Relaxed) + bytes;
    MOST.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: everything is done by the system's allocator; only numbers are kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that some work took beyond what there was.
fn most_during(work: impl FnOnce()) -> usize {
    let before = NOW.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    work();
    MOST.load(Ordering::Relaxed) - before
}

#[test]
fn a_stream_holds_a_few_batches() {
    let db = memory().unwrap();
    let mut session = db.session();
    session.set_threads(1);
    run(&mut session, "create table big (id int primary key, a bigint, b text)").unwrap();
    let numbers = "with recursive n(i) as (select 0 union all select i + 1 from n where i + 1 < 200000)";
    let sql = format!("insert into big {numbers} select i, i * 31, concat('some text of the row ', i * 7919) from n");
    run(&mut session, &sql).unwrap();
    run(&mut session, "optimize table big flush").unwrap();
    let sql = "select * from big";
    // Once before, so that blocks are in the cache.
    let whole = most_during(|| assert_eq!(run(&mut session, sql).unwrap().rows(), 200_000));
    let streamed = most_during(|| {
        let mut rows = block_on(session.stream(sql, &[])).unwrap();
        let mut count = 0;
        while let Some(batch) = block_on(rows.next()).unwrap() {
            count += batch.rows;
        }
        assert_eq!(count, 200_000);
    });
    assert!(whole > 10_000_000, "{whole}");
    assert!(streamed < 1_000_000, "{streamed} of {whole}");
}
