//! Text functions that are not hot enough for kernels. Positions and lengths count characters.

use super::{Call, text};
use crate::expr::text::check_length;
use nacre_sql::Builtin as B;
use nacre_types::{Error, Result, Value};

impl Call<'_> {
    /// `None`: not a function of this file.
    pub(super) fn text_value(&self) -> Result<Option<Value>> {
        let first = self.text(0);
        let first = first.as_ref();
        let int = |v: i64| Some(Value::Int(v));
        Ok(match self.function {
            B::Ascii => int(first.chars().next().map_or(0, |c| c as i64)),
            B::Chr => text(self.character(self.value(0))?),
            B::Char => {
                let mut out = String::new();
                for value in self.args.iter().filter(|v| !v.is_null()) {
                    out.push(self.character(value)?);
                }
                text(out)
            }
            B::InitCap => text(capitals(first)),
            B::ConcatWs if self.value(0).is_null() => Some(Value::Null),
            B::ConcatWs => {
                let mut out = String::new();
                let parts = (1..self.args.len())
                    .filter(|at| !self.value(*at).is_null())
                    .map(|at| self.text(at));
                for (at, part) in parts.enumerate() {
                    if at > 0 {
                        out += first;
                    }
                    out += &part;
                    check_length(out.len())?;
                }
                text(out)
            }
            B::SplitPart => text(self.split_part(first, &self.text(1), self.int(2))?),
            B::SubstringIndex => text(substring_index(first, &self.text(1), self.int(2))),
            B::Insert => text(insert(first, self.int(1), self.int(2), &self.text(3))),
            B::Field => {
                let found = (1..self.args.len()).find(|at| {
                    !self.value(0).is_null()
                        && !self.value(*at).is_null()
                        && self.text(*at) == first
                });
                int(found.unwrap_or(0) as i64)
            }
            B::Elt => match usize::try_from(self.int(0)) {
                Ok(at) if at >= 1 && !self.value(0).is_null() => Some(self.value(at).clone()),
                _ => Some(Value::Null),
            },
            B::FindInSet => {
                let list = self.text(1);
                let found = if list.is_empty() {
                    None
                } else {
                    list.split(',').position(|part| part == first)
                };
                int(found.map_or(0, |at| at as i64 + 1))
            }
            B::StrCmp => int(first.cmp(self.text(1).as_ref()) as i64),
            B::Translate => text(translate(first, &self.text(1), &self.text(2))),
            B::EndsWith => Some(Value::Boolean(first.ends_with(self.text(1).as_ref()))),
            B::Contains => Some(Value::Boolean(first.contains(self.text(1).as_ref()))),
            B::Space => {
                let count = self.int(0).max(0) as usize;
                check_length(count)?;
                text(" ".repeat(count))
            }
            B::ToHex => text(format!("{:X}", self.int(0))),
            B::ToBinary => text(format!("{:b}", self.int(0))),
            B::ToOctal => text(format!("{:o}", self.int(0))),
            B::Quote => text(format!("'{}'", first.replace('\'', "''"))),
            B::Levenshtein => int(self.levenshtein(first, &self.text(1))? as i64),
            B::Hamming => {
                let other = self.text(1);
                if first.chars().count() != other.chars().count() {
                    return Err(self.error("the texts must be of the same length", "22023"));
                }
                int(first.chars().zip(other.chars()).filter(|(a, b)| a != b).count() as i64)
            }
            B::Soundex => text(soundex(first)),
            B::BitLength => int(self.bytes(0).len() as i64 * 8),
            B::UrlEncode => text(url_encode(first)),
            B::UrlDecode => text(self.url_decode(first)?),
            _ => None,
        })
    }

    fn character(&self, value: &Value) -> Result<char> {
        let code = match value {
            Value::Int(v) => u32::try_from(*v).ok().and_then(char::from_u32),
            _ => None,
        };
        code.ok_or_else(|| self.error("there is no such character", "22023"))
    }

    fn split_part(&self, value: &str, separator: &str, n: i64) -> Result<String> {
        if n == 0 {
            return Err(self.error("parts are counted from 1, or from -1 from the end", "22023"));
        }
        let parts: Vec<&str> =
            if separator.is_empty() { vec![value] } else { value.split(separator).collect() };
        let at = if n > 0 { n - 1 } else { parts.len() as i64 + n };
        Ok(usize::try_from(at)
            .ok()
            .and_then(|at| parts.get(at))
            .copied()
            .unwrap_or_default()
            .to_string())
    }

    fn levenshtein(&self, a: &str, b: &str) -> Result<usize> {
        let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
        if a.len().saturating_mul(b.len()) > 1 << 26 {
            return Err(Error::limit("texts are too long for their edit distance"));
        }
        let mut last: Vec<usize> = (0..=b.len()).collect();
        for (i, ca) in a.iter().enumerate() {
            let mut row = vec![i + 1];
            for (j, cb) in b.iter().enumerate() {
                row.push((last[j] + usize::from(ca != cb)).min(last[j + 1] + 1).min(row[j] + 1));
            }
            last = row;
        }
        Ok(last.last().copied().unwrap_or(0))
    }

    fn url_decode(&self, value: &str) -> Result<String> {
        let mut out = Vec::with_capacity(value.len());
        let bytes = value.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let pair = bytes.get(at + 1..at + 3).filter(|p| p.iter().all(u8::is_ascii_hexdigit));
            let pair = pair.and_then(|p| std::str::from_utf8(p).ok());
            match (bytes[at], pair.and_then(|p| u8::from_str_radix(p, 16).ok())) {
                (b'%', Some(byte)) => {
                    out.push(byte);
                    at += 3;
                }
                (byte, _) => {
                    out.push(byte);
                    at += 1;
                }
            }
        }
        String::from_utf8(out).map_err(|_| self.error("the result is not text", "22021"))
    }
}

