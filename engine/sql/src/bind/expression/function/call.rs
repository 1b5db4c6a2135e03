//! Function calls: dispatch by name, and the syntax forms of scalar functions such as `EXTRACT` and
//! `TRIM`.

use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::expression::cast::is_null;
use crate::bind::expression::function::columns::columns;
use crate::bind::expression::function::unknown::unknown;
use crate::bind::expression::function::window;
use crate::bind::expression::operator::aggregates_not_allowed;
use crate::bind::expression::types;
use crate::bind::names::{place, table_name, unsupported};
use crate::expr::Expr;
use nacre_builtin::date_part::DatePart;
use nacre_builtin::registry::{self, AggregateEntry, ScalarEntry};
use nacre_builtin::scalar::any::TRY_CAST;
use nacre_builtin::scalar::date_part;
use nacre_builtin::scalar::text::{LEFT_TRIM, RIGHT_TRIM, SUBSTRING, TRIM};
use nacre_function::entry::definition::Arguments;
use nacre_function::entry::definition::ScalarFunction;
use nacre_types::{DataType, Error, Result, Value};
use sqlparser::ast::{self, Expr as E};

impl<'a> Binder<'a> {
    pub(crate) fn function(&mut self, f: &'a ast::Function, env: &mut Env<'_>) -> Result<Expr> {
        let (written, at) = table_name(&f.name)?;
        let name = written.to_ascii_lowercase();
        if name == "columns" {
            return columns(f, env).map_err(|e| e.at(at));
        }
        if !matches!(f.parameters, ast::FunctionArguments::None) {
            return Err(unsupported("a call with parameters before its arguments").at(at));
        }
        if f.over.is_some() {
            return self.window(&name, f, env).map_err(|e| e.at(at));
        }
        if registry::window(&name).is_some() {
            return Err(window::needs_over(&name).at(at));
        }
        if let Some(aggregate) = self.aggregate_call(&name, f, env).map_err(|e| e.at(at))? {
            return Ok(aggregate);
        }
        if !f.within_group.is_empty() || f.null_treatment.is_some() {
            return Err(unsupported("this form of function call").at(at));
        }
        let (args, distinct) = match &f.args {
            ast::FunctionArguments::List(list) if is_json_object(&name) => {
                (key_values(list).map_err(|e| e.at(at))?, false)
            }
            args => {
                let (args, distinct) = arguments(args).map_err(|e| e.at(at))?;
                (args.into_iter().map(expression).collect(), distinct)
            }
        };
        // In `ON DUPLICATE KEY UPDATE`, MySQL's `values(c)` is column `c` of the row to insert.
        if name == "values"
            && let (Some(from), [Some(E::Identifier(column))]) =
                (env.scope.qualified_from, args.as_slice())
            && let Some(new_row) = env.scope.columns.get(from)
            && let Some(expr) = env.scope.resolve(Some(&new_row.table), &column.value)?
        {
            return Ok(expr);
        }
        // With several arguments SQLite's `min` and `max` are `least` and `greatest`.
        let several = args.len() > 1 && matches!(name.as_str(), "min" | "max");
        let name = match name.as_str() {
            "min" if several => "least".to_string(),
            "max" if several => "greatest".to_string(),
            _ => name,
        };
        if distinct || f.filter.is_some() {
            let message =
                format!("DISTINCT and FILTER require an aggregate; {written} is not an aggregate");
            return Err(Error::syntax(message).at(at));
        }
        let entry = self.scalar_entry(&name);
        let takes_part = entry.as_ref().is_some_and(|entry| entry.takes_part(args.len()));
        let mut bound = Vec::with_capacity(args.len());
        for (index, arg) in args.into_iter().enumerate() {
            match arg {
                // `timestampdiff(day, a, b)` names the part without quotes.
                Some(E::Identifier(part)) if index == 0 && takes_part => {
                    bound.push(Expr::literal(Value::Text(part.value.clone()), DataType::TEXT));
                }
                Some(e) => bound.push(self.expr(e, env)?),
                None => {
                    return Err(Error::syntax(format!("function {written} does not take *")).at(at));
                }
            }
        }
        let Some(entry) = entry else {
            return Err(unknown(self.catalog, &name, &written).at(at));
        };
        if let Some(returns) = json_clauses(&f.args, &name).map_err(|e| e.at(at))? {
            bound.push(Expr::literal(Value::Null, returns));
        }
        if entry.is_volatile() {
            self.is_volatile = true;
            refuse_volatile(&written, env).map_err(|e| e.at(at))?;
        }
        self.by_rule(bound, |binding, operands| {
            entry.bind(binding, Arguments { name: &written, operands })
        })
        .map_err(|e| e.at(at))
    }

