//! `ALTER TABLE`: defaults, nullability and constraints of existing columns, and what a change of
//! names means for the rules of a table.

use crate::bind::binder::Binder;
use crate::bind::expression::types;
use crate::bind::names::unsupported;
use crate::bind::rule::{Kind, rules_reading};
use crate::bind::statement::declared::counter_value;
use crate::bind::statement::index::drop_index;
use crate::parse::position;
use nacre_types::{ColumnRule, Error, Position, Result, TableSchema};
use sqlparser::ast::{self, AlterColumnOperation as Change};

impl<'a> Binder<'a> {
    /// Applies `ALTER COLUMN`.
    pub(crate) fn alter_column(
        &mut self,
        schema: &mut TableSchema,
        name: &ast::Ident,
        change: &'a Change,
        old: &TableSchema,
    ) -> Result<()> {
        let column = find(schema, name)?;
        let at = position(name.span.start);
        let is_new = old.column_position(schema.columns[column].id).is_none();
        // Older rows have the default of ADD COLUMN, which is computed once all changes are known.
        if is_new && matches!(change, Change::SetDefault { .. } | Change::DropDefault) {
            let what = "ALTER COLUMN … DEFAULT of a column that the same statement adds";
            return Err(unsupported(what).with_hint("use two statements").at(at));
        }
        match change {
            Change::SetNotNull => schema.columns[column].nullable = false,
            Change::DropNotNull => {
                let is_key =
                    schema.primary_key.as_ref().is_some_and(|key| key.columns.contains(&column));
                let what = match &schema.columns[column].rule {
                    _ if is_key => Some("part of the PRIMARY KEY"),
                    ColumnRule::Identity { .. } => Some("an identity column"),
                    _ => None,
                };
                if let Some(what) = what {
                    let message = format!("column {} is {what}", name.value);
                    return Err(Error::constraint(message)
                        .with_sqlstate("42P16")
                        .with_table(schema.name.clone())
                        .at(at));
                }
                schema.columns[column].nullable = true;
            }
            Change::SetDefault { value } => self.change_default(schema, column, value, at)?,
            Change::DropDefault => drop_default(schema, column, at)?,
            Change::SetDataType { using: Some(_), .. } => {
                return Err(unsupported("ALTER COLUMN … TYPE … USING"));
            }
            Change::SetDataType { data_type, .. } => change_type(schema, column, data_type, at)?,
            Change::AddGenerated { .. } => {
                return Err(unsupported("ALTER COLUMN … ADD GENERATED").at(at));
            }
        }
        Ok(())
    }
}

impl<'a> Binder<'a> {
    fn change_default(
        &mut self,
        schema: &mut TableSchema,
        column: usize,
        value: &'a ast::Expr,
        at: Option<Position>,
    ) -> Result<()> {
        check_constant_source(schema, column, at)?;
        let mut new = schema.columns[column].clone();
        let absent = new.default.clone();
        self.set_default(value, schema, &mut new)?;
        // Rows that are older than the column keep the value they have.
        let is_kept = new.rule == ColumnRule::Constant && new == schema.columns[column];
        schema.columns[column].rule = match new.rule {
            _ if is_kept => ColumnRule::Constant,
            ColumnRule::Constant if new.default == absent => ColumnRule::Constant,
            ColumnRule::Constant => {
                let kind = Kind::Default(&schema.columns[column]);
                ColumnRule::Default(self.declared_rule(value, schema, kind)?)
            }
            rule => rule,
        };
        Ok(())
    }

    /// Applies MySQL's `MODIFY COLUMN name type [NULL | NOT NULL] [DEFAULT value] [AUTO_INCREMENT]`, which says all of a
    /// column: without `NOT NULL` it takes nulls, without `DEFAULT` it has none.
    pub(super) fn modify_column(
        &mut self,
        schema: &mut TableSchema,
        (name, data_type): (&ast::Ident, &ast::DataType),
        options: &'a [ast::ColumnOption],
        old: &TableSchema,
    ) -> Result<()> {
        use ast::ColumnOption as Option;
        let (column, at) = (find(schema, name)?, position(name.span.start));
        if old.column_position(schema.columns[column].id).is_none() {
            return Err(
                unsupported("MODIFY COLUMN of a column that the same statement adds").at(at)
            );
        }
        change_type(schema, column, data_type, at)?;
        let (mut not_null, mut default, mut counts) = (false, None, false);
        for option in options {
            match option {
                Option::Null => not_null = false,
                Option::NotNull => not_null = true,
                Option::Default(value) => default = Some(value),
                Option::Comment(_) => {}
                Option::DialectSpecific(_) | Option::Identity(_) => counts = true,
                _ => return Err(unsupported("this option of MODIFY COLUMN").at(at)),
            }
        }
        let is_identity = matches!(schema.columns[column].rule, ColumnRule::Identity { .. });
        if is_identity != counts {
            return Err(unsupported("MODIFY COLUMN of AUTO_INCREMENT").at(at));
        }
        let is_key = schema.primary_key.as_ref().is_some_and(|key| key.columns.contains(&column));
        if !is_key && !is_identity {
            schema.columns[column].nullable = !not_null;
        }
        match default {
            Some(value) => self.change_default(schema, column, value, at),
            None if is_identity => Ok(()),
            None => drop_default(schema, column, at),
        }
    }
}

