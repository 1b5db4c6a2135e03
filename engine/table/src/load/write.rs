//! Writing a load's rows as sorted segments.

use crate::layout::gather::{Pick, gather, rows_at_once};
use crate::layout::keys::KeyRows;
use crate::load::inside::is_ordered;
use crate::load::loaded::{Loaded, OnDuplicate};
use crate::load::loader::Loader;
use crate::load::pending::SegmentRows;
use crate::table::version::Table;
use nacre_column::{Batch, Values, Vector};
use nacre_segment::{Segment, SegmentBuilder};
use nacre_types::hash::{Map, Set};
use nacre_types::{DataType, Error, Result, invariant, key};
use roaring::RoaringBitmap;
use std::cmp::Ordering;
use std::sync::Arc;

/// An encoded key and the position of its row.
struct KeyAt {
    /// The first 16 bytes, followed by zeros, as a number: it decides most comparisons, without
    /// the memory of the key.
    first: u128,
    bytes: Vec<u8>,
    pick: Pick,
}

impl KeyAt {
    fn new(bytes: Vec<u8>, pick: Pick) -> KeyAt {
        let mut first = [0; 16];
        let shared = bytes.len().min(first.len());
        first[..shared].copy_from_slice(&bytes[..shared]);
        KeyAt { first: u128::from_be_bytes(first), bytes, pick }
    }

    fn compare(&self, other: &KeyAt) -> Ordering {
        self.first.cmp(&other.first).then_with(|| self.bytes.cmp(&other.bytes))
    }
}

/// Rows with the same primary key, and different values of other unique keys, that are written
/// together: each is in a file of its own, because a file has a key once.
const MAX_LAYERS: usize = 64;

/// Where a load writes rows.
pub(super) struct Target<'a> {
    pub loader: &'a Loader,
    pub table: &'a Table,
    pub partition: u32,
    pub on_duplicate: OnDuplicate,
    pub round: usize,
    /// Whether rows without a primary key have their hidden numbers, in the last column.
    pub is_numbered: bool,
}

