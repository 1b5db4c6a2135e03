//! One suite for all integer codecs, against a sorted vector.

use super::block::HEAD_BYTES;
use super::*;
use nacre_types::hash::hash_u64;

fn sequences() -> Vec<(String, Vec<u32>)> {
    let mut out: Vec<(String, Vec<u32>)> = vec![
        ("empty".into(), vec![]),
        ("zero".into(), vec![0]),
        ("greatest".into(), vec![u32::MAX]),
        ("extremes".into(), vec![0, 0, 1, u32::MAX - 1, u32::MAX, u32::MAX]),
        ("seed".into(), (1..=8).collect()),
    ];
    for count in [2u64, 3, 4, 5, 31, 32, 33, 127, 128, 129, 255, 256] {
        for (name, below) in
            [("dense", count), ("near", count * 20), ("far", 1 << 32), ("repeated", 3)]
        {
            let mut values: Vec<u32> =
                (0..count).map(|i| (hash_u64(i * 7 + count) % below) as u32).collect();
            values.sort_unstable();
            out.push((format!("{count} {name}"), values));
        }
        out.push((format!("{count} in a row"), (1000..1000 + count as u32).collect()));
        out.push((format!("{count} equal"), vec![77; count as usize]));
    }
    out
}

fn for_all(mut check: impl FnMut(&dyn Codec, &[u32], &str)) {
    for codec in CODECS {
        for (name, values) in sequences() {
            if values.len() <= codec.capacity() {
                check(codec, &values, &format!("{}: {name}", codec.name()));
            }
        }
    }
}

fn all(codec: &dyn Codec, block: &[u8]) -> Vec<u32> {
    let mut out = vec![9];
    codec.uncompress(block, &mut out).unwrap();
    out.remove(0);
    out
}

/// Checks every read operation on a block.
fn assert_block(codec: &dyn Codec, block: &[u8], values: &[u32], what: &str) {
    assert_eq!(all(codec, block), values, "{what}");
    assert_eq!(codec.len(block).unwrap(), values.len(), "{what}");
    assert_eq!(codec.min(block).unwrap(), values.first().copied(), "{what}");
    assert_eq!(codec.max(block).unwrap(), values.last().copied(), "{what}");
    assert_eq!(codec.sum(block).unwrap(), values.iter().map(|v| *v as u64).sum(), "{what}");
    for (at, value) in values.iter().enumerate() {
        assert_eq!(codec.get(block, at).unwrap(), *value, "{what} get {at}");
    }
    assert!(codec.get(block, values.len()).is_err(), "{what}");
    let around = values.iter().flat_map(|v| [v.saturating_sub(1), *v, v.saturating_add(1)]);
    for value in around.chain([0, 1, 500, u32::MAX]) {
        let expected = values.partition_point(|v| *v < value);
        assert_eq!(
            codec.lower_bound(block, value).unwrap(),
            expected,
            "{what} lower bound of {value}"
        );
    }
}

#[test]
fn blocks_answer_what_their_values_do() {
    for_all(|codec, values, what| assert_block(codec, &codec.compress(values), values, what));
}

#[test]
fn appending_is_compressing_one_more() {
    for_all(|codec, values, what| {
        let mut block = codec.compress(&[]);
        for (at, value) in values.iter().enumerate() {
            assert_eq!(
                codec.append(&mut block, *value, usize::MAX).unwrap(),
                BlockChange::Done,
                "{what}"
            );
            if at % 16 == 0 || at + 1 == values.len() {
                assert_block(codec, &block, &values[..=at], &format!("{what} appended {at}"));
            }
        }
        assert_eq!(all(codec, &block), values);
    });
}

#[test]
fn inserting_and_deleting_in_any_order() {
    for_all(|codec, values, what| {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by_key(|at| hash_u64(*at as u64 + 5));
        let mut block = codec.compress(&[]);
        let mut model: Vec<u32> = Vec::new();
        for (step, at) in order.iter().enumerate() {
            assert_eq!(
                codec.insert(&mut block, values[*at], usize::MAX).unwrap(),
                BlockChange::Done,
                "{what}"
            );
            model.insert(model.partition_point(|v| *v < values[*at]), values[*at]);
            if step % 20 == 0 {
                assert_block(codec, &block, &model, &format!("{what} inserted"));
            }
        }
        assert_block(codec, &block, values, what);
        order.sort_by_key(|at| hash_u64(*at as u64 + 6));
        for (step, at) in order.iter().enumerate() {
            let value = values[*at];
            assert_eq!(
                codec.delete(&mut block, value, usize::MAX).unwrap(),
                BlockChange::Done,
                "{what}"
            );
            model.remove(model.partition_point(|v| *v < value));
            if !model.contains(&value) {
                let before = block.clone();
                assert_eq!(
                    codec.delete(&mut block, value, usize::MAX).unwrap(),
                    BlockChange::Absent,
                    "{what}"
                );
                assert_eq!(block, before);
            }
            if step % 20 == 0 {
                assert_block(codec, &block, &model, &format!("{what} deleted"));
            }
        }
        assert_block(codec, &block, &[], what);
    });
}

