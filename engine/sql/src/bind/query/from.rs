//! `FROM`: tables, derived tables and joins, as a plan and a scope.

use crate::analysis::columns::shift_columns;
use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::names::{place, table_name, unsupported};
use crate::bind::query::json_table::json_function;
use crate::bind::scope::{Merged, Scope};
use crate::expr::{Expr, ExprKind};
use crate::parse::position;
use crate::plan::{JoinKind, Plan};
use nacre_builtin::scalar::any::COALESCE;
use nacre_types::{Error, Result};
use sqlparser::ast::{self, JoinConstraint, JoinOperator, TableFactor};

/// Correlation of a `LATERAL` table: the frame of the rows to its left, and the expressions over
/// them that it uses.
pub(crate) struct Lateral {
    frame: u32,
    args: Vec<Expr>,
}

impl<'a> Binder<'a> {
    /// Binds the whole clause. An empty one yields one row without columns.
    pub(crate) fn from(&mut self, tables: &'a [ast::TableWithJoins]) -> Result<(Plan, Scope)> {
        let all = self.beside(None, tables)?;
        Ok(all.unwrap_or_else(|| {
            (Plan::Values { fields: Vec::new(), rows: vec![Vec::new()] }, Scope::default())
        }))
    }

    /// Cross joins more tables to those in `all`.
    pub(crate) fn beside(
        &mut self,
        mut all: Option<(Plan, Scope)>,
        tables: &'a [ast::TableWithJoins],
    ) -> Result<Option<(Plan, Scope)>> {
        for table in tables {
            all = Some(match all {
                None => self.table_with_joins(table)?,
                Some(left) => {
                    let right =
                        self.right_of(&left.1, has_lateral(table), |b| b.table_with_joins(table))?;
                    self.join(left, right, JoinKind::Inner, &JoinConstraint::None)?
                }
            });
        }
        Ok(all)
    }

    pub(crate) fn table_with_joins(
        &mut self,
        table: &'a ast::TableWithJoins,
    ) -> Result<(Plan, Scope)> {
        let left = self.nested(|b| b.factor(&table.relation))?;
        self.joined(left, &table.joins)
    }

    /// Applies the joins that follow a table.
    pub(crate) fn joined(
        &mut self,
        mut left: (Plan, Scope),
        joins: &'a [ast::Join],
    ) -> Result<(Plan, Scope)> {
        for join in joins {
            if join.global {
                return Err(unsupported("GLOBAL JOIN"));
            }
            let right = self.right_of(&left.1, is_lateral(&join.relation), |b| {
                b.nested(|b| b.factor(&join.relation))
            })?;
            let (kind, constraint) = match &join.join_operator {
                JoinOperator::Join(c) | JoinOperator::Inner(c) => (JoinKind::Inner, c),
                JoinOperator::CrossJoin(c) | JoinOperator::StraightJoin(c) => (JoinKind::Inner, c),
                JoinOperator::Left(c) | JoinOperator::LeftOuter(c) => (JoinKind::Left, c),
                JoinOperator::Right(c) | JoinOperator::RightOuter(c) => (JoinKind::Right, c),
                JoinOperator::FullOuter(c) => (JoinKind::Full, c),
                JoinOperator::Semi(c) | JoinOperator::LeftSemi(c) => (JoinKind::Semi, c),
                JoinOperator::Anti(c) | JoinOperator::LeftAnti(c) => (JoinKind::Anti, c),
                JoinOperator::RightSemi(_) | JoinOperator::RightAnti(_) => {
                    return Err(unsupported("RIGHT SEMI or RIGHT ANTI JOIN"));
                }
                JoinOperator::AsOf { .. } => return Err(unsupported("ASOF JOIN")),
                _ => return Err(unsupported("this kind of join")),
            };
            if kind != JoinKind::Inner && matches!(constraint, JoinConstraint::None) {
                let what = "a LEFT, RIGHT, FULL, SEMI or ANTI JOIN requires ON or USING";
                return Err(Error::syntax(what));
            }
            left = self.join(left, right, kind, constraint)?;
        }
        Ok(left)
    }