    /// The scalar function with a lower-case name.
    pub(crate) fn scalar_entry(&self, name: &str) -> Option<ScalarEntry> {
        let created = || self.catalog.created_functions()?.scalar(name).map(ScalarEntry::Created);
        registry::scalar(name).or_else(created)
    }

    /// The aggregate with a lower-case name.
    fn aggregate_entry(&self, name: &str) -> Option<AggregateEntry> {
        let created =
            || self.catalog.created_functions()?.aggregate(name).map(AggregateEntry::Created);
        registry::aggregate(name).or_else(created)
    }

    /// Binds a call of an aggregate or of `GROUPING`; `None` if the name is neither.
    pub(crate) fn aggregate_call(
        &mut self,
        name: &str,
        f: &'a ast::Function,
        env: &mut Env<'_>,
    ) -> Result<Option<Expr>> {
        if let Some(function) = registry::grouping(name) {
            let (args, distinct) = arguments(&f.args)?;
            if distinct || f.filter.is_some() || !f.within_group.is_empty() {
                let message = format!("{name} takes neither DISTINCT nor FILTER");
                return Err(Error::syntax(message));
            }
            return match env.in_aggregate || env.aggregates.is_none() {
                true => Err(aggregates_not_allowed(env)),
                false => self.grouping_call(function, args, env).map(Some),
            };
        }
        let known = self.aggregate_entry(name);
        // An aggregate in the arguments of an aggregate over a window is one of the query's own.
        if known.is_some() && env.in_aggregate && env.outer_aggregates.is_some() {
            let own = std::mem::replace(&mut env.aggregates, env.outer_aggregates.take());
            env.in_aggregate = false;
            let result = self.aggregate_call(name, f, env);
            env.in_aggregate = true;
            env.outer_aggregates = std::mem::replace(&mut env.aggregates, own);
            return result;
        }
        let Some(entry) = known else { return Ok(None) };
        if f.over.is_none() && f.null_treatment.is_some() {
            return Err(unsupported("IGNORE NULLS or RESPECT NULLS without OVER"));
        }
        // With several arguments SQLite's `min` and `max` are `least` and `greatest`.
        let several = matches!(&f.args, ast::FunctionArguments::List(list) if list.args.len() > 1);
        if several && matches!(name, "min" | "max") {
            return Ok(None);
        }
        self.aggregate(entry, name, f, env).map(Some)
    }

    /// Binds `EXTRACT(field FROM arg)`.
    pub(crate) fn extract(
        &mut self,
        field: &ast::DateTimeField,
        arg: &'a E,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        let part = match field {
            ast::DateTimeField::Custom(ident) => DatePart::named(&ident.value)?,
            other => DatePart::named(&other.to_string())?,
        };
        let arg = self.expr(arg, env)?;
        self.by_rule(vec![arg], |binding, operands| {
            let [value] = Arguments { name: "extract", operands }.exactly()?;
            date_part::date_part(binding, part, value)
        })
    }

    /// Binds `CEIL(arg)` and `FLOOR(arg)`, which have a syntax tree node of their own.
    pub(crate) fn rounding(
        &mut self,
        function: &'static ScalarFunction,
        arg: &'a E,
        field: &ast::CeilFloorKind,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        if !matches!(field, ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime)) {
            return Err(unsupported("CEIL or FLOOR with a second argument"));
        }
        let arg = self.expr(arg, env)?;
        self.call(function, vec![arg])
    }

    /// Binds `SUBSTRING(arg FROM from FOR length)`.
    pub(crate) fn substring(
        &mut self,
        arg: &'a E,
        from: Option<&'a E>,
        length: Option<&'a E>,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        let mut args = vec![self.expr(arg, env)?];
        args.push(match from {
            Some(e) => self.expr(e, env)?,
            None => Expr::literal(Value::Int(1), DataType::Int64),
        });
        if let Some(e) = length {
            args.push(self.expr(e, env)?);
        }
        self.call(&SUBSTRING, args)
    }

    /// Binds `TRIM(side what FROM arg)`.
    pub(crate) fn trim(
        &mut self,
        side: Option<&ast::TrimWhereField>,
        what: Option<&'a E>,
        arg: &'a E,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        let function = match side {
            Some(ast::TrimWhereField::Leading) => &LEFT_TRIM,
            Some(ast::TrimWhereField::Trailing) => &RIGHT_TRIM,
            _ => &TRIM,
        };
        let mut args = vec![self.expr(arg, env)?];
        if let Some(what) = what {
            args.push(self.expr(what, env)?);
        }
        self.call(function, args)
    }

    /// Binds a call of the function that implements a syntax form or an operator.
    pub(crate) fn call(
        &mut self,
        function: &'static ScalarFunction,
        args: Vec<Expr>,
    ) -> Result<Expr> {
        self.by_rule(args, |binding, operands| {
            function.bind(binding, Arguments { name: function.name(), operands })
        })
    }

    /// Binds `TRY_CAST(arg AS to)`.
    pub(crate) fn try_cast(&mut self, arg: Expr, to: DataType) -> Result<Expr> {
        // An untyped parameter keeps the type of its value: typing it as `to` would cast before
        // execution, and fail.
        let arg = self.settle(arg, DataType::TEXT);
        if is_null(&arg) {
            return Ok(Expr::literal(Value::Null, to));
        }
        Ok(Expr::call(&TRY_CAST, vec![arg], to))
    }
}

