//! Statements other than queries: writes, `CREATE`, `ALTER` and `DROP`, and session options.

mod alter_column;
pub(super) mod alter_table;
pub(super) mod assignment;
pub(super) mod change;
mod constraint_name;
pub(super) mod create_table;
mod declared;
pub(super) mod dispatch;
pub(super) mod dml;
mod foreign_key;
pub(super) mod index;
mod merge;
pub(super) mod prepared;
pub(super) mod set_option;
pub(super) mod storage_keys;
mod table_clauses;
pub(super) mod upsert;
pub(super) mod view;
mod wait_for;
mod warm_up;
