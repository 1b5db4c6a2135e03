//! Which query an aggregate belongs to: by the standard the innermost one of those whose columns its arguments name,
//! not the one it is written in. `(SELECT max(o.b) FROM u)` over a table `o` is an aggregate of the query over `o`,
//! and the subquery sees its result as it sees columns.

use crate::analysis::columns::replace_outer;
use crate::analysis::subqueries::{has_column, has_subquery, is_outer};
use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::expression::operator::aggregates_not_allowed;
use crate::bind::names::unsupported;
use crate::expr::Expr;
use nacre_types::{Error, Result};

impl Binder<'_> {
    /// Whether an aggregate may be written here, as far as is known before its arguments are.
    pub(crate) fn begin_aggregate(&self, env: &Env<'_>) -> Result<()> {
        match env.in_aggregate || (env.aggregates.is_none() && self.frames.is_empty()) {
            true => Err(aggregates_not_allowed(env)),
            false => Ok(()),
        }
    }

    /// How much was asked of each enclosing row so far.
    pub(crate) fn asked(&self) -> Vec<usize> {
        self.frames.iter().map(|frame| frame.args.len()).collect()
    }

    /// The enclosing query that an aggregate of these arguments belongs to, over whose rows they are then; none: it is
    /// the query at hand. `asked` is from before they were bound.
    pub(crate) fn owner(
        &mut self,
        exprs: &mut [&mut Expr],
        asked: &[usize],
        env: &Env<'_>,
    ) -> Result<Option<usize>> {
        // An aggregate over a window is computed where it is written.
        if env.outer_aggregates.is_some() || exprs.iter().any(|e| has_column(e)) {
            return Ok(None);
        }
        let Some(at) =
            self.frames.iter().rposition(|frame| exprs.iter().any(|e| is_outer(e, frame.id)))
        else {
            return Ok(None);
        };
        if exprs.iter().any(|e| has_subquery(e)) {
            return Err(unsupported("a subquery in an aggregate of an enclosing query"));
        }
        let Some(frame) = self.frames.get_mut(at) else { return Ok(None) };
        for expr in exprs {
            replace_outer(expr, frame.id, &|index| {
                frame.args.get(index).map(|(arg, _)| arg.clone())
            });
        }
        // Arguments that only the aggregate's arguments needed are not needed any more.
        frame.args.truncate(asked.get(at).copied().unwrap_or_default());
        Ok(Some(at))
    }

    /// Makes an aggregate in the query it belongs to.
    pub(crate) fn owned(
        &mut self,
        owner: Option<usize>,
        env: &mut Env<'_>,
        make: impl FnOnce(&mut Self, &mut Env<'_>) -> Result<Expr>,
    ) -> Result<Expr> {
        let Some(at) = owner else {
            return match env.aggregates.is_none() {
                true => Err(aggregates_not_allowed(env)),
                false => make(self, env),
            };
        };
        let gone = || Error::unsupported("an aggregate of this enclosing query");
        let frame = self.frames.get_mut(at).ok_or_else(gone)?;
        let scope = frame.scope.clone();
        let mut outer = Env::new(&scope, frame.place.0);
        outer.in_aggregate = frame.place.1;
        outer.aggregates = frame.aggregates.take();
        if outer.aggregates.is_none() {
            return Err(aggregates_not_allowed(&outer));
        }
        let result = make(self, &mut outer);
        let frame = self.frames.get_mut(at).ok_or_else(gone)?;
        frame.aggregates = outer.aggregates;
        Ok(frame.outer(result?, None))
    }
}
