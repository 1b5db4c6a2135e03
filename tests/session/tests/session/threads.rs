//! Sessions that move between threads.

use nacre_native::block_on;
use nacre_session_tests::{accounts, kind, memory_host, rows, run};
use nacredb::{Appender, Database, Options, Prepared, QueryResult, Session, Value};
use std::thread;

fn moves<T: Send>() {}

#[test]
fn a_session_and_what_it_returns_may_move_to_another_thread() {
    moves::<Session>();
    moves::<Database>();
    moves::<Prepared>();
    moves::<QueryResult>();
    moves::<Appender>();
}

/// Locks, savepoints and the snapshot belong to the session, whichever thread runs it.
#[test]
fn a_transaction_goes_on_in_another_thread() {
    let db = accounts().unwrap();
    let mut session = db.session();
    run(&mut session, "create table m (id int primary key, n int); insert into m values (1, 1)")
        .unwrap();
    let prepared = session.prepare("update m set n = n + ? where id = 1").unwrap();
    run(&mut session, "begin").unwrap();
    block_on(session.run(&prepared, &[Value::Int(1)])).unwrap();
    let (mut session, prepared) = thread::spawn(move || {
        run(&mut session, "savepoint a; insert into m values (2, 2); rollback to a").unwrap();
        block_on(session.run(&prepared, &[Value::Int(10)])).unwrap();
        (session, prepared)
    })
    .join()
    .unwrap();
    let other = db.clone();
    let seen = thread::spawn(move || rows(&mut other.session(), "select n from m").unwrap());
    assert_eq!(seen.join().unwrap(), ["1"]);
    thread::spawn(move || {
        block_on(session.run(&prepared, &[Value::Int(100)])).unwrap();
        run(&mut session, "commit").unwrap();
        drop(session);
    })
    .join()
    .unwrap();
    assert_eq!(rows(&mut db.session(), "select n from m").unwrap(), ["112"]);
}

/// Every statement of every session runs on another thread than the one before it.
#[test]
fn sessions_that_change_threads_with_every_statement_lose_nothing() {
    let patient = Options { lock_timeout_ms: 20_000, ..Options::default() };
    let db = block_on(Database::open(memory_host(), patient)).unwrap();
    run(&mut db.session(), "create table c (id int primary key, n int)").unwrap();
    run(&mut db.session(), "insert into c values (0, 0), (1, 0), (2, 0)").unwrap();
    let mut sessions: Vec<Session> = (0..12).map(|_| db.session()).collect();
    for round in 0..10 {
        let workers: Vec<_> = sessions
            .drain(..)
            .enumerate()
            .map(|(at, mut session)| {
                thread::spawn(move || {
                    let id = (at + round) % 3;
                    run(&mut session, &format!("update c set n = n + 1 where id = {id}")).unwrap();
                    session
                })
            })
            .collect();
        sessions = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
        sessions.rotate_left(1);
    }
    assert_eq!(rows(&mut db.session(), "select sum(n) from c").unwrap(), ["120"]);
    assert_eq!(
        kind(&mut sessions[0], "select n from missing").map(|kind| kind.name()),
        Some("not_found")
    );
}
