//! Joins. The right side is collected and its keys become groups ([`BuildSide`]); each left row
//! looks up its group and is paired with the rows there (`probe`). Without keys all right rows are
//! one group, which makes a nested loop.
//!
//! The collected side is not changed by being probed, so several threads may share it, each with a
//! [`ProbeJoin`] of its own; only the marks of right rows that found a partner are set there. Null
//! keys never match. The residual is part of the join: a row whose pairs it refuses is unmatched.
//!
//! A right side that does not fit in memory is cut into partitions together with the left side
//! (`partitions`), or, where that does not help, joined a block at a time (`blocks`).

mod blocks;
mod build_side;
mod hash;
mod keys;
mod partitions;
mod probe;
mod probe_join;
mod spec;

pub use build_side::BuildSide;
pub use hash::HashJoin;
pub use probe_join::{ProbeJoin, RightRows};
pub use spec::{JoinSide, JoinSpec};
