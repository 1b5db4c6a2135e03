//! Subqueries in expressions, and references to rows of enclosing queries.
//!
//! A name that the query's own `FROM` does not define is searched for in the enclosing queries,
//! innermost first. A column found there becomes an argument of the subquery at that level. The
//! enclosing expression owns the argument, so a pass that rewrites the expression, such as
//! grouping, rewrites the argument as well.

use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::environment::{Arguments, Frame};
use crate::bind::names::unsupported;
use crate::bind::scope::Scope;
use crate::expr::{BinaryOp, Expr, ExprKind, Subquery, SubqueryKind};
use crate::plan::Plan;
use nacre_types::invariant::broken;
use nacre_types::{DataType, Error, Position, Result};
use sqlparser::ast::{self, Expr as E};

impl<'a> Binder<'a> {
    /// Resolves a name to a column of an enclosing query.
    pub(crate) fn outer_column(
        &mut self,
        table: Option<&str>,
        name: &str,
        at: Option<Position>,
    ) -> Result<Option<Expr>> {
        for frame in self.frames.iter_mut().rev() {
            if let Some(expr) = frame.scope.resolve(table, name).map_err(|e| e.at(at))? {
                return Ok(Some(frame.outer(expr, at)));
            }
        }
        Ok(None)
    }

    /// Builds the error for a name found neither in this query nor in an enclosing one.
    #[cold]
    pub(crate) fn unknown_column(&self, env: &Env<'_>, table: Option<&str>, name: &str) -> Error {
        let scopes = self.frames.iter().rev().map(|f| &f.scope);
        match table {
            // An enclosing query that has the table yields the better suggestion.
            Some(table) if !env.scope.has_table(table) => {
                let scope = scopes.into_iter().find(|s| s.has_table(table)).unwrap_or(env.scope);
                scope.unknown_column(Some(table), name, &[])
            }
            _ => env.scope.unknown_column(table, name, env.aliases),
        }
    }

    /// Runs `f` with the columns of `scope` visible as an enclosing row. Returns the number of its
    /// frame and the expressions over the row that were used.
    pub(crate) fn framed<T>(
        &mut self,
        scope: &Scope,
        f: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, u32, Arguments)> {
        let id = self.fresh();
        let (aggregates, place) = (None, ("FROM", false));
        self.frames.push(Frame { id, scope: scope.clone(), args: Vec::new(), aggregates, place });
        let result = f(self);
        let frame = self.leave_frame(id);
        Ok((result?, id, frame.args))
    }

    /// Takes off the innermost frame, which is that of the query just bound.
    fn leave_frame(&mut self, id: u32) -> Frame {
        match self.frames.pop() {
            Some(frame) if frame.id == id => frame,
            _ => broken(format_args!("frame {id} is not the innermost one")),
        }
    }

    fn subquery(
        &mut self,
        query: &'a ast::Query,
        kind: SubqueryKind,
        env: &mut Env<'_>,
    ) -> Result<Subquery> {
        let frame = self.fresh();
        let aggregates = if env.in_aggregate { None } else { env.aggregates.take() };
        let place = (env.clause, env.in_aggregate);
        self.frames.push(Frame {
            id: frame,
            scope: env.scope.clone(),
            args: Vec::new(),
            aggregates,
            place,
        });
        let plan = self.query(query);
        let Frame { args, aggregates, .. } = self.leave_frame(frame);
        if !env.in_aggregate {
            env.aggregates = aggregates;
        }
        let plan = plan?;
        if !env.in_aggregate {
            for (expr, at) in &args {
                if let ExprKind::Column(column) = expr.kind {
                    env.seen.push((column, *at));
                }
            }
        }
        let args = args.into_iter().map(|(e, _)| e).collect();
        Ok(Subquery { kind, plan, frame, args, operands: Vec::new() })
    }

    pub(crate) fn scalar_subquery(
        &mut self,
        query: &'a ast::Query,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        let sub = self.subquery(query, SubqueryKind::Scalar, env)?;
        let fields = sub.plan.fields();
        let [field] = fields.as_slice() else { return Err(column_count(1, fields.len())) };
        Ok(Expr { kind: ExprKind::Subquery(Box::new(sub)), data_type: field.data_type })
    }

