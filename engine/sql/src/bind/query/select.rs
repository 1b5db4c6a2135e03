//! `SELECT`: output columns, grouping, `HAVING`, `DISTINCT` and `ORDER BY`, in that order of
//! evaluation.
//!
//! Aggregates are bound as placeholders. Once groups are known, every expression is rewritten over the
//! grouped row; a column that is neither in a group nor inside an aggregate is an error.

use crate::analysis::nullable::nullable;
use crate::bind::binder::Binder;
use crate::bind::environment::{ColumnsCall, Env, GroupingCall};
use crate::bind::expression::function::window;
use crate::bind::expression::operator::aggregates_not_allowed;
use crate::bind::names::{place, unsupported};
use crate::bind::placeholder::{has_aggregate, has_window};
use crate::bind::query::from::columns_of;
use crate::bind::query::grouping::Groups;
use crate::bind::query::query_expression::{
    key_with, order_by_all, order_items, output_position, sort_key,
};
use crate::bind::scope::Scope;
use crate::explain::{self, Leaf};
use crate::expr::{Aggregate, Expr, ExprKind, Placeholder};
use crate::parse::position;
use crate::plan::node::limit_by::LimitBy;
use crate::plan::{Field, Plan, SortKey};
use nacre_types::invariant::broken;
use nacre_types::{DataType, Error, Position, Result, Value};
use sqlparser::ast::{self, SelectItem};

/// An output column under construction.
pub(crate) struct Output {
    pub name: String,
    pub expr: Expr,
}

impl<'a> Binder<'a> {
    pub(crate) fn select(
        &mut self,
        select: &'a ast::Select,
        order: Option<&'a ast::OrderBy>,
    ) -> Result<Plan> {
        refuse(select)?;
        let outer_windows = std::mem::replace(&mut self.named_windows, &select.named_window);
        let outer_tables = self.limits.enter_select();
        let plan = self.select_inner(select, order);
        self.limits.leave_select(outer_tables);
        self.named_windows = outer_windows;
        plan
    }

