//! Plans a column in steps, from a sample and from what all of it has in common.
//!
//! First the sample tells whether a dictionary of values may pay. If so, it is built; if it does not
//! pay after all, text may be compressed: tokens are trained, and the compressions tried on a block.

use super::plan::ColumnPlan;
use super::write::encode;
use crate::encoding::dictionary::{Building, MAX_DICTIONARY_VALUES};
use crate::encoding::onpair::Training;
use crate::encoding::{Encoding, Input, Shared, bitpacked, encode_values, run_length};
use crate::{BlockValues, Values, write_cost};
use nacre_types::{PhysicalType, invariant};

/// Blocks sampled to plan a column.
const SAMPLE_BLOCKS: usize = 3;
/// Average bytes per row below which text counts as short.
const SHORT_TEXT: usize = 100;
/// What may hold texts without a dictionary, in the order in which it is tried.
const TRIED: [Encoding; 4] = [Encoding::Plain, Encoding::Fsst, Encoding::Lz4, Encoding::OnPair];

/// The planning of a column. The blocks stay with the caller, which passes the same ones each time.
pub struct Planning {
    /// Whether rows are searched more often than scanned.
    is_searched: bool,
    plan: ColumnPlan,
    stage: Stage,
}

enum Stage {
    Begin,
    Dictionary(Building),
    Tokens(Training),
    /// Encodes a block; the sizes so far.
    Try(Vec<usize>),
    Planned,
}

impl ColumnPlan {
    /// Plans the blocks of one column at once.
    pub fn choose(blocks: &[BlockValues]) -> ColumnPlan {
        Planning::new(false).run(blocks)
    }

    /// Plans the blocks of a sorted column that is searched more often than scanned, at once.
    pub fn choose_for_search(blocks: &[BlockValues]) -> ColumnPlan {
        Planning::new(true).run(blocks)
    }
}

impl Planning {
    /// Starts to plan a column. `is_searched` says that it is sorted, and searched more often than
    /// scanned: each step of a search reads one row, which must neither decompress a chunk nor count
    /// codes.
    pub fn new(is_searched: bool) -> Planning {
        let plan = ColumnPlan { blocks: 0, dictionary: None, compression: None, tokens: None };
        Planning { is_searched, plan, stage: Stage::Begin }
    }

    /// Does a part of the work, which takes no longer than writing a few blocks; returns what it
    /// cost, in blocks of numbers. `None` once the column is planned.
    pub fn step(&mut self, blocks: &[BlockValues]) -> Option<usize> {
        debug_assert!(
            blocks.windows(2).all(|pair| pair[0].0.physical() == pair[1].0.physical()),
            "blocks of one column with different physical types"
        );
        match &mut self.stage {
            Stage::Begin => {
                self.plan.blocks = blocks.len();
                let sample = sample_of(blocks);
                match worth_a_dictionary(&sample, blocks.len()) {
                    true => {
                        let building = Building::new(blocks, MAX_DICTIONARY_VALUES);
                        self.stage = Stage::Dictionary(building);
                    }
                    false => self.begin_compression(blocks),
                }
                Some(sample.iter().map(|(values, _)| write_cost(values)).sum())
            }
            Stage::Dictionary(building) => {
                let cost = building.step(blocks);
                if cost.is_none() {
                    self.end_dictionary(blocks);
                }
                Some(cost.unwrap_or(1))
            }
            Stage::Tokens(training) => {
                let cost = training.step(blocks);
                if cost.is_none() {
                    self.end_training();
                }
                Some(cost.unwrap_or(1))
            }
            Stage::Try(sizes) => {
                let block = typical(blocks)?;
                let Some(encoding) = TRIED.get(sizes.len()) else {
                    self.end_trial(blocks.len(), block);
                    return Some(1);
                };
                let shared = self.plan.tokens.as_ref().map_or(Shared::Nothing, Shared::Tokens);
                let is_allowed = !self.is_searched || *encoding != Encoding::Lz4;
                let bytes = is_allowed.then(|| encode(*encoding, input(block), shared)).flatten();
                sizes.push(bytes.map_or(usize::MAX, |bytes| bytes.len()));
                Some(write_cost(&block.0))
            }
            Stage::Planned => None,
        }
    }

    /// The plan, once every step is done.
    pub fn finish(self) -> ColumnPlan {
        let ColumnPlan { blocks, dictionary, .. } = &self.plan;
        invariant!(
            matches!(self.stage, Stage::Planned),
            "a plan of {blocks} blocks is not complete"
        );
        invariant!(
            dictionary.as_ref().is_none_or(|built| built.codes.len() == *blocks),
            "a dictionary without the codes of each of {blocks} blocks"
        );
        self.plan
    }

    fn run(mut self, blocks: &[BlockValues]) -> ColumnPlan {
        while self.step(blocks).is_some() {}
        self.finish()
    }

    /// Keeps the dictionary if it is small enough.
    fn end_dictionary(&mut self, blocks: &[BlockValues]) {
        let Stage::Dictionary(building) = std::mem::replace(&mut self.stage, Stage::Planned) else {
            return;
        };
        let sample = sample_of(blocks);
        self.plan.dictionary = building.finish().filter(|built| {
            let rows: usize = built.codes.iter().map(Vec::len).sum();
            let entries = encode_values(&built.values).len();
            let coded = rows * code_bits(built.values.len()) / 8 + entries;
            coded * 5 < simple_size(&sample) * blocks.len() / sample.len().max(1) * 4
        });
        if self.plan.dictionary.is_none() {
            self.begin_compression(blocks);
        }
    }

