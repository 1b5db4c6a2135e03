//! `nacre-bindgen MODULE OUT_DIR OUT_NAME`: writes the JavaScript glue and the types of a
//! WebAssembly module, as `wasm-bindgen --target web` does, with shorter names.
//!
//! It calls wasm-bindgen's own library in the version that `Cargo.lock` pins for the engine, so
//! that the two always agree. The command of that name would have to be installed beside the
//! workspace, and brings a test runner with an HTTP server and client: five minutes of compiling
//! instead of half a one.

mod names;

use names::{Names, Result};
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [module, out_dir, out_name] = arguments.as_slice() else {
        return fail("usage: nacre-bindgen MODULE OUT_DIR OUT_NAME", 2);
    };
    let mut bindgen = Bindgen::new();
    let written = bindgen.web(true).and_then(|bindgen| {
        bindgen
            .input_path(module)
            .out_name(out_name)
            .typescript(true)
            // The package names the module itself, by an address that a bundler sees.
            .omit_default_module_path(true)
            // After a trap, a thread without a worker of its own starts the engine afresh.
            .reset_state_function(true)
            .generate(out_dir)
    });
    let written = written.map_err(|error| format!("{error:#}"));
    match written.and_then(|()| shorten(Path::new(out_dir), out_name)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("{module}: {error}"), 1),
    }
}

/// Shortens names in the files that were written.
fn shorten(dir: &Path, out_name: &str) -> Result<()> {
    let read = |name: &str| fs::read(dir.join(name)).map_err(|error| format!("{name}: {error}"));
    let write = |name: &str, bytes: &[u8]| {
        fs::write(dir.join(name), bytes).map_err(|error| format!("{name}: {error}"))
    };
    let script = format!("{out_name}.js");
    let module = format!("{out_name}_bg.wasm");
    let declarations = format!("{out_name}_bg.wasm.d.ts");
    let content = read(&module)?;
    let text =
        |name: &str| String::from_utf8(read(name)?).map_err(|error| format!("{name}: {error}"));
    let mut names = Names::of(&content, &text(&script)?)?;
    for name in [&script, &declarations] {
        write(name, names.in_script(&text(name)?).as_bytes())?;
    }
    write(&module, &names.in_module(&content)?)
}

#[allow(clippy::print_stderr, reason = "a command's errors go to standard error")]
fn fail(message: &str, code: u8) -> ExitCode {
    eprintln!("nacre-bindgen: {message}");
    ExitCode::from(code)
}
