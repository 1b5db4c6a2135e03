//! Duplicate keys inside a load: finds them by a walk over the sorted keys of all files, in steps, and
//! rejects rows as the conflict option says.

use crate::index::definition::Index;
use crate::layout::sorted_keys::SortedKeys;
use crate::load::contested::{Contested, Contests};
use crate::load::loaded::{Loaded, OnDuplicate};
use crate::load::same_keys::{KeyPlace, Repeated};
use crate::load::staged::{LoadedRow, part_of};
use crate::segments::part::Part;
use crate::table::version::Table;
use nacre_segment::Segment;
use nacre_types::{Error, IndexId, Result};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Finds the keys that rows of several files have, and resolves which of the rows appear.
pub(super) struct Resolving {
    files: Range<usize>,
    /// What is left to walk.
    left: VecDeque<Left>,
    walk: Option<Walk>,
    contests: Contests,
}

/// Keys to walk.
enum Left {
    /// Primary keys of a partition.
    Partition(u32),
    /// Primary keys of files that overlap.
    Cluster(Vec<usize>),
    /// Unique keys.
    Index(IndexId),
}

/// A walk over the keys of some files.
struct Walk {
    keys: Walked,
    repeated: Repeated,
}

enum Walked {
    /// Primary keys, of these files.
    Primary { files: Vec<usize>, segments: Vec<Arc<Segment>> },
    /// The keys of a unique index, of files from one on.
    Index { id: IndexId, first: usize, parts: Vec<Arc<Part>> },
}

/// What is resolved among which files.
#[derive(Clone, Copy)]
pub(super) enum Among<'a> {
    /// Keys that files of one round have twice. These are the numbers of their rows, by file.
    Round(&'a [Vec<i64>]),
    /// Keys that files of different rounds have twice.
    Rounds,
}

/// Receives the rows of files that have one key of an index, or one primary key, in the order of
/// files.
type Same<'a> = dyn FnMut(&mut [Loaded], Option<&Index>, &[LoadedRow]) -> Result<()> + 'a;

/// Whether a row's other unique keys matter besides its primary key, so that it may matter even if a
/// later row has the same primary key.
pub(super) fn is_ordered(table: &Table, on_duplicate: OnDuplicate) -> bool {
    on_duplicate != OnDuplicate::Error && table.has_unique_index()
}

impl Resolving {
    /// Begins with these files.
    pub fn new(table: &Table, files: Range<usize>) -> Resolving {
        let keyed = table.partitions().iter().filter(|_| table.key_columns().is_some());
        let partitions = keyed.map(|partition| Left::Partition(partition.number()));
        let indexes = table.unique_indexes().map(|index| Left::Index(index.id()));
        let left = partitions.chain(indexes).collect();
        Resolving { files, left, walk: None, contests: Contests::default() }
    }

    /// Looks at up to `some` keys. Returns whether there are more. `constraint` if two rows have one
    /// key and none may. Can be called again after a read of absent bytes.
    pub fn step(
        &mut self,
        (table, on_duplicate): (&Table, OnDuplicate),
        files: &mut [Loaded],
        among: Among<'_>,
        some: usize,
    ) -> Result<bool> {
        if let Some(Walk { keys, repeated }) = &mut self.walk {
            let (first, contests) = (self.files.start, &mut self.contests);
            let mut found =
                |files: &mut [Loaded], index: Option<&Index>, rows: &[LoadedRow]| match among {
                    Among::Round(numbers) => {
                        let number = |row: &LoadedRow| numbers[row.file - first][row.row as usize];
                        resolve_in_round(on_duplicate, files, rows, &number);
                        Ok(())
                    }
                    Among::Rounds if on_duplicate == OnDuplicate::Error => {
                        Err(duplicate(table, index, files, rows[0])?)
                    }
                    Among::Rounds => {
                        let contests = is_ordered(table, on_duplicate).then_some(&mut *contests);
                        resolve_in_rounds(on_duplicate, files, rows, contests)
                    }
                };
            if !keys.step(table, files, repeated, some, &mut found)? {
                self.walk = None;
            }
            return Ok(true);
        }
        let Some(next) = self.left.front() else { return Ok(false) };
        let keys = match next {
            Left::Partition(number) => {
                let is_own = |at: &usize| files[*at].partition == *number;
                let clusters = clusters(table, files, self.files.clone().filter(is_own).collect())?;
                self.left.pop_front();
                clusters.into_iter().rev().for_each(|one| self.left.push_front(Left::Cluster(one)));
                return Ok(true);
            }
            Left::Cluster(cluster) => {
                debug_assert!(
                    cluster.len() > 1 && cluster.is_sorted_by(|a, b| a < b),
                    "files {cluster:?} are compared, which are one or out of order"
                );
                let segments = cluster.iter().map(|at| files[*at].segment.clone()).collect();
                Walked::Primary { files: cluster.clone(), segments }
            }
            Left::Index(id) => {
                let index = table.index(*id)?;
                let part = |file: &Loaded| part_of(index, &file.unlisted_state());
                let parts = files[self.files.clone()].iter().map(part).collect::<Result<_>>()?;
                Walked::Index { id: *id, first: self.files.start, parts }
            }
        };
        let repeated = Repeated::new(&keys.sorted(table)?);
        (self.walk, _) = (Some(Walk { keys, repeated }), self.left.pop_front());
        Ok(true)
    }

