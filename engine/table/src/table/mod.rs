//! Tables: one version of a schema, its partitions, and the segments of each.

pub(crate) mod partition;
pub(crate) mod segment_list;
pub(crate) mod sharding;
pub(crate) mod version;
