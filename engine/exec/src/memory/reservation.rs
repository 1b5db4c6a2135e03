//! One operator's reservation of a statement's memory.

use super::pool::Memory;

/// The memory reserved by one operator, released on drop.
#[derive(Default)]
pub struct Reservation {
    /// The pool that `taken` was reserved from; `None` before the first reservation.
    memory: Option<Memory>,
    /// Bytes beyond the operator's own share.
    taken: usize,
    /// Number of reservations that divide the operator's share; 0 and 1 mean one.
    sharers: usize,
}

impl Reservation {
    /// One thread's reservation of a parallel operator with this many threads.
    pub(crate) fn of_one_thread(threads: usize) -> Reservation {
        Reservation { memory: None, taken: 0, sharers: threads }
    }

    /// Changes the reservation to `bytes`. Returns false and leaves it unchanged if there is no
    /// room.
    #[must_use]
    pub fn try_resize(&mut self, bytes: usize, memory: &Memory) -> bool {
        let share = memory.share() / self.sharers.max(1);
        self.try_resize_taken(bytes.saturating_sub(share), memory)
    }

    /// Like [`Reservation::try_resize`], for an operator without a share of its own: it takes at
    /// most another operator's share from the pool.
    #[must_use]
    pub(crate) fn try_resize_small(&mut self, bytes: usize, memory: &Memory) -> bool {
        bytes <= memory.share() / self.sharers.max(1) && self.try_resize_taken(bytes, memory)
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
}
