//! Tests of text as automata that read one byte at a time: patterns, which are literals in a fixed
//! order with anything between them (`LIKE` with no wildcard but `%`), and sets of intervals.
//!
//! Each literal of a pattern is searched for as by Knuth, Morris and Pratt (*Fast Pattern Matching
//! in Strings*, 1977), so no byte is read twice. An encoding that stores text as symbols of several
//! bytes can take a whole symbol in one step: it only has to know in which state the symbol ends.

/// The most bytes of all literals or bounds; each has a state with a table of 256 bytes.
const MOST_BYTES: usize = 100;
/// No state.
const NONE: u8 = u8::MAX;
const _: () = assert!(MOST_BYTES + 2 < NONE as usize);

/// A set of texts: those that match a pattern or lie in intervals, or all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The next state, by state and byte. A text begins in state 0.
    next: Vec<[u8; 256]>,
    /// Whether a text that ends in a state passes.
    passes: Vec<bool>,
    /// This state and those above it are never left.
    settled: u8,
}

impl Pattern {
    /// Matches texts that begin with the first literal, end with the last one, and have the others
    /// in order between them; the only literal is the whole text. `None` without literals, and if
    /// they are too long.
    pub fn new(literals: &[&[u8]], negated: bool) -> Option<Pattern> {
        let (first, others) = literals.split_first()?;
        let bytes: usize = literals.iter().map(|literal| literal.len()).sum();
        if bytes > MOST_BYTES {
            return None;
        }
        let (accepting, dead) = (bytes as u8, bytes as u8 + 1);
        let mut next = vec![[dead; 256]; bytes + 2];
        for (state, byte) in first.iter().enumerate() {
            next[state][*byte as usize] = state as u8 + 1;
        }
        let mut base = first.len();
        for literal in others {
            search(&mut next, base, literal);
            base += literal.len();
        }
        debug_assert_eq!(base, bytes, "the state after all literals");
        let ends_open = others.last().is_some_and(|last| last.is_empty());
        if ends_open {
            next[bytes] = [accepting; 256];
        }
        let settled = if ends_open { accepting } else { dead };
        let passes = (0..=dead).map(|state| (state == accepting) != negated).collect();
        Some(Pattern { next, passes, settled })
    }

    /// The texts between some bounds, given whether a text passes; `None` if the bounds are too
    /// long. States are the beginnings of bounds. A byte that leaves them decides, like all other
    /// bytes between the same two that do not.
    pub(crate) fn between<'b>(
        bounds: impl Iterator<Item = &'b [u8]>,
        passes: impl Fn(&[u8]) -> bool,
    ) -> Option<Pattern> {
        let mut beginnings: Vec<Vec<u8>> = vec![Vec::new()];
        let mut next = vec![[NONE; 256]];
        for bound in bounds {
            let mut state = 0;
            for (at, byte) in bound.iter().enumerate() {
                if next[state][*byte as usize] == NONE {
                    if beginnings.len() > MOST_BYTES {
                        return None;
                    }
                    next[state][*byte as usize] = beginnings.len() as u8;
                    beginnings.push(bound[..=at].to_vec());
                    next.push([NONE; 256]);
                }
                state = next[state][*byte as usize] as usize;
            }
        }
        let settled = beginnings.len() as u8;
        for (state, beginning) in beginnings.iter().enumerate() {
            let mut decided = None;
            for (byte, next) in (0..=u8::MAX).zip(&mut next[state]) {
                if *next != NONE {
                    decided = None;
                    continue;
                }
                let decide = || settled + u8::from(!passes(&[&beginning[..], &[byte]].concat()));
                *next = *decided.get_or_insert_with(decide);
            }
        }
        next.extend([[settled; 256], [settled + 1; 256]]);
        let ends = beginnings.iter().map(|text| passes(text)).chain([true, false]).collect();
        Some(Pattern { next, passes: ends, settled })
    }

    /// Number of states; a text begins in state 0. The greatest `u8` is none.
    pub(crate) fn states(&self) -> usize {
        debug_assert_eq!(self.next.len(), self.passes.len(), "a result for each state");
        self.next.len()
    }

    /// The state after some bytes.
    #[inline]
    pub(crate) fn after(&self, state: u8, bytes: &[u8]) -> u8 {
        bytes.iter().fold(state, |state, byte| self.next[state as usize][*byte as usize])
    }

    /// Whether a state is never left.
    #[inline]
    pub(crate) fn is_settled(&self, state: u8) -> bool {
        state >= self.settled
    }

    /// Whether a text that ends in a state passes.
    #[inline]
    pub(crate) fn passes_in(&self, state: u8) -> bool {
        self.passes[state as usize]
    }

    /// Whether a text passes.
    pub fn passes(&self, text: &[u8]) -> bool {
        self.passes_in(self.after(0, text))
    }
}

