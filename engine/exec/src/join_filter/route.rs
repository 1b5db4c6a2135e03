//! Which way filters go down a plan: from the output column of a node to the columns of its inputs that hold the
//! same values, as long as leaving out rows there leaves out nothing else above.

use super::KeyFilter;
use nacre_sql::expr::{Expr, ExprKind};
use nacre_sql::plan::{JoinKind, Plan};
use std::sync::Arc;

/// The filters that may be applied to a node's output, with the column they are about.
#[derive(Clone, Default)]
pub(crate) struct Wanted(pub Vec<(usize, Arc<KeyFilter>)>);

fn column(expr: &Expr) -> Option<usize> {
    match expr.kind {
        ExprKind::Column(at) => Some(at),
        _ => None,
    }
}

impl Wanted {
    /// Each filter where `to` says.
    fn moved(&self, to: impl Fn(usize) -> Option<usize>) -> Wanted {
        Wanted(self.0.iter().filter_map(|(at, filter)| Some((to(*at)?, filter.clone()))).collect())
    }

    /// For the one input of a node.
    pub fn below(&self, node: &Plan) -> Wanted {
        if self.0.is_empty() {
            return Wanted::default();
        }
        match node {
            Plan::Filter { .. } | Plan::Union { .. } | Plan::Sort { limit: None, .. } => self.clone(),
            Plan::Project { exprs, .. } => self.moved(|at| exprs.get(at).and_then(column)),
            // Groups come and go as a whole.
            Plan::Aggregate { groups, .. } => self.moved(|at| groups.get(at).and_then(column)),
            _ => Wanted::default(),
        }
    }

    /// For the sides of a join whose left side has so many columns. `own` are the filters that it fills itself.
    pub fn sides(
        &self,
        kind: JoinKind,
        keys: &[(Expr, Expr)],
        width: usize,
        own: &[Option<Arc<KeyFilter>>],
    ) -> (Wanted, Wanted) {
        use JoinKind::{Anti, Inner, Left, Mark, Right, RightAnti, RightSemi, Semi, Single};
        let (mut left, mut right) = match kind {
            Inner => (self.moved(|at| (at < width).then_some(at)), self.moved(|at| at.checked_sub(width))),
            Left | Single | Semi | Anti | Mark => (self.moved(|at| (at < width).then_some(at)), Wanted::default()),
            Right => (Wanted::default(), self.moved(|at| at.checked_sub(width))),
            RightSemi | RightAnti => (Wanted::default(), self.clone()),
            JoinKind::Full | JoinKind::MarkIn => Default::default(),
        };
        // A row of the other side whose key does not pass has no partner that is kept.
        let (from_left, from_right) = (left.clone(), right.clone());
        for (l, r) in keys.iter().filter_map(|(l, r)| (l.data_type == r.data_type).then_some((column(l)?, column(r)?)))
        {
            let to = |from: &Wanted, key: usize, other: usize| from.moved(|at| (at == key).then_some(other));
            left.0.append(&mut to(&from_right, r, l).0);
            // The second partner of a scalar subquery is an error, whoever asks.
            right.0.append(&mut to(&from_left, l, r).0);
        }
        for ((l, _), filter) in keys.iter().zip(own) {
            left.0.extend(column(l).zip(filter.clone()));
        }
        (left, right)
    }
}
