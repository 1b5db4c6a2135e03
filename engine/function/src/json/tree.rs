//! A document as a list of its values, so that the parts of each are found without reading it
//! again.

use nacre_types::Result;
use nacre_types::json::{Token, Tokens};
use std::borrow::Cow;

/// The values of a document, each before those in it.
pub(super) struct Tree<'a> {
    nodes: Vec<Node<'a>>,
}

/// A value.
pub(super) struct Node<'a> {
    /// Its key in an object; empty elsewhere.
    pub key: Cow<'a, str>,
    /// Its text.
    pub value: &'a str,
    /// The number of the node after those in it.
    after: usize,
}

impl<'a> Tree<'a> {
    /// Reads a document.
    pub fn read(text: &'a str) -> Result<Tree<'a>> {
        let mut tokens = Tokens::new(text);
        let mut nodes: Vec<Node<'a>> = Vec::new();
        let mut open: Vec<(usize, usize)> = Vec::new();
        let mut key = Cow::Borrowed("");
        while let Some(token) = tokens.next()? {
            match token {
                Token::Key(name) => key = name,
                Token::ObjectEnd | Token::ArrayEnd => {
                    if let Some((node, start)) = open.pop() {
                        nodes[node].value = &text[start..tokens.range().end];
                        nodes[node].after = nodes.len();
                    }
                }
                _ => {
                    if matches!(token, Token::ObjectStart | Token::ArrayStart) {
                        open.push((nodes.len(), tokens.range().start));
                    }
                    let (key, after) = (std::mem::take(&mut key), nodes.len() + 1);
                    nodes.push(Node { key, value: tokens.text(), after });
                }
            }
        }
        Ok(Tree { nodes })
    }

    /// A value; the document has number 0.
    pub fn node(&self, number: usize) -> &Node<'a> {
        &self.nodes[number]
    }

    /// The numbers of the members or elements of a value.
    pub fn inside(&self, number: usize) -> impl Iterator<Item = usize> {
        let after = self.nodes[number].after;
        let mut next = number + 1;
        std::iter::from_fn(move || {
            let at = (next < after).then_some(next)?;
            next = self.nodes[at].after;
            Some(at)
        })
    }
}