    /// Goes on to compression if there is a typical block of text with enough bytes.
    fn begin_compression(&mut self, blocks: &[BlockValues]) {
        debug_assert!(self.plan.dictionary.is_none(), "values of a dictionary are not compressed");
        self.stage = match typical(blocks) {
            Some((Values::Bytes(texts), _)) if texts.data.len() >= texts.len() * 8 => {
                match self.is_searched {
                    true => Stage::Try(Vec::new()),
                    false => Stage::Tokens(Training::new()),
                }
            }
            _ => Stage::Planned,
        };
    }

    fn end_training(&mut self) {
        let trained = std::mem::replace(&mut self.stage, Stage::Try(Vec::new()));
        if let Stage::Tokens(training) = trained {
            self.plan.tokens = training.finish();
        }
    }

    /// Compares what the compressions make of a block, all of which share the tokens.
    fn end_trial(&mut self, blocks: usize, block: &BlockValues) {
        let Stage::Try(sizes) = std::mem::replace(&mut self.stage, Stage::Planned) else { return };
        let tokens = self.plan.tokens.take();
        let dictionary = tokens.as_ref().map_or(0, |tokens| encode_values(&tokens.values()).len());
        invariant!(sizes.len() == TRIED.len(), "{} compressions were tried", sizes.len());
        let [plain, fsst, lz4, onpair] = sizes[..] else { return };
        self.plan.compression =
            smallest(&block.0, plain, fsst, lz4, onpair.saturating_add(dictionary / blocks));
        self.plan.tokens = tokens.filter(|_| self.plan.compression == Some(Encoding::OnPair));
    }
}

/// The compression that makes a block of text clearly smaller, if any, given the sizes.
fn smallest(
    values: &Values,
    plain: usize,
    fsst: usize,
    lz4: usize,
    onpair: usize,
) -> Option<Encoding> {
    let Values::Bytes(texts) = values else { return None };
    let best = fsst.min(onpair);
    // Reading a row of LZ4 decompresses a chunk, which takes ten times as long as a row of FSST.
    // Long rows spread that cost over many bytes, so saving a fifth of the space pays for it; short
    // rows must save half. LZ4 must always save a quarter of the plain size.
    let short = texts.data.len() < texts.len().saturating_mul(SHORT_TEXT);
    let (times, of) = if short { (2, 1) } else { (5, 4) };
    if lz4.saturating_mul(times) < best.saturating_mul(of)
        && lz4.saturating_mul(4) < plain.saturating_mul(3)
    {
        return Some(Encoding::Lz4);
    }
    // Where tokens save less than a quarter, they are so short that a row takes many of them.
    if onpair < fsst && onpair.saturating_mul(4) < plain.saturating_mul(3) {
        return Some(Encoding::OnPair);
    }
    (fsst.saturating_mul(8) < plain.saturating_mul(7)).then_some(Encoding::Fsst)
}

/// The middle of each third of a column: the ends of a sorted one are not typical.
fn sample_of(blocks: &[BlockValues]) -> Vec<&BlockValues> {
    let step = blocks.len().div_ceil(SAMPLE_BLOCKS).max(1);
    let sample: Vec<&BlockValues> = blocks.iter().skip(step / 2).step_by(step).collect();
    debug_assert!(sample.len() <= SAMPLE_BLOCKS, "a sample of {} blocks", sample.len());
    sample
}

/// The block in the middle of the sample.
fn typical(blocks: &[BlockValues]) -> Option<&BlockValues> {
    let sample = sample_of(blocks);
    sample.get(sample.len() / 2).copied()
}

/// Bits of a dictionary code, given the number of values.
fn code_bits(values: usize) -> usize {
    (usize::BITS - values.saturating_sub(1).leading_zeros()) as usize
}

fn input(block: &BlockValues) -> Input<'_> {
    Input::new(&block.0, block.1.as_ref())
}

/// Estimates the size of the sample in bytes without dictionary or compression. Ignores runs of
/// text: a dictionary is preferred to them.
fn simple_size(sample: &[&BlockValues]) -> usize {
    let size = |block: &&BlockValues| match &block.0 {
        Values::Bool(v) => v.len() / 8,
        Values::I64(v) => bitpacked::encoded_size(input(block)).unwrap_or(v.len() * 8),
        Values::I128(v) => bitpacked::encoded_size(input(block)).unwrap_or(v.len() * 16),
        Values::F64(v) => encode(Encoding::Alp, input(block), Shared::Nothing)
            .map_or(usize::MAX, |b| b.len())
            .min(v.len() * 8),
        Values::Bytes(v) => v.data.len() + v.len() * 2,
    };
    let smaller = |block: &&BlockValues| match &block.0 {
        Values::Bytes(_) => size(block),
        _ => size(block).min(run_length::estimated_size(input(block))),
    };
    sample.iter().map(smaller).sum()
}

/// Whether the sample suggests that a dictionary of the whole column would be small enough.
fn worth_a_dictionary(sample: &[&BlockValues], blocks: usize) -> bool {
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
