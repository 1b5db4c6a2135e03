//! The `nacre` command. All of it is in the library, where the fuzz targets reach the readers of files.

use std::process::ExitCode;

/// Rows and versions are many small pieces that live long and go together; after a flush has freed millions of them
/// the C library's allocator searches its lists for milliseconds at a time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    nacre_server::main()
}
