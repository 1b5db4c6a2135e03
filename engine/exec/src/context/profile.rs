//! What `PROFILE` measures: for each node of a plan the rows it gave, the time it took with everything below it, and
//! what it read.
//!
//! Nodes are told by where they are in memory: plans stay in place while they run. Copies that threads work on are
//! made known as such, so several threads count for the node they are copies of; their times add up.

use crate::context::{Context, Counter, LocatingOperator, Operator, Statistics, count};
use nacre_column::Batch;
use nacre_sql::plan::Plan;
use nacre_table::RowLocator;
use nacre_types::Result;
use nacre_types::hash::Map;
use std::sync::{PoisonError, RwLock};

/// The measurements of one run of a statement.
#[derive(Debug)]
pub struct Profile {
    nodes: Vec<Measured>,
    /// Node numbers by where nodes and their copies are.
    places: RwLock<Map<usize, usize>>,
}

/// What is known of one node.
#[derive(Debug, Default)]
pub struct Measured {
    /// Rows it gave.
    pub rows: Counter,
    /// Nanoseconds until it gave them, those of all threads together.
    pub time_ns: Counter,
    /// How often it was asked for rows; never when nobody needed it.
    pub calls: Counter,
    /// What the node itself read.
    pub statistics: Statistics,
}

impl Profile {
    /// Nothing measured yet, for these nodes.
    pub fn of<'p>(nodes: impl Iterator<Item = &'p Plan>) -> Profile {
        let mut places = Map::default();
        let mut measured = Vec::new();
        for plan in nodes {
            places.insert(place(plan), measured.len());
            measured.push(Measured::default());
        }
        Profile { nodes: measured, places: RwLock::new(places) }
    }

    /// All nodes, in the order they were given in.
    pub fn nodes(&self) -> &[Measured] {
        &self.nodes
    }

    fn number(&self, plan: &Plan) -> Option<usize> {
        self.places.read().unwrap_or_else(PoisonError::into_inner).get(&place(plan)).copied()
    }

    /// What `copy` does counts for the plan it was copied from.
    pub(crate) fn copied(&self, plan: &Plan, copy: &Plan) {
        // What is shared is not copied. As a tree it may be far larger than it is.
        if std::ptr::eq(plan, copy) {
            return;
        }
        if let Some(number) = self.number(plan) {
            self.places.write().unwrap_or_else(PoisonError::into_inner).insert(place(copy), number);
        }
        let (mut inputs, mut copies) = (Vec::new(), Vec::new());
        plan.for_each_input(&mut |input| inputs.push(input));
        copy.for_each_input(&mut |input| copies.push(input));
        inputs.iter().zip(copies).for_each(|(input, copy)| self.copied(input, copy));
    }
}

fn place(plan: &Plan) -> usize {
    std::ptr::from_ref(plan).addr()
}

impl<'a> Context<'a> {
    /// The surroundings of a node: it counts what it reads by itself when it is measured.
    pub(crate) fn of_node(&self, plan: &Plan) -> Context<'a> {
        let measured = self.profile.and_then(|profile| profile.nodes.get(profile.number(plan)?));
        Context { statistics: measured.map_or(self.statistics, |m| &m.statistics), ..*self }
    }
}

/// The operator, measured as this node if somebody asked.
pub(crate) fn measured(
    operator: Box<dyn Operator>,
    plan: &Plan,
    context: &Context<'_>,
) -> Box<dyn Operator> {
    match context.profile.and_then(|profile| profile.number(plan)) {
        Some(number) => Box::new(Measuring { operator, number }),
        None => operator,
    }
}

/// The same for an operator that says where rows are.
pub(crate) fn measured_locating(
    operator: Box<dyn LocatingOperator>,
    plan: &Plan,
    context: &Context<'_>,
) -> Box<dyn LocatingOperator> {
    match context.profile.and_then(|profile| profile.number(plan)) {
        Some(number) => Box::new(Measuring { operator, number }),
        None => operator,
    }
}

struct Measuring<O: ?Sized> {
    number: usize,
    operator: Box<O>,
}

impl<O: ?Sized> Measuring<O> {
    fn measure<T>(
        &mut self,
        context: &Context<'_>,
        next: impl FnOnce(&mut O, &Context<'_>) -> Result<T>,
        rows: impl FnOnce(&T) -> usize,
    ) -> Result<T> {
        let Some(node) = context.profile.and_then(|profile| profile.nodes.get(self.number)) else {
            return next(&mut self.operator, context);
        };
        let store = context.transaction.store();
        let from = store.now_ns();
        let given =
            next(&mut self.operator, &Context { statistics: &node.statistics, ..*context })?;
        count(&node.time_ns, store.now_ns().saturating_sub(from) as usize);
        count(&node.calls, 1);
        count(&node.rows, rows(&given));
        Ok(given)
    }
}

impl Operator for Measuring<dyn Operator> {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        let rows = |next: &Option<Batch>| next.as_ref().map_or(0, Batch::selected);
        self.measure(context, |operator, context| operator.next(context), rows)
    }
}

impl LocatingOperator for Measuring<dyn LocatingOperator> {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<(Batch, Vec<RowLocator>)>> {
        let rows = |given: &Option<(Batch, Vec<RowLocator>)>| {
            given.as_ref().map_or(0, |(batch, _)| batch.rows)
        };
        self.measure(context, |operator, context| operator.next(context), rows)
    }
}
