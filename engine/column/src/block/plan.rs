//! Which encoding: by trying on a sample of the column, then block by block.
//!
//! A column gets a dictionary, or compression, or neither; then each block takes the smallest of
//! what the column allows, constant before all. A slower encoding must be clearly smaller.

use super::read::{encode, encode_values};
use crate::encoding::dictionary::{self, Built, MAX_DICTIONARY_VALUES};
use crate::encoding::{Encoding, Input, bitpacked, delta, fsst, run_length};
use crate::{Bitmap, Values};
use nacre_types::PhysicalType;

/// Blocks looked at before deciding for a column.
const SAMPLE_BLOCKS: usize = 3;

/// What was decided for a column of a segment.
pub struct ColumnPlan {
    dictionary: Option<Built>,
    compress: Option<Encoding>,
}

/// A block, ready to be written.
pub struct EncodedBlock {
    /// How.
    pub encoding: Encoding,
    /// The block, header included.
    pub bytes: Vec<u8>,
}

impl ColumnPlan {
    /// Decides for the blocks of one column.
    pub fn choose(blocks: &[(Values, Option<Bitmap>)]) -> ColumnPlan {
        ColumnPlan::of(blocks, &[Encoding::Lz4, Encoding::Fsst])
    }

    /// Decides for the blocks of a sorted column that is searched more than it is read: each step of a search looks at
    /// one row, and must not cost a chunk.
    pub fn choose_for_search(blocks: &[(Values, Option<Bitmap>)]) -> ColumnPlan {
        ColumnPlan::of(blocks, &[Encoding::Fsst])
    }

    /// Text may be compressed by these.
    fn of(blocks: &[(Values, Option<Bitmap>)], compressions: &[Encoding]) -> ColumnPlan {
        let step = blocks.len().div_ceil(SAMPLE_BLOCKS).max(1);
        // The middle of each third: the ends of a sorted column are not typical.
        let sample: Vec<&(Values, Option<Bitmap>)> =
            blocks.iter().skip(step / 2).step_by(step).collect();
        let dictionary = worth_a_dictionary(&sample, blocks.len())
            .then(|| dictionary::build(blocks, MAX_DICTIONARY_VALUES))
            .flatten()
            .filter(|built| {
                let rows: usize = built.codes.iter().map(Vec::len).sum();
                let entries = encode_values(&built.values).len();
                let coded = rows * code_bits(built.values.len()) / 8 + entries;
                coded * 5 < simple_size(&sample) * blocks.len() / sample.len().max(1) * 4
            });
        let compress = if dictionary.is_none() { compression(&sample, compressions) } else { None };
        ColumnPlan { dictionary, compress }
    }

    /// The dictionary's values block and the number of its values.
    pub fn dictionary(&self) -> Option<(Vec<u8>, usize)> {
        self.dictionary.as_ref().map(|built| (encode_values(&built.values), built.values.len()))
    }
}

fn code_bits(values: usize) -> usize {
    (usize::BITS - values.saturating_sub(1).leading_zeros()) as usize
}

fn input(block: &(Values, Option<Bitmap>)) -> Input<'_> {
    Input { values: &block.0, validity: block.1.as_ref(), start: 0, len: block.0.len() }
}

/// Bytes of the sample bit-packed or as runs where that is smaller, else plain. Text is not looked at
/// for runs: it prefers a dictionary to them.
fn simple_size(sample: &[&(Values, Option<Bitmap>)]) -> usize {
    let size = |block: &&(Values, Option<Bitmap>)| match &block.0 {
        Values::Bool(v) => v.len() / 8,
        Values::I64(v) => bitpacked::encoded_size(input(block)).unwrap_or(v.len() * 8),
        Values::I128(v) => bitpacked::encoded_size(input(block)).unwrap_or(v.len() * 16),
        Values::F64(v) => encode(Encoding::Alp, input(block), None)
            .map_or(usize::MAX, |b| b.len())
            .min(v.len() * 8),
        Values::Bytes(v) => v.data.len() + v.len() * 2,
    };
    let smaller = |block: &&(Values, Option<Bitmap>)| match &block.0 {
        Values::Bytes(_) => size(block),
        _ => size(block).min(run_length::estimated_size(input(block))),
    };
    sample.iter().map(smaller).sum()
}

/// Whether building a dictionary of the whole column is worth a try.
fn worth_a_dictionary(sample: &[&(Values, Option<Bitmap>)], blocks: usize) -> bool {
    let rows: usize = sample.iter().map(|block| block.0.len()).sum();
    let Some(first) = sample.first() else { return false };
    let physical = first.0.physical();
    if physical == PhysicalType::Bool || rows == 0 {
        return false;
    }
    let simple_bits = simple_size(sample) * 8 / rows;
    if matches!(physical, PhysicalType::I64 | PhysicalType::I128) && simple_bits <= 8 {
        return false;
    }
    // Distinct values of a few hundred rows of each sampled block, by hash.
    let mut hashes: Vec<u64> = Vec::new();
    let mut looked = 0;
    for block in sample {
        let step = block.0.len().div_ceil(512).max(1);
        for row in (0..block.0.len()).step_by(step) {
            looked += 1;
            hashes.push(match &block.0 {
                Values::Bool(v) => v[row] as u64,
                Values::I64(v) => v[row] as u64,
                Values::I128(v) => nacre_types::hash::hash_bytes(&v[row].to_le_bytes()),
                Values::F64(v) => v[row].to_bits(),
                Values::Bytes(v) => nacre_types::hash::hash_bytes(v.get(row)),
            });
        }
    }
    hashes.sort_unstable();
    hashes.dedup();
    // Nearly unique in the sample: nearly unique in the column, unless the column is the sample.
    if blocks > SAMPLE_BLOCKS && hashes.len() * 4 > looked * 3 {
        return false;
    }
    code_bits(hashes.len()) < simple_bits
}

