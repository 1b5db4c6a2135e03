//! Window functions: a call with `OVER` becomes a column of a [`node::window::Window`], which is
//! evaluated after grouping and before the output columns.

use crate::bind::binder::Binder;
use crate::bind::environment::{Env, Window};
use crate::bind::expression::cast::cast;
use crate::bind::expression::function::unknown::unknown;
use crate::bind::expression::operator::aggregates_not_allowed;
use crate::bind::names::{place, unsupported};
use crate::bind::placeholder::{has_window, resolve};
use crate::bind::query::query_expression::sort_key;
use crate::bind::query::volatile_keys;
use crate::expr::{BinaryOp, Expr, ExprKind, Placeholder};
use crate::parse::position;
use crate::plan::node;
use crate::plan::{Field, FrameBound, FrameUnit, Plan, SortKey, WindowCall, WindowFrame, Windowed};
use nacre_builtin::registry;
use nacre_builtin::window::ignoring_nulls::ignoring_nulls;
use nacre_function::entry::window::WindowFunction;
use nacre_types::invariant::broken;
use nacre_types::{DataType, Error, Result};
use sqlparser::ast;

const INT: DataType = DataType::Int64;

impl<'a> Binder<'a> {
    /// Binds a call with `OVER`.
    pub(crate) fn window(
        &mut self,
        name: &str,
        f: &'a ast::Function,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        if env.windows.is_none() || env.in_aggregate {
            return Err(not_allowed(env.clause));
        }
        let spec = match &f.over {
            Some(ast::WindowType::WindowSpec(spec)) => spec,
            Some(ast::WindowType::NamedWindow(ident)) => self.named_window(ident)?,
            None => return Err(unsupported("this form of window")),
        };
        // Arguments and window definition may contain aggregates, but no window functions.
        let outer = env.windows.take();
        let bound = self.window_parts(name, f, spec, env);
        env.windows = outer;
        let (window, mut result) = bound?;
        if window.exprs().any(has_window) {
            return Err(not_allowed(env.clause));
        }
        let list = env.windows.get_or_insert_default();
        let at = list.iter().position(|w| *w == window).unwrap_or_else(|| {
            list.push(window);
            list.len() - 1
        });
        resolve(&mut result, &|_| ExprKind::Placeholder(Placeholder::Window(at)));
        Ok(result)
    }

    fn named_window(&mut self, ident: &ast::Ident) -> Result<&'a ast::WindowSpec> {
        let found =
            self.named_windows.iter().find(|w| w.0.value.eq_ignore_ascii_case(&ident.value));
        match found {
            Some(ast::NamedWindowDefinition(_, ast::NamedWindowExpr::WindowSpec(spec))) => Ok(spec),
            Some(_) => Err(unsupported("a window named after another")),
            None => {
                let error = Error::not_found(format!("no window `{}`", ident.value));
                Err(error.with_sqlstate("42704").at(position(ident.span.start)))
            }
        }
    }

    /// Returns a window definition followed by the named windows it is based on. Only the last one
    /// may have a `PARTITION BY`, and only one an `ORDER BY`.
    fn built_on(&mut self, mut spec: &'a ast::WindowSpec) -> Result<Vec<&'a ast::WindowSpec>> {
        let refused = |message: String, name: &ast::Ident| {
            Err(Error::syntax(message).with_sqlstate("42P20").at(position(name.span.start)))
        };
        let mut specs = vec![spec];
        while let Some(name) = &spec.window_name {
            if !spec.partition_by.is_empty() {
                return refused(
                    format!("cannot override PARTITION BY of window `{}`", name.value),
                    name,
                );
            }
            spec = self.named_window(name)?;
            if specs.iter().any(|s| std::ptr::eq(*s, spec)) {
                return refused(format!("window `{}` refers to itself", name.value), name);
            }
            if !spec.order_by.is_empty() && specs.iter().any(|s| !s.order_by.is_empty()) {
                return refused(
                    format!("cannot override ORDER BY of window `{}`", name.value),
                    name,
                );
            }
            specs.push(spec);
        }
        Ok(specs)
    }

    /// Binds the parts of a window function. Returns the window and the result of the call, in
    /// which the only placeholder stands for the window's output.
    fn window_parts(
        &mut self,
        name: &str,
        f: &'a ast::Function,
        spec: &'a ast::WindowSpec,
        env: &mut Env<'_>,
    ) -> Result<(Window, Expr)> {
        let specs = self.built_on(spec)?;
        let (partition, order, frame) = self.window_of(&specs, env)?;
        let ignored = ignores_nulls(f);
        let function = match ignored {
            true => ignoring_nulls(name),
            false => registry::window(name),
        };
        let (call, wrapped) = match function {
            None if ignored => return Err(unsupported(&format!("IGNORE NULLS of {name}"))),
            Some(function) => {
                let call = self.window_function(function, name, f, env)?;
                let result = Expr::placeholder(Placeholder::Window(0), call.data_type);
                (call, result)
            }
            None => {
                // Bind the aggregate as in a grouped query, but collect it in a separate list.
                env.outer_aggregates = env.aggregates.replace(Vec::new());
                let result = self.windowed_aggregate(name, f, env);
                let outer = env.outer_aggregates.take();
                let own = std::mem::replace(&mut env.aggregates, outer);
                let wrapped = result?;
                let Some(mut own) = own else {
                    broken(format_args!("the list of {name} over a window is gone"))
                };
                let (Some(aggregate), true) = (own.pop(), own.is_empty()) else {
                    return Err(unsupported("this aggregate as a window function"));
                };
                if aggregate.distinct {
                    return Err(unsupported("DISTINCT in a window function"));
                }
                let data_type = aggregate.data_type;
                let call = WindowCall {
                    function: Windowed::Aggregate(Box::new(aggregate)),
                    args: Vec::new(),
                    frame: WindowFrame::default(),
                    data_type,
                };
                (call, wrapped)
            }
        };
        Ok((Window { partition, order, call: WindowCall { frame, ..call } }, wrapped))
    }

    /// Binds a definition that is built on others: its partitions, order and frame.
    fn window_of(
        &mut self,
        specs: &[&'a ast::WindowSpec],
        env: &mut Env<'_>,
    ) -> Result<(Vec<Expr>, Vec<SortKey>, WindowFrame)> {
        let mut partition = Vec::new();
        for ast in specs.iter().flat_map(|s| &s.partition_by) {
            partition.push(self.typed(ast, env)?);
        }
        let mut order = Vec::new();
        for item in specs.iter().flat_map(|s| &s.order_by) {
            let expr = self.typed(&item.expr, env)?;
            if expr.data_type == DataType::Interval {
                return Err(
                    unsupported("a window in the order of an INTERVAL").at(place(&item.expr))
                );
            }
            order.push(sort_key(expr, item)?);
        }
        let frame = match specs.iter().find_map(|s| s.window_frame.as_ref()) {
            Some(frame) => self.frame(frame, &order, env)?,
            None => WindowFrame::default(),
        };
        Ok((partition, order, frame))
    }

    /// Checks the `WINDOW` clause: names are distinct, and windows that no call uses bind too.
    pub(crate) fn check_windows(&mut self, env: &mut Env<'_>) -> Result<()> {
        let list = self.named_windows;
        for (at, ast::NamedWindowDefinition(name, definition)) in list.iter().enumerate() {
            if list[..at].iter().any(|other| other.0.value.eq_ignore_ascii_case(&name.value)) {
                let message = format!("window `{}` is defined twice", name.value);
                let error = Error::syntax(message).with_sqlstate("42P20");
                return Err(error.at(position(name.span.start)));
            }
            let ast::NamedWindowExpr::WindowSpec(spec) = definition else {
                return Err(unsupported("a window named after another"));
            };
            // What the definition adds to the query counts only if a call uses it.
            let (windows, aggregates) = (env.windows.take(), env.aggregates.clone());
            let (seen, groupings) = (env.seen.len(), env.groupings.len());
            let specs = self.built_on(spec)?;
            let bound = self.window_of(&specs, env);
            (env.windows, env.aggregates) = (windows, aggregates);
            env.seen.truncate(seen);
            env.groupings.truncate(groupings);
            bound?;
        }
        Ok(())
    }

    fn windowed_aggregate(
        &mut self,
        name: &str,
        f: &'a ast::Function,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        if env.aggregates.is_none() {
            return Err(aggregates_not_allowed(env));
        }
        self.aggregate_call(name, f, env)?.ok_or_else(|| {
            if self.scalar_entry(name).is_none() {
                return unknown(self.catalog, name, name);
            }
            Error::type_error(format!("{name} is not an aggregate or window function"))
                .with_sqlstate("42809")
        })
    }

    fn window_function(
        &mut self,
        function: &'static WindowFunction,
        name: &str,
        f: &'a ast::Function,
        env: &mut Env<'_>,
    ) -> Result<WindowCall> {
        if f.filter.is_some() {
            return Err(unsupported("FILTER of this window function"));
        }
        let mut args = Vec::new();
        if !f.within_group.is_empty() {
            return Err(unsupported(&format!("WITHIN GROUP of {name}")));
        }
        if let ast::FunctionArguments::List(list) = &f.args {
            if list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct)
                || !list.clauses.iter().all(|clause| null_treatment(clause).is_some())
            {
                return Err(unsupported(&format!("DISTINCT or a clause inside {name}")));
            }
            for arg in &list.args {
                match arg {
                    ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(e)) => {
                        args.push(self.typed(e, env)?)
                    }
                    _ => return Err(Error::syntax(format!("function {name} does not take *"))),
                }
            }
        }
        let (args, data_type) = self.by_window_rule(function, name, args)?;
        let function = Windowed::Function(function);
        Ok(WindowCall { function, args, frame: WindowFrame::default(), data_type })
    }

    fn frame(
        &mut self,
        frame: &'a ast::WindowFrame,
        order: &[SortKey],
        env: &mut Env<'_>,
    ) -> Result<WindowFrame> {
        let unit = match frame.units {
            ast::WindowFrameUnits::Rows => FrameUnit::Rows,
            ast::WindowFrameUnits::Range => FrameUnit::Range,
            ast::WindowFrameUnits::Groups => FrameUnit::Groups,
        };
        if unit == FrameUnit::Groups && order.is_empty() {
            return Err(
                Error::syntax("GROUPS requires ORDER BY in its window").with_sqlstate("42P20")
            );
        }
        let start = self.bound(&frame.start_bound, unit, order, env)?;
        let end = match &frame.end_bound {
            Some(bound) => self.bound(bound, unit, order, env)?,
            None => FrameBound::CurrentRow,
        };
        let wrong = matches!(frame.start_bound, ast::WindowFrameBound::Following(None))
            || matches!(frame.end_bound, Some(ast::WindowFrameBound::Preceding(None)))
            || start.rank() > end.rank();
        if wrong {
            return Err(
                Error::syntax("the window frame ends before it starts").with_sqlstate("42P20")
            );
        }
        Ok(WindowFrame { unit, start, end })
    }

    fn bound(
        &mut self,
        bound: &'a ast::WindowFrameBound,
        unit: FrameUnit,
        order: &[SortKey],
        env: &mut Env<'_>,
    ) -> Result<FrameBound> {
        let (ast, preceding) = match bound {
            ast::WindowFrameBound::CurrentRow => return Ok(FrameBound::CurrentRow),
            ast::WindowFrameBound::Preceding(None) => return Ok(FrameBound::UnboundedPreceding),
            ast::WindowFrameBound::Following(None) => return Ok(FrameBound::UnboundedFollowing),
            ast::WindowFrameBound::Preceding(Some(e)) => (e, true),
            ast::WindowFrameBound::Following(Some(e)) => (e, false),
        };
        let offset = self.expr(ast, env)?;
        if !matches!(offset.kind, ExprKind::Literal(_) | ExprKind::Parameter(_)) {
            return Err(unsupported("a frame bound that is not a constant").at(place(ast)));
        }
        if matches!(&offset.kind, ExprKind::Literal(v) if v.is_null() || v.to_string().starts_with('-'))
        {
            let error = Error::type_error("a frame bound must not be negative or null")
                .with_sqlstate("22013");
            return Err(error.at(place(ast)));
        }
        let expr = match unit {
            FrameUnit::Rows | FrameUnit::Groups => {
                let offset = self.decide(offset, INT);
                cast(self.integer(offset, "a frame bound")?, INT)?
            }
            // The sort key at which the frame starts or ends; the order of the keys decides whether
            // it is smaller or larger than that of the row.
            FrameUnit::Range => {
                let [key] = order else {
                    let message = "RANGE with an offset requires exactly one ORDER BY expression";
                    return Err(Error::type_error(message).with_sqlstate("42P20"));
                };
                let op =
                    if preceding != key.descending { BinaryOp::Subtract } else { BinaryOp::Add };
                let moved =
                    self.binary(op, key.expr.clone(), offset).map_err(|e| e.at(place(ast)))?;
                let (_, moved) = self.unify(key.expr.clone(), moved, "RANGE")?;
                moved
            }
        };
        Ok(if preceding { FrameBound::Preceding(expr) } else { FrameBound::Following(expr) })
    }
}

