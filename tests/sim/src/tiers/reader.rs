//! A database that only reads the blobs, beside their writers: it follows them from one consistent state to the
//! next, and between two looks what it shows does not change.

use crate::tiers::machine::drive;
use crate::tiers::run::Run;
use crate::tiers::state::Reader;
use nacredb::host::Clock;
use nacredb::{Database, ErrorKind, Options};

/// How long a reader may go without a look, in microseconds: what it reads is kept for a minute.
const LOOKS_WITHIN_US: i64 = 40_000_000;

impl Run {
    /// Opens a database that only reads the blobs. It shows the newest upload.
    pub(super) fn attach_reader(&mut self) {
        let machine = self.machine();
        let host = self.host(&machine.disk);
        let options = Options { read_only: true, ..self.options.clone() };
        let uploaded = self.uploaded;
        let looked_us = self.clock.wall_us();
        let db = match drive(&self.clock, Database::open(host, options)) {
            Ok(db) => db,
            Err(error) if error.kind() == ErrorKind::Unavailable => return,
            Err(error) if error.kind() == ErrorKind::NotFound && uploaded == 0 => return,
            Err(error) => return self.fail(format!("a reader: {error}")),
        };
        self.count("readers", 1);
        let reader = Reader { db, position: uploaded, state: None, looked_us };
        self.look(reader);
    }

    /// Lets the reader follow the writer.
    pub(super) fn refresh_reader(&mut self) {
        let Some(reader) = self.reader.take() else { return self.attach_reader() };
        let now_us = self.clock.wall_us();
        if now_us - reader.looked_us > LOOKS_WITHIN_US {
            // Its blobs may be gone.
            return self.attach_reader();
        }
        let position = reader.position;
        if self.random.percent(30) {
            let Some(found) = self.contents(&reader.db, "a reader") else { return };
            if found != reader.state {
                let state = &reader.state;
                return self.fail(format!("a reader at {position} has {found:?}, not {state:?}"));
            }
        }
        let uploaded = self.uploaded.max(position);
        match drive(&self.clock, reader.db.refresh_async()) {
            Ok(is_new) => {
                self.tell(|| format!("the reader goes on from {position}: {is_new}"));
                self.count("refreshes", u64::from(is_new));
                self.look(Reader { position: uploaded, looked_us: now_us, ..reader });
            }
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                let Some(found) = self.contents(&reader.db, "a reader") else { return };
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
        let Some(found) = self.contents(&reader.db, "a reader") else { return };
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
