//! A partition while records are applied to it: its rows in memory, and what becomes of its
//! segments.

use crate::record::{FlushedRange, NewSegment};
use crate::table::partition::Partition;
use crate::table::version::Table;
use nacre_rowstore::{Change, Node, Version};
use nacre_types::hash::{Map, Set};
use nacre_types::sorted::SortedMap;
use nacre_types::{Error, Result, Timestamp, Value, invariant, key};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// What records change in the list of segments of a partition.
#[derive(Default)]
pub(super) struct SegmentChanges {
    /// New segments and their deleted rows.
    pub added: SortedMap<u64, RoaringBitmap>,
    /// Listed segments that are dropped.
    pub dropped: Set<u64>,
    /// Rows of listed segments that are deleted.
    pub deleted: Map<u64, RoaringBitmap>,
}

/// Rows of a partition that were written or moved, for what must be done once they are visible.
pub(super) type Touched = Vec<(u32, Arc<Node>)>;

/// A partition of a table to which records are applied.
pub(super) struct ReplayedPartition<'a> {
    pub table: &'a Table,
    pub partition: &'a Partition,
    pub segments: &'a mut SegmentChanges,
    /// `None` if the table has no readers yet: older versions are then removed at once.
    pub touched: Option<&'a mut Touched>,
}

/// Rejects a key that occurs twice in one record: a move and a write of a row are separate commits.
fn is_later(node: &Node, commit: Timestamp) -> Result<()> {
    match node.newest() {
        Some(newest) if newest.commit >= commit => {
            Err(Error::corrupt("log: a key is written twice in one commit"))
        }
        _ => Ok(()),
    }
}

