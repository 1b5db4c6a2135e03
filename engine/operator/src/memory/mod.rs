//! The memory limit of a statement, shared by its operators.
//!
//! Half of the limit is divided among the operators that hold rows: each has a share that no other
//! operator can take, so every operator can make progress however little memory there is. The other
//! half is a pool, first come, first served. An operator that gets no more memory spills (`spill/`)
//! or fails the statement with `limit`. What the operators of all statements hold is counted in one
//! more pool, that of the database: beyond a minimum, an operator also spills when that is empty.
//! All operators together never exceed the limit, except for
//! batches in flight, and for a minimum per operator if the limit is hardly larger than that.

mod pool;
mod reservation;

pub use pool::Memory;
pub use reservation::Reservation;
