//! Rows of plain literals in `INSERT … VALUES`, from the second row on, read directly from the
//! text: building a syntax tree of a thousand rows costs more than writing them.
//!
//! [`find`] cuts them out before the text is tokenised. It is conservative: the first row that does
//! not consist of numbers, texts, booleans and nulls, and everything after it, stays for the
//! parser. After parsing the remaining text, the caller checks that the row before each cut ends
//! exactly where the cut starts, and otherwise parses the whole text. The scanner therefore needs
//! to recognise rows of literals, but not the rest of the language.

use nacre_types::Result;
use sqlparser::tokenizer::Location;

/// A literal as written in the text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Literal<'a> {
    Null,
    Boolean(bool),
    /// Digits, optionally with a decimal point and an exponent.
    Number {
        negative: bool,
        digits: &'a str,
    },
    /// Text between the quotes; quotes inside it are still doubled.
    Text(&'a str),
}

impl Literal<'_> {
    /// Replaces doubled quotes in the content of a text literal.
    pub fn unquoted(text: &str) -> String {
        if text.contains('\'') { text.replace("''", "'") } else { text.to_string() }
    }
}

/// Byte range of the form `, (…), (…)`: rows of literals, each preceded by a comma.
pub(crate) type Cut = std::ops::Range<usize>;

/// Finds the cuts of an SQL text, in ascending order.
pub(crate) fn find(sql: &str) -> Vec<Cut> {
    let mut cuts = Vec::new();
    let mut scanner = Scanner { text: sql, at: 0 };
    while let Some(values) = scanner.values_of_insert() {
        scanner.at = values;
        if scanner.row(&mut |_, _| {}).is_none() {
            return cuts;
        }
        let start = scanner.at;
        while scanner.next_row(&mut |_, _| {}).is_some() {}
        if scanner.at > start {
            cuts.push(start..scanner.at);
        }
        if !scanner.skip_statement() {
            return cuts;
        }
    }
    cuts
}

/// The rows of a cut in the text of a statement.
#[derive(Debug)]
pub(crate) struct LiteralRows {
    cut: Cut,
    /// Start of the statement.
    start: Location,
}

impl LiteralRows {
    pub fn new(cut: Cut, start: Location) -> LiteralRows {
        LiteralRows { cut, start }
    }

