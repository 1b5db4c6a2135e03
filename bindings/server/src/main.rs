//! The `nacre` command. The code is in the library, where fuzz targets can reach the file readers.

use std::process::ExitCode;

/// Rows and versions are many small, long-lived allocations that a flush frees together. After it
/// has freed millions of them, glibc's allocator spends milliseconds at a time searching its free
/// lists.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    nacre_server::main()
}
