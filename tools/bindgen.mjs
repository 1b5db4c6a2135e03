/**
 * Writes the JavaScript glue of a compiled WebAssembly module, with the workspace's own
 * `nacre-bindgen`.
 */

import { run } from './lib.mjs';

/** Writes `outName.js`, `outName.d.ts` and `outName_bg.wasm` into `outDir`. */
export async function bindgen(module, outDir, outName) {
  const tool = ['run', '-q', '-p', 'nacre-bindgen', '--profile', 'tool', '--'];
  await run('cargo', [...tool, module, outDir, outName]);
}
