//! Columns and assignments of a write.

use crate::bind::names::{place, unsupported};
use crate::bind::scope::no_column;
use crate::parse::position;
use crate::plan::Field;
use nacre_types::{Column, Error, Position, Result, TableSchema};
use sqlparser::ast;

pub(crate) fn table_fields(table: &TableSchema) -> Vec<Field> {
    let field =
        |c: &Column| Field { name: c.name.clone(), data_type: c.data_type, nullable: c.nullable };
    table.columns.iter().map(field).collect()
}

pub(crate) fn column_position(
    table: &TableSchema,
    name: &ast::ObjectName,
) -> Result<(usize, Option<Position>)> {
    let Some(ast::ObjectNamePart::Identifier(ident)) = name.0.last() else {
        return Err(unsupported("this form of column name"));
    };
    let at = position(ident.span.start);
    match table.column_index(&ident.value) {
        Some(column) => Ok((column, at)),
        None => Err(no_column(table, &ident.value).at(at)),
    }
}

/// Splits a `SET` list into single assignments: `(a, b) = (1, 2)` becomes two.
pub(crate) fn single_assignments<'a>(
    table: &TableSchema,
    list: &'a [ast::Assignment],
) -> Result<Vec<(usize, &'a ast::Expr)>> {
    let mut out = Vec::with_capacity(list.len());
    for assignment in list {
        match &assignment.target {
            ast::AssignmentTarget::ColumnName(name) => {
                out.push((column_position(table, name)?.0, &assignment.value))
            }
            ast::AssignmentTarget::Tuple(names) => {
                let mut value = &assignment.value;
                while let ast::Expr::Nested(inner) = value {
                    value = inner;
                }
                let values = match value {
                    ast::Expr::Tuple(values) => values.as_slice(),
                    ast::Expr::Subquery(_) => {
                        return Err(unsupported("assignment of a subquery to a row of columns"));
                    }
                    one => std::slice::from_ref(one),
                };
                if values.len() != names.len() {
                    let message =
                        format!("{} columns are assigned {} values", names.len(), values.len());
                    return Err(Error::syntax(message).at(place(&assignment.value)));
                }
                for (name, value) in names.iter().zip(values) {
                    out.push((column_position(table, name)?.0, value));
                }
            }
        }
    }
    Ok(out)
}

/// Returns the columns and values of the one row of `INSERT … SET a = 1`.
pub(crate) fn set_as_values<'a>(
    table: &TableSchema,
    list: &'a [ast::Assignment],
) -> Result<(Vec<usize>, Vec<&'a ast::Expr>)> {
    Ok(single_assignments(table, list)?.into_iter().unzip())
}
