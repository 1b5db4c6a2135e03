//! `nacre-bindgen MODULE OUT_DIR OUT_NAME`: writes the JavaScript glue and the types of a
//! WebAssembly module, as `wasm-bindgen --target web` does.
//!
//! It calls wasm-bindgen's own library in the version that `Cargo.lock` pins for the engine, so
//! that the two always agree. The command of that name would have to be installed beside the
//! workspace, and brings a test runner with an HTTP server and client: five minutes of compiling
//! instead of half a one.

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
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("{module}: {error:#}"), 1),
    }
}

#[allow(clippy::print_stderr, reason = "a command's errors go to standard error")]
fn fail(message: &str, code: u8) -> ExitCode {
    eprintln!("nacre-bindgen: {message}");
    ExitCode::from(code)
}
