//! States of the past of a database in blobs: opened to be read, restored, and branched, and compared with what each
//! commit left.

use nacre_native::{NativeClock, block_on, memory_host};
use nacre_session_tests::{kind, rows, run};
use nacre_testing::{MemoryBlobs, Random};
use nacredb::host::LeaseState;
use nacredb::{AsOf, Blobs, Budget, Database, ErrorKind, Options, TierOptions};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ALL: &str = "select concat(k, ':', v) from t order by k";

/// A database, and what its commits left.
struct World {
    options: Options,
    past: Vec<Commit>,
}

/// A commit. Background work writes to the log as well, so its record ends between two positions.
struct Commit {
    /// The end of the log before it.
    before: u64,
    /// The end of the log after it.
    after: u64,
    shown: Vec<String>,
}

impl World {
    /// Commits of some rows each, with flushes, merges, snapshots and uploads in between.
    fn new(seed: u64, commits: u64) -> World {
        let store = MemoryBlobs::new(Arc::new(NativeClock::new()));
        let tiers = TierOptions { lag: Duration::from_secs(3600), ..TierOptions::default() };
        let options = Options {
            snapshot_bytes: 6_000,
            flush_bytes: 2_000,
            segment_rows: 40,
            merge_from: 2,
            blobs: Some(Blobs { options: tiers, ..Blobs::new(store) }),
            ..Options::default()
        };
        let db = block_on(Database::open(memory_host(), options.clone())).unwrap();
        let mut session = db.session();
        run(&mut session, "create table t (k int primary key, v int, key (v))").unwrap();
        block_on(db.upload()).unwrap();
        let mut random = Random::new(seed);
        let (mut model, first) = (BTreeMap::new(), db.log_position());
        let mut past = vec![Commit { before: 0, after: first, shown: Vec::new() }];
        for number in 0..commits {
            let key = random.between(0, 300);
            let sql = if random.percent(70) {
                let values: Vec<String> = (key..key + 1 + random.between(0, 30))
                    .map(|key| {
                        model.insert(key, number);
                        format!("({key}, {number})")
                    })
                    .collect();
                format!("replace into t values {}", values.join(", "))
            } else {
                model.retain(|other, _| !(key..key + 15).contains(other));
                format!("delete from t where k >= {key} and k < {}", key + 15)
            };
            let before = db.log_position();
            run(&mut session, &sql).unwrap();
            let shown: Vec<String> =
                model.iter().map(|(key, value)| format!("{key}:{value}")).collect();
            assert_eq!(rows(&mut session, ALL).unwrap(), shown, "after {number}: {sql}");
            past.push(Commit { before, after: db.log_position(), shown });
            db.maintain(Budget::Steps(random.below(30) as usize)).unwrap();
            if random.percent(20) {
                block_on(db.upload()).unwrap();
            }
        }
        block_on(db.close()).unwrap();
        World { options, past }
    }

    fn blobs(&self) -> &Blobs {
        self.options.blobs.as_ref().unwrap()
    }

    /// Compares what a database shows with what it must at a position.
    fn check(&self, db: &Database, position: u64) {
        let certain = self.past.iter().rposition(|commit| commit.after <= position).unwrap();
        let shown = shown(db);
        let may_be = |at: usize| at == certain || self.past[at].before < position;
        let later = (certain..self.past.len()).take_while(|at| may_be(*at));
        let later = later.map(|at| &self.past[at]);
        let is_right = |commit: &Commit| commit.shown == shown;
        let found = self.past.iter().position(is_right);
        assert!(
            later.clone().any(is_right),
            "at {position} ({}): {found:?} instead of {certain}, after {} and before {:?}",
            db.log_position(),
            self.past[certain].after,
            self.past.get(certain + 1).map(|commit| (commit.before, commit.after)),
        );
        assert!(later.count() <= 2, "two commits cannot be in doubt");
    }

