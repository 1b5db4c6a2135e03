//! The operators of [`Plan::Node`](super::Plan::Node), one file each. A new operator is a file and a line here, and in
//! the executor an operator and a line in its list.

mod limit_by;
mod set_operation;
mod window;

pub use limit_by::LimitBy;
pub use set_operation::SetOperation;
pub use window::Window;
