//! Point statements: statements about rows identified by key values, run without plan or operator. Rows are found by
//! equal values of a key (the whole primary key, a unique key, or the first columns of other indexes) and read, updated
//! or deleted; or their values, keys among them, are given one by one, and they are inserted or upserted.
//!
//! Recognition is conservative: what is not obviously a point statement takes the general way, and so does an execution
//! with a key value that its column could not hold, or one that finds more rows than a point should. Both ways have the
//! same result.

mod find;
mod outcome;
mod recognise;
mod slot;
mod statement;

pub(crate) use recognise::recognise;
pub(crate) use statement::Point;
