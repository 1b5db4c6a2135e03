//! `npm run bench -- access | codecs | documents | encoded | filter | index-entries |
//! index-probe | load-indexed | load-over | seek | steps | take`: the cost of single parts of the engine, in
//! memory, and without a database except in `access`, `load-indexed` and `steps`. Depends on the
//! engine's crates only and builds in a minute or two.
//!
//! Every figure is the median of interleaved rounds. Nothing here is a test.

mod access;
mod codecs;
mod data;
mod documents;
mod encoded;
mod filter;
mod index_entries;
mod index_probe;
mod load_indexed;
mod load_over;
mod measure;
mod seek;
mod steps;
mod take;

use std::process::ExitCode;

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    match name.as_str() {
        "access" => access::access(),
        "codecs" => codecs::run(),
        "documents" => documents::run(),
        "encoded" => encoded::run(),
        "filter" => filter::run(),
        "index-entries" => index_entries::run(),
        "index-probe" => index_probe::run(),
        "load-indexed" => load_indexed::run(),
        "load-over" => load_over::run(),
        "seek" => seek::run(),
        "steps" => steps::run(),
        "take" => take::run(),
        _ => {
            eprintln!(
                "usage: npm run bench -- access | codecs | documents | encoded | filter | index-entries | index-probe | load-indexed | load-over | seek | steps | take"
            );
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
