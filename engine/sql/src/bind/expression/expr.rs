//! Expressions: one match arm per syntactic form; operators and functions have their own files.
//! `AND` and `OR` chains are walked in a loop; everything else recurses under the depth limit.

use crate::analysis::volatile::is_volatile;
use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::expression::cast::{binary, cast, explicit_cast};
use crate::bind::expression::literal;
use crate::bind::expression::operator::{connect, not};
use crate::bind::expression::temporal::date_arithmetic;
use crate::bind::expression::types;
use crate::bind::names::{check_collation, place, unsupported};
use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::parse::operator_words;
use crate::parse::placeholder_index;
use crate::parse::position;
use nacre_builtin::scalar::numbers::POWER;
use nacre_builtin::scalar::pattern::{GLOB, REGEXP_LIKE};
use nacre_builtin::scalar::rounding::{CEIL, FLOOR};
use nacre_builtin::scalar::text::POSITION;
use nacre_types::{DataType, Error, Reason, Result, Value, decimal, interval};
use sqlparser::ast::{self, BinaryOperator as Op, Expr as E, UnaryOperator, Value as Literal};

impl<'a> Binder<'a> {
    /// Binds one expression. Untyped parameters and bare nulls keep the type `Null` until an
    /// operand gives them one.
    pub(crate) fn expr(&mut self, ast: &'a E, env: &mut Env<'_>) -> Result<Expr> {
        self.limits.enter().map_err(|e| e.at(place(ast)))?;
        let result = match ast {
            E::Identifier(ident) => self.column(None, ident, env),
            E::CompoundIdentifier(parts) => self.compound(parts, env),
            E::Value(value) => self.literal(value),
            E::Nested(inner) => self.expr(inner, env),
            E::BinaryOp { left, op, right } => self.binary_expr(ast, left, op, right, env),
            E::UnaryOp { op, expr } => self.unary(*op, expr, env),
            E::Function(function) => self.function(function, env),
            other => self.other(other, env),
        };
        self.limits.leave();
        result.map_err(|e| if e.position().is_some() { e } else { e.at(place(ast)) })
    }

    /// Copies a bound expression, for a construct that evaluates it twice. Returns a `limit` error
    /// when the statement's copies add up to too many nodes: nested copies double at every level.
    pub(crate) fn again(&mut self, expr: &Expr) -> Result<Expr> {
        if is_volatile(expr) {
            return Err(unsupported("a volatile function where its value is needed twice"));
        }
        let mut open = vec![expr];
        while let Some(part) = open.pop() {
            self.limits.count_copy()?;
            if let ExprKind::Subquery(sub) = &part.kind {
                self.limits.count_query()?;
                sub.plan.any_node(&mut |node| {
                    node.for_each_expr(&mut |part| open.push(part));
                    false
                });
            }
            part.for_each_child(&mut |part| open.push(part));
        }
        Ok(expr.clone())
    }

    /// Binds an expression and decides its type: an untyped parameter takes the type of its value,
    /// or `TEXT` if that is not known.
    pub(crate) fn typed(&mut self, ast: &'a E, env: &mut Env<'_>) -> Result<Expr> {
        let expr = self.expr(ast, env)?;
        Ok(self.settle(expr, DataType::TEXT))
    }

    fn column(
        &mut self,
        table: Option<&str>,
        ident: &ast::Ident,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        let at = position(ident.span.start);
        if let Some(expr) = env.scope.resolve(table, &ident.value).map_err(|e| e.at(at))? {
            if let (ExprKind::Column(index), false) = (&expr.kind, env.in_aggregate) {
                env.seen.push((*index, at));
            }
            return Ok(expr);
        }
        if table.is_none() {
            let alias =
                env.aliases.iter().find(|(name, _)| name.eq_ignore_ascii_case(&ident.value));
            if let Some((_, expr)) = alias {
                if is_volatile(expr) && env.clause != "GROUP BY" {
                    let what = format!("the output `{}` in {}", ident.value, env.clause);
                    return Err(unsupported(&format!("{what}, as it is volatile,")).at(at));
                }
                return Ok(expr.clone());
            }
            // `DEFAULT` parses as a name.
            if ident.quote_style.is_none()
                && env.scope.columns.is_empty()
                && ident.value.eq_ignore_ascii_case("default")
            {
                return Err(Error::syntax(
                    "DEFAULT is only allowed as a value in INSERT and UPDATE",
                )
                .at(at));
            }
        }
        if let Some(expr) = self.outer_column(table, &ident.value, at)? {
            return Ok(expr);
        }
        if table.is_none()
            && let Some(expr) = env.earlier_output(&ident.value)
        {
            return Ok(expr.clone());
        }
        let error = self.unknown_column(env, table, &ident.value).at(at);
        let is_text = table.is_none()
            && ident.quote_style == Some('"')
            && error.reason() != Some(Reason::Misspelled);
        Err(if is_text { error.and("write text in 'single quotes'") } else { error })
    }

