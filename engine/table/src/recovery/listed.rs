//! The segments of a partition during a replay.

use crate::record::NewSegment;
use nacre_types::hash::Map;
use roaring::RoaringBitmap;

/// Ids and deleted rows of segments, in the order they were added. A log may name a segment for
/// each row that it moves, so they are found by a map.
#[derive(Default)]
pub(super) struct Listed {
    all: Vec<(u64, RoaringBitmap)>,
    /// Positions in `all`, by id. A damaged log may add an id twice, and the first one counts here.
    places: Map<u64, usize>,
}

impl Listed {
    /// Adds segments.
    pub fn add(&mut self, segments: impl IntoIterator<Item = (u64, RoaringBitmap)>) {
        for (id, deleted) in segments {
            self.places.entry(id).or_insert(self.all.len());
            self.all.push((id, deleted));
        }
        debug_assert!(
            self.places.len() <= self.all.len(),
            "{} places of {} segments",
            self.places.len(),
            self.all.len()
        );
    }

    /// Adds segments that a record names.
    pub fn add_new(&mut self, segments: impl IntoIterator<Item = NewSegment>) {
        self.add(segments.into_iter().map(|segment| (segment.id, segment.deleted)));
    }

    /// The deleted rows of a segment.
    pub fn deleted(&mut self, id: u64) -> Option<&mut RoaringBitmap> {
        let place = *self.places.get(&id)?;
        let found = self.all.get_mut(place);
        debug_assert!(
            found.as_ref().is_some_and(|(known, _)| *known == id),
            "segment {id} is not in place {place}"
        );
        found.map(|(_, deleted)| deleted)
    }

    /// Removes segments.
    pub fn remove(&mut self, ids: &[u64]) {
        let mut kept = std::mem::take(self).all;
        kept.retain(|(id, _)| !ids.contains(id));
        self.add(kept);
        debug_assert!(
            ids.iter().all(|id| !self.places.contains_key(id)),
            "a segment is listed after it was removed"
        );
    }

    /// All segments.
    pub fn into_all(self) -> Vec<(u64, RoaringBitmap)> {
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::Listed;
    use roaring::RoaringBitmap;

    #[test]
    fn segments_are_found_after_others_are_removed() {
        let mut listed = Listed::default();
        listed.add((1..=5).map(|id| (id, RoaringBitmap::new())));
        listed.add([(2, RoaringBitmap::from_iter([9]))]);
        if let Some(deleted) = listed.deleted(4) {
            deleted.insert(7);
        }
        listed.remove(&[1, 3]);
        assert!(listed.deleted(1).is_none() && listed.deleted(6).is_none());
        assert_eq!(listed.deleted(4).map(|rows| rows.len()), Some(1));
        assert_eq!(listed.deleted(2).map(|rows| rows.len()), Some(0), "the first of two");
        let ids: Vec<u64> = listed.into_all().into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, [2, 4, 5, 2], "in the order they were added");
    }
}
