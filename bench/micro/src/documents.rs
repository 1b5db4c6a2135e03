//! JSON columns: bytes, and the cost of writing, of one random document, and of decoding, compared
//! with the same text in a text column.
//!
//! The documents are the orders of *SingleStore Universal Storage 8.0*: three lines each, of random
//! articles. Segments are in memory and their blocks cached.

use crate::measure::{Work, interleaved};
use nacre_column::{Batch, Vector, VectorBuilder};
use nacre_host::memory::MemoryStore;
use nacre_host::{LocalFile, LocalStore};
use nacre_segment::{BlockCache, ColumnSpec, Segment, SegmentBuilder};
use nacre_testing::Random;
use nacre_types::DataType;
use nacre_types::limits::BLOCK_ROWS;
use std::hint::black_box;
use std::sync::Arc;

const ROWS: usize = 48 * BLOCK_ROWS;
const GETS: usize = 4_000;

fn order(row: usize, random: &mut Random) -> String {
    let mut line = |at: usize| {
        let (sku, qty) = (random.below(10_000_000), 1 + random.below(3));
        let (a, b) = (random.below(u64::MAX), random.below(u64::MAX));
        let uuid =
            format!("{:08x}-{:04x}-{:04x}-{:016x}", a >> 32, a >> 16 & 0xffff, a & 0xffff, b);
        format!("{{\"line_num\":{at},\"SKU\":{sku},\"description\":\"{uuid}\",\"qty\":{qty}}}")
    };
    let lines = [1, 2, 3].map(&mut line).join(",");
    let second = row / 1000;
    format!(
        "{{\"id\":{row},\"time\":\"2022-11-17 23:{:02}:{:02}\",\"lineitems\":[{lines}]}}",
        second / 60 % 60,
        second % 60
    )
}

fn batches(data_type: DataType) -> Vec<Batch> {
    let mut random = Random::new(5);
    let block = |at: usize| {
        let mut builder = VectorBuilder::new(data_type);
        for row in 0..BLOCK_ROWS {
            builder.push_bytes(order(at * BLOCK_ROWS + row, &mut random).as_bytes());
        }
        let vector: Vector = builder.finish();
        Batch::new(vec![Arc::new(vector)], BLOCK_ROWS)
    };
    (0..ROWS / BLOCK_ROWS).map(block).collect()
}

fn write(batches: &[Batch], data_type: DataType) -> Arc<dyn LocalFile> {
    let spec = ColumnSpec { id: 1, data_type, nullable: false };
    let mut builder = SegmentBuilder::new(vec![spec]);
    batches.iter().for_each(|batch| builder.push(batch));
    let file = MemoryStore::new().create("s").expect("a file in memory");
    builder.write(&*file).expect("a segment");
    file
}

fn works<'a>(segment: &'a Segment, batches: &'a [Batch], name: &str) -> [Work<'a>; 3] {
    let mut random = Random::new(3);
    let rows: Vec<usize> = (0..GETS).map(|_| random.below(ROWS as u64) as usize).collect();
    let get = move || {
        for row in &rows {
            black_box(segment.get(0, *row).expect("a good row"));
        }
        GETS
    };
    let decode = move || {
        for block in 0..8 {
            black_box(segment.decode(0, block * BLOCK_ROWS, BLOCK_ROWS).expect("a good block"));
        }
        8 * BLOCK_ROWS
    };
    let data_type = segment.columns().expect("a good footer")[0].data_type;
    let writing = move || {
        black_box(write(&batches[..16], data_type));
        16 * BLOCK_ROWS
    };
    [
        (format!("get {name}"), Box::new(get)),
        (format!("decode {name}"), Box::new(decode)),
        (format!("write {name}"), Box::new(writing)),
    ]
}

pub fn run() {
    let types = [("json", DataType::Json), ("text", DataType::TEXT)];
    let batches = types.map(|(_, data_type)| batches(data_type));
    let segments: Vec<Segment> = (0..2)
        .map(|at| {
            let file = write(&batches[at], types[at].1);
            Segment::open(file, "s", 1, BlockCache::new(1 << 30)).expect("a good segment")
        })
        .collect();
    for ((name, _), segment) in types.iter().zip(&segments) {
        let columns = segment.columns().expect("a good footer");
        let meta = &columns[0];
        println!(
            "{name}: {}, {:.1} bytes a document, {:.1} with the footer, {:.1} as text",
            meta.encoding,
            meta.bytes as f64 / ROWS as f64,
            segment.bytes() as f64 / ROWS as f64,
            meta.raw_bytes as f64 / ROWS as f64 - 4.0
        );
        for path in segment.paths(0).expect("a good footer") {
            let each = path.bytes as f64 / ROWS as f64;
            println!("  {:<26} {:<8} {:<10} {each:6.2}", path.path, path.kind, path.encoding);
        }
    }
    let works = (0..2).flat_map(|at| works(&segments[at], &batches[at], types[at].0)).collect();
    for (name, time) in interleaved(works) {
        println!("{name:<12} {time:10.0} ns a document");
    }
}