impl Target<'_> {
    /// Writes rows of a partition and adds their files: one, or more if a primary key occurs
    /// several times and more than the key decides which row appears. Returns the numbers of the
    /// rows of each file, which are in the last column of such rows.
    pub fn write(&self, rows: SegmentRows, files: &mut Vec<Loaded>) -> Result<Vec<Vec<i64>>> {
        let SegmentRows { mut batches, count } = rows;
        debug_assert!(
            batches.iter().map(|batch| batch.rows).sum::<usize>() == count,
            "a segment of {count} rows is made of others"
        );
        let (table, layout) = (self.table, self.table.layout());
        let numbers = if is_ordered(table, self.on_duplicate) {
            take_numbers(&mut batches)
        } else {
            Vec::new()
        };
        debug_assert!(
            numbers.is_empty() || numbers.len() == count,
            "{} of {count} rows are numbered",
            numbers.len()
        );
        if layout.key_columns().is_none() && !self.is_numbered {
            number_rows(table, self.partition, &mut batches, count);
        }
        let row_number = [table.schema().columns.len()];
        let columns = layout.key_columns().unwrap_or(&row_number);
        let in_order = ascend(columns, &batches)?;
        if in_order && layout.sort_columns().is_none() {
            let mut builder = table.segment_builder();
            // Each batch is freed as soon as the builder has its rows.
            batches.drain(..).try_for_each(|batch| layout.push(&mut builder, batch))?;
            self.complete(builder, files)?;
            return Ok(vec![numbers]);
        }
        let mut keys = encode_keys(columns, &batches);
        debug_assert!(keys.len() == count, "{} keys of {count} rows", keys.len());
        keys.iter().try_for_each(|at| key::check_length(&at.bytes))?;
        if !in_order {
            // Stable: among equal keys, the earlier row comes first.
            keys.sort_by(KeyAt::compare);
        }
        let mut all = Vec::new();
        for mut keys in self.layers(keys, &batches)? {
            debug_assert!(
                keys.windows(2).all(|pair| pair[0].compare(&pair[1]).is_lt()),
                "a segment of a load has a key twice"
            );
            if let Some(sort) = layout.sort_columns() {
                sort_by_order(sort, &mut keys, &batches);
            }
            let mut builder = table.segment_builder();
            self.push_in_order(&keys, &batches, &mut builder)?;
            self.complete(builder, files)?;
            if !numbers.is_empty() {
                let first = firsts(&batches);
                let number = |key: &KeyAt| numbers[place(key.pick, &first)];
                all.push(keys.iter().map(number).collect());
            }
        }
        Ok(all)
    }

    fn complete(&self, builder: SegmentBuilder, files: &mut Vec<Loaded>) -> Result<()> {
        let (table, partition, layout) = (self.table, self.partition, self.table.layout());
        let is_own = |file: &&Loaded| file.partition == partition;
        let besides: Vec<&Segment> =
            files.iter().filter(is_own).map(|file| &*file.segment).collect();
        let rows = builder.rows();
        debug_assert!(rows > 0, "a load writes a file of no rows");
        let builder = table.partition(partition).with_key_filter(layout, builder, &besides, &[]);
        let builder = layout.with_order_bounds(builder)?;
        let segment = self.loader.files().write_segment(builder, table.id())?;
        invariant!(segment.rows() == rows, "{} of {rows} rows are written", segment.rows());
        let (rejected, numbers) = (RoaringBitmap::new(), Map::default());
        files.push(Loaded { partition, segment, rejected, round: self.round, numbers });
        Ok(())
    }

    /// Divides sorted rows into layers in which each key occurs once: keys must be unique within a
    /// segment, even among deleted rows, or a search could find the wrong row. Rows that cannot
    /// matter are left out: those that have all unique keys of the row that the option selects.
    fn layers(&self, keys: Vec<KeyAt>, batches: &[Batch]) -> Result<Vec<Vec<KeyAt>>> {
        debug_assert!(
            keys.is_sorted_by(|a, b| a.compare(b).is_le()),
            "rows are divided into layers before they are sorted"
        );
        let mut layers: Vec<Vec<KeyAt>> = vec![Vec::with_capacity(keys.len())];
        let mut keys = keys.into_iter().peekable();
        while let Some(first) = keys.next() {
            if keys.peek().is_none_or(|next| next.compare(&first).is_ne()) {
                layers[0].push(first);
                continue;
            }
            let mut same = vec![first];
            while let Some(next) = keys.next_if(|next| next.compare(&same[0]).is_eq()) {
                if self.on_duplicate == OnDuplicate::Error {
                    let layout = self.table.layout();
                    let key = key::decode(&next.bytes, &layout.key_types())?;
                    return Err(layout.duplicate(&key));
                }
                same.push(next);
            }
            if self.on_duplicate == OnDuplicate::Replace {
                same.reverse();
            }
            let mut known: Set<Vec<u8>> = Set::default();
            let others = same.iter().map(|row| self.other_keys(row.pick, batches));
            let others = others.collect::<Result<Vec<_>>>()?;
            let mut is_new = others.into_iter().map(|keys| known.insert(keys));
            same.retain(|_| is_new.next().unwrap_or(true));
            if same.len() > MAX_LAYERS {
                return Err(Error::limit(format!(
                    "more than {MAX_LAYERS} rows of a load have one primary key and different \
                     values of other unique keys"
                ))
                .with_hint("load fewer rows at once"));
            }
            if layers.len() < same.len() {
                layers.resize_with(same.len(), Vec::new);
            }
            same.into_iter().zip(&mut layers).for_each(|(row, layer)| layer.push(row));
        }
        debug_assert!(
            layers.iter().all(|layer| !layer.is_empty()),
            "a layer of a load has no rows"
        );
        Ok(layers)
    }

    /// The encoded unique keys of a row besides its primary key.
    fn other_keys(&self, pick: Pick, batches: &[Batch]) -> Result<Vec<u8>> {
        let (batch, mut keys) = (&batches[pick.batch as usize], Vec::new());
        let read = |wanted: &[usize]| {
            let one = |at: &usize| Arc::new(batch.columns[*at].take(&[pick.row]));
            Ok(Batch::new(wanted.iter().map(one).collect(), 1))
        };
        for index in self.table.unique_indexes() {
            let columns = self.table.layout().key_columns_of(index.columns(), &read)?.columns;
            KeyRows::new(&columns).put(0, &mut keys);
        }
        Ok(keys)
    }

    /// Pushes rows in this order.
    fn push_in_order(
        &self,
        keys: &[KeyAt],
        batches: &[Batch],
        builder: &mut SegmentBuilder,
    ) -> Result<()> {
        let layout = self.table.layout();
        let columns = layout.segment_columns();
        let types: Vec<DataType> = columns.iter().map(|column| column.data_type).collect();
        let batches: Vec<&Batch> = batches.iter().collect();
        let longest = batches.iter().map(|batch| batch.longest_row()).max().unwrap_or(0);
        for run in keys.chunks(rows_at_once(longest, self.loader.options().gather_bytes())) {
            let picks: Vec<Pick> = run.iter().map(|key| key.pick).collect();
            layout.push(builder, gather(&types, &batches, &picks))?;
        }
        invariant!(
            builder.rows() == keys.len(),
            "{} of {} rows are written",
            builder.rows(),
            keys.len()
        );
        Ok(())
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

/// Sorts rows in key order by the columns of the sort key.
fn sort_by_order(sort: &[usize], keys: &mut [KeyAt], batches: &[Batch]) {
    let orders = encode_keys(sort, batches);
    let first = firsts(batches);
    debug_assert!(keys.len() <= orders.len(), "{} sort keys of {} rows", orders.len(), keys.len());
    // Stable: among equal sort keys, the lower key comes first.
    let order = |key: &KeyAt| &orders[place(key.pick, &first)];
    keys.sort_by(|a, b| order(a).compare(order(b)));
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

/// Whether the keys that these columns encode ascend strictly from row to row. Holds two of them at
/// a time: most loads are in order, and the keys of a segment would take as much memory as its rows.
/// Fails if one of those that ascend is too long.
fn ascend(columns: &[usize], batches: &[Batch]) -> Result<bool> {
    let (mut last, mut next) = (Vec::new(), Vec::new());
    let mut is_first = true;
    for batch in batches {
        let vectors: Vec<&Vector> = columns.iter().map(|c| &*batch.columns[*c]).collect();
        let rows = KeyRows::new(&vectors);
        for row in 0..batch.rows {
            next.clear();
            rows.put(row, &mut next);
            if !is_first && next <= last {
                return Ok(false);
            }
            key::check_length(&next)?;
            std::mem::swap(&mut last, &mut next);
            is_first = false;
        }
    }
    Ok(true)
}

/// Encodes these columns of all rows of all batches, without a limit on the length.
fn encode_keys(columns: &[usize], batches: &[Batch]) -> Vec<KeyAt> {
    let mut keys = Vec::with_capacity(batches.iter().map(|b| b.rows).sum());
    for (index, batch) in batches.iter().enumerate() {
        let vectors: Vec<&Vector> = columns.iter().map(|c| &*batch.columns[*c]).collect();
        let rows = KeyRows::new(&vectors);
        for row in 0..batch.rows {
            let mut bytes = Vec::with_capacity(columns.len() * 9);
            rows.put(row, &mut bytes);
            keys.push(KeyAt::new(bytes, Pick { batch: index as u32, row: row as u32 }));
        }
    }
    keys
}
