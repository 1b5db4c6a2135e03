//! The reader: one token after the other, with their places in the text.

use super::string::{scan, unquoted};
use crate::limits::MAX_JSON_DEPTH;
use crate::{Error, Result};
use std::borrow::Cow;
use std::ops::Range;

/// A token of JSON text. Commas, colons and blanks are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// `{`
    ObjectStart,
    /// `}`
    ObjectEnd,
    /// `[`
    ArrayStart,
    /// `]`
    ArrayEnd,
    /// The key of the value that follows; its characters. A lone surrogate is U+FFFD.
    Key(Cow<'a, str>),
    /// A string's characters. A lone surrogate is U+FFFD: [`Tokens::text`] has it as written.
    String(Cow<'a, str>),
    /// A number as it is written.
    Number(&'a str),
    /// `true` or `false`
    Bool(bool),
    /// `null`
    Null,
}

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Value,
    FirstKey,
    FirstElement,
    /// A comma or the end of the container.
    Comma,
    End,
}

/// Reads the tokens of a JSON text, and checks it on the way.
///
/// ```
/// use nacre_types::json::{Token, Tokens};
/// let mut tokens = Tokens::new(r#"{"a": [1, 2], "b": true}"#);
/// assert_eq!(tokens.next()?, Some(Token::ObjectStart));
/// assert_eq!(tokens.next()?, Some(Token::Key("a".into())));
/// assert_eq!(tokens.value()?, Some("[1, 2]"));
/// assert_eq!(tokens.next()?, Some(Token::Key("b".into())));
/// assert_eq!(tokens.next()?, Some(Token::Bool(true)));
/// assert_eq!(tokens.next()?, Some(Token::ObjectEnd));
/// assert_eq!(tokens.next()?, None);
/// # Ok::<(), nacre_types::Error>(())
/// ```
pub struct Tokens<'a> {
    text: &'a str,
    /// Where reading goes on.
    at: usize,
    /// The last token.
    last: Range<usize>,
    expected: Expected,
    /// The open containers: whether each is an object.
    open: Vec<bool>,
    normal: bool,
}

impl<'a> Tokens<'a> {
    /// Reads one JSON value and nothing after it but blanks.
    pub fn new(text: &'a str) -> Tokens<'a> {
        Tokens {
            text,
            at: 0,
            last: 0..0,
            expected: Expected::Value,
            open: Vec::new(),
            normal: true,
        }
    }

    /// The next token; `None` at the end of the text.
    ///
    /// # Errors
    /// `type` with SQLSTATE `22032` and the byte offset if the text is not JSON; `limit` beyond
    /// [`MAX_JSON_DEPTH`] levels. After an error the reader must not be used again.
    #[allow(clippy::should_implement_trait, reason = "a token is read or fails; `?` reads best so")]
    pub fn next(&mut self) -> Result<Option<Token<'a>>> {
        let mut byte = self.peek();
        match (self.expected, byte) {
            (Expected::End, None) => return Ok(None),
            (Expected::Comma, Some(b',')) => {
                self.at += 1;
                byte = self.peek();
                if self.open.last() == Some(&true) {
                    return self.key(byte).map(Some);
                }
            }
            (Expected::Comma | Expected::FirstKey | Expected::FirstElement, Some(b'}' | b']')) => {
                return self.close(byte == Some(b'}')).map(Some);
            }
            (Expected::FirstKey, _) => return self.key(byte).map(Some),
            (Expected::Value | Expected::FirstElement, _) => {}
            (Expected::Comma | Expected::End, _) => return Err(invalid(self.at)),
        }
        self.scalar_or_start(byte).map(Some)
    }

    /// Offset of the byte where reading goes on: after the last token, and after the colon of a key.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Byte range of the last token; of a key or string, with its quotes.
    pub fn range(&self) -> Range<usize> {
        self.last.clone()
    }

