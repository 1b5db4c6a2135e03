//! A document taken apart: its values in the order of the text, each with its place.

use nacre_types::json::{Token, Tokens};
use std::ops::Range;

/// The kind of a value in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Object,
    Array,
    String,
    Number,
    Boolean,
    Null,
}

/// A value of a document.
#[derive(Clone, Debug)]
pub(super) struct Item {
    form: Form,
    /// Its key in quotes; empty for the root and for elements.
    key: Range<u32>,
    text: Range<u32>,
    /// The number of the first item after its own.
    end: u32,
}

/// A document in its normal form, and its values in the order of the text: those of a container
/// follow it.
#[derive(Default)]
pub(super) struct Tree {
    items: Vec<Item>,
    open: Vec<u32>,
}

/// A document of a tree.
#[derive(Clone, Copy)]
pub(super) struct Document<'a> {
    text: &'a str,
    items: &'a [Item],
}

impl Tree {
    /// Reads a text; `None` unless it is JSON in its normal form.
    pub fn read<'a>(&'a mut self, text: &'a str) -> Option<Document<'a>> {
        self.items.clear();
        self.open.clear();
        if u32::try_from(text.len()).is_err() {
            return None;
        }
        let mut tokens = Tokens::new(text);
        let mut key = 0..0;
        loop {
            let token = tokens.next().ok()?;
            let place = tokens.range();
            let place = place.start as u32..place.end as u32;
            let form = match token {
                None => break,
                Some(Token::Key(_)) => {
                    key = place;
                    continue;
                }
                Some(Token::ObjectEnd | Token::ArrayEnd) => {
                    let open = self.open.pop()? as usize;
                    let end = self.items.len() as u32;
                    self.items[open].end = end;
                    self.items[open].text.end = place.end;
                    if self.items[open].form == Form::Object && self.has_equal_keys(text, open) {
                        return None;
                    }
                    continue;
                }
                Some(Token::ObjectStart) => Form::Object,
                Some(Token::ArrayStart) => Form::Array,
                Some(Token::String(_)) => Form::String,
                Some(Token::Number(_)) => Form::Number,
                Some(Token::Bool(_)) => Form::Boolean,
                Some(Token::Null) => Form::Null,
            };
            let at = self.items.len() as u32;
            if matches!(form, Form::Object | Form::Array) {
                self.open.push(at);
            }
            let key = std::mem::take(&mut key);
            self.items.push(Item { form, key, text: place, end: at + 1 });
        }
        debug_assert!(self.open.is_empty(), "{} containers without an end", self.open.len());
        debug_assert!(
            self.items.first().is_some_and(|root| root.end as usize == self.items.len()),
            "values beside the root of a document"
        );
        tokens.is_normal().then_some(Document { text, items: &self.items })
    }

    fn has_equal_keys(&self, text: &str, object: usize) -> bool {
        debug_assert!(self.items[object].form == Form::Object, "keys of no object");
        /// Up to this many keys are compared pair by pair.
        const FEW: usize = 16;
        let document = Document { text, items: &self.items };
        let mut keys: Vec<&str> = Vec::new();
        if document.children(object).take(FEW + 1).count() <= FEW {
            let mut seen = [""; FEW];
            for (count, child) in document.children(object).enumerate() {
                seen[count] = document.key(child);
                if seen[..count].contains(&seen[count]) {
                    return true;
                }
            }
            return false;
        }
        keys.extend(document.children(object).map(|child| document.key(child)));
        keys.sort_unstable();
        keys.windows(2).any(|pair| pair[0] == pair[1])
    }
}

impl<'a> Document<'a> {
    pub fn form(&self, item: usize) -> Form {
        self.items[item].form
    }

    /// The key of a value, in quotes.
    pub fn key(&self, item: usize) -> &'a str {
        let Range { start, end } = self.items[item].key;
        debug_assert!(start <= end && end as usize <= self.text.len(), "a key at {start}..{end}");
        &self.text[start as usize..end as usize]
    }

    /// The text of a value.
    pub fn text(&self, item: usize) -> &'a str {
        let Range { start, end } = self.items[item].text;
        debug_assert!(start < end && end as usize <= self.text.len(), "a value at {start}..{end}");
        &self.text[start as usize..end as usize]
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// The number of the first value after a value and those in it.
    pub fn end(&self, item: usize) -> usize {
        debug_assert!(self.items[item].end as usize > item, "a value that ends before it begins");
        self.items[item].end as usize
    }

    /// The values of an object or an array.
    pub fn children(self, item: usize) -> impl Iterator<Item = usize> + 'a {
        let end = self.items[item].end as usize;
        let mut at = item + 1;
        debug_assert!(at <= end && end <= self.items.len(), "values {at}..{end} of a container");
        std::iter::from_fn(move || {
            let child = at;
            (child < end).then(|| {
                at = self.items[child].end as usize;
                child
            })
        })
    }
}
