//! Finds rows by secondary indexes or several primary keys instead of scanning.
//!
//! `nacre_sql::index_access` determines which index keys the filters need; joins above the scan may
//! add more (`joined`). The keys are looked up once (`lookup`), which yields the number of rows
//! without reading any (`hits`). If there are too many keys or rows for the table's size, the scan
//! reads blocks instead (Prout et al., *Cloud-Native Transactions and Analytics in SingleStore*,
//! SIGMOD 2022, section 5.1). Of several indexes under `AND`, the one with the fewest rows leads,
//! and the others narrow its rows by forward seeks; under `OR`, the rows are united. All filters
//! are checked on the remaining rows.

mod find;
mod found;
mod hits;
mod joined;
mod lookup;

pub(in crate::scan) use find::find;
pub(in crate::scan) use found::Found;
pub(in crate::scan) use joined::may_help;
pub(in crate::scan) use lookup::Lookup;
