//! The anomalies that snapshot isolation prevents or allows. Each test runs on rows in memory and
//! on rows in a segment.
//!
//! The schedules are those of Hermitage, "Testing transaction isolation levels", with the outcomes
//! it lists for snapshot isolation. Copyright Martin Kleppmann, 2014, licensed under the Creative
//! Commons Attribution 4.0 International License (http://creativecommons.org/licenses/by/4.0/);
//! changed: rewritten as Rust tests, with this engine's outcome of a blocked write (a conflict if
//! the holder commits, success if it rolls back).

use nacre_native::{block_on, memory_host};
use nacre_session_tests::{blocked, kind, options, rows, run};
use nacredb::{Database, ErrorKind, Options, Session};

const ALL: &str = "select * from test order by id";

/// Runs a schedule on rows in memory and in a segment. The table starts with 1 => 10 and 2 => 20.
fn both(schedule: impl Fn(&Database)) {
    for in_segment in [false, true] {
        let db = block_on(Database::open(
            memory_host(),
            Options { lock_timeout_ms: 20_000, ..options() },
        ))
        .unwrap();
        let mut setup = db.session();
        run(&mut setup, "create table test (id int primary key, value int)").unwrap();
        run(&mut setup, "insert into test (id, value) values (1, 10), (2, 20)").unwrap();
        if in_segment {
            run(&mut setup, "optimize table test flush").unwrap();
        }
        schedule(&db);
        assert_eq!(db.check().unwrap(), Vec::<String>::new());
    }
}

/// Sessions with one transaction each, begun in this order.
fn begun<const N: usize>(db: &Database) -> [Session; N] {
    std::array::from_fn(|_| {
        let mut session = db.session();
        run(&mut session, "begin").unwrap();
        session
    })
}

fn ok(session: &mut Session, sql: &str) {
    run(session, sql).unwrap();
}

fn shows(session: &mut Session, sql: &str, expected: &[&str]) {
    assert_eq!(rows(session, sql).unwrap(), expected, "{sql}");
}

fn conflicts(session: &mut Session, sql: &str) {
    assert_eq!(kind(session, sql), Some(ErrorKind::Conflict), "{sql}");
}

#[test]
fn g0_write_cycles_are_prevented() {
    both(|db| {
        let [mut t1, mut t2] = begun(db);
        ok(&mut t1, "update test set value = 11 where id = 1");
        let waited = blocked(&mut t2, "update test set value = 12 where id = 1", || {
            ok(&mut t1, "update test set value = 21 where id = 2");
            ok(&mut t1, "commit");
        });
        assert_eq!(waited, Err(ErrorKind::Conflict));
        shows(&mut t1, ALL, &["1|11", "2|21"]);
        conflicts(&mut t2, "update test set value = 22 where id = 2");
        ok(&mut t2, "rollback");
        shows(&mut t2, ALL, &["1|11", "2|21"]);
    });
}

#[test]
fn g0_a_waiting_writer_goes_on_after_a_rollback() {
    both(|db| {
        let [mut t1, mut t2] = begun(db);
        ok(&mut t1, "update test set value = 11 where id = 1");
        let waited = blocked(&mut t2, "update test set value = 12 where id = 1", || {
            ok(&mut t1, "update test set value = 21 where id = 2");
            ok(&mut t1, "rollback");
        });
        assert_eq!(waited, Ok(1));
        ok(&mut t2, "update test set value = 22 where id = 2; commit");
        shows(&mut t1, ALL, &["1|12", "2|22"]);
    });
}

#[test]
fn g1a_aborted_reads_are_prevented() {
    both(|db| {
        let [mut t1, mut t2] = begun(db);
        ok(&mut t1, "update test set value = 101 where id = 1");
        shows(&mut t2, ALL, &["1|10", "2|20"]);
        ok(&mut t1, "rollback");
        shows(&mut t2, ALL, &["1|10", "2|20"]);
        ok(&mut t2, "commit");
        shows(&mut t2, ALL, &["1|10", "2|20"]);
    });
}

#[test]
fn g1b_intermediate_reads_are_prevented() {
    both(|db| {
        let [mut t1, mut t2] = begun(db);
        ok(&mut t1, "update test set value = 101 where id = 1");
        shows(&mut t2, ALL, &["1|10", "2|20"]);
        ok(&mut t1, "update test set value = 11 where id = 1");
        ok(&mut t1, "commit");
        shows(&mut t2, ALL, &["1|10", "2|20"]);
        ok(&mut t2, "commit");
        shows(&mut t2, ALL, &["1|11", "2|20"]);
    });
}

