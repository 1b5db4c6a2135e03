//! Writing a load's rows as sorted segments, in steps between which a thread can do other work.

use crate::layout::gather::{Pick, gather, rows_at_once};
use crate::layout::keys::KeyRows;
use crate::load::inside::is_ordered;
use crate::load::key_sort::{KeyAt, KeySort};
use crate::load::loaded::{Loaded, OnDuplicate};
use crate::load::loader::Loader;
use crate::load::pending::SegmentRows;
use crate::segments::files::NewFiles;
use crate::segments::names::FileKind;
use crate::table::version::Table;
use nacre_column::{Batch, Values, Vector};
use nacre_segment::{Segment, SegmentBuilder};
use nacre_types::hash::{Map, Set};
use nacre_types::plant::{self, Bug};
use nacre_types::{DataType, Error, Reason, Result, invariant, key};
use roaring::RoaringBitmap;
use std::iter::Peekable;
use std::sync::Arc;
use std::vec::IntoIter;

/// Rows with the same primary key, and different values of other unique keys, that are written
/// together: each is in a file of its own, because a file has a key once.
const MAX_LAYERS: usize = 64;
/// Most keys that one step divides into layers, puts in order or compares with those of other files, and
/// rows that it pushes.
const MAX_AT_ONCE: usize = 1 << 11;

/// Where a load writes rows.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub loader: &'a Loader,
    pub table: &'a Table,
}

/// How rows of a partition are written.
#[derive(Clone, Copy)]
pub(super) struct Manner {
    pub partition: u32,
    pub on_duplicate: OnDuplicate,
    pub round: usize,
    /// Whether rows without a primary key have their hidden numbers, in the last column.
    pub is_numbered: bool,
}

/// Rows of a partition on their way to a file: one, or more if a primary key occurs several times
/// and more than the key decides which row appears.
pub(super) struct Writing {
    manner: Manner,
    batches: Vec<Batch>,
    count: usize,
    /// The numbers of the rows in their round, if the order of rows matters beyond their keys.
    numbers: Vec<i64>,
    /// The same by file, also of the one whose rows are being pushed.
    of_files: Vec<Vec<i64>>,
    /// The encoded sort keys of the rows, if their table has one.
    orders: Vec<Vec<u8>>,
    /// Bytes of the longest row, of those whose keys are encoded.
    longest: usize,
    stage: Stage,
    file: NewFiles,
}

/// Keys of rows, by the file that the rows go to.
type Layers = IntoIter<Vec<KeyAt>>;

enum Stage {
    /// The keys of the first batches ascend, up to the last one of them.
    Compare { at: usize, last: Option<Vec<u8>> },
    /// All keys ascend: rows are pushed as they are. Each batch is freed then.
    Push { builder: Box<SegmentBuilder>, batches: IntoIter<Batch> },
    /// The keys of the first batches are encoded.
    Encode { at: usize, sort: KeySort },
    /// The first keys are divided into layers.
    Divide { keys: Peekable<IntoIter<KeyAt>>, layers: Vec<Vec<KeyAt>> },
    /// The first keys of a layer have been replaced by those that order the table.
    Order { at: usize, keys: Vec<KeyAt>, sort: KeySort, rest: Layers },
    /// The first rows of a layer are pushed; these are the keys of the others.
    Gather { count: usize, keys: IntoIter<KeyAt>, builder: Box<SegmentBuilder>, rest: Layers },
    /// A file is written; others follow.
    File(Layers),
}