/// Bytes a row on average below which text counts as short.
const SHORT_TEXT: usize = 100;

/// What makes one sampled block of text clearly smaller, if anything does.
fn compression(sample: &[&(Values, Option<Bitmap>)], allowed: &[Encoding]) -> Option<Encoding> {
    let block = sample.get(sample.len() / 2)?;
    let Values::Bytes(values) = &block.0 else { return None };
    if values.data.len() < values.len() * 8 {
        return None;
    }
    let size = |encoding| match encoding == Encoding::Plain || allowed.contains(&encoding) {
        true => encode(encoding, input(block), None).map_or(usize::MAX, |bytes| bytes.len()),
        false => usize::MAX,
    };
    let (plain, fsst, lz4) = (size(Encoding::Plain), size(Encoding::Fsst), size(Encoding::Lz4));
    // A row of LZ4 costs a chunk, ten times one of FSST. Where rows are long that is for many bytes, and a fifth less
    // space is worth it; where they are short, half the space must be saved. In any case a quarter of plain.
    let short = values.data.len() < values.len().saturating_mul(SHORT_TEXT);
    let (parts, of) = if short { (2, 1) } else { (5, 4) };
    if lz4.saturating_mul(parts) < fsst.saturating_mul(of)
        && lz4.saturating_mul(4) < plain.saturating_mul(3)
    {
        return Some(Encoding::Lz4);
    }
    (fsst.saturating_mul(8) < plain.saturating_mul(7)).then_some(Encoding::Fsst)
}

/// Encodes block number `index` of the column the plan was made for.
pub fn encode_block(
    plan: &ColumnPlan,
    index: usize,
    values: &Values,
    validity: Option<&Bitmap>,
) -> EncodedBlock {
    let input = Input { values, validity, start: 0, len: values.len() };
    if let Some(bytes) = encode(Encoding::Constant, input, None) {
        return EncodedBlock { encoding: Encoding::Constant, bytes };
    }
    let find_runs = || encode(Encoding::RunLength, input, None);
    // Compressing text takes far longer than finding its runs, and is left out where runs are sure to be smaller.
    let mut runs = None;
    if plan.compress == Some(Encoding::Fsst) {
        match find_runs() {
            Some(bytes) if is_smaller(&bytes, fsst::least_bytes(input)) => {
                return EncodedBlock { encoding: Encoding::RunLength, bytes };
            }
            found => runs = Some(found),
        }
    }
    let coded = plan.dictionary.as_ref().and_then(|built| built.codes.get(index));
    let mut block = by_plan(plan, input, coded.map(Vec::as_slice));
    // Codes of text are worth more to a query than the bytes that runs would save.
    if block.encoding == Encoding::Dictionary && values.physical() == PhysicalType::Bytes {
        return block;
    }
    // Summing differences costs some, so they must be clearly smaller as well.
    if delta::suits(input)
        && let Some(bytes) = encode(Encoding::Delta, input, None)
        && bytes.len() * 4 < block.bytes.len() * 3
    {
        block = EncodedBlock { encoding: Encoding::Delta, bytes };
    }
    match runs.unwrap_or_else(find_runs) {
        Some(bytes) if is_smaller(&bytes, block.bytes.len()) => {
            EncodedBlock { encoding: Encoding::RunLength, bytes }
        }
        _ => block,
    }
}

/// Finding a run costs a search, so runs must be clearly smaller than what takes so many bytes.
fn is_smaller(runs: &[u8], bytes: usize) -> bool {
    runs.len() * 4 < bytes * 3
}

fn by_plan(plan: &ColumnPlan, input: Input<'_>, codes: Option<&[u32]>) -> EncodedBlock {
    if let Some(bytes) = codes.and_then(|codes| encode(Encoding::Dictionary, input, Some(codes))) {
        return EncodedBlock { encoding: Encoding::Dictionary, bytes };
    }
    if let Some(encoding) = plan.compress
        && let Some(bytes) = encode(encoding, input, None)
    {
        return EncodedBlock { encoding, bytes };
    }
    let plain_size = match input.values {
        Values::I128(v) => v.len() * 16,
        other => other.len() * 8,
    };
    // A multiplication and a look at the exceptions each must be worth it.
    if input.values.physical() == PhysicalType::F64
        && let Some(bytes) = encode(Encoding::Alp, input, None)
        && bytes.len() * 10 < plain_size * 9
    {
        return EncodedBlock { encoding: Encoding::Alp, bytes };
    }
    if bitpacked::encoded_size(input).is_some_and(|size| size < plain_size)
        && let Some(bytes) = encode(Encoding::BitPacked, input, None)
    {
        return EncodedBlock { encoding: Encoding::BitPacked, bytes };
    }
    // Plain holds everything.
    let bytes = encode(Encoding::Plain, input, None).unwrap_or_default();
    EncodedBlock { encoding: Encoding::Plain, bytes }
}