#[test]
fn g1c_circular_information_flow_is_prevented() {
    both(|db| {
        let [mut t1, mut t2] = begun(db);
        ok(&mut t1, "update test set value = 11 where id = 1");
        ok(&mut t2, "update test set value = 22 where id = 2");
        shows(&mut t1, "select * from test where id = 2", &["2|20"]);
        shows(&mut t2, "select * from test where id = 1", &["1|10"]);
        ok(&mut t1, "commit");
        ok(&mut t2, "commit");
        shows(&mut t1, ALL, &["1|11", "2|22"]);
    });
}

#[test]
fn otv_observed_transactions_do_not_vanish() {
    both(|db| {
        let [mut t1, mut t2, mut t3] = begun(db);
        ok(&mut t1, "update test set value = 11 where id = 1");
        ok(&mut t1, "update test set value = 19 where id = 2");
        let waited =
            blocked(&mut t2, "update test set value = 12 where id = 1", || ok(&mut t1, "commit"));
        assert_eq!(waited, Err(ErrorKind::Conflict));
        shows(&mut t3, "select * from test where id = 1", &["1|10"]);
        // The client of the failed transaction must retry from the start.
        ok(&mut t2, "rollback; begin; update test set value = 12 where id = 1");
        ok(&mut t2, "update test set value = 18 where id = 2");
        shows(&mut t3, "select * from test where id = 2", &["2|20"]);
        ok(&mut t2, "commit");
        shows(&mut t3, "select * from test where id = 2", &["2|20"]);
        shows(&mut t3, "select * from test where id = 1", &["1|10"]);
        ok(&mut t3, "commit");
        shows(&mut t3, ALL, &["1|12", "2|18"]);
    });
}

#[test]
fn pmp_a_predicate_keeps_its_rows() {
    both(|db| {
        let [mut t1, mut t2] = begun(db);
        shows(&mut t1, "select * from test where value = 30", &[]);
        ok(&mut t2, "insert into test (id, value) values (3, 30)");
        ok(&mut t2, "commit");
        shows(&mut t1, "select * from test where value % 3 = 0", &[]);
        ok(&mut t1, "commit");
        shows(&mut t1, "select * from test where value % 3 = 0", &["3|30"]);
    });
}

#[test]
fn pmp_write_a_write_predicate_conflicts() {
    both(|db| {
        let [mut t1, mut t2] = begun(db);
        ok(&mut t1, "update test set value = value + 10");
        let waited =
            blocked(&mut t2, "delete from test where value = 20", || ok(&mut t1, "commit"));
        assert_eq!(waited, Err(ErrorKind::Conflict));
        ok(&mut t2, "rollback");
        shows(&mut t2, ALL, &["1|20", "2|30"]);

        let [mut t1, mut t2] = begun(db);
        ok(&mut t1, "update test set value = value + 10");
        let waited =
            blocked(&mut t2, "delete from test where value = 20", || ok(&mut t1, "rollback"));
        assert_eq!(waited, Ok(1));
        ok(&mut t2, "commit");
        shows(&mut t2, ALL, &["2|30"]);
    });
}

#[test]
fn p4_lost_updates_are_prevented() {
    both(|db| {
        let [mut t1, mut t2] = begun(db);
        shows(&mut t1, "select * from test where id = 1", &["1|10"]);
        shows(&mut t2, "select * from test where id = 1", &["1|10"]);
        ok(&mut t1, "update test set value = 11 where id = 1");
        let waited =
            blocked(&mut t2, "update test set value = 11 where id = 1", || ok(&mut t1, "commit"));
        assert_eq!(waited, Err(ErrorKind::Conflict));
        ok(&mut t2, "rollback");
        shows(&mut t2, ALL, &["1|11", "2|20"]);
    });
}

#[test]
fn g_single_read_skew_is_prevented() {
    both(|db| {
        let [mut t1, mut t2] = begun(db);
        shows(&mut t1, "select * from test where id = 1", &["1|10"]);
        shows(&mut t2, "select * from test where id = 1", &["1|10"]);
        shows(&mut t2, "select * from test where id = 2", &["2|20"]);
        ok(&mut t2, "update test set value = 12 where id = 1");
        ok(&mut t2, "update test set value = 18 where id = 2");
        ok(&mut t2, "commit");
        shows(&mut t1, "select * from test where id = 2", &["2|20"]);
        ok(&mut t1, "commit");
        shows(&mut t1, ALL, &["1|12", "2|18"]);
    });
}

