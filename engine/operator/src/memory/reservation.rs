//! One operator's reservation of a statement's memory.

use super::pool::Memory;

/// The memory reserved by one operator, released on drop.
#[derive(Default)]
pub struct Reservation {
    /// The pool that `taken` was reserved from; `None` before the first reservation.
    memory: Option<Memory>,
    /// Bytes beyond the operator's own share.
    taken: usize,
    /// All bytes, as counted in the memory of all statements.
    counted: usize,
    /// Number of reservations that divide the operator's share; 0 and 1 mean one.
    sharers: usize,
}

impl Reservation {
    /// One thread's reservation of a parallel operator with this many threads.
    pub fn of_one_thread(threads: usize) -> Reservation {
        Reservation { memory: None, taken: 0, counted: 0, sharers: threads }
    }

    /// Changes the reservation to `bytes`. Returns false and leaves it unchanged if there is no
    /// room.
    #[must_use]
    pub fn try_resize(&mut self, bytes: usize, memory: &Memory) -> bool {
        let share = memory.share() / self.sharers.max(1);
        self.try_resize_both(bytes, bytes.saturating_sub(share), memory)
    }

    /// Like [`Reservation::try_resize`], for an operator without a share of its own: it takes at
    /// most another operator's share from the pool.
    #[must_use]
    pub fn try_resize_small(&mut self, bytes: usize, memory: &Memory) -> bool {
        bytes <= memory.share() / self.sharers.max(1) && self.try_resize_both(bytes, bytes, memory)
    }

    /// Changes all bytes, and those taken from the statement's pool. Returns false and leaves both
    /// unchanged if either pool has less.
    fn try_resize_both(&mut self, bytes: usize, taken: usize, memory: &Memory) -> bool {
        debug_assert!(taken <= bytes, "{taken} of {bytes} bytes are taken from the pool");
        if !memory.recount(self.counted, bytes) {
            return false;
        }
        let before = std::mem::replace(&mut self.counted, bytes);
        let resized = self.try_resize_taken(taken, memory);
        if !resized {
            memory.count_back(bytes, before);
            self.counted = before;
        }
        resized
    }

    /// Changes the bytes taken from the pool. Returns false if the pool has less.
    fn try_resize_taken(&mut self, wanted: usize, memory: &Memory) -> bool {
        let memory = self.memory.get_or_insert_with(|| memory.clone());
        if wanted <= self.taken {
            memory.give_back(self.taken - wanted);
        } else if !memory.take(wanted - self.taken) {
            return false;
        }
        self.taken = wanted;
        true
    }

    /// Releases everything.
    pub fn release(&mut self) {
        if let Some(memory) = self.memory.take() {
            memory.give_back(std::mem::take(&mut self.taken));
            memory.count_back(std::mem::take(&mut self.counted), 0);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_table::StatementMemory;
    use std::sync::Arc;

    #[test]
    fn a_reservation_gives_back_what_it_took() {
        let memory = Memory::new(1 << 20);
        let mut first = Reservation::default();
        let mut second = Reservation::default();
        let (share, pool) = (1 << 19, 1 << 19);
        assert!(first.try_resize(share, &memory));
        assert!(first.try_resize(share + pool, &memory));
        assert!(second.try_resize(share, &memory), "a share needs nothing from the pool");
        assert!(!second.try_resize(share + 1, &memory), "the pool is empty");
        assert!(first.try_resize(share + pool - 1, &memory));
        assert!(second.try_resize(share + 1, &memory));
        first.release();
        assert!(second.try_resize(share + pool, &memory));
    }

    #[test]
    fn statements_share_one_pool_but_keep_a_minimum() {
        let shared = Arc::new(StatementMemory::new(1 << 20));
        let statement = || Memory::sharing(1 << 30, shared.clone());
        let (one, other) = (statement(), statement());
        assert_eq!(one.limit(), 1 << 20, "no statement has more than all together");
        let (mut first, mut second) = (Reservation::default(), Reservation::default());
        assert!(first.try_resize(900_000, &one));
        assert!(!second.try_resize(200_000, &other), "the first holds most");
        assert!(second.try_resize(100_000, &other));
        assert_eq!((shared.memory_bytes(), shared.left_bytes()), (1_000_000, 48_576));
        assert!(!first.try_resize((1 << 20) + 1, &one) && !first.try_resize(1_000_000, &one));
        assert_eq!(shared.memory_bytes(), 1_000_000, "a refusal changes nothing");
        let mut third = Reservation::default();
        assert!(third.try_resize(60_000, &other), "an operator's minimum is always there");
        drop(first);
        assert!(second.try_resize(800_000, &other));
        drop((second, third));
        assert_eq!(shared.memory_bytes(), 0);
    }
}
