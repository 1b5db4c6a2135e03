//! What a store holds in memory, part by part, and the limits of the parts.

use crate::catalog::registry::Catalog;
use crate::environment::Environment;
use crate::maintenance::context::TaskContext;
use nacre_types::MemoryPart;

/// Bytes of what all tables hold.
#[derive(Default)]
struct Held {
    rowstores: usize,
    directories: usize,
    bitmaps: usize,
}

fn held(catalog: &Catalog) -> Held {
    let mut held = Held::default();
    for table in catalog.tables() {
        held.rowstores += table.rowstore_size().1;
        for partition in table.partitions() {
            let list = partition.segments();
            held.directories += list.directory_bytes();
            held.bitmaps += list.iter().map(|state| state.bitmap_bytes()).sum::<usize>();
            held.directories += list.tables().iter().map(|t| t.handle_bytes()).sum::<usize>();
        }
    }
    held
}

/// Each part of a store, with the bytes it holds and its limit.
pub(crate) fn parts(context: &TaskContext, environment: &Environment) -> Vec<MemoryPart> {
    let (held, options) = (held(context.catalog()), context.options());
    let (cache, statements) = (environment.cache(), environment.statement_memory());
    let (cached_bitmaps, most_bitmaps) = context.files().bitmaps().memory_bytes();
    let part = |part, bytes: usize, limit: Option<usize>| MemoryPart {
        part,
        bytes: bytes as u64,
        limit_bytes: limit.map(|limit| limit as u64),
        hits: None,
        misses: None,
    };
    vec![
        MemoryPart {
            hits: Some(cache.hits()),
            misses: Some(cache.misses()),
            ..part("block cache", cache.memory_bytes(), Some(cache.limit_bytes()))
        },
        part("rowstore", held.rowstores, Some(options.rowstore_bytes)),
        part("metadata", cache.footer_bytes(), Some(options.metadata_bytes)),
        part("directories", held.directories, None),
        part("delete bitmaps", held.bitmaps, None),
        part("bitmap cache", cached_bitmaps, Some(most_bitmaps)),
        part("statements", statements.memory_bytes(), Some(statements.limit_bytes())),
    ]
}