    fn select_inner(
        &mut self,
        select: &'a ast::Select,
        order: Option<&'a ast::OrderBy>,
    ) -> Result<Plan> {
        let (mut plan, scope) = self.from(&select.from)?;
        if let Some(filter) = &select.selection {
            let mut env = Env::new(&scope, "WHERE");
            let bound = self.expr(filter, &mut env)?;
            let predicate = self.condition(bound, "WHERE").map_err(|e| e.at(place(filter)))?;
            plan = Plan::Filter { input: Box::new(plan), predicate };
        }
        let mut env = Env::new(&scope, "SELECT");
        env.aggregates = Some(Vec::new());
        env.windows = Some(Vec::new());
        let mut outputs = self.outputs(&select.projection, &mut env)?;
        self.check_windows(&mut env)?;
        let width = outputs.len();
        let aliases: Vec<(String, Expr)> =
            outputs.iter().map(|o| (o.name.clone(), o.expr.clone())).collect();
        let groups = self.groups(select, &scope, &aliases)?;
        env.clause = "HAVING";
        env.aliases = &aliases;
        let mut having = None;
        if let Some(filter) = &select.having {
            let windows = env.windows.take();
            let bound = self.expr(filter, &mut env)?;
            env.windows = windows;
            if has_window(&bound) {
                return Err(window::not_allowed("HAVING").at(place(filter)));
            }
            having = Some(self.condition(bound, "HAVING").map_err(|e| e.at(place(filter)))?);
        }
        env.clause = "QUALIFY";
        let mut qualify = None;
        if let Some(filter) = &select.qualify {
            let bound = self.expr(filter, &mut env)?;
            qualify = Some(self.condition(bound, "QUALIFY").map_err(|e| e.at(place(filter)))?);
        }
        env.clause = "ORDER BY";
        let mut keys = self.order_keys(order, &mut outputs, width, &mut env)?;
        let (distinct, on) = match &select.distinct {
            None | Some(ast::Distinct::All) => (false, None),
            Some(ast::Distinct::Distinct) => (true, None),
            Some(ast::Distinct::On(list)) => {
                (false, Some(self.distinct_on(list, &mut outputs, width, &mut env)?))
            }
        };
        let (Some(aggregates), Some(mut windows)) = (env.aggregates.take(), env.windows.take())
        else {
            broken(format_args!("a SELECT lost its aggregates or windows"))
        };
        let groupings = std::mem::take(&mut env.groupings);
        let seen = std::mem::take(&mut env.seen);
        let computed = !aggregates.is_empty() || !groupings.is_empty();
        let grouped = groups.is_some() || having.is_some() || computed;
        // Nullability of the columns that the outputs read.
        let mut null_columns: Vec<bool> = scope.columns.iter().map(|c| c.nullable).collect();
        if grouped {
            let mut groups = groups.unwrap_or_else(Groups::one_row);
            let mut used: Vec<usize> = seen.iter().map(|(at, _)| *at).collect();
            let conditions = having.iter().chain(&qualify);
            outputs
                .iter()
                .map(|o| &o.expr)
                .chain(conditions)
                .for_each(|e| columns_of(e, &mut used));
            groups.add_following(&used, &scope);
            let grouping = Grouping {
                groups: &groups.exprs,
                aggregates: aggregates.len(),
                scope: &scope,
                seen: &seen,
            };
            for output in &mut outputs {
                grouping.rewrite(&mut output.expr)?;
            }
            for condition in having.iter_mut().chain(&mut qualify) {
                grouping.rewrite(condition)?;
            }
            window::rewrite(&mut windows, &|e| grouping.rewrite(e))?;
            let mut fields = group_fields(&groups.exprs, &aggregates, &scope, &null_columns);
            fields.extend(grouping_fields(&groupings, &scope));
            for (at, field) in fields.iter_mut().enumerate().take(groups.exprs.len()) {
                field.nullable |= !groups.always(at);
            }
            null_columns = fields.iter().map(|f| f.nullable).collect();
            plan = self.grouped(plan, groups, aggregates, &groupings, fields)?;
            if let Some(predicate) = having {
                plan = Plan::Filter { input: Box::new(plan), predicate };
            }
        }
        if !windows.is_empty() {
            let (above, columns) = window::build(plan, windows);
            plan = above;
            outputs.iter_mut().for_each(|o| window::settle(&mut o.expr, &columns));
            qualify.iter_mut().for_each(|e| window::settle(e, &columns));
            null_columns.resize(plan.fields().len(), true);
        }
        if let Some(predicate) = qualify {
            plan = Plan::Filter { input: Box::new(plan), predicate };
        }
        if distinct && outputs.len() > width {
            let message = "with DISTINCT, ORDER BY expressions must appear in the SELECT list";
            return Err(Error::type_error(message).with_sqlstate("42P10"));
        }
        let is_null = |at: usize| null_columns[at];
        let field = |o: &Output| Field {
            name: o.name.clone(),
            data_type: o.expr.data_type,
            nullable: nullable(&o.expr, &is_null),
        };
        let fields: Vec<Field> = outputs.iter().map(field).collect();
        let exprs = outputs.into_iter().map(|o| o.expr).collect();
        plan = Plan::Project { input: Box::new(plan), exprs, fields: fields.clone() };
        if distinct {
            refuse_intervals(&fields, "DISTINCT")?;
            let groups =
                fields.iter().enumerate().map(|(at, f)| Expr::column(at, f.data_type)).collect();
            plan = Plan::Aggregate {
                input: Box::new(plan),
                groups,
                aggregates: Vec::new(),
                fields: fields.clone(),
            };
        }
        if !keys.is_empty() {
            keys.dedup_by(|a, b| a.expr == b.expr);
            plan = Plan::Sort { input: Box::new(plan), keys, limit: None };
        }
        if let Some(on) = on {
            on.iter().try_for_each(|at| refuse_intervals(&fields[*at..=*at], "DISTINCT ON"))?;
            let keys = on.iter().map(|at| Expr::column(*at, fields[*at].data_type)).collect();
            let one = Expr::literal(Value::Int(1), DataType::Int64);
            let first = LimitBy { input: plan, keys, offset: None, limit: Some(one) };
            plan = Plan::Node(Box::new(first));
        }
        if fields.len() > width {
            let fields: Vec<Field> = fields.into_iter().take(width).collect();
            let exprs =
                fields.iter().enumerate().map(|(at, f)| Expr::column(at, f.data_type)).collect();
            plan = Plan::Project { input: Box::new(plan), exprs, fields };
        }
        Ok(plan)
    }

