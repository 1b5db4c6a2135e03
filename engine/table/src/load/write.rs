//! Writing a load's rows as one sorted segment.

use crate::layout::gather::{Pick, gather, rows_at_once};
use crate::layout::keys::KeyRows;
use crate::load::loaded::{Loaded, OnDuplicate};
use crate::load::loader::Loader;
use crate::load::pending::SegmentRows;
use crate::table::version::Table;
use nacre_column::{Batch, Values, Vector};
use nacre_segment::{Segment, SegmentBuilder};
use nacre_types::{DataType, Result, invariant, key};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// An encoded key and the position of its row.
struct KeyAt {
    bytes: Vec<u8>,
    pick: Pick,
}

/// Writes rows of a partition as a segment. `before` are the load's segments so far.
pub(super) fn write_sorted(
    loader: &Loader,
    table: &Table,
    partition: u32,
    rows: SegmentRows,
    on_duplicate: OnDuplicate,
    before: &[Loaded],
) -> Result<Loaded> {
    let SegmentRows { mut batches, count } = rows;
    debug_assert!(
        batches.iter().map(|batch| batch.rows).sum::<usize>() == count,
        "a segment of {count} rows is made of others"
    );
    let layout = table.layout();
    let mut builder = table.segment_builder();
    if layout.key_columns().is_none() {
        number_rows(table, partition, &mut batches, count);
    }
    let row_number = [table.schema().columns.len()];
    let columns = layout.key_columns().unwrap_or(&row_number);
    let keys = encode_keys(columns, &batches);
    debug_assert!(keys.len() == count, "{} keys of {count} rows", keys.len());
    keys.iter().try_for_each(|at| key::check_length(&at.bytes))?;
    let in_order = keys.windows(2).all(|pair| pair[0].bytes < pair[1].bytes);
    if in_order && layout.sort_columns().is_none() {
        batches.iter().for_each(|batch| builder.push(batch));
    } else {
        let at_once = |longest| rows_at_once(longest, loader.options().gather_bytes());
        push_in_order(table, on_duplicate, keys, &batches, &mut builder, &at_once)?;
    }
    let besides: Vec<&Segment> = before
        .iter()
        .filter(|file| file.partition == partition)
        .map(|file| &*file.segment)
        .collect();
    let builder = table.partition(partition).with_key_filter(layout, builder, &besides, &[]);
    let segment = loader.files().write_segment(builder)?;
    invariant!(
        segment.rows() <= count && (segment.rows() == count || on_duplicate != OnDuplicate::Error),
        "a load of {count} rows has written {}",
        segment.rows()
    );
    Ok(Loaded { partition, segment, rejected: RoaringBitmap::new() })
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

/// Pushes rows in the table's order. If a key occurs twice, pushes only the row that the option
/// selects: keys must be unique within a segment, even among deleted rows, or a search could find
/// the wrong row.
fn push_in_order(
    table: &Table,
    on_duplicate: OnDuplicate,
    mut keys: Vec<KeyAt>,
    batches: &[Batch],
    builder: &mut SegmentBuilder,
    at_once: &dyn Fn(usize) -> usize,
) -> Result<()> {
    let layout = table.layout();
    // Stable: among equal keys, the earlier row comes first.
    keys.sort_by(|a, b| a.bytes.cmp(&b.bytes));
    match on_duplicate {
        OnDuplicate::Error => {
            if let Some(pair) = keys.windows(2).find(|pair| pair[0].bytes == pair[1].bytes) {
                let key = key::decode(&pair[0].bytes, &layout.key_types())?;
                return Err(layout.duplicate(&key));
            }
        }
        OnDuplicate::Skip => keys.dedup_by(|later, kept| later.bytes == kept.bytes),
        OnDuplicate::Replace => keys.dedup_by(|later, kept| {
            let same = later.bytes == kept.bytes;
            if same {
                std::mem::swap(later, kept);
            }
            same
        }),
    }
    debug_assert!(
        keys.windows(2).all(|pair| pair[0].bytes < pair[1].bytes),
        "a segment of a load has a key twice"
    );
    if let Some(sort) = layout.sort_columns() {
        sort_by_order(sort, &mut keys, batches);
    }
    let types: Vec<DataType> = layout.segment_columns().iter().map(|c| c.data_type).collect();
    let batches: Vec<&Batch> = batches.iter().collect();
    let longest = batches.iter().map(|batch| batch.longest_row()).max().unwrap_or(0);
    for run in keys.chunks(at_once(longest)) {
        let picks: Vec<Pick> = run.iter().map(|key| key.pick).collect();
        builder.push(&gather(&types, &batches, &picks));
    }
    invariant!(
        builder.rows() == keys.len(),
        "{} of {} rows are written",
        builder.rows(),
        keys.len()
    );
    Ok(())
}

/// Sorts rows in key order by the columns of the sort key.
fn sort_by_order(sort: &[usize], keys: &mut [KeyAt], batches: &[Batch]) {
    let orders = encode_keys(sort, batches);
    let mut first = Vec::with_capacity(batches.len());
    let mut next = 0;
    for batch in batches {
        first.push(next);
        next += batch.rows;
    }
    invariant!(orders.len() == next, "{} sort keys of {next} rows", orders.len());
    // Stable: among equal sort keys, the lower key comes first.
    keys.sort_by_key(|key| {
        orders[first[key.pick.batch as usize] + key.pick.row as usize].bytes.as_slice()
    });
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
            keys.push(KeyAt { bytes, pick: Pick { batch: index as u32, row: row as u32 } });
        }
    }
    keys
}