    /// A position from the first upload on, often the end of a commit.
    fn position(&self, random: &mut Random) -> u64 {
        let (first, last) = (self.past[0].after, self.past.last().unwrap().after);
        match random.percent(50) {
            true => self.past[random.below(self.past.len() as u64) as usize].after,
            false => first + random.below(last - first + 1),
        }
    }

    fn open(&self, at: AsOf) -> nacredb::Result<Database> {
        let options = Options { read_only: true, as_of: Some(at), ..self.options.clone() };
        block_on(Database::open(memory_host(), options))
    }

    fn restore(&self, at: Option<AsOf>) -> Database {
        let host = memory_host();
        let position = block_on(self.blobs().restore(&host, at)).unwrap();
        let db = block_on(Database::open(host, Options::default())).unwrap();
        assert_eq!(db.log_position(), position);
        db
    }

    /// Restores this number of states, and compares each with the model.
    fn check_restored(&self, seed: u64, count: u64) {
        let mut random = Random::new(seed);
        for _ in 0..count {
            let at = self.position(&mut random);
            let db = self.restore(Some(AsOf::Position(at)));
            self.check(&db, at);
        }
    }
}

fn shown(db: &Database) -> Vec<String> {
    rows(&mut db.session(), ALL).unwrap()
}

#[test]
fn a_state_of_the_past_is_what_its_last_commit_left() {
    let world = World::new(1, 120);
    let mut random = Random::new(2);
    for _ in 0..200 {
        let at = world.position(&mut random);
        let db = world.open(AsOf::Position(at)).unwrap();
        world.check(&db, at);
        assert!(!db.refresh().unwrap(), "it stays what it is");
    }
    world.check_restored(3, 100);
    let newest = world.restore(None);
    assert_eq!(shown(&newest), world.past.last().unwrap().shown);
    run(&mut newest.session(), "insert into t values (1000, 1)").unwrap();
    assert!(newest.check().unwrap().is_empty());
}

/// `cargo test --release -p nacre-session-tests a_thousand_states -- --ignored`
#[test]
#[ignore = "takes a minute"]
#[allow(clippy::print_stdout)]
fn a_thousand_states_are_restored() {
    let world = World::new(4, 1_000);
    let began = Instant::now();
    world.check_restored(5, 1_000);
    println!("tier: restored=1000 seconds={:.1}", began.elapsed().as_secs_f64());
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let world = World::new(6, 5);
    let last = world.past.last().unwrap().after;
    let error = world.open(AsOf::Position(last + 1_000_000)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    let options = Options { as_of: Some(AsOf::Position(last)), ..world.options.clone() };
    let error = block_on(Database::open(memory_host(), options)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let options = Options { as_of: Some(AsOf::Position(0)), read_only: true, ..Options::default() };
    let error = block_on(Database::open(memory_host(), options)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let db = world.open(AsOf::Position(last)).unwrap();
    assert_eq!(kind(&mut db.session(), "delete from t"), Some(ErrorKind::Unsupported));
    let host = memory_host();
    host.store.create("mine").unwrap();
    let error = block_on(world.blobs().restore(&host, None)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
}

#[test]
fn a_reader_takes_a_lease_and_waits_for_positions() {
    let world = World::new(7, 5);
    let writer = block_on(Database::open(memory_host(), world.options.clone())).unwrap();
    let options = Options { read_only: true, ..world.options.clone() };
    let reader = block_on(Database::open(memory_host(), options)).unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    while reader.lag().unwrap().lease != LeaseState::Held {
        assert!(Instant::now() < until, "{:?}", reader.lag());
        std::thread::sleep(Duration::from_millis(5));
    }
    run(&mut writer.session(), "replace into t values (7, 777)").unwrap();
    let position = writer.log_position();
    let timeout = Duration::from_millis(50);
    let error = block_on(reader.wait_for(position, timeout)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    block_on(writer.upload()).unwrap();
    block_on(reader.wait_for(position, Duration::from_secs(30))).unwrap();
    assert!(shown(&reader).contains(&"7:777".to_string()));
    block_on(reader.close()).unwrap();
    block_on(writer.wait_for(position, Duration::ZERO)).unwrap();
}
