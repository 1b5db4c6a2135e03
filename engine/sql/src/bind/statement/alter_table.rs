//! `ALTER TABLE` and `TRUNCATE`: derives the new schema of a table from its current one.
//!
//! Columns keep their ids, and a new column gets an id that the table never used. The storage needs
//! nothing else to read data written under an earlier schema.

use crate::bind::binder::Binder;
use crate::bind::names::{place, table_name, unsupported};
use crate::bind::rule::rename_in_rules;
use crate::bind::statement::alter_column::{
    check_unread, check_valid, drop_constraint, drop_foreign_key, find, set_counter,
};
use crate::bind::statement::declared::Declared;
use crate::bind::statement::index::{Wanted, drop_index};
use crate::parse::position;
use crate::plan::{CatalogStatement, ControlStatement, Statement};
use nacre_types::{ColumnRule, Error, Position, Result, TableSchema, limits};
use sqlparser::ast::{self, AlterTableOperation as Operation};

impl<'a> Binder<'a> {
    pub(crate) fn alter_table(&mut self, alter: &'a ast::AlterTable) -> Result<Statement> {
        if alter.only
            || alter.location.is_some()
            || alter.on_cluster.is_some()
            || alter.table_type.is_some()
        {
            return Err(unsupported("this form of ALTER TABLE"));
        }
        if alter.if_exists && self.catalog.table(&table_name(&alter.name)?.0).is_none() {
            return Ok(ControlStatement::Nothing.into());
        }
        let table = self.table(&alter.name)?;
        let mut changed = (*table).clone();
        let mut declared = Declared::default();
        for operation in &alter.operations {
            match operation {
                Operation::AddColumn { if_not_exists, column_def, column_position, .. } => {
                    if *if_not_exists && changed.column_index(&column_def.name.value).is_some() {
                        continue;
                    }
                    let place = column_position.as_ref();
                    self.add_column(&mut changed, column_def, place, &mut declared)?;
                }
                Operation::DropColumn { column_names, if_exists, drop_behavior, .. } => {
                    if matches!(drop_behavior, Some(ast::DropBehavior::Cascade)) {
                        return Err(unsupported("DROP COLUMN … CASCADE"));
                    }
                    column_names
                        .iter()
                        .try_for_each(|name| drop_column(&mut changed, name, *if_exists))?;
                }
                Operation::RenameColumn { old_column_name, new_column_name } => {
                    rename_column(&mut changed, old_column_name, new_column_name)?;
                }
                Operation::RenameTable {
                    table_name: ast::RenameTableNameKind::As(to) | ast::RenameTableNameKind::To(to),
                } => {
                    let (name, at) = table_name(to)?;
                    if !name.eq_ignore_ascii_case(&table.name)
                        && self.catalog.table(&name).is_some()
                    {
                        let error = Error::already_exists(format!("table {name} already exists"));
                        return Err(error.with_sqlstate("42P07").with_table(name).at(at));
                    }
                    let before = changed.clone();
                    changed.name.clone_from(&name);
                    rename_in_rules(&before, &mut changed, (&before.name, &name), true)?;
                }
                Operation::AddConstraint {
                    constraint: ast::TableConstraint::Unique(unique),
                    not_valid: false,
                } => {
                    declared.index(Wanted::unique(unique)?);
                }
                Operation::AddConstraint {
                    constraint: ast::TableConstraint::Index(index),
                    not_valid: false,
                } => {
                    declared.index(Wanted::plain(index));
                }
                Operation::DropIndex { name } => drop_index(&mut changed, name)?,
                Operation::DropConstraint { if_exists, name, .. } => {
                    drop_constraint(&mut changed, name, *if_exists)?
                }
                Operation::AddConstraint {
                    constraint: ast::TableConstraint::Check(check),
                    not_valid,
                } => {
                    check_valid(*not_valid, place(&check.expr))?;
                    declared.check(check, None, None)?;
                }
                Operation::AddConstraint {
                    constraint: ast::TableConstraint::ForeignKey(key),
                    not_valid,
                } => {
                    check_valid(*not_valid, None)?;
                    declared.foreign_key(key, None, None);
                }
                Operation::DropForeignKey { name, .. } => drop_foreign_key(&mut changed, name)?,
                Operation::AlterColumn { column_name, op } => {
                    self.alter_column(&mut changed, column_name, op, &table)?
                }
                Operation::ModifyColumn { col_name, data_type, options, column_position: None } => {
                    self.modify_column(&mut changed, (col_name, data_type), options, &table)?
                }
                Operation::AutoIncrement { value, .. } => set_counter(&mut changed, value)?,
                other => {
                    return Err(unsupported(&format!("ALTER TABLE … {}", operation_name(other))));
                }
            }
        }
        self.apply_declared(&declared, &mut changed)?;
        if changed == *table {
            Ok(ControlStatement::Nothing.into())
        } else {
            Ok(CatalogStatement::AlterTable { table, changed }.into())
        }
    }