    /// The last token as written.
    pub fn text(&self) -> &'a str {
        &self.text[self.last.clone()]
    }

    /// Number of containers that are open.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// Reads the rest of the value that the last token began: if it opened a container, up to the
    /// end of that. The last token is its end then.
    pub fn finish(&mut self) -> Result<()> {
        if !matches!(self.expected, Expected::FirstKey | Expected::FirstElement) {
            return Ok(());
        }
        let outside = self.open.len() - 1;
        while self.open.len() > outside {
            if self.next()?.is_none() {
                return Err(invalid(self.at));
            }
        }
        Ok(())
    }

    /// Reads the next value whole and returns its text. After a key it is that of the key; in an
    /// array, the next element. `None` at the end of the container, which is read, or of the text.
    pub fn value(&mut self) -> Result<Option<&'a str>> {
        match self.next()? {
            None | Some(Token::ObjectEnd | Token::ArrayEnd) => return Ok(None),
            // The value of the key is what is wanted.
            Some(Token::Key(_)) => return self.value(),
            Some(_) => {}
        }
        let start = self.last.start;
        self.finish()?;
        Ok(Some(&self.text[start..self.last.end]))
    }

    /// Whether everything so far is as in the normal form, apart from equal keys.
    pub fn is_normal(&self) -> bool {
        self.normal
    }

    /// The next byte that is no blank, at `at`.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(self.at) {
            self.at += 1;
            self.normal = false;
        }
        bytes.get(self.at).copied()
    }

    /// Makes the bytes up to `end` the last token.
    fn take(&mut self, end: usize) {
        debug_assert!(end > self.at, "a token without bytes");
        self.last = self.at..end;
        self.at = end;
    }

    /// Takes the last token of a value.
    fn complete(&mut self, end: usize) {
        self.take(end);
        self.expected = if self.open.is_empty() { Expected::End } else { Expected::Comma };
    }

    fn scalar_or_start(&mut self, byte: Option<u8>) -> Result<Token<'a>> {
        match byte {
            Some(b'{') => self.start(true),
            Some(b'[') => self.start(false),
            Some(b'"') => {
                let (end, characters) = self.string()?;
                self.complete(end);
                Ok(Token::String(characters))
            }
            Some(b't') => self.word("true", Token::Bool(true)),
            Some(b'f') => self.word("false", Token::Bool(false)),
            Some(b'n') => self.word("null", Token::Null),
            _ => {
                self.complete(number(self.text.as_bytes(), self.at).map_err(invalid)?);
                Ok(Token::Number(self.text()))
            }
        }
    }

    fn start(&mut self, object: bool) -> Result<Token<'a>> {
        if self.open.len() == MAX_JSON_DEPTH {
            return Err(Error::limit(format!("JSON of more than {MAX_JSON_DEPTH} levels")));
        }
        self.open.push(object);
        self.take(self.at + 1);
        let (expected, token) = match object {
            true => (Expected::FirstKey, Token::ObjectStart),
            false => (Expected::FirstElement, Token::ArrayStart),
        };
        self.expected = expected;
        Ok(token)
    }

    fn close(&mut self, object: bool) -> Result<Token<'a>> {
        if self.open.last() != Some(&object) {
            return Err(invalid(self.at));
        }
        self.open.pop();
        self.complete(self.at + 1);
        Ok(if object { Token::ObjectEnd } else { Token::ArrayEnd })
    }

    fn key(&mut self, byte: Option<u8>) -> Result<Token<'a>> {
        if byte != Some(b'"') {
            return Err(invalid(self.at));
        }
        let (end, characters) = self.string()?;
        self.take(end);
        if self.peek() != Some(b':') {
            return Err(invalid(self.at));
        }
        self.at += 1;
        self.expected = Expected::Value;
        Ok(Token::Key(characters))
    }

    /// The string that begins here: its end and its characters.
    fn string(&mut self) -> Result<(usize, Cow<'a, str>)> {
        let (end, found) = scan(self.text.as_bytes(), self.at).map_err(invalid)?;
        self.normal &= !found.abnormal;
        let text = &self.text[self.at..end];
        Ok(match found.escapes {
            true => (end, unquoted(text)),
            false => (end, Cow::Borrowed(&text[1..text.len() - 1])),
        })
    }

    fn word(&mut self, word: &str, token: Token<'a>) -> Result<Token<'a>> {
        let found = self.text.as_bytes()[self.at..].iter();
        let same = found.zip(word.bytes()).take_while(|(a, b)| **a == *b).count();
        if same < word.len() {
            return Err(invalid(self.at + same));
        }
        self.complete(self.at + word.len());
        Ok(token)
    }
}

/// Scans a number: its end, or the offset of the byte that is wrong.
fn number(bytes: &[u8], start: usize) -> Result<usize, usize> {
    let digits = |from: usize| {
        let count = bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count > 0 { Ok(from + count) } else { Err(from) }
    };
    let mut at = start + usize::from(bytes.get(start) == Some(&b'-'));
    at = match bytes.get(at) {
        Some(b'0') => at + 1,
        _ => digits(at)?,
    };
    if bytes.get(at) == Some(&b'.') {
        at = digits(at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        let signed = matches!(bytes.get(at + 1), Some(b'+' | b'-'));
        at = digits(at + 1 + usize::from(signed))?;
    }
    Ok(at)
}

#[cold]
fn invalid(at: usize) -> Error {
    Error::type_error(format!("invalid JSON at byte {at}")).with_sqlstate("22032")
}
