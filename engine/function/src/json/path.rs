//! Paths into JSON documents, in the notations of the SQL standard and MySQL (`$.a[0]."b c"`), of
//! JSON pointers (`/a/0`), of PostgreSQL (`{a,0}`) and without a prefix (`a.b[0]`).
//!
//! [`JsonPath::parse`] tells them apart by the first characters. A text without any of them, and
//! without `.` and `[`, is one key.

use nacre_types::json::{check, unquoted};
use nacre_types::{Error, Result};

/// The way from a document to some of its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPath {
    /// One step for each level.
    pub steps: Vec<Step>,
}

/// A step from a value to some of those in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The member of an object with this key.
    Key(String),
    /// An element of an array: from 0 on, or from the end, of which -1 is the last.
    Index(i64),
    /// The elements of an array from one index to another, both included.
    Slice(i64, i64),
    /// All members of an object.
    Members,
    /// All elements of an array.
    Elements,
    /// A member of an object, or, if the text is an index, an element of an array.
    Named(String),
}

/// The index after the last element: no value has it, but one can be appended there.
const AFTER_LAST: i64 = i64::MAX;

impl Step {
    /// The index of an element, if the step names one.
    pub fn index(&self) -> Option<i64> {
        match self {
            Step::Index(at) => Some(*at),
            Step::Named(text) if text == "-" => Some(AFTER_LAST),
            Step::Named(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// The key of a member, if the step names one.
    pub fn key(&self) -> Option<&str> {
        match self {
            Step::Key(key) | Step::Named(key) => Some(key),
            _ => None,
        }
    }

    fn is_single(&self) -> bool {
        matches!(self, Step::Key(_) | Step::Index(_) | Step::Named(_))
    }
}

impl JsonPath {
    /// The path to the document itself.
    pub fn root() -> JsonPath {
        JsonPath { steps: Vec::new() }
    }

    /// Whether it names at most one value.
    pub fn is_single(&self) -> bool {
        self.steps.iter().all(Step::is_single)
    }

    /// The text of some of its steps, as a path of their own; `None` for steps of two notations.
    pub fn text_of(steps: &[Step]) -> Option<String> {
        let mut pointer = String::new();
        let mut path = String::from("$");
        for step in steps {
            match step {
                Step::Named(name) => {
                    pointer.push('/');
                    pointer += &name.replace('~', "~0").replace('/', "~1");
                }
                Step::Key(key) => path += &key_step(key),
                Step::Index(at) => path += &format!("[{at}]"),
                Step::Slice(from, to) => path += &format!("[{from} to {to}]"),
                Step::Members => path += ".*",
                Step::Elements => path += "[*]",
            }
        }
        match (pointer.is_empty(), path.len() > 1) {
            (true, _) => Some(path),
            (false, is_mixed) => (!is_mixed).then_some(pointer),
        }
    }

    /// Parses a path in any notation.
    ///
    /// # Errors
    /// `22023` if the text is no path, `unsupported` for what only other databases have.
    pub fn parse(text: &str) -> Result<JsonPath> {
        let path = text.strip_prefix("lax ").unwrap_or(text).trim_start();
        if text.starts_with("strict ") {
            return Err(Error::unsupported("strict JSON paths are not supported"));
        }
        if let Some(pointer) = text.strip_prefix('/') {
            return Ok(pointer_steps(pointer));
        }
        if let Some(list) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            return array_steps(list).ok_or_else(|| bad(text));
        }
        let steps = match path.strip_prefix('$') {
            Some(rest) if rest.is_empty() || rest.starts_with(['.', '[', '*', ' ']) => {
                Steps { text, rest, strict: true }
            }
            _ if text.contains(['.', '[']) || text.starts_with('"') => {
                Steps { text, rest: text, strict: false }
            }
            _ => return Ok(JsonPath { steps: vec![Step::Key(text.to_string())] }),
        };
        steps.parse()
    }
}

/// The last path that was parsed: within a statement it rarely changes.
#[derive(Default)]
pub struct LastPath(Option<(String, JsonPath)>);

impl LastPath {
    /// The path of a text.
    pub fn get(&mut self, text: &str) -> Result<&JsonPath> {
        let path = match self.0.take() {
            Some((known, path)) if known == text => (known, path),
            _ => (text.to_string(), JsonPath::parse(text)?),
        };
        Ok(&self.0.insert(path).1)
    }
}

/// The notation of one key in a path that begins with `$`.
pub fn key_step(key: &str) -> String {
    format!(".{}", nacre_types::json::quoted(key))
}

#[cold]
fn bad(text: &str) -> Error {
    let mut text = text.to_string();
    if text.chars().count() > 60 {
        text = text.chars().take(57).chain("...".chars()).collect();
    }
    Error::type_error(format!("'{text}' is not a JSON path")).with_sqlstate("22023")
}

#[cold]
fn unsupported(what: &str) -> Error {
    Error::unsupported(format!("{what} in JSON paths are not supported"))
}

fn pointer_steps(text: &str) -> JsonPath {
    let step = |part: &str| Step::Named(part.replace("~1", "/").replace("~0", "~"));
    JsonPath { steps: text.split('/').map(step).collect() }
}

/// The steps of `a,"b c",0`.
fn array_steps(text: &str) -> Option<JsonPath> {
    let mut steps = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let mut name = String::new();
        let mut chars = rest.char_indices();
        let mut quoted = false;
        let mut end = rest.len();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => quoted = !quoted,
                '\\' => name.push(chars.next()?.1),
                ',' if !quoted => {
                    end = at;
                    break;
                }
                ' ' if !quoted && name.is_empty() => {}
                c => name.push(c),
            }
        }
        if quoted || end == 0 {
            return None;
        }
        steps.push(Step::Named(name));
        rest = match rest.get(end + 1..) {
            Some("") => return None,
            Some(more) => more,
            None => "",
        };
    }
    Some(JsonPath { steps })
}