impl Target<'_> {
    /// Keys or rows of one step: several steps for a small segment, too.
    pub fn at_once(self) -> usize {
        (self.loader.options().segment_rows / 8).clamp(1, MAX_AT_ONCE)
    }

    /// Begins to write rows, given the files of the load so far. `limit` if the partition has no
    /// room for more.
    pub fn begin(self, manner: Manner, rows: SegmentRows, files: &[Loaded]) -> Result<Writing> {
        let SegmentRows { mut batches, count } = rows;
        debug_assert!(
            batches.iter().map(|batch| batch.rows).sum::<usize>() == count,
            "a segment of {count} rows is made of others"
        );
        let (table, partition) = (self.table, self.table.partition(manner.partition));
        // Looked at again under the commit lock.
        let own = files.iter().filter(|file| file.partition == manner.partition).count();
        partition.segments().check_room(own + 1)?;
        let numbers = match is_ordered(table, manner.on_duplicate) {
            true => take_numbers(&mut batches),
            false => Vec::new(),
        };
        debug_assert!(
            numbers.is_empty() || numbers.len() == count,
            "{} of {count} rows are numbered",
            numbers.len()
        );
        if table.layout().key_columns().is_none() && !manner.is_numbered {
            number_rows(table, manner.partition, &mut batches, count);
        }
        let (of_files, orders, file) = (Vec::new(), Vec::new(), NewFiles::default());
        let (longest, stage) = (0, Stage::Compare { at: 0, last: None });
        Ok(Writing { manner, batches, count, numbers, of_files, orders, longest, stage, file })
    }
}

impl Writing {
    /// Does a bounded amount of work, and adds each file that is complete. Returns the numbers of the
    /// rows of each file, which are in the last column of such rows, once all are. Can be called again
    /// after a read of absent bytes, not after other errors.
    pub fn step(
        &mut self,
        target: Target<'_>,
        files: &mut Vec<Loaded>,
    ) -> Result<Option<Vec<Vec<i64>>>> {
        debug_assert!(
            self.of_files.len() <= MAX_LAYERS,
            "rows are written to {} files",
            self.of_files.len()
        );
        if self.file.step(target.loader.files())? {
            let Manner { partition, round, .. } = self.manner;
            for segment in self.file.take_complete() {
                let (rejected, numbers) = (RoaringBitmap::new(), Map::default());
                files.push(Loaded { partition, segment, rejected, round, numbers });
            }
            let is_last = matches!(&self.stage, Stage::File(rest) if rest.len() == 0);
            let is_done = is_last && !self.file.is_writing();
            return Ok(is_done.then(|| std::mem::take(&mut self.of_files)));
        }
        let stage = std::mem::replace(&mut self.stage, Stage::File(Vec::new().into_iter()));
        self.stage = self.next(stage, target, files)?;
        Ok(None)
    }

    /// Removes the file that is being written.
    pub fn abandon(&mut self, loader: &Loader) {
        self.file.abandon(loader.files());
    }

