//! Draws tables fitted to a screen width: the widest columns are truncated first, with `…`. Control
//! characters never reach the terminal. With colours on, null is styled to differ from the text
//! `NULL`.

use super::Cell;
use crate::terminal;
use console::Style;
use nacredb::{Batch, Field};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A cell of a drawn table.
#[derive(Clone, Debug)]
enum Content {
    Null,
    Text(String),
}

/// A table of text cells with headings.
pub struct Table {
    headings: Vec<String>,
    /// Whether each column is right-aligned, as numbers are.
    right: Vec<bool>,
    rows: Vec<Vec<Content>>,
}

/// How a table is drawn.
#[derive(Clone, Copy)]
pub struct Layout {
    /// Screen width in characters; `None` is unlimited.
    pub width: Option<usize>,
    /// Whether to use colours.
    pub colors: bool,
}

impl Layout {
    /// Returns the layout that suits standard output.
    pub fn of_stdout() -> Layout {
        Layout { width: terminal::width(), colors: terminal::stdout_colors() }
    }
}

const NULL: &str = "NULL";
/// Minimum width to which a column is truncated.
const NARROW: usize = 6;

impl Table {
    /// Creates an empty table. Each heading comes with whether its column is right-aligned.
    pub fn new(headings: &[(&str, bool)]) -> Table {
        Table {
            headings: headings.iter().map(|(name, _)| clean(name)).collect(),
            right: headings.iter().map(|(_, right)| *right).collect(),
            rows: Vec::new(),
        }
    }

    /// Appends a row of texts.
    pub fn push<const N: usize>(&mut self, row: [String; N]) {
        debug_assert_eq!(row.len(), self.headings.len());
        self.rows.push(row.iter().map(|text| Content::Text(clean(text))).collect());
    }

    /// Creates an empty table for the columns of a result.
    pub fn of_columns(columns: &[Field]) -> Table {
        let headings: Vec<(&str, bool)> =
            columns.iter().map(|c| (c.name.as_str(), c.data_type.is_numeric())).collect();
        Table::new(&headings)
    }

    /// Appends at most `at_most` of the first rows of a batch. Returns the bytes of text appended.
    pub fn push_batch(&mut self, batch: &Batch, at_most: usize) -> usize {
        let (mut text, mut bytes) = (String::new(), 0);
        for at in 0..batch.selected().min(at_most) {
            let row = batch.selection.as_ref().map_or(at, |s| s[at] as usize);
            let cells = batch.columns.iter().map(|vector| match Cell::of(vector, row) {
                Cell::Null => Content::Null,
                cell => {
                    text.clear();
                    cell.push_text(&mut text);
                    bytes += text.len();
                    Content::Text(clean(&text))
                }
            });
            self.rows.push(cells.collect());
        }
        bytes
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        self.rows.clear();
    }

    /// Draws the headings and the rows.
    pub fn draw(&self, layout: Layout) -> String {
        let widths = fitted(self.widths(Vec::new()), layout.width);
        self.draw_headings(&widths, layout) + &self.draw_rows(&widths, layout)
    }

    /// Draws the headings and the rule below them.
    pub fn draw_headings(&self, widths: &[usize], layout: Layout) -> String {
        let bold = Style::new().bold().force_styling(layout.colors);
        let mut out = String::new();
        let headings = self.headings.iter().zip(self.columns(widths));
        line(&mut out, &mut headings.map(|(name, (w, r))| (fit(name, w), w, r, Some(&bold))));
        let rule: Vec<String> = widths.iter().map(|w| "─".repeat(w + 2)).collect();
        let rule = rule.join("┼");
        out.extend(rule.chars().take(rule.chars().count().saturating_sub(1)));
        out.push('\n');
        out
    }

    /// Draws the rows, without headings.
    pub fn draw_rows(&self, widths: &[usize], layout: Layout) -> String {
        let dim = Style::new().dim().italic().force_styling(layout.colors);
        let mut out = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(self.columns(widths)).map(|(cell, (w, r))| match cell {
                Content::Null => (fit(NULL, w), w, r, Some(&dim)),
                Content::Text(text) => (fit(text, w), w, r, None),
            });
            line(&mut out, &mut { cells });
        }
        out
    }

    fn columns<'a>(&'a self, widths: &'a [usize]) -> impl Iterator<Item = (usize, bool)> + 'a {
        widths.iter().copied().zip(self.right.iter().copied())
    }

    /// Draws each row as a block of `name │ value` lines. The first is row number `from`.
    pub fn draw_expanded(&self, from: u64, layout: Layout) -> String {
        let bold = Style::new().bold().force_styling(layout.colors);
        let dim = Style::new().dim().italic().force_styling(layout.colors);
        let names = self.headings.iter().map(|name| name.width()).max().unwrap_or(0);
        let room = layout.width.map_or(usize::MAX, |w| w.saturating_sub(names + 4).max(NARROW));
        let mut out = String::new();
        for (number, row) in (from..).zip(&self.rows) {
            out.push_str(&format!("─ row {number} {}\n", "─".repeat(names.max(12))));
            for (name, cell) in self.headings.iter().zip(row) {
                let pad = " ".repeat(names - name.width());
                let value = match cell {
                    Content::Null => dim.apply_to(NULL).to_string(),
                    Content::Text(text) => fit(text, room),
                };
                out.push_str(format!(" {}{pad} │ {value}", bold.apply_to(name)).trim_end());
                out.push('\n');
            }
        }
        out
    }

    /// Widens the given column widths to what the headings and rows need.
    pub fn widths(&self, mut widths: Vec<usize>) -> Vec<usize> {
        widths.resize(self.headings.len(), 0);
        for (width, name) in widths.iter_mut().zip(&self.headings) {
            *width = (*width).max(name.width());
        }
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(match cell {
                    Content::Null => NULL.len(),
                    Content::Text(text) => text.width(),
                });
            }
        }
        widths
    }
}