fn capitals(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut inside = false;
    for c in value.chars() {
        if inside {
            out.extend(c.to_lowercase())
        } else {
            out.extend(c.to_uppercase())
        }
        inside = c.is_alphanumeric();
    }
    out
}

fn substring_index(value: &str, separator: &str, n: i64) -> String {
    if separator.is_empty() || n == 0 {
        return String::new();
    }
    let parts: Vec<&str> = value.split(separator).collect();
    let wanted = usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX).min(parts.len());
    let kept = if n > 0 { &parts[..wanted] } else { &parts[parts.len() - wanted..] };
    kept.join(separator)
}

/// As MySQL has it: a position outside changes nothing, a length past the end goes to the end.
fn insert(value: &str, position: i64, length: i64, new: &str) -> String {
    let count = value.chars().count() as i64;
    if position < 1 || position > count {
        return value.to_string();
    }
    let start = position as usize - 1;
    let removed = if length < 0 { usize::MAX } else { length as usize };
    let head = value.chars().take(start);
    let tail = value.chars().skip(start.saturating_add(removed));
    head.chain(new.chars()).chain(tail).collect()
}

fn translate(value: &str, from: &str, to: &str) -> String {
    let to: Vec<char> = to.chars().collect();
    let map = |c: char| match from.chars().position(|f| f == c) {
        Some(at) => to.get(at).copied(),
        None => Some(c),
    };
    value.chars().filter_map(map).collect()
}

fn soundex(value: &str) -> String {
    let code = |c: char| match c {
        'B' | 'F' | 'P' | 'V' => '1',
        'C' | 'G' | 'J' | 'K' | 'Q' | 'S' | 'X' | 'Z' => '2',
        'D' | 'T' => '3',
        'L' => '4',
        'M' | 'N' => '5',
        'R' => '6',
        'H' | 'W' => '-',
        _ => '0',
    };
    let mut letters =
        value.chars().filter(char::is_ascii_alphabetic).map(|c| c.to_ascii_uppercase());
    let Some(first) = letters.next() else { return String::new() };
    let mut out = String::from(first);
    let mut last = code(first);
    for letter in letters {
        let digit = code(letter);
        if digit == '-' {
            continue;
        }
        if digit != '0' && digit != last {
            out.push(digit);
        }
        last = digit;
        if out.len() == 4 {
            break;
        }
    }
    while out.len() < 4 {
        out.push('0');
    }
    out
}

fn url_encode(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(byte as char);
        } else {
            out += &format!("%{byte:02X}");
        }
    }
    out
}
