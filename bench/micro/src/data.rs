//! Columns that suit each encoding, as blocks of a segment, encoded and plain.

use nacre_column::block::{Block, ColumnPlan, encode, encode_block};
use nacre_column::encoding::{Dictionary, Encoding, Input, Shared};
use nacre_column::{BytesColumn, Values};
use nacre_testing::{Random, WORDS};
use nacre_types::DataType;
use nacre_types::limits::BLOCK_ROWS;
use std::sync::{Arc, OnceLock};

const BLOCKS: usize = 48;

/// A column in blocks of one encoding.
pub struct Column {
    pub name: &'static str,
    pub data_type: DataType,
    pub encoding: Encoding,
    pub blocks: Vec<Vec<u8>>,
    pub values: Vec<Values>,
    dictionary: Option<(Vec<u8>, usize)>,
    decoded: OnceLock<Arc<Values>>,
}

impl Column {
    fn new(
        name: &'static str,
        data_type: DataType,
        encoding: Encoding,
        values: &[Values],
    ) -> Column {
        let mut column = Column {
            name,
            data_type,
            encoding,
            blocks: Vec::new(),
            values: values.to_vec(),
            dictionary: None,
            decoded: OnceLock::new(),
        };
        if encoding.shares() {
            let blocks: Vec<_> = values.iter().map(|v| (v.clone(), None)).collect();
            let plan = ColumnPlan::choose(&blocks);
            column.dictionary = plan.dictionary();
            for (at, values) in values.iter().enumerate() {
                let block = encode_block(&plan, at, values, None);
                assert_eq!(block.encoding, encoding, "{name}");
                column.blocks.push(block.bytes);
            }
            return column;
        }
        for values in values {
            let input = Input::new(values, None);
            column.blocks.push(
                encode(encoding, input, Shared::Nothing)
                    .expect("the encoding takes its own kind of data"),
            );
        }
        column
    }

    /// Opens a block, as a read does every time.
    pub fn open(&self, block: usize) -> Block<'_> {
        let dictionary = self.dictionary.as_ref().map(|(bytes, count)| Dictionary {
            bytes,
            count: *count,
            decoded: &self.decoded,
        });
        Block::open(&self.blocks[block], self.data_type, self.encoding, BLOCK_ROWS, dictionary)
            .expect("a good block")
    }

    /// Returns the bytes of all blocks and the dictionary.
    pub fn bytes(&self) -> usize {
        self.blocks.iter().map(Vec::len).sum::<usize>()
            + self.dictionary.as_ref().map_or(0, |(bytes, _)| bytes.len())
    }
}

fn blocks(mut value: impl FnMut(usize) -> Values) -> Vec<Values> {
    (0..BLOCKS).map(&mut value).collect()
}

fn integers(mut value: impl FnMut(usize) -> i64) -> Vec<Values> {
    blocks(|block| {
        Values::I64((0..BLOCK_ROWS).map(|row| value(block * BLOCK_ROWS + row)).collect())
    })
}

fn doubles(mut value: impl FnMut(usize) -> f64) -> Vec<Values> {
    blocks(|block| {
        Values::F64((0..BLOCK_ROWS).map(|row| value(block * BLOCK_ROWS + row)).collect())
    })
}

fn texts(mut value: impl FnMut(usize) -> String) -> Vec<Values> {
    blocks(|block| {
        let mut out = BytesColumn::default();
        (0..BLOCK_ROWS).for_each(|row| out.push(value(block * BLOCK_ROWS + row).as_bytes()));
        Values::Bytes(out)
    })
}

/// Returns each encoding's column, followed by the same values plain.
pub fn pairs() -> Vec<(Column, Column)> {
    let mut random = Random::new(99);
    let mut sentence = |words_a_row: usize| {
        let text: Vec<&str> = (0..words_a_row).map(|_| *random.pick(&WORDS)).collect();
        text.join(" ")
    };
    let short: Vec<Values> = texts(|_| sentence(4));
    let long: Vec<Values> = texts(|row| {
        format!("{row} {} {}", "a beginning that all of them share, ".repeat(4), sentence(20))
    });
    let mut random = Random::new(7);
    let (int, double, text) = (DataType::Int64, DataType::Float64, DataType::TEXT);
    let columns: Vec<(&'static str, DataType, Encoding, Vec<Values>)> = vec![
        ("constant", int, Encoding::Constant, integers(|_| 42)),
        (
            "runs of 50",
            int,
            Encoding::RunLength,
            integers(|row| (row as i64 / 50).wrapping_mul(0x9e37_79b9_7f4a)),
        ),
        ("12 bits", int, Encoding::BitPacked, integers(|_| random.below(4000) as i64)),
        ("ascending", int, Encoding::Delta, integers(|row| row as i64 * 10 + row as i64 % 7)),
        (
            "1,000 names",
            text,
            Encoding::Dictionary,
            texts(|row| format!("name {}", row as u64 * 7919 % 1000)),
        ),
        ("short text", text, Encoding::Fsst, short.clone()),
        ("short text", text, Encoding::OnPair, short),
        ("long text", text, Encoding::Lz4, long),
        (
            "prices",
            double,
            Encoding::Alp,
            doubles(|row| (row as u64 * 7919 % 1_000_000) as f64 / 100.0),
        ),
        ("reals", double, Encoding::Alp, doubles(|row| ((row as f64) * 0.618_033_988_7).fract())),
    ];
    let pair =
        |(name, data_type, encoding, values): (&'static str, DataType, Encoding, Vec<Values>)| {
            (
                Column::new(name, data_type, encoding, &values),
                Column::new(name, data_type, Encoding::Plain, &values),
            )
        };
    columns.into_iter().map(pair).collect()
}
