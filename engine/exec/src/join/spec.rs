//! What a join is made from, and what its kind means for either side.

use nacre_sql::expr::Expr;
use nacre_sql::plan::{JoinKind, Plan};
use nacre_types::DataType;

/// What a join is made from.
#[derive(Clone)]
pub(crate) struct JoinSpec {
    pub kind: JoinKind,
    pub left: JoinSide,
    pub right: JoinSide,
    /// A further condition over left columns then right columns.
    pub residual: Option<Expr>,
}

/// One input of a join.
#[derive(Clone)]
pub(crate) struct JoinSide {
    /// The key columns, as many as the other side has.
    pub keys: Vec<Expr>,
    /// Types of the input's columns.
    pub types: Vec<DataType>,
}

impl JoinSpec {
    /// The spec of a join of two plans.
    pub fn new(
        left: &Plan,
        right: &Plan,
        kind: JoinKind,
        keys: &[(Expr, Expr)],
        residual: &Option<Expr>,
    ) -> JoinSpec {
        let (left_keys, right_keys) = keys.iter().cloned().unzip();
        JoinSpec {
            kind,
            left: JoinSide { keys: left_keys, types: left.types() },
            right: JoinSide { keys: right_keys, types: right.types() },
            residual: residual.clone(),
        }
    }

    /// Whether right rows come out by themselves in the end.
    pub fn keeps_right(&self) -> bool {
        use JoinKind::{Full, Right, RightAnti, RightSemi};
        matches!(self.kind, Right | Full | RightSemi | RightAnti)
    }

    /// Whether a left row without a partner comes out with nulls for the right columns.
    pub fn keeps_left(&self) -> bool {
        use JoinKind::{Full, Left, Single};
        matches!(self.kind, Left | Full | Single)
    }

    /// Whether left rows come out at most once, by themselves, once all their partners are known.
    pub fn judges_left(&self) -> bool {
        use JoinKind::{Anti, Mark, MarkIn, Semi};
        matches!(self.kind, Semi | Anti | Mark | MarkIn)
    }

    /// Whether right rows come out by themselves, once all their partners are known.
    pub fn judges_right(&self) -> bool {
        matches!(self.kind, JoinKind::RightSemi | JoinKind::RightAnti)
    }

    /// Whether a left row without a partner produces nothing.
    pub fn needs_partner(&self) -> bool {
        use JoinKind::{Inner, Right, RightAnti, RightSemi, Semi};
        matches!(self.kind, Inner | Semi | Right | RightSemi | RightAnti)
    }

    /// Whether the right side is read only once a left row needs it. Where every left row comes out,
    /// a right side that no left row needs must not fail.
    pub fn collects_late(&self) -> bool {
        use JoinKind::{Left, Mark, MarkIn, Single};
        matches!(self.kind, Left | Single | Mark | MarkIn)
    }

    /// Whether each pair of rows counts on its own, whatever other pairs there are.
    pub fn pairs_are_independent(&self) -> bool {
        use JoinKind::{Inner, Right, RightAnti, RightSemi};
        matches!(self.kind, Inner | Right | RightSemi | RightAnti)
    }
}
