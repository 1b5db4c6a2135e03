//! The operators of [`Plan::Node`](super::Plan::Node), one file each. A new operator is a file and
//! a line here, and a file and two lines in the executor.

pub mod json_rows;
pub mod limit_by;
pub mod series;
pub mod set_operation;
pub mod warm_up;
pub mod window;
