//! Rows of plain literals after the first one of an `INSERT … VALUES`, read straight from the text: a syntax tree of a
//! thousand rows costs more than writing them.
//!
//! [`find`] cuts them out before the text is tokenized, conservatively: what is not obviously a row of numbers, texts,
//! booleans and nulls, and everything after it, stays for the parser. The parser of what is left makes sure that the
//! parser saw the row before the cut end where the cut begins, and parses the whole text where it did not; so this
//! scanner need not know all of the language, only what a row of literals is.

use nacre_types::Result;
use sqlparser::tokenizer::Location;

/// A literal as it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Literal<'a> {
    Null,
    Boolean(bool),
    /// Digits, perhaps with a point and an exponent.
    Number {
        negative: bool,
        digits: &'a str,
    },
    /// What is between the quotes; quotes within are doubled.
    Text(&'a str),
}

impl Literal<'_> {
    /// A text literal's text.
    pub fn unquoted(text: &str) -> String {
        if text.contains('\'') { text.replace("''", "'") } else { text.to_string() }
    }
}

/// Bytes of a text that are `, (…), (…)`: rows of literals, each with a comma before it.
pub(crate) type Cut = std::ops::Range<usize>;

/// The cuts of a text, ascending.
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
    /// Where the statement begins.
    start: Location,
}

impl LiteralRows {
    pub fn new(cut: Cut, start: Location) -> LiteralRows {
        LiteralRows { cut, start }
    }

    /// Gives `each` every row of the statement: its literals, and which bytes of the text they begin at. An error ends
    /// the walk.
    pub fn for_each<'a>(
        &self,
        text: &'a str,
        mut each: impl FnMut(&[(Literal<'a>, usize)]) -> Result<()>,
    ) -> Result<()> {
        let mut scanner =
            Scanner { text: text.get(..self.cut.end).unwrap_or(text), at: self.cut.start };
        let mut row = Vec::new();
        while scanner.next_row(&mut |literal, at| row.push((literal, at))).is_some() {
            each(&row)?;
            row.clear();
        }
        Ok(())
    }

    /// The place of a byte of the statement's text.
    pub fn place(&self, text: &str, at: usize) -> Location {
        text.get(..at).unwrap_or(text).chars().fold(self.start, after)
    }
}

/// The place after a character, as the tokenizer counts.
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
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn word(&mut self) -> &'a str {
        self.skip_while(is_word)
    }

    fn takes(&mut self, byte: u8) -> Option<()> {
        self.skip_space();
        (self.peek() == Some(byte)).then(|| self.at += 1)
    }

    /// Where the first row of the next statement begins, if that is an insert of rows.
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

    /// To the last byte of something in quotes, whose first is next.
    fn skip_quoted(&mut self, quote: u8) -> Option<()> {
        let rest = self.text.as_bytes().get(self.at + 1..)?;
        // Doubled quotes are two quoted pieces without anything between them.
        self.at += 1 + rest.iter().position(|byte| *byte == quote)?;
        Some(())
    }

    /// Behind the semicolon that ends the statement; `false` when it is not obvious where that is.
    fn skip_statement(&mut self) -> bool {
        while let Some(byte) = self.peek() {
            match byte {
                b';' => return true,
                // Before a quote a letter may say that it is read in another way.
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

    /// A row of literals and the comma before it; nothing, and no step further, if that is not what comes.
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

    /// A literal and where it begins: a number behind its sign.
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

/// Part of a name or a keyword; any letter beyond ASCII may be.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || !byte.is_ascii()
}
