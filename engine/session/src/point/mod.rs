//! Point statements: statements on rows identified by key values, run without a plan or operators.
//! Rows are found by equality on a key (the whole primary key, a unique key, or leading columns of
//! other indexes) and read, updated or deleted; or rows are given as values, and inserted or
//! upserted.
//!
//! Recognition is conservative: any other statement takes the general path, as does an execution
//! with a key value outside its column's range, or one that finds too many rows. Both paths have
//! the same result.

mod find;
mod outcome;
mod recognise;
mod slot;
mod statement;

pub(crate) use recognise::recognise;
pub(crate) use statement::Point;
