//! The normal form of a value.
//!
//! A text that is normal already, the usual case of what a program wrote, is read once and
//! borrowed. Equal keys are rare, and need the values of an object in another order than they
//! come: then the text becomes a tree of places first.

use super::string::normal_string;
use super::tokens::{Token, Tokens};
use super::writer::Writer;
use crate::{Result, invariant};
use std::borrow::Cow;

/// The normal form of a JSON text; borrowed if the text is it.
///
/// # Errors
/// As [`Tokens::next`].
pub fn normal(text: &str) -> Result<Cow<'_, str>> {
    let form = inspect(text)?;
    if form.equal_keys {
        return Tree::read(text).map(|tree| Cow::Owned(tree.write()));
    }
    if form.normal {
        return Ok(Cow::Borrowed(text));
    }
    let mut tokens = Tokens::new(text);
    let mut writer = Writer::with_capacity(text.len());
    while let Some(token) = tokens.next()? {
        match token {
            Token::Key(_) => writer.key_text(tokens.text()),
            Token::String(_) => writer.string_text(tokens.text()),
            token => writer.token(&token),
        }
    }
    Ok(Cow::Owned(writer.finish()))
}

/// Whether a text is JSON in its normal form.
pub fn is_normal(text: &str) -> bool {
    inspect(text).is_ok_and(|form| form.normal && !form.equal_keys)
}

struct Form {
    /// Whether it is normal apart from equal keys.
    normal: bool,
    equal_keys: bool,
}

fn inspect(text: &str) -> Result<Form> {
    let mut tokens = Tokens::new(text);
    let mut equal_keys = false;
    // The keys of all open objects, and where those of each begin.
    let (mut keys, mut starts): (Vec<Cow<'_, str>>, Vec<usize>) = Default::default();
    while let Some(token) = tokens.next()? {
        match token {
            Token::ObjectStart => starts.push(keys.len()),
            Token::Key(_) => keys.push(normal_string(tokens.text())),
            Token::ObjectEnd => {
                let start = starts.pop().unwrap_or(keys.len());
                equal_keys |= has_equal(&mut keys[start..]);
                keys.truncate(start);
            }
            _ => {}
        }
    }
    Ok(Form { normal: tokens.is_normal(), equal_keys })
}

/// Whether two keys are equal. Changes their order.
fn has_equal(keys: &mut [Cow<'_, str>]) -> bool {
    /// Up to this many keys are compared pair by pair.
    const FEW: usize = 8;
    if keys.len() <= FEW {
        return (1..keys.len()).any(|at| keys[..at].contains(&keys[at]));
    }
    keys.sort_unstable();
    keys.windows(2).any(|pair| pair[0] == pair[1])
}

/// No node.
const NONE: usize = usize::MAX;

/// A value or a container in a tree.
struct Node<'a> {
    /// Its key in an object, in normal form; empty elsewhere.
    key: Cow<'a, str>,
    /// A scalar in normal form, or the bracket of a container.
    text: Cow<'a, str>,
    first: usize,
    next: usize,
}

/// A text whose objects may have equal keys.
struct Tree<'a> {
    nodes: Vec<Node<'a>>,
}

impl<'a> Tree<'a> {
    fn read(text: &'a str) -> Result<Tree<'a>> {
        let mut tree = Tree { nodes: Vec::new() };
        let mut tokens = Tokens::new(text);
        let mut key = Cow::Borrowed("");
        // The open containers and the children of all of them, each with where its own begin.
        let mut open: Vec<(usize, usize)> = Vec::new();
        let mut children: Vec<usize> = Vec::new();
        while let Some(token) = tokens.next()? {
            let text = match token {
                Token::Key(_) => {
                    key = normal_string(tokens.text());
                    continue;
                }
                Token::ObjectEnd | Token::ArrayEnd => {
                    if let Some((node, start)) = open.pop() {
                        tree.link(node, &mut children, start, token == Token::ObjectEnd);
                    }
                    continue;
                }
                Token::String(_) => normal_string(tokens.text()),
                _ => Cow::Borrowed(tokens.text()),
            };
            let node = tree.nodes.len();
            let key = std::mem::take(&mut key);
            tree.nodes.push(Node { key, text, first: NONE, next: NONE });
            children.push(node);
            if matches!(token, Token::ObjectStart | Token::ArrayStart) {
                open.push((node, children.len()));
            }
        }
        invariant!(open.is_empty() && children == [0], "a JSON value that is not one tree");
        Ok(tree)
    }

    /// Makes the children from `start` on those of a node.
    fn link(&mut self, node: usize, children: &mut Vec<usize>, start: usize, object: bool) {
        if object {
            self.drop_equal(children, start);
        }
        let mut next = NONE;
        for child in children.drain(start..).rev() {
            self.nodes[child].next = next;
            next = child;
        }
        self.nodes[node].first = next;
    }

    /// Of children with the same key, leaves the last one at the place of the first.
    fn drop_equal(&self, children: &mut Vec<usize>, start: usize) {
        let given = children.split_off(start);
        let key = |at: &usize| &self.nodes[given[*at]].key;
        let mut order: Vec<usize> = (0..given.len()).collect();
        // Stable: equal keys stay in the order given.
        order.sort_by_key(key);
        let mut kept: Vec<(usize, usize)> = order
            .chunk_by(|a, b| key(a) == key(b))
            .map(|same| (same[0], given[same[same.len() - 1]]))
            .collect();
        kept.sort_unstable();
        children.extend(kept.into_iter().map(|(_, child)| child));
    }

    fn write(&self) -> String {
        let mut writer = Writer::default();
        // What is to be written next in each open container, and whether that is an object.
        let mut open: Vec<(usize, bool)> = Vec::new();
        let mut at = 0;
        loop {
            while at == NONE {
                let Some((next, object)) = open.pop() else { return writer.finish() };
                if object {
                    writer.object_end()
                } else {
                    writer.array_end()
                }
                at = next;
            }
            let node = &self.nodes[at];
            if !node.key.is_empty() {
                writer.key_text(&node.key);
            }
            at = match &*node.text {
                "{" | "[" => {
                    let object = node.text == "{";
                    if object {
                        writer.object_start()
                    } else {
                        writer.array_start()
                    }
                    open.push((node.next, object));
                    node.first
                }
                scalar => {
                    writer.value(scalar);
                    node.next
                }
            };
        }
    }
}
