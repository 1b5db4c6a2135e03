//! Duplicate keys inside a load: finds them by one walk over the sorted keys of all files, and rejects
//! rows as the conflict option says.

use crate::index::definition::Index;
use crate::layout::sorted_keys::SortedKeys;
use crate::load::contested::{Contested, Contests};
use crate::load::loaded::{Loaded, OnDuplicate};
use crate::load::same_keys::{KeyPlace, each_repeated};
use crate::load::staged::{LoadedRow, part_of};
use crate::segments::part::Part;
use crate::table::version::Table;
use nacre_segment::Segment;
use nacre_types::{Error, Result, invariant};
use std::ops::Range;
use std::sync::Arc;

/// Receives the rows of files that have one key of an index, or one primary key, in the order of
/// files.
type Same<'a> = dyn FnMut(&mut [Loaded], Option<&Index>, &[LoadedRow]) -> Result<()> + 'a;

/// Whether a row's other unique keys matter besides its primary key, so that it may matter even if a
/// later row has the same primary key.
pub(super) fn is_ordered(table: &Table, on_duplicate: OnDuplicate) -> bool {
    on_duplicate != OnDuplicate::Error && table.has_unique_index()
}

/// Resolves keys that occur twice among files written together. `numbers` are those of their rows,
/// by file.
pub(super) fn resolve_round(
    table: &Table,
    on_duplicate: OnDuplicate,
    files: &mut [Loaded],
    round: Range<usize>,
    numbers: &[Vec<i64>],
) -> Result<()> {
    invariant!(round.len() == numbers.len(), "rows of {} files are numbered", numbers.len());
    debug_assert!(is_ordered(table, on_duplicate), "a round is resolved without an order of rows");
    let first = round.start;
    let number = |row: &LoadedRow| numbers[row.file - first][row.row as usize];
    each_same(table, files, round, &mut |files, _, rows| {
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
        Ok(())
    })
}

/// Resolves keys that occur several times in files of different rounds. `constraint` if none may.
pub(super) fn resolve(
    table: &Table,
    on_duplicate: OnDuplicate,
    files: &mut [Loaded],
) -> Result<Contested> {
    let (mut contests, is_ordered) = (Contests::default(), is_ordered(table, on_duplicate));
    each_same(table, files, 0..files.len(), &mut |files, index, rows| {
        match on_duplicate {
            OnDuplicate::Error => return Err(duplicate(table, index, files, rows[0])?),
            OnDuplicate::Skip if is_ordered => contests.add(files, rows)?,
            OnDuplicate::Skip => {
                for LoadedRow { file, row } in &rows[1..] {
                    files[*file].rejected.insert(*row);
                }
            }
            OnDuplicate::Replace => {
                let last = rows.iter().map(|row| files[row.file].round).max();
                for LoadedRow { file, row } in rows {
                    // Those of the last round have been resolved.
                    if Some(files[*file].round) != last {
                        files[*file].rejected.insert(*row);
                    }
                }
            }
        }
        Ok(())
    })?;
    Ok(if is_ordered { contests.finish(files.len()) } else { Contested::default() })
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

/// Calls `found` for every key that occurs several times in a range of files: primary keys first,
/// then the keys of each unique index.
fn each_same(
    table: &Table,
    files: &mut [Loaded],
    range: Range<usize>,
    found: &mut Same<'_>,
) -> Result<()> {
    if table.key_columns().is_some() {
        for partition in table.partitions() {
            let is_own = |at: &usize| files[*at].partition == partition.number();
            let own: Vec<usize> = range.clone().filter(is_own).collect();
            for cluster in clusters(table, files, own)? {
                each_same_key(table, files, &cluster, found)?;
            }
        }
    }
    for index in table.unique_indexes() {
        each_same_value(index, files, range.clone(), found)?;
    }
    Ok(())
}

fn each_same_key(
    table: &Table,
    files: &mut [Loaded],
    cluster: &[usize],
    found: &mut Same<'_>,
) -> Result<()> {
    debug_assert!(
        cluster.len() > 1 && cluster.is_sorted_by(|a, b| a < b),
        "files {cluster:?} are compared, which are one or out of order"
    );
    let layout = table.layout();
    let segments: Vec<Arc<Segment>> = cluster.iter().map(|at| files[*at].segment.clone()).collect();
    let keys: Vec<SortedKeys<'_>> =
        segments.iter().map(|segment| layout.sorted_keys(segment)).collect::<Result<_>>()?;
    each_repeated(&keys, &mut |places| {
        let row = |place: &KeyPlace| {
            let row = keys[place.file].row(place.position)?;
            Ok(LoadedRow { file: cluster[place.file], row })
        };
        found(files, None, &places.iter().map(row).collect::<Result<Vec<_>>>()?)
    })
}

fn each_same_value(
    index: &Index,
    files: &mut [Loaded],
    range: Range<usize>,
    found: &mut Same<'_>,
) -> Result<()> {
    let part = |file: &Loaded| part_of(index, &file.unlisted_state());
    let parts: Vec<Arc<Part>> = files[range.clone()].iter().map(part).collect::<Result<_>>()?;
    let keys: Vec<SortedKeys<'_>> = parts.iter().map(|part| part.sorted_keys()).collect();
    each_repeated(&keys, &mut |places| {
        let row = |place: &KeyPlace| {
            let row = parts[place.file].row(place.position)?;
            Ok(LoadedRow { file: range.start + place.file, row })
        };
        found(files, Some(index), &places.iter().map(row).collect::<Result<Vec<_>>>()?)
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