fn drop_default(schema: &mut TableSchema, column: usize, at: Option<Position>) -> Result<()> {
    check_constant_source(schema, column, at)?;
    let column = &mut schema.columns[column];
    column.rule = match column.default.is_null() {
        true => ColumnRule::Constant,
        false => ColumnRule::Default("NULL".into()),
    };
    Ok(())
}

/// Gives a column a type that holds all values of its own, in the same form: no row changes.
fn change_type(
    schema: &mut TableSchema,
    column: usize,
    to: &ast::DataType,
    at: Option<Position>,
) -> Result<()> {
    let column = &mut schema.columns[column];
    let to = types::data_type(to).map_err(|e| e.at(at))?;
    if !types::holds_all(to, column.data_type) {
        let what = format!("ALTER COLUMN … TYPE from {} to {to}", column.data_type);
        let hint = "add a column, UPDATE it and drop this one";
        return Err(unsupported(&what).with_hint(hint).at(at));
    }
    column.data_type = to;
    Ok(())
}

/// Fails if the values of a column do not come from a default.
fn check_constant_source(schema: &TableSchema, at: usize, place: Option<Position>) -> Result<()> {
    let column = &schema.columns[at];
    let what = match column.rule {
        ColumnRule::Constant | ColumnRule::Default(_) | ColumnRule::Computed { .. } => {
            return Ok(());
        }
        ColumnRule::Generated { .. } => "a generated column",
        ColumnRule::Identity { .. } => "an identity column",
    };
    Err(Error::constraint(format!("column {} is {what}", column.name))
        .with_sqlstate("42601")
        .with_table(schema.name.clone())
        .at(place))
}

/// Applies `AUTO_INCREMENT = n`.
pub(super) fn set_counter(schema: &mut TableSchema, value: &ast::ValueWithSpan) -> Result<()> {
    let at = position(value.span.start);
    if schema.identity_column().is_none() {
        let message = format!("table {} has no identity column", schema.name);
        return Err(Error::constraint(message).with_table(schema.name.clone()).at(at));
    }
    let least = counter_value(&value.value.to_string()).map_err(|e| e.at(at))?;
    schema.next_identity = schema.next_identity.max(least);
    Ok(())
}

/// Applies `DROP CONSTRAINT`.
pub(super) fn drop_constraint(
    schema: &mut TableSchema,
    name: &ast::Ident,
    if_exists: bool,
) -> Result<()> {
    let at = position(name.span.start);
    if schema.check_by_name(&name.value).is_some() {
        schema.checks.retain(|check| !check.name.eq_ignore_ascii_case(&name.value));
        return Ok(());
    }
    if schema.foreign_key(&name.value).is_some() {
        return drop_foreign_key(schema, name);
    }
    match schema.index_by_name(&name.value) {
        Some(index) if index.unique => drop_index(schema, name),
        Some(_) => Err(unsupported("DROP CONSTRAINT of an index that is not UNIQUE").at(at)),
        None if if_exists => Ok(()),
        None if name.value.eq_ignore_ascii_case("primary") => {
            Err(unsupported("DROP CONSTRAINT of the PRIMARY KEY").at(at))
        }
        None => Err(Error::not_found(format!(
            "constraint {} of table {} does not exist",
            name.value, schema.name
        ))
        .with_sqlstate("42704")
        .at(at)),
    }
}

/// Applies `DROP FOREIGN KEY`.
pub(super) fn drop_foreign_key(schema: &mut TableSchema, name: &ast::Ident) -> Result<()> {
    let before = schema.foreign_keys.len();
    schema.foreign_keys.retain(|key| !key.name.eq_ignore_ascii_case(&name.value));
    if schema.foreign_keys.len() < before {
        return Ok(());
    }
    let (key, table) = (&name.value, &schema.name);
    Err(Error::not_found(format!("foreign key {key} of table {table} does not exist"))
        .with_sqlstate("42704")
        .at(position(name.span.start)))
}

/// Fails if a rule other than its own reads a column.
pub(super) fn check_unread(schema: &TableSchema, at: usize, place: Option<Position>) -> Result<()> {
    match rules_reading(schema, at)? {
        None => Ok(()),
        Some(what) => {
            let message = format!("column {} is read by {what}", schema.columns[at].name);
            Err(Error::constraint(message)
                .with_sqlstate("2BP01")
                .with_table(schema.name.clone())
                .at(place))
        }
    }
}

/// Returns the position of a column, or an error if it does not exist.
pub(super) fn find(schema: &TableSchema, name: &ast::Ident) -> Result<usize> {
    schema.column_index(&name.value).ok_or_else(|| {
        crate::bind::scope::no_column(schema, &name.value).at(position(name.span.start))
    })
}

/// Refuses forms of `ADD CONSTRAINT` that do not look at existing rows.
pub(super) fn check_valid(not_valid: bool, at: Option<Position>) -> Result<()> {
    match not_valid {
        true => Err(unsupported("NOT VALID").at(at)),
        false => Ok(()),
    }
}
