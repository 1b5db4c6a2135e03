//! What the definitions of columns and tables declare besides columns: indexes, checks, generated
//! and identity columns. They may refer to columns that are defined later, so they are collected
//! first and applied when all columns are known.

use crate::bind::binder::Binder;
use crate::bind::names::{place, unsupported};
use crate::bind::rule::Kind;
use crate::bind::statement::constraint_name::free_name;
use crate::bind::statement::foreign_key;
use crate::bind::statement::index::Wanted;
use nacre_types::{
    CheckConstraint, Column, ColumnRule, DataType, Error, Result, TableSchema, limits,
};
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

/// What definitions declare, in their order.
#[derive(Default)]
pub(crate) struct Declared<'a> {
    indexes: Vec<Wanted<'a>>,
    checks: Vec<Check<'a>>,
    /// Ids of generated columns and their expressions.
    generated: Vec<(u32, &'a ast::Expr)>,
    foreign_keys: Vec<foreign_key::Wanted<'a>>,
}

/// A check to be added.
struct Check<'a> {
    name: Option<&'a ast::Ident>,
    /// The column in whose definition it is.
    column: Option<String>,
    condition: &'a ast::Expr,
}

impl<'a> Declared<'a> {
    pub fn index(&mut self, index: Wanted<'a>) {
        self.indexes.push(index);
    }

    /// Adds a foreign key; `column` is the column whose definition it is part of.
    pub fn foreign_key(
        &mut self,
        key: &'a ast::ForeignKeyConstraint,
        name: Option<&'a ast::Ident>,
        column: Option<&'a ast::Ident>,
    ) {
        self.foreign_keys.push(foreign_key::Wanted { name, column, key });
    }

    /// Adds a check of a table; `column` names the column whose definition it is part of.
    pub fn check(
        &mut self,
        check: &'a ast::CheckConstraint,
        name: Option<&'a ast::Ident>,
        column: Option<&str>,
    ) -> Result<()> {
        let at = place(&check.expr);
        match check {
            _ if check.enforced == Some(false) => Err(unsupported("CHECK … NOT ENFORCED").at(at)),
            _ if check.no_inherit => Err(unsupported("CHECK … NO INHERIT").at(at)),
            _ => {
                let name = name.or(check.name.as_ref());
                let column = column.map(str::to_string);
                self.checks.push(Check { name, column, condition: &check.expr });
                Ok(())
            }
        }
    }

    /// Applies an option of a column that says where its values come from.
    pub fn generate(&mut self, option: &'a ast::ColumnOption, column: &mut Column) -> Result<i64> {
        use ast::{ColumnOption, GeneratedAs, GeneratedExpressionMode, IdentityPropertyKind};
        let identity = |column: &mut Column, always: bool| {
            column.rule = ColumnRule::Identity { always };
            column.nullable = false;
        };
        match option {
            ColumnOption::Generated {
                generation_expr: Some(expr), generation_expr_mode, ..
            } => {
                let stored = *generation_expr_mode == Some(GeneratedExpressionMode::Stored);
                column.rule = ColumnRule::Generated { expression: String::new(), stored };
                self.generated.push((column.id, expr));
            }
            ColumnOption::Generated { generated_as, sequence_options, .. } => {
                identity(column, matches!(generated_as, GeneratedAs::Always));
                return first_of(sequence_options.as_deref().unwrap_or_default());
            }
            ColumnOption::Identity(
                IdentityPropertyKind::Identity(property)
                | IdentityPropertyKind::Autoincrement(property),
            ) if property.parameters.is_none() && property.order.is_none() => {
                identity(column, false)
            }
            ColumnOption::DialectSpecific(tokens) if counts(tokens) => identity(column, false),
            ColumnOption::DialectSpecific(_) => return Err(unsupported("this column option")),
            _ => return Err(unsupported("IDENTITY with parameters")),
        }
        Ok(0)
    }
}

/// Whether these are the tokens of `AUTO_INCREMENT` or `AUTOINCREMENT`.
fn counts(tokens: &[Token]) -> bool {
    matches!(tokens, [Token::Word(word)]
        if matches!(word.keyword, Keyword::AUTO_INCREMENT | Keyword::AUTOINCREMENT))
}

/// The first value of a sequence; the options must not ask for more.
fn first_of(options: &[ast::SequenceOptions]) -> Result<i64> {
    use ast::SequenceOptions as Option;
    let mut first = 0;
    for option in options {
        match option {
            Option::StartWith(value, _) => {
                let text = value.to_string();
                first = text.parse().ok().filter(|first| *first > 0).ok_or_else(|| {
                    Error::out_of_range(format!("{text} is no first value of an identity column"))
                })?;
            }
            Option::IncrementBy(value, _) if value.to_string() == "1" => {}
            Option::Cycle(true) | Option::Cache(_) => {}
            Option::MinValue(None) | Option::MaxValue(None) => {}
            other => return Err(unsupported(format!("{other} of an identity column").trim())),
        }
    }
    Ok(first)
}

impl<'a> Binder<'a> {
    /// Adds to a schema what its definitions declare. Checks are named if they have no name.
    pub(crate) fn apply_declared(
        &mut self,
        declared: &Declared<'a>,
        schema: &mut TableSchema,
    ) -> Result<()> {
        for (id, ast) in &declared.generated {
            let Some(at) = schema.columns.iter().position(|c| c.id == *id) else { continue };
            if schema.columns[at].data_type == DataType::Null {
                schema.columns[at].data_type = self.generated_type(ast, schema)?;
            }
            let column = schema.columns[at].clone();
            let text = self.declared_rule(ast, schema, Kind::Generated(&column))?;
            for known in schema.columns.iter_mut().filter(|c| c.id == *id) {
                if let ColumnRule::Generated { expression, .. } = &mut known.rule {
                    expression.clone_from(&text);
                }
            }
        }
        for check in &declared.checks {
            let expression = self.declared_rule(check.condition, schema, Kind::Check)?;
            let name = free_name(schema, check.name, || match &check.column {
                Some(column) => format!("{}_{column}_check", schema.name),
                None => format!("{}_check", schema.name),
            })?;
            schema.checks.push(CheckConstraint { name, expression });
        }
        if schema.checks.len() > limits::MAX_CHECKS {
            let message =
                format!("table {} has more than {} checks", schema.name, limits::MAX_CHECKS);
            return Err(Error::limit(message));
        }
        declared.indexes.iter().try_for_each(|index| index.apply(self, schema))?;
        declared.foreign_keys.iter().try_for_each(|key| key.apply(self, schema))?;
        check_generated_keys(schema)
    }
}

/// Fails if a generated column decides where a row is stored.
fn check_generated_keys(schema: &TableSchema) -> Result<()> {
    let keys = [&schema.primary_key, &schema.sort_key].into_iter().flatten();
    let keys = keys.flat_map(|key| &key.columns);
    let shard = schema.shard_key.iter().flat_map(|key| &key.columns);
    match keys.chain(shard).find(|at| schema.columns[**at].is_generated()) {
        Some(at) => {
            Err(unsupported(&format!("a key of the generated column {}", schema.columns[*at].name)))
        }
        None => Ok(()),
    }
}

/// Reads the value of `AUTO_INCREMENT = n`.
pub(crate) fn counter_value(text: &str) -> Result<i64> {
    let value = text.parse().ok().filter(|value: &i64| *value >= 0);
    value.ok_or_else(|| Error::out_of_range(format!("AUTO_INCREMENT = {text}")))
}
