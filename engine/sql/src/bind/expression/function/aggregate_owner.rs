//! The query that an aggregate belongs to. By the SQL standard this is the innermost query whose
//! columns its arguments refer to, not the query in which it is written. In a query over `o`, the
//! `max` of `(SELECT max(o.b) FROM u)` is an aggregate of the query over `o`, and the subquery
//! refers to its result like to a column.

use crate::analysis::columns::replace_outer;
use crate::analysis::subqueries::{has_column, has_subquery, is_outer};
use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::expression::operator::aggregates_not_allowed;
use crate::bind::names::unsupported;
use crate::expr::Expr;
use nacre_types::{Error, Result};

impl Binder<'_> {
    /// Returns an error if no aggregate may be written here, whatever its arguments.
    pub(crate) fn begin_aggregate(&self, env: &Env<'_>) -> Result<()> {
        match env.in_aggregate || (env.aggregates.is_none() && self.frames.is_empty()) {
            true => Err(aggregates_not_allowed(env)),
            false => Ok(()),
        }
    }

    /// Returns the number of arguments collected so far for each enclosing row.
    pub(crate) fn asked(&self) -> Vec<usize> {
        self.frames.iter().map(|frame| frame.args.len()).collect()
    }

    /// Returns the position of the enclosing query that an aggregate with these arguments belongs
    /// to, after rewriting them over its rows; `None` if it belongs to the current query. `asked`
    /// is the result of [`asked`](Self::asked) from before the arguments were bound.
    pub(crate) fn owner(
        &mut self,
        exprs: &mut [&mut Expr],
        asked: &[usize],
        env: &Env<'_>,
    ) -> Result<Option<usize>> {
        // An aggregate over a window belongs to the query in which it is written.
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
            replace_outer(expr, frame.id, &|index, _| {
                frame.args.get(index).map(|(arg, _)| arg.clone())
            });
        }
        // The subquery no longer needs the arguments that were collected for the aggregate.
        frame.args.truncate(asked[at]);
        Ok(Some(at))
    }

    /// Runs `make` in the environment of the query that owns an aggregate.
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
        let gone = || Error::unsupported("an aggregate of this enclosing query is not supported");
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
