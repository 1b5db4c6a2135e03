//! Background work that failed. It is not retried at once, which would repeat the failure and keep
//! other work waiting, but once a flush or a snapshot has been written, or its partition changes.

use crate::catalog::registry::Catalog;
use crate::maintenance::part_build::PartId;
use crate::record::Place;
use crate::table::agenda::Work;
use nacre_types::hash::Set;

/// Failed work that nothing has retried yet.
#[derive(Default)]
pub(crate) struct Failed {
    places: Set<(Work, Place)>,
    parts: Set<PartId>,
}

impl Failed {
    /// Notes that work of a kind failed in a partition.
    pub fn add(&mut self, work: Work, place: Place) {
        self.places.insert((work, place));
    }

    /// Notes that the build of an index part failed.
    pub fn add_part(&mut self, part: PartId, place: Place) {
        self.parts.insert(part);
        self.add(Work::IndexParts, place);
        debug_assert!(
            self.parts.contains(&part) && self.has(Work::IndexParts, place),
            "the failure of {part:?} is not noted"
        );
    }

    /// The index parts.
    pub fn parts(&self) -> &Set<PartId> {
        &self.parts
    }

    /// Whether work of a kind failed in a partition.
    pub fn has(&self, work: Work, place: Place) -> bool {
        self.places.contains(&(work, place))
    }

    /// Puts all of it on the agenda again.
    pub fn retry(&mut self, catalog: &Catalog) {
        self.parts.clear();
        for (work, place) in self.places.drain() {
            if let Some((table, number)) = catalog.at_place(place) {
                table.partition(number).consider(work);
            }
        }
        debug_assert!(self.places.is_empty(), "failed work is retried only in part");
    }
}
