//! Conversion of bytes to text and back, digits of integers, short digests.

use nacre_function::entry::coerce;
use nacre_function::entry::definition::Arity;
use nacre_function::entry::definition::Kernel::Values;
use nacre_function::entry::definition::Parameter::{RoundedInteger, Text, TextOrBytes};
use nacre_function::entry::definition::ScalarFunction;
use nacre_function::entry::definition::Typing::{Declared, Rule};
use nacre_function::entry::definition::{RowCall, int, text};
use nacre_function::entry::doc::Doc;
use nacre_function::entry::scalar::{function, takes};
use nacre_types::{DataType, Error, Value};

const TEXT: DataType = DataType::TEXT;
const INT: DataType = DataType::Int64;
const BLOB: DataType = DataType::BLOB;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static HEX: ScalarFunction = function(
    &["hex"],
    Doc::new(
        "hex(x)",
        "Hexadecimal digits of a text or binary value, or of an integer.",
        "hex('abc')",
        "616263",
    ),
    Rule(Arity::exactly(1), |binding, arguments| {
        let name = arguments.name;
        let [x] = arguments.exactly()?;
        if binding.data_type(&x).is_integer() {
            // Digits of the number, as in MySQL, not of its text.
            let x = coerce::rounded_integer(binding, x, name)?;
            return Ok(binding.call(&TO_HEX, vec![x], TEXT));
        }
        let x = coerce::text_or_bytes(binding, x)?;
        Ok(binding.call(&HEX, vec![x], TEXT))
    }),
    Values(|row| text(hex(row.bytes(0), b"0123456789ABCDEF"))),
);

static TO_HEX: ScalarFunction = function(
    &["to_hex"],
    Doc::new("to_hex(n)", "Hexadecimal digits of an integer.", "to_hex(255)", "FF"),
    Declared(takes(&[RoundedInteger]), TEXT),
    Values(|row| text(format!("{:X}", row.int(0)))),
);

/// The functions of this file.
pub(crate) static FUNCTIONS: &[&ScalarFunction] = &[
    &HEX,
    &TO_HEX,
    &function(
        &["bin", "to_binary"],
        Doc::new("bin(n), to_binary", "Binary digits of an integer.", "bin(10)", "1010"),
        Declared(takes(&[RoundedInteger]), TEXT),
        Values(|row| text(format!("{:b}", row.int(0)))),
    ),
    &function(
        &["oct"],
        Doc::new("oct(n)", "Octal digits of an integer.", "oct(64)", "100"),
        Declared(takes(&[RoundedInteger]), TEXT),
        Values(|row| text(format!("{:o}", row.int(0)))),
    ),
    &function(
        &["unhex", "from_hex"],
        Doc::new(
            "unhex(s), from_hex",
            "The bytes of hexadecimal digits.",
            "unhex('616263')",
            "\\x616263",
        ),
        Declared(takes(&[Text]), BLOB),
        Values(|row| {
            let bytes = unhex(row.bytes(0)).ok_or_else(|| not(row, "hexadecimal digits"))?;
            Ok(Value::Binary(bytes))
        }),
    ),
    &function(
        &["to_base64", "base64"],
        Doc::new(
            "to_base64(x), base64",
            "Base64 of a text or binary value.",
            "to_base64('hello')",
            "aGVsbG8=",
        ),
        Declared(takes(&[TextOrBytes]), TEXT),
        Values(|row| text(to_base64(row.bytes(0)))),
    ),
    &function(
        &["from_base64"],
        Doc::new("from_base64(s)", "The bytes of Base64.", "from_base64('YWJj')", "\\x616263"),
        Declared(takes(&[Text]), BLOB),
        Values(|row| {
            Ok(Value::Binary(from_base64(row.bytes(0)).ok_or_else(|| not(row, "Base64"))?))
        }),
    ),
    &function(
        &["md5"],
        Doc::new(
            "md5(x)",
            "The MD5 digest, in hexadecimal digits.",
            "md5('hello')",
            "5d41402abc4b2a76b9719d911017c592",
        ),
        Declared(takes(&[TextOrBytes]), TEXT),
        Values(|row| text(hex(&md5(row.bytes(0)), b"0123456789abcdef"))),
    ),
    &function(
        &["crc32"],
        Doc::new("crc32(x)", "The checksum CRC-32.", "crc32('hello')", "907060870"),
        Declared(takes(&[TextOrBytes]), INT),
        Values(|row| int(crc32(row.bytes(0)).into())),
    ),
    &function(
        &["bit_length"],
        Doc::new("bit_length(s)", "Bits of a text or binary value.", "bit_length('abc')", "24"),
        Declared(takes(&[TextOrBytes]), INT),
        Values(|row| int(row.bytes(0).len() as i64 * 8)),
    ),
];