    fn compound(&mut self, parts: &[ast::Ident], env: &mut Env<'_>) -> Result<Expr> {
        match parts {
            [table, column] => self
                .column(Some(&table.value), column, env)
                .map_err(|e| e.at(position(table.span.start))),
            [schema, table, column]
                if schema.value.eq_ignore_ascii_case("main")
                    || schema.value.eq_ignore_ascii_case("public") =>
            {
                self.column(Some(&table.value), column, env)
            }
            _ => Err(unsupported("a name with this many parts")),
        }
    }

    pub(crate) fn literal(&mut self, value: &ast::ValueWithSpan) -> Result<Expr> {
        let value = match &value.value {
            Literal::Number(text, _) => literal::number(text)?,
            Literal::SingleQuotedString(text)
            | Literal::EscapedStringLiteral(text)
            | Literal::NationalStringLiteral(text)
            | Literal::UnicodeStringLiteral(text) => Value::Text(text.clone()),
            Literal::DollarQuotedString(text) => Value::Text(text.value.clone()),
            Literal::HexStringLiteral(text) => Value::Binary(hex(text)?),
            Literal::Boolean(v) => Value::Boolean(*v),
            Literal::Null => Value::Null,
            placeholder @ Literal::Placeholder(_) => {
                let index = placeholder_index(placeholder)
                    .filter(|i| *i < self.parameters.len())
                    .ok_or_else(|| {
                    Error::syntax("not a valid parameter; write ?, $1 or :name")
                })?;
                return Ok(Expr { kind: ExprKind::Parameter(index), data_type: DataType::Null });
            }
            _ => return Err(unsupported("this form of literal")),
        };
        let data_type = value.natural_type();
        Ok(Expr::literal(value, data_type))
    }

