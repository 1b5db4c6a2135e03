//! The test suites of `Clock`, `Entropy` and `Parallelism`.

use nacre_host::{Clock, Entropy, Parallelism};
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The future returned by a clock's sleep.
pub type Sleep<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Runs the suite. `run` drives a future to completion, as the host's executor does.
pub fn check_clock(clock: &dyn Clock, run: &dyn Fn(Sleep<'_>)) {
    let mut last = clock.monotonic_ns();
    for _ in 0..10_000 {
        let now = clock.monotonic_ns();
        assert!(now >= last, "monotonic time went back from {last} to {now}");
        last = now;
    }
    assert!(
        clock.wall_us() > 1_577_836_800_000_000,
        "wall time is before 2020: {}",
        clock.wall_us()
    );

    run(clock.sleep_until(0));
    for milliseconds in [1, 5, 20] {
        let until = clock.monotonic_ns() + milliseconds * 1_000_000;
        run(clock.sleep_until(until));
        assert!(clock.monotonic_ns() >= until, "woke before {milliseconds} ms had passed");
    }
    // A later sleep must not delay an earlier one, and dropping one must not affect the others.
    let now = clock.monotonic_ns();
    let (late, early) =
        (clock.sleep_until(now + 3_600_000_000_000), clock.sleep_until(now + 2_000_000));
    let mut both = (late, early);
    run(Box::pin(std::future::poll_fn(|context| {
        assert!(both.0.as_mut().poll(context).is_pending(), "an hour passed at once");
        both.1.as_mut().poll(context)
    })));
    drop(both);
    run(clock.sleep_until(clock.monotonic_ns() + 1_000_000));
}

/// Runs the suite. It only detects a source that is stuck or badly biased.
pub fn check_entropy(entropy: &dyn Entropy) {
    let drawn: Vec<u64> = (0..4096).map(|_| entropy.next_u64()).collect();
    let distinct: BTreeSet<u64> = drawn.iter().copied().collect();
    assert_eq!(distinct.len(), drawn.len(), "4096 draws of 64 bits repeat");
    for bit in 0..64 {
        let ones = drawn.iter().filter(|v| **v >> bit & 1 == 1).count();
        // Nine standard deviations of a fair coin.
        assert!((1760..=2336).contains(&ones), "bit {bit} is set in {ones} of 4096 draws");
    }
}

/// Runs the suite.
pub fn check_parallelism(parallelism: &dyn Parallelism) {
    assert!(parallelism.width() >= 1, "width is at least one");
    parallelism.run(0, &|_| panic!("a task ran though there was none"));
    for count in [1, 2, 3, 17, 1000] {
        let runs: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
        parallelism.run(count, &|i| {
            runs[i].fetch_add(1, Ordering::Relaxed);
        });
        assert!(
            runs.iter().all(|r| r.load(Ordering::Relaxed) == 1),
            "each of {count} tasks runs exactly once"
        );
    }

    let total = AtomicUsize::new(0);
    parallelism.run(4, &|_| {
        parallelism.run(8, &|i| {
            total.fetch_add(i, Ordering::Relaxed);
        });
    });
    assert_eq!(total.load(Ordering::Relaxed), 4 * 28, "a task may run tasks");

    // Concurrent callers, and many small runs in sequence.
    let total = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    parallelism.run(3, &|_| {
                        total.fetch_add(1, Ordering::Relaxed);
                    });
                }
            });
        }
    });
    assert_eq!(
        total.load(Ordering::Relaxed),
        4 * 200 * 3,
        "threads may run tasks at the same time"
    );
}
