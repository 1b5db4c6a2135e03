//! Chooses the encoding of each block: the column is planned from a sample, then each block is
//! tried.
//!
//! A column uses a dictionary of values, compression, which may take a dictionary of tokens, or
//! neither. Each block then takes the smallest encoding that the plan allows; one that is slower to
//! read must be clearly smaller. Each encoding defines its place in the order and when it pays
//! ([`Scheme`](crate::encoding::scheme::Scheme)).

use super::read::Block;
use super::write::{encode, encode_plain};
use crate::encoding::dictionary::{self, Built, MAX_DICTIONARY_VALUES};
use crate::encoding::scheme::Offer;
use crate::encoding::{
    Encoding, Input, Shared, TokenSet, bitpacked, encode_values, fsst, onpair, run_length,
};
use crate::{Bitmap, Scalar, Values};
use nacre_types::{DataType, PhysicalType, invariant};

/// Blocks sampled to plan a column.
const SAMPLE_BLOCKS: usize = 3;

/// The encoding plan for the blocks of one column of a segment.
pub struct ColumnPlan {
    blocks: usize,
    dictionary: Option<Built>,
    compression: Option<Encoding>,
    /// For [`Encoding::OnPair`].
    tokens: Option<TokenSet>,
}

/// An encoded block, ready to be written.
pub struct EncodedBlock {
    /// Its encoding.
    pub encoding: Encoding,
    /// The block, header included.
    pub bytes: Vec<u8>,
}

impl ColumnPlan {
    /// Plans the blocks of one column.
    pub fn choose(blocks: &[(Values, Option<Bitmap>)]) -> ColumnPlan {
        ColumnPlan::of(blocks, &[Encoding::Lz4, Encoding::Fsst, Encoding::OnPair])
    }

    /// Plans the blocks of a sorted column that is searched more often than scanned: each step of a
    /// search reads one row, which must neither decompress a chunk nor count codes.
    pub fn choose_for_search(blocks: &[(Values, Option<Bitmap>)]) -> ColumnPlan {
        ColumnPlan::of(blocks, &[Encoding::Fsst])
    }

    /// Plans a column. Text may be compressed with `compressions`.
    fn of(blocks: &[(Values, Option<Bitmap>)], compressions: &[Encoding]) -> ColumnPlan {
        debug_assert!(
            blocks.windows(2).all(|pair| pair[0].0.physical() == pair[1].0.physical()),
            "blocks of one column with different physical types"
        );
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
        let (compression, tokens) = match dictionary {
            None => compression(blocks, &sample, compressions),
            Some(_) => (None, None),
        };
        invariant!(
            dictionary.as_ref().is_none_or(|built| built.codes.len() == blocks.len()),
            "a dictionary without the codes of each of {} blocks",
            blocks.len()
        );
        ColumnPlan { blocks: blocks.len(), dictionary, compression, tokens }
    }

    /// The encoded block of dictionary values or tokens, and their number.
    pub fn dictionary(&self) -> Option<(Vec<u8>, usize)> {
        let tokens = self.tokens.as_ref().map(TokenSet::values);
        let values = self.dictionary.as_ref().map(|built| &built.values).or(tokens.as_ref())?;
        let count = values.len();
        debug_assert!(
            (1..=MAX_DICTIONARY_VALUES).contains(&count),
            "a dictionary of {count} values"
        );
        Some((encode_values(values), count))
    }

    /// What block number `index` shares with the others.
    fn shared(&self, index: usize) -> Shared<'_> {
        match (&self.dictionary, &self.tokens) {
            (Some(built), _) => Shared::Codes(&built.codes[index]),
            (None, Some(tokens)) => Shared::Tokens(tokens),
            (None, None) => Shared::Nothing,
        }
    }
}

/// Bits of a dictionary code, given the number of values.
fn code_bits(values: usize) -> usize {
    (usize::BITS - values.saturating_sub(1).leading_zeros()) as usize
}

fn input(block: &(Values, Option<Bitmap>)) -> Input<'_> {
    Input::new(&block.0, block.1.as_ref())
}

