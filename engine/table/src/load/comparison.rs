//! Compares the keys of one file of a load with those of segments of the table, in steps.

use crate::index::definition::Index;
use crate::index::lookup::{block_keys, rows_of_candidate};
use crate::index::range::KeyRange;
use crate::layout::sorted_keys::SortedKeys;
use crate::load::common_keys::{CommonKeys, is_few, overlap};
use crate::load::loaded::{Load, OnDuplicate};
use crate::load::staged::{Staged, part_of};
use crate::record::KeySet;
use crate::segments::part::Part;
use crate::segments::state::SegmentState;
use crate::table::segment_list::SegmentList;
use crate::table::version::Table;
use nacre_types::hash::{Map, Set, hash_bytes};
use nacre_types::{Error, Result, Value, limits};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// Keys to compare: those of one file with those of some segments of one partition.
pub(super) struct Comparison {
    keys: KeySet,
    file: usize,
    list: Arc<SegmentList>,
    /// Places in the list of the segments that are left, the next one last.
    places: Vec<usize>,
    /// How far the keys of the next segment were walked.
    walk: Option<SharedKeys>,
    /// Places of the segments that have far more keys: the file's are looked up in them.
    large: Set<usize>,
    /// The next key of the file to look up.
    next: usize,
    common: Common,
}

/// The outcome of a comparison.
#[derive(Default)]
pub(super) struct Common {
    /// By place in the list of segments: rows whose keys the file has.
    pub olds: Map<usize, RoaringBitmap>,
    /// Rows of the file whose keys a segment has, if the load skips them.
    pub news: RoaringBitmap,
}

impl Comparison {
    /// Begins to compare a file with segments at these places of a list.
    pub fn new(
        keys: KeySet,
        file: usize,
        list: &Arc<SegmentList>,
        mut places: Vec<usize>,
    ) -> Comparison {
        debug_assert!(
            places.iter().all(|place| *place < list.len()),
            "a file is compared with a segment that is not listed"
        );
        places.reverse();
        let (list, large) = (list.clone(), Set::default());
        let common = Common::default();
        Comparison { keys, file, list, places, walk: None, large, next: 0, common }
    }

    /// Looks at about `some` keys. Returns how many it looked at, about, or `None` if there are no more. Can
    /// be called again after a read of absent bytes. `constraint` if both have a key and the load may not.
    pub fn step(&mut self, load: Load<'_>, staged: &Staged, some: usize) -> Result<Option<usize>> {
        let Comparison { keys, file, list, places, walk, large, common, .. } = self;
        let Some(place) = places.last().copied() else {
            return Ok(self.look_up(load, some)?.then_some(some));
        };
        let state = &list[place];
        debug_assert!(!staged.is_own(state), "a load is compared with itself");
        let Some(walk) = walk else {
            if !state.is_current() {
                places.pop();
            } else if is_few_of(load, *keys, *file, state)? {
                large.insert(place);
                places.pop();
            } else {
                self.walk = Some(SharedKeys::new(load, *keys, *file, state)?);
            }
            return Ok(Some(KEYS_A_SEGMENT));
        };
        let is_more =
            walk.step((load, *keys, *file), state, some, &mut |old_row, new_row, key| {
                common.meet(load, *keys, (place, state), old_row, new_row, key)
            })?;
        if !is_more {
            places.pop();
            self.walk = None;
        }
        Ok(Some(state.segment.rows()))
    }

    /// The list of segments, and what was found, once all keys are compared.
    pub fn finish(self) -> (Arc<SegmentList>, Common) {
        debug_assert!(
            self.places.is_empty() && self.walk.is_none(),
            "{} segments were not compared",
            self.places.len()
        );
        (self.list, self.common)
    }

    /// Looks up the next keys of the file in large segments. Returns whether there are more.
    fn look_up(&mut self, load: Load<'_>, some: usize) -> Result<bool> {
        if self.large.is_empty() {
            return Ok(false);
        }
        let index = match self.keys {
            KeySet::Primary => None,
            KeySet::Index(id) => Some(load.table.index(id)?),
        };
        let end = match index {
            None => load.table.layout().sorted_keys(&load.files[self.file].segment)?.len(),
            Some(index) => {
                part_of(index, &load.files[self.file].unlisted_state())?.sorted_keys().len()
            }
        };
        let stop = self.next.saturating_add(some.div_ceil(WALKED_IN_A_LOOK_UP)).min(end);
        match index {
            None => self.look_up_keys(load, stop)?,
            Some(index) => self.look_up_values(load, index, stop)?,
        }
        debug_assert!(self.next == stop, "{} of {stop} keys were looked up", self.next);
        Ok(stop < end)
    }