    fn next(&mut self, stage: Stage, target: Target<'_>, files: &[Loaded]) -> Result<Stage> {
        let (table, layout) = (target.table, target.table.layout());
        let row_number = [table.schema().columns.len()];
        let columns = layout.key_columns().unwrap_or(&row_number);
        let at_once = target.at_once();
        Ok(match stage {
            Stage::Compare { at, mut last } => match self.batches.get(at) {
                Some(batch) if ascend(columns, batch, &mut last)? => {
                    Stage::Compare { at: at + 1, last }
                }
                None if layout.sort_columns().is_none() => Stage::Push {
                    builder: Box::new(table.segment_builder()),
                    batches: std::mem::take(&mut self.batches).into_iter(),
                },
                _ => Stage::Encode { at: 0, sort: KeySort::new(at_once) },
            },
            Stage::Push { mut builder, mut batches } => match batches.next() {
                Some(batch) => {
                    layout.push(&mut builder, batch)?;
                    Stage::Push { builder, batches }
                }
                None => {
                    let (rows, count) = (builder.rows(), self.count);
                    invariant!(rows == count, "{rows} of {count} rows are written");
                    self.of_files.push(std::mem::take(&mut self.numbers));
                    self.begin_file(*builder, Vec::new().into_iter(), target, files)?
                }
            },
            Stage::Encode { at, mut sort } => match self.batches.get(at) {
                Some(batch) => {
                    let vectors = vectors(columns, batch);
                    let (rows, mut bytes) = (KeyRows::new(&vectors), Vec::new());
                    for row in 0..batch.rows {
                        bytes.clear();
                        rows.put(row, &mut bytes);
                        key::check_length(&bytes)?;
                        sort.add(KeyAt::new(&bytes, Pick { batch: at as u32, row: row as u32 }));
                    }
                    self.longest = self.longest.max(batch.longest_row());
                    if let Some(sort) = layout.sort_columns() {
                        self.orders.extend(keys_of(sort, batch));
                    }
                    Stage::Encode { at: at + 1, sort }
                }
                None => match sort.step() {
                    None => Stage::Encode { at, sort },
                    Some(keys) => {
                        invariant!(keys.len() == self.count, "{} keys are sorted", keys.len());
                        let layers = vec![Vec::with_capacity(keys.len())];
                        Stage::Divide { keys: keys.into_iter().peekable(), layers }
                    }
                },
            },
            Stage::Divide { mut keys, mut layers } => {
                match self.divide(&mut keys, &mut layers, target)? {
                    true => Stage::Divide { keys, layers },
                    false => self.next_layer(layers.into_iter(), target),
                }
            }
            Stage::Order { at, keys, mut sort, rest } if at < keys.len() => {
                let end = keys.len().min(at + at_once);
                let first = firsts(&self.batches);
                // Stable: among equal sort keys, the lower key comes first.
                for key in &keys[at..end] {
                    let order = std::mem::take(&mut self.orders[place(key.pick, &first)]);
                    sort.add(KeyAt::new(&order, key.pick));
                }
                Stage::Order { at: end, keys, sort, rest }
            }
            Stage::Order { at, keys, mut sort, rest } => match sort.step() {
                None => Stage::Order { at, keys, sort, rest },
                Some(keys) => self.gather_layer(keys, rest, table),
            },
            Stage::Gather { count, mut keys, mut builder, rest } if keys.len() > 0 => {
                let lost = usize::from(builder.rows() > 0 && plant::is(Bug::LoadSlice));
                let some: Vec<KeyAt> = keys.by_ref().take(at_once).skip(lost).collect();
                self.push(&some, target, &mut builder)?;
                Stage::Gather { count, keys, builder, rest }
            }
            Stage::Gather { count, builder, rest, .. } => {
                let rows = builder.rows();
                invariant!(rows == count, "{rows} of {count} rows are written");
                self.begin_file(*builder, rest, target, files)?
            }
            Stage::File(layers) => self.next_layer(layers, target),
        })
    }

    fn begin_file(
        &mut self,
        builder: SegmentBuilder,
        rest: Layers,
        target: Target<'_>,
        files: &[Loaded],
    ) -> Result<Stage> {
        let Target { loader, table } = target;
        let (number, layout) = (self.manner.partition, table.layout());
        let is_own = |file: &&Loaded| file.partition == number;
        let besides: Vec<&Segment> =
            files.iter().filter(is_own).map(|file| &*file.segment).collect();
        debug_assert!(builder.rows() > 0, "a load writes a file of no rows");
        let builder = table.partition(number).with_key_filter(layout, builder, &besides, &[]);
        let builder = layout.with_order_bounds(builder)?;
        self.file.begin(loader.files(), builder, FileKind::Segment, table.id())?;
        Ok(Stage::File(rest))
    }