    /// Binds a `SELECT` list and expands its wildcards.
    pub(crate) fn outputs(
        &mut self,
        items: &'a [SelectItem],
        env: &mut Env<'_>,
    ) -> Result<Vec<Output>> {
        let mut outputs = Vec::new();
        for item in items {
            match item {
                SelectItem::UnnamedExpr(ast) => self.output(ast, env, &mut outputs)?,
                SelectItem::ExprWithAlias { expr, alias } => {
                    let from = outputs.len();
                    self.output(expr, env, &mut outputs)?;
                    for output in &mut outputs[from..] {
                        output.name.clone_from(&alias.value);
                    }
                    if let [output] = &outputs[from..] {
                        env.earlier.push((alias.value.clone(), output.expr.clone()));
                    }
                }
                SelectItem::Wildcard(options) => {
                    let from = outputs.len();
                    if env.scope.columns.is_empty() {
                        return Err(Error::syntax("SELECT * requires FROM"));
                    }
                    let mut merged = env.scope.merged.iter().peekable();
                    for at in 0..env.scope.columns.len() {
                        while let Some(merged) = merged.next_if(|merged| merged.before <= at) {
                            note(&merged.expr, env.scope, &mut env.seen);
                            let (name, expr) = (merged.name.clone(), merged.expr.clone());
                            outputs.push(Output { name, expr });
                        }
                        if !env.scope.is_hidden(at) {
                            push_column(&mut outputs, env, at, None);
                        }
                    }
                    self.changed(&mut outputs, from, options, env)?;
                }
                SelectItem::QualifiedWildcard(
                    ast::SelectItemQualifiedWildcardKind::ObjectName(name),
                    options,
                ) => {
                    let from = outputs.len();
                    let (table, at) = crate::bind::names::table_name(name)?;
                    if !env.scope.has_table(&table) {
                        return Err(env.scope.unknown_column(Some(&table), "*", &[]).at(at));
                    }
                    for column in 0..env.scope.columns.len() {
                        if env.scope.columns[column].table.eq_ignore_ascii_case(&table) {
                            push_column(&mut outputs, env, column, at);
                        }
                    }
                    self.changed(&mut outputs, from, options, env)?;
                }
                _ => return Err(unsupported("this form of SELECT item")),
            }
        }
        if outputs.len() > nacre_types::limits::MAX_COLUMNS {
            let message =
                format!("SELECT list is longer than {} columns", nacre_types::limits::MAX_COLUMNS);
            return Err(Error::limit(message).with_sqlstate("54011"));
        }
        env.earlier.clear();
        Ok(outputs)
    }

    /// Binds an item of a `SELECT` list, once for each column of a `COLUMNS(…)` in it.
    fn output(
        &mut self,
        ast: &'a ast::Expr,
        env: &mut Env<'_>,
        outputs: &mut Vec<Output>,
    ) -> Result<()> {
        env.columns = Some(ColumnsCall::default());
        loop {
            let expr = self.typed(ast, env)?;
            let name = match ast {
                ast::Expr::Identifier(ident) => ident.value.clone(),
                ast::Expr::CompoundIdentifier(parts) => parts[parts.len() - 1].value.clone(),
                _ => self.shown_name(&expr, env),
            };
            outputs.push(Output { name, expr });
            let Some(ColumnsCall { matched: Some(matched), current }) = &mut env.columns else {
                break;
            };
            *current += 1;
            if *current == matched.len() || outputs.len() > nacre_types::limits::MAX_COLUMNS {
                break;
            }
        }
        env.columns = None;
        Ok(())
    }

    /// Names an output column without an alias: the text of its expression, without implicit casts.
    fn shown_name(&self, expr: &Expr, env: &Env<'_>) -> String {
        let column = |at: usize| env.scope.columns[at].name.clone();
        let mut name = explain::unresolved_text(expr, &|leaf| match leaf {
            Leaf::Column(at) => column(at),
            Leaf::Placeholder(Placeholder::Aggregate(at)) => {
                explain::aggregate_text(env.aggregate(at), &column, true)
            }
            Leaf::Placeholder(Placeholder::Grouping(at)) => env.grouping(at).text(&column),
            Leaf::Placeholder(Placeholder::Window(at)) => env.window(at).name().to_string(),
        });
        if let Some((at, _)) = name.char_indices().nth(128) {
            name.truncate(at);
        }
        name
    }