/// Reduces column widths to fit a screen.
pub fn fitted(mut widths: Vec<usize>, screen: Option<usize>) -> Vec<usize> {
    let Some(screen) = screen else { return widths };
    let frame = 1 + 3 * widths.len().saturating_sub(1);
    let room = screen.saturating_sub(frame);
    // Reduce the widest columns to the next smaller width until everything fits.
    while widths.iter().sum::<usize>() > room {
        let widest = widths.iter().copied().max().unwrap_or(0);
        if widest <= NARROW {
            break;
        }
        let count = widths.iter().filter(|w| **w == widest).count();
        let next = widths.iter().copied().filter(|w| *w < widest).max().unwrap_or(0).max(NARROW);
        let excess = widths.iter().sum::<usize>() - room;
        let step = (widest - next).min(excess.div_ceil(count)).max(1);
        widths.iter_mut().filter(|w| **w == widest).for_each(|w| *w -= step);
    }
    widths
}

/// Appends one line of cells, each given as text, width, whether it is right-aligned, and style.
fn line(out: &mut String, cells: &mut dyn Iterator<Item = (String, usize, bool, Option<&Style>)>) {
    let mut row = String::new();
    for (text, width, right, style) in cells {
        row.push_str(if row.is_empty() { " " } else { " │ " });
        let pad = " ".repeat(width.saturating_sub(text.width()));
        let text = style.map_or_else(|| text.clone(), |s| s.apply_to(&text).to_string());
        row.push_str(&if right { pad + &text } else { text + &pad });
    }
    out.push_str(row.trim_end());
    out.push('\n');
}

/// Makes line breaks and tabs visible and replaces other control characters.
fn clean(text: &str) -> String {
    if !text.contains(|c: char| c.is_control()) {
        return text.to_owned();
    }
    text.chars()
        .map(|c| match c {
            '\n' => '↵',
            '\t' => '→',
            c => terminal::visible(c),
        })
        .collect()
}

/// Truncates text to a width, with `…`.
fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    const PLAIN: Layout = Layout { width: None, colors: false };

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&[("name", false), ("n", true)]);
        table.push(["日本".into(), "7".into()]);
        table.push(["a".into(), "1,000".into()]);
        assert_eq!(
            table.draw(PLAIN),
            " name │     n\n──────┼──────\n 日本 │     7\n a    │ 1,000\n"
        );
    }

    #[test]
    fn a_narrow_screen_truncates_the_widest_column() {
        let mut table = Table::new(&[("id", true), ("text", false)]);
        table.push(["1".into(), "x".repeat(100)]);
        let drawn = table.draw(Layout { width: Some(20), colors: false });
        assert!(drawn.lines().all(|line| line.width() <= 20), "{drawn}");
        assert!(drawn.contains("x…"), "{drawn}");
    }

    #[test]
    fn control_characters_do_not_reach_the_screen() {
        let mut table = Table::new(&[("t", false)]);
        table.push(["a\u{1b}[31m\nb".into()]);
        let drawn = table.draw(PLAIN);
        assert!(drawn.contains("a\u{fffd}[31m↵b"), "{drawn}");
    }

    #[test]
    fn push_batch_limits_rows() {
        let (columns, batches) = sample();
        let mut table = Table::of_columns(&columns);
        table.push_batch(&batches[0], 1);
        assert_eq!(table.len(), 1);
        table.clear();
        table.push_batch(&batches[0], 10);
        assert_eq!(table.len(), 2);
        let expanded = table.draw_expanded(8, PLAIN);
        assert!(expanded.contains("─ row 8 ") && expanded.contains("─ row 9 "), "{expanded}");
        assert!(expanded.contains(" price │ -12.30\n"), "{expanded}");
        assert!(expanded.contains(" price │ NULL\n"), "{expanded}");
    }
}