    /// Divides sorted keys into layers in which each occurs once: keys must be unique within a
    /// segment, even among deleted rows, or a search could find the wrong row. Rows that cannot
    /// matter are left out: those that have all unique keys of the row that the option selects.
    /// Returns whether there are more.
    fn divide(
        &self,
        keys: &mut Peekable<IntoIter<KeyAt>>,
        layers: &mut Vec<Vec<KeyAt>>,
        target: Target<'_>,
    ) -> Result<bool> {
        let (table, on_duplicate) = (target.table, self.manner.on_duplicate);
        for _ in 0..target.at_once() {
            let Some(first) = keys.next() else { return Ok(false) };
            debug_assert!(
                layers[0].last().is_none_or(|last| last.compare(&first).is_lt()),
                "rows are divided into layers before they are sorted"
            );
            if keys.peek().is_none_or(|next| next.compare(&first).is_ne()) {
                layers[0].push(first);
                continue;
            }
            let mut same = vec![first];
            while let Some(next) = keys.next_if(|next| next.compare(&same[0]).is_eq()) {
                if on_duplicate == OnDuplicate::Error {
                    let layout = table.layout();
                    let key = key::decode(&next.bytes(), &layout.key_types())?;
                    return Err(layout.duplicate(&key));
                }
                same.push(next);
            }
            if on_duplicate == OnDuplicate::Replace {
                same.reverse();
            }
            let mut known: Set<Vec<u8>> = Set::default();
            let others = same.iter().map(|row| self.other_keys(row.pick, table));
            let others = others.collect::<Result<Vec<_>>>()?;
            let mut is_new = others.into_iter().map(|keys| known.insert(keys));
            same.retain(|_| is_new.next().unwrap_or(true));
            if same.len() > MAX_LAYERS {
                return Err(Error::limit(format!(
                    "more than {MAX_LAYERS} rows of a load have one primary key and different \
                     values of other unique keys"
                ))
                .with_reason(Reason::SharedKeys)
                .with_hint("load fewer rows at once"));
            }
            if layers.len() < same.len() {
                layers.resize_with(same.len(), Vec::new);
            }
            same.into_iter().zip(layers.iter_mut()).for_each(|(row, layer)| layer.push(row));
        }
        Ok(true)
    }

    /// The encoded unique keys of a row besides its primary key.
    fn other_keys(&self, pick: Pick, table: &Table) -> Result<Vec<u8>> {
        let (batch, mut keys) = (&self.batches[pick.batch as usize], Vec::new());
        let read = |wanted: &[usize]| {
            let one = |at: &usize| Arc::new(batch.columns[*at].take(&[pick.row]));
            Ok(Batch::new(wanted.iter().map(one).collect(), 1))
        };
        for index in table.unique_indexes() {
            let columns = table.layout().key_columns_of(index.columns(), &read)?.columns;
            KeyRows::new(&columns).put(0, &mut keys);
        }
        Ok(keys)
    }

    /// Pushes rows in this order.
    fn push(
        &mut self,
        keys: &[KeyAt],
        target: Target<'_>,
        builder: &mut SegmentBuilder,
    ) -> Result<()> {
        let layout = target.table.layout();
        debug_assert!(keys.len() <= target.at_once(), "{} rows are pushed at once", keys.len());
        let columns = layout.segment_columns();
        let types: Vec<DataType> = columns.iter().map(|column| column.data_type).collect();
        let batches: Vec<&Batch> = self.batches.iter().collect();
        let at_once = rows_at_once(self.longest, target.loader.options().gather_bytes());
        for run in keys.chunks(at_once) {
            let picks: Vec<Pick> = run.iter().map(|key| key.pick).collect();
            layout.push(builder, gather(&types, &batches, &picks))?;
        }
        if let Some(numbers) = self.of_files.last_mut().filter(|_| !self.numbers.is_empty()) {
            let first = firsts(&self.batches);
            numbers.extend(keys.iter().map(|key| self.numbers[place(key.pick, &first)]));
        }
        Ok(())
    }