    fn binary_expr(
        &mut self,
        ast: &'a E,
        left: &'a E,
        op: &Op,
        right: &'a E,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        if matches!(op, Op::And | Op::Or) {
            return self.logical(ast, op, env);
        }
        let Some(op) = operator(op) else {
            if *op == Op::Xor {
                let left = self.expr(left, env)?;
                let right = self.expr(right, env)?;
                let left = self.condition(left, "an operand of XOR")?;
                let right = self.condition(right, "an operand of XOR")?;
                return self.comparison(BinaryOp::NotEqual, left, right);
            }
            if let Op::PGRegexMatch
            | Op::PGRegexIMatch
            | Op::PGRegexNotMatch
            | Op::PGRegexNotIMatch = op
            {
                let (left, right) = (self.expr(left, env)?, self.expr(right, env)?);
                let any_case = matches!(op, Op::PGRegexIMatch | Op::PGRegexNotIMatch);
                let negated = matches!(op, Op::PGRegexNotMatch | Op::PGRegexNotIMatch);
                let right = if any_case {
                    let flag = Expr::literal(Value::Text("(?i)".into()), DataType::TEXT);
                    self.binary(BinaryOp::Concat, flag, right)?
                } else {
                    right
                };
                return self.matches([left, right], negated);
            }
            if let Op::Custom(name) = op
                && (name == operator_words::GLOB || name == operator_words::NOT_GLOB)
            {
                let args = vec![self.expr(left, env)?, self.expr(right, env)?];
                let found = self.call(&GLOB, args)?;
                return Ok(if name == operator_words::NOT_GLOB { not(found) } else { found });
            }
            if *op == Op::PGExp {
                return self.power(left, right, env);
            }
            if let Some(part) = self.json_operator(left, op, right, env)? {
                return Ok(part);
            }
            return Err(unsupported(&format!("operator {op}")));
        };
        self.pair(op, left, right, env)
    }

    /// Binds a chain of `AND` or of `OR`, which is left-deep in the syntax tree, operand by
    /// operand.
    fn logical(&mut self, ast: &'a E, op: &Op, env: &mut Env<'_>) -> Result<Expr> {
        let mut operands = Vec::new();
        let mut rest = ast;
        loop {
            match rest {
                E::BinaryOp { left, op: next, right } if next == op => {
                    operands.push(right.as_ref());
                    rest = left;
                }
                _ => break,
            }
        }
        operands.push(rest);
        let what = if *op == Op::And { "an operand of AND" } else { "an operand of OR" };
        let mut bound = Vec::with_capacity(operands.len());
        for operand in operands.into_iter().rev() {
            let expr = self.expr(operand, env)?;
            bound.push(self.condition(expr, what).map_err(|e| e.at(place(operand)))?);
        }
        Ok(connect(*op == Op::And, bound))
    }

    fn unary(&mut self, op: UnaryOperator, inner: &'a E, env: &mut Env<'_>) -> Result<Expr> {
        let expr = self.expr(inner, env)?;
        match op {
            UnaryOperator::Not | UnaryOperator::BangNot => {
                Ok(not(self.condition(expr, "the operand of NOT")?))
            }
            UnaryOperator::Minus => self.negate(expr),
            // A no-op, even on text, as in SQLite and MySQL.
            UnaryOperator::Plus => Ok(self.settle(expr, DataType::Float64)),
            // `~x` is `-1 ^ x`.
            UnaryOperator::BitwiseNot => {
                self.binary(BinaryOp::BitXor, expr, Expr::literal(Value::Int(-1), DataType::Int64))
            }
            _ => Err(unsupported("this unary operator")),
        }
    }

    /// Binds the less frequent forms; a separate function keeps the stack frame of [`Binder::expr`]
    /// small.
    #[inline(never)]
    fn other(&mut self, ast: &'a E, env: &mut Env<'_>) -> Result<Expr> {
        match ast {
            E::IsNull(e) => self.is_null(e, false, env),
            E::IsNotNull(e) => self.is_null(e, true, env),
            E::IsTrue(e) => self.is_boolean(e, true, false, env),
            E::IsNotTrue(e) => self.is_boolean(e, true, true, env),
            E::IsFalse(e) => self.is_boolean(e, false, false, env),
            E::IsNotFalse(e) => self.is_boolean(e, false, true, env),
            E::IsUnknown(e) => self.is_null(e, false, env),
            E::IsNotUnknown(e) => self.is_null(e, true, env),
            E::IsJson { expr, kind, unique_keys, negated } => {
                self.is_json(expr, kind.as_ref(), unique_keys.as_ref(), *negated, env)
            }
            E::MemberOf(member) => self.member_of(member, env),
            E::IsDistinctFrom(a, b) => self.pair(BinaryOp::Distinct, a, b, env),
            E::IsNotDistinctFrom(a, b) => self.pair(BinaryOp::NotDistinct, a, b, env),
            E::Between { expr, negated, low, high } => self.between(expr, *negated, low, high, env),
            E::InList { expr, list, negated } => self.in_list(expr, list, *negated, env),
            E::Like { negated, any: false, expr, pattern, escape_char } => {
                self.like(*negated, expr, pattern, escape_char.as_deref(), false, env)
            }
            E::ILike { negated, any: false, expr, pattern, escape_char } => {
                self.like(*negated, expr, pattern, escape_char.as_deref(), true, env)
            }
            E::Cast { kind, expr, data_type, format: None } => {
                if matches!(kind, ast::CastKind::TryCast | ast::CastKind::SafeCast) {
                    let to = types::data_type(data_type)?;
                    let arg = self.expr(expr, env)?;
                    return self.try_cast(arg, to);
                }
                self.cast_to(expr, data_type, env)
            }
            E::Convert {
                is_try: false, expr, data_type: Some(data_type), charset: None, ..
            } => self.cast_to(expr, data_type, env),
            E::TypedString(typed) => {
                let to = types::data_type(&typed.data_type)?;
                let text = self.literal(&typed.value)?;
                cast(text, to)
            }
            E::Interval(interval) => self.interval(interval, env),
            E::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref(), env)
            }
            E::Extract { field, expr, .. } => self.extract(field, expr, env),
            E::Ceil { expr, field } => self.rounding(&CEIL, expr, field, env),
            E::Floor { expr, field } => self.rounding(&FLOOR, expr, field, env),
            E::Position { expr, r#in } => {
                let args = vec![self.expr(expr, env)?, self.expr(r#in, env)?];
                self.call(&POSITION, args)
            }
            E::Substring { expr, substring_from, substring_for, .. } => {
                self.substring(expr, substring_from.as_deref(), substring_for.as_deref(), env)
            }
            E::Trim { trim_where, trim_what, expr, trim_characters } => {
                if trim_characters.as_ref().is_some_and(|list| list.len() > 1) {
                    return Err(unsupported("TRIM of several lists of characters"));
                }
                let what =
                    trim_what.as_deref().or(trim_characters.as_ref().and_then(|c| c.first()));
                self.trim(trim_where.as_ref(), what, expr, env)
            }
            E::Collate { expr, collation } => {
                check_collation(&collation.to_string())?;
                let expr = self.expr(expr, env)?;
                self.text(expr)
            }
            E::InSubquery { expr, subquery, negated } => {
                self.in_subquery(expr, subquery, *negated, env)
            }
            E::Exists { subquery, negated } => self.exists(subquery, *negated, env),
            E::Subquery(query) => self.scalar_subquery(query, env),
            E::AnyOp { left, compare_op, right, .. } => {
                self.quantified(left, compare_op, right, false, env)
            }
            E::AllOp { left, compare_op, right } => {
                self.quantified(left, compare_op, right, true, env)
            }
            E::GroupingSets(_) => Err(unsupported("GROUPING SETS")),
            E::Cube(_) => Err(unsupported("CUBE")),
            E::Rollup(_) => Err(unsupported("ROLLUP")),
            E::Tuple(_) => Err(unsupported("a row of several values")),
            E::Array(_) => Err(unsupported("ARRAY")),
            E::SimilarTo { .. } => Err(unsupported("SIMILAR TO")),
            E::RLike { negated, expr, pattern, .. } => {
                let args = [self.expr(expr, env)?, self.expr(pattern, env)?];
                self.matches(args, *negated)
            }
            E::AtTimeZone { timestamp, time_zone } => self.at_time_zone(timestamp, time_zone, env),
            E::JsonAccess { .. } | E::CompoundFieldAccess { .. } => {
                Err(unsupported("access to parts of a value"))
            }
            E::Wildcard(_) | E::QualifiedWildcard(..) => {
                Err(Error::syntax("* is not an expression"))
            }
            _ => Err(unsupported("this form of expression")),
        }
    }

    pub(crate) fn cast_to(
        &mut self,
        arg: &'a E,
        to: &ast::DataType,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        let to = types::data_type(to)?;
        let expr = self.expr(arg, env)?;
        let expr = self.decide(expr, to);
        explicit_cast(expr, to)
    }

    fn case(
        &mut self,
        operand: Option<&'a E>,
        conditions: &'a [ast::CaseWhen],
        otherwise: Option<&'a E>,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        let operand = operand.map(|o| self.typed(o, env)).transpose()?;
        let mut tests = Vec::with_capacity(conditions.len());
        let mut results = Vec::with_capacity(conditions.len() + 1);
        for when in conditions {
            let test = self.expr(&when.condition, env)?;
            let test = match &operand {
                Some(operand) => {
                    let operand = self.again(operand)?;
                    self.comparison(BinaryOp::Equal, operand, test)
                }
                None => self.condition(test, "WHEN"),
            };
            tests.push(test.map_err(|e| e.at(place(&when.condition)))?);
            results.push(self.expr(&when.result, env)?);
        }
        let has_else = otherwise.is_some();
        if let Some(e) = otherwise {
            results.push(self.expr(e, env)?);
        }
        self.case_of(tests, results, has_else)
    }

    /// Builds a searched `CASE` from bound parts. With `has_else`, the last result is that of
    /// `ELSE`.
    pub(crate) fn case_of(
        &mut self,
        tests: Vec<Expr>,
        results: Vec<Expr>,
        has_else: bool,
    ) -> Result<Expr> {
        let (mut results, data_type) = self.unify_all(results, "CASE")?;
        let otherwise = if has_else { results.pop().map(Box::new) } else { None };
        // Drop branches with a constant false or null test, and everything after one that is always
        // true.
        let mut otherwise = otherwise;
        let mut branches = Vec::with_capacity(tests.len());
        for (test, result) in tests.into_iter().zip(results) {
            match test.kind {
                ExprKind::Literal(Value::Boolean(true)) => {
                    otherwise = Some(Box::new(result));
                    break;
                }
                ExprKind::Literal(_) => {}
                _ => branches.push((test, result)),
            }
        }
        if branches.is_empty() {
            return Ok(otherwise.map_or(Expr::literal(Value::Null, data_type), |e| *e));
        }
        Ok(Expr { kind: ExprKind::Case { branches, otherwise }, data_type })
    }

    fn interval(&mut self, interval: &'a ast::Interval, env: &mut Env<'_>) -> Result<Expr> {
        if interval.last_field.is_some() {
            return Err(unsupported("INTERVAL with TO"));
        }
        if interval.leading_precision.is_some() || interval.fractional_seconds_precision.is_some() {
            return Err(unsupported("a precision of INTERVAL"));
        }
        let value = self.expr(&interval.value, env)?;
        let text = match &value.kind {
            ExprKind::Literal(v @ (Value::Text(_) | Value::Int(_) | Value::Decimal { .. })) => {
                v.to_string()
            }
            _ => return number_of_units(value, interval).map_err(|e| e.at(place(&interval.value))),
        };
        let parsed = match &interval.leading_field {
            // A unit that the parser does not know is no alias of a number of seconds.
            None if decimal::parse(text.trim()).is_some() => None,
            None => interval::parse(&text),
            Some(field) => {
                let unit = field.to_string();
                interval::unit_of(&unit).and_then(|u| interval::of(&text, u))
            }
        };
        match parsed {
            Some(v) => Ok(Expr::literal(Value::Interval(v), DataType::Interval)),
            None => {
                let message = format!("'{text}' is not a valid INTERVAL");
                Err(Error::type_error(message).with_sqlstate("22007").at(place(&interval.value)))
            }
        }
    }

    /// Binds `a REGEXP b`, `a ~ b` and their negations.
    fn matches(&mut self, args: [Expr; 2], negated: bool) -> Result<Expr> {
        let found = self.call(&REGEXP_LIKE, args.into())?;
        Ok(if negated { not(found) } else { found })
    }

    /// Binds PostgreSQL's `a ^ b`.
    fn power(&mut self, a: &'a E, b: &'a E, env: &mut Env<'_>) -> Result<Expr> {
        let a = self.expr(a, env)?;
        let b = self.expr(b, env)?;
        self.call(&POWER, vec![a, b])
    }

    /// Builds the equality of two columns for `USING` and `NATURAL`.
    pub(crate) fn equal(&mut self, left: Expr, right: Expr) -> Result<Expr> {
        let (left, right) = self.unify(left, right, "=")?;
        Ok(binary(BinaryOp::Equal, left, right, DataType::Boolean))
    }
}

