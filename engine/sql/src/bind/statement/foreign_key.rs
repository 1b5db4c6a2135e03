//! `FOREIGN KEY` and `REFERENCES`.

use crate::bind::binder::Binder;
use crate::bind::names::{table_name, unsupported};
use crate::bind::scope::no_column;
use crate::bind::statement::constraint_name::free_name;
use crate::parse::position;
use nacre_types::{
    Column, Error, ForeignKey, Position, ReferentialAction, Result, TableSchema, limits,
    reference_type,
};
use sqlparser::ast;
use std::sync::Arc;

/// A foreign key to be added.
pub(super) struct Wanted<'a> {
    pub name: Option<&'a ast::Ident>,
    /// The column in whose definition it is.
    pub column: Option<&'a ast::Ident>,
    pub key: &'a ast::ForeignKeyConstraint,
}

impl Wanted<'_> {
    fn columns(&self) -> &[ast::Ident] {
        match self.column {
            Some(column) => std::slice::from_ref(column),
            None => &self.key.columns,
        }
    }

    /// Adds the foreign key to a schema whose columns, keys and indexes are known.
    pub fn apply(&self, binder: &Binder<'_>, schema: &mut TableSchema) -> Result<()> {
        let (parent_name, at) = table_name(&self.key.foreign_table)?;
        let is_own = parent_name.eq_ignore_ascii_case(&schema.name);
        let known = match is_own {
            true => Arc::new(schema.clone()),
            false => binder.table(&self.key.foreign_table)?,
        };
        if schema.is_temporary() || known.is_temporary() {
            return Err(unsupported("a FOREIGN KEY of or to a TEMPORARY table").at(at));
        }
        let columns = self.columns().iter().map(|ident| find(schema, ident));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let referred = self.key.referred_columns.iter().map(|ident| find(&known, ident));
        let mut referred = referred.collect::<Result<Vec<_>>>()?;
        if referred.is_empty() {
            let primary = known.primary_key.as_ref().ok_or_else(|| no_key(&known, at))?;
            referred.clone_from(&primary.columns);
        }
        if columns.len() != referred.len() {
            let message =
                format!("a foreign key of {} columns refers to {}", columns.len(), referred.len());
            return Err(Error::syntax(message).with_sqlstate("42830").at(at));
        }
        let mut pairs: Vec<(usize, usize)> = columns.into_iter().zip(referred).collect();
        // The order of a key does not matter; all that refer to it have the same.
        pairs.sort_by_key(|(_, referred)| known.columns[*referred].id);
        check_pairs(schema, &known, &pairs, at)?;
        let action = |action: Option<ast::ReferentialAction>| match action {
            None | Some(ast::ReferentialAction::NoAction) => ReferentialAction::NoAction,
            Some(ast::ReferentialAction::Restrict) => ReferentialAction::Restrict,
            Some(ast::ReferentialAction::Cascade) => ReferentialAction::Cascade,
            Some(ast::ReferentialAction::SetNull) => ReferentialAction::SetNull,
            Some(ast::ReferentialAction::SetDefault) => ReferentialAction::SetDefault,
        };
        let key = ForeignKey {
            name: self.free_name(schema)?,
            columns: pairs.iter().map(|(column, _)| schema.columns[*column].id).collect(),
            parent: if is_own { 0 } else { known.id },
            parent_columns: pairs.iter().map(|(_, referred)| known.columns[*referred].id).collect(),
            on_delete: action(self.key.on_delete),
            on_update: action(self.key.on_update),
            is_deferred: is_deferred(self.key)?,
        };
        schema.foreign_keys.push(key);
        if schema.foreign_keys.len() > limits::MAX_FOREIGN_KEYS {
            let (table, most) = (&schema.name, limits::MAX_FOREIGN_KEYS);
            return Err(Error::limit(format!("table {table} has more than {most} foreign keys")));
        }
        Ok(())
    }

    fn free_name(&self, schema: &TableSchema) -> Result<String> {
        let given = self.name.or(self.key.name.as_ref()).or(self.key.index_name.as_ref());
        let columns: Vec<&str> = self.columns().iter().map(|column| &*column.value).collect();
        free_name(schema, given, || format!("{}_{}_fkey", schema.name, columns.join("_")))
    }
}

fn find(schema: &TableSchema, ident: &ast::Ident) -> Result<usize> {
    let at = position(ident.span.start);
    schema.column_index(&ident.value).ok_or_else(|| no_column(schema, &ident.value).at(at))
}

/// Fails unless columns of a table can refer to columns of another.
fn check_pairs(
    schema: &TableSchema,
    parent: &TableSchema,
    pairs: &[(usize, usize)],
    at: Option<Position>,
) -> Result<()> {
    for (n, (column, referred)) in pairs.iter().enumerate() {
        let (column, referred): (&Column, &Column) =
            (&schema.columns[*column], &parent.columns[*referred]);
        let others = &pairs[..n];
        if others.iter().any(|(other, _)| schema.columns[*other].id == column.id) {
            let message = format!("column {} appears twice in a foreign key", column.name);
            return Err(Error::already_exists(message).with_sqlstate("42701").at(at));
        }
        if column.is_generated() {
            return Err(unsupported("a FOREIGN KEY of a generated column").at(at));
        }
        if reference_type(column.data_type) != reference_type(referred.data_type) {
            let message = format!(
                "column {} of type {} cannot refer to column {} of type {}",
                column.name, column.data_type, referred.name, referred.data_type
            );
            return Err(Error::type_error(message).with_sqlstate("42804").at(at));
        }
    }
    let mut ids: Vec<u32> = pairs.iter().map(|(_, at)| parent.columns[*at].id).collect();
    ids.sort_unstable();
    match parent.has_unique_key(&ids) {
        true => Ok(()),
        false => Err(no_key(parent, at)),
    }
}

fn no_key(parent: &TableSchema, at: Option<Position>) -> Error {
    let message = format!("table {} has no PRIMARY KEY or UNIQUE of these columns", parent.name);
    Error::constraint(message).with_sqlstate("42830").with_table(parent.name.clone()).at(at)
}

/// Whether a foreign key is checked when the transaction commits.
fn is_deferred(key: &ast::ForeignKeyConstraint) -> Result<bool> {
    use ast::ConstraintReferenceMatchKind as Match;
    match key.match_kind {
        None | Some(Match::Simple) => {}
        Some(Match::Full) => return Err(unsupported("MATCH FULL")),
        Some(Match::Partial) => return Err(unsupported("MATCH PARTIAL")),
    }
    let Some(ast::ConstraintCharacteristics { deferrable, initially, enforced }) =
        &key.characteristics
    else {
        return Ok(false);
    };
    let is_late = *initially == Some(ast::DeferrableInitial::Deferred);
    match () {
        () if *enforced == Some(false) => Err(unsupported("NOT ENFORCED")),
        () if is_late && *deferrable == Some(false) => {
            Err(Error::syntax("NOT DEFERRABLE and INITIALLY DEFERRED"))
        }
        () => Ok(is_late),
    }
}
