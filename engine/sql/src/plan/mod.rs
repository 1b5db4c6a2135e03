//! Logical plans: typed, resolved, position-based. Every node's output columns are known from the
//! plan alone ([`Plan::fields`]).

pub(crate) mod catalog;
pub(crate) mod join_filter;
pub(crate) mod key_order;
pub mod node;
pub(crate) mod tree;
mod walk;

pub(crate) use crate::statement::PlanRole;
pub use crate::statement::{
    CatalogStatement, ControlStatement, IfLocked, LockedRows, MergeAction, OnDuplicateKey,
    RowStatement, ScanStrategy, SessionOption, Statement, WriteStatement,
};
pub use crate::window::{FrameBound, FrameUnit, WindowCall, WindowFrame, Windowed};
pub use catalog::{Catalog, ColumnStatistics};
pub use tree::{ColumnMap, Domain, Field, IsUnique, JoinKind, Plan, PlanNode, Pruning, SortKey};