/// A path that is being parsed.
struct Steps<'a> {
    /// The whole text, for messages.
    text: &'a str,
    /// What is left of it.
    rest: &'a str,
    /// Whether it begins with `$`, so that a name must not have blanks or operators.
    strict: bool,
}

impl Steps<'_> {
    fn parse(mut self) -> Result<JsonPath> {
        let mut steps = Vec::new();
        if !self.strict && !self.rest.starts_with('[') {
            steps.push(self.member()?);
        }
        loop {
            if self.strict {
                self.rest = self.rest.trim_start();
            }
            let Some(first) = self.rest.chars().next() else { return Ok(JsonPath { steps }) };
            let after = &self.rest[first.len_utf8()..];
            match first {
                '.' if after.starts_with('.') => return Err(unsupported("recursive steps")),
                '.' => {
                    self.rest = after;
                    steps.push(self.member()?);
                }
                '[' => {
                    self.rest = after;
                    steps.push(self.element()?);
                }
                '*' => return Err(unsupported("recursive steps")),
                '?' => return Err(unsupported("filters")),
                _ => return Err(bad(self.text)),
            }
        }
    }

    /// Parses what follows a dot.
    fn member(&mut self) -> Result<Step> {
        if self.rest.starts_with('"') {
            return self.quoted().map(Step::Key);
        }
        let end = self.rest.find(['.', '[']).unwrap_or(self.rest.len());
        let wrong = self.rest[..end].find(|c: char| self.strict && ends_name(c));
        let (name, rest) = self.rest.split_at(wrong.unwrap_or(end));
        self.rest = rest;
        if rest.starts_with('(') {
            return Err(unsupported("methods"));
        }
        match name {
            "" if rest.starts_with('*') => {
                self.rest = &rest[1..];
                Ok(Step::Members)
            }
            "*" => Ok(Step::Members),
            "" => Err(bad(self.text)),
            name => Ok(Step::Key(name.to_string())),
        }
    }

    /// Parses a key in quotes, with the escapes of JSON.
    fn quoted(&mut self) -> Result<String> {
        let mut escaped = false;
        let end = self.rest.bytes().skip(1).position(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        });
        let (key, rest) = self.rest.split_at(end.ok_or_else(|| bad(self.text))? + 2);
        check(key).map_err(|_| bad(self.text))?;
        self.rest = rest;
        Ok(unquoted(key).into_owned())
    }

    /// Parses what follows a bracket.
    fn element(&mut self) -> Result<Step> {
        self.rest = self.rest.trim_start();
        if self.rest.starts_with('"') {
            let key = self.quoted()?;
            self.rest = self.rest.trim_start().strip_prefix(']').ok_or_else(|| bad(self.text))?;
            return Ok(Step::Key(key));
        }
        let (inside, rest) = match self.rest.strip_prefix('\'') {
            Some(key) => {
                let (key, rest) = key.split_once("']").ok_or_else(|| bad(self.text))?;
                self.rest = rest;
                return Ok(Step::Key(key.to_string()));
            }
            None => self.rest.split_once(']').ok_or_else(|| bad(self.text))?,
        };
        self.rest = rest;
        let inside = inside.trim_end();
        if inside == "*" {
            return Ok(Step::Elements);
        }
        for (mark, what) in [(',', "lists of indexes"), (':', "slices"), ('?', "filters")] {
            if inside.contains(mark) {
                return Err(unsupported(what));
            }
        }
        let bounds = inside.split_once(" to ");
        let step = match bounds {
            Some((from, to)) => index(from).zip(index(to)).map(|(from, to)| Step::Slice(from, to)),
            None => index(inside).map(Step::Index),
        };
        step.ok_or_else(|| bad(self.text))
    }
}

