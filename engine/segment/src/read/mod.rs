//! The reader: a segment opened from its footer, and every way to read its rows.

mod address;
mod cache;
mod document_source;
mod documents;
mod even;
mod filter;
mod held;
mod in_order;
mod open;
mod opened;
mod parts;
mod paths;
mod places;
mod residency;
mod row;
mod search;
mod segment;
mod verify;
mod zones;

pub use cache::BlockCache;
pub use paths::{PathForm, PathNeed, PathPart, PathPlace, PathRows, PathStep};
pub use residency::ResidentBytes;
pub use segment::{CheckColumns, Columns, FileSource, Segment};
pub use zones::Span;
