//! A writer that another one has replaced, on a disk of its own.

use crate::disk::Ended;
use crate::tiers::machine::drive;
use crate::tiers::run::Run;
use crate::tiers::state::text_of;
use nacredb::{Database, ErrorKind};

impl Run {
    /// What the older writer does: it may commit on its own disk until it is told, and never afterwards.
    pub(super) fn write_older(&mut self) {
        if self.reading.percent(20) {
            self.reopen_older();
        }
        let Some(older) = self.older.take() else { return };
        let Some(db) = older.db.clone() else { return };
        for _ in 0..self.random.below(40) {
            if older.uploading.poll(&db, 4) {
                self.clock.advance_us(20_000);
            }
        }
        older.uploading.give_up();
        let key = self.random.between(500, 600);
        let sql = format!("replace into t values ({key}, 1, '{}')", text_of(key, 1));
        let outcome = drive(&self.clock, db.session().execute(&sql, &[])).map(drop);
        self.tell(|| format!("the older writer: {outcome:?}"));
        match outcome {
            Ok(()) if self.is_told => {
                self.fail("the older writer commits after it was told".into());
            }
            Ok(()) if self.holds_commits() => {
                self.fail("the older writer acknowledges what the newer one has not".into());
            }
            Err(error) if error.kind() == ErrorKind::InUse => {
                self.is_told = true;
                self.count("fenced", 1);
            }
            _ => {}
        }
        self.older = Some(older);
    }

    /// The older writer ends, and is opened again on its disk: it learns that it was replaced, unless the blob store
    /// is away.
    fn reopen_older(&mut self) {
        let Some(mut older) = self.older.take() else { return };
        let how = *self.reading.pick(&[Ended::PowerCut, Ended::Kill]);
        older.stop();
        older.disk.restart(how);
        if self.reading.percent(70) {
            self.blobs.go_away(1_000_000);
        }
        let (host, options) = (self.host(&older.disk), self.options.clone());
        let opened = drive(&self.clock, Database::open(host, options));
        self.blobs.go_away(0);
        let told = opened.as_ref().map(drop);
        self.tell(|| format!("the older writer is opened again: {told:?}"));
        match opened {
            Ok(_) if self.is_told => self.fail("the older writer opens after it was told".into()),
            Ok(db) => {
                self.count("older writers apart", 1);
                older.db = Some(db);
                self.older = Some(older);
            }
            Err(error) if error.kind() == ErrorKind::InUse => self.count("fenced", 1),
            Err(error) if error.kind() == ErrorKind::Unavailable => {}
            Err(error) => self.fail(format!("opening the older writer: {error}")),
        }
    }
}
