//! What is left to be brought before anything asks for it. `warm` brings it.

use nacre_host::{Missing, Result, Warming};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a step after something else was fetched: what is asked for meanwhile shares the link with it.
const LEAST_BYTES: u64 = 128 << 10;
/// Most bytes of a step.
const MOST_BYTES: u64 = 4 << 20;

/// What is left to be brought.
#[derive(Default)]
pub(crate) struct Warmer {
    /// Names what comes next; `None` once there is nothing more.
    next: Option<Warming>,
    /// What was named, in order.
    named: VecDeque<(Arc<str>, Range<u64>)>,
    /// Bytes that were asked for.
    pub asked: u64,
    pub failures: u32,
    /// Bytes of the step before, at most.
    step_bytes: u64,
    /// No step is taken before this time.
    pub retry_ns: u64,
}

impl Warmer {
    pub fn new(next: Warming) -> Warmer {
        Warmer { next: Some(next), ..Warmer::default() }
    }

    /// Notes that something else is fetched: the next steps are short.
    pub fn make_way(&mut self) {
        self.step_bytes = 0;
    }

    /// What is brought next, at most a step's bytes, which grow from step to step.
    ///
    /// # Errors
    /// Those of the reads that tell what is wanted.
    pub fn step(&mut self) -> Result<Vec<Missing>> {
        while self.named.is_empty()
            && let Some(next) = &mut self.next
        {
            let named = match next() {
                Ok(Some(named)) => named,
                Ok(None) => {
                    self.next = None;
                    break;
                }
                // What tells what is wanted is wanted first.
                Err(error) => match error.missing() {
                    Some(missing) => missing.to_vec(),
                    None => return Err(error),
                },
            };
            let ranges = |Missing { file, ranges }| {
                let file: Arc<str> = file;
                ranges.into_iter().map(move |range| (file.clone(), range))
            };
            self.named = named.into_iter().flat_map(ranges).collect();
        }
        let most = (self.step_bytes * 2).clamp(LEAST_BYTES, MOST_BYTES);
        self.step_bytes = most;
        let (mut step, mut left): (Vec<Missing>, u64) = (Vec::new(), most);
        while left > 0
            && let Some((file, range)) = self.named.front_mut()
        {
            let end = range.end.min(range.start.saturating_add(left));
            left -= end - range.start;
            let part = range.start..end;
            match step.last_mut() {
                Some(last) if last.file == *file => last.ranges.push(part),
                _ => step.push(Missing { file: file.clone(), ranges: vec![part] }),
            }
            range.start = end;
            if range.is_empty() {
                self.named.pop_front();
            }
        }
        self.asked += most - left;
        Ok(step)
    }

    /// Puts back what a step has not brought.
    pub fn put_back(&mut self, step: Vec<Missing>) {
        for Missing { file, ranges } in step.into_iter().rev() {
            for range in ranges.into_iter().rev() {
                self.asked = self.asked.saturating_sub(range.end - range.start);
                self.named.push_front((file.clone(), range));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_grow_until_something_else_is_fetched() {
        let mut named =
            Some(Missing { file: "a".into(), ranges: std::iter::once(0..32 << 20).collect() });
        let mut warmer =
            Warmer::new(Box::new(move || Ok(named.take().map(|missing| vec![missing]))));
        let mut next = |is_first: bool| {
            if is_first {
                warmer.make_way();
            }
            let step = warmer.step().unwrap();
            step.iter()
                .flat_map(|part| &part.ranges)
                .map(|range| range.end - range.start)
                .sum::<u64>()
        };
        let sizes: Vec<u64> = (0..7).map(|_| next(false) >> 10).collect();
        assert_eq!(sizes, [128, 256, 512, 1_024, 2_048, 4_096, 4_096]);
        assert_eq!((next(true), next(false)), (LEAST_BYTES, 2 * LEAST_BYTES));
    }
}
