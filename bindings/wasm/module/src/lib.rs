//! The WebAssembly module, made of `nacre-wasm`. A crate by itself, because the level of optimisation
//! of the crate that is linked is that of link-time optimisation (`profile.wasm`), and the host's
//! own code, which is no loop over columns, asks for size.

pub use nacre_wasm::*;