    /// Binds `GROUP BY`; `None` if there is none.
    fn groups(
        &mut self,
        select: &'a ast::Select,
        scope: &Scope,
        aliases: &[(String, Expr)],
    ) -> Result<Option<Groups>> {
        let (list, modifiers) = match &select.group_by {
            ast::GroupByExpr::Expressions(list, modifiers) => (list, modifiers),
            // Every expression of the SELECT list without aggregates and window functions, except
            // literals.
            ast::GroupByExpr::All(modifiers) => {
                let plain =
                    aliases.iter().map(|a| &a.1).filter(|e| !has_aggregate(e) && !has_window(e));
                let mut exprs: Vec<Expr> = Vec::new();
                for expr in plain.filter(|e| !matches!(e.kind, ExprKind::Literal(_))) {
                    if expr.data_type == DataType::Interval {
                        return Err(unsupported("GROUP BY of an INTERVAL"));
                    }
                    if !exprs.contains(expr) {
                        exprs.push(expr.clone());
                    }
                }
                if !modifiers.is_empty() {
                    return Err(unsupported("GROUP BY ALL with ROLLUP or CUBE"));
                }
                let sets = vec![(0..exprs.len()).collect()];
                return Ok(Some(Groups { exprs, sets }));
            }
        };
        if list.is_empty() {
            return Ok(None);
        }
        let mut groups: Vec<Expr> = Vec::with_capacity(list.len());
        let mut bind = |ast: &'a ast::Expr| {
            let mut env = Env::new(scope, "GROUP BY");
            env.aliases = aliases;
            let expr = match output_position(ast, aliases.len(), "GROUP BY")? {
                Some(at) => aliases[at].1.clone(),
                None => self.typed(ast, &mut env)?,
            };
            if has_window(&expr) {
                return Err(window::not_allowed("GROUP BY").at(place(ast)));
            }
            if has_aggregate(&expr) {
                return Err(aggregates_not_allowed(&env).at(place(ast)));
            }
            if expr.data_type == DataType::Interval {
                return Err(unsupported("GROUP BY of an INTERVAL").at(place(ast)));
            }
            Ok(groups.iter().position(|g| *g == expr).unwrap_or_else(|| {
                groups.push(expr);
                groups.len() - 1
            }))
        };
        let sets = crate::bind::query::grouping::sets(list, modifiers, &mut bind)?;
        Ok(Some(Groups { exprs: groups, sets }))
    }

    /// Binds `DISTINCT ON (…)` to positions of outputs. An expression that is not an output is
    /// added as a hidden one.
    fn distinct_on(
        &mut self,
        list: &'a [ast::Expr],
        outputs: &mut Vec<Output>,
        width: usize,
        env: &mut Env<'_>,
    ) -> Result<Vec<usize>> {
        env.clause = "DISTINCT ON";
        list.iter().map(|ast| self.output_column(ast, outputs, width, env)).collect()
    }

    /// Returns the position of the output that an expression of `ORDER BY` or `DISTINCT ON` stands
    /// for. An expression that is not an output is added at the end as a hidden one.
    fn output_column(
        &mut self,
        ast: &'a ast::Expr,
        outputs: &mut Vec<Output>,
        width: usize,
        env: &mut Env<'_>,
    ) -> Result<usize> {
        let named = match ast {
            ast::Expr::Identifier(ident) => named_output(&outputs[..width], ident)?,
            _ => None,
        };
        if let Some(at) = output_position(ast, width, env.clause)?.or(named) {
            return Ok(at);
        }
        let expr = self.typed(ast, env)?;
        if expr.data_type == DataType::Interval && env.clause != "ORDER BY" {
            return Err(unsupported(&format!("{} of an INTERVAL", env.clause)).at(place(ast)));
        }
        Ok(outputs.iter().position(|o| o.expr == expr).unwrap_or_else(|| {
            outputs.push(Output { name: String::new(), expr });
            outputs.len() - 1
        }))
    }

    /// Binds `ORDER BY` to sort keys over the outputs. An expression that is not an output is added
    /// as a hidden one.
    fn order_keys(
        &mut self,
        order: Option<&'a ast::OrderBy>,
        outputs: &mut Vec<Output>,
        width: usize,
        env: &mut Env<'_>,
    ) -> Result<Vec<SortKey>> {
        let mut keys = Vec::new();
        let Some(order) = order else { return Ok(keys) };
        if let Some(options) = order_by_all(order) {
            for (at, output) in outputs[..width].iter().enumerate() {
                keys.push(key_with(Expr::column(at, output.expr.data_type), options)?);
            }
            return Ok(keys);
        }
        for item in order_items(order)? {
            let at = self.output_column(&item.expr, outputs, width, env)?;
            keys.push(sort_key(Expr::column(at, outputs[at].expr.data_type), item)?);
        }
        Ok(keys)
    }
}

/// Returns the position of the output with a name. Several outputs of the name must be equal.
fn named_output(outputs: &[Output], ident: &ast::Ident) -> Result<Option<usize>> {
    let is_named = |o: &&Output| o.name.eq_ignore_ascii_case(&ident.value);
    let found = outputs.iter().position(|o| is_named(&o));
    if let Some(at) = found
        && outputs.iter().filter(is_named).any(|o| o.expr != outputs[at].expr)
    {
        let message = format!("`{}` is ambiguous: several outputs have this name", ident.value);
        let error = Error::type_error(message).with_sqlstate("42702");
        return Err(error.at(position(ident.span.start)));
    }
    Ok(found)
}

