//! The schema of a shredded column: its nodes, which sub-columns each has, and the shapes of
//! objects. Stored in the footer's entry of the column.

use super::{MAX_ELEMENTS, MAX_LEVEL, MAX_NODES, MAX_SHAPE_KEYS, MAX_SHAPES};
use nacre_types::bytes::{Reader, Write};
use nacre_types::json::quoted;
use nacre_types::{DataType, Result, invariant};

/// A kind of value at a node, which has a sub-column for it. Their numbers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Objects: the number of their shape.
    Shape = 0,
    /// Arrays: how many elements they have.
    Length = 1,
    /// For every row, arrays or not: the elements of the rows before it.
    Start = 2,
    /// Numbers that are written as a 64-bit integer is.
    Integer = 3,
    /// Numbers that are written as a double is.
    Double = 4,
    /// Strings: their characters.
    String = 5,
    /// Truth values.
    Boolean = 6,
    /// Any other value, as text.
    Other = 7,
    /// The members of objects that have no node, as an object.
    Rest = 8,
}

impl Kind {
    /// All kinds, by number.
    pub const ALL: [Kind; 9] = [
        Kind::Shape,
        Kind::Length,
        Kind::Start,
        Kind::Integer,
        Kind::Double,
        Kind::String,
        Kind::Boolean,
        Kind::Other,
        Kind::Rest,
    ];

    /// The type of its sub-columns.
    pub fn data_type(self) -> DataType {
        match self {
            Kind::Shape | Kind::Length => DataType::UInt32,
            Kind::Start | Kind::Integer => DataType::Int64,
            Kind::Double => DataType::Float64,
            Kind::String => DataType::TEXT,
            Kind::Boolean => DataType::Boolean,
            Kind::Other | Kind::Rest => DataType::Json,
        }
    }

    /// Whether rows without such a value are null.
    pub fn nullable(self) -> bool {
        self != Kind::Start
    }

    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Shape => "shape",
            Kind::Length => "length",
            Kind::Start => "start",
            Kind::Integer => "integer",
            Kind::Double => "double",
            Kind::String => "string",
            Kind::Boolean => "boolean",
            Kind::Other => "other",
            Kind::Rest => "rest",
        }
    }

    fn bit(self) -> u16 {
        1 << self as u8
    }
}

/// What leads from a node to one of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentStep {
    /// The whole document.
    Root,
    /// A key, in quotes, in its normal form.
    Key(Box<str>),
    /// The elements of arrays.
    Element,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentNode {
    /// The node that it belongs to; 0 for the root.
    pub parent: u32,
    /// How it is reached from its parent.
    pub step: DocumentStep,
    /// The node of the elements of its arrays, if it has one.
    pub element: Option<u32>,
    /// Number of rows: of the root, those of the segment.
    pub rows: usize,
    level: u8,
    kinds: u16,
    /// Its first sub-column.
    first: u32,
}

impl DocumentNode {
    /// A place below another one.
    pub fn new(parent: u32, step: DocumentStep, level: usize) -> DocumentNode {
        debug_assert!(level <= MAX_LEVEL, "a node at level {level}");
        let level = level as u8;
        DocumentNode { parent, step, element: None, rows: 0, level, kinds: 0, first: 0 }
    }

    /// How many steps it is below the root.
    pub fn level(&self) -> usize {
        usize::from(self.level)
    }

    /// Its sub-columns: their kinds and numbers.
    pub fn columns(&self) -> impl Iterator<Item = (Kind, usize)> + '_ {
        let of_node = Kind::ALL.into_iter().filter(|kind| self.kinds & kind.bit() != 0);
        of_node.zip(self.first as usize..)
    }

    /// The number of its sub-column of a kind.
    #[inline]
    pub fn column(&self, kind: Kind) -> Option<usize> {
        debug_assert!(self.kinds >> Kind::ALL.len() == 0, "kinds {:b}", self.kinds);
        let before = (self.kinds & (kind.bit() - 1)).count_ones();
        (self.kinds & kind.bit() != 0).then_some((self.first + before) as usize)
    }
}

/// The keys of an object in order: each the node of a key, or [`REST`].
pub type Shape = Box<[u32]>;

