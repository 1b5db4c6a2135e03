//! Rows of a load that share a unique key, if the load skips duplicates.
//!
//! Whether such a row is skipped depends on those before it: one that is skipped itself is in no
//! other's way. So the rows are decided in the order of the load, again whenever the table skips
//! others of them. Rows that share no key with another row are not here.

use crate::load::loaded::{Loaded, Order};
use crate::load::staged::LoadedRow;
use nacre_types::{Error, Reason, Result, invariant};
use roaring::RoaringBitmap;

/// How often rows of a load may share a key with an earlier row of it.
const MAX_PLACES: usize = 4 << 20;

/// Collects the rows that share keys.
pub(super) struct Contests {
    /// How many places there may be.
    most: usize,
    /// Rows in the order of the load, and the number of a key that they share with others.
    places: Vec<(Order, LoadedRow, u32)>,
    keys: u32,
}

/// The rows of a load that share keys, and which of them are skipped.
#[derive(Default)]
pub(super) struct Contested {
    /// In the order of the load, each with the end of its keys in `keys`.
    rows: Vec<(LoadedRow, u32)>,
    /// Numbers of the keys that rows share with others.
    keys: Vec<u32>,
    distinct: usize,
    /// By file: all of the rows.
    all: Vec<RoaringBitmap>,
    /// By file: the rows that the table skipped when they were last decided.
    skipped: Vec<RoaringBitmap>,
    /// By file: the rows that give way to others of the load.
    rejected: Vec<RoaringBitmap>,
}

impl Default for Contests {
    fn default() -> Contests {
        Contests { most: MAX_PLACES, places: Vec::new(), keys: 0 }
    }
}

impl Contests {
    /// Adds the rows that share one key.
    pub fn add(&mut self, files: &[Loaded], rows: &[LoadedRow]) -> Result<()> {
        debug_assert!(rows.len() > 1, "{rows:?} shares a key with no other row");
        for row in rows {
            let order = files[row.file].order_of(row.row);
            self.places.push((order, *row, self.keys));
        }
        if self.places.len() > self.most {
            return Err(Error::limit(format!(
                "more than {} rows of a load have a unique value of another of its rows",
                self.most
            ))
            .with_reason(Reason::SharedKeys)
            .with_hint("load fewer rows at once"));
        }
        self.keys += 1;
        Ok(())
    }

    /// Decides the rows, as if the table skipped none.
    pub fn finish(mut self, files: usize) -> Contested {
        debug_assert!(
            self.places.len() <= self.most,
            "{} places of {} are decided",
            self.places.len(),
            self.most
        );
        self.places.sort_unstable();
        debug_assert!(
            self.places.iter().all(|(_, row, key)| row.file < files && *key < self.keys),
            "a contested row is in none of {files} files or has none of {} keys",
            self.keys
        );
        let empty = || vec![RoaringBitmap::new(); files];
        let mut contested = Contested {
            distinct: self.keys as usize,
            all: empty(),
            skipped: empty(),
            rejected: empty(),
            ..Contested::default()
        };
        for same in self.places.chunk_by(|a, b| a.1 == b.1) {
            let row = same[0].1;
            contested.keys.extend(same.iter().map(|(_, _, key)| *key));
            contested.rows.push((row, contested.keys.len() as u32));
            let is_new = contested.all[row.file].insert(row.row);
            invariant!(is_new, "row {row:?} of a load has two places in its order");
        }
        contested.decide();
        contested
    }
}

impl Contested {
    /// Decides the rows again if the table skips others of them than before.
    pub fn update(&mut self, skipped: &[RoaringBitmap]) {
        debug_assert!(
            self.all.is_empty() || self.all.len() == skipped.len(),
            "rows of {} files are contested, those of {} are skipped",
            self.all.len(),
            skipped.len()
        );
        let skipped: Vec<RoaringBitmap> =
            self.all.iter().zip(skipped).map(|(all, skipped)| all & skipped).collect();
        if self.skipped != skipped {
            self.skipped = skipped;
            self.decide();
        }
    }

