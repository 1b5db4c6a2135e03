//! Key access: the columns that the filters of a scan fix, and the indexes that can serve them.

mod equality;
mod index;
mod output;

pub use equality::{Equalities, Equality, equalities};
pub use index::{
    IndexAccess, IndexKeys, fixed_columns, index_access, index_keys, joined_key, key_name,
};
pub(crate) use index::{access_text, probed_index};
pub use output::ScanOutput;
