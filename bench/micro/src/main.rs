//! `npm run bench -- codecs | filter | index-probe | seek`: what single parts of the engine cost, in memory and without a
//! database. Nothing but the engine's own crates is needed, so this builds in a minute.
//!
//! Every figure is the median of interleaved rounds. Nothing here is a test.

mod codecs;
mod data;
mod filter;
mod index_probe;
mod measure;
mod seek;

use std::process::ExitCode;

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    match name.as_str() {
        "codecs" => codecs::run(),
        "filter" => filter::run(),
        "index-probe" => index_probe::run(),
        "seek" => seek::run(),
        _ => {
            eprintln!("usage: npm run bench -- codecs | filter | index-probe | seek");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
