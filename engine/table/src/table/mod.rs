//! Tables: one version of a schema, its partitions, the segments of each, and which partition a row
//! is in.

pub(crate) mod partition;
pub(crate) mod row_key;
pub(crate) mod segment_list;
pub(crate) mod sharding;
pub(crate) mod statistics;
pub(crate) mod version;