fn push_column(outputs: &mut Vec<Output>, env: &mut Env<'_>, at: usize, place: Option<Position>) {
    let column = &env.scope.columns[at];
    env.seen.push((at, place));
    outputs.push(Output { name: column.name.clone(), expr: Expr::column(at, column.data_type) });
}

fn note(expr: &Expr, scope: &Scope, seen: &mut Vec<(usize, Option<Position>)>) {
    if let ExprKind::Column(at) = expr.kind
        && at < scope.columns.len()
    {
        seen.push((at, None));
    }
}

/// Rewrites expressions over the input row to expressions over the grouped row.
struct Grouping<'g> {
    groups: &'g [Expr],
    /// How many aggregates follow the groups.
    aggregates: usize,
    scope: &'g Scope,
    seen: &'g [(usize, Option<Position>)],
}

impl Grouping<'_> {
    fn rewrite(&self, expr: &mut Expr) -> Result<()> {
        if let Some(at) = self.groups.iter().position(|g| g == expr) {
            *expr = Expr::column(at, expr.data_type);
            return Ok(());
        }
        match expr.kind {
            ExprKind::Placeholder(of) => {
                match of {
                    Placeholder::Aggregate(at) => {
                        expr.kind = ExprKind::Column(self.groups.len() + at);
                    }
                    Placeholder::Grouping(at) => {
                        expr.kind = ExprKind::Column(self.groups.len() + self.aggregates + at);
                    }
                    // Windows are computed above the groups.
                    Placeholder::Window(_) => {}
                }
                return Ok(());
            }
            ExprKind::Column(at) => return Err(self.not_grouped(at)),
            _ => {}
        }
        let mut result = Ok(());
        expr.for_each_child_mut(&mut |e| {
            if result.is_ok() {
                result = self.rewrite(e);
            }
        });
        result
    }

    #[cold]
    fn not_grouped(&self, at: usize) -> Error {
        let name = self.scope.columns[at].name.as_str();
        let place =
            self.seen.iter().find(|(column, _)| *column == at).and_then(|(_, place)| *place);
        let message = format!("column {name} must be in GROUP BY or inside an aggregate");
        Error::type_error(message).with_sqlstate("42803").at(place)
    }
}

fn group_fields(
    groups: &[Expr],
    aggregates: &[Aggregate],
    scope: &Scope,
    nulls: &[bool],
) -> Vec<Field> {
    let name = |at: usize| scope.columns[at].name.clone();
    let is_null = |at: usize| nulls[at];
    let group = |g: &Expr| Field {
        name: explain::expr_text(g, &name, true),
        data_type: g.data_type,
        nullable: nullable(g, &is_null),
    };
    let aggregate = |a: &Aggregate| Field {
        name: explain::aggregate_text(a, &name, true),
        data_type: a.data_type,
        nullable: a.function.may_be_null(),
    };
    groups.iter().map(group).chain(aggregates.iter().map(aggregate)).collect()
}

fn grouping_fields(calls: &[GroupingCall], scope: &Scope) -> impl Iterator<Item = Field> {
    let name = |at: usize| scope.columns[at].name.clone();
    calls.iter().map(move |call| Field {
        name: call.text(&name),
        data_type: DataType::Int64,
        nullable: true,
    })
}

/// Returns an error for an `INTERVAL` column: equal intervals may differ in representation, so they
/// cannot be keys.
fn refuse_intervals(fields: &[Field], clause: &str) -> Result<()> {
    match fields.iter().any(|f| f.data_type == DataType::Interval) {
        true => Err(unsupported(&format!("{clause} of an INTERVAL"))),
        false => Ok(()),
    }
}

/// Returns an error that names the first clause that parses but is not supported.
fn refuse(select: &ast::Select) -> Result<()> {
    let clause = if select.top.is_some() {
        "TOP"
    } else if select.into.is_some() {
        "SELECT INTO"
    } else if !select.lateral_views.is_empty() {
        "LATERAL VIEW"
    } else if select.prewhere.is_some() {
        "PREWHERE"
    } else if !select.connect_by.is_empty() {
        "CONNECT BY"
    } else if !select.cluster_by.is_empty()
        || !select.distribute_by.is_empty()
        || !select.sort_by.is_empty()
    {
        "CLUSTER BY, DISTRIBUTE BY or SORT BY"
    } else if select.flavor == ast::SelectFlavor::FromFirstNoSelect {
        "FROM without SELECT here"
    } else if select.value_table_mode.is_some() || select.exclude.is_some() {
        "this form of SELECT"
    } else {
        return Ok(());
    };
    Err(unsupported(clause).at(position(select.select_token.0.span.start)))
}