    /// Binds the right side of a join. If it is or contains a `LATERAL` table, it may refer to
    /// columns of `left`.
    fn right_of(
        &mut self,
        left: &Scope,
        lateral: bool,
        f: impl FnOnce(&mut Self) -> Result<(Plan, Scope)>,
    ) -> Result<(Plan, Scope, Option<Lateral>)> {
        if !lateral {
            let (plan, scope) = f(self)?;
            return Ok((plan, scope, None));
        }
        let ((plan, scope), frame, args) = self.framed(left, f)?;
        let args: Vec<Expr> = args.into_iter().map(|(e, _)| e).collect();
        let lateral = (!args.is_empty()).then_some(Lateral { frame, args });
        Ok((plan, scope, lateral))
    }

    /// Binds a table, a derived table or a function.
    pub(crate) fn factor(&mut self, factor: &'a TableFactor) -> Result<(Plan, Scope)> {
        self.limits.count_table()?;
        match factor {
            TableFactor::Table { name, alias, args, sample, with_ordinality, .. } => {
                refuse_modifiers(factor)?;
                match (args, sample) {
                    (None, _) if *with_ordinality => Err(unsupported("WITH ORDINALITY")),
                    (None, None) => self.named_table(name, alias.as_ref()),
                    (None, Some(sample)) => {
                        let all = self.named_table(name, alias.as_ref())?;
                        self.sampled(sample, all)
                    }
                    (Some(_), Some(_)) => Err(unsupported("TABLESAMPLE of a function")),
                    (Some(args), None) if args.settings.is_some() => Err(unsupported("SETTINGS")),
                    (Some(args), None) => {
                        self.function_in_from(name, &args.args, *with_ordinality, alias.as_ref())
                    }
                }
            }
            TableFactor::Function { name, args, with_ordinality, alias, .. } => {
                self.function_in_from(name, args, *with_ordinality, alias.as_ref())
            }
            TableFactor::JsonTable { json_expr, json_path, columns, alias } => {
                let plan = self.json_table(json_expr, json_path, columns)?;
                aliased(plan, alias.as_ref(), "json_table")
            }
            TableFactor::UNNEST {
                alias, array_exprs, with_offset: false, with_ordinality, ..
            } => self.unnest(array_exprs, *with_ordinality, alias.as_ref()),
            // For LATERAL, `right_of` has put the rows to the left in scope.
            TableFactor::Derived { subquery, alias, sample, .. } => {
                let plan = self.sealed(|b| b.query(subquery))?;
                let all = aliased(plan, alias.as_ref(), "");
                match sample {
                    None => all,
                    Some(sample) => self.sampled(sample, all?),
                }
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                self.table_with_joins(table_with_joins)
            }
            TableFactor::NestedJoin { .. } => {
                Err(unsupported("an alias for a join in parentheses"))
            }
            TableFactor::Pivot { .. } => Err(unsupported("PIVOT")),
            TableFactor::Unpivot { .. } => Err(unsupported("UNPIVOT")),
            TableFactor::UNNEST { .. } => Err(unsupported("UNNEST WITH OFFSET")),
            _ => Err(unsupported("this form of FROM")),
        }
    }

    /// Binds a function.
    fn function_in_from(
        &mut self,
        name: &'a ast::ObjectName,
        args: &'a [ast::FunctionArg],
        with_ordinality: bool,
        alias: Option<&ast::TableAlias>,
    ) -> Result<(Plan, Scope)> {
        let (plan, name, is_named) = self.table_function(name, args, with_ordinality)?;
        called(plan, name, is_named, alias)
    }

    /// Binds `UNNEST`, which the parser knows by its name.
    fn unnest(
        &mut self,
        arrays: &'a [ast::Expr],
        with_ordinality: bool,
        alias: Option<&ast::TableAlias>,
    ) -> Result<(Plan, Scope)> {
        let scope = Scope::default();
        let mut env = Env::new(&scope, "the arguments of a table function");
        let args = arrays.iter().map(|array| self.expr(array, &mut env)).collect::<Result<_>>()?;
        let Some((function, name)) = json_function("unnest") else {
            return Err(unsupported("UNNEST"));
        };
        let plan = self.json_rows(function, name, args, with_ordinality)?;
        called(plan, name, true, alias)
    }

