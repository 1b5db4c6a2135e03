//! Strings between their text in quotes and their characters.

use std::borrow::Cow;

/// What a scan of a string found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scanned {
    /// Whether it has escapes.
    pub escapes: bool,
    /// Whether it has escapes that its normal form has not.
    pub abnormal: bool,
}

/// Scans the string whose first quote is at `start`. Returns the offset after its last quote, or
/// that of the byte that is wrong.
pub(super) fn scan(bytes: &[u8], start: usize) -> Result<(usize, Scanned), usize> {
    debug_assert_eq!(bytes.get(start), Some(&b'"'), "the start of a string");
    let mut found = Scanned::default();
    let mut at = start + 1;
    loop {
        match bytes.get(at) {
            Some(b'"') => return Ok((at + 1, found)),
            Some(b'\\') => {
                let (end, normal) = escape(bytes, at)?;
                found.escapes = true;
                found.abnormal |= !normal;
                at = end;
            }
            None | Some(0..0x20) => return Err(at),
            Some(_) => at += 1,
        }
    }
}

/// Scans the escape at `at`: its end, and whether the normal form has it so.
fn escape(bytes: &[u8], at: usize) -> Result<(usize, bool), usize> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't') => Ok((at + 2, true)),
        Some(b'/') => Ok((at + 2, false)),
        Some(b'u') => {
            let unit = unit(bytes, at).ok_or(at)?;
            let lower = !bytes[at + 2..at + 6].iter().any(u8::is_ascii_uppercase);
            match unit {
                // A pair is a character; alone, a surrogate is none.
                0xd800..0xdc00 if low_unit(bytes, at + 6).is_some() => Ok((at + 12, false)),
                0xd800..0xe000 => Ok((at + 6, lower)),
                8 | 9 | 10 | 12 | 13 => Ok((at + 6, false)),
                _ => Ok((at + 6, unit < 0x20 && lower)),
            }
        }
        _ => Err(at),
    }
}

/// The code unit of an escape `\uXXXX` at `at`.
fn unit(bytes: &[u8], at: usize) -> Option<u32> {
    let escape = bytes.get(at..at + 6)?;
    let digits = escape.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | (*digit as char).to_digit(16)?))
}

/// The same, if it is the second half of a pair.
fn low_unit(bytes: &[u8], at: usize) -> Option<u32> {
    unit(bytes, at).filter(|unit| (0xdc00..0xe000).contains(unit))
}

/// The characters between the quotes. A lone surrogate, which is no character, becomes U+FFFD.
pub fn unquoted(text: &str) -> Cow<'_, str> {
    debug_assert!(text.len() >= 2 && text.starts_with('"'), "a string without quotes");
    let inside = &text[1..text.len() - 1];
    match inside.contains('\\') {
        false => Cow::Borrowed(inside),
        true => {
            let mut out = String::with_capacity(inside.len());
            pieces(inside, &mut |piece| out.push_str(piece.text(&mut [0; 4])));
            Cow::Owned(out)
        }
    }
}

/// A part of a string.
enum Piece<'a> {
    /// Characters that are written as themselves.
    Plain(&'a str),
    Character(char),
    LoneSurrogate(u32),
}

impl<'a> Piece<'a> {
    fn text<'b>(&self, buffer: &'b mut [u8; 4]) -> &'b str
    where
        'a: 'b,
    {
        match self {
            Piece::Plain(text) => text,
            Piece::Character(c) => c.encode_utf8(buffer),
            Piece::LoneSurrogate(_) => "\u{fffd}",
        }
    }
}

/// Passes the parts of what is between the quotes of a valid string.
fn pieces<'a>(inside: &'a str, see: &mut dyn FnMut(Piece<'a>)) {
    let bytes = inside.as_bytes();
    let (mut at, mut plain) = (0, 0);
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        if plain < at {
            see(Piece::Plain(&inside[plain..at]));
        }
        let short = |c: char| (Piece::Character(c), 2);
        let (piece, length) = match bytes.get(at + 1) {
            Some(b'b') => short('\u{8}'),
            Some(b'f') => short('\u{c}'),
            Some(b'n') => short('\n'),
            Some(b'r') => short('\r'),
            Some(b't') => short('\t'),
            Some(b'u') => {
                let high = unit(bytes, at).unwrap_or(0xfffd);
                match (char::from_u32(high), low_unit(bytes, at + 6)) {
                    (Some(c), _) => (Piece::Character(c), 6),
                    (None, Some(low)) if high < 0xdc00 => {
                        let c = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                        (Piece::Character(char::from_u32(c).unwrap_or('\u{fffd}')), 12)
                    }
                    (None, _) => (Piece::LoneSurrogate(high), 6),
                }
            }
            Some(b) => short(*b as char),
            None => break,
        };
        see(piece);
        at += length;
        plain = at;
    }
    if plain < bytes.len() {
        see(Piece::Plain(&inside[plain..]));
    }
}

/// The normal form of a valid string in quotes.
pub(super) fn normal_string(text: &str) -> Cow<'_, str> {
    let abnormal = scan(text.as_bytes(), 0).is_ok_and(|(_, found)| found.abnormal);
    if !abnormal {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    out.push('"');
    pieces(&text[1..text.len() - 1], &mut |piece| match piece {
        Piece::LoneSurrogate(unit) => out.push_str(&format!("\\u{unit:04x}")),
        piece => put_escaped(&mut out, piece.text(&mut [0; 4])),
    });
    out.push('"');
    Cow::Owned(out)
}

/// Characters as a JSON string in its normal form.
pub fn quoted(characters: &str) -> String {
    let mut out = String::with_capacity(characters.len() + 2);
    put_quoted(&mut out, characters);
    out
}

/// Appends characters as a JSON string in its normal form.
pub fn put_quoted(out: &mut String, characters: &str) {
    out.push('"');
    put_escaped(out, characters);
    out.push('"');
}

fn put_escaped(out: &mut String, characters: &str) {
    let mut plain = 0;
    for (at, byte) in characters.bytes().enumerate() {
        let short = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            8 => "\\b",
            12 => "\\f",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(&characters[plain..at]);
        match short {
            "" => out.push_str(&format!("\\u{byte:04x}")),
            short => out.push_str(short),
        }
        plain = at + 1;
    }
    out.push_str(&characters[plain..]);
}
