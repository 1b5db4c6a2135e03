//! `WITH RECURSIVE`: a table that is made of first rows and of what follows from the rows before.
//!
//! The definition is a chain of `UNION` or `UNION ALL`. Its parts up to the first that names the table itself give
//! the first rows; each of the others is computed again and again over the rows that the round before added. Types
//! are those on which first rows and later ones agree, found by binding again until nothing changes.

use crate::bind::binder::Binder;
use crate::bind::environment::Itself;
use crate::bind::expression::types::common;
use crate::bind::names::unsupported;
use crate::bind::query::set_operation::{combine, converted};
use crate::parse::position;
use crate::plan::{Field, Plan};
use nacre_types::{DataType, Error, Result};
use sqlparser::ast::{self, SetExpr, SetOperator, SetQuantifier};

/// Times that later rows may change the types.
const MAX_ROUNDS: usize = 4;

impl<'a> Binder<'a> {
    /// The plan of the recursive table at this place of the list.
    pub(crate) fn recursive_table(&mut self, at: usize) -> Result<Plan> {
        let cte = self.ctes[at].cte;
        let query = &cte.query;
        let plain = query.with.is_none() && query.order_by.is_none() && query.fetch.is_none();
        let mut parts = Vec::new();
        let mut kinds = Vec::new();
        let mut first = query.body.as_ref();
        while let SetExpr::SetOperation { op: SetOperator::Union, set_quantifier, left, right } =
            first
        {
            kinds.push(match set_quantifier {
                SetQuantifier::All => true,
                SetQuantifier::None | SetQuantifier::Distinct => false,
                _ => return Err(unsupported("set operations BY NAME")),
            });
            parts.push(right.as_ref());
            first = left;
        }
        if parts.is_empty() || !plain {
            let form = "WITH RECURSIVE that is not `first rows UNION [ALL] rows that follow`";
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
            let (depth, views) = (self.depth, self.views.len());
            let plan = self.nested(|b| b.body(part, None));
            // What failed may have left something behind.
            self.depth = depth;
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
                "the recursive table {} has no first rows: every part refers to it",
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
        // What follows may be null where the first rows are not.
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
                    format!("column {name} of a recursive WITH gets another type with every round");
                return Err(Error::type_error(message)
                    .with_hint("CAST it in what follows to the type it should have"));
            }
            fields = wider;
        };
        if !all && fields.iter().any(|f| f.data_type == DataType::Interval) {
            return Err(unsupported("set operations on INTERVAL"));
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

    /// What a reference to a table of `WITH` means while that is being bound, if that is special.
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

/// All rows of several plans.
fn chain(plans: Vec<Plan>) -> Result<Plan> {
    let mut plans = plans.into_iter();
    let first = plans.next().unwrap_or(Plan::Values { fields: Vec::new(), rows: Vec::new() });
    plans.try_fold(first, |left, right| combine(SetOperator::Union, true, left, right))
}

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
        // Sums have a digit more than what they are of, so that precision would grow with every round.
        field.data_type = match data_type {
            DataType::Decimal { scale, .. } if data_type != field.data_type => {
                DataType::Decimal { precision: 38, scale }
            }
            other => other,
        };
    }
    Ok(())
}

/// The definitions of one `WITH`, of which later ones may not be referred to.
pub(crate) fn refuse_later(ctes: &mut [crate::bind::environment::Cte<'_>]) -> Vec<Itself> {
    let refused =
        Itself::Refused("a table of WITH RECURSIVE that refers to a later one (mutual recursion)");
    ctes.iter_mut().map(|cte| std::mem::replace(&mut cte.itself, refused.clone())).collect()
}

/// The names, each once.
pub(crate) fn check_names(list: &[ast::Cte]) -> Result<()> {
    for (at, cte) in list.iter().enumerate() {
        let name = &cte.alias.name;
        if list[..at].iter().any(|c| c.alias.name.value.eq_ignore_ascii_case(&name.value)) {
            let error = Error::already_exists(format!("WITH names {} twice", name.value));
            return Err(error.with_sqlstate("42712").at(position(name.span.start)));
        }
    }
    Ok(())
}
