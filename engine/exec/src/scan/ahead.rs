//! Looks ahead for a sort with a limit: reads the first key of rows in those blocks in which, by their
//! zones, the first rows are likely, until there are as many rows as the limit.

use super::morsel::Morsel;
use super::point::point_key;
use super::source::{Locators, RowSource, StoredColumns};
use super::spec::ScanSpec;
use super::view::view_of;
use nacre_column::Batch;
use nacre_operator::context::Context;
use nacre_operator::expr::compare_values;
use nacre_operator::operator::protocol::Operator;
use nacre_sql::expr::Expr;
use nacre_sql::index_access;
use nacre_sql::plan::SortKey;
use nacre_table::{Span, TableView, Zone};
use nacre_types::{Result, TableSchema, Value};
use std::cmp::Ordering;
use std::sync::Arc;

/// Tables of fewer blocks are read without looking ahead.
const LEAST_BLOCKS: usize = 8;
/// One block in this many is looked at, at most.
const ONE_IN: usize = 8;

/// Rows of some blocks of a scan, of one column only.
struct Ahead {
    schema: Arc<TableSchema>,
    projection: Vec<usize>,
    paths: Vec<Expr>,
    filters: Vec<Expr>,
    /// The output column of the key.
    column: usize,
    descending: bool,
    nulls_first: bool,
    /// Until the blocks are chosen.
    view: Option<TableView>,
    /// Chosen blocks that are not read yet, the first one last.
    blocks: Vec<Morsel>,
    current: Option<RowSource>,
    /// How many more rows are wanted.
    wanted: usize,
}

/// Rows of a scan that are likely among the first `limit` by a key, which is an output column of the
/// scan: of that column alone, in no order, about as many as the limit. `None` where they are found
/// otherwise, or where it is not worth it.
pub(crate) fn build_ahead(
    spec: ScanSpec<'_>,
    column: usize,
    key: &SortKey,
    limit: usize,
    context: &Context<'_>,
) -> Result<Option<Box<dyn Operator>>> {
    if point_key(spec, context).is_some() || index_access(spec.output(), spec.filters).is_some() {
        return Ok(None);
    }
    let view = view_of(&context.table_of(spec.schema)?, spec, context);
    if view.count().blocks < LEAST_BLOCKS {
        return Ok(None);
    }
    Ok(Some(Box::new(Ahead {
        schema: spec.schema.clone(),
        projection: spec.projection.to_vec(),
        paths: spec.paths.to_vec(),
        filters: spec.filters.to_vec(),
        column,
        descending: key.descending,
        nulls_first: key.nulls_first,
        view: Some(view),
        blocks: Vec::new(),
        current: None,
        wanted: limit,
    })))
}

/// Where the first rows of a block are in the order of the key.
#[derive(PartialEq)]
enum Rank {
    /// Nulls, which come first.
    Nulls,
    Value(Value),
    /// There are only nulls, which come last.
    Last,
}

impl Ahead {
    fn spec(&self) -> ScanSpec<'_> {
        ScanSpec {
            schema: &self.schema,
            projection: &self.projection,
            paths: &self.paths,
            filters: &self.filters,
            keys: &[],
        }
    }

    fn rank(&self, zone: Zone) -> Rank {
        if self.nulls_first && zone.null_count > 0 {
            Rank::Nulls
        } else if zone.min.is_null() {
            Rank::Last
        } else {
            Rank::Value(if self.descending { zone.max } else { zone.min })
        }
    }

    fn compare(&self, a: &Rank, b: &Rank) -> Ordering {
        match (a, b) {
            (Rank::Value(a), Rank::Value(b)) if self.descending => compare_values(b, a),
            (Rank::Value(a), Rank::Value(b)) => compare_values(a, b),
            (Rank::Nulls, Rank::Nulls) | (Rank::Last, Rank::Last) => Ordering::Equal,
            (Rank::Nulls, _) | (_, Rank::Last) => Ordering::Less,
            _ => Ordering::Greater,
        }
    }

    /// Chooses the blocks of a view.
    fn choose(&self, view: &TableView, context: &Context<'_>) -> Result<Vec<Morsel>> {
        let columns = StoredColumns::new(self.spec());
        let source = RowSource::new(self.spec(), view.clone(), Locators::Leave, context);
        let mut ranked = Vec::new();
        for morsel in source.morsels(1, context)? {
            if let Morsel::Blocks { view, blocks, .. } = &morsel
                && let [block] = blocks[..]
            {
                let zone = columns.zone(view, self.column, Span::Block(block))?;
                ranked.extend(zone.map(|zone| (self.rank(zone), morsel)));
            }
        }
        if ranked.len() < LEAST_BLOCKS {
            return Ok(Vec::new());
        }
        ranked.sort_by(|(a, _), (b, _)| self.compare(a, b));
        ranked.truncate(ranked.len().div_ceil(ONE_IN));
        Ok(ranked.into_iter().rev().map(|(_, morsel)| morsel).collect())
    }
}

impl Operator for Ahead {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        if let Some(view) = &self.view {
            self.blocks = context.counted(|context| self.choose(view, context))?;
            self.view = None;
        }
        loop {
            if let Some(source) = &mut self.current {
                if let Some((batch, _)) = source.next(context)? {
                    self.wanted = self.wanted.saturating_sub(batch.selected());
                    let Batch { mut columns, rows, selection } = batch;
                    let columns = vec![columns.swap_remove(self.column)];
                    return Ok(Some(Batch { columns, rows, selection }));
                }
                self.current = None;
            }
            if self.wanted == 0 {
                return Ok(None);
            }
            let Some(morsel) = self.blocks.pop() else { return Ok(None) };
            let mut source = RowSource::of_morsel(self.spec(), &morsel, context);
            let is_key = |at: usize| at == self.column;
            source.need_only((0..self.spec().width()).map(is_key).collect());
            self.current = Some(source);
        }
    }
}
