//! Chooses the encoding of each block, given the plan of the column.
//!
//! A column uses a dictionary of values, compression, which may take a dictionary of tokens, or
//! neither. Each block then takes the smallest encoding that the plan allows; one that is slower to
//! read must be clearly smaller. Each encoding defines its place in the order and when it pays
//! ([`Scheme`](crate::encoding::scheme::Scheme)).

use super::read::Block;
use super::write::{encode, encode_plain};
use crate::encoding::dictionary::{Built, MAX_DICTIONARY_VALUES};
use crate::encoding::scheme::Offer;
use crate::encoding::{Encoding, Input, Shared, TokenSet, encode_values, fsst, onpair};
use crate::{Bitmap, Scalar, Values};
use nacre_types::{DataType, PhysicalType, invariant};

/// The encoding plan for the blocks of one column of a segment.
pub struct ColumnPlan {
    pub(super) blocks: usize,
    pub(super) dictionary: Option<Built>,
    pub(super) compression: Option<Encoding>,
    /// For [`Encoding::OnPair`].
    pub(super) tokens: Option<TokenSet>,
}

/// An encoded block, ready to be written.
pub struct EncodedBlock {
    /// Its encoding.
    pub encoding: Encoding,
    /// The block, header included.
    pub bytes: Vec<u8>,
}

impl ColumnPlan {
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
