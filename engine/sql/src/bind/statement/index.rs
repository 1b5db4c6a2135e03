//! Indexes and unique constraints in `CREATE TABLE`, `CREATE INDEX`, `ALTER TABLE` and `DROP
//! INDEX`, with the syntax of MySQL, SQLite and PostgreSQL.
//!
//! Indexes are ascending and can be read in both directions, so `DESC` has no effect. Index names
//! are local to a table; a `DROP INDEX` without a table requires that only one table has an index
//! of that name.

use crate::analysis::columns::columns;
use crate::analysis::json_path::normal;
use crate::analysis::may_fail::expr_may_fail;
use crate::bind::binder::Binder;
use crate::bind::names::{place, table_name, unsupported};
use crate::bind::rule::{Kind, key_expr, key_of};
use crate::bind::scope::with_suggestion;
use crate::bind::statement::table_clauses::refuse_deferral;
use crate::parse::position;
use crate::plan::{CatalogStatement, ControlStatement, Statement};
use nacre_types::{
    Column, ColumnRule, DataType, Error, IndexKind, IndexSchema, Position, Result, TableSchema,
};
use sqlparser::ast::{self, IndexOption, IndexType};
use std::sync::Arc;

/// An index as written; resolved when all columns of the table are known.
pub(crate) struct Wanted<'a> {
    name: Option<&'a ast::Ident>,
    columns: Columns<'a>,
    unique: bool,
    using: Option<&'a IndexType>,
    options: &'a [IndexOption],
}

