//! Structures of an ordered index over one integer: the entries of rows in memory, packed in blocks
//! or as skiplist nodes; and the sorted keys of a segment's index part, as an encoded column or as
//! BP128 blocks.

use crate::measure::{Work, interleaved};
use nacre_column::Scalar;
use nacre_column::Values;
use nacre_column::block::{Block, ColumnPlan, EncodedBlock, encode_block};
use nacre_column::codec::{Bp128, Codec};
use nacre_column::encoding::Dictionary;
use nacre_rowstore::Entries;
use nacre_testing::Random;
use nacre_types::limits::BLOCK_ROWS;
use nacre_types::{DataType, key};
use std::hint::black_box;
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

const ENTRIES: u64 = 60_000;
const PART_BLOCKS: usize = 48;
const SEARCHES: usize = 4_000;

fn integer(value: i64) -> Vec<u8> {
    let mut bytes = vec![1];
    key::put_i64(&mut bytes, value);
    bytes
}

/// An index key and a row key.
type Pair = (Vec<u8>, Vec<u8>);

/// Pairs in order of insertion.
fn shapes() -> Vec<(&'static str, Vec<Pair>)> {
    let shape = |key: &dyn Fn(&mut Random, i64) -> i64| {
        let mut random = Random::new(17);
        (0..ENTRIES as i64).map(|row| (integer(key(&mut random, row)), integer(row))).collect()
    };
    vec![
        ("in a row", shape(&|_, row| row)),
        ("dense", shape(&|random, _| random.below(ENTRIES) as i64)),
        ("few keys", shape(&|random, _| random.below(100) as i64)),
        ("sparse", shape(&|random, _| random.bits() as i64)),
    ]
}

/// Cannot fail: the keys have the type of the entries.
fn put(entries: &Entries, index: &[u8], row: &[u8]) {
    entries.insert(index, row).unwrap_or_else(|error| unreachable!("{error}"));
}

fn filled(new: fn() -> Entries, pairs: &[Pair]) -> Entries {
    let entries = new();
    pairs.iter().for_each(|(index, row)| put(&entries, index, row));
    entries
}

fn of_entries<'a>(name: &str, new: fn() -> Entries, pairs: &'a [Pair]) -> [Work<'a>; 3] {
    let insert = move || {
        black_box(filled(new, pairs));
        pairs.len()
    };
    let found = filled(new, pairs);
    let mut random = Random::new(5);
    let places: Vec<usize> =
        (0..SEARCHES).map(|_| random.below(pairs.len() as u64) as usize).collect();
    let probe = move || {
        let mut out = Vec::new();
        for at in &places {
            let (from, mut to) = (&pairs[*at].0, pairs[*at].0.clone());
            to.push(2);
            out.clear();
            found.range(Bound::Included(from), Some(&to), 16, &mut out);
            black_box(&out);
        }
        places.len()
    };
    // Remove and insert again, so that each round starts from the same state.
    let changed = filled(new, pairs);
    let change = move || {
        for (index, row) in pairs.iter().step_by(7) {
            changed.remove(index, row);
        }
        for (index, row) in pairs.iter().step_by(7) {
            put(&changed, index, row);
        }
        pairs.len().div_ceil(7) * 2
    };
    [
        (format!("insert {name}"), Box::new(insert)),
        (format!("probe {name}"), Box::new(probe)),
        (format!("change {name}"), Box::new(change)),
    ]
}

/// The sorted keys of an index part, as a column and as BP128 blocks.
struct Part {
    values: Vec<Values>,
    blocks: Vec<EncodedBlock>,
    dictionary: Option<(Vec<u8>, usize)>,
    decoded: OnceLock<Arc<Values>>,
    packed: Vec<Vec<u8>>,
    firsts: Vec<u32>,
}

impl Part {
    fn of(keys: &[i64]) -> Part {
        let values: Vec<Values> =
            keys.chunks(BLOCK_ROWS).map(|block| Values::I64(block.to_vec())).collect();
        let plan =
            ColumnPlan::choose(&values.iter().map(|v| (v.clone(), None)).collect::<Vec<_>>());
        let blocks =
            values.iter().enumerate().map(|(at, v)| encode_block(&plan, at, v, None)).collect();
        let small: Vec<u32> = keys.iter().map(|key| *key as u32).collect();
        let packed: Vec<Vec<u8>> =
            small.chunks(Bp128.capacity()).map(|chunk| Bp128.compress(chunk)).collect();
        let firsts = small.iter().step_by(Bp128.capacity()).copied().collect();
        Part {
            values,
            blocks,
            dictionary: plan.dictionary(),
            decoded: OnceLock::new(),
            packed,
            firsts,
        }
    }

    fn key(&self, at: usize) -> i64 {
        match &self.values[at / BLOCK_ROWS] {
            Values::I64(values) => values[at % BLOCK_ROWS],
            _ => 0,
        }
    }

