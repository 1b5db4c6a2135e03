//! Power cuts at every step of a workload, each applied to the state left by the previous one.

use super::*;
use nacre_testing::{FaultStore, Random};

/// What the log has guaranteed to its callers.
#[derive(Clone, Copy, Debug)]
struct Promise {
    /// Number of records whose sync succeeded.
    acknowledged: u64,
    /// Number of records appended.
    appended: u64,
}

fn payload(number: u64) -> Vec<u8> {
    let mut out = number.to_le_bytes().to_vec();
    out.resize(8 + (number * 37 % 90) as usize, number as u8);
    out
}

fn number_of(payload: &[u8]) -> u64 {
    u64::from_le_bytes(payload[..8].try_into().unwrap())
}

/// Appends, syncs, writes snapshots and reopens until a call fails or the workload ends.
fn work(store: &Arc<dyn LocalStore>, promise: &mut Promise, random: &mut Random) -> Result<()> {
    let (mut log, _) = open_with(store, 150, 1)?;
    for _ in 0..6 {
        for _ in 0..1 + random.below(4) {
            log.append(&payload(promise.appended))?;
            promise.appended += 1;
        }
        match random.below(8) {
            0 => {}
            1 => {
                log.write_snapshot(log.position(), &promise.appended.to_le_bytes())?;
                promise.acknowledged = promise.appended;
            }
            2 => {
                log.close()?;
                promise.acknowledged = promise.appended;
                drop(log);
                log = open_with(store, 150, 1)?.0;
            }
            _ => {
                log.sync(log.position())?;
                promise.acknowledged = promise.appended;
            }
        }
    }
    Ok(())
}

/// Recovers and checks that the log contains everything promised and nothing else.
#[track_caller]
fn check(store: &Arc<dyn LocalStore>, promise: &mut Promise, case: &str) {
    let (_, replayed) = open_with(store, 150, 1).unwrap_or_else(|e| panic!("{case}: {e}"));
    let mut next = replayed.snapshot.as_deref().map_or(0, number_of);
    for (_, bytes) in &replayed.records {
        assert_eq!(*bytes, payload(next), "{case}: record {next}");
        next += 1;
    }
    assert!(next >= promise.acknowledged, "{case}: {next} records recovered of {promise:?}");
    assert!(next <= promise.appended, "{case}: {next} records recovered of {promise:?}");
    // Recovered records are promised too: the next recovery must find them.
    *promise = Promise { acknowledged: next, appended: next };
}

#[test]
fn a_crash_at_every_step_loses_nothing_acknowledged() {
    let mut cases = 0;
    for seed in 1..=40u64 {
        let mut step = 0;
        loop {
            let mut random = Random::new(seed * 0x9e37_79b9 + 1);
            let mut promise = Promise { acknowledged: 0, appended: 0 };
            let faults = FaultStore::default();
            faults.fail_after(step);
            let store: Arc<dyn LocalStore> = Arc::new(faults.clone());
            let crashed = work(&store, &mut promise, &mut random).is_err();
            // The possible images of one crash differ; each must recover.
            for image in 0..3u64 {
                let case = format!("seed {seed}, step {step}, image {image}");
                let left = faults.after_crash(&mut Random::new(
                    seed * 1_000_003 + step as u64 * 101 + image + 1,
                ));
                check(&left, &mut promise.clone(), &case);
                cases += 1;
            }
            if !crashed {
                break;
            }
            step += 1;
        }
        assert!(step > 12, "the workload has only {step} steps");
    }
    assert!(cases > 3_000);
}

#[test]
fn crashes_in_a_row_on_the_same_files() {
    for seed in 1..=300u64 {
        let mut random = Random::new(seed * 0x0123_4567_89ab + 7);
        let mut promise = Promise { acknowledged: 0, appended: 0 };
        let mut files = memory();
        for round in 0..8 {
            let faults = FaultStore::with_files_of(files.as_ref());
            faults.fail_after(random.below(40) as usize);
            let store: Arc<dyn LocalStore> = Arc::new(faults.clone());
            let _ = work(&store, &mut promise, &mut random);
            files = faults.after_crash(&mut random);
            // In half of the cases the next crash happens during this recovery.
            if random.below(2) == 0 {
                let faults = FaultStore::with_files_of(files.as_ref());
                faults.fail_after(random.below(6) as usize);
                let store: Arc<dyn LocalStore> = Arc::new(faults.clone());
                let _ = open_with(&store, 150, 1);
                files = faults.after_crash(&mut random);
            }
            let faults = FaultStore::with_files_of(files.as_ref());
            let store: Arc<dyn LocalStore> = Arc::new(faults.clone());
            check(&store, &mut promise, &format!("seed {seed}, round {round}"));
            files = faults.after_crash(&mut random);
        }
    }
}

#[test]
fn a_crash_at_every_step_of_a_snapshot_keeps_the_state() {
    // A log with a snapshot, several sealed chunks and records in the last one.
    let base = memory();
    let (log, _) = open_with(&base, 150, 1).unwrap();
    for number in 0..30 {
        commit(&log, &payload(number));
        if number == 9 {
            log.write_snapshot(log.position(), &10u64.to_le_bytes()).unwrap();
        }
    }
    drop(log);
    let mut step = 0;
    loop {
        let faults = FaultStore::with_files_of(base.as_ref());
        let store: Arc<dyn LocalStore> = Arc::new(faults.clone());
        let (log, replayed) = open_with(&store, 150, 1).unwrap();
        assert_eq!(replayed.records.len(), 20);
        faults.fail_after(step);
        let result = log.write_snapshot(log.position(), &30u64.to_le_bytes());
        let done = faults.steps() <= step;
        for seed in 1..=50 {
            let left = faults.after_crash(&mut Random::new(seed * 7919));
            let mut promise = Promise { acknowledged: 30, appended: 30 };
            check(&left, &mut promise, &format!("step {step}, seed {seed}, snapshot {result:?}"));
            check(&left, &mut promise, &format!("step {step}, seed {seed}, second recovery"));
        }
        if done {
            break;
        }
        step += 1;
    }
    assert!(step > 6, "a snapshot has only {step} steps");
}

/// A failed sync may leave bytes that the next process can read but that no later sync persists.
/// Recovered records must be durable nevertheless.
#[test]
fn what_a_failed_sync_left_is_durable_once_it_is_recovered() {
    for synced in 0..3 {
        for cut in 1..40 {
            let faults = FaultStore::default();
            let store: Arc<dyn LocalStore> = Arc::new(faults.clone());
            let (log, _) = open(&store).unwrap();
            for number in 0..synced {
                log.append(&payload(number)).unwrap();
                log.sync(log.position()).unwrap();
            }
            log.append(&payload(synced)).unwrap();
            faults.fail_next("sync");
            log.sync(log.position()).unwrap_err();
            drop(log);

            // The process restarts, but not the machine.
            let (log, replayed) = open(&store).unwrap();
            let recovered = replayed.records.len() as u64;
            log.append(&payload(recovered)).unwrap();
            log.sync(log.position()).unwrap();
            drop(log);

            let left = faults.after_crash(&mut Random::new(cut));
            let (_, replayed) =
                open(&left).unwrap_or_else(|e| panic!("{synced} records, cut {cut}: {e}"));
            let expected: Vec<Vec<u8>> = (0..=recovered).map(payload).collect();
            assert_eq!(replayed.payloads(), expected, "{synced} records, cut {cut}");
        }
    }
}
