//! Finds where statements end in a text: at semicolons outside quotes and comments. With this the
//! shell knows when a statement is complete, and shows the result of each statement.

/// Splits a text into statements, without their semicolons and without blank ones. Also returns
/// whether the text is complete: nothing but blanks and comments follows the last semicolon.
pub fn statements(text: &str) -> (Vec<&str>, bool) {
    let mut scanner = Scanner::default();
    let mut found = Vec::new();
    scanner.scan(text, &mut found);
    found.extend(scanner.rest(text));
    (found, scanner.is_complete())
}

/// Finds the ends of statements in a text that grows by whole lines. Scans each byte once.
#[derive(Default)]
pub struct Scanner {
    /// Position up to which the text has been scanned.
    at: usize,
    /// Start of the current, unfinished statement.
    start: usize,
    /// Whether anything but blanks and comments follows `start`.
    begun: bool,
    inside: Inside,
}

/// The lexical construct that contains the current position.
#[derive(Clone, Copy, Default)]
enum Inside {
    #[default]
    Nothing,
    /// Nested block comments.
    Comment { depth: usize },
    /// A string or an identifier, up to this quote. A doubled quote, which stands for one quote,
    /// needs no case of its own: it ends one string and begins another.
    Quotes(u8),
    /// A string with backslash escapes.
    Escapes,
    /// A dollar-quoted string, up to the next `$tag$`: position and length of the opening tag.
    Dollars { tag: usize, length: usize },
}

impl Scanner {
    /// Scans on to the end of the text, which must begin with the text scanned before. Appends the
    /// statements that end in the new part.
    pub fn scan<'a>(&mut self, text: &'a str, found: &mut Vec<&'a str>) {
        let bytes = text.as_bytes();
        while self.at < bytes.len() {
            match self.inside {
                Inside::Nothing => self.outside(text, found),
                Inside::Comment { depth } => self.comment(bytes, depth),
                Inside::Quotes(quote) => self.leave_after(bytes, &[quote]),
                Inside::Escapes => match bytes[self.at] {
                    b'\\' => self.at = bytes.len().min(self.at + 2),
                    byte => {
                        self.at += 1;
                        if byte == b'\'' {
                            self.inside = Inside::Nothing;
                        }
                    }
                },
                Inside::Dollars { tag, length } => {
                    self.leave_after(bytes, &bytes[tag..tag + length])
                }
            }
        }
    }

    /// Whether no statement or comment is unfinished.
    pub fn is_complete(&self) -> bool {
        !self.begun && !matches!(self.inside, Inside::Comment { .. })
    }

    /// Returns the unfinished statement of the scanned text.
    pub fn rest<'a>(&self, text: &'a str) -> Option<&'a str> {
        (!self.is_complete()).then(|| text[self.start..].trim())
    }

    fn outside<'a>(&mut self, text: &'a str, found: &mut Vec<&'a str>) {
        let bytes = text.as_bytes();
        let rest = &bytes[self.at..];
        match rest[0] {
            b';' => {
                if self.begun {
                    found.push(text[self.start..self.at].trim());
                }
                self.start = self.at + 1;
                self.begun = false;
                self.at += 1;
            }
            b'-' if rest.starts_with(b"--") => self.leave_after(bytes, b"\n"),
            b'/' if rest.starts_with(b"/*") => {
                self.inside = Inside::Comment { depth: 1 };
                self.at += 2;
            }
            quote @ (b'\'' | b'"' | b'`') => {
                let escapes = quote == b'\'' && has_escapes(bytes, self.at);
                self.inside = if escapes { Inside::Escapes } else { Inside::Quotes(quote) };
                self.begun = true;
                self.at += 1;
            }
            b'$' => {
                self.begun = true;
                match tag_length(text, self.at) {
                    Some(length) => {
                        self.inside = Inside::Dollars { tag: self.at, length };
                        self.at += length;
                    }
                    None => self.at += 1,
                }
            }
            byte => {
                self.begun |= !byte.is_ascii_whitespace();
                self.at += 1;
            }
        }
    }

    fn comment(&mut self, bytes: &[u8], depth: usize) {
        let (length, depth) = match &bytes[self.at..] {
            [b'/', b'*', ..] => (2, depth + 1),
            [b'*', b'/', ..] => (2, depth - 1),
            _ => (1, depth),
        };
        self.at += length;
        self.inside = if depth == 0 { Inside::Nothing } else { Inside::Comment { depth } };
    }

    /// Moves past the next occurrence of `mark`, or to the end of the text. A mark never spans
    /// lines, so a scan by whole lines does not split it.
    fn leave_after(&mut self, bytes: &[u8], mark: &[u8]) {
        let end = bytes[self.at..].windows(mark.len()).position(|window| window == mark);
        if end.is_some() {
            self.inside = Inside::Nothing;
        }
        self.at = end.map_or(bytes.len(), |end| self.at + end + mark.len());
    }
}

/// Returns the length of the `$tag$` at a position, or `None` if the dollar sign belongs to a
/// parameter or an identifier.
fn tag_length(text: &str, at: usize) -> Option<usize> {
    if text[..at].chars().next_back().is_some_and(is_identifier_char) {
        return None;
    }
    let tag = &text[at + 1..];
    let end = tag.find(|c: char| c == '$' || !is_identifier_char(c))?;
    tag[end..].starts_with('$').then_some(end + 2)
}

/// Whether a character can continue an identifier.
fn is_identifier_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$')
}

/// Whether the quote at a position opens an `E'…'` string.
fn has_escapes(bytes: &[u8], quote: usize) -> bool {
    let before = |distance: usize| quote.checked_sub(distance).and_then(|at| bytes.get(at));
    let in_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..);
    matches!(before(1), Some(b'e' | b'E')) && !before(2).is_some_and(in_word)
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
            ("select $$a;b$$; c", vec!["select $$a;b$$", "c"], false),
            ("select $t$a;$$;$u$;$t$;", vec!["select $t$a;$$;$u$;$t$"], true),
            ("select $$open;", vec!["select $$open;"], false),
            ("select $1; select $2;", vec!["select $1", "select $2"], true),
            ("select a$b$ from t; c$$;", vec!["select a$b$ from t", "c$$"], true),
            ("select $é$;'$é$;", vec!["select $é$;'$é$"], true),
        ] {
            assert_eq!(statements(text), (expected, complete), "{text:?}");
        }
    }

    #[test]
    fn scanning_line_by_line_finds_the_same_statements() {
        let text = "a; b 'x\r\n;''\n' /* c\n /* ; */\n*/ ; -- d;\nE'\\\n\\';\n' $t$\n;$t\n$t$;\n\n\"e\n;\";f\n;g\n;h";
        let (all, complete) = statements(text);
        let (mut scanner, mut found, mut end) = (Scanner::default(), Vec::new(), 0);
        for line in text.split_inclusive('\n') {
            end += line.len();
            let before = scanner.at;
            scanner.scan(&text[..end], &mut found);
            assert_eq!((before, scanner.at), (end - line.len(), end));
        }
        found.extend(scanner.rest(text));
        assert_eq!((found, scanner.is_complete()), (all, complete));
        assert_eq!(statements(text).0.len(), 7);
    }
}
