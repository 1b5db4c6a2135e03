//! Statements that read or write rows, run by their plans inside a transaction.

mod changed_rows;
mod create_table_as;
mod dispatch;
mod held;
mod insert;
mod load;
mod lock;
mod merge;
mod plan;
mod profile;
mod repeated;
mod returning;
mod row_types;
mod target_rows;
mod update;
pub(crate) mod upsert;
mod write;

pub(crate) use changed_rows::delete;
pub(crate) use dispatch::run;
pub(crate) use held::{HeldTargets, LocatedRows};
pub(crate) use plan::locate;
pub(crate) use repeated::repeated;
pub(crate) use target_rows::TargetRows;
pub(crate) use update::Update;