    /// Returns the first position of a key, by searching the block that contains it.
    fn search_column(&self, block: usize, key: i64) -> usize {
        let dictionary = self.dictionary.as_ref().map(|(bytes, count)| Dictionary {
            bytes,
            count: *count,
            decoded: &self.decoded,
        });
        let encoded = &self.blocks[block];
        let open =
            Block::open(&encoded.bytes, DataType::Int64, encoded.encoding, BLOCK_ROWS, dictionary);
        let open = open.expect("a good block");
        let (mut low, mut high) = (0, BLOCK_ROWS);
        while low < high {
            let middle = low.midpoint(high);
            let below =
                matches!(open.get(middle).expect("a good row"), Scalar::I64(value) if value < key);
            if below { low = middle + 1 } else { high = middle }
        }
        block * BLOCK_ROWS + low
    }

    fn search_packed(&self, block: usize, key: i64) -> usize {
        let per = BLOCK_ROWS / Bp128.capacity();
        let firsts = &self.firsts[block * per..(block + 1) * per];
        let at =
            block * per + firsts.partition_point(|first| i64::from(*first) < key).saturating_sub(1);
        at * Bp128.capacity()
            + Bp128.lower_bound(&self.packed[at], key as u32).expect("a good block")
    }

    fn searches(&self) -> [Work<'_>; 2] {
        let mut random = Random::new(9);
        let rows = (PART_BLOCKS * BLOCK_ROWS) as u64;
        let places: Vec<usize> = (0..SEARCHES).map(|_| random.below(rows) as usize).collect();
        for at in &places {
            let (block, key) = (at / BLOCK_ROWS, self.key(*at));
            assert_eq!(self.search_column(block, key), self.search_packed(block, key));
        }
        let again = places.clone();
        let run = |places: Vec<usize>, search: fn(&Part, usize, i64) -> usize| {
            move || {
                places.iter().for_each(|at| {
                    black_box(search(self, at / BLOCK_ROWS, self.key(*at)));
                });
                places.len()
            }
        };
        [
            ("column".into(), Box::new(run(places, Part::search_column))),
            ("BP128".into(), Box::new(run(again, Part::search_packed))),
        ]
    }
}

pub fn run() {
    println!(
        "{:<10} {:>22} {:>22} {:>22} {:>18}",
        "entries", "insert", "probe", "change", "bytes an entry"
    );
    let mut worst: f64 = f64::INFINITY;
    for (name, pairs) in shapes() {
        let [a, b, c] = of_entries("skiplist", Entries::new, &pairs);
        let [d, e, f] = of_entries("blocks", Entries::of_integers, &pairs);
        let times = interleaved(vec![a, d, b, e, c, f]);
        let bytes = [Entries::new, Entries::of_integers]
            .map(|new| filled(new, &pairs).bytes() as f64 / ENTRIES as f64);
        let both = |at: usize| format!("{:.0} ns, was {:.0}", times[at + 1].1, times[at].1);
        let size = format!("{:.1}, was {:.1}", bytes[1], bytes[0]);
        println!("{name:<10} {:>22} {:>22} {:>22} {size:>18}", both(0), both(2), both(4));
        worst = [0, 2, 4].iter().map(|at| times[*at].1 / times[at + 1].1).fold(worst, f64::min);
    }
    println!("{:<10} {:>10} {:>10} {:>12} {:>12}", "part", "bits", "BP128", "search", "BP128");
    let rows = PART_BLOCKS * BLOCK_ROWS;
    for (name, spread) in [("in a row", 0), ("10 a key", -10), ("1 in 4", 4), ("1 in 1,000", 1_000)]
    {
        let mut random = Random::new(3);
        let mut value = 0i64;
        let keys: Vec<i64> = (0..rows as i64)
            .map(|row| {
                value +=
                    if spread > 0 { 1 + random.below(2 * spread as u64 - 1) as i64 } else { 0 };
                match spread {
                    0 => row,
                    -10 => row / 10,
                    _ => value,
                }
            })
            .collect();
        let part = Part::of(&keys);
        let bits = |bytes: usize| bytes as f64 * 8.0 / rows as f64;
        let own: usize = part.blocks.iter().map(|b| b.bytes.len()).sum::<usize>();
        let own = own + part.dictionary.as_ref().map_or(0, |(bytes, _)| bytes.len());
        let packed: usize = part.packed.iter().map(Vec::len).sum();
        let times = interleaved(part.searches().into());
        println!(
            "{name:<10} {:>10.2} {:>10.2} {:>9.0} ns {:>9.0} ns  {}",
            bits(own),
            bits(packed),
            times[0].1,
            times[1].1,
            part.blocks[PART_BLOCKS / 2].encoding.name()
        );
    }
    println!("index-entries: least_skiplist_over_blocks={worst:.2}");
}
