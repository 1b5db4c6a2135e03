/** Prints how large the engine is, raw and compressed, and fails above the budget. */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { buildPackage } from './build.mjs';
import { Failure, main, root } from './lib.mjs';
import { setup } from './setup.mjs';

const BROTLI_LIMIT = 1_300_000;

/** Prints the sizes; throws when the budget is exceeded. */
export function printSize() {
  const wasm = fs.readFileSync(path.join(root, 'bindings/js/dist/nacre_bg.wasm'));
  const brotli = brotliCompressSync(wasm, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 11 },
  }).length;
  const sizes = {
    raw: wasm.length,
    gzip: gzipSync(wasm, { level: 9 }).length,
    'brotli-11': brotli,
  };
  const text = Object.entries(sizes).map(
    ([name, bytes]) => `${name} ${(bytes / 1e6).toFixed(3)} MB`,
  );
  console.log(`nacre_bg.wasm: ${text.join(', ')} (limit: brotli ${BROTLI_LIMIT / 1e6} MB)`);
  if (brotli > BROTLI_LIMIT) {
    throw new Failure(
      `the engine is too large: ${brotli} bytes with brotli, at most ${BROTLI_LIMIT}`,
    );
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await main(async () => {
    await setup();
    await buildPackage();
    printSize();
  });
}
