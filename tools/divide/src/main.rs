//! Divides a WebAssembly module into the functions that are needed first and the rest, and cuts out
//! before what is not needed at all.
//!
//! `nacre-divide cut MODULE LIST OUT` gives the functions of a list a body that does nothing, in a
//! module as the linker writes it with `--emit-relocs`, and takes out what only they reach.
//!
//! `nacre-divide instrument MODULE OUT` writes a module that also notes which functions run: each
//! has an exported global `ran:INDEX`, which is 1 afterwards. `nacre-divide divide MODULE NEEDED
//! FIRST MORE` writes two modules; NEEDED is a file with the numbers of the functions that the
//! first one contains, one a line.

mod cut;
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
            ["cut", module, list, out] => cut(module, list, out),
            ["divide", module, needed, first, more] => divide(module, needed, first, more),
            _ => Err("usage: nacre-divide cut MODULE LIST OUT | instrument MODULE OUT | divide MODULE NEEDED FIRST MORE"
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

fn cut(module: &str, list: &str, out: &str) -> Result<()> {
    let cut = cut::cut(&fs::read(module)?, &fs::read_to_string(list)?)?;
    fs::write(out, &cut.module)?;
    say(&format!(
        "cut: {} functions of {} bytes, {} bytes of constants",
        cut.functions, cut.code, cut.data
    ));
    Ok(())
}

fn divide(module: &str, needed: &str, first: &str, more: &str) -> Result<()> {
    let bytes = fs::read(module)?;
    let needed: Vec<u32> = fs::read_to_string(needed)?
        .lines()
        .map(str::parse)
        .collect::<std::result::Result<_, _>>()?;
    let parsed = Parsed::new(&bytes)?;
    let mut all = needed.into_iter().collect();
    plan::take_small(&parsed, plan::SMALL, &mut all)?;
    let needed: Vec<u32> = all.into_iter().collect();
    let divided = divide::divide(&parsed, &needed)?;
    fs::write(first, divided.first)?;
    fs::write(more, divided.more)?;
    Ok(())
}

#[allow(clippy::print_stdout, reason = "what the build shows")]
fn say(message: &str) {
    println!("{message}");
}

#[allow(clippy::print_stderr, reason = "a command's errors go to standard error")]
fn fail(message: &str) -> ExitCode {
    eprintln!("nacre-divide: {message}");
    ExitCode::FAILURE
}