/// Adds the search for a literal, which begins in state `base`: every byte leads to the state of
/// the longest beginning of the literal that ends there.
fn search(next: &mut [[u8; 256]], base: usize, literal: &[u8]) {
    // The state that the bytes of the literal after its first one lead to.
    let mut restart = base;
    for (at, byte) in literal.iter().enumerate() {
        let mut row = if at == 0 { [base as u8; 256] } else { next[restart] };
        let matched = std::mem::replace(&mut row[*byte as usize], (base + at + 1) as u8);
        if at > 0 {
            restart = matched as usize;
        }
        next[base + at] = row;
    }
    debug_assert!(restart < base + literal.len().max(1), "a restart goes back");
    next[base + literal.len()] = next[restart];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Comparison, Predicate};
    use nacre_types::{PhysicalType, Value};

    /// `LIKE` by its definition.
    fn like(literals: &[&[u8]], text: &[u8]) -> bool {
        match literals {
            [only] => text == *only,
            [first, last] => {
                text.len() >= first.len() + last.len()
                    && text.starts_with(first)
                    && text.ends_with(last)
            }
            [first, middle, others @ ..] => {
                let Some(rest) = text.strip_prefix(*first) else { return false };
                let rest_of = [&[*middle], others].concat();
                (0..=rest.len()).any(|at| like(&rest_of, &rest[at..]))
            }
            [] => false,
        }
    }

    /// All texts of up to some letters over `a` and `b`.
    fn texts(longest: usize) -> Vec<Vec<u8>> {
        let mut all = vec![Vec::new()];
        for from in 0.. {
            let Some(text) = all.get(from).cloned().filter(|text| text.len() < longest) else {
                break;
            };
            for letter in [b'a', b'b'] {
                all.push([&text[..], &[letter]].concat());
            }
        }
        all
    }

    #[test]
    fn every_short_pattern_on_every_short_text() {
        let (literals, texts) = (texts(3), texts(7));
        let mut passed = 0;
        for first in &literals {
            for last in &literals {
                let lists: [&[&[u8]]; 3] = [&[first], &[first, last], &[b"", first, last]];
                for list in lists {
                    let pattern = Pattern::new(list, false).unwrap();
                    let others = Pattern::new(list, true).unwrap();
                    for text in &texts {
                        let expected = like(list, text);
                        assert_eq!(pattern.passes(text), expected, "{list:?} {text:?}");
                        assert_eq!(others.passes(text), !expected, "{list:?} {text:?}");
                        passed += usize::from(expected);
                    }
                }
            }
        }
        assert!(passed > 1000, "{passed}");
    }

    #[test]
    fn sets_of_intervals() {
        let (bounds, texts) = (texts(3), texts(5));
        let compare = |op, bound: &[u8]| {
            let bound = Value::Binary(bound.to_vec());
            Predicate::compare(PhysicalType::Bytes, op, &bound).unwrap()
        };
        let mut passed = 0;
        for a in &bounds {
            for b in &bounds {
                let between = compare(Comparison::GreaterOrEqual, a)
                    .and(&compare(Comparison::Less, b))
                    .or(&compare(Comparison::Equal, a))
                    .or(&Predicate::starts_with(b));
                for set in [between.clone(), between.not()] {
                    let pattern = set.pattern().unwrap();
                    for text in &texts {
                        let expected = set.accepts_bytes(text);
                        assert_eq!(pattern.passes(text), expected, "{set:?} {text:?}");
                        passed += usize::from(expected);
                    }
                }
            }
        }
        assert!(passed > 1000, "{passed}");
        let long = compare(Comparison::Equal, &[b'x'; MOST_BYTES + 1]);
        assert_eq!(long.pattern(), None);
    }

    #[test]
    fn literals_that_are_too_long() {
        let long = [b'x'; MOST_BYTES];
        assert!(Pattern::new(&[&long], false).unwrap().passes(&long));
        assert_eq!(Pattern::new(&[&long, b"y"], false), None);
        assert_eq!(Pattern::new(&[], false), None);
    }
}