/// The error for an argument that is not `what`.
fn not(row: &RowCall<'_>, what: &str) -> Error {
    row.error(&format!("the argument is not {what}"), "22023")
}

fn hex(bytes: &[u8], digits: &[u8; 16]) -> String {
    bytes
        .iter()
        .flat_map(|b| [digits[(b >> 4) as usize] as char, digits[(b & 15) as usize] as char])
        .collect()
}

fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

fn to_base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| chunk.get(at).copied().unwrap_or(0) as u32;
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let letter = BASE64[(bits >> (18 - 6 * at) & 63) as usize] as char;
            out.push(if at <= chunk.len() { letter } else { '=' });
        }
    }
    out
}

fn from_base64(letters: &[u8]) -> Option<Vec<u8>> {
    let letters: Vec<u8> = letters.iter().copied().filter(|b| !b.is_ascii_whitespace()).collect();
    if !letters.len().is_multiple_of(4) {
        return None;
    }
    let padding = letters.iter().rev().take_while(|b| **b == b'=').count();
    let body = letters.get(..letters.len() - padding.min(2))?;
    let mut out = Vec::with_capacity(letters.len() / 4 * 3);
    let (mut bits, mut held) = (0u32, 0);
    for letter in body {
        let value = BASE64.iter().position(|known| known == letter)? as u32;
        bits = bits << 6 | value;
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
        }
    }
    Some(out)
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= *byte as u32;
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

/// MD5: Rivest, *The MD5 Message-Digest Algorithm*, RFC 1321.
fn md5(bytes: &[u8]) -> [u8; 16] {
    const SHIFTS: [[u32; 4]; 4] =
        [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
    let mut state = [0x6745_2301u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend_from_slice(&(bytes.len() as u64).wrapping_mul(8).to_le_bytes());
    for block in padded.chunks(64) {
        let word = |at: usize| {
            let four = &block[at * 4..at * 4 + 4];
            u32::from_le_bytes([four[0], four[1], four[2], four[3]])
        };
        let [mut a, mut b, mut c, mut d] = state;
        for i in 0..64usize {
            let (mix, at) = match i / 16 {
                0 => ((b & c) | (!b & d), i),
                1 => ((d & b) | (!d & c), (5 * i + 1) % 16),
                2 => (b ^ c ^ d, (3 * i + 5) % 16),
                _ => (c ^ (b | !d), 7 * i % 16),
            };
            let sine = (((i + 1) as f64).sin().abs() * 4_294_967_296.0) as u32;
            let sum = a.wrapping_add(mix).wrapping_add(sine).wrapping_add(word(at));
            (a, d, c) = (d, c, b);
            b = b.wrapping_add(sum.rotate_left(SHIFTS[i / 16][i % 4]));
        }
        for (total, part) in state.iter_mut().zip([a, b, c, d]) {
            *total = total.wrapping_add(part);
        }
    }
    let mut out = [0; 16];
    for (at, word) in state.iter().enumerate() {
        out[at * 4..at * 4 + 4].copy_from_slice(&word.to_le_bytes());
    }
    out
}
