//! Generates TPC-H rows for the demo, in the browser.
//!
//! The rows of `tpchgen` come as text in slices. A slice consists of whole TBL lines
//! (`value|value|…|` and a line feed), the generator's own format, so nothing is converted here.
//!
//! Every column except the comments is byte for byte the official generator's. Comments are cut
//! from a pool of sentences, and the official pool of 300 MB is too large for a tab. This pool
//! follows the same grammar from the same seed, but is shorter ([`POOL_BYTES`]): comments have the
//! right lengths and words, in other places.
//!
//! The module knows no types, no SQL and no storage; it and the engine do not know each other.

use std::fmt::Write as _;
use std::sync::OnceLock;

use tpchgen::distribution::Distributions;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};
use tpchgen::text::TextPool;
use wasm_bindgen::prelude::wasm_bindgen;

/// Length of the pool that comments are cut from, in bytes.
const POOL_BYTES: i32 = 4 * 1024 * 1024;

static POOL: OnceLock<TextPool> = OnceLock::new();

fn pool() -> &'static TextPool {
    POOL.get_or_init(|| TextPool::new(POOL_BYTES, Distributions::static_default()))
}

/// Appends the next row to the text; `false` if there is none.
type Source = Box<dyn FnMut(&mut String) -> bool>;

fn source<R: std::fmt::Display + 'static>(mut rows: impl Iterator<Item = R> + 'static) -> Source {
    Box::new(move |text| match rows.next() {
        // Writing to a String cannot fail.
        Some(row) => writeln!(text, "{row}").is_ok(),
        None => false,
    })
}

/// The rows of one table, taken in slices.
#[wasm_bindgen]
pub struct Rows {
    source: Source,
    total: u32,
    left: u32,
}

#[wasm_bindgen]
impl Rows {
    /// Starts a table. `undefined` if TPC-H has no table of that name.
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
            // An order has one to seven lines, so only generating them gives their number. Without
            // formatting, that takes a fraction of the time.
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

    /// Number of rows of the table.
    #[wasm_bindgen(getter)]
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Number of rows that have not been taken.
    #[wasm_bindgen(getter)]
    pub fn left(&self) -> u32 {
        self.left
    }

    /// Takes the next `count` rows, or fewer at the end, as TBL lines. Empty after the last row.
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
