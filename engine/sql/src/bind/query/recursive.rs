//! `WITH RECURSIVE`: a table computed from initial rows and, iteratively, from the rows found
//! before.
//!
//! The definition is a chain of `UNION` or `UNION ALL`. Parts that do not refer to the table yield
//! the initial rows; each iteration computes the other parts over the rows that the previous
//! iteration added. Column types are the common types of initial and later rows: the recursive
//! parts are bound again until the types no longer change.

use crate::bind::binder::Binder;
use crate::bind::environment::Itself;
use crate::bind::expression::types::common;
use crate::bind::names::unsupported;
use crate::bind::query::set_operation::{combine, converted};
use crate::parse::{is_plain, position};
use crate::plan::{Field, Plan};
use nacre_types::invariant::broken;
use nacre_types::{DataType, Error, Result};
use sqlparser::ast::{self, SetExpr, SetOperator, SetQuantifier};

/// Maximum number of times that recursive parts may widen the column types.
const MAX_ROUNDS: usize = 4;

impl<'a> Binder<'a> {
    /// Binds the recursive table at position `at` of `ctes`.
    pub(crate) fn recursive_table(&mut self, at: usize) -> Result<Plan> {
        let cte = self.ctes[at].cte;
        let query = &cte.query;
        let mut parts = Vec::new();
        let mut kinds = Vec::new();
        let mut first = query.body.as_ref();
        while let SetExpr::SetOperation { op: SetOperator::Union, set_quantifier, left, right } =
            first
        {
            kinds.push(match set_quantifier {
                SetQuantifier::All => true,
                SetQuantifier::None | SetQuantifier::Distinct => false,
                _ => return Err(unsupported("a set operation BY NAME")),
            });
            parts.push(right.as_ref());
            first = left;
        }
        if parts.is_empty() || !is_plain(query) {
            let form = "WITH RECURSIVE that is not `initial query UNION [ALL] recursive query`";
            self.ctes[at].itself = Itself::Refused(form);
            return self.query(query);
        }
        parts.push(first);
        parts.reverse();
        kinds.reverse();
        let mut base = Vec::new();
        let mut steps = Vec::new();
        for part in parts {
            self.ctes[at].itself = Itself::Watched { seen: false };
            let (depth, views) = (self.limits.depth(), self.views.len());
            let plan = self.nested(|b| b.body(part, None));
            // Binding may have failed half-way and left these changed.
            self.limits.return_to(depth);
            self.views.truncate(views);
            match (&self.ctes[at].itself, plan) {
                (Itself::Watched { seen: true }, _) => steps.push(part),
                (_, plan) => base.push(plan?),
            }
        }
        if steps.is_empty() {
            self.ctes[at].itself = Itself::Elsewhere;
            return self.query(query);
        }
        if base.is_empty() {
            let name = &cte.alias.name;
            let message = format!(
                "recursive table {} has no initial query: every part refers to it",
                name.value
            );
            return Err(Error::syntax(message)
                .with_sqlstate("42P19")
                .at(position(name.span.start)));
        }
        let all = kinds[0];
        if kinds.iter().any(|kind| *kind != all) {
            return Err(unsupported("UNION and UNION ALL together in a recursive WITH"));
        }
        let plan = self.rounds(at, base, &steps, all)?;
        self.limit(plan, query)
    }

