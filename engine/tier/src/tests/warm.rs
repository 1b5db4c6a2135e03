//! Warming by itself, beside reads that something waits for.

use super::world::{Faulty, Hands, Small, bytes_of, host_of, name_of, options};
use crate::TierOptions;
use core::time::Duration;
use nacre_host::memory::MemoryStore;
use nacre_host::{Host, Missing, Uploads};
use std::sync::Arc;

const FILES: u64 = 5;

#[test]
fn warming_rests_after_a_read_that_waited() {
    let (files, blobs) = (Arc::new(MemoryStore::new()), Faulty::new());
    let limit = TierOptions { disk_limit: 512, ..options() };
    let mut small = Small::open(&files, &blobs, limit).unwrap();
    (1..=FILES).for_each(|number| small.add(number).unwrap());
    small.upload();
    drop(small);

    let clock = Arc::new(Hands::default());
    let host = Host { clock: clock.clone(), ..host_of(files) };
    let roomy = TierOptions { disk_limit: 256 << 10, warms: true, ..options() };
    let small = Small::open_at(host, &blobs, roomy).unwrap();
    small.upload();
    let mut numbers = 2..=FILES;
    small.tier.warm(Box::new(move || {
        Ok(numbers.next().map(|number| {
            let len = bytes_of(number).len() as u64;
            vec![Missing {
                file: name_of(number).into(),
                ranges: std::iter::once(0..len).collect(),
            }]
        }))
    }));
    assert_eq!(small.read(1).unwrap(), bytes_of(1));
    let calls = blobs.calls();
    assert_eq!((small.upload(), blobs.calls()), (0, calls), "the next read may be soon");
    assert_eq!(small.tier.reads().bytes_warmed, 0);

    clock.pass(Duration::from_millis(100));
    assert!(small.upload() > 0 && blobs.calls() > calls);
    assert!(small.tier.reads().bytes_warmed > 0);
    let calls = blobs.calls();
    (1..=FILES).for_each(|number| assert_eq!(small.read(number).unwrap(), bytes_of(number)));
    assert_eq!(blobs.calls(), calls, "all of it is here");
}
