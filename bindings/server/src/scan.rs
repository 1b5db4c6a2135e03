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
                let end = end_of(bytes, at + 2, b"*/");
                // An open comment waits for its end.
                blank &= bytes[..end].ends_with(b"*/") && end >= at + 4;
                at = end;
            }
            quote @ (b'\'' | b'"' | b'`') => {
                blank = false;
                at = end_of(bytes, at + 1, &[quote]);
                if at == bytes.len() && (bytes[at - 1] != quote) {
                    break;
                }
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
        ] {
            assert_eq!(statements(text), (expected, complete), "{text:?}");
        }
    }
}
