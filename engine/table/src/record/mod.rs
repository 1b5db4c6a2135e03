//! The encoding of the log's contents: redo records, each with a commit timestamp and the
//! operations of one commit, and the snapshot that recovery starts from. Only this folder defines
//! these bytes; `docs/FORMAT.md` describes them.

mod description;
mod fields;
mod hashes;
mod image;
mod indexes;
mod operation;
mod read;
mod rules;
mod schema;
mod write;

pub(crate) use description::{Description, MAX_LEVEL, RunPlace};
pub(crate) use hashes::{KeySet, NewTable};
pub(crate) use image::{Image, ImageWriter, NextIds};
pub(crate) use indexes::{Indexes, NewPart};
pub(crate) use operation::{FlushedRange, NewSegment, Operation, Place};
pub(crate) use read::decode;
pub(crate) use rules::Rules;
pub(crate) use write::{
    add_part, add_segments, advance, alter_table, begin, create_table, create_view, delete,
    delete_rows, describe, drop_table, drop_view, flush_range, merge, move_row, put, set_tables,
    stamp, timestamp, truncate,
};

#[cfg(test)]
mod tests;
