//! Names in scope: resolves identifiers to columns, and reports unknown and ambiguous ones.

use crate::expr::Expr;
use crate::plan::Field;
use nacre_types::{DataType, Error, Reason, Result};
use std::ops::Range;

/// Name of a hidden column that queries cannot spell: the number of a row that a statement changes.
pub(crate) const ROW_NUMBER: &str = "\0row";

/// A column in scope.
#[derive(Clone, Debug)]
pub(crate) struct ScopeColumn {
    pub table: String,
    pub name: String,
    pub data_type: DataType,
    pub nullable: bool,
}

/// A column of `USING` or `NATURAL`: its unqualified name means this expression.
#[derive(Clone, Debug)]
pub(crate) struct Merged {
    pub name: String,
    pub expr: Expr,
    /// The columns of both sides that it replaces.
    pub hidden: Vec<usize>,
    /// `*` shows it before the column at this position.
    pub before: usize,
}

/// The columns of a row, by position.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    pub columns: Vec<ScopeColumn>,
    /// In the order in which `*` shows them.
    pub merged: Vec<Merged>,
    /// Columns from this position on need the name of their table.
    pub qualified_from: Option<usize>,
    /// For each table with a primary key: the range of its columns, and the positions of its key
    /// columns.
    pub tables: Vec<(Range<usize>, Vec<usize>)>,
}

impl Scope {
    /// Builds the scope of one table or subquery.
    pub fn of(table: &str, fields: &[Field]) -> Scope {
        let column = |f: &Field| ScopeColumn {
            table: table.to_string(),
            name: f.name.clone(),
            data_type: f.data_type,
            nullable: f.nullable,
        };
        Scope { columns: fields.iter().map(column).collect(), ..Scope::default() }
    }

    /// Whether a column is functionally dependent on the `fixed` columns: they include the primary
    /// key of its table. This also holds for rows that an outer join extends with nulls.
    pub fn follows(&self, column: usize, fixed: &dyn Fn(usize) -> bool) -> bool {
        self.tables
            .iter()
            .any(|(columns, key)| columns.contains(&column) && key.iter().all(|at| fixed(*at)))
    }

    /// Whether a table or alias of this name is in scope.
    pub fn has_table(&self, table: &str) -> bool {
        self.columns.iter().any(|c| c.table.eq_ignore_ascii_case(table))
    }

    /// Resolves a name to a column; `None` if there is no such column. Returns a type error if the
    /// name is ambiguous.
    pub fn resolve(&self, table: Option<&str>, name: &str) -> Result<Option<Expr>> {
        let mut found = None;
        let mut count = 0;
        if table.is_none() {
            for merged in self.merged.iter().filter(|m| m.name.eq_ignore_ascii_case(name)) {
                count += 1;
                found = Some(merged.expr.clone());
            }
        }
        for (at, column) in self.columns.iter().enumerate() {
            if !column.name.eq_ignore_ascii_case(name)
                || table.is_some_and(|t| !column.table.eq_ignore_ascii_case(t))
                || (table.is_none() && self.is_hidden(at))
            {
                continue;
            }
            count += 1;
            found = Some(Expr::column(at, column.data_type));
        }
        if count > 1 {
            let mut tables: Vec<&str> = Vec::new();
            for column in self.columns.iter().filter(|c| c.name.eq_ignore_ascii_case(name)) {
                tables.push(&column.table);
            }
            let error =
                Error::type_error(format!("column {name} is ambiguous")).with_sqlstate("42702");
            return Err(error.with_hint(format!("it is a column of {}", tables.join(", "))));
        }
        Ok(found)
    }

    /// Whether the column cannot be named without its table, and `*` leaves it out.
    pub fn is_hidden(&self, at: usize) -> bool {
        self.columns.get(at).is_some_and(|c| c.name == ROW_NUMBER)
            || self.qualified_from.is_some_and(|from| at >= from)
            || self.merged.iter().any(|m| m.hidden.contains(&at))
    }

    /// Builds the error for a name that does not resolve in this scope.
    pub fn unknown_column(
        &self,
        table: Option<&str>,
        name: &str,
        aliases: &[(String, Expr)],
    ) -> Error {
        if let Some(table) = table
            && !self.has_table(table)
        {
            let tables = self.columns.iter().map(|c| c.table.as_str());
            let error =
                Error::not_found(format!("no table `{table}` in FROM")).with_sqlstate("42P01");
            return with_suggestion(error, table, tables);
        }
        let in_table = |c: &&ScopeColumn| table.is_none_or(|t| c.table.eq_ignore_ascii_case(t));
        let names = self.columns.iter().filter(in_table).map(|c| c.name.as_str());
        // Name the tables that were searched if there are few.
        let mut tables: Vec<&str> = Vec::new();
        for column in self.columns.iter().filter(in_table) {
            if !column.table.is_empty() && !tables.contains(&column.table.as_str()) {
                tables.push(&column.table);
            }
        }
        let mut message = format!("no column `{name}`");
        for (at, table) in tables.iter().enumerate().filter(|_| tables.len() <= 3) {
            message += if at == 0 { " in `" } else { " or `" };
            message += table;
            message.push('`');
        }
        let error = Error::not_found(message).with_sqlstate("42703");
        let aliases = if table.is_none() { aliases } else { &[] };
        with_suggestion(error, name, names.chain(aliases.iter().map(|a| a.0.as_str())))
    }
}

/// Builds the error for a column that a table does not have.
#[cold]
pub(crate) fn no_column(table: &nacre_types::TableSchema, name: &str) -> Error {
    let owner = if table.name.is_empty() { String::new() } else { format!(" in `{}`", table.name) };
    let error = Error::not_found(format!("no column `{name}`{owner}")).with_sqlstate("42703");
    with_suggestion(error, name, table.columns.iter().map(|c| c.name.as_str()))
}

/// Adds "did you mean …?" if a candidate is close to `name`.
pub(crate) fn with_suggestion<'n>(
    error: Error,
    name: &str,
    candidates: impl Iterator<Item = &'n str>,
) -> Error {
    let limit = ((name.chars().count() + 1) / 3).min(3);
    let mut best: Option<(usize, &str)> = None;
    // A candidate of this very name is one that cannot be meant here.
    for candidate in candidates.take(10_000).filter(|c| !c.eq_ignore_ascii_case(name)) {
        let distance = edit_distance(name, candidate, limit);
        if distance <= limit && best.is_none_or(|(d, _)| distance < d) {
            best = Some((distance, candidate));
        }
    }
    match best {
        Some((_, candidate)) => {
            error.and(format!("did you mean `{candidate}`?")).with_reason(Reason::Misspelled)
        }
        None => error,
    }
}

/// Optimal string alignment distance, ignoring ASCII case. A distance over `limit` may be reported
/// as `limit + 1`.
fn edit_distance(a: &str, b: &str, limit: usize) -> usize {
    let a: Vec<char> = a.chars().map(|c| c.to_ascii_lowercase()).collect();
    let b: Vec<char> = b.chars().map(|c| c.to_ascii_lowercase()).collect();
    if a.len().abs_diff(b.len()) > limit || a.len() > 256 {
        return limit + 1;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, cb) in b.iter().enumerate() {
            let mut cost = (last[j] + usize::from(ca != cb)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *ca == b[j - 1] && a[i - 1] == *cb {
                cost = cost.min(before[j - 1] + 1);
            }
            row.push(cost);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}