    /// Begins with the next of the layers: with its order if that is not the order of the keys.
    fn next_layer(&mut self, mut rest: Layers, target: Target<'_>) -> Stage {
        let next = rest.next();
        invariant!(
            next.as_ref().is_some_and(|layer| !layer.is_empty()),
            "a layer of a load has no rows"
        );
        let keys = next.unwrap_or_default();
        match target.table.layout().sort_columns() {
            Some(_) => Stage::Order { at: 0, keys, sort: KeySort::new(target.at_once()), rest },
            None => self.gather_layer(keys, rest, target.table),
        }
    }

    fn gather_layer(&mut self, keys: Vec<KeyAt>, rest: Layers, table: &Table) -> Stage {
        debug_assert!(!keys.is_empty(), "a segment of no rows is gathered");
        self.of_files.push(Vec::new());
        let builder = Box::new(table.segment_builder());
        Stage::Gather { count: keys.len(), keys: keys.into_iter(), builder, rest }
    }
}

/// Takes the last column off, which numbers the rows.
fn take_numbers(batches: &mut [Batch]) -> Vec<i64> {
    let mut numbers = Vec::new();
    for batch in batches {
        let column = batch.columns.pop();
        match column.as_ref().map(|column| column.flat()).as_deref() {
            Some(Values::I64(values)) => numbers.extend_from_slice(values),
            _ => invariant!(false, "the rows of a load are not numbered"),
        }
    }
    numbers
}

/// Appends the hidden row numbers of new rows as a column.
fn number_rows(table: &Table, partition: u32, batches: &mut [Batch], count: usize) {
    let mut reserved = table.partition(partition).reserve_row_numbers(count as u64);
    for batch in batches {
        let numbers: Vec<i64> = reserved.by_ref().take(batch.rows).map(|n| n as i64).collect();
        invariant!(
            numbers.len() == batch.rows,
            "{} row numbers for {} rows",
            numbers.len(),
            batch.rows
        );
        batch.columns.push(Arc::new(Vector::new(DataType::Int64, Values::I64(numbers), None)));
    }
    debug_assert!(reserved.next().is_none(), "a row number is left of those for {count} rows");
}

/// The position of each batch's first row among the rows of all.
fn firsts(batches: &[Batch]) -> Vec<usize> {
    let mut next = 0;
    let first = |batch: &Batch| {
        next += batch.rows;
        next - batch.rows
    };
    batches.iter().map(first).collect()
}

/// A row's position among the rows of all batches.
fn place(pick: Pick, firsts: &[usize]) -> usize {
    firsts[pick.batch as usize] + pick.row as usize
}

/// Whether the keys that these columns encode ascend strictly from row to row, also from the last one
/// before. Holds two of them at a time: most loads are in order, and the keys of a segment would take
/// as much memory as its rows. Fails if one of those that ascend is too long.
fn ascend(columns: &[usize], batch: &Batch, last: &mut Option<Vec<u8>>) -> Result<bool> {
    let columns = vectors(columns, batch);
    let (rows, mut next) = (KeyRows::new(&columns), Vec::new());
    for row in 0..batch.rows {
        next.clear();
        rows.put(row, &mut next);
        if last.as_ref().is_some_and(|last| next <= *last) {
            return Ok(false);
        }
        key::check_length(&next)?;
        std::mem::swap(last.get_or_insert_default(), &mut next);
    }
    Ok(true)
}

fn vectors<'a>(columns: &[usize], batch: &'a Batch) -> Vec<&'a Vector> {
    columns.iter().map(|column| &*batch.columns[*column]).collect()
}

/// The keys of all rows that these columns encode, without a limit on the length.
fn keys_of(columns: &[usize], batch: &Batch) -> Vec<Vec<u8>> {
    debug_assert!(batch.selection.is_none(), "keys of a batch that is not compact are encoded");
    let vectors = vectors(columns, batch);
    let rows = KeyRows::new(&vectors);
    let key = |row| {
        let mut bytes = Vec::with_capacity(columns.len() * 9);
        rows.put(row, &mut bytes);
        bytes
    };
    (0..batch.rows).map(key).collect()
}