    fn named_table(
        &mut self,
        name: &'a ast::ObjectName,
        alias: Option<&ast::TableAlias>,
    ) -> Result<(Plan, Scope)> {
        if let [ast::ObjectNamePart::Identifier(ident)] = name.0.as_slice() {
            let found = self
                .ctes
                .iter()
                .rposition(|c| c.cte.alias.name.value.eq_ignore_ascii_case(&ident.value));
            if let Some(at) = found {
                let (plan, scope) = self.common_table(at)?;
                return match alias {
                    None => Ok((plan, scope)),
                    Some(_) => renamed(plan, scope, alias),
                };
            }
        }
        if let [ast::ObjectNamePart::Identifier(schema), ast::ObjectNamePart::Identifier(ident)] =
            name.0.as_slice()
            && schema.value.eq_ignore_ascii_case("information_schema")
        {
            let plan = self
                .information_schema(&ident.value)
                .map_err(|e| e.at(position(ident.span.start)))?;
            return aliased(plan, alias, &ident.value);
        }
        if let (written, at) = table_name(name)?
            && self.catalog.table(&written).is_none()
            && let Some((plan, shown)) = self.view(&written).map_err(|e| e.at(at))?
        {
            return aliased(plan, alias, &shown);
        }
        if let [ast::ObjectNamePart::Identifier(ident)] = name.0.as_slice()
            && ["sqlite_master", "sqlite_schema"]
                .iter()
                .any(|n| ident.value.eq_ignore_ascii_case(n))
            && self.catalog.table(&ident.value).is_none()
        {
            let plan = self.sqlite_master();
            return aliased(plan, alias, &ident.value);
        }
        if let Some(dual) = self.dual(name, alias) {
            return dual;
        }
        let table = self.table(name)?;
        let shown = alias.map_or(table.name.as_str(), |a| a.name.value.as_str()).to_string();
        let projection = (0..table.columns.len()).collect();
        let plan = Plan::scan(table, projection);
        aliased(plan, alias, &shown)
    }

    /// Binds `dual`, which is one row without columns, unless a table has the name.
    fn dual(
        &self,
        name: &ast::ObjectName,
        alias: Option<&ast::TableAlias>,
    ) -> Option<Result<(Plan, Scope)>> {
        let [ast::ObjectNamePart::Identifier(ident)] = name.0.as_slice() else { return None };
        if !ident.value.eq_ignore_ascii_case("dual") || self.catalog.table(&ident.value).is_some() {
            return None;
        }
        let row = Plan::Values { fields: Vec::new(), rows: vec![Vec::new()] };
        Some(aliased(row, alias, &ident.value))
    }

    /// Binds a reference to a table of `WITH`, with the names declared there.
    pub(crate) fn common_table(&mut self, at: usize) -> Result<(Plan, Scope)> {
        let definition = &self.ctes[at].cte.alias;
        aliased(self.cte(at)?, Some(definition), "")
    }