pub(crate) fn operator(op: &Op) -> Option<BinaryOp> {
    Some(match op {
        Op::Plus => BinaryOp::Add,
        Op::Minus => BinaryOp::Subtract,
        Op::Multiply => BinaryOp::Multiply,
        Op::Divide => BinaryOp::Divide,
        Op::MyIntegerDivide | Op::DuckIntegerDivide => BinaryOp::IntegerDivide,
        Op::Modulo => BinaryOp::Modulo,
        Op::StringConcat => BinaryOp::Concat,
        Op::Gt => BinaryOp::Greater,
        Op::Lt => BinaryOp::Less,
        Op::GtEq => BinaryOp::GreaterOrEqual,
        Op::LtEq => BinaryOp::LessOrEqual,
        Op::Eq => BinaryOp::Equal,
        Op::NotEq => BinaryOp::NotEqual,
        Op::Spaceship => BinaryOp::NotDistinct,
        Op::BitwiseOr => BinaryOp::BitOr,
        Op::BitwiseAnd => BinaryOp::BitAnd,
        Op::BitwiseXor | Op::PGBitwiseXor => BinaryOp::BitXor,
        Op::PGBitwiseShiftLeft => BinaryOp::ShiftLeft,
        Op::PGBitwiseShiftRight => BinaryOp::ShiftRight,
        _ => return None,
    })
}

fn hex(text: &str) -> Result<Vec<u8>> {
    let digit = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
    let bad = || Error::syntax("a hexadecimal literal must consist of pairs of hexadecimal digits");
    let pairs = text.as_bytes().chunks(2).map(|pair| match pair {
        [a, b] => Some(digit(*a)? << 4 | digit(*b)?),
        _ => None,
    });
    pairs.collect::<Option<Vec<u8>>>().ok_or_else(bad)
}

/// Binds `INTERVAL n DAY` of a computed whole number.
fn number_of_units(number: Expr, interval: &ast::Interval) -> Result<Expr> {
    let unit =
        interval.leading_field.as_ref().and_then(|field| interval::unit_of(&field.to_string()));
    match unit.and_then(|unit| interval::of("1", unit)) {
        Some(one) if number.data_type.is_integer() || number.data_type == DataType::Null => {
            date_arithmetic(
                BinaryOp::Multiply,
                Expr::literal(Value::Interval(one), DataType::Interval),
                number,
            )
        }
        _ => Err(unsupported("INTERVAL of anything but a literal or a whole number of units")),
    }
}