    /// Calls `each` on every row: its literals, each with its byte offset in the text of the
    /// statement. Stops at the first error.
    pub fn for_each<'a>(
        &self,
        text: &'a str,
        mut each: impl FnMut(&[(Literal<'a>, usize)]) -> Result<()>,
    ) -> Result<()> {
        let mut scanner = Scanner { text: &text[..self.cut.end], at: self.cut.start };
        let mut row = Vec::new();
        while scanner.next_row(&mut |literal, at| row.push((literal, at))).is_some() {
            each(&row)?;
            row.clear();
        }
        Ok(())
    }

    /// Returns the location of a byte of the statement's text.
    pub fn place(&self, text: &str, at: usize) -> Location {
        text[..at].chars().fold(self.start, after)
    }
}

/// Returns the location after a character, counted like the tokeniser does.
pub(crate) fn after(place: Location, char: char) -> Location {
    match char {
        '\n' => Location::new(place.line + 1, 1),
        _ => Location::new(place.line, place.column + 1),
    }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn skip_while(&mut self, is: impl Fn(u8) -> bool) -> &'a str {
        let start = self.at;
        while self.peek().is_some_and(&is) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    fn word(&mut self) -> &'a str {
        self.skip_while(is_word)
    }

    /// Skips white space, then `byte` if it comes next.
    fn takes(&mut self, byte: u8) -> Option<()> {
        self.skip_space();
        (self.peek() == Some(byte)).then(|| self.at += 1)
    }

    /// Returns the start of the first row if the next statement is an `INSERT … VALUES`.
    fn values_of_insert(&mut self) -> Option<usize> {
        while self.takes(b';').is_some() {}
        let word = self.word();
        if !word.eq_ignore_ascii_case("insert") && !word.eq_ignore_ascii_case("replace") {
            return None;
        }
        let mut depth = 0usize;
        loop {
            self.skip_space();
            match self.peek()? {
                b'(' => depth += 1,
                b')' => depth = depth.checked_sub(1)?,
                b',' | b'.' => {}
                quote @ (b'"' | b'`') => self.skip_quoted(quote)?,
                byte if is_word(byte) => {
                    if self.word().eq_ignore_ascii_case("values") && depth == 0 {
                        self.skip_space();
                        return (self.peek()? == b'(').then_some(self.at);
                    }
                    continue;
                }
                _ => return None,
            }
            self.at += 1;
        }
    }

    /// Moves from an opening quote to the closing one.
    fn skip_quoted(&mut self, quote: u8) -> Option<()> {
        let rest = self.text.as_bytes().get(self.at + 1..)?;
        // A doubled quote scans as two adjacent quoted pieces.
        self.at += 1 + rest.iter().position(|byte| *byte == quote)?;
        Some(())
    }

    /// Moves to the semicolon that ends the statement. Returns `false` if its end is not obvious.
    fn skip_statement(&mut self) -> bool {
        while let Some(byte) = self.peek() {
            match byte {
                b';' => return true,
                // A letter before a quote, as in `E'…'`, may change how the literal is read.
                b'\'' | b'"' | b'`'
                    if !self.is_behind_word() && self.skip_quoted(byte).is_some() => {}
                b'\'' | b'"' | b'`' | b'-' | b'/' | b'#' | b'$' => return false,
                _ => {}
            }
            self.at += 1;
        }
        false
    }

    fn is_behind_word(&self) -> bool {
        self.at
            .checked_sub(1)
            .and_then(|before| self.text.as_bytes().get(before))
            .is_some_and(|byte| is_word(*byte))
    }

    /// Reads a comma and a row of literals. If something else comes next, returns `None` and does
    /// not move.
    fn next_row(&mut self, each: &mut dyn FnMut(Literal<'a>, usize)) -> Option<()> {
        let start = self.at;
        let row = self.takes(b',').and_then(|()| self.row(each));
        if row.is_none() {
            self.at = start;
        }
        row
    }

    fn row(&mut self, each: &mut dyn FnMut(Literal<'a>, usize)) -> Option<()> {
        self.takes(b'(')?;
        loop {
            self.skip_space();
            let (literal, at) = self.literal()?;
            each(literal, at);
            self.skip_space();
            self.at += 1;
            match self.text.as_bytes().get(self.at - 1)? {
                b',' => {}
                b')' => return Some(()),
                _ => return None,
            }
        }
    }

    /// Reads a literal. Returns it with its start, which for a negative number is the first digit.
    fn literal(&mut self) -> Option<(Literal<'a>, usize)> {
        let start = self.at;
        match self.peek()? {
            b'\'' => loop {
                self.skip_quoted(b'\'')?;
                self.at += 1;
                if self.peek() != Some(b'\'') {
                    return Some((Literal::Text(self.text.get(start + 1..self.at - 1)?), start));
                }
            },
            b'-' => {
                self.at += 1;
                Some((Literal::Number { negative: true, digits: self.number()? }, start + 1))
            }
            byte if byte.is_ascii_digit() => {
                Some((Literal::Number { negative: false, digits: self.number()? }, start))
            }
            _ => {
                let word = self.word();
                let is = |known: &str| word.eq_ignore_ascii_case(known);
                let literal = if is("null") {
                    Literal::Null
                } else if is("true") || is("false") {
                    Literal::Boolean(is("true"))
                } else {
                    return None;
                };
                Some((literal, start))
            }
        }
    }

    fn number(&mut self) -> Option<&'a str> {
        let start = self.at;
        if self.skip_while(|byte| byte.is_ascii_digit()).is_empty() {
            return None;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.skip_while(|byte| byte.is_ascii_digit());
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            if self.skip_while(|byte| byte.is_ascii_digit()).is_empty() {
                return None;
            }
        }
        self.text.get(start..self.at)
    }
}

/// Whether a byte may be part of a name or keyword; every non-ASCII byte may.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || !byte.is_ascii()
}
