//! The binder's implementation of [`Binding`], through which typing rules of the function registry
//! build expressions that they know only as numbered operands.

use crate::bind::binder::Binder;
use crate::bind::expression::cast::{cast, explicit_cast};
use crate::bind::expression::function::aggregate::Parts;
use crate::bind::expression::operator::connect;
use crate::expr::{Aggregate, AggregateFunction, BinaryOp, Expr, ExprKind, Placeholder};
use crate::plan::SortKey;
use nacre_builtin::registry;
use nacre_function::entry::aggregate::{
    AggregateArguments, AggregateBinding, AggregateCallee, AggregateKey, CreatedAggregate,
};
use nacre_function::entry::coerce;
use nacre_function::entry::definition::Arguments;
use nacre_function::entry::definition::{Binding, CreatedScalar, Operand};
use nacre_function::entry::definition::{ScalarCallee, ScalarFunction};
use nacre_function::entry::window::WindowFunction;
use nacre_types::{DataType, Result, Value, invariant};
use std::sync::Arc;

/// The expressions behind the operands of one call, by operand number.
struct Operands<'b, 'a> {
    binder: &'b mut Binder<'a>,
    /// `None` once taken.
    exprs: Vec<Option<Expr>>,
    /// Aggregates of the query; empty for a scalar call.
    aggregates: Vec<Aggregate>,
}

/// Adds an aggregate to the list unless it is there already, and returns the placeholder that stands
/// for it.
pub(crate) fn push(list: &mut Vec<Aggregate>, aggregate: Aggregate) -> Expr {
    let data_type = aggregate.data_type;
    let at = list.iter().position(|known| *known == aggregate).unwrap_or_else(|| {
        list.push(aggregate);
        list.len() - 1
    });
    Expr::placeholder(Placeholder::Aggregate(at), data_type)
}

impl Operands<'_, '_> {
    fn add(&mut self, expr: Expr) -> Operand {
        self.exprs.push(Some(expr));
        Operand::new(self.exprs.len() - 1)
    }

    fn expr(&self, operand: &Operand) -> Option<&Expr> {
        self.exprs.get(operand.number())?.as_ref()
    }

    /// Takes the expression of an operand. A rule cannot copy an operand, so each is taken at most
    /// once.
    fn take(&mut self, operand: Operand) -> Expr {
        let expr = self.exprs.get_mut(operand.number()).and_then(Option::take);
        invariant!(expr.is_some(), "operand {} stands for no expression", operand.number());
        expr.unwrap_or_else(|| Expr::literal(Value::Null, DataType::Null))
    }

    fn take_pair(&mut self, left: Operand, right: Operand) -> (Expr, Expr) {
        (self.take(left), self.take(right))
    }

    fn add_pair(&mut self, (left, right): (Expr, Expr)) -> (Operand, Operand) {
        (self.add(left), self.add(right))
    }
}

impl<'b, 'a> Operands<'b, 'a> {
    fn new(binder: &'b mut Binder<'a>) -> Operands<'b, 'a> {
        Operands { binder, exprs: Vec::new(), aggregates: Vec::new() }
    }

    fn add_all(&mut self, exprs: Vec<Expr>) -> Vec<Operand> {
        exprs.into_iter().map(|expr| self.add(expr)).collect()
    }
}

impl<'a> Binder<'a> {
    /// Applies a typing rule of the registry to expressions.
    pub(crate) fn by_rule(
        &mut self,
        exprs: Vec<Expr>,
        rule: impl FnOnce(&mut dyn Binding, Vec<Operand>) -> Result<Operand>,
    ) -> Result<Expr> {
        let mut operands = Operands::new(self);
        let arguments = operands.add_all(exprs);
        let result = rule(&mut operands, arguments)?;
        Ok(operands.take(result))
    }

    /// Applies the typing rule of an aggregate and adds the aggregates that it needs to
    /// `aggregates`.
    pub(crate) fn by_aggregate_rule(
        &mut self,
        entry: registry::AggregateEntry,
        name: &str,
        parts: Parts,
        aggregates: &mut Vec<Aggregate>,
    ) -> Result<Expr> {
        let mut operands = Operands::new(self);
        operands.aggregates = std::mem::take(aggregates);
        let order = parts.order.into_iter().map(|key| AggregateKey {
            operand: operands.add(key.expr),
            descending: key.descending,
            nulls_first: key.nulls_first,
        });
        let order = order.collect();
        let arguments = AggregateArguments {
            name,
            order,
            operands: operands.add_all(parts.args),
            within_group: parts.within_group,
            distinct: parts.distinct,
            filter: parts.filter.map(|filter| operands.add(filter)),
        };
        let result = entry.bind(&mut operands, arguments);
        let result = result.map(|result| operands.take(result));
        *aggregates = operands.aggregates;
        result
    }

    /// Types a call of a window function.
    pub(crate) fn by_window_rule(
        &mut self,
        function: &WindowFunction,
        name: &str,
        args: Vec<Expr>,
    ) -> Result<(Vec<Expr>, DataType)> {
        let mut operands = Operands::new(self);
        let arguments = Arguments { name, operands: operands.add_all(args) };
        let (typed, data_type) = function.bind(&mut operands, arguments)?;
        Ok((typed.into_iter().map(|operand| operands.take(operand)).collect(), data_type))
    }

    /// See [`coerce::integer`].
    pub(crate) fn integer(&mut self, expr: Expr, name: &str) -> Result<Expr> {
        self.by_rule(vec![expr], |binding, operands| {
            let [operand] = Arguments { name, operands }.exactly()?;
            coerce::integer(binding, operand, name)
        })
    }
}

