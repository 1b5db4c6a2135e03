//! Where statements end in a text: semicolons outside quotes and comments. The shell needs this
//! to know when a statement is complete, and to show the result of each.

/// The statements of a text, without their semicolons, blank ones left out; and whether the text
/// after the last semicolon is blank, so that nothing is waiting to be completed.
pub fn statements(text: &str) -> (Vec<&str>, bool) {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut start = 0;
    let mut at = 0;
    // Whether anything but blanks and comments stands since `start`.
    let mut blank = true;
    while at < bytes.len() {
        match bytes[at] {
            b';' => {
                if !blank {
                    found.push(text[start..at].trim());
                }
                start = at + 1;
                blank = true;
                at += 1;
            }
            b'-' if bytes.get(at + 1) == Some(&b'-') => at = end_of(bytes, at, b"\n"),
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                let end = end_of_comment(bytes, at);
                // An open comment waits for its end.
                blank &= end.is_some();
                at = end.unwrap_or(bytes.len());
            }
            b'\'' if has_escapes(bytes, at) => {
                at = end_of_escaped(bytes, at + 1);
            }
            quote @ (b'\'' | b'"' | b'`') => {
                blank = false;
                at = end_of(bytes, at + 1, &[quote]);
            }
            byte => {
                blank &= byte.is_ascii_whitespace();
                at += 1;
            }
        }
    }
    if !blank {
        found.push(text[start..].trim());
    }
    (found, blank)
}

/// The position after the next occurrence of a mark, or the end. A doubled quote is a quote inside
/// quotes; reading it as the end of one and the start of another comes to the same.
fn end_of(bytes: &[u8], from: usize, mark: &[u8]) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    rest.windows(mark.len()).position(|w| w == mark).map_or(bytes.len(), |at| from + at + mark.len())
}

/// The position after a comment, which may hold others; none when it is open.
fn end_of_comment(bytes: &[u8], from: usize) -> Option<usize> {
    let mut depth = 0;
    let mut at = from;
    while let Some(pair) = bytes.get(at..at + 2) {
        match pair {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Whether the quote at a position is that of an `E'…'` string.
fn has_escapes(bytes: &[u8], quote: usize) -> bool {
    let before = |distance: usize| quote.checked_sub(distance).and_then(|at| bytes.get(at));
    let in_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..);
    matches!(before(1), Some(b'e' | b'E')) && !before(2).is_some_and(in_word)
}

/// The position after the closing quote of a string with backslash escapes, or the end.
fn end_of_escaped(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'\'' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_at_semicolons() {
        for (text, expected, complete) in [
            ("", vec![], true),
            ("  \n", vec![], true),
            ("select 1", vec!["select 1"], false),
            ("select 1;", vec!["select 1"], true),
            ("a; b ;", vec!["a", "b"], true),
            ("a; b", vec!["a", "b"], false),
            (";;", vec![], true),
            ("select ';';", vec!["select ';'"], true),
            ("select 'it''s; ';", vec!["select 'it''s; '"], true),
            ("select 'open;", vec!["select 'open;"], false),
            ("select \"a;b\", `c;d`;", vec!["select \"a;b\", `c;d`"], true),
            ("select 1 -- no; end\n;", vec!["select 1 -- no; end"], true),
            ("-- only a comment; here", vec![], true),
            ("/* a; b */ select 1;", vec!["/* a; b */ select 1"], true),
            ("/* open; ", vec!["/* open;"], false),
            ("select 1; /* done */", vec!["select 1"], true),
            ("select '", vec!["select '"], false),
            ("/* a /* b; */ c; */ select 1;", vec!["/* a /* b; */ c; */ select 1"], true),
            ("/* a /* b */ ;", vec!["/* a /* b */ ;"], false),
            (r"select E'it\'s; ', 1;", vec![r"select E'it\'s; ', 1"], true),
            (r"select '\'; b", vec![r"select '\'", "b"], false),
            (r"select name'\'; b", vec![r"select name'\'", "b"], false),
        ] {
            assert_eq!(statements(text), (expected, complete), "{text:?}");
        }
    }
}