/// A key of a shape that has no node: the next member of the rest. The root is no key.
pub const REST: u32 = 0;

/// The schema of a column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// The places, each after its parent.
    pub nodes: Vec<DocumentNode>,
    /// The shapes of its objects.
    pub shapes: Vec<Shape>,
    columns: usize,
}

impl Schema {
    /// Places without shapes.
    pub fn of_nodes(nodes: Vec<DocumentNode>) -> Schema {
        debug_assert!(
            nodes.iter().enumerate().all(|(at, node)| at == 0 || (node.parent as usize) < at),
            "a node before the one that it belongs to"
        );
        Schema { nodes, shapes: Vec::new(), columns: 0 }
    }

    /// Number of sub-columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Sets which sub-columns a node has, by kind.
    pub fn set_kinds(&mut self, has: impl Fn(usize, Kind) -> bool) {
        debug_assert!(
            (0..self.nodes.len()).all(|at| has(at, Kind::Length) == has(at, Kind::Start)),
            "arrays without a length or a start"
        );
        for (at, node) in self.nodes.iter_mut().enumerate() {
            let kinds = Kind::ALL.into_iter().filter(|kind| has(at, *kind));
            node.kinds = kinds.fold(0, |kinds, kind| kinds | kind.bit());
        }
        self.number();
    }

    /// Numbers the sub-columns: by node, then by kind.
    fn number(&mut self) {
        self.columns = 0;
        for node in &mut self.nodes {
            debug_assert!(node.kinds >> Kind::ALL.len() == 0, "kinds {:b}", node.kinds);
            node.first = self.columns as u32;
            self.columns += node.kinds.count_ones() as usize;
        }
    }