    pub(crate) fn exists(
        &mut self,
        query: &'a ast::Query,
        negated: bool,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        let sub = self.subquery(query, SubqueryKind::Exists, env)?;
        Ok(boolean(sub, negated))
    }

    pub(crate) fn in_subquery(
        &mut self,
        left: &'a E,
        query: &'a ast::Query,
        negated: bool,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        self.any(left, BinaryOp::Equal, query, negated, env)
    }

    /// Binds `left op ANY (query)` and `left op ALL (query)`. `ALL` is the negation of `ANY` with
    /// the opposite operator.
    pub(crate) fn quantified(
        &mut self,
        left: &'a E,
        op: &ast::BinaryOperator,
        mut right: &'a E,
        all: bool,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        let op = crate::bind::expression::expr::operator(op).filter(|op| op.is_comparison());
        let Some(op) = op else { return Err(unsupported("ANY or ALL of this operator")) };
        while let E::Nested(inner) = right {
            right = inner;
        }
        let E::Subquery(query) = right else {
            return Err(unsupported("ANY or ALL of anything but a subquery"));
        };
        let op = match (all, op) {
            (false, op) => op,
            (true, BinaryOp::Equal) => BinaryOp::NotEqual,
            (true, BinaryOp::NotEqual) => BinaryOp::Equal,
            (true, BinaryOp::Less) => BinaryOp::GreaterOrEqual,
            (true, BinaryOp::LessOrEqual) => BinaryOp::Greater,
            (true, BinaryOp::Greater) => BinaryOp::LessOrEqual,
            (true, BinaryOp::GreaterOrEqual) => BinaryOp::Less,
            (true, BinaryOp::NotDistinct) => BinaryOp::Distinct,
            (true, _) => BinaryOp::NotDistinct,
        };
        self.any(left, op, query, all, env)
    }

    fn any(
        &mut self,
        left: &'a E,
        op: BinaryOp,
        query: &'a ast::Query,
        negated: bool,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        let mut left = left;
        while let E::Nested(inner) = left {
            left = inner;
        }
        let list: &'a [E] = match left {
            E::Tuple(list) => list,
            one => std::slice::from_ref(one),
        };
        if list.len() > 1 && op != BinaryOp::Equal {
            return Err(unsupported("comparing rows of several values by anything but equality"));
        }
        let operands = list.iter().map(|e| self.expr(e, env)).collect::<Result<Vec<_>>>()?;
        let mut sub = self.subquery(query, SubqueryKind::Any(op), env)?;
        let fields = sub.plan.fields();
        if fields.len() != operands.len() {
            return Err(column_count(operands.len(), fields.len()));
        }
        let mut columns = Vec::with_capacity(fields.len());
        for (at, (operand, field)) in operands.into_iter().zip(&fields).enumerate() {
            let (l, r) = self.unify(operand, Expr::column(at, field.data_type), op.symbol())?;
            if l.data_type == DataType::Interval {
                return Err(unsupported("comparing INTERVALs with a subquery"));
            }
            sub.operands.push(l);
            columns.push(r);
        }
        if columns.iter().any(|c| !matches!(c.kind, ExprKind::Column(_))) {
            let fields = fields.into_iter().zip(&columns);
            let fields =
                fields.map(|(f, c)| crate::plan::Field { data_type: c.data_type, ..f }).collect();
            sub.plan = Plan::Project { input: Box::new(sub.plan), exprs: columns, fields };
        }
        Ok(boolean(sub, negated))
    }
}

fn boolean(sub: Subquery, negated: bool) -> Expr {
    let expr = Expr { kind: ExprKind::Subquery(Box::new(sub)), data_type: DataType::Boolean };
    if negated { crate::bind::expression::operator::not(expr) } else { expr }
}

#[cold]
fn column_count(wanted: usize, found: usize) -> Error {
    let plural = if wanted == 1 { "" } else { "s" };
    Error::syntax(format!("the subquery must have {wanted} column{plural}, not {found}"))
        .with_sqlstate("42601")
}
