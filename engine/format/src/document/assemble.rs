//! Puts a document together from one row of its sub-columns.

use super::number::{write_double, write_integer};
use super::schema::{DocumentStep, Kind, REST, Schema};
use nacre_column::Scalar;
use nacre_types::json::{Token, Tokens, put_quoted};
use nacre_types::limits::MAX_VALUE_BYTES;
use nacre_types::{Error, Result};
use std::borrow::Cow;

/// Where values of sub-columns come from.
pub trait Source {
    /// The value in a row of a sub-column.
    fn get(&self, column: usize, row: usize) -> Result<Scalar<'_>>;
}

/// Appends the value at a node in a row, which has one: at the root, the document.
pub fn assemble(
    schema: &Schema,
    source: &impl Source,
    (node, row): (usize, usize),
    out: String,
) -> Result<String> {
    debug_assert!(row < schema.nodes[node].rows, "row {row} of {}", schema.nodes[node].rows);
    let mut assembly = Assembly { schema, source, most: out.len() + MAX_VALUE_BYTES, out };
    assembly.value(node, row)?;
    Ok(assembly.out)
}

struct Assembly<'a, S> {
    schema: &'a Schema,
    source: &'a S,
    out: String,
    /// Length that a document cannot reach.
    most: usize,
}

impl<S: Source> Assembly<'_, S> {
    /// Appends the value in a row of a node. Levels of nodes bound the recursion.
    fn value(&mut self, node: usize, row: usize) -> Result<()> {
        let (schema, source) = (self.schema, self.source);
        debug_assert!(node < schema.nodes.len(), "node {node} of {}", schema.nodes.len());
        if self.out.len() > self.most {
            return Err(Error::corrupt("a document longer than any"));
        }
        for (kind, column) in schema.nodes[node].columns() {
            if matches!(kind, Kind::Start | Kind::Rest) {
                continue;
            }
            match (kind, source.get(column, row)?) {
                (_, Scalar::Null) => continue,
                (Kind::Shape, Scalar::I64(shape)) => return self.object(node, row, shape),
                (Kind::Length, Scalar::I64(length)) => return self.array(node, row, length),
                (Kind::Integer, Scalar::I64(value)) => write_integer(value, &mut self.out),
                (Kind::Double, Scalar::F64(value)) if value.is_finite() => {
                    write_double(value, &mut self.out);
                }
                (Kind::Boolean, Scalar::Bool(value)) => {
                    self.out.push_str(if value { "true" } else { "false" });
                }
                (Kind::String, Scalar::Bytes(characters)) => {
                    put_quoted(&mut self.out, text(&characters)?);
                }
                (Kind::Other, Scalar::Bytes(value)) => self.out.push_str(text(&value)?),
                _ => return Err(Error::corrupt("a value that its sub-column cannot have")),
            }
            return Ok(());
        }
        self.out.push_str("null");
        Ok(())
    }

    fn array(&mut self, node: usize, row: usize, length: i64) -> Result<()> {
        let place = &self.schema.nodes[node];
        let outside = || Error::corrupt("an array with elements that are not there");
        let (Some(element), Some(starts)) = (place.element, place.column(Kind::Start)) else {
            return Err(outside());
        };
        let Scalar::I64(start) = self.source.get(starts, row)? else { return Err(outside()) };
        let end = start.checked_add(length).filter(|_| start >= 0 && length >= 0);
        let end = end.and_then(|end| usize::try_from(end).ok());
        let end = end.filter(|end| *end <= self.schema.nodes[element as usize].rows);
        let start = start as usize;
        self.out.push('[');
        for at in start..end.ok_or_else(outside)? {
            if at > start {
                self.out.push(',');
            }
            self.value(element as usize, at)?;
        }
        self.out.push(']');
        Ok(())
    }

    fn object(&mut self, node: usize, row: usize, shape: i64) -> Result<()> {
        let schema = self.schema;
        let shape = usize::try_from(shape).ok().and_then(|shape| schema.shapes.get(shape));
        let shape = shape.ok_or_else(|| Error::corrupt("an object of an unknown shape"))?;
        let rest = match shape.contains(&REST) {
            true => rest(schema, self.source, node, row)?,
            false => Cow::Borrowed("{}"),
        };
        let mut rest = Tokens::new(&rest);
        rest.next()?;
        self.out.push('{');
        for (at, key) in shape.iter().enumerate() {
            if at > 0 {
                self.out.push(',');
            }
            if *key == REST {
                self.member(&mut rest)?;
                continue;
            }
            let child = &schema.nodes[*key as usize];
            match &child.step {
                DocumentStep::Key(key) if child.parent as usize == node => {
                    self.out.push_str(key);
                    self.out.push(':');
                }
                _ => return Err(Error::corrupt("a shape of another object")),
            }
            self.value(*key as usize, row)?;
        }
        self.out.push('}');
        Ok(())
    }

    /// Appends the next member of the rest.
    fn member(&mut self, rest: &mut Tokens<'_>) -> Result<()> {
        let missing = || Error::corrupt("an object without a member of its rest");
        if !matches!(rest.next(), Ok(Some(Token::Key(_)))) {
            return Err(missing());
        }
        self.out.push_str(rest.text());
        self.out.push(':');
        let value = rest.value().ok().flatten().ok_or_else(missing)?;
        self.out.push_str(value);
        Ok(())
    }
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| Error::corrupt("text is not UTF-8"))
}

/// The members of an object that have no node.
fn rest<'a>(
    schema: &Schema,
    source: &'a impl Source,
    node: usize,
    row: usize,
) -> Result<Cow<'a, str>> {
    let missing = || Error::corrupt("an object without the rest of its members");
    let column = schema.nodes[node].column(Kind::Rest).ok_or_else(missing)?;
    match source.get(column, row)? {
        Scalar::Bytes(Cow::Borrowed(rest)) => text(rest).map(Cow::Borrowed),
        Scalar::Bytes(Cow::Owned(rest)) => match String::from_utf8(rest) {
            Ok(rest) => Ok(Cow::Owned(rest)),
            Err(_) => Err(missing()),
        },
        _ => Err(missing()),
    }
}