    /// Binds the recursive parts until the column types are stable, and builds the plan.
    fn rounds(
        &mut self,
        at: usize,
        base: Vec<Plan>,
        steps: &[&'a SetExpr],
        all: bool,
    ) -> Result<Plan> {
        let base = chain(base)?;
        let own = base.fields();
        let mut fields = own.clone();
        // Later rows may be null where the initial rows are not.
        fields.iter_mut().for_each(|f| f.nullable = true);
        let id = self.fresh();
        let mut rounds = 0;
        let step = loop {
            let mut plans = Vec::with_capacity(steps.len());
            for step in steps {
                self.ctes[at].itself = Itself::Rows { id, fields: fields.clone(), uses: 0 };
                plans.push(self.nested(|b| b.body(step, None))?);
                if matches!(self.ctes[at].itself, Itself::Rows { uses: 2.., .. }) {
                    return Err(unsupported(
                        "a recursive WITH that refers to itself twice in one part",
                    ));
                }
            }
            let mut wider = fields.clone();
            for plan in &plans {
                widen(&mut wider, &plan.fields())?;
            }
            if wider.iter().zip(&fields).all(|(a, b)| a.data_type == b.data_type) {
                let plans = plans.into_iter().map(|plan| {
                    let from = plan.fields();
                    converted(plan, &from, &fields)
                });
                break chain(plans.collect::<Result<_>>()?)?;
            }
            rounds += 1;
            if rounds > MAX_ROUNDS {
                let changed = wider.iter().zip(&fields).find(|(a, b)| a.data_type != b.data_type);
                let name = changed.map_or("", |(f, _)| f.name.as_str());
                let message =
                    format!("column {name} of a recursive WITH changes type in every iteration");
                return Err(Error::type_error(message)
                    .with_hint("CAST it to the intended type in the recursive part"));
            }
            fields = wider;
        };
        if !all && fields.iter().any(|f| f.data_type == DataType::Interval) {
            return Err(unsupported("a set operation on INTERVAL"));
        }
        let base = converted(base, &own, &fields)?;
        Ok(Plan::Recursive {
            id,
            base: Box::new(base),
            step: Box::new(step),
            distinct: !all,
            fields,
        })
    }

    /// Resolves a reference to a table of `WITH` from inside its own definition; `None` for an
    /// ordinary reference.
    pub(crate) fn itself(&mut self, at: usize) -> Result<Option<Plan>> {
        let cte = &mut self.ctes[at];
        match &mut cte.itself {
            Itself::Elsewhere => Ok(None),
            Itself::Refused(why) => Err(unsupported(why)),
            Itself::Watched { seen } => {
                *seen = true;
                Err(unsupported("a recursive WITH that refers to itself here"))
            }
            Itself::Rows { id, fields, uses } => {
                *uses += 1;
                Ok(Some(Plan::Given { id: *id, fields: fields.clone() }))
            }
        }
    }
}

/// Builds the `UNION ALL` of several plans.
fn chain(plans: Vec<Plan>) -> Result<Plan> {
    let mut plans = plans.into_iter();
    let Some(first) = plans.next() else {
        broken(format_args!("a recursive WITH has a part on either side of UNION"))
    };
    plans.try_fold(first, |left, right| combine(SetOperator::Union, true, left, right))
}

/// Widens column types to what they have in common with those of another part.
fn widen(fields: &mut [Field], more: &[Field]) -> Result<()> {
    if fields.len() != more.len() {
        let message =
            format!("the sides of UNION have {} and {} columns", fields.len(), more.len());
        return Err(Error::syntax(message).with_sqlstate("42601"));
    }
    for (at, (field, more)) in fields.iter_mut().zip(more).enumerate() {
        let Some(data_type) = common(field.data_type, more.data_type) else {
            let (a, b) = (field.data_type, more.data_type);
            let message = format!("UNION cannot mix {a} and {b} in column {}", at + 1);
            return Err(Error::type_error(message).with_sqlstate("42804"));
        };
        // A sum has one digit more than its operands, so its precision would grow in every
        // iteration.
        field.data_type = match data_type {
            DataType::Decimal { scale, .. } if data_type != field.data_type => {
                DataType::Decimal { precision: 38, scale }
            }
            other => other,
        };
    }
    Ok(())
}

/// Marks later tables of the same `WITH` as not to be referred to. Returns the marks to restore.
pub(crate) fn refuse_later(ctes: &mut [crate::bind::environment::Cte<'_>]) -> Vec<Itself> {
    let refused =
        Itself::Refused("a table of WITH RECURSIVE that refers to a later one (mutual recursion)");
    ctes.iter_mut().map(|cte| std::mem::replace(&mut cte.itself, refused.clone())).collect()
}

/// Returns an error if a `WITH` defines a name twice.
pub(crate) fn check_names(list: &[ast::Cte]) -> Result<()> {
    for (at, cte) in list.iter().enumerate() {
        let name = &cte.alias.name;
        if list[..at].iter().any(|c| c.alias.name.value.eq_ignore_ascii_case(&name.value)) {
            let error =
                Error::already_exists(format!("WITH defines {} more than once", name.value));
            return Err(error.with_sqlstate("42712").at(position(name.span.start)));
        }
    }
    Ok(())
}
