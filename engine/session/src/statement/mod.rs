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

pub(crate) use dispatch::run;
