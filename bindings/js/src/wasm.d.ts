/** WebAssembly files that are imported with a script, as Workers and their bundlers do. */
declare module '*.wasm' {
  const module: WebAssembly.Module;
  export default module;
}