/// Estimates the size of the sample in bytes without dictionary or compression. Ignores runs of
/// text: a dictionary is preferred to them.
fn simple_size(sample: &[&(Values, Option<Bitmap>)]) -> usize {
    let size = |block: &&(Values, Option<Bitmap>)| match &block.0 {
        Values::Bool(v) => v.len() / 8,
        Values::I64(v) => bitpacked::encoded_size(input(block)).unwrap_or(v.len() * 8),
        Values::I128(v) => bitpacked::encoded_size(input(block)).unwrap_or(v.len() * 16),
        Values::F64(v) => encode(Encoding::Alp, input(block), Shared::Nothing)
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

/// Whether the sample suggests that a dictionary of the whole column would be small enough.
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
    // Counts distinct values among a few hundred rows of each sampled block, by hash.
    let mut hashes: Vec<u64> = Vec::new();
    let mut seen = 0;
    for block in sample {
        let step = block.0.len().div_ceil(512).max(1);
        for row in (0..block.0.len()).step_by(step) {
            seen += 1;
            hashes.push(match &block.0 {
                Values::Bool(v) => v[row] as u64,
                Values::I64(v) => v[row] as u64,
                Values::I128(v) => nacre_types::hash::hash_bytes(&v[row].to_le_bytes()),
                Values::F64(v) => v[row].to_bits(),
                Values::Bytes(v) => nacre_types::hash::hash_bytes(v.get(row)),
            });
        }
    }
    hashes.sort();
    hashes.dedup();
    // Values nearly unique in the sample are nearly unique in the column, unless the sample is the
    // whole column.
    if blocks > SAMPLE_BLOCKS && hashes.len() * 4 > seen * 3 {
        return false;
    }
    code_bits(hashes.len()) < simple_bits
}

/// Average bytes per row below which text counts as short.
const SHORT_TEXT: usize = 100;

/// The compression that makes a sampled block of text clearly smaller, if any, and the tokens that
/// it takes.
fn compression(
    blocks: &[(Values, Option<Bitmap>)],
    sample: &[&(Values, Option<Bitmap>)],
    allowed: &[Encoding],
) -> (Option<Encoding>, Option<TokenSet>) {
    let Some(block) = sample.get(sample.len() / 2) else { return (None, None) };
    let Values::Bytes(values) = &block.0 else { return (None, None) };
    if values.data.len() < values.len() * 8 {
        return (None, None);
    }
    let tokens = if allowed.contains(&Encoding::OnPair) { TokenSet::train(blocks) } else { None };
    let size = |encoding| match encoding == Encoding::Plain || allowed.contains(&encoding) {
        true => {
            let shared = tokens.as_ref().map_or(Shared::Nothing, Shared::Tokens);
            encode(encoding, input(block), shared).map_or(usize::MAX, |bytes| bytes.len())
        }
        false => usize::MAX,
    };
    let (plain, fsst, lz4) = (size(Encoding::Plain), size(Encoding::Fsst), size(Encoding::Lz4));
    // All blocks share the tokens.
    let dictionary = tokens.as_ref().map_or(0, |tokens| encode_values(&tokens.values()).len());
    let onpair = size(Encoding::OnPair).saturating_add(dictionary / blocks.len());
    let best = fsst.min(onpair);
    // Reading a row of LZ4 decompresses a chunk, which takes ten times as long as a row of FSST.
    // Long rows spread that cost over many bytes, so saving a fifth of the space pays for it; short
    // rows must save half. LZ4 must always save a quarter of the plain size.
    let short = values.data.len() < values.len().saturating_mul(SHORT_TEXT);
    let (times, of) = if short { (2, 1) } else { (5, 4) };
    if lz4.saturating_mul(times) < best.saturating_mul(of)
        && lz4.saturating_mul(4) < plain.saturating_mul(3)
    {
        return (Some(Encoding::Lz4), None);
    }
    // Where tokens save less than a quarter, they are so short that a row takes many of them.
    if onpair < fsst && onpair.saturating_mul(4) < plain.saturating_mul(3) {
        return (Some(Encoding::OnPair), tokens);
    }
    ((fsst.saturating_mul(8) < plain.saturating_mul(7)).then_some(Encoding::Fsst), None)
}

/// Encodings with this kind of offer, in list order.
fn offered(offer: Offer) -> impl Iterator<Item = Encoding> {
    Encoding::ALL.iter().copied().filter(move |encoding| encoding.entry().offer == offer)
}

/// Encodes block number `index` of the column that the plan was made for.
pub fn encode_block(
    plan: &ColumnPlan,
    index: usize,
    values: &Values,
    validity: Option<&Bitmap>,
) -> EncodedBlock {
    invariant!(index < plan.blocks, "block {index} of a column planned with {}", plan.blocks);
    let input = Input::new(values, validity);
    let block = smallest(plan, input, plan.shared(index));
    debug_assert!(opens(&block, input), "a block of {} does not read back", block.encoding.name());
    block
}

fn smallest(plan: &ColumnPlan, input: Input<'_>, shared: Shared<'_>) -> EncodedBlock {
    for encoding in offered(Offer::First) {
        if let Some(bytes) = encode(encoding, input, shared) {
            return EncodedBlock { encoding, bytes };
        }
    }
    // Compressing text takes far longer than finding its runs: skip it if runs are certain to win.
    let mut runs = None;
    let least = match (plan.compression, &plan.tokens) {
        (Some(Encoding::Fsst), _) => Some(fsst::least_bytes(input)),
        (_, Some(tokens)) => Some(onpair::least_bytes(input, tokens)),
        _ => None,
    };
    if let Some(least) = least {
        let found = encode(Encoding::RunLength, input, shared);
        let pays = Encoding::RunLength.entry().pays;
        match found {
            Some(bytes) if pays(bytes.len(), least) => {
                return EncodedBlock { encoding: Encoding::RunLength, bytes };
            }
            found => runs = Some(found),
        }
    }
    let mut best = by_plan(plan, input, shared);
    // Queries gain more from codes of text than from the bytes that runs would save.
    if best.encoding == Encoding::Dictionary && input.values().physical() == PhysicalType::Bytes {
        return best;
    }
    for encoding in offered(Offer::InsteadOfAny) {
        let (entry, rival) = (encoding.entry(), best.bytes.len());
        if !(entry.suits)(input, rival) {
            continue;
        }
        let bytes = match &mut runs {
            Some(found) if encoding == Encoding::RunLength => found.take(),
            _ => encode(encoding, input, shared),
        };
        if let Some(bytes) = bytes.filter(|bytes| (entry.pays)(bytes.len(), rival)) {
            best = EncodedBlock { encoding, bytes };
        }
    }
    best
}

/// Encodes the block by the column's plan: as codes, compressed, or in the smallest alternative to
/// plain values.
fn by_plan(plan: &ColumnPlan, input: Input<'_>, shared: Shared<'_>) -> EncodedBlock {
    if let Some(bytes) = encode(Encoding::Dictionary, input, shared) {
        return EncodedBlock { encoding: Encoding::Dictionary, bytes };
    }
    if let Some(encoding) = plan.compression
        && let Some(bytes) = encode(encoding, input, shared)
    {
        return EncodedBlock { encoding, bytes };
    }
    let plain_size = match input.values() {
        Values::I128(v) => v.len() * 16,
        other => other.len() * 8,
    };
    let mut best: Option<EncodedBlock> = None;
    for encoding in offered(Offer::InsteadOfPlain) {
        let entry = encoding.entry();
        let rival = best.as_ref().map_or(plain_size, |best| best.bytes.len());
        if (entry.suits)(input, rival)
            && let Some(bytes) = encode(encoding, input, shared)
            && (entry.pays)(bytes.len(), rival)
        {
            best = Some(EncodedBlock { encoding, bytes });
        }
    }
    best.unwrap_or_else(|| EncodedBlock { encoding: Encoding::Plain, bytes: encode_plain(input) })
}

/// Whether a block that was just encoded opens and returns its first and last row. Codes are
/// checked where they are made.
fn opens(block: &EncodedBlock, input: Input<'_>) -> bool {
    if block.encoding.shares() {
        return true;
    }
    let data_type = match input.values().physical() {
        PhysicalType::Bool => DataType::Boolean,
        PhysicalType::I64 => DataType::Int64,
        PhysicalType::I128 => DataType::UInt64,
        PhysicalType::F64 => DataType::Float64,
        PhysicalType::Bytes => DataType::BLOB,
    };
    let Ok(opened) = Block::open(&block.bytes, data_type, block.encoding, input.len(), None) else {
        return false;
    };
    let row_is_back = |row: usize| {
        let stored = opened.get(row);
        let expected = match input.is_valid(row) {
            true => Scalar::at(input.values(), row),
            false => Scalar::Null,
        };
        stored.is_ok_and(|stored| match (&stored, &expected) {
            (Scalar::F64(a), Scalar::F64(b)) => a.to_bits() == b.to_bits(),
            (a, b) => a == b,
        })
    };
    input.is_empty() || (row_is_back(0) && row_is_back(input.len() - 1))
}