    /// Looks up primary keys of the file in large segments, up to a position.
    fn look_up_keys(&mut self, load: Load<'_>, stop: usize) -> Result<()> {
        let layout = load.table.layout();
        let new = layout.sorted_keys(&load.files[self.file].segment)?;
        debug_assert!(stop <= new.len(), "keys up to {stop} of {} are looked up", new.len());
        let Comparison { keys, list, large, next, common, .. } = self;
        while *next < stop {
            let key = new.at(*next)?;
            let encoded = layout.encode_key(&key)?;
            for found in list.of_key(layout, &encoded)?.newest_first() {
                let state = &list[found.place];
                if large.contains(&found.place)
                    && let Some(old_row) = found.find(layout, state, &key)?
                {
                    let (new_row, key) = (new.row(*next)?, &|| Ok(key.clone()));
                    common.meet(load, *keys, (found.place, state), old_row, new_row, key)?;
                }
            }
            *next += 1;
        }
        Ok(())
    }

    /// Looks up values of the file in large segments, up to a position.
    fn look_up_values(&mut self, load: Load<'_>, index: &Index, stop: usize) -> Result<()> {
        let Comparison { keys, file, list, large, next, common, .. } = self;
        let (layout, directory) = (load.table.layout(), list.of_index(index));
        let part = part_of(index, &load.files[*file].unlisted_state())?;
        let new = part.sorted_keys();
        debug_assert!(stop <= new.len(), "values up to {stop} of {} are looked up", new.len());
        while *next < stop {
            let values = new.at(*next)?;
            if !values.iter().any(Value::is_null) {
                let encoded = index.encode(&values)?;
                let (range, hash) = (KeyRange::equal(values.clone()), Some(hash_bytes(&encoded)));
                let candidates = directory.candidates(&encoded)?;
                for one in candidates.newest_first().filter(|found| large.contains(&found.place)) {
                    let state = &list[one.place];
                    for old_row in rows_of_candidate(layout, index, state, &range, hash, one)? {
                        let (new_row, key) = (part.row(*next)?, &|| Ok(values.clone()));
                        common.meet(load, *keys, (one.place, state), old_row, new_row, key)?;
                    }
                }
            }
            *next += 1;
        }
        Ok(())
    }
}

/// Keys that are walked in the time that it takes to begin with a segment, about.
const KEYS_A_SEGMENT: usize = 16;

/// Keys that are walked in the time of one look-up, about.
const WALKED_IN_A_LOOK_UP: usize = 32;

impl Common {
    /// Notes that a row of a segment has the key of a row of the load.
    fn meet(
        &mut self,
        load: Load<'_>,
        keys: KeySet,
        (place, state): (usize, &Arc<SegmentState>),
        old_row: u32,
        new_row: u32,
        key: &dyn Fn() -> Result<Vec<Value>>,
    ) -> Result<()> {
        debug_assert!(
            (old_row as usize) < state.segment.rows(),
            "row {old_row} of segment {} is met, which has {}",
            state.id(),
            state.segment.rows()
        );
        if state.is_deleted(old_row) {
            return Ok(());
        }
        if let Some(leaving) = load.leaving
            && leaving(state, old_row)?
        {
            return Ok(());
        }
        match load.on_duplicate {
            OnDuplicate::Error => return Err(duplicate(load.table, keys, &key()?)?),
            OnDuplicate::Skip => drop(self.news.insert(new_row)),
            OnDuplicate::Replace => {}
        }
        self.olds.entry(place).or_default().insert(old_row);
        Ok(())
    }
}

/// The error for a key that a row of the table has.
pub(super) fn duplicate(table: &Table, keys: KeySet, key: &[Value]) -> Result<Error> {
    Ok(match keys {
        KeySet::Primary => table.layout().duplicate(key),
        KeySet::Index(id) => {
            let index = table.index(id)?;
            index.duplicate(&table.schema().name, &index.encode(key)?)
        }
    })
}

