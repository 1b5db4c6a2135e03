//! Rows of a table from single values.

use nacre_column::{Batch, Vector};
use nacre_operator::cast_value;
use nacre_types::{DataType, Error, Result, TableSchema, Value};
use std::sync::Arc;

/// Makes rows of a table from the values of columns, which are cast as parameters of an `INSERT`
/// are. Columns are given by name, without regard to case; one that is not given has its default in
/// all rows.
///
/// Errors: `not_found` for a column that the table does not have; `type` for columns of different
/// lengths, a column that is given twice, and a value that cannot be cast.
///
/// ```
/// # use nacre_native::{block_on, memory_host};
/// # use nacredb::{Database, OnDuplicate, Options, Value};
/// # block_on(async {
/// # let db = Database::open(memory_host(), Options::default()).await?;
/// # let mut session = db.session();
/// use nacredb::batch_from_values;
///
/// let create = "create table events (id bigint primary key, kind text default 'click', at date)";
/// session.execute(create, &[]).await?;
/// let mut appender = session.appender("events", OnDuplicate::Error).await?;
/// let days = ["2026-11-24", "2026-11-25"].map(|day| Value::Text(day.into()));
/// let columns = [("at", days.to_vec()), ("id", vec![Value::Int(1), Value::Int(2)])];
/// appender.append(&batch_from_values(appender.schema(), &columns)?)?;
/// assert_eq!(appender.finish().await?, 2);
/// # Ok::<(), nacredb::Error>(())
/// # }).unwrap();
/// ```
pub fn batch_from_values(table: &TableSchema, columns: &[(&str, Vec<Value>)]) -> Result<Batch> {
    let rows = columns.first().map_or(0, |(_, values)| values.len());
    let mut vectors: Vec<Option<Arc<Vector>>> = vec![None; table.columns.len()];
    for (name, values) in columns {
        if values.len() != rows {
            let (first, _) = columns[0];
            return Err(Error::type_error(format!(
                "column {name} has {} values, column {first} has {rows}",
                values.len()
            )));
        }
        let at = table.columns.iter().position(|c| c.name.eq_ignore_ascii_case(name));
        let at = at.ok_or_else(|| {
            Error::not_found(format!("table {} has no column `{name}`", table.name))
                .with_sqlstate("42703")
        })?;
        if vectors[at].is_some() {
            return Err(Error::type_error(format!("column {name} is given twice")));
        }
        let row = |row| format!("column {name}, row {row}");
        vectors[at] = Some(Arc::new(cast_all(table.columns[at].data_type, values, row)?));
    }
    let defaults = vectors.into_iter().zip(&table.columns).map(|(vector, column)| {
        let default = || Vector::constant(column.data_type, &column.default, rows);
        vector.unwrap_or_else(|| Arc::new(default()))
    });
    Ok(Batch::new(defaults.collect(), rows))
}

/// Makes a vector from single values, which are cast as parameters are.
///
/// Errors: `type` for a value that cannot be cast, with its row.
///
/// ```
/// # use nacredb::{DataType, Value, vector_from_values};
/// let vector = vector_from_values(DataType::Int64, &[Value::Int(1), Value::Text("2".into())])?;
/// assert_eq!(vector.value(1), Value::Int(2));
/// # Ok::<(), nacredb::Error>(())
/// ```
pub fn vector_from_values(to: DataType, values: &[Value]) -> Result<Vector> {
    cast_all(to, values, |row| format!("row {row}"))
}

fn cast_all(to: DataType, values: &[Value], of: impl Fn(usize) -> String) -> Result<Vector> {
    let mut cast = Vec::with_capacity(values.len());
    for (row, value) in values.iter().enumerate() {
        cast.push(cast_value(value, to).map_err(|error| error.context(of(row + 1)))?);
    }
    Ok(Vector::from_values(to, &cast))
}