fn arguments(args: &ast::FunctionArguments) -> Result<(Vec<&ast::FunctionArgExpr>, bool)> {
    let list = match args {
        ast::FunctionArguments::None => return Ok((Vec::new(), false)),
        ast::FunctionArguments::Subquery(_) => {
            return Err(unsupported("a subquery as an argument"));
        }
        ast::FunctionArguments::List(list) => list,
    };
    refuse_clauses(list)?;
    let mut out = Vec::with_capacity(list.args.len());
    for arg in &list.args {
        match arg {
            ast::FunctionArg::Unnamed(arg) => out.push(arg),
            ast::FunctionArg::ExprNamed { name, .. } => {
                return Err(unsupported("a named argument").at(place(name)));
            }
            _ => return Err(unsupported("a named argument")),
        }
    }
    Ok((out, list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct)))
}

/// Refuses clauses other than those that functions of JSON may have.
fn refuse_clauses(list: &ast::FunctionArgumentList) -> Result<()> {
    use ast::FunctionArgumentClause as Clause;
    use ast::JsonNullClause::NullOnNull;
    let known = |c: &Clause| {
        matches!(c, Clause::JsonReturningClause(_) | Clause::JsonNullClause(NullOnNull))
    };
    match list.clauses.iter().find(|clause| !known(clause)) {
        Some(Clause::JsonNullClause(_)) => Err(unsupported("ABSENT ON NULL")),
        Some(_) => Err(unsupported("a clause inside a function call")),
        None => Ok(()),
    }
}

/// The expression of an argument; `None` for `*`.
fn expression(arg: &ast::FunctionArgExpr) -> Option<&E> {
    match arg {
        ast::FunctionArgExpr::Expr(e) => Some(e),
        _ => None,
    }
}

fn is_json_object(name: &str) -> bool {
    name == "json_object" || name == "json_build_object" || name == "jsonb_build_object"
}

/// The arguments of `json_object('a' VALUE 1, 'b': 2)`.
fn key_values(list: &ast::FunctionArgumentList) -> Result<Vec<Option<&E>>> {
    refuse_clauses(list)?;
    let mut out = Vec::with_capacity(list.args.len());
    for arg in &list.args {
        match arg {
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(value)) => out.push(Some(value)),
            ast::FunctionArg::ExprNamed {
                name,
                arg: ast::FunctionArgExpr::Expr(value),
                operator: ast::FunctionArgOperator::Value | ast::FunctionArgOperator::Colon,
            } => out.extend([Some(name), Some(value)]),
            _ => return Err(unsupported("this form of argument")),
        }
    }
    Ok(out)
}

/// Checks that only functions of JSON have their clauses. Returns the type of `RETURNING`, which is
/// passed on as an argument, if it is not the function's own.
fn json_clauses(args: &ast::FunctionArguments, name: &str) -> Result<Option<DataType>> {
    let ast::FunctionArguments::List(list) = args else { return Ok(None) };
    for clause in &list.clauses {
        let ast::FunctionArgumentClause::JsonReturningClause(clause) = clause else {
            match name.starts_with("json") {
                true => continue,
                false => return Err(unsupported(&format!("NULL ON NULL in {name}"))),
            }
        };
        match types::data_type(&clause.data_type)? {
            returns if name == "json_value" => return Ok(Some(returns)),
            DataType::Json if name.starts_with("json") => {}
            _ => return Err(unsupported(&format!("RETURNING in {name}"))),
        }
    }
    Ok(None)
}

/// Refuses a volatile function where a plan may evaluate it more than once for a row, or once for all
/// rows.
fn refuse_volatile(name: &str, env: &Env<'_>) -> Result<()> {
    match env.clause {
        "SELECT" | "ORDER BY" | "VALUES" | "SET" | "DEFAULT" => Ok(()),
        // Rules of tables refuse all that varies.
        "GENERATED" | "CHECK" | "KEY" => Ok(()),
        clause => {
            let hint = "compute it in the SELECT list of a derived table";
            Err(unsupported(&format!("{name}() in {clause}")).with_hint(hint))
        }
    }
}
