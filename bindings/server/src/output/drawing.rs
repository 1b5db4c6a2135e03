//! A result for people while it comes. The widths of a table's columns follow from its first rows, which are held until
//! there are enough of them; where a later row needs more, its column is wider from there on. Nothing is cut but what
//! the screen has no room for.

use super::table::{Layout, Table, fitted};
use nacredb::{Batch, Field};
use std::io::{self, Write};

/// So many rows, or bytes of text, decide on the widths at first.
const HEAD_ROWS: usize = 1000;
const HEAD_BYTES: usize = 1 << 20;

/// How rows are drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A line each, below headings.
    Table,
    /// A block of lines each.
    Blocks,
}

/// See the module.
pub struct Drawing {
    shape: Shape,
    layout: Layout,
    /// Rows that are not drawn yet.
    table: Table,
    bytes: usize,
    /// What the columns need, as far as is known.
    widths: Vec<usize>,
    headed: bool,
    drawn: u64,
}

impl Drawing {
    /// Of a result with these columns.
    pub fn new(columns: &[Field], shape: Shape, layout: Layout) -> Drawing {
        let table = Table::of_columns(columns);
        Drawing { shape, layout, table, bytes: 0, widths: Vec::new(), headed: false, drawn: 0 }
    }

    /// Number of rows so far.
    pub fn rows(&self) -> u64 {
        self.drawn + self.table.len() as u64
    }

    /// Takes the first rows of a batch, at most so many, and draws what can be.
    pub fn add(&mut self, batch: &Batch, at_most: usize, out: &mut dyn Write) -> io::Result<()> {
        self.bytes += self.table.push_batch(batch, at_most);
        let waits = self.shape == Shape::Table && !self.headed;
        if waits && self.table.len() < HEAD_ROWS && self.bytes < HEAD_BYTES {
            Ok(())
        } else {
            self.draw(out)
        }
    }

    /// Draws what is left; the headings too when there were no rows.
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
    fn the_head_is_held_and_no_more() {
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
        // Wider rows make the column wider, and nothing is cut.
        drawing.add(&batch(123_456..123_457), usize::MAX, &mut out).unwrap();
        drawing.add(&batch(7..9), 1, &mut out).unwrap();
        drawing.finish(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), " 123456\n      7\n");
        assert_eq!(drawing.rows(), 1003);
    }

    #[test]
    fn headings_come_without_rows_too() {
        let mut out = Vec::new();
        Drawing::new(&column(), Shape::Table, PLAIN).finish(&mut out).unwrap();
        Drawing::new(&column(), Shape::Blocks, PLAIN).finish(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), " n\n──\n");
    }

    #[test]
    fn blocks_are_numbered_through() {
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
