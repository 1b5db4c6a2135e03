//! `WHERE` clauses, as SQL and as the model evaluates them.

use crate::op::row::{Column, NUMBER_IN_DOCUMENT, Row, TEXT_IN_DOCUMENT};

/// The rows that a statement selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Where {
    /// All.
    All,
    /// One key.
    Key(i64),
    /// A range of keys.
    Keys(i64, i64),
    /// Rows whose number modulo seven is this.
    Remainder(i64),
    /// Rows without a text.
    NoText,
    /// One number.
    V(i64),
    /// A range of numbers.
    Vs(i64, i64),
    /// One of some numbers.
    In([i64; 3]),
    /// One text.
    S(String),
    /// One text and one number.
    Both(String, i64),
    /// One text or one number.
    Either(String, i64),
    /// One number in the optional column `w`.
    W(i64),
    /// One number in the optional column `z`.
    Z(i64),
    /// One number in the document.
    Number(i64),
    /// One text in the document.
    Listed(String),
}

impl Where {
    /// Whether a row satisfies the condition.
    pub fn holds(&self, row: &Row) -> bool {
        match self {
            Where::All => true,
            Where::Key(k) => row.k == *k,
            Where::Keys(low, high) => (low..=high).contains(&&row.k),
            Where::Remainder(r) => row.v % 7 == *r,
            Where::NoText => row.s.is_none(),
            Where::V(v) | Where::Number(v) => row.v == *v,
            Where::Vs(low, high) => (low..=high).contains(&&row.v),
            Where::In(list) => list.contains(&row.v),
            Where::S(s) | Where::Listed(s) => row.s.as_ref() == Some(s),
            Where::Both(s, v) => row.s.as_ref() == Some(s) && row.v == *v,
            Where::Either(s, v) => row.s.as_ref() == Some(s) || row.v == *v,
            Where::W(w) => row.w == Some(*w),
            Where::Z(z) => row.z == Some(*z),
        }
    }

    /// The column that it needs, which not every table has.
    pub fn needs(&self) -> Option<Column> {
        match self {
            Where::W(_) => Some(Column::W),
            Where::Z(_) => Some(Column::Z),
            Where::Number(_) | Where::Listed(_) => Some(Column::D),
            _ => None,
        }
    }

    pub(crate) fn sql(&self) -> String {
        match self {
            Where::All => String::new(),
            Where::Key(k) => format!(" where k = {k}"),
            Where::Keys(low, high) => format!(" where k between {low} and {high}"),
            Where::Remainder(r) => format!(" where v % 7 = {r}"),
            Where::NoText => " where s is null".into(),
            Where::V(v) => format!(" where v = {v}"),
            Where::Vs(low, high) => format!(" where v between {low} and {high}"),
            Where::In([a, b, c]) => format!(" where v in ({a}, {b}, {c})"),
            Where::S(s) => format!(" where s = '{s}'"),
            Where::Both(s, v) => format!(" where s = '{s}' and v = {v}"),
            Where::Either(s, v) => format!(" where (s = '{s}' or v = {v})"),
            Where::W(w) => format!(" where w = {w}"),
            Where::Z(z) => format!(" where z = {z}"),
            Where::Number(v) => format!(" where {NUMBER_IN_DOCUMENT} = {v}"),
            Where::Listed(s) => format!(" where {TEXT_IN_DOCUMENT} = '{s}'"),
        }
    }
}
