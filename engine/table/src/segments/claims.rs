//! Rows of a segment that transactions are about to delete together: row locks of one bit each.
//!
//! A claim is taken and a row leaves its segment only under the commit lock. So a row that is
//! claimed stays where it is until its owner commits or gives it back: it is not moved to memory,
//! not merged, and not replaced by a load.

use nacre_rowstore::{Blocker, Owner};
use nacre_types::invariant;
use roaring::RoaringBitmap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The claimed rows of one segment, by owner.
#[derive(Default)]
pub(crate) struct Claims {
    /// Whether there are any. Most segments have none.
    is_any: AtomicBool,
    rows: Mutex<Vec<(Arc<Owner>, RoaringBitmap)>>,
}

impl Claims {
    fn guard(&self) -> MutexGuard<'_, Vec<(Arc<Owner>, RoaringBitmap)>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether any row is claimed.
    pub fn is_any(&self) -> bool {
        self.is_any.load(Ordering::Acquire)
    }

    /// Claims rows, or none of them if another owner has claimed one; returns that owner. Must be
    /// called under the commit lock.
    pub fn claim(
        &self,
        owner: &Arc<Owner>,
        rows: &RoaringBitmap,
    ) -> std::result::Result<(), Blocker> {
        debug_assert!(!rows.is_empty(), "no row is claimed");
        let mut claims = self.guard();
        if let Some(blocker) = other(&claims, owner, |claimed| !claimed.is_disjoint(rows)) {
            return Err(blocker);
        }
        match claims.iter_mut().find(|(known, _)| Arc::ptr_eq(known, owner)) {
            Some((_, claimed)) => {
                debug_assert!(claimed.is_disjoint(rows), "a row is claimed twice by one owner");
                *claimed |= rows;
            }
            None => claims.push((owner.clone(), rows.clone())),
        }
        self.is_any.store(true, Ordering::Release);
        Ok(())
    }

    /// Gives claimed rows back. The caller then wakes those that wait for the owner.
    pub fn release(&self, owner: &Arc<Owner>, rows: &RoaringBitmap) {
        let mut claims = self.guard();
        let at = claims.iter().position(|(known, _)| Arc::ptr_eq(known, owner));
        invariant!(at.is_some(), "claimed rows are given back that have no claim");
        let Some(at) = at else { return };
        debug_assert!(rows.is_subset(&claims[at].1), "a row is given back that is not claimed");
        claims[at].1 -= rows;
        if claims[at].1.is_empty() {
            claims.swap_remove(at);
        }
        self.is_any.store(!claims.is_empty(), Ordering::Release);
    }

    /// Whether this owner has claimed a row.
    pub fn is_own(&self, owner: &Arc<Owner>, row: u32) -> bool {
        self.is_any()
            && self
                .guard()
                .iter()
                .any(|(known, rows)| Arc::ptr_eq(known, owner) && rows.contains(row))
    }

    /// Whether this owner has claimed all of these rows.
    pub fn has_all(&self, owner: &Arc<Owner>, rows: &RoaringBitmap) -> bool {
        let is_own = |(known, claimed): &(Arc<Owner>, RoaringBitmap)| {
            Arc::ptr_eq(known, owner) && rows.is_subset(claimed)
        };
        self.guard().iter().any(is_own)
    }

    /// The owner that has claimed a row, if it is another one.
    pub fn blocker(&self, owner: &Arc<Owner>, row: u32) -> Option<Blocker> {
        if !self.is_any() {
            return None;
        }
        other(&self.guard(), owner, |claimed| claimed.contains(row))
    }

    /// Another owner that has claimed one of these rows.
    pub fn blocker_of_any(&self, owner: &Arc<Owner>, rows: &RoaringBitmap) -> Option<Blocker> {
        if !self.is_any() {
            return None;
        }
        other(&self.guard(), owner, |claimed| !claimed.is_disjoint(rows))
    }

    /// Whether any owner has claimed one of these rows.
    pub fn has_any(&self, rows: &RoaringBitmap) -> bool {
        self.is_any() && self.guard().iter().any(|(_, claimed)| !claimed.is_disjoint(rows))
    }
}

/// An owner besides `owner` whose rows satisfy a condition. Rows are given back before the release
/// is counted, so a blocker made while they are claimed sees the release.
fn other(
    claims: &[(Arc<Owner>, RoaringBitmap)],
    owner: &Arc<Owner>,
    is_met: impl Fn(&RoaringBitmap) -> bool,
) -> Option<Blocker> {
    debug_assert!(
        claims.iter().all(|(_, rows)| !rows.is_empty()),
        "an owner without claimed rows is kept"
    );
    claims
        .iter()
        .find(|(known, rows)| !Arc::ptr_eq(known, owner) && is_met(rows))
        .map(|(known, _)| Blocker::new(known.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: impl IntoIterator<Item = u32>) -> RoaringBitmap {
        rows.into_iter().collect()
    }

    #[test]
    fn a_claimed_row_is_claimed_by_no_other_until_it_is_given_back() {
        let (claims, first, second) = (Claims::default(), Owner::new(1), Owner::new(2));
        claims.claim(&first, &rows(0..10)).ok().unwrap();
        let blocker = claims.claim(&second, &rows(9..12)).err().unwrap();
        assert!(Arc::ptr_eq(blocker.owner(), &first));
        assert!(!claims.is_own(&second, 11), "a part of the rows was claimed");
        claims.claim(&second, &rows(10..12)).ok().unwrap();
        assert!(claims.is_own(&first, 9) && claims.blocker(&first, 9).is_none());
        assert!(claims.blocker(&second, 9).is_some());
        claims.release(&first, &rows(0..10));
        assert!(claims.blocker(&second, 9).is_none() && claims.is_any());
        claims.claim(&second, &rows(9..10)).ok().unwrap();
        claims.release(&second, &rows(9..12));
        assert!(!claims.is_any());
    }
}
