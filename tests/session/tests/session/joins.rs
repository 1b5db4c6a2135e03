//! Joins of rows from several segments.

use nacre_session_tests::{memory, rows, run};

/// Rows with a null key are not collected. The dictionary they share with other rows of their
/// segment must not be used for rows of the next segment.
#[test]
fn texts_are_those_of_their_own_segment_though_the_first_has_null_keys_only() {
    let db = memory().unwrap();
    let mut s = db.session();
    run(&mut s, "create table l (id int primary key, k int, c varchar(8)); create table r (id int primary key, k int)")
        .unwrap();
    for part in 0..3u64 {
        let key = |id: u64| if part == 1 { id.to_string() } else { "null".to_string() };
        let row = |id: u64| format!("({id}, {}, 'c{}')", key(id), part * 10 + id % 3);
        let values: Vec<String> = (part * 300..part * 300 + 300).map(row).collect();
        run(&mut s, &format!("insert into l values {}; optimize table l flush", values.join(", ")))
            .unwrap();
    }
    let values: Vec<String> = (0..3_000).map(|id| format!("({id}, {id})")).collect();
    run(&mut s, &format!("insert into r values {}; optimize table r flush", values.join(", ")))
        .unwrap();
    let expected: Vec<String> = (300..600).map(|id| format!("{id}|c{}", 10 + id % 3)).collect();
    for sql in [
        "select l.id, l.c from r join l on r.k = l.k order by 1",
        "select l.id, l.c from r left join l on r.k = l.k where l.id is not null order by 1",
        "select l.id, (select x.c from l x where x.k = l.id) from l where l.k > 0 order by 1",
    ] {
        assert_eq!(rows(&mut s, sql).unwrap(), expected, "{sql}");
    }
}
