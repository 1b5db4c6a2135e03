//! Histories of native threads on one database in memory, with a concurrent thread that flushes and
//! merges.

use crate::clock::SimEntropy;
use crate::isolation::history::History;
use crate::isolation::work::{Kind, last, setup, tasks, transact};
use nacre_native::{block_on, memory_host};
use nacre_testing::Random;
use nacredb::{Database, Host, Options};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Runs one history. The seed determines the operations, the machine their order.
pub fn run(seed: u64, kind: Kind) -> Result<History, String> {
    let mut random = Random::with_purpose(seed, "native");
    let (lists, sessions) = tasks(&mut random, 4, 12);
    let options = Options {
        segment_rows: 4,
        flush_bytes: *random.pick(&[200, 2_000, 1 << 20]),
        lock_timeout_ms: 500,
        ..Options::default()
    };
    let host = Host { entropy: SimEntropy::new(seed), ..memory_host() };
    let db = block_on(Database::open(host, options)).map_err(|e| e.to_string())?;
    block_on(db.session().execute(&setup(lists), &[])).map_err(|e| e.to_string())?;
    let clock = AtomicU64::new(0);
    let tick = || clock.fetch_add(1, Ordering::SeqCst);
    let over = AtomicBool::new(false);
    let mut history = std::thread::scope(|scope| -> Result<History, String> {
        let keeper = scope.spawn(|| {
            let mut session = db.session();
            while !over.load(Ordering::Relaxed) {
                for sql in ["optimize table l flush", "optimize table l full"] {
                    block_on(session.execute(sql, &[])).map_err(|e| format!("{sql}: {e}"))?;
                    std::thread::yield_now();
                }
            }
            Ok::<_, String>(())
        });
        let workers: Vec<_> = sessions
            .iter()
            .map(|tasks| {
                scope.spawn(|| {
                    let mut session = db.session();
                    let pause = async |_: &'static str| std::thread::yield_now();
                    let each = tasks
                        .iter()
                        .map(|task| block_on(transact(&mut session, task, kind, &tick, &pause)));
                    each.collect::<Result<History, String>>()
                })
            })
            .collect();
        let mut all = History::new();
        for worker in workers {
            all.extend(worker.join().map_err(|_| "a session panicked".to_string())??);
        }
        over.store(true, Ordering::Relaxed);
        keeper.join().map_err(|_| "house-keeping panicked".to_string())??;
        Ok(all)
    })?;
    let pause = async |_: &'static str| {};
    history.push(block_on(transact(&mut db.session(), &last(lists), Kind::Plain, &tick, &pause))?);
    Ok(history)
}
