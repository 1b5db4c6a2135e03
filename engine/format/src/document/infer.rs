//! The nodes of a column, found by reading all of its documents once.

use super::schema::{DocumentNode, DocumentStep, Schema};
use super::tree::{Document, Form, Tree};
use super::{MAX_LEVEL, MAX_NODES, RARE_ONE_IN};
use nacre_types::hash::Map;
use nacre_types::json::{quoted, unquoted};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Greatest number of candidates; keys that come later stay text.
const MAX_CANDIDATES: usize = 1 << 15;
/// Greatest number of keys of the objects at one candidate, so that objects with arbitrary keys do
/// not take the room of the others.
const MAX_KEYS: usize = 1 << 10;
/// Bytes of text that a node must have, on average, in each block: it takes about 30 bytes of a
/// footer for each, and its sub-columns some more.
const NODE_BYTES: u64 = 256;

/// A place in documents that may become a node.
struct Candidate {
    parent: u32,
    step: DocumentStep,
    level: usize,
    /// Values found there, and bytes of their text and keys.
    values: u64,
    bytes: u64,
    /// Keys, each with its candidate and its position in `order`.
    keys: Map<Box<str>, (u32, usize)>,
    /// The keys in the order found, to guess the next one.
    order: Vec<u32>,
    element: Option<u32>,
}

impl Candidate {
    fn new(parent: u32, step: DocumentStep, level: usize) -> Candidate {
        debug_assert!(level <= MAX_LEVEL, "a candidate at level {level}");
        let (keys, order) = Default::default();
        Candidate { parent, step, level, values: 0, bytes: 0, keys, order, element: None }
    }

    /// The candidates below it.
    fn below(&self) -> impl Iterator<Item = u32> + '_ {
        self.order.iter().copied().chain(self.element)
    }
}

/// Collects what occurs in documents.
pub struct Inference {
    candidates: Vec<Candidate>,
    documents: u64,
    /// Bytes of values that are no candidates'.
    untracked: u64,
    bytes: u64,
    blocks: u64,
    tree: Tree,
    open: Vec<(u32, u32, usize)>,
}

impl Inference {
    /// Nothing so far.
    pub fn begun() -> Inference {
        Inference {
            candidates: vec![Candidate::new(0, DocumentStep::Root, 0)],
            documents: 0,
            untracked: 0,
            bytes: 0,
            blocks: 0,
            tree: Tree::default(),
            open: Vec::new(),
        }
    }

    /// Counts a block, for the cost of a node.
    pub fn begin_block(&mut self) {
        self.blocks += 1;
    }

    /// Adds a document. `false` if its text is not in its normal form: such a column stays text.
    pub fn add(&mut self, text: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(text) else { return false };
        let mut tree = std::mem::take(&mut self.tree);
        let document = tree.read(text);
        let is_normal = document.is_some();
        if let Some(document) = document {
            self.documents += 1;
            self.bytes += text.len() as u64;
            self.walk(document);
        }
        self.tree = tree;
        is_normal
    }

    fn walk(&mut self, document: Document<'_>) {
        // The open containers: the candidate, the item after the last one in it, and the position
        // in the order of keys where the next one is guessed.
        let mut open = std::mem::take(&mut self.open);
        open.clear();
        let mut at = 0;
        while at < document.len() {
            while open.last().is_some_and(|(_, end, _)| *end as usize == at) {
                open.pop();
            }
            let candidate = match open.last_mut() {
                None => Some(0),
                Some((parent, _, guess)) => {
                    let parent = *parent;
                    match document.key(at) {
                        "" => self.element(parent),
                        key => self.key(parent, key, guess),
                    }
                }
            };
            let bytes = (document.key(at).len() + document.text(at).len()) as u64;
            let Some(candidate) = candidate else {
                self.untracked += bytes;
                at = document.end(at);
                continue;
            };
            let found = &mut self.candidates[candidate as usize];
            found.values += 1;
            found.bytes += bytes;
            let below = matches!(document.form(at), Form::Object | Form::Array);
            if below && found.level < MAX_LEVEL {
                open.push((candidate, document.end(at) as u32, 0));
                at += 1;
            } else {
                if below {
                    self.untracked += bytes;
                }
                at = document.end(at);
            }
        }
        debug_assert_eq!(at, document.len(), "values of a document that were read");
        self.open = open;
    }

    fn add_candidate(&mut self, parent: u32, step: DocumentStep) -> Option<u32> {
        debug_assert!(step != DocumentStep::Root, "a second root");
        let level = self.candidates[parent as usize].level + 1;
        (self.candidates.len() < MAX_CANDIDATES).then(|| {
            self.candidates.push(Candidate::new(parent, step, level));
            self.candidates.len() as u32 - 1
        })
    }

    fn element(&mut self, parent: u32) -> Option<u32> {
        if self.candidates[parent as usize].element.is_none() {
            self.candidates[parent as usize].element =
                self.add_candidate(parent, DocumentStep::Element);
        }
        self.candidates[parent as usize].element
    }

    fn key(&mut self, parent: u32, key: &str, guess: &mut usize) -> Option<u32> {
        debug_assert!(key.starts_with('"'), "a key without quotes: {key}");
        let above = &self.candidates[parent as usize];
        if let Some(guessed) = above.order.get(*guess).copied()
            && matches!(&self.candidates[guessed as usize].step, DocumentStep::Key(own) if **own == *key)
        {
            *guess += 1;
            return Some(guessed);
        }
        if let Some((known, position)) = above.keys.get(key).copied() {
            *guess = position + 1;
            return Some(known);
        }
        // A key with a lone surrogate has no characters that stand for it.
        if above.order.len() == MAX_KEYS || (key.contains('\\') && quoted(&unquoted(key)) != key) {
            return None;
        }
        let added = self.add_candidate(parent, DocumentStep::Key(key.into()))?;
        let above = &mut self.candidates[parent as usize];
        above.keys.insert(key.into(), (added, above.order.len()));
        above.order.push(added);
        Some(added)
    }

    /// The schema; `None` if text is as good.
    pub fn finish(self) -> Option<Schema> {
        let mut nodes: Vec<DocumentNode> = Vec::new();
        // The node of each candidate that becomes one.
        let mut chosen: Map<u32, u32> = Map::default();
        let mut heap = BinaryHeap::from([(u64::MAX, Reverse(0))]);
        let mut text = self.untracked;
        // The most frequent first, each after the one that it belongs to.
        while let Some((_, Reverse(at))) = heap.pop() {
            let candidate = &self.candidates[at as usize];
            let is_rare = candidate.values * RARE_ONE_IN < self.documents;
            if at != 0 && (is_rare || nodes.len() == MAX_NODES) {
                text += candidate.bytes;
                continue;
            }
            let number = nodes.len() as u32;
            chosen.insert(at, number);
            let parent = chosen.get(&candidate.parent).copied().unwrap_or(0);
            if candidate.step == DocumentStep::Element {
                nodes[parent as usize].element = Some(number);
            }
            nodes.push(DocumentNode::new(parent, candidate.step.clone(), candidate.level));
            let values = |at: u32| self.candidates[at as usize].values;
            heap.extend(candidate.below().map(|at| (values(at), Reverse(at))));
        }
        debug_assert!(nodes.len() <= MAX_NODES, "{} nodes", nodes.len());
        debug_assert!(nodes.first().is_some_and(|root| root.step == DocumentStep::Root), "no root");
        let pays =
            text * 2 <= self.bytes && nodes.len() as u64 * NODE_BYTES * self.blocks <= self.bytes;
        pays.then(|| Schema::of_nodes(nodes))
    }
}
