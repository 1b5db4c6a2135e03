//! Splits batches whose rows share long texts, so that copying them stays affordable.
//!
//! A constant or a dictionary entry holds a text once; copying it per row does not share it.

use super::limits::BATCH_BYTES;
use nacre_column::{Batch, Form, Values, Vector};
use nacre_function::vector::rows::ActiveRows;
use std::sync::Arc;

/// The most rows of a batch to copy at a time.
pub fn rows_at_once(batch: &Batch) -> usize {
    let copied = |column: &Arc<Vector>| match column.form() {
        Form::Constant(Values::Bytes(_)) => column.flat_bytes(),
        Form::Dictionary { values, .. } => match &**values {
            Values::Bytes(texts) if texts.data.len().saturating_mul(batch.rows) > BATCH_BYTES => {
                column.flat_bytes()
            }
            _ => 0,
        },
        _ => 0,
    };
    match batch.columns.iter().map(copied).fold(0, usize::saturating_add) / BATCH_BYTES {
        0 => usize::MAX,
        pieces => (batch.rows / (pieces + 1)).max(1),
    }
}

/// Splits a batch if copies of its texts would take too many bytes.
pub fn pieces(batch: Batch) -> Vec<Batch> {
    let at_once = rows_at_once(&batch);
    if batch.selected() <= at_once {
        return vec![batch];
    }
    let rows = ActiveRows { len: batch.rows, selection: batch.selection.as_deref() }.to_selection();
    rows.chunks(at_once)
        .map(|rows| Batch { selection: Some(rows.to_vec()), ..batch.clone() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_types::{DataType, Value};

    fn long(values: usize, bytes: usize) -> Values {
        let text = Value::Text("x".repeat(bytes));
        Vector::from_values(DataType::TEXT, std::iter::repeat_n(&text, values)).flat().into_owned()
    }

    #[test]
    fn rows_that_share_a_long_text_are_copied_a_few_at_a_time() {
        let constant = Arc::new(Vector::from_form(
            DataType::TEXT,
            Form::Constant(long(1, BATCH_BYTES / 4)),
            None,
            10,
        ));
        let batch =
            Batch { columns: vec![constant], rows: 10, selection: Some(vec![1, 2, 3, 5, 8, 9]) };
        let selections: Vec<_> =
            pieces(batch.clone()).into_iter().map(|piece| piece.selection.unwrap()).collect();
        assert_eq!(selections, [vec![1, 2, 3], vec![5, 8, 9]]);
        let short =
            Arc::new(Vector::from_form(DataType::TEXT, Form::Constant(long(1, 20)), None, 10));
        assert_eq!(pieces(Batch { columns: vec![short], ..batch }).len(), 1);
    }
}
