//! A branch of the database, beside its writers: it begins as a state of the past, is written by a machine of its own,
//! and is opened again on empty disks. Its origin goes on, and removes what it has dropped.

use crate::tiers::blobs::SimBlobs;
use crate::tiers::machine::drive;
use crate::tiers::run::Run;
use crate::tiers::state::{Branch, State, text_of};
use nacredb::{AsOf, Blobs, Database, ErrorKind, Options, Result};
use std::sync::Arc;

/// The URL of the database that is branched.
pub(super) const ORIGIN: &str = "origin";
const URL: &str = "branch";

impl Run {
    /// Makes a branch, goes on with it, or drops it, sometimes.
    pub(super) fn branch_off(&mut self) {
        if self.uploaded == 0 || !self.reading.percent(5) {
            return;
        }
        match self.branch.take() {
            None => self.make_branch(),
            Some(branch) if self.reading.percent(15) => self.drop_branch(&branch),
            Some(branch) => self.go_on_with(branch),
        }
    }

    fn make_branch(&mut self) {
        let Some(origin) = self.options.blobs.clone() else { return };
        let seed = self.reading.bits();
        let store = SimBlobs::new(seed, self.clock.clone(), self.reading.below(10));
        store.reach(ORIGIN, &self.blobs);
        let position = match self.reading.percent(50) {
            true => self.reading.below(self.uploaded + 1),
            false => self.uploaded,
        };
        let to = Blobs { options: origin.options.clone(), ..Blobs::new(store.clone()) };
        let machine = self.machine();
        let host = self.host(&machine.disk);
        let at = Some(AsOf::Position(position));
        let made = drive(&self.clock, origin.branch(&host, ORIGIN, (&to, URL), at));
        self.tell(|| format!("a branch at {position}: {made:?}"));
        match made {
            Ok(begins) if begins > position => {
                self.fail(format!("a branch at {position} begins at {begins}"));
            }
            Ok(_) => {
                let allowed: Vec<State> =
                    self.allowed(position).map(|at| self.commits[at].state.clone()).collect();
                self.count("branches", 1);
                self.write_branch(store, &allowed);
            }
            Err(error) if error.kind() == ErrorKind::Unavailable => {}
            Err(error) if error.kind() == ErrorKind::NotFound && !self.is_kept(position) => {}
            Err(error) => self.fail(format!("a branch at {position}: {error}")),
        }
    }

    fn go_on_with(&mut self, branch: Branch) {
        self.count("branches that go on", 1);
        let allowed = [branch.state];
        self.write_branch(branch.blobs, &allowed);
    }

    /// Opens a branch on an empty disk, compares it, and writes a row.
    fn write_branch(&mut self, store: Arc<SimBlobs>, allowed: &[State]) {
        let db = match self.open_branch(&store) {
            Ok(db) => db,
            Err(error) if error.kind() == ErrorKind::Unavailable => return,
            Err(error) => return self.fail(format!("opening a branch: {error}")),
        };
        let Some(found) = self.contents(&db, "a branch") else { return };
        if !allowed.contains(&found) {
            return self.fail(format!("a branch has {found:?}, not {allowed:?}"));
        }
        let mut state = found;
        if let Some(rows) = &mut state {
            let (key, value) = (self.reading.between(200, 220), self.reading.between(0, 99));
            let sql = format!("replace into t values ({key}, {value}, '{}')", text_of(key, value));
            match drive(&self.clock, db.session().execute(&sql, &[])) {
                Ok(_) => rows.insert(key, value),
                Err(error) if error.kind() == ErrorKind::Unavailable => return,
                Err(error) => return self.fail(format!("writing a branch: {error}")),
            };
            while matches!(
                drive(&self.clock, db.maintain_async(nacredb::Budget::Steps(20))),
                Ok(true)
            ) {}
        }
        match drive(&self.clock, db.close()) {
            Ok(()) => self.branch = Some(Branch { blobs: store, state }),
            Err(error) if error.kind() == ErrorKind::Unavailable => {}
            Err(error) => self.fail(format!("closing a branch: {error}")),
        }
    }

    fn open_branch(&mut self, store: &Arc<SimBlobs>) -> Result<Database> {
        let machine = self.machine();
        let options = self.options.blobs.as_ref().map(|blobs| blobs.options.clone());
        let blobs = Blobs { options: options.unwrap_or_default(), ..Blobs::new(store.clone()) };
        let options = Options { blobs: Some(blobs), ..self.options.clone() };
        drive(&self.clock, Database::open(self.host(&machine.disk), options))
    }

    fn drop_branch(&mut self, branch: &Branch) {
        let blobs = Blobs::new(branch.blobs.clone());
        match drive(&self.clock, blobs.drop_branch(URL)) {
            Ok(()) => {
                self.count("dropped branches", 1);
                let left = branch.blobs.stored.names();
                let is_late = branch.blobs.faults() > 0;
                if !left.is_empty() && !is_late {
                    self.fail(format!("a branch that is dropped has {left:?}"));
                }
            }
            Err(error) if error.kind() == ErrorKind::Unavailable => {}
            Err(error) => self.fail(format!("dropping a branch: {error}")),
        }
    }
}
