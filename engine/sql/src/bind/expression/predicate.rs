//! Predicates: `IS`, `BETWEEN`, `IN` and `LIKE`.

use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::expression::cast::{cast, is_null, is_text_literal};
use crate::bind::expression::operator::{connect, not};
use crate::bind::expression::row_value::row;
use crate::bind::expression::types;
use crate::bind::names::place;
use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::parse::position;
use nacre_types::{DataType, Error, Position, Result, Value};
use sqlparser::ast::{Expr as E, Value as Literal};

/// Maximum number of values in an `IN` list.
const MAX_LIST: usize = 1 << 20;

impl<'a> Binder<'a> {
    /// Binds a binary operator on two values or two rows.
    pub(super) fn pair(
        &mut self,
        op: BinaryOp,
        a: &'a E,
        b: &'a E,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        if let (Some(left), Some(right)) = (row(a), row(b)) {
            return self.compared_rows(op, left, right, env);
        }
        let left = self.expr(a, env)?;
        let right = self.expr(b, env)?;
        self.binary(op, left, right)
    }

    pub(super) fn is_null(&mut self, arg: &'a E, negated: bool, env: &mut Env<'_>) -> Result<Expr> {
        let arg = self.typed(arg, env)?;
        if let ExprKind::Literal(value) = &arg.kind {
            return Ok(Expr::literal(
                Value::Boolean(value.is_null() != negated),
                DataType::Boolean,
            ));
        }
        Ok(Expr {
            kind: ExprKind::IsNull { arg: Box::new(arg), negated },
            data_type: DataType::Boolean,
        })
    }

    pub(super) fn is_boolean(
        &mut self,
        arg: &'a E,
        value: bool,
        negated: bool,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        let arg = self.expr(arg, env)?;
        let arg = Box::new(self.condition(arg, "the operand of IS TRUE and IS FALSE")?);
        Ok(Expr { kind: ExprKind::IsBoolean { arg, value, negated }, data_type: DataType::Boolean })
    }

    pub(super) fn between(
        &mut self,
        arg: &'a E,
        negated: bool,
        low: &'a E,
        high: &'a E,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        let arg = self.expr(arg, env)?;
        let low = self.expr(low, env)?;
        let high = self.expr(high, env)?;
        let other = self.again(&arg)?;
        let from = self.comparison(BinaryOp::GreaterOrEqual, other, low)?;
        let to = self.comparison(BinaryOp::LessOrEqual, arg, high)?;
        if negated {
            Ok(connect(false, vec![not(from), not(to)]))
        } else {
            Ok(connect(true, vec![from, to]))
        }
    }

    pub(super) fn in_list(
        &mut self,
        arg: &'a E,
        list: &'a [E],
        negated: bool,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        if list.len() > MAX_LIST {
            return Err(Error::limit(format!("IN list has more than {MAX_LIST} values")));
        }
        if let Some(row) = row(arg) {
            return self.row_in_list(row, list, negated, env);
        }
        let arg = self.expr(arg, env)?;
        let items = list
            .iter()
            .map(|item| Ok((place(item), self.expr(item, env)?)))
            .collect::<Result<_>>()?;
        self.value_in_list(arg, items, negated)
    }

    /// Binds `IN` over a list of single values, each with its position.
    pub(crate) fn value_in_list(
        &mut self,
        mut arg: Expr,
        bound: Vec<(Option<Position>, Expr)>,
        negated: bool,
    ) -> Result<Expr> {
        if bound.is_empty() {
            self.settle(arg, DataType::TEXT);
            return Ok(Expr::literal(Value::Boolean(negated), DataType::Boolean));
        }
        // Literals are converted to the argument's type; if one does not fit, everything is cast to
        // a wider type.
        if Self::is_untyped(&arg) {
            let to = bound.iter().map(|(_, e)| e.data_type).find(|t| *t != DataType::Null);
            arg = self.settle(arg, to.unwrap_or(DataType::TEXT));
        }
        // JSON takes the type of the first item that is no text.
        for (_, item) in &bound {
            arg = self.json_sides(arg, item.clone()).0;
        }
        // An argument that is a text literal takes the type of the first item that has another
        // type.
        let decides =
            |e: &Expr| !Self::is_untyped(e) && !is_text_literal(e) && e.data_type != DataType::Null;
        if is_text_literal(&arg)
            && let Some((at, item)) = bound.iter().find(|(_, item)| decides(item))
        {
            arg = self.unify(arg, item.clone(), "IN").map_err(|e| e.at(*at))?.0;
        }
        let mut to = arg.data_type;
        let mut items = Vec::with_capacity(bound.len());
        for (at, item) in bound {
            let (left, item) = self.unify(arg.clone(), item, "IN").map_err(|e| e.at(at))?;
            let wide = if types::meets(left.data_type, item.data_type) {
                item.data_type
            } else {
                left.data_type
            };
            to = types::common(to, wide).unwrap_or(to);
            items.push(item);
        }
        if !types::meets(arg.data_type, to) {
            arg = cast(arg, to)?;
        }
        let items = items
            .into_iter()
            .map(|e| if types::meets(e.data_type, to) { Ok(e) } else { cast(e, to) });
        let list = items.collect::<Result<Vec<_>>>()?;
        if is_null(&arg) || list.iter().all(is_null) {
            return Ok(Expr::literal(Value::Null, DataType::Boolean));
        }
        if let ([_], ExprKind::Column(_) | ExprKind::Placeholder(_)) = (list.as_slice(), &arg.kind)
        {
            let op = if negated { BinaryOp::NotEqual } else { BinaryOp::Equal };
            let item = list.into_iter().next().unwrap_or_else(|| Expr::literal(Value::Null, to));
            return self.comparison(op, arg, item);
        }
        Ok(Expr {
            kind: ExprKind::InList { arg: Box::new(arg), list, negated },
            data_type: DataType::Boolean,
        })
    }

    pub(super) fn like(
        &mut self,
        negated: bool,
        arg: &'a E,
        pattern: &'a E,
        escape: Option<&'a E>,
        case_insensitive: bool,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        let escape = match escape {
            None => None,
            Some(E::Value(v)) => match &v.value {
                Literal::SingleQuotedString(text) if text.chars().count() == 1 => {
                    text.chars().next()
                }
                _ => {
                    return Err(
                        Error::syntax("ESCAPE takes one character").at(position(v.span.start))
                    );
                }
            },
            Some(_) => return Err(Error::syntax("ESCAPE takes one character")),
        };
        let bound = self.expr(arg, env)?;
        let arg = self.like_operand(bound).map_err(|e| e.at(place(arg)))?;
        let bound = self.expr(pattern, env)?;
        let pattern = self.like_operand(bound).map_err(|e| e.at(place(pattern)))?;
        let kind = ExprKind::Like {
            arg: Box::new(arg),
            pattern: Box::new(pattern),
            escape,
            negated,
            case_insensitive,
        };
        Ok(Expr { kind, data_type: DataType::Boolean })
    }

    fn like_operand(&mut self, expr: Expr) -> Result<Expr> {
        match expr.data_type {
            DataType::Text { .. } => Ok(expr),
            DataType::Null | DataType::Json => self.text(expr),
            t => Err(Error::type_error(format!("no operator LIKE for {t}; cast it to TEXT"))
                .with_sqlstate("42883")),
        }
    }
}