impl ReplayedPartition<'_> {
    /// The rows of a segment that are deleted.
    pub fn segment(&mut self, id: u64) -> Result<&mut RoaringBitmap> {
        if self.segments.added.contains_key(&id) {
            return Ok(self.segments.added.or_insert_with(id, Default::default));
        }
        self.check_segment(id)?;
        Ok(self.segments.deleted.entry(id).or_default())
    }

    /// Checks that there is a segment.
    pub fn check_segment(&self, id: u64) -> Result<()> {
        match self.segments.added.contains_key(&id) || self.is_listed(id) {
            true => Ok(()),
            false => {
                let name = &self.table.schema().name;
                Err(Error::corrupt(format!("log: table {name} has no segment {id}")))
            }
        }
    }

    /// Whether a segment was there before these records, and they have not dropped it.
    fn is_listed(&self, id: u64) -> bool {
        let is_current = || self.partition.segment(id).is_some_and(|state| state.is_current());
        !self.segments.dropped.contains(&id) && is_current()
    }

    /// Adds a segment.
    pub fn add(&mut self, id: u64, deleted: RoaringBitmap) -> Result<()> {
        let is_known = self.partition.segment(id).is_some();
        if is_known || self.segments.added.insert(id, deleted).is_some() {
            let name = &self.table.schema().name;
            return Err(Error::corrupt(format!(
                "log: segment {id} of table {name} is listed twice"
            )));
        }
        Ok(())
    }

    /// Adds segments.
    pub fn add_all(&mut self, segments: Vec<NewSegment>) -> Result<()> {
        segments.into_iter().try_for_each(|new| self.add(new.id, new.deleted))
    }

    /// Drops segments.
    pub fn drop_all(&mut self, ids: &[u64]) {
        for id in ids {
            if self.segments.added.remove(id).is_none() && self.is_listed(*id) {
                self.segments.deleted.remove(id);
                self.segments.dropped.insert(*id);
            }
        }
    }

    /// Notes how many hidden row numbers were given out.
    pub fn see_row_count(&mut self, count: u64) -> Result<()> {
        if !self.partition.may_have_given_out(count) {
            let name = &self.table.schema().name;
            return Err(Error::corrupt(format!("log: {count} rows were numbered in table {name}")));
        }
        self.partition.saw_row_numbers(count);
        Ok(())
    }

    pub fn put(&mut self, key: &[u8], commit: Timestamp, row: Vec<u8>) -> Result<()> {
        self.table.layout().validate_row(&row)?;
        let values = key::decode(key, &self.table.layout().key_types())?;
        if self.table.partition_of(key).number() != self.partition.number() {
            let (name, number) = (&self.table.schema().name, self.partition.number());
            return Err(Error::corrupt(format!(
                "log: a row of table {name} does not belong to partition {number}"
            )));
        }
        match values.first() {
            _ if self.table.key_columns().is_some() => {}
            Some(Value::Int(number)) => self.partition.saw_row_number(*number)?,
            _ => return Err(Error::corrupt("log: a row without a number")),
        }
        let node = self.partition.rowstore().get_or_insert(key);
        is_later(&node, commit)?;
        node.push_version(Version { commit, content: commit, change: Change::Put(row.into()) });
        debug_assert!(
            node.newest().is_some_and(|newest| newest.commit == commit),
            "a replayed row is not the newest"
        );
        self.touch(&node, commit);
        Ok(())
    }

    /// Removes a row in memory. Its copies in segments were deleted when it moved there, so nothing has to hide
    /// them; and a tombstone, which the writer does not keep as long, would hide a row that is loaded later.
    pub fn remove(&mut self, key: &[u8], commit: Timestamp) -> Result<()> {
        if let Some(node) = self.partition.rowstore().get(key) {
            is_later(&node, commit)?;
            node.push_version(Version { commit, content: commit, change: Change::Flushed });
            debug_assert!(
                node.newest().is_some_and(|newest| newest.commit == commit),
                "a replayed deletion is not the newest"
            );
            self.touch(&node, commit);
        }
        Ok(())
    }

    /// Removes what was replaced, unless older snapshots may see it.
    fn touch(&mut self, node: &Arc<Node>, commit: Timestamp) {
        match &mut self.touched {
            Some(touched) => touched.push((self.partition.number(), node.clone())),
            None => self.partition.rowstore().collect(node, commit),
        }
    }

    pub fn flush(
        &mut self,
        commit: Timestamp,
        upto: Timestamp,
        segments: Vec<NewSegment>,
        except: &[Vec<u8>],
    ) -> Result<()> {
        debug_assert!(upto < commit, "commit {commit} flushes rows up to commit {upto}");
        let except: Set<&[u8]> = except.iter().map(Vec::as_slice).collect();
        let partition = self.partition;
        partition.each_node(|node| {
            if !except.contains(&**node.key()) {
                self.flush_row(node, commit, upto);
            }
        });
        self.add_all(segments)
    }

    /// Repeats one commit of a flush.
    pub fn flush_range(
        &mut self,
        commit: Timestamp,
        range: &FlushedRange,
        segment: NewSegment,
    ) -> Result<()> {
        let except: Set<&[u8]> = range.except.iter().map(Vec::as_slice).collect();
        debug_assert!(range.upto < commit, "commit {commit} flushes rows up to {}", range.upto);
        let after = range.after.as_deref();
        let partition = self.partition;
        partition.each_node_until(after, Some(&range.to), |node| {
            debug_assert!(range.contains(node.key()), "a row outside its range is flushed");
            if !except.contains(&**node.key()) {
                self.flush_row(node, commit, range.upto);
            }
        });
        self.add(segment.id, segment.deleted)
    }

    /// Removes a row that a flush has moved, if it is old enough.
    fn flush_row(&mut self, node: &Arc<Node>, commit: Timestamp, upto: Timestamp) {
        let Some(newest) = node.newest().filter(|newest| newest.commit <= upto) else { return };
        if !matches!(newest.change, Change::Put(_)) {
            return;
        }
        let is_flushed = node.flush(commit, newest.commit);
        invariant!(is_flushed, "a row is locked while records are applied to its table");
        self.touch(node, commit);
    }
}
