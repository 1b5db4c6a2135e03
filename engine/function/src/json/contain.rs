//! Whether one document contains another, as PostgreSQL's `@>` defines it: every member of an
//! object is in the other one, and every element of an array in some element of the other one. As
//! an exception, an array contains its scalars.

use super::convert::is_same_scalar;
use super::select::is_container;
use super::tree::Tree;
use nacre_types::Result;

/// Whether `target` contains `candidate`.
pub fn contains(target: &str, candidate: &str) -> Result<bool> {
    let both = Both { targets: Tree::read(target)?, candidates: Tree::read(candidate)? };
    if target.starts_with('[') && !is_container(candidate) {
        let mut elements = both.targets.inside(0).map(|at| both.targets.node(at).value);
        return Ok(elements.any(|element| is_same_scalar(element, candidate)));
    }
    let mut open: Vec<Pair> = Vec::new();
    let mut answer = both.begin(0, 0, &mut open);
    while let Some(pair) = open.last_mut() {
        answer = match pair.next(&both, answer) {
            Next::Answer(found) => {
                open.pop();
                Some(found)
            }
            Next::Compare(target, candidate) => both.begin(target, candidate, &mut open),
        };
    }
    Ok(answer == Some(true))
}

struct Both<'a> {
    targets: Tree<'a>,
    candidates: Tree<'a>,
}

/// Two objects or two arrays that are being compared, by the numbers of what is in them.
struct Pair {
    /// Of an object in the order of their keys.
    targets: Vec<usize>,
    candidates: Vec<usize>,
    is_object: bool,
    /// The candidate that is looked for.
    candidate: usize,
    /// The element of the target that it is compared with.
    target: usize,
}

enum Next {
    Answer(bool),
    Compare(usize, usize),
}

impl Pair {
    /// Goes on after the answer for the last comparison, if there was one.
    fn next(&mut self, both: &Both<'_>, answer: Option<bool>) -> Next {
        match answer {
            Some(true) => {
                self.candidate += 1;
                self.target = 0;
            }
            Some(false) if self.is_object => return Next::Answer(false),
            Some(false) => self.target += 1,
            None => {}
        }
        let Some(candidate) = self.candidates.get(self.candidate) else {
            return Next::Answer(true);
        };
        let key = &both.candidates.node(*candidate).key;
        let target = match self.is_object {
            true => {
                let found = self.targets.binary_search_by(|at| both.targets.node(*at).key.cmp(key));
                found.ok().and_then(|at| self.targets.get(at))
            }
            false => self.targets.get(self.target),
        };
        match target {
            Some(target) => Next::Compare(*target, *candidate),
            None => Next::Answer(false),
        }
    }
}

impl Both<'_> {
    /// Answers for scalars and values of different types, and opens a pair for others.
    fn begin(&self, target: usize, candidate: usize, open: &mut Vec<Pair>) -> Option<bool> {
        let (t, c) = (self.targets.node(target).value, self.candidates.node(candidate).value);
        if !is_container(t) || !is_container(c) {
            return Some(is_same_scalar(t, c));
        }
        let is_object = t.starts_with('{');
        if is_object != c.starts_with('{') {
            return Some(false);
        }
        let mut targets: Vec<usize> = self.targets.inside(target).collect();
        if is_object {
            targets
                .sort_unstable_by(|a, b| self.targets.node(*a).key.cmp(&self.targets.node(*b).key));
        }
        let candidates = self.candidates.inside(candidate).collect();
        open.push(Pair { targets, candidates, is_object, candidate: 0, target: 0 });
        None
    }
}

#[cfg(test)]
mod tests {
    use super::contains;

    #[test]
    fn containment() {
        for (target, candidate, found) in [
            ("[1,2]", "2", true),
            ("[1,[2]]", "2", false),
            ("[1,[2,3]]", "[[3]]", true),
            ("[[1],[1,2]]", "[[2,1]]", true),
            ("[1]", "[]", true),
            ("[1,1.0]", "[1,1,1]", true),
            ("{\"a\":{\"b\":[1,2]},\"c\":3}", "{\"a\":{\"b\":[2]}}", true),
            ("{\"a\":1}", "{\"a\":1,\"b\":2}", false),
            ("{\"b\":1,\"c\":2,\"a\":3}", "{\"c\":2,\"b\":1}", true),
            ("{\"a\":1}", "[1]", false),
            ("1", "[1]", false),
            ("\"a\"", "\"a\"", true),
        ] {
            assert_eq!(contains(target, candidate).unwrap(), found, "{target} @> {candidate}");
        }
    }

    #[test]
    fn many_keys_are_not_compared_in_pairs() {
        let members: Vec<String> = (0..200_000).map(|at| format!("\"{at}\":{at}")).collect();
        let wide = format!("{{{}}}", members.join(","));
        assert!(contains(&wide, &wide).unwrap());
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = format!("{}1{}", "[".repeat(9_999), "]".repeat(9_999));
        assert!(contains(&deep, &deep).unwrap());
    }
}