    /// The rows that share keys, once all are resolved.
    pub fn finish(self, table: &Table, on_duplicate: OnDuplicate, files: usize) -> Contested {
        debug_assert!(self.walk.is_none() && self.left.is_empty(), "keys are left to resolve");
        match is_ordered(table, on_duplicate) {
            true => self.contests.finish(files),
            false => Contested::default(),
        }
    }
}

impl Walked {
    /// The keys of each file.
    fn sorted<'a>(&'a self, table: &Table) -> Result<Vec<SortedKeys<'a>>> {
        match self {
            Walked::Primary { segments, .. } => {
                segments.iter().map(|segment| table.layout().sorted_keys(segment)).collect()
            }
            Walked::Index { parts, .. } => {
                Ok(parts.iter().map(|part| part.sorted_keys()).collect())
            }
        }
    }

    /// Walks over keys, and calls `found` for those that occur several times. Returns whether there
    /// are more.
    fn step(
        &self,
        table: &Table,
        files: &mut [Loaded],
        repeated: &mut Repeated,
        some: usize,
        found: &mut Same<'_>,
    ) -> Result<bool> {
        let keys = self.sorted(table)?;
        let index = match self {
            Walked::Primary { .. } => None,
            Walked::Index { id, .. } => Some(table.index(*id)?),
        };
        let row = |place: &KeyPlace| {
            let KeyPlace { file, position } = *place;
            Ok(match self {
                Walked::Primary { files, .. } => {
                    LoadedRow { file: files[file], row: keys[file].row(position)? }
                }
                Walked::Index { first, parts, .. } => {
                    LoadedRow { file: first + file, row: parts[file].row(position)? }
                }
            })
        };
        repeated.step(&keys, some, &mut |places| {
            found(files, index, &places.iter().map(row).collect::<Result<Vec<_>>>()?)
        })
    }
}

/// Resolves rows of one round that have one key.
fn resolve_in_round(
    on_duplicate: OnDuplicate,
    files: &mut [Loaded],
    rows: &[LoadedRow],
    number: &dyn Fn(&LoadedRow) -> i64,
) {
    match on_duplicate {
        OnDuplicate::Replace => {
            let last = rows.iter().max_by_key(|row| number(row));
            for row in rows.iter().filter(|row| Some(*row) != last) {
                files[row.file].rejected.insert(row.row);
            }
        }
        _ => rows.iter().for_each(|row| {
            files[row.file].numbers.insert(row.row, number(row));
        }),
    }
}

/// Resolves rows of several rounds that have one key, by `contests` if which of them appears depends
/// on other keys.
fn resolve_in_rounds(
    on_duplicate: OnDuplicate,
    files: &mut [Loaded],
    rows: &[LoadedRow],
    contests: Option<&mut Contests>,
) -> Result<()> {
    debug_assert!(on_duplicate != OnDuplicate::Error, "a duplicate key is resolved");
    if on_duplicate == OnDuplicate::Replace {
        let last = rows.iter().map(|row| files[row.file].round).max();
        for LoadedRow { file, row } in rows {
            // Those of the last round have been resolved.
            if Some(files[*file].round) != last {
                files[*file].rejected.insert(*row);
            }
        }
        return Ok(());
    }
    match contests {
        Some(contests) => contests.add(files, rows)?,
        None => rows[1..].iter().for_each(|LoadedRow { file, row }| {
            files[*file].rejected.insert(*row);
        }),
    }
    Ok(())
}

fn duplicate(
    table: &Table,
    index: Option<&Index>,
    files: &[Loaded],
    LoadedRow { file, row }: LoadedRow,
) -> Result<Error> {
    let (layout, segment) = (table.layout(), &files[file].segment);
    Ok(match index {
        None => layout.duplicate(&layout.key_of_segment_row(segment, row)?),
        Some(index) => {
            let key = index.encode(&layout.segment_key(segment, row, index.columns())?)?;
            index.duplicate(&table.schema().name, &key)
        }
    })
}

/// Groups files whose key ranges overlap; a file that overlaps no other is in no group. Files of a
/// group are in the order they were written.
fn clusters(table: &Table, files: &[Loaded], own: Vec<usize>) -> Result<Vec<Vec<usize>>> {
    let layout = table.layout();
    if own.len() < 2 {
        return Ok(Vec::new());
    }
    let mut ranges = Vec::with_capacity(own.len());
    for at in own {
        let keys = layout.sorted_keys(&files[at].segment)?;
        debug_assert!(keys.len() > 0, "file {at} of a load has no rows");
        let key = |position| layout.encode_wanted_key(&keys.at(position)?);
        ranges.push((key(0)?, key(keys.len() - 1)?, at));
    }
    ranges.sort_unstable();
    let mut all: Vec<Vec<usize>> = Vec::new();
    let mut end: Option<Vec<u8>> = None;
    for (first, last, at) in ranges {
        debug_assert!(first <= last, "the keys of file {at} are out of order");
        match (all.last_mut(), &end) {
            (Some(cluster), Some(end)) if first <= *end => cluster.push(at),
            _ => all.push(vec![at]),
        }
        end = end.max(Some(last));
    }
    all.retain(|cluster| cluster.len() > 1);
    all.iter_mut().for_each(|cluster| cluster.sort_unstable());
    Ok(all)
}
