//! The rows of a column being collected: flat values, divided into blocks.

use crate::column::ColumnSpec;
use nacre_column::{Bitmap, BlockValues, Values, Vector};
use nacre_types::invariant;
use nacre_types::limits::BLOCK_ROWS;

/// The effect of [`Column::push`].
pub(super) struct Pushed {
    pub bytes: usize,
    /// Whether the offsets of text still fit in 32 bits in every block.
    pub fits: bool,
}

/// A column being collected.
pub(super) struct Column {
    pub spec: ColumnSpec,
    pub blocks: Vec<BlockValues>,
    pub raw_bytes: u64,
    /// Sorted, and read mostly by binary search.
    pub searched: bool,
}

impl Column {
    pub fn new(spec: ColumnSpec, blocks: Vec<BlockValues>, raw_bytes: u64) -> Column {
        Column { spec, blocks, raw_bytes, searched: false }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.blocks.iter().map(|(values, _)| values.len()).sum()
    }

    /// Appends rows of a vector to a column of `at` rows.
    pub fn push(&mut self, vector: &Vector, selection: Option<&[u32]>, at: usize) -> Pushed {
        let count = selection.map_or(vector.len(), <[u32]>::len);
        let flat = vector.flat();
        let (mut done, mut added, mut fits) = (0, 0, true);
        while done < count {
            let room = BLOCK_ROWS - (at + done) % BLOCK_ROWS;
            if room == BLOCK_ROWS {
                self.blocks.push((Values::empty(self.spec.data_type.physical()), None));
            }
            let n = room.min(count - done);
            let Some((values, validity)) = self.blocks.last_mut() else { break };
            invariant!(
                values.len() + room == BLOCK_ROWS,
                "a block of {} rows with room for {room} more",
                values.len()
            );
            let before = size(values);
            let old_rows = values.len();
            match selection {
                None => append_range(values, &flat, done, n),
                Some(rows) => append_some(values, &flat, &rows[done..done + n]),
            }
            let row = |i: usize| selection.map_or(i, |rows| rows[i] as usize);
            if validity.is_some()
                || (vector.validity().is_some() && (done..done + n).any(|i| vector.is_null(row(i))))
            {
                let bits = validity.get_or_insert_with(|| Bitmap::filled(old_rows, true));
                (done..done + n).for_each(|i| bits.push(!vector.is_null(row(i))));
            }
            debug_assert!(
                validity.as_ref().is_none_or(|bits| bits.len() == values.len()),
                "validity bits for another number of rows than {}",
                values.len()
            );
            let bytes = size(values) - before;
            fits &= !matches!(values, Values::Bytes(v) if v.data.len() > u32::MAX as usize);
            self.raw_bytes += bytes as u64;
            added += bytes;
            done += n;
        }
        debug_assert_eq!(done, count, "rows appended to column {}", self.spec.id);
        Pushed { bytes: added, fits }
    }
}

/// Uncompressed bytes.
fn size(values: &Values) -> usize {
    match values {
        Values::Bool(v) => v.len(),
        Values::I64(v) => v.len() * 8,
        Values::I128(v) => v.len() * 16,
        Values::F64(v) => v.len() * 8,
        Values::Bytes(v) => v.data.len() + v.len() * 4,
    }
}

fn append_range(to: &mut Values, from: &Values, start: usize, len: usize) {
    assert_same_type(to, from);
    let range = start..start + len;
    match (to, from) {
        (Values::Bool(to), Values::Bool(from)) => to.extend_from_slice(&from[range]),
        (Values::I64(to), Values::I64(from)) => to.extend_from_slice(&from[range]),
        (Values::I128(to), Values::I128(from)) => to.extend_from_slice(&from[range]),
        (Values::F64(to), Values::F64(from)) => to.extend_from_slice(&from[range]),
        (Values::Bytes(to), Values::Bytes(from)) => to.append(from, start, len),
        _ => {}
    }
}

fn append_some(to: &mut Values, from: &Values, rows: &[u32]) {
    assert_same_type(to, from);
    let rows = rows.iter().map(|row| *row as usize);
    match (to, from) {
        (Values::Bool(to), Values::Bool(from)) => to.extend(rows.map(|row| from[row])),
        (Values::I64(to), Values::I64(from)) => to.extend(rows.map(|row| from[row])),
        (Values::I128(to), Values::I128(from)) => to.extend(rows.map(|row| from[row])),
        (Values::F64(to), Values::F64(from)) => to.extend(rows.map(|row| from[row])),
        (Values::Bytes(to), Values::Bytes(from)) => rows.for_each(|row| to.push(from.get(row))),
        _ => {}
    }
}

/// Crashes if a vector does not have its column's physical type: its rows would be lost.
fn assert_same_type(column: &Values, vector: &Values) {
    let (column, vector) = (column.physical(), vector.physical());
    invariant!(column == vector, "a vector of {vector:?} for a column of {column:?}");
}
