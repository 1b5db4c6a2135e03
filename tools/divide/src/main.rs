//! Divides a WebAssembly module into the functions that are needed first and the rest.
//!
//! `nacre-divide instrument MODULE OUT` writes a module that also notes which functions run: each
//! has an exported global `ran:INDEX`, which is 1 afterwards. `nacre-divide divide MODULE NEEDED
//! FIRST MORE` writes two modules; NEEDED is a file with the numbers of the functions that the
//! first one contains, one a line.

mod divide;
mod first;
mod instrument;
mod more;
mod parsed;
mod plan;
mod sections;

use parsed::{Parsed, Result};
use std::fs;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done =
        match arguments.as_slice() {
            ["instrument", module, out] => instrument(module, out),
            ["divide", module, needed, first, more] => divide(module, needed, first, more),
            _ => Err("usage: nacre-divide instrument MODULE OUT | divide MODULE NEEDED FIRST MORE"
                .into()),
        };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error.to_string()),
    }
}

fn instrument(module: &str, out: &str) -> Result<()> {
    let bytes = fs::read(module)?;
    fs::write(out, instrument::instrument(&Parsed::new(&bytes)?)?)?;
    Ok(())
}

fn divide(module: &str, needed: &str, first: &str, more: &str) -> Result<()> {
    let bytes = fs::read(module)?;
    let needed: Vec<u32> = fs::read_to_string(needed)?
        .lines()
        .map(str::parse)
        .collect::<std::result::Result<_, _>>()?;
    let divided = divide::divide(&Parsed::new(&bytes)?, &needed)?;
    fs::write(first, divided.first)?;
    fs::write(more, divided.more)?;
    Ok(())
}

#[allow(clippy::print_stderr, reason = "a command's errors go to standard error")]
fn fail(message: &str) -> ExitCode {
    eprintln!("nacre-divide: {message}");
    ExitCode::FAILURE
}