    fn add_column(
        &mut self,
        schema: &mut TableSchema,
        definition: &'a ast::ColumnDef,
        place: Option<&ast::MySQLColumnPosition>,
        declared: &mut Declared<'a>,
    ) -> Result<()> {
        let at = position(definition.name.span.start);
        if schema.columns.len() >= limits::MAX_COLUMNS {
            let message =
                format!("table {} already has {} columns", schema.name, limits::MAX_COLUMNS);
            return Err(Error::limit(message).with_sqlstate("54011").at(at));
        }
        let had_key = schema.primary_key.clone();
        self.column_definition(definition, schema, declared)?;
        if schema.primary_key != had_key {
            return Err(unsupported("ADD COLUMN … PRIMARY KEY").at(at));
        }
        let Some(column) = schema.columns.pop() else { return Ok(()) };
        if matches!(column.rule, ColumnRule::Generated { .. } | ColumnRule::Identity { .. }) {
            return Err(unsupported("ADD COLUMN of a generated or identity column").at(at));
        }
        if column.must_be_given() {
            let message = format!(
                "column {} is NOT NULL without a default, but the table may contain rows",
                column.name
            );
            return Err(Error::constraint(message)
                .with_sqlstate("23502")
                .with_table(schema.name.clone())
                .with_hint("give it a DEFAULT")
                .at(at));
        }
        let index = match place {
            None => schema.columns.len(),
            Some(ast::MySQLColumnPosition::First) => 0,
            Some(ast::MySQLColumnPosition::After(name)) => find(schema, name)? + 1,
        };
        schema.insert_column(index, column);
        Ok(())
    }

    pub(crate) fn truncate(&mut self, truncate: &ast::Truncate) -> Result<Statement> {
        if truncate.partitions.is_some()
            || truncate.identity.is_some()
            || matches!(truncate.cascade, Some(ast::CascadeOption::Cascade))
            || truncate.on_cluster.is_some()
        {
            return Err(unsupported("this form of TRUNCATE"));
        }
        let mut tables = Vec::new();
        for target in &truncate.table_names {
            if truncate.if_exists && self.catalog.table(&table_name(&target.name)?.0).is_none() {
                continue;
            }
            tables.push(self.table(&target.name)?);
        }
        Ok(CatalogStatement::Truncate { tables }.into())
    }
}

fn drop_column(schema: &mut TableSchema, name: &ast::Ident, if_exists: bool) -> Result<()> {
    if if_exists && schema.column_index(&name.value).is_none() {
        return Ok(());
    }
    let column = find(schema, name)?;
    let at = position(name.span.start);
    for (key, what) in [(&schema.primary_key, "PRIMARY KEY"), (&schema.sort_key, "SORT KEY")] {
        if key.as_ref().is_some_and(|key| key.columns.contains(&column)) {
            return Err(key_error(schema, name, what, at));
        }
    }
    if schema.shard_key.as_ref().is_some_and(|key| key.columns.contains(&column)) {
        return Err(key_error(schema, name, "SHARD KEY", at));
    }
    check_unread(schema, column, at)?;
    let id = schema.columns[column].id;
    if let Some(index) = schema.indexes.iter().find(|index| index.columns.contains(&id)) {
        return Err(key_error(schema, name, &format!("INDEX {}", index.name), at)
            .with_hint("drop the index first"));
    }
    if let Some(key) = schema.foreign_keys.iter().find(|key| key.columns.contains(&id)) {
        return Err(key_error(schema, name, &format!("FOREIGN KEY {}", key.name), at)
            .with_hint("drop the constraint first"));
    }
    if schema.columns.len() == 1 {
        return Err(Error::syntax("a table must have at least one column").at(at));
    }
    schema.remove_column(column);
    Ok(())
}

fn key_error(schema: &TableSchema, name: &ast::Ident, what: &str, at: Option<Position>) -> Error {
    Error::constraint(format!("column {} is part of the {what}", name.value))
        .with_sqlstate("2BP01")
        .with_table(schema.name.clone())
        .at(at)
}

fn rename_column(schema: &mut TableSchema, from: &ast::Ident, to: &ast::Ident) -> Result<()> {
    let column = find(schema, from)?;
    if schema.column_index(&to.value).is_some_and(|other| other != column) {
        let error = Error::already_exists(format!(
            "column {} of table {} already exists",
            to.value, schema.name
        ));
        return Err(error.with_sqlstate("42701").at(position(to.span.start)));
    }
    let before = schema.clone();
    schema.columns[column].name = to.value.clone();
    let names = (&*before.columns[column].name, &*to.value);
    rename_in_rules(&before, schema, names, false)
}

fn operation_name(operation: &Operation) -> &'static str {
    match operation {
        Operation::AddConstraint { .. } => "ADD CONSTRAINT",
        _ => "this change",
    }
}
