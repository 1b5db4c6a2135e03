//! `TABLESAMPLE`: rows of a table that chance chooses, others each time.

use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::expression::cast::cast;
use crate::bind::names::{place, unsupported};
use crate::bind::query::volatile_keys;
use crate::bind::scope::Scope;
use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::plan::{Plan, SortKey};
use nacre_builtin::scalar::random::RANDOM;
use nacre_types::{DataType, Error, Result, Value};
use sqlparser::ast::{TableSample, TableSampleKind, TableSampleUnit};

impl<'a> Binder<'a> {
    /// Takes a sample of rows. It is computed once, however often and wherever the query reads it.
    pub(crate) fn sampled(
        &mut self,
        sample: &'a TableSampleKind,
        (plan, scope): (Plan, Scope),
    ) -> Result<(Plan, Scope)> {
        let (TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample)) =
            sample;
        let plan = self.sealed(|binder| binder.sample(sample, plan))?;
        Ok((plan, scope))
    }

    fn sample(&mut self, sample: &'a TableSample, input: Plan) -> Result<Plan> {
        // The methods differ in which rows a choice takes together; each row is chosen by itself.
        let TableSample { modifier: _, name: _, quantity, seed, bucket, offset } = sample;
        let quantity = match quantity {
            Some(quantity) if seed.is_none() && bucket.is_none() && offset.is_none() => quantity,
            _ if seed.is_some() => return Err(unsupported("TABLESAMPLE … REPEATABLE")),
            _ => return Err(unsupported("TABLESAMPLE by buckets")),
        };
        // A number from 0 up to 1 for each row.
        self.is_volatile = true;
        let chance = Expr::call(&RANDOM, Vec::new(), DataType::Float64);
        if quantity.unit == Some(TableSampleUnit::Rows) {
            let limit = self.row_count(&quantity.value, "TABLESAMPLE")?;
            let keys = vec![SortKey { expr: chance, descending: false, nulls_first: true }];
            let input = Box::new(volatile_keys::sorted(input, keys));
            return Ok(Plan::Limit { input, offset: None, limit });
        }
        let at = place(&quantity.value);
        let scope = Scope::default();
        let percent = self.expr(&quantity.value, &mut Env::new(&scope, "TABLESAMPLE"))?;
        let ExprKind::Literal(Value::Float(percent)) = cast(percent, DataType::Float64)?.kind
        else {
            return Err(Error::type_error("TABLESAMPLE takes a number of percent").at(at));
        };
        if !(0.0..=100.0).contains(&percent) {
            let message = format!("TABLESAMPLE takes 0 to 100 percent, not {percent}");
            return Err(Error::type_error(message).with_sqlstate("2202H").at(at));
        }
        let share = Expr::literal(Value::Float(percent / 100.0), DataType::Float64);
        let (op, left, right) = (BinaryOp::Less, Box::new(chance), Box::new(share));
        let kind = ExprKind::Binary { op, left, right };
        let predicate = Expr { kind, data_type: DataType::Boolean };
        Ok(Plan::Filter { input: Box::new(input), predicate })
    }
}
