//! A database that only reads the blobs, beside their writers: it follows them from one consistent state to the
//! next, and between two looks what it shows does not change.

use crate::tiers::machine::drive;
use crate::tiers::run::Run;
use crate::tiers::state::{LEASE, Reader, SMALL_READER};
use nacredb::host::{Clock, LeaseState, Rest};
use nacredb::{Database, ErrorKind, Options, Value};

/// How long a reader without a lease may go without a look, in microseconds: what it reads is kept for a minute.
const LOOKS_WITHIN_US: i64 = 40_000_000;
/// A time that no lease survives, in microseconds.
const LONG_US: u64 = 20 * 60 * 1_000_000;

/// Whether a reader may rely on what it shows.
fn is_held(db: &Database) -> bool {
    db.lag().is_some_and(|lag| lag.lease == LeaseState::Held)
}

impl Run {
    /// Opens a database that only reads the blobs. It shows the newest upload.
    pub(super) fn attach_reader(&mut self) {
        let machine = self.machine();
        let host = self.host(&machine.disk);
        let mut options = Options { read_only: true, ..self.options.clone() };
        let mut what = "a reader";
        if self.reading.percent(50)
            && let Some(blobs) = &mut options.blobs
        {
            // It keeps nothing of what it has read.
            (options.cache_bytes, blobs.options.disk_limit) = (0, 600);
            what = SMALL_READER;
        }
        let uploaded = self.uploaded;
        let looked_us = self.clock.wall_us();
        let db = match drive(&self.clock, Database::open(host, options)) {
            Ok(db) => db,
            Err(error) if error.kind() == ErrorKind::Unavailable => return,
            Err(error) if error.kind() == ErrorKind::NotFound && uploaded == 0 => return,
            Err(error) => return self.fail(format!("a reader: {error}")),
        };
        self.count("readers", 1);
        if self.reading.percent(60) {
            self.warm_itself(&db, what);
        }
        let reader = Reader { db, what, position: uploaded, state: None, looked_us };
        self.look(reader);
    }

    /// Lets a reader bring its indexes to its disk, as it does by itself while it has nothing else to do.
    fn warm_itself(&mut self, db: &Database, what: &str) {
        let tiers = self.options.blobs.as_ref().map(|blobs| &blobs.options);
        let has_room = tiers.is_some_and(|tiers| tiers.warms && tiers.disk_limit == u64::MAX);
        if self.reading.percent(50) {
            // For longer than its patience.
            self.blobs.go_away(30);
        }
        for _ in 0..500 {
            match drive(&self.clock, db.upload_step()) {
                Ok(Rest::No) => {}
                Ok(Rest::For(rest)) if rest < LEASE / 4 => {
                    self.clock.advance_us(rest.as_micros() as u64 + 1);
                }
                _ => break,
            }
        }
        self.blobs.go_away(0);
        if !has_room || what == SMALL_READER {
            return;
        }
        let sql = "select sum(bytes)::bigint, sum(bytes - local_bytes)::bigint from information_schema.cache \
                   where index_name is not null";
        let found = match drive(&self.clock, db.session().execute(sql, &[])) {
            Ok(found) => found.to_rows(),
            Err(error) => return self.fail(format!("{what} cannot tell what is warm: {error}")),
        };
        let (bytes, absent) = match found[0][..] {
            [Value::Int(bytes), Value::Int(absent)] => (bytes, absent),
            // It has no table, or no segment.
            [Value::Null, Value::Null] => return,
            _ => return self.fail(format!("what is warm: {found:?}")),
        };
        self.count("warm by themselves", u64::from(bytes > 0));
        if absent > 0 {
            self.fail(format!("{what} has {absent} of {bytes} bytes of indexes still to bring"));
        }
    }