    fn decide(&mut self) {
        let mut is_taken = vec![false; self.distinct];
        self.rejected.iter_mut().for_each(RoaringBitmap::clear);
        let mut start = 0;
        for (LoadedRow { file, row }, end) in &self.rows {
            let keys = &self.keys[start..*end as usize];
            debug_assert!(!keys.is_empty(), "row {row} of file {file} is contested without a key");
            start = *end as usize;
            if self.skipped[*file].contains(*row) {
                continue;
            }
            if keys.iter().any(|key| is_taken[*key as usize]) {
                self.rejected[*file].insert(*row);
            } else {
                keys.iter().for_each(|key| is_taken[*key as usize] = true);
            }
        }
        debug_assert!(start == self.keys.len(), "only {start} contested keys belong to rows");
        debug_assert!(
            self.rejected.iter().zip(&self.all).all(|(rejected, all)| rejected.is_subset(all)),
            "a row that is not contested gives way"
        );
    }

    /// The rows of a file that give way to others of the load; `None` if no rows are contested.
    pub fn rejected(&self, file: usize) -> Option<&RoaringBitmap> {
        self.rejected.get(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_column::{Batch, Vector};
    use nacre_host::LocalStore;
    use nacre_host::memory::MemoryStore;
    use nacre_segment::{BlockCache, ColumnSpec, Segment, SegmentBuilder};
    use nacre_types::{DataType, ErrorKind, Value};
    use std::sync::Arc;

    /// A file of a load, whose rows are in its order.
    fn file(rows: u32) -> Loaded {
        let spec = ColumnSpec { id: 0, data_type: DataType::Int64, nullable: false };
        let values: Vec<Value> = (0..rows).map(|row| Value::Int(i64::from(row))).collect();
        let column = Arc::new(Vector::from_values(DataType::Int64, &values));
        let mut builder = SegmentBuilder::new(vec![spec]);
        builder.push(&Batch::new(vec![column], rows as usize));
        let (store, name) = (MemoryStore::new(), "seg-0000000000000001");
        let file = store.create(name).unwrap();
        builder.write(file.as_ref()).unwrap();
        let segment = Arc::new(Segment::open(file, name, 1, BlockCache::new(0)).unwrap());
        let numbers = (0..rows).map(|row| (row, i64::from(row))).collect();
        Loaded { partition: 0, segment, rejected: RoaringBitmap::new(), round: 0, numbers }
    }

    fn rows(rows: &[u32]) -> Vec<LoadedRow> {
        rows.iter().map(|row| LoadedRow { file: 0, row: *row }).collect()
    }

    fn rejected(contested: &Contested) -> Vec<u32> {
        contested.rejected(0).unwrap().iter().collect()
    }

    #[test]
    fn a_row_that_is_skipped_is_in_the_way_of_no_other() {
        let files = [file(4)];
        let mut contests = Contests::default();
        for same in [&[0, 1], &[1, 2], &[2, 3]] {
            contests.add(&files, &rows(same)).unwrap();
        }
        let mut contested = contests.finish(1);
        // The first takes a key of the second, so the third is free, and the fourth is not.
        assert_eq!(rejected(&contested), [1, 3]);
        contested.update(&[[0].into_iter().collect()]);
        assert_eq!(rejected(&contested), [2]);
        contested.update(&[RoaringBitmap::new()]);
        assert_eq!(rejected(&contested), [1, 3]);
    }

    #[test]
    fn rows_that_share_keys_too_often_are_refused() {
        let files = [file(4)];
        let mut contests = Contests { most: 5, ..Contests::default() };
        contests.add(&files, &rows(&[0, 1, 2])).unwrap();
        contests.add(&files, &rows(&[2, 3])).unwrap();
        let refused = contests.add(&files, &rows(&[0, 3])).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Limit);
        let expected = "more than 5 rows of a load have a unique value of another of its rows";
        assert_eq!(refused.message(), expected);
    }
}
