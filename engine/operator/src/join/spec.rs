//! The parameters of a join, and what its kind means for either side.

use nacre_sql::expr::Expr;
use nacre_sql::plan::{JoinKind, Plan};
use nacre_types::DataType;

/// The parameters of a join.
#[derive(Clone)]
pub struct JoinSpec {
    /// Which rows it returns.
    pub kind: JoinKind,
    /// The side whose rows look for partners.
    pub left: JoinSide,
    /// The side that is collected.
    pub right: JoinSide,
    /// A further condition over left columns then right columns.
    pub residual: Option<Expr>,
}

/// One input of a join.
#[derive(Clone)]
pub struct JoinSide {
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

    /// Whether right rows are also returned on their own at the end.
    pub fn keeps_right(&self) -> bool {
        use JoinKind::{Full, Right, RightAnti, RightSemi};
        matches!(self.kind, Right | Full | RightSemi | RightAnti)
    }

    /// Whether a left row without a partner is returned with nulls for the right columns.
    pub fn keeps_left(&self) -> bool {
        use JoinKind::{Full, Left, Single};
        matches!(self.kind, Left | Full | Single)
    }

    /// Whether left rows are returned at most once, without right columns, once all their partners
    /// are known.
    pub fn judges_left(&self) -> bool {
        use JoinKind::{Anti, Mark, MarkIn, Semi};
        matches!(self.kind, Semi | Anti | Mark | MarkIn)
    }

    /// Whether right rows are returned without left columns, once all their partners are known.
    pub fn judges_right(&self) -> bool {
        matches!(self.kind, JoinKind::RightSemi | JoinKind::RightAnti)
    }

    /// Whether a left row without a partner is dropped.
    pub fn needs_partner(&self) -> bool {
        use JoinKind::{Inner, Right, RightAnti, RightSemi, Semi};
        matches!(self.kind, Inner | Semi | Right | RightSemi | RightAnti)
    }

    /// Whether the right side is read only once a left row needs it. If the join returns every left
    /// row, a right side that no left row needs must not fail.
    pub fn collects_late(&self) -> bool {
        use JoinKind::{Left, Mark, MarkIn, Single};
        matches!(self.kind, Left | Single | Mark | MarkIn)
    }

    /// Whether each pair of rows is returned independently of other pairs.
    pub fn pairs_are_independent(&self) -> bool {
        use JoinKind::{Inner, Right, RightAnti, RightSemi};
        matches!(self.kind, Inner | Right | RightSemi | RightAnti)
    }
}