    /// The sub-columns: the node and kind of each, by number.
    pub fn each_column(&self) -> impl Iterator<Item = (usize, Kind)> + '_ {
        let of_node = |(at, node): (usize, &DocumentNode)| {
            node.columns().map(move |(kind, _)| (at, kind)).collect::<Vec<_>>()
        };
        self.nodes.iter().enumerate().flat_map(of_node)
    }

    /// A node's path from the root, for reports: `.a[].b`; empty for the root.
    pub fn path(&self, node: usize) -> String {
        debug_assert!(node < self.nodes.len(), "node {node} of {}", self.nodes.len());
        let mut steps = Vec::new();
        let mut at = node;
        while at != 0 {
            steps.push(match &self.nodes[at].step {
                DocumentStep::Root => break,
                DocumentStep::Element => "[]".to_string(),
                DocumentStep::Key(key) => {
                    let inside = &key[1..key.len() - 1];
                    debug_assert!(key.starts_with('"'), "a key without quotes: {key}");
                    let plain = |c: char| c.is_alphanumeric() || c == '_';
                    match !inside.is_empty() && inside.chars().all(plain) {
                        true => format!(".{inside}"),
                        false => format!(".{key}"),
                    }
                }
            });
            at = self.nodes[at].parent as usize;
        }
        steps.into_iter().rev().collect()
    }

    /// Estimated memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let key = |node: &DocumentNode| match &node.step {
            DocumentStep::Key(key) => key.len(),
            _ => 0,
        };
        let nodes: usize =
            self.nodes.iter().map(|node| size_of::<DocumentNode>() + key(node)).sum();
        let shapes = self.shapes.iter().map(|shape| size_of::<Shape>() + shape.len() * 4);
        nodes + shapes.sum::<usize>()
    }

    /// Appends the schema as it is stored.
    pub fn encode(&self, out: &mut Vec<u8>) {
        invariant!(
            (1..=MAX_NODES).contains(&self.nodes.len()) && self.shapes.len() <= MAX_SHAPES,
            "a schema of {} nodes and {} shapes",
            self.nodes.len(),
            self.shapes.len()
        );
        let start = out.len();
        out.put_varint(self.nodes.len() as u64);
        for (at, node) in self.nodes.iter().enumerate() {
            match &node.step {
                DocumentStep::Root => {}
                DocumentStep::Key(key) => {
                    out.put_varint(u64::from(node.parent) * 2);
                    out.put_bytes(nacre_types::json::unquoted(key).as_bytes());
                }
                DocumentStep::Element => {
                    out.put_varint(u64::from(node.parent) * 2 + 1);
                    out.put_varint(node.rows as u64);
                }
            }
            invariant!((at == 0) == (node.step == DocumentStep::Root), "a root that is node {at}");
            out.put_u16(node.kinds);
        }
        out.put_varint(self.shapes.len() as u64);
        for shape in &self.shapes {
            out.put_varint(shape.len() as u64);
            shape.iter().for_each(|key| out.put_varint(u64::from(*key)));
        }
        debug_assert!(
            Schema::decode(&mut Reader::new(&out[start..], "schema"), self.nodes[0].rows)
                .is_ok_and(|read| read == *self),
            "a schema does not read back"
        );
    }

    /// Reads what [`Schema::encode`] wrote, for a segment of some rows.
    pub fn decode(reader: &mut Reader<'_>, rows: usize) -> Result<Schema> {
        let mut schema = Schema::default();
        let count = reader.count(MAX_NODES)?;
        for at in 0..count {
            let node = schema.decode_node(reader, at, rows)?;
            schema.nodes.push(node);
        }
        if schema.nodes.is_empty() {
            return Err(reader.corrupt("a schema without a root"));
        }
        for _ in 0..reader.count(MAX_SHAPES)? {
            let mut shape = Vec::new();
            for _ in 0..reader.count(MAX_SHAPE_KEYS)? {
                let key = reader.count(count - 1)?;
                if key != 0 && !matches!(schema.nodes[key].step, DocumentStep::Key(_)) {
                    return Err(reader.corrupt("a key of a shape that is no key"));
                }
                shape.push(key as u32);
            }
            schema.shapes.push(shape.into());
        }
        schema.number();
        schema.check(reader)?;
        Ok(schema)
    }

    fn decode_node(
        &mut self,
        reader: &mut Reader<'_>,
        at: usize,
        rows: usize,
    ) -> Result<DocumentNode> {
        debug_assert!(at == self.nodes.len(), "node {at} after {}", self.nodes.len());
        let mut node = match at {
            0 => DocumentNode { rows, ..DocumentNode::new(0, DocumentStep::Root, 0) },
            _ => {
                let place = reader.count(MAX_NODES * 2)?;
                let parent = place / 2;
                let Some(above) = self.nodes.get_mut(parent).filter(|n| n.level() < MAX_LEVEL)
                else {
                    return Err(reader.corrupt("a node before the one that it belongs to"));
                };
                let (parent, level) = (parent as u32, above.level() + 1);
                match place % 2 {
                    0 => {
                        let rows = above.rows;
                        let key = quoted(reader.text()?).into();
                        DocumentNode {
                            rows,
                            ..DocumentNode::new(parent, DocumentStep::Key(key), level)
                        }
                    }
                    _ => {
                        if above.element.replace(at as u32).is_some() {
                            return Err(reader.corrupt("arrays with elements at two nodes"));
                        }
                        let rows = reader.count(MAX_ELEMENTS)?;
                        DocumentNode {
                            rows,
                            ..DocumentNode::new(parent, DocumentStep::Element, level)
                        }
                    }
                }
            }
        };
        node.kinds = reader.u16()?;
        if node.kinds >> Kind::ALL.len() != 0 {
            return Err(reader.corrupt("an unknown kind of values"));
        }
        Ok(node)
    }

    /// Checks what holds between nodes.
    fn check(&self, reader: &Reader<'_>) -> Result<()> {
        debug_assert!(!self.nodes.is_empty(), "a schema without a root");
        for node in &self.nodes {
            let arrays = node.column(Kind::Length).is_some();
            if arrays != node.column(Kind::Start).is_some() || (arrays && node.element.is_none()) {
                return Err(reader.corrupt("arrays without a length, a start or elements"));
            }
        }
        for shape in &self.shapes {
            let mut keys = shape.iter().filter(|key| **key != REST);
            let parent = keys.next().map(|key| self.nodes[*key as usize].parent);
            if keys.any(|key| Some(self.nodes[*key as usize].parent) != parent) {
                return Err(reader.corrupt("a shape with keys of two objects"));
            }
        }
        Ok(())
    }
}
