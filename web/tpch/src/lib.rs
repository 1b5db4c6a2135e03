//! TPC-H rows for the demo, made in the browser.
//!
//! Owns: turning the `tpchgen` row iterators into text that a page can take in slices. A slice is a run of whole
//! TBL lines (`value|value|…|` and a line feed), which is the generator's own format, so nothing is converted here.
//!
//! Every column but the comments is byte for byte what the official generator makes. Comments are cut out of a pool
//! of sentences, and the official pool is 300 MB: far too much for a tab. Ours is made by the same grammar from the
//! same seed and is merely shorter ([`POOL_BYTES`]), so comments have the right lengths and words, at other places.
//!
//! Does not do: types, SQL, storage. This module never sees the engine, and the engine never sees it.

use std::fmt::Write as _;
use std::sync::OnceLock;

use tpchgen::distribution::Distributions;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};
use tpchgen::text::TextPool;
use wasm_bindgen::prelude::wasm_bindgen;

/// Length of the pool that comments are cut from.
const POOL_BYTES: i32 = 4 * 1024 * 1024;

static POOL: OnceLock<TextPool> = OnceLock::new();

fn pool() -> &'static TextPool {
    POOL.get_or_init(|| TextPool::new(POOL_BYTES, Distributions::static_default()))
}

/// Appends the next row to the text; `false` when there is none.
type Source = Box<dyn FnMut(&mut String) -> bool>;

fn source<R: std::fmt::Display + 'static>(mut rows: impl Iterator<Item = R> + 'static) -> Source {
    Box::new(move |text| match rows.next() {
        // Writing to a String cannot fail.
        Some(row) => writeln!(text, "{row}").is_ok(),
        None => false,
    })
}

/// The rows of one table, handed out in slices.
#[wasm_bindgen]
pub struct Rows {
    source: Source,
    total: u32,
    left: u32,
}

#[wasm_bindgen]
impl Rows {
    /// Starts a table. `undefined` when TPC-H has no table of that name.
    pub fn of(table: &str, scale: f64) -> Option<Rows> {
        let words = Distributions::static_default();
        let (source, total) = match table {
            "region" => (
                source(RegionGenerator::new_with_distributions_and_text_pool(words, pool()).iter()),
                5,
            ),
            "nation" => (
                source(NationGenerator::new_with_distributions_and_text_pool(words, pool()).iter()),
                25,
            ),
            "part" => (
                source(
                    PartGenerator::new_with_distributions_and_text_pool(scale, 1, 1, words, pool())
                        .iter(),
                ),
                PartGenerator::calculate_row_count(scale, 1, 1),
            ),
            "supplier" => (
                source(
                    SupplierGenerator::new_with_distributions_and_text_pool(
                        scale,
                        1,
                        1,
                        words,
                        pool(),
                    )
                    .iter(),
                ),
                SupplierGenerator::calculate_row_count(scale, 1, 1),
            ),
            "partsupp" => (
                source(PartSuppGenerator::new_with_text_pool(scale, 1, 1, pool()).iter()),
                4 * PartSuppGenerator::calculate_row_count(scale, 1, 1),
            ),
            "customer" => (
                source(
                    CustomerGenerator::new_with_distributions_and_text_pool(
                        scale,
                        1,
                        1,
                        words,
                        pool(),
                    )
                    .iter(),
                ),
                CustomerGenerator::calculate_row_count(scale, 1, 1),
            ),
            "orders" => (
                source(
                    OrderGenerator::new_with_distributions_and_text_pool(
                        scale,
                        1,
                        1,
                        words,
                        pool(),
                    )
                    .iter(),
                ),
                OrderGenerator::calculate_row_count(scale, 1, 1),
            ),
            // An order has one to seven lines, so their number is only known by making them; without the text that
            // takes a fraction of the time.
            "lineitem" => (
                source(
                    LineItemGenerator::new_with_distributions_and_text_pool(
                        scale,
                        1,
                        1,
                        words,
                        pool(),
                    )
                    .iter(),
                ),
                LineItemGenerator::new_with_distributions_and_text_pool(scale, 1, 1, words, pool())
                    .iter()
                    .count() as i64,
            ),
            _ => return None,
        };
        let total = u32::try_from(total).unwrap_or(u32::MAX);
        Some(Rows { source, total, left: total })
    }

    /// How many rows the table has.
    #[wasm_bindgen(getter)]
    pub fn total(&self) -> u32 {
        self.total
    }

    /// How many have not been handed out.
    #[wasm_bindgen(getter)]
    pub fn left(&self) -> u32 {
        self.left
    }

    /// The next `count` rows, or as many as there are, as TBL lines; empty at the end.
    pub fn take(&mut self, count: u32) -> String {
        let mut text = String::with_capacity(count.min(self.left) as usize * 160);
        for _ in 0..count.min(self.left) {
            if !(self.source)(&mut text) {
                self.left = 0;
                break;
            }
            self.left -= 1;
        }
        text
    }
}

#[cfg(test)]
mod tests;
