//! Partitions rows by the hash of their key and writes them as they arrive.
//!
//! Each level uses other bits of the hash, so that partitioning a partition again spreads its rows.

use super::file::SpillFile;
use super::rows::SpilledRows;
use crate::buffer::{RowBuffer, rows_at_once};
use crate::context::Context;
use crate::expr::ActiveRows;
use nacre_column::{Batch, Form, Values, Vector};
use nacre_types::hash::{combine, hash_bytes, hash_u64};
use nacre_types::{DataType, Result, key, limits};
use std::sync::Arc;

const FAN_OUT_BITS: u32 = 4;
const FAN_OUT: usize = 1 << FAN_OUT_BITS;
/// Levels that use distinct bits of the hash; further levels reuse them.
const LEVELS: u32 = 64 / FAN_OUT_BITS;

/// Partitions being written.
pub struct Partitions {
    level: u32,
    chunk_bytes: usize,
    types: Arc<[DataType]>,
    partitions: Vec<Growing>,
}

struct Growing {
    buffer: RowBuffer,
    written: SpilledRows,
    /// The hash of its first row, and whether all rows have that hash.
    hash: Option<u64>,
    one_hash: bool,
}

/// A partition that is complete.
pub struct SpilledPartition {
    pub rows: SpilledRows,
    /// Whether all keys have one hash, so that partitioning it again is useless.
    pub one_hash: bool,
}

impl Partitions {
    /// Empty partitions of rows of these types, cut for the `level`th time.
    pub fn new(
        file: &Arc<SpillFile>,
        types: &[DataType],
        level: u32,
        context: &Context<'_>,
    ) -> Partitions {
        let types: Arc<[DataType]> = types.into();
        let growing = || Growing {
            buffer: RowBuffer::new(&types),
            written: SpilledRows::new(file.clone(), types.clone()),
            hash: None,
            one_hash: true,
        };
        Partitions {
            level,
            chunk_bytes: context.memory.chunk_bytes(),
            partitions: (0..FAN_OUT).map(|_| growing()).collect(),
            types,
        }
    }

    /// Adds these rows of a batch, by their keys.
    pub fn add(
        &mut self,
        keys: &[Arc<Vector>],
        batch: &Batch,
        rows: ActiveRows<'_>,
        context: &Context<'_>,
    ) -> Result<()> {
        let hashes = hash_rows(keys, rows);
        let shift = 64 - FAN_OUT_BITS * (1 + self.level % LEVELS);
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); FAN_OUT];
        for (row, hash) in rows.iter().zip(hashes) {
            let at = (hash >> shift) as usize % FAN_OUT;
            let partition = &mut self.partitions[at];
            partition.one_hash &= *partition.hash.get_or_insert(hash) == hash;
            members[at].push(row as u32);
        }
        let at_once = rows_at_once(batch);
        for (partition, members) in self.partitions.iter_mut().zip(members) {
            if members.is_empty() {
                continue;
            }
            for members in members.chunks(at_once) {
                partition.buffer.append(batch, rows.narrowed(members))?;
                let full = partition.buffer.rows() >= limits::VECTOR_ROWS;
                if full || partition.buffer.memory_bytes() >= self.chunk_bytes {
                    partition.write(&self.types, context)?;
                }
            }
        }
        Ok(())
    }

    /// Writes all buffered rows. Returns all partitions, including empty ones.
    pub fn finish(mut self, context: &Context<'_>) -> Result<Vec<SpilledPartition>> {
        self.partitions
            .iter_mut()
            .try_for_each(|partition| partition.write(&self.types, context))?;
        let complete = |growing: Growing| SpilledPartition {
            rows: growing.written,
            one_hash: growing.one_hash,
        };
        Ok(self.partitions.into_iter().map(complete).collect())
    }
}

impl Growing {
    fn write(&mut self, types: &[DataType], context: &Context<'_>) -> Result<()> {
        let buffer = std::mem::replace(&mut self.buffer, RowBuffer::new(types));
        let order: Vec<u32> = (0..buffer.rows() as u32).collect();
        self.written.push_rows(&buffer, &order, limits::VECTOR_ROWS, context)
    }
}

/// Hashes of these rows' keys. Equal keys have equal hashes, whatever the form of the vectors;
/// nulls are equal.
fn hash_rows(keys: &[Arc<Vector>], rows: ActiveRows<'_>) -> Vec<u64> {
    let mut out = vec![0x6e61_6372_6521u64; rows.count()];
    for vector in keys {
        let (values, codes) = match vector.form() {
            Form::Flat(values) => (values, None),
            Form::Constant(values) => (values, Some(None)),
            Form::Dictionary { codes, values } => (&**values, Some(Some(codes))),
        };
        for (out, row) in out.iter_mut().zip(rows.iter()) {
            let at = match codes {
                None => row,
                Some(None) => 0,
                Some(Some(codes)) => codes[row] as usize,
            };
            *out = combine(*out, if vector.is_null(row) { 0 } else { hash_value(values, at) });
        }
    }
    out
}

fn hash_value(values: &Values, at: usize) -> u64 {
    match values {
        Values::Bool(v) => hash_u64(1 + u64::from(v[at])),
        Values::I64(v) => hash_u64(v[at] as u64 ^ 0x5bd1_e995),
        Values::I128(v) => combine(hash_u64(v[at] as u64), (v[at] >> 64) as u64),
        Values::F64(v) => hash_u64(key::order_f64(v[at])),
        Values::Bytes(v) => hash_bytes(v.get(at)),
    }
}