/// Whether each key of a file is looked up in a segment, because that has far more keys where they
/// overlap.
fn is_few_of(load: Load<'_>, keys: KeySet, file: usize, state: &SegmentState) -> Result<bool> {
    let is_few = |old: &SortedKeys<'_>, new: &SortedKeys<'_>| {
        Ok(is_few(new, new.len(), old.len()) && overlap(old, new)?.is_some())
    };
    let segment = &load.files[file].segment;
    debug_assert!(segment.id() != state.id(), "file {file} of a load is compared with itself");
    match keys {
        KeySet::Primary => {
            let layout = load.table.layout();
            is_few(&layout.sorted_keys(&state.segment)?, &layout.sorted_keys(segment)?)
        }
        KeySet::Index(id) => match state.part(id) {
            Some(old) => {
                let new = part_of(load.table.index(id)?, &load.files[file].unlisted_state())?;
                is_few(&old.sorted_keys(), &new.sorted_keys())
            }
            None => Ok(false),
        },
    }
}

/// Receives the row of a segment, a row of the load with the same key, and the key.
type Shared<'a> = dyn FnMut(u32, u32, &dyn Fn() -> Result<Vec<Value>>) -> Result<()> + 'a;

/// A walk over the keys without nulls that both a segment, deleted rows included, and a file of the load
/// have.
pub(super) enum SharedKeys {
    Primary(CommonKeys),
    /// Keys of an index, with the segment's part.
    Index(Arc<Part>, CommonKeys),
    /// Keys of an index of which the segment has no part, from this row on.
    Rows(usize),
}

impl SharedKeys {
    /// Begins a walk.
    pub fn new(
        load: Load<'_>,
        keys: KeySet,
        file: usize,
        state: &SegmentState,
    ) -> Result<SharedKeys> {
        debug_assert!(file < load.files.len(), "file {file} of {}", load.files.len());
        let KeySet::Index(id) = keys else {
            let layout = load.table.layout();
            let old = layout.sorted_keys(&state.segment)?;
            let new = layout.sorted_keys(&load.files[file].segment)?;
            return Ok(SharedKeys::Primary(CommonKeys::new(&old, &new)?));
        };
        let Some(old) = state.part(id) else { return Ok(SharedKeys::Rows(0)) };
        let new = part_of(load.table.index(id)?, &load.files[file].unlisted_state())?;
        let common = CommonKeys::new(&old.sorted_keys(), &new.sorted_keys())?;
        Ok(SharedKeys::Index(old, common))
    }

    /// Looks at about `some` keys of the segment that the walk began with, and calls `found` for each
    /// that both have. Returns whether there are more. Can be called again after a read of absent bytes,
    /// and then finds some keys again.
    pub fn step(
        &mut self,
        (load, keys, file): (Load<'_>, KeySet, usize),
        state: &SegmentState,
        some: usize,
        found: &mut Shared<'_>,
    ) -> Result<bool> {
        debug_assert!(some > 0, "a step looks at no keys");
        let KeySet::Index(id) = keys else {
            let SharedKeys::Primary(common) = self else { return Ok(false) };
            let layout = load.table.layout();
            let old = layout.sorted_keys(&state.segment)?;
            let new = layout.sorted_keys(&load.files[file].segment)?;
            return common.step(&old, &new, some, &mut |old_at, new_at| {
                found(old.row(old_at)?, new.row(new_at)?, &|| new.at(new_at))
            });
        };
        let index = load.table.index(id)?;
        let part = part_of(index, &load.files[file].unlisted_state())?;
        let new = part.sorted_keys();
        match self {
            SharedKeys::Primary(_) => Ok(false),
            SharedKeys::Index(old_part, common) => {
                let old = old_part.sorted_keys();
                common.step(&old, &new, some, &mut |old_at, new_at| {
                    let old_row = old_part.row(old_at)?;
                    // In the file, a key may have several rows, which are neighbours.
                    match !load.files[file].numbers.is_empty() {
                        false => found(old_row, part.row(new_at)?, &|| new.at(new_at)),
                        true => new
                            .equal(&new.at(new_at)?)?
                            .try_for_each(|at| found(old_row, part.row(at)?, &|| new.at(at))),
                    }
                })
            }
            SharedKeys::Rows(start) => {
                let layout = load.table.layout();
                for _ in 0..some.div_ceil(limits::BLOCK_ROWS) {
                    if *start >= state.segment.rows() {
                        return Ok(false);
                    }
                    let keys = block_keys(layout, index, state, *start)?;
                    for (key, row) in keys.iter().zip(*start as u32..) {
                        if !index.may_repeat(key) {
                            let values = nacre_types::key::decode(key, index.types())?;
                            new.equal(&values)?
                                .try_for_each(|at| found(row, part.row(at)?, &|| new.at(at)))?;
                        }
                    }
                    *start += limits::BLOCK_ROWS;
                }
                Ok(*start < state.segment.rows())
            }
        }
    }
}
