//! Rows found by secondary indexes, or by several primary keys, instead of scanning.
//!
//! `nacre_sql::index_access` says which keys of which indexes the filters ask for; the joins above a scan may say more
//! (`joined`). Here they are looked up, once, which tells how many rows there are without reading any; when these are
//! too many for the table's size, or the keys are, the scan reads blocks as ever (SIGMOD 2022 paper, 5.1). Of several
//! indexes under `AND` the one that finds the fewest leads, and the others narrow what it found, seeking forward; under
//! `OR` what they find is united. All filters are checked on the rows that are left.

mod find;
mod found;
mod hits;
mod joined;
mod lookup;

pub(in crate::scan) use find::find;
pub(in crate::scan) use found::Found;
pub(in crate::scan) use joined::may_help;
pub(in crate::scan) use lookup::Lookup;
