//! The writer of the normal form.

use super::string::{normal_string, put_quoted};
use super::tokens::Token;

/// Writes a JSON value token by token. The caller's tokens must make up a value.
///
/// ```
/// use nacre_types::json::Writer;
/// let mut writer = Writer::default();
/// writer.object_start();
/// writer.key("a");
/// writer.array_start();
/// writer.number("1.0");
/// writer.string("\"");
/// writer.array_end();
/// writer.object_end();
/// assert_eq!(writer.finish(), r#"{"a":[1.0,"\""]}"#);
/// ```
#[derive(Debug, Default)]
pub struct Writer {
    out: String,
}

impl Writer {
    /// A writer with room for this many bytes.
    pub fn with_capacity(bytes: usize) -> Writer {
        Writer { out: String::with_capacity(bytes) }
    }

    /// Appends to a text.
    pub fn onto(out: String) -> Writer {
        Writer { out }
    }

    /// Bytes written so far.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// The text.
    pub fn finish(self) -> String {
        self.out
    }

    /// Begins an object.
    pub fn object_start(&mut self) {
        self.separate();
        self.out.push('{');
    }

    /// Ends an object.
    pub fn object_end(&mut self) {
        self.out.push('}');
    }

    /// Begins an array.
    pub fn array_start(&mut self) {
        self.separate();
        self.out.push('[');
    }

    /// Ends an array.
    pub fn array_end(&mut self) {
        self.out.push(']');
    }

    /// A key, of which its object has no equal one.
    pub fn key(&mut self, characters: &str) {
        self.separate();
        put_quoted(&mut self.out, characters);
        self.out.push(':');
    }

    /// A key as a text in quotes: valid, in any form.
    pub fn key_text(&mut self, text: &str) {
        self.separate();
        self.out.push_str(&normal_string(text));
        self.out.push(':');
    }

    /// A string.
    pub fn string(&mut self, characters: &str) {
        self.separate();
        put_quoted(&mut self.out, characters);
    }

    /// A string as a text in quotes: valid, in any form.
    pub fn string_text(&mut self, text: &str) {
        self.separate();
        self.out.push_str(&normal_string(text));
    }

    /// A number as it is written.
    pub fn number(&mut self, text: &str) {
        self.value(text);
    }

    /// `true` or `false`.
    pub fn boolean(&mut self, value: bool) {
        self.value(if value { "true" } else { "false" });
    }

    /// `null`
    pub fn null(&mut self) {
        self.value("null");
    }

    /// A whole value in its normal form.
    pub fn value(&mut self, text: &str) {
        debug_assert!(!text.is_empty(), "a value without text");
        self.separate();
        self.out.push_str(text);
    }

    /// A token of another text.
    pub fn token(&mut self, token: &Token<'_>) {
        match token {
            Token::ObjectStart => self.object_start(),
            Token::ObjectEnd => self.object_end(),
            Token::ArrayStart => self.array_start(),
            Token::ArrayEnd => self.array_end(),
            Token::Key(characters) => self.key(characters),
            Token::String(characters) => self.string(characters),
            Token::Number(text) => self.number(text),
            Token::Bool(value) => self.boolean(*value),
            Token::Null => self.null(),
        }
    }

    /// A comma, unless what comes is the first in its container or belongs to a key.
    fn separate(&mut self) {
        if !matches!(self.out.as_bytes().last(), None | Some(b'{' | b'[' | b':')) {
            self.out.push(',');
        }
    }
}