    /// Joins two sides. The condition stays in one piece; the optimizer extracts the keys.
    fn join(
        &mut self,
        (left, left_scope): (Plan, Scope),
        (right, right_scope, lateral): (Plan, Scope, Option<Lateral>),
        kind: JoinKind,
        constraint: &'a JoinConstraint,
    ) -> Result<(Plan, Scope)> {
        let width = left_scope.columns.len();
        for column in &right_scope.columns {
            if !column.table.is_empty() && left_scope.has_table(&column.table) {
                let message = format!(
                    "table {} is specified more than once in FROM; give one an alias",
                    column.table
                );
                return Err(Error::type_error(message).with_sqlstate("42712"));
            }
        }
        let mut scope = Scope { qualified_from: None, ..left_scope.clone() };
        scope.columns.extend(right_scope.columns.iter().cloned());
        let left_nullable = matches!(kind, JoinKind::Right | JoinKind::Full);
        let right_nullable = matches!(kind, JoinKind::Left | JoinKind::Full);
        for (at, column) in scope.columns.iter_mut().enumerate() {
            column.nullable |= if at < width { left_nullable } else { right_nullable };
        }
        for (columns, key) in &right_scope.tables {
            let columns = columns.start + width..columns.end + width;
            scope.tables.push((columns, key.iter().map(|at| at + width).collect()));
        }
        for merged in &right_scope.merged {
            let mut merged = merged.clone();
            shift_columns(&mut merged.expr, width as isize);
            merged.hidden.iter_mut().for_each(|c| *c += width);
            merged.before += width;
            scope.merged.push(merged);
        }
        let mut condition = None;
        match constraint {
            JoinConstraint::None => {}
            JoinConstraint::On(on) => {
                let mut env = Env::new(&scope, "ON");
                let bound = self.expr(on, &mut env)?;
                condition = Some(self.condition(bound, "ON").map_err(|e| e.at(place(on)))?);
            }
            JoinConstraint::Using(names) => {
                let mut columns = Vec::new();
                for name in names {
                    match name.0.as_slice() {
                        [ast::ObjectNamePart::Identifier(ident)] => {
                            columns.push((ident.value.clone(), position(ident.span.start)))
                        }
                        _ => return Err(Error::syntax("USING takes column names")),
                    }
                }
                condition = self.using(&left_scope, &right_scope, &mut scope, kind, &columns)?;
            }
            JoinConstraint::Natural => {
                let mut columns: Vec<(String, _)> = Vec::new();
                for (at, column) in left_scope.columns.iter().enumerate() {
                    let shared = right_scope
                        .columns
                        .iter()
                        .any(|c| c.name.eq_ignore_ascii_case(&column.name));
                    let known = columns.iter().any(|(n, _)| n.eq_ignore_ascii_case(&column.name));
                    let merged =
                        left_scope.merged.iter().any(|m| m.name.eq_ignore_ascii_case(&column.name));
                    if shared && !known && (!left_scope.is_hidden(at) || merged) {
                        columns.push((column.name.clone(), None));
                    }
                }
                condition = self.using(&left_scope, &right_scope, &mut scope, kind, &columns)?;
            }
        }
        let first_only = matches!(kind, JoinKind::Semi | JoinKind::Anti);
        if first_only {
            scope = left_scope;
        }
        if let Some(Lateral { frame, args }) = lateral {
            if first_only {
                return Err(unsupported("a SEMI or ANTI JOIN with a LATERAL table"));
            }
            let plan = crate::unnest::lateral(
                left,
                right,
                kind,
                (frame, args),
                condition,
                &mut self.numbers,
            )?;
            return Ok((plan, scope));
        }
        let (left, right) = (Box::new(left), Box::new(right));
        Ok((Plan::Join { left, right, kind, keys: Vec::new(), residual: condition }, scope))
    }

    /// Builds the equality of the named columns and merges each pair into one name in scope. The
    /// merged columns come before all others.
    fn using(
        &mut self,
        left: &Scope,
        right: &Scope,
        scope: &mut Scope,
        kind: JoinKind,
        columns: &[(String, Option<nacre_types::Position>)],
    ) -> Result<Option<Expr>> {
        let width = left.columns.len();
        let mut conjuncts = Vec::new();
        let mut first = Vec::with_capacity(columns.len());
        for (name, at) in columns {
            let find = |side: &Scope| {
                let found = side.resolve(None, name).map_err(|e| e.at(*at))?;
                found.ok_or_else(|| side.unknown_column(None, name, &[]).at(*at))
            };
            let a = find(left)?;
            let mut b = find(right)?;
            shift_columns(&mut b, width as isize);
            conjuncts.push(self.equal(a.clone(), b.clone()).map_err(|e| e.at(*at))?);
            let mut hidden = Vec::new();
            columns_of(&a, &mut hidden);
            columns_of(&b, &mut hidden);
            let expr = match kind {
                JoinKind::Right => b,
                JoinKind::Full => {
                    let (args, t) = self.unify_all(vec![a, b], "USING")?;
                    Expr::call(&COALESCE, args, t)
                }
                _ => a,
            };
            // Absorb columns that either side had already merged under this name.
            scope.merged.retain_mut(|m| {
                let same = m.name.eq_ignore_ascii_case(name);
                if same {
                    hidden.append(&mut m.hidden);
                }
                !same
            });
            first.push(Merged { name: name.clone(), expr, hidden, before: 0 });
        }
        scope.merged.splice(..0, first);
        if conjuncts.is_empty() {
            return Ok(None);
        }
        Ok(Some(crate::bind::expression::operator::connect(true, conjuncts)))
    }
}