/// Whether a character is none of an unquoted name of a path that begins with `$`.
fn ends_name(c: char) -> bool {
    c.is_whitespace() || "()?*+<>=!&|,]}{'\"".contains(c)
}

/// The index of `7`, `-1`, `last`, `last-1`, `#` or `#-1`.
fn index(text: &str) -> Option<i64> {
    let text = text.trim();
    if text == "#" {
        return Some(AFTER_LAST);
    }
    let last = text.strip_prefix("last").map(|rest| (rest, 1));
    let from_end = last.or_else(|| text.strip_prefix('#').map(|rest| (rest, 0)));
    let Some((rest, least)) = from_end else { return text.parse().ok() };
    let back: i64 = match rest.trim_start() {
        "" => 0,
        rest => rest.strip_prefix('-')?.trim_start().parse().ok().filter(|n| *n >= 0)?,
    };
    match back.checked_add(least)? {
        0 => Some(AFTER_LAST),
        back => Some(-back),
    }
}

#[cfg(test)]
mod tests {
    use super::{AFTER_LAST, JsonPath, Step};
    use nacre_types::ErrorKind;

    fn key(key: &str) -> Step {
        Step::Key(key.into())
    }

    fn named(name: &str) -> Step {
        Step::Named(name.into())
    }

    #[test]
    fn notations_are_told_apart() {
        for (text, steps) in [
            ("$", vec![]),
            ("lax $.a", vec![key("a")]),
            ("$.a.b[0].\"c d\"", vec![key("a"), key("b"), Step::Index(0), key("c d")]),
            ("$.*[*]", vec![Step::Members, Step::Elements]),
            ("$[last]", vec![Step::Index(-1)]),
            ("$[ last - 2 ]", vec![Step::Index(-3)]),
            ("$[#-1]", vec![Step::Index(-1)]),
            ("$[#]", vec![Step::Index(AFTER_LAST)]),
            ("$[#-0]", vec![Step::Index(AFTER_LAST)]),
            ("$[1 to last]", vec![Step::Slice(1, -1)]),
            ("$['a.b'][\"c\"]", vec![key("a.b"), key("c")]),
            ("$.\"a\\\"\\u0062\"", vec![key("a\"b")]),
            ("a.b[0].c", vec![key("a"), key("b"), Step::Index(0), key("c")]),
            ("[-1].x y", vec![Step::Index(-1), key("x y")]),
            ("\"a.b\".*", vec![key("a.b"), Step::Members]),
            ("a", vec![key("a")]),
            ("", vec![key("")]),
            ("$ref", vec![key("$ref")]),
            ("$ref.x", vec![key("$ref"), key("x")]),
            ("/a/0/b~1c~0", vec![named("a"), named("0"), named("b/c~")]),
            ("/", vec![named("")]),
            ("{a,0,\"b,c\"}", vec![named("a"), named("0"), named("b,c")]),
            ("{}", vec![]),
        ] {
            assert_eq!(JsonPath::parse(text).unwrap().steps, steps, "{text}");
        }
    }

    #[test]
    fn steps_have_a_text() {
        for text in ["$", "$.\"a b\"[0]", "$[-1].\"c\"[*].*", "$[1 to -1]", "/a/0/b~1c~0", "/"] {
            let steps = JsonPath::parse(text).unwrap().steps;
            assert_eq!(JsonPath::text_of(&steps).as_deref(), Some(text));
            assert_eq!(JsonPath::parse(text).unwrap().steps, steps);
        }
        assert_eq!(JsonPath::text_of(&[key("a"), named("b")]), None);
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in ["$.", "$.a b", "$[", "$[x]", "$[1", "a..", "a.", "$.\"a", "{a,}", "$['a]"] {
            let error = JsonPath::parse(text).unwrap_err();
            assert!(error.sqlstate() == "22023" || text == "a..", "{text}: {error}");
        }
        for text in
            ["$..a", "$.a.**", "$[0,1]", "$[1:2]", "$ ? (@ > 1)", "$.a.size()", "strict $.a"]
        {
            let error = JsonPath::parse(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{text}: {error}");
        }
    }
}