    /// Lets time pass, sometimes more than a lease has. The reader renews its lease meanwhile, or does not.
    pub(super) fn pass(&mut self, us: u64) {
        let is_long = us > 1_000_000 && self.reading.percent(50);
        if !is_long {
            return self.clock.advance_us(us);
        }
        let renews = self.reading.percent(70);
        self.tell(|| format!("a long time passes; the reader renews its lease: {renews}"));
        let part_us = LEASE.as_micros() as u64 / 3;
        for _ in 0..LONG_US / part_us {
            self.clock.advance_us(part_us);
            if renews {
                self.renew_now();
            }
        }
        // What was dropped before is removed, and what is dropped now will be.
        for _ in 0..self.reading.below(4) {
            self.write();
            self.maintain();
            self.upload();
        }
    }

    /// Lets the reader renew its lease sometimes.
    pub(super) fn renew_lease(&mut self) {
        if self.reading.percent(60) {
            self.renew_now();
        }
    }

    fn renew_now(&mut self) {
        let Some(reader) = &self.reader else { return };
        let before = reader.db.lag().map(|lag| lag.lease);
        for _ in 0..3 {
            match drive(&self.clock, reader.db.upload_step()) {
                Ok(Rest::For(rest)) if rest < LEASE / 4 => {
                    self.clock.advance_us(rest.as_micros() as u64 + 1);
                }
                _ => break,
            }
        }
        let after = reader.db.lag().map(|lag| lag.lease);
        if before != after {
            self.tell(|| format!("the lease is {after:?} after {before:?}"));
            self.count("leases", u64::from(after == Some(LeaseState::Held)));
            self.count("lost leases", u64::from(before == Some(LeaseState::Lost)));
        }
    }

    /// Lets the reader follow the writer.
    pub(super) fn refresh_reader(&mut self) {
        let Some(reader) = self.reader.take() else { return self.attach_reader() };
        let now_us = self.clock.wall_us();
        let is_safe = is_held(&reader.db);
        let is_late = now_us - reader.looked_us > LOOKS_WITHIN_US;
        if is_late && !is_safe && self.reading.percent(50) {
            // Its blobs may be gone.
            return self.attach_reader();
        }
        self.count("late looks with a lease", u64::from(is_late && is_safe));
        let position = reader.position;
        self.may_miss = is_late && !is_safe;
        if self.random.percent(30) || is_late {
            let Some(found) = self.contents(&reader.db, reader.what) else { return };
            if found != reader.state {
                let state = &reader.state;
                return self.fail(format!("a reader at {position} has {found:?}, not {state:?}"));
            }
        }
        let uploaded = self.uploaded.max(position);
        self.may_miss |= !is_held(&reader.db);
        match drive(&self.clock, reader.db.refresh_async()) {
            Ok(is_new) => {
                self.tell(|| format!("the reader goes on from {position}: {is_new}"));
                self.count("refreshes", u64::from(is_new));
                self.may_miss = false;
                self.look(Reader { position: uploaded, looked_us: now_us, ..reader });
            }
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                let Some(found) = self.contents(&reader.db, reader.what) else { return };
                if found != reader.state {
                    self.fail(format!("a reader that failed has {found:?}"));
                }
                self.reader = Some(reader);
            }
            Err(error) => self.fail(format!("a reader goes on from {position}: {error}")),
        }
    }

    /// Compares what a reader shows with the commits. It must have reached the position that it was given.
    fn look(&mut self, reader: Reader) {
        let least = reader.position;
        let position = reader.db.lag().map_or(0, |lag| lag.position);
        let Some(found) = self.contents(&reader.db, reader.what) else { return };
        let allowed = self.allowed(position);
        let is_right = allowed.clone().any(|at| self.commits[at].state == found);
        if position < least || !is_right {
            let expected = self.commits[*allowed.end()].state.clone();
            return self.fail(format!(
                "a reader at {position} of {least} has {found:?}, not {expected:?}"
            ));
        }
        self.tell(|| format!("the reader shows position {position}"));
        self.reader = Some(Reader { position, state: found, ..reader });
    }
}
