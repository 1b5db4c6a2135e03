//! States of the past, beside the writers: opened to be read, and restored to empty disks. A state that was uploaded
//! within the history must be there.

use crate::tiers::machine::drive;
use crate::tiers::run::{Gap, Run};
use nacredb::host::Clock;
use nacredb::{AsOf, Blobs, Database, ErrorKind, Options, Result};

/// How much longer than what a run has seen an upload may have taken effect, in microseconds.
const SLACK_US: i64 = 15_000_000;

impl Run {
    /// Notes how far the log was uploaded at a time.
    pub(super) fn note_upload(&mut self) {
        // More may be uploaded than the run has asked for: uploads go on inside statements.
        let known = self.writer.db.as_ref().and_then(Database::uploaded_position);
        let (position, now_us) = (self.uploaded.max(known.unwrap_or(0)), self.clock.wall_us());
        if let Some(gap) = self.gaps.last_mut()
            && gap.to.is_none()
            && gap.least < position
        {
            gap.to = Some(position);
        }
        // Once its writer has no answer, a newer one may be there at any time.
        let newest_us = self.blobs.unanswered_us().map_or(now_us, |us| us.min(now_us));
        match self.uploads.last_mut() {
            Some((last, at_us)) if *last == position => *at_us = newest_us.max(*at_us),
            _ => self.uploads.push((position, newest_us)),
        }
    }

    /// Opens or restores a state of the past, sometimes.
    pub(super) fn look_back(&mut self) {
        let Some(blobs) = self.options.blobs.clone() else { return };
        if self.uploaded == 0 || !self.reading.percent(7) {
            return;
        }
        let position = match self.reading.percent(50) {
            true => self.reading.below(self.uploaded + 1),
            false => {
                let at = self.reading.below(self.commits.len() as u64) as usize;
                self.commits[at].after.min(self.uploaded)
            }
        };
        let restores = self.reading.percent(40);
        let opened = match restores {
            true => self.restored(&blobs, position),
            false => self.opened(position),
        };
        let what = if restores { "a restored state" } else { "a state of the past" };
        match opened {
            Ok(db) => {
                self.count(if restores { "restored" } else { "opened as of" }, 1);
                let Some(found) = self.contents(&db, what) else { return };
                let allowed = self.allowed(position);
                if !allowed.clone().any(|at| self.commits[at].state == found) {
                    let expected = self.commits[*allowed.end()].state.clone();
                    self.fail(format!("{what} at {position} has {found:?}, not {expected:?}"));
                }
                self.tell(|| format!("{what} at {position} is right"));
            }
            Err(error) if error.kind() == ErrorKind::Unavailable => {}
            Err(error) if error.kind() == ErrorKind::NotFound && !self.is_kept(position) => {
                self.count("states not kept", 1);
            }
            Err(error) => self.fail(format!("{what} at {position}: {error}")),
        }
    }

    /// Whether the history must have the state at a position.
    pub(super) fn is_kept(&self, position: u64) -> bool {
        // What a process that ended has not uploaded of its log has no history.
        let is_in = |gap: &Gap| gap.from < position && gap.to.is_none_or(|to| position < to);
        if self.gaps.iter().any(is_in) {
            return false;
        }
        let history = self.options.blobs.as_ref().map(|blobs| blobs.options.history);
        let history_us = history.map_or(0, |history| history.as_micros() as i64);
        let last = self.uploads.iter().rfind(|(uploaded, _)| (1..=position).contains(uploaded));
        let (_, at_us) = last.copied().unwrap_or((0, i64::MIN));
        at_us.saturating_add(history_us - SLACK_US) > self.clock.wall_us() && history_us > SLACK_US
    }

    fn opened(&mut self, position: u64) -> Result<Database> {
        let machine = self.machine();
        let as_of = Some(AsOf::Position(position));
        let options = Options { read_only: true, as_of, ..self.options.clone() };
        drive(&self.clock, Database::open(self.host(&machine.disk), options))
    }

    fn restored(&mut self, blobs: &Blobs, position: u64) -> Result<Database> {
        let machine = self.machine();
        let host = self.host(&machine.disk);
        let at = Some(AsOf::Position(position));
        let reached = drive(&self.clock, blobs.restore(&host, at))?;
        let options = Options { blobs: None, ..self.options.clone() };
        let db = drive(&self.clock, Database::open(host, options))?;
        let end = db.log_position();
        if reached > position || end != reached {
            self.fail(format!("restored to {reached} of {position}, and the log ends at {end}"));
        }
        match drive(&self.clock, db.check_async()) {
            Ok(findings) if findings.is_empty() => {}
            other => self.fail(format!("a restored database at {position}: {other:?}")),
        }
        Ok(db)
    }
}