enum Columns<'a> {
    /// The column whose definition has `UNIQUE`.
    Own(&'a ast::Ident),
    List(&'a [ast::IndexColumn]),
}

impl<'a> Wanted<'a> {
    /// Takes `UNIQUE` in a column definition.
    pub fn of_column(
        column: &'a ast::Ident,
        constraint: &'a ast::UniqueConstraint,
        name: Option<&'a ast::Ident>,
    ) -> Result<Wanted<'a>> {
        let wanted = Wanted::unique(constraint)?;
        Ok(Wanted { columns: Columns::Own(column), name: wanted.name.or(name), ..wanted })
    }

    /// Takes `[CONSTRAINT name] UNIQUE [KEY | INDEX] [name] (columns)`.
    pub fn unique(constraint: &'a ast::UniqueConstraint) -> Result<Wanted<'a>> {
        let ast::UniqueConstraint {
            name,
            index_name,
            index_type,
            columns,
            include,
            index_options,
            index_type_display: _,
            characteristics,
            nulls_distinct,
        } = constraint;
        if !include.is_empty() {
            return Err(unsupported("UNIQUE … INCLUDE"));
        }
        if *nulls_distinct == ast::NullsDistinctOption::NotDistinct {
            return Err(unsupported("UNIQUE NULLS NOT DISTINCT"));
        }
        refuse_deferral(characteristics)?;
        Ok(Wanted {
            name: index_name.as_ref().or(name.as_ref()),
            columns: Columns::List(columns),
            unique: true,
            using: index_type.as_ref(),
            options: index_options,
        })
    }

    /// Takes `KEY [name] (columns)` or `INDEX [name] (columns)`.
    pub fn plain(constraint: &'a ast::IndexConstraint) -> Wanted<'a> {
        let ast::IndexConstraint { name, index_type, columns, index_options, .. } = constraint;
        Wanted {
            name: name.as_ref(),
            columns: Columns::List(columns),
            unique: false,
            using: index_type.as_ref(),
            options: index_options,
        }
    }

    /// Adds the index to the table. An unnamed unique constraint is dropped if the primary key or
    /// another unique index has the same columns.
    pub fn apply(&self, binder: &mut Binder<'a>, schema: &mut TableSchema) -> Result<()> {
        let index = self.index(binder, schema)?;
        if self.unique && self.name.is_none() {
            let key = schema.primary_key.as_ref().map(|key| &key.columns);
            let is_key = key.is_some() && key == schema.index_positions(&index).as_ref();
            if is_key
                || schema.indexes.iter().any(|known| known.unique && known.columns == index.columns)
            {
                return Ok(());
            }
        }
        let index = IndexSchema { id: schema.take_index_id(), ..index };
        schema.indexes.push(index);
        schema.check_indexes().map_err(|e| e.at(self.place()))
    }

    fn place(&self) -> Option<Position> {
        let ident = self.name.or(match &self.columns {
            Columns::Own(ident) => Some(ident),
            Columns::List(_) => None,
        });
        ident.and_then(|ident| position(ident.span.start))
    }

    /// The index; adds the columns that it computes to the table.
    fn index(&self, binder: &mut Binder<'a>, schema: &mut TableSchema) -> Result<IndexSchema> {
        let (mut columns, mut first) = (Vec::new(), None);
        let parts = match &self.columns {
            Columns::Own(ident) => vec![(Some(*ident), None)],
            Columns::List(list) => {
                list.iter().map(|part| self.part(part)).collect::<Result<_>>()?
            }
        };
        for (ident, expr) in parts {
            let (id, at) = match (ident, expr) {
                (Some(ident), _) => (named(schema, ident)?, position(ident.span.start)),
                (None, Some(expr)) => {
                    let (id, read) = binder.computed(expr, schema)?;
                    first.get_or_insert(read);
                    (id, place(expr))
                }
                (None, None) => continue,
            };
            let name = schema.key_position(id).map_or("", |at| &schema.key_column(at).name);
            if columns.contains(&id) {
                return Err(Error::already_exists(format!(
                    "column {name} appears twice in the index"
                ))
                .with_sqlstate("42701")
                .at(at));
            }
            first.get_or_insert(schema.column_position(id).unwrap_or_default());
            columns.push(id);
        }
        let option = self.options.iter().find_map(|option| match option {
            IndexOption::Using(using) => Some(using),
            IndexOption::Comment(_) => None,
        });
        let kind = match option.or(self.using) {
            None => IndexKind::DEFAULT,
            Some(using) => IndexKind::of_keyword(&using.to_string())
                .ok_or_else(|| unsupported("USING other than HASH and BTREE").at(self.place()))?,
        };
        let name = match self.name {
            Some(name) => name.value.clone(),
            None => free_name(schema, first),
        };
        Ok(IndexSchema { id: 0, name, columns, unique: self.unique, kind })
    }

    /// A part of the index: a column or an expression.
    fn part(
        &self,
        part: &'a ast::IndexColumn,
    ) -> Result<(Option<&'a ast::Ident>, Option<&'a ast::Expr>)> {
        if part.operator_class.is_some() {
            return Err(unsupported("an operator class").at(place(&part.column.expr)));
        }
        let mut expr = &part.column.expr;
        while let ast::Expr::Nested(inner) = expr {
            expr = inner;
        }
        Ok(match expr {
            ast::Expr::Identifier(ident) => (Some(ident), None),
            expr => (None, Some(expr)),
        })
    }
}

/// The id of a column of a table that can be in an index.
fn named(schema: &TableSchema, ident: &ast::Ident) -> Result<u32> {
    let (name, at) = (&ident.value, position(ident.span.start));
    let Some(column) = schema.column_index(name).map(|at| &schema.columns[at]) else {
        let error = Error::not_found(format!("column {name} of the index does not exist"));
        let names = schema.columns.iter().map(|c| c.name.as_str());
        return Err(with_suggestion(error.with_sqlstate("42703").at(at), name, names));
    };
    match column.data_type {
        DataType::Json => Err(unsupported("an index of type JSON").at(at)),
        _ => Ok(column.id),
    }
}

/// Returns a free index name: the name of the first column, with a number appended if that is
/// taken.
fn free_name(schema: &TableSchema, first: Option<usize>) -> String {
    let base = first.map_or("index", |at| &schema.columns[at].name);
    let taken =
        |name: &str| schema.index_by_name(name).is_some() || name.eq_ignore_ascii_case("primary");
    let (mut name, mut number) = (base.to_string(), 1);
    while taken(&name) {
        number += 1;
        name = format!("{base}_{number}");
    }
    name
}

/// Removes an index by name.
pub(crate) fn drop_index(schema: &mut TableSchema, name: &ast::Ident) -> Result<()> {
    let Some(id) = schema.index_by_name(&name.value).map(|index| index.id) else {
        return Err(no_index(
            &name.value,
            schema.declared_indexes().map(|i| i.name.as_str()),
            position(name.span.start),
        ));
    };
    schema.indexes.retain(|index| index.id != id);
    // Also drops implied indexes that only this one needed, so that they do not keep columns from
    // being dropped.
    schema.complete_indexes();
    Ok(())
}

pub(super) fn no_index<'n>(
    name: &str,
    names: impl Iterator<Item = &'n str>,
    at: Option<Position>,
) -> Error {
    let error =
        Error::not_found(format!("index {name} does not exist")).with_sqlstate("42704").at(at);
    with_suggestion(error, name, names)
}

impl<'a> Binder<'a> {
    /// The id of a computed column of an expression, which is added to the table unless it has it;
    /// and the position of a column that the expression reads.
    fn computed(&mut self, ast: &'a ast::Expr, schema: &mut TableSchema) -> Result<(u32, usize)> {
        let at = place(ast);
        if let ast::Expr::Function(ast::Function { name, .. }) = ast
            && let [ast::ObjectNamePart::Identifier(name)] = &name.0[..]
            && schema.column_index(&name.value).is_some()
        {
            return Err(unsupported("an index of the beginning of a column").at(at));
        }
        let text = self.declared_rule(ast, schema, Kind::Key)?;
        let mut column = Column::computed(0, DataType::Null, &text, false);
        let bound = key_expr(schema, &column)?;
        let mut read = None;
        columns(&bound, &mut |column| {
            read.get_or_insert(column);
        });
        let Some(read) = read else { return Err(unsupported("an index of a constant").at(at)) };
        match bound.data_type {
            DataType::Json => return Err(unsupported("an index of type JSON").at(at)),
            DataType::Null | DataType::Interval => {
                return Err(unsupported("an index of this type").at(at));
            }
            _ => {}
        }
        let bound = normal(&bound);
        let is_same = |known: &&Column| key_of(schema, known).is_ok_and(|key| key == bound);
        if let Some(known) = schema.computed.iter().find(is_same) {
            return Ok((known.id, read));
        }
        column.id = schema.take_column_id();
        column.data_type = bound.data_type;
        column.rule = ColumnRule::Computed { may_fail: expr_may_fail(&bound) };
        schema.computed.push(column);
        Ok((schema.computed.last().map_or(0, |column| column.id), read))
    }

    pub(crate) fn create_index(&mut self, create: &'a ast::CreateIndex) -> Result<Statement> {
        let table = self.table(&create.table_name)?;
        let feature = if create.predicate.is_some() {
            "an index with WHERE"
        } else if !create.include.is_empty() {
            "an index with INCLUDE"
        } else if create.nulls_distinct == Some(false) {
            "NULLS NOT DISTINCT"
        } else if !create.with.is_empty() {
            "an index WITH parameters"
        } else {
            ""
        };
        if !feature.is_empty() {
            return Err(unsupported(feature));
        }
        let name = match create.name.as_ref().map(|name| name.0.as_slice()) {
            None => None,
            Some([.., ast::ObjectNamePart::Identifier(ident)]) => Some(ident),
            Some(_) => return Err(unsupported("this form of name")),
        };
        if let Some(known) = name.filter(|name| table.index_by_name(&name.value).is_some()) {
            if create.if_not_exists {
                return Ok(ControlStatement::Nothing.into());
            }
            let message = format!("index {} of table {} already exists", known.value, table.name);
            return Err(Error::already_exists(message)
                .with_sqlstate("42P07")
                .at(position(known.span.start)));
        }
        let wanted = Wanted {
            name,
            columns: Columns::List(&create.columns),
            unique: create.unique,
            using: create.using.as_ref(),
            options: &create.index_options,
        };
        let mut changed = (*table).clone();
        let index = wanted.index(self, &mut changed)?;
        let computes = index.columns.iter().any(|id| table.column_position(*id).is_none());
        let changed = computes.then(|| {
            let id = changed.take_index_id();
            changed.indexes.push(IndexSchema { id, ..index.clone() });
            changed
        });
        Ok(CatalogStatement::CreateIndex { table, index, changed }.into())
    }

    pub(crate) fn drop_indexes(
        &mut self,
        names: &[ast::ObjectName],
        of: Option<&ast::ObjectName>,
        if_exists: bool,
    ) -> Result<Statement> {
        let tables = match of {
            Some(table) => vec![self.table(table)?],
            None => self.sorted_tables(),
        };
        let mut indexes = Vec::new();
        for name in names {
            let (name, at) = table_name(name)?;
            let mut having = tables.iter().filter(|table| table.index_by_name(&name).is_some());
            match (having.next(), having.next()) {
                (Some(table), None) => {
                    let is_same = |(other, known): &(_, String)| {
                        Arc::ptr_eq(other, table) && known.eq_ignore_ascii_case(&name)
                    };
                    if !indexes.iter().any(is_same) {
                        indexes.push((table.clone(), name));
                    }
                }
                (Some(a), Some(b)) => {
                    let message =
                        format!("tables {} and {} both have an index {name}", a.name, b.name);
                    return Err(Error::syntax(message)
                        .with_sqlstate("42P09")
                        .with_hint(format!("DROP INDEX {name} ON {}", a.name))
                        .at(at));
                }
                _ if if_exists => {}
                _ => {
                    return Err(no_index(
                        &name,
                        tables.iter().flat_map(|t| t.declared_indexes()).map(|i| i.name.as_str()),
                        at,
                    ));
                }
            }
        }
        Ok(if indexes.is_empty() {
            ControlStatement::Nothing.into()
        } else {
            CatalogStatement::DropIndex { indexes }.into()
        })
    }
}