/// Applies `f`, which rewrites over the grouped row, to the expressions of all windows.
pub(crate) fn rewrite(windows: &mut [Window], f: &dyn Fn(&mut Expr) -> Result<()>) -> Result<()> {
    for window in windows {
        window.partition.iter_mut().try_for_each(f)?;
        window.order.iter_mut().try_for_each(|k| f(&mut k.expr))?;
        let mut result = Ok(());
        window.call.for_each_expr_mut(&mut |e| {
            if result.is_ok() {
                result = f(e);
            }
        });
        result?;
    }
    Ok(())
}

/// Adds window nodes above the plan, one for each distinct partitioning and order. Returns the
/// column of each call.
pub(crate) fn build(mut plan: Plan, windows: Vec<Window>) -> (Plan, Vec<usize>) {
    let mut columns = vec![0; windows.len()];
    let mut left: Vec<(usize, Window)> = windows.into_iter().enumerate().collect();
    while let Some((_, first)) = left.first() {
        let (mut partition, mut order) = (first.partition.clone(), first.order.clone());
        let (now, later) =
            left.into_iter().partition(|(_, w)| w.partition == partition && w.order == order);
        left = later;
        let mut now: Vec<(usize, Window)> = now;
        plan = computed_keys(plan, &mut partition, &mut order, &mut now);
        let mut fields = plan.fields();
        let mut calls = Vec::new();
        for (at, window) in now {
            columns[at] = fields.len();
            let data_type = window.call.data_type;
            fields.push(Field {
                name: window.call.function.name().into(),
                data_type,
                nullable: true,
            });
            calls.push(window.call);
        }
        let window = node::window::Window { input: plan, partition, order, calls, fields };
        plan = Plan::Node(Box::new(window));
    }
    (plan, columns)
}

