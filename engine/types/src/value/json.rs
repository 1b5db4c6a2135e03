//! Validation of JSON text (RFC 8259). JSON values are stored as text.

use crate::{Error, Result};

const MAX_DEPTH: usize = 256;

/// Returns an error with SQLSTATE `22032` and the byte offset if the text is not one JSON value.
pub fn check(text: &str) -> Result<()> {
    let mut parser = Parser { bytes: text.as_bytes(), at: 0 };
    if parser.value(0).is_some() {
        parser.blanks();
        if parser.at == parser.bytes.len() {
            return Ok(());
        }
    }
    Err(Error::type_error(format!("invalid JSON at byte {}", parser.at)).with_sqlstate("22032"))
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> Option<()> {
        (self.peek() == Some(byte)).then(|| self.at += 1)
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        self.blanks();
        if depth > MAX_DEPTH {
            return None;
        }
        match self.peek()? {
            b'{' => self.list(b'}', depth, true),
            b'[' => self.list(b']', depth, false),
            b'"' => self.string(),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.number(),
        }
    }

    fn list(&mut self, close: u8, depth: usize, keyed: bool) -> Option<()> {
        self.at += 1;
        self.blanks();
        if self.eat(close).is_some() {
            return Some(());
        }
        loop {
            if keyed {
                self.blanks();
                self.string()?;
                self.blanks();
                self.eat(b':')?;
            }
            self.value(depth + 1)?;
            self.blanks();
            if self.eat(b',').is_none() {
                return self.eat(close);
            }
        }
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.bytes.get(self.at..)?.starts_with(word).then(|| self.at += word.len())
    }

    fn string(&mut self) -> Option<()> {
        self.eat(b'"')?;
        loop {
            match self.peek()? {
                b'"' => return self.eat(b'"'),
                b'\\' => {
                    self.at += 1;
                    match self.peek()? {
                        b'u' => {
                            let digits = self.bytes.get(self.at + 1..self.at + 5)?;
                            digits.iter().all(u8::is_ascii_hexdigit).then(|| self.at += 5)?;
                        }
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
                        _ => return None,
                    }
                }
                0..0x20 => return None,
                _ => self.at += 1,
            }
        }
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn number(&mut self) -> Option<()> {
        let _ = self.eat(b'-');
        if self.eat(b'0').is_none() {
            self.digits()?;
        }
        if self.eat(b'.').is_some() {
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(())
    }
}
