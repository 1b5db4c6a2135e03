//! A key column as integers with a null mask.

use crate::expr::ActiveRows;
use nacre_column::{Form, Values, Vector};
use nacre_types::{Error, Result, key};

/// Values of one key column for the selected rows.
pub(super) struct Codes {
    pub values: Vec<i64>,
    pub nulls: Option<Vec<bool>>,
}

impl Codes {
    pub fn of_ids(ids: &[u32], vector: &Vector) -> Codes {
        let nulls = vector.validity().map(|_| ids.iter().map(|id| *id == 0).collect());
        Codes { values: ids.iter().map(|id| *id as i64).collect(), nulls }
    }

    pub fn is_null(&self, k: usize) -> bool {
        self.nulls.as_ref().is_some_and(|n| n[k])
    }

    pub fn range(&self) -> Option<(i64, i64)> {
        let mut range: Option<(i64, i64)> = None;
        match &self.nulls {
            None => {
                let low = self.values.iter().min()?;
                let high = self.values.iter().max()?;
                range = Some((*low, *high));
            }
            Some(nulls) => {
                for (v, _) in self.values.iter().zip(nulls).filter(|(_, null)| !**null) {
                    range = Some(range.map_or((*v, *v), |(low, high)| (low.min(*v), high.max(*v))));
                }
            }
        }
        range
    }

    pub fn of(vector: &Vector, rows: ActiveRows<'_>) -> Result<Codes> {
        let at = |row: usize| match vector.form() {
            Form::Flat(_) => row,
            Form::Constant(_) => 0,
            Form::Dictionary { codes, .. } => codes[row] as usize,
        };
        let values = match vector.form() {
            Form::Flat(values) | Form::Constant(values) => values,
            Form::Dictionary { values, .. } => values,
        };
        let nulls = vector.validity().map(|_| rows.iter().map(|row| vector.is_null(row)).collect());
        let values: Vec<i64> = match (values, rows.selection) {
            (Values::I64(v), None) if matches!(vector.form(), Form::Flat(_)) => v.clone(),
            (Values::I64(v), _) if !v.is_empty() => rows.iter().map(|row| v[at(row)]).collect(),
            (Values::F64(v), _) if !v.is_empty() => {
                rows.iter().map(|row| key::order_f64(v[at(row)]) as i64).collect()
            }
            (Values::Bool(v), _) if !v.is_empty() => {
                rows.iter().map(|row| v[at(row)] as i64).collect()
            }
            (Values::I64(_) | Values::F64(_) | Values::Bool(_), _) => vec![0; rows.count()],
            _ => return Err(Error::type_error(format!("{} cannot be a key", vector.data_type()))),
        };
        Ok(Codes { values, nulls })
    }
}
