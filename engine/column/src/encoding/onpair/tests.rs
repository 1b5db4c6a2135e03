//! What tokens are found, and which damage is noticed.

use super::*;
use crate::Bitmap;
use crate::block::{Block, encode};
use crate::encoding::header::HEADER_BYTES;
use crate::encoding::{Encoding, encode_values};
use nacre_types::limits::BLOCK_ROWS;
use nacre_types::{DataType, Error, ErrorKind, Value};
use std::sync::OnceLock;

const WORDS: [&str; 6] = ["quick ", "slyly ", "accounts ", "among the ", "füreinander ", "x"];

fn sentences(rows: usize) -> Values {
    let mut out = BytesColumn::default();
    for row in 0..rows {
        let word = |step: usize| WORDS[(row / step + row * step) % WORDS.len()];
        out.push(format!("{}{}{}{row}", word(1), word(7), word(31)).as_bytes());
    }
    Values::Bytes(out)
}

struct Encoded {
    block: Vec<u8>,
    tokens: Vec<u8>,
    count: usize,
    rows: usize,
}

impl Encoded {
    fn new(values: &Values) -> Encoded {
        let tokens = TokenSet::train(&[(values.clone(), None)]).unwrap();
        let input = Input::new(values, None);
        let block = encode(Encoding::OnPair, input, Shared::Tokens(&tokens)).unwrap();
        let dictionary = encode_values(&tokens.values());
        Encoded { block, tokens: dictionary, count: tokens.len(), rows: values.len() }
    }

    fn read<T>(&self, read: impl Fn(&Block<'_>) -> Result<T>) -> Result<T> {
        let decoded = OnceLock::new();
        let dictionary = Dictionary { bytes: &self.tokens, count: self.count, decoded: &decoded };
        read(&Block::open(
            &self.block,
            DataType::TEXT,
            Encoding::OnPair,
            self.rows,
            Some(dictionary),
        )?)
    }

    /// The errors of decoding all rows, of reading a row, and of comparing it.
    fn errors(&self, row: usize) -> [Option<Error>; 3] {
        [
            self.read(|block| block.decode(0, self.rows)).err(),
            self.read(|block| block.get(row).map(drop)).err(),
            self.read(|block| block.compare(row, &Value::Text("quick ".into()))).err(),
        ]
    }
}

#[test]
fn words_and_pairs_of_words_become_tokens() {
    let values = sentences(BLOCK_ROWS);
    let tokens = TokenSet::train(&[(values.clone(), None)]).unwrap();
    let Values::Bytes(all) = tokens.values() else { panic!("tokens are bytes") };
    let all: Vec<&[u8]> = (0..all.len()).map(|at| all.get(at)).collect();
    assert!(all.is_sorted_by(|a, b| a < b), "tokens ascend");
    assert!(all.iter().all(|token| (1..=LONGEST).contains(&token.len())));
    for found in ["quick ", "slyly quick "] {
        assert!(
            all.iter().any(|token| token.windows(found.len()).any(|part| part == found.as_bytes())),
            "no token has {found:?}"
        );
    }
    let encoded = Encoded::new(&values);
    let Values::Bytes(texts) = &values else { panic!("texts are bytes") };
    assert!(encoded.block.len() * 3 < texts.data.len(), "{} bytes", encoded.block.len());
}

#[test]
fn training_is_the_same_each_time_and_ignores_null_rows() {
    let values = sentences(BLOCK_ROWS + 100);
    let mut column = BytesColumn::default();
    let mut validity = Bitmap::default();
    let Values::Bytes(texts) = &values else { panic!("texts are bytes") };
    for row in 0..texts.len() {
        let is_valid = row % 3 > 0;
        column.push(if is_valid { texts.get(row) } else { b"null rows have any bytes" });
        validity.push(is_valid);
    }
    let blocks = [(Values::Bytes(column), Some(validity))];
    let (first, second) = (TokenSet::train(&blocks).unwrap(), TokenSet::train(&blocks).unwrap());
    assert_eq!(first.values(), second.values());
    let Values::Bytes(all) = first.values() else { panic!("tokens are bytes") };
    assert!((0..all.len()).all(|at| !all.get(at).starts_with(b"null")), "a token of a null row");
}

#[test]
fn damage_of_codes_and_tokens_is_noticed() {
    let whole = Encoded::new(&sentences(600));
    assert!(whole.errors(33).iter().all(Option::is_none), "{:?}", whole.errors(33));
    let damaged = |change: &dyn Fn(&mut Encoded)| {
        let Encoded { block, tokens, count, rows } = &whole;
        let (block, tokens) = (block.clone(), tokens.clone());
        let mut other = Encoded { block, tokens, count: *count, rows: *rows };
        change(&mut other);
        other.errors(33)
    };
    let corrupt = |error: &Option<Error>| {
        error.as_ref().is_some_and(|error| error.kind() == ErrorKind::Corrupt)
    };
    // The width of a code is impossible; the lengths lead outside the block.
    for (at, byte) in [(0, 0), (0, 13), (1, 1), (6, 1), (10, 1)] {
        let errors = damaged(&|other| other.block[HEADER_BYTES + at] = byte);
        assert!(errors.iter().all(corrupt), "byte {at}: {errors:?}");
    }
    // The base of rows 32 to 63 is not the number of codes before them: a decoded range shows it.
    let entries = HEADER_BYTES + HEAD + bitpacked_entry();
    let errors = damaged(&|other| other.block[entries + 4] ^= 1);
    assert!(corrupt(&errors[0]), "{errors:?}");
    // Codes of tokens that are missing.
    let errors = damaged(&|other| {
        let half = other.block.len() / 2;
        other.block[half..].fill(0xff);
    });
    assert!(corrupt(&errors[0]), "{errors:?}");
    // The block ends early.
    let errors = damaged(&|other| other.block.truncate(other.block.len() - 5));
    assert!(corrupt(&errors[0]), "{errors:?}");
    // The first token is greater than the next one.
    let errors = damaged(&|other| {
        let last = other.tokens.len() - 1;
        other.tokens.swap(16 + other.count.div_ceil(1024) * 4 + other.count * 2, last);
    });
    assert!(corrupt(&errors[0]), "{errors:?}");
}

/// Bytes of the only entry of the bases of fewer than 1,024 groups.
fn bitpacked_entry() -> usize {
    let mut out = Vec::new();
    bitpacked::encode(Input::new(&Values::I64(vec![1]), None), &mut out);
    out.len()
}

#[test]
fn tokens_that_are_too_long_are_damage() {
    let values = sentences(600);
    let mut encoded = Encoded::new(&values);
    let tokens = TokenSet::train(&[(values, None)]).unwrap();
    let Values::Bytes(all) = tokens.values() else { panic!("tokens are bytes") };
    let mut long = BytesColumn::default();
    for at in 0..all.len() {
        long.push(&[all.get(at), &[b'~'; LONGEST]].concat());
    }
    encoded.tokens = encode_values(&Values::Bytes(long));
    for error in encoded.errors(1) {
        assert_eq!(error.map(|error| error.kind()), Some(ErrorKind::Corrupt));
    }
}