#[test]
fn a_change_without_room_changes_nothing() {
    for_all(|codec, values, what| {
        let block = codec.compress(values);
        for room in
            [0, block.len().saturating_sub(1), block.len(), block.len() + 1, block.len() + 600]
        {
            let last = values.last().copied().unwrap_or(0);
            for value in [0, last / 2, last.saturating_add(1), u32::MAX] {
                for change in ["append", "insert", "delete"] {
                    let mut changed = block.clone();
                    let answer = match change {
                        "append" if value >= last => codec.append(&mut changed, value, room),
                        "append" => continue,
                        "insert" => codec.insert(&mut changed, value, room),
                        _ => codec.delete(&mut changed, value, room),
                    };
                    match answer.unwrap() {
                        BlockChange::Done => {
                            assert!(changed.len() <= room, "{what} {change} {value} in {room}")
                        }
                        _ => assert_eq!(changed, block, "{what} {change} {value} in {room}"),
                    }
                }
            }
        }
        if values.len() == codec.capacity() {
            let mut full = block.clone();
            assert_eq!(
                codec.append(&mut full, u32::MAX, usize::MAX).unwrap(),
                BlockChange::NoRoom,
                "{what}"
            );
            assert_eq!(
                codec.insert(&mut full, 0, usize::MAX).unwrap(),
                BlockChange::NoRoom,
                "{what}"
            );
            assert_eq!(full, block);
        }
    });
}

#[test]
fn deleting_may_grow_a_block_of_packed_differences() {
    // The example from the paper, long enough for a lane to overflow: all differences are 1 until a
    // value is deleted.
    let values: Vec<u32> = (1..=128).collect();
    let block = Bp128.compress(&values);
    let mut changed = block.clone();
    assert_eq!(Bp128.delete(&mut changed, 4, block.len()).unwrap(), BlockChange::NoRoom);
    assert_eq!(changed, block);
    assert_eq!(Bp128.delete(&mut changed, 4, 1000).unwrap(), BlockChange::Done);
    assert!(changed.len() > block.len());
    let (low, high) = Bp128.split(&changed).unwrap();
    assert_eq!([all(&Bp128, &low), all(&Bp128, &high)].concat(), all(&Bp128, &changed));
    // Blocks of the other codecs shrink or keep their size.
    for codec in CODECS.iter().filter(|codec| codec.name() != Bp128.name()) {
        let block = codec.compress(&values);
        let mut changed = block.clone();
        assert_eq!(
            codec.delete(&mut changed, 4, block.len()).unwrap(),
            BlockChange::Done,
            "{}",
            codec.name()
        );
    }
}

#[test]
fn halves_are_the_whole() {
    for_all(|codec, values, what| {
        let (low, high) = codec.split(&codec.compress(values)).unwrap();
        assert_eq!([all(codec, &low), all(codec, &high)].concat(), values, "{what}");
        assert!(codec.len(&low).unwrap() <= values.len() / 2 + 1);
    });
}

/// Uses a damaged block in every way. Results are ignored; only panics fail.
fn survive(codec: &dyn Codec, block: &[u8]) {
    let mut out = Vec::new();
    let _ = codec.uncompress(block, &mut out);
    assert!(out.len() <= codec.capacity(), "no more values than a block has");
    for at in [0, 1, 100, 255] {
        let _ = codec.get(block, at);
    }
    let _ = (codec.sum(block), codec.min(block), codec.max(block));
    for value in [0, 1000, u32::MAX] {
        let _ = codec.lower_bound(block, value);
        let mut copy = block.to_vec();
        let _ = codec.delete(&mut copy, value, 2000);
        let mut copy = block.to_vec();
        let _ = codec.insert(&mut copy, value, 2000);
        let mut copy = block.to_vec();
        let _ = codec.append(&mut copy, value, 2000);
    }
}

#[test]
fn damaged_blocks_never_panic() {
    for_all(|codec, values, what| {
        let whole = codec.compress(values);
        for cut in 0..whole.len() {
            survive(codec, &whole[..cut]);
            if !values.is_empty() && cut < HEAD_BYTES {
                assert!(codec.len(&whole[..cut]).is_err(), "{what} cut to {cut}");
            }
            assert!(
                codec.uncompress(&whole[..cut], &mut Vec::new()).is_err(),
                "{what} cut to {cut}"
            );
        }
        for round in 0..300u64 {
            let mut bytes = whole.clone();
            let random = hash_u64(round * 31 + values.len() as u64);
            let room = if round % 2 == 0 { HEAD_BYTES } else { bytes.len() };
            bytes[random as usize % room] = (random >> 32) as u8;
            survive(codec, &bytes);
        }
    });
}