/// Computes the volatile keys of windows with one partitioning and order. A bound of `RANGE` reads
/// the same value as the key that it is derived from.
fn computed_keys(
    plan: Plan,
    partition: &mut [Expr],
    order: &mut [SortKey],
    windows: &mut [(usize, Window)],
) -> Plan {
    let written: Vec<Expr> = order.iter().map(|key| key.expr.clone()).collect();
    let keys = partition.iter_mut().chain(order.iter_mut().map(|key| &mut key.expr));
    let plan = volatile_keys::compute(plan, keys);
    for (old, new) in written.iter().zip(&*order).filter(|(old, new)| **old != new.expr) {
        for (_, window) in &mut *windows {
            window.call.frame.for_each_expr_mut(&mut |bound| replace(bound, old, &new.expr));
        }
    }
    plan
}

/// Replaces an expression wherever it occurs in another.
fn replace(expr: &mut Expr, old: &Expr, new: &Expr) {
    match expr == old {
        true => expr.clone_from(new),
        false => expr.for_each_child_mut(&mut |child| replace(child, old, new)),
    }
}

/// Replaces each window function by its column, as returned by [`build`].
pub(crate) fn settle(expr: &mut Expr, columns: &[usize]) {
    resolve(expr, &|of| match of {
        Placeholder::Window(at) => ExprKind::Column(columns[at]),
        Placeholder::Aggregate(_) | Placeholder::Grouping(_) => {
            broken(format_args!("{of:?} is above a window"))
        }
    });
}

/// Builds the error for a window function where none is allowed.
pub(crate) fn not_allowed(clause: &str) -> Error {
    Error::type_error(format!("window functions are not allowed in {clause}"))
        .with_sqlstate("42P20")
}

/// Builds the error for a window function without `OVER`.
pub(crate) fn needs_over(name: &str) -> Error {
    Error::syntax(format!("{name} requires OVER")).with_sqlstate("42P20")
}

/// The treatment of nulls that a clause inside a call asks for.
fn null_treatment(clause: &ast::FunctionArgumentClause) -> Option<ast::NullTreatment> {
    match clause {
        ast::FunctionArgumentClause::IgnoreOrRespectNulls(treatment) => Some(*treatment),
        _ => None,
    }
}

/// Whether a call has `IGNORE NULLS`, inside its parentheses or behind them.
fn ignores_nulls(f: &ast::Function) -> bool {
    let clauses = match &f.args {
        ast::FunctionArguments::List(list) => list.clauses.as_slice(),
        _ => &[],
    };
    let inside = clauses.iter().find_map(null_treatment);
    f.null_treatment.or(inside) == Some(ast::NullTreatment::IgnoreNulls)
}