impl Binding for Operands<'_, '_> {
    fn data_type(&self, operand: &Operand) -> DataType {
        self.expr(operand).map_or(DataType::Null, |expr| expr.data_type)
    }

    fn literal(&self, operand: &Operand) -> Option<&Value> {
        match &self.expr(operand)?.kind {
            ExprKind::Literal(value) => Some(value),
            _ => None,
        }
    }

    fn constant(&mut self, value: Value, data_type: DataType) -> Operand {
        self.add(Expr::literal(value, data_type))
    }

    fn again(&mut self, operand: &Operand) -> Result<Operand> {
        let copy = match self.exprs.get(operand.number()) {
            Some(Some(expr)) => self.binder.again(expr)?,
            _ => Expr::literal(Value::Null, DataType::Null),
        };
        Ok(self.add(copy))
    }

    fn settle(&mut self, operand: Operand, otherwise: DataType) -> Operand {
        let expr = self.take(operand);
        let settled = self.binder.settle(expr, otherwise);
        self.add(settled)
    }

    fn settle_pair(&mut self, left: Operand, right: Operand) -> (Operand, Operand) {
        let (left, right) = self.take_pair(left, right);
        let settled = self.binder.settle_pair(left, right);
        self.add_pair(settled)
    }

    fn cast(&mut self, operand: Operand, to: DataType) -> Result<Operand> {
        let expr = cast(self.take(operand), to)?;
        Ok(self.add(expr))
    }

    fn explicit_cast(&mut self, operand: Operand, to: DataType) -> Result<Operand> {
        let expr = explicit_cast(self.take(operand), to)?;
        Ok(self.add(expr))
    }

    fn unify(&mut self, left: Operand, right: Operand, what: &str) -> Result<(Operand, Operand)> {
        let (left, right) = self.take_pair(left, right);
        let unified = self.binder.unify(left, right, what)?;
        Ok(self.add_pair(unified))
    }

    fn unify_all(
        &mut self,
        operands: Vec<Operand>,
        what: &str,
    ) -> Result<(Vec<Operand>, DataType)> {
        let exprs = operands.into_iter().map(|operand| self.take(operand)).collect();
        let (exprs, data_type) = self.binder.unify_all(exprs, what)?;
        Ok((exprs.into_iter().map(|expr| self.add(expr)).collect(), data_type))
    }

    fn condition(&mut self, operand: Operand, what: &str) -> Result<Operand> {
        let expr = self.take(operand);
        let condition = self.binder.condition(expr, what)?;
        Ok(self.add(condition))
    }

    fn binary(&mut self, op: BinaryOp, left: Operand, right: Operand) -> Result<Operand> {
        let (left, right) = self.take_pair(left, right);
        let result = self.binder.binary(op, left, right)?;
        Ok(self.add(result))
    }

    fn case(&mut self, test: Operand, yes: Operand, no: Operand) -> Result<Operand> {
        let test = self.take(test);
        let (yes, no) = self.take_pair(yes, no);
        let case = self.binder.case_of(vec![test], vec![yes, no], true)?;
        Ok(self.add(case))
    }

    fn null_test(&mut self, operand: Operand, negated: bool) -> Operand {
        let expr = self.take(operand);
        let arg = self.binder.settle(expr, DataType::TEXT);
        let kind = match &arg.kind {
            ExprKind::Literal(value) => {
                ExprKind::Literal(Value::Boolean(value.is_null() != negated))
            }
            _ => ExprKind::IsNull { arg: Box::new(arg), negated },
        };
        self.add(Expr { kind, data_type: DataType::Boolean })
    }

    fn call(
        &mut self,
        function: &'static ScalarFunction,
        arguments: Vec<Operand>,
        data_type: DataType,
    ) -> Operand {
        let args = arguments.into_iter().map(|operand| self.take(operand)).collect();
        self.add(Expr::call(function, args, data_type))
    }

    fn call_created(&mut self, function: Arc<CreatedScalar>, arguments: Vec<Operand>) -> Operand {
        let args = arguments.into_iter().map(|operand| self.take(operand)).collect();
        let data_type = function.returns;
        self.add(Expr::call(ScalarCallee::Created(function), args, data_type))
    }
}

impl Operands<'_, '_> {
    fn add_aggregate(
        &mut self,
        function: AggregateCallee,
        arguments: AggregateArguments<'_>,
        data_type: DataType,
    ) -> Operand {
        let args = arguments.operands.into_iter().map(|operand| self.take(operand)).collect();
        let order = arguments.order.into_iter().map(|key| SortKey {
            expr: self.take(key.operand),
            descending: key.descending,
            nulls_first: key.nulls_first,
        });
        let order = order.collect();
        let filter = arguments.filter.map(|filter| self.take(filter));
        let distinct = arguments.distinct;
        let aggregate = Aggregate { function, args, order, distinct, filter, data_type };
        let column = push(&mut self.aggregates, aggregate);
        self.add(column)
    }
}

impl AggregateBinding for Operands<'_, '_> {
    fn aggregate(
        &mut self,
        function: &'static AggregateFunction,
        arguments: AggregateArguments<'_>,
        data_type: DataType,
    ) -> Operand {
        self.add_aggregate(function.into(), arguments, data_type)
    }

    fn aggregate_created(
        &mut self,
        function: Arc<CreatedAggregate>,
        arguments: AggregateArguments<'_>,
    ) -> Operand {
        let data_type = function.returns;
        self.add_aggregate(AggregateCallee::Created(function), arguments, data_type)
    }

    fn all_of(&mut self, conditions: Vec<Operand>) -> Operand {
        let conditions = conditions.into_iter().map(|condition| self.take(condition)).collect();
        self.add(connect(true, conditions))
    }
}
