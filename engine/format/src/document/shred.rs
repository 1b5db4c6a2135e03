//! Takes documents apart into the sub-columns of a schema.

use super::collect::{Given, SubColumn};
use super::number::{self, Number};
use super::schema::{DocumentStep, Kind, REST, Schema, Shape};
use super::tree::{Document, Form, Tree};
use super::{MAX_ELEMENTS, MAX_SHAPE_KEYS, MAX_SHAPES};
use nacre_types::hash::Map;
use nacre_types::json::{Writer, quoted, unquoted};
use nacre_types::{Result, invariant};

/// Sub-columns being collected.
pub struct Shredder {
    schema: Schema,
    /// The nodes of keys, by their parent.
    keys: Vec<Map<Box<str>, u32>>,
    shapes: Map<Shape, u32>,
    /// By node and kind, once they have a value.
    columns: Vec<Option<SubColumn>>,
    /// The elements so far, by node.
    elements: Vec<usize>,
    tree: Tree,
    documents: usize,
    /// Bytes of text that went into sub-columns as text, and of all documents.
    left: u64,
    bytes: u64,
}

impl Shredder {
    /// Takes apart by the nodes of a schema.
    pub fn new(schema: Schema) -> Shredder {
        let mut keys: Vec<Map<Box<str>, u32>> = vec![Map::default(); schema.nodes.len()];
        for (at, node) in schema.nodes.iter().enumerate() {
            if let DocumentStep::Key(key) = &node.step {
                keys[node.parent as usize].insert(key.clone(), at as u32);
            }
        }
        let count = schema.nodes.len();
        Shredder {
            keys,
            shapes: Map::default(),
            columns: (0..count * Kind::ALL.len()).map(|_| None).collect(),
            elements: vec![0; count],
            tree: Tree::default(),
            documents: 0,
            left: 0,
            bytes: 0,
            schema,
        }
    }

    /// Adds the next row: a document in its normal form, or no document.
    pub fn add(&mut self, text: Option<&[u8]>) -> Result<()> {
        let row = self.documents;
        self.documents += 1;
        let Some(text) = text else { return Ok(()) };
        debug_assert!(!text.is_empty(), "a document without text");
        let mut tree = std::mem::take(&mut self.tree);
        let document = std::str::from_utf8(text).ok().and_then(|text| tree.read(text));
        invariant!(document.is_some(), "a document that is not in its normal form");
        let added = document.map_or(Ok(()), |document| self.value(0, document, 0, row));
        self.bytes += text.len() as u64;
        self.tree = tree;
        added
    }

    /// Whether most of the text so far stays text.
    pub fn is_text(&self) -> bool {
        self.left * 2 > self.bytes
    }

    /// Puts a value at a row of a node. Levels of nodes bound the recursion.
    fn value(
        &mut self,
        node: usize,
        document: Document<'_>,
        item: usize,
        row: usize,
    ) -> Result<()> {
        let text = document.text(item);
        match document.form(item) {
            Form::Null => Ok(()),
            Form::Boolean => self.push(node, Kind::Boolean, row, Given::Boolean(text == "true")),
            Form::Number => match number::exact(text) {
                Some(Number::Integer(v)) => self.push(node, Kind::Integer, row, Given::Integer(v)),
                Some(Number::Double(v)) => self.push(node, Kind::Double, row, Given::Double(v)),
                None => self.other(node, text, row),
            },
            Form::String => {
                let characters = unquoted(text);
                match text.contains('\\') && quoted(&characters) != text {
                    true => self.other(node, text, row),
                    false => {
                        let bytes = Given::Bytes(characters.as_bytes());
                        self.push(node, Kind::String, row, bytes)
                    }
                }
            }
            Form::Array => self.array(node, document, item, row),
            Form::Object => self.object(node, document, item, row),
        }
    }

