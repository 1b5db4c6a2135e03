//! Draws a result as text while it streams. The first rows are buffered to determine the column
//! widths. If a later row needs more, its column is wider from there on. Values are truncated only
//! where the screen is too narrow.

use super::table::{Layout, Table, fitted};
use nacredb::{Batch, Field};
use std::io::{self, Write};

/// Number of rows, or bytes of text, buffered to determine the column widths.
const HEAD_ROWS: usize = 1000;
const HEAD_BYTES: usize = 1 << 20;

/// Layout of the rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One line per row, below headings.
    Table,
    /// One block of lines per row.
    Blocks,
}

/// A result that is being drawn.
pub struct Drawing {
    shape: Shape,
    layout: Layout,
    /// Buffered rows.
    table: Table,
    bytes: usize,
    /// Column widths that the rows so far need, not limited to the screen.
    widths: Vec<usize>,
    headed: bool,
    drawn: u64,
}

impl Drawing {
    /// Starts drawing a result with these columns.
    pub fn new(columns: &[Field], shape: Shape, layout: Layout) -> Drawing {
        let table = Table::of_columns(columns);
        Drawing { shape, layout, table, bytes: 0, widths: Vec::new(), headed: false, drawn: 0 }
    }

    /// Returns the number of rows so far.
    pub fn rows(&self) -> u64 {
        self.drawn + self.table.len() as u64
    }

    /// Adds at most `at_most` of the first rows of a batch, and draws all buffered rows once the
    /// column widths are determined.
    pub fn add(&mut self, batch: &Batch, at_most: usize, out: &mut dyn Write) -> io::Result<()> {
        self.bytes += self.table.push_batch(batch, at_most);
        let buffers = self.shape == Shape::Table && !self.headed;
        if buffers && self.table.len() < HEAD_ROWS && self.bytes < HEAD_BYTES {
            Ok(())
        } else {
            self.draw(out)
        }
    }

    /// Draws the remaining rows. A table without rows still gets its headings.
    pub fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.draw(out)
    }

    fn draw(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let text = match self.shape {
            Shape::Blocks => self.table.draw_expanded(self.drawn + 1, self.layout),
            Shape::Table => {
                self.widths = self.table.widths(std::mem::take(&mut self.widths));
                let widths = fitted(self.widths.clone(), self.layout.width);
                let head = if self.headed {
                    String::new()
                } else {
                    self.table.draw_headings(&widths, self.layout)
                };
                self.headed = true;
                head + &self.table.draw_rows(&widths, self.layout)
            }
        };
        self.drawn += self.table.len() as u64;
        self.table.clear();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacredb::{DataType, Value, Vector};
    use std::sync::Arc;

    const PLAIN: Layout = Layout { width: None, colors: false };

    fn column() -> Vec<Field> {
        vec![Field { name: "n".into(), data_type: DataType::Int64, nullable: false }]
    }

    fn batch(numbers: impl Iterator<Item = i64>) -> Batch {
        let values: Vec<Value> = numbers.map(Value::Int).collect();
        Batch::new(vec![Arc::new(Vector::from_values(DataType::Int64, &values))], values.len())
    }

    #[test]
    fn only_the_first_rows_are_buffered() {
        let mut drawing = Drawing::new(&column(), Shape::Table, PLAIN);
        let mut out = Vec::new();
        drawing.add(&batch(0..999), usize::MAX, &mut out).unwrap();
        assert!(out.is_empty());
        drawing.add(&batch(999..1001), usize::MAX, &mut out).unwrap();
        let text = String::from_utf8(std::mem::take(&mut out)).unwrap();
        assert!(
            text.starts_with("    n\n─────\n    0\n") && text.ends_with("\n  999\n 1000\n"),
            "{text}"
        );
        // A wider row widens its column and is not truncated.
        drawing.add(&batch(123_456..123_457), usize::MAX, &mut out).unwrap();
        drawing.add(&batch(7..9), 1, &mut out).unwrap();
        drawing.finish(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), " 123456\n      7\n");
        assert_eq!(drawing.rows(), 1003);
    }

    #[test]
    fn an_empty_table_has_headings() {
        let mut out = Vec::new();
        Drawing::new(&column(), Shape::Table, PLAIN).finish(&mut out).unwrap();
        Drawing::new(&column(), Shape::Blocks, PLAIN).finish(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), " n\n──\n");
    }

    #[test]
    fn blocks_are_numbered_across_batches() {
        let mut drawing = Drawing::new(&column(), Shape::Blocks, PLAIN);
        let mut out = Vec::new();
        drawing.add(&batch(5..6), usize::MAX, &mut out).unwrap();
        assert!(!out.is_empty());
        drawing.add(&batch(6..7), usize::MAX, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.contains("─ row 1 ") && text.ends_with("─ row 2 ────────────\n n │ 6\n"),
            "{text}"
        );
    }
}