#[test]
fn g_single_dependencies_by_predicate_read_skew_is_prevented() {
    both(|db| {
        let [mut t1, mut t2] = begun(db);
        shows(&mut t1, "select * from test where value % 5 = 0 order by id", &["1|10", "2|20"]);
        ok(&mut t2, "update test set value = 12 where value = 10");
        ok(&mut t2, "commit");
        shows(&mut t1, "select * from test where value % 3 = 0", &[]);
        ok(&mut t1, "commit");
        shows(&mut t1, "select * from test where value % 3 = 0", &["1|12"]);
    });
}

#[test]
fn g_single_write_1_a_write_after_the_other_committed_conflicts() {
    both(|db| {
        let [mut t1, mut t2] = begun(db);
        shows(&mut t1, "select * from test where id = 1", &["1|10"]);
        shows(&mut t2, ALL, &["1|10", "2|20"]);
        ok(&mut t2, "update test set value = 12 where id = 1");
        ok(&mut t2, "update test set value = 18 where id = 2");
        ok(&mut t2, "commit");
        conflicts(&mut t1, "delete from test where value = 20");
        ok(&mut t1, "rollback");
        shows(&mut t1, ALL, &["1|12", "2|18"]);
    });
}

#[test]
fn g_single_write_2_a_write_before_the_other_ends_makes_it_wait() {
    both(|db| {
        let [mut t1, mut t2] = begun(db);
        shows(&mut t1, "select * from test where id = 1", &["1|10"]);
        shows(&mut t2, ALL, &["1|10", "2|20"]);
        ok(&mut t2, "update test set value = 12 where id = 1");
        ok(&mut t1, "delete from test where value = 20");
        let waited =
            blocked(&mut t2, "update test set value = 18 where id = 2", || ok(&mut t1, "rollback"));
        assert_eq!(waited, Ok(1));
        ok(&mut t2, "commit");
        shows(&mut t1, ALL, &["1|12", "2|18"]);
    });
}

/// Not prevented by snapshot isolation, which is not serialisable. `FOR UPDATE` prevents it, as
/// tested below.
#[test]
fn g2_item_write_skew_is_allowed() {
    both(|db| {
        let [mut t1, mut t2] = begun(db);
        shows(&mut t1, "select * from test where id in (1, 2) order by id", &["1|10", "2|20"]);
        shows(&mut t2, "select * from test where id in (1, 2) order by id", &["1|10", "2|20"]);
        ok(&mut t1, "update test set value = 11 where id = 1");
        ok(&mut t2, "update test set value = 21 where id = 2");
        ok(&mut t1, "commit");
        ok(&mut t2, "commit");
        shows(&mut t1, ALL, &["1|11", "2|21"]);
    });
}

#[test]
fn g2_item_write_skew_is_prevented_by_for_update() {
    both(|db| {
        let [mut t1, mut t2] = begun(db);
        let read = "select * from test where id in (1, 2) order by id for update";
        shows(&mut t1, read, &["1|10", "2|20"]);
        let waited = blocked(&mut t2, read, || {
            ok(&mut t1, "update test set value = 11 where id = 1; commit")
        });
        assert_eq!(waited, Err(ErrorKind::Conflict));
        ok(&mut t2, "rollback; begin");
        shows(&mut t2, read, &["1|11", "2|20"]);
        ok(&mut t2, "update test set value = 21 where id = 2; commit");
        shows(&mut t1, ALL, &["1|11", "2|21"]);
    });
}

/// Not prevented by snapshot isolation: each transaction inserts a row that the other's predicate
/// would match.
#[test]
fn g2_anti_dependency_cycles_are_allowed() {
    both(|db| {
        let [mut t1, mut t2] = begun(db);
        shows(&mut t1, "select * from test where value % 3 = 0", &[]);
        shows(&mut t2, "select * from test where value % 3 = 0", &[]);
        ok(&mut t1, "insert into test (id, value) values (3, 30)");
        ok(&mut t2, "insert into test (id, value) values (4, 42)");
        ok(&mut t1, "commit");
        ok(&mut t2, "commit");
        shows(&mut t1, "select * from test where value % 3 = 0 order by id", &["3|30", "4|42"]);
    });
}

/// The example with two anti-dependency edges, also allowed: a reader sees T2 without T1, which
/// came first.
#[test]
fn g2_two_edges_are_allowed() {
    both(|db| {
        let [mut t1] = begun(db);
        shows(&mut t1, ALL, &["1|10", "2|20"]);
        let [mut t2] = begun(db);
        ok(&mut t2, "update test set value = value + 5 where id = 2");
        ok(&mut t2, "commit");
        let [mut t3] = begun(db);
        shows(&mut t3, ALL, &["1|10", "2|25"]);
        ok(&mut t3, "commit");
        ok(&mut t1, "update test set value = 0 where id = 1");
        ok(&mut t1, "commit");
        shows(&mut t1, ALL, &["1|0", "2|25"]);
    });
}
