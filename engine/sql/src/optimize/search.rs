//! Searches for a good order of inner joins: exhaustively for few relations, by dynamic programming
//! over sets (G. Moerkotte and T. Neumann, *Analysis of Two Existing and One New Dynamic
//! Programming Algorithm*, VLDB 2006; here by enumerating all splits), and greedily for more.
//!
//! The cost of a tree is the number of rows its joins read, build tables from and output. The first
//! tree found wins a tie, so the order is deterministic.

use super::graph::Graph;

/// Larger sets are ordered greedily.
const MAX_EXHAUSTIVE: usize = 10;

/// An order of joins.
#[derive(Clone, Debug)]
pub(super) enum Tree {
    Relation(usize),
    /// The larger side comes first.
    Join(Box<Tree>, Box<Tree>),
}

impl Tree {
    /// The set of relations in the tree.
    pub fn relations(&self) -> u64 {
        match self {
            Tree::Relation(at) => 1 << at,
            Tree::Join(left, right) => left.relations() | right.relations(),
        }
    }
}

/// Cost of a join in rows. Inserting a row into the hash table costs more than probing it.
fn cost(a: f64, b: f64, out: f64) -> f64 {
    out + a.max(b) + 3.0 * a.min(b)
}

fn join(a: Tree, a_rows: f64, b: Tree, b_rows: f64) -> Tree {
    if a_rows >= b_rows {
        Tree::Join(Box::new(a), Box::new(b))
    } else {
        Tree::Join(Box::new(b), Box::new(a))
    }
}

/// A good order of all relations of the graph; `None` if there are no relations.
pub(super) fn search(graph: &Graph) -> Option<Tree> {
    let mut parts: Vec<u64> = (0..graph.relations.len()).map(|at| 1 << at).collect();
    // Unconnected parts are joined last.
    let mut done = false;
    while !done {
        done = true;
        'pairs: for i in 0..parts.len() {
            for j in i + 1..parts.len() {
                let spans = |set: u64| set & parts[i] != 0 && set & parts[j] != 0;
                if graph.connected(parts[i], parts[j])
                    || graph.conditions.iter().any(|c| spans(c.relations))
                {
                    let other = parts.remove(j);
                    parts[i] |= other;
                    done = false;
                    break 'pairs;
                }
            }
        }
    }
    let mut trees: Vec<(Tree, f64)> = Vec::with_capacity(parts.len());
    for part in parts {
        let tree = if part.count_ones() as usize <= MAX_EXHAUSTIVE {
            exhaustive(graph, part)
        } else {
            None
        };
        trees.push((tree.unwrap_or_else(|| greedy(graph, part)), graph.rows(part)));
    }
    trees.sort_by(|a, b| a.1.total_cmp(&b.1));
    trees
        .into_iter()
        .reduce(|a, b| {
            let rows = a.1 * b.1;
            (join(a.0, a.1, b.0, b.1), rows)
        })
        .map(|(tree, _)| tree)
}

/// The cheapest tree of a connected set of relations.
fn exhaustive(graph: &Graph, part: u64) -> Option<Tree> {
    let members: Vec<usize> =
        (0..graph.relations.len()).filter(|at| part & (1 << at) != 0).collect();
    let count = members.len();
    let spread = |set: usize| {
        let inside = members.iter().enumerate().filter(|(at, _)| set & (1 << at) != 0);
        inside.fold(0u64, |mask, (_, relation)| mask | 1 << relation)
    };
    let products = graph.has_wide_conditions();
    let full = (1usize << count) - 1;
    let masks: Vec<u64> = (0..=full).map(spread).collect();
    let rows: Vec<f64> = masks.iter().map(|mask| graph.rows(*mask)).collect();
    // For each set, its cost and the subset on one side of the top join.
    let mut best: Vec<(f64, usize)> = vec![(f64::INFINITY, 0); full + 1];
    for at in 0..count {
        best[1 << at].0 = 0.0;
    }
    for set in 1..=full {
        if set.is_power_of_two() {
            continue;
        }
        let lowest = set & set.wrapping_neg();
        // Every proper subset that contains the lowest member, so each split is tried once.
        let rest = set ^ lowest;
        let mut sub = (rest - 1) & rest;
        loop {
            let (a, b) = (sub | lowest, set ^ (sub | lowest));
            let below = best[a].0 + best[b].0;
            if below < best[set].0 && (products || graph.connected(masks[a], masks[b])) {
                let total = below + cost(rows[a], rows[b], rows[set]);
                if total < best[set].0 {
                    best[set] = (total, a);
                }
            }
            if sub == 0 {
                break;
            }
            sub = (sub - 1) & rest;
        }
    }
    fn tree(set: usize, best: &[(f64, usize)], rows: &[f64], members: &[usize]) -> Tree {
        if set.is_power_of_two() {
            return Tree::Relation(members[set.trailing_zeros() as usize]);
        }
        let (a, b) = (best[set].1, set ^ best[set].1);
        join(tree(a, best, rows, members), rows[a], tree(b, best, rows, members), rows[b])
    }
    best[full].0.is_finite().then(|| tree(full, &best, &rows, &members))
}

/// Repeatedly joins the cheapest pair; unconnected pairs come last.
fn greedy(graph: &Graph, part: u64) -> Tree {
    let members = (0..graph.relations.len()).filter(|at| part & (1 << at) != 0);
    let mut nodes: Vec<(Tree, u64, f64)> =
        members.map(|at| (Tree::Relation(at), 1 << at, graph.rows(1 << at))).collect();
    while nodes.len() > 1 {
        let mut best: Option<((bool, f64), usize, usize)> = None;
        for i in 0..nodes.len() {
            for j in i + 1..nodes.len() {
                let (a, b) = (&nodes[i], &nodes[j]);
                let loose = !graph.connected(a.1, b.1);
                let rank = (loose, cost(a.2, b.2, graph.rows(a.1 | b.1)));
                if best.as_ref().is_none_or(|(least, ..)| rank < *least) {
                    best = Some((rank, i, j));
                }
            }
        }
        let Some((_, i, j)) = best else { break };
        let (b, a) = (nodes.remove(j), nodes.remove(i));
        let set = a.1 | b.1;
        nodes.insert(i, (join(a.0, a.2, b.0, b.2), set, graph.rows(set)));
    }
    nodes.pop().map_or(Tree::Relation(0), |(tree, ..)| tree)
}
