//! Rows found by secondary indexes, or by several primary keys, instead of scanning.
//!
//! `nacre_sql::index_access` says which keys of which indexes the filters ask for; joins above the scan
//! may add more (`joined`). The keys are looked up once (`lookup`), which tells how many rows there
//! are without reading any (`hits`). When the keys or the rows are too many for the table's size, the
//! scan reads blocks instead (Prout et al., *Cloud-Native Transactions and Analytics in SingleStore*,
//! SIGMOD 2022, section 5.1). Of several indexes under `AND`, the one that finds the fewest rows
//! leads, and the others narrow its rows by seeking forward; under `OR`, the rows are united. All
//! filters are checked on the rows that are left.

mod find;
mod found;
mod hits;
mod joined;
mod lookup;

pub(in crate::scan) use find::find;
pub(in crate::scan) use found::Found;
pub(in crate::scan) use joined::may_help;
pub(in crate::scan) use lookup::Lookup;
