//! How much the operators of one statement may hold together.
//!
//! Half of the limit is divided among the operators that hold rows: each has a share that no other
//! operator can take, so every operator can make progress however little memory there is. The other
//! half is a pool, first come, first served. An operator that gets no more spills (`spill/`) or ends
//! the statement with `limit`. All operators together never hold more than the limit, apart from
//! batches in flight, and from a minimum for each operator where the limit is hardly larger than that.

mod pool;
mod reservation;

pub use pool::Memory;
pub use reservation::Reservation;