    fn array(
        &mut self,
        node: usize,
        document: Document<'_>,
        item: usize,
        row: usize,
    ) -> Result<()> {
        let length = document.children(item).count();
        let Some(element) = self.schema.nodes[node].element.map(|element| element as usize) else {
            return self.other(node, document.text(item), row);
        };
        let start = self.elements[element];
        if start + length > MAX_ELEMENTS {
            return self.other(node, document.text(item), row);
        }
        self.elements[element] += length;
        debug_assert!(self.elements[element] <= MAX_ELEMENTS, "elements of arrays");
        self.push(node, Kind::Length, row, Given::Integer(length as i64))?;
        let starts = self.column(node, Kind::Start);
        starts.fill_with(row + 1, start as i64);
        for (at, child) in document.children(item).enumerate() {
            self.value(element, document, child, start + at)?;
        }
        Ok(())
    }

    fn object(
        &mut self,
        node: usize,
        document: Document<'_>,
        item: usize,
        row: usize,
    ) -> Result<()> {
        let key = |child| self.keys[node].get(document.key(child)).copied().unwrap_or(REST);
        let keys: Vec<u32> = document.children(item).map(key).collect();
        debug_assert!(
            keys.iter().all(|key| *key == REST
                || self.schema.nodes[*key as usize].parent as usize == node),
            "a key of another object"
        );
        let Some(shape) = self.shape(&keys) else {
            return self.other(node, document.text(item), row);
        };
        self.push(node, Kind::Shape, row, Given::Integer(i64::from(shape)))?;
        if keys.contains(&REST) {
            let mut rest = Writer::default();
            rest.object_start();
            for (child, _) in document.children(item).zip(&keys).filter(|(_, key)| **key == REST) {
                rest.key_text(document.key(child));
                rest.value(document.text(child));
            }
            rest.object_end();
            let rest = rest.finish();
            self.left += rest.len() as u64;
            self.push(node, Kind::Rest, row, Given::Bytes(rest.as_bytes()))?;
        }
        for (child, key) in document.children(item).zip(keys) {
            if key != REST {
                self.value(key as usize, document, child, row)?;
            }
        }
        Ok(())
    }

    /// The number of a shape; `None` beyond their limits.
    fn shape(&mut self, keys: &[u32]) -> Option<u32> {
        if let Some(known) = self.shapes.get(keys) {
            return Some(*known);
        }
        let number = self.schema.shapes.len();
        debug_assert_eq!(number, self.shapes.len(), "shapes by number and by keys");
        if number == MAX_SHAPES || keys.len() > MAX_SHAPE_KEYS {
            return None;
        }
        self.schema.shapes.push(keys.into());
        self.shapes.insert(keys.into(), number as u32);
        Some(number as u32)
    }

    fn other(&mut self, node: usize, text: &str, row: usize) -> Result<()> {
        debug_assert!(!text.is_empty(), "a value without text");
        self.left += text.len() as u64;
        self.push(node, Kind::Other, row, Given::Bytes(text.as_bytes()))
    }

    fn push(&mut self, node: usize, kind: Kind, row: usize, value: Given<'_>) -> Result<()> {
        self.column(node, kind).push(row, value)
    }

    fn column(&mut self, node: usize, kind: Kind) -> &mut SubColumn {
        debug_assert!(node < self.schema.nodes.len(), "a sub-column of node {node}");
        let at = node * Kind::ALL.len() + kind as usize;
        self.columns[at].get_or_insert_with(|| SubColumn::new(node, kind))
    }

    /// The schema and its sub-columns, by number.
    pub fn finish(mut self) -> (Schema, Vec<SubColumn>) {
        let mut schema = self.schema;
        for at in 0..schema.nodes.len() {
            schema.nodes[at].rows = match schema.nodes[at].step {
                DocumentStep::Root => self.documents,
                DocumentStep::Key(_) => schema.nodes[schema.nodes[at].parent as usize].rows,
                DocumentStep::Element => self.elements[at],
            };
        }
        schema
            .set_kinds(|node, kind| self.columns[node * Kind::ALL.len() + kind as usize].is_some());
        let mut columns: Vec<SubColumn> = self.columns.drain(..).flatten().collect();
        for column in &mut columns {
            let node = &schema.nodes[column.node];
            match (column.kind, node.element) {
                (Kind::Start, Some(element)) => {
                    column.fill_with(node.rows, self.elements[element as usize] as i64);
                }
                _ => column.fill(node.rows),
            }
        }
        invariant!(
            columns.len() == schema.columns(),
            "{} sub-columns of {}",
            columns.len(),
            schema.columns()
        );
        (schema, columns)
    }
}
