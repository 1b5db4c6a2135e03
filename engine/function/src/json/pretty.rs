//! Documents with a line for each value, and their depth.

use crate::vector::room::check_length;
use nacre_types::Result;
use nacre_types::json::{Token, Tokens};

const INDENT: &str = "    ";

/// The document with line breaks, and four blanks for each level.
pub fn pretty(document: &str) -> Result<String> {
    let mut out = String::with_capacity(document.len() * 2);
    let mut tokens = Tokens::new(document);
    // Whether the value belongs to the key before it, and whether its container is still empty.
    let (mut after_key, mut first) = (false, true);
    while let Some(token) = tokens.next()? {
        let ends = matches!(token, Token::ObjectEnd | Token::ArrayEnd);
        let starts = matches!(token, Token::ObjectStart | Token::ArrayStart);
        if !first && !ends && !after_key {
            out.push(',');
        }
        let depth = tokens.depth() - usize::from(starts);
        let stays = after_key || ends && first || out.is_empty();
        if !stays {
            check_length(out.len() + INDENT.len() * depth)?;
            out.push('\n');
            out.extend(std::iter::repeat_n(INDENT, depth));
        }
        out.push_str(tokens.text());
        after_key = matches!(token, Token::Key(_));
        if after_key {
            out.push_str(": ");
        }
        first = starts;
    }
    Ok(out)
}

/// The number of levels: 1 for a scalar or an empty container.
pub fn depth(document: &str) -> Result<usize> {
    let mut tokens = Tokens::new(document);
    let mut deepest = 0;
    while let Some(token) = tokens.next()? {
        let level = match token {
            Token::ObjectStart | Token::ArrayStart => tokens.depth(),
            Token::ObjectEnd | Token::ArrayEnd | Token::Key(_) => continue,
            _ => tokens.depth() + 1,
        };
        deepest = deepest.max(level);
    }
    Ok(deepest)
}

#[cfg(test)]
mod tests {
    use super::{depth, pretty};

    #[test]
    fn lines_and_levels() {
        let text = r#"{"a":[1,[],{"b":null}],"c":{}}"#;
        let lines = "{\n    \"a\": [\n        1,\n        [],\n        {\n            \"b\": null\n        }\n    ],\n    \"c\": {}\n}";
        assert_eq!(pretty(text).unwrap(), lines);
        assert_eq!(pretty("[]").unwrap(), "[]");
        assert_eq!(pretty("1").unwrap(), "1");
        for (text, levels) in [("1", 1), ("[]", 1), ("[1]", 2), (r#"{"a":{"b":[]}}"#, 3)] {
            assert_eq!(depth(text).unwrap(), levels, "{text}");
        }
    }
}