fn has_lateral(table: &ast::TableWithJoins) -> bool {
    is_lateral(&table.relation) || table.joins.iter().any(|join| is_lateral(&join.relation))
}

/// Refuses what may follow the name of a table and is not supported anywhere.
pub(crate) fn refuse_modifiers(factor: &TableFactor) -> Result<()> {
    // Every field is named, so that one the parser adds is not overlooked.
    let TableFactor::Table {
        name: _,
        alias: _,
        args: _,
        with_hints,
        version,
        with_ordinality: _,
        partitions,
        json_path,
        sample: _,
        index_hints,
    } = factor
    else {
        return Ok(());
    };
    if !with_hints.is_empty() || !index_hints.is_empty() {
        return Err(unsupported("a hint of a table"));
    }
    if version.is_some() || !partitions.is_empty() || json_path.is_some() {
        return Err(unsupported("PARTITION, a version or a path of a table"));
    }
    Ok(())
}

/// Whether a table, or a table inside its parentheses, is `LATERAL`. Functions always are.
fn is_lateral(factor: &TableFactor) -> bool {
    match factor {
        TableFactor::Derived { lateral, .. } => *lateral,
        TableFactor::Table { args, .. } => args.is_some(),
        TableFactor::Function { .. }
        | TableFactor::UNNEST { .. }
        | TableFactor::JsonTable { .. } => true,
        TableFactor::NestedJoin { table_with_joins, .. } => has_lateral(table_with_joins),
        _ => false,
    }
}

/// Collects the columns that an expression refers to.
pub(crate) fn columns_of(expr: &Expr, out: &mut Vec<usize>) {
    if let ExprKind::Column(at) = expr.kind {
        out.push(at);
    }
    expr.for_each_child(&mut |e| columns_of(e, out));
}

/// Builds the scope of a function's rows. If `is_named`, its first column takes the name of an
/// alias without columns.
fn called(
    plan: Plan,
    name: &str,
    is_named: bool,
    alias: Option<&ast::TableAlias>,
) -> Result<(Plan, Scope)> {
    let (plan, mut scope) = aliased(plan, alias, name)?;
    if let Some(alias) = alias.filter(|alias| is_named && alias.columns.is_empty()) {
        scope.columns.iter_mut().take(1).for_each(|c| c.name.clone_from(&alias.name.value));
    }
    Ok((plan, scope))
}

/// Builds the scope of a plan under its alias, or under `table` without one.
fn aliased(plan: Plan, alias: Option<&ast::TableAlias>, table: &str) -> Result<(Plan, Scope)> {
    let name = alias.map_or(table, |a| a.name.value.as_str());
    let mut scope = Scope::of(name, &plan.fields());
    if let Plan::Scan { table, projection, .. } = &plan
        && let Some(key) = &table.primary_key
    {
        let place = |column: &usize| projection.iter().position(|at| at == column);
        let key: Option<Vec<usize>> = key.columns.iter().map(place).collect();
        scope.tables.extend(key.map(|key| (0..projection.len(), key)));
    }
    renamed(plan, scope, alias)
}

/// Applies the table name and column names of an alias to a scope.
fn renamed(plan: Plan, mut scope: Scope, alias: Option<&ast::TableAlias>) -> Result<(Plan, Scope)> {
    let Some(alias) = alias else { return Ok((plan, scope)) };
    if alias.columns.len() > scope.columns.len() {
        let message = format!(
            "table {} has {} columns but its alias lists {}",
            alias.name.value,
            scope.columns.len(),
            alias.columns.len()
        );
        return Err(Error::type_error(message)
            .with_sqlstate("42P10")
            .at(position(alias.name.span.start)));
    }
    for (column, new) in scope.columns.iter_mut().zip(&alias.columns) {
        if new.data_type.is_some() {
            return Err(unsupported("a type in an alias").at(position(new.name.span.start)));
        }
        column.name = new.name.value.clone();
    }
    for column in &mut scope.columns {
        column.table = alias.name.value.clone();
    }
    Ok((plan, scope))
}
