//! `OPTIMIZE TABLE … FULL` that is cancelled.

use nacre_native::{block_on, memory_host};
use nacre_session_tests::{far_options, rows, run, upload};
use nacre_testing::without_background;
use nacredb::{Database, ErrorKind, Result, Session};

const SEGMENT_ROWS: usize = 20_000;

/// Four runs of overlapping keys, too large to be fetched at once.
fn fill(session: &mut Session) -> Result<()> {
    run(session, "create table t (id int primary key, n int, s text)")?;
    for part in 0..4 {
        let row = format!("i * 4 + {part}, i, concat('text ', i * 31337, ' of ', i)");
        run(session, &format!("insert into t select {row} from range(20000) s(i)"))?;
        run(session, "optimize table t flush")?;
    }
    Ok(())
}

#[test]
fn a_cancelled_merge_ends_between_its_steps() {
    let far = upload(SEGMENT_ROWS, fill).unwrap();
    // A second writer has no files yet, so the merge reads blobs.
    let host = without_background(memory_host());
    let db = block_on(Database::open(host, far_options(&far, SEGMENT_ROWS))).unwrap();
    let mut session = db.session();
    far.set_by_next_read(session.cancel_flag());
    let error = run(&mut session, "optimize table t full").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    let all = "select count(*), sum(n), min(id), max(id) from t";
    assert_eq!(rows(&mut session, all).unwrap(), ["80000|799960000|0|79999"]);
    run(&mut session, "optimize table t full").unwrap();
    assert_eq!(rows(&mut session, all).unwrap(), ["80000|799960000|0|79999"]);
}
