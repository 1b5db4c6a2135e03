//! `SORT KEY (…)` and `SHARD KEY (…)` in `CREATE TABLE`: storage properties, not constraints.
//!
//! The parser reads `SHARD KEY (a)` as a column `SHARD` of a type `KEY(a)`.

use crate::bind::names::unsupported;
use crate::parse::position;
use nacre_types::{DataType, Error, KeyColumns, Position, Result, ShardKey, TableSchema};
use sqlparser::ast;

/// A key that the parser returned as a column definition.
pub(crate) struct StorageKey<'a> {
    name: &'a str,
    columns: &'a [String],
    at: Option<Position>,
}

/// Recognises a key in a column definition.
pub(crate) fn of_definition(definition: &ast::ColumnDef) -> Option<StorageKey<'_>> {
    let ast::DataType::Custom(type_name, columns) = &definition.data_type else { return None };
    let [ast::ObjectNamePart::Identifier(word)] = type_name.0.as_slice() else { return None };
    let unquoted = word.quote_style.is_none() && definition.name.quote_style.is_none();
    let is_key =
        unquoted && word.value.eq_ignore_ascii_case("key") && definition.options.is_empty();
    let at = position(definition.name.span.start);
    is_key.then_some(StorageKey { name: &definition.name.value, columns, at })
}

impl StorageKey<'_> {
    /// Sets the key of the table, whose columns must all be known.
    pub fn apply(&self, schema: &mut TableSchema) -> Result<()> {
        let shards = self.name.eq_ignore_ascii_case("shard");
        let key = format!("{} KEY", self.name.to_ascii_uppercase());
        if !shards && !self.name.eq_ignore_ascii_case("sort") {
            return Err(unsupported(&key).at(self.at));
        }
        if if shards { schema.shard_key.is_some() } else { schema.sort_key.is_some() } {
            return Err(Error::syntax(format!("a table can have only one {key}"))
                .with_sqlstate("42P16")
                .at(self.at));
        }
        let columns = self.positions(schema, &key)?;
        if columns.iter().any(|c| schema.columns[*c].data_type == DataType::Json) {
            return Err(unsupported(&format!("a {key} of type JSON")).at(self.at));
        }
        if !shards {
            if columns.is_empty() {
                return Err(unsupported("an empty SORT KEY").at(self.at));
            }
            schema.sort_key = Some(KeyColumns { name: "SORT".into(), columns });
            return Ok(());
        }
        schema.shard_key = Some(ShardKey { columns, partitions: 0 });
        schema.check_shard_key().map_err(|e| e.at(self.at))
    }

    fn positions(&self, schema: &TableSchema, key: &str) -> Result<Vec<usize>> {
        let mut positions = Vec::new();
        for written in self.columns {
            let name = &unquoted(written);
            let Some(place) = schema.column_index(name) else {
                return Err(crate::bind::scope::no_column(schema, name).at(self.at));
            };
            if positions.contains(&place) {
                let error =
                    Error::already_exists(format!("column {name} appears twice in the {key}"));
                return Err(error.with_sqlstate("42701").at(self.at));
            }
            positions.push(place);
        }
        Ok(positions)
    }
}

/// Removes the quotes of an identifier; the parser returns arguments of a type as written.
fn unquoted(word: &str) -> String {
    match word.strip_prefix(['"', '`']).and_then(|w| w.strip_suffix(['"', '`'])) {
        Some(inner) => inner.replace("\"\"", "\"").replace("``", "`"),
        None => word.to_string(),
    }
}
