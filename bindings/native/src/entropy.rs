//! Randomness from the operating system.

use nacre_host::Entropy;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// Random numbers from a counter that is hashed with SipHash, a pseudo-random function, under a key
/// that the standard library gets from the operating system. Needs no system call per number and
/// cannot fail. Not for secrets.
///
/// ```
/// use nacre_host::Entropy;
/// use nacre_native::NativeEntropy;
///
/// let entropy = NativeEntropy::new();
/// assert_ne!(entropy.next_u64(), entropy.next_u64());
/// ```
pub struct NativeEntropy {
    key: RandomState,
    counter: AtomicU64,
}

impl NativeEntropy {
    /// Creates a source with its own key.
    pub fn new() -> NativeEntropy {
        NativeEntropy { key: RandomState::new(), counter: AtomicU64::new(0) }
    }
}

impl Default for NativeEntropy {
    fn default() -> NativeEntropy {
        NativeEntropy::new()
    }
}

impl Entropy for NativeEntropy {
    fn next_u64(&self) -> u64 {
        self.key.hash_one(self.counter.fetch_add(1, Ordering::Relaxed))
    }
}
